"""Launches of the kernels of this folder, for the tests of the harness."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kepler_traverse
from tests.support import tiers

from . import harness

FOLDER = Path(__file__).parent
PACKAGE = Path(kepler_traverse.__file__).parent
HEADERS = PACKAGE / "cuda" / "include"
# Headers that kernels share, and those of the kernels of one folder.
HEADER_FOLDERS = [
    HEADERS,
    *sorted({path.parent for path in PACKAGE.rglob("*.cuh")} - {HEADERS / "kt"}),
]
BLOCK = 64  # block size of the kernels of this folder and of children
MODES = {
    "in turn": {},
    "in turn, three blocks at once": {"resident": 3},
    **{f"stress {seed}": {"stress": True, "seed": seed, "resident": 2} for seed in (1, 2, 3)},
}
ORDERS = list(MODES) if tiers.ALL else ["in turn", "stress 1"]
every_mode = pytest.mark.parametrize("mode", [MODES[name] for name in ORDERS], ids=ORDERS)


def launch(file, entry, grid, block, *args, mode=None, defined=(), **options):
    """Run a kernel of a file of this folder, in one of MODES; ``defined`` are macros."""
    folders = (f"-I{folder}" for folder in HEADER_FOLDERS)
    compiler_options = (*folders, f"-DBLOCK={BLOCK}", *(f"-D{name}" for name in defined))
    with harness.settings(**(mode or {})):
        module = harness.Module((FOLDER / file).read_text(), compiler_options, Path(file).stem)
        module.get_function(entry)((grid,), (block,), args, **options)


def fails(fault, entry, mode, file="faults.cu"):
    """Run a kernel with a mistake, ``fault`` = (grid, block, args, pattern[, options]), and return the report."""
    grid, block, args, expected, options = (*fault, {})[:5]
    args = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    with pytest.raises(harness.SimtError, match=expected) as caught:
        launch(file, entry, grid, block, *args, mode={"step_limit": 100_000, **mode}, **options)
    return str(caught.value)


def integers(size, low=-100, high=100, dtype=np.int32):
    return np.random.default_rng(5).integers(low, high, size).astype(dtype)
