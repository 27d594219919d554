"""GMNS, the General Modeling Network Specification: a folder with link.csv, and perhaps config.csv
and demand.csv.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import arrow_compute as compute
from .._arrays import pyarrow
from ..errors import EdgeListError, EdgeListWarning, InputError, listed, one_line, option_text
from .ids import HEXADECIMAL, integer_id

_NEEDED = ("from_node_id", "to_node_id", "directed", "length", "free_speed", "capacity", "lanes")
# minutes per unit of length, at one unit of speed
_MINUTES = {
    ("mi", "mph"): 60.0,
    ("km", "kph"): 60.0,
    ("m", "kph"): 0.06,
    ("ft", "mph"): 60.0 / 5280.0,
    ("km", "mph"): 60.0 / 1.609344,
    ("mi", "kph"): 60.0 * 1.609344,
}
# other spellings of units
_NAMES = {
    "mile": "mi",
    "miles": "mi",
    "meter": "m",
    "meters": "m",
    "metre": "m",
    "metres": "m",
    "kilometer": "km",
    "kilometers": "km",
    "feet": "ft",
    "km/h": "kph",
    "kmh": "kph",
    "kmph": "kph",
    "mi/h": "mph",
}
_NODES = {"node.csv": ["node_id"], "link.csv": ["from_node_id", "to_node_id"]}  # columns of nodes
# A column of each table that is read: the number of the row in the file, from 0, for errors, as
# rows may be left out.
_ROW = "row of the file"
_ALL = "all"  # in allowed_uses: the link is open to each use
_YES = {"true", "1", "t", "yes"}
_NO = {"false", "0", "f", "no"}


def read_link_table(path: Any, use: str | None = None) -> dict[str, Any]:
    """Return the links of a GMNS network, one per direction.

    Parameters
    ----------
    path : path
        The folder, or its ``link.csv``.
    use : str, optional
        Read the links that this may use alone, such as ``"auto"``, by their ``allowed_uses``.

    Returns
    -------
    dict
        ``src``, ``dst``, ``link_id`` if there is one, ``is_reverse`` (the other direction of a link
        that is not directed), ``length``, ``free_flow_time`` (minutes), ``capacity`` (per hour, of
        all lanes), ``toll`` (0 where there is none); ``b`` and ``power`` of the columns
        ``VDF_alpha`` and ``VDF_beta``, also with a 1 behind, if they are there.

    Raises
    ------
    EdgeListError
        A column is missing, or a row has no value.
    InputError
        The units of length and speed are not in ``config.csv``, or not known; or no link has the use.

    Warns
    -----
    EdgeListWarning
        Links say what may use them, and ``use`` is not given.
    """
    links = _find_folder(path) / "link.csv"
    texts = ("from_node_id", "to_node_id", "link_id", "allowed_uses")
    table = _select_use(links, _read_csv(links, _NEEDED, texts), use)

    # A value per link, whichever way it leads.
    minutes = _minutes_per_length(_find_folder(path))
    is_directed = _flags(links, table, "directed")
    speed = _numbers(links, table, "free_speed", above=0.0)
    length = _numbers(links, table, "length")
    columns: dict[str, Any] = {
        "length": length,
        "free_flow_time": minutes * length / speed,
        "capacity": _numbers(links, table, "capacity") * _numbers(links, table, "lanes"),
        "toll": np.zeros(len(table)),
    }
    if "toll" in table.column_names:
        columns["toll"] = _numbers(links, table, "toll", empty=0.0)
    for name, written in (("b", "VDF_alpha"), ("power", "VDF_beta")):
        present = [column for column in (written, f"{written}1") if column in table.column_names]
        if len(present) > 1:
            raise EdgeListError(
                f"{links}: it has {' and '.join(present)}; remove one of the columns"
            )
        if present:
            columns[name] = _numbers(links, table, present[0])
    if "link_id" in table.column_names:
        texts_of_links = _texts(links, table, "link_id")
        columns["link_id"] = _ids([texts_of_links], are_numbers=_are_numbers(texts_of_links))[0]

    # A link that is not directed has a second row, from its to-node to its from-node. ``back`` are
    # the positions of these links in the table, and ``rows`` is the position of the link of each
    # row.
    back = np.flatnonzero(~is_directed)
    rows = np.concatenate([np.arange(len(table)), back])
    src, dst = _nodes(links, table, "from_node_id", "to_node_id")
    return {
        "src": np.concatenate([src, dst[back]]),
        "dst": np.concatenate([dst, src[back]]),
        "is_reverse": np.arange(rows.size) >= len(table),
        **{name: values[rows] for name, values in columns.items()},
    }


def read_trip_table(path: Any) -> dict[str, Any]:
    """Return the trips of ``demand.csv`` in the folder of a network: ``origin`` and
    ``destination``, vertices as in ``read_link_table``, and ``volume``, float64, the number of
    trips. Each has shape (rows,).

    Zones become the vertices that ``node.csv`` gives them; InputError for a zone that has none, or
    several.
    """
    folder = _find_folder(path)
    demand = folder / "demand.csv"
    table = _read_csv(demand, ("o_zone_id", "d_zone_id", "volume"), ids=("o_zone_id", "d_zone_id"))
    vertex = _vertices_of_zones(folder / "node.csv")
    ends = {}
    for role, name in (("origin", "o_zone_id"), ("destination", "d_zone_id")):
        zones = _texts(demand, table, name)
        unknown = next((zone for zone in zones if zone not in vertex), None)
        if unknown is not None:
            raise InputError(f"{demand}: zone {unknown!r} has no vertex in node.csv")
        ends[role] = np.array([vertex[zone] for zone in zones])
    return {**ends, "volume": _numbers(demand, table, "volume")}


def _select_use(path: Path, table: Any, use: str | None) -> Any:
    """Return the rows of a table of links that ``use``, such as "auto", may take. If ``use`` is
    None, return all rows, and warn if links are limited to some uses.

    A link without ``allowed_uses`` is open to all. ``use_group.csv``, beside the file at ``path``,
    may name several uses by one word. InputError if no link has the use.
    """
    has_uses = "allowed_uses" in table.column_names
    if not has_uses and use is None:
        return table
    if not has_uses:
        raise InputError(
            f"{path}: no column 'allowed_uses', and {option_text('use', use)} is asked for"
        )

    # ``allowed``: the uses of each link. ``is_limited``: whether only some uses may take the link.
    groups = _read_use_groups(path.parent / "use_group.csv")
    allowed = [_parse_uses(text, groups) for text in table["allowed_uses"].to_pylist()]
    is_limited = np.array([bool(uses) and _ALL not in uses for uses in allowed], np.bool_)
    if use is None:
        if is_limited.any():
            warnings.warn(
                f"{path}: allowed_uses limits {is_limited.sum()} of {len(table)} links to some uses, and "
                f"all links are read: {option_text('use', 'auto')} reads those of cars",
                EdgeListWarning,
                stacklevel=4,  # the caller of the function that reads any network
            )
        return table

    word = use.strip().lower()
    known = set().union(*allowed, *(_parse_uses(group, groups) for group in groups))
    if is_limited.any() and word not in known:
        raise InputError(
            f"{path}: no link has {option_text('use', use)}; allowed_uses has {listed(sorted(known))}"
        )
    is_open = ~is_limited | np.array([word in uses for uses in allowed], np.bool_)
    if not is_open.any():
        raise InputError(f"{path}: {option_text('use', use)} may take no link")
    return table.filter(pyarrow.array(is_open))


def _read_use_groups(path: Path) -> dict[str, str]:
    """Map each word of ``use_group.csv`` to the list of uses that it names, as text; the map is
    empty without the file.
    """
    if not path.is_file():
        return {}
    names = ("use_group", "uses")
    table = _read_csv(path, names, names)
    groups = table["use_group"].to_pylist()
    lists = table["uses"].to_pylist()
    return {
        str(group).strip().lower(): uses or "" for group, uses in zip(groups, lists, strict=True)
    }


def _parse_uses(text: str | None, groups: dict[str, str]) -> set[str]:
    """Return the uses in a text such as ``"auto,bike"``, in lower case: its words, and the words of
    each group that a word names. The set is empty for None, which stands for a missing text.

    ``groups`` are as ``_read_use_groups`` returns them. A group may hold another one, or itself.
    """
    uses: set[str] = set()
    # Texts whose words are still to be taken. A word that is known already is not followed again,
    # so that a group which holds itself ends.
    lists = [text or ""]
    while lists:
        words = {word.strip().lower() for word in re.split("[,;]", lists.pop())}
        words -= {"", *uses}
        uses |= words
        lists += [groups[word] for word in words if word in groups]
    return uses


def _find_folder(path: Any) -> Path:
    """Return the folder of a network, which a path names itself or by a file in it."""
    path = Path(path)
    if path.is_dir():
        return path
    return path.parent


def _read_csv(path: Path, needed: tuple[str, ...], ids: tuple[str, ...] = ()) -> Any:
    """Return a file of GMNS as a table of pyarrow, with a column ``_ROW`` besides.

    ``_ROW`` is the number of each row, from 0. ``needed`` are the columns that the file must have.
    The columns ``ids`` are texts, as 007 is not 7; the types of other columns are detected.
    EdgeListError if the file or a needed column is missing, or there is no row.
    """
    from pyarrow import csv

    if not path.is_file():
        raise EdgeListError(f"{path} is not there; GMNS has {' and '.join(needed)} in it")
    convert = csv.ConvertOptions(
        column_types=dict.fromkeys(ids, pyarrow.string()), strings_can_be_null=True
    )
    table = _parse(path, convert)

    # The table must be one that can be read without a doubt.
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise EdgeListError(f"{path}: two columns are called {name!r}; rename one")
    _refuse_hexadecimals(path, table)
    for name in needed:
        if name not in table.column_names:
            raise EdgeListError(f"{path}: no column {name!r}; GMNS has it in {path.name}")
    if not len(table):
        raise EdgeListError(f"{path}: it has no row")
    return table.append_column(_ROW, pyarrow.array(np.arange(len(table))))


def _parse(path: Path, convert: Any) -> Any:
    """Return a CSV file as a table of pyarrow, by ``ConvertOptions``; EdgeListError if it cannot be
    read.
    """
    from pyarrow import csv

    try:
        return csv.read_csv(path, convert_options=convert)
    except (OSError, ValueError) as error:
        raise EdgeListError(f"{path}: it cannot be read: {one_line(error)}") from None


def _refuse_hexadecimals(path: Path, table: Any) -> None:
    """Raise EdgeListError for an integer in another form than decimal, such as 0x10, in the file
    that ``table`` was read from.

    pyarrow reads it as 16, so the columns of integers are read once more, as texts.
    """
    from pyarrow import csv

    integers = [field.name for field in table.schema if pyarrow.types.is_integer(field.type)]
    if not integers:
        return
    as_texts = dict.fromkeys(integers, pyarrow.string())  # the type of each column
    convert = csv.ConvertOptions(column_types=as_texts, include_columns=integers)
    texts = _parse(path, convert)
    for name in integers:
        is_hexadecimal = compute.match_substring_regex(texts[name], HEXADECIMAL)
        row = is_hexadecimal.index(True).as_py()
        if row >= 0:
            raise EdgeListError(
                f"{path}: row {row} has the {name} {texts[name][row].as_py()!r}, which is no "
                "decimal number"
            )


def _numbers(
    path: Path, table: Any, name: str, above: float | None = None, empty: float | None = None
) -> np.ndarray:
    """Return a column of numbers, float64 of shape (rows,), which are finite and 0 or more, or
    greater than ``above`` if that is given.

    ``empty`` is what a missing value stands for. EdgeListError for another number, and for a
    missing one if ``empty`` is None.
    """
    column = table[name].combine_chunks()
    if pyarrow.types.is_boolean(column.type):
        raise EdgeListError(f"{path}: column {name!r} holds true and false, not numbers")
    if empty is not None:
        if column.null_count == len(column):  # whose type may be null, which nothing fills
            return np.full(len(column), empty)
        column = column.fill_null(empty)
    if column.null_count:
        row = table[_ROW][column.is_null().index(True).as_py()]
        raise EdgeListError(f"{path}: row {row} has no {name}; fill it in, or drop the link")
    try:
        values = np.asarray(column.cast(pyarrow.float64()))
    except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
        raise EdgeListError(f"{path}: column {name!r} holds {column.type}, not numbers") from None
    bound = -np.inf if above is None else above
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0) | (values <= bound))
    if wrong.size:
        row = table[_ROW][int(wrong[0])]
        raise EdgeListError(f"{path}: row {row}: {values[wrong[0]]:g} is no {name}")
    return values


def _texts(path: Path, table: Any, name: str) -> list[str]:
    """Return a column of texts as a list; EdgeListError if one is missing."""
    column = table[name]
    if column.null_count:
        row = table[_ROW][column.is_null().combine_chunks().index(True).as_py()]
        raise EdgeListError(f"{path}: row {row} has no {name}")
    return list(column.to_pylist())


def _nodes(path: Path, table: Any, *names: str) -> list[np.ndarray]:
    """Return columns of ids of nodes of a table, int64 if all nodes of the folder are integers,
    else texts as objects.

    A node is in several files, and not all files name all nodes. So one rule is for all of them.
    """
    columns = [_texts(path, table, name) for name in names]
    return _ids(columns, are_numbers=all(map(_are_numbers, _all_nodes(path.parent))))


def _all_nodes(folder: Path) -> Iterator[list[str]]:
    """Yield, for each column of nodes in the files of a folder that are there (``_NODES``), a list
    of its ids as texts, without missing ones.
    """
    from pyarrow import csv

    for file, names in _NODES.items():
        path = folder / file
        if path.is_file():
            convert = csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()),
                strings_can_be_null=True,
                include_columns=names,
                include_missing_columns=True,  # as nulls, which are dropped
            )
            for column in _parse(path, convert):
                yield column.drop_null().to_pylist()


def _are_numbers(texts: list[str]) -> bool:
    """Return whether all ids are integers of int64 as a program writes them; 007 is none."""
    numbers = [integer_id(text) for text in texts]
    return all(number is not None and -(2**63) <= number < 2**63 for number in numbers)


def _ids(columns: list[list[str]], *, are_numbers: bool) -> list[np.ndarray]:
    """Return columns of ids as int64 arrays if ``are_numbers``, else as arrays of objects, the
    texts as they are written.
    """
    if are_numbers:
        return [np.array(list(map(int, column)), np.int64) for column in columns]
    return [np.array(column, object) for column in columns]


def _flags(path: Path, table: Any, name: str) -> np.ndarray:
    """Return a column of true and false as bools of shape (rows,); EdgeListError for a value that
    is none of ``_YES`` and ``_NO`` in any case.
    """
    texts = [str(value).strip().lower() for value in table[name].to_pylist()]
    for place, text in enumerate(texts):
        if text not in _YES | _NO:
            row = table[_ROW][place]
            raise EdgeListError(f"{path}: row {row}: {name} is {text!r}, not true or false")
    return np.array([text in _YES for text in texts], np.bool_)


def _minutes_per_length(folder: Path) -> float:
    """Return the minutes that a unit of length takes at a speed of one unit, by the units in
    ``config.csv``. InputError if the file is not there, or has other units than ``_MINUTES``.
    """
    config = folder / "config.csv"
    if not config.exists():
        raise InputError(
            f"{config} is not there: GMNS has the units in it (long_length and speed); "
            "write one, such as 'long_length,speed' and 'mi,mph'"
        )
    table = _read_csv(config, ("long_length", "speed"))
    if len(table) != 1:
        raise InputError(f"{config}: it must have one row with long_length and speed")
    units = []  # of length, and of speed, in the usual spelling
    for name in ("long_length", "speed"):
        text = str(table[name][0].as_py()).strip().lower()
        units.append(_NAMES.get(text, text))
    factor = _MINUTES.get((units[0], units[1]))
    if factor is None:
        known = ", ".join(f"{length} with {speed}" for length, speed in _MINUTES)
        raise InputError(f"{config}: {units[0]} with {units[1]} is none of {known}")
    return factor


def _vertices_of_zones(path: Path) -> dict[Any, Any]:
    """Map each zone, a text, to the one vertex that ``node.csv`` at ``path`` gives it; InputError
    if it gives several.
    """
    table = _read_csv(path, ("node_id", "zone_id"), ids=("node_id", "zone_id"))
    vertex: dict[Any, Any] = {}
    nodes = _nodes(path, table, "node_id")[0].tolist()
    for zone, node in zip(table["zone_id"].to_pylist(), nodes, strict=True):
        if zone is None:  # a node without a zone, at which no trip begins or ends
            continue
        if zone in vertex:
            raise InputError(
                f"{path}: zone {zone!r} has the vertices {vertex[zone]!r} and {node!r}; "
                "trips begin at one vertex: give a table of trips between vertices instead"
            )
        vertex[zone] = node
    return vertex
