"""Shortest paths and breadth-first order by the functions of ``scipy.sparse.csgraph``, for code
that is written for SciPy.

Names, arguments, their order, shapes, types, ``-9999`` and ``inf`` are SciPy's. Replace the
import::

    from kepler_traverse.csgraph import dijkstra  # was: from scipy.sparse.csgraph import dijkstra

Wherever an argument is a matrix it may also be a ``Graph``, on any device: ``from_matrix`` builds
it once for many calls. Vertices of a ``Graph`` are its vertex numbers.

Distances of non-negative weights are SciPy's, bit for bit, and so are the order and the
predecessors of ``breadth_first_order``. Where several shortest paths end at a vertex, its
predecessor is the one nearest to the source, then the smallest one. SciPy promises none; its own
choice among equally near ones may differ.

Some calls are passed on to SciPy, because only its own loops give its results: ``method="FW"``,
weights of minus infinity, and distances that float64 cannot hold.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import scipy.sparse.csgraph as scipy_csgraph

from . import arguments
from ._arrays import (
    FLOAT64_EXACT,
    MAX_HOP_COUNT,
    NO_PREDECESSOR,
    sort_distinct,
    to_host,
    unreached_value,
)
from .bfs import REGISTRY as BFS
from .bfs import plan_bfs_many
from .convert import to_scipy
from .cpu.breadth_first_order import NO_VERTEX
from .cpu.breadth_first_order import breadth_first_order as visit_in_order
from .cpu.scipy_results import write_distances, write_predecessors
from .errors import InputError, PrecisionError
from .errors import NegativeCycleError as _NegativeCycleError
from .graph import Graph
from .interop.scipy_matrices import as_csr, as_graph, check_indices, has_negative_weights
from .kinds.nearest import nearest_columns, nearest_source_search
from .search.plan import passes_limit
from .search.query import Query
from .search.results import without_farther
from .sssp import REGISTRY as SSSP
from .sssp import plan_sssp_many

__all__ = [
    "NegativeCycleError",
    "bellman_ford",
    "breadth_first_order",
    "breadth_first_tree",
    "dijkstra",
    "from_matrix",
    "johnson",
    "shortest_path",
]

# the text of the warning of ``dijkstra``, as SciPy warns
_NEGATIVE = (
    "csgraph has negative weights: dijkstra is not made for these; take johnson or bellman_ford"
)
_FLAGS = {"return_predecessors", "unweighted", "min_only"}  # options that are true or false
_METHODS = ("auto", "FW", "D", "BF", "J")  # of ``shortest_path``


class NegativeCycleError(_NegativeCycleError, scipy_csgraph.NegativeCycleError):
    """A negative cycle, in a form that is caught as SciPy's error and as this library's.

    Attributes
    ----------
    cycle, weight
        As in ``kepler_traverse.NegativeCycleError``: the vertices and the sum of the weights.
    """

    def __init__(self, cycle: list[Any], weight: float):
        _NegativeCycleError.__init__(self, cycle, weight)
        self.args = (cycle, weight)  # what pickling calls this with again


def from_matrix(csgraph: Any, directed: bool = True, *, weighted: bool = True) -> Graph:
    """Build the graph of a matrix, by SciPy's rules, for several calls of the functions of this
    module.

    Parameters
    ----------
    csgraph : array_like, masked array or sparse matrix of shape (N, N)
        As in ``dijkstra``.
    directed : bool
        Whether an entry is an edge from its row to its column only. Calls that take the graph must
        say the same, or leave ``directed`` at True.
    weighted : bool
        False: entries have no weights, as ``unweighted=True`` requires.

    Returns
    -------
    Graph
        Ids are 0..N-1. ``Graph.to("cuda")`` moves it to a GPU.

    Examples
    --------
    >>> from kepler_traverse import csgraph
    >>> csgraph.from_matrix([[0, 2, 0], [0, 0, 3], [0, 0, 0]])
    <Graph: 3 vertices, 2 stored edges, directed, integer weights, cpu>
    """
    directed = arguments.flag("directed", directed)
    return as_graph(
        as_csr(csgraph, directed), directed=directed, weighted=arguments.flag("weighted", weighted)
    )


def dijkstra(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
    limit: float = np.inf,
    min_only: bool = False,
) -> Any:
    """Shortest distances from some vertices, as ``scipy.sparse.csgraph.dijkstra``.

    Parameters
    ----------
    csgraph : array_like, masked array or sparse matrix of shape (N, N), or Graph
        Stored entries of a sparse matrix are edges, zeros included. Zero, NaN and infinite entries
        of a dense array are not. Negative weights warn, as in SciPy. Distances are right all the
        same.
    directed : bool
        False: an entry is an edge in both directions. Of two entries the smaller counts.
    indices : int or array_like of int, optional
        Sources, of any shape; by default all vertices. Negative ones count from the end.
    return_predecessors : bool
    unweighted : bool
        Count hops.
    limit : float
        Largest distance, inclusive.
    min_only : bool
        The distance from the nearest source only, by one search.

    Returns
    -------
    dist_matrix : float64 array of shape ``(*indices.shape, N)``, or ``(N,)`` with ``min_only``
        ``inf`` where there is no path within the limit.
    predecessors : int32 array of the same shape
        With ``return_predecessors``; ``-9999`` for sources and where there is no path.
    sources : int32 array of shape (N,)
        With ``return_predecessors`` and ``min_only``: the nearest source; ``-9999`` where there is
        no path.

    Raises
    ------
    InputError
        The matrix is not square, indices are no vertices, or ``limit`` is negative. It is a
        ValueError, as SciPy's.
    NegativeCycleError
        A negative cycle can be reached from a source. SciPy's ``dijkstra`` does not end then. Where
        the call is passed on to SciPy, this is the error of SciPy alone.

    Examples
    --------
    >>> from kepler_traverse import csgraph
    >>> csgraph.dijkstra([[0, 2, 0], [0, 0, 3], [0, 0, 0]], indices=0, return_predecessors=True)
    (array([0., 2., 5.]), array([-9999,     0,     1], dtype=int32))
    """
    matrix = _to_matrix(csgraph, directed)

    # Any number is a limit, but not a text, which ``float`` would convert.
    if isinstance(limit, (str, bytes)):
        raise InputError(f"limit must be a number, not {arguments.describe(limit)}")
    try:
        limit = float(limit)
    except OverflowError:  # an integer beyond every distance
        limit = math.inf if limit > 0 else -math.inf
    except (TypeError, ValueError):
        raise InputError(f"limit must be a number, not {arguments.describe(limit)}") from None
    if limit < 0:
        raise InputError(f"limit must be 0 or more, not {limit:g}")
    if _is_negative(csgraph, matrix):
        warnings.warn(_NEGATIVE, UserWarning, stacklevel=2)
    return _search_or_call_scipy(
        scipy_csgraph.dijkstra,
        csgraph,
        matrix,
        directed,
        limit=limit,
        indices=indices,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
        min_only=min_only,
    )


def bellman_ford(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Shortest distances with weights of any sign, as ``scipy.sparse.csgraph.bellman_ford``.

    Parameters
    ----------
    csgraph, directed, indices, return_predecessors, unweighted
        As in ``dijkstra``.

    Returns
    -------
    dist_matrix, predecessors
        As in ``dijkstra``.

    Raises
    ------
    NegativeCycleError
        A negative cycle can be reached from one of the sources. Undirected, any negative edge is
        one.
    InputError
        As ``dijkstra``.

    Examples
    --------
    >>> from kepler_traverse import csgraph
    >>> csgraph.bellman_ford([[0, 2, 0], [0, 0, -1], [0, 0, 0]], indices=[0, 1])
    array([[ 0.,  2.,  1.],
           [inf,  0., -1.]])
    """
    return _search_or_call_scipy(
        scipy_csgraph.bellman_ford,
        csgraph,
        _to_matrix(csgraph, directed),
        directed,
        indices=indices,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
    )


def johnson(
    csgraph: Any,
    directed: bool = True,
    indices: Any = None,
    return_predecessors: bool = False,
    unweighted: bool = False,
) -> Any:
    """Shortest distances with weights of any sign, as ``scipy.sparse.csgraph.johnson``.

    Parameters
    ----------
    csgraph, directed, indices, return_predecessors, unweighted
        As in ``dijkstra``.

    Returns
    -------
    dist_matrix, predecessors
        As in ``dijkstra``. SciPy rounds distances of negative weights twice; here they are the
        least sums, rounded once per edge, as in ``bellman_ford``. Integers that float64 holds are
        the same in both.

    Raises
    ------
    NegativeCycleError
        The graph has a negative cycle anywhere. Undirected, any negative edge is one.
    InputError
        As ``dijkstra``.

    Examples
    --------
    >>> from kepler_traverse import csgraph
    >>> csgraph.johnson([[0, 2, 0], [0, 0, -1], [0, 0, 0]], indices=0)
    array([0., 2., 1.])
    """
    if _truth("unweighted", unweighted):  # hops, so there is no negative cycle to look for
        return dijkstra(csgraph, directed, indices, return_predecessors, unweighted)
    return _search_or_call_scipy(
        scipy_csgraph.johnson,
        csgraph,
        _to_matrix(csgraph, directed),
        directed,
        refuses_cycles=True,
        indices=indices,
        return_predecessors=return_predecessors,
        unweighted=unweighted,
    )


def shortest_path(
    csgraph: Any,
    method: str = "auto",
    directed: bool = True,
    return_predecessors: bool = False,
    unweighted: bool = False,
    overwrite: bool = False,
    indices: Any = None,
) -> Any:
    """Shortest distances by a method of choice, as ``scipy.sparse.csgraph.shortest_path``.

    Parameters
    ----------
    csgraph, directed, return_predecessors, unweighted, indices
        As in ``dijkstra``.
    method : {"auto", "FW", "D", "BF", "J"}
        ``"D"``, ``"BF"`` and ``"J"`` are ``dijkstra``, ``bellman_ford`` and ``johnson``. ``"FW"``
        is SciPy's own ``floyd_warshall``. ``"auto"`` is ``"J"`` if weights are negative, else
        ``"D"``; SciPy takes ``"FW"`` for a matrix with more than a quarter of all entries, whose
        sums may round differently. With negative weights as well, this function does the same.
    overwrite : bool
        For ``"FW"`` only: SciPy may write the result to ``csgraph``.

    Returns
    -------
    dist_matrix, predecessors
        As in ``dijkstra``.

    Raises
    ------
    NegativeCycleError, InputError
        As the function of the method; indices with ``"FW"``; an unknown method.

    Examples
    --------
    >>> from kepler_traverse import csgraph
    >>> csgraph.shortest_path([[0, 2, 0], [0, 0, 3], [0, 0, 0]])
    array([[ 0.,  2.,  5.],
           [inf,  0.,  3.],
           [inf, inf,  0.]])
    """
    arguments.choice("method", method, _METHODS)
    if method == "auto":
        matrix = _to_matrix(csgraph, directed)
        method = "J" if _is_negative(csgraph, matrix) else "D"
        # SciPy takes "FW" for such a matrix. Its sums may round differently, so this does the same.
        is_dense = matrix is not None and matrix.nnz >= matrix.shape[0] ** 2 / 4
        if method == "J" and indices is None and is_dense:
            method = "FW"
    if method == "FW":
        if indices is not None:
            raise InputError(
                "method='FW' computes all pairs; leave indices out, or take another method"
            )
        if isinstance(csgraph, Graph):
            raise InputError(
                "method='FW' is SciPy's, which takes a matrix and no Graph; take another method"
            )
        # SciPy's function does not take all formats of sparse matrices, so give it CSR.
        if hasattr(csgraph, "tocsr"):
            csgraph = as_csr(csgraph, directed=True)
        else:
            csgraph = np.asanyarray(csgraph)
        return scipy_csgraph.floyd_warshall(
            csgraph,
            _truth("directed", directed),
            return_predecessors=_truth("return_predecessors", return_predecessors),
            unweighted=_truth("unweighted", unweighted),
            overwrite=_truth("overwrite", overwrite),
        )
    function = {"D": dijkstra, "BF": bellman_ford, "J": johnson}[method]
    return function(csgraph, directed, indices, return_predecessors, unweighted)


def breadth_first_order(
    csgraph: Any, i_start: int, directed: bool = True, return_predecessors: bool = True
) -> Any:
    """Vertices in the order of a breadth-first search, as
    ``scipy.sparse.csgraph.breadth_first_order``.

    Parameters
    ----------
    csgraph : array_like, masked array or sparse matrix of shape (N, N), or Graph
        As in ``dijkstra``; infinite and NaN entries of a sparse matrix are edges.
    i_start : int
        The source.
    directed : bool
        False: neighbors are those of the row, then those of the column.
    return_predecessors : bool

    Returns
    -------
    node_array : int32 array of shape (n_reached,)
        In SciPy's order: neighbors in the order in which the matrix stores them.
    predecessors : int32 array of shape (N,)
        With ``return_predecessors``; ``-9999`` for the source and for vertices that are not
        reached.

    Raises
    ------
    InputError
        The matrix is not square, or ``i_start`` is no vertex.

    Examples
    --------
    >>> from kepler_traverse import csgraph
    >>> csgraph.breadth_first_order([[0, 1, 1], [0, 0, 1], [0, 0, 0]], 0)
    (array([0, 1, 2], dtype=int32), array([-9999,     0,     0], dtype=int32))
    """
    has_predecessors = _truth("return_predecessors", return_predecessors)
    matrix = _to_matrix(csgraph, directed)

    # Offsets and neighbors of the rows, and undirected also of the columns.
    if matrix is None:
        offsets = to_host(csgraph.offsets)
        neighbors = [(offsets, to_host(csgraph.targets))]
    else:
        offsets = matrix.indptr
        neighbors = [(offsets, matrix.indices)]
        if not directed:
            # The transpose has the neighbors by column. To transpose the matrix itself would move
            # its weights in vain.
            ones = np.ones(matrix.indices.size, np.int8)
            structure = type(matrix)((ones, matrix.indices, offsets), shape=matrix.shape)
            columns = structure.T.tocsr()
            neighbors.append((columns.indptr, columns.indices))
    n = offsets.size - 1
    if not arguments.is_integer(i_start) or not 0 <= i_start < n:
        raise InputError(
            f"i_start must be a vertex from 0 to {n - 1}, not {arguments.describe(i_start)}"
        )
    order, predecessor = visit_in_order(neighbors, int(i_start))
    if has_predecessors:
        return order, predecessor
    return order


def breadth_first_tree(csgraph: Any, i_start: int, directed: bool = True) -> Any:
    """Tree of a breadth-first search, as ``scipy.sparse.csgraph.breadth_first_tree``.

    Parameters
    ----------
    csgraph, i_start, directed
        As in ``breadth_first_order``, but no Graph.

    Returns
    -------
    csr_array or csr_matrix of shape (N, N)
        The edges from each predecessor, with the weights of ``csgraph``; SciPy's
        ``reconstruct_path`` makes it.

    Raises
    ------
    InputError
        As ``breadth_first_order``.

    Examples
    --------
    >>> from kepler_traverse import csgraph
    >>> csgraph.breadth_first_tree([[0, 1, 2], [0, 0, 3], [0, 0, 0]], 0).toarray()
    array([[0., 1., 2.],
           [0., 0., 0.],
           [0., 0., 0.]])
    """
    if isinstance(csgraph, Graph):
        raise InputError(
            "breadth_first_tree returns entries of a matrix, which a "
            "Graph has none of; give its matrix"
        )
    _, predecessors = breadth_first_order(csgraph, i_start, directed)
    return scipy_csgraph.reconstruct_path(csgraph, predecessors, directed)


def _truth(name: str, value: Any) -> bool:
    """Return whether a value counts as true, as SciPy decides it, by ``bool``: 1 does, and so does
    any text that is not empty. InputError, which calls the argument ``name``, for a value that has
    no truth, such as an array.
    """
    try:
        return bool(value)
    except Exception:
        raise InputError(f"{name} must be True or False, not {arguments.describe(value)}") from None


def _to_matrix(csgraph: Any, directed: bool) -> Any:
    """Return the CSR matrix of the argument ``csgraph`` of a public function; None if it is a
    Graph. InputError for a directed Graph with ``directed=False``.
    """
    if not isinstance(csgraph, Graph):
        return as_csr(csgraph, _truth("directed", directed))
    if csgraph.directed and not _truth("directed", directed):
        raise InputError(
            "csgraph is a directed Graph, and directed=False was given; "
            "build it by from_matrix(..., False)"
        )
    return None


def _is_negative(csgraph: Any, matrix: Any) -> bool:
    """Return whether there is a weight below 0: in ``matrix``, or, if that is None, in the Graph
    ``csgraph``.
    """
    if matrix is None:
        return csgraph.has_negative_weights
    return has_negative_weights(matrix)


def _search_or_call_scipy(
    function: Any,
    csgraph: Any,
    matrix: Any,
    directed: bool,
    refuses_cycles: bool = False,
    **options: Any,
) -> Any:
    """Return what a function of SciPy returns: by a search of this library, or by the function
    itself where only its own loops give its results.

    Parameters
    ----------
    function : callable
        ``dijkstra``, ``bellman_ford`` or ``johnson`` of SciPy.
    csgraph : matrix or Graph
        As the user gave it.
    matrix : CSR matrix or None
        What ``csgraph`` was read as; None for a Graph.
    directed : bool
    refuses_cycles : bool
        Whether a negative cycle anywhere is an error, also if no source reaches it.
    **options
        Further arguments of the function, by name.
    """
    directed = _truth("directed", directed)
    options |= {name: _truth(name, options[name]) for name in options.keys() & _FLAGS}
    # Weights of minus infinity, with which this library does not compute.
    has_infinite_gains = (
        matrix is not None and not options["unweighted"] and np.isneginf(matrix.data).any()
    )
    # No number is within a limit of NaN, or beyond it: what that means is left to SciPy's loops.
    if not math.isnan(options.get("limit", 0)) and not has_infinite_gains:
        try:
            graph = _find_graph(csgraph, matrix, directed, options["unweighted"])
            return _search(graph, refuses_cycles=refuses_cycles, **options)
        # A distance is beyond float64. SciPy's loops take it for no path.
        except PrecisionError:
            pass

    # SciPy's own function.
    if matrix is None:
        matrix = to_scipy(csgraph.to("cpu"))
    if (
        function is scipy_csgraph.dijkstra
        and not options["unweighted"]
        and has_negative_weights(matrix)
    ):
        # SciPy's ``dijkstra`` would not end on a negative cycle. This raises its error of one.
        scipy_csgraph.bellman_ford(matrix, directed, options["indices"])
    return function(matrix, directed, **options)


def _find_graph(csgraph: Any, matrix: Any, directed: bool, unweighted: bool) -> Graph:
    """Return the graph to search: that of ``matrix``, or, if it is None, the Graph ``csgraph``.
    InputError for a Graph without weights unless ``unweighted``.

    ``directed`` is for a matrix: False makes each entry an edge in both directions. A Graph keeps
    its own directions.
    """
    if matrix is not None:
        return as_graph(matrix, directed=bool(directed), weighted=not unweighted)
    if csgraph.weights is None and not unweighted:
        raise InputError("csgraph is a Graph without weights; take unweighted=True")
    return csgraph


def _search(
    graph: Graph,
    *,
    indices: Any,
    return_predecessors: bool,
    unweighted: bool,
    limit: float = np.inf,
    min_only: bool = False,
    refuses_cycles: bool = False,
) -> Any:
    """Return distances from the sources, in the form that SciPy returns: an array, or a tuple with
    predecessors, and with the nearest sources for ``min_only``.

    ``indices`` are vertex numbers of any shape, None for all vertices. Distances have the shape of
    ``indices`` with n_vertices behind, or with ``min_only``, from the nearest source, the shape
    (n_vertices,). With ``return_predecessors`` the result is a tuple. ``unweighted`` counts hops.
    ``limit`` is the largest distance, infinity for none. With ``refuses_cycles``,
    NegativeCycleError for a negative cycle anywhere in the graph: a search from all vertices
    together finds it.
    """
    n_vertices = graph.n_vertices
    if indices is None:
        sources = np.arange(n_vertices)
    else:
        sources = check_indices(indices, n_vertices)
    # Hops are whole numbers of int32, so the limit of hops is one, too.
    if unweighted and not math.isinf(limit):
        limit = min(math.floor(limit), MAX_HOP_COUNT)
    max_distance = None if math.isinf(limit) else limit

    try:
        # The result of this search is not used: it only raises the error of a cycle. It begins at
        # an additional vertex with an edge to each vertex, so that it finds every cycle.
        if refuses_cycles and graph.has_negative_weights and n_vertices:
            nearest_source_search(
                graph,
                np.arange(n_vertices),
                SSSP.algorithm.name,
                SSSP.single_source,
                "auto",
                Query(),
            )
        if min_only:
            distance, predecessor, nearest = _from_nearest(
                graph, sources.ravel(), unweighted, max_distance
            )
            if return_predecessors:
                return (distance, predecessor, nearest)
            return distance
        distance, predecessor = _from_each(
            graph, sources.ravel(), unweighted, max_distance, return_predecessors
        )
    except _NegativeCycleError as error:
        raise NegativeCycleError(error.cycle, error.weight) from None

    shape = (*sources.shape, n_vertices)
    if return_predecessors:
        return (distance.reshape(shape), predecessor.reshape(shape))
    return distance.reshape(shape)


def _from_each(
    graph: Graph, sources: np.ndarray, unweighted: bool, limit: float | None, predecessors: bool
) -> tuple[np.ndarray, Any]:
    """Return distances from each source, float64 of shape (k, n), and predecessors, int32 of the
    same shape, or None unless ``predecessors`` is True.

    ``sources`` (k,) are vertex numbers, which may repeat. Distances are hops if ``unweighted``.
    ``limit`` is the largest distance, None for no limit. Unreached vertices are infinitely far, and
    have the predecessor ``NO_VERTEX`` (-9999), as sources have.
    """
    distances = np.empty((sources.size, graph.n_vertices))
    previous = None
    if predecessors:
        previous = np.empty(distances.shape, np.int32)
    if not distances.size:
        return distances, previous

    # Search from each distinct source, for predecessors only if they cannot be found from the
    # distances afterwards. ``first_rows``: the first row of each distinct source in the result.
    # ``places``: for each row of the result, the position of its source in ``distinct``.
    distinct, first_rows, places = np.unique(sources, return_index=True, return_inverse=True)
    from_distances = predecessors and _distances_tell_predecessors(graph, unweighted)
    if predecessors and not from_distances:
        kind = "predecessors"
    else:
        kind = "matrix"
    if unweighted:
        plan = plan_bfs_many(
            graph,
            n_sources=distinct.size,
            result=kind,
            max_depth=None if limit is None else int(limit),
        )
    else:
        plan = plan_sssp_many(graph, n_sources=distinct.size, result=kind, cutoff=limit)

    # Results come in groups of sources. Write each to the first rows of its sources, in SciPy's
    # types and with its values for unreached vertices.
    end = 0
    for group in plan.iter_groups(distinct):
        begin = end
        end += len(group)
        group_sources = distinct[begin:end]
        rows = first_rows[begin:end]
        distance = to_host(group.distance)
        write_distances(distance, unreached_value(distance.dtype), rows, distances)
        # Predecessors by one pass over the edges, or those of the search, where -1 stands for none.
        if from_distances:
            edges = (graph.offsets, graph.targets, None if unweighted else graph.weights)
            write_predecessors(*edges, group_sources, rows, distances, previous)
        elif previous is not None:
            for row, source, before in zip(
                rows, group_sources, to_host(group.predecessor), strict=True
            ):
                previous[row] = np.where(before == NO_PREDECESSOR, NO_VERTEX, before)
                previous[row, source] = NO_VERTEX

    # A source that occurs again has copies of its first row.
    first_row = first_rows[places]
    for row in np.flatnonzero(first_row != np.arange(sources.size)):
        distances[row] = distances[first_row[row]]
        if previous is not None:
            previous[row] = previous[first_row[row]]
    return distances, previous


def _distances_tell_predecessors(graph: Graph, unweighted: bool) -> bool:
    """Return whether predecessors can be found from the distances by one pass over the edges on the
    CPU.

    The distance of each vertex must be that of its predecessor plus the weight, exactly as float64
    adds them. This holds for hops, for integers of which no sum can round, and for sums that were
    computed in float64. There is no such pass for negative weights, nor on a GPU. ``unweighted``
    says whether distances are hops.
    """
    if graph.device != "cpu":
        return False
    if unweighted:
        return True
    if graph.has_negative_weights:
        return False
    if graph.integer_weights:
        return graph.derived.max_sum < FLOAT64_EXACT
    return graph.distance_dtype == np.float64


def _from_nearest(
    graph: Graph, sources: np.ndarray, unweighted: bool, limit: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distance of each vertex from its nearest source, its predecessor on that path, and
    that source: float64, int32 and int32 of shape (n,).

    ``sources`` are vertex numbers, perhaps none. Distances are hops if ``unweighted``. ``limit`` is
    the largest distance, None for no limit. Unreached vertices have an infinite distance, and
    ``NO_VERTEX`` (-9999) as predecessor and as source; sources have this predecessor, too.
    """
    n = graph.n_vertices
    distance = np.full(n, np.inf)
    previous = np.full(n, NO_VERTEX, np.int32)
    nearest = np.full(n, NO_VERTEX, np.int32)
    if sources.size:
        registry = BFS if unweighted else SSSP
        query = Query(predecessors=True, limit=limit)
        distinct = sort_distinct(sources)
        name = registry.algorithm.name
        _, search = nearest_source_search(
            graph, distinct, name, registry.single_source, "auto", query
        )
        # Of columns of vertices, ``numbers`` has the vertex numbers, and ``values`` the ids.
        columns = nearest_columns(graph, search, limit)
        vertex = to_host(columns["vertex"].numbers)
        distance[vertex] = to_host(columns["distance"].values)
        nearest[vertex] = to_host(columns["source"].numbers)
        # With negative weights a path within the limit may lead through vertices beyond it, so the
        # search goes beyond it. Those vertices are no part of the result.
        if limit is not None and passes_limit(graph, name, query):
            search = without_farther(search, limit)
        # The search begins at an additional vertex, the last one, from which an edge leads to each
        # source. As the predecessor of the sources it is replaced by ``NO_VERTEX``.
        before = to_host(search.predecessor)[:n][vertex]
        previous[vertex] = np.where(before == NO_PREDECESSOR, NO_VERTEX, before)
        previous[distinct] = NO_VERTEX
    return distance, previous, nearest
