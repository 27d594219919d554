"""The CUDA strategies against the CPU's, which the contract tests prove: equal bits, on any grid, in every run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import (
    Graph,
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
from kepler_traverse.certificate import certify, single_cpu, single_gpu
from kepler_traverse.cuda import launch
from kepler_traverse.search.results import checksum
from tests.support import tiers
from tests.support.graphs import NAMED, build, rmat, weights_for
from tests.support.plans import BFS, SSSP

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
    ("name", "weight_type", "kind"),
    tiers.pairs(list(NAMED), ["float32", "float64"], ["integers", "floats"]),
)
def test_sssp_equals_the_cpu(name, weight_type, kind, strategy):
    rows = NAMED[name]
    graph = build(rows, weights_for(rows, 3, kind), weight_type=weight_type)
    expected = plan_sssp(graph)
    plan = plan_sssp(graph.to("cuda"), strategy=strategy)
    for source in sources_of(graph, 1):
        assert_same(plan.run(source), expected.run(source))


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
    there = replace(
        result, distance=cp.asarray(result.distance), predecessor=cp.asarray(result.predecessor)
    )
    counts = single_gpu.check(graph.to("cuda"), there, limit)
    assert counts[:8] == expected[:8]
    assert (counts[4] + counts[6] == 0) == (fault == "none")


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


@pytest.mark.gpu
@pytest.mark.parametrize("many", [bfs_many, sssp_many])
def test_frames_with_cutoffs_and_of_k_nearest_are_those_of_a_cpu(many):
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, 400, (2, 2000))
    graph = graph_from_edges(src, dst, rng.integers(1, 9, 2000), vertices=np.arange(400))
    there, sources = graph.to("cuda"), [5, 399, 5, 17]
    values = pd.DataFrame(
        {
            "vertex": np.arange(399, -1, -1),
            "jobs": rng.integers(0, 99, 400),
            "area": rng.random(400),
        }
    )
    calls = [
        {"result": "opportunities", "values": values, "cutoffs": [1, 3, 20]},
        {
            "result": "opportunities",
            "values": values,
            "cutoffs": [3, 20],
            "decay": "exponential:0.3",
        },
        {"result": "within", "cutoffs": [0, 2, 9]},
        {"result": "isochrones", "cutoffs": [2, 9]},
        {"result": "nearest", "k": 2},
        {"result": "nearest", "k": 2, "groups": [1, 2, 1, 1]},
        {"result": "distances", "max_depth" if many is bfs_many else "cutoff": [1, 2, 1, 3]},
    ]
    for call in calls:
        found = many(there, sources, **call).to_pandas()
        pd.testing.assert_frame_equal(found, many(graph, sources, **call), check_exact=True)
