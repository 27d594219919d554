"""GPU strategies and certificates on the host harness: the contract that holds on every device."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import numpy as np
import pytest

from kepler_traverse import plan_bfs, plan_sssp
from kepler_traverse.bfs import gpu_steps as bfs_gpu
from kepler_traverse.bfs.host_loop import levels
from kepler_traverse.certificate import certify
from kepler_traverse.errors import FrontierOverflowError, PrecisionError
from kepler_traverse.extremes import extremes
from kepler_traverse.published import BFS as BFS_OF_PAPERS
from kepler_traverse.published import SSSP as SSSP_OF_PAPERS
from kepler_traverse.search.query import Query
from kepler_traverse.sssp import gpu_steps as sssp_gpu
from kepler_traverse.sssp.host_loop import rounds
from tests.kernels.simt import device, harness
from tests.kernels.simt.contract import POWER_LAW, contract, rows_in
from tests.support import tiers
from tests.support.graphs import NAMED, build, lattice, path, weights_for
from tests.support.plans import BFS as ALL_BFS
from tests.support.plans import SSSP as ALL_SSSP

pytestmark = pytest.mark.skipif(
    harness.COMPILER is None, reason="no g++ to compile kernels for the host"
)

# The library's own; those of the papers are in test_systems_on_host.py.
BFS = [row for row in ALL_BFS if row.device == "cuda" and row not in BFS_OF_PAPERS]
SSSP = [
    row
    for row in ALL_SSSP
    if row.device == "cuda" and row.sums == "float" and row not in SSSP_OF_PAPERS
]
ROWS = [*BFS, *SSSP]

MODES = {
    "in turn": {"resident": 1, "block": 64},
    "stress 1": {"stress": True, "seed": 1, "block": 32, "resident": 4},
    # the size of the first: compiled once for both
    "stress 2": {"stress": True, "seed": 2, "block": 64, "resident": 2},
}
if not tiers.ALL:
    MODES = {"stress 2": MODES["stress 2"]}
# Under the sanitizers, which see accesses but no races, the order that keeps threads together.
if harness.SANITIZED:
    MODES = {"in turn": {"block": 64}}

hypothesis.settings.register_profile(
    "simt", deadline=None, max_examples=tiers.examples(12), print_blob=True
)


@pytest.fixture(autouse=True, params=MODES, scope="module")
def _mode(request):
    with device.present(), harness.settings(**MODES[request.param]):
        yield


@pytest.fixture(autouse=True)
def _few_examples():
    before = hypothesis.settings.get_current_profile_name()
    hypothesis.settings.load_profile("simt")
    yield
    hypothesis.settings.load_profile(before)


# Levels take most of the time. A hundred of them are as good as a thousand, because the sanitizers check only accesses.
LONG = {"path": path(300), "lattice": lattice(16, 50)}
SHORT = {"path": path(80), "lattice": lattice(8, 12)}
CONTRACT = contract(ROWS, **(SHORT if harness.SANITIZED else LONG))
globals().update(CONTRACT)


def test_the_contract_is_there():
    assert len(CONTRACT) > 12
    assert rows_in(CONTRACT) == {row.name for row in ROWS}
    assert len(ROWS) == 5


# --- what only single places in the kernels decide ---------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [[2], [2, 30], [30, 2], [2, 20, 36]])
def test_a_search_goes_on_until_the_farthest_target_whichever_number_it_has(wanted):
    graph = build([(v, v + 1) for v in range(39)], directed=False).to("cuda")
    for row in BFS:
        result = plan_bfs(graph, strategy=row.name, targets=wanted)(39)
        assert [int(result.distance[v]) for v in wanted] == [39 - v for v in wanted]


def test_targets_beyond_the_first_of_each_thread_are_waited_for():
    late = (100, 200)  # of so many that the grid goes round more than once
    graph = build(
        [*((0, v) for v in range(1, 300) if v not in late), *((299, v) for v in late)]
    ).to("cuda")
    for row in BFS:
        result = plan_bfs(graph, strategy=row.name, targets=range(1, 300))(0)
        assert [int(result.distance[v]) for v in late] == [2, 2]


@pytest.mark.parametrize("name", ["power law", "lattice", "star of 32 behind a path", "in-star"])
def test_vertex_numbers_of_64_bits_give_the_same_results(name):
    rows = (NAMED | LONG | {"power law": POWER_LAW})[name]  # as in the contract
    graph = build(rows, weights_for(rows, 3))
    wide = replace(graph, targets=graph.targets.astype(np.int64)).to("cuda")
    assert wide.reverse.targets.dtype == np.int64
    for plan_of in (plan_bfs, plan_sssp):
        expected = plan_of(graph)(rows[0][0])
        for row in BFS if plan_of is plan_bfs else SSSP:
            if row.unsupported_reason(wide) is None:
                found = plan_of(wide, strategy=row.name)(rows[0][0])
                certify(wide, found).require()
                assert np.array_equal(found.distance.get(), expected.distance)
                assert np.array_equal(found.predecessor.get(), expected.predecessor)


def test_vertex_at_the_cutoff_itself_is_reached_by_every_strategy():
    # No vertex of the contract's lattice, as long as it is here, has to lie at a cutoff.
    graph = build([(0, 1), (1, 2), (2, 3)], [1, 1, 1]).to("cuda")
    for row in SSSP:
        assert plan_sssp(graph, strategy=row.name, cutoff=2.0)(0).distance.get().tolist() == [
            0,
            1,
            2,
            np.inf,
        ]


@pytest.mark.parametrize(("kind", "largest"), [(np.float32, 3.3e38), (np.float64, 1.7e308)])
def test_distances_just_below_the_largest_number_are_finite(kind, largest):
    graph = build(
        [(0, 1), (1, 2), (0, 2)],
        np.array([largest, 0, largest], kind),
        weight_type=np.dtype(kind).name,
    )
    for row in SSSP:
        result = plan_sssp(graph.to("cuda"), strategy=row.name)(0)
        certify(graph.to("cuda"), result).require()
        assert result.distance.get().tolist() == [0, kind(largest), kind(largest)]
        assert result.predecessor.get().tolist() == [0, 0, 0]


def test_a_distance_too_far_below_zero_for_the_type_is_an_error():
    graph = build([(0, 1), (1, 2)], np.array([-3e38, -3e38], np.float32)).to("cuda")
    with pytest.raises(PrecisionError, match="float64"):
        plan_sssp(graph)(0)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_negative_distances_of_all_magnitudes_keep_their_order(kind):
    pairs = [
        (2.0**e, 2.0**e * longer)
        for e in range(-90, 61, 5)
        for longer in (1.5, *(2.0 ** (1 << k) for k in range(6)))
    ]
    # Two paths to each vertex, one of them longer: the shorter must win, whichever bits differ.
    rows = [
        edge
        for v in range(1, len(pairs) + 1)
        for edge in ((0, 2 * v - 1), (2 * v - 1, 2 * v), (0, 2 * v))
    ]
    weights = [w for size, larger in pairs for w in (-size, 0, -larger)]
    graph = build(rows, np.array(weights, kind), weight_type=np.dtype(kind).name)
    expected = plan_sssp(graph)(0)
    found = plan_sssp(graph.to("cuda"))(0)
    assert found.distance.get().tobytes() == expected.distance.tobytes()
    assert found.distance.get()[2::2].tolist() == [-larger for _, larger in pairs]


@pytest.mark.parametrize(
    ("loop", "kind", "step"),
    [
        (levels, bfs_gpu.PushRun, bfs_gpu.push("warp")),
        (rounds, sssp_gpu.Run, sssp_gpu.relax("warp")),
    ],
    ids=["bfs", "sssp"],
)
def test_queue_overflow_is_an_error_without_writes_out_of_bounds(loop, kind, step):
    star = [(0, v) for v in range(1, 41)]
    graph = build(star, weights_for(star, 0)).to("cuda")
    run = kind(graph, Query())
    run.frontier.capacity = 39
    run.frontier.next.fill(-7)
    with pytest.raises(FrontierOverflowError, match="40 vertices"):
        loop(lambda _graph, _query: run, step)(graph, Query())(0)
    assert run.frontier.next.get()[39:].tolist() == [-7, -7]


# --- certificates ------------------------------------------------------------------------------------------------------


def test_a_wrong_distance_is_found_on_the_device():
    rows = [row[:2] for row in NAMED["power law"]]
    graph = build(rows, weights_for(rows, 3)).to("cuda")
    for plan_of in (plan_bfs, plan_sssp):
        right = plan_of(graph)(rows[0][0])
        for change, rule in ((1, "C3"), (-1, "C4")):
            wrong = right.copy()
            farthest = int(np.argmax(np.where(right.reached.get(), right.distance.get(), 0)))
            wrong.distance[farthest] += change
            assert rule in certify(graph, wrong).failures


def test_predecessors_in_a_circle_without_length_are_found_on_the_device():
    graph = build([(0, 1), (1, 2), (2, 1)], [1, 0, 0]).to("cuda")
    result = plan_sssp(graph)(0)
    certify(graph, result).require()
    # explained by an edge of length 0, from a vertex that is explained by this one
    result.predecessor[1] = 2
    assert certify(graph, result).failures


@pytest.mark.parametrize("plan_of", [plan_bfs, plan_sssp])
def test_a_vertex_at_the_limit_itself_must_not_be_missing(plan_of):
    graph = build([(0, 1), (1, 2), (2, 3)], [1, 1, 1]).to("cuda")
    limit = {"max_depth": 2} if plan_of is plan_bfs else {"cutoff": 2.0}
    result = plan_of(graph, **limit)(0)
    certify(graph, result).require()
    result.distance[2] = -1 if plan_of is plan_bfs else np.inf
    result.predecessor[2] = -1
    assert "C3" in certify(graph, result).failures


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_extremes_equal_those_of_the_cpu(algorithm, directed):
    rows = [*((v, v + 1) for v in range(12)), (12, 3), (5, 0), (13, 14)]
    graph = build(rows, [1 + v % 4 for v in range(len(rows))], directed=directed)
    found = extremes(graph.to("cuda"), algorithm=algorithm, unconnected="largest")
    expected = extremes(graph, algorithm=algorithm, unconnected="largest")
    for name in ("diameter", "radius", "n_vertices"):
        assert getattr(found, name) == getattr(expected, name)
    assert found.center.tolist() == expected.center.tolist()
    assert found.periphery.tolist() == expected.periphery.tolist()
