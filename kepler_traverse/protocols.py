"""Protocols of objects whose implementations share no base class. Each protocol lists all members
that callers use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NewType, Protocol, TypeAlias

import numpy as np

from ._arrays import Array

if TYPE_CHECKING:
    import pandas
    import pyarrow


class ArrowArray(Protocol):
    """A column of Arrow: one array, by its interface for C."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        """Return two capsules, of the type and of the memory of the array. ``requested_schema``, a
        capsule of the type that the caller prefers, may be ignored.
        """
        ...


class ArrowStream(Protocol):
    """A column of Arrow: several arrays, by its interface for C."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return a capsule of a stream of arrays. ``requested_schema``, a capsule of the type that
        the caller prefers, may be ignored.
        """
        ...


class CudaArray(Protocol):
    """An array on a GPU: of CuPy, of torch, or a column of cuDF."""

    @property
    def __cuda_array_interface__(self) -> Any:
        """Address, shape and type of the array, in a dictionary."""
        ...


class DataclassInstance(Protocol):
    """An instance of any dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Integer: TypeAlias = int | np.integer[Any]
VertexId: TypeAlias = Integer | str  # the user's own id of a vertex
# Ids of vertices are all integers or all strings. A list, range, array, Series or set is an
# Iterable.
Ids: TypeAlias = Iterable[Integer] | Iterable[str] | ArrowArray | ArrowStream | CudaArray
# a number per source, target, pair or cutoff
Numbers: TypeAlias = Iterable[float | np.number[Any]] | ArrowArray | ArrowStream | CudaArray
Sources: TypeAlias = VertexId | Ids  # "all" is a string
# options of a strategy by name, or an instance of its ``knobs``
Knobs: TypeAlias = Mapping[str, bool | int | float | str] | DataclassInstance
Matrix: TypeAlias = np.ndarray | Any  # numpy.ndarray or cupy.ndarray

# The name of a kind that a plug-in has added, whose options no signature lists. At run time it is
# a string, as any name is.
KindName = NewType("KindName", str)

# Any stands for frames of cuDF, which has no type hints. So type checkers accept methods that only
# its frames have.
if TYPE_CHECKING:
    Frame: TypeAlias = pandas.DataFrame | Any
    RecordBatches: TypeAlias = pyarrow.RecordBatchReader | Any
else:  # neither is imported before a frame is made
    Frame = Any
    RecordBatches = Any


class TraversalRun(Protocol):
    """The state of a search whose loop is on the host: distances, predecessors and the frontier,
    the vertices from which the next step goes on.
    """

    distance: Array  # of shape (n_vertices,): from the source
    # of shape (n_vertices,): the vertex before each on its path, -1 for none; None if predecessors
    # are not asked for
    predecessor: Array | None

    @property
    def counted(self) -> dict[str, int] | None:
        """Counters of the strategy by name, None if they were not requested."""
        ...

    @property
    def frontier_size(self) -> int:
        """Number of vertices in the frontier. The search ends when it is 0."""
        ...

    def start(self, source_vertex: int, /) -> None:
        """Clear the state of the last search, if there was one, and make ``source_vertex``, a
        vertex number, the frontier.
        """
        ...


class LevelRun(TraversalRun, Protocol):
    """The state of a BFS, which advances by levels: level d has the vertices d hops away."""

    def targets_reached(self) -> bool:
        """Return whether there are targets and all of them are reached."""
        ...


class Step(Protocol):
    """One step of a search: a function that replaces the frontier.

    In a BFS at ``level`` the new frontier is the vertices at ``level + 1``; in a Bellman-Ford
    search it is the vertices whose distances the round lowers.
    """

    def __call__(self, run: Any, level_or_round: int, /) -> int | None:
        """Advance the search ``run`` from the given level or round. Return the number of levels or
        rounds that were made, None for one.
        """
        ...


class RoundRun(TraversalRun, Protocol):
    """The state of a Bellman-Ford search, which advances by rounds: each relaxes the edges of the
    frontier.
    """

    @property
    def parent(self) -> Array:
        """The latest predecessor of each vertex, of shape (n_vertices,), by which negative cycles
        are detected; for graphs with negative weights only.
        """
        ...

    def finish(self, source_vertex: int, /) -> None:
        """End the search from ``source_vertex``: set distances beyond the limit to unreached, and
        compute predecessors from the distances.
        """
        ...


class CsrBackend(Protocol):
    """The functions of a device that make compressed sparse rows (CSR) from arrays of edges. The
    modules ``cpu.csr_build`` and ``cuda.csr_build`` implement it.
    """

    def assemble(
        self, src: Array, dst: Array, weight: Array | None, n_vertices: int, both_ways: bool = False
    ) -> tuple[Any, ...]:
        """Build the CSR of edges between vertices 0..n-1, without self-loops and parallel edges.

        ``src``, ``dst`` and the float weights have shape (rows,). ``both_ways`` also stores every
        edge from dst to src. Return int64 offsets of shape (n_vertices + 1,); targets of src's
        type, ascending within an adjacency list; weights, the minimum over parallel edges, or None;
        and how many records were dropped as self-loops, and stored edges as parallel.
        """
        ...

    def count_isolated(self, offsets: Array, targets: Array, directed: bool) -> int:
        """Return the number of vertices without any edge in the CSR of ``offsets`` and ``targets``.
        In a directed graph edges in either direction count.
        """
        ...

    def transpose(
        self, offsets: Array, targets: Array, weights: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """Return offsets, targets and weights, in CSR, of the graph with every edge reversed."""
        ...

    def renumber(self, columns: list[Array], dtype: np.dtype) -> tuple[Array, list[Array]]:
        """Replace integer ids by their rank among all ids of the given columns.

        Return the distinct ids in ascending order, and for each column an array of ranks, which are
        positions in these ids, in the type ``dtype``.
        """
        ...


class EdgeRowsBackend(Protocol):
    """The functions of a device that connect the rows of an edge list with the stored edges of the
    graph that was built from it. The modules ``cpu.edge_rows`` and ``cuda.edge_rows`` implement it.
    """

    def find_edges(
        self, offsets: Array, targets: Array, src: Array, dst: Array, dtype: np.dtype
    ) -> Any:
        """Return the position in ``targets`` of the stored edge from each vertex of ``src`` to that
        of ``dst``, in the type ``dtype``.

        It is ``-1 - src`` where there is no such edge, as for a self-loop, which is not stored.
        ``offsets`` and ``targets`` are the graph in CSR.
        """
        ...

    def lowest_weights(self, edges: Iterable[Array], weights: Array, n_edges: int) -> Any:
        """Return the smallest weight of each stored edge over the rows that it stands for, an array
        of shape (n_edges,).

        ``weights`` (rows,) has the weight of each row. Each array of ``edges``, of shape (rows,),
        has the position of the stored edge of each row, negative where there is none; there may be
        one array per direction. Each stored edge occurs.
        """
        ...

    def rows_that_count(
        self,
        edges: Iterable[Array],
        weights: Array | None,
        stored: Array | None,
        n_edges: int,
        dtype: np.dtype,
    ) -> Any:
        """Return the row that counts of each stored edge: the first one whose weight is the stored
        one, or simply the first one if there are no weights.

        ``edges`` are as for ``lowest_weights``. ``weights`` (rows,) has the weight of each row, and
        ``stored`` (n_edges,), of the same type, that of each stored edge; both None without
        weights. The result of shape (n_edges,) has the type ``dtype``.
        """
        ...
