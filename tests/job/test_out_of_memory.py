"""Failure of each allocation of a batch, one after another: equal bytes, or sources that are reported."""

import asyncio
import contextlib
import gc
import types

import numpy as np
import pyarrow as pa
import pytest

from kepler_traverse import graph_from_edges
from kepler_traverse.graph.storage import write_graph
from pipelines.output.layout import Layout
from pipelines.output.schemas import OUTPUT_SCHEMAS
from pipelines.worker.planning import Request
from pipelines.worker.plugin import TraversalPlugin, Work
from pipelines.worker.traverse import BatchTraverser
from tests.support.jobs import parts_of

ALLOCATE = {
    np: (
        "empty",
        "zeros",
        "ones",
        "full",
        "empty_like",
        "where",
        "flatnonzero",
        "concatenate",
        "arange",
        "diff",
    ),
    pa: ("array", "table", "concat_tables", "chunked_array"),
}


@pytest.fixture(autouse=True)
def _little_garbage():
    """Each failure collects garbage, which would look at everything that tests have imported."""
    gc.collect()
    gc.freeze()


class FailingAllocator:
    """Counts the arrays that NumPy and pyarrow make and refuses some of them."""

    def __init__(self, monkeypatch):
        self.count, self.refuses = 0, lambda _k: False
        for library, names in ALLOCATE.items():
            for name in names:
                monkeypatch.setattr(library, name, self._counting(getattr(library, name)))

    def _counting(self, make):
        def made(*args, **keywords):
            k, self.count = self.count, self.count + 1
            if self.refuses(k):
                raise MemoryError(f"allocation {k}")
            return make(*args, **keywords)

        return made


@pytest.fixture
def one_worker(tmp_path):
    """Return a worker's plugin in this process, as (start it, compute one batch, output folder)."""
    rng = np.random.default_rng(2)
    src, dst = rng.integers(0, 300, (2, 1200))
    write_graph(graph_from_edges(src, dst, rng.integers(1, 99, src.size)), tmp_path / "graph")
    folder = tmp_path / "out"
    folder.mkdir()
    work = Work(
        request=Request(
            algorithm="sssp", strategy="auto", kind=OUTPUT_SCHEMAS["predecessors"], certify="all",
            at_once=8,
        ),
        layout=Layout("predecessors"), graph_folder=tmp_path / "graph", output=folder, device="cpu", threads=1,
    )  # fmt: skip

    def start():
        plugin = TraversalPlugin(work, "plugin")
        # Dask keeps a worker whose plugin could not be set up.
        with contextlib.suppress(MemoryError):
            asyncio.run(
                plugin.setup(
                    types.SimpleNamespace(state=types.SimpleNamespace(nthreads=1), address="")
                )
            )
        return plugin

    def answer(plugin, sources):
        (outcome,) = plugin.answer([(0, sources)], False, tmp_path / "mark")
        return outcome

    return start, answer, folder


def test_failed_allocation_leaves_the_bytes_of_the_part_unchanged(one_worker, monkeypatch):
    start, answer, folder = one_worker
    sources = list(range(3))
    answer(start(), sources)
    expected = parts_of(folder)
    allocator = FailingAllocator(monkeypatch)
    answer(start(), sources)
    allocations = allocator.count
    assert allocations > 10 * len(sources)
    for k in range(allocations):
        allocator.count, allocator.refuses = 0, lambda at, k=k: at == k
        (folder / "part-000000.parquet").unlink()
        assert answer(start(), sources)["failed"] == [], k
        assert allocator.count > k
        assert parts_of(folder) == expected, k
    assert [path.name for path in folder.iterdir()] == ["part-000000.parquet"]


def test_permanent_allocation_failures_report_each_source_and_write_no_file(
    one_worker, monkeypatch
):
    start, answer, folder = one_worker
    plugin = start()
    allocator = FailingAllocator(monkeypatch)
    allocator.refuses = lambda _k: True
    outcome = answer(plugin, list(range(5)))
    assert outcome["summary"] is None
    assert [source for source, _ in outcome["failed"]] == list(range(5))
    assert all(reason.startswith("MemoryError") for _, reason in outcome["failed"])
    assert not list(folder.iterdir())
    allocator.refuses = lambda _k: False
    assert answer(plugin, list(range(5)))["failed"] == []


def test_memory_of_a_gpu_that_runs_out_twice_leaves_the_sources_out(one_worker, monkeypatch):
    """The runtime of CUDA has an error of its own for that, which is no MemoryError."""

    class CUDARuntimeError(RuntimeError):
        pass

    def fails(*_rest):
        raise CUDARuntimeError("cudaErrorMemoryAllocation: out of memory")

    start, answer, folder = one_worker
    plugin = start()
    monkeypatch.setattr("pipelines.worker.traversal_worker.write_part", fails)
    outcome = answer(plugin, list(range(3)))
    assert outcome["summary"] is None
    assert [source for source, _ in outcome["failed"]] == list(range(3))
    assert not list(folder.iterdir())


def test_a_group_that_does_not_fit_is_halved_until_it_does(one_worker, monkeypatch):
    start, answer, folder = one_worker
    plugin = start()
    answer(plugin, list(range(9)))
    expected = parts_of(folder)
    sizes, whole = [], BatchTraverser._traverse

    def fits_two(self, group, *rest):
        sizes.append(len(group))
        if len(group) > 2:
            raise MemoryError
        return whole(self, group, *rest)

    monkeypatch.setattr(BatchTraverser, "_traverse", fits_two)
    assert answer(plugin, list(range(9)))["failed"] == []
    assert sizes == [8, 4, 2, 2, 4, 2, 2, 1]
    assert parts_of(folder) == expected
    sizes.clear()
    answer(plugin, list(range(4)))
    assert max(sizes) <= 2, "what has been learnt holds for the next part"
