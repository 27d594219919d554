"""Draw the pictures of the README and of docs/results.md, all of a generated town.

``python -m scripts.docs.pictures`` writes docs/pictures; with ``--check`` nothing is written, and the exit code is 1 if a
picture is stale. The README's own example draws the first one; ``--only`` and ``--folder`` draw it elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import image
from PIL import Image

from kepler_traverse import Graph, graph_from_edges, paths, sssp_many
from kepler_traverse.datasets import Town, town
from kepler_traverse.maps import plot
from scripts.docs.run_examples import blocks_of, run_block

matplotlib.use("agg")  # no display is needed
ROOT = Path(__file__).resolve().parents[2]
FOLDER, README = ROOT / "docs/pictures", ROOT / "README.md"
# Another version of matplotlib may set other letters. Another result colours more of the picture.
DIFFERENCE, SHARE = 0.2, 0.01


def isochrones() -> None:
    """Run the example of the README, which saves isochrones.png in the working directory."""
    line, code = next(block for block in blocks_of(README.read_text(encoding="utf-8")) if "isochrones.png" in block[1])
    if not run_block(code, line, README.name, {}):
        raise SystemExit("the example of README.md that draws isochrones.png failed")


def nearest(here: Town, graph: Graph) -> Any:
    return plot(sssp_many(graph, here.schools["vertex"], result="nearest"), here.junctions, graph=graph)


def routes(here: Town, graph: Graph) -> Any:
    schools = here.schools["vertex"].to_numpy()
    return plot(paths(graph, (schools[[0, 1]], schools[[-1, -4]])), here.junctions, graph=graph)


def closeness(here: Town, graph: Graph) -> Any:
    return plot(sssp_many(graph, "all", result="summary"), here.junctions, graph=graph)


DRAWN: dict[str, Callable[[Town, Graph], Any]] = {"nearest.png": nearest, "paths.png": routes, "closeness.png": closeness}
PICTURES = ["isochrones.png", *DRAWN]


def draw(names: list[str], folder: Path) -> None:
    """Write pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        if "isochrones.png" in names:
            isochrones()
        here = town()
        graph = graph_from_edges(here.roads)
        for name in DRAWN.keys() & set(names):
            DRAWN[name](here, graph).figure.savefig(name)
        for name in names:  # in a third of the bytes
            small = Image.open(name).convert("RGB").resize((600, 600), Image.Resampling.LANCZOS)
            small.quantize(64).save(name, optimize=True)
    matplotlib.pyplot.close("all")


def is_same(one: Path, other: Path) -> bool:
    """Return whether two pictures show the same."""
    if not (one.exists() and other.exists()):
        return False
    pixels = image.imread(one), image.imread(other)
    return pixels[0].shape == pixels[1].shape and float((np.abs(pixels[0] - pixels[1]) > DIFFERENCE).mean()) < SHARE


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the pictures of the README and of docs/results.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a picture is stale")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the pictures (default: docs/pictures)")
    parser.add_argument("--only", nargs="+", choices=PICTURES, default=PICTURES, metavar="NAME", help="draw these alone")
    options = parser.parse_args(arguments)
    if not options.check:
        draw(options.only, options.folder)
        return 0
    with tempfile.TemporaryDirectory() as made:
        draw(options.only, Path(made))
        stale = [name for name in options.only if not is_same(Path(made) / name, options.folder / name)]
    if stale:
        print(f"{', '.join(stale)}: stale; run python -m scripts.docs.pictures", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
