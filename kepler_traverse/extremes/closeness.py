"""The vertices of the highest closeness, by bounds of the sums of distances of all vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arguments
from .._arrays import Array, is_reached, namespace, to_host
from ..cpu import closeness as cpu
from ..cpu.components import strong_components
from ..errors import CertificateError, InputError, PrecisionError
from ..graph import Graph
from ..graph.closed import refuse_closed
from ..multi_source.outputs import graph_in_direction
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column, frame_from
from .searches import GROUPS, SLACK, TINY, Searches, is_weighted

_FULL_ROUNDS = 8  # rounds of complete searches, whose distances bound the closeness of all vertices
_PER_VERTEX = 4  # work of a complete search per vertex, in edges
_PROOFS = 32  # searches of a round that end once a vertex cannot be among the first k; rounds grow
_WALK_LEVELS = 32  # levels for which walks are counted; on graphs of long paths they bound little
_MAX_WALKS = 2**62  # so that sums over edges fit into int64
_MAX_SUM = 2**62  # as above, of distances


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
    """Return the k vertices of the highest closeness, without searches from vertices that cannot be
    among them.

    The closeness is that of ``bfs_many(..., result="summary")``: for a vertex that reaches r
    vertices, itself included, at distances of sum S, it is (r - 1)^2 / (S (n - 1)). It is 0 if S is
    0.

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
        Columns ``vertex, closeness, reached, sum``, by descending closeness. Among equal values, as
        float64, the vertex with the smaller id comes first, also at the end of the list.

    Raises
    ------
    InputError
        ``k`` is below 1, or the graph has float or negative weights and ``algorithm`` is
        ``"sssp"``.
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

    - Walks (hops). At most as many vertices have distance l from v as walks of l edges begin at v,
      without an immediate return over the same edge if the graph is undirected. The sum of
      distances to x vertices is smallest if each distance has as many vertices as that allows. The
      bound takes the largest quotient x^2 / S(x) for x up to a bound on r - 1. Since S is piecewise
      linear and convex with S(0) = 0, the quotient has no maximum inside a linear piece.
    - Levels (hops). Let s and w be vertices of one (strongly) connected component, which then reach
      the same vertices. By the triangle inequality d(w, x) >= d(s, x) - d(s, w), in an undirected
      graph also d(w, x) >= d(s, w) - d(s, x). And d(w, x) >= 2 unless x is w or one of its
      neighbors, at which the inequality gives at most 1. So one search from s bounds the sum of
      distances of each w of the component.
    - Distances (weights). The same inequality, summed over all x. And no distance is below the
      smallest weight.

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
    refuse_closed(graph, "top_closeness is of paths through all vertices")
    k = arguments.whole("k", k, 1)
    if is_weighted(graph, algorithm) and not graph.integer_weights:
        raise InputError(
            "algorithm='sssp' needs integer weights here, since bounds of rounded sums prove nothing; scale and round "
            "weights, or take sssp_many with result='summary'"
        )
    with_count = arguments.flag("with_count", with_count)
    graph = graph_in_direction(graph, direction)
    searches = Searches(graph, algorithm, arguments.flag("certified", certified), memory)
    best = _Closeness(searches, k)

    xp = namespace(graph.offsets)
    frame = frame_from(
        {
            "vertex": Column(graph.ids_at(xp.asarray(best.vertices))),
            "closeness": Column(xp.asarray(best.values)),
            "reached": Column(xp.asarray(best.reached)),
            "sum": Column(xp.asarray(best.sums)),
        },
        graph.device,
    )
    if with_count:
        return frame, searches.count
    return frame


class _Closeness:
    """The vertices of the highest closeness, and bounds of that of all others.

    - ``vertices``, ``reached``, ``sums``: int64, NumPy, of shape (k,) or less: vertex numbers, the
      vertices that each one reaches, and the sums of their distances, by descending closeness.
    - ``values``: float64, NumPy, of the same shape: the closeness.
    - ``_labels``: of shape (n,): the (strongly) connected component of each vertex.
    - ``_sizes``: NumPy: the vertices of each component.
    - ``_reach``: two int64 arrays of shape (n,): a lower and an upper bound of the number of vertices
      that each vertex reaches.
    - ``_bound``: float64 of shape (n,): an upper bound of the closeness of each vertex.
    - ``_open``: bool of shape (n,). True: the vertex was neither searched from nor proved to be behind
      the first k.
    """

    def __init__(self, searches: Searches, k: int) -> None:
        self._searches = searches
        self.graph = searches.graph
        self._xp = namespace(self.graph.offsets)
        self._weighted = ALGORITHMS[searches.algorithm].is_weighted
        n = self.graph.n_vertices
        self.vertices, self.reached, self.sums = np.zeros((3, 0), np.int64)
        self.values = np.zeros(0)
        if not n:
            return

        self._labels = self._xp.asarray(
            strong_components(to_host(self.graph.offsets), to_host(self.graph.targets))
        )
        self._sizes = np.bincount(to_host(self._labels))
        least, most = self._reach = self._bounds_of_reach()
        if self._weighted:
            self._bound = self._bound_by_weight(most)
        else:
            self._bound = self._bound_by_walks(most, least == most)
        self._open = self._xp.ones(n, bool)
        self._find_first_k(min(k, n))

    def _find_first_k(self, k: int) -> None:
        """Search until no other vertex has a bound beyond the k-th value.

        Each round makes complete searches, or such as end early and prove that a vertex is behind,
        whichever kind has excluded more vertices per edge.
        """
        n_complete_rounds = 0
        n_proofs = _PROOFS
        n_searched = self._searches.count
        is_tiny = self.graph.n_vertices <= TINY
        may_prove = not (self._weighted or is_tiny) and self.graph.device == "cpu"
        edges_per_search = self.graph.n_edges + _PER_VERTEX * self.graph.n_vertices
        # Vertices that the last round of each kind excluded, per edge visited.
        rates = {"complete": np.inf, "proofs": 0.0}

        candidates = self._candidates(k)
        while candidates.size:
            edges = 0
            if rates["complete"] >= rates["proofs"]:
                kind = "complete"
                n_complete_rounds += 1
                size = 2 << n_complete_rounds // 2
                size = GROUPS[-1] if is_tiny else size
                if size > GROUPS[1]:
                    size = min(size, self._searches.widest(GROUPS[1]))
                numbers = to_host(self._choose(candidates, size))
            else:
                kind = "proofs"
                numbers, edges = self._not_below(self._choose(candidates, n_proofs))
                n_proofs *= 2 if numbers.size <= n_proofs // 16 else 1
            if numbers.size:
                self._search(numbers, k)

            remaining = self._candidates(k)
            edges += (self._searches.count - n_searched) * edges_per_search
            n_searched = self._searches.count
            if not may_prove or n_complete_rounds < _FULL_ROUNDS or self.values.size < k:
                rates["complete"] = np.inf
            else:
                rates[kind] = (candidates.size - remaining.size) / edges
                rates["proofs"] = rates["proofs"] or np.inf  # to be tried
            candidates = remaining

    def _candidates(self, k: int) -> Array:
        """Return the numbers of vertices that may be among the first k."""
        xp = self._xp
        is_candidate = self._open
        if self.values.size == k:
            # those that may be closer than the last of them, or as close with a smaller number
            kth_value = float(self.values[-1])
            kth_vertex = int(self.vertices[-1])
            is_before = xp.arange(is_candidate.size) < kth_vertex
            is_closer = (self._bound > kth_value) | ((self._bound == kth_value) & is_before)
            is_candidate = is_candidate & is_closer
        return xp.flatnonzero(is_candidate)

    def _choose(self, candidates: Array, size: int) -> Array:
        """Return up to ``size`` of some vertices, those of the largest bounds; of equal ones those
        of high degree come first.
        """
        if candidates.size <= size:
            return candidates
        tie = self.graph.derived.degrees[candidates] / (self.graph.derived.max_degree + 1) * 1e-9
        key = self._xp.minimum(self._bound[candidates], 1e300) * (1 + tie)
        return candidates[
            self._xp.argpartition(key, candidates.size - size)[candidates.size - size :]
        ]

    def _not_below(self, numbers: np.ndarray) -> tuple[np.ndarray, int]:
        """Search from each of some vertices until it is proved to be behind the first k.

        Return the vertices of which that is not proved, so that they need complete searches, and
        the number of edges visited.
        """
        numbers = numbers[np.argsort(-self._bound[numbers], kind="stable")]
        kth_value = float(self.values[-1])
        kth_vertex = int(self.vertices[-1])
        verdicts, edges = cpu.prove_below(
            self.graph, numbers, self._reach, kth_value, kth_vertex, self._searches.certified
        )
        if (verdicts == cpu.WRONG).any():
            wrong_vertex = self.graph.ids_at(numbers[verdicts == cpu.WRONG][:1]).tolist()[0]
            raise CertificateError(
                f"the search from vertex {wrong_vertex!r} returned wrong distances"
            )
        self._open[numbers[verdicts == cpu.BELOW]] = False
        # A certificate visits each edge once more.
        return numbers[verdicts == cpu.OPEN], edges * (1 + self._searches.certified)

    def _search(self, numbers: np.ndarray, k: int) -> None:
        """Search from some vertices, and update the first k. Each search bounds the closeness of
        its component.
        """
        totals = []
        for vertex, distance in self._searches.iter_distances(numbers, require_all=False):
            self._open[vertex] = False
            if self._weighted:
                is_inside = is_reached(distance)
                inside = distance
                if not bool(is_inside.all()):
                    inside = distance[is_inside]
                n_inside = inside.size
                largest = int(inside.max())
                total = int(inside.sum(dtype=np.int64))
            else:
                levels = self._levels(distance)
                n_inside = int(levels.sum())
                largest = levels.size - 1
                total = int((levels * self._xp.arange(levels.size)).sum())

            if n_inside * largest >= _MAX_SUM:
                raise PrecisionError(
                    "a sum of distances could exceed 2^63 - 1, the largest "
                    "int64; scale the weights down"
                )

            totals.append((vertex, n_inside, total))
            if self._sizes[int(self._labels[vertex])] > 1:
                if self._weighted:
                    least_sums = self._least_sums(inside, distance)
                else:
                    least_sums = self._least_hops(levels)
                self._bound_component(vertex, distance, least_sums, n_inside)

        # Those searched now and the first k before: the first k of all.
        vertices, reached, sums = np.array(totals, np.int64).T
        self.vertices = np.concatenate([self.vertices, vertices])
        self.reached = np.concatenate([self.reached, reached])
        self.sums = np.concatenate([self.sums, sums])
        self.values = np.concatenate([self.values, self._closeness(reached - 1, sums)])
        first_k = np.lexsort((self.vertices, -self.values))[:k]
        self.vertices = self.vertices[first_k]
        self.values = self.values[first_k]
        self.reached = self.reached[first_k]
        self.sums = self.sums[first_k]

    def _closeness(self, n_others: Any, sums: Any) -> Any:
        """Return the closeness of vertices that reach ``n_others`` others, as ``kinds.summary``
        computes it. In floats it does not increase with the sum either.
        """
        xp = namespace(sums)
        quotient = (
            n_others / xp.where(sums > 0, sums, 1) * (n_others / max(self.graph.n_vertices - 1, 1))
        )
        return xp.where(sums > 0, quotient, 0.0)

    def _levels(self, distance: Array) -> Array:
        """Return the number of vertices at each hop count."""
        if self.graph.device == "cpu":
            return cpu.count_levels(distance)
        return self._xp.bincount(distance[self._reached(distance)]).astype(np.int64)

    def _reached(self, distance: Array) -> Array:
        """Return where distances of a search are those of reached vertices."""
        if self._weighted:
            return is_reached(distance)
        # hops of a very large graph are int64, which ``is_reached`` takes for sums of weights
        return distance >= 0

    def _bound_component(
        self, vertex: int, distance: Array, least_sums: Array, n_inside: int
    ) -> None:
        """Bound the closeness of the other vertices of the component by the distances from one.

        ``least_sums`` has lower bounds of the sums of distances. With weights it has one per
        vertex. Without, it has one per level, from which the degree of a vertex is still to be
        subtracted. ``n_inside`` is the number of vertices that each vertex of the component
        reaches.
        """
        xp = self._xp
        if not self._weighted and self.graph.device == "cpu":
            cpu.bound_component(
                distance,
                self._labels,
                int(self._labels[vertex]),
                least_sums,
                self.graph.derived.degrees,
                n_inside,
                self._bound,
            )
            return

        members = xp.flatnonzero(self._labels == self._labels[vertex])
        if self._weighted:
            least_sums = least_sums[members]
        else:
            least_sums = least_sums[distance[members]] - self.graph.derived.degrees[members]
        bound = xp.where(
            least_sums > 0, self._closeness(n_inside - 1, xp.maximum(least_sums, 0)), np.inf
        )
        self._bound[members] = xp.minimum(self._bound[members], bound)

    def _least_hops(self, counts: Array) -> Array:
        """Return, per level, a lower bound of the sum of hops from a vertex of that level to all
        others, plus the degree of the vertex.

        ``counts`` is the number of vertices per level of the search that bounds them.
        """
        xp = self._xp
        level = xp.arange(counts.size)
        n_until = xp.cumsum(counts)
        hops_until = xp.cumsum(counts * level)
        n_next = xp.append(counts[1:], 0)
        # Of a vertex at a level: those at a level x beyond are x - level away at least. All but
        # itself and its neighbors are 2 away at least. So those of the next level count once more,
        # and those that this inequality does not bound count 2. Neighbors count 1 too much: that is
        # the degree. In an undirected graph those at a level x before are level - x away at least.
        least_sums = (hops_until[-1] - hops_until) - level * (n_until[-1] - n_until) + n_next
        if self.graph.directed:
            return least_sums + 2 * n_until - 2
        n_previous = xp.append(xp.zeros(1, np.int64), counts[:-1])
        return least_sums + level * n_until - hops_until + n_previous + 2 * counts - 2

    def _least_sums(self, inside: Array, own_distance: Array) -> Array:
        """Return lower bounds of the sums of distances of vertices.

        ``inside`` are the distances of the vertices that a search reaches, and ``own_distance``
        those of the vertices whose sums are bounded.
        """
        xp = self._xp
        ordered = xp.sort(inside)
        sums_before = xp.append(xp.zeros(1, np.int64), xp.cumsum(ordered))
        n_nearer = xp.searchsorted(ordered, own_distance, side="right")
        # From a vertex at distance d, one at a distance x beyond is x - d away at least, and in an
        # undirected graph one at a distance x before it d - x.
        least_sums = (sums_before[-1] - sums_before[n_nearer]) - own_distance * (
            inside.size - n_nearer
        )
        if self.graph.directed:
            return least_sums
        return least_sums + own_distance * n_nearer - sums_before[n_nearer]

    def _bounds_of_reach(self) -> tuple[Array, Array]:
        """Return a lower and an upper bound of the number of vertices that each vertex reaches."""
        xp = self._xp
        n = self.graph.n_vertices
        of_component = xp.asarray(self._sizes)[self._labels].astype(np.int64)
        if not self.graph.directed or self._sizes.size == 1:
            return of_component, of_component

        # By a search from a vertex of the largest component in either direction.
        label = int(np.argmax(self._sizes))
        member = to_host(xp.flatnonzero(self._labels == label)[:1])
        ((_, distance),) = self._searches.iter_distances(member, require_all=False)
        is_after = self._reached(distance)
        ((_, distance),) = self._searches.iter_distances(member, backward=True, require_all=False)
        is_before = self._reached(distance)
        if self.graph.device == "cpu":
            return cpu.reach_bounds(self.graph, self._labels, label, is_after, is_before)
        min_reach = of_component
        max_reach = xp.full(n, n, np.int64)
        # What follows the largest component cannot reach it. Nor can any vertex that does not.
        max_reach[~is_before] = n - int(is_before.sum())
        min_reach[is_before & is_after] = max_reach[is_before & is_after] = int(is_after.sum())
        return min_reach, max_reach

    def _bound_by_weight(self, most: Array) -> Array:
        """Return a bound of the closeness of each vertex that reaches at most ``most`` vertices: none
        of the others is nearer than the lightest edge is long.
        """
        xp = self._xp
        if self.graph.n_edges:
            lightest = float(self.graph.derived.min_weight)
        else:
            lightest = np.inf
        if lightest <= 0:
            return xp.where(most > 1, np.inf, 0.0)
        return (most - 1) / max(self.graph.n_vertices - 1, 1) / lightest * SLACK

    def _bound_by_walks(self, most: Array, is_exact: Array) -> Array:
        """Return a bound of the closeness of each vertex by the number of walks of each length.

        ``most`` bounds the number of vertices that it reaches, itself included. ``is_exact``, bool,
        is True where it reaches exactly so many.
        """
        xp = self._xp
        graph = self.graph
        degrees = graph.derived.degrees
        walks = degrees
        walks_before = None
        n_left = most - 1
        covered, sums = xp.zeros((2, graph.n_vertices), np.int64)
        best_bound = xp.zeros(graph.n_vertices)

        for length in range(1, _WALK_LEVELS + 1):
            # at most as many vertices at this distance as walks end there
            n_at_length = xp.minimum(walks, n_left)
            covered = covered + n_at_length
            sums = sums + length * n_at_length
            n_left = n_left - n_at_length
            best_bound = xp.maximum(best_bound, self._closeness(covered, sums))
            if not bool((n_left > 0).any()):
                break
            if int(walks.max()) >= _MAX_WALKS // max(graph.n_edges, 1):
                break  # the next numbers of walks might overflow

            next_walks = self._sum_over_neighbors(walks)
            if not graph.directed:  # leave out the walks that return over the last edge
                next_walks -= degrees if walks_before is None else (degrees - 1) * walks_before
            walks_before = walks
            walks = next_walks
        last_bound = self._closeness(covered + n_left, sums + (length + 1) * n_left)
        return xp.where(is_exact, last_bound, xp.maximum(best_bound, last_bound) * SLACK)

    def _sum_over_neighbors(self, values: Array) -> Array:
        """Return per vertex the sum of the values of its neighbors."""
        xp = self._xp
        graph = self.graph
        if graph.device == "cpu":
            return cpu.sum_over_neighbors(graph.offsets, graph.targets, values)
        sums_before = xp.zeros(graph.n_edges + 1, np.int64)
        xp.cumsum(values[graph.targets], out=sums_before[1:])
        return sums_before[graph.offsets[1:]] - sums_before[graph.offsets[:-1]]
