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

CELLS = ("edges", "vertices", "pairs")  # what may carry loads
# Sums have places after those of the cells: LOST is the load of pairs without a path, and
# LOST_PAIRS the number of these pairs. EXTRA is how many such places there are.
LOST = 0
LOST_PAIRS = 1
EXTRA = 2


def refuse_twice(graph: Graph, numbers: np.ndarray, what: str) -> None:
    """Raise InputError if a vertex number is there twice among those of the sources. ``what`` names
    what would count twice, such as "flows".
    """
    distinct, counts = np.unique(numbers, return_counts=True)
    if distinct.size < numbers.size:
        (name,) = format_ids(graph, distinct[counts > 1][0])
        raise InputError(
            f"source {name} is given twice, and its {what} would count twice; give it once"
        )


class OnGpu(NamedTuple):
    """Sums in the memory of a GPU: 128-bit integers in two words, as ``ExactSums`` has them in host
    memory.
    """

    # low, high: uint64 and int64 of shape (n_cells + EXTRA,)
    low: Array
    high: Array

    @classmethod
    def zeros(cls, size: int, xp: Any) -> OnGpu:
        """Return ``size`` sums of 0 as arrays of CuPy, which is the module ``xp``."""
        return cls(xp.zeros(size, np.uint64), xp.zeros(size, np.int64))


class Loads:
    """Loads of one call or of one part.

    Attributes
    ----------
    asked : Asked
        What is asked of the kind.
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
        """``of`` is one of ``CELLS``. Sums are integers in units of ``2**exponent``."""
        self.asked = asked
        self.of = of
        self.graph: Graph = asked.graph.derived.on_host
        self.n_cells = count_cells(self.graph, of, asked.pairs)
        self.exponent = exponent
        self.value = asked.kind.load  # the name of the column
        # The sums of each thread. None: it has added nothing since ``sums_of_cells`` was last read.
        self._sums: list[ExactSums | None] = [None] * threads.max_threads()
        self._on_gpu: OnGpu | None = None  # None if no kernel has added anything since then
        # per thread, a scratch and the key that it was made for
        self._scratch: list[tuple[Any, Any]] = [(None, None)] * threads.max_threads()

    @property
    def on_gpu(self) -> OnGpu:
        """The sums that kernels on the GPU add to; they are made with the first use."""
        if self._on_gpu is None:
            self._on_gpu = OnGpu.zeros(self.n_cells + EXTRA, namespace(self.asked.graph.offsets))
        return self._on_gpu

    def of_thread(self, thread: int) -> ExactSums:
        """Return the sums that a thread, given by its number, adds to; they are made with its first
        use, as 0 in the ``n_cells + EXTRA`` places of all cells and of pairs without a path.
        """
        sums = self._sums[thread]
        if sums is None:
            sums = self._sums[thread] = ExactSums(self.n_cells + EXTRA, self.exponent)
        return sums

    def get_scratch(self, thread: int, key: Any = None) -> Any:
        """Return the scratch of thread number ``thread``.

        ``key`` is all that the scratch depends on. If it differs from that of the last call of this
        thread, the scratch is made anew.
        """
        if self._scratch[thread][1] is None or self._scratch[thread][0] != key:
            self._scratch[thread] = key, self.make_scratch(key)
        return self._scratch[thread][1]

    def make_scratch(self, key: Any) -> Any:
        """Return new scratch of one thread for ``key``, as ``get_scratch`` takes it. Subclasses
        define what it holds; this method always raises NotImplementedError.
        """
        raise NotImplementedError

    def find_bound(self, kind: np.dtype) -> Any:
        """Return the largest distance within the limit of the query, in ``kind``, the type of the
        distances. Without a limit, it is the largest number that is no mark of unreached vertices.
        """
        limit = self.asked.query.limit
        return find_bounds([np.inf if limit is None else limit], kind)[0]

    def add(self, group: Traversals) -> None:
        """Add the loads of the sources of ``group``, which has their distances, to the sums.
        Subclasses define how; this method always raises NotImplementedError.
        """
        raise NotImplementedError

    @property
    def sums_of_cells(self) -> ExactSums:
        """The sums of all threads and of the GPU, added to those of the first thread.

        The others are then dropped, so that reading this property again adds nothing twice.
        Directions of edges, and numbers of closed vertices, are still separate cells.
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
        """The sums of the result, in which each undirected edge and each closed vertex has one cell
        with all of its load. Sums at pairs, where pairs carry the loads, stay as they are.

        Both directions of an edge of an undirected graph are added up in the cell of the direction
        that leads to the larger vertex number. That happens in place: the cell of the other
        direction is 0 then, so that reading the property again adds nothing twice. A cell has the
        position of its edge, and each edge has one back.
        """
        sums = self.sums_of_cells
        if self.graph.closed is not None and self.of != "pairs":
            self._fold_closed(sums, *self.graph.closed)
        if self.of == "edges" and not self.graph.directed:
            cells = sums.nonzero()
            cells = cells[cells < self.n_cells]
            src, dst = find_ends(self.graph, cells)
            # An edge leads down if its head has the smaller number. The edge back, from ``dst`` to
            # ``src``, leads up. The reversed graph, which is the graph itself, lists it among the
            # edges of its head ``src``, with ``dst`` as the other end.
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
        """Bring together the sums of both numbers of a closed vertex where vertices carry the
        loads; where edges do, drop the sums of the edges between both numbers.

        A closed vertex, through which no path leads, has a number where paths begin, in ``first``,
        and one where they end, in ``last``. Results list the number where paths end. The edge from
        the number in ``first`` to that in ``last`` is none of the edge list.
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
        """Return the columns of the result by name: a row per cell that carries something, by
        ascending cell.
        """
        sums = self.sums
        cells = sums.nonzero()
        cells = cells[cells < self.n_cells]
        columns = columns_of_cells(self.asked.graph, self.of, cells, self.asked.pairs)
        return {**columns, self.value: Column(values_at(sums, cells, self.value))}

    def lost(self) -> dict[str, Any]:
        """Return how many pairs have no path, as ``pairs``, and what they would have carried, by
        the name of the column of the loads.
        """
        sums = self.sums
        last = np.array([self.n_cells + LOST])  # the place of what these pairs would have carried
        return {
            "pairs": int(sums.low[self.n_cells + LOST_PAIRS]),
            self.value: values_at(sums, last, self.value)[0].item(),
        }

    def facts(self) -> dict[str, Any]:
        """Return what the ``attrs`` of a frame say beside its rows: the pairs without a path."""
        return {"kepler_traverse.lost": self.lost()}


def values_at(sums: ExactSums, places: np.ndarray, what: str) -> np.ndarray:
    """Return the sums at some places, as int64 if their unit is 1, else as float64.

    ``places``, int64, are numbers of cells, or places behind them. ``what`` is what an error calls
    the sums: integers beyond int64 are one.
    """
    # an exponent of 0 stands for integers
    if sums.exponent:
        return sums.floats(places)
    return sums.integers(places, what)


def find_ends(graph: Graph, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertices that some edges leave, and those that they reach, two arrays of vertex
    numbers.

    ``cells`` are the positions of the edges in the reversed graph, int64. It lists the edges by the
    vertex that they reach.
    """
    reverse = graph.reverse
    dst = np.searchsorted(reverse.offsets, cells, side="right") - 1
    return reverse.targets[cells], dst.astype(reverse.targets.dtype)


def count_cells(graph: Graph, of: str, pairs: PairTable | None = None) -> int:
    """Return the number of cells: of stored edges, of vertices, or of rows of the table of
    ``pairs``, as ``of`` says, which is "edges", "vertices" or "pairs".
    """
    if of == "pairs" and pairs is not None:
        return int(pairs.rows.size)
    return graph.n_edges if of == "edges" else graph.n_vertices


def columns_of_cells(
    graph: Graph, of: str, cells: np.ndarray, pairs: PairTable | None = None
) -> dict[str, Column]:
    """Return the columns that say what some cells are, by name.

    Of vertices the column is ``vertex``. Of pairs they are ``pair``, the row of the table, and
    ``source, target``. Of edges they are ``src, dst``, and also ``edge``, the row of the edge list,
    if the graph knows its rows.

    ``of`` is "edges", "vertices" or "pairs". ``cells``, int64, are vertex numbers, positions of
    edges in the reversed graph, or rows of the table of ``pairs``.
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
