"""Kernels that build a graph and describe it, against NumPy: on the host harness, and on a GPU where there is one."""

from __future__ import annotations

import numpy as np
import pytest

from kepler_traverse import graph_from_edges
from kepler_traverse._arrays import to_host
from kepler_traverse.cpu import csr_build as cpu_csr
from kepler_traverse.cuda import copies, csr_build, edge_weights, graph_statistics, vertex_ids
from tests.support.devices import each_namespace

cp = each_namespace("host", "gpu")


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 50, np.int64),
        (0, 50, np.int32),
        (1, 51, np.int32),
        (0, 200, np.uint8),
        (-100, 100, np.int8),
        (-2_000, 2_000, np.int16),
        (0, 60_000, np.uint16),
        (0, 10**9, np.int32),
        (0, 2**32 - 1, np.uint32),
        (-(10**18), 10**18, np.int64),
        (2**63, 2**64 - 1, np.uint64),
        (0, 2**64 - 1, np.uint64),
    ],
)
def test_renumber_ranks_ids_of_any_type(cp, low, high, dtype):
    rng = np.random.default_rng(3)
    columns = [rng.integers(low, high, size, dtype, endpoint=True) for size in (300, 200, 0)]
    columns[1][:50] = columns[0][:50]
    ids, numbers = vertex_ids.renumber([cp.asarray(c) for c in columns], np.dtype(np.int32))
    everything, ranks = np.unique(np.concatenate(columns), return_inverse=True)
    assert ids.dtype == dtype
    np.testing.assert_array_equal(to_host(ids), everything)
    np.testing.assert_array_equal(np.concatenate([to_host(n) for n in numbers]), ranks)
    assert {n.dtype for n in numbers} == {np.dtype(np.int32)}


def test_renumber_copies_no_edge_list_that_has_numbers_already(cp):
    column = cp.asarray(np.array([2, 0, 1, 1], np.int32))
    _, (numbers,) = vertex_ids.renumber([column], np.dtype(np.int32))
    assert numbers.data.ptr == column.data.ptr


def test_renumber_of_no_ids(cp):
    ids, (numbers,) = vertex_ids.renumber([cp.zeros(0, np.int64)], np.dtype(np.int32))
    assert (ids.size, ids.dtype, numbers.size, numbers.dtype) == (0, np.int64, 0, np.int32)


def assert_same(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        if other is None or isinstance(other, int):
            assert mine == other
        else:
            assert to_host(mine).dtype == other.dtype
            np.testing.assert_array_equal(to_host(mine), other)


@pytest.fixture(params=[1 << 22, 100], ids=["one piece", "many pieces"])
def pieces(request, monkeypatch):
    """The sizes of the pieces in which a graph is built."""
    monkeypatch.setattr(csr_build, "MIN_PIECE", request.param)
    monkeypatch.setattr(csr_build, "SHIFTED_AT_ONCE", request.param // 10)


def random_edges(weight_type, n=90, rows=700):
    """Edges of which many are parallel, and weights that are negative or subnormal, of which the least must be found."""
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, n, rows).astype(np.int32), (rng.zipf(1.3, rows) % n).astype(np.int32)
    if weight_type is None:
        return src, dst, None
    weight = rng.integers(-50, 50, rows).astype(weight_type)
    weight[::2] *= np.finfo(weight_type).smallest_subnormal
    return src, dst, weight + weight_type(0)  # no -0.0


def moved(cp, *arrays):
    return [None if array is None else cp.asarray(array) for array in arrays]


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize(
    ("weight_type", "wide"), [(None, False), (np.float32, True), (np.float64, False)]
)
def test_a_graph_is_assembled_as_on_the_cpu(cp, weight_type, wide, both_ways):
    src, dst, weight = random_edges(weight_type)
    src, dst = (column.astype(np.int64 if wide else np.int32) for column in (src, dst))
    expected = cpu_csr.assemble(src, dst, weight, 120, both_ways)
    made = csr_build.assemble(*moved(cp, src, dst, weight), 120, both_ways)
    assert_same(made, expected)
    for directed in (False, True):
        isolated = csr_build.count_isolated(*made[:2], directed)
        assert isolated == cpu_csr.count_isolated(*expected[:2], directed)
        assert isolated >= 30


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("weight_type", [None, np.float32])
def test_a_graph_is_turned_round_as_on_the_cpu(cp, weight_type):
    offsets, targets, weights, *_ = cpu_csr.assemble(*random_edges(weight_type), 120)
    assert_same(
        csr_build.transpose(*moved(cp, offsets, targets, weights)),
        cpu_csr.transpose(offsets, targets, weights),
    )


def test_adjacency_lists_move_up_after_parallel_edges_in_an_earlier_block(cp, monkeypatch):
    monkeypatch.setattr(csr_build, "MIN_PIECE", 4)
    src = np.array([0, 0, 0, *range(1, 30), 35], np.int32)
    dst = np.array([1, 1, 1, *range(2, 31), 0], np.int32)
    weight = np.arange(src.size, 0, -1, dtype=np.float32)
    assert_same(
        csr_build.assemble(*moved(cp, src, dst, weight), 40), cpu_csr.assemble(src, dst, weight, 40)
    )


@pytest.mark.parametrize("n_vertices", [0, 1, 5])
@pytest.mark.parametrize("weight_type", [None, np.float32])
def test_a_graph_without_edges_is_assembled_and_turned_round(cp, n_vertices, weight_type):
    nothing = np.zeros(0, np.int32)
    weight = None if weight_type is None else np.zeros(0, weight_type)
    made = csr_build.assemble(*moved(cp, nothing, nothing, weight), n_vertices)
    assert_same(made, cpu_csr.assemble(nothing, nothing, weight, n_vertices))
    assert_same(csr_build.transpose(*made[:3]), [to_host(made[0]), nothing, weight])


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64])
@pytest.mark.parametrize("weight_type", [np.float32, np.float64, np.int64])
def test_integer_weights_keep_their_values(cp, dtype, weight_type):
    integers = np.array([0, 1, 100, np.iinfo(dtype).min // 2**40, 7], dtype)
    weights = edge_weights.from_integers(cp.asarray(integers), np.dtype(weight_type))
    assert weights.dtype == weight_type
    np.testing.assert_array_equal(to_host(weights), integers.astype(weight_type))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_check_counts_what_is_not_finite_and_negative_zeros(cp, dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    good = np.array([0, -0.0, tiny, -tiny, 1, np.finfo(dtype).max, -0.0], dtype)
    assert edge_weights.check(cp.asarray(good))[::2] == (0, 2)
    bad = np.concatenate([good, np.array([np.nan, np.inf, -np.inf], dtype)])
    assert edge_weights.check(cp.asarray(bad)) == (3, good.size, 2)
    cleared = to_host(edge_weights.without_negative_zeros(cp.asarray(good)))
    np.testing.assert_array_equal(cleared, good)
    assert np.flatnonzero(np.signbit(cleared)).tolist() == [3]


def test_negative_loops_are_counted(cp):
    ends = np.array([0, 1, 2, 3], np.int32), np.array([0, 2, 2, 3], np.int32)
    weights = np.array([-1, -1, -np.finfo(np.float32).smallest_subnormal, 1], np.float32)
    assert edge_weights.count_negative_loops(*map(cp.asarray, ends), cp.asarray(weights)) == 2
    graph = graph_from_edges(*map(cp.asarray, ends), cp.asarray(weights))
    assert graph.negative_loops == {0: -1.0, 2: float(weights[2])}


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_total_and_sample_of_weights(cp, dtype, monkeypatch):
    monkeypatch.setattr(edge_weights, "SUMS", 7)
    weights = np.arange(1, 101).astype(dtype)
    assert edge_weights.total(cp.asarray(weights)) == 5050.0
    np.testing.assert_array_equal(edge_weights.sample(cp.asarray(weights), 9), weights[::9])


def test_statistics_of_a_graph(cp):
    rng = np.random.default_rng(6)
    degrees = rng.integers(0, 6, 200)
    degrees[[17, 90]] = 70, 64
    offsets = np.concatenate([[0], np.cumsum(degrees)])
    targets = rng.integers(0, 200, offsets[-1]).astype(np.int32)
    on_device = cp.asarray(offsets)
    np.testing.assert_array_equal(to_host(graph_statistics.degrees(on_device)), degrees)
    mean, deviation, largest = graph_statistics.degree_statistics(on_device)
    assert (mean, largest) == (degrees.sum() / 200, 70)
    assert deviation == pytest.approx(degrees.std(), rel=1e-12)
    some = np.array([0, 17, 199, 17])
    np.testing.assert_array_equal(graph_statistics.degrees_at(on_device, some), degrees[some])
    edges = rng.integers(0, offsets[-1], 150)
    sources, ends = graph_statistics.edges_at(on_device, cp.asarray(targets), edges)
    np.testing.assert_array_equal(sources, np.searchsorted(offsets, edges, side="right") - 1)
    np.testing.assert_array_equal(ends, targets[edges])
    assert graph_statistics.hub(on_device) == 17
    assert graph_statistics.hub(cp.asarray(np.arange(0, 301, 3))) == 0
    hubs, lengths = graph_statistics.hubs(on_device, 64)
    assert (hubs.tolist(), lengths.tolist()) == ([17, 90], [70, 64])
    assert not graph_statistics.hubs(on_device, 1000)[0].size


def test_equal_degrees_do_not_deviate(cp):
    assert graph_statistics.degree_statistics(cp.asarray(np.arange(0, 301, 3))) == (3.0, 0.0, 3)
    large = np.array([0, 2**33 + 5, 2**34 + 10])
    assert graph_statistics.degree_statistics(cp.asarray(large)) == (2.0**33 + 5, 0.0, 2**33 + 5)


def test_reached_vertices_are_counted(cp):
    offsets = np.array([0, 3, 3, 5, 9])
    distance = np.array([0, -1, 2, 1], np.int32)
    assert graph_statistics.count_reached(cp.asarray(offsets), cp.asarray(distance), 1) == (3, 9, 2)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
def test_max_hops_leaves_out_what_lies_between_rows(cp, dtype):
    rows = np.full((3, 100), 99, dtype)
    rows[:, :70] = -1
    assert graph_statistics.max_hops(cp.asarray(rows)[:, :70]) == -1
    rows[1, 69] = 42
    assert graph_statistics.max_hops(cp.asarray(rows)[:, :70]) == 42


def test_copies_have_one_type_and_size(cp):
    target, source = cp.zeros(6, np.int64), cp.asarray(np.arange(3))
    copies.copy_into(target[2:5], source)
    assert to_host(target).tolist() == [0, 0, 0, 1, 2, 0]
    for wrong in (target[:2], target[:3].view(np.float64), target[::2]):
        with pytest.raises(ValueError, match=r"contiguous|do not fit"):
            copies.copy_into(wrong, source)
