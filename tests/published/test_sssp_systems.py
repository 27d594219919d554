"""The papers' SSSP systems beyond the contract: every value of every knob, refused values, and the specifics of each."""

from __future__ import annotations

import numpy as np
import pytest

from kepler_traverse import plan_bfs, plan_sssp
from kepler_traverse.errors import InputError, StrategyError
from kepler_traverse.published import SSSP as PAPERS
from kepler_traverse.published.sssp.params import (
    BucketKnobs,
    DeltaSteppingKnobs,
    NearFarKnobs,
    ThresholdKnobs,
)
from tests.conftest import HAS_GPU
from tests.kernels.simt import device, harness
from tests.kernels.simt.launching import launch
from tests.support.devices import host, in_each, on_a_device, orders, running
from tests.support.graphs import build, lattice, path, rmat, star, weights_for
from tests.support.plans import SSSP

# With blocks as in test_strategies_on_host.py, so that nothing is compiled twice.
IN_TURN = {"block": 64}
MODES = orders(in_turn=IN_TURN, stress={"stress": True, "seed": 3, "block": 64, "resident": 2})
mode = in_each(MODES)
ON_GPU = [row for row in PAPERS if row.device == "cuda"]
SHAPE = [*lattice(5, 8), *((0, v) for v in range(60, 110)), *((v, 45) for v in range(60, 70))]
KNOBS = {
    "near_far_piles": [{"edges_a_pile": 0}, {"edges_a_pile": 0.5}, {"edges_a_pile": 1e300}],
    "buckets": [
        {"n_buckets": 1},
        {"n_buckets": 3, "edges_a_bucket": 1},
        {"edges_a_bucket": 0},
        {"edges_a_bucket": 1e300},
    ],
    "delta_stepping": [{}, {"delta": 1e-42}, {"delta": 3}, {"delta": 1e300}],
    "threshold_front": [{"threshold": "lightest_edges"}, {"threshold": "minimum"}],
}
CHOSEN = [
    pytest.param(name, knobs, id=f"{name}-{knobs}")
    for name, values in KNOBS.items()
    for knobs in values
]


def awkward(kind, n_edges):
    """Weights that are absorbed by each other, are zero, or equal to the width of a pile."""
    rng = np.random.default_rng(5)
    return {
        "nothing and subnormal": rng.integers(0, 3, n_edges) * 2.0**-149,
        "of all magnitudes": rng.random(n_edges) * 10.0 ** rng.integers(-30, 31, n_edges),
        "small numbers": rng.integers(0, 7, n_edges),
    }[kind].astype(np.float32)


@on_a_device
@pytest.mark.usefixtures("mode")
@pytest.mark.parametrize("kind", ["nothing and subnormal", "of all magnitudes", "small numbers"])
@pytest.mark.parametrize(("name", "knobs"), CHOSEN)
def test_every_value_of_a_knob_gives_the_bits_of_the_cpu(name, knobs, kind):
    weight_type = "float64" if kind == "small numbers" else "float32"
    cpu = build(SHAPE, awkward(kind, len(SHAPE)), directed=False, weight_type=weight_type)
    expected = plan_sssp(cpu)(20)
    result = plan_sssp(cpu.to("cuda"), strategy=name, knobs=knobs)(20)
    assert host(result.distance).tobytes() == expected.distance.tobytes()
    assert np.array_equal(host(result.predecessor), expected.predecessor)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: NearFarKnobs(edges_a_pile=-1),
            "knob edges_a_pile of near_far_piles must be a number, 0 or more, not -1",
        ),
        (lambda: NearFarKnobs(edges_a_pile=True), "edges_a_pile"),
        (lambda: BucketKnobs(edges_a_bucket=float("nan")), "edges_a_bucket of buckets"),
        (
            lambda: BucketKnobs(n_buckets=0),
            "n_buckets of buckets must be a whole number from 1 to 10, not 0",
        ),
        (lambda: BucketKnobs(n_buckets=11), "n_buckets"),
        (lambda: BucketKnobs(n_buckets=2.0), "n_buckets"),
        (lambda: DeltaSteppingKnobs(delta=float("inf")), "delta of delta_stepping"),
        (lambda: DeltaSteppingKnobs(delta="3"), "delta"),
        (
            lambda: ThresholdKnobs(threshold="least"),
            "threshold of threshold_front must be 'lightest_edges' or 'minimum'",
        ),
    ],
)
def test_a_knob_out_of_range_is_an_error_that_says_what_fits(make, message):
    with pytest.raises(InputError, match=message):
        make()


@on_a_device
def test_a_published_name_leads_to_its_row_and_a_negative_weight_is_refused_where_it_must_be():
    with running(None if HAS_GPU else IN_TURN):
        graph = build([(0, 1), (1, 2)], [2, -1]).to("cuda")
        for row in ON_GPU:
            for name in row.aliases:
                if "non_negative" in row.needs:
                    with pytest.raises(
                        StrategyError,
                        match=rf"'{name}' cannot take negative weights; these can: frontier",
                    ):
                        plan_sssp(graph, strategy=name)
                else:
                    assert plan_sssp(graph, strategy=name).strategy.name == row.name


@on_a_device
@pytest.mark.parametrize("row", ON_GPU, ids=lambda row: row.name)
@pytest.mark.parametrize("weight_type", ["float32", "float64"])
def test_a_plan_holds_no_more_than_it_says(row, weight_type, monkeypatch):
    if HAS_GPU:
        pytest.skip("counts what the stand-in for CuPy is asked for")
    rows = path(3000)
    lowest = 0 if "non_negative" in row.needs else -1
    with running(IN_TURN):
        graph = build(rows, np.full(len(rows), lowest, float), weight_type=weight_type).to("cuda")
        assert graph.has_negative_weights == (lowest < 0)
        empty, held = device.cp.empty, []
        keep = lambda *given: held.append(empty(*given)) or held[-1]  # noqa: E731
        monkeypatch.setattr(type(device.cp), "empty", lambda _cp, *given: keep(*given))
        plan = plan_sssp(graph, strategy=row.name)
        monkeypatch.undo()
        assert 0 < sum(array.nbytes for array in held) <= plan.nbytes
        assert plan.nbytes == row.memory(graph.n_vertices, graph.n_edges, True)


# --- what each does otherwise -------------------------------------------------------------------------------------------


def rounds_of(name, rows, weights, source=0, **options):
    with running(None if HAS_GPU else IN_TURN):
        return plan_sssp(build(rows, weights).to("cuda"), strategy=name, **options)(source).rounds


@on_a_device
def test_the_least_distance_as_threshold_takes_a_round_for_each_distance():
    rows = rmat(6, 6, seed=2)
    weights = [w + 1 for w in weights_for(rows, 4)]
    distances = plan_sssp(build(rows, weights))(rows[0][0]).distance
    n_distances = len(np.unique(distances[np.isfinite(distances)]))
    source = rows[0][0]
    by_minimum = rounds_of("threshold_front", rows, weights, source, knobs={"threshold": "minimum"})
    assert by_minimum == n_distances


@on_a_device
def test_lightest_edges_tell_how_far_the_threshold_may_go():
    rows = [*((0, v) for v in range(1, 21)), *((v, v + 20) for v in range(1, 21))]
    weights = [*range(1, 21), *([100] * 20)]
    # Up to 1: 0, then 1. Up to 102: 2 to 20 and the leaf of 1, then that of 2. No edge leaves the other leaves: all at once.
    assert rounds_of("threshold_front", rows, weights) == 5
    assert rounds_of("threshold_front", rows, weights, knobs={"threshold": "minimum"}) == 41
    assert rounds_of("work_front", rows, weights) == 3


@on_a_device
def test_piles_are_bellman_ford_if_one_is_wide_and_dijkstra_if_narrow():
    rows, weights = star(20), list(range(1, 21))
    for name, knob in (("near_far_piles", "edges_a_pile"), ("buckets", "edges_a_bucket")):
        assert rounds_of(name, rows, weights, knobs={knob: 1e9}) == 2
        assert rounds_of(name, rows, weights, knobs={knob: 0}) == 21
    # A width of 5.5: two rounds for the source and 1 to 5, one for up to 10, up to 16, and, after a new list, from 17 on.
    mean, degree = 10.5, 20 / 21
    assert (
        rounds_of(
            "buckets", rows, weights, knobs={"edges_a_bucket": 5.5 / mean * degree, "n_buckets": 3}
        )
        == 5
    )


@on_a_device
def test_heavy_edges_are_relaxed_once_a_bucket_and_light_ones_in_rounds():
    rows = path(12)
    # Light edges: one round per vertex, and one per bucket, of which there are four. Heavy edges: one bucket per vertex.
    assert rounds_of("delta_stepping", rows, [1] * 12, knobs={"delta": 4}) == 13 + 4
    assert rounds_of("delta_stepping", rows, [9] * 12, knobs={"delta": 4}) == 2 * 13


@pytest.mark.skipif(harness.COMPILER is None, reason="no g++ to compile kernels for the host")
@pytest.mark.parametrize("blocks", [1, 3, 40])
@pytest.mark.parametrize(
    "degrees", [(0, 1, 0, 700, 3), (1,) * 300, (33, 0, 0, 0, 64, 0, 31), (0, 0, 0), (32,)]
)
def test_shares_of_edges_are_equal_and_leave_none_out(degrees, blocks):
    offsets = np.concatenate(([0], np.cumsum(degrees)))
    targets = np.arange(100, 100 + offsets[-1], dtype=np.int32)
    vertices = (
        np.random.default_rng(3)
        .permutation(len(degrees))
        .astype(np.int32)[: len(degrees) - len(degrees) // 10]
    )
    ends = np.cumsum(np.diff(offsets)[vertices])
    visits, of_warp = np.zeros(targets.size, np.int32), np.zeros(2 * blocks, np.int64)
    types = ("offset_t=long long", "vertex_t=int", "weight_t=float")
    given = (offsets, targets, vertices, np.int64(vertices.size), ends, visits, of_warp)
    launch("shares.cu", "count_visits", blocks, 64, *given, defined=types)
    owners = np.repeat(np.arange(len(degrees)), degrees)
    assert np.array_equal(visits, np.isin(owners, vertices))
    assert of_warp.max() <= -(-int(ends[-1]) // of_warp.size) + 32


def test_a_sweep_along_the_edges_is_enough_and_against_them_one_is_needed_for_each():
    along = build(path(40), [1] * 40)
    assert plan_sssp(along, strategy="sweeps")(0).rounds == 1
    against = build([(v + 1, v) for v in range(40)], [1] * 40)
    assert plan_sssp(against, strategy="sweeps")(40).rounds == 41
    assert plan_sssp(along, strategy="fifo")(0).rounds == 41


def test_the_heap_stops_at_the_farthest_target_and_has_all_that_lies_as_near():
    rows = [(0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (2, 6)]
    graph = build(rows, [1, 2, 2, 0, 0, 5])
    result = plan_sssp(graph, strategy="heap", targets=[1, 2])(0)
    assert result.distance.tolist() == [0, 1, 3, 3, 3, 3, np.inf]
    assert result.limit == 3
    assert plan_sssp(graph, strategy="heap", targets=[6])(0).limit == 8
    assert plan_sssp(graph, strategy="heap", targets=[0])(1).limit is None, "it cannot be reached"
    assert plan_sssp(graph, strategy="heap")(0).rounds == 7


@pytest.mark.parametrize("name", ["fifo", "buffers", "pull_integers", "pull_bits"])
def test_a_wide_level_after_a_narrow_one_is_taken_whole_on_the_cpu(name):
    rows = [*star(9000), *((v, 9001 + v // 3) for v in range(1, 9000))]
    graph = build(rows, directed=False)
    result, expected = plan_bfs(graph, strategy=name)(8), plan_bfs(graph, strategy="queue")(8)
    assert np.array_equal(result.distance, expected.distance)
    assert np.array_equal(result.predecessor, expected.predecessor)


def test_auto_takes_none_of_the_papers_systems():
    assert not any(row.default for row in PAPERS)
    assert set(PAPERS) < set(SSSP)
