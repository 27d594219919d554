"""Integer vertex ids of users to vertex numbers, which run from 0, on a GPU; see vertex_ids.cu.

The number of an id is its rank among all ids.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import Array, extent
from . import cp
from .compiler import kernel
from .copies import copy_into
from .kernel_spec import make_entries
from .launch import launch

BLOCK = 256

_FILE = Path(__file__).parent / "kernels" / "vertex_ids.cu"
_entry = make_entries(_FILE, BLOCK)
_MARK = _entry("ids_mark")
_COUNT = _entry("ids_count")
_FLAGS = _entry("ids_flags")
_LIST = _entry("ids_list", optional="ranks")
_NUMBER = _entry("ids_number", optional="ranks")
_FLAG_FIRST = _entry("ids_flag_first")
_TAKE_FIRST = _entry("ids_take_first")
_SEARCH = _entry("ids_search")
ENTRIES = (_MARK, _COUNT, _FLAGS, _LIST, _NUMBER, _FLAG_FIRST, _TAKE_FIRST, _SEARCH)


def renumber(columns: list[Array], dtype: np.dtype) -> tuple[Array, list[Array]]:
    """Replace integer ids by their ranks among all ids of all columns: their vertex numbers.

    ``columns`` are CuPy arrays of any integer types, such as the two ends of edges. Return the ids,
    ascending and without duplicates, and for each column an array of the ranks of its ids, of the
    type ``dtype``.
    """
    # One type that holds the ids of all columns.
    kind = np.result_type(*(column.dtype for column in columns))
    columns = [cp.ascontiguousarray(column.astype(kind, copy=False)) for column in columns]
    occupied = [column for column in columns if column.size]
    if not occupied:
        return cp.zeros(0, kind), [cp.zeros(0, dtype) for _ in columns]
    extents = [extent(column) for column in occupied]  # the smallest and the largest id of each
    lowest = min(low for low, _ in extents)
    span = max(high for _, high in extents) - lowest + 1

    # Few gaps between the ids: a table over all numbers in their range is the fastest. ``n_ids``
    # counts repeated ids, too: the table has at most 4 bytes per element of the columns, and 1,024
    # more. The kernels count its places in int64.
    n_ids = sum(column.size for column in columns)
    if span <= 4 * n_ids + 1024 and lowest + span <= np.iinfo(np.int64).max:
        return _renumber_by_table(columns, dtype, kind, lowest, span)
    # Else sort. Each column without its duplicates first, so that less is sorted at once.
    ids = _sort_distinct(_concatenate([_sort_distinct(column) for column in occupied]))
    return ids, [_number_by_search(column, ids, dtype) for column in columns]


def _renumber_by_table(
    columns: list[Array], dtype: np.dtype, kind: np.dtype, lowest: int, span: int
) -> tuple[Array, list[Array]]:
    """Return what ``renumber`` does, by a table over all integers from the lowest id to the
    highest.

    ``kind`` is the type of the ids, ``lowest`` the lowest id, and ``span`` the number of integers
    in the table.
    """
    present = cp.zeros(span, np.uint8)  # 1 for an integer that is an id
    counter = cp.zeros(1, np.int64)
    first = np.int64(lowest)  # the integer of the first place of the table
    for column in columns:
        launch(kernel(_MARK, dtype), column.size, (*_id_arguments(column), first, present))
    launch(kernel(_COUNT, dtype), span, (present, np.int64(span), counter))
    n_ids = int(counter.get()[0])

    # By integer of the table, how many ids are not above it. An id has a vertex number 1 less.
    # Without gaps the number is the distance from the lowest id, and no ranks are needed.
    ranks = None
    if n_ids < span:
        flags = cp.empty(span, dtype)
        launch(kernel(_FLAGS, dtype), span, (present, np.int64(span), flags))
        ranks = cp.cumsum(flags, dtype=dtype)
        del flags

    ids = cp.empty(n_ids, kind)
    list_args = (present, ranks, np.int64(span), first, _type_code(kind), ids.view(np.uint8))
    launch(kernel(_LIST, dtype), span, list_args)
    if ranks is None and lowest == 0 and kind == dtype:  # numbers already: no copy of the edge list
        return ids, columns
    return ids, [_number_by_table(column, first, ranks, dtype) for column in columns]


def _number_by_table(column: Array, lowest: np.int64, ranks: Array, dtype: np.dtype) -> Array:
    """Return the vertex numbers of the ids of a column, of the type ``dtype``.

    ``ranks`` has, for each integer from ``lowest``, the lowest id, on, how many ids are not above
    it: 1 more than the vertex number. It is None if all these integers are ids, so that numbers
    follow from the ids alone.
    """
    numbers = cp.empty(column.size, dtype)
    launch(kernel(_NUMBER, dtype), column.size, (*_id_arguments(column), lowest, ranks, numbers))
    return numbers


def _number_by_search(column: Array, ids: Array, dtype: np.dtype) -> Array:
    """Return the vertex numbers of the ids of a column, of the type ``dtype``: their positions in
    ``ids``, which holds all ids, ascending.
    """
    numbers = cp.empty(column.size, dtype)
    table = (ids.view(np.uint8), np.int64(ids.size))
    launch(kernel(_SEARCH, dtype), column.size, (*_id_arguments(column), *table, numbers))
    return numbers


def _sort_distinct(values: Array) -> Array:
    """Return integers in ascending order, without duplicates; there must be at least one."""
    ordered = cp.sort(values)
    # 1 for the first of equal values: the sum of the flags up to it is its place, counted from 1
    flags = cp.empty(ordered.size, np.int64)
    launch(kernel(_FLAG_FIRST, np.int32), ordered.size, (*_id_arguments(ordered), flags))
    places = cp.cumsum(flags)
    del flags  # to free its memory before the result is allocated
    distinct = cp.empty(int(places[-1:].get()[0]), values.dtype)
    memory, size, kind = _id_arguments(ordered)
    launch(
        kernel(_TAKE_FIRST, np.int32),
        ordered.size,
        (memory, places, size, kind, distinct.view(np.uint8)),
    )
    return distinct


def _concatenate(arrays: list[Array]) -> Array:
    """Return the elements of arrays of one type in one array, one array after the other.

    CuPy's ``concatenate`` compiles a kernel, and copying memory does not.
    """
    joined = cp.empty(sum(array.size for array in arrays), arrays[0].dtype)
    begin = 0
    for array in arrays:
        copy_into(joined[begin : begin + array.size], array)
        begin += array.size
    return joined


def _id_arguments(column: Array) -> tuple[Any, ...]:
    """Return the three arguments by which kernels take an array of any integer type: its bytes, its
    number of elements, and the code of its type.
    """
    return column.view(np.uint8), np.int64(column.size), _type_code(column.dtype)


def _type_code(kind: np.dtype) -> np.int32:
    """Return the code of an integer type by which kernels know it (any_integer.cuh): its size in
    bytes, negative if it is signed.
    """
    return np.int32(-kind.itemsize if kind.kind == "i" else kind.itemsize)
