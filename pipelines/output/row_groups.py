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
    """Keeps the results of the last few different calls. Threads may share it."""

    def __init__(self, size: int):
        self._size = size
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value for a key, made if it is not there; two threads may make the same one."""
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
        with self._lock:
            self._values.clear()


# The first holds arrays over all vertices, whose memory must not be used again while their address
# is a key.
_REPEATED = Recent(2)
_RUNS = Recent(16)


def release_encoded_columns() -> None:
    """Release what is kept of the last columns."""
    _REPEATED.clear()
    _RUNS.clear()


class Place(NamedTuple):
    """Where a data page is: struct ``PageLocation``; the offset counts from the first page of the
    column.
    """

    offset: int
    size: int
    first_row: int


class ColumnChunk(NamedTuple):
    """One column of a row group."""

    pages: tuple[Any, ...]
    metadata: Struct  # struct ``ColumnMetaData``; its offsets count from the first page
    entry: Struct  # struct ``ColumnChunk``, which holds the metadata
    values: bytes  # struct ``ColumnIndex``; empty if there is none
    places: list[Place]  # of its data pages


class EncodedGroup(NamedTuple):
    """A row group, as it is written."""

    chunks: list[ColumnChunk]
    order: list[int]  # positions of the columns by which the rows ascend
    rows: int


class Encoders(Protocol):
    """Encodes row groups of one file, on this thread or on others."""

    def begin(self, encode: Callable[[], EncodedGroup], /) -> Iterable[EncodedGroup]:
        """Begin to encode the next row group; return those that are to be written now, in order."""

    def rest(self) -> Iterable[EncodedGroup]:
        """Return the row groups that have begun and are not yet written, in order."""


class _ThisThread:
    """Encodes each row group when it is given."""

    def begin(self, encode: Callable[[], EncodedGroup], /) -> list[EncodedGroup]:
        return [encode()]

    def rest(self) -> tuple[EncodedGroup, ...]:
        return ()


THIS_THREAD = _ThisThread()


class Encoding(NamedTuple):
    """How columns are encoded: options of ``pyarrow.parquet.ParquetWriter``, and names of columns."""

    options: dict[str, Any]  # options of all columns
    # Columns with a dictionary, with encoded differences, and columns of which a row group often
    # holds the same arrays as the one before.
    dictionary: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()
    order: tuple[str, ...] = ()  # columns by which rows ascend if they ascend by the first

    def key(self, name: str) -> Hashable:
        """Return what tells apart the pages of one column in different encodings."""
        return (tuple(self.options.items()), name in self.dictionary, name in self.differences)

    def writer_options(self, name: str, is_stated: bool = True) -> dict[str, Any]:
        """Return the options of pyarrow's writer for one column, with statistics or without."""
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

    ``file``: only its ``write`` is called, by the thread that calls this writer. ``schema``: of the
    file, with its metadata. ``encoders``: encode the row groups; the file is the same whichever
    they are. ``rows_per_group``: the least number of rows of a row group that is not the last.
    """

    def __init__(
        self, file: Any, schema: pa.Schema, encoding: Encoding, encoders: Encoders = THIS_THREAD
    ):
        self._encoders = encoders
        self._file = file
        self._schema = schema
        self._encoding = encoding
        kinds = [field.type for field in schema]
        numbers = [
            kind.bit_width // 8
            for kind in kinds
            if pa.types.is_integer(kind) or pa.types.is_floating(kind)
        ]
        self.rows_per_group = GROUP_BYTES // (
            sum(numbers) + _TEXT_BYTES * (len(kinds) - len(numbers))
        )
        self._groups: list[Struct] = []
        # of each column of each group, with its entry
        self._indexes: list[tuple[Struct, tuple[bytes, bytes]]] = []
        self._rows = 0
        self._at = 0
        self._put(_MAGIC)

    def write(self, table: pa.Table) -> None:
        """Write a table as one row group, or as several of equal size if it has more than twice the
        rows of one.

        A dictionary array stands for its values.
        """
        if not table.num_rows:
            return
        size = -(-table.num_rows // max(1, table.num_rows // self.rows_per_group))
        for start in range(0, table.num_rows, size):
            for group in self._encoders.begin(partial(self._encode, table.slice(start, size))):
                self._add(group)

    def _put(self, data: Any) -> None:
        self._file.write(data)
        self._at += len(data)

    def _encode(self, table: pa.Table) -> EncodedGroup:
        """Encode a row group; in any thread."""
        chunks = [encoded_column(table[f.name], f, self._encoding) for f in self._schema]
        return EncodedGroup(chunks, self._find_order(table), len(table))

    def _find_order(self, table: pa.Table) -> list[int]:
        """Return the positions of the columns by which the rows ascend."""
        names = [name for name in self._encoding.order if name in table.schema.names]
        if names and _ascends(table[names[0]]):
            return [table.schema.get_field_index(name) for name in names]
        return []

    def _add(self, group: EncodedGroup) -> None:
        """Write an encoded row group, and enter its positions into footer and index."""
        begin = self._at
        entries = []
        uncompressed = 0
        for chunk in group.chunks:
            metadata = dict(chunk.metadata)
            for field in (parquet.DATA_PAGE, parquet.DICTIONARY_PAGE):
                if field in metadata:
                    metadata[field] = (I64, self._at + metadata[field][1])
            entries.append({**chunk.entry, parquet.ENTRY_METADATA: (STRUCT, metadata)})
            places = [
                {1: (I64, self._at + at), 2: (I32, size), 3: (I64, row)}
                for at, size, row in chunk.places
            ]
            offsets = encoded(
                {parquet.PAGES: (LIST, Items(STRUCT, places))}
            )  # struct ``OffsetIndex``
            self._indexes.append((entries[-1], (offsets, chunk.values)))
            for page in chunk.pages:
                self._put(page)
            uncompressed += metadata[parquet.UNCOMPRESSED][1]
        ascending: Struct = {
            parquet.SORTING_DESCENDING: (FALSE, False),
            parquet.SORTING_NULLS_FIRST: (FALSE, False),
        }
        sorting = [{parquet.SORTING_COLUMN: (I32, column), **ascending} for column in group.order]
        self._groups.append(
            {
                parquet.GROUP_COLUMNS: (LIST, Items(STRUCT, entries)),
                parquet.GROUP_UNCOMPRESSED: (I64, uncompressed),
                parquet.GROUP_ROWS: (I64, group.rows),
                **({parquet.GROUP_SORTING: (LIST, Items(STRUCT, sorting))} if sorting else {}),
                parquet.GROUP_OFFSET: (I64, begin),
                parquet.GROUP_COMPRESSED: (I64, self._at - begin),
            }
        )
        self._rows += group.rows

    def close(self, metadata: dict[bytes, str]) -> None:
        """Write the page index and the footer, with the given metadata of the file."""
        for group in self._encoders.rest():
            self._add(group)
        for which, (offset, size) in enumerate(parquet.INDEXES):
            for entry, indexes in self._indexes:
                if index := indexes[which]:
                    entry |= {offset: (I64, self._at), size: (I32, len(index))}
                    self._put(index)
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self._schema, **self._encoding.options) as writer:
            writer.add_key_value_metadata(metadata)
        footer = _read_footer(sink.getvalue())
        footer[parquet.FILE_ROWS] = (I64, self._rows)
        footer[parquet.FILE_GROUPS] = (LIST, Items(STRUCT, self._groups))
        data = encoded(footer)
        self._file.write(data + len(data).to_bytes(4, "little") + _MAGIC)


def _ascends(column: pa.ChunkedArray) -> bool:
    """Whether no value is null or less than the one before; of a dictionary array, whose runs are
    sources, or the same.
    """
    is_before = pc.less_equal
    if pa.types.is_dictionary(column.type):
        column = pa.chunked_array([_find_runs(chunk)[0] for chunk in column.chunks if len(chunk)])
        is_before = pc.less
    return not column.null_count and pc.all(is_before(column[:-1], column[1:])).as_py() is not False


def encoded_column(column: pa.ChunkedArray, field: pa.Field, encoding: Encoding) -> ColumnChunk:
    """Encode a column of a row group.

    ``column``: its chunks may be dictionary arrays that repeat each value, one after the other.
    ``field``: name and type of the values.
    """
    if pa.types.is_dictionary(column.type):
        if field.name not in encoding.dictionary:
            raise ValueError(f"the column {field.name!r} is encoded without a dictionary")
        runs = [_find_runs(chunk) for chunk in column.chunks if len(chunk)]
        values = pa.concat_arrays([values for values, _ in runs])
        if values.nbytes <= _MAX_DICTIONARY_BYTES and len(values.unique()) == len(values):
            return _encoded_runs(
                values, tuple(size for _, sizes in runs for size in sizes), field, encoding
            )
        column = pa.chunked_array(
            [chunk.dictionary_decode() for chunk in column.chunks], field.type
        )
    options = encoding.writer_options(field.name)
    if field.name not in encoding.repeated:
        return _encoded(column, field, options)
    # An array is kept with the pages of its slices, so that no other one gets its address.
    arrays = tuple(tuple(b.address if b else 0 for b in c.buffers()) for c in column.chunks)
    _, slices = _REPEATED.get(
        (field, encoding.key(field.name), frozenset(arrays)), lambda: (column, {})
    )
    at = tuple((*array, c.offset, len(c)) for array, c in zip(arrays, column.chunks, strict=True))
    if at not in slices:
        slices[at] = _encoded(column, field, options)
    return slices[at]


def _find_runs(chunk: pa.DictionaryArray) -> tuple[pa.Array, list[int]]:
    """Return the values that an array repeats, and how often it repeats each."""
    if len(chunk.dictionary) == 1:
        return chunk.dictionary, [len(chunk)]
    sizes = np.bincount(chunk.indices.to_numpy(), minlength=len(chunk.dictionary))
    return chunk.dictionary.filter(pa.array(sizes > 0)), sizes[sizes > 0].tolist()


def _encoded(column: Any, field: pa.Field, options: dict[str, Any]) -> ColumnChunk:
    """Encode a column by pyarrow."""
    sink = pa.BufferOutputStream()
    table = pa.table([column], schema=pa.schema([field]))
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=max(len(column), 1))
    data = sink.getvalue()
    (group,) = _read_footer(data)[parquet.FILE_GROUPS][1].values
    (entry,) = group[parquet.GROUP_COLUMNS][1].values
    metadata: Struct = dict(entry[parquet.ENTRY_METADATA][1])
    for name in (parquet.DATA_PAGE, parquet.DICTIONARY_PAGE):
        if name in metadata:
            metadata[name] = (I64, metadata[name][1] - len(_MAGIC))
    indexes = [(entry.pop(at, None), entry.pop(size, None)) for at, size in parquet.INDEXES]
    offsets, values = (
        data.slice(at[1], size[1]).to_pybytes() if at and size else b"" for at, size in indexes
    )
    pages = [
        [value for _, value in page.values()]
        for page in Reader(offsets).struct()[parquet.PAGES][1].values
    ]
    places = [Place(at - len(_MAGIC), size, row) for at, size, row in pages]
    return ColumnChunk(
        (data.slice(len(_MAGIC), metadata[parquet.COMPRESSED][1]),), metadata, entry, values, places
    )


class _Runs(NamedTuple):
    """Data pages of values that repeat, as a column chunk without its dictionary page; and a column
    of such values.
    """

    pages: Any
    metadata: Struct
    places: list[Place]
    n_bytes: int  # size of the pages without compression
    example: ColumnChunk


def _encoded_runs(
    values: pa.Array, sizes: tuple[int, ...], field: pa.Field, encoding: Encoding
) -> ColumnChunk:
    """Encode a column that repeats each of several distinct values, by a dictionary.

    Data pages hold positions in the dictionary, so those of other values with as many rows serve
    again.
    """

    def make() -> _Runs:
        example = _encoded(values, field, encoding.writer_options(field.name))
        return _encode_positions(
            sizes, encoding.writer_options(field.name, is_stated=False), example
        )

    runs = _RUNS.get((field, encoding.key(field.name), sizes), make)
    if field.type in _PLAIN:
        page, n_bytes, statistics = _write_dictionary(values, runs.example, encoding)
        metadata = {**runs.example.metadata, **statistics}
    else:
        own = _encoded(values, field, encoding.writer_options(field.name))
        page, n_bytes = _dictionary_page(own)
        metadata = dict(own.metadata)
    metadata |= {
        parquet.N_VALUES: runs.metadata[parquet.N_VALUES],
        parquet.UNCOMPRESSED: (I64, n_bytes + runs.n_bytes),
        parquet.COMPRESSED: (I64, len(page) + len(runs.pages)),
        parquet.DATA_PAGE: (I64, len(page)),
        parquet.ENCODING_STATS: runs.metadata[parquet.ENCODING_STATS],
    }
    metadata.pop(parquet.SIZE_STATISTICS, None)
    # From pyarrow 19 on. Those of strings count their bytes, too.
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
    """Return the struct ``ColumnIndex`` of a column that repeats each of several values; empty if
    one is too long.
    """
    ends = np.cumsum(sizes)
    begins = [place.first_row for place in places]
    first = np.searchsorted(ends, begins, "right")
    last = np.searchsorted(ends, [*begins[1:], ends[-1]])
    listed = values.to_pylist()
    bounds = [
        (min(listed[a : b + 1]), max(listed[a : b + 1])) for a, b in zip(first, last, strict=True)
    ]
    coded = [[_encode_bound(value, values.type) for value in each] for each in bounds]
    if any(len(value) > _MAX_STATISTICS for each in coded for value in each):
        return b""
    minima, maxima = zip(*coded, strict=True)
    return encoded(
        {
            parquet.NULL_PAGES: (LIST, Items(TRUE, [FALSE] * len(places))),
            parquet.MINIMA: (LIST, Items(BINARY, list(minima))),
            parquet.MAXIMA: (LIST, Items(BINARY, list(maxima))),
            parquet.BOUNDARY_ORDER: (I32, 0),  # none is stated
            parquet.NULL_COUNTS: (LIST, Items(I64, [0] * len(places))),
        }
    )


def _encode_bound(value: Any, kind: pa.DataType) -> bytes:
    """Encode a smallest or largest value, an integer or a text."""
    if not pa.types.is_integer(kind):
        return value.encode()
    width = max(kind.bit_width, 32) // 8  # narrower integers take 32 bits in a page
    return value.to_bytes(width, "little", signed=pa.types.is_signed_integer(kind))


def _write_dictionary(
    values: pa.Array, example: ColumnChunk, encoding: Encoding
) -> tuple[bytes, int, Struct]:
    """Return the dictionary page of integers, its size without compression, and the column's
    statistics.

    pyarrow would take longer to open a file than to encode it, and would hold the interpreter lock.
    """
    numbers = values.to_numpy()
    plain = numbers.tobytes()
    packed = pa.Codec(
        encoding.options["compression"], encoding.options["compression_level"]
    ).compress(plain, asbytes=True)
    header = Reader(
        example.pages[0][: example.metadata[parquet.DATA_PAGE][1]].to_pybytes()
    ).struct()
    crc = zlib.crc32(packed)
    header[parquet.PAGE_UNCOMPRESSED] = (I32, len(plain))
    header[parquet.PAGE_COMPRESSED] = (I32, len(packed))
    header[parquet.PAGE_CRC] = (I32, crc - 2**32 if crc >= 2**31 else crc)
    head = encoded(header)
    statistics: Struct = dict(example.metadata[parquet.STATISTICS][1])
    for field, value in zip(parquet.MAX_AND_MIN, (numbers.max(), numbers.min()) * 2, strict=True):
        statistics[field] = (BINARY, value.tobytes())
    return head + packed, len(head) + len(plain), {parquet.STATISTICS: (STRUCT, statistics)}


def _encode_positions(
    sizes: tuple[int, ...], options: dict[str, Any], example: ColumnChunk
) -> _Runs:
    """Encode positions in a dictionary that repeat so often each, without statistics of pages, which
    would hold values. ``example``: a column of such values.
    """
    (name,) = options["use_dictionary"]
    positions = pa.array(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes))
    chunk = _encoded(positions, pa.field(name, pa.int32()), options)
    page, n_bytes = _dictionary_page(chunk)
    return _Runs(
        pages=chunk.pages[0].slice(len(page)),
        metadata=chunk.metadata,
        places=[place._replace(offset=place.offset - len(page)) for place in chunk.places],
        n_bytes=chunk.metadata[parquet.UNCOMPRESSED][1] - n_bytes,
        example=example,
    )


def _dictionary_page(chunk: ColumnChunk) -> tuple[Any, int]:
    """Return the dictionary page of a column, and its size without compression."""
    page = chunk.pages[0].slice(0, chunk.metadata[parquet.DATA_PAGE][1])
    reader = Reader(page.to_pybytes())
    return page, reader.struct()[parquet.PAGE_UNCOMPRESSED][1] + reader.at


def _read_footer(file: pa.Buffer) -> Struct:
    """Return the struct ``FileMetaData`` of a Parquet file."""
    size = int.from_bytes(file[-8:-4].to_pybytes(), "little")
    return Reader(file[-8 - size : -8].to_pybytes()).struct()
