"""The result kinds that the job writes: those of the library and of plug-ins that have records, and ``extremes``.

Importing plug-ins imports the library. Without plug-ins, no large package is imported.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kepler_traverse.result_kinds import ResultKind

_TABLE = "kepler_traverse.result_kinds"

ROWS_PER_PART = 8_000_000  # about 50 to 100 MB of Parquet, a size that readers like
ROWS_PER_GROUP = 1_000_000
SOURCES_PER_PART = 4096  # keeps the footer of a part file small if the graph is tiny

EXTREMES = "extremes"  # of the whole graph; the library has functions for them


def _table() -> ModuleType:
    """Return the library's table without importing the library, which takes a second and would delay ``--help``."""
    if _TABLE not in sys.modules:
        library = importlib.util.find_spec("kepler_traverse")
        if library is None or library.origin is None:
            raise ImportError("kepler_traverse is not installed")
        spec = importlib.util.spec_from_file_location(_TABLE, Path(library.origin).with_name("result_kinds.py"))
        assert spec is not None  # a path of a Python file has one
        assert spec.loader is not None
        sys.modules[_TABLE] = module = importlib.util.module_from_spec(spec)  # so that the library takes the same one
        spec.loader.exec_module(module)
    return sys.modules[_TABLE]


OUTPUT_SCHEMAS: dict[str, ResultKind] = {name: kind for name, kind in _table().RESULT_KINDS.items() if kind.in_files}
OUTPUT_SCHEMAS[EXTREMES] = _table().ResultKind(
    name=EXTREMES,
    means="a row for each vertex of the center, whose eccentricity is the radius, and of the periphery, whose eccentricity "
    "is the diameter",
    columns=("set", "vertex", "eccentricity"),
    records="nearest",
)
if os.environ.get("KEPLER_PLUGINS") or metadata.entry_points(group="kepler_traverse.plugins"):
    importlib.import_module("kepler_traverse.plugins").modules()
    OUTPUT_SCHEMAS |= {name: kind for name, kind in _table().RESULT_KINDS.items() if kind.in_files}

if TYPE_CHECKING:
    ResultName = str
else:
    ResultName = Literal[tuple(OUTPUT_SCHEMAS)]
