"""Sums of integer weights are exact on every strategy and in every kind of result, or refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import (
    NegativeCycleError,
    certify,
    graph_from_edges,
    plan_sssp,
    plan_sssp_many,
    sssp,
    sssp_many,
)
from kepler_traverse._arrays import EXACT_BELOW, namespace
from kepler_traverse.certificate import certify_many
from kepler_traverse.errors import EdgeListError, InputError, PrecisionError
from kepler_traverse.search.exact import any_beyond
from kepler_traverse.search.results import checksum
from kepler_traverse.sssp.registry import MULTI_SOURCE, STRATEGIES
from tests.conftest import HAS_GPU
from tests.support import oracle
from tests.support.devices import host
from tests.support.graphs import build, edge_rows, is_refused
from tests.support.plans import rows_of

DEVICES = [pytest.param("cpu"), pytest.param("cuda", marks=pytest.mark.gpu)]
# Integers around which float32, float64 and int64 begin to round, and the type that sums then need.
SCALES = {
    "float32": 1,
    "around 2^24": 2**24 - 3,
    "around 2^53": 2**53 - 3,
    "beyond 2^53": 2**54 + 1,
}


def exact(rows, weights, source, directed=True):
    """Distances by the oracle, in Python's integers."""
    weighted = [(u, v, w) for (u, v), w in zip(rows, weights, strict=True)]
    neighbors = oracle.edges_of(weighted, directed)
    if min(weights) < 0:
        return oracle.bellman_ford(neighbors, source, int)
    return oracle.dijkstra(neighbors, source, int)


def found_in(frame):
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    assert frame["distance"].dtype.kind == "i"
    return dict(zip(frame["vertex"].tolist(), frame["distance"].tolist(), strict=True))


@st.composite
def integer_rows(draw, low=0):
    """Rows and integer weights of one scale, so that sums lie on both sides of what a type holds."""
    rows = draw(edge_rows(max_vertices=12, max_rows=30))
    scale = draw(st.sampled_from(sorted(SCALES.values())[: 4 if low >= 0 else 3]))
    weights = draw(st.lists(st.integers(low, 6), min_size=len(rows), max_size=len(rows)))
    return rows, [w * scale // 2 + w % 3 for w in weights]


@rows_of(STRATEGIES)
def test_sssp_sums_integers_exactly(row):
    @given(integer_rows(), st.booleans(), st.data())
    def check(drawn, directed, data):
        rows, weights = drawn
        source = data.draw(st.sampled_from(sorted({v for r in rows for v in r})))
        graph = build(rows, weights, directed).to(row.device)
        frame = sssp(graph, source, strategy=row.name)
        assert found_in(frame) == exact(rows, weights, source, directed)
        certify(graph, frame).require()
        certify(graph, plan_sssp(graph, strategy=row.name)(source)).require()

    check()


@rows_of(MULTI_SOURCE)
def test_sssp_many_sums_integers_exactly(row):
    @given(integer_rows(), st.booleans())
    def check(drawn, directed):
        rows, weights = drawn
        graph = build(rows, weights, directed).to(row.device)
        if is_refused(graph, MULTI_SOURCE, row.name):
            return
        sources = sorted({v for r in rows for v in r})[:5]
        frame = sssp_many(graph, sources, strategy=row.name)
        frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
        for source in sources:
            expected = exact(rows, weights, source, directed)
            assert found_in(frame[frame["source"] == source]) == expected
        summary = sssp_many(graph, sources, strategy=row.name, result="summary")
        totals = [sum(exact(rows, weights, source, directed).values()) for source in sources]
        assert summary["sum"].to_numpy().tolist() == totals
        plan = plan_sssp_many(graph, n_sources=len(sources), strategy=row.name)
        for group in plan.iter_groups(graph.to_numbers(sources)):
            certify_many(graph, group.sources, group.distance).require()

    check()


@pytest.mark.parametrize("device", DEVICES)
def test_sssp_sums_negative_integers_exactly(device):
    @given(integer_rows(low=-2), st.data())
    def check(drawn, data):
        rows, weights = drawn
        source = data.draw(st.sampled_from(sorted({v for r in rows for v in r})))
        loops = {u for (u, v), w in zip(rows, weights, strict=True) if u == v and w < 0}
        expected = exact(rows, weights, source)
        graph = build(rows, weights).to(device)
        if expected is None or loops & expected.keys():
            with pytest.raises(NegativeCycleError):
                sssp(graph, source)
            return
        frame = sssp(graph, source)
        assert found_in(frame) == expected
        certify(graph, frame).require()
        assert found_in(sssp_many(graph, [source]).drop(columns="source")) == expected

    check()


ROAD = [(v, v + 1) for v in range(3000)]
TRAVEL_TIMES = np.random.default_rng(7).integers(5000, 20000, len(ROAD)).tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_sssp_adds_up_the_travel_times_of_a_long_road(device):
    graph = build(ROAD, TRAVEL_TIMES).to(device)
    assert found_in(sssp(graph, 0)) == dict(enumerate(np.cumsum([0, *TRAVEL_TIMES]).tolist()))


@pytest.mark.parametrize("device", DEVICES)
def test_sssp_takes_the_shorter_of_two_paths_that_float32_cannot_tell_apart(device):
    fine = [(v, v + 1) for v in range(40)]
    coarse = [(0, 100), (100, 101), (101, 102), (102, 40)]
    graph = build(fine + coarse, [1_000_001] * 40 + [10_000_007] * 4).to(device)
    frame = sssp(graph, 0).set_index("vertex")
    assert (int(frame["distance"][40]), int(frame["predecessor"][40])) == (40_000_028, 102)


@pytest.mark.parametrize("device", DEVICES)
def test_cutoff_is_compared_with_exact_sums(device):
    graph = graph_from_edges(np.array([1, 2]), np.array([2, 3]), np.array([2**24, 1])).to(device)
    assert found_in(sssp(graph, 1, cutoff=2**24)) == {1: 0, 2: 2**24}
    assert found_in(sssp(graph, 1, cutoff=2**24 + 1)) == {1: 0, 2: 2**24, 3: 2**24 + 1}
    huge = graph_from_edges(np.array([1, 2]), np.array([2, 3]), np.array([2**53, 1])).to(device)
    assert found_in(sssp(huge, 1, cutoff=2**53)) == {1: 0, 2: 2**53}


@pytest.mark.parametrize("device", DEVICES)
def test_nearest_and_targets_and_matrix_are_exact(device):
    rows, weights = [(1, 2), (2, 5), (9, 8), (8, 5)], [2**24, 1, 2**24, 0]
    graph = build(rows, weights).to(device)
    nearest = sssp_many(graph, [1, 9], result="nearest").set_index("vertex")
    assert (int(nearest["source"][5]), int(nearest["distance"][5])) == (9, 2**24)
    pairs = sssp_many(graph, [1, 9], targets=[5, 2], result="targets")
    assert of_pairs(pairs) == [2**24 + 1, 2**24, 2**24, None]
    matrix = host(sssp_many(graph, [1, 9], result="matrix"))
    assert matrix.dtype == np.float64
    assert matrix[0].tolist() == [0, 2**24, 2**24 + 1, np.inf, np.inf]
    huge = host(sssp_many(build(rows, [2**53, 1, 2**53, 0]).to(device), [1, 9], result="matrix"))
    assert huge.dtype == np.int64
    assert huge[0].tolist() == [0, 2**53, 2**53 + 1, 2**63 - 1, 2**63 - 1]


def test_distance_column_has_one_type_per_kind_of_weights():
    for weights in ([1, 2], [2**31 - 1, 1], [2**24, 1], [2**53, 1]):
        graph = build([(0, 1), (1, 2)], weights)
        for source in (0, 2):  # whatever the distances are
            assert sssp(graph, source)["distance"].dtype == np.int64
    assert sssp(build([(0, 1)], np.array([5.0])), 0)["distance"].dtype == np.float64


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_a_float_type_that_was_asked_for_is_exact_or_refused(kind):
    bound = EXACT_BELOW[np.dtype(kind)]
    graph = build([(1, 2), (2, 3)], [bound - 2, 1], weight_type=kind)
    frame = sssp(graph, 1)
    assert frame["distance"].dtype == kind
    assert frame["distance"].tolist() == [0, bound - 2, bound - 1]
    with pytest.raises(PrecisionError, match="weight_type"):
        sssp(build([(1, 2), (2, 3)], [bound - 2, 3], weight_type=kind), 1)
    with pytest.raises(PrecisionError, match="weight_type"):
        sssp_many(build([(1, 2), (2, 3)], [bound - 2, 3], weight_type=kind), [1, 2])


def test_sums_beyond_int64_are_an_error():
    graph = build([(1, 2), (2, 3)], [2**62, 2**62])
    with pytest.raises(PrecisionError, match="2\\^63"):
        sssp(graph, 1)
    with pytest.raises(PrecisionError, match="2\\^63"):
        sssp_many(graph, [1, 2])
    assert found_in(sssp(graph, 2)) == {2: 0, 3: 2**62}
    with pytest.raises(EdgeListError, match="int64"):
        graph_from_edges(np.array([1]), np.array([2]), np.array([2**63], np.uint64))
    with pytest.raises(PrecisionError, match="sum of a source"):
        sssp_many(build([(1, 2), (2, 3), (3, 4)], [2**62, 1, 1]), [1], result="summary")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weight", [2**24, 2**53])
def test_certify_rejects_a_rounded_sum_of_integers(device, weight):
    graph = build([(1, 2), (2, 3)], [weight, 1]).to(device)
    good = plan_sssp(graph)(1)
    assert certify(graph, good).valid
    rounded = [0, weight, weight]  # what the narrower type makes of weight + 1
    for kind in (np.float32 if weight == 2**24 else np.float64, good.distance.dtype):
        distance = namespace(good.distance).asarray(np.array(rounded, kind))
        assert not certify(graph, replace(good, distance=distance)).valid
        assert not certify_many(graph, np.array([0]), distance[None]).valid
    frame = sssp(graph, 1)
    frame["distance"] = rounded
    assert not certify(graph, frame).valid


def test_certify_many_names_every_rule_for_int64_distances():
    far = 2**53
    graph = build([(1, 2), (2, 3), (3, 4), (4, 3)], [far, 1, 0, 0])
    right = np.array([[0, far, far + 1, far + 1]], np.int64)
    unreached = 2**63 - 1

    def broken(*distance):
        return set(certify_many(graph, np.array([0]), np.array([distance], np.int64)).failures)

    assert certify_many(graph, np.array([0]), right).valid
    assert broken(1, far, far + 1, far + 1) == {"C1"}
    assert broken(0, far, -1, far + 1) == {"C2"}
    assert broken(0, far, far + 2, far + 2) == {"C3", "C5"}
    assert broken(0, far - 1, far, far) == {"C4"}
    assert broken(0, far, far, far) == {"C5"}
    assert broken(0, far, unreached, unreached) == {"C3"}


def test_checksum_does_not_depend_on_the_type_of_the_sums():
    graph = build([(1, 2), (2, 3)], [3, 4])
    narrow = plan_sssp(graph)(1)
    wide = plan_sssp(graph, strategy="dijkstra_int64")(1)
    assert narrow.distance.dtype != wide.distance.dtype
    assert checksum(narrow, integers=True) == checksum(wide, integers=True)
    assert checksum(narrow, integers=True) != checksum(plan_sssp(graph)(2), integers=True)


def test_a_matrix_has_the_narrowest_type_of_its_distances_by_every_strategy():
    for weights, kind in (
        ([3, 4], np.float32),
        ([2**23, 2**24 - 1], np.float64),
        ([2**52, 2**52], np.int64),
    ):
        graph = build([(1, 2), (2, 3)], weights)
        for strategy in ("auto", "one_at_a_time", "dijkstra_int64"):
            matrix = sssp_many(graph, [2, 1], result="matrix", strategy=strategy)
            assert matrix.dtype == kind
            far = np.iinfo(np.int64).max if kind is np.int64 else np.inf
            assert matrix.tolist() == [[far, 0, weights[1]], [0, weights[0], sum(weights)]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_any_beyond_checks_each_value_and_no_other(device, kind):
    xp = __import__("cupy") if device == "cuda" else np
    bound = EXACT_BELOW[np.dtype(kind)]
    for n in (1, 31, 32, 255, 257, 1025):
        for at in {0, n // 2, n - 1}:
            for value, is_beyond in (
                (bound, True),
                (-bound, True),
                (bound - 1, False),
                (1 - bound, False),
                (np.inf, False),
            ):
                distance = xp.zeros((3, n), kind)
                distance[1, at] = value
                assert any_beyond(distance, bound) is is_beyond
                assert any_beyond(distance[1], bound) is is_beyond


@pytest.mark.parametrize("device", DEVICES)
def test_a_negative_self_loop_counts_where_it_is_reached(device):
    graph = build([(1, 2), (3, 3), (3, 4)], [5, -1, 2]).to(device)
    assert found_in(sssp(graph, 1)) == {1: 0, 2: 5}
    with pytest.raises(NegativeCycleError) as caught:
        sssp(graph, 3)
    assert (caught.value.cycle, caught.value.weight) == ([3], -1)
    with pytest.raises(NegativeCycleError):
        sssp_many(graph, [1, 3])
    with pytest.raises(NegativeCycleError):
        sssp_many(graph, [1, 3], result="nearest")
    unlooped = build([(1, 2), (3, 4)], [5, 2]).to(device)
    wrong = certify_many(
        graph, np.array([2]), plan_sssp_many(unlooped, n_sources=1).run([2]).distance
    )
    assert set(wrong.failures) == {"C3"}


@pytest.mark.parametrize(
    "options", [{}, {"targets": [42], "result": "targets"}, {"strategy": "dijkstra_int64"}]
)
@pytest.mark.parametrize("rows", [[(41, 42), (42, 42)], [(41, 42), (42, 43), (43, 42)]])
def test_negative_cycles_are_named_by_ids_where_sums_are_int64(rows, options):
    graph = build(rows, [2**54, -3, 1][: len(rows)])
    with pytest.raises(NegativeCycleError) as caught:
        sssp_many(graph, [41], **options)
    assert set(caught.value.cycle) <= {42, 43}
    with pytest.raises(NegativeCycleError):
        sssp(graph, 41)


def test_certify_refuses_a_type_that_no_search_of_the_graph_gives():
    floats = build([(1, 2)], np.array([1.5]))
    with pytest.raises(InputError, match="float32"):
        certify_many(floats, np.array([0]), np.array([[0, 1.5]], np.float32))
    with pytest.raises(InputError, match="int64"):
        certify_many(floats, np.array([0]), np.array([[0, 1]], np.int64))


if not HAS_GPU:

    def test_the_gpu_kernel_sees_values_that_float32_rounds():
        from tests.kernels.simt import harness
        from tests.support.devices import running

        if harness.COMPILER is None:
            pytest.skip("no g++ to compile kernels for the host")
        with running({"block": 64}):
            graph = build(ROAD[:300], [70_000] * 300).to("cuda")
            assert found_in_arrays(plan_sssp(graph)(0)) == [70_000 * v for v in range(301)]


def of_pairs(frame):
    """The distances of a frame of pairs, None where there is none."""
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    missing, distances = frame["distance"].isna().tolist(), frame["distance"].fillna(0).tolist()
    return [
        None if gone else int(distance) for gone, distance in zip(missing, distances, strict=True)
    ]


def found_in_arrays(traversal):
    return [int(d) for d in host(traversal.distance)]


@pytest.fixture(scope="module")
def road(tmp_path_factory):
    path = tmp_path_factory.mktemp("road") / "road.csv"
    rows = [f"{u},{v},{w}" for (u, v), w in zip(ROAD, TRAVEL_TIMES, strict=True)]
    path.write_text("src,dst,weight\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("result", ["predecessors", "summary"])
def test_job_and_verify_add_up_the_travel_times_of_a_long_road(road, tmp_path, capsys, result):
    from pipelines.batch_sources import main
    from pipelines.verify import main as verify

    options = ["--algorithm", "sssp", "--sources", "0,1", "--device", "cpu", "--result", result]
    assert main([str(road), *options, "--output", str(tmp_path / "out"), "--no-report"]) == 0
    table = pq.read_table(tmp_path / "out", partitioning=None).to_pandas()
    totals = np.cumsum([0, *TRAVEL_TIMES])
    if result == "summary":
        assert table["sum"].tolist() == [int(totals.sum()), int((totals[1:] - totals[1]).sum())]
        assert table["eccentricity"].tolist() == [int(totals[-1]), int(totals[-1] - totals[1])]
        return
    assert table["distance"].dtype == np.int64
    assert table[table["source"] == 0]["distance"].tolist() == totals.tolist()
    assert verify([str(tmp_path / "out"), str(road)]) == 0
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert manifest["distances"] == {"type": "int64", "sums": "exact integers"}
    capsys.readouterr()
