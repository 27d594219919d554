"""Nanoseconds per vertex reached in two graphs, by hops, from scattered vertices and from all.

The searches from scattered vertices reach equally many vertices in both. The larger graph has fewer searches per vertex
there, so that each finds less of it in the caches.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from kepler_traverse import Graph, bfs_many, read_graph
from scripts.measure.environment import timed
from scripts.measure.work import OURS, Call, Inputs, Repeats, Timed, Work

PACKAGES = ()
SMALL = "USA-road-d.NY"
LARGE = "USA-road-NE-topology"
SCATTERED = 50_000
DEPTH = 7


class Case:
    """A graph, and sources: scattered over it, or all."""

    def __init__(self, graph: Graph, scattered: np.ndarray) -> None:
        self.graph = graph
        self.sources = {"scattered": scattered, "all": "all"}
        self.counts = {"scattered": scattered.size, "all": graph.n_vertices}


def within(graph: Graph, sources: Any) -> np.ndarray:
    return bfs_many(graph, sources, result="within", cutoffs=[DEPTH])["vertices"].to_numpy()


@lru_cache(1)
def cases_of(inputs: Inputs) -> dict[str, Case]:
    graphs = {
        name: read_graph(inputs.file(name), directed=name == SMALL, weighted=False, device="cpu")
        for name in (SMALL, LARGE)
    }
    scattered = matched(*graphs.values())
    return {name: Case(graphs[name], ids) for name, ids in zip(graphs, scattered, strict=True)}


def matched(small: Graph, large: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Return ids of random vertices of two graphs; the i-th of both reach equally many vertices. Some may find no other."""
    of_small = within(small, "all")
    of_large = within(large, "all")
    random = np.random.default_rng(3)
    chosen = random.choice(of_small.size, min(SCATTERED, of_small.size), replace=False)
    others = random.permutation(of_large.size)
    chosen = chosen[np.argsort(of_small[chosen])]
    others = others[np.argsort(of_large[others], kind="stable")]
    wanted = of_small[chosen]
    there = of_large[others]
    # The i-th vertex of a size takes the i-th one of that size in the other graph.
    places = (
        np.searchsorted(there, wanted) + np.arange(chosen.size) - np.searchsorted(wanted, wanted)
    )
    is_there = places < np.searchsorted(there, wanted, "right")
    order = random.permutation(np.count_nonzero(is_there))  # not by their reach
    return small.ids[chosen[is_there][order]], large.ids[others[places[is_there]][order]]


def prepare(case: Case, where: str) -> Call:
    def run() -> Timed:
        reached, seconds = timed(within, case.graph, case.sources[where])
        return Timed(reached, seconds, {"size": int(reached.sum())})

    return run


def facts_of(case: Case, where: str) -> dict[str, int]:
    return {"vertices": case.graph.n_vertices, "sources": case.counts[where]}


WORKS = tuple(
    Work(
        name=f"from {where} vertices",
        graph=graph,
        case=lambda inputs, graph=graph: cases_of(inputs)[graph],
        peers={OURS: partial(prepare, where=where)},
        facts=partial(facts_of, where=where),
        repeats=Repeats(most=7, seconds=60.0),
    )
    for graph in (SMALL, LARGE)
    for where in ("scattered", "all")
)
