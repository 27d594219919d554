"""Edge arrays to CSR on the CPU: count, scatter, sort each adjacency list, keep the cheapest of
parallel edges.

The offsets serve as cursors while edges are scattered, and only one long adjacency list per thread
is copied to sort it, so that little memory is used beside the edge list and the CSR.

With a ``scratch`` (``runtime.scratch``) all arrays as long as the edge list are in files. Each is
passed over in order, but for those that edges are scattered into: that is done for as many vertices
at a time as have edges that fit into memory.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np

from .._arrays import iter_slices
from . import threads
from .atomics import atomic_add, atomic_min
from .compiled import njit
from .edges import Edges

# in place of weights, as floats and as the integers of their bits, where there are none
_NO_WEIGHTS = np.zeros(0, np.float32)
_NO_BITS = np.zeros(0, np.uint32)
_COUNTED_AT_ONCE = 1 << 26  # targets of a slice that ``transpose`` counts
_BLOCKS = 256  # blocks of vertices; a thread sorts the adjacency lists of one at a time
_FIRST = 1 << 10  # edges at the beginning whose order says whether to try to build in one pass
_SHORT_LIST = 32  # edges up to which insertion sort is faster than radix sort
_DIGIT_BITS = 8  # bits of a digit of a radix sort
_DIGIT_VALUES = 1 << _DIGIT_BITS


@njit(cache=True)
def _count_edges(src, dst, offsets, both_ways):
    """Write where the adjacency list of each vertex begins to ``offsets``, and return the number of
    self-loops, which are in no list.

    ``src`` and ``dst`` are vertex numbers of shape (n_rows,). ``offsets``, int64 of shape
    (n_vertices + 1,), are 0 before. With ``both_ways`` each edge is in two lists.
    """
    # Count the edges of each vertex one place further, so that the running sum is where it begins.
    self_loops = 0
    for i in range(src.size):
        u = src[i]
        v = dst[i]
        if u == v:
            self_loops += 1
            continue
        offsets[u + 1] += 1
        if both_ways:
            offsets[v + 1] += 1

    for v in range(offsets.size - 1):
        offsets[v + 1] += offsets[v]
    return self_loops


@njit(cache=True)
def _scatter(src, dst, weight, edges, both_ways, first, end):
    """Store every edge of the vertices ``first`` to ``end - 1`` in the adjacency list of its
    source.

    ``src``, ``dst`` and ``weight`` are the rows of the edge list. ``edges`` is the CSR, whose
    offsets serve as cursors: each one moves to the end of its adjacency list and is set back
    afterwards. Its weights are of shape (0,) without weights; otherwise ``weight`` has that of each
    row. With ``both_ways`` a row is also an edge from ``dst`` to ``src``. Self-loops are left out.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    begin = offsets[first]
    for i in range(src.size):
        u = src[i]
        v = dst[i]
        if u == v:
            continue
        if first <= u < end:
            place = offsets[u]
            offsets[u] += 1
            targets[place] = v
            if weights.size:
                weights[place] = weight[i]

        if both_ways and first <= v < end:
            place = offsets[v]
            offsets[v] += 1
            targets[place] = u
            if weights.size:
                weights[place] = weight[i]

    # Each cursor is now where the list of the next vertex begins: move each by one place, that of
    # the last vertex first, since each is read before it is overwritten.
    for v in range(end - 1, first, -1):
        offsets[v] = offsets[v - 1]
    offsets[first] = begin


@njit(cache=True)
def _append_edges(src, dst, weight, offsets, targets, weights):
    """Count and scatter in one pass where edges come in the order of their sources, as in most
    files. Self-loops are left out.

    ``src``, ``dst`` and ``weight`` are the rows of the edge list. ``offsets``, ``targets`` and
    ``weights`` receive the CSR; they have places for all rows, but ``weights`` has shape (0,)
    without weights. Return the number of edges stored, or -1 at the first edge out of order; and
    whether each adjacency list ascends, without parallel edges.
    """
    source = 0  # the vertex whose list is being written
    size = 0  # edges stored
    last = -1  # target of the last edge in this list, -1 while the list is empty
    ascending = True
    for i in range(src.size):
        u = src[i]
        v = dst[i]
        if u < source:
            return -1, False

        # The lists of all vertices before this source end here.
        while source < u:
            source += 1
            offsets[source] = size
            last = -1
        if u == v:
            continue

        ascending &= v > last
        last = v
        targets[size] = v
        if weights.size:
            weights[size] = weight[i]
        size += 1

    # The lists of the last source and of all vertices after it end here, too.
    for v in range(source + 1, offsets.size):
        offsets[v] = size
    return size, ascending


@njit(cache=True, nogil=True)
def _sort_adjacency_lists(next_block, n_blocks, offsets, targets, weights, counts):
    """Sort adjacency lists by target, except those longer than ``_SHORT_LIST`` that are out of
    order, which are left to ``_sort_long_lists``. That function takes longer to compile, and most
    graphs have no such list.

    ``offsets``, ``targets`` and ``weights`` are those of the CSR, which is sorted in place;
    ``weights`` has shape (0,) without weights. ``next_block`` is a counter from which each thread
    takes its next block of vertices, of ``n_blocks`` in all. ``counts``, int64 of shape (2,), is 0
    before: ``counts[0]`` becomes the number of edges that are parallel to the edge before, and
    ``counts[1]`` the number of edges of the longest list that is left, negated, since there is an
    atomic minimum only.
    """
    n = offsets.size - 1
    block = atomic_add(next_block, 0, 1)
    while block < n_blocks:
        n_parallel = longest = 0
        for v in range(n * block // n_blocks, n * (block + 1) // n_blocks):
            begin = offsets[v]
            end = offsets[v + 1]
            is_short = end - begin <= _SHORT_LIST
            parallel = 0

            # Insertion sort: what stands before i is sorted.
            i = begin + 1
            while i < end:
                u = targets[i]
                j = i
                if targets[i - 1] > u:
                    if not is_short:
                        break
                    weight = weights[i] if weights.size else weights.dtype.type(0)
                    while j > begin and targets[j - 1] > u:
                        targets[j] = targets[j - 1]
                        if weights.size:
                            weights[j] = weights[j - 1]
                        j -= 1
                    targets[j] = u
                    if weights.size:
                        weights[j] = weight
                parallel += j > begin and targets[j - 1] == u  # equal targets are adjacent now
                i += 1

            if i < end:  # long, and out of order
                longest = min(longest, begin - end)
            else:
                n_parallel += parallel
        atomic_add(counts, 0, n_parallel)
        atomic_min(counts, 1, longest)
        block = atomic_add(next_block, 0, 1)


@njit(cache=True, nogil=True)
def _sort_long_lists(next_block, n_blocks, edges, counts, sorted_targets, sorted_weights, starts):
    """Sort the lists that ``_sort_adjacency_lists`` leaves, by radix sort from the lowest digit.

    ``edges`` is the CSR. ``sorted_targets`` and ``sorted_weights`` are scratch of the thread with
    room for the longest list, and ``starts``, int64, with a place for each value of a digit; all
    three hold anything before. ``counts[0]`` is increased by the number of edges that are parallel
    to the edge before. Threads take blocks of vertices from the counter ``next_block``, until it is
    ``n_blocks``.
    """
    offsets = edges.offsets
    targets = edges.targets
    weights = edges.weights
    n = offsets.size - 1
    block = atomic_add(next_block, 0, 1)
    while block < n_blocks:
        parallel = 0
        for v in range(n * block // n_blocks, n * (block + 1) // n_blocks):
            begin = offsets[v]
            end = offsets[v + 1]
            if end - begin <= _SHORT_LIST:
                continue

            # The largest target, which says how many digits there are, and whether the list ascends
            # already.
            largest = np.int64(0)
            is_sorted = True
            for e in range(begin, end):
                is_sorted &= largest <= targets[e]
                largest = targets[e] if targets[e] > largest else largest
            if is_sorted:
                continue

            # Each pass places the edges by one digit, and copies them back.
            shift = 0
            while largest >> shift:
                for digit in range(_DIGIT_VALUES):
                    starts[digit] = 0
                for e in range(begin, end):
                    starts[(targets[e] >> shift) & (_DIGIT_VALUES - 1)] += 1

                # Numbers of edges per digit become the places where those of each digit begin.
                place = 0
                for digit in range(_DIGIT_VALUES):
                    size = starts[digit]
                    starts[digit] = place
                    place += size

                for e in range(begin, end):
                    digit = (targets[e] >> shift) & (_DIGIT_VALUES - 1)
                    place = starts[digit]
                    starts[digit] += 1
                    sorted_targets[place] = targets[e]
                    if weights.size:
                        sorted_weights[place] = weights[e]

                for e in range(begin, end):
                    targets[e] = sorted_targets[e - begin]
                    if weights.size:
                        weights[e] = sorted_weights[e - begin]
                shift += _DIGIT_BITS

            for e in range(begin + 1, end):
                parallel += targets[e] == targets[e - 1]
        atomic_add(counts, 0, parallel)
        block = atomic_add(next_block, 0, 1)


@njit(cache=True)
def _merge_parallel_edges(offsets, targets, weights):
    """Keep the cheapest of each set of parallel edges of sorted adjacency lists and close the gaps,
    in place.

    ``offsets``, ``targets`` and ``weights`` are those of the CSR; ``weights`` has shape (0,)
    without weights. The number of edges that remain is the last offset. Places behind these hold
    nothing.
    """
    size = 0  # edges that remain
    begin = 0  # where the list began before; its offset is overwritten
    for v in range(offsets.size - 1):
        end = offsets[v + 1]
        offsets[v] = size
        for e in range(begin, end):
            if size > offsets[v] and targets[size - 1] == targets[e]:
                if weights.size:
                    weights[size - 1] = min(weights[size - 1], weights[e])
                continue
            targets[size] = targets[e]
            if weights.size:
                weights[size] = weights[e]
            size += 1
        begin = end
    offsets[offsets.size - 1] = size


def assemble(src, dst, weight, n_vertices: int, both_ways: bool = False, scratch=None):
    """Build the CSR of an edge list, in which each adjacency list ascends and has no parallel
    edges.

    Parameters
    ----------
    src, dst : integer arrays of shape (n_rows,)
        Vertex numbers of the two ends of each row.
    weight : array of shape (n_rows,), or None
    n_vertices : int
    both_ways : bool
        Whether each row is also an edge from ``dst`` to ``src``.
    scratch : runtime.scratch.Scratch, optional
        Where long arrays are kept in files, and the memory that work on them may take. Default: all
        arrays are in memory.

    Returns
    -------
    offsets : int64 array of shape (n_vertices + 1,)
    targets : array of the type of ``src``
    weights : array of the type of ``weight``, or None
        The smallest weight of each set of parallel edges.
    n_self_loops, n_parallel : int
        Rows that were left out as self-loops, and edges that were left out as parallel. With
        ``both_ways``, a parallel edge counts once per direction.
    """
    # Weights are moved as integers of the same bits. ``total`` is the number of edges stored, -1
    # until they are; ``ascending`` says that the lists need no sorting. ``empty`` makes arrays as
    # ``numpy.empty`` does, in files if there is a ``scratch``.
    empty = _empty_like(scratch)
    offsets = np.zeros(n_vertices + 1, np.int64)
    src = read_only(src)
    dst = read_only(dst)
    bits = read_only(_as_bits(weight))
    total = -1
    ascending = False

    # One pass, if edges are in order. Their first ones are looked at, since most edge lists that
    # are not in order are out of order from the beginning.
    head = src[:_FIRST]
    if not both_ways and (head[1:] >= head[:-1]).all():
        targets = empty(src.size, src.dtype)
        target_bits = empty(bits.size, bits.dtype)
        total, ascending = _append_edges(src, dst, bits, offsets, targets, target_bits)
        self_loops = src.size - total

    # Else count and scatter: without files all vertices at once.
    if total < 0:
        # ``_append_edges`` may have written offsets before it met an edge out of order.
        offsets[:] = 0
        self_loops = _count_edges(src, dst, offsets, both_ways)
        total = int(offsets[-1])
        # Free the arrays of ``_append_edges``, if it was tried, before others are allocated.
        targets = target_bits = None
        targets = empty(total, src.dtype)
        target_bits = empty(total if bits.size else 0, bits.dtype)

        # In files, the edges of so many vertices at a time as half of the memory holds.
        if scratch is None:
            at_once = total
        else:
            at_once = scratch.memory // 2 // (src.itemsize + (bits.itemsize if bits.size else 0))
        edges = Edges(offsets, targets, target_bits)
        end = 0
        while end < n_vertices:
            # As many vertices as have ``at_once`` edges or fewer, one at least.
            first = end
            beyond = offsets[end] + at_once
            end = max(first + 1, int(np.searchsorted(offsets, beyond, side="right")) - 1)
            _scatter(src, dst, bits, edges, both_ways, first, end)

    # Sort the lists, first those that are short or sorted already.
    counts = np.zeros(2, np.int64)
    if not ascending:
        n_blocks = min(n_vertices, _BLOCKS)
        threads.run(_sort_adjacency_lists, n_blocks, offsets, targets, target_bits, counts)
        if counts[1]:
            n = threads.count()  # each of them sorts in memory of its own
            longest = -int(counts[1])
            scratch_of_threads = (
                empty(n * longest, src.dtype).reshape(n, longest),
                empty(n * longest, bits.dtype).reshape(n, longest),
                np.empty((n, _DIGIT_VALUES), np.int64),
            )
            edges = Edges(offsets, targets, target_bits)
            threads.run(_sort_long_lists, n_blocks, edges, counts, own=scratch_of_threads)

    # Merge parallel edges. Weights are compared as such, and not as bits. Arrays are cut before
    # they are viewed: one with views is not resized.
    parallel = int(counts[0])
    if parallel:
        compared = _NO_WEIGHTS if weight is None else target_bits.view(weight.dtype)
        _merge_parallel_edges(offsets, targets, compared)
        del compared
    if targets.size > total - parallel:
        targets = _shorten(targets, total - parallel)
        if target_bits.size:
            target_bits = _shorten(target_bits, total - parallel)
    weights = None if weight is None else target_bits.view(weight.dtype)
    return offsets, targets, weights, int(self_loops), parallel


def in_files(scratch):
    """Return an object with the functions of ``protocols.CsrBackend``, of which ``assemble`` and
    ``renumber`` keep their long arrays in files of ``scratch``, a ``runtime.scratch.Scratch``.
    """
    builders = {build.__name__: partial(build, scratch=scratch) for build in (assemble, renumber)}
    return SimpleNamespace(**builders, count_isolated=count_isolated, transpose=transpose)


def _empty_like(scratch):
    """Return the function that makes arrays, as ``numpy.empty`` does: in files if there is a
    ``scratch``, in memory if it is None.
    """
    return np.empty if scratch is None else scratch.empty


def _shorten(array, size):
    """Return the first ``size`` elements of an array. In memory the array itself is cut, so that
    the rest is freed; of an array in a file a view is returned.
    """
    if array.base is not None:  # in a file
        return array[:size]
    array.resize(size, refcheck=False)
    return array


def filled(convert, array, dtype, scratch=None):
    """Return ``convert(array)`` as an array of ``dtype``, in a file if there is a ``scratch``.

    ``convert`` takes a slice of the array and returns as many elements. It is called slice by
    slice, so that its temporary arrays are small.
    """
    result = _empty_like(scratch)(array.size, dtype)
    for first, part in iter_slices(array):  # where each slice begins, and the slice
        result[first : first + part.size] = convert(part)
    return result


def read_only(array):
    """Return a read-only view of an array. Numba compiles a function for read-only and for writable
    arrays separately; with views it does so once.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def _as_bits(weights):
    """Return weights as unsigned integers of the same bits, an array of shape (0,) for None, so
    that code that only moves them is compiled once per width.
    """
    if weights is None:
        return _NO_BITS
    return weights.view(f"u{weights.itemsize}")


def count_isolated(offsets, targets, directed: bool) -> int:
    """Return the number of vertices without an edge, of either direction.

    In an undirected graph each edge is stored at both ends, so that the offsets show it. In a
    directed graph ``targets`` are read, too, for vertices that edges only lead to.
    """
    touched = (offsets[1:] != offsets[:-1]).view(np.uint8)  # per vertex, 1 if it has an edge
    if directed:
        _mark(read_only(targets), 0, touched)
    return touched.size - int(np.count_nonzero(touched))


@njit(cache=True)
def _fill_reverse(offsets, targets, weights, cursor, sources, reverse_weights):
    """Write the CSR of the reversed edges: to ``sources`` the tails of the edges into each vertex,
    and to ``reverse_weights`` the weights of these edges.

    ``offsets``, ``targets`` and ``weights`` are those of the graph; ``weights`` has shape (0,)
    without weights. ``cursor``, int64 of shape (n_vertices,), has the place where the edges into
    each vertex begin; it is changed.
    """
    for u in range(offsets.size - 1):
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            place = cursor[v]
            cursor[v] += 1
            sources[place] = u
            if weights.size:
                reverse_weights[place] = weights[e]


def transpose(offsets, targets, weights):
    """Return the CSR of the reversed edges: offsets, targets and weights, None without weights.

    ``offsets``, ``targets`` and ``weights`` are those of the graph; ``weights`` may be None. The
    adjacency lists of the result ascend because the vertices are visited in order.
    """
    reverse_offsets = np.zeros(offsets.size, np.int64)
    # Slice by slice, since ``bincount`` widens what it counts.
    for first in range(0, targets.size, _COUNTED_AT_ONCE):
        counted = targets[first : first + _COUNTED_AT_ONCE]
        reverse_offsets[1:] += np.bincount(counted, minlength=offsets.size - 1)
    np.cumsum(reverse_offsets, out=reverse_offsets)

    sources = np.empty_like(targets)
    reverse_weights = None if weights is None else np.empty_like(weights)
    _fill_reverse(
        offsets,
        targets,
        _as_bits(weights),
        reverse_offsets[:-1].copy(),
        sources,
        _as_bits(reverse_weights),
    )
    return reverse_offsets, sources, reverse_weights


@njit(cache=True)
def _mark(ids, lowest, present):
    """Set ``present`` to 1 at the place of each id: ``id - lowest``."""
    for i in range(ids.size):
        present[ids[i] - lowest] = 1


@njit(cache=True)
def _look_up(ids, lowest, rank, numbers):
    """Write the vertex number of each id to ``numbers``: ``rank[id - lowest]``."""
    for i in range(ids.size):
        numbers[i] = rank[ids[i] - lowest]


def renumber(columns, dtype, scratch=None):
    """Replace integer ids by their ranks among all ids of all columns.

    Parameters
    ----------
    columns : list of integer arrays
    dtype : numpy.dtype
        The type of the ranks.
    scratch : runtime.scratch.Scratch, optional
        Where the ranks are kept in files, and the memory that the ids may take.

    Returns
    -------
    ids : integer array
        All ids, ascending and without duplicates.
    ranks : list of arrays of ``dtype``
        The rank of each id of each column, from 0.
    """
    kind = np.result_type(*columns)
    occupied = [column for column in columns if column.size]
    if not occupied:
        return np.zeros(0, kind), [np.zeros(0, dtype) for _ in columns]
    lowest = min(int(column.min()) for column in occupied)
    span = max(int(column.max()) for column in occupied) - lowest + 1

    # Three cases. Few gaps between the ids: an array over all numbers in their range is the
    # fastest, with (the second case) or without gaps (the first). The range may be a few times as
    # long as the columns, and indices from ``lowest`` on must not overflow.
    n_ids = sum(column.size for column in columns)
    if span <= 4 * n_ids + 1024 and lowest + span <= np.iinfo(np.int64).max:
        if scratch is not None:
            # Per number of the range: its mark, its rank, and its id before and after the cast.
            # ``require`` raises CapacityError if these bytes exceed the limit of memory.
            bytes_per_id = 1 + np.dtype(dtype).itemsize + 2 * kind.itemsize
            scratch.require(span * bytes_per_id, "the ids of the vertices")
        present = np.zeros(span, np.uint8)
        for column in columns:
            _mark(read_only(column), lowest, present)
        if present.all():
            ids = np.arange(lowest, lowest + span, dtype=kind)
            # Ids that are numbers already are taken as they are: no copy of the edge list.
            return ids, [
                column
                if lowest == 0 and column.dtype == dtype
                else filled(
                    lambda part: part.astype(np.int64, copy=False) - lowest, column, dtype, scratch
                )
                for column in columns
            ]

        # The rank of an id is how many ids are smaller.
        ids = (np.flatnonzero(present) + lowest).astype(kind)
        rank = np.cumsum(present, dtype=dtype)
        rank -= 1
        numbers = [_empty_like(scratch)(column.size, dtype) for column in columns]
        for column, number in zip(columns, numbers, strict=True):
            _look_up(read_only(column), lowest, rank, number)
        return ids, numbers

    # Many gaps, the third case: sort the ids, and find each id by bisection.
    ids = _find_distinct(columns, kind, scratch)
    return ids, [
        filled(lambda part: np.searchsorted(ids, part), column, dtype, scratch)
        for column in columns
    ]


def _find_distinct(columns, kind, scratch):
    """Return the distinct values of some columns, ascending, in the type ``kind``.

    The columns are read slice by slice. The distinct values of slices are collected until they are
    more than the distinct values so far, and then merged with these. So memory is needed for a few
    times the distinct values, and not for all values of the columns. ``scratch`` limits this
    memory, with CapacityError; None sets no limit.
    """
    distinct = np.zeros(0, kind)
    waiting = []  # the distinct values of slices that are not merged yet

    parts = [part for column in columns for _, part in iter_slices(column)]
    for i, part in enumerate(parts):
        waiting.append(_sort_distinct(part).astype(kind, copy=False))
        if sum(each.size for each in waiting) > distinct.size or i == len(parts) - 1:
            # Four times: these values, one array of all, its sorted copy, and the distinct ones.
            if scratch is not None:
                scratch.require(
                    4 * sum(each.nbytes for each in [distinct, *waiting]), "the ids of the vertices"
                )
            distinct = _sort_distinct(np.concatenate([distinct, *waiting]))
            waiting = []
    return distinct


def _sort_distinct(values):
    """Return the distinct values of an array of integers, ascending.

    ``numpy.unique`` makes a hash table of integers, and takes about five times as long.
    """
    values = np.sort(values)
    if values.size:
        return values[np.concatenate([[True], values[1:] != values[:-1]])]
    return values
