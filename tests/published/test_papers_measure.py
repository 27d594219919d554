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
from scripts.papers import __main__ as command
from scripts.papers import cost, experiments, generators, graphs, levels, measure, relaxations
from scripts.papers.experiments import BY_NAME, PAPERS, GraphSource, Setting, Work, works_of
from scripts.papers.jsonl import Lines
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


def test_what_the_claims_need_comes_first_and_quick_graphs_before_slow_ones():
    works = cost.in_order(ALL, "cuda")
    ranks = [work.rank for work in works]
    assert ranks == sorted(ranks)
    first = [work.graph for work in works if work.rank == 1]
    assert first.index("USA-road-NY") < first.index("road-12M")


def test_the_list_says_which_files_are_needed_and_which_are_absent(tmp_path, capsys):
    (tmp_path / "web-NotreDame.parquet").touch()
    assert command.main(["sevilmis", "--graphs", str(tmp_path), "--list", "--device", "cpu"]) == 0
    said = capsys.readouterr().out
    assert "files: web-NotreDame.parquet" in said
    assert "absent: none" in said
    assert "file web-NotreDame.parquet (there): src, dst; a row is a directed edge" in said
    assert "rank 1" in said


def test_files_are_those_of_the_works_that_are_chosen_and_each_is_described(capsys):
    assert {graph.file for graph in experiments.GRAPHS if graph.file} == set(experiments.FILES)
    given = ["h-bf", "--only", "plate-415k", "--part", "counters", "--list", "--device", "cpu"]
    assert command.main(given) == 0
    assert "files: none" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["sevilmis", "--only", "mesh-1000"], "nothing to measure"),
        (["sevilmis", "--graphs", "no-such-folder"], "no-such-folder is no folder"),
    ],
)
def test_a_run_that_would_measure_nothing_is_refused(given, said, tmp_path, capsys):
    output = tmp_path / "lines.jsonl"
    assert command.main([*given, "--device", "cpu", "--output", str(output)]) == 2
    assert said in capsys.readouterr().err
    assert not output.exists()


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
    monkeypatch.setattr(measure, "BY_NAME", listed)
    return listed


def options(**changes):
    return measure.Options(
        **(
            {"graphs": None, "seconds": 1e9, "device": "cpu", "repeats": 3, "stuck_seconds": 600.0}
            | changes
        )
    )


def lines_in(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


HYBRID = Setting("switch", "library", "cpu", how="library")
CPU_WORKS = [
    Work(1, "road", "bfs", (experiments.SEQUENTIAL_BFS, HYBRID, *experiments.published("bfs_4k"))),
    Work(1, "negative", "sssp", experiments.SEQUENTIAL_SSSP),
]


@pytest.mark.usefixtures("small")
def test_a_run_without_a_gpu_times_the_systems_of_the_cpu_with_their_spread(tmp_path):
    with Lines(tmp_path / "lines.jsonl") as lines:
        measure.run_works(CPU_WORKS, options(), lines)
        assert lines.errors == 0
    times = [line for line in lines_in(tmp_path / "lines.jsonl") if line["kind"] == "time"]
    assert {(line["graph"], line["strategy"]) for line in times} == {
        ("road", "fifo"),
        ("road", "switch"),
        ("negative", "fifo"),
    }
    assert all(
        line["repeats"] >= 3 and line["spread"] >= 0 and line["least"] <= line["median"]
        for line in times
    )


@pytest.mark.usefixtures("small")
def test_relaxations_of_textbooks_are_counted_without_a_gpu_and_once(tmp_path):
    works = [
        Work(1, "plate", "sssp", experiments.counted(*experiments.published("h_bf")), "counters")
    ]
    for _ in range(2):
        with Lines(tmp_path / "lines.jsonl") as lines:
            measure.run_works(works, options(), lines)
    counted = [line for line in lines_in(tmp_path / "lines.jsonl") if line["kind"] == "counters"]
    assert [line["label"] for line in counted] == ["with a queue", "without a queue"]
    assert counted[0]["counters"]["relaxations"] < counted[1]["counters"]["relaxations"]


def test_a_gpu_may_leave_the_systems_of_the_cpu_to_another_machine(tmp_path):
    with Lines(tmp_path / "lines.jsonl") as lines:
        left = [
            measure.left_of(CPU_WORKS[0], lines, *given)
            for given in (("cuda",), ("cuda", True), ("cpu",))
        ]
    assert [len(settings) for settings in left] == [3, 1, 2]


@pytest.mark.usefixtures("small")
def test_a_run_that_is_cut_off_goes_on_where_it_was(tmp_path):
    file = tmp_path / "lines.jsonl"
    with Lines(file) as lines, pytest.raises(measure.OutOfTimeError):
        measure.run_works(CPU_WORKS, options(seconds=-1.0), lines)
    with Lines(file) as lines:
        bench = measure.Bench(measure.BY_NAME["road"], options(seconds=-1.0), lines)
        with pytest.raises(measure.OutOfTimeError):
            measure.measure(bench, CPU_WORKS[0], list(CPU_WORKS[0].settings))
    assert not file.read_text()
    with Lines(file) as lines:
        measure.run_works(CPU_WORKS[:1], options(), lines)
    file.write_text(file.read_text() + '{"kind": "time", "graph": "ro')  # as a crash leaves it
    before = len(file.read_text().splitlines()) - 1
    with Lines(file) as lines:
        measure.run_works(CPU_WORKS, options(), lines)
    after = lines_in(file)
    assert [line["kind"] for line in after[before:]] == ["graph", "time"]
    assert len(
        {json.dumps([line.get(name) for name in ("graph", "strategy", "label")]) for line in after}
    ) == len(after)


@pytest.mark.usefixtures("small")
def test_a_setting_with_other_distances_is_an_error_and_has_no_time(tmp_path, monkeypatch):
    plan = measure.Bench.plan

    def wrong(bench, algorithm, setting, limit=None, of_peer=False):
        found = plan(bench, algorithm, setting, limit, of_peer)
        if setting.strategy == "switch":
            run = found.run
            monkeypatch.setattr(
                found, "run", lambda source: replace(run(source), distance=run(source).distance + 1)
            )
        return found

    monkeypatch.setattr(measure.Bench, "plan", wrong)
    monkeypatch.setattr(measure.Bench, "certify", lambda *_: None)
    with Lines(tmp_path / "lines.jsonl") as lines:
        measure.run_works(CPU_WORKS[:1], options(), lines)
        assert lines.errors == 1
    (error,) = (line for line in lines_in(tmp_path / "lines.jsonl") if line["kind"] == "error")
    assert error["strategy"] == "switch"
    assert "distances from source" in error["message"]


@on_the_host
@pytest.mark.usefixtures("small")
def test_counters_by_the_rule_are_those_of_its_knobs():
    with device.present(), harness.settings(block=64):
        bench = measure.Bench(measure.BY_NAME["plate"], options(device="cuda"), None)
        (setting,) = experiments.counted(*experiments.by_rule("h_bf"))
        knobs = bench.plan("sssp", setting).query.knobs
    assert knobs.counters
    assert knobs.vertices_per_warp == 1  # as published: 32


@on_the_host
@pytest.mark.usefixtures("small")
def test_a_run_on_a_gpu_times_counts_and_records_levels(tmp_path):
    of_duplicates = experiments.counted(
        Setting("bfs_4k", "width 4, keep", knobs={"k4": 0, "k5": 0, "duplicates": "keep"})
    )
    works = [
        Work(
            1,
            "road",
            "bfs",
            (*experiments.published("scan_level", "bfs_4k"), experiments.SEQUENTIAL_BFS),
        ),
        Work(1, "road", "bfs", of_duplicates, "counters"),
        Work(2, "road", "bfs", of_duplicates, "levels"),
        Work(1, "plate", "sssp", experiments.counted(*experiments.published("h_bf")), "counters"),
    ]
    with (
        device.present(),
        harness.settings(block=64, resident=3),
        Lines(tmp_path / "lines.jsonl") as lines,
    ):
        measure.run_works(works, options(device="cuda"), lines)
        assert lines.errors == 0
    found = lines_in(tmp_path / "lines.jsonl")
    assert {line["strategy"] for line in found if line["kind"] == "time"} == {
        "scan_level",
        "bfs_4k",
        "fifo",
    }
    (with_loops,) = (
        line for line in found if line["kind"] == "counters" and line["strategy"] == "h_bf"
    )
    assert with_loops["counters"]["skipped_edges"] > 0
    # a GPU does not wait for it
    assert not [line for line in found if line.get("strategy") == "bellman_ford"]
    (of_levels,) = (line for line in found if line["kind"] == "levels")
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
