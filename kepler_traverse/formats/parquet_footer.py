"""What the footer of a Parquet file says of its columns, read without pyarrow.

Of a damaged footer pyarrow's objects of columns end the process: its C++ code raises an exception
where a column has another type than in the schema, or impossible statistics, and
``RowGroupMetaData.column`` lets it through. Only its readers of rows turn such exceptions into
errors. So nothing else here asks pyarrow about a column of a row group.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._arrays import arrow_types as kinds
from .._arrays import pyarrow
from . import parquet_fields as fields
from .thrift import I32, STRUCT, Reader, Struct

# what reading a damaged footer may raise
MALFORMED = (AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError)
_MAGIC = b"PAR1"  # the bytes that a Parquet file begins and ends with
_TAIL_BYTES = 8  # the size of the footer, and the magic
# physical types by their numbers
_TYPES = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)
# Numbers of the encodings that write a value by its difference from the value before: of a number
# the difference, of a text the part that the text before does not begin with.
_DELTA_ENCODINGS = frozenset({5, 6, 7})


class Chunk(NamedTuple):
    """A column of a row group, as the footer describes it."""

    name: str  # with dots between the names of nested columns
    type: str  # the physical one, of ``_TYPES``
    n_values: int  # nulls included
    n_bytes: int  # of its pages without compression
    is_delta: bool  # whether an encoding is one of differences
    has_dictionary: bool  # whether its values may be codes of a dictionary, which comes first
    n_nulls: int | None  # None: not stated
    # bounds of the values, as ``decode_bound`` reads them; None: not stated
    minimum: bytes | None
    maximum: bytes | None


def read_footer(source: Any) -> bytes:
    """Return the bytes of the footer at the end of an open file, without its size and the magic.

    Raises pyarrow.ArrowInvalid: the file does not end as a Parquet file does.
    """
    end = source.seek(0, os.SEEK_END) - _TAIL_BYTES
    source.seek(max(end, 0))
    tail = source.read(_TAIL_BYTES)
    size = int.from_bytes(tail[:4], "little")
    if tail[4:] != _MAGIC or size > end:
        raise pyarrow.ArrowInvalid("it does not end as a Parquet file does")
    source.seek(end - size)
    return bytes(source.read(size))


def read_schema(footer: bytes) -> pyarrow.Schema:
    """Return the schema that a footer states, with its metadata.

    pyarrow reads it from a file that has nothing but this footer.

    Raises pyarrow.ArrowException: it cannot be read.
    """
    tail = footer + len(footer).to_bytes(4, "little") + _MAGIC
    return pyarrow.parquet.read_schema(pyarrow.BufferReader(tail))


def parse_footer(footer: bytes) -> Struct:
    """Return all that a footer says, as a struct: a dict from the numbers of its fields, which
    ``parquet_fields`` names, to their types and values.

    Raises pyarrow.ArrowInvalid: it cannot be read.
    """
    return _report_malformed(lambda: Reader(footer).struct())


def read_chunks(footer: bytes, is_read: Callable[[str], bool]) -> list[list[Chunk]]:
    """Return a list per row group with the columns for whose names ``is_read`` is true, in the
    order of the schema.

    Raises pyarrow.ArrowInvalid: the footer cannot be read, or contradicts itself.
    """
    return _report_malformed(lambda: list(_row_groups(footer, is_read)))


def decode_bound(raw: bytes, kind: pyarrow.DataType) -> Any:
    """Return the number or text that a bound of statistics is: ``raw`` are its bytes, as Parquet
    writes values of the type ``kind``. ValueError if they do not fit the type.
    """
    # Integers of fewer bits take 32.
    if kinds.is_integer(kind):
        if len(raw) != max(kind.bit_width, 32) // 8:
            raise ValueError("a bound has another size than its type")
        return int.from_bytes(raw, "little", signed=kinds.is_signed_integer(kind))
    if kinds.is_floating(kind):
        return np.frombuffer(raw, kind.to_pandas_dtype()).item()
    return raw.decode()


def _report_malformed(read: Callable[[], Any]) -> Any:
    """Return what ``read`` returns, a function that reads a footer; pyarrow.ArrowInvalid in place
    of the errors that a damaged footer causes.
    """
    try:
        return read()
    except MALFORMED as error:
        # Errors of this package say what is wrong, others only where Python failed.
        why = str(error) if type(error) is ValueError else type(error).__name__
        raise pyarrow.ArrowInvalid(f"its footer cannot be read ({why})") from None


def _row_groups(footer: bytes, is_read: Callable[[str], bool]) -> Iterator[list[Chunk]]:
    """Yield a list per row group with the columns for whose names ``is_read`` is true; all else is
    skipped. The schema stands before the row groups.
    """
    reader = Reader(footer)
    leaves: list[_Leaf] = []  # the columns of the schema, in its order
    for number, kind in reader.fields():
        if number == fields.FILE_SCHEMA:
            # The first element is the root of the tree. Without one, ``{}`` raises KeyError.
            elements = iter(reader.value(kind).values)
            leaves = list(_leaves(next(elements, {}), elements, ""))
        elif number == fields.FILE_GROUPS:
            are_read = [is_read(leaf.name) for leaf in leaves]
            for _ in reader.structs():
                yield list(_columns(reader, leaves, are_read))
        else:
            reader.skip(kind)


def _columns(reader: Reader, leaves: list[_Leaf], are_read: list[bool]) -> Iterator[Chunk]:
    """Yield those columns of the row group at which ``reader`` stands for which ``are_read`` is
    True.

    ``leaves`` are the columns of the schema, and ``are_read`` has a bool for each. A row group has
    its columns in the same order.
    """
    n_columns = 0  # that were passed
    for number, kind in reader.fields():
        if number == fields.GROUP_COLUMNS:
            for struct_type in reader.structs():
                _require(n_columns < len(leaves), "a row group has more columns than the schema")
                if are_read[n_columns]:
                    # A field of a struct is its type and its value.
                    column = reader.value(struct_type)
                    _, metadata = column[fields.ENTRY_METADATA]
                    yield _chunk(metadata, leaves[n_columns])
                else:
                    reader.skip(struct_type)
                n_columns += 1
        else:
            reader.skip(kind)
    _require(n_columns == len(leaves), "a row group has fewer columns than the schema")


class _Leaf(NamedTuple):
    """A column of the schema that holds values."""

    name: str  # with dots between the names of nested columns
    type: str  # the physical one, of ``_TYPES``


def _leaves(element: Struct, below: Iterator[Struct], prefix: str) -> Iterator[_Leaf]:
    """Yield the columns with values that lie below an element of the schema, which is a tree in
    depth-first order.

    ``below`` yields the elements that follow it, of which this takes those that lie below it.
    ``prefix`` has the names above its children, with a dot behind each.
    """
    # A field is its type and its value: [1] is the value.
    for _ in range(element[fields.N_CHILDREN][1]):
        child = next(below, None)
        if child is None:
            raise ValueError("its schema is cut short")
        name = prefix + child[fields.NAME][1].decode()
        # An element with children is a nested column, and one with a type holds values itself.
        if child.get(fields.N_CHILDREN, (I32, 0))[1]:
            yield from _leaves(child, below, f"{name}.")
        elif fields.TYPE in child:
            yield _Leaf(name, _TYPES[child[fields.TYPE][1]])


def _chunk(metadata: Struct, leaf: _Leaf) -> Chunk:
    """Return a column of a row group, as its metadata describe it; ValueError if these contradict
    ``leaf``, the column of the schema.

    A field is its type and its value: [1] is the value.
    """
    name = f"column {leaf.name!r:.60}"  # for errors, cut
    _require(_TYPES[metadata[fields.TYPE][1]] == leaf.type, f"{name} has two types")
    n_values = metadata[fields.N_VALUES][1]
    n_bytes = metadata[fields.UNCOMPRESSED][1]
    _require(n_values >= 0 and n_bytes >= 0, f"{name} has a size below 0")
    statistics = metadata.get(fields.STATISTICS, (STRUCT, {}))[1]
    return Chunk(
        name=leaf.name,
        type=leaf.type,
        n_values=n_values,
        n_bytes=n_bytes,
        is_delta=not _DELTA_ENCODINGS.isdisjoint(metadata[fields.ENCODINGS][1].values),
        has_dictionary=fields.DICTIONARY_PAGE in metadata,
        n_nulls=_get_statistic(statistics, fields.NULL_COUNT, int),
        minimum=_get_statistic(statistics, fields.MINIMUM, bytes),
        maximum=_get_statistic(statistics, fields.MAXIMUM, bytes),
    )


def _get_statistic(statistics: Struct, field: int, expected: type) -> Any:
    """Return the value of a field of statistics, None if it is not stated; ValueError if it is not
    of the ``expected`` type.
    """
    if field not in statistics:
        return None
    _, value = statistics[field]
    _require(type(value) is expected, f"field {field} of statistics has another type")
    return value


def _require(holds: bool, problem: str) -> None:
    """Raise ValueError, which says ``problem``, unless a condition of a footer ``holds``."""
    if not holds:
        raise ValueError(problem)
