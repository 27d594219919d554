"""Draw the pictures of docs/results.md from results of the library on a generated road network.

``python -m scripts.docs.pictures`` writes docs/pictures; with ``--check`` nothing is written, and the exit code is 1 if a
picture is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from kepler_traverse import graph_from_edges, paths, sssp_many
from scripts.make_graphs import Draws, lattice
from scripts.road_map import BANDS, GREY, GROUPS, Mark, Streets, road_map

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/pictures"
ROWS, COLUMNS = 30, 48
CUTOFFS = (300, 600, 900, 1200)  # seconds
HOME = 15 * COLUMNS + 20
STATIONS = {
    "A": 4 * COLUMNS + 6,
    "B": 6 * COLUMNS + 36,
    "C": 17 * COLUMNS + 22,
    "D": 25 * COLUMNS + 8,
    "E": 26 * COLUMNS + 41,
}
TRIPS = (("A", "E"), ("D", "B"))


class Town:
    """A road network with coordinates; the weight of a street is the time in seconds to drive along it."""

    def __init__(self) -> None:
        draws = Draws(np, 5)
        src, dst = lattice(ROWS, COLUMNS, 0.14, 5, rng=Draws(np, 7))
        number = np.arange(ROWS * COLUMNS)
        x = number % COLUMNS + 0.55 * (draws.random(number.size) - 0.5)
        y = number // COLUMNS + 0.55 * (draws.random(number.size) - 0.5)
        self.at = np.stack([x, y], axis=1)
        length = np.hypot(*(self.at[src] - self.at[dst]).T)
        main_road = (src // COLUMNS % 10 == 5) & (dst // COLUMNS % 10 == 5)  # some rows are fast
        seconds = np.round(length * np.where(main_road, 30, 75)).astype(np.int64)
        self.src, self.dst = src, dst
        self.graph = graph_from_edges(src, dst, seconds, directed=False, vertices=number.tolist())

    def ends(self, chosen: Any) -> np.ndarray:
        return np.concatenate([self.at[self.src[chosen]], self.at[self.dst[chosen]]], axis=1)

    def mark(self, vertex: int, label: str = "") -> Mark:
        return Mark(*self.at[vertex].tolist(), label)


def isochrones(town: Town) -> str:
    """Streets by the band of their farther end."""
    found = sssp_many(town.graph, [HOME], result="isochrones", cutoffs=list(CUTOFFS))
    band = np.full(len(town.at), CUTOFFS[-1] + 1)
    band[found["vertex"].to_numpy()] = found["band"].to_numpy()
    farther = np.maximum(band[town.src], band[town.dst])
    streets = [Streets("", GREY, town.ends(farther > CUTOFFS[-1]), 1.0)]
    streets += [
        Streets(f"{cutoff // 60} min", colour, town.ends(farther == cutoff), 2.4)
        for cutoff, colour in zip(CUTOFFS, BANDS, strict=True)
    ]
    return road_map("isochrones: streets by the smallest cutoff that holds both ends", streets, [town.mark(HOME, "home")])


def nearest(town: Town) -> str:
    """Streets by the nearest station of their ends."""
    found = sssp_many(town.graph, list(STATIONS.values()), result="nearest")
    owner = np.full(len(town.at), -1)
    owner[found["vertex"].to_numpy()] = found["source"].to_numpy()
    same = owner[town.src] == owner[town.dst]
    streets = [Streets("", GREY, town.ends(~same | (owner[town.src] < 0)), 1.0)]
    for (name, vertex), colour in zip(STATIONS.items(), GROUPS, strict=False):
        streets.append(Streets(name, colour, town.ends(same & (owner[town.src] == vertex)), 2.4))
    marks = [town.mark(vertex, name) for name, vertex in STATIONS.items()]
    return road_map("nearest: streets by the nearest of five sources", streets, marks)


def routes(town: Town) -> str:
    """The paths of two pairs on all streets."""
    origins, destinations = ([STATIONS[pair[i]] for pair in TRIPS] for i in (0, 1))
    found = paths(town.graph, (origins, destinations))
    streets = [Streets("", GREY, town.ends(slice(None)), 1.0)]
    for i, ((origin, destination), colour) in enumerate(zip(TRIPS, GROUPS, strict=False)):
        vertices = found[found["pair"] == i]["vertex"].to_numpy()
        ends = np.concatenate([town.at[vertices[:-1]], town.at[vertices[1:]]], axis=1)
        streets.append(Streets(f"{origin} to {destination}", colour, ends, 4.0))
    names = dict.fromkeys(name for trip in TRIPS for name in trip)
    return road_map("paths: shortest paths of two pairs", streets, [town.mark(STATIONS[name], name) for name in names])


PICTURES = {"isochrones.svg": isochrones, "nearest.svg": nearest, "paths.svg": routes}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/results.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a picture is stale")
    options = parser.parse_args(arguments)
    town, stale = Town(), []
    for name, draw in PICTURES.items():
        path, picture = FOLDER / name, draw(town)
        if not options.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(picture, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != picture:
            stale.append(name)
    if stale:
        print(f"{', '.join(stale)}: stale; run python -m scripts.docs.pictures", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
