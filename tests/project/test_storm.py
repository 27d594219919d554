"""The storm finds what is planted: wrong answers, raw errors, refusals, crashes and hangs, in the library and in the job."""

import ast
import json
import sys
import warnings
from pathlib import Path
from random import Random

import pandas as pd
import pyarrow.parquet as pq
import pytest

import kepler_traverse
from kepler_traverse import cuda
from kepler_traverse.assignment import Equilibrium
from kepler_traverse.errors import EdgeListError, InputError
from kepler_traverse.hierarchy.customizable_gpu import CustomizableOnGpu
from pipelines import batch_sources
from scripts.storm import __main__ as storm
from scripts.storm import containers, jobs, processes, record
from scripts.storm.case import Settings
from scripts.storm.cases import DOORS, run_case
from scripts.storm.edges import EdgeList, draw_edges
from tests.support.devices import FIRST, on_a_device, running
from tests.support.processes import PATIENCE, ROOT, ran

OF_LIBRARY = Settings(12, doors=("library",))
OF_JOB = Settings(3, doors=("job",))
MANY = {"bfs_many": kepler_traverse.bfs_many, "sssp_many": kepler_traverse.sssp_many}


def findings(settings, numbers):
    return [finding for number in numbers for finding in run_case(settings, number).findings]


def changed(kind, change):
    """``bfs_many`` and ``sssp_many`` with another result for one kind."""

    def plant(name, monkeypatch):
        def call(graph, sources, result="distances", **options):
            found = MANY[name](graph, sources, result=result, **options)
            return change(found) if result == kind and isinstance(found, pd.DataFrame) else found

        monkeypatch.setattr(kepler_traverse, name, call)

    return plant


def longer(frame):
    return frame.assign(distance=frame["distance"] + 1)


def without_last(frame):
    return frame.iloc[:-1]


def refuse(_frame):
    raise InputError("no")


def break_(_frame):
    raise KeyError("no")


PLANTED = {
    "distances off by one": ("distances", longer, "wrong"),
    "a row is lost": ("isochrones", without_last, "wrong"),
    "what is valid is refused": ("summary", refuse, "refused"),
    "an error of Python": ("levels", break_, "raw error"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_fault_of_one_kind_is_found_and_nothing_else(name, monkeypatch):
    kind, change, what = PLANTED[name]
    for function in MANY:
        changed(kind, change)(function, monkeypatch)
    found = [each for each in findings(OF_LIBRARY, range(12)) if each.kind != "build"]
    assert {(each.kind, each.what) for each in found} == {(kind, what)}
    assert f"{kind} " in found[0].asked
    again = [each for each in findings(OF_LIBRARY, [found[0].case]) if each.kind != "build"]
    assert again == [each for each in found if each.case == found[0].case], (
        "a case is known by its number"
    )


@pytest.mark.exhaustive
def test_an_answer_in_place_of_an_error_is_found(monkeypatch):
    def call(graph, sources, **options):
        try:
            return MANY["sssp_many"](graph, sources, **options)
        except kepler_traverse.NegativeCycleError:
            return pd.DataFrame({"source": [1]})

    monkeypatch.setattr(kepler_traverse, "sssp_many", call)
    found = [
        each
        for number in range(200)
        for each in run_case(OF_LIBRARY, number).findings
        if each.what == "accepted"
    ]
    assert found


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda links: links.assign(flow=links.flow * 1.001), "costs"),
        (lambda links: links.assign(flow=0.0, cost=links.time.where(links.flow == 0)), "costs"),
    ],
)
def test_a_wrong_flow_of_an_assignment_is_found(monkeypatch, change, what):
    links = Equilibrium.links.fget
    monkeypatch.setattr(Equilibrium, "links", property(lambda self: change(links(self))))
    found = findings(Settings(5, doors=("assignment",)), range(20))
    assert {each.what for each in found} == {"wrong"}
    assert any(what in each.detail for each in found)


@on_a_device
def test_a_wrong_selected_flow_of_a_gpu_is_found(monkeypatch):
    def mark_nothing(self, _is_marked):
        return cuda.cp.zeros(self.weights.size, "uint8")

    monkeypatch.setattr(CustomizableOnGpu, "mark_sides", mark_nothing)
    with running(FIRST):
        found = findings(Settings(4, device="cuda", doors=("assignment",)), range(10, 20))
    assert {each.detail for each in found} == {"a GPU finds other flows than a CPU"}


def test_a_gap_of_an_assignment_that_is_not_that_of_its_flows_is_found(monkeypatch):
    stated = property(lambda self: self.bound.relative_gap / 2)
    monkeypatch.setattr(Equilibrium, "relative_gap", stated)
    found = findings(Settings(5, doors=("assignment",)), range(20))
    assert any("is stated" in each.detail for each in found)


IN_DOUBT = {
    "numbers of columns": [(0, 1, 2), (1, 5, 3)],
    "a run of numbers": [(7, 8, 9), (50, 60, 4)],
    "years": [(2010, 2020, 2050), (5, 6, 7)],
    "counts of a matrix": [(3, 3, 2), (1, 2, 5), (2, 3, 5)],
    "counts of edges in both directions": [(2, 1, None), (0, 1, None), (1, 0, None)],
}


@pytest.mark.parametrize("name", IN_DOUBT)
def test_a_first_line_that_is_asked_about_is_answered(tmp_path, name):
    rows = IN_DOUBT[name]
    edges = EdgeList(rows, directed=True, weights="none" if rows[0][2] is None else "int64")
    written = containers.FILES["SNAP text"](edges, tmp_path, Random(0))
    assert kepler_traverse.read_graph(written.path, **written.options).report.rows == len(rows)
    del written.options["header"]
    with pytest.raises(EdgeListError, match="header="):
        kepler_traverse.read_graph(written.path, **written.options)


def test_no_other_first_line_is_asked_about(tmp_path):
    asked = 0
    for seed in range(100):
        draw = Random(seed)
        edges = draw_edges(draw, 30)
        if edges.has_text_ids or not edges.rows:
            continue
        written = containers.FILES["SNAP text"](edges, tmp_path, draw)
        with warnings.catch_warnings(action="ignore"):
            graph = kepler_traverse.read_graph(written.path, **written.options)
        assert graph.report.rows == len(edges.rows)
        asked += "header" in written.options
    assert asked < 20


def test_a_part_that_the_job_writes_wrongly_is_found(monkeypatch):
    def main(words):
        code = batch_sources_main(words)
        for path in jobs.part_files(Path(words[words.index("--output") + 1])):
            if path.suffix == ".parquet":
                table = pq.ParquetFile(path).read()
                pq.write_table(table[:-1], path)
        return code

    batch_sources_main = batch_sources.main
    monkeypatch.setattr(batch_sources, "main", main)
    kinds = {each.what for each in findings(OF_JOB, range(10)) if each.kind != "build"}
    assert {"wrong", "exit code"} <= kinds, "by the comparison, and by verify"


SAYS = """
import json, os, signal, sys, time
first = {first}
def say(**line): print(json.dumps(line), flush=True)
"""


def lines_that(code):
    """A process that writes the lines of cases, and ends as this code says."""
    text = f"{SAYS}{code}"

    def start(_settings, share, errors, _place):
        command = [sys.executable, "-c", text.replace("{first}", str(share.first))]
        return processes.subprocess.Popen(
            command,
            stdout=processes.subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )

    return start


CRASHES = """
for case in range(first, min(6, first + 4)):
    say(begins=case)
    if case == 2: print("what it said", file=sys.stderr, flush=True); os.kill(os.getpid(), signal.SIGSEGV)
    say(case=case, findings=[], counts={"cases": 1})
"""
HANGS = """
say(begins=first)
if first == 0: time.sleep(600)
say(case=first, findings=[], counts={"cases": 1})
"""


def watched(monkeypatch, start):
    monkeypatch.setattr(processes, "_start", start)
    monkeypatch.setattr(processes, "CASES_PER_PROCESS", 4)
    found = []
    run = processes.Watched(Settings(1), processes.Share(0, 1, 1e12, 6), found.append)
    run.run()
    return run.counts["cases"], [(each["case"], each["what"]) for each in found], found


def test_a_case_that_kills_its_process_is_found_and_the_others_run(monkeypatch):
    cases, found, texts = watched(monkeypatch, lines_that(CRASHES))
    assert (cases, found) == (6, [(2, "crash")])
    assert "what it said" in texts[0]["detail"]


def test_a_case_that_stands_still_is_found_and_the_others_run(monkeypatch):
    start = lines_that(HANGS)

    def start_patiently(settings, share, *places):
        # the others may take long to start, and only the first one never says a word
        monkeypatch.setattr(processes, "PATIENCE", PATIENCE if share.first else 0.3)
        return start(settings, share, *places)

    _, found, _ = watched(monkeypatch, start_patiently)
    assert found == [(0, "hang")]


def test_the_oracle_imports_nothing_of_the_package():
    for name in ("edges", "oracle", "answers", "questions"):
        tree = ast.parse((ROOT / f"scripts/storm/{name}.py").read_text())
        imports = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imports |= {
            each.name
            for node in ast.walk(tree)
            if isinstance(node, ast.Import)
            for each in node.names
        }
        ours = {
            each for each in imports if each.startswith(("kepler_traverse", "pipelines", "tests"))
        }
        assert not ours, name
        assert not {
            each for each in imports if each.partition(".")[0] in ("numpy", "scipy", "pandas")
        }, name


SUMMARY = {
    **{
        "commit": "0123abc",
        "machine": "a CPU, 2 cores",
        "device": "cpu",
        "seed": 5,
        "processes": 1,
        "date": "2026-11-27",
    },
    **{"hours": 0.5, "findings": 1, "counts": {"cases": 1234, "comparisons": 5678, "kills": 9}},
}


def test_summaries_are_recorded_once_and_a_stale_page_is_noticed(tmp_path, monkeypatch, capsys):
    out, page = tmp_path / "found.jsonl", tmp_path / "page.md"
    out.write_text(f"{json.dumps({'what': 'wrong'})}\n{json.dumps({'summary': SUMMARY})}\n")
    page.write_text(f"{record.BEGIN}\n{record.END}\n")
    monkeypatch.setattr(record, "PAGE", page)
    monkeypatch.setattr(record, "RECORD", tmp_path / "storm.json")
    assert [
        storm.main(["record", str(out)]),
        storm.main(["record", str(out)]),
        storm.main(["check"]),
    ] == [0, 0, 0]
    row = (
        "| 2026-11-27 | 0123abc | a CPU, 2 cores | cpu | 5 | 0.50 | 1,234 | 0 | 5,678 | 9 | 0 | 1 |"
    )
    assert page.read_text().count(row) == 1
    page.write_text(page.read_text().replace("5,678", "5,679"))
    assert storm.main(["check"]) == 1
    assert "is stale" in capsys.readouterr().err
    out.write_text("{}\n")
    assert storm.main(["record", str(out)]) == 2


@pytest.mark.exhaustive
def test_the_command_writes_findings_and_a_summary(tmp_path):
    out = tmp_path / "found.jsonl"
    words = [
        "--seed",
        "5",
        "--cases",
        "2",
        "--doors",
        "library",
        "--processes",
        "2",
        "--out",
        str(out),
    ]
    done = ran(
        [sys.executable, "scripts/ci/storm.py", *words],
        env=dict(processes.os.environ, PYTHONPATH=""),
    )
    assert done.stdout.startswith("seed 5\n"), done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    summary = lines[-1]["summary"]
    assert summary["counts"]["cases"] == 4
    assert summary["findings"] == len(lines) - 1
    assert done.returncode == int(summary["findings"] > 0)


def test_a_door_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit) as ended:
        storm.main(["--doors", "window"])
    assert ended.value.code == 2
    assert "no such door: window" in capsys.readouterr().err


@pytest.mark.exhaustive
@on_a_device
def test_a_gpu_is_asked_and_a_fault_of_its_answers_is_found(monkeypatch):
    def plant(name):
        def call(graph, sources, **options):
            found = MANY[name](graph, sources, **options)
            has_distances = (
                isinstance(found, pd.DataFrame)
                and "distance" in found
                and "unreached" not in options
            )
            return longer(found) if graph.device == "cuda" and has_distances else found

        monkeypatch.setattr(kepler_traverse, name, call)

    for name in MANY:
        plant(name)
    monkeypatch.delitem(sys.modules, "cudf", raising=False)
    settings = Settings(4, device="cuda", doors=("library",))
    with running(FIRST):
        outcomes = [run_case(settings, number) for number in range(14)]
    sys.modules.pop("cudf", None)
    found = [each for outcome in outcomes for each in outcome.findings if each.kind != "build"]
    assert {each.what for each in found} == {"wrong"}
    assert all("on the GPU" in each.detail for each in found)
    assert sum(outcome.counts["calls on the GPU"] for outcome in outcomes) > 20


@pytest.mark.exhaustive
@pytest.mark.parametrize("door", DOORS)
def test_a_short_storm_finds_nothing(door, tmp_path):
    out = tmp_path / "found.jsonl"
    words = ["--seed", "11", "--hours", "0.0008", "--doors", door, "--out", out]
    done = ran([sys.executable, "-m", "scripts.ci.storm", *words])
    assert done.returncode == 0, done.stdout
