"""Traces become short tables and plots, and the lower bounds follow from them by the formula of the page."""

import shutil
from xml.etree import ElementTree

import pytest

from scripts.bench import level_traces, roofline, svg_plots
from scripts.measure import __main__ as command
from scripts.measure import logs, render

LIMITS = {
    "machine": "GPU",
    "measured": "2026-09-01",
    "call_us": 10.0,
    "latencies_us": {"claim": 0.5, "barrier": 0.5},
    "bytes_per_us": 100.0,
    "gathers_per_us": [[16, 50.0], [64, 25.0]],
    "targets_ms": {"bfs": {"road": 1.5}, "sssp": {}},
}
ABOUT = {"date": "2026-09-01", "commit": "0123abc", "gpu": "GPU"}
MEDIAN = {"graph": "road", "work": "bfs, one source", "size": 1, "median": 0.0025}
SIZED = MEDIAN | {"vertices": 100, "edges": 400}


def iteration(nanoseconds, what, level, vertices=0, edges=0):
    return {
        "nanoseconds": nanoseconds,
        "what": what,
        "level": level,
        "vertices": vertices,
        "edges": edges,
    }


def a_bfs():
    iterations = [
        ("cluster level", 0, 1),
        ("push", 1, 10, 70),
        ("draw bitmaps", 2, 40, 200),
        ("pull", 2, 40, 200),
    ]
    iterations += [("list bitmap", 3, 9, 20), ("push", 3, 9, 20), ("last pass", 4), ("end", 4)]
    return [iteration(i * 2000, *fields) for i, fields in enumerate(iterations)]


def a_chain(levels):
    return [iteration(i * 1000, "cluster level", i, 2) for i in range(levels)] + [
        iteration(levels * 1000, "end", levels)
    ]


def test_iteration_lasts_until_the_next_one_begins():
    rows = level_traces.thinned(a_bfs(), "bfs")
    assert [row.what for row in rows] == [iteration["what"] for iteration in a_bfs()[:-1]]
    assert {row.microseconds for row in rows} == {2.0}
    assert [row.at for row in rows] == [0, 1, 2, 2, 3, 3, 4]
    assert [row.at for row in level_traces.thinned(a_bfs(), "sssp")] == list(range(7))


@pytest.mark.parametrize(("iterations", "width"), [(10, 1), (11, 2), (95, 10)])
def test_level_traces_sum_neighboring_iterations(iterations, width):
    rows = level_traces.thinned(a_chain(iterations), "bfs", most=10)
    assert len(rows) <= 10
    assert [row.at for row in rows] == list(range(0, iterations, width))
    assert sum(row.iterations for row in rows) == iterations
    assert sum(row.microseconds for row in rows) == iterations


def test_kinds_stay_apart_however_few_rows_are_left():
    rows = level_traces.thinned(a_bfs(), "bfs", most=6)
    assert sorted(row.what for row in rows) == sorted(
        {iteration["what"] for iteration in a_bfs()[:-1]}
    )
    assert sum(row.microseconds for row in rows) == 14


def test_walked_edges_exclude_bitmaps_and_the_last_pass():
    assert level_traces.walked(a_bfs()) == level_traces.Walked(
        levels=4, reached=60, pushed_edges=90, uncounted=1, pulled=9
    )


def test_a_trace_without_an_end_is_refused():
    with pytest.raises(level_traces.Malformed, match="too small for all iterations"):
        level_traces.thinned(a_bfs()[:-1], "bfs")


def test_a_newer_trace_takes_the_place_of_an_older_one_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(level_traces, "LEVELS", tmp_path / "levels.json")
    old = {("road", "bfs"): a_chain(3), ("road", "sssp"): a_chain(4)}
    for commit, traces in {"old": old, "new": {("road", "bfs"): a_bfs()}}.items():
        about = ABOUT | {"commit": commit}
        levels = level_traces.with_traces(level_traces.read_levels(), about, traces)
        level_traces.write_levels(levels)
    found = level_traces.read_levels()["road"]
    assert {algorithm: trace["commit"] for algorithm, trace in found.items()} == {
        "bfs": "new",
        "sssp": "old",
    }
    assert found["bfs"]["rows"] == level_traces.thinned(a_bfs(), "bfs")
    assert found["bfs"]["walked"] == level_traces.walked(a_bfs())


def test_a_floor_is_launch_and_chains_and_the_slower_of_bytes_and_gathers():
    search = level_traces.walked(a_bfs())
    # 94 edges are pushed along, as the cluster's vertex counts 4; 9 vertices are pulled: 1,624 bytes.
    assert roofline.floor_ms(LIMITS, search, "bfs", 100, 400) == pytest.approx(
        (10 + 4 + 16.24) / 1e3
    )
    # 240 edges lie out of the 60 vertices: 2,880 bytes; and were memory faster, 240 gathers.
    assert roofline.floor_ms(LIMITS, search, "sssp", 100, 400) == pytest.approx(
        (10 + 4 + 28.8) / 1e3
    )
    assert roofline.floor_ms(
        LIMITS | {"bytes_per_us": 1e6}, search, "sssp", 100, 400
    ) == pytest.approx((10 + 4 + 4.8) / 1e3)


@pytest.mark.parametrize(
    ("mebibytes", "rate"), [(1, 50.0), (16, 50.0), (63, 50.0), (64, 25.0), (1000, 25.0)]
)
def test_gathers_are_as_fast_as_from_the_next_smaller_table(mebibytes, rate):
    assert roofline.rate_of(LIMITS, mebibytes * 2**20) == rate


def test_a_row_without_a_trace_has_no_floor():
    traced = {
        "road": {
            "bfs": {
                "rows": level_traces.thinned(a_bfs(), "bfs"),
                "walked": level_traces.walked(a_bfs()),
            }
        }
    }
    with_floor = roofline.rows_of(LIMITS, traced, [SIZED])["road", "bfs"]
    assert with_floor == {
        "levels": 4,
        "floor": pytest.approx(0.03024),
        "in the launch": 0.014,
        "target": 1.5,
        "ours": 2.5,
    }
    without = roofline.rows_of(LIMITS, {}, [MEDIAN])
    assert without == {("road", "bfs"): {"target": 1.5, "ours": 2.5}}


def test_a_traced_graph_of_unknown_size_is_refused():
    traced = {"road": {"bfs": {"rows": [], "walked": level_traces.walked(a_bfs())}}}
    with pytest.raises(level_traces.Malformed, match="road is traced"):
        roofline.rows_of(LIMITS, traced, [MEDIAN])


def test_plot_has_one_dot_per_row_and_one_color_per_kind_of_iteration():
    rows = level_traces.thinned(a_bfs(), "bfs")
    both = level_traces.plot("road", {"bfs": {"rows": rows}, "sssp": {"rows": rows[1:2]}})
    paths = ElementTree.fromstring(both).iter("{http://www.w3.org/2000/svg}path")
    strokes = [path.get("stroke") for path in paths if path.get("stroke")]
    assert len(strokes) == 7  # six kinds above, one of them below
    assert strokes[-1] == strokes[1] == svg_plots.look_of(1)[0]
    assert both.count("h0") == len(rows) + 1


def test_a_plot_that_nothing_draws_any_more_is_stale_and_goes(tmp_path, monkeypatch, capsys):
    shutil.copytree(logs.LOG, tmp_path / "log")
    monkeypatch.setattr(logs, "LOG", tmp_path / "log")
    monkeypatch.setattr(render, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(render, "DOCS", tmp_path)
    monkeypatch.setattr(render, "PARTS", ())
    plots = tmp_path / roofline.PLOTS
    assert command.main(["write"]) == 0
    assert command.main(["check"]) == 0
    drawn = {path.name for path in plots.glob("*.svg")}
    assert all(f"](plots/{name})" in (tmp_path / "levels.md").read_text() for name in drawn)
    assert "floors.svg" in drawn
    assert (tmp_path / "performance.md").read_text().startswith("# Performance\n")
    (plots / "older.svg").write_text("<svg/>")
    assert command.main(["check"]) == 1
    assert "older.svg" in capsys.readouterr().err
    assert command.main(["write"]) == 0
    assert {path.name for path in plots.glob("*.svg")} == drawn
