"""Sizes of batches: enough for all workers, none larger than a part file, whole groups, within the available memory."""

import heapq
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import graph_from_edges
from kepler_traverse.errors import InputError
from pipelines import batch_sources
from pipelines.cli.command_line import parse_flags
from pipelines.cli.options import UsageError
from pipelines.cli.settings import read_settings
from pipelines.output.schemas import OUTPUT_SCHEMAS
from pipelines.run import sizing as run_sizing
from pipelines.run.memory_plan import Load, Machine, size_up
from pipelines.run.prepare import Prepared
from pipelines.run.sizing import make_load
from pipelines.worker.planning import Request, plan_for
from tests.conftest import HAS_GPU
from tests.support.devices import on_a_device, running

LOAD = Load(
    n_vertices=10**6,
    n_sources=100,
    graph_bytes=10**9,
    reverse_bytes=0,
    state_bytes=10**8,
    row_bytes=12,
    rows_per_source=10**6,
    most_rows=10**6,
    certified=True,
)
SUMMARIES = replace(LOAD, rows_per_source=1, most_rows=1)


def gpus(count):
    return Machine(device="cuda", cores=32, n_gpus=count, available=10**11)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_batches_are_enough_for_all_workers_and_small_enough_for_a_part(device):
    machine = Machine(device=device, cores=4, n_gpus=2, available=10**11)
    sizing = size_up(LOAD, machine)
    assert sizing.workers == (4 if device == "cpu" else 2)
    assert sizing.n_batches >= 3 * sizing.workers
    assert sizing.batch_size * LOAD.n_vertices <= 8_000_000
    assert sizing.n_batches * sizing.batch_size >= LOAD.n_sources


def test_workers_are_fewer_if_memory_is_short():
    assert size_up(LOAD, Machine(device="cpu", cores=16, n_gpus=0, available=4 * 10**9)).workers < 8


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_too_large_runs_are_refused_with_the_numbers(device):
    with pytest.raises(
        InputError, match=r"needs 1\.\d GiB of memory .*graph.* and 954 MiB are free"
    ):
        size_up(LOAD, Machine(device=device, cores=4, n_gpus=1, available=10**9))


def test_batches_with_few_rows_are_sized_by_the_traversals():
    machine = Machine(device="cpu", cores=4, n_gpus=0, available=10**11)
    load = replace(SUMMARIES, n_sources=10_000, row_bytes=48)
    sizing = size_up(load, machine)
    assert sizing.batch_size == 2**28 // 10**6
    assert sizing.output_bytes == 48 * 10_000
    sizing = size_up(
        replace(load, rows_per_source=10**6, most_rows=10**6, one_search=True), machine, workers=4
    )
    assert (sizing.workers, sizing.threads, sizing.batch_size, sizing.n_batches) == (
        1,
        4,
        10_000,
        1,
    )
    assert sizing.output_bytes == 48 * 10**6


@pytest.mark.parametrize(
    ("n_sources", "group", "workers", "batch_size"),
    [
        (1024, 32, 1, 320),  # 342, of which the last group would have 22
        (1024, 32, 2, 128),  # with 160 one worker would have 17 groups and the other 15
        (1024, 32, 8, 32),
        (1024, 171, 2, 171),
        (1024, 172, 2, 172),  # whole groups, of which each worker gets 3
        (1024, 200, 2, 171),  # less than a group: with 200 one worker would have 600 sources
        (12_000, 2048, 2, 2048),
        (12_000, 2048, 4, 1000),
        (4096, 2048, 2, 683),  # one group each: a worker that is slow would get no less
        (1024, 1, 2, 171),
        (10_240, 1024, 2, 1024),
    ],
)
def test_batches_are_multiples_of_groups_and_equal_per_worker(
    n_sources, group, workers, batch_size
):
    assert (
        size_up(replace(SUMMARIES, n_sources=n_sources, group=group), gpus(workers)).batch_size
        == batch_size
    )


@given(n_sources=st.integers(1, 5000), group=st.integers(2, 200), workers=st.integers(1, 8))
def test_batch_size_is_the_largest_multiple_of_a_group_that_ends_first(n_sources, group, workers):
    load = replace(SUMMARIES, n_sources=n_sources, group=group)
    plain, sizing = (
        size_up(each, gpus(workers), workers) for each in (replace(load, group=1), load)
    )
    if plain.batch_size < group:
        groups = last_end(load, workers, group)  # of the worker that ends last
        is_even = groups > 1 and groups * group <= 1.1 * n_sources / workers
        is_even = is_even and workers > 1
        assert sizing.batch_size == (group if is_even else plain.batch_size)
        return
    assert sizing.batch_size <= plain.batch_size
    largest = plain.batch_size // group
    sizes = range(group * (largest // 2 + 1), group * largest + 1, group)
    ends = {size: last_end(load, workers, size) for size in sizes}
    assert sizing.batch_size == max(size for size in sizes if ends[size] == min(ends.values()))


def last_end(load, workers, batch_size):
    """Return the number of groups that the last worker computes, if each worker takes a batch whenever it is free."""
    ends = [0] * workers
    for begin in range(0, load.n_sources, batch_size):
        sources = min(batch_size, load.n_sources - begin)
        heapq.heapreplace(ends, ends[0] + -(-sources // load.group))
    return max(ends)


@on_a_device
def test_gpu_groups_are_those_of_the_plan_and_statistics_have_memory():
    graph = graph_from_edges(
        *np.random.default_rng(4).integers(0, 100, (2, 300)), np.ones(300), directed=False
    )
    asked = {"limit": None, "targets": None, "certify": "all", "knobs": None, "at_once": 50}

    def load(graph, algorithm, strategy, result="summary"):
        request = Request(
            algorithm=algorithm, strategy=strategy, kind=OUTPUT_SCHEMAS[result], **asked
        )
        plan, numbers = plan_for(graph, request), np.arange(100)
        prepared = Prepared(
            graph=graph, request=request, origin="", folder=None, reused=False,
            numbers=numbers, names=numbers.tolist(), duplicates=0, seconds={},
        )  # fmt: skip
        prepared.plan = plan
        return make_load(prepared), plan

    assert load(graph, "sssp", "auto")[0].group == 1
    with running(None if HAS_GPU else {"block": 64}):
        there = graph.to("cuda")
        for algorithm, strategy, group in (
            ("sssp", "source_per_lane", 32),
            ("bfs", "bit_parallel", 64),
        ):
            found, plan = load(there, algorithm, strategy)
            assert found.group == plan.group == group
            assert found.state_bytes > plan.nbytes
            found, plan = load(there, algorithm, strategy, "distances")
            assert found.state_bytes == plan.nbytes


@pytest.mark.parametrize("result", ["distances", "matrix"])
def test_parts_have_about_the_bytes_that_are_asked_for(tmp_path, monkeypatch, result):
    rng = np.random.default_rng(3)
    src, dst, weight = rng.integers(0, 3000, (3, 12_000))
    pd.DataFrame({"src": src, "dst": dst, "weight": weight}).to_parquet(tmp_path / "edges.parquet")

    def sizes(*words):
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        argv = [
            tmp_path / "edges.parquet",
            "--algorithm",
            "sssp",
            "--device",
            "cpu",
            "--random-sources",
            "240",
        ]
        argv += ["--workers", "1", "--result", result, "--output", out, *words]
        assert batch_sources.main(list(map(str, argv))) == 0
        return [part.stat().st_size for part in sorted(out.glob("part-*"))]

    total = sum(sizes())
    parts = sizes("--part-size", str(total // 8))
    assert len(parts) in (8, 9)
    assert all(0.8 < size / (total / 8) < 1.2 for size in parts[:-1])
    assert sum(parts[::2]) == sum(sizes("--part-size", str(total // 8), "--shard", "0/2"))
    # no source is searched for a size that no part can have
    monkeypatch.setattr(run_sizing, "traverser_for", None)
    assert len(sizes("--part-size", "1GB")) == 3


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--batch-size", "4"], "--batch-size gives the number of sources per part"),
        (["--result", "nearest"], "one search computes all"),
        (["--result", "betweenness"], "do not grow with their sources"),
        (["--engine", "cugraph-mg"], "as many sources per part as it searches from"),
    ],
)
def test_a_size_of_parts_without_effect_is_refused(more, why):
    words = ["edges.parquet", "--sources", "1", "--output", "out", "--part-size", "256MB", *more]
    with pytest.raises(UsageError, match=f"--part-size has no effect: .*{why}"):
        read_settings(*parse_flags(words), environment={})


def test_the_memory_of_parts_that_are_being_written_is_stated_and_within_half_of_the_host():
    most = 10**10
    machine = replace(gpus(2), host=2 * most)
    figures = [
        size_up(replace(LOAD, n_vertices=n), machine, batch_size=size)
        for n in (10**3, 10**6, 3 * 10**7)
        for size in (1, 32, 10**4)
    ]
    for sizing in figures:
        assert 1 < sizing.writers <= 16
        assert 0 < sizing.writing_bytes <= most
    assert len({sizing.writing_bytes for sizing in figures}) == 3, "parts of all sizes hold as much"
    assert figures[-1].writers < figures[0].writers == 16
    assert size_up(LOAD, replace(machine, host=0)).writers == 1
    for nothing_held in (replace(LOAD, adds_up=True), replace(LOAD, one_search=True)):
        assert size_up(nothing_held, machine).writing_bytes == 0
    on_cpu = size_up(LOAD, Machine(device="cpu", cores=8, n_gpus=0, available=10**11))
    assert (on_cpu.writers, on_cpu.writing_bytes) == (1, 0)
