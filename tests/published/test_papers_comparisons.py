"""Comparison of the papers' systems: the measurements of every strategy of a registry, and their tables."""

import json
import re
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from scripts.papers import measure as papers_measure
from scripts.papers import measure_systems, results, systems_page
from scripts.papers import page as papers_page
from scripts.papers.comparisons import COMPARISONS, OURS, compared
from scripts.papers.experiments import GRAPHS, GraphSource, rows_for, systems_of
from tests.support.papers import RUN, graph_line, page_text
from tests.support.plans import BFS, SSSP


def baseline(graph, seconds, name="cuGraph", way="top-down"):
    return {"kind": "peer", "graph": graph, "algorithm": "bfs", "peer": name, "way": way, "seconds": seconds}


def line(kind, graph, strategy, group="rows", label="", **rest):
    about = {"kind": kind, "graph": graph, "algorithm": "bfs", "part": "systems", "group": group}
    return about | {"label": label or strategy, "strategy": strategy} | rest


def timed(graph, strategy, milliseconds, **rest):
    return line("time", graph, strategy, seconds=[milliseconds / 1e3] * 2, rounds=[10, 10], cut=False, **rest)


ROAD, LAYERS = "USA-road-NE", "luxembourg_osm"


def on_a_gpu():
    return [
        RUN,
        graph_line(ROAD),
        graph_line(LAYERS),
        baseline(ROAD, [0.4, 0.4]),
        baseline(ROAD, [0.8, 0.8], way="direction-optimising"),
        timed(ROAD, "bfs_4k", 20),
        timed(ROAD, "persistent", 4),
        timed(ROAD, "queue_warp", 50),
        timed(ROAD, "queue_warp", 40, group="swept", label="queue_warp, width 8"),
        line("left", ROAD, "queue_thread", why="about 30 s a traversal, where 2 s is the limit"),
        baseline(LAYERS, [0.1, 0.1]),
        line("over", LAYERS, "persistent", took=2.5, limit=2.0),
        line("error", LAYERS, "bfs_4k", message="DeviceError: no children here"),
    ]


def on_a_cpu():
    return [
        RUN | {"device": "cpu"},
        graph_line(ROAD),
        graph_line(LAYERS),
        baseline(ROAD, [0.2, 0.2], "SciPy", "dijkstra"),
        timed(ROAD, "switch", 100),
        baseline(LAYERS, [0.2, 0.2], "SciPy", "dijkstra"),
        timed(LAYERS, "switch", 10),
        *(timed(LAYERS, "switch", ms, group="threads", label=f"switch, threads {n}") for n, ms in ((1, 16), (2, 10))),
    ]


@pytest.fixture
def page_of(place):
    """Adds lines, and returns all pages."""

    def page(lines):
        assert place(lines) == 0
        return page_text()

    return page


def row_of(page, title, strategy):
    """The cells of a strategy's row in the table below a title, without its published names."""
    section = re.split(rf"\n###? {re.escape(title)}\n", page)[1]
    section = re.split(r"\n##+ ", section)[0]
    (found,) = [text for text in section.splitlines() if f"| `{strategy}` |" in text]
    cells = [cell.strip() for cell in found.strip("|").split("|")]
    published = 2 if title == "BFS-4K, Table 2" else 1
    return cells[:published] + cells[published + 1 :]


def test_section_is_omitted_without_its_measurements(page_of):
    baselines = timed(ROAD, "bfs_4k", 20) | {"part": "peers", "group": "peers"}
    page = page_of([RUN, graph_line(ROAD), baseline(ROAD, [0.4, 0.4]), baselines])
    assert papers_page.TITLES["systems"] not in page
    assert systems_page.EXPLAINED not in page


def test_devices_stand_side_by_side_and_the_best_of_a_graph_is_bold(page_of):
    page_of(on_a_gpu())
    page = page_of(on_a_cpu())
    title = "BFS-4K, Table 2"
    section = page.split(f"### {title}\n")[1].split("\n### ")[0]
    assert "| in the paper | strategy | published as | device | USA-road-NE | luxembourg_osm |" in section
    assert "| *stands for* |  |  |  | roadNet-CA | europe.osm |" in section
    assert "| baseline | cuGraph | - | cuda | 400 | 100 |" in section
    assert "| baseline | SciPy | - | cpu | 200 | 200 |" in section
    assert row_of(page, title, "bfs_4k") == ["BFS-4K", "`bfs_4k`", "cuda", "20 (20.00)", "failed"]
    assert row_of(page, title, "persistent") == [OURS, "`persistent`", "cuda", "**4 (100)**", "over: 2,500"]
    assert row_of(page, title, "switch") == [OURS, "`switch`", "cpu", "100 (2.00)", "**10 (20.00)**"]
    drawn = ElementTree.parse(papers_page.FOLDER / papers_page.PLOTS / "systems-bfs-4k-table-2.svg").getroot()
    circles = list(drawn.iter("{http://www.w3.org/2000/svg}circle"))
    assert len(circles) >= 4  # of which some are the legend's
    assert "](plots/systems-bfs-4k-table-2.svg)" in section
    assert "no children here" in page.split("## Failures")[1]
    assert "CPU, 2 cores. python" in page
    assert "GPU (driver 1.2); CPU, 2 cores" in page


def test_a_swept_knob_stands_with_the_time_that_it_gave(page_of):
    page = page_of(on_a_gpu())
    title = systems_page.TITLES["bfs"]
    assert row_of(page, title, "queue_warp")[2:] == ["40 (width 8)", "-"]
    assert row_of(page, title, "queue_thread")[2:] == ["left out", "-"]


def test_omitted_measurements_are_listed_with_the_reason(page_of):
    lines = [one | {"strategy": "queue"} if one["kind"] == "left" else one for one in on_a_gpu()]
    page_of(lines)
    blocks = systems_page.blocks_of(results.read_measured(papers_page.MEASURED), "bfs")
    reported = systems_page.left_out(blocks, {("queue", "cuda")})
    assert reported == ["- Left out: `queue` (cuda) on USA-road-NE (about 30 s a traversal, where 2 s is the limit)."]
    assert systems_page.left_out(blocks, {("queue", "cpu")}) == []


def test_threads_have_a_table_with_speedup_and_efficiency(page_of):
    page = page_of(on_a_cpu())
    section = page.split("Table 1: multicore CPU\n")[1].split("\n### ")[0]
    assert "| luxembourg_osm | 1 | 16 | 1.00 | 1.00 |" in section
    assert "| luxembourg_osm | 2 | 10 | 1.60 | 0.80 |" in section


def test_a_run_on_one_device_replaces_that_devices_blocks_alone(page_of):
    page_of(on_a_gpu())
    page_of(on_a_cpu())
    page = page_of([one | ({"commit": "fedcba9"} if one["kind"] == "run" else {}) for one in on_a_cpu()])
    measured = results.read_measured(papers_page.MEASURED)
    assert [(run["device"], run["commit"]) for run in measured["runs"]] == [("cuda", "0123abc"), ("cpu", "fedcba9")]
    assert "`persistent`" in page


def test_blocks_of_the_part_have_a_file_of_their_own_and_rules_stay(page_of):
    rule = {"kind": "rule", "graph": ROAD, "strategy": "bfs_4k", "knobs": {"k1": 8}}
    baselines = timed(ROAD, "bfs_4k", 20) | {"part": "peers", "group": "peers"}
    page_of([RUN, graph_line(ROAD), baseline(ROAD, [0.4, 0.4]), baselines, rule])
    page_of(on_a_gpu())
    alone = json.loads(papers_page.MEASURED.read_text())
    assert {block["part"] for block in alone["blocks"]} == {"peers"}
    assert alone["graphs"][ROAD]["rules"] == {"bfs_4k": {"k1": 8}}
    beside = json.loads(results.systems_file_of(papers_page.MEASURED).read_text())
    assert {block["part"] for block in beside["blocks"]} == {"systems"}
    assert papers_page.main(["check"]) == 0


def test_the_reading_of_the_part_stands_before_its_tables(page_of):
    page_of(on_a_gpu())
    measured = json.loads(papers_page.MEASURED.read_text())
    measured["reading"]["systems"] = "Queues hold, layers do not."
    papers_page.MEASURED.write_text(results.as_text(measured))
    assert papers_page.main(["write"]) == 0
    page = page_text()
    assert page.index("# All strategies on all graphs") < page.index("Queues hold, layers do not.")
    assert page.index("Queues hold, layers do not.") < page.index(f"## {systems_page.TITLES['bfs']}")


# --- measurements -------------------------------------------------------------------------------------------------------


def test_graphs_of_comparisons_are_in_the_suite_with_every_strategy_measured():
    names = {graph.name: graph for graph in GRAPHS}
    for table in COMPARISONS:
        for graph in table.graphs:
            assert "systems" in names[graph].parts
            for device in ("cpu", "cuda"):
                settings = systems_of(table.algorithm, device, graph)
                alone = [setting.strategy for setting in settings if setting.group == "rows"]
                assert alone == [row.name for row in rows_for(table.algorithm, device)]
                labels = [(setting.group, setting.label) for setting in settings]
                assert len(set(labels)) == len(labels)
    for graph in GRAPHS:
        assert graph.parts != ("systems",) or any(compared(algorithm, graph.name) for algorithm in ("bfs", "sssp"))


def test_swept_knobs_are_those_of_their_strategies():
    for algorithm, graph in (("bfs", ROAD), ("sssp", ROAD)):
        for device in ("cpu", "cuda"):
            rows = {row.name: row for row in rows_for(algorithm, device)}
            for setting in systems_of(algorithm, device, graph):
                rows[setting.strategy].knobs_from(setting.knobs)


def test_systems_of_comparisons_have_strategies():
    from kepler_traverse.published import BFS as PAPERS_BFS
    from kepler_traverse.published import SSSP as PAPERS_SSSP

    for table in COMPARISONS:
        if PAPERS_BFS if table.algorithm == "bfs" else PAPERS_SSSP:
            rows = table.rows(BFS if table.algorithm == "bfs" else SSSP)
            assert {column for column, _ in table.systems} <= {column for column, _ in rows}, table.title


def test_our_defaults_are_in_every_table_on_each_device_it_has():
    for table in COMPARISONS:
        rows = table.rows(BFS if table.algorithm == "bfs" else SSSP)
        assert {row.device for _, row in rows} == ({table.device} if table.device else {"cpu", "cuda"})
        assert len({(row.name, row.device) for _, row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("near", "far", "seconds"),
    [
        ((0.01, 0.1), (0.06, 0.6), 10.0),  # each level alike
        ((0.01, 0.5), (0.06, 0.5), 0.5),  # computes everything, then cuts
        ((0.01, 0.6), (0.06, 0.5), 0.5),  # noise
    ],
)
def test_the_whole_is_estimated_by_a_straight_line(near, far, seconds):
    near, far = measure_systems.Probed(*near), measure_systems.Probed(*far)
    assert measure_systems.estimated_seconds(near, far) == pytest.approx(seconds)


def test_depths_to_probe_lie_between_the_source_and_the_farthest_vertex():
    near, far, farther = measure_systems.limits_of(1600, "bfs")
    assert 0 < near < far < farther < 500
    assert measure_systems.limits_of(10, "bfs") is None
    assert measure_systems.limits_of(64.0, "sssp") == (1.0, 4.0, 16.0)
    assert measure_systems.limits_of(0.0, "sssp") is None


@pytest.mark.parametrize(
    ("seconds_for", "probes", "left"),
    [
        (lambda share: 0.01 + 0.1 * share, 3, False),
        (lambda share: 60 * share, 2, True),  # known after the second
        (lambda share: 60 * share**2.5, 3, True),  # a frontier that grows
    ],
)
def test_strategy_is_probed_no_further_than_needed(seconds_for, probes, left):
    class Bench:
        algorithm, sources, expected = "bfs", [0], {0: np.arange(1281)}
        graph = SimpleNamespace(has_negative_weights=False)
        options = SimpleNamespace(system_seconds=2.0)

        def plan(self, _, limit):
            return SimpleNamespace(run=lambda _: None, limit=limit)

        def once(self, *_):
            self.tried.append(len(self.tried))
            limit = measure_systems.limits_of(1280, "bfs")[self.tried[-1]]
            return seconds_for(limit / 1280), None

    bench = Bench()
    bench.tried = []
    assert (measure_systems.estimate(bench, None) > 2.0) is left
    assert len(bench.tried) == probes


LATTICE = GraphSource("tiny lattice", generator="lattice", arguments=(20, 30, 0.1))


@pytest.fixture
def suite(monkeypatch, run_suite):
    """Runs the part over a tiny graph that is in a comparison for each algorithm; returns exit code and lines."""
    tables = [replace(COMPARISONS[0], graphs={"tiny lattice": "roads"}, algorithm=name) for name in ("bfs", "sssp")]
    monkeypatch.setattr("scripts.papers.comparisons.COMPARISONS", tables)
    monkeypatch.setattr(papers_measure, "GRAPHS", (LATTICE,))
    return partial(run_suite, "--part", "systems", "--device", "cpu")


def test_strategies_of_a_registry_are_measured_against_the_baseline(suite):
    code, lines = suite()
    assert code == 0
    found = [(one["algorithm"], one["strategy"]) for one in lines if one["kind"] == "time"]
    rows = [("bfs", row.name) for row in BFS] + [("sssp", row.name) for row in SSSP if row.sums == "float"]
    assert found == [
        pair for pair, row in zip(rows, [*BFS, *(r for r in SSSP if r.sums == "float")], strict=True) if row.device == "cpu"
    ]
    assert {one["kind"] for one in lines} == {"run", "graph", "peer", "time", "end"}


def test_too_slow_strategy_is_omitted_with_the_estimate(suite, monkeypatch):
    monkeypatch.setattr(measure_systems, "estimate", lambda _, setting: 3.0 if setting.strategy == "queue" else 0.0)
    code, lines = suite("--algorithm", "bfs")
    assert code == 0
    (left,) = [one for one in lines if one["kind"] == "left"]
    assert (left["strategy"], left["why"]) == ("queue", "about 3 s a traversal, where 2 s is the limit")


def test_unexpectedly_slow_strategy_is_listed_with_its_time(suite):
    code, lines = suite("--algorithm", "bfs", "--system-seconds", "1e-9", "--without-peer")
    assert code == 0
    over = [one for one in lines if one["kind"] == "over"]
    assert over[0]["strategy"] == "switch"  # the first has no estimate, as nothing is known of the graph yet
    assert over[0]["took"] > over[0]["limit"] == 1e-9


def test_strategies_without_a_baseline_are_compared_with_the_first(suite, monkeypatch):
    right = papers_measure.Bench.check

    def check(bench, source, result):
        right(bench, source, result)
        bench.expected[source] = np.where(bench.expected[source] > 3, 3, bench.expected[source])

    monkeypatch.setattr(papers_measure.Bench, "check", check)
    code, lines = suite("--algorithm", "bfs", "--without-peer")
    assert code == 1
    assert all("distances from source" in one["message"] for one in lines if one["kind"] == "error")


def test_a_run_that_is_out_of_time_goes_on_with_resume(suite, monkeypatch):
    spent = [0.0]
    usual = papers_measure.Bench.measure

    def measure(*about):
        spent[0] = 50.0
        return usual(*about)

    monkeypatch.setattr(papers_measure.Lines, "spent", lambda _: spent[0])
    monkeypatch.setattr(papers_measure.Bench, "measure", measure)
    flags = ("--algorithm", "bfs", "--without-peer")
    code, lines = suite(*flags, "--seconds", "10")
    assert code == 0
    assert [one["kind"] for one in lines] == ["run", "graph", "time", "skipped"]
    code, lines = suite(*flags, "--resume")
    assert code == 0
    assert [one["kind"] for one in lines][4:] == ["time"] * (len(rows_for("bfs", "cpu")) - 1) + ["end"]
