"""Graphs of suites, and other libraries that search them: each gets the CSR, and returns distances from some sources."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kepler_traverse.cpu import threads
from scripts.measure.environment import timed
from scripts.measure.graphs import GRAPHS
from scripts.measure.work import Inputs, planner


def graph_of(inputs: Inputs, name: str):
    """Return a graph of graphs.toml: ids are numbers, weights integers from 1 to 255 by the ends of an edge."""
    from kepler_traverse import with_weights
    from scripts.papers import graphs

    made = graphs.make(GRAPHS[name], inputs.graphs, "cpu", inputs.seed).weighted
    numbered = replace(made, ids=np.arange(made.n_vertices))
    return with_weights(numbered, made.weights.astype(np.int32), per="edge")


def roads_of(inputs: Inputs, file: str):
    """Return the undirected graph of a file, with its weights, or else hashed ones from 1 to 255."""
    import pandas

    from kepler_traverse import graph_from_edges
    from pipelines.comparison import hashed_weights

    edges = pandas.read_parquet(inputs.file(file))
    if "weight" not in edges:
        edges["weight"] = hashed_weights(*edges.to_numpy().T, directed=False)
    return graph_from_edges(edges, directed=False)


def tails_of(graph) -> np.ndarray:
    """Return the number of the vertex that each edge of a graph leaves."""
    return np.repeat(np.arange(graph.n_vertices), np.diff(graph.offsets))


def edges_of(graph) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return both ends of the edges as numbers, and weights; without loops, and of an undirected graph each edge once."""
    src = tails_of(graph)
    dst = graph.targets.astype(np.int64)
    kept = (src < dst) | (graph.directed & (src != dst))
    weights = graph.weights
    if weights is not None:
        weights = weights[kept]
    return src[kept], dst[kept], weights


class Rows(NamedTuple):
    """A graph as every library gets it: CSR arrays, which :meth:`read` takes from files."""

    offsets: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    sources: np.ndarray

    @classmethod
    def read(cls, folder: Path) -> Rows:
        return cls(*(np.load(folder / f"{name}.npy") for name in cls._fields))

    @property
    def n(self) -> int:
        return self.offsets.size - 1

    def weights_of(self, algorithm: str) -> np.ndarray | None:
        """Return the weights of an algorithm; a search by hops has none."""
        return {"bfs": None, "sssp": self.weights}[algorithm]

    def graph(self, directed: bool):
        from kepler_traverse.graph import Graph

        return Graph(
            offsets=self.offsets,
            targets=self.targets,
            weights=self.weights,
            ids=np.arange(self.n),
            directed=directed,
        )

    def edges(self) -> tuple[np.ndarray, np.ndarray]:
        return np.repeat(np.arange(self.n), np.diff(self.offsets)), self.targets.astype(np.int64)


# --- libraries: ``library(rows, algorithm, directed)`` returns ``run(sources)``; that returns distances, one row per source


def ours(rows: Rows, algorithm: str, directed: bool):
    """Return the dense matrix of ``bfs_many`` or ``sssp_many``; for one source, the distances of a plan."""
    graph = rows.graph(directed)
    if directed:
        _ = graph.reverse
    single = planner(algorithm)(graph, predecessors=False)
    plans = {}

    def run(sources):
        if len(sources) == 1:
            return single.run(int(sources[0])).distance[None]
        if len(sources) not in plans:
            given = {"n_sources": len(sources), "result": "matrix"}
            plans[len(sources)] = planner(algorithm, many=True)(graph, **given)
        plan = plans[len(sources)]
        groups = [group.distance for group in plan.iter_groups(sources)]
        widest = max((group.dtype for group in groups), key=lambda dtype: dtype.itemsize)
        run.strategy = plan.strategy.name
        if len(groups) == 1:
            return groups[0]
        return np.concatenate([group.astype(widest, copy=False) for group in groups])

    run.strategy = single.strategy.name
    return run


def networkit_graph(n: int, src, dst, weights=None, directed: bool = True):
    """Return a graph of NetworKit, which then uses as many threads as this library."""
    import networkit as nk

    nk.setNumberOfThreads(threads.count())
    ends = src.astype(np.int64), dst.astype(np.int64)
    if weights is None:
        return nk.GraphFromCoo(ends, n=n, directed=directed)
    triples = weights.astype(np.float64), ends
    return nk.GraphFromCoo(triples, n=n, directed=directed, weighted=True)


def igraph_graph(n: int, src, dst, directed: bool = True):
    import igraph

    return igraph.Graph(n=n, edges=np.stack([src, dst], axis=1), directed=directed)


def scipy(rows: Rows, algorithm: str, _directed: bool):
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import dijkstra

    arrays = rows.weights.astype(np.float64), rows.targets, rows.offsets
    matrix = csr_matrix(arrays, shape=(rows.n, rows.n))
    call = partial(dijkstra, matrix, unweighted=algorithm == "bfs")
    return lambda sources: call(indices=sources).reshape(len(sources), -1)


def networkit(rows: Rows, algorithm: str, _directed: bool):
    import networkit as nk

    graph = networkit_graph(rows.n, *rows.edges(), rows.weights_of(algorithm))
    one = {"bfs": nk.distance.BFS, "sssp": nk.distance.Dijkstra}[algorithm]

    def run(sources):
        if len(sources) == 1:
            search = one(graph, int(sources[0]), False, False)
            search.run()
            return np.asarray(search.getDistances(asarray=True))[None]
        search = nk.distance.SPSP(graph, [int(source) for source in sources])
        search.run()
        return search.getDistances(asarray=True)

    return run


def igraph(rows: Rows, algorithm: str, _directed: bool):
    graph = igraph_graph(rows.n, *rows.edges())
    call = partial(graph.distances, weights=rows.weights_of(algorithm), mode="out")
    return lambda sources: call(source=[int(source) for source in sources])


def one_by_one(rows: Rows, algorithm: str, make, search):
    """Return the distances of a library that returns a mapping of them per source."""
    src, dst = rows.edges()
    weights = rows.weights_of(algorithm)
    if weights is None:
        weights = np.ones(src.size)
    graph = make(rows.n, list(zip(src.tolist(), dst.tolist(), weights.tolist(), strict=True)))

    def run(sources):
        distances = np.full((len(sources), rows.n), np.inf)
        for row, source in zip(distances, sources, strict=True):
            found = search(graph, int(source))
            row[list(found.keys())] = list(found.values())
            row[source] = 0
        return distances

    return run


def networkx(rows: Rows, algorithm: str, _directed: bool):
    import networkx as nx

    def make(n, edges):
        graph = nx.DiGraph()
        graph.add_nodes_from(range(n))
        graph.add_weighted_edges_from(edges)
        return graph

    return one_by_one(rows, algorithm, make, nx.single_source_dijkstra_path_length)


def rustworkx(rows: Rows, algorithm: str, _directed: bool):
    import rustworkx as rx

    def make(n, edges):
        graph = rx.PyDiGraph()
        graph.add_nodes_from(range(n))
        graph.extend_from_weighted_edge_list(edges)
        return graph

    def search(graph, source):
        return rx.dijkstra_shortest_path_lengths(graph, source, float)

    return one_by_one(rows, algorithm, make, search)


GAPBS = Path(os.environ.get("GAPBS", "/tmp/gapbs"))  # a checkout of the GAP Benchmark Suite
DELTAS = (1, 4, 16, 64, 256, 1024, 4096)


def gapbs(rows: Rows, algorithm: str, directed: bool):
    """Return the hops by its parents, or the distances with the width of buckets that is the fastest here."""
    built = gapbs_library()
    pointer = ctypes.c_void_p
    rows_of = rows.offsets.astype(np.int64), np.ascontiguousarray(rows.targets, np.int32)
    inverse = (None, None)
    if directed and algorithm == "bfs":
        inverse = _inverse(*rows_of)
    arrays = [*rows_of, *inverse]
    address = [None if each is None else each.ctypes.data_as(pointer) for each in arrays]
    if algorithm == "bfs":
        built.make_graph.restype = built.search_hops.restype = pointer
        graph = pointer(built.make_graph(ctypes.c_int64(rows.n), *address))
        return _Gapbs(arrays, rows.n, lambda source: built.search_hops(graph, source), _depths)
    edges = np.stack([rows_of[1], rows.weights.astype(np.int32)], axis=1)
    built.make_weighted_graph.restype = built.search_weights.restype = pointer
    graph = built.make_weighted_graph(
        ctypes.c_int64(rows.n), address[0], edges.ctypes.data_as(pointer)
    )

    def search(source: int, delta: int) -> int:
        return built.search_weights(pointer(graph), source, delta)

    source = int(rows.sources[0])
    delta = min(DELTAS, key=lambda each: least_seconds(partial(search, source, each)))
    return _Gapbs([*arrays, edges], rows.n, lambda source: search(source, delta), _or_unreached)


def least_seconds(call) -> float:
    return min(timed(call)[1] for _ in range(3))


def gapbs_library() -> ctypes.CDLL:
    """Build the searches with the flags of the suite, if they are not there; ModuleNotFoundError: it is absent."""
    if not (GAPBS / "src" / "bfs.cc").exists():
        raise ModuleNotFoundError(f"{GAPBS} has no GAP Benchmark Suite; GAPBS names its folder")
    built = GAPBS / "gapbs.so"
    if not built.exists():
        flags = ["-std=c++11", "-O3", "-fopenmp", "-shared", "-fPIC", f"-I{GAPBS / 'src'}"]
        flags += ["-Dmain=no_main"]  # of its programs
        source = Path(__file__).with_name("gapbs.cpp")
        subprocess.run(["g++", *flags, str(source), "-o", str(built)], check=True)
    return ctypes.CDLL(str(built))


def _inverse(offsets: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from scipy.sparse import csr_matrix

    n = offsets.size - 1
    inverse = csr_matrix((np.ones(targets.size, np.int8), targets, offsets), shape=(n, n)).tocsc()
    return inverse.indptr.astype(np.int64), inverse.indices.astype(np.int32)


class _Gapbs:
    """Searches from one source; ``found`` is in memory of the library until the next search.

    ``distances(found)`` is not timed: `cpu` asks for it by ``finish``.
    """

    def __init__(self, kept, n, search, distances):
        self._kept = kept
        self._n = n
        self._search = search
        self._distances = distances

    def __call__(self, sources):
        (source,) = sources
        address = self._search(int(source))
        return np.ctypeslib.as_array(
            ctypes.cast(address, ctypes.POINTER(ctypes.c_int32)), (self._n,)
        )[None]

    def finish(self, found):
        return self._distances(found)


def _depths(parents: np.ndarray) -> np.ndarray:
    """Return the hops of each vertex by its parents; a vertex without one has a negative number."""
    depths = np.full(parents.size, np.inf)
    at = np.arange(parents.size)
    reached = parents >= 0
    depths[reached] = 0
    ancestor = np.where(reached, parents, at)
    # the source is its own parent
    step = (ancestor != at).astype(np.float64)
    while True:
        further = ancestor[ancestor]
        if np.array_equal(further, ancestor):
            break
        step += step[ancestor]
        ancestor = further
    depths[reached] = step[reached]
    return depths


def _or_unreached(distances: np.ndarray) -> np.ndarray:
    none = np.iinfo(np.int32).max // 2
    return np.where(distances == none, np.inf, distances)


LIBRARIES = {
    **{"kepler": ours, "SciPy": scipy, "NetworKit": networkit, "GAPBS": gapbs},
    **{"igraph": igraph, "NetworkX": networkx, "rustworkx": rustworkx},
}


def compile_all(algorithm: str) -> None:
    """Run every engine once on a small graph, so that nothing compiles during a measurement."""
    from kepler_traverse import graph_from_edges, plan_bfs, plan_bfs_many
    from kepler_traverse.bfs import MULTI_SOURCE as BFS
    from kepler_traverse.sssp import MULTI_SOURCE as SSSP

    rng = np.random.default_rng(0)
    for directed in (True, False):
        graph = graph_from_edges(
            *rng.integers(0, 20000, (2, 40000)), rng.integers(1, 9, 40000), directed=directed
        )
        plan_bfs(graph, predecessors=False).run(0)
        for row in {"bfs": BFS, "sssp": SSSP}[algorithm]:
            if row.device == "cpu" and not row.unsupported_reason(graph):
                make = planner(algorithm, many=True)
                for result in ("matrix", "summary"):
                    plan = make(graph, n_sources=256, strategy=row.name, result=result)
                    plan.run(np.arange(min(plan.group, 100)))
    path = np.arange(40000)
    graph = graph_from_edges(path, path + 1)  # deep: the wider types of hop counts
    if algorithm == "bfs":
        plan_bfs_many(graph, n_sources=4, strategy="source_per_thread").run(np.array([0, 39000]))


def digest(distances) -> str:
    """Return a checksum of one source that does not depend on the library's type or its value for unreached vertices."""
    row = np.asarray(distances).astype(np.float64)
    none = (row < 0) | ~(row < 1e300)
    return hashlib.sha256(np.where(none, np.inf, row).tobytes()).hexdigest()
