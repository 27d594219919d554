"""Whether the first line of a text holds names or an edge: decided only where there is no doubt."""

from __future__ import annotations

import contextlib
import re

from ..errors import EdgeListError, several
from .column_names import choose_columns, end_pairs
from .edge_list import ReadOptions, no_rows
from .files import DataFile
from .text import TextLayout, detect_id_type, is_number, is_plain_integer

_YEARS = (1900, 2100)  # the first and the last integer that could name a column of a year
# What stands in a column of numbers where a number is missing: nothing or blanks, "-inf", "null",
# "NA", "n/a", "-".
_NO_NUMBER = re.compile(r"\s*|[+-]?(nan|inf|infinity)|null|none|n/?a|-", re.IGNORECASE)


def holds_names(
    rows: list[list[str]],
    options: ReadOptions,
    others: list[str],
    *,
    in_snap: bool = False,
    below_comments: bool = False,
) -> bool | None:
    """Return whether the first of some rows holds names: True, False, or None where it could be
    either. ``options.header`` decides if it is not "auto".

    ``rows`` have the values of the first lines of a file, as texts. ``others`` are names of columns
    that are not in the lines: those of partitions. ``in_snap``: the rows are of SNAP text, and
    ``below_comments`` says whether comments stand above them.
    """
    first = [value.strip() for value in rows[0]]
    if options.header != "auto":
        return options.header == "yes"

    # Names that the caller says, or that are known.
    ends = {name for name in (options.src_column, options.dst_column) if name is not None}
    # A number as a name means a position, and may be an id of the first edge, too.
    if (
        options.src_column is not None
        and ends <= {*first, *others}
        and not any(map(is_number, ends))
        and ends & set(first)
    ):
        return True
    # Pairs of known names of ends. Those of one letter, such as u and v, may as well be vertices.
    pairs = [pair for pair in end_pairs([*first, *others]) if set(pair) & set(first)]
    if any(len(start) > 1 for start, _ in pairs):
        return True

    # Else what stands below decides: a word over numbers is a name.
    is_word_over_numbers = has_words_over_numbers(rows)
    if pairs:  # of names of one letter
        return True if is_word_over_numbers else None
    if any(map(is_number, first[:2])) or could_be_numbered(first):
        could_be_names = _could_name_columns(rows, in_snap, below_comments)
        return None if is_word_over_numbers or could_be_names else False
    return True if is_word_over_numbers else None


def could_be_numbered(first: list[str]) -> bool:
    """Return whether the values of a first line are the header that pandas writes for columns
    without names behind an index without a name: "", "0", "1" and so on.
    """
    return len(first) > 2 and first == ["", *map(str, range(len(first) - 1))]


def _could_name_columns(rows: list[list[str]], in_snap: bool, below_comments: bool) -> bool:
    """Return whether the first of some rows, if it holds integers, could be names: 0, 1, 2, ... as
    pandas numbers columns, other runs of integers, or years.

    An edge of 0 and 1 begins many lists of SNAP text. There "0 1" is taken for an edge where
    comments stand above, as no program writes them over a header, or where the next line has one of
    the two vertices and no line below is the same edge. Another run, and years, are an edge if one
    of the two vertices occurs below, unless the third column, that of the weights, holds fractions
    everywhere else.
    """
    first, *below = [[value.strip() for value in row] for row in rows]
    if could_be_numbered(first):
        return True
    if len(first) < 2 or not all(map(_is_count, first)):
        return False
    numbers = [int(value) for value in first]
    is_run = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    # 0, 1, 2, ... are names, but for the first edge of many lists of SNAP text.
    if is_run and numbers[0] == 0:
        is_given_twice = first in below
        is_edge_of_snap = below_comments or (
            not is_given_twice and (not below or _share_vertex(first, below[0]))
        )
        return not (in_snap and len(numbers) == 2 and is_edge_of_snap)
    # Years, and runs of three numbers or more that do not begin at 0, are names unless a row below
    # tells otherwise.
    if not below or not (_are_years(numbers) or (is_run and len(numbers) > 2)):
        return False
    is_known = any(_share_vertex(first, row) for row in below)
    are_fractions = all("." in "".join(row[2:3]) for row in below)
    return not is_known or (is_run and are_fractions)


def _is_count(value: str) -> bool:
    """Return whether a value is an integer of 0 or more as a program writes it, of int64."""
    return len(value) <= 18 and value.isdecimal() and is_plain_integer(value)


def _are_years(numbers: list[int]) -> bool:
    """Return whether numbers are different years in ascending order."""
    return numbers[0] >= _YEARS[0] and numbers[-1] <= _YEARS[1] and numbers == sorted(set(numbers))


def _share_vertex(row: list[str], other: list[str]) -> bool:
    """Return whether two rows, whose first two values are the ends of an edge, have an end in
    common.
    """
    return not set(row[:2]).isdisjoint(other[:2])


def has_words_over_numbers(rows: list[list[str]]) -> bool:
    """Return whether a column has a word in the first row and nothing but numbers below. Signs of a
    missing number, such as "NaN", are no words.
    """
    first, *below = rows
    for place, value in enumerate(first):
        column = [row[place] for row in below if place < len(row)]
        if (
            column
            and not is_number(value)
            and not _NO_NUMBER.fullmatch(value)
            and all(map(is_number, column))
        ):
            return True
    return False


def layout_of_rows(
    file: DataFile,
    options: ReadOptions,
    names: list[str],
    rows: list[list[str]],
    header: bool,
    id_type: str,
) -> TextLayout:
    """Return the layout of a file by its first rows, as lists of values.

    With ``header`` the first row holds the ``names`` of the columns, else these are positions.
    ``id_type`` is the type of the ids, or "auto" if the first row of data tells it. EdgeListError
    if the first row is shorter than the others, and may count vertices and edges; NoRowsError if
    there are no rows of data.
    """
    data = rows[1:] if header else rows
    widths = [len(row) for row in rows]
    is_narrow = len(rows) > 1 and widths[0] < widths[1] and len(set(widths[1:])) == 1
    if not header and is_narrow and all(map(is_plain_integer, rows[0])):
        raise EdgeListError(
            f"{file}: the first line {' '.join(rows[0])[:80]!r} has {several(widths[0], 'value')} and each line below it "
            f"has {widths[1]}; if it counts vertices and edges, delete it"
        )

    # ``positions``: how many columns have no name but their position. If all names are numbers, the
    # names are taken for positions.
    if header and not all(map(is_number, names)):
        positions = 0
    else:
        positions = len(names)
    numeric = frozenset(
        name
        for place, name in enumerate(names)
        if all(place < len(row) and is_number(row[place]) for row in data)
    )
    all_names = [*names, *file.partition_names]
    if not data:
        columns = None
        # Columns that cannot be chosen are no error, as no row is read: they stay unknown.
        with contextlib.suppress(EdgeListError):
            columns = choose_columns(all_names, options, file, positions=positions)
        raise no_rows(file, columns)
    # EdgeListError if a column is missing, or more than one could be an end or the weight
    columns = choose_columns(all_names, options, file, positions=positions, numeric=numeric)

    if id_type == "auto":
        # "int64" if both ids of the first row are integers as programs write them, else "string"
        id_type = detect_id_type(file, columns, names, data[0])
    # ``first``: the values of the first row, if it was taken for an edge without being asked. Once
    # the reader knows all rows, it looks whether this row could count vertices and edges.
    first: tuple[str, ...] = ()
    if options.header == "auto" and not header:
        first = tuple(value.strip() for value in data[0])
    return TextLayout(
        names=tuple(names),
        columns=columns,
        id_type=id_type,
        found=options.id_type == "auto",
        header=header,
        first=first,
    )
