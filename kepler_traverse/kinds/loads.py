"""Loads: what each edge or each vertex of the whole graph carries, added up over the sources.

A kind of loads has no record of a single source. It takes the distances of one group of sources
after another and adds to ``ExactSums``, so that the result has the same bits for any order, group
size, part, worker and device.

A cell is a vertex, a row of a table of pairs, or a stored edge by its position in the reversed
graph, where the edges that lead to a vertex lie side by side. Both directions of an edge of an
undirected graph have a cell; ``Loads.sums`` adds them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, namespace, to_host
from ..cpu import threads
from ..cpu.edge_rows import find_edges
from ..cpu.exact_sums import ExactSums
from ..errors import InputError
from ..graph import Graph
from ..graph.closed import find_ties
from ..search.frames import Column
from ..search.query import PairTable
from ..search.results import Traversals
from .opportunities import find_bounds
from .records import Asked, format_ids

CELLS = ("edges", "vertices", "pairs")
# places after the cells: the load of pairs without a path, and their number
LOST = 0
LOST_PAIRS = 1
EXTRA = 2


def refuse_twice(graph: Graph, numbers: np.ndarray, what: str) -> None:
    """Raise InputError if a source is given twice, as ``what`` of it would count twice."""
    distinct, counts = np.unique(numbers, return_counts=True)
    if distinct.size < numbers.size:
        (name,) = format_ids(graph, distinct[counts > 1][0])
        raise InputError(
            f"source {name} is given twice, and its {what} would count twice; give it once"
        )


class OnGpu(NamedTuple):
    """Sums in the memory of a GPU, as ``ExactSums`` has them."""

    # low, high: uint64 and int64 of shape (n_cells + EXTRA,)
    low: Array
    high: Array

    @classmethod
    def zeros(cls, size: int, xp: Any) -> OnGpu:
        """Return sums of 0 in arrays of CuPy, which ``xp`` is."""
        return cls(xp.zeros(size, np.uint64), xp.zeros(size, np.int64))


class Loads:
    """Loads of one call or of one part.

    Attributes
    ----------
    asked : Asked
    of : str
        What carries the loads, one of ``CELLS``.
    graph : Graph
        The graph that is searched, in host memory.
    n_cells : int
        Sums have a place per cell, and behind these the places ``LOST`` and ``LOST_PAIRS``.
    exponent : int
        Sums are integers in units of ``2**exponent``; 0 for sums of integers.
    value : str
        Name of the column of the loads.
    """

    def __init__(self, asked: Asked, of: str, exponent: int) -> None:
        """``of`` is one of ``CELLS``, and the unit of the sums is 2**exponent."""
        self.asked = asked
        self.of = of
        self.graph: Graph = asked.graph.derived.on_host
        self.n_cells = count_cells(self.graph, of, asked.pairs)
        self.exponent = exponent
        self.value = asked.kind.load  # the name of the column
        # by thread; None for one that has added nothing since the sums were last brought together
        self._sums: list[ExactSums | None] = [None] * threads.max_threads()
        self._on_gpu: OnGpu | None = None  # None where no kernel has added anything since then
        # per thread, a scratch and the key that it was made for
        self._scratch: list[tuple[Any, Any]] = [(None, None)] * threads.max_threads()

    @property
    def on_gpu(self) -> OnGpu:
        """The sums that kernels add to."""
        if self._on_gpu is None:
            self._on_gpu = OnGpu.zeros(self.n_cells + EXTRA, namespace(self.asked.graph.offsets))
        return self._on_gpu

    def of_thread(self, thread: int) -> ExactSums:
        """Return the sums that one thread adds to."""
        sums = self._sums[thread]
        if sums is None:
            sums = self._sums[thread] = ExactSums(self.n_cells + EXTRA, self.exponent)
        return sums

    def get_scratch(self, thread: int, key: Any = None) -> Any:
        """Return the scratch of one thread. ``key`` is all that it depends on; another key has
        another scratch.
        """
        if self._scratch[thread][1] is None or self._scratch[thread][0] != key:
            self._scratch[thread] = key, self.make_scratch(key)
        return self._scratch[thread][1]

    def make_scratch(self, key: Any) -> Any:
        """Make the scratch that ``get_scratch`` returns."""
        raise NotImplementedError

    def find_bound(self, kind: np.dtype) -> Any:
        """Return the largest distance within the limit, in the type of the distances."""
        limit = self.asked.query.limit
        return find_bounds([np.inf if limit is None else limit], kind)[0]

    def add(self, group: Traversals) -> None:
        """Add the loads of the sources of a group."""
        raise NotImplementedError

    @property
    def sums_of_cells(self) -> ExactSums:
        """The sums of all threads and of the GPU, brought together in those of the first thread:
        the others are then dropped, so that a second look adds nothing twice.
        """
        sums = self.of_thread(0)
        if self._on_gpu is not None:
            sums.add_at(
                np.arange(sums.low.size), to_host(self._on_gpu.low), to_host(self._on_gpu.high)
            )
            self._on_gpu = None

        for thread, sums_of_thread in enumerate(self._sums[1:], 1):
            if sums_of_thread is not None:
                sums.merge(sums_of_thread)
                self._sums[thread] = None
        return sums

    @property
    def sums(self) -> ExactSums:
        """The sums, in which both directions of an edge of an undirected graph are the cell that
        leads up.
        """
        sums = self.sums_of_cells
        if self.graph.closed is not None and self.of != "pairs":
            self._fold_closed(sums, *self.graph.closed)
        if self.of == "edges" and not self.graph.directed:
            cells = sums.nonzero()
            cells = cells[cells < self.n_cells]
            src, dst = find_ends(self.graph, cells)
            # The edge back, from the end to the begin of one that leads down, is the cell that
            # leads up: in the reversed graph it is in the list of ``src``.
            is_down = src > dst
            cells_down = cells[is_down]
            cells_up = find_edges(
                self.graph.offsets,
                self.graph.targets,
                src[is_down],
                dst[is_down],
                np.dtype(np.int64),
            )
            sums.add_at(cells_up, sums.low[cells_down], sums.high[cells_down])
            sums.low[cells_down] = 0
            sums.high[cells_down] = 0
        return sums

    def _fold_closed(self, sums: ExactSums, first: np.ndarray, last: np.ndarray) -> None:
        """Drop the sums of edges from closed vertices to themselves, or add up those of both
        numbers of a closed vertex.

        A closed vertex has a number where paths begin, in ``first``, and one where they end, in
        ``last``. Results list the second one.
        """
        cleared = first
        if self.of == "edges":
            reverse = self.graph.reverse
            cleared = find_ties(np.stack([last, first]), reverse.offsets, reverse.targets)
        else:
            sums.add_at(last, sums.low[first], sums.high[first])
        sums.low[cleared] = 0
        sums.high[cleared] = 0

    def columns(self) -> dict[str, Column]:
        """Return the columns of the result: a row per cell that carries something."""
        sums = self.sums
        cells = sums.nonzero()
        cells = cells[cells < self.n_cells]
        columns = columns_of_cells(self.asked.graph, self.of, cells, self.asked.pairs)
        return {**columns, self.value: Column(values_at(sums, cells, self.value))}

    def lost(self) -> dict[str, Any]:
        """Return how many pairs have no path, and what they would have carried."""
        sums = self.sums
        last = np.array([self.n_cells + LOST])
        return {
            "pairs": int(sums.low[self.n_cells + LOST_PAIRS]),
            self.value: values_at(sums, last, self.value)[0].item(),
        }

    def facts(self) -> dict[str, Any]:
        """Return what the ``attrs`` of a frame have."""
        return {"kepler_traverse.lost": self.lost()}


def values_at(sums: ExactSums, places: np.ndarray, what: str) -> np.ndarray:
    """Return some sums as int64 if their unit is 1, else as float64."""
    if sums.exponent:
        return sums.floats(places)
    return sums.integers(places, what)


def find_ends(graph: Graph, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices that some edges leave and reach, given by their positions in the reversed
    graph.
    """
    reverse = graph.reverse
    dst = np.searchsorted(reverse.offsets, cells, side="right") - 1
    return reverse.targets[cells], dst.astype(reverse.targets.dtype)


def count_cells(graph: Graph, of: str, pairs: PairTable | None = None) -> int:
    """Return the number of edges, of vertices, or of rows of the table of pairs."""
    if of == "pairs" and pairs is not None:
        return int(pairs.rows.size)
    return graph.n_edges if of == "edges" else graph.n_vertices


def columns_of_cells(
    graph: Graph, of: str, cells: np.ndarray, pairs: PairTable | None = None
) -> dict[str, Column]:
    """Return the columns that say what cells are, given by their numbers.

    ``of``: "edges", "vertices" or "pairs"; ``pairs`` is the table of pairs if it is "pairs".

    They are ``vertex``; ``pair, source, target``; or ``src, dst``, and ``edge`` if the graph knows
    its rows.
    """
    if pairs is not None and of == "pairs":
        numbers = {
            "source": np.repeat(pairs.sources, np.diff(pairs.lists.offsets)),
            "target": pairs.lists.vertices,
        }
        # ``pairs.rows`` has, for each pair in the order of origins, its row of the table; the
        # inverse has the place of each row.
        position = np.argsort(pairs.rows)[cells]
        ends = {
            name: Column.of_vertices(graph, vertices[position])
            for name, vertices in numbers.items()
        }
        return {"pair": Column(namespace(graph.offsets).asarray(cells)), **ends}
    if of == "vertices":
        return {"vertex": Column.of_vertices(graph, cells)}
    host = graph.derived.on_host
    # Cells are edges of the reversed graph, and rows belong to those of the graph itself.
    src, dst = find_ends(host, cells)
    columns = {"src": Column.of_vertices(graph, src), "dst": Column.of_vertices(graph, dst)}
    if host.edge_rows is not None:
        stored = find_edges(host.offsets, host.targets, src, dst, np.dtype(np.int64))
        columns["edge"] = Column(
            namespace(graph.offsets).asarray(host.edge_rows[stored].astype(np.int64))
        )
    return columns
