"""Systems for CPUs: the textbook's, and the steps of Sevilmis, Sivri, Aydin. CS406 Project:
Parallelization of BFS. 2019.

``fifo``: one core, one queue. Cormen, Leiserson, Rivest, Stein, section 22.2; the paper's serial
top-down.
    Here the queue is divided into levels, so that a vertex keeps the smallest of its predecessors.
``buffers``: the multicore top-down of section 4.2.1 and appendix 1.
    As in the paper, each thread collects vertices in a buffer of its own, and prefix sums of the
    sizes give the position to which each buffer is copied. In the paper two threads that find a
    vertex unvisited both queue it. Here a compare-and-swap lets one of them queue it.
``pull_integers``, ``pull_bits``: the bottom-up of section 4.2.2 in each level, with an integer and
with one bit per vertex
    for membership in the frontier (items 2 and 3). The paper uses bottom-up in dense levels only,
    in the hybrid of section 3.1.3, which is the strategy ``switch``.

Not implemented is the first method of section 4.2.2, a search through the whole frontier for each
neighbor: its cost is vertices times degree times frontier.

``graph`` is a Graph, and ``query`` says what a search computes: predecessors or none, a limit of
hops, targets. A run (``bfs.cpu_steps.Run``) is the state of a search: ``queue`` and ``next_queue``
of vertices, ``frontier_size``, ``reached`` with distances and predecessors, and ``counter``. A
function of a run and a level makes one level or several. It returns how many; None stands for one.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ..._arrays import UNREACHED
from ...bfs import cpu_steps
from ...bfs.host_loop import levels
from ...cpu import threads
from ...cpu.atomics import atomic_add, atomic_umin, compare_and_swap
from ...cpu.compiled import njit
from ...cpu.edges import Neighbors
from ...search.strategy import Strategy, state_bytes

_CHUNK = 128  # vertices that a thread takes at once


def _fifo(run: cpu_steps.Run, level: int) -> int:
    """Expand all remaining levels on one thread, or one level if the search may end at a target;
    return the number of levels.
    """
    graph = run.graph
    run.counter[0] = run.frontier_size
    last_level = run.last_level
    if run.targets is not None:
        last_level = level + 1  # after which the loop looks whether all targets are reached
    max_frontier = graph.n_vertices + 1  # no frontier is too large for one thread
    edges = Neighbors.of(graph)
    n_levels = cpu_steps.push_serial(
        edges, level, last_level, max_frontier, run.reached, run.queue, run.next_queue
    )
    # Each level has exchanged the queues in the compiled code.
    if n_levels % 2:
        run.queue, run.next_queue = run.next_queue, run.queue
    run.frontier_size = int(run.counter[0])
    return n_levels


class Buffers(NamedTuple):
    """The vertices that threads have discovered in a level, a row per buffer."""

    # array of shape (n_buffers, n_vertices), of the targets' type: vertex numbers
    vertices: np.ndarray
    sizes: np.ndarray  # int64 array of shape (n_buffers,): how many vertices each row holds


class BuffersRun(cpu_steps.Run):
    """A traversal with one buffer per thread."""

    def __init__(self, graph, query):
        super().__init__(graph, query)
        n_buffers = threads.count()
        self.buffers = Buffers(
            np.empty((n_buffers, graph.n_vertices), graph.targets.dtype),
            np.empty(n_buffers, np.int64),
        )


def _buffers_memory(n_vertices: int, n_edges: int, predecessors: bool) -> int:
    """Return the bytes of a run: those of any traversal on a CPU, and of a buffer per thread that
    can hold all vertices.
    """
    index_bytes = 4 if n_vertices < 2**31 else 8
    buffers = index_bytes * n_vertices * threads.count()
    return buffers + cpu_steps.memory(n_vertices, n_edges, predecessors)


def _push_into_buffers(run: BuffersRun, level: int) -> None:
    """Make a level top-down: threads write the vertices that they claim into buffers, and all
    buffers are then copied to the next queue.
    """
    edges = Neighbors.of(run.graph)
    frontier = run.queue[: run.frontier_size]
    run.counter[0] = 0
    sizes = run.buffers.sizes
    threads.run(_push, sizes.size, edges, frontier, level + 1, run.reached, run.buffers)
    threads.run(_gather, sizes.size, run.buffers, run.next_queue)
    run.queue, run.next_queue = run.next_queue, run.queue
    run.frontier_size = int(sizes.sum())


@njit(cache=True, nogil=True)
def _push(next_buffer, n_buffers, edges, frontier, level, reached, buffers):
    """Visit the edges of the frontier, and fill ``buffers`` with the vertices that are discovered.
    Several threads run this at once.

    ``next_buffer`` counts the buffers that threads have taken, of ``n_buffers``. ``edges`` are the
    outgoing ones, and ``frontier`` is an array of vertices. ``level`` is that of the vertices that
    are discovered. ``reached`` has their distances and predecessors, and a counter from which
    threads take chunks of the frontier. A thread that comes late finds no chunk and leaves its
    buffer empty.
    """
    offsets = edges.offsets
    targets = edges.targets
    distance = reached.distance
    predecessor = reached.predecessor
    counter = reached.counter
    vertices = buffers.vertices
    buffer = atomic_add(next_buffer, 0, 1)
    while buffer < n_buffers:
        size = 0
        # position in the frontier where the chunk of this thread begins
        first = atomic_add(counter, 0, _CHUNK)
        while first < frontier.size:
            for i in range(first, min(first + _CHUNK, frontier.size)):
                u = frontier[i]
                for e in range(offsets[u], offsets[u + 1]):
                    v = targets[e]
                    if (
                        distance[v] == UNREACHED
                        and compare_and_swap(distance, v, UNREACHED, level) == UNREACHED
                    ):
                        vertices[buffer, size] = v
                        size += 1
                    # Every frontier neighbor of v is compared in this level, so the smallest one
                    # stays.
                    if predecessor.size and distance[v] == level:
                        atomic_umin(predecessor, v, u)
            first = atomic_add(counter, 0, _CHUNK)
        buffers.sizes[buffer] = size
        buffer = atomic_add(next_buffer, 0, 1)


@njit(cache=True, nogil=True)
def _gather(next_buffer, n_buffers, buffers, queue):
    """Copy all buffers to ``queue``, one behind the other. Several threads run this at once, and
    take buffers, of which there are ``n_buffers``, from the counter ``next_buffer``.
    """
    vertices = buffers.vertices
    sizes = buffers.sizes
    buffer = atomic_add(next_buffer, 0, 1)
    while buffer < n_buffers:
        begin = 0  # in the queue: the vertices of all buffers before this one
        for before in range(buffer):
            begin += sizes[before]
        for i in range(sizes[buffer]):
            queue[begin + i] = vertices[buffer, i]
        buffer = atomic_add(next_buffer, 0, 1)


class IntegersRun(cpu_steps.Run):
    """A traversal with one integer per vertex, which is 1 if the vertex is in the frontier, else 0:
    ``in_frontier`` for this level and ``in_next`` for the next one.
    """

    def __init__(self, graph, query):
        super().__init__(graph, query)
        self.in_frontier, self.in_next = np.zeros((2, graph.n_vertices), np.int32)

    def start(self, source: int) -> None:
        """Begin a search: the source alone is in the frontier."""
        super().start(source)
        self.in_frontier.fill(0)
        self.in_frontier[source] = 1


def _pull_by_integers(run: IntegersRun, level: int) -> None:
    """Make a level bottom-up: every unreached vertex looks for a neighbor in the frontier and stops
    at the first one.
    """
    run.counter[0] = 0  # receives the number of vertices that are discovered
    edges = Neighbors.of(run.graph.reverse)
    n_chunks = -(-run.graph.n_vertices // _CHUNK)
    threads.run(_pull, n_chunks, edges, run.in_frontier, level + 1, run.reached, run.in_next)
    run.in_frontier, run.in_next = run.in_next, run.in_frontier
    run.frontier_size = int(run.counter[0])


@njit(cache=True, nogil=True)
def _pull(next_chunk, n_chunks, edges, in_frontier, level, reached, in_next):
    """Give the distance ``level`` to each unreached vertex that an edge from the frontier enters,
    and set its integer in ``in_next``. Several threads run this at once.

    Threads take chunks of vertices, of which there are ``n_chunks``, from the counter
    ``next_chunk``. ``edges`` are those of the reversed graph, and ``in_frontier`` has 1 for the
    vertices of the frontier. ``reached`` has distances and predecessors, and a counter to which the
    number of discovered vertices is added.
    """
    offsets = edges.offsets
    sources = edges.targets
    distance = reached.distance
    predecessor = reached.predecessor
    n_discovered = 0
    chunk = atomic_add(next_chunk, 0, 1)
    while chunk < n_chunks:
        for v in range(chunk * _CHUNK, min(distance.size, (chunk + 1) * _CHUNK)):
            in_next[v] = 0
            if distance[v] != UNREACHED:
                continue
            for e in range(offsets[v], offsets[v + 1]):
                u = sources[e]
                if in_frontier[u]:
                    distance[v] = level
                    if predecessor.size:
                        predecessor[v] = u  # adjacency lists are sorted: the first is the smallest
                    in_next[v] = 1
                    n_discovered += 1
                    break
        chunk = atomic_add(next_chunk, 0, 1)
    atomic_add(reached.counter, 0, n_discovered)


_SEVILMIS = "Sevilmis, Sivri, Aydin 2019"

_on_cpu = partial(Strategy, device="cpu")
STRATEGIES = (
    _on_cpu(
        name="fifo",
        aliases=("clrs",),
        plan=levels(cpu_steps.Run, _fifo),
        memory=cpu_steps.memory,
        paper="Cormen, Leiserson, Rivest, Stein, section 22.2",
        rationale="one core needs no atomic: what all others are measured against",
        complexity="O(V + E)",
    ),
    _on_cpu(
        name="buffers",
        aliases=("top_down",),
        plan=levels(BuffersRun, _push_into_buffers),
        memory=_buffers_memory,
        paper=f"{_SEVILMIS}, section 4.2.1",
        rationale="each thread counts what it found, and a sum gives its place in the next queue",
        complexity="O(V + E)",
    ),
    _on_cpu(
        name="pull_integers",
        aliases=("bottom_up_integers",),
        plan=levels(IntegersRun, _pull_by_integers),
        memory=state_bytes(8, beside=cpu_steps.memory),
        paper=f"{_SEVILMIS}, section 4.2.2, item 2",
        rationale="bottom-up in each level: the first levels cost as much as the large ones",
        complexity="O(D (V + E))",
    ),
    _on_cpu(
        name="pull_bits",
        aliases=("bottom_up_bitset",),
        plan=levels(cpu_steps.Run, cpu_steps.pull),
        memory=cpu_steps.memory,
        paper=f"{_SEVILMIS}, section 4.2.2, item 3",
        rationale="the frontier as a bitset: 32 times as many vertices in a cache as with integers",
        complexity="O(D (V + E))",
    ),
)
