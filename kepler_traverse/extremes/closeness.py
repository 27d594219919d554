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

# Rounds of complete searches, before any round of searches that end early. The distances of a
# complete search bound the closeness of all vertices of its component.
_FULL_ROUNDS = 8
_PER_VERTEX = 4  # work of a complete search per vertex, in units of the work per edge
# Vertices of the first round of searches that end early: as soon as it is proved that the vertex
# cannot be among the first k. Later rounds may have more.
_PROOFS = 32
# The largest length of walks that are counted; on graphs of long paths longer ones bound little.
_WALK_LEVELS = 32
_MAX_WALKS = 2**62  # the largest sum of numbers of walks over all edges, which fits into int64
_MAX_SUM = 2**62  # the largest sum of distances, which fits into int64


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
    Vertices are searched in the order of an upper bound of their closeness, in groups. The search
    ends when no other vertex has a bound beyond the k-th value found (Bergamini, Borassi,
    Crescenzi, Marino, Meyerhenke 2017). Of hops on a CPU, a search from a vertex ends early, as
    soon as the vertices that it has found prove that the vertex is behind the k-th one. There are
    complete searches as long as they exclude more vertices per visited edge. The bounds are:

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
    # InputError if the graph has vertices through which no path may lead.
    refuse_closed(graph, "top_closeness is of paths through all vertices")
    k = arguments.whole("k", k, 1)
    if is_weighted(graph, algorithm) and not graph.integer_weights:
        raise InputError(
            "algorithm='sssp' needs integer weights here, since bounds of rounded sums prove nothing; scale and round "
            "weights, or take sssp_many with result='summary'"
        )
    with_count = arguments.flag("with_count", with_count)
    # For distances to a vertex, the reverse graph is searched. ``best`` has the first k when it is
    # made.
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
    """The ``k`` vertices of the highest closeness, and upper bounds of the closeness of all others.

    The constructor makes all searches, by ``searches``. Arrays are on the graph's device, where
    not said otherwise.

    - ``vertices``: int64, NumPy, of shape (min(k, n),), shorter at first: the vertex numbers of the
      first k among those searched from, by descending closeness.
    - ``reached``, ``sums``: int64, NumPy, of the same shape: the number of vertices that each one
      reaches, itself included, and the sum of its distances to them.
    - ``values``: float64, NumPy, of the same shape: the closeness.
    - ``_weighted``: whether distances are sums of weights, rather than hops.
    - ``_labels``: integers of shape (n,): the number of the (strongly) connected component of each
      vertex.
    - ``_sizes``: NumPy: the number of vertices of each component, by its number.
    - ``_reach``: two int64 arrays of shape (n,): a lower and an upper bound of the number of
      vertices that each vertex reaches, itself included.
    - ``_bound``: float64 of shape (n,): an upper bound of the closeness of each vertex.
    - ``_open``: bool of shape (n,). True: the vertex was neither searched from nor proved to be
      behind the first k.
    """

    def __init__(self, searches: Searches, k: int) -> None:
        """Bound the closeness of all vertices, and search until the first ``k`` are known."""
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
        # The first bounds, before any complete search; ``_search`` lowers them. ``least == most``
        # is True for a vertex of which it is known exactly how many vertices it reaches.
        if self._weighted:
            self._bound = self._bound_by_weight(most)
        else:
            self._bound = self._bound_by_walks(most, least == most)
        self._open = self._xp.ones(n, bool)
        self._find_first_k(min(k, n))

    def _find_first_k(self, k: int) -> None:
        """Search until no other vertex has a bound beyond the ``k``-th value.

        Each round takes one of two kinds of searches, whichever has excluded more vertices per
        visited edge. "complete" searches reach all that a vertex reaches, which gives its closeness
        and lowers the bounds of its component. "proofs" end early, as soon as it is proved that the
        vertex is behind the ``k``-th.
        """
        n_complete_rounds = 0
        n_proofs = _PROOFS
        n_searched = self._searches.count
        is_tiny = self.graph.n_vertices <= TINY
        may_prove = not (self._weighted or is_tiny) and self.graph.device == "cpu"
        edges_per_search = self.graph.n_edges + _PER_VERTEX * self.graph.n_vertices
        # Vertices that the last round of each kind excluded, per edge visited. Infinity makes a
        # kind the next one; if both are infinite, complete searches come first.
        rates = {"complete": np.inf, "proofs": 0.0}

        candidates = self._candidates(k)
        while candidates.size:
            edges = 0  # work of this round, in visited edges
            if rates["complete"] >= rates["proofs"]:
                kind = "complete"
                n_complete_rounds += 1
                # Groups start small and double every second round, as each group is chosen by the
                # bounds that those before have lowered.
                size = 2 << n_complete_rounds // 2
                size = GROUPS[-1] if is_tiny else size
                # Beyond the middle of the sizes that plans have, the groups grow only as far as
                # ``widest`` says, by the estimated time per source.
                if size > GROUPS[1]:
                    size = min(size, self._searches.widest(GROUPS[1]))
                numbers = to_host(self._choose(candidates, size))
            else:
                kind = "proofs"
                # Vertices that are not proved to be behind are searched completely. If they are
                # few, the next round of this kind takes twice as many.
                numbers, edges = self._not_below(self._choose(candidates, n_proofs))
                n_proofs *= 2 if numbers.size <= n_proofs // 16 else 1
            if numbers.size:
                self._search(numbers, k)

            remaining = self._candidates(k)
            edges += (self._searches.count - n_searched) * edges_per_search
            n_searched = self._searches.count
            if not may_prove or n_complete_rounds < _FULL_ROUNDS or self.values.size < k:
                rates["complete"] = np.inf  # the next round is complete, too
            else:
                rates[kind] = (candidates.size - remaining.size) / edges
                # A rate of 0 is replaced by infinity, so that proofs are tried next: before the
                # first round of proofs, and again after a round of proofs that excluded no vertex.
                rates["proofs"] = rates["proofs"] or np.inf
            candidates = remaining

    def _candidates(self, k: int) -> Array:
        """Return the numbers of the vertices that may be among the first ``k``, ascending: not yet
        searched from, and with a bound that does not exclude them.
        """
        xp = self._xp
        is_candidate = self._open
        if self.values.size == k:
            # With ``k`` vertices known: those that may be closer than the last of the ``k``, or as
            # close with a smaller number. With fewer known, all open ones are candidates.
            kth_value = float(self.values[-1])
            kth_vertex = int(self.vertices[-1])
            is_before = xp.arange(is_candidate.size) < kth_vertex
            is_closer = (self._bound > kth_value) | ((self._bound == kth_value) & is_before)
            is_candidate = is_candidate & is_closer
        return xp.flatnonzero(is_candidate)

    def _choose(self, candidates: Array, size: int) -> Array:
        """Return up to ``size`` of the vertices ``candidates``, those of the largest bounds of
        closeness, in no order; among equal bounds those of the highest degree.
        """
        if candidates.size <= size:
            return candidates
        # ``tie`` is so small that it decides among almost equal bounds alone. An infinite bound is
        # replaced by a finite one, since it would hide the tie.
        tie = self.graph.derived.degrees[candidates] / (self.graph.derived.max_degree + 1) * 1e-9
        key = self._xp.minimum(self._bound[candidates], 1e300) * (1 + tie)
        return candidates[
            self._xp.argpartition(key, candidates.size - size)[candidates.size - size :]
        ]

    def _not_below(self, numbers: np.ndarray) -> tuple[np.ndarray, int]:
        """Search from each vertex of ``numbers`` until it is proved to be behind the first k.

        Return the vertices for which the proof fails, so that they need complete searches, and the
        number of edges visited. Vertices with a proof are no longer open. It is called for graphs
        on the CPU and distances in hops only. CertificateError if distances are wrong.
        """
        # The largest bounds first, which take longest to refute.
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
        """Search from the vertices ``numbers``, and update the first ``k`` by their closeness. Each
        search also lowers the bounds of the other vertices of its component.

        PrecisionError if a sum of weights could exceed int64.
        """
        totals = []  # per search: vertex, number of vertices reached, sum of distances
        # ``require_all=False``: a vertex that is not reached is no error here.
        for vertex, distance in self._searches.iter_distances(numbers, require_all=False):
            self._open[vertex] = False
            # ``n_inside`` is the number of vertices that this one reaches, ``largest`` its largest
            # distance, and ``total`` the sum of its distances. ``levels`` has the number of
            # vertices at each number of hops.
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

            # The sum was computed in int64 and may have overflowed. This bound of it is an integer
            # of Python.
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

        # Of the vertices searched now and the first k so far, keep the first k. Fewer are kept as
        # long as fewer were searched.
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
        """Return the closeness of vertices that reach ``n_others`` others, float64, 0 where the sum
        of distances in ``sums`` is 0.

        It is n_others^2 / (sum * (n - 1)), in the same operations as the result "summary", so that
        both are equal. A larger sum never gives a larger float, as each operation is monotonic. So
        a lower bound of the sum gives an upper bound of the closeness.
        """
        xp = namespace(sums)
        quotient = (
            n_others / xp.where(sums > 0, sums, 1) * (n_others / max(self.graph.n_vertices - 1, 1))
        )
        return xp.where(sums > 0, quotient, 0.0)

    def _levels(self, distance: Array) -> Array:
        """Return the number of vertices at each number of hops from 0 to the largest, int64.

        ``distance`` has the hops of all vertices; unreached vertices are not counted.
        """
        if self.graph.device == "cpu":
            return cpu.count_levels(distance)
        return self._xp.bincount(distance[self._reached(distance)]).astype(np.int64)

    def _reached(self, distance: Array) -> Array:
        """Return a bool array of the shape of ``distance``, the distances of a search: True for a
        vertex that is reached.
        """
        if self._weighted:
            return is_reached(distance)
        # hops of a very large graph are int64, which ``is_reached`` takes for sums of weights
        return distance >= 0

    def _bound_component(
        self, vertex: int, distance: Array, least_sums: Array, n_inside: int
    ) -> None:
        """Lower the bounds of the closeness of all vertices of the component of ``vertex``, by the
        distances from ``vertex``.

        ``distance`` has these distances, of shape (n,). ``least_sums`` has lower bounds of the sums
        of distances. With weights it has one per vertex of the graph, from ``_least_sums``.
        Without, it has one per level, from ``_least_hops``, from which the degree of a vertex is
        still to be subtracted. ``n_inside`` is the number of vertices that each vertex of the
        component reaches.
        """
        xp = self._xp
        # Compiled code for hops on the CPU does what the array operations below do.
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
        # A lower bound of 0 or less says nothing, so the closeness may be any number.
        bound = xp.where(
            least_sums > 0, self._closeness(n_inside - 1, xp.maximum(least_sums, 0)), np.inf
        )
        self._bound[members] = xp.minimum(self._bound[members], bound)

    def _least_hops(self, counts: Array) -> Array:
        """Return, per level of a search, a lower bound of the sum of hops from a vertex of that
        level to all others, plus the degree of the vertex: an int64 array.

        A level holds the vertices at one number of hops from the vertex that was searched from, and
        ``counts`` is the number of vertices per level. The caller subtracts the degree, which
        differs among the vertices of a level.
        """
        # ``n_until`` and ``hops_until`` are the vertices up to each level, itself included, and the
        # sum of their hops.
        xp = self._xp
        level = xp.arange(counts.size)
        n_until = xp.cumsum(counts)
        hops_until = xp.cumsum(counts * level)
        n_next = xp.append(counts[1:], 0)
        # Take a vertex at a level. Vertices at a level x beyond it are at least x - level away, by
        # the triangle inequality. All vertices but itself and its neighbors are at least 2 away. So
        # the vertices of the next level, to which the inequality gives 1, count once more. Vertices
        # to which it gives less than 1 count 2 each. The vertex itself counts 0, hence the - 2
        # below. Neighbors, at 1, were counted 1 too much: in total the degree, which the caller
        # subtracts.
        least_sums = (hops_until[-1] - hops_until) - level * (n_until[-1] - n_until) + n_next
        if self.graph.directed:
            return least_sums + 2 * n_until - 2
        # In an undirected graph vertices at a level x before it are at least level - x away, so
        # that only those of the same level count 2 each, and those of the previous level once more.
        n_previous = xp.append(xp.zeros(1, np.int64), counts[:-1])
        return least_sums + level * n_until - hops_until + n_previous + 2 * counts - 2

    def _least_sums(self, inside: Array, own_distance: Array) -> Array:
        """Return lower bounds of the sums of weighted distances, int64, one per vertex of
        ``own_distance``.

        Both arrays have distances from the vertex that was searched from. ``inside`` has those of
        the vertices that it reaches, and ``own_distance`` those of the vertices whose sums are to
        be bounded. Values for unreached vertices mean nothing.
        """
        # ``sums_before[i]`` is the sum of the i smallest distances. ``n_nearer`` is, per vertex to
        # bound, the number of vertices that are as near to the searched one as it is, or nearer.
        xp = self._xp
        ordered = xp.sort(inside)
        sums_before = xp.append(xp.zeros(1, np.int64), xp.cumsum(ordered))
        n_nearer = xp.searchsorted(ordered, own_distance, side="right")
        # By the triangle inequality, from a vertex at distance d to one at a larger distance x it
        # is at least x - d. In an undirected graph it is at least d - x to one at a smaller
        # distance x.
        least_sums = (sums_before[-1] - sums_before[n_nearer]) - own_distance * (
            inside.size - n_nearer
        )
        if self.graph.directed:
            return least_sums
        return least_sums + own_distance * n_nearer - sums_before[n_nearer]

    def _bounds_of_reach(self) -> tuple[Array, Array]:
        """Return a lower and an upper bound of the number of vertices that each vertex reaches,
        itself included: two int64 arrays of shape (n,).
        """
        # All vertices of a component reach each other: a lower bound. It is exact in an undirected
        # graph, or if there is one component.
        xp = self._xp
        n = self.graph.n_vertices
        of_component = xp.asarray(self._sizes)[self._labels].astype(np.int64)
        if not self.graph.directed or self._sizes.size == 1:
            return of_component, of_component

        # Search from a vertex of the largest component in both directions. ``is_after`` is True for
        # vertices that the component reaches, and ``is_before`` for those that reach it. Both are
        # True for the component itself. ``require_all=False``: vertices need not be reached.
        label = int(np.argmax(self._sizes))
        member = to_host(xp.flatnonzero(self._labels == label)[:1])
        ((_, distance),) = self._searches.iter_distances(member, require_all=False)
        is_after = self._reached(distance)
        ((_, distance),) = self._searches.iter_distances(member, backward=True, require_all=False)
        is_before = self._reached(distance)
        # On the CPU compiled code passes all components in order, which gives closer bounds.
        if self.graph.device == "cpu":
            return cpu.reach_bounds(self.graph, self._labels, label, is_after, is_before)
        min_reach = of_component
        max_reach = xp.full(n, n, np.int64)
        # A vertex that does not reach the largest component reaches none of those that do. A vertex
        # of the component reaches all that are after it, and no others: there both bounds are
        # exact.
        max_reach[~is_before] = n - int(is_before.sum())
        min_reach[is_before & is_after] = max_reach[is_before & is_after] = int(is_after.sum())
        return min_reach, max_reach

    def _bound_by_weight(self, most: Array) -> Array:
        """Return an upper bound of the closeness of each vertex, float64, by the smallest weight of
        an edge: no other vertex is nearer than this weight. Three cases: without edges the bound is
        0; with a weight of 0 it is infinite unless no other vertex is reached; else a quotient.

        ``most`` has, per vertex, an upper bound of the number of vertices that it reaches, itself
        included.
        """
        # With r - 1 others, all at a distance of w or more, the closeness is at most
        # (r - 1)^2 / ((r - 1) w (n - 1)). Weights of 0 bound nothing, unless no other is reached.
        xp = self._xp
        if self.graph.n_edges:
            lightest = float(self.graph.derived.min_weight)
        else:
            lightest = np.inf
        if lightest <= 0:
            return xp.where(most > 1, np.inf, 0.0)
        return (most - 1) / max(self.graph.n_vertices - 1, 1) / lightest * SLACK

    def _bound_by_walks(self, most: Array, is_exact: Array) -> Array:
        """Return an upper bound of the closeness in hops of each vertex, float64, by the number of
        walks of each length that begin at it; see the notes of ``top_closeness``.

        ``most`` has, per vertex, an upper bound of the number of vertices that it reaches, itself
        included. ``is_exact``, bool, is True where it reaches exactly so many.
        """
        # Arrays of shape (n,), for each vertex: ``walks`` is the number of walks of the current
        # length, and ``walks_before`` that of walks one edge shorter. ``n_left`` is the number of
        # others that no shorter distance has taken, ``covered`` the number of those taken, at the
        # smallest distances possible, and ``sums`` the sum of these distances.
        xp = self._xp
        graph = self.graph
        degrees = graph.derived.degrees
        walks = degrees
        walks_before = None
        n_left = most - 1
        covered, sums = xp.zeros((2, graph.n_vertices), np.int64)
        best_bound = xp.zeros(graph.n_vertices)

        for length in range(1, _WALK_LEVELS + 1):
            # As many vertices as walks of this length, at most, are at this distance.
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
            # Walks are extended by an edge at their beginning. In an undirected graph leave out
            # those whose second edge returns over the first. Of two edges there is one such walk
            # per edge of the vertex. Of more edges, each walk that is two edges shorter can follow
            # a return over any of the degree - 1 edges other than its own first one.
            if not graph.directed:
                next_walks -= degrees if walks_before is None else (degrees - 1) * walks_before
            walks_before = walks
            walks = next_walks
        # The vertices left are at least one edge further than the last length. If the number of
        # vertices reached is exact, ``last_bound`` holds. If fewer may be reached, only the largest
        # of the bounds for each smaller number (``best_bound``) and ``last_bound`` holds.
        last_bound = self._closeness(covered + n_left, sums + (length + 1) * n_left)
        return xp.where(is_exact, last_bound, xp.maximum(best_bound, last_bound) * SLACK)

    def _sum_over_neighbors(self, values: Array) -> Array:
        """Return, per vertex, the sum of ``values``, int64 of shape (n,), over the heads of its
        edges.
        """
        # The sum over a range of edges is the difference of two running sums.
        xp = self._xp
        graph = self.graph
        if graph.device == "cpu":
            return cpu.sum_over_neighbors(graph.offsets, graph.targets, values)
        sums_before = xp.zeros(graph.n_edges + 1, np.int64)
        xp.cumsum(values[graph.targets], out=sums_before[1:])
        return sums_before[graph.offsets[1:]] - sums_before[graph.offsets[:-1]]
