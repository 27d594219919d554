"""The disk that installations take: an environment of its own for each extra, by pip from a wheel of this checkout."""

from __future__ import annotations

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from scripts.measure.environment import ROOT, timed
from scripts.measure.harness import run_command
from scripts.measure.work import ONCE, OURS, Call, Inputs, Timed, Work

PACKAGES = ("llvmlite", "pyarrow", "pandas")
LIBRARY = "the library"
EXTRAS = ("geo", "networkx", "osm", "plot", "job")
LARGEST = 6
SIZES = """
import json
from importlib.metadata import distributions
found = {}
for each in distributions():
    paths = [file.locate() for file in each.files or () if "__pycache__" not in str(file)]
    found[each.name.lower()] = sum(path.stat().st_blocks * 512 for path in paths if path.exists())
print(json.dumps({name: size for name, size in found.items() if name not in ("pip", "setuptools")}))
"""


def install(folder: Path, extra: str = "") -> Path:
    """Install a wheel of this checkout with an extra; return the folder of the programs."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    run_command([*pip, folder, ROOT])
    (wheel,) = folder.glob("*.whl")
    programs = folder / "environment/bin"
    run_command([sys.executable, "-m", "venv", programs.parent])
    run_command([programs / "pip", "install", "--quiet", f"{wheel}[{extra}]" if extra else wheel])
    return programs


def prepare(_inputs: Inputs, extra: str) -> Call:
    def sizes() -> Timed:
        with tempfile.TemporaryDirectory() as folder:
            programs, taken = timed(install, Path(folder), extra)
            found = json.loads(run_command([programs / "python", "-c", SIZES]))
        largest = sorted(found, key=found.__getitem__, reverse=True)[:LARGEST]
        more = {} if extra else {f"bytes of {name}": found[name] for name in largest}
        return Timed(None, taken, {"bytes": sum(found.values()), **more})

    return sizes


WORKS = tuple(
    Work(
        name=extra or LIBRARY,
        graph="none",
        case=lambda inputs: inputs,
        peers={OURS: partial(prepare, extra=extra)},
        repeats=ONCE,
    )
    for extra in ("", *EXTRAS)
)
