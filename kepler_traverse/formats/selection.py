"""Which rows of an edge list are read, and in which direction each is an edge: the filter and the
column of directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import EdgeListError, option_text
from .columns import plain_column
from .edge_list import EdgeColumns, ReadOptions
from .files import DataFile, Where

# directions of a row: whether it is an edge from src to dst, in both directions, or from dst to src
SRC_TO_DST = 1
BOTH_WAYS = 0
DST_TO_SRC = -1
# The direction of each value that a column of text may have, in lower case: the words of
# OpenStreetMap, booleans and numbers as text, and words of other maps.
DIRECTIONS = {
    "yes": SRC_TO_DST,
    "true": SRC_TO_DST,
    "1": SRC_TO_DST,
    "no": BOTH_WAYS,
    "false": BOTH_WAYS,
    "0": BOTH_WAYS,
    "-1": DST_TO_SRC,
    "reverse": DST_TO_SRC,
    "forward": SRC_TO_DST,
    "backward": DST_TO_SRC,
    "both": BOTH_WAYS,
    "ft": SRC_TO_DST,  # from, to: of navigation maps
    "tf": DST_TO_SRC,
}
# Codes of the letters B (both ways), F (src to dst) and T (dst to src), which Geofabrik and
# navigation maps write in capitals. F and T might also be false and true, unless there is a B in
# the same column. So letters have codes of their own until all rows are read.
_LETTERS = {"B": 2, "F": 3, "T": 4}
# The direction of each code, by which this is indexed: 0 and 1 stand for themselves, 2 to 4 for the
# letters, and -1 finds the last element.
_CODES = np.array([BOTH_WAYS, SRC_TO_DST, BOTH_WAYS, SRC_TO_DST, DST_TO_SRC, DST_TO_SRC], np.int8)
_MEANING = (
    "yes, true, 1, forward or FT (src to dst), no, false, 0 or both (both ways), -1, reverse, backward or TF (dst to src), "
    "or in one column B (both ways), F (src to dst) and T (dst to src)"
)


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSelection:
    """What is known of the rows whose columns a builder gets."""

    total: int  # rows of the edge list, those that a filter left out included
    # int64 array of shape (rows,) or None: numbers in the edge list of the rows that are left,
    # ascending. None: all are.
    row_numbers: np.ndarray | None = None
    # int8 array of shape (rows,) or None: ``SRC_TO_DST``, ``BOTH_WAYS`` or ``DST_TO_SRC`` for each
    # row that is left. None: all have the direction of the graph.
    directions: np.ndarray | None = None

    def row(self, position: int) -> int:
        """Return the number in the edge list of the row at a position among those that are left."""
        if self.row_numbers is None:
            return position
        return int(self.row_numbers[position])

    def twice(self) -> RowSelection:
        """Return a selection with the rows that are left two times over: all of them, and then all
        of them again. It has no directions. It is for an array in which the weights from src to dst
        of all rows stand before the weights from dst to src.
        """
        if self.row_numbers is None:
            row_numbers = np.arange(self.total)
        else:
            row_numbers = self.row_numbers
        return RowSelection(total=self.total, row_numbers=np.tile(row_numbers, 2))

    def take(self, positions: np.ndarray) -> RowSelection:
        """Return the selection of some of the rows that are left, by their int64 positions among
        these, ascending.
        """
        return RowSelection(
            total=self.total,
            row_numbers=positions if self.row_numbers is None else self.row_numbers[positions],
            directions=None if self.directions is None else self.directions[positions],
        )


def select_rows(
    table: Any, columns: EdgeColumns, options: ReadOptions, file: DataFile
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Apply the filter to all rows of a file, and read the directions of the rows that it leaves.

    ``table`` has the columns under the names that they have in the file; ``columns`` says which of
    them is for what. Return the int64 numbers of the rows for which the filter is true, None
    without a filter; and the int8 directions of these rows, None without a column of directions.
    EdgeListError if the filter cannot be evaluated, or a value is no direction.
    """
    condition = options.row_filter
    if condition is None:
        row_numbers = None
    else:
        row_numbers = condition.find_rows(table, file)
    if columns.oneway is None:
        return row_numbers, None
    column = plain_column(table.column(columns.oneway))
    where = Where(file, "oneway", columns.oneway, row_numbers)
    if row_numbers is not None:
        column = column.take(row_numbers)
    return row_numbers, _parse_directions(column, where)


def make_directions(column: pyarrow.ChunkedArray, n_rows: int) -> np.ndarray:
    """Return the directions, an int8 array of shape (n_rows,), that ``column`` holds as values for
    the ``n_rows`` rows of an edge list in memory.

    EdgeListError for a value that is no direction, or another number of values.
    """
    if len(column) != n_rows:
        raise EdgeListError(
            f"oneway has {len(column)} rows, and the edge list has {n_rows}", column="oneway"
        )
    where = Where(DataFile.named("the edge list"), "oneway", "oneway")
    return settle_letters(_parse_directions(column, where))


def settle_letters(directions: np.ndarray) -> np.ndarray:
    """Return the directions of all rows, int8, with a direction in place of each code of the
    letters B, F and T. EdgeListError if there are letters, and none is B.
    """
    letters = directions >= min(_LETTERS.values())
    if not letters.any():
        return directions
    if not (directions == _LETTERS["B"]).any():
        raise EdgeListError(
            f"{option_text('oneway_column')}: the column has F or T and no B, so that these could mean from src to dst and "
            "back, or false and true; write forward and backward, or no and yes",
            column="oneway",
        )
    return _CODES[directions]


def row_mask(row_numbers: np.ndarray, n_rows: int) -> Any:
    """Return a boolean array of pyarrow of length ``n_rows``, true for the rows with some numbers.

    Filtering by it works for columns of any size, where taking rows by their numbers does not.
    """
    mask = np.zeros(n_rows, bool)
    mask[row_numbers] = True
    return pyarrow.array(mask)


def _parse_directions(column: Any, where: Where) -> np.ndarray:
    """Return the directions of a column, int8, with codes of ``_LETTERS`` where it has these.

    ``column`` is an array or a chunked array of pyarrow, with a value per row. EdgeListError, by
    ``where``, for a value that is no direction, and for nulls.
    """
    column = plain_column(column)
    kind = column.type
    if column.null_count:
        row = compute.index(column.is_null(), True).as_py()
        raise where.error(f"has no value; give each row one of {_MEANING}", row)

    # ``codes`` has the direction of each row, or the code of its letter, and ``is_known`` whether
    # its value is a direction at all. Numbers and booleans are their own codes.
    if kinds.is_boolean(kind):
        column = column.cast(pyarrow.int8())
    elif kinds.is_float16(kind):
        column = column.cast(pyarrow.float32())  # pyarrow looks up no values of 16 bits
    if kinds.is_integer(column.type) or kinds.is_floating(column.type):
        possible = pyarrow.array([SRC_TO_DST, BOTH_WAYS, DST_TO_SRC]).cast(column.type, safe=False)
        is_known = compute.is_in(column, value_set=possible)
        if kinds.is_unsigned_integer(column.type):  # in which -1 would be the largest
            is_known = compute.less_equal(column, 1)
        codes = column
    elif kinds.is_string(kind) or kinds.is_large_string(kind):
        # ``places``: of each text its position among the words, whatever its capitals. A letter,
        # which must be a capital, has the number of words plus its position among the letters. Null
        # for any other text.
        texts = column.cast(pyarrow.large_string())
        words = pyarrow.array(list(DIRECTIONS), pyarrow.large_string())
        letters = pyarrow.array(list(_LETTERS), pyarrow.large_string())
        places = compute.coalesce(
            compute.index_in(compute.utf8_lower(texts), value_set=words),
            compute.add(compute.index_in(texts, value_set=letters), len(DIRECTIONS)),
        )
        is_known = places.is_valid()
        code_of_place = [*DIRECTIONS.values(), *_LETTERS.values()]
        codes = compute.take(pyarrow.array(code_of_place, pyarrow.int8()), places.combine_chunks())
    else:
        raise where.error(f"has type {kind}; directions are booleans, 0 and 1, or text: {_MEANING}")

    row = compute.index(is_known, False).as_py()  # -1: all are directions
    if row >= 0:
        value = column[row].as_py()
        if len(repr(value)) <= 40:
            shown = repr(value)
        else:
            shown = f"{repr(value)[:40]}..."
        raise where.error(f"has {shown}, which is no direction; give {_MEANING}", row)
    return np.asarray(codes).astype(np.int8)


def text_column(strings: Any, kind: str, where: Where) -> Any:
    """Return a column of text in the type of what a filter compares it with.

    ``strings`` is a column of pyarrow, null where a value is empty. ``kind`` is "text", "numbers",
    "booleans", or "", if that is not known: then the result has integers if all values are, else
    floats if all are numbers, else booleans if all are, else text. EdgeListError, by ``where``, if
    a value is no number or no boolean as ``kind`` says.
    """
    if kind == "text":
        return strings
    types = {
        "numbers": (pyarrow.int64(), pyarrow.float64()),
        "booleans": (pyarrow.bool_(),),
        "": (pyarrow.int64(), pyarrow.float64(), pyarrow.bool_()),
    }[kind]
    # The first type that takes all values.
    for type_of_all in types:
        try:
            return compute.cast(strings, type_of_all)
        except pyarrow.ArrowInvalid:
            continue
    if not kind:
        return strings

    # The error names the first value that the widest type does not take.
    for row, text in enumerate(strings.to_pylist()):
        try:
            pyarrow.array([text]).cast(types[-1])
        except pyarrow.ArrowInvalid:
            raise where.error(
                f"has {text[:40]!r}, and {option_text('where')} compares it with {kind}", row
            ) from None
    raise where.error(
        f"holds other values than {kind}, which {option_text('where')} compares it with"
    )
