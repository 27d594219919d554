"""What a Parquet file states of its rows beside them: bounds, positions and encodings of pages, order.

Readers skip row groups and pages by these statements, and find pages by them. pyarrow reads rows
without most of them, so a false one changes what other programs see, and not what it sees. Here each
is compared with the rows, and with the pages as they stand one behind another in the file.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse.formats import parquet_fields as parquet
from kepler_traverse.formats.parquet_footer import (
    MALFORMED,
    decode_bound,
    parse_footer,
    read_footer,
)
from kepler_traverse.formats.thrift import Reader, Struct

_HEADER_BYTES = 2**15  # a page header with two bounds of 4,096 bytes each is shorter
_FIELDS_OF_FILE = frozenset(range(1, 8))
_FIELDS_OF_GROUP = frozenset(range(1, 7))
_FIELDS_OF_ENTRY = frozenset(range(2, 8))
_FIELDS_OF_COLUMN = frozenset({*range(1, 8), 9, 11, 12, 13, 16})
_BOUNDARY_ORDERS = {1: "ascend", 2: "descend"}


class _Values(NamedTuple):
    """What is true of the values of a page, or of a column of a row group."""

    least: Any
    largest: Any
    n_nulls: int
    n_rows: int


class _Page(NamedTuple):
    """A data page, as it stands in the file."""

    offset: int
    size: int  # with its header
    first_row: int
    n_rows: int
    statistics: Struct


class Statements:
    """The statements of one Parquet file, which is read without pyarrow.

    Raises ValueError: the footer cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self._footer = parse_footer(read_footer(file))

    def wrong(self, group: int, rows: pa.Table) -> str:
        """Describe what the file states falsely of a row group with these rows; ``""`` if nothing."""
        try:
            stated = _value(self._footer, parquet.FILE_GROUPS).values[group]
            with self._path.open("rb") as file:
                return next(self._faults(file, stated, rows), "")
        except MALFORMED as error:
            return f"what it states cannot be read ({type(error).__name__})"

    def _faults(self, file: BinaryIO, group: Struct, rows: pa.Table) -> Iterator[str]:
        """Yield what a row group states falsely, the group first and then its columns."""
        yield from _unknown("the footer", self._footer, _FIELDS_OF_FILE)
        yield from _unknown("the row group", group, _FIELDS_OF_GROUP)
        entries = _value(group, parquet.GROUP_COLUMNS).values
        columns = [_value(entry, parquet.ENTRY_METADATA) for entry in entries]
        begins = [_begin(column) for column in columns]
        sizes = [_value(column, parquet.COMPRESSED) for column in columns]
        stated = {
            "rows": _value(group, parquet.GROUP_ROWS),
            "first byte": _value(group, parquet.GROUP_OFFSET),
            "bytes": _value(group, parquet.GROUP_COMPRESSED),
            "number of columns": len(columns),
        }
        right = {
            "rows": rows.num_rows,
            "first byte": begins[0],
            "bytes": sum(sizes),
            "number of columns": rows.num_columns,
        }
        yield from _differences(stated, right)
        for name, entry, column in zip(rows.column_names, entries, columns, strict=True):
            for fault in _faults_of_column(file, name, entry, column, rows[name]):
                yield f"column {name!r}: {fault}"
        yield from _faults_of_order(group, rows)


def _faults_of_column(
    file: BinaryIO, name: str, entry: Struct, column: Struct, values: pa.ChunkedArray
) -> Iterator[str]:
    """Yield what is stated falsely of a column in a row group."""
    yield from _unknown("it", entry, _FIELDS_OF_ENTRY)
    yield from _unknown("it", column, _FIELDS_OF_COLUMN)
    path = [part.decode() for part in _value(column, parquet.PATH).values]
    if path != [name]:
        yield f"it is called {'.'.join(path)!r:.60}"
    pages, encodings = _pages(file, column)
    of_pages = [
        _values_of(values.slice(page.first_row, page.n_rows), page.n_rows) for page in pages
    ]
    n_rows = sum(page.n_rows for page in pages)
    yield from _differences({"values": _value(column, parquet.N_VALUES)}, {"values": n_rows})
    if n_rows != len(values):
        yield f"its pages hold {n_rows} values, and it has {len(values)}"
    for page, known in zip(pages, of_pages, strict=True):
        yield from _faults_of_statistics(page.statistics, known, values.type)
    whole = _values_of(values, len(values))
    if parquet.STATISTICS in column:
        statistics = _value(column, parquet.STATISTICS)
        yield from _faults_of_statistics(statistics, whole, values.type)
        if parquet.DISTINCT_COUNT in statistics:
            yield "a number of distinct values is stated, which this job does not write"
    if parquet.ENCODING_STATS in column:
        stated = {
            (_value(each, 1), _value(each, 2)): _value(each, 3)
            for each in _value(column, parquet.ENCODING_STATS).values
        }
        if stated != encodings:
            yield "other encodings of pages are stated than they have"
    if parquet.SIZE_STATISTICS in column:
        sizes = _value(column, parquet.SIZE_STATISTICS)
        yield from _faults_of_levels(sizes, parquet.LEVELS, [whole])
    yield from _faults_of_indexes(file, entry, pages, of_pages, values.type)


def _faults_of_indexes(
    file: BinaryIO, entry: Struct, pages: list[_Page], of_pages: list[_Values], kind: pa.DataType
) -> Iterator[str]:
    """Yield what the page index of a column states falsely."""
    offsets, values = [
        Reader(_bytes_at(file, _value(entry, at), _value(entry, size))).struct()
        if at in entry
        else None
        for at, size in parquet.INDEXES
    ]
    if offsets is not None:
        stated = [
            tuple(value for _, value in place.values())
            for place in _value(offsets, parquet.PAGES).values
        ]
        if stated != [(page.offset, page.size, page.first_row) for page in pages]:
            yield "the index has other places of pages than they have"
    if values is not None:
        yield from _faults_of_values(values, of_pages, kind)


def _pages(file: BinaryIO, column: Struct) -> tuple[list[_Page], Counter[tuple[int, int]]]:
    """Return the data pages as they stand in the file, and how many pages have which encoding.

    Raises ValueError: they do not fill the bytes of the column.
    """
    pages: list[_Page] = []
    encodings: Counter[tuple[int, int]] = Counter()
    at = _begin(column)
    end = at + _value(column, parquet.COMPRESSED)
    first_row = 0
    while at < end:
        reader = Reader(_bytes_at(file, at, _HEADER_BYTES))
        header = reader.struct()
        page_type = _value(header, parquet.PAGE_TYPE)
        about = _value(header, parquet.PAGE_HEADERS[page_type])
        encodings[page_type, _value(about, parquet.PAGE_ENCODING)] += 1
        size = reader.at + _value(header, parquet.PAGE_COMPRESSED)
        if size <= 0:
            raise ValueError("a page has no bytes")
        is_first_data = page_type == parquet.DATA_PAGE_TYPE and not pages
        if is_first_data and at != _value(column, parquet.DATA_PAGE):
            raise ValueError("the first data page stands elsewhere")
        if page_type == parquet.DATA_PAGE_TYPE:
            n_rows = _value(about, parquet.PAGE_VALUES)
            statistics = about.get(parquet.PAGE_STATISTICS, (0, {}))[1]
            pages.append(_Page(at, size, first_row, n_rows, statistics))
            first_row += n_rows
        at += size
    if at != end:
        raise ValueError("its pages do not fill its bytes")
    return pages, encodings


def _bytes_at(file: BinaryIO, offset: int, size: int) -> bytes:
    """Read bytes of a file; raise ValueError for a place outside of it."""
    end = file.seek(0, os.SEEK_END)
    if not 0 <= offset <= end or size < 0:
        raise ValueError("a place is outside the file")
    file.seek(offset)
    return file.read(min(size, end - offset))  # which allocates as much as it is asked for


def _value(struct: Struct, field: int) -> Any:
    return struct[field][1]


def _begin(column: Struct) -> int:
    """Return the position of the first page of a column."""
    if parquet.DICTIONARY_PAGE in column:
        return int(_value(column, parquet.DICTIONARY_PAGE))
    return int(_value(column, parquet.DATA_PAGE))


def _unknown(what: str, struct: Struct, known: frozenset[int]) -> Iterator[str]:
    """Yield that a struct has fields that this job does not write, such as a Bloom filter."""
    more = sorted(struct.keys() - known)
    if more:
        yield f"{what} has a field (number {more[0]}) that this job does not write"


def _differences(stated: dict[str, int], right: dict[str, int]) -> Iterator[str]:
    """Yield which numbers are stated as others than they are."""
    for what, value in right.items():
        if stated[what] != value:
            yield f"{what} is stated as {stated[what]}, and it is {value}"


def _values_of(values: pa.ChunkedArray, n_rows: int) -> _Values:
    """Return what is true of the values of a column, or of a page of it."""
    known = pc.min_max(values).as_py()
    return _Values(known["min"], known["max"], values.null_count, n_rows)


def _faults_of_statistics(statistics: Struct, known: _Values, kind: pa.DataType) -> Iterator[str]:
    """Yield what a struct ``Statistics`` states falsely."""
    if parquet.NULL_COUNT in statistics:
        stated = _value(statistics, parquet.NULL_COUNT)
        yield from _differences({"number of nulls": stated}, {"number of nulls": known.n_nulls})
    bounds = (
        ("min", parquet.MINIMUM_FIELDS, known.least),
        ("max", parquet.MAXIMUM_FIELDS, known.largest),
    )
    for what, fields, right in bounds:
        for field in fields:
            if field in statistics:
                yield from _faults_of_bound(what, _value(statistics, field), right, kind)


def _faults_of_bound(what: str, raw: bytes, right: Any, kind: pa.DataType) -> Iterator[str]:
    stated = decode_bound(raw, kind)
    if stated != right:
        yield f"{what} is stated as {stated!r:.60}, and it is {right!r:.60}"


def _faults_of_values(index: Struct, of_pages: list[_Values], kind: pa.DataType) -> Iterator[str]:
    """Yield what a struct ``ColumnIndex`` states falsely of the values of pages."""
    is_null = [bool(flag == 1) for flag in _value(index, parquet.NULL_PAGES).values]
    minima = _value(index, parquet.MINIMA).values
    maxima = _value(index, parquet.MAXIMA).values
    if is_null != [known.n_nulls == known.n_rows for known in of_pages]:
        yield "the index has other pages without values"
        return
    for page, known in enumerate(of_pages):
        if is_null[page]:
            continue
        for what, raw, right in (
            ("min", minima[page], known.least),
            ("max", maxima[page], known.largest),
        ):
            for fault in _faults_of_bound(what, raw, right, kind):
                yield f"page {page}: {fault}"
    if parquet.NULL_COUNTS in index:
        stated = _value(index, parquet.NULL_COUNTS).values
        if stated != [known.n_nulls for known in of_pages]:
            yield "the index has other numbers of nulls"
    order = _BOUNDARY_ORDERS.get(_value(index, parquet.BOUNDARY_ORDER))
    bounds = [(known.least, known.largest) for known in of_pages if known.n_nulls < known.n_rows]
    if order is not None:
        for which in (0, 1):
            listed = [pair[which] for pair in bounds]
            if listed != sorted(listed, reverse=order == "descend"):
                yield f"its pages are said to {order}"
    yield from _faults_of_levels(index, parquet.LEVELS_OF_PAGES, of_pages)


def _faults_of_levels(struct: Struct, field: int, of_pages: list[_Values]) -> Iterator[str]:
    """Yield that a histogram of definition levels has other numbers of nulls and of values."""
    if field not in struct:
        return
    stated = list(_value(struct, field).values)
    right = [count for known in of_pages for count in (known.n_nulls, known.n_rows - known.n_nulls)]
    if stated not in ([], right):
        yield "other numbers of values and nulls are stated than it has"


def _faults_of_order(group: Struct, rows: pa.Table) -> Iterator[str]:
    """Yield that rows are said to be sorted and are not."""
    if parquet.GROUP_SORTING not in group:
        return
    stated = _value(group, parquet.GROUP_SORTING).values
    keys = [rows.column_names[_value(each, parquet.SORTING_COLUMN)] for each in stated]
    is_descending = any(_value(each, parquet.SORTING_DESCENDING) for each in stated)
    if is_descending or not _ascends(rows.select(keys)):
        yield f"it is said to be sorted by {', '.join(keys)}"


def _ascends(keys: pa.Table) -> bool:
    """Return whether rows ascend by their columns, the first one first."""
    if not keys.num_columns or keys.num_rows < 2:
        return True
    n_rows = keys.num_rows
    is_decided: Any = None  # where an earlier column decides
    for column in keys.columns:
        before = column.slice(0, n_rows - 1)
        after = column.slice(1)
        if column.null_count:
            return False
        if is_decided is not None:
            falls = pc.and_(pc.greater(before, after), pc.invert(is_decided))
        else:
            falls = pc.greater(before, after)
        if pc.any(falls).as_py():
            return False
        rises = pc.less(before, after)
        if is_decided is not None:
            is_decided = pc.or_(rises, is_decided)
        else:
            is_decided = rises
    return True
