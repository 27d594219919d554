"""Quantiles of the values at the vertices that each of many sources reaches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .atomics import atomic_add
from .compiled import njit

CHUNK = 64  # sources that a thread takes at a time
_CAPACITY = 256  # values of a source for which there is memory at first


class Reached(NamedTuple):
    """The vertices that some sources reach."""

    # int64 array of shape (k + 1,): source i reaches vertices begins[i] to begins[i + 1] - 1
    begins: np.ndarray
    vertices: np.ndarray  # vertex numbers, one source after the other


class ValueLists(NamedTuple):
    """The values of each vertex."""

    # int64 array of shape (n_vertices + 1,): vertex v has values offsets[v] to offsets[v + 1] - 1
    offsets: np.ndarray
    values: np.ndarray


@njit(cache=True, nogil=True)
def find_quantiles(next_item, n_items, reached, lists, share, found):
    """Write a quantile of the values that each source reaches to ``found``, of shape (k,).

    Of n values in ascending order it is the value at position ``int(n * share)``, or the last one
    if that position is n. A source that reaches no value keeps what ``found`` has. ``reached`` are
    ``Reached``, and ``lists`` ``ValueLists``. An item is a chunk of ``CHUNK`` sources. Threads take
    items from the counter ``next_item``, until it is ``n_items``.
    """
    begins = reached.begins
    scratch = np.empty(_CAPACITY, lists.values.dtype)
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for i in range(item * CHUNK, min((item + 1) * CHUNK, begins.size - 1)):
            # Count the values of the source, and make room for them.
            size = 0
            for row in range(begins[i], begins[i + 1]):
                vertex = reached.vertices[row]
                size += lists.offsets[vertex + 1] - lists.offsets[vertex]
            if size > scratch.size:
                scratch = np.empty(2 * size, lists.values.dtype)

            # Copy the values, and sort them.
            last = 0
            for row in range(begins[i], begins[i + 1]):
                vertex = reached.vertices[row]
                for place in range(lists.offsets[vertex], lists.offsets[vertex + 1]):
                    scratch[last] = lists.values[place]
                    last += 1
            if size:
                values = scratch[:size]
                values.sort()
                found[i] = values[min(int(size * share), size - 1)]
