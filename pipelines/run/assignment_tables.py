"""The tables of an assignment, from files: links, trips and classes of vehicles."""

from __future__ import annotations

import warnings
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse import planning
from kepler_traverse.assignment import VehicleClass
from kepler_traverse.errors import EdgeListWarning, InputError, listed
from kepler_traverse.formats.column_names import end_pairs
from kepler_traverse.formats.ids import IdFile, read_ids

from ..cli.terminal import say
from ..cli.values import ids_or_file
from .given_table import ids_in_column, is_text, named_columns, plain_column, read_given_table

_INTEGER = "^(0|-?[1-9][0-9]{0,17})$"  # as in edge lists, where 007 and +7 are strings
# Columns of a table of classes: numbers, and names of columns of the trips and of the links.
_NUMBERS = ("value_of_time", "distance_weight", "passenger_cars")
_NAMES = ("volume", "toll", "length")


class LinkFile(NamedTuple):
    """The links (edges) of a file."""

    table: pa.Table  # a row per link, with all columns of the file
    ends: tuple[str, str]  # names of the columns with the vertices where links begin and end
    # Ids of vertices through which no path leads, as a format of planners states; none for a table.
    closed: list[int]

    @property
    def has_string_ids(self) -> bool:
        """Whether the ids of the vertices are strings."""
        return is_text(self.table.schema.field(self.ends[0]).type)


def read_links(
    paths: list[str], ends: tuple[str | None, str | None], use: str | None = None
) -> LinkFile:
    """Return the links of one file: a table, a TNTP file or a GMNS folder.

    ``paths``: what the command line names, of which there must be one. ``ends``: the columns that
    ``--src`` and ``--dst`` name, or None for each. ``use``: value of ``--use``, the mode of
    transport whose links are read from a GMNS folder; None if it is not set.

    Raises InputError: the file cannot be read, or it is not sure which columns hold the ends.
    """
    if len(paths) != 1:
        raise InputError(f"LINKS: give one file, not {len(paths)}")
    path = paths[0]
    if _is_of_planners(path):
        network = _read_network(path, use)
        table = pa.Table.from_pandas(network.links, preserve_index=False)
        named = _choose_ends(path, "links", table.column_names, ends)
        return LinkFile(table, named, network.closed)
    if use is not None:
        raise InputError(f"--use {use} is for a GMNS folder, and {path} is none")
    table, chosen = read_given_table(
        path, "links", lambda names: _choose_ends(path, "links", names, ends)
    )
    return LinkFile(_with_integer_ids(table, chosen), (chosen[0], chosen[1]), [])


def _read_network(path: str, use: str | None) -> planning.RoadNetwork:
    """Return a network in a format of planners, and print each warning about it as one line.

    ``use``: of a GMNS folder, the mode of transport whose links are read; None for all.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", EdgeListWarning)
        network = planning.read_network(path, use=use)
    for warning in caught:
        say(str(warning.message))
    return network


def _is_of_planners(path: str) -> bool:
    """Whether a path is a TNTP file or a GMNS folder, by its name."""
    file = Path(path)
    return file.is_dir() or ".tntp" in file.suffixes or file.name == "link.csv"


def _choose_ends(
    path: str, what: str, names: list[str], ends: tuple[str | None, str | None]
) -> tuple[str, str]:
    """Return the names of the two columns with the ends of links or trips; raise InputError if it
    is not sure which they are.

    ``path``: of the table, for errors. ``what``: "links" or "trips". ``names``: all columns.
    ``ends``: the columns that flags name, or None for each; both or none must be named.
    """
    src, dst = ends
    if (src is None) != (dst is None):
        raise InputError("--src and --dst belong together; name both columns of the links")
    if src is not None and dst is not None:
        named_columns(path, what, names, (src, dst))
        return src, dst
    pairs = end_pairs(names)
    if len(pairs) != 1:
        how = "name them with --src and --dst" if what == "links" else "rename two"
        raise InputError(
            f"{path}: it is not sure which columns of the {what} hold the ends; "
            f"it has {listed(names)}; {how}"
        )
    return pairs[0]


def _with_integer_ids(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """Return a table whose columns of ids (``names``) are integers, if they hold texts and all of
    these are integers.

    Otherwise the table is returned unchanged. A text file has no types, so its ids are read as
    texts.
    """
    columns = [plain_column(table, name) for name in names]
    if not all(is_text(column.type) for column in columns):
        return table
    # Without rows (``min_count=0``) all texts are integers.
    if not all(
        pc.all(pc.match_substring_regex(column, _INTEGER), min_count=0).as_py()
        for column in columns
    ):
        return table
    for name, column in zip(names, columns, strict=True):
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, pc.cast(column, pa.int64()))
    return table


def read_trips(path: str, strings: bool) -> pa.Table:
    """Return the trips of a file: a row per pair of origin and destination, with volumes.

    ``strings``: whether the ids of the links are strings; those of the trips become so, or
    integers.
    """
    if _is_of_planners(path) or Path(path).name == "demand.csv":
        return pa.Table.from_pandas(planning.read_trips(path), preserve_index=False)
    table, names = read_given_table(
        path, "trips", lambda names: _choose_ends(path, "trips", names, (None, None))
    )
    for name in names:
        index = table.schema.get_field_index(name)
        table = table.set_column(index, name, ids_in_column(path, table, name, strings))
    return table


def read_closed(text: str | None, links: LinkFile) -> Any:
    """Return the ids of the vertices through which no path leads, None if there are none.

    ``text``: the value of ``--closed``; None to take those that the file of links closes.
    """
    if text is None:
        return links.closed or None
    try:
        value = ids_or_file(text)
    except ArgumentTypeError as error:
        raise InputError(f"--closed {text[:40]!r}: {error}") from None
    if isinstance(value, str):
        ids = read_ids(value, "closed")
    else:
        ids = IdFile.listed(value, "closed")
    return ids.ids(links.has_string_ids)


def read_classes(path: str | None, flags: dict[str, Any]) -> list[VehicleClass]:
    """Return the vehicle classes of a table, a row per class; without a table the one class that
    flags describe.

    ``path``: of the table, or None. ``flags``: values of the flags by the fields of
    ``VehicleClass``. Raises InputError: the table cannot be read, or has a wrong column or value.
    """
    if path is None:
        return [VehicleClass(**flags)]

    def choose_ids(names: list[str]) -> tuple[str, ...]:
        """Return the columns of names, which stay texts as ids do; refuse a table with an unknown
        column, or without volumes.
        """
        unknown = [name for name in names if name not in (*_NAMES, *_NUMBERS)]
        if unknown or "volume" not in names:
            raise InputError(
                f"{path}: a table of classes has the column volume, and perhaps "
                f"{listed([*_NAMES[1:], *_NUMBERS])}; this one has {listed(names)}"
            )
        return tuple(name for name in names if name in _NAMES)

    table, _ = read_given_table(path, "classes", choose_ids)
    classes = []
    for row in table.to_pylist():
        # A value that is null is left out, so that the class has its default.
        facts = {name: value for name, value in row.items() if value is not None}
        for name in _NUMBERS:
            if name in facts and not isinstance(facts[name], (int, float)):
                raise InputError(f"{path}: {name} {facts[name]!r} is no number")
        if "volume" not in facts:
            raise InputError(f"{path}: a row has no volume, which is a column of the trips")
        classes.append(VehicleClass(**facts))
    return classes
