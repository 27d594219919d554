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
# Numbers of the fields that this job writes: of the structs ``FileMetaData``, ``RowGroup``,
# ``ColumnChunk`` and ``ColumnMetaData``. Any other field is a fault.
_FIELDS_OF_FILE = frozenset(range(1, 8))
_FIELDS_OF_GROUP = frozenset(range(1, 7))
_FIELDS_OF_ENTRY = frozenset(range(2, 8))
_FIELDS_OF_COLUMN = frozenset({*range(1, 8), 9, 11, 12, 13, 16})
_BOUNDARY_ORDERS = {1: "ascend", 2: "descend"}


class _Actual(NamedTuple):
    """What is true of the values of a page, or of a column of a row group."""

    least: Any  # a plain Python value; None if all values are null
    largest: Any  # as ``least``
    n_nulls: int  # number of nulls
    n_rows: int  # number of rows, with those that are null


class _Page(NamedTuple):
    """A data page, as it stands in the file."""

    offset: int  # of its header in the file, in bytes
    size: int  # in bytes, with its header
    first_row: int  # its number in the row group
    n_rows: int  # number of its rows, with those that are null
    statistics: Struct  # struct ``Statistics`` of its header; empty if there is none


class Statements:
    """The statements of one Parquet file, which is read without pyarrow.

    A fault, in this module, is a text that says what is stated falsely, and where. Raises
    ValueError: the footer cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            self._footer = parse_footer(read_footer(file))

    def first_fault(self, group: int, rows: pa.Table) -> str:
        """Return the first fault of a row group; ``""`` if there is none.

        ``group``: its number. ``rows``: its rows, as pyarrow has read them.
        """
        try:
            struct = _value(self._footer, parquet.FILE_GROUPS).values[group]
            with self._path.open("rb") as file:
                return next(self._faults(file, struct, rows), "")
        except MALFORMED as error:  # the errors that reading a damaged struct may raise
            return f"what it states cannot be read ({type(error).__name__})"

    def _faults(self, file: BinaryIO, group: Struct, rows: pa.Table) -> Iterator[str]:
        """Yield the faults of a row group, of the group first and then of its columns.

        ``group`` is its struct ``RowGroup`` in the footer, and ``rows`` are its rows.
        """
        yield from _unknown_fields("the footer", self._footer, _FIELDS_OF_FILE)
        yield from _unknown_fields("the row group", group, _FIELDS_OF_GROUP)

        # The struct ``ColumnMetaData`` of each column, and where its pages begin, with their bytes.
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
        actual = {
            "rows": rows.num_rows,
            "first byte": begins[0],
            "bytes": sum(sizes),
            "number of columns": rows.num_columns,
        }
        yield from _differences(stated, actual)

        for name, entry, column in zip(rows.column_names, entries, columns, strict=True):
            for fault in _faults_of_column(file, name, entry, column, rows[name]):
                yield f"column {name!r}: {fault}"
        yield from _faults_of_order(group, rows)


def _faults_of_column(
    file: BinaryIO, name: str, entry: Struct, column: Struct, values: pa.ChunkedArray
) -> Iterator[str]:
    """Yield the faults of a column in a row group.

    ``name``: of the column. ``entry``: its struct ``ColumnChunk``, in which ``column`` is the
    struct ``ColumnMetaData``. ``values``: the rows of the column.
    """
    yield from _unknown_fields("it", entry, _FIELDS_OF_ENTRY)
    yield from _unknown_fields("it", column, _FIELDS_OF_COLUMN)
    path = [part.decode() for part in _value(column, parquet.PATH).values]
    if path != [name]:
        yield f"it is called {'.'.join(path)!r:.60}"

    # The pages, as the file has them.
    pages, encodings = _read_pages(file, column)
    of_pages = [
        _actual_values(values.slice(page.first_row, page.n_rows), page.n_rows) for page in pages
    ]
    n_rows = sum(page.n_rows for page in pages)
    yield from _differences({"values": _value(column, parquet.N_VALUES)}, {"values": n_rows})
    if n_rows != len(values):
        yield f"its pages hold {n_rows} values, and it has {len(values)}"
    for page, actual in zip(pages, of_pages, strict=True):
        yield from _faults_of_statistics(page.statistics, actual, values.type)

    # The column as a whole.
    of_column = _actual_values(values, len(values))
    if parquet.STATISTICS in column:
        statistics = _value(column, parquet.STATISTICS)
        yield from _faults_of_statistics(statistics, of_column, values.type)
        if parquet.DISTINCT_COUNT in statistics:
            yield "a number of distinct values is stated, which this job does not write"
    if parquet.ENCODING_STATS in column:
        stated = {  # number of pages by type and encoding, the fields 3, 1 and 2
            (_value(struct, 1), _value(struct, 2)): _value(struct, 3)
            for struct in _value(column, parquet.ENCODING_STATS).values
        }
        if stated != encodings:
            yield "other encodings of pages are stated than they have"
    if parquet.SIZE_STATISTICS in column:
        sizes = _value(column, parquet.SIZE_STATISTICS)
        yield from _faults_of_levels(sizes, parquet.LEVELS, [of_column])

    yield from _faults_of_indexes(file, entry, pages, of_pages, values.type)


def _faults_of_indexes(
    file: BinaryIO, entry: Struct, pages: list[_Page], of_pages: list[_Actual], kind: pa.DataType
) -> Iterator[str]:
    """Yield the faults of the page index of a column: its structs ``OffsetIndex`` and
    ``ColumnIndex``, each of which may be missing.

    ``entry``: struct ``ColumnChunk``, which says where they stand. ``pages``: the data pages.
    ``of_pages``: what is true of the values of each page. ``kind``: type of the column.
    """
    # ``INDEXES`` has the numbers of the fields with offset and size of each of the two.
    structs: list[Struct | None] = []
    for offset, size in parquet.INDEXES:
        struct = None
        if offset in entry:
            struct = Reader(_read_at(file, _value(entry, offset), _value(entry, size))).struct()
        structs.append(struct)
    offset_index, column_index = structs

    if offset_index is not None:
        stated = [  # offset, size and first row of each page
            tuple(value for _, value in location.values())
            for location in _value(offset_index, parquet.PAGES).values
        ]
        if stated != [(page.offset, page.size, page.first_row) for page in pages]:
            yield "the index has other places of pages than they have"
    if column_index is not None:
        yield from _faults_of_column_index(column_index, of_pages, kind)


def _read_pages(file: BinaryIO, column: Struct) -> tuple[list[_Page], Counter[tuple[int, int]]]:
    """Return the data pages as they stand in the file, and the number of all pages by their type
    and encoding.

    ``column``: struct ``ColumnMetaData``, which says where the pages begin and end. Raises
    ValueError: they do not fill the bytes of the column.
    """
    pages: list[_Page] = []
    encodings: Counter[tuple[int, int]] = Counter()
    position = _begin(column)
    end = position + _value(column, parquet.COMPRESSED)
    first_row = 0
    while position < end:
        # A page is a header of unknown length, and then as many bytes as the header says.
        reader = Reader(_read_at(file, position, _HEADER_BYTES))
        header = reader.struct()
        size = reader.at + _value(header, parquet.PAGE_COMPRESSED)
        if size <= 0:
            raise ValueError("a page has no bytes")  # the loop would not end
        page_type = _value(header, parquet.PAGE_TYPE)
        header_of_type = _value(header, parquet.PAGE_HEADERS[page_type])
        encodings[page_type, _value(header_of_type, parquet.PAGE_ENCODING)] += 1

        if page_type == parquet.DATA_PAGE_TYPE:
            if not pages and position != _value(column, parquet.DATA_PAGE):
                raise ValueError("the first data page stands elsewhere")
            n_rows = _value(header_of_type, parquet.PAGE_VALUES)
            # A field is a pair of type and value; without statistics the value is an empty struct.
            statistics = header_of_type.get(parquet.PAGE_STATISTICS, (0, {}))[1]
            pages.append(_Page(position, size, first_row, n_rows, statistics))
            first_row += n_rows
        position += size
    if position != end:
        raise ValueError("its pages do not fill its bytes")
    return pages, encodings


def _read_at(file: BinaryIO, offset: int, size: int) -> bytes:
    """Read ``size`` bytes of a file from ``offset`` on, or fewer at its end; raise ValueError for
    an offset outside of the file.
    """
    end = file.seek(0, os.SEEK_END)
    if not 0 <= offset <= end or size < 0:
        raise ValueError("a place is outside the file")
    file.seek(offset)
    # ``read`` allocates as many bytes as it is asked for, which a damaged file may state too high.
    return file.read(min(size, end - offset))


def _value(struct: Struct, field: int) -> Any:
    """Return the value of the field with a number, without its Thrift type; KeyError without the
    field.
    """
    return struct[field][1]


def _begin(column: Struct) -> int:
    """Return the position in the file of the first page of a column, in bytes: of its dictionary
    page if it has one, else of its first data page. ``column``: struct ``ColumnMetaData``.
    """
    if parquet.DICTIONARY_PAGE in column:
        return int(_value(column, parquet.DICTIONARY_PAGE))
    return int(_value(column, parquet.DATA_PAGE))


def _unknown_fields(what: str, struct: Struct, known: frozenset[int]) -> Iterator[str]:
    """Yield a fault if a struct has fields that this job does not write, such as a Bloom filter.

    ``what`` names the struct in the message. ``known``: numbers of the fields that it may have.
    """
    unknown = sorted(struct.keys() - known)
    if unknown:
        yield f"{what} has a field (number {unknown[0]}) that this job does not write"


def _differences(stated: dict[str, int], actual: dict[str, int]) -> Iterator[str]:
    """Yield a fault per number that is stated wrongly. Both dicts have numbers by their names."""
    for what, value in actual.items():
        if stated[what] != value:
            yield f"{what} is stated as {stated[what]}, and it is {value}"


def _actual_values(values: pa.ChunkedArray, n_rows: int) -> _Actual:
    """Return what is true of the values of a column, or of a page of it, with ``n_rows`` rows."""
    bounds = pc.min_max(values).as_py()
    return _Actual(bounds["min"], bounds["max"], values.null_count, n_rows)


def _faults_of_statistics(statistics: Struct, actual: _Actual, kind: pa.DataType) -> Iterator[str]:
    """Yield the faults of a struct ``Statistics`` of a page or a column.

    ``actual``: what is true of its values. ``kind``: their type, by which bounds are decoded.
    """
    if parquet.NULL_COUNT in statistics:
        stated = _value(statistics, parquet.NULL_COUNT)
        yield from _differences({"number of nulls": stated}, {"number of nulls": actual.n_nulls})
    bounds = (
        ("min", parquet.MINIMUM_FIELDS, actual.least),
        ("max", parquet.MAXIMUM_FIELDS, actual.largest),
    )
    # Each bound may stand in two fields, of which one is deprecated.
    for what, fields, value in bounds:
        for field in fields:
            if field in statistics:
                yield from _faults_of_bound(what, _value(statistics, field), value, kind)


def _faults_of_bound(what: str, raw: bytes, actual: Any, kind: pa.DataType) -> Iterator[str]:
    """Yield a fault unless the encoded bound ``raw`` is exactly the value ``actual``.

    ``what``: "min" or "max", for the message. ``kind``: type of the values.
    """
    stated = decode_bound(raw, kind)
    if stated != actual:
        yield f"{what} is stated as {stated!r:.60}, and it is {actual!r:.60}"


def _faults_of_column_index(
    index: Struct, of_pages: list[_Actual], kind: pa.DataType
) -> Iterator[str]:
    """Yield the faults of a struct ``ColumnIndex``, which has one entry per page.

    ``of_pages``: what is true of the values of each page. ``kind``: type of the column.
    """
    # Whether all values of a page are null; such a page has no bounds.
    is_null = [bool(flag == 1) for flag in _value(index, parquet.NULL_PAGES).values]
    if is_null != [actual.n_nulls == actual.n_rows for actual in of_pages]:
        yield "the index has other pages without values"
        return

    minima = _value(index, parquet.MINIMA).values
    maxima = _value(index, parquet.MAXIMA).values
    for page, actual in enumerate(of_pages):
        if is_null[page]:
            continue
        for fault in _faults_of_bound("min", minima[page], actual.least, kind):
            yield f"page {page}: {fault}"
        for fault in _faults_of_bound("max", maxima[page], actual.largest, kind):
            yield f"page {page}: {fault}"

    if parquet.NULL_COUNTS in index:
        stated = _value(index, parquet.NULL_COUNTS).values
        if stated != [actual.n_nulls for actual in of_pages]:
            yield "the index has other numbers of nulls"

    # Pages may be said to ascend or descend: then both their least and their largest values do.
    order = _BOUNDARY_ORDERS.get(_value(index, parquet.BOUNDARY_ORDER))
    if order is not None:
        filled = [actual for actual in of_pages if actual.n_nulls < actual.n_rows]
        for bounds in ([page.least for page in filled], [page.largest for page in filled]):
            if bounds != sorted(bounds, reverse=order == "descend"):
                yield f"its pages are said to {order}"
    yield from _faults_of_levels(index, parquet.LEVELS_OF_PAGES, of_pages)


def _faults_of_levels(struct: Struct, field: int, of_pages: list[_Actual]) -> Iterator[str]:
    """Yield a fault if a histogram of definition levels is wrong.

    A null has the definition level 0, and a value level 1. The histogram, in ``field`` of
    ``struct``, has two numbers per page; it may be missing or empty. ``of_pages``: what is true of
    each page.
    """
    if field not in struct:
        return
    stated = list(_value(struct, field).values)
    actual: list[int] = []
    for page in of_pages:
        actual += [page.n_nulls, page.n_rows - page.n_nulls]
    if stated not in ([], actual):
        yield "other numbers of values and nulls are stated than it has"


def _faults_of_order(group: Struct, rows: pa.Table) -> Iterator[str]:
    """Yield a fault if rows are said to be sorted and are not; this job sorts in ascending order
    alone. ``group``: struct ``RowGroup``.
    """
    if parquet.GROUP_SORTING not in group:
        return
    stated = _value(group, parquet.GROUP_SORTING).values
    keys = [rows.column_names[_value(key, parquet.SORTING_COLUMN)] for key in stated]
    is_descending = any(_value(key, parquet.SORTING_DESCENDING) for key in stated)
    if is_descending or not _ascends(rows.select(keys)):
        yield f"it is said to be sorted by {', '.join(keys)}"


def _ascends(keys: pa.Table) -> bool:
    """Whether no row is less than the row before it, in lexicographic order of the columns, and
    none has a null. Without columns, or with one row, it is so.
    """
    if not keys.num_columns or keys.num_rows < 2:
        return True
    n_pairs = keys.num_rows - 1  # of adjacent rows
    is_decided = pa.chunked_array([pa.repeat(pa.scalar(False), n_pairs)])  # by an earlier column
    for column in keys.columns:
        if column.null_count:
            return False
        # A pair of adjacent rows falls if this column falls and all earlier ones are equal.
        before = column.slice(0, n_pairs)
        after = column.slice(1)
        falls = pc.and_(pc.greater(before, after), pc.invert(is_decided))
        if pc.any(falls).as_py():
            return False
        is_decided = pc.or_(pc.less(before, after), is_decided)
    return True
