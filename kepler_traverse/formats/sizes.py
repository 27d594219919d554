"""How much memory a typed file asks for, from its metadata, and the refusal of files that ask for
absurd amounts.

Parquet and Arrow files of some bytes can stand for gigabytes: by dictionaries, runs, pages that are
listed often, compression, or long texts with shared beginnings. What is decoded is bounded before
it is allocated.
"""

from __future__ import annotations

import resource
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import arrow_compute as compute
from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from ..errors import CapacityError, EdgeListError
from ..runtime.display import in_units
from ..runtime.memory import available_memory
from .files import DataFile
from .parquet_footer import Chunk, read_chunks, read_footer

_FREELY = 1 << 28  # bytes that any file may unpack to
_MAX_RATIO = 200  # the largest ratio of unpacked bytes to bytes of the file, beyond ``_FREELY``
# Bytes per value in memory, of texts beside their characters.
_WIDTHS = {
    "BOOLEAN": 1,
    "INT32": 4,
    "INT64": 8,
    "INT96": 8,
    "FLOAT": 4,
    "DOUBLE": 8,
    "BYTE_ARRAY": 4,
    "FIXED_LEN_BYTE_ARRAY": 16,
}
_ROWS_AT_ONCE = 1 << 16  # whose texts are counted at a time
_TEXT_AT_ONCE = 1 << 20  # bytes that are read at a time


def find_limit(file: DataFile | None) -> int:
    """Return the bytes that a file may unpack to: the free memory, or less for a small file.

    For None, and for a table in memory, which is a ``DataFile`` with a name alone, it is the free
    memory. It is 0 if nothing is free.
    """
    limit = available_memory("cpu")
    # A limit of the process (``ulimit -v``) counts all of its addresses.
    soft_limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft_limit != resource.RLIM_INFINITY:
        # the first number is that of pages of the process's addresses
        with open("/proc/self/statm") as statm:
            n_pages = int(statm.read().split()[0])
        limit = min(limit, soft_limit - n_pages * resource.getpagesize())
    if file is not None and file.filesystem is not None:
        # A small file may unpack to ``_FREELY`` bytes, and a larger one to a multiple of its size.
        limit = min(limit, max(_FREELY, _MAX_RATIO * file.filesystem.size(file.path)))
    return max(limit, 0)


def require_memory(file: DataFile, nbytes: int, limit: int) -> None:
    """Raise an error if ``nbytes``, to which a file unpacks, is more than ``limit`` of
    ``find_limit``: EdgeListError if the file is too small for so much, else CapacityError.
    """
    if nbytes <= limit:
        return
    # A table in memory, which is known by name only, has no size.
    if file.filesystem is not None:
        size = file.filesystem.size(file.path)
    else:
        size = 0
    if size and nbytes > max(_FREELY, _MAX_RATIO * size):
        raise EdgeListError(
            f"{file}: its {in_units(size)} unpack to {in_units(nbytes)} or more, over {_MAX_RATIO:,} times as much, as no "
            "plain table does; is it damaged? Write it again without compression if it is right"
        )
    raise CapacityError(
        f"{file}: its rows unpack to {in_units(nbytes)} or more, and {in_units(limit)} of memory are left; free some, or "
        "read the file on a machine that has more"
    )


def require_parquet(
    file: DataFile, source: Any, names: Sequence[str], *, whole: bool = True
) -> None:
    """Raise an error of ``require_memory`` for a Parquet file whose columns ask for more memory
    than it may; leave ``source``, the open file, at its beginning.

    ``names``: the columns that are read. ``whole``: whether all row groups are in memory at once,
    so that their sum counts; else each row group counts alone.
    """
    # per row group, what the footer says of each column that is read
    chunks = read_chunks(read_footer(source), frozenset(names).__contains__)
    text_chunks = [chunk for group in chunks for chunk in group if chunk.type == "BYTE_ARRAY"]
    # Texts are read as codes of a dictionary, which are small. pyarrow makes no dictionary of texts
    # that share their beginnings.
    names_of_texts = {chunk.name for chunk in text_chunks}
    names_of_texts -= {chunk.name for chunk in text_chunks if chunk.is_delta}
    # bytes: the free memory, or less if the file is small
    limit = find_limit(file)
    needed = 0  # bytes in memory so far
    source.seek(0)
    with pyarrow.parquet.ParquetFile(
        source, read_dictionary=sorted(names_of_texts), pre_buffer=False
    ) as parquet:
        for number, group in enumerate(chunks):
            if not whole:
                needed = 0
            for chunk in group:
                # The values take their widths in memory, and the pages of the column may unpack to
                # more than that.
                needed += chunk.n_values * _WIDTHS[chunk.type]
                require_memory(file, max(needed, chunk.n_bytes), limit)
                if chunk.type == "BYTE_ARRAY":
                    needed += _bytes_of_text(parquet, number, chunk, limit - needed)
                    require_memory(file, needed, limit)
    source.seek(0)


def require_parquet_at(path: str, name: str, columns: Sequence[str] | None = None) -> None:
    """Raise an error of ``require_memory`` for a Parquet file of this host whose columns ask for
    more memory than it may.

    ``name`` is what errors call it. ``columns`` are those that are read, by default all.
    """
    import fsspec

    file = DataFile(fsspec.filesystem("file"), path, name)
    with file.open_random() as source:
        if columns is None:
            columns = pyarrow.parquet.read_metadata(source).schema.names
        require_parquet(file, source, columns)


def require_text_at(path: str, name: str) -> None:
    """Raise EdgeListError for a compressed text of this host that unpacks to an absurd size, which
    ``DataFile.open_stream`` bounds. ``name`` is what errors call the file.
    """
    import fsspec

    file = DataFile(fsspec.filesystem("file"), path, name)
    if file.compression:
        with file.open_stream() as text:
            # Nothing is kept: the stream raises an error once it unpacks to too much.
            while text.read(_TEXT_AT_ONCE):
                pass


def _bytes_of_text(parquet: Any, group: int, chunk: Chunk, limit: int) -> int:
    """Return an upper bound of the bytes of the texts of a column in a row group.

    ``parquet`` is the open file, ``group`` the number of the row group, and ``chunk`` describes the
    column. Where a text may stand for more bytes than it has in the pages, each counts as the
    longest one. If that passes ``limit``, the texts are read, and their bytes counted until they
    pass it.
    """
    unpacked = chunk.n_bytes
    n_rows = _ROWS_AT_ONCE
    longest = 0  # bytes of the longest text that may stand for more bytes than it has in the pages
    if chunk.is_delta:
        longest = unpacked  # a text may be long by the beginning that it shares with the one before
        # As many rows at a time as take a quarter of the limit if all texts are the longest, but at
        # least one. The inner ``max`` avoids a division by 0.
        n_rows = max(1, min(n_rows, limit // (4 * max(longest, 1))))
    elif chunk.has_dictionary:  # which comes with the first value
        first = next(parquet.iter_batches(1, row_groups=[group], columns=[chunk.name]), None)
        if first is None:
            raise pyarrow.ArrowInvalid(f"column {chunk.name!r:.60} has no values in a row group")
        texts = first.column(0)
        if kinds.is_dictionary(texts.type):
            longest = int(_lengths(texts.dictionary).max(initial=0))
        else:  # read without its dictionary, which may be a single text of all bytes
            longest = unpacked
    bound = unpacked + chunk.n_values * longest
    # Without ``longest`` each text has all its bytes in the pages, so the bound is not too high.
    if bound <= limit or not longest:
        return bound

    # The bound is far too high where few texts are long, so the texts are counted, some at a time.
    total = 0
    for batch in parquet.iter_batches(n_rows, row_groups=[group], columns=[chunk.name]):
        total += size_of_texts(batch.column(0))
        if total > limit:
            break
    return total


def size_of_texts(column: Any) -> int:
    """Return the bytes that the texts of a column of pyarrow take without a dictionary and without
    views.
    """
    total = 0
    for chunk in column.chunks if hasattr(column, "chunks") else [column]:
        if kinds.is_dictionary(chunk.type):
            codes = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
            lengths = _lengths(chunk.dictionary)
            if codes.size:  # else their type may be one that bincount does not take
                total += int((np.bincount(codes, minlength=lengths.size) * lengths).sum())
        else:
            total += int(_lengths(chunk).sum())
    return total


def _lengths(texts: Any) -> np.ndarray:
    """Return the bytes of each text of an array of pyarrow, int64; 0 for null."""
    if not kinds.is_string_view(texts.type):
        lengths = compute.binary_length(texts).fill_null(0)
        return np.asarray(lengths).astype(np.int64)
    # pyarrow has no length of views: 16 bytes each, which begin with it.
    views = np.frombuffer(
        texts.buffers()[1], [("length", "<i4"), ("rest", "V12")], len(texts), 16 * texts.offset
    )
    return views["length"].astype(np.int64) * texts.is_valid().to_numpy(zero_copy_only=False)


def value_type(kind: Any) -> Any:
    """Return the Arrow type of the values of a column of the type ``kind``: of a dictionary the
    type of its values, else ``kind``.
    """
    return kind.value_type if kinds.is_dictionary(kind) else kind


def is_string_type(kind: Any) -> bool:
    """Return whether an Arrow type is one of strings, in any layout but a dictionary."""
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_string_view(kind))


def require_plain(file: DataFile, column: Any) -> None:
    """Raise an error of ``require_memory`` for a column of a dictionary or of views that takes more
    memory without them than its file may. Both let many values share the bytes of one text.
    """
    kind = value_type(column.type)
    if is_string_type(kind) and (kinds.is_dictionary(column.type) or kinds.is_string_view(kind)):
        require_memory(file, size_of_texts(column), find_limit(file))


def require_arrow(file: DataFile, source: Any, n_batches: int | None, begin: int) -> None:
    """Raise an error for an Arrow file or stream whose buffers take more memory decompressed than
    they may, or whose footer lists a batch more than once.

    ``source`` is open. ``n_batches`` is how many batches the footer of a file lists; None for a
    stream, which has no footer. ``begin`` is the position of the first message.
    """
    limit = find_limit(file)
    needed = 0
    n_read = 0  # batches
    source.seek(begin)
    messages = pyarrow.ipc.MessageReader.open_stream(source)
    while True:
        try:
            message = messages.read_next_message()
        except StopIteration:
            break
        if message.type in ("record batch", "dictionary"):
            n_read += message.type == "record batch"  # 1 if it is one, else 0
            try:
                needed += _unpacked_size(message)
            except struct.error:
                raise pyarrow.ArrowInvalid("a place in a message is outside of it") from None
            require_memory(file, needed, limit)
    if n_batches is not None and n_batches > n_read:
        raise EdgeListError(
            f"{file}: its footer lists {n_batches} batches, and it holds {n_read}; it is damaged"
        )


def _unpacked_size(message: Any) -> int:
    """Return the bytes of the buffers of a message, a batch or a dictionary, when they are
    decompressed; 0 if they are not compressed.

    The metadata are flatbuffers, whose fields have the numbers that they have in Arrow's
    ``Message.fbs``: ``Message.header``, ``DictionaryBatch.data``, ``RecordBatch.buffers`` and
    ``RecordBatch.compression``.
    """
    data = message.metadata.to_pybytes()
    # Positions in ``data``, 0 for what is not there. The first 4 bytes are the position of the
    # table ``Message``.
    batch = _find_field(data, _unpack_integer("<I", data, 0), 2)
    if message.type == "dictionary":
        batch = _find_field(data, batch, 1)
    buffers = _find_field(data, batch, 2)
    compression = _find_field(data, batch, 3)
    if not buffers or not compression:
        return 0

    # A vector of buffers: their number, and offset and length of each in the body.
    begin = buffers + 4
    end = begin + 16 * _unpack_integer("<I", data, buffers)
    total = 0
    for offset, length in struct.iter_unpack("<qq", data[begin:end]):
        if length >= 8:  # a compressed buffer begins with the bytes that it unpacks to
            total += max(0, _unpack_integer("<q", message.body, offset))
    return total


def _unpack_integer(form: str, data: Any, offset: int) -> int:
    """Return the integer at an offset of ``data``, which ``form`` describes as the module
    ``struct`` does; struct.error if it is outside of the data.
    """
    (number,) = struct.unpack_from(form, data, offset)
    return int(number)


def _find_field(data: bytes, table: int, number: int) -> int:
    """Return the position in ``data`` at which a field of a table of flatbuffers begins, which is a
    table or a vector itself; 0 if it is not there.

    ``table`` is the position of the table, and ``number`` that of the field, from 0. A table begins
    with the distance back to its list of fields. That has its size and the size of the table, 2
    bytes each, and then the offset of each field in the table, 0 for none. At the field stands the
    distance to the table or vector.
    """
    fields = table - _unpack_integer("<i", data, table)
    place = 4 + 2 * number
    if _unpack_integer("<H", data, fields) <= place:
        return 0
    offset = _unpack_integer("<H", data, fields + place)
    if not offset:
        return 0
    return table + offset + _unpack_integer("<I", data, table + offset)
