"""A program of a cuGraph user: read with cuDF, search from one source after the other, write Parquet.

python -m scripts.bench.cugraph_loop edges.parquet OUT --sources FILE [--undirected] [--result summary]

The baseline of ``python -m pipelines.batch_sources edges.parquet --output OUT --sources FILE --algorithm bfs``. The
file has columns src and dst; needs a GPU, cuDF and cuGraph. OUT must not exist. Distances are one Parquet file per source,
summaries are one file, ``OUT/summary.parquet``.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

_UNREACHED = 2**31 - 1  # the distance that cuGraph gives to vertices that are not reached


def summary_of(distances: Any, n_vertices: int) -> dict[str, float]:
    """Return a row of the summary of a source, from the column of its distances."""
    distances = distances[distances < _UNREACHED]
    others = distances[distances > 0]
    reached, total = len(distances), int(distances.sum())
    return {
        "reached": reached,
        "eccentricity": int(distances.max()),
        "sum": total,
        "mean": total / (reached - 1) if reached > 1 else 0.0,
        "closeness": (reached - 1) ** 2 / (total * (n_vertices - 1)) if total else 0.0,
        "harmonic": float((1.0 / others.astype("float64")).sum()),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("edges", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument(
        "--sources", type=Path, required=True, metavar="FILE", help="one id per line"
    )
    parser.add_argument("--undirected", action="store_true")
    parser.add_argument("--result", choices=("distances", "summary"), default="distances")
    options = parser.parse_args(arguments)
    import cudf
    import cugraph

    sources = [int(line) for line in options.sources.read_text(encoding="utf-8").split()]
    options.output.mkdir()
    started = time.perf_counter()
    graph = cugraph.Graph(directed=not options.undirected)
    graph.from_cudf_edgelist(cudf.read_parquet(options.edges), source="src", destination="dst")
    n_vertices = graph.number_of_vertices()
    built = time.perf_counter()
    rows = []
    for number, source in enumerate(sources):
        frame = cugraph.bfs(graph, source)
        if options.result == "summary":
            rows.append({"source": source} | summary_of(frame["distance"], n_vertices))
        else:
            frame["source"] = source
            frame[["source", "vertex", "distance"]].to_parquet(options.output / f"{number}.parquet")
    if rows:
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        cudf.DataFrame(columns).to_parquet(options.output / "summary.parquet")
    seconds = time.perf_counter() - built
    each = 1e3 * seconds / len(sources)
    print(
        f"read and built in {built - started:.2f} s; {len(sources)} sources in {seconds:.2f} s, {each:.1f} ms per source"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
