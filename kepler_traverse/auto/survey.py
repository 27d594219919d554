"""The shape of a graph that the choice of a strategy goes by, seen by a few searches that cost little beside the run.

They are BFS whatever the algorithm: from a vertex of the highest degree, and on a directed graph, of which most vertices may
reach little, from random ones, too. On the CPU they end at a number of edges, on a GPU at a number of levels; what a whole
search would have found is then extrapolated. No clock decides, so that equal graphs get equal plans. On a GPU the outcome
depends on the graph alone, and is kept with it.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .._arrays import namespace, to_host
from ..cpu.bounded_search import bounded_search
from ..graph import Graph
from ..plan import Plan
from ..query import Query
from ..strategy import Shape, Strategy

SHARE = 0.02  # of the run that the survey may take
SEARCHES = 16  # from random vertices of a directed graph
GPU_SEARCHES, GPU_LEVELS = 8, 1 << 10  # the same on a GPU, and levels of one search: some two milliseconds
_MIN_EDGES = 1 << 17  # that searches on the CPU may walk: less than a millisecond
_WEIGHTS = 1 << 14  # that the spread is taken from
_SAMPLED, _NEAR = 1 << 12, 64  # edges; near is what lies within this share of the vertices
_SEED = 7
_SEEN_OF: weakref.WeakKeyDictionary[Graph, list] = weakref.WeakKeyDictionary()


class Seen(NamedTuple):
    """What one search found: shares of vertices reached and of edges walked, levels or rounds, and whether it was whole."""

    reach: float
    walked: float
    rounds: float
    is_whole: bool = True


def outline(graph: Graph) -> Shape:
    """What is known of a graph without a search."""
    weight = 0 if graph.weights is None else graph.weights.dtype.itemsize
    return Shape(graph.n_vertices, graph.n_edges, graph.directed, 0, graph.targets.dtype.itemsize, weight)


def survey(graph: Graph, algorithm: str, searches: Sequence[Strategy], n_sources: int) -> Shape:
    """Return the shape of a graph as a few searches show it.

    Parameters
    ----------
    graph : Graph
    algorithm : {"bfs", "sssp"}
    searches : sequence of Strategy
        BFS from one source.
    n_sources : int
        Of the run.
    """
    shape = _with_degrees_and_weights(graph, outline(graph), algorithm)
    if not graph.n_edges:
        return shape
    if graph.device == "cpu":
        shape = _of_cpu(graph, shape, n_sources)
    else:
        if graph not in _SEEN_OF:
            _SEEN_OF[graph] = _searched(graph, searches)
        shape = _seen(shape, _SEEN_OF[graph])
    return shape if algorithm == "bfs" else shape._replace(rounds=pile_rounds(shape))


def forget(graph: Graph) -> None:
    """Drop what is kept of a graph's searches, so that the next plan makes them again: for measurements."""
    _SEEN_OF.pop(graph, None)


def _with_degrees_and_weights(graph: Graph, shape: Shape, algorithm: str) -> Shape:
    if not graph.n_edges:
        return shape
    xp = namespace(graph.offsets)
    largest = int(xp.diff(graph.offsets).max())  # graph.degrees would stay, and no plan counts it
    spread = shape.spread
    if algorithm == "sssp":
        weights = to_host(graph.weights[:: max(1, graph.n_edges // _WEIGHTS)]).astype(np.float64)
        spread = float(weights.std() / abs(weights.mean())) if weights.mean() else 0.0
    skew = largest * graph.n_vertices / graph.n_edges
    return shape._replace(skew=skew, spread=spread, scatter=_scatter(graph))


def _scatter(graph: Graph) -> float:
    """Share of some edges whose ends are far apart by number, so that following one leaves the cache."""
    xp = namespace(graph.offsets)
    edges = xp.asarray(np.random.default_rng(_SEED).integers(0, graph.n_edges, _SAMPLED))
    sources = xp.searchsorted(graph.offsets, edges, side="right") - 1
    far = abs(graph.targets[edges].astype(np.int64) - sources) > graph.n_vertices // _NEAR
    return float(far.mean())


def _of_cpu(graph: Graph, shape: Shape, n_sources: int) -> Shape:
    n, m = graph.n_vertices, graph.n_edges
    budget = max(_MIN_EDGES, int(SHARE * n_sources * m))
    seen, queue = np.zeros(n, np.uint8), np.empty(n, graph.targets.dtype)
    found: list[Seen] = []
    sources = [_hub(graph), *(_random_sources(graph) if graph.directed else [])]
    for mark, source in enumerate(sources, 1):
        if budget <= 0:
            break
        # The first may take half of what there is, since the others may be as large.
        most = budget // 2 if mark == 1 else budget
        reached, walked, levels, *earlier, is_whole = bounded_search(
            graph.offsets, graph.targets, source, most, seen, mark, queue
        )
        budget -= walked
        if is_whole:
            found.append(Seen(reached / n, walked / m, levels))
        else:
            likely = 1.0 if mark == 1 else found[0].reach
            found.append(Seen(likely, likely, _all_levels(reached, levels, *earlier, n), False))
    return _seen(shape, found)


def _all_levels(reached: int, levels: int, reached_earlier: int, levels_earlier: int, n: int) -> float:
    """Levels of a whole search, from how one grew that was cut off: as a power of the levels."""
    if not levels_earlier or reached <= reached_earlier:
        return max(levels, 1)
    power = math.log(reached / reached_earlier) / math.log(max(levels, levels_earlier + 1) / levels_earlier)
    return max(levels, 1) * (n / reached) ** (1 / max(power, 1.0))


def pile_rounds(shape: Shape) -> float:
    """Rounds of a search by piles, about: those of the levels, and more where weights make longer paths the shorter ones."""
    return shape.likely_rounds * (1 + shape.spread)


def _searched(graph: Graph, searches: Sequence[Strategy]) -> list[Seen]:
    """What searches on a GPU find."""
    xp = namespace(graph.offsets)
    degrees = xp.diff(graph.offsets)
    plan = Plan(graph, "bfs", searches, "auto", Query(predecessors=False, limit=GPU_LEVELS))
    found: list[Seen] = []
    for source in [_hub(graph), *(_random_sources(graph)[:GPU_SEARCHES] if graph.directed else [])]:
        traversal = plan.run(source)
        reached = traversal.reached
        half = traversal.rounds // 2
        counts = xp.stack([reached.sum(), (degrees * reached).sum(), (reached & (traversal.distance <= half)).sum()])
        vertices, edges, earlier = to_host(counts).tolist()
        if traversal.rounds < GPU_LEVELS:
            found.append(Seen(vertices / graph.n_vertices, edges / graph.n_edges, traversal.rounds))
        else:
            rounds = _all_levels(vertices, traversal.rounds, earlier, half, graph.n_vertices)
            found.append(Seen(1.0, 1.0, rounds, False))
    return found


def _seen(shape: Shape, found: list[Seen]) -> Shape:
    """The shape that searches show. Where there are random ones, the first, from the highest degree, is not in the means."""
    if not found:
        return shape
    typical = found[1:] or found
    return shape._replace(
        depth=math.ceil(max(each.rounds for each in found)),
        reach=sum(each.reach for each in typical) / len(typical),
        walked=sum(each.walked for each in typical) / len(typical),
        most=max(each.walked for each in found),
        rounds=sum(each.rounds for each in typical) / len(typical),
    )


def _hub(graph: Graph) -> int:
    xp = namespace(graph.offsets)
    return int(xp.argmax(xp.diff(graph.offsets)))


def _random_sources(graph: Graph) -> list[int]:
    """Some random vertices with an edge that leads out."""
    drawn = np.unique(np.random.default_rng(_SEED).integers(0, graph.n_vertices, 8 * SEARCHES))
    xp = namespace(graph.offsets)
    places = xp.asarray(drawn)
    degrees = to_host(graph.offsets[places + 1] - graph.offsets[places])
    return np.random.default_rng(_SEED).permutation(drawn[degrees > 0])[:SEARCHES].tolist()
