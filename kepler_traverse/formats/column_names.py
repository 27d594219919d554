"""Which columns of a file are the ends and the weight of an edge: by name where there are names,
else by position.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from ..errors import EdgeListError, option_text
from .edge_list import EdgeColumns, ReadOptions
from .files import WEIGHTS, DataFile, shown

# Names of the two ends as they are compared: in lower case, letters and digits only. "tail" and
# "head" are left out: an arc leads from its tail to its head, but a fact in a knowledge graph from
# its head to its tail.
END_NAMES = (
    ("src", "dst"),
    ("src", "dest"),
    ("src", "tgt"),
    ("source", "target"),
    ("source", "destination"),
    ("source", "dest"),
    ("from", "to"),
    ("u", "v"),
    ("i", "j"),
    ("origin", "destination"),
    ("origin", "dest"),
    ("orig", "dest"),
    ("start", "end"),
    ("init", "term"),
    ("anode", "bnode"),
    ("nodea", "nodeb"),
    ("node1", "node2"),
    ("vertex1", "vertex2"),
    ("protein1", "protein2"),
    ("id1", "id2"),
)
# What both names of a pair may end in: from_node, source_id, FromNodeId. Not after one letter:
# "uid" is a user's id.
_ENDINGS = ("", "id", "node", "nodeid", "vertex", "vertexid")
# all pairs of names of src and dst, as they are compared
_PAIRS = frozenset(
    (start + ending, end + ending)
    for start, end in END_NAMES
    for ending in (_ENDINGS if len(start) > 1 else ("",))
)
# names of weights, as they are compared: such as "km", "weights", "cost", "traveltimemin"
_WEIGHT = re.compile(
    "w|wt|weights?|edgeweight|impedance|minutes|mins|seconds|secs|hours|meters|metres|kilometers|kilometres|km|miles"
    "|(len|length|costs?|time|traveltime|duration|distance|dist)"
    "(m|meters|metres|km|mi|miles|ft|s|secs?|seconds|mins?|minutes|h|hrs?|hours)?"
)
_SHOWN = 240  # characters of names in a message


def plain_name(name: str) -> str:
    """Return a name as names are compared: in lower case, letters and digits only."""
    return re.sub(r"[\W_]+", "", name).casefold()


def is_weight_name(name: str) -> bool:
    """Return whether a column is taken for the weight by its name."""
    return _WEIGHT.fullmatch(plain_name(name)) is not None


def end_pairs(names: list[str]) -> list[tuple[str, str]]:
    """Return all pairs of columns, src and dst, that are the ends of an edge by their names."""
    # Each distinct name, and the same as names are compared.
    plain = [(name, plain_name(name)) for name in dict.fromkeys(names)]
    return [(u, v) for u, as_start in plain for v, as_end in plain if (as_start, as_end) in _PAIRS]


def choose_columns(
    names: list[str],
    options: ReadOptions,
    file: DataFile,
    *,
    positions: int = 0,
    numeric: frozenset[str] = frozenset(),
    dates: frozenset[str] = frozenset(),
) -> EdgeColumns:
    """Return the columns of the edges: those that the options name, else those known by name, else
    in a text without names by position.

    ``names`` are all columns, those of the file's partitions last. ``positions`` columns at the
    beginning have no name but ``"0"``, ``"1"`` and so on. ``numeric`` and ``dates`` are the columns
    that hold numbers, and dates or times of day, as far as that is known. EdgeListError if a column
    is missing or there twice, there is none for an end or for a required weight, or more than one
    could be it.

    ``options.weighted`` is True if weights are required, False if none are wanted, and None if they
    are taken where a column is known by its name. A column of dates is never the weight. One that is
    called as a length is an error, unless the options name the weight or want none. One that is
    called as a time is passed over, and with None a hint says so.
    """
    src, dst = _choose_ends(names, options, file, positions)

    # The weight: of the columns that are called so, those of dates are none.
    dated = [
        name
        for name in dict.fromkeys(names)
        if name in dates and is_weight_name(name) and name not in (src, dst)
    ]
    _refuse_dates(dated, options, file)
    weight_names = [
        name
        for name in dict.fromkeys(names)
        if is_weight_name(name)
        and name not in (src, dst, options.reverse_weight_column)
        and name not in dates
    ]
    weight = _choose_weight(names, options, file, positions, weight_names)
    if weight is None and options.weighted:
        others = [name for name in names if name not in (src, dst) and name in numeric]
        held = ""
        if others:
            held = f"; {listed(others)} {'hold' if len(others) > 1 else 'holds'} numbers"
        raise EdgeListError(
            f"{file}: no weight column is known by its name; it has {listed(names)}{held}; "
            f"name one with {option_text('weight_column')}",
            column="weight",
        )
    if options.reverse_weight_column is not None and weight is None:
        raise EdgeListError(
            f"{file}: {option_text('reverse_weight_column')} is the weight from dst to src; name "
            f"that from src to dst, too, with {option_text('weight_column')}",
            column="weight",
        )

    # Each chosen column must be in the file, once, and no weight may be an end as well.
    columns = EdgeColumns(
        src=src, dst=dst, weight=weight, reverse_weight=options.reverse_weight_column
    )
    for role, name in columns.roles.items():
        _require_once(name, names, file, f"{role}_column", role)
    for role in WEIGHTS:
        name = columns.roles.get(role, "")
        if name in (src, dst):
            raise EdgeListError(
                f"{file}: column {shown(name)} is {'src' if name == src else 'dst'} and cannot be the weight, too; "
                f"name another with {option_text(f'{role}_column')}",
                column=role,
            )

    columns = replace(columns, **_selection_columns(names, options, file, columns))
    columns = _with_unused(columns, names, options, numeric)
    # The user left open whether there are weights, and no column was taken for them: a hint will
    # say that dates were passed over.
    if weight is None and options.weighted is None:
        columns = replace(columns, unused_dates=tuple(dated))
    return columns


def _with_unused(
    columns: EdgeColumns, names: list[str], options: ReadOptions, numeric: frozenset[str]
) -> EdgeColumns:
    """Return ``columns`` with the names of the columns that are not used, and with the names of
    those unused columns that hold numbers.

    ``names`` are all columns of the file, and ``numeric`` those that are known to hold numbers.
    """
    used = {*columns.roles.values(), columns.oneway}
    # A filter that does not say which columns it reads has all columns of the file as its columns,
    # and uses none for certain.
    if options.names_columns:
        used.update(columns.selection_names)
    unused = [name for name in dict.fromkeys(names) if name not in used]
    # A data frame's index, such as ``__index_level_0__``, is no column that anyone gave.
    numbers = [name for name in unused if name in numeric and not name.startswith("__")]
    return replace(columns, unused=tuple(unused), unused_numbers=tuple(numbers))


def _refuse_dates(dated: list[str], options: ReadOptions, file: DataFile) -> None:
    """Raise EdgeListError for columns of dates or times of day that are called as a length or
    duration is, unless the options say what the weight is.

    ``dated`` are the columns with names of weights that hold dates or times. One that is called a
    time may be a point in time, and is passed over.
    """
    lengths = [name for name in dated if not plain_name(name).startswith("time")]
    if lengths and options.weight_column is None and options.weighted is not False:
        raise EdgeListError(
            f"{file}: weight column {shown(lengths[0])} holds dates or times of day, which are no weights; convert it to a "
            f"number or a duration, name another with {option_text('weight_column')}, or read none with "
            f"{option_text('weighted', False)}",
            column="weight",
        )


def _require_once(
    name: str, names: list[str], file: DataFile, option: str, role: str | None = None
) -> None:
    """Raise EdgeListError unless the column ``name``, which ``option`` names, is exactly once among
    ``names``, those of the file. ``role`` is what the column is for, as the error has it.
    """
    if name not in names:
        problem = (
            f"no column {shown(name)}, which {option_text(option)} names; it has {listed(names)}"
        )
        raise EdgeListError(f"{file}: {problem}", column=role)
    if names.count(name) > 1:
        problem = f"column {shown(name)} occurs {names.count(name)} times; rename all but one"
        raise EdgeListError(f"{file}: {problem}", column=role)


def _selection_columns(
    names: list[str], options: ReadOptions, file: DataFile, columns: EdgeColumns
) -> dict[str, Any]:
    """Return the fields ``oneway``, ``filters`` and ``where`` of ``EdgeColumns``: the columns of
    directions and of the filter, and its text.

    ``names`` are all columns of the file, and ``columns`` those of the edges. EdgeListError if one
    is not there, or the column of directions is also one of the edges.
    """
    condition = options.row_filter
    oneway = options.oneway_column
    filters: tuple[str, ...] = ()
    if condition is not None:
        if condition.columns is None:  # it may read any column
            filters = tuple(dict.fromkeys(names))
        else:
            filters = condition.columns
    for name in filters:
        _require_once(name, names, file, "where")
    if oneway is not None:
        _require_once(oneway, names, file, "oneway_column")
    if oneway in columns.roles.values():
        raise EdgeListError(
            f"{file}: column {shown(str(oneway))} is an end or the weight and "
            f"cannot be {option_text('oneway_column')}"
        )
    return {
        "oneway": oneway,
        "filters": filters,
        "where": "" if condition is None else condition.text,
    }


def _choose_ends(
    names: list[str], options: ReadOptions, file: DataFile, positions: int
) -> tuple[str, str]:
    """Return the columns of src and dst: those that the options name; the first two if the columns
    have no names but positions; else the one pair that is known by its names.

    ``names`` are all columns of the file. The first ``positions`` of them have no name but ``"0"``,
    ``"1"`` and so on; it is 0 if all have names. EdgeListError if there is no such pair, or more
    than one.
    """
    # ``ReadOptions`` has refused options that name only one of both ends.
    if options.src_column is not None and options.dst_column is not None:
        return options.src_column, options.dst_column
    # One column without a name is too few, also if a partition adds another one.
    if len(names) < 2 or positions == 1:
        raise EdgeListError(
            f"{file}: an edge needs two columns, this file has only {listed(names)}"
        )
    if positions:
        return names[0], names[1]

    # Columns with names: exactly one pair must be known.
    pairs = end_pairs(names)
    how = f"name them with {option_text('src_column')} and {option_text('dst_column')}"
    if not pairs:
        raise EdgeListError(
            (
                f"{file}: no two columns are known by their names as the ends of "
                f"an edge; it has {listed(names)}; {how}"
            ),
            column="src",
        )
    if len(pairs) > 1:
        could_be = " or ".join(f"{shown(u)} and {shown(v)}" for u, v in pairs[:3])
        raise EdgeListError(f"{file}: the ends of an edge could be {could_be}; {how}", column="src")
    return pairs[0]


def _choose_weight(
    names: list[str], options: ReadOptions, file: DataFile, positions: int, known: list[str]
) -> str | None:
    """Return the column of the weight, None if none is read: the one that the options name, the
    third of columns without names, or the only one of ``known``, those with the name of a weight.

    The first ``positions`` of ``names``, all columns of the file, have no name but ``"0"``, ``"1"``
    and so on; it is 0 if all have names, and only then ``known`` counts. EdgeListError if several
    columns could be the weight.
    """
    if options.weight_column is not None or options.weighted is False:
        return options.weight_column
    if positions:
        # The third column is the weight only behind ends that are the first two. Ends that the
        # options name may be any columns.
        if options.src_column is None and positions > 2:
            known = [names[2]]
        else:
            known = []
    how = f"name one with {option_text('weight_column')}"
    if len(known) > 1:
        if options.weighted:
            without = ""
        else:
            without = f", or read none with {option_text('weighted', False)}"
        could_be = " or ".join(map(shown, known[:5]))
        raise EdgeListError(
            f"{file}: the weight could be {could_be}; {how}{without}", column="weight"
        )
    if known:
        return known[0]
    return None


def listed(names: list[str]) -> str:
    """Return names of columns for a message, such as "columns 'a', 'b'", as many as fit into some
    lines, and then "...".
    """
    if not names:
        return "no columns"
    texts = []
    remaining = _SHOWN  # characters
    for name in names:
        texts.append(shown(name))
        remaining -= len(texts[-1]) + 2
        if remaining < 0:
            break
    more = ", ..." if len(texts) < len(names) else ""
    noun = "column" if len(names) == 1 else "columns"
    return f"{noun} {', '.join(texts)}{more}"
