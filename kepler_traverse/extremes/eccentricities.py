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
UNCONNECTED = ("refuse", "largest")
_ARRAYS = 8  # of 8 bytes per vertex: bounds, distances, and what is computed of them
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
    is_list = (
        isinstance(want, Collection) and not isinstance(want, str) and getattr(want, "ndim", 1) == 1
    )
    if not is_list or not len(want):
        raise InputError(
            "want must be a collection of "
            f"{', '.join(map(repr, EXTREMES))}, not {arguments.describe(want)}"
        )
    wanted = {arguments.choice("want", name, EXTREMES) for name in want}
    part, ids_of = _connected_part(graph, algorithm, unconnected)
    searches = Searches(part, algorithm, arguments.flag("certified", certified), memory)
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


class ExtremesSearch(SearchTogether):
    """The search for the extremes of a graph, as columns ``set, vertex, eccentricity``; it takes no
    sources.

    Parameters and errors are those of ``extremes``.
    """

    def __init__(self, graph: Graph, algorithm: str, unconnected: str, memory: int | None):
        why = "searches from few vertices bound the eccentricities of all others"
        # the searches choose their own
        strategy = OnlyWay(graph.device, "eccentricity_bounds", why)
        query = make_query(graph, algorithm, predecessors=False, limit=None)
        nbytes = graph.derived.nbytes_on_device + _ARRAYS * 8 * graph.n_vertices
        work = Workload(graph, algorithm, query, n_sources=1)
        super().__init__(work, strategy, nbytes, f"{graph!r}; {why}")
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
        graph = self.graph
        with options.clock("traverse"):  # which certifies each of its searches
            result = extremes(graph, certified=options.certified, **self._options)
        return make_columns(graph, result), result.searches


def make_columns(graph: Graph, result: Extremes) -> dict[str, Column]:
    """Return columns ``set, vertex, eccentricity``: a row per vertex of the center, and of the
    periphery.
    """
    sets = (
        ("center", result.center, result.radius),
        ("periphery", result.periphery, result.diameter),
    )
    sizes = [len(ids) for _, ids, _ in sets]
    return {
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

    Parameters and errors are those of ``extremes``.

    Examples
    --------
    >>> import numpy as np
    >>> diameter(graph_from_edges(np.array([0, 1]), np.array([1, 2]), directed=False))
    2
    """
    return _one(graph, "diameter", algorithm, unconnected, certified, memory)


def radius(
    graph: Graph,
    *,
    algorithm: str = "bfs",
    unconnected: str = "refuse",
    certified: bool = True,
    memory: int | None = None,
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
    return _one(graph, "center", algorithm, unconnected, certified, memory)


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
    return _one(graph, "periphery", algorithm, unconnected, certified, memory)


def _one(graph: Graph, name: str, *options: Any) -> Any:
    algorithm, unconnected, certified, memory = options
    given = {"unconnected": unconnected, "certified": certified, "memory": memory}
    return getattr(extremes(graph, algorithm=algorithm, want=(name,), **given), name)


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
        """Record the exact number of a vertex; bounds that were widened for rounding become equal
        to it.
        """
        self.low[vertex] = self.high[vertex] = value
        self.searched[vertex] = True


class _Eccentricities:
    """Bounds of all eccentricities, and the searches that tighten them until the extremes are
    decided.
    """

    def __init__(self, searches: Searches) -> None:
        self._searches = searches
        self.graph = searches.graph
        n = self.graph.n_vertices
        self.dtype = bound_dtype(self.graph, searches.algorithm)
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
        derived = self.graph.derived
        degrees = derived.degrees + (
            derived.linked_reverse().derived.degrees if self.graph.directed else 0
        )
        # Among equal bounds a vertex of high degree is near to more vertices.
        self._tie = self._xp.asarray((to_host if self._xp is np else self._xp.asarray)(degrees)) / (
            int(degrees.max()) + 1
        )
        if n == 1:
            self.out.settle(0, 0)

    @property
    def diameter(self) -> Any:
        """The largest lower bound, of the diameter; equal to it once it is decided."""
        if self._is_exact:
            return max(self.out.low.max(), self.back.low.max())
        return self.out.low.max()

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
            n_far = int(far.sum())
            n_near = int(near.sum())
            if not n_far and not n_near:
                return
            wider = rounds - _NARROW_ROUNDS
            size = 2
            if wider >= 0:
                # Where very many vertices must be searched, time per round matters more than their
                # choice.
                widest = max(
                    self._searches.widest(), 2 << min(max(rounds - _LONG_ROUNDS, 0) // 64, 6)
                )
                size = min(2 << wider // 2, widest)
            self._round(far if n_far else None, near if n_near else None, size)
            rounds += 1

    def _undecided(self, wanted: set[str]) -> tuple[Array, Array]:
        """Return which vertices may have the largest, and which the smallest eccentricity, as far
        as what is wanted depends on it.
        """
        low = self.out.low
        high = self.out.high
        far = self._xp.zeros(low.size, bool)
        near = self._xp.zeros(low.size, bool)
        if wanted & {"diameter", "periphery"}:
            largest = self.diameter
            far = high > largest
            if "periphery" in wanted:
                far |= (high == largest) & (low < largest)
            elif self._is_exact and not bool((self.back.high > largest).any()):
                far[:] = False  # no distance to a vertex is larger either, so that is the diameter
        if wanted & {"radius", "center"}:
            smallest = self.radius
            near = low < smallest
            if "center" in wanted:
                near |= (low == smallest) & (high > smallest)
        return far, near

    def _round(self, far: Array | None, near: Array | None, size: int) -> None:
        """Search from vertices of large upper and of small lower bounds, half of them each.

        ``far`` and ``near``: the vertices among which to choose, None if none is undecided.
        """
        half = max(size // 2, 1)
        # Without far vertices to decide, distant ones raise the lower bounds of all others most.
        if far is None:
            outer = self._best(self.out.low, ~self.out.searched, half)
        else:
            outer = self._best(self.out.high, far, half)
        if near is None:
            near = ~self.out.searched
        inner = self._best(-self.out.low, near, half)
        self._search(sort_distinct(np.concatenate([outer, inner])))
        if not self.graph.directed:
            return
        # The bounds of a directed graph need searches backward, too.
        distant = self._best(self.back.low, ~self.back.searched, half)
        is_searched = to_host(self.back.searched[self._xp.asarray(inner)])
        numbers = sort_distinct(np.concatenate([distant, inner[~is_searched]]))
        if numbers.size:
            self._search(numbers, backward=True)

    def _best(self, values: Array, among: Array, k: int) -> np.ndarray:
        """Return the numbers of up to k vertices of the largest values, NumPy."""
        xp = self._xp
        chosen = xp.flatnonzero(among)
        if k == 1 and chosen.size:
            of_chosen = values[chosen]
            chosen = chosen[of_chosen == of_chosen.max()]
            return to_host(chosen[self._tie[chosen].argmax()[None]])
        if chosen.size > k:
            # A choice of sources, which rounding to float64 cannot make wrong.
            key = values[chosen].astype(np.float64) + self._tie[chosen]
            chosen = chosen[xp.argpartition(key, chosen.size - k)[chosen.size - k :]]
        return to_host(chosen)

    def _search(self, numbers: np.ndarray, backward: bool = False) -> None:
        near, far = (self.back, self.out) if backward else (self.out, self.back)
        for vertex, distance in self._searches.rows(numbers, backward):
            near.settle(vertex, distance.max())
            self._bound(near, far, vertex, distance)

    def _bound(self, near: _Bounds, far: _Bounds, vertex: int, distance: Array) -> None:
        """Tighten bounds by the distances between a vertex and all vertices.

        ``near`` bounds the eccentricities in the direction of the search, and ``far`` those against
        it.
        """
        widen = self._widening
        largest = near.high[vertex]
        beyond = far.high[vertex]
        if not self._is_exact:
            near.raise_low(largest / widen - distance)
            far.raise_low(distance / widen)
            far.lower_high(widen * (distance + beyond))
            return
        near.raise_low(largest - distance)
        far.raise_low(distance)
        if (
            int(beyond) <= np.iinfo(self.dtype).max // 2
            and int(largest) <= np.iinfo(self.dtype).max // 2
        ):
            far.lower_high(distance + beyond)  # the sum cannot overflow


def _widening(graph: Graph) -> float:
    """Return the factor by which rounding may break the triangle inequality; its square, as d(v, w)
    stands for d(w, v).

    Raises PrecisionError: the error of the longest possible path is no longer small.
    """
    weights: Array = graph.weights
    unit = graph.n_vertices * float(np.finfo(weights.dtype).eps) / 2
    if unit >= 0.1:
        raise PrecisionError(
            f"a path of {graph.n_vertices:,} vertices may have no exact digit "
            f"in {weights.dtype}; use integer weights"
        )
    error = unit / (1 - unit)
    return ((1 + error) / (1 - error)) ** 2 * SLACK


def _connected_part(graph: Graph, algorithm: str, unconnected: str) -> tuple[Graph, Any]:
    """Return the graph to search, and a function that returns the ids of its vertex numbers.

    Raises InputError: as ``extremes``, except that the graph is not connected.
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    refuse_closed(graph, "eccentricities are of paths through all vertices")
    arguments.choice("algorithm", algorithm, tuple(ALGORITHMS))
    arguments.choice("unconnected", unconnected, UNCONNECTED)
    if not graph.n_vertices:
        raise InputError("the graph has no vertices, so it has no eccentricities")
    is_weighted(graph, algorithm)
    if unconnected == "refuse":
        return graph, graph.ids_at
    kept = find_component(to_host(graph.offsets), to_host(graph.targets))
    if kept.size == graph.n_vertices:
        return graph, graph.ids_at
    kept = namespace(graph.offsets).asarray(kept)
    return _induced(graph, kept), lambda numbers: graph.ids_at(kept[numbers])


def require_connected(
    graph: Graph, *, algorithm: str, unconnected: str = "refuse", memory: int | None = None
) -> None:
    """Raise InputError as ``extremes`` does for the same arguments, after at most two searches."""
    part, _ = _connected_part(graph, algorithm, unconnected)
    searches = Searches(part, algorithm, False, memory)
    for backward in (False, True)[: 1 + part.directed]:
        for _ in searches.rows(np.zeros(1, np.int64), backward):
            pass


def _induced(graph: Graph, kept: Array) -> Graph:
    """Return the graph of some vertices and the edges between them. Vertex i of it is ``kept[i]``;
    ids are these numbers.

    For a component, distances between its vertices are those in the whole graph: each path between
    them stays inside.
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
