"""Diameter, radius, center and periphery of a graph, by bounds of all eccentricities from the
searches of a few vertices.

The eccentricity e(v) of a vertex is the largest distance from v to another vertex. The diameter is
the largest eccentricity and the radius the smallest. The periphery and the center are the vertices
that have these.

Each search from a vertex bounds the eccentricities of all others. The distances of a search from v
are d(v, w) for all w, and those of a search in the reverse graph d(w, v). Write e'(v) for the
largest distance from another vertex to v. By the triangle inequality, for all v and w of a strongly
connected graph:

- e(w) >= d(w, v), by the definition of e.
- e(w) >= e(v) - d(v, w), because d(v, x) <= d(v, w) + d(w, x) for the x that is farthest from v.
- e(w) <= d(w, v) + e(v), because d(w, x) <= d(w, v) + d(v, x) for each x.
- The same three with all edges reversed: e'(w) >= d(v, w), e'(w) >= e'(v) - d(w, v), e'(w) <= d(v,
  w) + e'(v).

In an undirected graph d(v, w) = d(w, v) and e = e', so one search gives all three. The largest
lower bound of any vertex is at most the diameter, and the smallest upper bound is at least the
radius. When no vertex has an upper bound beyond the former, that bound is the diameter, since an
eccentricity equals it at least. The radius follows in the same way. A vertex is known to belong to
the periphery when its lower bound is the diameter, and not to belong when its upper bound is
smaller. The largest e' equals the largest e, so either bound may finish the diameter. The next
sources are vertices with the largest upper and with the smallest lower bound among those that are
not decided (Takes, Kosters 2013; for directed graphs Borassi, Crescenzi, Habib, Kosters, Marino,
Takes 2015, SumSweep).

Sums of float weights are rounded, so that the triangle inequality holds for them up to a factor
only. A sum of fewer than n terms has a relative error of at most g = n u / (1 - n u), where u is
half the distance from 1 to the next float of that type. So the inequality holds for rounded
distances if its larger side is multiplied by (1 + g) / (1 - g), and d(v, w) differs from d(w, v) by
this factor at most. All bounds are widened by its square. Eccentricities that are returned always
come from a search.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import Array, index_dtype, namespace, sort_distinct, to_host
from ..cpu.components import find_component
from ..errors import InputError, PrecisionError
from ..graph import BuildReport, Graph
from ..graph.closed import refuse_closed
from ..multi_source.together import PLAIN, OnlyWay, RunOptions, SearchTogether
from ..multi_source.workload import Workload
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column, labels_at
from ..search.plan import make_query
from .searches import SLACK, Searches, bound_dtype, is_weighted

EXTREMES = ("diameter", "radius", "center", "periphery")
UNCONNECTED = ("refuse", "largest")  # values of the argument ``unconnected`` of ``extremes``
# arrays of 8 bytes per vertex that are in memory at once: bounds, distances, and what is computed
# of them
_ARRAYS = 8
_NARROW_ROUNDS = 6  # rounds with few sources, which on most graphs decide nearly all vertices
_LONG_ROUNDS = 512  # rounds after which groups grow anyway


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """Extreme eccentricities of a graph, and the vertices that have them.

    Attributes
    ----------
    diameter, radius : int, float or None
        Largest and smallest eccentricity; None if it was not requested. Hops and sums of integer
        weights are int.
    center, periphery : array of ids or None
        The vertices whose eccentricity is the radius, and those whose eccentricity is the diameter.
        Ascending, of the type of ``graph.ids`` and on its device; None if it was not requested.
    n_vertices : int
        Vertices that were considered: those of the graph, or of its largest component.
    searches : int
        Searches that were made, forward and backward.
    """

    diameter: int | float | None
    radius: int | float | None
    center: Any
    periphery: Any
    n_vertices: int
    searches: int


def extremes(
    graph: Graph,
    *,
    algorithm: str = "bfs",
    want: Collection[str] = EXTREMES,
    unconnected: str = "refuse",
    certified: bool = True,
    memory: int | None = None,
) -> Extremes:
    """Return the exact diameter, radius, center and periphery, with searches from a few vertices on
    most graphs.

    The bounds and their proof are in the docstring of this module. The result is that of
    eccentricities by searches from all vertices. Distances lead from a vertex to the others, along
    the edges.

    Parameters
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
        Count hops, or add weights. Weights must not be negative.
    want : collection of {"diameter", "radius", "center", "periphery"}
        What is needed. The center and the periphery may need many more searches than the radius and
        the diameter: each vertex of a center in hops is searched.
    unconnected : {"refuse", "largest"}
        What to do if a vertex does not reach another one, so that eccentricities are infinite.
        ``"refuse"``: raise InputError with two such vertices. ``"largest"``: consider the largest
        component; for a directed graph the largest strongly connected component. Of equally large
        ones it is the one with the smallest id.
    certified : bool
        Certify the distances of each search before they are used.
    memory : int, optional
        Bytes that a plan of the searches may take in addition to the graph.

    Returns
    -------
    Extremes

    Raises
    ------
    InputError
        The graph has no vertices, is not connected, has negative weights, or lacks weights for
        ``algorithm="sssp"``.
    CertificateError
        A search returned a wrong distance.
    PrecisionError
        A distance is too large for the type of the weights.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 3]), directed=False)
    >>> found = extremes(graph)
    >>> found.diameter, found.radius, found.center.tolist(), found.periphery.tolist()
    (3, 2, [1, 2], [0, 3])
    """
    # An array has dimensions, and only one with a single dimension is a list of names. What is no
    # array has no ``ndim``, and counts as 1.
    is_list = (
        isinstance(want, Collection) and not isinstance(want, str) and getattr(want, "ndim", 1) == 1
    )
    if not is_list or not len(want):
        raise InputError(
            "want must be a collection of "
            f"{', '.join(map(repr, EXTREMES))}, not {arguments.describe(want)}"
        )
    names = {arguments.choice("want", name, EXTREMES) for name in want}

    # ``component`` is the graph that is searched: ``graph``, or its largest component. ``ids_of``
    # returns the ids of vertex numbers of it. ``decide`` makes all searches; ``number`` converts an
    # eccentricity to int or float.
    component, ids_of = _connected_part(graph, algorithm, unconnected)
    searches = Searches(component, algorithm, arguments.flag("certified", certified), memory)
    bounds = _Eccentricities(searches)
    bounds.decide(names)
    return Extremes(
        diameter=bounds.number(bounds.diameter) if "diameter" in names else None,
        radius=bounds.number(bounds.radius) if "radius" in names else None,
        center=ids_of(bounds.center()) if "center" in names else None,
        periphery=ids_of(bounds.periphery()) if "periphery" in names else None,
        n_vertices=component.n_vertices,
        searches=searches.count,
    )


class ExtremesSearch(SearchTogether):
    """The search for the extremes of a graph, as columns ``set, vertex, eccentricity``; it takes no
    sources.

    It makes ``extremes`` look like the other searches of the library, which are planned once and
    then run. Parameters and errors are those of ``extremes``. Its constructor makes up to two
    searches, so that a graph that is not connected is an error when the run is planned.
    """

    def __init__(self, graph: Graph, algorithm: str, unconnected: str, memory: int | None):
        """Describe the search to what plans and runs it, and require that the graph is connected,
        unless ``unconnected`` is "largest". The arguments are those of ``extremes``.
        """
        reason = "searches from few vertices bound the eccentricities of all others"
        # What is shown as the strategy; each search inside chooses its own. ``work`` describes the
        # search to what plans it, as for all other searches.
        strategy = OnlyWay(graph.device, "eccentricity_bounds", reason)
        # Without predecessors, to all vertices, at any distance. ``nbytes_on_device`` is the size
        # of the arrays of the graph in the memory of its device.
        query = make_query(graph, algorithm, predecessors=False, limit=None)
        nbytes = graph.derived.nbytes_on_device + _ARRAYS * 8 * graph.n_vertices
        work = Workload(graph, algorithm, query, n_sources=1)
        # The last argument says why this strategy was chosen.
        super().__init__(work, strategy, nbytes, f"{graph!r}; {reason}")
        self._options: dict[str, Any] = {
            "algorithm": algorithm,
            "unconnected": unconnected,
            "memory": memory,
        }
        require_connected(graph, **self._options)

    def find(
        self,
        numbers: np.ndarray,  # noqa: ARG002
        options: RunOptions = PLAIN,
    ) -> tuple[dict[str, Column], int]:
        """Find the extremes. Return their columns, as ``make_columns`` makes them, and the number
        of searches.

        ``numbers``, the sources of other searches, is not used. ``options.certified`` says whether
        distances are certified, and ``options.clock`` times the search.
        """
        graph = self.graph
        with options.clock("traverse"):  # which certifies each of its searches
            result = extremes(graph, certified=options.certified, **self._options)
        return make_columns(graph, result), result.searches


def make_columns(graph: Graph, result: Extremes) -> dict[str, Column]:
    """Return columns ``set, vertex, eccentricity``: a row per vertex of the center, and then one
    per vertex of the periphery.

    ``result`` has all four extremes. ``set`` is "center" or "periphery".
    """
    # the name of a set, the ids of its vertices, and the eccentricity that all of them have
    sets = (
        ("center", result.center, result.radius),
        ("periphery", result.periphery, result.diameter),
    )
    sizes = [len(ids) for _, ids, _ in sets]
    return {
        # per row the name of its set, by its position among the names
        "set": labels_at([name for name, _, _ in sets], np.repeat(np.arange(len(sets)), sizes)),
        "vertex": Column.of_vertices(
            graph, np.concatenate([to_host(graph.to_numbers(ids)) for _, ids, _ in sets])
        ),
        "eccentricity": Column(np.repeat(np.array([value for _, _, value in sets]), sizes)),
    }


def diameter(
    graph: Graph,
    *,
    algorithm: str = "bfs",
    unconnected: str = "refuse",
    certified: bool = True,
    memory: int | None = None,
) -> int | float:
    """Return the largest distance between two vertices.

    Parameters and errors are those of ``extremes``: ``algorithm`` says whether distances are hops
    or sums of weights, and ``unconnected`` what to do if a vertex does not reach another one.

    Examples
    --------
    >>> import numpy as np
    >>> diameter(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False))
    2
    """
    return _find_extreme(
        graph,
        "diameter",
        algorithm=algorithm,
        unconnected=unconnected,
        certified=certified,
        memory=memory,
    )


def radius(
    graph: Graph,
    *,
    algorithm: str = "bfs",
    unconnected: str = "refuse",
    certified: bool = True,
    memory: int | None = None,
) -> int | float:
    """Return the smallest eccentricity.

    The eccentricity of a vertex is the largest distance from it to another one. Parameters and
    errors are those of ``extremes``: ``algorithm`` says whether distances are hops or sums of
    weights, and ``unconnected`` what to do if a vertex does not reach another one.

    Examples
    --------
    >>> import numpy as np
    >>> radius(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False))
    1
    """
    return _find_extreme(
        graph,
        "radius",
        algorithm=algorithm,
        unconnected=unconnected,
        certified=certified,
        memory=memory,
    )


def center(
    graph: Graph,
    *,
    algorithm: str = "bfs",
    unconnected: str = "refuse",
    certified: bool = True,
    memory: int | None = None,
) -> Any:
    """Return the ids of all vertices of the smallest eccentricity, ascending, on the graph's
    device.

    Parameters and errors are those of ``extremes``.

    Examples
    --------
    >>> import numpy as np
    >>> center(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False)).tolist()
    [1]
    """
    return _find_extreme(
        graph,
        "center",
        algorithm=algorithm,
        unconnected=unconnected,
        certified=certified,
        memory=memory,
    )


def periphery(
    graph: Graph,
    *,
    algorithm: str = "bfs",
    unconnected: str = "refuse",
    certified: bool = True,
    memory: int | None = None,
) -> Any:
    """Return the ids of all vertices of the largest eccentricity, ascending, on the graph's device.

    Parameters and errors are those of ``extremes``.

    Examples
    --------
    >>> import numpy as np
    >>> periphery(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False)).tolist()
    [0, 2]
    """
    return _find_extreme(
        graph,
        "periphery",
        algorithm=algorithm,
        unconnected=unconnected,
        certified=certified,
        memory=memory,
    )


def _find_extreme(graph: Graph, name: str, **options: Any) -> Any:
    """Return one of the extremes of a graph; ``name`` is one of ``EXTREMES``, and ``options`` are
    keyword arguments of ``extremes``.
    """
    return getattr(extremes(graph, want=(name,), **options), name)


class _Bounds:
    """Lower and upper bounds of one number per vertex, here its eccentricity.

    ``xp`` is NumPy or CuPy, of which all arrays are. ``n`` is the number of vertices.

    - ``low``, ``high``: of shape (n,) and type ``dtype``: the bounds, inclusive. At first ``low``
      is 0, and ``high`` is the largest integer of the type, or infinity.
    - ``searched``: bool of shape (n,). True: a search has found the number, and both bounds are it.
    """

    def __init__(self, xp: Any, n: int, dtype: np.dtype) -> None:
        self.low = xp.zeros(n, dtype)
        self.high = xp.full(n, np.inf if dtype.kind == "f" else np.iinfo(dtype).max, dtype)
        self.searched = xp.zeros(n, bool)
        self._xp = xp

    def raise_low(self, values: Array) -> None:
        """Replace lower bounds by ``values``, of shape (n,), where these are larger."""
        self._xp.maximum(self.low, values, out=self.low)

    def lower_high(self, values: Array) -> None:
        """Replace upper bounds by ``values``, of shape (n,), where these are smaller."""
        self._xp.minimum(self.high, values, out=self.high)

    def settle(self, vertex: int, value: Any) -> None:
        """Record the exact number of a vertex, which a search has found: both bounds become equal
        to it, also where they were widened for rounding.
        """
        self.low[vertex] = self.high[vertex] = value
        self.searched[vertex] = True


class _Eccentricities:
    """Bounds of all eccentricities, and the searches that tighten them until the extremes are
    decided.

    - ``out``: bounds of the eccentricities, e in the module's docstring: the largest distance from
      each vertex.
    - ``back``: bounds of e', the largest distance to each vertex. The same object as ``out`` for an
      undirected graph.
    - ``dtype``: type of the bounds: int32 or int64 for hops and integer weights, else float64.
    - ``_xp``: NumPy or CuPy, of which the bounds and ``_tie`` are arrays.
    - ``_is_exact``: whether distances are integers, so that no bound needs widening for rounding.
    - ``_widening``: the factor by which bounds of rounded sums are widened; 1 for integers.
    - ``_tie``: float64 of shape (n,): degree / (largest degree + 1), so from 0 to below 1. Among
      vertices of equal bounds those with a larger value are searched first.
    """

    def __init__(self, searches: Searches) -> None:
        """Allocate the bounds; ``searches`` will make the searches that tighten them."""
        self._searches = searches
        self.graph = searches.graph
        n = self.graph.n_vertices
        self.dtype = bound_dtype(self.graph, searches.algorithm)
        # ``Searches`` returns float distances on the host, whatever the device of the graph: CuPy
        # would treat subnormal numbers as 0. So their bounds are on the host, too.
        if self.dtype.kind == "f":
            self._xp = np
        else:
            self._xp = namespace(self.graph.offsets)
        # Rounded sums along a path differ from those against it, so that the largest e' may differ
        # from the largest e.
        self._is_exact = self.dtype.kind == "i"
        if self._is_exact:
            self._widening = 1.0
        else:
            self._widening = _widening(self.graph)

        self.out = _Bounds(self._xp, n, self.dtype)
        if self.graph.directed:
            self.back = _Bounds(self._xp, n, self.dtype)
        else:
            self.back = self.out

        # Among equal bounds a vertex of high degree is near to more vertices. In a directed graph
        # the degree counts the edges of both directions.
        derived = self.graph.derived
        degrees = derived.degrees
        if self.graph.directed:
            degrees = degrees + derived.linked_reverse().derived.degrees
        if self._xp is np:
            degrees = to_host(degrees)
        self._tie = degrees / (int(degrees.max()) + 1)
        if n == 1:  # there is no other vertex, so no search is needed
            self.out.settle(0, 0)

    @property
    def diameter(self) -> Any:
        """The largest lower bound of an eccentricity: at most the diameter, and equal to it once
        the diameter is decided.
        """
        # For integers the largest e' is the largest e, so bounds of either will do.
        if self._is_exact:
            return max(self.out.low.max(), self.back.low.max())
        return self.out.low.max()

    @property
    def radius(self) -> Any:
        """The smallest upper bound of an eccentricity: at least the radius, and equal to it once
        the radius is decided.
        """
        return self.out.high.min()

    def center(self) -> Array:
        """Return the numbers of the vertices whose eccentricity is the radius, ascending; right
        once the center is decided.
        """
        return self._xp.flatnonzero(self.out.high == self.radius)

    def periphery(self) -> Array:
        """Return the numbers of the vertices whose eccentricity is the diameter, ascending; right
        once the periphery is decided.
        """
        return self._xp.flatnonzero(self.out.low == self.diameter)

    def number(self, value: Any) -> int | float:
        """Return an eccentricity, in the type of the bounds, as int or float of Python: the type in
        which a search of this graph would return it.
        """
        # Integer weights whose distances the user wants as floats.
        is_float = self.dtype == np.int64 and self.graph.float_distances
        if self.dtype.kind == "i" and not is_float:
            return int(value)
        return float(value)

    def decide(self, wanted: set[str]) -> None:
        """Search until the extremes in ``wanted``, a subset of ``EXTREMES``, are decided."""
        rounds = 0
        while True:
            # Two bool arrays: the vertices of which it is open whether they have the largest, or
            # the smallest, eccentricity.
            may_be_largest, may_be_smallest = self._undecided(wanted)
            n_largest = int(may_be_largest.sum())
            n_smallest = int(may_be_smallest.sum())
            if not n_largest and not n_smallest:
                return

            # ``size`` is the number of sources of the round. There are few at first, as each is
            # chosen by the bounds that those before have tightened: one vertex of large upper and
            # one of small lower bound. Later it doubles every second round, up to ``widest``.
            wide_rounds = rounds - _NARROW_ROUNDS
            size = 2
            if wide_rounds >= 0:
                # Where very many vertices must be searched, time per round matters more than their
                # choice. So from ``_LONG_ROUNDS`` on, the limit doubles every 64 rounds, to 128.
                # The second operand is 2, 4, 8, ... and at last 2 << 6, which is 128.
                widest = max(
                    self._searches.widest(), 2 << min(max(rounds - _LONG_ROUNDS, 0) // 64, 6)
                )
                size = min(2 << wide_rounds // 2, widest)
            self._run_round(
                may_be_largest if n_largest else None, may_be_smallest if n_smallest else None, size
            )
            rounds += 1

    def _undecided(self, wanted: set[str]) -> tuple[Array, Array]:
        """Return which vertices must still be decided, as two bool arrays of shape (n,).

        In the first, True is a vertex that may have the largest eccentricity, in the second one
        that may have the smallest, as far as the names in ``wanted`` depend on it. A vertex whose
        bounds are equal is decided. If all are False, so are all the extremes in ``wanted``.
        """
        low = self.out.low
        high = self.out.high
        may_be_largest = self._xp.zeros(low.size, bool)
        may_be_smallest = self._xp.zeros(low.size, bool)
        if wanted & {"diameter", "periphery"}:
            # ``largest`` is a lower bound of the diameter. A vertex whose upper bound exceeds
            # ``largest`` may raise it. A vertex whose upper bound equals it cannot, but may belong
            # to the periphery.
            largest = self.diameter
            may_be_largest = high > largest
            if "periphery" in wanted:
                may_be_largest |= (high == largest) & (low < largest)
            elif self._is_exact and not bool((self.back.high > largest).any()):
                may_be_largest[:] = (
                    False  # no distance to a vertex is larger either: ``largest`` is the diameter
                )
        if wanted & {"radius", "center"}:
            # The same with both bounds exchanged: ``smallest`` is an upper bound of the radius.
            smallest = self.radius
            may_be_smallest = low < smallest
            if "center" in wanted:
                may_be_smallest |= (low == smallest) & (high > smallest)
        return may_be_largest, may_be_smallest

    def _run_round(
        self, may_be_largest: Array | None, may_be_smallest: Array | None, size: int
    ) -> None:
        """Search from vertices of large upper and of small lower bounds, half of them each.

        ``size`` is the number of sources. ``may_be_largest`` and ``may_be_smallest`` are bool
        arrays of shape (n,), True for the vertices among which to choose; None if no vertex is
        undecided. The searches tighten the bounds of all vertices.
        """
        half = max(size // 2, 1)
        # ``outer``: of the vertices that may have the largest eccentricity, those of the largest
        # upper bounds. If no vertex is undecided, vertices of large lower bounds are taken, which
        # are known to be far from others: these raise the lower bounds of all others most.
        if may_be_largest is None:
            outer = self._choose(self.out.low, ~self.out.searched, half)
        else:
            outer = self._choose(self.out.high, may_be_largest, half)
        if may_be_smallest is None:
            may_be_smallest = ~self.out.searched
        # ``inner``: vertices that may have the smallest eccentricity, those of the smallest lower
        # bounds.
        inner = self._choose(-self.out.low, may_be_smallest, half)

        self._search(sort_distinct(np.concatenate([outer, inner])))
        if not self.graph.directed:
            return
        # The bounds of a directed graph need searches backward, too: from vertices that are known
        # to be far from others in this direction, and from ``inner``.
        distant = self._choose(self.back.low, ~self.back.searched, half)
        is_searched = to_host(self.back.searched[self._xp.asarray(inner)])
        numbers = sort_distinct(np.concatenate([distant, inner[~is_searched]]))
        if numbers.size:
            self._search(numbers, backward=True)

    def _choose(self, values: Array, among: Array, k: int) -> np.ndarray:
        """Return the numbers of up to ``k`` vertices of the largest ``values``, as a NumPy array in
        no order. Among equal values the larger ``_tie`` decides.

        ``values`` and ``among`` have shape (n,). ``among`` is bool, True for the vertices to choose
        from; there may be fewer than ``k``.
        """
        xp = self._xp
        candidates = xp.flatnonzero(among)
        # One vertex is found without sorting.
        if k == 1 and candidates.size:
            values_of_candidates = values[candidates]
            candidates = candidates[values_of_candidates == values_of_candidates.max()]
            return to_host(candidates[self._tie[candidates].argmax()[None]])
        if candidates.size > k:
            # The sum orders integers by value and then by tie. Rounding to float64 may change the
            # order, but any choice of sources gives right bounds.
            key = values[candidates].astype(np.float64) + self._tie[candidates]
            candidates = candidates[
                xp.argpartition(key, candidates.size - k)[candidates.size - k :]
            ]
        return to_host(candidates)

    def _search(self, numbers: np.ndarray, backward: bool = False) -> None:
        """Search from the vertices ``numbers``, and tighten the bounds of all others by the
        distances.

        With ``backward`` the distances lead to these vertices, against the edges.
        """
        # the bounds of the eccentricities in the direction of these searches, and against it
        along, against = (self.back, self.out) if backward else (self.out, self.back)
        for vertex, distance in self._searches.iter_distances(numbers, backward):
            along.settle(vertex, distance.max())
            self._bound(along, against, vertex, distance)

    def _bound(self, along: _Bounds, against: _Bounds, vertex: int, distance: Array) -> None:
        """Tighten bounds by the distances from one vertex to all vertices, by the inequalities of
        the module's docstring.

        ``distance`` has shape (n,). ``along`` has bounds of the largest distances in the direction
        of the search, in which that of ``vertex`` is exact already. ``against`` has bounds of the
        largest distances against the direction of the search. There are two branches: rounded sums
        are widened by a factor; integers are exact, and must not overflow.
        """
        widen = self._widening
        eccentricity = along.high[vertex]
        high_against = against.high[vertex]
        if not self._is_exact:
            along.raise_low(eccentricity / widen - distance)
            against.raise_low(distance / widen)
            against.lower_high(widen * (distance + high_against))
            return
        along.raise_low(eccentricity - distance)
        against.raise_low(distance)
        # ``high_against`` is the largest integer of the type until a search has lowered it. A sum
        # with the largest integer would overflow, so it is left out.
        half = np.iinfo(self.dtype).max // 2
        if int(high_against) <= half and int(eccentricity) <= half:
            against.lower_high(distance + high_against)


def _widening(graph: Graph) -> float:
    """Return the factor by which bounds of a graph with float weights are widened for rounding.

    It is ((1 + g) / (1 - g))^2 of the module's docstring. The square is needed as a bound also
    takes d(v, w) for d(w, v). ``SLACK`` covers the rounding of the bounds themselves. Raises
    PrecisionError: the error of the longest possible path is no longer small.
    """
    weights: Array = graph.weights
    # n u of the module's docstring
    unit = graph.n_vertices * float(np.finfo(weights.dtype).eps) / 2
    if unit >= 0.1:
        raise PrecisionError(
            f"a path of {graph.n_vertices:,} vertices may have no exact digit "
            f"in {weights.dtype}; use integer weights"
        )
    error = unit / (1 - unit)
    return ((1 + error) / (1 - error)) ** 2 * SLACK


def _connected_part(graph: Graph, algorithm: str, unconnected: str) -> tuple[Graph, Any]:
    """Return the graph to search, and a function that returns the ids of an array of its vertex
    numbers.

    It is ``graph`` itself for ``unconnected="refuse"``, whose searches then find out whether it is
    connected, and otherwise its largest component. Raises InputError: as ``extremes``, except that
    the graph is not connected.
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    # InputError if the graph has vertices through which no path may lead.
    refuse_closed(graph, "eccentricities are of paths through all vertices")
    arguments.choice("algorithm", algorithm, tuple(ALGORITHMS))
    arguments.choice("unconnected", unconnected, UNCONNECTED)
    if not graph.n_vertices:
        raise InputError("the graph has no vertices, so it has no eccentricities")
    is_weighted(graph, algorithm)  # for its errors about weights
    if unconnected == "refuse":
        return graph, graph.ids_at
    # the vertices of the largest strongly connected component, ascending; computed on the host
    members = find_component(to_host(graph.offsets), to_host(graph.targets))
    if members.size == graph.n_vertices:
        return graph, graph.ids_at
    members = namespace(graph.offsets).asarray(members)
    return _induced(graph, members), lambda numbers: graph.ids_at(members[numbers])


def require_connected(
    graph: Graph, *, algorithm: str, unconnected: str = "refuse", memory: int | None = None
) -> None:
    """Raise InputError as ``extremes`` does for the same arguments, after at most two searches:
    also if the graph is not connected, unless ``unconnected`` is "largest". ``memory``: bytes that
    a search may take in addition to the graph; None for the default.
    """
    component, _ = _connected_part(graph, algorithm, unconnected)
    searches = Searches(component, algorithm, False, memory)
    # A search in each direction from any vertex shows it; an undirected graph has one direction.
    # Its distances are not needed, so they are not certified (False above): ``iter_distances``
    # raises the error itself, for the first vertex that is not reached.
    for backward in (False, True)[: 1 + component.directed]:
        for _ in searches.iter_distances(np.zeros(1, np.int64), backward):
            pass


def _induced(graph: Graph, members: Array) -> Graph:
    """Return the graph of some vertices and the edges between them, on the same device.

    ``members`` are the vertex numbers, ascending. Vertex i of the result is ``members[i]`` and has
    its id. For a component, distances between its vertices are those in the whole graph: each path
    between them stays inside.
    """
    xp = namespace(graph.offsets)
    # the number of each vertex in the part, -1 for a vertex that is not in it
    new_number = xp.full(graph.n_vertices, -1, index_dtype(graph.n_vertices))
    new_number[members] = xp.arange(members.size, dtype=new_number.dtype)
    # The tail of an edge, the vertex that it leaves, is the number of adjacency lists that begin at
    # this edge or before it, less the first one: a running count of their beginnings. In
    # ``is_inside``, True is an edge with both ends in the part.
    n_lists_begun = xp.bincount(graph.offsets[1:-1], minlength=graph.n_edges + 1)[: graph.n_edges]
    is_inside = (new_number[xp.cumsum(n_lists_begun)] >= 0) & (new_number[graph.targets] >= 0)

    # the edges of the part before each edge of the graph; their differences are the new degrees
    edges_before = xp.zeros(graph.n_edges + 1, np.int64)
    xp.cumsum(is_inside, out=edges_before[1:])
    degrees = (edges_before[graph.offsets[1:]] - edges_before[graph.offsets[:-1]])[members]
    offsets = xp.zeros(members.size + 1, np.int64)
    xp.cumsum(degrees, out=offsets[1:])
    # The fields from ``report`` on describe the edge list of the whole graph, so the part has none.
    return replace(
        graph,
        offsets=offsets,
        targets=new_number[graph.targets[is_inside]].astype(graph.targets.dtype, copy=False),
        weights=None if graph.weights is None else graph.weights[is_inside],
        ids=graph.ids_at(members),
        report=BuildReport(),
        negative_loops={},
        edge_rows=None,
        edges_of_rows=None,
    )
