"""Blocks of many sources checked on the CPU; see ``many`` for what is checked. The twin of ``many_gpu``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numba import njit, prange

from .._arrays import LARGEST_HOP_COUNT, UNREACHED
from .cpu import chunks_of
from .many import C1, C2, C3, C4, C5, LINE, NOTHING, bound, leads_farther

FEW = (8, 16)  # sources that take no whole line


class Checker:
    """Checks blocks of sources of one graph.

    Parameters
    ----------
    graph : Graph
        On the CPU. Its reverse is made if it is not there yet.
    limit : float or None
        Up to where the distances are complete.
    """

    def __init__(self, graph, limit):
        self._graph, self._limit = graph, limit

    def summaries(self, blocks) -> Iterator[tuple[int, np.ndarray]]:
        """Yield for each block its size, and for each rule how often it is broken, source and vertex of an example.

        C3 to C5 are looked at only where C1 and C2 hold.
        """
        for sources, rows, kind in blocks:
            yield len(rows), _check_block(self._graph, sources, rows, kind, self._limit)


def _check_block(graph, sources, distances, kind, limit) -> np.ndarray:
    """Check as many sources as fit one line; C3 to C5 only where C1 and C2 hold."""
    summary = NOTHING.copy()
    summary[C2] = _out_of_range(distances, limit, graph.has_negative_weights)
    wrong = np.flatnonzero(distances[np.arange(len(sources)), sources] != 0)
    if wrong.size:
        summary[C1] = wrong.size, wrong[0], sources[wrong[0]]
    if summary[:, 0].any():
        return summary
    reverse = graph.reverse
    lanes = next((few for few in FEW if len(sources) <= few), LINE // kind.itemsize)
    bounds = chunks_of(reverse.offsets)
    found = np.zeros((bounds.size - 1, 5, 3), np.int64)
    keys = np.empty((graph.n_vertices, lanes), kind)
    unreached = np.iinfo(kind).max if kind.kind == "u" else np.inf
    _KERNELS["lay_out", lanes](distances, kind.type(unreached), bounds, keys)
    source_of = np.full(lanes, -1, np.int64)
    source_of[: len(sources)] = sources
    state = (keys, bound(limit, kind), source_of, bounds, found)
    if kind.kind == "u":
        _KERNELS["hops", lanes](reverse.offsets, reverse.targets, *state)
        return _summed(found)
    if not graph.n_edges or leads_farther(graph.least_weight, _farthest(distances)):
        _KERNELS["weighted", lanes](*_csr(reverse), *state)
        return _summed(found)
    unfounded = np.zeros(graph.n_vertices, np.uint16)
    _KERNELS["level", lanes](*_csr(reverse), *state, graph.has_negative_weights, unfounded)
    summary = _summed(found)
    _found(*_csr(reverse), *_csr(graph), keys, unfounded)
    lost = np.flatnonzero(unfounded)
    if lost.size:
        bits = int(unfounded[lost[0]])
        summary[C5] = int(np.bitwise_count(unfounded).sum()), (bits & -bits).bit_length() - 1, lost[0]
    return summary


def _out_of_range(distances, limit, negative: bool) -> tuple[int, int, int]:
    """How many distances can be none (C2), and source and vertex of one."""
    if distances.dtype.kind == "i":
        sound = distances.min(initial=UNREACHED) >= UNREACHED
    else:  # the bits of what is negative, -0.0 too, are those of a negative integer; the largest is NaN if one is
        sound = not negative and distances.view(f"i{distances.itemsize}").min(initial=0) >= 0
        sound &= not np.isnan(distances.max(initial=0))
    if sound and limit is None:
        return 0, 0, 0
    count, lane, vertex = 0, 0, 0
    for i, row in enumerate(distances):
        if row.dtype.kind == "i":
            bad = (row < UNREACHED) | (row > (LARGEST_HOP_COUNT if limit is None else limit))
        else:
            bad = ~(row <= bound(limit, row.dtype)) & (row != np.inf)
            bad |= np.signbit(row) & ~(negative & (-np.inf < row) & (row < 0))  # no sum of weights is -0.0
        if not count and bad.any():
            lane, vertex = i, int(bad.argmax())
        count += int(bad.sum())
    return count, lane, vertex


def _farthest(distances):
    """The largest finite distance, 0 at least, in their type."""
    return max(np.max(row, where=row != np.inf, initial=0) for row in distances)


def _csr(graph) -> tuple:
    return graph.offsets, graph.targets, graph.weights


def _summed(found) -> np.ndarray:
    """Add the findings of all chunks; the example is that of the first chunk with any."""
    summary = NOTHING.copy()
    for rule in (C2, C3, C4):
        chunks = np.flatnonzero(found[:, rule, 0])
        if chunks.size:
            summary[rule] = found[:, rule, 0].sum(), *found[chunks[0], rule, 1:]
    return summary


@njit
def _note(found, c, rule, lane, v):
    if found[c, rule, 0] == 0:
        found[c, rule, 1], found[c, rule, 2] = lane, v
    found[c, rule, 0] += 1


def _kernels(lanes: int):
    """The passes over the edges for so many sources at once, a constant that lets the compiler make vectors of them."""

    @njit(parallel=True, cache=True)
    def lay_out(distances, unreached, bounds, keys):
        """Put the distances of a vertex side by side; -1 becomes the largest number, so the unreached are the farthest."""
        rows = distances.shape[0]
        for c in prange(bounds.size - 1):
            if rows == lanes:
                for v in range(bounds[c], bounds[c + 1]):
                    for lane in range(lanes):
                        keys[v, lane] = distances[lane, v]
            else:
                for v in range(bounds[c], bounds[c + 1]):
                    for lane in range(lanes):
                        keys[v, lane] = distances[lane, v] if lane < rows else unreached

    @njit(parallel=True, cache=True)
    def hops(offsets, neighbours, keys, limit, source_of, bounds, found):
        unreached = ~keys.dtype.type(0)
        for c in prange(bounds.size - 1):
            best = np.empty(lanes, keys.dtype)
            for v in range(bounds[c], bounds[c + 1]):
                best[:] = unreached
                row = neighbours[offsets[v] : offsets[v + 1]]
                whole = row.size // 4 * 4
                for i in range(0, whole, 4):  # four at a time, as the best so far goes through memory
                    u0, u1, u2, u3 = np.uint64(row[i]), np.uint64(row[i + 1]), np.uint64(row[i + 2]), np.uint64(row[i + 3])
                    for lane in range(lanes):
                        left, right = min(keys[u0, lane], keys[u1, lane]), min(keys[u2, lane], keys[u3, lane])
                        best[lane] = min(best[lane], min(left, right))
                for i in range(whole, row.size):
                    u = np.uint64(row[i])
                    for lane in range(lanes):
                        best[lane] = min(best[lane], keys[u, lane])
                wrong = 0
                for lane in range(lanes):
                    best[lane] += keys.dtype.type(best[lane] != unreached)
                    wrong += best[lane] != keys[v, lane]
                if wrong:
                    for lane in range(lanes):
                        _compare(found, c, lane, v, keys[v, lane], best[lane], limit, source_of)

    @njit(parallel=True, cache=True)
    def weighted(offsets, neighbours, weights, keys, limit, source_of, bounds, found):
        unreached = keys.dtype.type(np.inf)
        for c in prange(bounds.size - 1):
            best = np.empty(lanes, keys.dtype)
            for v in range(bounds[c], bounds[c + 1]):
                best[:] = unreached
                for e in range(offsets[v], offsets[v + 1]):
                    u, step = np.uint64(neighbours[e]), weights[e]
                    for lane in range(lanes):
                        best[lane] = min(best[lane], keys[u, lane] + step)
                wrong = 0
                for lane in range(lanes):
                    wrong += best[lane] != keys[v, lane]
                if wrong:
                    for lane in range(lanes):
                        _compare(found, c, lane, v, keys[v, lane], best[lane], limit, source_of)

    @njit(parallel=True, cache=True)
    def level(offsets, neighbours, weights, keys, limit, source_of, bounds, found, negative, unfounded):
        """As ``weighted``, and note a bit a source for vertices that no strictly nearer one explains."""
        unreached = keys.dtype.type(np.inf)
        for c in prange(bounds.size - 1):
            best, nearer = np.empty(lanes, keys.dtype), np.empty(lanes, keys.dtype)
            for v in range(bounds[c], bounds[c + 1]):
                best[:] = unreached
                nearer[:] = unreached
                for e in range(offsets[v], offsets[v + 1]):
                    u, step = np.uint64(neighbours[e]), weights[e]
                    for lane in range(lanes):
                        through = keys[u, lane] + step
                        best[lane] = min(best[lane], through)
                        nearer[lane] = min(nearer[lane], through if keys[u, lane] < keys[v, lane] else unreached)
                for lane in range(lanes):
                    _compare(found, c, lane, v, keys[v, lane], best[lane], limit, source_of)
                    # Negative steps lead to vertices strictly farther than the next one, too: there all are in question.
                    if v != source_of[lane] and keys[v, lane] != np.inf and (negative or nearer[lane] != keys[v, lane]):
                        unfounded[v] |= np.uint16(1 << lane)

    return {"lay_out": lay_out, "hops": hops, "weighted": weighted, "level": level}


_KERNELS = {(name, lanes): kernel for lanes in (8, 16, 32, 64) for name, kernel in _kernels(lanes).items()}


@njit
def _compare(found, c, lane, v, here, best, limit, source_of):
    """Note a vertex whose distance is not the best that its in-neighbours allow."""
    if v == source_of[lane]:
        if best < here:
            _note(found, c, C3, lane, v)
    elif here > best:
        if best <= limit:
            _note(found, c, C3, lane, v)
    elif here < best:
        _note(found, c, C4, lane, v)


@njit(cache=True)
def _found(in_offsets, sources, in_weights, offsets, targets, weights, keys, unfounded):
    """Take the bits from all vertices that a chain of exact edges joins to one without."""
    waiting = 0
    for v in range(unfounded.size):
        for lane in range(keys.shape[1]):
            waiting += (unfounded[v] >> lane) & 1
    queue = np.empty((waiting, 2), np.int64)
    size = at = 0
    for v in range(unfounded.size):
        for e in range(in_offsets[v], in_offsets[v + 1] if unfounded[v] else in_offsets[v]):
            u = sources[e]
            for lane in range(keys.shape[1]):
                bit = np.uint16(1 << lane)
                exact = keys[u, lane] + in_weights[e] == keys[v, lane]
                if unfounded[v] & bit and not unfounded[u] & bit and exact:
                    unfounded[v] ^= bit
                    queue[size, 0], queue[size, 1] = v, lane
                    size += 1
    while at < size:
        u, lane = queue[at, 0], queue[at, 1]
        at += 1
        bit = np.uint16(1 << lane)
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if unfounded[v] & bit and keys[u, lane] + weights[e] == keys[v, lane]:
                unfounded[v] ^= bit
                queue[size, 0], queue[size, 1] = v, lane
                size += 1
