#!/usr/bin/env python
"""Draw a shortest-path tree of the demonstration's road network: python -m scripts.demo_picture RUN OUTPUT.svg

RUN is the output folder of a run with predecessors on a lattice of ``scripts/make_graphs.py``, whose ids are places: the row
times the number of columns, plus the column.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from scripts.road_map import BANDS, Mark, Streets, road_map

COLUMNS = 250
DRAWN = 12_000  # vertices, those nearest to the source


def tree(run: Path) -> str:
    """Return the picture: streets of the tree of the first source, coloured by quarters of the distance."""
    part = pq.read_table(sorted(run.glob("part-*.parquet"))[0])
    source = part["source"][0].as_py()
    rows = part.slice(0, int((part["source"].to_numpy() == source).sum()))  # the rows of a source stand together
    distance = rows["distance"].to_numpy()
    nearest = np.argsort(distance, kind="stable")[1:DRAWN]  # without the source, which has no street before it
    ends = np.stack([rows["predecessor"].to_numpy(), rows["vertex"].to_numpy()], axis=1)[nearest]
    places = np.stack([ends % COLUMNS, ends // COLUMNS], axis=2).reshape(-1, 4).astype(np.float64)
    cutoffs = distance[nearest].max() * np.arange(1, 5) / 4
    band = np.searchsorted(cutoffs, distance[nearest])
    streets = [
        Streets(f"up to {cutoff:,.0f}", colour, places[band == i])
        for i, (cutoff, colour) in enumerate(zip(cutoffs, BANDS, strict=True))
    ]
    title = f"Shortest paths from vertex {source} to the nearest {len(nearest):,} vertices, by distance"
    return road_map(title, streets, [Mark(source % COLUMNS, source // COLUMNS, "source")], width=1000)


def main(arguments: list[str]) -> None:
    run, output = map(Path, arguments)
    output.write_text(tree(run), encoding="utf-8")
    print(f"Picture of the shortest paths from one source: {output}")


if __name__ == "__main__":
    main(sys.argv[1:])
