"""The CUDA strategies against the CPU's, which the contract tests prove: equal bits, on any grid, in every run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import (
    Graph,
    NegativeCycleError,
    bfs,
    bfs_many,
    graph_from_edges,
    paths,
    plan_bfs,
    plan_sssp,
    sssp,
    sssp_many,
)
from kepler_traverse import cuda as cuda_package
from kepler_traverse._arrays import to_host
from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.bfs import gpu_steps as bfs_gpu
from kepler_traverse.bfs.host_loop import levels
from kepler_traverse.certificate import certify, single_cpu, single_gpu
from kepler_traverse.cpu import csr_build as cpu_csr
from kepler_traverse.cuda import csr_build as gpu_csr
from kepler_traverse.cuda import launch
from kepler_traverse.errors import FrontierOverflowError, PrecisionError
from kepler_traverse.graph.read import read_graph
from kepler_traverse.search.query import Query
from kepler_traverse.search.results import checksum
from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY
from kepler_traverse.sssp import gpu_steps as sssp_gpu
from kepler_traverse.sssp.host_loop import rounds
from tests.support import tiers
from tests.support.graphs import NAMED, build, rmat, star, weights_for
from tests.support.plans import table_of

BFS = BFS_REGISTRY.with_plugins()[0]
SSSP = SSSP_REGISTRY.with_plugins()[0]

pytestmark = pytest.mark.gpu

cp = cuda_package.cp
BFS_NAMES = [row.name for row in BFS if row.device == "cuda"]
SSSP_NAMES = [row.name for row in SSSP if row.device == "cuda" and row.sums == "float"]


@pytest.fixture(params=["a full grid", "one block"])
def grid(request, monkeypatch):
    if request.param == "one block":
        monkeypatch.setattr(launch, "max_grid", lambda _block: 1)


def assert_same(result, expected):
    np.testing.assert_array_equal(bits(result.distance), bits(expected.distance))
    np.testing.assert_array_equal(to_host(result.predecessor), to_host(expected.predecessor))
    assert checksum(result) == checksum(expected)


def bits(array):
    array = to_host(array)
    return array.view(f"i{array.itemsize}")


def sources_of(graph: Graph, count=3):
    rng = np.random.default_rng(7)
    return {0, graph.n_vertices - 1, *rng.integers(0, graph.n_vertices, count).tolist()}


@pytest.mark.usefixtures("grid")
@pytest.mark.parametrize("strategy", BFS_NAMES)
@pytest.mark.parametrize("directed", [True, False], ids=["directed", "undirected"])
@pytest.mark.parametrize("name", NAMED)
def test_bfs_equals_the_cpu(name, directed, strategy):
    graph = build(NAMED[name], directed=directed)
    expected = plan_bfs(graph)
    plan = plan_bfs(graph.to("cuda"), strategy=strategy)
    for source in sources_of(graph):
        assert_same(plan.run(source), expected.run(source))


@pytest.mark.usefixtures("grid")
@pytest.mark.parametrize("strategy", SSSP_NAMES)
@pytest.mark.parametrize(
    ("name", "weight_type", "kind"), tiers.pairs(list(NAMED), ["float32", "float64"], ["integers", "floats"])
)
def test_sssp_equals_the_cpu(name, weight_type, kind, strategy):
    rows = NAMED[name]
    graph = build(rows, weights_for(rows, 3, kind), weight_type=weight_type)
    expected = plan_sssp(graph)
    plan = plan_sssp(graph.to("cuda"), strategy=strategy)
    for source in sources_of(graph, 1):
        assert_same(plan.run(source), expected.run(source))


def test_plan_gives_the_same_result_again():
    rows = rmat(11, 8, seed=5)
    graph = build(rows, weights_for(rows, 5)).to("cuda")
    for plan in (plan_bfs(graph), plan_sssp(graph)):
        first = plan.run(1).copy()
        plan.run(2)
        for _ in range(3):
            assert_same(plan.run(1), first)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_subnormal_weights_are_not_taken_for_zero(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    rng = np.random.default_rng(2)
    rows = rmat(8, 6, seed=2)
    weights = (rng.integers(0, 9, len(rows)).astype(dtype) * tiny).astype(dtype)
    graph = build(rows, weights, weight_type=np.dtype(dtype).name)
    assert_same(plan_sssp(graph.to("cuda")).run(0), plan_sssp(graph).run(0))
    distance = to_host(plan_sssp(graph.to("cuda")).run(0).distance)
    assert ((distance > 0) & (distance < np.finfo(dtype).tiny)).any()


def test_zero_weights_take_their_predecessors_in_layers():
    rows = rmat(9, 6, seed=8)
    graph = build(rows, [w % 3 // 2 for w in weights_for(rows, 8)])
    for source in sources_of(graph):
        assert_same(plan_sssp(graph.to("cuda")).run(source), plan_sssp(graph).run(source))


def with_negative_weights():
    """A graph whose negative weights close no negative cycle: potentials are added to non-negative weights."""
    rows = rmat(9, 6, seed=4)
    ends = np.array(rows)
    potential = np.random.default_rng(4).integers(0, 100, ends.max() + 1)
    weights = np.array(weights_for(rows, 4)) + potential[ends[:, 0]] - potential[ends[:, 1]]
    loops = ends[:, 0] == ends[:, 1]
    return build(ends[~loops].tolist(), weights[~loops].tolist())


def test_negative_weights_equal_the_cpu():
    graph = with_negative_weights()
    assert graph.has_negative_weights
    device_graph = graph.to("cuda")
    for source in sources_of(graph):
        result = plan_sssp(device_graph).run(source)
        assert_same(result, plan_sssp(graph).run(source))
        assert certify(device_graph, result).valid


def test_a_negative_cycle_is_named():
    n = 100
    rows = [(v, (v + 1) % n) for v in range(n)] + [(n + 1, 0)]
    graph = build(rows, [1] * (n - 1) + [-n, 5]).to("cuda")
    with pytest.raises(NegativeCycleError) as caught:
        plan_sssp(graph)(n + 1)
    assert sorted(caught.value.cycle) == list(range(n))
    assert caught.value.weight == -1


def test_a_negative_cycle_out_of_reach_is_no_error():
    graph = build([(0, 1), (2, 3), (3, 2)], [1, -1, -1]).to("cuda")
    assert to_host(plan_sssp(graph)(0).distance).tolist() == [0, 1, np.inf, np.inf]


def test_a_distance_beyond_the_type_is_an_error():
    rows = [(0, 1), (1, 2)]
    graph = build(rows, np.array([3e38, 3e38], np.float32)).to("cuda")
    with pytest.raises(PrecisionError, match="float64"):
        plan_sssp(graph).run(0)


@pytest.mark.parametrize("limit", [0, 1, 3, 1000])
def test_limits_are_inclusive_as_on_the_cpu(limit):
    rows = NAMED["power law"]
    graph = build(rows, weights_for(rows, 1))
    device_graph = graph.to("cuda")
    assert_same(plan_bfs(device_graph, max_depth=limit).run(3), plan_bfs(graph, max_depth=limit).run(3))
    for predecessors in (True, False):
        ours = plan_sssp(device_graph, cutoff=limit, predecessors=predecessors).run(3)
        theirs = plan_sssp(graph, cutoff=limit, strategy="frontier", predecessors=predecessors).run(3)
        np.testing.assert_array_equal(bits(ours.distance), bits(theirs.distance))
        assert (ours.predecessor is None) == (not predecessors)


def test_a_search_stops_once_all_targets_are_reached():
    graph = build(NAMED["path"]).to("cuda")
    result = plan_bfs(graph, targets=[0, 3]).run(0)
    assert result.rounds == 3
    assert result.limit == 3
    assert plan_bfs(graph, targets=[0]).run(0).rounds == 0
    plan = plan_bfs(graph, targets=[3, 1])
    rows = table_of(graph, plan.run(0), plan.query).select(["vertex", "distance", "predecessor"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [(1, 1, 0), (3, 3, 2)]


@pytest.mark.parametrize(
    ("loop", "run_of", "step"),
    [(levels, bfs_gpu.PushRun, bfs_gpu.push("warp")), (rounds, sssp_gpu.Run, sssp_gpu.relax("warp"))],
    ids=["bfs", "sssp"],
)
def test_queue_overflow_is_an_error_and_not_a_short_result(loop, run_of, step):
    graph = build(star(100), weights_for(star(100), 0)).to("cuda")
    run = run_of(graph, Query())
    traverse = loop(lambda _graph, _query: run, step)(graph, Query())
    run.frontier.capacity = 99
    run.frontier.next.fill(-7)
    with pytest.raises(FrontierOverflowError, match="100 vertices"):
        traverse(0)
    assert (to_host(run.frontier.next)[99:] == -7).all(), "written past the capacity"
    run = run_of(graph, Query())  # a run tells its kernels the capacity once: 101, with the source
    assert run.frontier.capacity == 101
    distance, *_ = loop(lambda _graph, _query: run, step)(graph, Query())(0)
    assert (to_host(distance) >= 0).all()


def random_edges(seed, n=500, rows=20_000, dtype=np.int32):
    rng = np.random.default_rng(seed)
    return rng.integers(0, n, rows).astype(dtype), (rng.zipf(1.3, rows) % n).astype(dtype)


def assert_same_csr(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        if other is None or isinstance(other, int):
            assert mine == other
        else:
            assert to_host(mine).dtype == other.dtype
            np.testing.assert_array_equal(to_host(mine), other)


@pytest.mark.parametrize("piece", [1 << 22, 700], ids=["one piece", "many pieces"])
@pytest.mark.parametrize("weight_type", [None, np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("both_ways", [False, True])
def test_assemble_equals_the_cpu(both_ways, dtype, weight_type, piece, monkeypatch):
    monkeypatch.setattr(gpu_csr, "MIN_PIECE", piece)
    monkeypatch.setattr(gpu_csr, "SHIFTED_AT_ONCE", piece // 10)
    src, dst = random_edges(1, dtype=dtype)
    # Multiples of a subnormal number and negative ones: the cheapest must be found among them, too.
    weight = None
    if weight_type is not None:
        weight = np.random.default_rng(1).integers(-50, 50, src.size).astype(weight_type)
        weight[::2] *= np.finfo(weight_type).smallest_subnormal
        weight += weight_type(0)  # no -0.0
    given = [None if a is None else cp.asarray(a) for a in (src, dst, weight)]
    assert_same_csr(gpu_csr.assemble(*given, 510, both_ways), cpu_csr.assemble(src, dst, weight, 510, both_ways))


def test_adjacency_lists_move_up_after_parallel_edges_in_an_earlier_block(monkeypatch):
    monkeypatch.setattr(gpu_csr, "MIN_PIECE", 4)
    src = np.array([0, 0, 0, *range(1, 30), 35], np.int32)
    dst = np.array([1, 1, 1, *range(2, 31), 0], np.int32)
    weight = np.arange(src.size, 0, -1, dtype=np.float32)
    ours = gpu_csr.assemble(cp.asarray(src), cp.asarray(dst), cp.asarray(weight), 40)
    assert_same_csr(ours, cpu_csr.assemble(src, dst, weight, 40))


@pytest.mark.parametrize("n_vertices", [0, 1, 5])
@pytest.mark.parametrize("weight_type", [None, np.float32])
def test_csr_without_edges_is_valid(n_vertices, weight_type):
    nothing = np.zeros(0, np.int32)
    weight = None if weight_type is None else np.zeros(0, weight_type)
    given = [None if a is None else cp.asarray(a) for a in (nothing, nothing, weight)]
    ours = gpu_csr.assemble(*given, n_vertices)
    assert_same_csr(ours, cpu_csr.assemble(nothing, nothing, weight, n_vertices))
    assert_same_csr(gpu_csr.transpose(*ours[:3]), [to_host(ours[0]), nothing, weight])


@pytest.mark.parametrize("piece", [1 << 22, 700], ids=["one piece", "many pieces"])
@pytest.mark.parametrize("weighted", [False, True])
def test_transpose_equals_the_cpu(weighted, piece, monkeypatch):
    monkeypatch.setattr(gpu_csr, "MIN_PIECE", piece)
    monkeypatch.setattr(gpu_csr, "SHIFTED_AT_ONCE", piece // 10)
    src, dst = random_edges(2)
    weight = np.arange(src.size, dtype=np.float32) if weighted else None
    offsets, targets, weights, *_ = cpu_csr.assemble(src, dst, weight, 500)
    given = [None if a is None else cp.asarray(a) for a in (offsets, targets, weights)]
    assert_same_csr(gpu_csr.transpose(*given), cpu_csr.transpose(offsets, targets, weights))


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (0, 50, np.int64),
        (1, 51, np.int32),
        (-20_000, 20_000, np.int16),
        (0, 10**9, np.int32),
        (-(10**18), 10**18, np.int64),
        (2**63, 2**64 - 1, np.uint64),
    ],
)
def test_renumber_equals_the_cpu(low, high, dtype):
    rng = np.random.default_rng(3)
    columns = [rng.integers(low, high, size, dtype, endpoint=True) for size in (5000, 4000, 0)]
    ids, numbers = gpu_csr.renumber([cp.asarray(c) for c in columns], np.dtype(np.int32))
    everything, ranks = np.unique(np.concatenate(columns), return_inverse=True)
    assert ids.dtype == dtype
    np.testing.assert_array_equal(to_host(ids), everything)
    np.testing.assert_array_equal(np.concatenate([to_host(n) for n in numbers]), ranks)
    assert {n.dtype for n in numbers} == {np.dtype(np.int32)}


@pytest.mark.parametrize("directed", [True, False])
def test_a_graph_built_on_the_gpu_is_the_cpus(directed):
    ends = np.array(rmat(10, 8, seed=6)) * 7 - 100
    weights = np.random.default_rng(6).integers(0, 99, len(ends))
    graph = graph_from_edges(ends[:, 0].copy(), ends[:, 1].copy(), weights, directed=directed)
    on_device = graph_from_edges(*(cp.asarray(a.copy()) for a in (*ends.T, weights)), directed=directed)
    assert on_device.device == "cuda"
    assert on_device.fingerprint == graph.fingerprint
    assert on_device.report == graph.report
    assert on_device.reverse.fingerprint == graph.reverse.fingerprint


def test_a_graph_moves_to_the_gpu_and_back():
    rows = NAMED["power law"]
    graph = build(rows, weights_for(rows, 1))
    there = graph.to("cuda")
    assert there.device == "cuda"
    assert there.to("cuda") is there
    assert there.to("cpu").fingerprint == there.fingerprint == graph.fingerprint


@pytest.mark.parametrize("fault", ["none", "too far", "too near", "wrong predecessor"])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_the_certificate_counts_what_the_cpu_counts(algorithm, fault):
    rows = rmat(9, 8, seed=9)
    graph = build(rows, weights_for(rows, 9))
    plan = plan_bfs if algorithm == "bfs" else plan_sssp
    result = plan(graph).run(1).copy()
    hit = np.flatnonzero(result.reached & (np.arange(graph.n_vertices) != 1))[::17]
    if fault == "wrong predecessor":
        result.predecessor[hit] = 1
    elif fault != "none":
        result.distance[hit] += 1 if fault == "too far" else -1
    limit = result.distance.dtype.type(np.inf if algorithm == "sssp" else np.iinfo(np.int32).max)
    expected = single_cpu.check(graph, result, limit)
    there = replace(result, distance=cp.asarray(result.distance), predecessor=cp.asarray(result.predecessor))
    counts = single_gpu.check(graph.to("cuda"), there, limit)
    assert counts[:8] == expected[:8]
    assert (counts[4] + counts[6] == 0) == (fault == "none")


@pytest.mark.parametrize(("limit", "violated"), [(1, [0, 3]), (2, [1, 2])])
@pytest.mark.parametrize("plan_of", [plan_bfs, plan_sssp])
def test_a_lost_vertex_at_the_limit_itself_is_noticed(plan_of, limit, violated):
    graph = build([(0, 1), (1, 2)], [1, 1]).to("cuda")
    result = plan_of(graph)(0).copy()
    result.distance[2], result.predecessor[2] = -1 if plan_of is plan_bfs else np.inf, -1
    assert single_gpu.check(graph, result, result.distance.dtype.type(limit)) == [1, 0, 3, 2, *violated, 0, 3, 0]


def test_results_on_the_gpu_are_certified():
    rows = NAMED["power law"]
    graph = build(rows, weights_for(rows, 1, "floats")).to("cuda")
    for plan in (plan_bfs(graph), plan_bfs(graph, max_depth=2), plan_sssp(graph), plan_sssp(graph, cutoff=2.5)):
        assert certify(graph, plan.run(0)).valid


def test_frames_and_paths_are_cudfs():
    cudf = pytest.importorskip("cudf", exc_type=ImportError)
    rows = NAMED["power law"]
    graph = build(rows, weights_for(rows, 1))
    for traverse in (bfs, sssp):
        expected = traverse(graph, 5)
        frame = traverse(graph.to("cuda"), 5)
        assert isinstance(frame, cudf.DataFrame)
        assert frame.to_pandas().equals(expected)
        targets = expected["vertex"].tolist()[::50]
        assert paths(frame, targets).to_pandas().equals(paths(expected, targets))
        assert certify(graph.to("cuda"), frame).valid
    for unreached in ("null", "cugraph"):
        frame = bfs(graph.to("cuda"), 5, unreached=unreached)
        assert len(frame) == graph.n_vertices


@pytest.mark.parametrize("format", ["parquet", "csv"])
def test_a_file_read_on_the_gpu_gives_the_cpus_graph(format, tmp_path):
    pytest.importorskip("cudf", exc_type=ImportError)
    import pandas

    ends = np.array(rmat(9, 8, seed=3)) + 5
    frame = pandas.DataFrame({"src": ends[:, 0], "dst": ends[:, 1], "weight": weights_for(ends, 3)})
    file = tmp_path / f"edges.{format}"
    frame.to_parquet(file) if format == "parquet" else frame.to_csv(file, index=False)
    assert read_graph(file, device="cuda").fingerprint == read_graph(file, device="cpu").fingerprint


@pytest.mark.gpu
@pytest.mark.parametrize("many", [bfs_many, sssp_many])
def test_frames_with_cutoffs_and_of_k_nearest_are_those_of_a_cpu(many):
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 400, (2, 2000))
    graph = graph_from_edges(src, dst, rng.integers(1, 9, 2000), vertices=np.arange(400))
    there, sources = graph.to("cuda"), [5, 399, 5, 17]
    values = pd.DataFrame({"vertex": np.arange(399, -1, -1), "jobs": rng.integers(0, 99, 400), "area": rng.random(400)})
    calls = [
        {"result": "opportunities", "values": values, "cutoffs": [1, 3, 20]},
        {"result": "opportunities", "values": values, "cutoffs": [3, 20], "decay": "exponential:0.3"},
        {"result": "within", "cutoffs": [0, 2, 9]},
        {"result": "isochrones", "cutoffs": [2, 9]},
        {"result": "nearest", "k": 2},
        {"result": "nearest", "k": 2, "groups": [1, 2, 1, 1]},
        {"result": "distances", "max_depth" if many is bfs_many else "cutoff": [1, 2, 1, 3]},
    ]
    for call in calls:
        found = many(there, sources, **call).to_pandas()
        pd.testing.assert_frame_equal(found, many(graph, sources, **call), check_exact=True)
