"""Many and single sources on the CPU, compared with other Python libraries, each in a process of its own.

Each library gets the same CSR of the graph: without duplicates and self-loops, in both directions if undirected. Weights 1
to 255 come from a hash of an edge's ends. The distances of all sources are certified once, before anything is timed.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.bench.libraries import LIBRARIES, Rows, compile_all, digest, graph_of
from scripts.measure.environment import ROOT, timed
from scripts.measure.graphs import chosen
from scripts.measure.work import ONCE, OURS, Call, Inputs, Prepare, Timed, Work, planner

PACKAGES = ("scipy", "networkit", "igraph", "rustworkx")
STORED = ROOT / "out" / "graphs"
GRAPHS = chosen(
    "USA-road-NE", "cnr-2000", "soc-Slashdot0902", "dblp-2010", "R-MAT 20", "lattice 1500"
)
COMPARED = (OURS, "SciPy", "NetworKit", "igraph", "rustworkx")
MANY = {"bfs": 256, "sssp": 64}
SINGLE = 16


class Case(NamedTuple):
    """A graph as every library gets it."""

    rows: Rows
    directed: bool


def case_of(inputs: Inputs, graph: str, counts: Mapping[str, int] = MANY) -> Case:
    """Return the CSR of a graph, which the first process stores, with sources.

    ``counts``: sources by algorithm, whose distances are certified.
    """
    sizes = " ".join(map(str, counts.values()))
    folder = STORED / f"{graph} {inputs.seed} {sizes}"
    if not folder.exists():
        store(inputs, graph, counts, folder)
    return Case(Rows.read(folder), GRAPHS[graph].directed)


def store(inputs: Inputs, name: str, counts: Mapping[str, int], folder: Path) -> None:
    """Build a graph, certify its distances from all sources, and write it to files."""
    from kepler_traverse.certificate import certify_many

    graph = graph_of(inputs, name)
    sources = sources_of(graph, max(counts.values()), inputs.seed)
    for algorithm, count in counts.items():
        plan = planner(algorithm, many=True)(graph, n_sources=count, result="matrix")
        for group in plan.iter_groups(sources[:count]):
            certify_many(graph, group.sources, group.distance).require()
    unfinished = folder.with_suffix(".part")
    unfinished.mkdir(parents=True, exist_ok=True)
    for field, values in zip(
        Rows._fields, (graph.offsets, graph.targets, graph.weights, sources), strict=True
    ):
        np.save(unfinished / f"{field}.npy", values)
    unfinished.rename(folder)


def sources_of(graph: Any, count: int, seed: int) -> np.ndarray:
    """Random vertices with an outgoing edge, of the largest component."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n = graph.n_vertices
    ones = np.ones(graph.n_edges, np.int8)
    matrix = csr_matrix((ones, graph.targets, graph.offsets), shape=(n, n))
    _, component = connected_components(matrix, connection="weak")
    is_largest = component == np.bincount(component).argmax()
    candidates = np.flatnonzero(is_largest & (graph.derived.degrees > 0))
    return np.random.default_rng(seed).choice(candidates, count, replace=False)


def prepare(library: str, algorithm: str, count: int) -> Prepare:
    """Return the function that prepares a search from many sources at once, or from each alone (``count`` is 1)."""

    def of(case: Case) -> Call:
        run = LIBRARIES[library](case.rows, algorithm, case.directed)

        def together() -> Timed:
            distances, taken = timed(run, case.rows.sources[:count])
            return Timed(list(map(digest, distances)), taken, strategy_of(run))

        # of a library that finds something else than distances
        finish = getattr(run, "finish", lambda distances: distances)

        def alone() -> Timed:
            run(case.rows.sources[:1])
            digests = []
            times = []
            for i in range(SINGLE):
                distances, taken = timed(run, case.rows.sources[i : i + 1])
                # a plan writes the next distances into the same array
                digests.append(digest(finish(distances[0])))
                times.append(taken)
            return Timed(digests, statistics.median(times), strategy_of(run))

        if count == 1:
            return alone
        return together

    return of


def strategy_of(run: Any) -> dict[str, str]:
    """Return the strategy that searched, of this library, as an entry of its row."""
    if hasattr(run, "strategy"):
        return {"strategy": run.strategy}
    return {}


def warm_up(library: str, algorithm: str) -> None:
    """Import and compile, so that nothing does so during a measurement."""
    ends = np.array([0, 1, 2, 2]), np.array([1, 2], np.int32)
    tiny = Rows(*ends, np.ones(2, np.float32), np.arange(2))
    warm = LIBRARIES[library](tiny, algorithm, True)
    warm(tiny.sources)
    warm(tiny.sources[:1])
    if library == OURS:
        compile_all(algorithm)


def facts_of(case: Case) -> dict:
    shape = {"vertices": case.rows.n, "edges": int(case.rows.targets.size)}
    return shape | {"directed": case.directed}


def work_of(name: str, graph: str, **given: Any) -> Work:
    return Work(name=name, graph=graph, repeats=ONCE, facts=facts_of, in_a_process=True, **given)


WORKS = tuple(
    work_of(
        f"{algorithm}, {sources}",
        graph,
        size=count,
        case=partial(case_of, graph=graph),
        peers={library: prepare(library, algorithm, count) for library in COMPARED},
        warm_up=partial(warm_up, algorithm=algorithm),
    )
    for graph in GRAPHS
    for algorithm, many in MANY.items()
    for count, sources in ((many, f"{many} sources"), (1, "one source"))
)
