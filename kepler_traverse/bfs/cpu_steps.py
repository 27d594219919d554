"""BFS steps on the CPU: top-down with a queue, bottom-up with a bitmap.

Sevilmis, Sivri, Aydin. CS406 Project: Parallelization of BFS. 2019, sections 3 and 4. There each
thread fills a buffer of its own, and a prefix sum gives its position in the next queue. Here a
compare-and-swap claims a vertex, and one counter gives its position, which needs no second pass.
The predecessor is the smallest frontier neighbor in any order of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._arrays import MAX_HOP_COUNT, NO_PREDECESSOR, UNREACHED
from ..cpu import threads
from ..cpu.atomics import atomic_add, atomic_umin, compare_and_swap
from ..cpu.compiled import njit
from ..cpu.edges import Neighbors
from ..search.strategy import state_bytes
from .tuning import SERIAL_FRONTIER, SPARSE_FRACTION

if TYPE_CHECKING:
    from ..graph import Graph
    from ..search.query import Query

_WORD = 64
_SHARE = 256  # frontier vertices, or words of the bitmap, that a thread takes at a time


class Reached(NamedTuple):
    """What a search has found so far, as compiled functions take it and change it."""

    distance: np.ndarray  # int32 array of shape (n_vertices,): hops, UNREACHED where not found
    # array of shape (n_vertices,) of vertex numbers, NO_PREDECESSOR for none. Empty if no
    # predecessors are wanted: compiled functions take it in place of None
    predecessor: np.ndarray
    counter: np.ndarray  # int64 array of shape (1,): the vertices of the next frontier


class Run:
    """The state of a BFS on a CPU: the frontier as a queue or as a bitmap, whichever the last step
    left.

    n is the number of vertices.

    - ``distance``: int32 array of shape (n,): hops, or UNREACHED.
    - ``predecessor``: array of shape (n,) of the type of vertices, or NO_PREDECESSOR; None if no
      predecessors are wanted.
    - ``queue``, ``next_queue``: arrays of shape (n,). The frontier is the first ``frontier_size``
      vertices of ``queue``, unless ``is_bitmap``.
    - ``bitmap``, ``next_bitmap``: uint64 arrays: bit v % 64 of word v // 64 stands for vertex v. The
      frontier is the set bits of ``bitmap`` if ``is_bitmap``.
    - ``counter``: int64 array of shape (1,), in which compiled code counts the next frontier.
    - ``reached``: these results and the counter, as compiled code takes them.
    - ``targets``: vertex numbers, or None; a search may end once all of them are reached.
    - ``last_level``: the level at which the search ends, that of the query's limit.
    """

    counted: dict[str, int] | None = None  # counters of the strategy; this one has none

    def __init__(self, graph: Graph, query: Query):
        """Allocate the state of searches of ``graph`` with the options ``query``."""
        n = graph.n_vertices
        self.graph = graph
        self.distance = np.empty(n, np.int32)
        self.predecessor = np.empty(n, graph.targets.dtype) if query.predecessors else None
        self.queue, self.next_queue = np.empty((2, n), graph.targets.dtype)
        self.bitmap, self.next_bitmap = np.empty((2, -(-n // _WORD)), np.uint64)
        self.counter = np.zeros(1, np.int64)
        # Compiled functions take an empty array in place of None.
        if self.predecessor is None:
            predecessor = np.empty(0, graph.targets.dtype)
        else:
            predecessor = self.predecessor
        self.reached = Reached(self.distance, predecessor, self.counter)
        self.targets = query.targets
        self.last_level = MAX_HOP_COUNT if query.limit is None else query.limit

    def start(self, source: int) -> None:
        """Begin a search from the vertex number ``source``, which alone is in the frontier."""
        self.distance.fill(UNREACHED)
        self.distance[source] = 0
        if self.predecessor is not None:
            self.predecessor.fill(NO_PREDECESSOR)
            self.predecessor[source] = source
        self.queue[0] = source
        self.frontier_size = 1
        self.is_bitmap = False

    def targets_reached(self) -> bool:
        """Return whether there are targets and all are reached."""
        return self.targets is not None and bool((self.distance[self.targets] != UNREACHED).all())

    def as_queue(self) -> None:
        """Make the frontier a queue, for a push, if it is a bitmap."""
        if self.is_bitmap:
            _list_bits(self.bitmap, self.queue)
            self.is_bitmap = False

    def as_bitmap(self) -> None:
        """Make the frontier a bitmap, for a pull, if it is a queue."""
        if not self.is_bitmap:
            self.bitmap.fill(0)
            _set_bits(self.queue[: self.frontier_size], self.bitmap)
            self.is_bitmap = True


memory = state_bytes(4.25, numbers=2)  # distance and predecessor, two bitmaps; two queues


def push(run: Run, level: int) -> int:
    """Push: every vertex of the frontier, which is at ``level``, claims its unreached neighbors,
    which become the frontier. Return the number of levels that were searched.

    While the frontier is small, one thread searches several levels without a return to the loop: a
    road network has a thousand levels of a few microseconds. With targets it searches one, after
    which the loop looks whether they are reached.
    """
    run.as_queue()
    graph = run.graph
    # ``push_serial`` reads the size of the frontier here, and leaves that of the next one.
    run.counter[0] = run.frontier_size
    edges = Neighbors.of(graph)  # offsets and targets, as compiled code takes them
    if run.frontier_size < SERIAL_FRONTIER:
        last_level = level + 1 if run.targets is not None else run.last_level
        # With a frontier of SERIAL_FRONTIER vertices several threads may be faster. With one that
        # ``is_dense`` a pull may be.
        max_serial = min(SERIAL_FRONTIER, max(graph.n_vertices // SPARSE_FRACTION, 1))
        levels = push_serial(
            edges, level, last_level, max_serial, run.reached, run.queue, run.next_queue
        )
    else:
        frontier = run.queue[: run.frontier_size]
        run.counter[0] = 0  # several threads add to it what they have found
        n_shares = -(-frontier.size // _SHARE)
        threads.run(
            _push_parallel, n_shares, edges, frontier, level + 1, run.reached, run.next_queue
        )
        levels = 1

    if levels % 2:  # each level has exchanged the queues
        run.queue, run.next_queue = run.next_queue, run.queue
    run.frontier_size = int(run.counter[0])
    return levels


def pull(run: Run, level: int) -> None:
    """Pull: every unreached vertex searches its in-neighbors for one in the frontier, which is at
    ``level``, and stops at the first one. Those that have one become the frontier.
    """
    run.as_bitmap()
    run.counter[0] = 0
    edges = Neighbors.of(run.graph.reverse)
    n_shares = -(-run.bitmap.size // _SHARE)
    threads.run(_pull, n_shares, edges, run.bitmap, level + 1, run.reached, run.next_bitmap)
    run.frontier_size = int(run.counter[0])
    run.bitmap, run.next_bitmap = run.next_bitmap, run.bitmap


def is_dense(run: Run) -> bool:
    """Return whether to pull: the frontier has at least 1 / SPARSE_FRACTION of the vertices."""
    return run.frontier_size * SPARSE_FRACTION >= run.graph.n_vertices


def point_back(graph, query: Query, sources, distance) -> np.ndarray | None:
    """Return predecessors from the hop counts of several searches, or None if the query wants none.

    ``sources`` are k vertex numbers, and ``distance`` their hop counts, of shape (k, n_vertices),
    as are the predecessors. The predecessor of a vertex is its smallest in-neighbor that is one hop
    nearer, NO_PREDECESSOR where unreached; that of a source is itself.
    """
    if not query.predecessors:
        return None
    predecessor = np.empty(distance.shape, graph.targets.dtype)
    reverse = graph.reverse
    roots = np.asarray(sources).tolist()

    def find_predecessors(i: int, _thread: int) -> None:
        """Write the predecessors of the i-th search."""
        _point_back(reverse.offsets, reverse.targets, roots[i], distance[i], predecessor[i])

    threads.for_each(find_predecessors, len(roots))
    return predecessor


@njit(cache=True, nogil=True)
def push_serial(edges, level, last_level, max_frontier, reached, queue, next_queue):
    """Search one or more levels by one thread, up to ``last_level`` or until the frontier has
    ``max_frontier`` vertices or more. Return how many levels were searched.

    ``edges`` are ``Neighbors``, ``reached`` is a ``Reached``, and ``level`` is that of the
    frontier. ``reached.counter`` has the size of the frontier, before and after. The frontier is in
    ``queue`` first; each level exchanges the two queues, so after an odd number of levels it is in
    ``next_queue``.
    """
    offsets = edges.offsets
    targets = edges.targets
    distance = reached.distance
    predecessor = reached.predecessor
    counter = reached.counter

    first_level = level
    size = counter[0]
    while size and (level == first_level or (level < last_level and size < max_frontier)):
        level += 1
        n_next = 0
        for i in range(size):
            u = queue[i]
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                if distance[v] == UNREACHED:
                    distance[v] = level
                    next_queue[n_next] = v
                    n_next += 1
                    if predecessor.size:
                        predecessor[v] = u
                # Another vertex of the frontier has reached v in this level: the smallest one
                # stays.
                elif predecessor.size and distance[v] == level and u < predecessor[v]:
                    predecessor[v] = u

        queue, next_queue = next_queue, queue
        size = n_next
    counter[0] = size
    return level - first_level


@njit(cache=True, nogil=True)
def _push_parallel(next_share, n_shares, edges, frontier, level, reached, next_queue):
    """Claim the unreached neighbors of ``frontier``, a queue, for ``level``, and write them to
    ``next_queue``. ``reached.counter`` must be 0, and becomes their number.

    Each of several threads calls this function. It takes shares of _SHARE vertices of the frontier,
    of which there are ``n_shares``, by the counter ``next_share``. ``edges`` are ``Neighbors``, and
    ``reached`` is a ``Reached``.
    """
    offsets = edges.offsets
    targets = edges.targets
    distance = reached.distance
    predecessor = reached.predecessor
    share = atomic_add(next_share, 0, 1)
    while share < n_shares:
        end = (share + 1) * _SHARE
        for i in range(share * _SHARE, end if end < frontier.size else frontier.size):
            u = frontier[i]
            for e in range(offsets[u], offsets[u + 1]):
                v = targets[e]
                # The plain comparison comes first because it fails for most edges, and is cheaper.
                # One thread alone wins the swap, and queues the vertex.
                if (
                    distance[v] == UNREACHED
                    and compare_and_swap(distance, v, UNREACHED, level) == UNREACHED
                ):
                    next_queue[atomic_add(reached.counter, 0, 1)] = v
                # Every frontier neighbor of v comes here in this level, so the smallest one stays.
                # The minimum is unsigned, so that NO_PREDECESSOR, -1, is the largest.
                if predecessor.size and distance[v] == level:
                    atomic_umin(predecessor, v, u)
        share = atomic_add(next_share, 0, 1)


@njit(cache=True, nogil=True)
def _pull(next_share, n_shares, edges, bitmap, level, reached, next_bitmap):
    """Reach each unreached vertex that has an in-neighbor in the frontier, the set bits of
    ``bitmap``. ``next_bitmap`` receives these vertices, which are at ``level``.

    ``reached`` is a ``Reached``, whose counter must be 0, and becomes their number. Each of several
    threads calls this function. It takes shares of _SHARE words of the bitmap, of which there are
    ``n_shares``, by the counter ``next_share``. ``edges`` (``Neighbors``) are those of the reversed
    graph, so that ``sources`` below are the tails of edges.
    """
    offsets = edges.offsets
    sources = edges.targets
    distance = reached.distance
    predecessor = reached.predecessor

    n = distance.size
    n_claimed = 0
    share = atomic_add(next_share, 0, 1)
    while share < n_shares:
        end = (share + 1) * _SHARE
        for word in range(share * _SHARE, end if end < next_bitmap.size else next_bitmap.size):
            # One thread has all vertices of a word, so it writes the word without an atomic.
            bits = np.uint64(0)
            end_of_word = word * _WORD + _WORD
            for v in range(word * _WORD, end_of_word if end_of_word < n else n):
                if distance[v] != UNREACHED:
                    continue
                for e in range(offsets[v], offsets[v + 1]):
                    u = sources[e]
                    if (bitmap[u >> 6] >> np.uint64(u & 63)) & np.uint64(1):
                        distance[v] = level
                        if predecessor.size:
                            predecessor[v] = u  # adjacency lists ascend: the first is the smallest
                        bits |= np.uint64(1) << np.uint64(v & 63)
                        n_claimed += 1
                        break
            next_bitmap[word] = bits
        share = atomic_add(next_share, 0, 1)
    atomic_add(reached.counter, 0, n_claimed)


@njit(cache=True)
def _set_bits(queue, bitmap):
    """Set the bits of the vertices of ``queue`` in ``bitmap``: bit v % 64 of word v // 64."""
    for i in range(queue.size):
        v = queue[i]
        bitmap[v >> 6] |= np.uint64(1) << np.uint64(v & 63)


@njit(cache=True)
def _list_bits(bitmap, queue):
    """Write the vertices whose bits are set in ``bitmap`` to the begin of ``queue``, ascending."""
    size = 0
    for word in range(bitmap.size):
        bits = bitmap[word]
        v = word * _WORD
        while bits:
            if bits & np.uint64(1):
                queue[size] = v
                size += 1
            bits >>= np.uint64(1)
            v += 1


@njit(cache=True, nogil=True)
def _point_back(offsets, sources, root, distance, predecessor):
    """Write the predecessor of each vertex: its smallest in-neighbor that is one hop nearer, which
    is the first one, as adjacency lists ascend. That of ``root``, the source, is itself.

    ``distance`` has the hop counts from ``root``, -1 where unreached, of shape (n,). The edges are
    those of the reversed graph: ``sources`` are the tails of the edges that lead to each vertex.
    """
    for v in range(distance.size):
        predecessor[v] = NO_PREDECESSOR
        hops_of_neighbor = distance[v] - 1
        if distance[v] > 0:
            # There is such a neighbor, since the distance is that of a search. So the loop ends.
            e = offsets[v]
            while distance[sources[e]] != hops_of_neighbor:
                e += 1
            predecessor[v] = sources[e]
    predecessor[root] = root
