"""A Parquet file whose row groups are assembled from encoded columns: the pages of a repeated
column are encoded once.

pyarrow encodes each column, as a file of one column in memory, and the schema and the metadata of
the file. Here the columns are concatenated, and their positions are entered into the footer and the
page index. Vertices repeat for all sources that reach the same ones, and the pages of the column of
sources depend only on the number of rows per source.
"""

from __future__ import annotations

import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kepler_traverse.formats import parquet_fields as parquet
from kepler_traverse.formats.thrift import (
    BINARY,
    FALSE,
    I32,
    I64,
    LIST,
    STRUCT,
    TRUE,
    Items,
    Reader,
    Struct,
    encoded,
)

from .schemas import GROUP_BYTES

_MAGIC = b"PAR1"
_TEXT_BYTES = 16  # of a text, an estimate
_MAX_STATISTICS = 4096  # bytes of a largest or smallest value, as in pyarrow
_MAX_DICTIONARY_BYTES = 2**19  # pyarrow encodes without a dictionary if it outgrows 2^20 bytes

_PLAIN = (pa.int32(), pa.int64())  # types that a page without encoding holds as memory does

Value = TypeVar("Value")


class Recent:
    """A cache of the results of the ``size`` keys that were used last. Threads may share it."""

    def __init__(self, size: int):
        self._size = size  # number of results
        self._lock = threading.Lock()
        # results by their keys; the key that was used last stands at the end
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value for a key; call ``make`` for it if it is not there.

        ``make`` runs without the lock, so two threads may make the same value.
        """
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value

    def clear(self) -> None:
        """Forget all results."""
        with self._lock:
            self._values.clear()


# Pages of columns that hold the same arrays again. The cache also keeps these arrays, which cover
# all vertices: their memory must not get other content while its address is a key.
_REPEATED = Recent(2)
_RUNS = Recent(16)  # pages of columns that repeat each value, by how often


def release_encoded_columns() -> None:
    """Release the encoded pages, and the arrays, that are kept for columns that repeat."""
    _REPEATED.clear()
    _RUNS.clear()


class Place(NamedTuple):
    """Where a data page is, as in Parquet's struct ``PageLocation``."""

    offset: int  # in bytes, from the first page of the column
    size: int  # in bytes, with the header of the page
    first_row: int  # its number in the row group


class ColumnChunk(NamedTuple):
    """One encoded column of a row group.

    A ``Struct`` is a struct of Parquet's footer, in Thrift: a dict from field number to a pair of
    type and value.
    """

    pages: tuple[Any, ...]  # bytes or buffers of pyarrow, which are written one after the other
    metadata: Struct  # struct ``ColumnMetaData``; its offsets count from the first page
    entry: Struct  # struct ``ColumnChunk``, which holds the metadata
    column_index: bytes  # struct ``ColumnIndex``, encoded; empty if there is none
    places: list[Place]  # of its data pages


class EncodedGroup(NamedTuple):
    """A row group, as it is written."""

    chunks: list[ColumnChunk]  # one per column, in the order of the schema
    order: list[int]  # positions of the columns by which the rows ascend; empty if they do not
    rows: int  # number of rows


class Encoders(Protocol):
    """Encodes row groups of one file, on this thread or on others."""

    def begin(self, encode: Callable[[], EncodedGroup], /) -> Iterable[EncodedGroup]:
        """Begin to encode the next row group, by calling ``encode``, in any thread; return the row
        groups that are to be written now, in the order in which they have begun. They may be none,
        or earlier ones.
        """

    def rest(self) -> Iterable[EncodedGroup]:
        """Return the row groups that have begun and are not yet written, in order."""


class _ThisThread:
    """Encodes each row group when it is given."""

    def begin(self, encode: Callable[[], EncodedGroup], /) -> list[EncodedGroup]:
        """Encode the row group in this thread, and return it alone: it is to be written now."""
        return [encode()]

    def rest(self) -> tuple[EncodedGroup, ...]:
        """Return nothing: each row group was returned when it was encoded."""
        return ()


THIS_THREAD = _ThisThread()


class Encoding(NamedTuple):
    """How columns are encoded: options of ``pyarrow.parquet.ParquetWriter``, and names of columns."""

    options: dict[str, Any]  # options of pyarrow for all columns, such as the compression
    dictionary: tuple[str, ...] = ()  # columns that are encoded with a dictionary
    differences: tuple[str, ...] = ()  # columns of integers whose differences are encoded
    # Columns of which a row group often holds the same arrays as the one before, so that their
    # encoded pages are kept and reused.
    repeated: tuple[str, ...] = ()
    order: tuple[str, ...] = ()  # columns by which rows ascend if they ascend by the first

    def key(self, name: str) -> Hashable:
        """Return a key of the encoding of one column, by which pages are kept."""
        return (tuple(self.options.items()), name in self.dictionary, name in self.differences)

    def writer_options(self, name: str, is_stated: bool = True) -> dict[str, Any]:
        """Return the options of pyarrow's writer for the column ``name``; ``is_stated`` says
        whether its pages get statistics.
        """
        return {
            **self.options,
            "store_schema": False,
            "write_page_index": True,
            "use_dictionary": [name] if name in self.dictionary else False,
            "column_encoding": {name: "DELTA_BINARY_PACKED"} if name in self.differences else None,
            "write_statistics": is_stated,
        }


class RowGroupWriter:
    """Writes a Parquet file, one row group per call of ``write``.

    Parameters
    ----------
    file : file object
        Only its ``write`` is called, by the thread that calls this writer.
    schema : pyarrow.Schema
        Of the file, with its metadata.
    encoding : Encoding
        How its columns are encoded.
    encoders : Encoders
        Encode the row groups, in this thread or in others; the file is the same in either case.

    Attributes
    ----------
    rows_per_group : int
        Number of rows that take about ``GROUP_BYTES`` before encoding. The caller fills each row
        group but the last with at least as many.
    """

    def __init__(
        self, file: Any, schema: pa.Schema, encoding: Encoding, encoders: Encoders = THIS_THREAD
    ):
        self._encoders = encoders
        self._file = file
        self._schema = schema
        self._encoding = encoding
        row_bytes = 0  # of a row before encoding, about
        for field in schema:
            if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
                row_bytes += field.type.bit_width // 8
            else:
                row_bytes += _TEXT_BYTES
        self.rows_per_group = GROUP_BYTES // row_bytes
        self._groups: list[Struct] = []  # structs ``RowGroup`` of the footer
        # For each column of each group: its struct ``ColumnChunk``, and the structs ``OffsetIndex``
        # and ``ColumnIndex``, encoded.
        self._indexes: list[tuple[Struct, tuple[bytes, bytes]]] = []
        self._rows = 0  # number of rows written so far
        self._position = 0  # number of bytes written so far
        self._put(_MAGIC)

    def write(self, table: pa.Table) -> None:
        """Write a table as one row group; as several of equal size if it has ``rows_per_group``
        twice or more; or not at all if it has no rows.

        A column that is a dictionary array is written as its values.
        """
        if not table.num_rows:
            return
        n_groups = max(1, table.num_rows // self.rows_per_group)
        size = -(-table.num_rows // n_groups)
        for start in range(0, table.num_rows, size):
            encode = partial(self._encode, table.slice(start, size))
            # The encoders may work on other threads: they return the row groups that are ready, in
            # order, which may be none or earlier ones. ``close`` writes the rest.
            for group in self._encoders.begin(encode):
                self._add(group)

    def _put(self, data: Any) -> None:
        """Write bytes (or a buffer of pyarrow), and count them."""
        self._file.write(data)
        self._position += len(data)

    def _encode(self, table: pa.Table) -> EncodedGroup:
        """Return ``table`` as an encoded row group; any thread may call this."""
        chunks = [encoded_column(table[f.name], f, self._encoding) for f in self._schema]
        return EncodedGroup(chunks, self._find_order(table), len(table))

    def _find_order(self, table: pa.Table) -> list[int]:
        """Return the positions in the schema of the columns by which the rows ascend; none if they
        do not, or if no order is given.

        Only the first column is checked: the order of the others follows from how rows are made.
        """
        names = [name for name in self._encoding.order if name in table.schema.names]
        if names and _ascends(table[names[0]]):
            return [table.schema.get_field_index(name) for name in names]
        return []

    def _add(self, group: EncodedGroup) -> None:
        """Write the pages of an encoded row group, and prepare its entries of the footer and of the
        page index, with its positions in this file.
        """
        begin = self._position
        entries = []
        uncompressed = 0  # bytes of the row group before compression
        for chunk in group.chunks:
            # Positions of a chunk count from its first page, and those of the footer from the begin
            # of the file. A field is a pair of its type in Thrift and its value.
            metadata = dict(chunk.metadata)
            for field in (parquet.DATA_PAGE, parquet.DICTIONARY_PAGE):
                if field in metadata:
                    metadata[field] = (I64, self._position + metadata[field][1])
            entry: Struct = {**chunk.entry, parquet.ENTRY_METADATA: (STRUCT, metadata)}
            entries.append(entry)
            locations = [  # structs ``PageLocation``
                {1: (I64, self._position + offset), 2: (I32, size), 3: (I64, first_row)}
                for offset, size, first_row in chunk.places
            ]
            offset_index = encoded({parquet.PAGES: (LIST, Items(STRUCT, locations))})
            self._indexes.append((entry, (offset_index, chunk.column_index)))

            for page in chunk.pages:
                self._put(page)
            uncompressed += metadata[parquet.UNCOMPRESSED][1]

        ascending: Struct = {
            parquet.SORTING_DESCENDING: (FALSE, False),
            parquet.SORTING_NULLS_FIRST: (FALSE, False),
        }
        sorting = [{parquet.SORTING_COLUMN: (I32, column), **ascending} for column in group.order]
        row_group: Struct = {
            parquet.GROUP_COLUMNS: (LIST, Items(STRUCT, entries)),
            parquet.GROUP_UNCOMPRESSED: (I64, uncompressed),
            parquet.GROUP_ROWS: (I64, group.rows),
        }
        if sorting:
            row_group[parquet.GROUP_SORTING] = (LIST, Items(STRUCT, sorting))
        row_group[parquet.GROUP_OFFSET] = (I64, begin)
        row_group[parquet.GROUP_COMPRESSED] = (I64, self._position - begin)
        self._groups.append(row_group)
        self._rows += group.rows

    def close(self, metadata: dict[bytes, str]) -> None:
        """Write the page index and the footer, with the given metadata of the file."""
        for group in self._encoders.rest():
            self._add(group)

        # The offset indexes of all columns, and then their column indexes, stand behind the pages.
        for number, (offset, size) in enumerate(parquet.INDEXES):
            for entry, indexes in self._indexes:
                index = indexes[number]
                if index:
                    entry |= {offset: (I64, self._position), size: (I32, len(index))}
                    self._put(index)

        # The footer is that of an empty file of pyarrow, with the row groups entered.
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self._schema, **self._encoding.options) as writer:
            writer.add_key_value_metadata(metadata)
        footer = _read_footer(sink.getvalue())
        footer[parquet.FILE_ROWS] = (I64, self._rows)
        footer[parquet.FILE_GROUPS] = (LIST, Items(STRUCT, self._groups))
        data = encoded(footer)
        self._file.write(data + len(data).to_bytes(4, "little") + _MAGIC)


def _ascends(column: pa.ChunkedArray) -> bool:
    """Whether no value of a column is null or less than the value before it.

    A dictionary array has one run of rows per source. There the value of each run must be larger
    than the value of the run before it.
    """
    is_in_order = pc.less_equal
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([_find_runs(chunk)[0] for chunk in column.chunks if len(chunk)])
        is_in_order = pc.less
    if column.null_count:
        return False
    # ``pc.all`` returns None for a column of one value, which has no pairs, and ascends
    return pc.all(is_in_order(column[:-1], column[1:])).as_py() is not False


def encoded_column(column: pa.ChunkedArray, field: pa.Field, encoding: Encoding) -> ColumnChunk:
    """Return a column of a row group, encoded; reuse pages that were encoded before where possible.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        The values. Its chunks may be dictionary arrays, in which the rows of each value are
        adjacent, in the order of the dictionary.
    field : pyarrow.Field
        Name and type of the values.
    encoding : Encoding
        How the columns of the file are encoded.
    """
    if pa.types.is_dictionary(column.type):
        if field.name not in encoding.dictionary:
            raise ValueError(f"the column {field.name!r} is encoded without a dictionary")
        runs = [_find_runs(chunk) for chunk in column.chunks if len(chunk)]
        values = pa.concat_arrays([values for values, _ in runs])
        # A small dictionary whose values are distinct serves as it is: no value may have two runs.
        # Else the column is expanded to its values, and encoded below as any other.
        if values.nbytes <= _MAX_DICTIONARY_BYTES and len(values.unique()) == len(values):
            sizes = tuple(size for _, sizes in runs for size in sizes)
            return _encode_runs(values, sizes, field, encoding)
        column = pa.chunked_array(
            [chunk.dictionary_decode() for chunk in column.chunks], field.type
        )

    # ``encoding.repeated`` names the columns of which a row group often holds the same arrays as the
    # one before, such as the vertices that many sources reach alike. Only their pages are kept.
    options = encoding.writer_options(field.name)
    if field.name not in encoding.repeated:
        return _encode_by_pyarrow(column, field, options)

    # Pages are kept in two levels. The outer key has the set of arrays, by the addresses of their
    # buffers: row groups that are cut from the same arrays share one of the few entries of the
    # cache, however often and in whatever order their chunks have the arrays. The inner key has
    # that order, with the rows that each chunk takes: equal keys mean equal values.
    # An entry keeps a column, too, so that the memory of its arrays is not freed, and no other
    # array gets their addresses.
    addresses = tuple(  # one tuple per chunk; 0 for a buffer that is absent, as without nulls
        tuple(buffer.address if buffer else 0 for buffer in chunk.buffers())
        for chunk in column.chunks
    )
    # ``encoding.key`` has the options of encoding, since files with other options have other pages.
    key = (field, encoding.key(field.name), frozenset(addresses))
    _, pages_of_slices = _REPEATED.get(key, lambda: (column, {}))
    slices = tuple((chunk.offset, len(chunk)) for chunk in column.chunks)
    if (addresses, slices) not in pages_of_slices:
        pages_of_slices[addresses, slices] = _encode_by_pyarrow(column, field, options)
    return pages_of_slices[addresses, slices]


def _find_runs(chunk: pa.DictionaryArray) -> tuple[pa.Array, list[int]]:
    """Return the distinct values of a dictionary array, in order, and the number of rows of each.

    The array has all rows of a value together, in the order of its dictionary. Values of the
    dictionary without a row are left out. A dictionary of one value has all rows of the chunk.
    """
    if len(chunk.dictionary) == 1:
        return chunk.dictionary, [len(chunk)]
    sizes = np.bincount(chunk.indices.to_numpy(), minlength=len(chunk.dictionary))
    return chunk.dictionary.filter(pa.array(sizes > 0)), sizes[sizes > 0].tolist()


def _encode_by_pyarrow(column: Any, field: pa.Field, options: dict[str, Any]) -> ColumnChunk:
    """Encode a column by pyarrow: write a file in memory with one row group of this column, and
    take pages, metadata and indexes out of it.

    ``column``: an array of Arrow, chunked or not. ``field``: its name and type. ``options``: those
    of pyarrow's writer, as ``Encoding.writer_options`` returns them.
    """
    sink = pa.BufferOutputStream()
    table = pa.table([column], schema=pa.schema([field]))
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=max(len(column), 1))
    data = sink.getvalue()

    # Positions in the file count from its magic number, and those of a chunk from the first page.
    (group,) = _read_footer(data)[parquet.FILE_GROUPS][1].values
    (entry,) = group[parquet.GROUP_COLUMNS][1].values
    metadata: Struct = dict(entry[parquet.ENTRY_METADATA][1])
    for name in (parquet.DATA_PAGE, parquet.DICTIONARY_PAGE):
        if name in metadata:
            metadata[name] = (I64, metadata[name][1] - len(_MAGIC))

    # Where the indexes stand in this file is taken out of the entry: ``RowGroupWriter.close``
    # enters where they stand in the other one.
    indexes = []
    for offset_field, size_field in parquet.INDEXES:
        offset = entry.pop(offset_field, None)
        size = entry.pop(size_field, None)
        index = b""
        if offset and size:
            index = data.slice(offset[1], size[1]).to_pybytes()
        indexes.append(index)
    offset_index, column_index = indexes

    places = []
    for location in Reader(offset_index).struct()[parquet.PAGES][1].values:
        offset, size, first_row = (value for _, value in location.values())
        places.append(Place(offset - len(_MAGIC), size, first_row))
    pages = (data.slice(len(_MAGIC), metadata[parquet.COMPRESSED][1]),)
    return ColumnChunk(pages, metadata, entry, column_index, places)


class _Runs(NamedTuple):
    """The data pages of a column that repeats values, without its dictionary page.

    They hold positions in the dictionary, so they serve any values with the same numbers of rows.
    """

    pages: Any  # a buffer of pyarrow with all data pages, one behind the other
    metadata: Struct  # struct ``ColumnMetaData`` of the column from which the pages were taken
    places: list[Place]  # of the data pages; offsets count from the first data page
    n_bytes: int  # size of the pages without compression
    example: ColumnChunk  # a column of the type, with statistics, of the values that came first


def _encode_runs(
    values: pa.Array, sizes: tuple[int, ...], field: pa.Field, encoding: Encoding
) -> ColumnChunk:
    """Encode a column that repeats each of several distinct values, by a dictionary.

    ``values`` are the distinct values, in order, and ``sizes`` the number of rows of each. The data
    pages hold positions in the dictionary. They are the same for other values with the same
    ``sizes``, so they are kept, and only the dictionary page is encoded again.
    """
    options = encoding.writer_options(field.name)

    def make() -> _Runs:
        """Encode the data pages, and an example of a column that has them."""
        example = _encode_by_pyarrow(values, field, options)
        return _encode_positions(
            sizes, encoding.writer_options(field.name, is_stated=False), example
        )

    # kept by type and name of the column, its options of encoding, and the numbers of rows
    runs = _RUNS.get((field, encoding.key(field.name), sizes), make)
    # The dictionary page: of integers it is written here; of other types pyarrow encodes the values
    # once each, and the page is taken out of that.
    if field.type in _PLAIN:
        page, n_bytes, statistics = _write_dictionary(values, runs.example, encoding)
        metadata = {**runs.example.metadata, **statistics}
    else:
        once = _encode_by_pyarrow(values, field, options)
        page, n_bytes = _dictionary_page(once)
        metadata = dict(once.metadata)

    # ``page`` is the dictionary page, of ``n_bytes`` without compression. The chunk is the
    # dictionary page, with the statistics of its values, and then the data pages.
    metadata |= {
        parquet.N_VALUES: runs.metadata[parquet.N_VALUES],
        parquet.UNCOMPRESSED: (I64, n_bytes + runs.n_bytes),
        parquet.COMPRESSED: (I64, len(page) + len(runs.pages)),
        parquet.DATA_PAGE: (I64, len(page)),
        parquet.ENCODING_STATS: runs.metadata[parquet.ENCODING_STATS],
    }
    # What the example states of sizes counts each value once, and not its rows.
    metadata.pop(parquet.SIZE_STATISTICS, None)
    # pyarrow states sizes from version 19 on. Those of strings count the bytes of the values, too,
    # which the kept pages do not have.
    if field.type in _PLAIN and parquet.SIZE_STATISTICS in runs.metadata:
        metadata[parquet.SIZE_STATISTICS] = runs.metadata[parquet.SIZE_STATISTICS]
    places = [place._replace(offset=len(page) + place.offset) for place in runs.places]
    return ColumnChunk(
        (page, runs.pages),
        metadata,
        runs.example.entry,
        _column_index(values, sizes, places),
        places,
    )


def _column_index(values: pa.Array, sizes: tuple[int, ...], places: list[Place]) -> bytes:
    """Return the struct ``ColumnIndex`` of a column that repeats each of several values, encoded.

    It has the bounds of each page, by which readers skip pages. It is empty if a bound is too long
    to be stated. ``sizes``: number of rows of each value. ``places``: of the data pages.
    """
    # The values of a page are those from ``first`` to ``last``, positions in ``values``: from the
    # value of its first row to that of its last row.
    ends = np.cumsum(sizes)
    first_rows = [place.first_row for place in places]
    first = np.searchsorted(ends, first_rows, "right")
    last = np.searchsorted(ends, [*first_rows[1:], ends[-1]])
    plain_values = values.to_pylist()
    minima = []
    maxima = []
    for begin, end in zip(first, last + 1, strict=True):
        minima.append(_encode_bound(min(plain_values[begin:end]), values.type))
        maxima.append(_encode_bound(max(plain_values[begin:end]), values.type))
    if any(len(bound) > _MAX_STATISTICS for bound in minima + maxima):
        return b""
    return encoded(
        {
            # ``TRUE`` is Thrift's number for the type of a list of booleans; each item is false.
            parquet.NULL_PAGES: (LIST, Items(TRUE, [FALSE] * len(places))),
            parquet.MINIMA: (LIST, Items(BINARY, minima)),
            parquet.MAXIMA: (LIST, Items(BINARY, maxima)),
            parquet.BOUNDARY_ORDER: (I32, 0),  # none is stated
            parquet.NULL_COUNTS: (LIST, Items(I64, [0] * len(places))),
        }
    )


def _encode_bound(value: Any, kind: pa.DataType) -> bytes:
    """Return a smallest or largest value, an integer or a text, as the bytes of a Parquet bound."""
    if not pa.types.is_integer(kind):
        return value.encode()
    width = max(kind.bit_width, 32) // 8  # narrower integers take 32 bits in a page
    return value.to_bytes(width, "little", signed=pa.types.is_signed_integer(kind))


def _write_dictionary(
    values: pa.Array, example: ColumnChunk, encoding: Encoding
) -> tuple[bytes, int, Struct]:
    """Return the dictionary page of integers, its size without compression, and the column's
    statistics, as an entry of ``ColumnMetaData``.

    ``example`` is an encoded column of the same type, whose header is reused. The page is not
    encoded by pyarrow, which would take longer to open a file than to encode it, and would hold the
    interpreter lock.
    """
    numbers = values.to_numpy()
    data = numbers.tobytes()  # integers are stored as in memory, without an encoding
    codec = pa.Codec(encoding.options["compression"], encoding.options["compression_level"])
    compressed = codec.compress(data, asbytes=True)

    # The header is that of the example, with other sizes and checksum.
    page = example.pages[0].slice(0, example.metadata[parquet.DATA_PAGE][1])
    header = Reader(page.to_pybytes()).struct()
    crc = zlib.crc32(compressed)
    if crc >= 2**31:  # the field is signed
        crc -= 2**32
    header[parquet.PAGE_UNCOMPRESSED] = (I32, len(data))
    header[parquet.PAGE_COMPRESSED] = (I32, len(compressed))
    header[parquet.PAGE_CRC] = (I32, crc)
    head = encoded(header)

    # Largest and smallest value stand in the statistics twice: in deprecated fields, too.
    statistics: Struct = dict(example.metadata[parquet.STATISTICS][1])
    for field, value in zip(parquet.MAX_AND_MIN, (numbers.max(), numbers.min()) * 2, strict=True):
        statistics[field] = (BINARY, value.tobytes())
    return head + compressed, len(head) + len(data), {parquet.STATISTICS: (STRUCT, statistics)}


def _encode_positions(
    sizes: tuple[int, ...], options: dict[str, Any], example: ColumnChunk
) -> _Runs:
    """Encode the data pages of a column that repeats each value as often as ``sizes`` says.

    ``options`` are those of pyarrow's writer without statistics, because statistics in the pages
    would hold values, and the pages serve other values, too. ``example`` is an encoded column of
    the type, which is kept with the pages.
    """
    # A column of these integers has the same positions in its own dictionary.
    (name,) = options["use_dictionary"]
    positions = pa.array(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes))
    chunk = _encode_by_pyarrow(positions, pa.field(name, pa.int32()), options)
    page, n_bytes = _dictionary_page(chunk)
    return _Runs(
        pages=chunk.pages[0].slice(len(page)),
        metadata=chunk.metadata,
        places=[place._replace(offset=place.offset - len(page)) for place in chunk.places],
        n_bytes=chunk.metadata[parquet.UNCOMPRESSED][1] - n_bytes,
        example=example,
    )


def _dictionary_page(chunk: ColumnChunk) -> tuple[Any, int]:
    """Return the dictionary page of an encoded column, and its size in bytes without compression,
    with its header.
    """
    page = chunk.pages[0].slice(0, chunk.metadata[parquet.DATA_PAGE][1])
    reader = Reader(page.to_pybytes())
    return page, reader.struct()[parquet.PAGE_UNCOMPRESSED][1] + reader.at


def _read_footer(file: pa.Buffer) -> Struct:
    """Return the struct ``FileMetaData`` of a Parquet file."""
    # It stands before its size, in 4 bytes, and the magic number.
    size = int.from_bytes(file[-8:-4].to_pybytes(), "little")
    return Reader(file[-8 - size : -8].to_pybytes()).struct()
