"""Tables that ``run_job`` takes in memory, under names that stand where settings have files."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from kepler_traverse.errors import InputError
from kepler_traverse.formats.ids import IdFile
from kepler_traverse.labels import VERTEX

_in_memory: ContextVar[Mapping[str, pa.Table]] = ContextVar(
    "tables_in_memory", default=MappingProxyType({})
)
# Name of the column of ids of a table of vertices if they come from the index of a data frame, for
# want of a column. Such ids are vertices that the edges have, too.
INDEX = "the index of the table"
# "(pairs in memory)": in place of the file of a table; the group is the option
_PLACEHOLDER = re.compile(r"\((\w+) in memory\)")


@contextlib.contextmanager
def tables_in_memory(tables: Mapping[str, Mapping[str, pa.ChunkedArray]]) -> Iterator[None]:
    """Within the block, ``table_in_memory`` finds the tables of some options under the names that
    ``name_in_memory`` returns.

    ``tables``: for each option, by its name, the columns of its table, by their names.
    """
    by_name = {name_in_memory(option): pa.table(dict(of)) for option, of in tables.items()}
    token = _in_memory.set(by_name)
    try:
        yield
    finally:
        _in_memory.reset(token)


def name_in_memory(key: str) -> str:
    """Return the text that stands for the file of the option ``key`` in settings and manifest, if
    its table is in memory.
    """
    return f"({key} in memory)"


def table_in_memory(path: str) -> pa.Table | None:
    """Return the table that is in memory under the name ``path``; None if it is the path of a file.

    Raises InputError: it was in the memory of another process.
    """
    match = _PLACEHOLDER.fullmatch(path)
    if match is None:
        return None
    table = _in_memory.get().get(path)
    if table is None:
        option = match[1]
        raise InputError(
            f"the table of {option} was in the memory of the process that began the run; write "
            f"it to a file, and give that by --{option} FILE"
        )
    return table


def ids_given(given: list[int | str] | str | None, what: str) -> Any:
    """Return the ids of vertices that an option lists or has in memory, or the path of their file.

    ``given``: value of the option. For a list of ids an ``IdFile`` is returned; for the name of a
    table in memory its column ``VERTEX``, an Arrow column; for the path of a file the path; for None,
    where the option is not set, None. None is returned for a table without this column, too: its
    rows belong to vertices by its index, and all of these are in the edge list, so that it adds no
    vertex. ``what`` names the ids in errors.
    """
    if isinstance(given, list):
        return IdFile.listed(given, what)
    if given is None:
        return None
    table = table_in_memory(given)
    if table is None:
        return given
    if VERTEX not in table.column_names:
        return None
    return table[VERTEX]


def columns_in_memory(path: str) -> list[str] | None:
    """Return the names of the columns of the table that is in memory under the name ``path``; None
    if this process has none of that name, as for the path of a file.
    """
    table = _in_memory.get().get(path)
    if table is None:
        return None
    return list(table.column_names)


def is_in_memory(path: str) -> bool:
    """Whether a name stands for a table in memory, of this process or another one."""
    return _PLACEHOLDER.fullmatch(path) is not None
