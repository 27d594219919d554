"""Statistics of distances: correct, with equal bits on every device and for any number of sources at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kepler_traverse import cuda, plan_bfs_many, plan_sssp_many
from kepler_traverse.cpu import distance_stats as on_cpu
from kepler_traverse.cuda import distance_stats as on_gpu
from kepler_traverse.kinds.question import Question
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from kepler_traverse.search.distance_stats import (
    DistanceStats,
    count_levels,
    summary_of_distances,
    summary_of_levels,
)
from pipelines.output.part_stats import (
    histogram_of_group,
    histogram_of_levels,
    histogram_of_rows,
    sum_histograms,
)
from pipelines.output.rows import make_rows as made
from tests.conftest import HAS_GPU
from tests.support.devices import FIRST, MODES, count_allocations, host, on_a_device, running
from tests.support.graphs import NAMED, build, weights_for

SIZES = [1, 31, 1023, 1024, 1025, 3000]
N_LEVELS = [1, 2, 31, 33, 1023, 1025, 3000]
KINDS = [np.float32, np.float64]


def make_rows(n: int, kind, k: int = 4) -> np.ndarray:
    """Distances of which some are unreached, 0, subnormal or negative; and a source with one distance."""
    rng = np.random.default_rng(n)
    rows = rng.exponential(100, (k, n)).astype(kind)
    rows[0] = 0
    rows[1, rng.random(n) < 0.3] = np.inf
    rows[2, n // 2 :] = np.inf
    rows[3] -= kind(20)
    rows[1:, n // 3] = np.finfo(kind).tiny / kind(4)
    return rows


def offsets_of(n: int) -> np.ndarray:
    return np.append(0, np.cumsum(np.random.default_rng(n).integers(0, 9, n)))


def counted(rows, offsets, limit) -> tuple[DistanceStats, list]:
    found = summary_of_distances(rows, offsets, limit)
    each = [DistanceStats(*(column[i : i + 1] for column in found)) for i in range(len(rows))]
    histograms = [histogram_of_group(rows[i : i + 1], limit, own) for i, own in enumerate(each)]
    assert histogram_of_group(rows, limit, found) == sum_histograms(*histograms)
    return found, histograms


def bits(found: DistanceStats) -> bytes:
    return b"".join(np.ascontiguousarray(column).tobytes() for column in found)


@pytest.mark.filterwarnings("ignore:overflow")  # of the reciprocal of a subnormal number
@pytest.mark.parametrize("limit", [None, 50.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_figures_are_those_of_each_distance_by_itself(n, kind, limit):
    rows, offsets = make_rows(n, kind), offsets_of(n)
    found, histograms = counted(rows, offsets, limit)
    for i, row in enumerate(rows):
        reached = row[np.isfinite(row) & (row <= (np.inf if limit is None else limit))].astype(
            float
        )
        assert found.edges[i] == np.diff(offsets)[np.isfinite(row)].sum()
        assert found.reached[i] == reached.size
        assert histograms[i] == histogram_of_rows(
            "sssp", reached.astype(kind), np.array([reached.size])
        )
        if reached.size:
            assert (found.lowest[i], found.farthest[i]) == (reached.min(), reached.max())
        else:
            assert (found.lowest[i], found.farthest[i], histograms[i]) == (np.inf, -np.inf, None)
        assert found.total[i] == pytest.approx(math.fsum(reached), rel=1e-13, abs=1e-10)
        with np.errstate(divide="ignore"):
            assert found.harmonic[i] == pytest.approx(np.sum(1 / reached[reached > 0]), rel=1e-13)


def test_sum_is_folded_by_halves_within_and_over_reduction_blocks():
    values = np.random.default_rng(1).exponential(1, (1, 1 << 20)) * 10.0 ** (
        np.arange(1 << 20) % 9
    )
    folded = values[0].reshape(-1, 1024)
    while folded.size > 1:
        while folded.shape[1] > 1:
            folded = folded[:, : folded.shape[1] // 2] + folded[:, folded.shape[1] // 2 :]
        folded = folded.reshape(-1, min(1024, folded.size))
    assert (
        summary_of_distances(values, np.zeros(values.size + 1, np.int64), None).total[0]
        == folded[0, 0]
    )


@pytest.mark.parametrize("kind", KINDS)
def test_statistics_of_a_source_do_not_depend_on_its_group(kind):
    rows, offsets = make_rows(3000, kind), offsets_of(3000)
    together, histograms = counted(rows, offsets, 50.0)
    for i in range(len(rows)):
        alone, histogram = counted(rows[i : i + 1], offsets, 50.0)
        assert bits(alone) == bits(DistanceStats(*(column[i : i + 1] for column in together)))
        assert histogram == histograms[i : i + 1]


@on_a_device
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", SIZES)
def test_a_gpu_finds_the_bits_of_a_cpu(monkeypatch, n, kind, mode):
    monkeypatch.setattr(on_gpu, "TILE", 512)
    rows, offsets = make_rows(n, kind), offsets_of(n)
    for limit in (None, 50.0):
        expected, histograms = counted(rows, offsets, limit)
        with running(MODES[mode]):
            there = cuda.cp.asarray(rows), cuda.cp.asarray(offsets)
            found, same = counted(*there, limit)
            alone, _ = counted(there[0][1:2], there[1], limit)
        assert bits(found) == bits(expected)
        assert same == histograms
        assert bits(alone) == bits(DistanceStats(*(column[1:2] for column in expected)))


@on_a_device
def test_gpu_folds_the_sums_of_reduction_blocks_in_several_passes():
    """Records of the first kernel, from so many reduction blocks that their sums are folded twice."""
    n = 1100 * 1024 + 5
    row = np.random.default_rng(2).exponential(1, (1, n)).astype(np.float32)
    offsets = np.arange(n + 1) * 2
    expected, histograms = counted(row, offsets, None)
    with running(FIRST):
        found, same = counted(cuda.cp.asarray(row), cuda.cp.asarray(offsets), None)
    assert bits(found) == bits(expected)
    assert same == histograms


@on_a_device
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("limit", [None, 7])
def test_levels_are_counted_alike_on_either_device(monkeypatch, limit, kind, mode):
    monkeypatch.setattr(on_gpu, "TILE", 512)
    monkeypatch.setattr(on_gpu, "LEVELS", 64)  # others are counted in global memory
    # so that sources are processed one after another
    monkeypatch.setattr(on_gpu, "LEVELS_AT_ONCE", 250)
    monkeypatch.setattr(on_cpu, "LEVELS_AT_ONCE", 250)
    n = 2100
    rows = np.random.default_rng(3).integers(-1, 100, (3, n)).astype(kind)
    rows[1] = np.arange(n) // 100
    rows[2, 5:] = -1
    rows[:, 0] = 0
    offsets = offsets_of(n)
    expected, edges = levels_in(rows, offsets, limit)
    for row, counts, stored in zip(rows, expected, edges, strict=True):
        reached = row[(row >= 0) & (row <= (n if limit is None else limit))]
        assert counts == np.bincount(reached).tolist()
        assert stored == np.diff(offsets)[row >= 0].sum()
    with running(MODES[mode]):
        assert levels_in(cuda.cp.asarray(rows), cuda.cp.asarray(offsets), limit) == (
            expected,
            edges,
        )


def levels_in(rows, offsets, limit) -> tuple[list, list]:
    """Return counts per source without trailing zeros, and edges; they are computed for a few sources at a time."""
    counts, edges = [], []
    for some, stored in count_levels(rows, offsets, limit):
        assert some.size <= max(250, some.shape[1])
        counts += [np.trim_zeros(row, "b").tolist() for row in host(some)]
        edges += stored.tolist()
    return counts, edges


def levels_by_row(n: int, kind=np.int64) -> np.ndarray:
    """Counts of which some are 0; those of a shorter search have zeros behind them, one ends at its source."""
    counts = np.random.default_rng(n).integers(0, 10**6, (5, n)).astype(kind)
    counts[:, 0] = 1
    counts[:, -1] = 7
    counts[1, n // 2 + 1 :] = 0
    counts[2, 1:] = 0
    counts[3, 1:-1:2] = 0
    return counts


def folded_levels(row: list[int]) -> tuple:
    """Return the statistics of the counts of one source, in plain Python."""
    while not row[-1]:
        row = row[:-1]
    values = [count * (1.0 / hops) if hops else 0.0 for hops, count in enumerate(row)]
    while len(values) > 1:
        half = (len(values) + 1) // 2
        values = [
            value + more for value, more in zip(values, values[half:], strict=False)
        ] + values[len(values) - half : half]
    return (
        float(sum(row)),
        len(row) - 1.0,
        float(sum(i * count for i, count in enumerate(row))),
        values[0],
    )


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("n", N_LEVELS)
def test_statistics_of_levels_are_folded_by_halves_from_the_last_level_of_each_source(n, kind):
    counts = levels_by_row(n, kind)
    expected = np.array([folded_levels(row) for row in counts.tolist()])
    assert summary_of_levels(counts).tobytes() == expected.tobytes()
    wider = np.zeros((5, n + 700), kind)
    wider[:, :n] = counts
    assert (
        summary_of_levels(wider).tobytes()
        == summary_of_levels(wider[:, :n]).tobytes()
        == expected.tobytes()
    )
    for i in range(len(counts)):
        assert summary_of_levels(wider[i : i + 1]).tobytes() == expected[i : i + 1].tobytes()
    assert expected[0, 3] == pytest.approx(math.fsum(counts[0, 1:] / np.arange(1, n)))


@on_a_device
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("n", N_LEVELS)
def test_a_gpu_finds_the_bits_of_a_cpu_of_levels(monkeypatch, n, kind, mode):
    # so that a block processes several sources
    monkeypatch.setattr(on_gpu, "LEVELS_AT_ONCE", 2 * n)
    wider = np.zeros((5, n + 100), kind)
    wider[:, :n] = counts = levels_by_row(n, kind)
    expected = summary_of_levels(counts)
    with running(MODES[mode]):
        there = cuda.cp.asarray(wider)
        assert summary_of_levels(there[:, :n]).tobytes() == expected.tobytes()
        assert summary_of_levels(there[1:2]).tobytes() == expected[1:2].tobytes()


@on_a_device
def test_a_gpu_folds_more_levels_than_a_block_has_shared_memory_for():
    counts = levels_by_row(40_000)
    with running(FIRST):
        assert (
            summary_of_levels(cuda.cp.asarray(counts)).tobytes()
            == summary_of_levels(counts).tobytes()
        )


@on_a_device
def test_histograms_of_levels_are_those_of_the_hops():
    sizes = [1, 2, 63, 64, 65, 127, 128, 129, 253, 254, 1009, 1010, 3000]
    counts = np.zeros((len(sizes), 3000), np.int32)
    for row, size in zip(counts, sizes, strict=True):
        row[:size] = np.arange(size) % 7 + 1
    farthest = np.array(sizes) - 1
    expected = [
        histogram_of_rows("bfs", np.repeat(np.arange(3000), row), np.array([row.sum()]))
        for row in counts
    ]
    assert histogram_of_levels(counts, farthest) == sum_histograms(*expected)
    with running(FIRST):
        assert histogram_of_levels(cuda.cp.asarray(counts), farthest) == sum_histograms(*expected)
    for i, row in enumerate(counts):
        assert histogram_of_levels(row[None, : sizes[i]], farthest[i : i + 1]) == expected[i]


@on_a_device
@pytest.mark.parametrize("limit", [None, 9])
@pytest.mark.parametrize("result", ["summary", "levels", "weighted summary"])
def test_the_rows_of_a_group_are_those_of_a_cpu(result, limit):
    rows = [row[:2] for row in NAMED["two components"]]
    graph = build(rows, weights_for(rows, 4), directed=False)
    sources = np.arange(graph.n_vertices)[:6]
    planned, asked = (
        (plan_sssp_many, "cutoff") if "weighted" in result else (plan_bfs_many, "max_depth")
    )

    def of(graph):
        plan = planned(
            graph, n_sources=6, result="distances", strategy="one_at_a_time", **{asked: limit}
        )
        question = Question(algorithm=plan.algorithm, kind=RESULT_KINDS[result.split()[-1]])
        return list(made(question, graph, plan.query, plan.run(sources)))

    with running(FIRST):
        found = of(graph.to("cuda"))
    for one, other in zip(found, of(graph), strict=True):
        assert one.answer.table.equals(other.answer.table)
        assert (one.answer.sources, one.answer.checksums) == (
            other.answer.sources,
            other.answer.checksums,
        )
        assert (one.counts[0], one.counts[2]) == (other.counts[0], other.counts[2])


@on_a_device
@pytest.mark.skipif(HAS_GPU, reason="what the stand-in allocates can be counted")
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (5, 1023), (5, 3000)])
def test_bytes_needed_by_statistics_cover_their_allocations(monkeypatch, algorithm, k, n):
    monkeypatch.setattr(on_gpu, "LEVELS_AT_ONCE", 2 * n)
    if algorithm == "bfs":
        rows = np.tile(np.arange(n, dtype=np.int16), (k, 1))  # as many levels as there can be
    else:
        rows = np.random.default_rng(n).exponential(1, (k, n)).astype(np.float32)
    with running(FIRST):
        taken, most = count_allocations(monkeypatch, on_gpu), 0
        there, offsets = cuda.cp.asarray(rows), cuda.cp.asarray(offsets_of(n))
        if algorithm == "bfs":
            for counts, _ in count_levels(there, offsets, None):
                summary_of_levels(counts)
                # the memory for all sources remains allocated
                most, taken[1:] = max(most, sum(taken)), []
        else:
            histogram_of_group(there, None, summary_of_distances(there, offsets, None))
            most = sum(taken)
    assert 0 < most <= on_gpu.bytes_needed(algorithm == "bfs", k, n)
