"""The harness of measurements compares results before it times them, goes on after a cut, and renders its record."""

import json
import re
from functools import partial

import numpy as np
import pytest
import scipy.sparse

from kepler_traverse import graph_from_edges
from pipelines import compare
from scripts import make_graphs
from scripts.bench import csgraph, networkx_backend, pandana_network
from scripts.measure import __main__ as command
from scripts.measure import environment, harness, logs, record, render
from scripts.measure.log import Log
from scripts.measure.work import OURS, Baseline, Inputs, Repeats, Timed, Work, differences

INPUTS = Inputs()
MACHINE = {"cpu": "CPU", "cores": 2, "memory_gib": 8, "gpu": None, "driver": None}
RUN = {"kind": "run", "date": "2026-09-01", "commit": "0123abc", "command": ""}
RUN |= {"machine": MACHINE, "versions": {}}


def work_of(peers, **more):
    given = {"name": "a call", "graph": "little", "case": lambda _: 7} | more
    return Work(peers=peers, **given)


def measured(work, path):
    with Log(path, harness.KEY) as log:
        harness.measure("suite", work, INPUTS, log)
    return [json.loads(line) for line in path.read_text().splitlines()]


def returning(value):
    return lambda _: lambda: value


def test_peers_run_in_turn_in_both_orders_and_rows_have_the_spread(tmp_path):
    called = []
    peers = {name: lambda _, name=name: lambda: called.append(name) for name in (OURS, "a", "b")}
    lines = measured(work_of(peers, size=5, repeats=Repeats(most=3)), tmp_path / "log")
    assert "".join(each[0] for each in called) == "kab" + "kab" + "bak" + "kab"
    assert [line["peer"] for line in lines] == [OURS, "a", "b"]
    for line in lines:
        assert line["least"] <= line["median"]
        assert line["repeats"] == 3
        assert line["spread"] >= 0
        assert line["size"] == 5


def test_nothing_is_timed_if_a_result_differs(tmp_path):
    peers = {OURS: returning([1, 2]), "right": returning([1, 2]), "wrong": returning([2, 1])}
    with pytest.raises(SystemExit, match="little, a call: wrong: "):
        measured(work_of(peers), tmp_path / "log")
    assert (tmp_path / "log").read_text() == ""
    other = Baseline(prepare=returning([2, 1]), is_compared=False)
    assert len(measured(work_of(peers | {"wrong": other}), tmp_path / "log")) == 3


def test_results_are_compared_by_value_and_type():
    assert differences(np.arange(3), np.arange(2)) == ""
    assert differences(np.arange(3), np.array([0, 2])) == "the results differ"
    assert differences({"a": 1}, {"a": 2}) == "{'a': 2} is not {'a': 1}"


def test_a_long_call_is_not_repeated_but_for_the_first_which_has_compiled(tmp_path):
    called = []
    peers = {name: lambda _, name=name: lambda: called.append(name) for name in (OURS, "slow")}
    slow = work_of(peers, clock=lambda call: Timed(call(), 9.0), repeats=Repeats(seconds=10.0))
    assert [line["repeats"] for line in measured(slow, tmp_path / "log")] == [1, 1]
    assert called == [OURS, "slow", OURS]


def test_a_library_that_is_not_installed_is_left_out_and_a_cut_run_goes_on(tmp_path):
    def absent(_):
        raise ModuleNotFoundError("No module named 'absent'")

    path = tmp_path / "log"
    work = work_of({OURS: returning(1), "absent": absent})
    assert [line["kind"] for line in measured(work, path)] == ["left", "time"]
    path.write_text(path.read_text() + '{"kind": "ti')  # cut off
    with Log(path, harness.KEY) as log:
        assert not harness.is_left("suite", work, INPUTS, log)
        assert harness.is_left("suite", work_of({OURS: absent, "new": absent}), INPUTS, log)
    assert len(path.read_text().splitlines()) == 2


def test_rows_of_a_record_read_as_they_were_written_and_newer_ones_take_their_places(tmp_path):
    line = {"kind": "time", "suite": "s", "graph": "g", "work": "w", "device": "cpu", "size": 1}
    figures = {"median": 2.0, "least": 1.0, "spread": None, "repeats": 2}
    first = record.added(
        record.Record(logs=[{"file": "a log"}]),
        [RUN, *(line | figures | {"peer": peer, "at": 3} for peer in (OURS, "other"))],
    )
    newer = record.added(
        first, [RUN | {"commit": "456"}, line | figures | {"peer": OURS, "least": 0.5}]
    )
    record.write(newer, tmp_path / "record.json")
    assert record.read(tmp_path / "record.json") == newer
    assert [(row["peer"], row["least"], row["run"]["commit"]) for row in newer.rows("s")] == [
        (OURS, 0.5, "456"),
        ("other", 1.0, "0123abc"),
    ]
    last = record.added(newer, [RUN | {"commit": "789"}, line | figures | {"peer": "other"}])
    assert [run["commit"] for run in last.runs] == ["456", "789"]


def test_a_suite_is_measured_added_and_listed(tmp_path, monkeypatch, capsys):
    works = (work_of({OURS: returning(1)}), work_of({OURS: returning(1)}, graph="large"))
    monkeypatch.setattr(csgraph, "WORKS", works)
    monkeypatch.setattr(record, "MEASURED", tmp_path / "record.json")
    monkeypatch.setattr(render, "put_pages", lambda _: 0)
    record.write(record.Record())
    log = tmp_path / "log"
    assert command.main(["run", "csgraph", "--list"]) == 0
    assert "large: a call: kepler" in capsys.readouterr().out
    assert command.main(["run", "csgraph", "--output", str(log), "--only", "large"]) == 0
    assert command.main(["add", str(log)]) == 0
    assert [row["graph"] for row in record.read().rows("csgraph")] == ["large"]
    with pytest.raises(SystemExit, match="has no such number or text"):
        command.main(["run", "csgraph", "--set", "scripts.bench.csgraph.NOTHING=1"])


@pytest.mark.parametrize("suite", harness.SUITES)
def test_works_of_a_suite_have_names_of_their_own(suite):
    for device in ("cpu", "cuda"):
        works = list(harness.works_of(harness.suite_of(suite), Inputs(device=device)))
        assert len({(work.graph, work.name) for work in works}) == len(works)


def test_the_tables_of_measurements_are_those_of_their_records():
    assert command.main(["check"]) == 0


def test_a_stale_table_of_measurements_is_noticed(tmp_path, monkeypatch, capsys):
    part = render.PARTS[0]._replace(page=tmp_path / "scipy.md")
    monkeypatch.setattr(render, "PARTS", [part])
    monkeypatch.setattr(render, "whole_pages", lambda _: {})
    monkeypatch.setattr(render, "BENCHMARKS", tmp_path)
    page = f"head\n<!-- {part.begin} -->\nold\n<!-- {part.end} -->\ntail\n"
    part.page.write_text(page)
    assert command.main(["check"]) == 1
    assert "scipy.md is stale" in capsys.readouterr().err
    assert command.main(["write"]) == 0
    assert command.main(["check"]) == 0
    assert "old" not in part.page.read_text()
    part.page.write_text("no table")
    with pytest.raises(ValueError, match="the page lacks"):
        command.main(["write"])


# --- the page, logs and comparisons


def row_of(work, peer, **figures):
    return {"kind": "time", "suite": "cpu", "graph": "road", "work": work, "device": "cpu"} | {
        "peer": peer,
        "peak_bytes": 2**20,
        **figures,
    }


def test_the_page_shows_the_newest_figure_and_the_fastest_baseline():
    shape = {"vertices": 1000, "edges": 2500, "directed": False, "strategy": "switch", "size": 64}
    ours, scipy, networkit = (
        row_of("bfs, 64 sources", peer, least=seconds, **shape)
        for peer, seconds in ((OURS, 2.0), ("SciPy", 5.0), ("NetworKit", 8.0))
    )
    found = record.added(record.Record(), [RUN, ours, scipy])
    newer = record.added(found, [RUN | {"commit": "new"}, ours | {"least": 1.0}, networkit])
    page = render.text("performance.md", newer)
    assert (
        "| road, undirected | 1,000 | 2,500 | bfs | 64 | 1 | 1 MiB | SciPy | 5 | 1 MiB | 5.00 |"
        in page
    )
    assert "NetworKit" not in page
    assert "##" not in render.text("performance.md", record.Record())


def test_a_log_is_written_once_and_an_edited_one_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(logs, "LOG", tmp_path)
    lines = [RUN, row_of("bfs", OURS, least=3.25, size=64)]
    found = logs.written(record.Record(), "A road graph", lines, "Where the time goes.")
    (log,) = tmp_path.glob("*.md")
    assert log.name == "2026-09-01-a-road-graph.md"
    assert "| road | bfs | cpu | kepler | 1,048,576 | 3.25 | 64 |" in log.read_text()
    assert log.read_text().endswith("Where the time goes.\n")
    assert log.name in logs.index(found)
    assert logs.edited(found) == []
    with pytest.raises(SystemExit, match="never written twice"):
        logs.written(found, "A road graph", lines)
    log.write_text(log.read_text().replace("5", "6"))
    assert logs.edited(found) == [log.name]


def test_commands_of_records_name_no_folder_of_a_machine():
    given = "python -m scripts.measure run gpu --graphs /data/g --output /out/a.jsonl --commit 12ab --work sssp"
    portable = "python -m scripts.measure run gpu --graphs GRAPHS --output FILE --work sssp"
    assert environment.without_places(given) == portable
    commands = [run.get("command", "") for run in record.read().runs]
    for log in logs.LOG.glob("*.md"):
        commands += [line for line in log.read_text().splitlines() if line.startswith("python")]
    assert [command for command in commands if re.search(r"[ =]/", command)] == []


def test_output_of_compare_becomes_rows(tmp_path, monkeypatch, capsys):
    edges = tmp_path / "little.parquet"
    words = ["erdos-renyi", "--vertices", "50", "--edges", "200", "--weights"]
    make_graphs.main([*words, "--output", str(edges)])
    capsys.readouterr()
    # in children
    monkeypatch.setattr("pipelines.comparison.peak_memory", lambda *_: {"ours": 1, "peer": 2})
    assert compare.main([str(edges), "--random-sources", "2", "--device", "cpu", "--json"]) == 0
    printed = tmp_path / "compare.json"
    printed.write_text(capsys.readouterr().out)
    monkeypatch.setattr(record, "MEASURED", tmp_path / "record.json")
    monkeypatch.setattr(render, "PARTS", ())
    monkeypatch.setattr(render, "whole_pages", lambda _: {})
    monkeypatch.setattr(render, "BENCHMARKS", tmp_path)
    record.write(record.Record())
    with pytest.raises(SystemExit, match="give --commit, --date, --cpu"):
        command.main(["add", str(printed)])
    flags = ["--commit", "0123abc", "--date", "2026-09-01", "--cpu", "CPU"]
    assert command.main(["add", str(printed), *flags]) == 0
    rows = record.read().rows("compare")
    assert [row["work"] for row in rows[::2]] == ["bfs, 2 sources", "sssp, 2 sources"]
    assert {row["run"]["commit"] for row in rows} == {"0123abc"}
    wrong = json.loads(printed.read_text())
    wrong["runs"][0]["equal"] = False
    printed.write_text(json.dumps(wrong))
    with pytest.raises(SystemExit, match="differs or is not certified"):
        command.main(["add", str(printed), *flags])


# --- suites


def test_calls_of_csgraph_are_compared():
    matrix = scipy.sparse.csr_array(np.array([[0, 1.5, 0], [0, 0, 2], [0, 0, 0]]))
    for work in csgraph.WORKS:
        found = [work.peer(name).prepare(matrix)() for name in work.peers]
        assert work.check(*found) == "", work.name
    assert csgraph.differences("dijkstra", np.zeros(3), np.ones(3))


def test_calls_of_networks_are_compared(monkeypatch):
    for name, size in {"PAIRS": 20, "PATHS": 5, "ORIGINS": 2, "POINTS": 3}.items():
        monkeypatch.setattr(pandana_network, name, size)
    ends = np.arange(10)
    graph = graph_from_edges(ends, (ends + 1) % 10, ends * 1000, directed=False)
    case = pandana_network.Case(graph)
    for work in pandana_network.WORKS[1:]:
        call = work.peer(OURS).prepare(case)
        assert work.check(call(), call()) == "", work.name
    found = partial(pandana_network.aggregated, kind="sum", decay="flat")(case.network(OURS), case)
    assert pandana_network.differences(found, found + 1)


@pytest.mark.parametrize(
    ("expected", "found"),
    [({1: 2}, {1: 3}), ({1: 2}, {2: 2}), ({1: 0.5}, {1: 0.5 + 1e-9}), ({1: {2: 3}}, {1: {2: 4}})],
)
def test_results_of_backends_are_compared(expected, found):
    assert networkx_backend.differences(expected, expected) == ""
    assert networkx_backend.differences(expected, found) != ""
