"""The memory and the time of each way from edges in memory to a graph, and whether their columns are copied.

Each way is measured in a process of its own. Its memory is the peak beyond what the process held with the edges in it, and
contains the graph. The edge list is two int64 ids and an int64 weight per edge, or the bytes of string ids; ratios are to
its size. ``--set scripts.bench.ways_in.EDGES=20000`` measures fewer edges.
"""

from __future__ import annotations

import ctypes
import gc
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow

from scripts.measure.environment import forget_peak, memory, timed
from scripts.measure.work import OURS, Call, Repeats, Timed, Work

PACKAGES = (
    *("pandas", "pyarrow", "scipy", "dask", "networkx", "igraph", "polars", "duckdb", "geopandas"),
    *("torch", "torch_geometric"),
)
EDGES_PER_VERTEX = 8
EDGES = 2_000_000


def columns_of(n_edges: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ends and weights of a random graph, in no order and without an edge twice, as a matrix would add those."""
    rng = np.random.default_rng(1)
    n = n_edges // EDGES_PER_VERTEX
    if n_edges < 10_000:
        places = rng.choice(n * n, n_edges, replace=False)
    else:
        places = np.unique(rng.integers(0, n * n, n_edges))
    rng.shuffle(places)
    return places // n, places % n, rng.integers(1, 1000, places.size)


def _named(columns: tuple) -> dict:
    return dict(zip(("src", "dst", "weight"), columns, strict=True))


def _frame(columns: tuple) -> Any:
    import pandas

    return pandas.DataFrame(_named(columns))


def _table(columns: tuple) -> Any:
    return pyarrow.table(_named(columns))


def _strings(columns: tuple) -> Any:
    *ends, weight = map(pyarrow.array, columns)
    return _table((*(column.cast(pyarrow.string()) for column in ends), weight))


def _reader(columns: tuple) -> Any:
    """A reader of batches that are made as they are read, as a database makes them."""
    size = 1 << 16

    def batches() -> Any:
        for first in range(0, columns[0].size, size):
            yield pyarrow.record_batch(
                [column[first : first + size].copy() for column in columns], names=schema.names
            )

    schema = _table(columns).schema
    return pyarrow.RecordBatchReader.from_batches(schema, batches())


def _sparse(kind: str) -> Callable[[tuple], Any]:
    def make(columns: tuple) -> Any:
        import scipy.sparse

        src, dst, weight = columns
        ends = (src.astype(np.int32), dst.astype(np.int32))
        n = int(max(src.max(), dst.max())) + 1
        return scipy.sparse.coo_array((weight, ends), shape=(n, n)).asformat(kind)

    return make


def _polars(columns: tuple) -> Any:
    import polars

    return polars.DataFrame(_named(columns))


def _duckdb(columns: tuple) -> Any:
    import duckdb

    return duckdb.from_arrow(_table(columns))


def _dask(columns: tuple) -> Any:
    import dask.dataframe
    import pyarrow.parquet

    # A file: of a frame of pandas Dask makes several copies when it first computes.
    path = Path(tempfile.mkdtemp(dir="/tmp")) / "edges.parquet"
    pyarrow.parquet.write_table(_table(columns), path, row_group_size=-(-columns[0].size // 8))
    return dask.dataframe.read_parquet(path, split_row_groups=True)


def _geopandas(columns: tuple) -> Any:
    import geopandas
    import shapely

    src, dst, length = columns
    ends = np.stack([np.stack([src, dst], axis=1), np.stack([dst, src], axis=1)], axis=1)
    facts = {"u": src, "v": dst, "key": 0, "length": length}
    return geopandas.GeoDataFrame(
        facts, geometry=shapely.linestrings(ends.astype(float))
    ).set_index(["u", "v", "key"])


def _torch(columns: tuple) -> Any:
    import torch

    return tuple(torch.from_numpy(column) for column in columns)


def _pyg(columns: tuple) -> Any:
    import torch
    from torch_geometric.data import Data

    src, dst, weight = columns
    ends = torch.from_numpy(np.stack([src, dst]))
    weights = torch.from_numpy(weight)
    return Data(edge_index=ends, edge_weight=weights, num_nodes=int(ends.max()) + 1)


def _networkx(columns: tuple) -> Any:
    import networkx

    made = networkx.DiGraph()
    made.add_weighted_edges_from(_rows(columns))
    return made


def _igraph(columns: tuple) -> Any:
    import igraph

    src, dst, weight = columns
    ends = np.stack([src, dst], axis=1)
    made = igraph.Graph(n=int(ends.max()) + 1, edges=ends, directed=True)
    made.es["weight"] = weight.tolist()
    return made


def _lists(columns: tuple) -> tuple:
    return tuple(column.tolist() for column in columns)


def _rows(columns: tuple) -> list[tuple]:
    return list(zip(*_lists(columns), strict=True))


def _address(value: Any) -> int | None:
    """Where the first column of ids begins in memory, if it is one array there."""
    column = value[0] if isinstance(value, tuple) else value
    for name in ("src", "edge_index", "row", "u"):
        if hasattr(column, "schema") or name in getattr(column, "columns", ()):
            column = column["src"]
            break
        if hasattr(column, name):
            column = getattr(column, name)
            break
    if hasattr(column, "data_ptr"):
        return int(column.data_ptr())
    if hasattr(column, "chunks"):
        return _start(column)
    if hasattr(column, "to_numpy"):
        column = column.to_numpy()
    if isinstance(column, np.ndarray):
        return _start(column)
    return None


def _start(column: Any) -> int:
    """The address of an array's values; for strings, of their bytes."""
    if hasattr(column, "chunks"):
        return int(column.chunk(0).buffers()[-1].address)
    return int(column.__array_interface__["data"][0])


def _same_place(value: Any) -> bool:
    """Whether the ids of an edge list lie where the table holds them."""
    from kepler_traverse.formats import ReadOptions
    from kepler_traverse.formats.tables import as_column, read_table

    if isinstance(value, tuple):
        held = as_column("src", value[0])
    else:
        held = read_table(value, ReadOptions()).table["src"]
    return _address(value) == _start(held)


def _graph(value: Any) -> Any:
    from kepler_traverse import graph_from_edges

    columns = value if isinstance(value, tuple) else (value,)
    return graph_from_edges(*columns)


def _from(name: str) -> Callable[[Any], Any]:
    from kepler_traverse import Graph

    return lambda value: getattr(Graph, name)(value, weight="weight")


# Name of the way: how its edges are made, how they become a graph, and what is copied where the addresses do not tell.
WAYS: dict[str, tuple[Callable, Callable[[Any], Any], str]] = {
    "NumPy arrays": (lambda columns: columns, _graph, ""),
    "pandas DataFrame": (_frame, _graph, ""),
    "pyarrow Table": (_table, _graph, ""),
    "pyarrow Table, string ids": (_strings, _graph, ""),
    "pyarrow RecordBatchReader": (_reader, _graph, "its batches are joined"),
    "polars DataFrame": (_polars, _graph, ""),
    "DuckDB relation": (_duckdb, _graph, "its batches are joined"),
    "Dask DataFrame of a Parquet file": (_dask, _graph, "its partitions are joined"),
    "GeoDataFrame, `u` and `v` in the index": (
        _geopandas,
        _graph,
        "levels of an index are made columns",
    ),
    "torch tensors": (_torch, _graph, ""),
    "PyG `Data`": (_pyg, _graph, ""),
    "SciPy COO": (_sparse("coo"), _graph, ""),
    "SciPy CSR": (_sparse("csr"), _graph, "row numbers are made; columns and data are shared"),
    "list of tuples": (_rows, _graph, "Python objects"),
    "lists": (_lists, _graph, "Python objects"),
    "NetworkX": (_networkx, _from("from_networkx"), "Python objects"),
    "igraph": (_igraph, _from("from_igraph"), "Python objects"),
}


def prepare(columns: tuple, name: str) -> Call:
    """Make the edges of a way; the call builds the graph, and says what is copied."""
    make, build, copied = WAYS[name]
    value = make(columns)
    size = value.nbytes if name.endswith("string ids") else sum(each.nbytes for each in columns)
    if not copied:
        copied = "nothing" if _same_place(value) else "all columns"
    more = {"edge_list_bytes": int(size), "copied": copied, "size": int(columns[0].size)}

    def run() -> Timed:
        # What the columns and imports took is not the graph's.
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        pyarrow.default_memory_pool().release_unused()
        forget_peak()
        before = memory("VmRSS")
        graph, seconds = timed(build, value)
        peak = memory("VmHWM") - before
        if graph.report.rows != more["size"]:
            raise ValueError(f"{name}: {graph.report.rows} of {more['size']} edges were read")
        return Timed(None, seconds, {"peak_bytes": peak, **more})

    return run


def warm_up(_peer: str, name: str) -> None:
    """Build a small graph, so that nothing is compiled or imported afterwards."""
    make, build, _ = WAYS[name]
    build(make(columns_of(1000)))


WORKS = tuple(
    Work(
        name=name,
        graph="random",
        case=lambda _: columns_of(EDGES),
        peers={OURS: partial(prepare, name=name)},
        repeats=Repeats(most=1),
        in_a_process=True,
        warm_up=partial(warm_up, name=name),
        # Each large array is then given back when it is freed, and none hides in memory that was freed before.
        environment={"MALLOC_MMAP_THRESHOLD_": str(1 << 17)},
    )
    for name in WAYS
)
