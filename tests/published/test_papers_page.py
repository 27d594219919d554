"""The suite that repeats the papers' tables, and its page."""

import json
import threading
from xml.etree import ElementTree

import numpy as np
import pytest

from scripts import make_graphs
from scripts.papers import experiments, measure, results
from scripts.papers import page as papers_page
from scripts.papers.experiments import GraphSource, Setting, settings_for
from tests.kernels.simt import device, harness
from tests.support.papers import RUN, graph_line, page_text
from tests.support.plans import BFS, SSSP
from tests.support.processes import PATIENCE

ROAD = graph_line("road")


def baseline(seconds, way="top-down"):
    return {"kind": "peer", "graph": "road", "algorithm": "bfs", "peer": "cuGraph", "way": way, "seconds": seconds}


def row(kind, part, group, label, **rest):
    about = {"kind": kind, "graph": "road", "algorithm": "bfs", "part": part, "group": group, "label": label}
    return about | {"strategy": "bfs_4k"} | rest


def timed(part, group, label, seconds, cut=False):
    return row("time", part, group, label, seconds=seconds, rounds=[10] * len(seconds), cut=cut)


def a_run():
    counters = {"edges": 5000, "duplicates": 12, "queued": 1000}
    return [
        RUN,
        ROAD,
        baseline([0.4, 0.2, 0.4]),
        baseline([0.8, 0.8, 0.8], "direction-optimising"),
        timed("peers", "peers", "bfs_4k", [0.1, 0.1, 0.1]),
        timed("features", "alone", "none", [0.8], cut=True),
        timed("features", "alone", "all", [0.1, 0.1, 0.1]),
        row("error", "features", "alone", "children", message="DeviceError: no children here"),
        timed("knobs", "k1", "4", [0.2, 0.1, 0.2]),
        timed("knobs", "k1", "32", [0.4, 0.2, 0.4]),
        row(
            "counters",
            "counters",
            "counters",
            "published",
            counters=counters,
            rounds=30,
            out_edges=2500,
            reached=903,
            sources=3,
        ),
        {"kind": "rule", "graph": "road", "strategy": "bfs_4k", "knobs": {"k1": 8, "heavy": "none"}},
        {"kind": "end", "graph": "road"},
    ]


def test_the_page_of_the_papers_is_current():
    assert papers_page.main(["check"]) == 0


def test_page_without_measurements_says_so(place):
    assert papers_page.main(["write"]) == 0
    assert "No measurements are recorded yet." in page_text()
    assert place(a_run()) == 0
    assert "No measurements" not in page_text()


def test_run_becomes_tables_of_ratios_to_the_baseline(place):
    assert place(a_run()) == 0
    page = page_text()
    # The faster variant of the baseline, per source: the setting that was cut off has only the first source.
    assert "| graph | baseline ms | none | all | children |" in page
    assert "| road | 400 | 0.50\\* | **4.00** | failed |" in page
    assert "| road | 400 | **2.00** | 1.00 |" in page
    assert "| road | bfs_4k | 10 | 100 | 400 | 4.00 | 800 | 8.00 |" in page
    assert "| road | published | 3 | 30 | 5,000 | 12 | 1,000 | 2,500 | 2.00 | 30.00 | 903 | 100 |" in page
    assert "| road | 2.5 | 1 | 7 | k1 = 8, heavy = none |" in page
    assert "DeviceError: no children here" in page
    assert "GPU (driver 1.2)" in page


def test_every_plot_is_well_formed_and_on_the_page(place):
    place(a_run())
    page = page_text()
    plots = sorted((papers_page.FOLDER / papers_page.PLOTS).glob("*.svg"))
    assert [path.stem for path in plots] == ["counters-bfs", "features-bfs", "knobs-bfs", "peers-bfs"]
    for path in plots:
        assert f"](plots/{path.name})" in page
        width, height = map(float, ElementTree.parse(path).getroot().get("viewBox").split()[2:])
        circles = list(ElementTree.parse(path).getroot().iter("{http://www.w3.org/2000/svg}circle"))
        assert circles
        assert all(0 < float(c.get("cx")) < width and 0 < float(c.get("cy")) < height for c in circles)


def test_a_newer_run_replaces_what_it_measured_again_and_nothing_else(place):
    place(a_run())
    newer = [RUN | {"commit": "fedcba9"}, ROAD, baseline([0.4] * 3), timed("features", "alone", "all", [0.05] * 3)]
    assert place(newer) == 0
    measured = json.loads(papers_page.MEASURED.read_text())
    assert {block["part"]: measured["runs"][block["run"]]["commit"] for block in measured["blocks"]} == {
        "peers": "0123abc",
        "features": "fedcba9",
        "knobs": "0123abc",
        "counters": "0123abc",
    }
    assert "| road | 400 | **8.00** |" in page_text()
    everything = [line | ({"commit": "fedcba9"} if line["kind"] == "run" else {}) for line in a_run()]
    place(everything)
    assert [run["commit"] for run in json.loads(papers_page.MEASURED.read_text())["runs"]] == ["fedcba9"]


def test_conclusions_are_in_their_sections(place):
    place(a_run())
    measured = json.loads(papers_page.MEASURED.read_text())
    measured["reading"] |= {"bfs-4k": "Most of it holds.", "knobs": "K1 hardly matters."}
    papers_page.MEASURED.write_text(results.as_text(measured))
    assert papers_page.main(["write"]) == 0
    page = page_text()
    assert page.index("Most of it holds.") < page.index("## Compared with cuGraph")
    assert page.index("## Knobs") < page.index("K1 hardly matters.") < page.index("`k1`, the other knobs")


@pytest.mark.parametrize("spoil", ["page", "plot", "extra plot", "missing plot"])
def test_a_stale_page_or_plot_is_found(place, spoil, capsys):
    place(a_run())
    assert papers_page.main(["check"]) == 0
    plot = papers_page.FOLDER / papers_page.PLOTS / "knobs-bfs.svg"
    if spoil == "page":
        page = papers_page.FOLDER / "bfs-4k.md"
        page.write_text(page.read_text().replace("4.00", "9.00"))
    elif spoil == "plot":
        plot.write_text("<svg/>")
    elif spoil == "extra plot":
        plot.with_name("old.svg").write_text("<svg/>")
    else:
        plot.unlink()
    assert papers_page.main(["check"]) == 1
    assert "run python -m scripts.papers.page write" in capsys.readouterr().err
    assert papers_page.main(["write"]) == 0
    assert papers_page.main(["check"]) == 0


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "does not begin with the line that says where and when"),
        ([ROAD], "does not begin with the line that says where and when"),
        ([RUN, {"kind": "speed"}], "line 2 is none that python -m scripts.bench --suite papers writes"),
        ([RUN, {"kind": "peer", "graph": "road"}], "line 2 lacks 'algorithm', 'peer', 'way', 'seconds'"),
        ([RUN, ROAD, timed("knobs", "k1", "4", [0.1])], "knobs of bfs on road has no times of the baseline"),
        ([RUN, baseline([0.1]), timed("knobs", "k1", "4", [0.1])], "names an unknown graph or run"),
    ],
)
def test_lines_that_are_no_measurements_are_refused(place, lines, message, capsys):
    before = papers_page.MEASURED.read_bytes()
    assert place(lines) == 2
    assert message in capsys.readouterr().err
    assert papers_page.MEASURED.read_bytes() == before


@pytest.mark.usefixtures("place")
def test_a_line_that_was_cut_off_is_refused_with_its_number(tmp_path, capsys):
    file = tmp_path / "cut.jsonl"
    file.write_text(json.dumps(RUN) + '\n{"kind": "pe')
    assert papers_page.main(["add", str(file)]) == 2
    assert "cut.jsonl, line 2 is no JSON" in capsys.readouterr().err


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(("text", "message"), [("{", "papers.json is no JSON"), ("{}", "lacks 'reading', 'runs'")])
def test_damaged_measurements_are_a_clear_error(text, message, capsys):
    papers_page.MEASURED.write_text(text)
    assert papers_page.main(["check"]) == 2
    assert message in capsys.readouterr().err


# --- the suite ---------------------------------------------------------------------------------------------------------


LATTICE = GraphSource("tiny lattice", generator="lattice", arguments=(6, 7, 0.1))
NEGATIVE = GraphSource("tiny negative", file="edges", directed=True, max_potential=50)


@pytest.fixture
def suite(tmp_path, monkeypatch, run_suite):
    """Runs the suite over two tiny graphs; returns exit code and lines."""
    src, dst = make_graphs.lattice(6, 7, 0.1, 1)
    make_graphs.write(tmp_path / "edges.parquet", src, dst, make_graphs.weights_for(src.size, 1))
    monkeypatch.setattr(measure, "GRAPHS", (LATTICE, NEGATIVE))
    monkeypatch.setattr(measure, "HOPELESS", np.inf)  # a search takes microseconds, and a core that is taken away more
    return run_suite


def lines_of(lines, kind):
    return [(line["graph"], line.get("algorithm"), line.get("label")) for line in lines if line["kind"] == kind]


def test_the_suite_runs_on_a_cpu_and_its_lines_make_a_page(suite, place, monkeypatch):
    code, lines = suite("--device", "cpu")
    assert code == 0
    assert lines_of(lines, "time") == [
        ("tiny lattice", "bfs", "switch"),
        ("tiny lattice", "bfs", "queue"),
        ("tiny lattice", "sssp", "near_far"),
        ("tiny lattice", "sssp", "frontier"),
        ("tiny negative", "sssp", "frontier"),
    ]
    assert all(len(line["seconds"]) == 2 for line in lines if line["kind"] in ("time", "peer"))
    monkeypatch.setitem(papers_page.SYSTEMS, "sssp", "H-BF")
    assert place(lines) == 0
    assert "| tiny negative | frontier |" in page_text()


def test_a_wrong_distance_is_an_error_and_no_time(suite, monkeypatch):
    right = measure.graphs.Made.expected
    monkeypatch.setattr(measure.graphs.Made, "expected", lambda *args: right(*args) + np.float32(1))
    code, lines = suite("--device", "cpu", "--algorithm", "sssp", "--only", "tiny negative")
    assert code == 1
    assert not lines_of(lines, "time")
    assert lines_of(lines, "error") == [("tiny negative", "sssp", "frontier")]
    assert any("distances from source" in line.get("message", "") for line in lines)


def test_a_setting_that_fails_is_recorded_and_the_rest_measured(suite, monkeypatch):
    wrong = Setting("knobs", "k1", "5", "queue", {"k1": 5})
    usual = measure.settings_for
    monkeypatch.setattr(measure, "settings_for", lambda *about: [wrong, *usual(*about)])
    code, lines = suite("--device", "cpu", "--algorithm", "bfs")
    assert code == 1
    assert lines_of(lines, "error") == [("tiny lattice", "bfs", "5")]
    assert len(lines_of(lines, "time")) == 2


def test_a_file_that_is_absent_does_not_end_the_suite(suite, tmp_path):
    (tmp_path / "edges.parquet").unlink()
    code, lines = suite("--device", "cpu")
    assert code == 1
    assert "edges.parquet is absent" in next(line["message"] for line in lines if line["kind"] == "error")
    assert len(lines_of(lines, "time")) == 4


def test_graphs_are_skipped_without_time_left(suite):
    code, lines = suite("--device", "cpu", "--seconds", "0")
    assert code == 0
    assert [line["kind"] for line in lines] == ["run", "skipped", "skipped"]


def test_a_run_that_was_cut_off_goes_on_behind_its_last_line(suite, tmp_path):
    _, whole = suite("--device", "cpu")
    last = [line["kind"] for line in whole].index("end") - 1
    output = tmp_path / "papers.jsonl"
    output.write_text("".join(json.dumps(line) + "\n" for line in whole[:last]) + '{"kind": "ti')
    _, lines = suite("--device", "cpu", "--resume")
    assert [(line["kind"], line.get("graph"), line.get("label")) for line in lines] == [
        (line["kind"], line.get("graph"), line.get("label")) for line in whole
    ]


def test_new_process_measures_the_rest_after_a_lost_gpu(suite, monkeypatch):
    class Replaced(BaseException):
        pass

    def lost(_device, error):
        raise measure.DeviceLost(str(error))

    def replace(_program, arguments):
        raise Replaced(arguments)

    monkeypatch.setattr(measure, "refuse_lost_device", lost)
    monkeypatch.setattr(measure.os, "execv", replace)
    wrong = Setting("knobs", "k1", "5", "queue", {"k1": 5})
    usual = measure.settings_for
    monkeypatch.setattr(measure, "settings_for", lambda *about: [*usual(*about), wrong])
    with pytest.raises(Replaced) as caught:
        suite("--device", "cpu", "--seconds", "100")
    (arguments,) = caught.value.args
    assert arguments[1:5] == ["-m", "scripts.bench", "--suite", "papers"]
    assert "--resume" in arguments
    assert 50 < float(arguments[-1]) < 100
    monkeypatch.undo()
    monkeypatch.setattr(measure, "GRAPHS", (LATTICE,))
    monkeypatch.setattr(measure, "settings_for", lambda *about: [*usual(*about), wrong])
    assert measure.main(arguments[5:]) == 1
    lines = [json.loads(line) for line in measure.parse(arguments[5:]).output.read_text().splitlines()]
    assert lines_of(lines, "error") == [("tiny lattice", "bfs", "5"), ("tiny lattice", "sssp", "5")]
    assert len(lines_of(lines, "time")) == 4


def test_a_setting_that_never_ends_is_left_behind(suite, monkeypatch):
    left = threading.Event()
    monkeypatch.setattr(measure, "in_a_new_process", lambda *_: left.set())
    monkeypatch.setattr(measure.Bench, "time", lambda *_: left.wait(PATIENCE) and {})
    _, lines = suite("--device", "cpu", "--algorithm", "bfs", "--only", "tiny lattice", "--stuck-seconds", "0.1")
    assert left.is_set()
    first = next(line for line in lines if line["kind"] == "error")
    assert (first["label"], first["message"]) == ("switch", "did not end within 0.1 s")


def test_a_hopeless_setting_gets_one_source(suite, monkeypatch):
    monkeypatch.setattr(measure, "HOPELESS", 0.0)
    _, lines = suite("--device", "cpu", "--algorithm", "bfs")
    found = [line for line in lines if line["kind"] == "time"]
    assert all(line["cut"] and len(line["seconds"]) == 1 for line in found[1:])


@pytest.mark.exhaustive
@pytest.mark.skipif(harness.COMPILER is None, reason="no g++ to compile kernels for the host")
def test_the_suite_runs_on_the_host_harness(suite, monkeypatch):
    settings = [
        Setting("peers", "peers", "queue_warp", "queue_warp"),
        Setting("knobs", "k1", "8", "bfs_4k", {"k1": 8, "duplicates": "keep"}),
        Setting("counters", "counters", "kept", "bfs_4k", {"duplicates": "keep", "counters": True}),
    ]
    monkeypatch.setattr(measure, "settings_for", lambda *_: settings)
    monkeypatch.setattr(device._Cupy.cuda.Device, "synchronize", lambda _: None, raising=False)
    with device.present(), harness.settings(resident=1, block=64):
        code, lines = suite("--without-peer", "--algorithm", "bfs", "--only", "tiny lattice")
    assert code == 0
    assert [line["kind"] for line in lines] == ["run", "graph", "time", "time", "counters", "rule", "end"]
    assert lines[4]["out_edges"] > 0


@pytest.mark.parametrize(("algorithm", "strategy"), [("bfs", "bfs_4k"), ("sssp", "h_bf")])
def test_every_setting_has_knobs_that_the_strategy_takes(algorithm, strategy):
    (found,) = [row for row in (BFS if algorithm == "bfs" else SSSP) if row.name == strategy]
    settings = settings_for(algorithm, "cuda", experiments.DETAILED[0], experiments.PARTS)
    for setting in settings:
        if setting.strategy == strategy:
            found.knobs_from(setting.knobs)
    assert {setting.part for setting in settings} == set(experiments.PARTS)
    labels = [(setting.part, setting.group, setting.label) for setting in settings]
    assert len(set(labels)) == len(labels)
    assert set(experiments.DETAILED) <= {graph.name for graph in experiments.GRAPHS}
