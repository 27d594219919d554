"""From a file to a graph: time and peak memory, compared with pandas and SciPy, or on a GPU with cuDF and cuGraph.

Each build is made in a process of its own. Memory is resident memory of the process on a CPU, and what RMM handed out (to
cuDF, CuPy and cuGraph) on a GPU.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scripts.measure.environment import timed_on_gpu
from scripts.measure.work import OURS, Call, Inputs, Timed, Work, here, unless

PACKAGES = ("pyarrow", "pandas", "scipy", "cudf-cu13", "cugraph-cu13")
FILES = ("USA-road-NE-topology", "cnr-2000", "soc-Slashdot0902", "USA-road-d.NY")


def ours(path: Path, device: str) -> int:
    from kepler_traverse import read_graph

    return read_graph(path, directed=True, device=device).n_edges


# Libraries that merge edges by another rule return nothing to compare.


def of_scipy(path: Path) -> None:
    """What a SciPy user does: read the columns and take ids as indices. Duplicates are summed, which is not what we do."""
    import pandas
    import scipy.sparse

    frame = pandas.read_parquet(path)
    data = np.asarray(frame.get("weight", np.ones(len(frame), np.float32)))
    n = int(frame[["src", "dst"]].max().max()) + 1
    scipy.sparse.csr_matrix((data, (frame["src"], frame["dst"])), shape=(n, n))


def of_cugraph(path: Path) -> None:
    """What a cuGraph user does."""
    import cudf
    import cugraph

    frame = cudf.read_parquet(path)
    graph = cugraph.Graph(directed=True)
    weight = "weight" if "weight" in frame else None
    graph.from_cudf_edgelist(frame, source="src", destination="dst", weight=weight)


def warm_up(_name: str, build: Callable[[Path], Any]) -> None:
    """Import and compile, with a small file."""
    import pyarrow
    import pyarrow.parquet

    ends = np.random.default_rng(1).integers(0, 100, (2, 1000))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.parquet"
        pyarrow.parquet.write_table(pyarrow.table({"src": ends[0], "dst": ends[1]}), path)
        build(path)


def on_a_gpu(call: Call) -> Timed:
    import cupy
    import rmm.statistics
    from rmm.allocators.cupy import rmm_cupy_allocator

    rmm.reinitialize(pool_allocator=True)
    rmm.statistics.enable_statistics()
    cupy.cuda.set_allocator(rmm_cupy_allocator)
    rmm.statistics.push_statistics()
    edges, taken = timed_on_gpu(call)
    return Timed(edges, taken, {"peak_bytes": rmm.statistics.pop_statistics().peak_bytes})


def edges_in(path: Path) -> dict[str, int]:
    import pyarrow.parquet

    return {"rows": pyarrow.parquet.read_metadata(path).num_rows}


def check(edges: int, found: int | None) -> str:
    return unless(found in (None, edges), f"{found} edges in place of {edges}")


def works(inputs: Inputs) -> Iterator[Work]:
    peer, build, clock = {
        "cpu": ("pandas + SciPy", of_scipy, here),
        "cuda": ("cuDF + cuGraph", of_cugraph, on_a_gpu),
    }[inputs.device]
    builds = {OURS: partial(ours, device=inputs.device), peer: build}
    for file in FILES:
        yield Work(
            name="build",
            graph=file,
            case=lambda inputs, file=file: inputs.file(file),
            peers={name: partial(partial, build) for name, build in builds.items()},
            check=check,
            facts=edges_in,
            clock=clock,
            in_a_process=True,
            warm_up=lambda name: warm_up(name, builds[name]),
        )
