"""The RAPIDS functions that the engine ``cugraph-mg`` calls, on pandas: signatures, sentinels and limits as in cuGraph.

It is as unkind as cuGraph may be: of parallel edges it keeps the heaviest, a depth of 0 is no limit, a cutoff leaves out
what lies at it, and vertices without an edge do not exist.
"""

import heapq
import os
import sys
import types

import dask
import numpy as np
import pandas
import pyarrow.parquet as pq
from distributed import LocalCluster, default_client

from kepler_traverse import cuda
from pipelines.multi_gpu import partitioned_graph, rapids
from pipelines.scheduling import cluster

N_WORKERS = 2


class Frames:
    """A collection of frames, as dask-cudf's."""

    def __init__(self, pieces):
        self.pieces = list(pieces)

    def to_delayed(self):
        return self.pieces


def read_parquet(path, columns=None, index=None, blocksize=None):
    assert index is False
    assert isinstance(blocksize, int)
    pieces = []
    for name in path:
        rows = pq.ParquetFile(name).metadata.num_rows
        step = max(1, -(-rows * blocksize // os.path.getsize(name)))
        pieces += [
            dask.delayed(_rows)(name, columns, begin, begin + step)
            for begin in range(0, rows, step)
        ]
    return Frames(pieces)


def _rows(name, columns, begin, end):
    return pq.read_table(name, columns=columns)[begin:end].to_pandas()


def from_delayed(dfs):
    return Frames(dfs)


class Graph:
    def __init__(self, m_graph=None, directed=False):
        assert m_graph is None
        assert directed, "cuGraph would average the weights of two directions"
        self.weighted = False

    def from_dask_cudf_edgelist(
        self,
        input_ddf,
        source="source",
        destination="destination",
        edge_attr=None,
        renumber=True,
        store_transposed=False,
    ):
        assert renumber is True
        assert store_transposed is False
        edges = pandas.concat(default_client().gather(input_ddf.pieces))
        assert edges[source].dtype == edges[destination].dtype
        assert edges[source].dtype in (np.int32, np.int64)
        self.kind = edges[source].dtype
        self.weighted = edge_attr is not None
        self.rows = {}
        weights = edges[edge_attr] if self.weighted else np.ones(len(edges), np.int32)
        self.weight_kind = weights.dtype
        for u, v, w in zip(edges[source], edges[destination], weights, strict=True):
            row = self.rows.setdefault(u, {})
            row[v] = max(row.get(v, w), w)
            self.rows.setdefault(v, {})


def bfs(input_graph, start, depth_limit=None, return_distances=True, check_start=True):
    if not check_start:  # with one start and several workers
        raise UnboundLocalError("cannot access local variable 'vertex_dtype'")
    assert start.dtype == input_graph.kind
    assert return_distances, "its frame would have columns of two lengths"
    limit = np.inf if not depth_limit or depth_limit <= 0 else depth_limit
    most = np.iinfo(input_graph.kind).max
    return _found(input_graph, start[0], limit, lambda d, _w: d + 1, input_graph.kind.type(0), most)


def sssp(input_graph, source, cutoff=None, check_source=True):  # noqa: ARG001
    if not input_graph.weighted:
        raise ValueError("'SSSP' requires the input graph to be weighted.")
    kind = input_graph.weight_kind.type
    below = np.inf if cutoff is None else np.nextafter(kind(cutoff), kind(-np.inf))
    return _found(input_graph, source, below, lambda d, w: d + w, kind(0), np.finfo(kind).max)


def _found(graph, source, limit, add, zero, unreached):
    if source not in graph.rows:
        raise RuntimeError("Starting vertex is not in the graph")
    distance = {source: zero}
    heap = [(zero, source)]
    while heap:
        d, u = heapq.heappop(heap)
        if d > distance[u]:
            continue
        for v, w in graph.rows[u].items():
            far = add(d, w)
            if far <= limit and far < distance.get(v, unreached):
                distance[v] = far
                heapq.heappush(heap, (far, v))
    vertices = np.array(sorted(graph.rows, key=lambda v: -v), graph.kind)
    values = np.array([distance.get(v, unreached) for v in vertices], type(zero))
    frame = pandas.DataFrame({"vertex": vertices, "distance": values, "predecessor": -1})
    return Frames(dask.delayed(frame[part::N_WORKERS]) for part in range(N_WORKERS))


def get_chunksize(input_path):
    return -(-os.path.getsize(input_path) // N_WORKERS)


def _cluster(n_workers, _dashboard, _bytes, _debug):
    return LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
    )


def install(monkeypatch) -> types.SimpleNamespace:
    """Put the modules in place, and a cluster of two workers in this process; returns cugraph.dask, to be tampered with."""
    calls = []
    comms = {
        "initialize": lambda p2p=False: calls.append(p2p),
        "destroy": lambda: calls.append("destroyed"),
    }
    modules = {
        "cudf": {"DataFrame": pandas.DataFrame, "Series": pandas.Series},
        "dask_cudf": {"read_parquet": read_parquet, "from_delayed": from_delayed},
        "dask_cuda": {},
        "cugraph": {"Graph": Graph},
        "cugraph.dask": {"bfs": bfs, "sssp": sssp, "get_chunksize": get_chunksize},
        "cugraph.dask.comms": {},
        "cugraph.dask.comms.comms": comms,
    }
    made = {name: types.ModuleType(name) for name in modules}
    for name, members in modules.items():
        vars(made[name]).update(members)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(made[parent], child, made[name])
        monkeypatch.setitem(sys.modules, name, made[name])
    monkeypatch.setattr(cuda, "require", lambda: None)
    monkeypatch.setattr(rapids, "_n_workers", lambda _settings: N_WORKERS)
    monkeypatch.setattr(partitioned_graph, "_PARTITIONS_PER_WORKER", 2)
    # the other engine's, too, since a process takes seconds to start
    for name in ("_rapids_cluster", "_cluster"):
        monkeypatch.setattr(cluster, name, _cluster)
    return types.SimpleNamespace(dask=made["cugraph.dask"], calls=calls)
