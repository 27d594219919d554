"""The measurements of the papers: works, generated graphs, and a run on a small scale that is cut off and goes on."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from kepler_traverse import graph_from_edges, plan_bfs, plan_sssp
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.sssp import REGISTRY as SSSP
from scripts import make_graphs
from scripts.measure import harness as measuring
from scripts.measure.harness import KEY, DifferentResultsError, is_left, measure
from scripts.measure.log import Log
from scripts.measure.work import Inputs
from scripts.papers import experiments, generators, graphs, levels, record, relaxations, suite
from scripts.papers.experiments import BY_NAME, PAPERS, GraphSource, Setting, Work, works_of
from tests.conftest import HAS_GPU
from tests.kernels.simt import device, harness
from tests.support.graphs import build, path, rmat, weights_for

ALL = works_of(PAPERS)
on_the_host = pytest.mark.skipif(
    HAS_GPU or harness.COMPILER is None, reason="runs GPU strategies on the host harness"
)

SMALL = {
    "brick": (5,),
    "circuit": (30,),
    "co_papers": (60, 200, 12),
    "co_purchase": (300, 6),
    "forest_fire": (300, 0.35, 0.32),
    "gtgraph_rmat": (8, 900),
    "honeycomb": (8, 9),
    "plate": (6,),
    "power_law": (400, 2000, 90, 40),
    "road": (8, 9, 0.2, 1.5),
    "small_world": (200, 4, 0.3),
    "talk": (640, 900, 150),
}


# --- works -------------------------------------------------------------------------------------------------------------


def test_works_name_graphs_strategies_and_knobs_that_exist():
    rows = {
        (name, row.device, row.name): row
        for name, all_of in (("bfs", BFS), ("sssp", SSSP))
        for row in all_of.with_plugins()[0]
    }
    for work in ALL:
        assert work.graph in BY_NAME
        for setting in work.settings:
            row = rows[work.algorithm, setting.device, setting.strategy]
            if row.knobs is not None and setting.knobs is not None:
                assert isinstance(row.knobs_from(setting.knobs), row.knobs)
            assert row.knobs is not None or not setting.knobs


def test_each_setting_is_in_a_work_of_a_rank_once():
    for work in ALL:
        keys = [setting.key for setting in work.settings]
        assert len(set(keys)) == len(keys)
    assert len(
        {(work.rank, work.graph, work.algorithm, work.part, work.group) for work in ALL}
    ) == len(ALL)


def test_every_comparison_has_the_published_knobs_and_those_of_a_rule():
    for name, works in (
        ("bfs_4k", works_of(["bfs-4k"])),
        ("h_bf", works_of(["h-bf"])),
        ("queue_of_warps", works_of(["uiuc-bfs"])),
    ):
        compared = [
            work
            for work in works
            if work.rank == 1 and work.part == "time" and len(work.settings) > 1
        ]
        both = [
            {setting.label for setting in work.settings if setting.strategy == name}
            for work in compared
        ]
        assert all(
            {"published", "rule"} <= labels
            for labels in both
            if "none" not in labels or "rule" in labels
        )


def test_what_the_claims_need_comes_first():
    ranks = [work.rank for work in ALL]
    assert ranks == sorted(ranks)


def test_files_are_those_of_the_graphs_and_each_is_described():
    assert {graph.file for graph in experiments.GRAPHS if graph.file} == set(experiments.FILES)


# --- generated graphs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", generators.__all__)
def test_a_generator_gives_the_same_edges_for_a_seed_with_all_ends_in_the_graph(name):
    def edges(seed):
        found = getattr(generators, name)(
            *SMALL[name], seed, xp=np, rng=make_graphs.Draws(np, seed)
        )
        return np.stack(found)

    first = edges(1)
    assert first.min() >= 0
    assert np.array_equal(first, edges(1))
    assert name in ("brick", "honeycomb", "plate") or not np.array_equal(first, edges(2))


def made(name):
    return graph_from_edges(
        *getattr(generators, name)(*SMALL[name], 1, xp=np, rng=make_graphs.Draws(np, 1)),
        directed=False,
    )


def test_generated_graphs_are_of_their_class():
    assert made("honeycomb").derived.max_degree == 3
    assert made("brick").derived.max_degree == 26
    assert made("plate").derived.max_degree == 53
    road = made("road")
    assert road.derived.max_degree <= 4
    assert np.median(road.derived.degrees) == 2
    assert made("power_law").derived.max_degree > 5 * made("power_law").derived.degrees.mean()
    pairs = made("co_papers")
    assert pairs.derived.degrees.std() > 0.5 * pairs.derived.degrees.mean()


def test_the_road_network_has_ten_million_vertices_or_more():
    rows, columns, dropped, bends = BY_NAME["road-12M"].arguments
    assert 2 * (1 - dropped) * rows * columns * bends > 9e6  # bends alone


def test_self_loops_are_put_where_they_belong():
    graph = build(rmat(6, 4, seed=1), weights_for(rmat(6, 4, seed=1), 1), directed=False)
    with_loops = graphs.with_self_loops(graph, np)
    assert with_loops.n_edges == graph.n_edges + graph.n_vertices
    for v in range(graph.n_vertices):
        targets = with_loops.targets[with_loops.offsets[v] : with_loops.offsets[v + 1]]
        assert targets.tolist() == sorted(
            [*graph.targets[graph.offsets[v] : graph.offsets[v + 1]].tolist(), v]
        )
    assert np.array_equal(plan_sssp(with_loops)(0).distance, plan_sssp(graph)(0).distance)


def test_statistics_count_loops_and_classes_of_degrees():
    source = GraphSource("plate", generator="plate", arguments=(6,), keeps_loops=True)
    found = graphs.statistics_of(graphs.make(source, None, "cpu", 1), np)
    assert found["self_loops"] == found["vertices"] == 216
    assert sum(found["degrees"]) == 216
    assert found["diameter"] == 5


def test_relaxations_are_those_of_a_queue_and_of_passes():
    rows = path(6)
    graph = build(rows, [1] * len(rows))
    arrays = (graph.offsets, graph.targets, graph.weights.astype(np.float32))
    assert relaxations.count_with_queue(*arrays, 0, 10**6) == 6
    # along the path, and a pass without change
    assert relaxations.count_without_queue(*arrays, 0, 10**6) == 2 * 6
    assert relaxations.count_with_queue(*arrays, 0, 3) == -1


# --- a run -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch):
    """Graphs of the papers on a small scale."""
    listed = {
        "road": GraphSource("road", generator="road", arguments=SMALL["road"]),
        "plate": GraphSource("plate", generator="plate", arguments=(4,), keeps_loops=True),
        "negative": GraphSource(
            "negative", generator="honeycomb", arguments=(6, 6), max_potential=100
        ),
    }
    monkeypatch.setattr(suite, "BY_NAME", listed)
    monkeypatch.setattr(measuring, "LATEST", measuring.LatestCase())


def measured(path, works, monkeypatch, device="cpu"):
    """Measure works of the papers; return the lines of the log."""
    inputs = Inputs(device=device)
    monkeypatch.setattr(experiments, "works_of", lambda _papers: works)
    with Log(path, KEY) as log:
        log.write("run", date="", commit="", command="", machine={"gpu": "a"}, versions={})
        for work in suite.works(inputs):
            if is_left("papers", work, inputs, log):
                measure("papers", work, inputs, log)
    return [json.loads(line) for line in path.read_text().splitlines()]


HYBRID = Setting("switch", "library", "cpu", how="library")
CPU_WORKS = [
    Work(1, "road", "bfs", (experiments.SEQUENTIAL_BFS, HYBRID, *experiments.published("bfs_4k"))),
    Work(1, "negative", "sssp", experiments.SEQUENTIAL_SSSP),
]


@pytest.mark.usefixtures("small")
def test_a_run_without_a_gpu_times_the_systems_of_the_cpu_and_goes_on(tmp_path, monkeypatch):
    lines = measured(tmp_path / "log", CPU_WORKS[:1], monkeypatch)
    times = [line for line in lines if line.get("strategy")]
    assert {line["strategy"] for line in times} == {"fifo", "switch"}
    assert all(line["repeats"] == 5 and line["spread"] >= 0 for line in times)
    assert all(line["rounds"] >= 1 and line["sources"] <= 4 for line in times)
    more = measured(tmp_path / "log", CPU_WORKS, monkeypatch)[len(lines) :]
    assert {line["graph"] for line in more[1:]} == {"negative"}
    left = {line["strategy"]: line["why"] for line in more if line["kind"] == "left"}
    assert set(left) == {"heap"}, "Dijkstra's algorithm takes no negative weights"
    found = record.added(record.Record(), [lines[0] | {"machine": MACHINE}, *lines[1:], *more[1:]])
    assert found.time("road", "fifo", device="cpu", threads=1).sources <= 4
    assert set(found.graphs) == {"road", "negative"}
    assert list(found.left.values()) == list(left.values())


MACHINE = {"cpu": "CPU", "cores": 2, "memory_gib": 8, "gpu": None, "driver": None}


@pytest.mark.usefixtures("small")
def test_relaxations_of_textbooks_are_counted_without_a_gpu(tmp_path, monkeypatch):
    settings = experiments.counted(*experiments.published("h_bf"))
    lines = measured(
        tmp_path / "log", [Work(1, "plate", "sssp", settings, "counters")], monkeypatch
    )
    counted = [line for line in lines if "counters" in line]
    assert [line["label"] for line in counted] == ["with a queue", "without a queue"]
    assert counted[0]["counters"]["relaxations"] < counted[1]["counters"]["relaxations"]


@pytest.mark.usefixtures("small")
def test_a_setting_with_other_distances_ends_the_run(tmp_path, monkeypatch):
    plan = suite.Case.plan

    def wrong(case, algorithm, setting, limit=None):
        found = plan(case, algorithm, setting, limit)
        if setting.strategy == "switch":
            run = found.run
            monkeypatch.setattr(
                found, "run", lambda source: replace(run(source), distance=run(source).distance + 1)
            )
        return found

    monkeypatch.setattr(suite.Case, "plan", wrong)
    monkeypatch.setattr("kepler_traverse.certify", lambda *_: Proven())
    with pytest.raises(DifferentResultsError, match="distances from source"):
        measured(tmp_path / "log", CPU_WORKS[:1], monkeypatch)


class Proven:
    def require(self):
        """Certify anything."""


@on_the_host
@pytest.mark.usefixtures("small")
def test_counters_by_the_rule_are_those_of_its_knobs():
    with device.present(), harness.settings(block=64):
        case = suite.Case(Inputs(device="cuda"), "plate")
        (setting,) = experiments.counted(*experiments.by_rule("h_bf"))
        knobs = case.plan("sssp", setting).query.knobs
    assert knobs.counters
    assert knobs.vertices_per_warp == 1  # as published: 32


@on_the_host
@pytest.mark.usefixtures("small")
def test_a_run_on_a_gpu_times_counts_and_records_levels(tmp_path, monkeypatch):
    of_duplicates = experiments.counted(
        Setting("bfs_4k", "width 4, keep", knobs={"k4": 0, "k5": 0, "duplicates": "keep"})
    )
    both = (*experiments.published("scan_level", "bfs_4k"), experiments.SEQUENTIAL_BFS)
    of_h_bf = experiments.counted(*experiments.published("h_bf"))
    works = [
        Work(1, "road", "bfs", both),
        Work(1, "road", "bfs", of_duplicates, "counters"),
        Work(2, "road", "bfs", of_duplicates, "levels"),
        Work(1, "plate", "sssp", of_h_bf, "counters"),
    ]
    with device.present(), harness.settings(block=64, resident=3):
        found = measured(tmp_path / "log", works, monkeypatch, device="cuda")
    timed = {line["strategy"] for line in found if line.get("spread") is not None}
    assert timed == {"scan_level", "bfs_4k", "fifo"}
    (with_loops,) = (line for line in found if line.get("strategy") == "h_bf")
    assert with_loops["counters"]["skipped_edges"] > 0
    # a GPU does not wait for it
    assert not [line for line in found if line.get("strategy") == "bellman_ford"]
    (of_levels,) = (line for line in found if "steps" in line)
    steps = [
        dict(zip(("alone", *levels.COLUMNS), step, strict=True)) for step in of_levels["steps"]
    ]
    assert steps[0]["frontier"] == 1
    assert sum(step["queued"] for step in steps) >= sum(n for _, n in of_levels["vertices"]) - 1


def test_levels_that_are_thinned_keep_the_first_and_the_last():
    assert levels.thinned(range(10)) == list(range(10))
    many = levels.thinned(range(1000))
    assert len(many) == levels.MOST
    assert (many[0], many[-1]) == (0, 999)


def test_bfs_of_a_generated_graph_is_what_the_library_says():
    graph = made("small_world")
    assert plan_bfs(graph)(0).distance.max() < 10
