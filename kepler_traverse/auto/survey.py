"""Survey a graph by a few searches that are cheap compared with the run, and derive the ``Shape``
for the choice.

The searches are BFS for every algorithm. One begins at a vertex of the highest degree. On a
directed graph others begin at random vertices, since most vertices may reach little. On the CPU a
search ends after a number of edges, on a GPU after a number of levels; the result of a complete
search is then extrapolated. No limit is a time, so equal graphs get equal plans. On a GPU the
result depends on the graph alone and is cached per graph.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import Array
from ..cpu.bounded_search import bounded_search
from ..cuda import edge_weights, graph_statistics
from ..graph import Graph
from ..search.plan import Plan
from ..search.query import Query
from ..search.strategy import Shape, Strategy

SHARE = 0.02  # edges that the survey may visit, as a share of those that the run visits
SEARCHES = 16  # searches from random vertices of a directed graph
# the same on a GPU, and the largest number of levels of a search there: about 2 ms
GPU_SEARCHES = 8
GPU_LEVELS = 1 << 10
_MIN_EDGES = 1 << 17  # edges that the searches on the CPU may always visit: less than 1 ms
_MAX_TAIL = 100.0  # larger ratios of the mean to the median say no more
_WEIGHTS = 1 << 14  # weights from which the spread is estimated
# sampled edges; two ends are near if their numbers differ by at most V / _NEAR
_SAMPLED = 1 << 12
_NEAR = 64
_SEED = 7  # of random vertices and edges, so that equal graphs get equal plans
_RESULTS_OF: weakref.WeakKeyDictionary[Graph, list[SearchResult]] = weakref.WeakKeyDictionary()


class SearchResult(NamedTuple):
    """What one search of the survey has found. If it was ended early, the numbers are likely ones
    of a complete search.
    """

    reach: float  # share of the vertices that it reaches
    walked: float  # share of the edges that it visits
    rounds: float  # number of its levels
    is_whole: bool = True  # whether the search was complete, and not ended early


def outline(graph: Graph) -> Shape:
    """Return the shape of a graph as far as it is known without a search: sizes, types and whether
    it is directed.
    """
    if graph.weights is None:
        weight = 0
    else:
        weight = graph.weights.dtype.itemsize
    return Shape(
        graph.n_vertices,
        graph.n_edges,
        graph.directed,
        depth=0,
        index=graph.targets.dtype.itemsize,
        weight=weight,
    )


def survey(graph: Graph, algorithm: str, searches: Sequence[Strategy], n_sources: int) -> Shape:
    """Return the shape of a graph for a run from ``n_sources`` sources, estimated from a few
    searches.

    ``algorithm`` is that of the run, "bfs" or "sssp". ``searches`` are strategies of BFS for one
    source, with which a GPU searches.
    """
    shape = _with_degrees_and_weights(graph, outline(graph), algorithm)
    if not graph.n_edges:
        return shape
    if graph.device == "cpu":
        shape = _survey_cpu(graph, shape, n_sources)
    else:
        # Searches on a GPU do not depend on ``n_sources``, so that every run can use the same ones.
        if graph not in _RESULTS_OF:
            try:
                _RESULTS_OF[graph] = _search_samples(graph, searches)
            except MemoryError:
                # a plan may fit where a BFS does not; its choice then goes by the degrees alone
                return shape
        shape = _with_results(shape, _RESULTS_OF[graph])

    if algorithm == "bfs":
        return shape
    # The searches were BFS, whose rounds are levels: derive those of SSSP from them.
    return shape._replace(rounds=pile_rounds(shape))


def forget(graph: Graph) -> None:
    """Drop the cached searches of a graph, so that measurements can repeat them."""
    _RESULTS_OF.pop(graph, None)


def _with_degrees_and_weights(graph: Graph, shape: Shape, algorithm: str) -> Shape:
    """Return the shape with what degrees, vertex numbers and weights say without a search.

    The degrees give ``skew``: the largest degree divided by the mean. The vertex numbers of random
    edges give ``scatter``: the share of edges whose two numbers are far apart. If ``algorithm`` is
    "sssp", a sample of the weights gives ``spread``, their standard deviation divided by their
    mean, and ``tail``, the mean of their absolute values divided by the median; else both stay as
    they are. Without edges no field changes.
    """
    if not graph.n_edges:
        return shape
    max_degree = int(_degrees(graph).max())
    spread = shape.spread
    tail = shape.tail
    if algorithm == "sssp":
        # Some of the weights are enough, evenly taken from all.
        step = max(1, graph.n_edges // _WEIGHTS)
        weights: Array = graph.weights
        if graph.device == "cuda":
            sample = edge_weights.sample(weights, step)
        else:
            sample = weights[::step]
        weights = sample.astype(np.float64)
        heaviest = float(abs(weights).max())
        if not 1e-140 < heaviest < 1e140:  # squares would leave float64
            weights = weights / (heaviest or 1.0)
        if weights.mean():
            spread = float(weights.std() / abs(weights.mean()))
        else:
            spread = 0.0
        tail = _tail(abs(weights))

    skew = max_degree * graph.n_vertices / graph.n_edges
    return shape._replace(skew=skew, spread=spread, tail=tail, scatter=_scatter(graph))


def _tail(weights: np.ndarray) -> float:
    """Return the mean of weights of 0 or more divided by their median, from 1 to ``_MAX_TAIL``. It
    is above 1 where few weights are large.
    """
    mean = float(weights.mean())
    median = float(np.median(weights))
    if not mean:
        return 1.0
    if not median:
        return _MAX_TAIL
    return min(max(mean / median, 1.0), _MAX_TAIL)


def _degrees(graph: Graph) -> Array:
    """Return the number of edges out of each vertex, of shape (n_vertices,).

    ``graph.derived.degrees`` has the same, but would keep the array in memory, which no plan
    accounts for.
    """
    if graph.device == "cuda":
        return graph_statistics.degrees(graph.offsets)
    return np.diff(graph.offsets)


def _scatter(graph: Graph) -> float:
    """Return the share of some random edges whose two vertex numbers are far apart, so that
    following such an edge misses the cache.
    """
    # the numbers of some edges, and below their tails and heads
    edges = np.random.default_rng(_SEED).integers(0, graph.n_edges, _SAMPLED)
    if graph.device == "cuda":
        sources, ends = graph_statistics.edges_at(graph.offsets, graph.targets, edges)
    else:
        sources = np.searchsorted(graph.offsets, edges, side="right") - 1
        ends = graph.targets[edges].astype(np.int64)
    return float((abs(ends - sources) > graph.n_vertices // _NEAR).mean())


def _survey_cpu(graph: Graph, shape: Shape, n_sources: int) -> Shape:
    """Return the shape with the results of searches on the CPU. All together may visit a number of
    edges that grows with ``n_sources``, the sources of the run.
    """
    n = graph.n_vertices
    m = graph.n_edges
    budget = max(_MIN_EDGES, int(SHARE * n_sources * m))
    # By vertex, the number of the last search that has reached it; 0 if none has. So searches need
    # not clear it.
    marks = np.zeros(n, np.uint8)
    queue = np.empty(n, graph.targets.dtype)
    searches: list[SearchResult] = []
    # In a directed graph most vertices may reach little, so that random ones are searched from,
    # too.
    sources = [_hub(graph)]
    if graph.directed:
        sources += _random_sources(graph)
    for mark, source in enumerate(sources, 1):
        if budget <= 0:
            break
        # The first search may take half of the budget, since each later search may be as large.
        is_first = mark == 1
        max_edges = budget // 2 if is_first else budget
        # ``reached`` counts vertices, and ``walked`` edges. "Earlier" is when the number of levels
        # was a power of two last: it shows the growth. ``is_whole`` is 0 if ``max_edges`` ended it.
        reached, walked, levels, reached_earlier, levels_earlier, is_whole = bounded_search(
            graph.offsets, graph.targets, source, max_edges, marks, mark, queue
        )
        budget -= walked
        if is_whole:
            searches.append(SearchResult(reached / n, walked / m, levels))
        else:
            # A complete search is taken to reach as much as the search from the hub, the first
            # one; if that was ended early, it is taken to reach everything.
            likely_share = 1.0 if is_first else searches[0].reach
            rounds = _all_levels(reached, levels, reached_earlier, levels_earlier, n)
            searches.append(SearchResult(likely_share, likely_share, rounds, False))
    return _with_results(shape, searches)


def _all_levels(
    reached: int, levels: int, reached_earlier: int, levels_earlier: int, n: int
) -> float:
    """Return the number of levels of a complete search, extrapolated from one that ended early.

    The vertices reached are assumed to grow as a power of the levels: ``reached`` after ``levels``,
    and ``reached_earlier`` after ``levels_earlier``. All ``n`` vertices are taken to be reached at
    last.
    """
    if not levels_earlier or reached <= reached_earlier:
        return max(levels, 1)
    # above 1, since its logarithm divides below
    growth_of_levels = max(levels, levels_earlier + 1) / levels_earlier
    # n / reached = (all levels / levels) ** power, where growth is taken to be at least linear
    power = math.log(reached / reached_earlier) / math.log(growth_of_levels)
    return max(levels, 1) * (n / reached) ** (1 / max(power, 1.0))


def pile_rounds(shape: Shape) -> float:
    """Return the estimated number of rounds of a near-far search, which relaxes edges of vertices
    up to a distance that grows pile by pile.

    They are the likely levels of ``shape``, times 1 plus the spread of its weights: the more uneven
    the weights are, the more often paths of more edges are shorter.
    """
    return shape.likely_rounds * (1 + shape.spread)


def _search_samples(graph: Graph, searches: Sequence[Strategy]) -> list[SearchResult]:
    """Return the results of searches on a GPU, each up to ``GPU_LEVELS`` levels. ``searches`` are
    strategies of BFS for one source.
    """
    plan = Plan(graph, "bfs", searches, "auto", Query(predecessors=False, limit=GPU_LEVELS))
    results: list[SearchResult] = []
    sources = [_hub(graph)]
    if graph.directed:
        sources += _random_sources(graph)[:GPU_SEARCHES]
    for source in sources:
        traversal = plan.run(source)  # its ``rounds`` are the levels of the search
        # The vertices reached by half of the levels tell how fast they grow.
        half = traversal.rounds // 2
        vertices, edges, earlier = graph_statistics.count_reached(
            graph.offsets, traversal.distance, half
        )
        if traversal.rounds < GPU_LEVELS:  # it ended by itself, and not at the limit
            results.append(
                SearchResult(vertices / graph.n_vertices, edges / graph.n_edges, traversal.rounds)
            )
        else:
            rounds = _all_levels(vertices, traversal.rounds, earlier, half, graph.n_vertices)
            # A complete search is taken to reach as much as the search from the hub, the first
            # one; if that was ended early, it is taken to reach everything.
            likely_share = results[0].reach if results else 1.0
            results.append(SearchResult(likely_share, likely_share, rounds, False))
    return results


def _with_results(shape: Shape, searches: list[SearchResult]) -> Shape:
    """Return a shape with the results of searches: the largest depth, and means of the rest.

    The first search is from a hub, which is no typical source. It is left out of the means if there
    are others.
    """
    if not searches:
        return shape
    typical = searches[1:] or searches
    return shape._replace(
        depth=math.ceil(max(search.rounds for search in searches)),
        reach=sum(search.reach for search in typical) / len(typical),
        walked=sum(search.walked for search in typical) / len(typical),
        most=max(search.walked for search in searches),
        rounds=sum(search.rounds for search in typical) / len(typical),
    )


def _hub(graph: Graph) -> int:
    """Return the number of a vertex of the highest degree."""
    if graph.device == "cuda":
        return graph_statistics.hub(graph.offsets)
    return int(_degrees(graph).argmax())


def _random_sources(graph: Graph) -> list[int]:
    """Return the numbers of up to ``SEARCHES`` random vertices with an edge that leaves them, the
    same ones for each call with a graph.
    """
    # Eight times as many are drawn as are needed: some may be drawn twice, or have no edge.
    drawn = np.unique(np.random.default_rng(_SEED).integers(0, graph.n_vertices, 8 * SEARCHES))
    if graph.device == "cuda":
        degrees = graph_statistics.degrees_at(graph.offsets, drawn)
    else:
        degrees = graph.offsets[drawn + 1] - graph.offsets[drawn]
    return np.random.default_rng(_SEED).permutation(drawn[degrees > 0])[:SEARCHES].tolist()
