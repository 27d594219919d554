"""Hops in graphs of billions of edges, which are drawn and built on one GPU with 140 GB.

R-MAT 26 has 16 edges per vertex, each stored in both directions. Its edges are in the memory of the GPU, or in host memory,
from where they are copied or read over the bus. The web graph has the size of Common Crawl's domains; three quarters of its
vertices or more have no outgoing edge. Sources drawn at random give all vertices their harmonic centrality within an error
at a confidence (kepler_traverse/bfs/multi_source/harmonic_sums.py); the sums of some are compared with certified hops.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from kepler_traverse import cuda
from kepler_traverse._arrays import index_dtype, to_host
from kepler_traverse.bfs import REGISTRY
from kepler_traverse.bfs.multi_source.bit_parallel_gpu import GroupRun, traverse_by
from kepler_traverse.bfs.multi_source.bit_parallel_streamed import StreamedRun
from kepler_traverse.bfs.multi_source.harmonic_sums import UNIT_BITS, HarmonicSums, sample_size
from kepler_traverse.bfs.tuning import StreamedTuning
from kepler_traverse.certificate import certify_many
from kepler_traverse.cuda import csr_build, graph_statistics
from kepler_traverse.graph import Graph
from kepler_traverse.search.query import Query
from scripts.make_graphs import Draws, rmat_ends
from scripts.measure.environment import free_pool, timed_on_gpu
from scripts.measure.work import OURS, Call, Inputs, Repeats, Timed, Work

PACKAGES = ("cupy-cuda13x", "cupy-cuda12x")
SEED = 1
PIECE = 1 << 26  # edges drawn at once, so that the list takes 8 bytes per edge
SCALE = 26
EDGE_FACTOR = 16
MANY = 4096
GROUPS = (512, 1024)
REPEATS = 3
VERTICES = 119_000_000
EDGES = 4_600_000_000  # drawn; about 4.3 billion differ
LINKING = 4  # of the domains of the web graph, one in so many links to others
ERROR = 0.01
CONFIDENCE = 0.95
CERTIFIED = 32  # sources
WAYS = {
    "edges on the host": StreamedTuning(),
    "all edges copied": StreamedTuning(in_place=1 << 40),
    "edges read over the bus": StreamedTuning(in_place=0),
}


def draw(n_vertices: int, n_edges: int, linking: int = 1) -> tuple[Any, Any]:
    """Return both ends of the edges of an R-MAT graph, int32, with shuffled numbers.

    ``linking``: only one vertex in so many has outgoing edges.
    """
    draws = Draws(cuda.cp, SEED)
    scale = max(1, (n_vertices - 1).bit_length())
    shuffled = draws.permutation(n_vertices).astype(np.int32)
    ends = cuda.cp.empty((2, n_edges), np.int32)
    for first in range(0, n_edges, PIECE):
        part = slice(first, min(first + PIECE, n_edges))
        src, dst = rmat_ends(scale, part.stop - part.start, draws, cuda.cp)
        ends[0, part] = shuffled[src % n_vertices // linking * linking]
        ends[1, part] = shuffled[dst % n_vertices]
    return ends[0], ends[1]


def build(src: Any, dst: Any, n_vertices: int, directed: bool) -> Graph:
    """Return the graph of vertices 0 to n - 1 on the GPU, without loops and parallel edges."""
    offsets, targets, _, _, _ = csr_build.assemble(src, dst, None, n_vertices, not directed)
    ids = cuda.cp.arange(n_vertices, dtype=index_dtype(n_vertices))
    return Graph(offsets=offsets, targets=targets, weights=None, ids=ids, directed=directed)


def with_edges(graph: Graph, count: int) -> np.ndarray:
    """Return some vertices with an outgoing edge, at random."""
    n = graph.n_vertices
    drawn = np.random.default_rng(SEED).choice(n, min(n, 16 * count), replace=False)
    return drawn[graph_statistics.degrees_at(graph.offsets, drawn) > 0][:count]


class Case(NamedTuple):
    """A graph on the GPU, and with its edges in host memory."""

    graph: Graph
    on_host: Graph | None = None


def rmat_of(_inputs: Inputs) -> Case:
    graph = build(*draw(1 << SCALE, EDGE_FACTOR << SCALE), 1 << SCALE, directed=False)
    free_pool()
    return Case(graph, graph.to("cuda", edges="host"))


def web_of(_inputs: Inputs) -> Case:
    graph = build(*draw(VERTICES, EDGES, LINKING), VERTICES, directed=True)
    _ = graph.reverse  # searches pull
    free_pool()
    return Case(graph)


def statistics(case: Case) -> Call:
    """Prepare the levels of many sources, in groups; the number of vertices reached is returned."""
    graph = case.graph
    sources = with_edges(graph, MANY)
    given = {"n_sources": sources.size, "strategy": "bit_parallel", "result": "summary"}
    plan = REGISTRY.plan_multi_source(graph, **given)

    def reached() -> int:
        return sum(int(to_host(each.counts).sum()) for each in plan.iter_groups(sources))

    return lambda: Timed(*timed_on_gpu(reached))


def group(case: Case, count: int, tuning: StreamedTuning | None) -> Call:
    """Prepare one group, with the edges on the GPU or as ``tuning`` says; levels are returned.

    The memory of a group is large, and is given back before another peer has its turn.
    """
    sources = with_edges(case.graph, count)
    query = Query(predecessors=False, output="counts", tuning=tuning)
    made = partial(GroupRun, case.graph, query, count)
    if tuning is not None:
        made = partial(StreamedRun, case.on_host, query, count)

    def run() -> Timed:
        found = searched(traverse_by(made()), sources)
        free_pool()
        return found

    return run


def searched(traverse: Any, sources: np.ndarray) -> Timed:
    levels = to_host(traverse(sources).counts)
    seconds = min(timed_on_gpu(lambda: traverse(sources))[1] for _ in range(REPEATS))
    return Timed(levels, seconds)


def compare_with_certified(graph: Graph) -> None:
    """Certify the hops from some sources; the sums of their reciprocals must be those of `HarmonicSums`."""
    sources = np.sort(with_edges(graph, CERTIFIED))
    given = {"n_sources": sources.size, "strategy": "bit_parallel", "result": "distances"}
    plan = REGISTRY.plan_multi_source(graph, **given)
    found = plan.run(sources)
    certify_many(graph, sources, found.distance).require()
    unit = np.uint64(1 << UNIT_BITS)
    expected = cuda.cp.zeros(graph.n_vertices, np.uint64)
    for row in found.distance:
        hops = cuda.cp.maximum(row, row.dtype.type(1)).astype(np.uint64)
        expected += cuda.cp.where(row > 0, unit // hops, np.uint64(0)).astype(np.uint64)
    plan.release()
    del found
    free_pool()
    sums = HarmonicSums(graph, 32)
    sums.add(sources)
    if not bool((sums.sums == expected).all()):
        raise SystemExit("harmonic sums differ from those of the certified hops")


def centrality(case: Case) -> Call:
    graph = case.graph
    compare_with_certified(graph)
    n = graph.n_vertices
    wanted = min(sample_size(n, ERROR, CONFIDENCE), n)
    sources = np.random.default_rng(SEED).choice(n, wanted, replace=False)
    n_searched = int((graph_statistics.degrees_at(graph.offsets, sources) > 0).sum())

    def run() -> Timed:
        sums = HarmonicSums(graph)
        _, seconds = timed_on_gpu(lambda: sums.add(sources))
        return Timed(None, seconds, {"size": n_searched})

    return run


def facts_of(case: Case) -> dict[str, int]:
    return {"vertices": case.graph.n_vertices, "edges": case.graph.n_edges}


def works(inputs: Inputs) -> Iterator[Work]:
    if inputs.device != "cuda":
        return
    given = {"facts": facts_of, "repeats": Repeats(most=1)}
    of_rmat = {"graph": f"R-MAT {SCALE}", "case": rmat_of} | given
    many = {OURS: statistics}
    yield Work(name="statistics of many sources", size=MANY, peers=many, **of_rmat)
    for count in GROUPS:
        ways = {OURS: None} | WAYS
        peers = {name: partial(group, count=count, tuning=way) for name, way in ways.items()}
        yield Work(name=f"one group of {count:,} sources", size=count, peers=peers, **of_rmat)
    name = f"harmonic centrality of all vertices, error {ERROR:g} at {100 * CONFIDENCE:g} %"
    yield Work(name=name, graph="web graph", case=web_of, peers={OURS: centrality}, **given)
