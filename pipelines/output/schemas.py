"""The result kinds that the job writes: those of the library and of plug-ins that have records, and
``extremes`` and ``labels``.

Importing plug-ins imports the library. Without plug-ins, no large package is imported.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kepler_traverse.errors import InputError
from kepler_traverse.kinds.result_kinds import (
    OF_LABELS,
    OF_ONE_SEARCH,
    OWN_MODULES,
    RESULT_KINDS,
    KindOptions,
    ResultKind,
)

ROWS_PER_PART = 8_000_000  # about 50 to 100 MB of Parquet, a size that readers like
GROUP_BYTES = 2**22  # of a row group before encoding: 100,000 to 500,000 rows, as readers like it
ROWS_PER_GROUP = GROUP_BYTES // 8  # at most: of rows of two columns with 4 bytes each
SOURCES_PER_PART = 2**15  # keeps the footer of a part file small if the graph is tiny


@dataclass(frozen=True, kw_only=True)
class ExtremesOptions(KindOptions):
    """Options of the result ``extremes``.

    ``unconnected``: what to do with a graph that is not (strongly) connected: "refuse" it, or take
    its "largest" component.
    """

    unconnected: Literal["refuse", "largest"] = field(
        default="refuse",
        metadata={
            "help": (
                "of a graph that is not (strongly) connected: an error, or its largest component"
            )
        },
    )


_OF_LIBRARY = frozenset(RESULT_KINDS)
_OF_JOB = ("extremes", "labels")
# ``importlib.metadata``, which reads the same files, takes 30 ms to import.
_FILES = (file for folder in sys.path for file in Path(folder).glob("*-info/entry_points.txt"))
_HAS_PLUGINS = any(b"kepler_traverse.plugins" in file.read_bytes() for file in _FILES)
# What is wrong with plug-ins. It is no error at import, so that --help of the other kinds works.
_failed: list[str] = []
if _HAS_PLUGINS or OWN_MODULES or os.environ.get("KEPLER_PLUGINS"):
    _failed += map(str, import_module("kepler_traverse.plugins").load().failed)
OUTPUT_SCHEMAS: dict[str, ResultKind] = {
    name: kind for name, kind in RESULT_KINDS.items() if kind.in_files
}
# files have the distances to all vertices
OUTPUT_SCHEMAS["matrix"] = replace(
    RESULT_KINDS["matrix"], options=("direction",), options_class=KindOptions, names_columns=False
)
OUTPUT_SCHEMAS["extremes"] = ResultKind(  # of the whole graph; the library has functions for them
    name="extremes",
    means="a row for each vertex of the center, whose eccentricity is the radius, and of the periphery, whose eccentricity "
    "is the diameter",
    columns=("set", "vertex", "eccentricity"),
    takes_sources=False,
    options_class=ExtremesOptions,
    **OF_ONE_SEARCH,
)
OUTPUT_SCHEMAS["labels"] = ResultKind(  # the library has Graph.labels
    name="labels",
    means="a row for each source and hub of its label: the distance from the source to the hub, or with --direction in from "
    "the hub to the source",
    columns=("source", "hub", "distance"),
    **OF_LABELS,
)

if TYPE_CHECKING:
    ResultName = str
else:
    ResultName = Literal[tuple(OUTPUT_SCHEMAS)]


def leave_out(kind: ResultKind, problem: str) -> None:
    """Remove a kind of a plug-in from ``OUTPUT_SCHEMAS``, since the job cannot have its options.

    ``problem`` ends the sentence that says what is wrong: "a plug-in has a result kind ...".
    """
    del OUTPUT_SCHEMAS[kind.name]
    _failed.append(f"a plug-in has a result kind {kind.name!r} {problem}")


def kinds_of_plugins() -> list[ResultKind]:
    """Return the kinds that plug-ins have added."""
    built_in = {*_OF_LIBRARY, *_OF_JOB}
    return [kind for name, kind in OUTPUT_SCHEMAS.items() if name not in built_in]


def failed_plugins() -> tuple[str, ...]:
    """Return what is wrong with each plug-in that cannot be used."""
    return tuple(_failed)


def with_failed_plugins(message: str) -> str:
    """Return the message about an unknown name, and with it what is wrong with the first plug-in
    that cannot be used, since the name may be one of its own. It is unchanged if all can be used.
    """
    if _failed and _failed[0] not in message:
        return f"{message}; {_failed[0]}"
    return message


def refuse_failed_plugins() -> None:
    """Raise InputError if a plug-in cannot be used."""
    if _failed:
        raise InputError(_failed[0])
