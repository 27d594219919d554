"""Bit-parallel multi-source BFS on the CPU: one bit per source in a bitset per vertex.

Then, Kaufmann, Chirigati, Hoang-Vu, Pham, Kemper, Neumann, Vo. The more the merrier: efficient
multi-source graph traversal. PVLDB 8(4), 2014 (MS-BFS). One pass over the edges serves all sources
of a group. Hop counts are stored as bit planes: plane j holds the sources whose hop count has bit
j. So a level takes as many operations per bitset as its number has ones. The planes become bytes
only when distances are written.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
from numba import prange

from ..._arrays import hops_dtype, sort_distinct
from ...cpu import threads
from ...cpu.atomics import atomic_add
from ...cpu.compiled import njit
from ...cpu.edges import Neighbors
from ...cpu.simd_bitsets import DIGITS, copy_row, count_row, is_full, or_row, take_new
from ...search.strategy import MultiSourceOutcome
from .. import cpu_steps
from ..tuning import BitParallelCpuTuning

WORD = 64
BITSET_WORDS = (1, 4, 8)  # eight words are one cache line
_PLANES = 8  # for hop counts up to 255; as many more at a time where a graph is deeper
# edges that a thread takes at a time, where a vertex counts as _VERTEX_WORK of them
_CHUNK_WORK = 8192
_VERTEX_WORK = 4
_CLEARED = 1 << 16  # bitsets that a thread clears at a time
_TILE = 64  # vertices whose distances are made of planes at a time
_COUNTED = 2**DIGITS - 1  # bitsets that the counters can add before they overflow
_DEFAULTS = BitParallelCpuTuning()


def group_size(n_sources: int) -> int:
    """Return how many sources are searched together.

    It is the number of bits of a bitset: of the smallest one that has a bit for each of
    ``n_sources``, or of the largest one.
    """
    words = next((words for words in BITSET_WORDS if n_sources <= words * WORD), BITSET_WORDS[-1])
    return words * WORD


def memory(shape, query, group: int) -> int:
    """Return the bytes of a run: three bitsets per vertex, the planes, two flags, lists, distances,
    and the reverse graph.

    ``shape`` is a ``Shape`` (size and depth of the graph), ``query`` a ``Query``, and ``group`` the
    number of sources that are searched together.
    """
    n = shape.n_vertices
    # Bytes per vertex: seen, front and found; and a plane for each bit of the largest hop count.
    bitsets = group // 8 * (3 + shape.depth.bit_length())
    if query.output == "all":
        distances = group * hops_dtype(shape.depth).itemsize
    else:
        distances = 0
    # Targets and offsets of the reversed graph. An undirected graph is its own reverse.
    if shape.directed:
        reverse = shape.n_edges * shape.index + 8 * n
    else:
        reverse = 0
    # 2: a byte for each of two flags. 2 * index: a frontier and the next one, as vertex numbers.
    return n * (bitsets + distances + 2 + 2 * shape.index) + reverse


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:
    """Return how much work all searches take, by terms of the cost model: one thread pushes a
    level, or all threads pull vertices that not all sources reached.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``shape`` is a
    ``Shape`` (size and depth of the graph), ``group`` the number of sources that are searched
    together, and ``machine`` a ``Machine`` (cores and speeds).
    """
    groups = -(-n_sources // group)
    words = group // WORD
    group_sources = min(group, n_sources)
    levels = groups * shape.likely_depth  # as many as the deepest search has
    # The mean share of the vertices in a frontier. By it, either all levels are pulled or none.
    frontier = shape.frontier_share(group_sources)
    pulled = levels * (frontier > 1 / _DEFAULTS.push_vertices)
    edges = shape.n_edges * shape.edge_share(group_sources)  # that some source of a group visits
    return {
        "start": groups,
        "reverse": shape.n_edges * shape.directed,  # edges of the reversed graph, which is built
        "level": levels,
        "share": (levels - pulled) * shape.n_edges * frontier,  # edges that one thread pushes
        # vertices and edges that each core visits in pulled levels
        "vertex": pulled * shape.n_vertices / machine.cores,
        "edge": pulled * edges / machine.cores,
        # bitsets that are read: those of all edges in each of six levels of a group, at most
        "row": min(pulled, 6 * groups) * edges * words / machine.cores,
        # distances that each core writes, where the query outputs those of all vertices
        "write": n_sources * shape.n_vertices / machine.cores * (shape.keep == "all"),
    }


def plan(graph, query, group: int):
    """Allocate the state of a group; return ``traverse(source_vertices, lists=None)``, which
    searches from up to ``group`` vertex numbers at once.

    ``graph`` is a ``Graph``, and ``query`` a ``Query``, the options of the search.
    """
    run = _Run(graph, group, query.get_tuning(BitParallelCpuTuning))

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome: a row per source of what
        ``query.output`` asks for, counts or distances, and predecessors if they are wanted.

        ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else None.
        If the query outputs distances at targets, those at the lists are one array, list after
        list.
        """
        rounds, depth, limit = run.search(sources, query, lists)
        k = len(sources)
        distance = counts = None
        if query.output == "counts":
            counts = run.counts(k, depth)
        else:
            columns = None  # all vertices; else vertex numbers, ascending and distinct
            if query.output == "targets":
                columns = query.targets if lists is None else lists.union()
            distance = run.distances(k, depth, columns)
            # Each source has distances at the targets of all sources; take those of its own list.
            if lists is not None and columns is not None:
                distance = lists.take(distance, columns)
        predecessor = cpu_steps.point_back(graph, query, np.asarray(sources), distance)
        return MultiSourceOutcome(distance, predecessor, [limit] * k, [rounds] * k, counts)

    return traverse


class _Bits(NamedTuple):
    """What the searches of a group know of each of the n vertices.

    A bitset is one row of a uint64 array of shape (n, words). Bit i % 64 of its word i // 64 stands
    for the i-th source of the group.
    """

    # seen: the sources that have reached the vertex in this level or before
    seen: np.ndarray
    # front: the sources that reached the vertex in the last level. Valid where in_front is 1
    front: np.ndarray
    # found: the sources that reach the vertex in this level. Valid where is_found is 1
    found: np.ndarray
    # in_front, is_found: uint8 arrays of shape (n,), 1 where front, or found, has a bit
    in_front: np.ndarray
    is_found: np.ndarray
    # planes: bit planes of the hop counts, bitsets of shape (n_planes * n, words). Row j * n + v
    # holds the sources whose hop count of vertex v has bit j of its binary number set
    planes: np.ndarray


class _Chunks(NamedTuple):
    """The chunks of vertices that the threads of a pull take, and what they find."""

    next_chunk: np.ndarray  # int64 array of shape (1,): the number of the next chunk to take
    # int64 array of shape (n_chunks + 1,): the first vertex of each chunk, and n at the end
    bounds: np.ndarray
    # bitsets of shape (n_chunks, words), output: the sources that discovered a vertex of the chunk
    arrived: np.ndarray
    # int64 array of shape (1,), output: how many vertices were discovered in all chunks
    size: np.ndarray


class _Run:
    """The state of the searches from a group of sources. It is used again for the next group.

    n is the number of vertices, and words the number of 64-bit words of a bitset.

    - ``_bits``: bitsets, flags and planes of all vertices.
    - ``_degrees``: the number of outgoing edges of each vertex.
    - ``_next_frontier``: array of shape (n,). It begins with the vertices that a push discovers.
    - ``_bounds``: the first vertex of each chunk of a pull, and n.
    - ``_arrived``: bitsets of shape (n_chunks, words). After a pull, each holds the sources that
      discovered a vertex of that chunk.
    - ``_all_lanes``: bitset with one set bit per source of the group, an array of shape (words,).
    - ``_lanes``: tuple of the words of a bitset. A set bit is a source that has a frontier, so that
      its search continues. It is a tuple because its length tells compiled code the words per
      bitset.
    - ``_is_clear``: whether ``_bits.is_found`` is 0 everywhere. A push needs that, while a pull
      writes all these flags itself.
    - ``_used_planes``: planes that have bits of this search, which the next search clears.
    - ``_level_counts``: per level the number of vertices that each source discovers, int64 of shape
      (64 * words,), if these are wanted.
    """

    def __init__(self, graph, group: int, tuning: BitParallelCpuTuning):
        """Allocate for up to ``group`` sources, a multiple of WORD. No bit is set."""
        self._tuning = tuning
        n = graph.n_vertices
        self._words = group // WORD
        self._graph = graph
        self._reverse = graph.reverse
        self._degrees = graph.derived.degrees
        seen, front, found = (self._bitsets(n) for _ in range(3))
        in_front, is_found = np.zeros((2, n), np.uint8)
        planes = self._bitsets(_PLANES * n)  # memory that is not touched costs nothing
        self._bits = _Bits(seen, front, found, in_front, is_found, planes)
        self._next_frontier = np.empty(n, graph.targets.dtype)  # of a push
        self._bounds = _chunk_bounds(self._reverse.offsets)
        self._arrived = self._bitsets(self._bounds.size - 1)
        self._used_planes = 0
        self._level_counts: list[Any] = []

    def _bitsets(self, n: int) -> np.ndarray:
        """Return ``n`` bitsets without a set bit, uint64 of shape (n, words)."""
        return np.zeros((n, self._words), np.uint64)

    def search(self, sources, query, lists=None) -> tuple[int, int, int | None]:
        """Search level by level until no vertex is discovered, the limit of the query is reached,
        or all targets are.

        ``sources`` are vertex numbers, and ``lists`` the targets of each source, or None. Return
        the number of levels that were searched; the last level that discovered a vertex; and the
        level up to which distances are complete, None for all.
        """
        self._start(sources, query.output == "counts")
        n = self._graph.n_vertices
        # The vertices of the frontier, or None where only ``in_front`` has them.
        frontier: Any = sort_distinct(sources)
        level = depth = 0
        size = frontier.size
        while size:
            depth = level  # the frontier has vertices, so this level is not empty
            if query.limit is not None and level >= query.limit:
                return level, depth, query.limit
            if self._may_stop(query, lists):
                return level, depth, level
            level += 1
            self._add_planes(level)
            # Vertices of this level per source. Compiled code does not count if it is empty.
            counts = np.zeros(self._words * WORD if query.output == "counts" else 0, np.int64)

            # Push a frontier of few vertices and few edges. A pull only flags what it discovers, so
            # its vertices are listed here, once they are few.
            if frontier is None and size * self._tuning.push_vertices <= n:
                frontier = np.flatnonzero(self._bits.in_front)
            pushes = False
            if frontier is not None:
                edges = int(self._degrees[frontier].sum())
                pushes = edges * self._tuning.push_edges <= self._graph.n_edges
            if pushes:
                size = self._push(frontier.astype(self._next_frontier.dtype), level, counts)
                frontier = self._next_frontier[:size].copy()  # the next push writes to that array
            else:
                size = self._pull(level, counts)
                frontier = None
            self._level_counts.append(counts)
        return level, depth, query.limit

    def _start(self, sources, counts_levels: bool) -> None:
        """Clear the state of the last group, and put each source on the frontier of its search.

        ``sources`` are vertex numbers. The i-th has bit i % 64 of word i // 64 of a bitset.
        ``counts_levels``: whether the vertices of each level are counted.
        """
        words, bits = np.divmod(np.arange(len(sources)), WORD)
        lanes = np.zeros(self._words, np.uint64)
        np.bitwise_or.at(lanes, words, np.uint64(1) << bits.astype(np.uint64))
        self._all_lanes = lanes
        self._lanes = tuple(lanes)

        used_planes = self._bits.planes[: self._used_planes * self._graph.n_vertices]
        for bitsets in (self._bits.seen, self._bits.front, used_planes):
            _clear(bitsets)
        self._used_planes = 0
        # ``at``, because one vertex may be the source of several searches.
        np.bitwise_or.at(self._bits.seen, (sources, words), np.uint64(1) << bits.astype(np.uint64))
        self._bits.front[sources] = self._bits.seen[sources]
        for flags in (self._bits.in_front, self._bits.is_found):
            flags.fill(0)
        self._bits.in_front[sources] = 1
        self._is_clear = True

        # Level 0 of each search is its source. Bits without a source count nothing.
        if counts_levels:
            self._level_counts = [
                np.repeat([1, 0], [len(sources), self._words * WORD - len(sources)])
            ]
        else:
            self._level_counts = [None]

    def _may_stop(self, query, lists) -> bool:
        """Return whether the searches may end early: there are targets, and each source has reached
        all of its own.

        ``lists`` are the targets of each source (``offsets`` and ``vertices``), or None if all
        sources have the targets of the query.
        """
        if lists is not None:
            # Bit ``bits`` of word ``words`` stands for the source that each target belongs to.
            source = np.repeat(np.arange(lists.offsets.size - 1), np.diff(lists.offsets))
            words, bits = np.divmod(source, WORD)
            words_of_targets = self._bits.seen[lists.vertices, words]
            return bool((words_of_targets >> bits.astype(np.uint64) & np.uint64(1)).all())
        if query.targets is None:
            return False
        return bool((self._bits.seen[query.targets] == self._all_lanes).all())

    def _add_planes(self, level: int) -> None:
        """Make sure that there is a plane for each bit of the number ``level``.

        Planes that are new are clear. Those that exist keep the bits of earlier levels.
        """
        n = self._graph.n_vertices
        self._used_planes = level.bit_length()
        if self._used_planes * n > self._bits.planes.shape[0]:
            self._bits = self._bits._replace(
                planes=np.concatenate([self._bits.planes, self._bitsets(_PLANES * n)])
            )

    def _pull(self, level: int, counts) -> int:
        """Find the vertices of a level by their incoming edges, and make them the frontier.

        Return how many they are. They are flagged in ``in_front``, and not listed. ``counts``
        receives the vertices per source, unless it is empty.
        """
        size = np.zeros(1, np.int64)
        self._arrived.fill(0)
        chunks = _Chunks(np.zeros(1, np.int64), self._bounds, self._arrived, size)
        edges = Neighbors.of(self._reverse)
        n_threads = numba.get_num_threads()
        _pull(n_threads, chunks, edges, self._bits, self._lanes, level, counts)
        # A source that discovered no vertex in any chunk has no frontier: its search is over.
        self._lanes = tuple(np.bitwise_or.reduce(self._arrived, axis=0))
        self._is_clear = False  # the flags of the old frontier stay, and become ``is_found``
        self._swap()
        return int(size[0])

    def _push(self, frontier, level: int, counts) -> int:
        """Find the vertices of a level by the edges of the frontier, and make them the frontier.

        Return how many they are. ``_next_frontier`` begins with them. ``frontier`` has the vertices
        to push from. ``counts`` receives the vertices per source, unless it is empty.
        """
        if not self._is_clear:
            self._bits.is_found.fill(0)
        edges = Neighbors.of(self._graph)
        size = _push(edges, frontier, self._bits, self._lanes, level, counts, self._next_frontier)
        # A source that discovered no vertex has no frontier: its search is over.
        self._lanes = tuple(
            np.bitwise_or.reduce(self._bits.found[self._next_frontier[:size]], axis=0)
        )
        # The old frontier alone has flags in ``in_front``, which the swap makes ``is_found``.
        self._bits.in_front[frontier] = 0
        self._is_clear = True
        self._swap()
        return size

    def _swap(self) -> None:
        """Make the vertices that a level has found the frontier, by an exchange of arrays.

        The arrays of the old frontier receive what the next level finds.
        """
        bits = self._bits
        self._bits = bits._replace(
            front=bits.found, found=bits.front, in_front=bits.is_found, is_found=bits.in_front
        )

    def distances(self, k: int, depth: int, columns) -> np.ndarray:
        """Return the hop counts of the first ``k`` sources, -1 where unreached, of shape (k, n), or
        (k, n_columns).

        The type is the narrowest one that holds ``depth``, the largest hop count. ``columns`` are
        the vertex numbers whose hop counts are wanted, or None for all vertices.
        """
        n = self._graph.n_vertices
        n_planes = depth.bit_length()
        seen = self._bits.seen
        planes = self._bits.planes[: n_planes * n].reshape(n_planes, n, self._words)
        if columns is not None:
            seen = seen[columns]
            planes = np.ascontiguousarray(planes[:, columns])

        # Eight planes at a time make one byte of each distance: ``octets[i, v, b]`` is byte b, the
        # lowest first, of the distance of vertex v from source i.
        distance = np.empty((k, seen.shape[0]), hops_dtype(depth))
        octets = distance.view(np.uint8).reshape(*distance.shape, distance.itemsize)
        for octet in range(distance.itemsize):
            _write_octets(planes[8 * octet : 8 * octet + 8], seen, octets[:, :, octet])
        return distance

    def counts(self, k: int, depth: int) -> np.ndarray:
        """Return the number of vertices per source and level, int64 of shape (k, depth + 1).

        ``k`` is the number of sources of the group, whose bits come first. ``depth`` is the last
        level that has vertices.
        """
        return np.stack(self._level_counts[: depth + 1], axis=1)[:k]


@njit(inline="always")
def _transpose(rows):
    """Return the transpose of a matrix of 8 x 8 bits, of which each byte of ``rows``, uint64, is a
    row.

    Three steps exchange the blocks beside the diagonal: those of 1 x 1, of 2 x 2 and of 4 x 4 bits.
    """
    changed_bits = (rows ^ (rows >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    rows ^= changed_bits ^ (changed_bits << np.uint64(7))
    changed_bits = (rows ^ (rows >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    rows ^= changed_bits ^ (changed_bits << np.uint64(14))
    changed_bits = (rows ^ (rows >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return rows ^ changed_bits ^ (changed_bits << np.uint64(28))


@njit(inline="always")
def _octet(word, i):
    """Return byte ``i`` of ``word``, 0 for the lowest, as uint64."""
    return (word >> np.uint64(8 * i)) & np.uint64(0xFF)


@njit(inline="always")
def _arrive(v, seen, lanes, found, planes, level, digits):
    """Record the sources that discover vertex ``v`` in this level. Return whether there are any.

    On entry ``found[v]`` has the sources that reach ``v``, those of earlier levels included. It
    keeps those that had not seen ``v``. They are added to ``seen[v]``, and to each plane whose bit
    is set in the number ``level``. ``lanes`` is the tuple of words that tells the size of a bitset.

    ``digits``, unless it is empty, counts the vertices per source in binary: bit d of the counter
    of a source is its bit in ``digits[d]``, a bitset.
    """
    # ``take_new`` leaves in ``found[v]`` what ``seen[v]`` lacks, and adds that to ``seen[v]``.
    if not take_new(found, seen, v, lanes):
        return False
    n = seen.shape[0]
    # ``level >> plane`` is 0 once all set bits of the number have had their plane.
    plane = 0
    while level >> plane:
        if (level >> plane) & 1:
            or_row(planes, plane * n + v, found, v, lanes)
        plane += 1
    if digits.shape[0]:
        count_row(digits, found, v, lanes)
    return True


@njit(cache=True)
def _flush(digits, counts):
    """Add the counters of a thread to ``counts``, int64 with one number per source, and clear them.

    ``digits`` has shape (8, words). Bit d of the counter of a source is the bit of that source in
    ``digits[d]``. So eight sources give a matrix of 8 x 8 bits. Transposed, each of its bytes is
    one counter.
    """
    for word in range(digits.shape[1]):
        for i in range(8):
            octets = np.uint64(0)
            for d in range(DIGITS):
                octets |= _octet(digits[d, word], i) << np.uint64(8 * d)
            octets = _transpose(octets)
            for bit in range(8):
                count = np.int64(_octet(octets, bit))
                if count:
                    atomic_add(counts, word * WORD + i * 8 + bit, count)
    digits[:] = 0


def _clear(bitsets) -> None:
    """Set all bits of ``bitsets``, an array of shape (n, words), to 0, on all threads."""

    def clear(block: int, _thread: int) -> None:
        """Clear the bitsets of block number ``block``, each of _CLEARED bitsets."""
        np.copyto(bitsets[block * _CLEARED : (block + 1) * _CLEARED], 0)  # releases the GIL

    threads.for_each(clear, -(-bitsets.shape[0] // _CLEARED))


def _chunk_bounds(offsets) -> np.ndarray:
    """Split the vertices into chunks that take about equally long to pull. Vertices of high degree
    are often next to each other, so that equally many vertices would not be equal work.

    ``offsets`` are those of the reversed graph, int64 of shape (n + 1,). Return the first vertex of
    each chunk and n at the end, ascending and distinct.
    """
    # The work of all vertices before each one: its incoming edges, and _VERTEX_WORK per vertex.
    work = np.arange(0, _VERTEX_WORK * offsets.size, _VERTEX_WORK)
    work += offsets
    bounds = np.searchsorted(work, np.arange(0, int(work[-1]), _CHUNK_WORK))
    # A hub may have the work of several chunks, whose bounds are then equal.
    return np.unique(np.append(bounds, offsets.size - 1))


@njit(parallel=True, cache=True)
def _pull(n_threads, chunks, edges, bits, lanes, level, counts):
    """Find the vertices of a level. Each vertex that some source has not seen takes the sources of
    its in-neighbors in the frontier.

    ``n_threads`` threads take ``chunks`` (``_Chunks``) of vertices. ``edges`` (``Neighbors``) are
    those of the reversed graph, so that ``sources`` below are the tails of edges. ``bits``
    (``_Bits``) has ``seen``, ``found``, ``is_found`` and ``planes`` changed. ``lanes`` has the
    sources of searches that continue. ``counts``, int64, receives the vertices per source, unless
    it is empty.
    """
    next_chunk = chunks.next_chunk
    bounds = chunks.bounds
    lanes_of_chunks = chunks.arrived
    size = chunks.size
    offsets = edges.offsets
    sources = edges.targets
    seen = bits.seen
    front = bits.front
    found = bits.found
    in_front = bits.in_front
    is_found = bits.is_found
    planes = bits.planes

    for _ in prange(n_threads):
        digits = np.zeros((DIGITS if counts.size else 0, len(lanes)), np.uint64)
        n_found = 0
        # Threads take chunks as they become free, because the time of a chunk is not known before:
        # a vertex is left as soon as all sources have reached it.
        chunk = atomic_add(next_chunk, 0, 1)
        while chunk < bounds.size - 1:
            for v in range(bounds[chunk], bounds[chunk + 1]):
                is_found[v] = 0
                if is_full(seen, v, lanes):  # all sources that still search have reached it
                    continue
                # Begin with what is seen, so that ``is_full`` can tell when to stop. ``_arrive``
                # takes these sources out again.
                copy_row(found, v, seen, v, lanes)
                for e in range(offsets[v], offsets[v + 1]):
                    u = sources[e]
                    if in_front[u]:
                        or_row(found, v, front, u, lanes)  # found[v] |= front[u]
                        if is_full(found, v, lanes):
                            break
                if _arrive(v, seen, lanes, found, planes, level, digits):
                    is_found[v] = 1
                    or_row(lanes_of_chunks, chunk, found, v, lanes)
                    n_found += 1
                    if counts.size and n_found % _COUNTED == 0:
                        _flush(digits, counts)  # before a counter of 8 bits overflows
            chunk = atomic_add(next_chunk, 0, 1)
        if counts.size:
            _flush(digits, counts)
        if n_found:
            atomic_add(size, 0, n_found)


@njit(cache=True)
def _push(edges, frontier, bits, lanes, level, counts, next_frontier):
    """Find the vertices of a level by the edges of the frontier. Return how many they are;
    ``next_frontier`` begins with them.

    ``edges`` (``Neighbors``) are those of the graph, and ``frontier`` vertex numbers. ``bits``
    (``_Bits``) has ``seen``, ``found``, ``is_found`` and ``planes`` changed; its ``is_found`` must
    be 0 everywhere. ``lanes`` has the sources of searches that continue. ``counts``, int64,
    receives the vertices per source, unless it is empty.
    """
    offsets = edges.offsets
    targets = edges.targets
    seen = bits.seen
    front = bits.front
    found = bits.found
    is_found = bits.is_found
    planes = bits.planes

    # Gather the sources that reach each neighbor. A neighbor that is met first becomes a candidate,
    # and begins with what it has seen: ``_arrive`` takes these sources out again.
    n_candidates = 0
    for i in range(frontier.size):
        u = frontier[i]
        for e in range(offsets[u], offsets[u + 1]):
            v = targets[e]
            if is_found[v] == 0:
                if is_full(seen, v, lanes):  # all sources that still search have reached it
                    continue
                is_found[v] = 1
                copy_row(found, v, seen, v, lanes)  # found[v] = seen[v]
                next_frontier[n_candidates] = v
                n_candidates += 1
            or_row(found, v, front, u, lanes)  # found[v] |= front[u]

    # A candidate is discovered only if a source reaches it that had not seen it. The others leave
    # the queue, and their flag is cleared.
    digits = np.zeros((DIGITS if counts.size else 0, len(lanes)), np.uint64)
    n_found = 0
    for i in range(n_candidates):
        v = next_frontier[i]
        if not _arrive(v, seen, lanes, found, planes, level, digits):
            is_found[v] = 0
            continue
        next_frontier[n_found] = v
        n_found += 1
        if counts.size and n_found % _COUNTED == 0:
            _flush(digits, counts)  # before a counter of 8 bits overflows
    if counts.size:
        _flush(digits, counts)
    return n_found


@njit(parallel=True, cache=True)
def _write_octets(planes, seen, out):
    """Write up to eight planes of the hop counts as one byte per source and vertex.

    All bits of the byte are set where the vertex was not seen, so that all bytes of a distance make
    -1 there. ``planes`` has shape (up to 8, n, words), ``seen`` (n, words), and ``out``, uint8,
    (k, n). Threads take tiles of _TILE vertices.
    """
    n_planes = planes.shape[0]
    k = out.shape[0]
    n, words = seen.shape
    for tile in prange((n + _TILE - 1) // _TILE):
        # octets[j, i]: of the i-th vertex of the tile, the sources 8 j to 8 j + 7 of a word
        octets = np.empty((8, _TILE), np.uint64)
        first = tile * _TILE
        m = min(n - first, _TILE)
        for word in range((min(k, words * WORD) + WORD - 1) // WORD):
            # Each byte of an octet has a bit for each of eight sources. All eight bytes begin with
            # the sources that have not seen the vertex.
            for i in range(m):
                unseen = ~seen[first + i, word]
                for j in range(8):
                    octets[j, i] = _octet(unseen, j) * np.uint64(0x0101010101010101)
            # Byte p of an octet also takes the bits of plane p, so that the octet is a matrix of
            # planes by sources.
            for plane in range(n_planes):
                for i in range(m):
                    bits = planes[plane, first + i, word]
                    for j in range(8):
                        octets[j, i] |= _octet(bits, j) << np.uint64(8 * plane)
            # Transposed, an octet has in each byte the eight planes of one source: its hop count.
            for j in range(8):
                for i in range(m):
                    octets[j, i] = _transpose(octets[j, i])
                for source in range(min(8, k - word * WORD - 8 * j)):
                    shift = np.uint64(8 * source)
                    for i in range(m):
                        out[word * WORD + 8 * j + source, first + i] = np.uint8(
                            octets[j, i] >> shift
                        )
