"""Extremes of a graph without a search from each vertex: diameter, radius, center, periphery, most central vertices.

The eccentricity e(v) of a vertex is the largest distance from v to another vertex. The diameter is the largest eccentricity
and the radius the smallest. The periphery and the center are the vertices that have these.

Each search from a vertex bounds the eccentricities of all others. The distances of a search from v are d(v, w) for all w,
and those of a search in the reverse graph d(w, v). Write e'(v) for the largest distance from another vertex to v. By the
triangle inequality, for all v and w of a strongly connected graph:

- e(w) >= d(w, v), by the definition of e.
- e(w) >= e(v) - d(v, w), because d(v, x) <= d(v, w) + d(w, x) for the x that is farthest from v.
- e(w) <= d(w, v) + e(v), because d(w, x) <= d(w, v) + d(v, x) for each x.
- The same three with all edges reversed: e'(w) >= d(v, w), e'(w) >= e'(v) - d(w, v), e'(w) <= d(v, w) + e'(v).

In an undirected graph d(v, w) = d(w, v) and e = e', so one search gives all three. The largest lower bound of any vertex is
at most the diameter, and the smallest upper bound is at least the radius. When no vertex has an upper bound beyond the
former, that bound is the diameter, since an eccentricity equals it at least. The radius follows in the same way. A vertex is
known to belong to the periphery when its lower bound is the diameter, and not to belong when its upper bound is smaller. The
largest e' equals the largest e, so either bound may finish the diameter. The next sources are vertices with the largest
upper and with the smallest lower bound among those that are not decided (Takes, Kosters 2013; for directed graphs Borassi,
Crescenzi, Habib, Kosters, Marino, Takes 2015, SumSweep).

Sums of float weights are rounded, so that the triangle inequality holds for them up to a factor only. A sum of fewer than n
terms has a relative error of at most g = n u / (1 - n u), where u is half the distance from 1 to the next float of that
type. So the inequality holds for rounded distances if its larger side is multiplied by (1 + g) / (1 - g), and d(v, w)
differs from d(w, v) by this factor at most. All bounds are widened by its square. Eccentricities that are returned always
come from a search.

``top_closeness`` bounds sums of distances; its docstring has the proof.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from . import arguments
from ._arrays import Array, index_dtype, is_hops, is_reached, namespace, to_host
from .bfs import plan_bfs_many
from .certificate import certify_many
from .cpu import closeness as cpu
from .cpu import threads
from .cpu.components import strong_components
from .errors import CertificateError, InputError, PrecisionError, option_text
from .graph import BuildReport, Graph
from .multi_source.outputs import graph_in_direction
from .multi_source.planning import MultiSourcePlan
from .multi_source.together import PLAIN, RunOptions, SearchTogether
from .search.algorithms import ALGORITHMS
from .search.exact import to_integers
from .search.frames import Column, frame_from, labels_at
from .search.plan import make_query
from .sssp import plan_sssp_many

EXTREMES = ("diameter", "radius", "center", "periphery")
UNCONNECTED = ("refuse", "largest")
_ARRAYS = 8  # of 8 bytes per vertex: bounds, distances, and what is computed of them
_GROUPS = (2, 16, 128)  # sources of a plan; a group takes the smallest plan that holds it
_NARROW_ROUNDS = 6  # rounds with few sources, which on most graphs decide nearly all vertices
_TINY = 512  # vertices up to which groups are wide, as their number matters more than what they hold
_SMALL = 1 << 20  # edges up to which a few searches in hops take one thread each, without levels in common
_LONG_ROUNDS = 512  # rounds after which groups grow anyway
_WASTE = 3  # more searches, at most, that wide groups take on meshes, since their sources do not know of each other
_FULL_ROUNDS = 8  # rounds of complete searches, whose distances bound the closeness of all vertices
_PER_VERTEX = 4  # work of a complete search per vertex, in edges
_PROOFS = 32  # searches of a round that end once a vertex cannot be among the first k; rounds grow
_WALK_LEVELS = 32  # levels for which walks are counted; on graphs of long paths they bound little
_MAX_WALKS = 2**62  # so that sums over edges fit into int64
_MAX_SUM = 2**62  # as above, of distances
_SLACK = 1 + 2.0**-40  # more than the rounding of the few operations that a bound takes


@dataclass(frozen=True, kw_only=True)
class Extremes:
    """Extreme eccentricities of a graph, and the vertices that have them.

    Attributes
    ----------
    diameter, radius : int, float or None
        Largest and smallest eccentricity; None if it was not requested. Hops and sums of integer weights are int.
    center, periphery : array of ids or None
        The vertices whose eccentricity is the radius, and those whose eccentricity is the diameter. Ascending, of the type
        of ``graph.ids`` and on its device; None if it was not requested.
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
    """Return the exact diameter, radius, center and periphery, with searches from a few vertices on most graphs.

    The bounds and their proof are in the docstring of this module. The result is that of eccentricities by searches from all
    vertices. Distances lead from a vertex to the others, along the edges.

    Parameters
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
        Count hops, or add weights. Weights must not be negative.
    want : collection of {"diameter", "radius", "center", "periphery"}
        What is needed. The center and the periphery may need many more searches than the radius and the diameter: each
        vertex of a center in hops is searched.
    unconnected : {"refuse", "largest"}
        What to do if a vertex does not reach another one, so that eccentricities are infinite. ``"refuse"``: raise
        InputError with two such vertices. ``"largest"``: consider the largest component; for a directed graph the largest
        strongly connected component. Of equally large ones it is the one with the smallest id.
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
        The graph has no vertices, is not connected, has negative weights, or lacks weights for ``algorithm="sssp"``.
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
    if isinstance(want, str) or not isinstance(want, Collection) or not want:
        raise InputError(f"want must be a collection of {', '.join(map(repr, EXTREMES))}, not {arguments.describe(want)}")
    wanted = {arguments.choice("want", name, EXTREMES) for name in want}
    part, ids_of = _connected_part(graph, algorithm, unconnected)
    searches = _Searches(part, algorithm, arguments.flag("certified", certified), memory)
    bounds = _Eccentricities(searches)
    bounds.decide(wanted)
    return Extremes(
        diameter=bounds.number(bounds.diameter) if "diameter" in wanted else None,
        radius=bounds.number(bounds.radius) if "radius" in wanted else None,
        center=ids_of(bounds.center()) if "center" in wanted else None,
        periphery=ids_of(bounds.periphery()) if "periphery" in wanted else None,
        n_vertices=part.n_vertices,
        searches=searches.count,
    )


class _Choice(NamedTuple):
    """What stands for the strategy of an ``ExtremesSearch``: the searches choose their own."""

    device: str
    name: str = "eccentricity_bounds"
    rationale: str = "searches from few vertices bound the eccentricities of all others"


class ExtremesSearch(SearchTogether):
    """The search for the extremes of a graph, as columns ``set, vertex, eccentricity``; it takes no sources.

    Parameters are those of ``extremes``.

    Raises
    ------
    InputError
        As ``extremes``.
    """

    def __init__(self, graph: Graph, algorithm: str, unconnected: str, memory: int | None):
        strategy = _Choice(graph.device)
        query = make_query(graph, algorithm, predecessors=False, limit=None)
        nbytes = graph.nbytes + _ARRAYS * 8 * graph.n_vertices
        super().__init__(graph, algorithm, 1, strategy, query, nbytes, f"{graph!r}; {strategy.rationale}")
        self._options: dict[str, Any] = {"algorithm": algorithm, "unconnected": unconnected, "memory": memory}
        require_connected(graph, **self._options)

    def find(self, numbers: np.ndarray, options: RunOptions = PLAIN) -> tuple[dict[str, Column], int]:  # noqa: ARG002
        graph = self.graph
        with options.clock("traverse"):  # which certifies each of its searches
            found = extremes(graph, certified=options.certified, **self._options)
        return make_columns(graph, found), found.searches


def make_columns(graph: Graph, found: Extremes) -> dict[str, Column]:
    """Return columns ``set, vertex, eccentricity``: a row per vertex of the center, and of the periphery."""
    sets = ("center", found.center, found.radius), ("periphery", found.periphery, found.diameter)
    sizes = [len(ids) for _, ids, _ in sets]
    return {
        "set": labels_at([name for name, _, _ in sets], np.repeat(np.arange(len(sets)), sizes)),
        "vertex": Column.of_vertices(graph, np.concatenate([to_host(graph.to_numbers(ids)) for _, ids, _ in sets])),
        "eccentricity": Column(np.repeat(np.array([value for _, _, value in sets]), sizes)),
    }


def diameter(
    graph: Graph, *, algorithm: str = "bfs", unconnected: str = "refuse", certified: bool = True, memory: int | None = None
) -> int | float:
    """Return the largest distance between two vertices.

    Parameters and errors are those of ``extremes``.

    Examples
    --------
    >>> import numpy as np
    >>> diameter(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False))
    2
    """
    return _one(graph, "diameter", algorithm, unconnected, certified, memory)


def radius(
    graph: Graph, *, algorithm: str = "bfs", unconnected: str = "refuse", certified: bool = True, memory: int | None = None
) -> int | float:
    """Return the smallest eccentricity.

    Parameters and errors are those of ``extremes``.

    Examples
    --------
    >>> import numpy as np
    >>> radius(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False))
    1
    """
    return _one(graph, "radius", algorithm, unconnected, certified, memory)


def center(
    graph: Graph, *, algorithm: str = "bfs", unconnected: str = "refuse", certified: bool = True, memory: int | None = None
) -> Any:
    """Return the ids of all vertices of the smallest eccentricity, ascending, on the graph's device.

    Parameters and errors are those of ``extremes``.

    Examples
    --------
    >>> import numpy as np
    >>> center(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False)).tolist()
    [1]
    """
    return _one(graph, "center", algorithm, unconnected, certified, memory)


def periphery(
    graph: Graph, *, algorithm: str = "bfs", unconnected: str = "refuse", certified: bool = True, memory: int | None = None
) -> Any:
    """Return the ids of all vertices of the largest eccentricity, ascending, on the graph's device.

    Parameters and errors are those of ``extremes``.

    Examples
    --------
    >>> import numpy as np
    >>> periphery(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False)).tolist()
    [0, 2]
    """
    return _one(graph, "periphery", algorithm, unconnected, certified, memory)


def _one(graph: Graph, name: str, *options: Any) -> Any:
    algorithm, unconnected, certified, memory = options
    given = {"unconnected": unconnected, "certified": certified, "memory": memory}
    return getattr(extremes(graph, algorithm=algorithm, want=(name,), **given), name)


def top_closeness(
    graph: Graph,
    k: int = 10,
    *,
    algorithm: str = "bfs",
    direction: str = "out",
    certified: bool = True,
    memory: int | None = None,
    with_count: bool = False,
) -> Any:
    """Return the k vertices of the highest closeness, without searches from vertices that cannot be among them.

    The closeness is that of ``bfs_many(..., result="summary")``: for a vertex that reaches r vertices, itself included, at
    distances of sum S, it is (r - 1)^2 / (S (n - 1)). It is 0 if S is 0.

    Parameters
    ----------
    graph : Graph
        It need not be connected.
    k : int
        With fewer vertices, all of them are returned.
    algorithm : {"bfs", "sssp"}
        Count hops, or add weights, which must be integers and not negative.
    direction : {"out", "in"}
        Distances from the vertex to others, or from others to the vertex (as NetworkX has it).
    certified, memory
        As in ``extremes``.
    with_count : bool
        Return a pair of the frame and the number of complete searches.

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``vertex, closeness, reached, sum``, by descending closeness. Among equal values, as float64, the vertex with
        the smaller id comes first, also at the end of the list.

    Raises
    ------
    InputError
        ``k`` is below 1, or the graph has float or negative weights and ``algorithm`` is ``"sssp"``.
    CertificateError
        A search returned a wrong distance.
    PrecisionError
        A sum of distances could exceed int64.

    Notes
    -----
    Vertices are searched in the order of an upper bound of their closeness, in groups. The search ends when no other vertex
    has a bound beyond the k-th value found (Bergamini, Borassi, Crescenzi, Marino, Meyerhenke 2017). Of hops on a CPU, a
    search from a vertex ends early, as soon as the vertices that it has found prove that the vertex is behind the k-th one.
    There are complete searches as long as they exclude more vertices per visited edge. The bounds are:

    - Walks (hops). At most as many vertices have distance l from v as walks of l edges begin at v, without an immediate
      return over the same edge if the graph is undirected. The sum of distances to x vertices is smallest if each distance
      has as many vertices as that allows. The bound takes the largest quotient x^2 / S(x) for x up to a bound on r - 1.
      Since S is piecewise linear and convex with S(0) = 0, the quotient has no maximum inside a linear piece.
    - Levels (hops). Let s and w be vertices of one (strongly) connected component, which then reach the same vertices. By
      the triangle inequality d(w, x) >= d(s, x) - d(s, w), in an undirected graph also d(w, x) >= d(s, w) - d(s, x). And
      d(w, x) >= 2 unless x is w or one of its neighbors, at which the inequality gives at most 1. So one search from s
      bounds the sum of distances of each w of the component.
    - Distances (weights). The same inequality, summed over all x. And no distance is below the smallest weight.

    Examples
    --------
    >>> import numpy as np
    >>> graph = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 3]), directed=False)
    >>> top_closeness(graph, 2)
       vertex  closeness  reached  sum
    0       1       0.75        4    4
    1       2       0.75        4    4
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    k = arguments.whole("k", k, 1)
    if _is_weighted(graph, algorithm) and not graph.integer_weights:
        raise InputError(
            "algorithm='sssp' needs integer weights here, since bounds of rounded sums prove nothing; scale and round "
            "weights, or take sssp_many with result='summary'"
        )
    with_count = arguments.flag("with_count", with_count)
    graph = graph_in_direction(graph, direction)
    searches = _Searches(graph, algorithm, arguments.flag("certified", certified), memory)
    found = _Closeness(searches, k)
    xp = namespace(graph.offsets)
    frame = frame_from(
        {
            "vertex": Column(graph.ids_at(xp.asarray(found.vertices))),
            "closeness": Column(xp.asarray(found.values)),
            "reached": Column(xp.asarray(found.reached)),
            "sum": Column(xp.asarray(found.sums)),
        },
        graph.device,
    )
    return (frame, searches.count) if with_count else frame


class _Searches:
    """Certified searches from vertices of a graph, in groups, with a count of them."""

    def __init__(self, graph: Graph, algorithm: str, certified: bool, memory: int | None) -> None:
        self.graph, self.algorithm, self.count = graph, algorithm, 0
        self.certified, self._memory = certified, memory
        self._plans: dict[tuple[bool, int], MultiSourcePlan] = {}
        self._shares: bool | None = None

    def rows(self, numbers: np.ndarray, backward: bool = False, require_all: bool = True) -> Iterator[tuple[int, Array]]:
        """Yield each vertex with its distances to all vertices, or with ``backward`` from all vertices.

        Hops are int32, or int64 for very many vertices. Distances of integer weights are int64. Other distances are those
        of the search in float64, on the host. Unreached vertices have the distance of their type that stands for them.

        Raises
        ------
        InputError
            A vertex is not reached, and ``require_all`` is True.
        CertificateError
            A distance is wrong.
        """
        graph = self.graph.derived.linked_reverse() if backward else self.graph
        for group in self._plan(graph, backward, numbers.size).iter_groups(numbers):
            if self.certified:
                certify_many(graph, group.sources, group.distance).require()
            self.count += len(group)
            for i, number in enumerate(group.sources.tolist()):
                distance = group.distance[i]
                if require_all:
                    self._require_reached(number, distance, backward)
                yield number, self._usable(distance)

    def widest(self, narrow: int = 0) -> int:
        """Return the number of sources up to which groups may grow.

        Sources of one group do not profit from each other's bounds. So groups are wide only where each search then takes a
        fraction of the time, by the estimates of the plans. Otherwise there are ``narrow`` sources, or one per thread.
        """
        if self.graph.n_vertices <= _TINY:
            return _GROUPS[-1]
        if self._shares is None:
            few, many = (self._plan(self.graph, False, size).ranked(size)[0].seconds / size for size in (2, _GROUPS[-1]))
            self._shares = many * _WASTE < few
        if self._shares:
            return _GROUPS[-1]
        per_thread = threads.count() if self.graph.device == "cpu" else 1
        return max(2, narrow, min(per_thread, _GROUPS[-1]))

    def _plan(self, graph: Graph, backward: bool, n_sources: int) -> MultiSourcePlan:
        size = next((group for group in _GROUPS if n_sources <= group), _GROUPS[-1])
        key = backward and graph is not self.graph, size
        if key not in self._plans:
            make = plan_sssp_many if ALGORITHMS[self.algorithm].is_weighted else plan_bfs_many
            known = next((plan.shape for (way, _), plan in self._plans.items() if way == key[0]), None)
            is_few = size <= _GROUPS[1] or graph.n_vertices <= _TINY
            is_small = graph.device == "cpu" and is_few and graph.n_edges <= _SMALL
            by_thread = is_small and not ALGORITHMS[self.algorithm].is_weighted
            name = "source_per_thread" if by_thread else "auto"
            self._plans[key] = make(graph, n_sources=size, memory=self._memory, shape=known, strategy=name)
        return self._plans[key]

    def _require_reached(self, number: int, distance: Array, backward: bool) -> None:
        reached = is_reached(distance)
        if not bool(reached.all()):
            other = int(to_host(namespace(distance).argmin(reached)))
            ends = (other, number) if backward else (number, other)
            start, end = self.graph.ids_at(namespace(distance).asarray(ends)).tolist()
            raise InputError(
                f"the graph is not {'strongly ' if self.graph.directed else ''}connected: there is no path from vertex "
                f"{start!r} to vertex {end!r}, so eccentricities are infinite; pass {option_text('unconnected', 'largest')} "
                "for the largest component"
            )

    def _usable(self, distance: Array) -> Array:
        if is_hops(distance.dtype):
            return distance.astype(_bound_dtype(self.graph, self.algorithm))
        if self.graph.integer_weights:
            return to_integers(distance)
        return to_host(distance).astype(np.float64)  # on the host, as CuPy would treat subnormal numbers as 0


class _Bounds:
    """Lower and upper bounds of one number per vertex, on the graph's device."""

    def __init__(self, xp: Any, n: int, dtype: np.dtype) -> None:
        self.low = xp.zeros(n, dtype)
        self.high = xp.full(n, np.inf if dtype.kind == "f" else np.iinfo(dtype).max, dtype)
        self.searched = xp.zeros(n, bool)
        self._xp = xp

    def raise_low(self, values: Array) -> None:
        self._xp.maximum(self.low, values, out=self.low)

    def lower_high(self, values: Array) -> None:
        self._xp.minimum(self.high, values, out=self.high)

    def settle(self, vertex: int, value: Any) -> None:
        """Record the exact number of a vertex; bounds that were widened for rounding become equal to it."""
        self.low[vertex] = self.high[vertex] = value
        self.searched[vertex] = True


class _Eccentricities:
    """Bounds of all eccentricities, and the searches that tighten them until the extremes are decided."""

    def __init__(self, searches: _Searches) -> None:
        self._searches, self.graph = searches, searches.graph
        n = self.graph.n_vertices
        self.dtype = _bound_dtype(self.graph, searches.algorithm)
        self._xp = np if self.dtype.kind == "f" else namespace(self.graph.offsets)
        # Rounded sums along a path differ from those against it, so that the largest e' may differ from the largest e.
        self._is_exact = self.dtype.kind == "i"
        self._widening = 1.0 if self._is_exact else _widening(self.graph)
        self.out = _Bounds(self._xp, n, self.dtype)
        self.back = _Bounds(self._xp, n, self.dtype) if self.graph.directed else self.out
        derived = self.graph.derived
        degrees = derived.degrees + (derived.linked_reverse().derived.degrees if self.graph.directed else 0)
        # Among equal bounds a vertex of high degree is near to more vertices.
        self._tie = self._xp.asarray((to_host if self._xp is np else self._xp.asarray)(degrees)) / (int(degrees.max()) + 1)
        if n == 1:
            self.out.settle(0, 0)

    @property
    def diameter(self) -> Any:
        """The largest lower bound, of the diameter; equal to it once it is decided."""
        return max(self.out.low.max(), self.back.low.max()) if self._is_exact else self.out.low.max()

    @property
    def radius(self) -> Any:
        """The smallest upper bound, of the radius; equal to it once it is decided."""
        return self.out.high.min()

    def center(self) -> Array:
        return self._xp.flatnonzero(self.out.high == self.radius)

    def periphery(self) -> Array:
        return self._xp.flatnonzero(self.out.low == self.diameter)

    def number(self, value: Any) -> int | float:
        """Return an eccentricity as the number that a search returns."""
        if self.dtype.kind == "i" and not (self.dtype == np.int64 and self.graph.float_distances):
            return int(value)
        return float(value)

    def decide(self, wanted: set[str]) -> None:
        """Search until the extremes of these names are decided."""
        rounds = 0
        while True:
            far, near = self._undecided(wanted)
            n_far, n_near = int(far.sum()), int(near.sum())
            if not n_far and not n_near:
                return
            wider = rounds - _NARROW_ROUNDS
            size = 2
            if wider >= 0:
                # Where very many vertices must be searched, time per round matters more than their choice.
                widest = max(self._searches.widest(), 2 << min(max(rounds - _LONG_ROUNDS, 0) // 64, 6))
                size = min(2 << wider // 2, widest)
            self._round(far if n_far else None, near if n_near else None, size)
            rounds += 1

    def _undecided(self, wanted: set[str]) -> tuple[Array, Array]:
        """Return which vertices may have the largest, and which the smallest eccentricity, as far as it matters."""
        low, high = self.out.low, self.out.high
        far = near = self._xp.zeros(low.size, bool)
        if wanted & {"diameter", "periphery"}:
            largest = self.diameter
            far = high > largest
            if "periphery" in wanted:
                far |= (high == largest) & (low < largest)
            elif self._is_exact and not bool((self.back.high > largest).any()):
                far = self._xp.zeros(low.size, bool)
        if wanted & {"radius", "center"}:
            smallest = self.radius
            near = low < smallest
            if "center" in wanted:
                near |= (low == smallest) & (high > smallest)
        return far, near

    def _round(self, far: Array | None, near: Array | None, size: int) -> None:
        """Search from vertices of large upper and of small lower bounds, half of them each."""
        half = max(size // 2, 1)
        # Without far vertices to decide, distant ones raise the lower bounds of all others most.
        outer = self._best(self.out.low, ~self.out.searched, half) if far is None else self._best(self.out.high, far, half)
        inner = self._best(-self.out.low, ~self.out.searched if near is None else near, half)
        self._search(np.unique(np.concatenate([outer, inner])))
        if not self.graph.directed:
            return
        hard = self._best(self.back.low, ~self.back.searched, half)
        inner = inner[~to_host(self.back.searched[self._xp.asarray(inner)])]
        numbers = np.unique(np.concatenate([hard, inner]))
        if numbers.size:
            self._search(numbers, backward=True)

    def _best(self, values: Array, among: Array, k: int) -> np.ndarray:
        """Return the numbers of up to k vertices of the largest values, NumPy."""
        xp = self._xp
        found = xp.flatnonzero(among)
        if k == 1 and found.size:
            of_found = values[found]
            found = found[of_found == of_found.max()]
            return to_host(found[self._tie[found].argmax()[None]])
        if found.size > k:
            # A choice of sources, which rounding to float64 cannot make wrong.
            key = values[found].astype(np.float64) + self._tie[found]
            found = found[xp.argpartition(key, found.size - k)[found.size - k :]]
        return to_host(found)

    def _search(self, numbers: np.ndarray, backward: bool = False) -> None:
        near, far = (self.back, self.out) if backward else (self.out, self.back)
        for vertex, distance in self._searches.rows(numbers, backward):
            near.settle(vertex, distance.max())
            self._bound(near, far, vertex, distance)

    def _bound(self, near: _Bounds, far: _Bounds, vertex: int, distance: Array) -> None:
        """Tighten bounds by the distances between a vertex and all vertices.

        ``near`` bounds the eccentricities in the direction of the search, and ``far`` those against it.
        """
        widen, largest, beyond = self._widening, near.high[vertex], far.high[vertex]
        if not self._is_exact:
            near.raise_low(largest / widen - distance)
            far.raise_low(distance / widen)
            far.lower_high(widen * (distance + beyond))
            return
        near.raise_low(largest - distance)
        far.raise_low(distance)
        if int(beyond) <= np.iinfo(self.dtype).max // 2 and int(largest) <= np.iinfo(self.dtype).max // 2:
            far.lower_high(distance + beyond)  # the sum cannot overflow


class _Closeness:
    """The vertices of the highest closeness: ``vertices``, ``values``, ``reached`` and ``sums``, NumPy, in their order."""

    def __init__(self, searches: _Searches, k: int) -> None:
        self._searches, self.graph = searches, searches.graph
        self._xp = namespace(self.graph.offsets)
        self._weighted = ALGORITHMS[searches.algorithm].is_weighted
        n = self.graph.n_vertices
        self.vertices, self.reached, self.sums = np.zeros((3, 0), np.int64)
        self.values = np.zeros(0)
        if not n:
            return
        self._labels = self._xp.asarray(strong_components(to_host(self.graph.offsets), to_host(self.graph.targets)))
        self._sizes = np.bincount(to_host(self._labels))
        least, most = self._reach = self._bounds_of_reach()
        self._bound = self._bound_by_weight(most) if self._weighted else self._bound_by_walks(most, least == most)
        self._open = self._xp.ones(n, bool)
        self._run(min(k, n))

    def _run(self, k: int) -> None:
        rounds, n_proofs, searched = 0, _PROOFS, self._searches.count
        is_tiny = self.graph.n_vertices <= _TINY
        may_prove = not (self._weighted or is_tiny) and self.graph.device == "cpu"
        per_search = self.graph.n_edges + _PER_VERTEX * self.graph.n_vertices
        # Vertices that the last round of each kind excluded, per edge visited.
        rates = {"complete": np.inf, "proofs": 0.0}
        chosen = self._candidates(k)
        while chosen.size:
            edges = 0
            if rates["complete"] >= rates["proofs"]:
                kind, rounds = "complete", rounds + 1
                size = 2 << rounds // 2
                size = _GROUPS[-1] if is_tiny else size
                size = size if size <= _GROUPS[1] else min(size, self._searches.widest(_GROUPS[1]))
                numbers = to_host(self._best(chosen, size))
            else:
                kind = "proofs"
                numbers, edges = self._not_below(self._best(chosen, n_proofs))
                n_proofs *= 2 if numbers.size <= n_proofs // 16 else 1
            if numbers.size:
                self._search(numbers, k)
            left = self._candidates(k)
            edges += (self._searches.count - searched) * per_search
            searched = self._searches.count
            if not may_prove or rounds < _FULL_ROUNDS or self.values.size < k:
                rates["complete"] = np.inf
            else:
                rates[kind] = (chosen.size - left.size) / edges
                rates["proofs"] = rates["proofs"] or np.inf  # to be tried
            chosen = left

    def _candidates(self, k: int) -> Array:
        """Return the numbers of vertices that may be among the first k."""
        xp, among = self._xp, self._open
        if self.values.size == k:
            least, last = float(self.values[-1]), int(self.vertices[-1])
            among = among & ((self._bound > least) | ((self._bound == least) & (xp.arange(among.size) < last)))
        return xp.flatnonzero(among)

    def _best(self, chosen: Array, size: int) -> Array:
        """Return the vertices of the largest bounds, of which those of high degree come first."""
        if chosen.size <= size:
            return chosen
        tie = self.graph.derived.degrees[chosen] / (self.graph.derived.max_degree + 1) * 1e-9
        key = self._xp.minimum(self._bound[chosen], 1e300) * (1 + tie)
        return chosen[self._xp.argpartition(key, chosen.size - size)[chosen.size - size :]]

    def _not_below(self, numbers: np.ndarray) -> tuple[np.ndarray, int]:
        """Return the vertices that searches which end early do not prove to be behind the first k, and edges visited."""
        numbers = numbers[np.argsort(-self._bound[numbers], kind="stable")]
        threshold, last = float(self.values[-1]), int(self.vertices[-1])
        verdicts, edges = cpu.prove_below(self.graph, numbers, self._reach, threshold, last, self._searches.certified)
        if (verdicts == cpu.WRONG).any():
            wrong = self.graph.ids_at(numbers[verdicts == cpu.WRONG][:1]).tolist()[0]
            raise CertificateError(f"the search from vertex {wrong!r} returned wrong distances")
        self._open[numbers[verdicts == cpu.BELOW]] = False
        return numbers[verdicts == cpu.OPEN], edges * (1 + self._searches.certified)

    def _search(self, numbers: np.ndarray, k: int) -> None:
        found = []
        for vertex, distance in self._searches.rows(numbers, require_all=False):
            self._open[vertex] = False
            if self._weighted:
                is_in = is_reached(distance)
                inside = distance if bool(is_in.all()) else distance[is_in]
                n_inside, largest, total = inside.size, int(inside.max()), int(inside.sum(dtype=np.int64))
            else:
                levels = self._levels(distance)
                n_inside, largest = int(levels.sum()), levels.size - 1
                total = int((levels * self._xp.arange(levels.size)).sum())
            if n_inside * largest >= _MAX_SUM:
                raise PrecisionError("a sum of distances could exceed 2^63 - 1, the largest int64; scale the weights down")
            found.append((vertex, n_inside, total))
            if self._sizes[int(self._labels[vertex])] > 1:
                least = self._least_sums(inside, distance) if self._weighted else self._least_hops(levels)
                self._bound_component(vertex, distance, least, n_inside)
        vertices, reached, sums = np.array(found, np.int64).T
        self.vertices = np.concatenate([self.vertices, vertices])
        self.reached, self.sums = np.concatenate([self.reached, reached]), np.concatenate([self.sums, sums])
        self.values = np.concatenate([self.values, self._closeness(reached - 1, sums)])
        best = np.lexsort((self.vertices, -self.values))[:k]
        self.vertices, self.values = self.vertices[best], self.values[best]
        self.reached, self.sums = self.reached[best], self.sums[best]

    def _closeness(self, others: Any, sums: Any) -> Any:
        """Return the closeness as ``kinds.summary`` computes it. In floats it does not increase with the sum either."""
        xp = namespace(sums)
        quotient = others / xp.where(sums > 0, sums, 1) * (others / max(self.graph.n_vertices - 1, 1))
        return xp.where(sums > 0, quotient, 0.0)

    def _levels(self, distance: Array) -> Array:
        """Return the number of vertices at each hop count."""
        if self.graph.device == "cpu":
            return cpu.count_levels(distance)
        return self._xp.bincount(distance[is_reached(distance)]).astype(np.int64)

    def _bound_component(self, vertex: int, distance: Array, least: Array, n_inside: int) -> None:
        """Bound the closeness of the other vertices of the component by the distances from one.

        ``least`` has lower bounds of sums, per vertex if there are weights, and else as ``_least_hops`` returns them.
        """
        xp = self._xp
        if not self._weighted and self.graph.device == "cpu":
            cpu.bound_component(
                distance, self._labels, int(self._labels[vertex]), least, self.graph.derived.degrees, n_inside, self._bound
            )
            return
        members = xp.flatnonzero(self._labels == self._labels[vertex])
        least = least[members] if self._weighted else least[distance[members]] - self.graph.derived.degrees[members]
        bound = xp.where(least > 0, self._closeness(n_inside - 1, xp.maximum(least, 0)), np.inf)
        self._bound[members] = xp.minimum(self._bound[members], bound)

    def _least_hops(self, counts: Array) -> Array:
        """Return, per level, a lower bound of the sum of hops of its vertices, plus the degree of the vertex."""
        xp = self._xp
        level = xp.arange(counts.size)
        until, hops = xp.cumsum(counts), xp.cumsum(counts * level)
        above = xp.append(counts[1:], 0)
        least = (hops[-1] - hops) - level * (until[-1] - until) + above
        if self.graph.directed:
            return least + 2 * until - 2
        below = xp.append(xp.zeros(1, np.int64), counts[:-1])
        return least + level * until - hops + below + 2 * counts - 2

    def _least_sums(self, inside: Array, at: Array) -> Array:
        """Return lower bounds of the sums of distances of vertices at some distances."""
        xp = self._xp
        ordered = xp.sort(inside)
        before = xp.append(xp.zeros(1, np.int64), xp.cumsum(ordered))
        place = xp.searchsorted(ordered, at, side="right")
        least = (before[-1] - before[place]) - at * (inside.size - place)
        return least if self.graph.directed else least + at * place - before[place]

    def _bounds_of_reach(self) -> tuple[Array, Array]:
        """Return bounds of the number of vertices that each vertex reaches."""
        xp, n = self._xp, self.graph.n_vertices
        of_component = xp.asarray(self._sizes)[self._labels].astype(np.int64)
        if not self.graph.directed or self._sizes.size == 1:
            return of_component, of_component
        label = int(np.argmax(self._sizes))
        one = to_host(xp.flatnonzero(self._labels == label)[:1])
        ((_, distance),) = self._searches.rows(one, require_all=False)
        after = is_reached(distance)
        ((_, distance),) = self._searches.rows(one, backward=True, require_all=False)
        before = is_reached(distance)
        if self.graph.device == "cpu":
            return cpu.reach_bounds(self.graph, self._labels, label, after, before)
        least, most = of_component, xp.full(n, n, np.int64)
        # What follows the largest component cannot reach it. Nor can any vertex that does not.
        most[~before] = n - int(before.sum())
        least[before & after] = most[before & after] = int(after.sum())
        return least, most

    def _bound_by_weight(self, most: Array) -> Array:
        xp = self._xp
        lightest = float(self.graph.derived.min_weight) if self.graph.n_edges else np.inf
        if lightest <= 0:
            return xp.where(most > 1, np.inf, 0.0)
        return (most - 1) / max(self.graph.n_vertices - 1, 1) / lightest * _SLACK

    def _bound_by_walks(self, most: Array, is_exact: Array) -> Array:
        """Bound the closeness by the number of walks of each length."""
        xp, graph = self._xp, self.graph
        degrees = graph.derived.degrees
        walks, shorter = degrees, None
        left = most - 1
        covered, sums = xp.zeros((2, graph.n_vertices), np.int64)
        best = xp.zeros(graph.n_vertices)
        for length in range(1, _WALK_LEVELS + 1):
            here = xp.minimum(walks, left)
            covered, sums, left = covered + here, sums + length * here, left - here
            best = xp.maximum(best, self._closeness(covered, sums))
            if not bool((left > 0).any()) or int(walks.max()) >= _MAX_WALKS // max(graph.n_edges, 1):
                break
            longer = self._sum_over_neighbors(walks)
            if not graph.directed:  # leave out the walks that return over the last edge
                longer -= degrees if shorter is None else (degrees - 1) * shorter
            walks, shorter = longer, walks
        last = self._closeness(covered + left, sums + (length + 1) * left)
        return xp.where(is_exact, last, xp.maximum(best, last) * _SLACK)

    def _sum_over_neighbors(self, values: Array) -> Array:
        xp, graph = self._xp, self.graph
        if graph.device == "cpu":
            return cpu.sum_over_neighbors(graph.offsets, graph.targets, values)
        before = xp.zeros(graph.n_edges + 1, np.int64)
        xp.cumsum(values[graph.targets], out=before[1:])
        return before[graph.offsets[1:]] - before[graph.offsets[:-1]]


def _bound_dtype(graph: Graph, algorithm: str) -> np.dtype:
    """Return the type that bounds of distances are computed in."""
    if ALGORITHMS[algorithm].is_weighted:
        return np.dtype(np.int64 if graph.integer_weights else np.float64)
    return np.dtype(np.int32 if graph.n_vertices < 2**30 else np.int64)


def _widening(graph: Graph) -> float:
    """Return the factor by which rounding may break the triangle inequality; its square, as d(v, w) stands for d(w, v).

    Raises
    ------
    PrecisionError
        The error of the longest possible path is no longer small.
    """
    weights: Array = graph.weights
    unit = graph.n_vertices * float(np.finfo(weights.dtype).eps) / 2
    if unit >= 0.1:
        raise PrecisionError(
            f"a path of {graph.n_vertices:,} vertices may have no exact digit in {weights.dtype}; use integer weights"
        )
    error = unit / (1 - unit)
    return ((1 + error) / (1 - error)) ** 2 * _SLACK


def _connected_part(graph: Graph, algorithm: str, unconnected: str) -> tuple[Graph, Any]:
    """Return the graph to search, and a function that returns the ids of its vertex numbers.

    Raises
    ------
    InputError
        As ``extremes``, except that the graph is not connected.
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    arguments.choice("algorithm", algorithm, tuple(ALGORITHMS))
    arguments.choice("unconnected", unconnected, UNCONNECTED)
    if not graph.n_vertices:
        raise InputError("the graph has no vertices, so it has no eccentricities")
    _is_weighted(graph, algorithm)
    if unconnected == "refuse":
        return graph, graph.ids_at
    kept = _largest_component(graph)
    if kept.size == graph.n_vertices:
        return graph, graph.ids_at
    kept = namespace(graph.offsets).asarray(kept)
    return _induced(graph, kept), lambda numbers: graph.ids_at(kept[numbers])


def require_connected(graph: Graph, *, algorithm: str, unconnected: str = "refuse", memory: int | None = None) -> None:
    """Raise InputError as ``extremes`` does for the same arguments, after at most two searches."""
    part, _ = _connected_part(graph, algorithm, unconnected)
    searches = _Searches(part, algorithm, False, memory)
    for backward in (False, True)[: 1 + part.directed]:
        for _ in searches.rows(np.zeros(1, np.int64), backward):
            pass


def _is_weighted(graph: Graph, algorithm: str) -> bool:
    """Return whether the algorithm adds weights; raise InputError if those of the graph are missing or negative."""
    if not ALGORITHMS[arguments.choice("algorithm", algorithm, tuple(ALGORITHMS))].is_weighted:
        return False
    if graph.weights is None:
        raise InputError("algorithm='sssp' needs weights, and the graph has none; pass algorithm='bfs' to count hops")
    if graph.has_negative_weights:
        raise InputError(
            "the graph has negative weights, which the bounds do not cover; take sssp_many with result='summary'"
        )
    return True


def _largest_component(graph: Graph) -> np.ndarray:
    """Return the vertex numbers of the largest (strongly) connected component, ascending, NumPy."""
    labels = strong_components(to_host(graph.offsets), to_host(graph.targets))
    sizes = np.bincount(labels)
    # argmax over the vertices: of equally large components the one with the smallest vertex.
    return np.flatnonzero(labels == labels[np.argmax(sizes[labels])])


def _induced(graph: Graph, kept: Array) -> Graph:
    """Return the graph of some vertices and the edges between them. Vertex i of it is ``kept[i]``; ids are these numbers.

    For a component, distances between its vertices are those in the whole graph: each path between them stays inside.
    """
    xp = namespace(graph.offsets)
    number = xp.full(graph.n_vertices, -1, index_dtype(graph.n_vertices))
    number[kept] = xp.arange(kept.size, dtype=number.dtype)
    # A running count of the beginnings of adjacency lists gives the head of each edge.
    begins = xp.bincount(graph.offsets[1:-1], minlength=graph.n_edges + 1)[: graph.n_edges]
    inside = (number[xp.cumsum(begins)] >= 0) & (number[graph.targets] >= 0)
    before = xp.zeros(graph.n_edges + 1, np.int64)
    xp.cumsum(inside, out=before[1:])
    degrees = (before[graph.offsets[1:]] - before[graph.offsets[:-1]])[kept]
    offsets = xp.zeros(kept.size + 1, np.int64)
    xp.cumsum(degrees, out=offsets[1:])
    return replace(
        graph,
        offsets=offsets,
        targets=number[graph.targets[inside]].astype(graph.targets.dtype, copy=False),
        weights=None if graph.weights is None else graph.weights[inside],
        ids=graph.ids_at(kept),
        report=BuildReport(),
        negative_loops={},
        edge_rows=None,
        edges_of_rows=None,
    )
