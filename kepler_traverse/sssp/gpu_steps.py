"""SSSP on a GPU: relaxing a frontier, and predecessors out of final distances. The twin of
``cpu_steps``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import NO_PREDECESSOR, as_distance
from ..cuda import cp
from ..cuda.compiler import kernel
from ..cuda.frontier import Frontier
from ..cuda.kernel_spec import WARP, Entry, make_entries
from ..cuda.launch import Named, PackedLaunches, launch, named
from ..search.sparse import closed_cycle_error
from ..search.strategy import state_bytes
from .cpu_steps import may_overflow, overflow_error

BLOCK = 256

_RELAX_FILE = Path(__file__).parent / "kernels" / "relax.cu"
_FINISH_FILE = Path(__file__).parent / "kernels" / "predecessors.cu"
_finish = make_entries(_FINISH_FILE, BLOCK)
_RELAX = {"warp": Entry("sssp_relax_warp", _RELAX_FILE, BLOCK, item_threads=WARP)}
_DECODE = _finish("sssp_decode")
_COUNT_OVERFLOWS = _finish("sssp_count_overflows_warp", item_threads=WARP)
_POINT_TO_NEARER = _finish("sssp_nearer_predecessors_warp", item_threads=WARP)
_LIST_RESOLVED = _finish("sssp_list_resolved")
_POINT_ALONG_TIGHT = _finish("sssp_tight_predecessors_warp", item_threads=WARP)
_FINISH = (_DECODE, _COUNT_OVERFLOWS, _POINT_TO_NEARER, _LIST_RESOLVED, _POINT_ALONG_TIGHT)
ENTRIES = (*_RELAX.values(), *_FINISH)


class Run:
    """The state of a search on a GPU, and what makes distances and predecessors of it.

    ``entries`` are the kernels that its steps launch, by name; ``n_counters`` the int64 counters of
    the frontier. ``distance`` and ``predecessor``: arrays for the results, if the caller has memory
    for them. n is the number of vertices.

    - ``distance``: array of shape (n,) of the type of the weights, infinite where unreached.
    - ``keys``: the same memory as integers, which atomic minima lower. Their order is that of the
      distances. With negative weights ``finish`` turns them back into floats.
    - ``predecessor``: array of shape (n,), set by ``finish``, NO_PREDECESSOR for none. None if no
      predecessors are wanted.
    - ``limit``: scalar of the type of the distances; no farther vertex is reached.
    - ``may_overflow``: whether a sum of weights could exceed that type, so that ``finish`` looks.
    - ``queued_in``: int32 array of shape (n,). During the rounds, the number of the last round that
      queued the vertex, -1 for none, so that a round queues it once. In ``finish`` the memory
      serves another end: the layer of the vertex in the search for predecessors, or -1.
    - ``parent``: array of shape (n,): the vertex that lowered each distance last, NO_PREDECESSOR
      for none. The search for negative cycles reads it. None without negative weights.
    - ``relax``, ``kernels``: compiled kernels of the rounds by name, and of ``finish`` by entry.
    - ``frontier``: a ``Frontier``: the queue of this round, that of the next, and counters.
    - ``edges``: offsets, targets and weights of the graph.
    """

    @property
    def counted(self) -> dict[str, int] | None:
        """Counters of the strategy, if it has any and they were requested."""
        return None

    def __init__(
        self, graph, query, entries=_RELAX, n_counters: int = 2, distance=None, predecessor=None
    ):
        """Allocate the state of searches of ``graph`` with the options ``query``, and compile the
        kernels.

        ``entries`` has the kernels of a round by name, and ``n_counters`` is the number of the
        frontier's counters. ``distance`` and ``predecessor`` are memory for the results, of shape
        (n,); None: new arrays, of predecessors only if they are wanted.
        """
        n = graph.n_vertices
        index = graph.targets.dtype
        real = graph.weights.dtype
        self.graph = graph
        self.edges = graph.offsets, graph.targets, graph.weights
        self.n_vertices = np.int64(n)
        if distance is None:
            self.distance = cp.empty(n, real)
        else:
            self.distance = distance
        self.keys = self.distance.view(f"i{real.itemsize}")
        # With negative weights a path may lead through vertices beyond the limit: no pruning then.
        if query.limit is None or graph.has_negative_weights:
            limit = np.inf
        else:
            limit = query.limit
        self.limit = as_distance(limit, real)
        self.may_overflow = may_overflow(graph) and self.limit == np.inf
        if query.predecessors and predecessor is None:
            self.predecessor = cp.empty(n, index)
        else:
            self.predecessor = predecessor
        self.frontier = Frontier(n, index, n_counters)
        self.queued_in = cp.empty(n, np.int32)
        if graph.has_negative_weights:
            self.parent = cp.empty(n, index)
        else:
            self.parent = None
        self.relax = {name: kernel(entry, index, real) for name, entry in entries.items()}
        self.kernels = {entry: kernel(entry, index, real) for entry in _FINISH}
        # Launches that go from one queue of the frontier to the next, by kernel.
        self._packed: dict[Any, PackedLaunches] = {}

    def start(self, source: int) -> None:
        """Begin a search from the vertex number ``source``, which alone is in the frontier."""
        self.distance.fill(np.inf)
        self.distance[source] = 0
        self.queued_in.fill(-1)
        if self.parent is not None:
            self.parent.fill(NO_PREDECESSOR)
        self.frontier.start(source)

    @property
    def frontier_size(self) -> int:
        """The number of vertices in the frontier; the search ends at 0."""
        return self.frontier.size

    def arguments(self) -> Named:
        """Return what kernels may take, by name: attributes of this run, arrays of the graph, and
        those of the frontier.

        The arguments stay the same while the two queues of the frontier keep their order.
        """
        return named(self, self.graph, layer=self.queued_in, **self.frontier.arguments())

    def launch_frontier(self, step, **changed) -> None:
        """Launch a kernel over the frontier.

        ``step`` is the compiled kernel; ``changed`` are NumPy scalars by name that differ between
        launches.
        """
        if step not in self._packed:
            self._packed[step] = PackedLaunches(step)
        size = self.frontier.size
        # Rounds exchange two queues, so arguments are packed once for each of them.
        queue_address = self.frontier.queue.data.ptr
        self._packed[step].launch(
            size, queue_address, self.arguments, n_frontier=np.int64(size), **changed
        )

    def finish(self, source: int, n_open: int | None = None) -> None:
        """Turn what the rounds left into distances, check them for overflow, and find predecessors.

        ``source`` is the vertex number that the search began at. ``n_open`` is the number of
        reached vertices that lack a predecessor; None: all do, but the source.

        Raises PrecisionError: a distance exceeds its type, or a vertex has no predecessor.
        """
        n = self.n_vertices
        if self.parent is not None:  # with negative weights keys are not the bits of distances
            launch(self.kernels[_DECODE], n, (n, self.keys))

        if self.may_overflow:
            self.frontier.clear_counters()
            launch(
                self.kernels[_COUNT_OVERFLOWS],
                n,
                (*self.edges, n, self.distance, self.frontier.counters),
            )
            if self.frontier.read_counters()[0]:
                raise overflow_error(self.graph)

        if self.predecessor is None or n_open == 0:
            return
        if n_open is None:  # a number: the kernel of the search has written all but ``n_open``
            self._point_to_nearer(source)
        self._resolve_in_layers()

    def _point_to_nearer(self, source: int) -> None:
        """Set predecessors to the smallest tight in-neighbor that is strictly nearer, and that of
        ``source`` to itself.

        An in-neighbor u of v is tight if its distance plus the weight of the edge is the distance
        of v. With negative weights a nearer one could close a cycle: only the source gets a
        predecessor here.
        """
        n = self.n_vertices
        self.predecessor.fill(NO_PREDECESSOR)
        self.predecessor[source] = source
        if self.parent is None:
            launch(
                self.kernels[_POINT_TO_NEARER], n, (*self.edges, n, self.distance, self.predecessor)
            )

    def _resolve_in_layers(self) -> None:
        """Set the predecessors that are missing, by a breadth-first search along tight edges from
        the vertices that have one.

        An edge is tight if the distance of its tail plus its weight is the distance of its head.
        These predecessors form no cycle, because each is found one level before its vertex.

        Raises PrecisionError: a reached vertex has no predecessor in the end.
        """
        n = self.n_vertices
        frontier = self.frontier
        frontier.clear_counters()
        # ``advance`` exchanges the queues, so the kernel writes to the next one.
        resolved = self.arguments() | {"queue": frontier.next}
        launch(self.kernels[_LIST_RESOLVED], n, resolved)
        reached = frontier.advance()  # the second counter: vertices at a finite distance
        n_resolved = frontier.size  # vertices that have a predecessor
        depth = 0
        while frontier.size and n_resolved < reached:
            depth += 1
            self._point_along_tight(depth)
            n_resolved += frontier.size
        if n_resolved < reached:
            raise closed_cycle_error(self.distance.dtype)

    def _point_along_tight(self, depth: int) -> None:
        """Search level ``depth`` of the breadth-first search along tight edges: the vertices that
        it gives a predecessor become the frontier.
        """
        self.frontier.clear_counters()
        self.launch_frontier(self.kernels[_POINT_ALONG_TIGHT], depth=np.int32(depth))
        self.frontier.advance()


# at most: float64 distances and predecessor, marks; two queues, parent
memory = state_bytes(8 + 4, numbers=3)


def finish_each(run: Run | None, sources, distance):
    """Check the distances of several searches, and return the predecessors that follow from them,
    of shape (k, n).

    The strategies that call this take no negative weights, with which ``finish`` would take the
    distances for keys.

    Parameters
    ----------
    run : Run or None
        The state that is used for one search after the other. With None nothing is done and None is
        returned; without ``run.predecessor`` distances are checked and None is returned.
    sources : int64 array of shape (k,)
        Vertex numbers.
    distance : array of shape (k, n), or more rows, on the GPU
        Final distances from each source.

    Raises
    ------
    PrecisionError
        A distance overflows.
    """
    if run is None:
        return None
    shape = sources.size, run.graph.n_vertices
    if run.predecessor is None:
        predecessor = None
    else:
        predecessor = cp.empty(shape, run.predecessor.dtype)
    for i, source in enumerate(sources.tolist()):
        # ``finish`` works on the arrays of the run, so each row is copied in and out.
        run.distance[...] = distance[i]
        run.finish(source)
        if predecessor is not None:
            predecessor[i] = run.predecessor
    return predecessor


def relax(scope: str):
    """Return the step of a search in which one round relaxes the edges of the frontier.

    ``scope`` names the threads that share the edges of a vertex, as ``Run.relax`` does: ``"warp"``,
    or a name of other kernels that a run was given.
    """

    def step(run: Run, count: int) -> None:
        """Relax the edges of the frontier, in the round of number ``count``, from 0 on. The
        vertices that improved become the frontier.
        """
        run.frontier.clear_counters()
        run.launch_frontier(run.relax[scope], round=np.int32(count))
        run.frontier.advance()

    return step
