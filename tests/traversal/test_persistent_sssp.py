"""The shortest paths of one launch: each of its paths, forced on graphs that are small enough for the host harness."""

from __future__ import annotations

import weakref

import numpy as np
import pytest

from kepler_traverse import plan_sssp
from kepler_traverse.certificate import certify
from kepler_traverse.errors import PrecisionError
from kepler_traverse.search.query import Query
from kepler_traverse.sssp import gpu_steps, near_far_gpu, tuning
from tests.conftest import HAS_GPU
from tests.support import oracle, tiers
from tests.support.devices import MODES, host, in_each, on_a_device
from tests.support.graphs import build, lattice, path, rmat, star, weights_for

pytestmark = on_a_device

mode = in_each(MODES, autouse=True)
# Knobs that force other paths than that of one block, which every graph of the tests takes. No graph decides about a
# constant, so each way is compiled once.
GRID = {"SMALL": 1, "SMALL_EDGES": 0, "SMALL_FAR": 0}
FORCED = {
    "grid in pieces": {
        "hops": 1,
        "CHUNK": 40,
        "WARM_UP": 1,
        "SHARED_LISTS": 1,
        "UNROLL": 2,
        "TAIL": 1 << 30,
    }
    | GRID,
    "hops": {"LOCAL_ROUND_EDGES": 1 << 20, "LOCAL_ROUND_DEGREE": 1 << 20, "CHUNK": 64} | GRID,
    "small and grid": {"SMALL": 20, "SMALL_EDGES": 90, "SMALL_FAR": 30, "hops": 1, "CHUNK": 64}
    | {"LIGHT": 0, "SHARED_LISTS": 1},
    "all of them": {
        "SMALL": 10,
        "SMALL_EDGES": 60,
        "SMALL_FAR": 12,
        "LOCAL_ROUND_EDGES": 200,
        "hops": 4,
        "LOCAL": 5,
    }
    | {"CHUNK": 40, "EDGES_PER_LANE": 1, "CLEANS_UP": 0, "CHUNK_WARPS": 0, "MIN_BLOCKS": 1},
}
SAME = {"SHARED_LISTS": 0, "CHUNK_WARPS": 1, "UNROLL": 1, "TAIL": 0, "MIN_BLOCKS": 0}
GRAPHS = {
    "power law": rmat(8, 12, seed=3),
    "star of 1025 behind a path": [(v + 1030, v + 1031) for v in range(4)]
    + [(1034, 0), *star(1025)],
    "lattice": lattice(14, 33),
    "complete": [(u, v) for u in range(60) for v in range(60)],
    "two components": [*path(20), (50, 51), (51, 52)],
}
LATTICE = GRAPHS["lattice"]


def awkward(n_edges, kind):
    """Weights that are absorbed by each other, are zero, or all equal."""
    rng = np.random.default_rng(5)
    return {
        "nothing": np.zeros(n_edges, np.float32),
        "equal": np.full(n_edges, 0.1, np.float32),
        "zeros and ones": rng.integers(0, 2, n_edges).astype(np.float32),
        "subnormal": (rng.integers(1, 9, n_edges) * 2.0**-149).astype(np.float32),
        "of all magnitudes": (rng.random(n_edges) * 10.0 ** rng.integers(-30, 31, n_edges)).astype(
            np.float32
        ),
        "one huge": np.append(np.full(n_edges - 1, 1e-30), 1e30).astype(np.float32),
        "whole numbers": rng.integers(1, 256, n_edges).astype(np.float32),
    }[kind]


def force(monkeypatch, hops=None, **constants):
    """Make plans choose these constants, and so many hops, whatever the graph."""
    chosen = near_far_gpu.entry_for
    monkeypatch.setattr(
        near_far_gpu, "entry_for", lambda *args: chosen(*args).variant(**SAME | constants)
    )
    if hops is not None:
        monkeypatch.setattr(near_far_gpu, "local_rounds_for", lambda _graph: hops)


@pytest.fixture(params=FORCED)
def forced(request, monkeypatch):
    force(monkeypatch, **FORCED[request.param])


def in_two_ways(test):
    """Let a test have the fixture ``forced``, without ``--all`` in two ways."""
    return pytest.mark.parametrize("forced", tiers.few(reversed(FORCED), 2), indirect=True)(
        pytest.mark.usefixtures("forced")(test)
    )


def run(rows, weights, directed=False, source=None, weight_type="float32", **options):
    """Search, and compare every bit with the CPU."""
    cpu = build(rows, weights, directed=directed, weight_type=weight_type)
    graph = cpu.to("cuda")
    source = rows[0][0] if source is None else source
    result = plan_sssp(graph, strategy="persistent", **options)(source)
    expected = plan_sssp(cpu, strategy="frontier", cutoff=options.get("cutoff"))(source)
    found, right = host(result.distance), expected.distance
    if options.get("targets"):
        right = np.where(
            right <= (np.inf if result.limit is None else result.limit), right, np.inf
        ).astype(right.dtype)
    assert found.tobytes() == right.tobytes()
    if result.predecessor is not None:
        certify(graph, result).require()
        assert np.array_equal(
            host(result.predecessor), np.where(np.isfinite(right), expected.predecessor, -1)
        )
    return result


@pytest.mark.parametrize(
    ("forced", "name", "directed"),
    tiers.pairs(list(FORCED), list(GRAPHS), [True, False]),
    indirect=["forced"],
)
@pytest.mark.usefixtures("forced")
def test_every_way_to_go_on_gives_the_bits_of_the_cpu(name, directed):
    rows = GRAPHS[name]
    run(rows, weights_for(rows, 3, "floats" if directed else "integers"), directed)


KINDS = [
    "nothing",
    "equal",
    "zeros and ones",
    "subnormal",
    "of all magnitudes",
    "one huge",
    "whole numbers",
]
SMALLER = lattice(6, 9) + star(40)


@in_two_ways
@pytest.mark.parametrize("kind", KINDS)
def test_search_ends_for_all_weights(kind):
    run(SMALLER, awkward(len(SMALLER), kind))


@pytest.mark.parametrize(("kind", "way"), tiers.by_turns(KINDS, ["grid in pieces", "all of them"]))
def test_distances_of_64_bits_are_exact_too(way, kind, monkeypatch):
    force(monkeypatch, **FORCED[way])
    run(SMALLER, awkward(len(SMALLER), kind), weight_type="float64")


@in_two_ways
@pytest.mark.parametrize("width", [0, 1e-30, 1e-3, 1, 1e30, np.inf])
def test_piles_of_any_width_give_the_same_result(width, monkeypatch):
    monkeypatch.setattr(
        near_far_gpu, "first_width", lambda graph, *_: graph.weights.dtype.type(width)
    )
    run(SMALLER, awkward(len(SMALLER), "whole numbers"))


def test_threshold_step_is_a_hop_with_equal_weights(monkeypatch):
    force(monkeypatch, **FORCED["grid in pieces"])
    # and one that finds nothing
    assert run(LATTICE, awkward(len(LATTICE), "equal"), source=0).rounds == 46


def test_local_rounds_save_iterations(monkeypatch):
    rows, iterations = path(300), {}
    for hops in (1, 8):
        force(monkeypatch, **{**FORCED["hops"], "hops": hops})
        iterations[hops] = run(rows, [1] * 300, directed=True).rounds
    assert iterations == {1: 301, 8: 38}


def test_steps_of_few_edges_make_piles_wider(monkeypatch):
    rows = path(400)
    weights = awkward(400, "whole numbers")
    iterations = {}
    for light in (0, 8192):
        force(monkeypatch, **FORCED["hops"] | {"LIGHT": light, "hops": 64})
        iterations[light] = run(rows, weights, directed=True).rounds
    assert 2 * iterations[8192] < iterations[0]


@in_two_ways
@pytest.mark.parametrize("cutoff", [0, 1, 300.0, 700.5, 1e9])
def test_a_cutoff_is_inclusive(cutoff):
    weights = awkward(len(LATTICE), "whole numbers")
    full = oracle.dijkstra(
        oracle.edges_of([(*e, w) for e, w in zip(LATTICE, weights, strict=True)], False), 0
    )
    result = run(LATTICE, weights, source=0, cutoff=cutoff)
    assert int(host(result.reached).sum()) == sum(d <= cutoff for d in full.values())


@in_two_ways
@pytest.mark.parametrize("wanted", [[0], [35], [35, 70], [461, 1]])
def test_search_stops_once_its_targets_are_settled(wanted):
    weights = awkward(len(LATTICE), "whole numbers")
    full = plan_sssp(build(LATTICE, weights, directed=False), strategy="frontier")(0)
    result = run(LATTICE, weights, source=0, targets=wanted)
    assert [float(result.distance[v]) for v in wanted] == full.distance[wanted].tolist()


@pytest.mark.usefixtures("forced")
def test_a_vertex_at_the_cutoff_itself_is_reached():
    assert int(host(run(path(60), [7] * 60, directed=True, cutoff=210).reached).sum()) == 31


@pytest.mark.parametrize("unit", [1.0, 2.0**-149])
def test_a_search_for_near_targets_leaves_the_rest(unit):
    # Subnormal distances, too, which CuPy takes for zero.
    rows = path(400)
    result = run(rows, [7 * unit] * 400, directed=True, targets=[30, 20])
    assert result.limit == 210 * unit
    assert int(host(result.reached).sum()) == 31


def test_a_target_that_nothing_leads_to_ends_no_search_early():
    result = run(GRAPHS["two components"], [3] * 22, source=0, targets=[5, 51])
    assert result.limit is None
    assert float(result.distance[20]) == 60


@pytest.mark.parametrize("way", ["grid in pieces", "all of them"])
def test_a_plan_is_run_again_and_again(way, monkeypatch):
    force(monkeypatch, **FORCED[way])
    rows = GRAPHS["power law"]
    cpu = build(rows, weights_for(rows, 2, "floats"), directed=False)
    plan, reference = (
        plan_sssp(cpu.to("cuda"), strategy="persistent", predecessors=False),
        plan_sssp(cpu),
    )
    for source in (0, 1, 0, 3):
        assert host(plan(source).distance).tobytes() == reference(source).distance.tobytes()


@pytest.mark.parametrize("way", ["small and grid", "all of them"])
@pytest.mark.parametrize("kind", ["zeros and ones", "whole numbers"])
def test_a_plan_with_predecessors_is_run_again_and_again(kind, way, monkeypatch):
    force(monkeypatch, **FORCED[way])
    cpu = build(SMALLER, awkward(len(SMALLER), kind), directed=False)
    plan, reference = (
        plan_sssp(cpu.to("cuda"), strategy="persistent"),
        plan_sssp(cpu, strategy="frontier"),
    )
    for source in (0, 1, 0, 30):
        found, right = plan(source), reference(source)
        assert host(found.distance).tobytes() == right.distance.tobytes()
        assert host(found.predecessor).tolist() == right.predecessor.tolist()


def test_a_search_after_one_that_stopped_early_starts_afresh():
    cpu = build(path(60), [7] * 60)
    plan, reference = (
        plan_sssp(cpu.to("cuda"), strategy="persistent", targets=[30]),
        plan_sssp(cpu, strategy="frontier"),
    )
    for source in (0, 29, 0):
        found, right = plan(source), reference(source)
        assert host(found.reached).tolist() == (right.distance <= found.limit).tolist()
        assert host(found.predecessor)[30] == 29


@pytest.mark.parametrize("kind", KINDS)
def test_predecessors_made_inside_the_search_are_those_made_after_it(kind):
    for rows, directed in ((SMALLER, False), (rmat(6, 8, seed=2), True)):
        graph = build(rows, awkward(len(rows), kind), directed=directed).to("cuda")
        source, found = rows[0][0], []
        for is_inside in (True, False):
            search = near_far_gpu.plan(
                graph, Query(tuning=tuning.Tuning(predecessors_inside=is_inside))
            )
            found.append(host(search(int(graph.to_numbers([source])[0])).predecessor).tolist())
        assert found[0] == found[1]


@pytest.mark.parametrize(("weight", "is_walked_again"), [(1, False), (0, True)])
def test_predecessor_pass_walks_edges_of_length_zero_only(weight, is_walked_again, monkeypatch):
    launched, launch = [], gpu_steps.launch
    monkeypatch.setattr(
        gpu_steps,
        "launch",
        lambda kernel, *args: launched.append(kernel.entry.name) or launch(kernel, *args),
    )
    plan_sssp(build(path(9), [weight] * 9).to("cuda"), strategy="persistent")(0)
    assert bool(launched) is is_walked_again
    assert "sssp_point_to_nearer_warp" not in launched


def test_a_search_after_one_that_failed_starts_afresh():
    rows = [(0, 1), (1, 2), (5, 6), (6, 1)]
    plan = plan_sssp(
        build(rows, np.array([3e38, 3e38, 1, 2], np.float32)).to("cuda"), strategy="persistent"
    )
    for _ in range(2):
        with pytest.raises(PrecisionError):
            plan(0)
        assert host(plan(2).distance).tolist() == [np.inf, np.inf, 0, np.inf, np.inf]


def test_marks_are_cleared_before_their_numbers_run_out(monkeypatch):
    monkeypatch.setattr(near_far_gpu, "_MAX_STEPS", 10)
    plan = plan_sssp(build(path(20), [1] * 20).to("cuda"), strategy="persistent")
    for source in (0, 3, 0, 15, 2):
        assert int(host(plan(source).distance)[20]) == 20 - source


def test_a_graph_without_edges_has_one_reached_vertex():
    graph = build([(4, 4)], [1.5], vertices=[1, 4, 9]).to("cuda")
    assert host(plan_sssp(graph, strategy="persistent")(4).distance).tolist() == [np.inf, 0, np.inf]


@pytest.mark.parametrize(
    ("rows", "degree"), [(SMALLER, 40), (LATTICE, 2)], ids=["enough room", "too little"]
)
def test_trace_names_the_kind_of_each_iteration(rows, degree, monkeypatch):
    force(monkeypatch, **FORCED["small and grid"], TRACE=40)
    graph = build(rows, awkward(len(rows), "whole numbers"), directed=False).to("cuda")
    traverse = near_far_gpu.plan(graph, Query())
    steps = traverse(0).rounds
    iterations = traverse.iterations()
    relaxed = [iteration for iteration in iterations if "relax" in iteration.what]
    assert [iteration.level for iteration in relaxed] == list(range(len(relaxed)))
    assert relaxed[0][2:] == (0, 1, degree)
    assert [iteration.nanoseconds for iteration in iterations] == sorted(
        iteration.nanoseconds for iteration in iterations
    )
    if rows is LATTICE:
        assert len(iterations) == 40
    else:
        assert len(relaxed) == steps
        assert {iteration.what for iteration in iterations} >= {
            "relax",
            "small relax",
            "small split",
            "last pass",
            "end",
        }


def test_a_plan_holds_no_more_than_it_says(monkeypatch):
    """At most 24 bytes per vertex in addition to distances and predecessors; memory() covers the allocations."""
    held = []
    empty = near_far_gpu.cp.empty if not HAS_GPU else None
    if HAS_GPU:
        pytest.skip("counts what the stand-in for CuPy is asked for")

    def allocated(array):
        held.append(weakref.ref(array))  # arrays that only planning needs are free by the end
        return array

    rows = LATTICE
    for weight_type in ("float32", "float64"):
        graph = build(rows, weights_for(rows, 2), weight_type=weight_type).to("cuda")
        held.clear()
        monkeypatch.setattr(
            type(near_far_gpu.cp), "empty", lambda _cp, *args: allocated(empty(*args)), raising=True
        )
        plan = plan_sssp(graph, strategy="persistent")
        monkeypatch.undo()
        arrays = [array for array in (reference() for reference in held) if array is not None]
        assert arrays
        assert plan.strategy.name == "persistent"
        n, said = graph.n_vertices, near_far_gpu.memory(graph.n_vertices, graph.n_edges, True)
        chunks = 32 * graph.n_edges // tuning.CHUNK + 16
        assert sum(array.nbytes for array in arrays) <= said
        assert said <= n * (8 + 4 + 24) + chunks
        assert sum(array.nbytes for array in arrays) - chunks <= n * (
            graph.weights.dtype.itemsize + 4 + 24
        )
