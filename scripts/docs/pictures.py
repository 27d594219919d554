"""Draw the pictures of the README and of pages of docs, by their examples.

``python -m scripts.docs.pictures`` writes docs/pictures; with ``--check`` nothing is written, and the exit code is 1 if a
picture is stale. ``--only`` and ``--folder`` draw some of them, or elsewhere. ``--city FILE`` draws those of a real town in
their place, by the notebook ``city`` from a file of OpenStreetMap, which is no part of this repository.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
import tempfile
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib import image
from PIL import Image

from scripts.docs.run_examples import blocks_of, run_block
from scripts.pages import ROOT, listed

matplotlib.use("agg")  # no display is needed
matplotlib.rcParams["font.size"] = 16  # readable on a phone, where a picture is 370 pixels wide
FOLDER = ROOT / "docs/pictures"
README = ROOT / "README.md"
PAGES = {ROOT / page: set(names) for page, names in listed(__file__)["pages"].items()}
CITY = ROOT / "examples/notebooks/city.py"
OF_CITY = ["porto-flows.png", "porto-isochrones.png", "porto-nearest.png"]
PICTURES = [name for saved in PAGES.values() for name in sorted(saved)]
# Another version of matplotlib may set other letters. Another result colours more of the picture.
DIFFERENCE = 0.2
SHARE = 0.01


def draw(names: list[str], folder: Path) -> None:
    """Write pictures into a folder: run the examples of the pages that save them, and those that save none."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.chdir(folder):
        for page, saved in PAGES.items():
            run = {}
            for line, code in (
                blocks_of(page.read_text(encoding="utf-8")) if saved & set(names) else []
            ):
                saves = {name for name in saved if f'savefig("{name}")' in code}
                wanted = saves & set(names) if page == README else saves <= set(names)
                if wanted and not run_block(code, line, page.name, run):
                    raise SystemExit(f"the example of {page.name} in line {line} failed")
        shrink(names)


def draw_city(file: Path, folder: Path) -> None:
    """Write the pictures of a real town into a folder: run the notebook with a file of OpenStreetMap."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["OSM_FILE"] = str(file.resolve())
    with contextlib.chdir(folder):
        runpy.run_path(str(CITY))
        shrink(OF_CITY)


def shrink(names: list[str]) -> None:
    """Write pictures of this folder anew, in a third of the bytes."""
    for name in names:
        small = Image.open(name).convert("RGB").resize((600, 600), Image.Resampling.LANCZOS)
        # every colour of a thin line, too, which a median cut would make grey
        few = small.quantize(64, method=Image.Quantize.MAXCOVERAGE)
        few.save(name, optimize=True)
    matplotlib.pyplot.close("all")


def is_same(one: Path, other: Path) -> bool:
    """Return whether two pictures show the same."""
    if not (one.exists() and other.exists()):
        return False
    pixels = image.imread(one), image.imread(other)
    return (
        pixels[0].shape == pixels[1].shape
        and float((np.abs(pixels[0] - pixels[1]) > DIFFERENCE).mean()) < SHARE
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the pictures of the pages.")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a picture is stale"
    )
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="of the pictures (default: docs/pictures)"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PICTURES,
        default=PICTURES,
        metavar="NAME",
        help="draw these alone",
    )
    parser.add_argument(
        "--city", type=Path, metavar="FILE", help="draw those of a real town from this .osm.pbf"
    )
    options = parser.parse_args(arguments)
    if options.city:
        draw_city(options.city, options.folder)
        return 0
    if not options.check:
        draw(options.only, options.folder)
        return 0
    with tempfile.TemporaryDirectory() as made:
        draw(options.only, Path(made))
        stale = [
            name for name in options.only if not is_same(Path(made) / name, options.folder / name)
        ]
    if stale:
        print(f"{', '.join(stale)}: stale; run python -m scripts.docs.pictures", file=sys.stderr)
    if stale:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
