"""Whether the first line of a text holds names or an edge: decided only where there is no doubt."""

from __future__ import annotations

import re

from .column_names import choose_columns, end_pairs
from .edge_list import ReadOptions
from .files import DataFile
from .text import TextLayout, detect_id_type, is_number, no_rows

# What stands in a column of numbers where there is none.
_NO_NUMBER = re.compile(r"\s*|[+-]?(nan|inf|infinity)|null|none|n/?a|-", re.IGNORECASE)


def holds_names(rows: list[list[str]], options: ReadOptions, others: list[str]) -> bool | None:
    """Say whether the first of some rows holds names: True, False, or None where it could be either.

    ``others`` are names of columns that are not in the lines: those of partitions.
    """
    first = [value.strip() for value in rows[0]]
    if options.header != "auto":
        return options.header == "yes"
    ends = {name for name in (options.src_column, options.dst_column) if name is not None}
    # A number as a name means a position, and may be an id of the first edge, too.
    if options.src_column is not None and ends <= {*first, *others} and not any(map(is_number, ends)) and ends & set(first):
        return True
    pairs = [pair for pair in end_pairs([*first, *others]) if set(pair) & set(first)]
    if any(len(start) > 1 for start, _ in pairs):
        return True
    is_decided = has_words_over_numbers(rows)
    if pairs:  # "u,v" and "i,j" are two vertices as well
        return True if is_decided else None
    numbers = [is_number(value) for value in first[:2]]
    if all(numbers):
        return False
    if any(numbers):
        return None if is_decided else False
    return True if is_decided else None


def has_words_over_numbers(rows: list[list[str]]) -> bool:
    """Whether a column has a word in the first row and nothing but numbers below."""
    first, *below = rows
    for at, value in enumerate(first):
        column = [row[at] for row in below if at < len(row)]
        if column and not is_number(value) and not _NO_NUMBER.fullmatch(value) and all(map(is_number, column)):
            return True
    return False


def layout_of_rows(
    file: DataFile, options: ReadOptions, names: list[str], rows: list[list[str]], header: bool, id_type: str
) -> TextLayout:
    """Return the layout of a file by its first rows, of which the first may hold the names."""
    data = rows[1:] if header else rows
    if not data:
        raise no_rows(file)
    positions = 0 if header else len(names)
    numbers = (name for at, name in enumerate(names) if all(at < len(row) and is_number(row[at]) for row in data))
    every = [*names, *file.partition_names]
    columns = choose_columns(every, options, file, positions=positions, numeric=frozenset(numbers))
    id_type = detect_id_type(file, columns, names, data[0]) if id_type == "auto" else id_type
    return TextLayout(names=tuple(names), columns=columns, id_type=id_type, found=options.id_type == "auto", header=header)
