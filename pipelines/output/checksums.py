"""A checksum of the rows of each source. It does not depend on their order, their part files, the
strategy or the device.

For rows of distances it is ``kepler_traverse.search.results.checksum``; for other rows, the same
sum over their columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse._arrays import to_host
from kepler_traverse.cpu.checksum import ODD, mix
from kepler_traverse.cpu.exact_sums import PRIME, linear_checksum
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.result_kinds import CELL_COLUMNS, ID_COLUMNS
from kepler_traverse.search.frames import Column

from .matrix_file import is_matrix, to_array, unreached_of_schema

MASK = 2**64 - 1  # ``total & MASK`` is a sum modulo 2^64, as uint64 would have it


def to_bits(values: np.ndarray, is_null: np.ndarray | None = None) -> np.ndarray:
    """Return the bits of numbers as uint64; all bits are ones where a number is null.

    ``values``: integers or floats, in host memory. ``is_null``: bool, of the same shape; None if
    none is null.
    """
    if values.dtype.kind == "i":  # widened, so that an integer has the same bits in any type
        bits = values.astype(np.int64).view(np.uint64)
    else:  # floats and unsigned integers have the bits of their own type
        bits = values.view(f"u{values.dtype.itemsize}").astype(np.uint64)
    if is_null is None:
        return bits
    return np.where(is_null, np.uint64(MASK), bits)


def bits_of_texts(texts: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """Return a uint64 per text, the first 64 bits of the SHA-256 of its UTF-8; raise ValueError if
    one is null.
    """
    if texts.null_count:
        raise ValueError("a text is null")
    distinct = pc.unique(texts)  # hashed once each, since texts repeat
    hashes = [hashlib.sha256(text.encode()).digest() for text in distinct.to_pylist()]
    bits = np.array([int.from_bytes(digest[:8]) for digest in hashes], np.uint64)
    return bits[pc.index_in(texts, value_set=distinct).to_numpy()]


def bits_of_columns(columns: Mapping[str, Column]) -> list[np.ndarray]:
    """Return what a checksum covers: one uint64 array of shape (rows,) per column.

    ``columns``: the columns of a table by name. Left out are the source, which ``sums_of_rows``
    adds, and the predecessor, which follows from the distances.
    """
    bits = []
    for name, column in columns.items():
        if name in ("source", "predecessor"):
            continue
        values = column.values
        if column.numbers is not None:  # ids count by their vertex numbers
            values = column.numbers
        if not hasattr(values, "dtype"):  # texts of pyarrow
            bits.append(bits_of_texts(values))
            continue
        is_null = None
        if column.is_null is not None:
            is_null = to_host(column.is_null)
        bits.append(to_bits(to_host(values), is_null))
    return bits


def sums_of_rows(source: Any, columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return what each row adds to the checksum of its source: a uint64 array of shape (rows,).

    ``source``: vertex number, one or that of each row. ``columns``: arrays of shape (rows,) of all
    columns but the source's, as ``bits_of_columns`` returns them.
    """
    # A column is mixed with those before it, so that rows which exchange values differ. ``mix``
    # scrambles the bits of a number, and leaves 0 as it is: ``ODD``, a constant, is added first.
    first, *others = columns
    mixed = mix(first + ODD)
    for column in others:
        mixed = mix(mixed ^ column)
    return mix(mixed + np.asarray(source, np.uint64))


def checksum_of_rows(source: int, columns: Sequence[np.ndarray]) -> int:
    """Return the checksum of one source from all of its rows; see ``sums_of_rows``."""
    return int(sums_of_rows(source, columns).sum(dtype=np.uint64))


def checksum_of_cells(cell: np.ndarray, low: np.ndarray, high: np.ndarray) -> int:
    """Return the checksum of loads (sums per edge, vertex or pair).

    It is linear: the checksums of all parts have the same sum modulo ``PRIME`` however the sources
    are divided. Each sum is multiplied by a factor, which is the number of its cell with its bits
    mixed.

    ``cell``: number of each edge, vertex or pair with a load. ``low`` and ``high``: the lower and
    the upper half of its sum, an integer of 128 bits; int64 arrays of the same shape.
    """
    return int(linear_checksum(mix(cell.astype(np.uint64) + ODD), low.view(np.uint64), high))


def checksums_by_source(
    sources: np.ndarray, source: np.ndarray, columns: Sequence[np.ndarray]
) -> list[int]:
    """Return the checksum of each of ``sources``, distinct vertex numbers, from rows in any order.

    ``source``: vertex number of the source of each row, of shape (rows,). ``columns``: uint64
    arrays of shape (rows,), as ``bits_of_columns`` returns them. The result is in the order of
    ``sources``; a source without rows has 0.
    """
    order = np.argsort(sources)
    positions = order[np.searchsorted(sources[order], source)]  # of the source of each row
    totals = np.zeros(sources.size, np.uint64)
    np.add.at(totals, positions, sums_of_rows(source, columns))  # sums wrap around at 2^64
    return totals.tolist()


def checksums_in(
    tables: Iterable[pa.Table], graph: Graph, sources: np.ndarray, columns: Sequence[str]
) -> list[int]:
    """Return the checksum of each of ``sources`` from the rows of a part file.

    The rows have one of three forms, which the schema shows: a row per result, with the ``columns``; a
    list of distances per source, which counts as the rows of the vertices that it reaches; or loads
    (sums per edge, vertex or pair over all sources of the part). ``columns`` is ignored for lists
    and loads.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        The rows, a group at a time.
    graph : Graph
        Graph of the run, which gives vertex numbers of ids.
    sources : int64 array of shape (sources,)
        Distinct vertex numbers.
    columns : sequence of str
        Names of the columns that the checksum covers, for rows of the first form. The name
        "source" may be among them, and makes no difference: vertex numbers of sources are covered
        anyway.

    Returns
    -------
    list of int
        In the order of ``sources``; 0 for a source without rows. Sums modulo 2^64, but modulo
        ``PRIME`` for loads, whose checksums are linear modulo this number. Loads count for the
        first source alone.

    Raises
    ------
    ValueError
        An id is not in the graph, or a row belongs to none of the sources.
    """
    totals = [0] * sources.size
    for table in tables:
        # Loads are sums over all sources of the part, and in the name of the first one.
        if tuple(table.schema.names) == CELL_COLUMNS:
            # All columns but the last, the exponent of the unit of the sums. It is not covered,
            # since it is the same in all parts of a run.
            cell, low, high = (table[name].to_numpy() for name in CELL_COLUMNS[:3])
            totals[0] = (totals[0] + checksum_of_cells(cell, low, high)) % PRIME
            continue

        # Rows about the whole graph have no column of sources. Their part names one nominal source,
        # to which they belong.
        source = np.full(table.num_rows, sources[0])
        if "source" in table.schema.names:
            source = numbers_in(graph, table["source"])
        if not np.isin(source, sources).all():
            raise ValueError("a row belongs to no source of its part")

        if is_matrix(table.schema):
            sums = _checksums_in_lists(table, source, sources)
        else:
            bits = [_bits_in(graph, name, table[name]) for name in columns if name != "source"]
            sums = checksums_by_source(sources, source, bits)
        totals = [(total + more) & MASK for total, more in zip(totals, sums, strict=True)]
    return totals


def _checksums_in_lists(table: pa.Table, source: np.ndarray, sources: np.ndarray) -> list[int]:
    """Return the checksum of each of ``sources`` from a table with a list of distances per row.

    ``source``: vertex number of each row. A list counts as the rows of the vertices that it
    reaches.
    """
    unreached = unreached_of_schema(table.schema)
    sums = dict.fromkeys(sources.tolist(), 0)
    for number, distance in zip(source.tolist(), to_array(table["distance"]), strict=True):
        vertex = np.flatnonzero(distance != unreached)
        sums[number] += checksum_of_rows(number, [to_bits(vertex), to_bits(distance[vertex])])
    return list(sums.values())


def _bits_in(graph: Graph, name: str, column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of a file as ``bits_of_columns`` would: a uint64 array of shape (rows,).

    Ids count by their vertex numbers.
    """
    if name in ID_COLUMNS:
        return to_bits(numbers_in(graph, column))
    if pa.types.is_string(column.type):
        return bits_of_texts(column)
    if not column.null_count:
        return to_bits(column.to_numpy())
    return to_bits(pc.fill_null(column, 0).to_numpy(), column.is_null().to_numpy())


def numbers_in(graph: Graph, column: pa.ChunkedArray) -> np.ndarray:
    """Return vertex numbers of a column of ids; raise ValueError if an integer is no id.

    A text that is no id becomes NaN, and all numbers floats. Such numbers are those of no source,
    and give another checksum, so the caller refuses them.
    """
    if graph.has_string_ids:
        return pc.index_in(column, value_set=graph.ids).to_numpy()
    # Ids ascend, and a vertex number is the position of its id. The clamp keeps the position of an
    # id beyond the last within the array, where the comparison then refuses it.
    ids = to_host(graph.ids)
    values = column.to_numpy()
    numbers = np.minimum(np.searchsorted(ids, values), ids.size - 1)
    if not np.array_equal(ids[numbers], values):
        raise ValueError("an id is not in the graph")
    return numbers
