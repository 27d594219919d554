"""Traces become short tables and plots, and the lower bounds follow from them by the formula of the page."""

import json
import shutil
from xml.etree import ElementTree

import pytest

from scripts.bench import gpu, level_traces, performance_page, roofline, svg_plots

LIMITS = {
    "machine": "GPU",
    "measured": "2026-09-01",
    "call_us": 10.0,
    "latencies_us": {"claim": 0.5, "barrier": 0.5},
    "bytes_per_us": 100.0,
    "gathers_per_us": [[16, 50.0], [64, 25.0]],
    "targets_ms": {"bfs": {"road": 1.5}, "sssp": {}},
}
MEDIANS = ["road", "bfs", 2.5, 2.4, 3.0, 5, "cuGraph top-down", 30.0]


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


def a_run(*medians):
    traversal = {"graph": "road", "vertices": 100, "edges": 400}
    about = {"date": "2026-09-01", "commit": "0123abc", "machine": {"gpu": "GPU"}}
    tables = gpu.tables_of(
        {part: list(medians) if part == "single" else [] for part in gpu.COLUMNS}
    )
    return about | {"tables": tables, "traversals": [traversal]}


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
    assert sum(row.vertices for row in rows) == 2 * iterations


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


def test_a_trace_of_an_unknown_algorithm_is_refused():
    with pytest.raises(level_traces.Malformed, match="'road, dfs' is of no algorithm"):
        level_traces.with_traces({}, a_run(), {"road, dfs": a_bfs()})


def test_a_newer_trace_takes_the_place_of_an_older_one_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(level_traces, "LEVELS", tmp_path / "levels.json")
    for name, traces in {
        "old": {"road, bfs": a_chain(3), "road, sssp": a_chain(4)},
        "new": {"road, bfs": a_bfs()},
    }.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(a_run() | {"commit": name}))
        (tmp_path / f"{name}.trace.json").write_text(json.dumps(traces))
        assert level_traces.main(["add", str(tmp_path / f"{name}.json")]) == 0
    found = level_traces.read_levels()["road"]
    assert {algorithm: trace["commit"] for algorithm, trace in found.items()} == {
        "bfs": "new",
        "sssp": "old",
    }
    assert found["bfs"]["rows"] == level_traces.thinned(a_bfs(), "bfs")
    assert found["bfs"]["walked"] == level_traces.walked(a_bfs())
    assert level_traces.main(["add", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err


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


def test_medians_are_those_of_the_newest_table_that_has_the_row():
    lattice = ["lattice", *MEDIANS[1:]]
    older = a_run(["road", "bfs", 9.0, *MEDIANS[3:]], lattice)
    assert roofline.medians_of([older, a_run(MEDIANS), a_run()]) == {
        ("road", "bfs"): 2.5,
        ("lattice", "bfs"): 2.5,
    }


def test_a_row_without_a_trace_has_no_floor():
    traced = {
        "road": {
            "bfs": {
                "rows": level_traces.thinned(a_bfs(), "bfs"),
                "walked": level_traces.walked(a_bfs()),
            }
        }
    }
    with_floor = roofline.rows_of(LIMITS, traced, [a_run(MEDIANS)])["road", "bfs"]
    assert with_floor == {
        "levels": 4,
        "floor": pytest.approx(0.03024),
        "in the launch": 0.014,
        "target": 1.5,
        "ours": 2.5,
    }
    without = roofline.rows_of(LIMITS, {}, [a_run(MEDIANS)])
    assert without == {("road", "bfs"): {"target": 1.5, "ours": 2.5}}
    assert "| road | bfs | - | - | - | 1.5 | 2.5 | - |" in roofline.table_of(without)


def test_a_traced_graph_of_unknown_size_is_refused():
    traced = {"road": {"bfs": {"rows": [], "walked": level_traces.walked(a_bfs())}}}
    with pytest.raises(level_traces.Malformed, match="road is traced"):
        roofline.rows_of(LIMITS, traced, [a_run(MEDIANS) | {"traversals": []}])


def test_plot_has_one_dot_per_row_and_one_color_per_kind_of_iteration():
    rows = level_traces.thinned(a_bfs(), "bfs")
    both = level_traces.plot("road", {"bfs": {"rows": rows}, "sssp": {"rows": rows[1:2]}})
    paths = ElementTree.fromstring(both).iter("{http://www.w3.org/2000/svg}path")
    strokes = [path.get("stroke") for path in paths if path.get("stroke")]
    assert len(strokes) == 7  # six kinds above, one of them below
    assert strokes[-1] == strokes[1] == svg_plots.look_of(1)[0]
    assert both.count("h0") == len(rows) + 1


def test_a_plot_that_nothing_draws_any_more_is_stale_and_goes(tmp_path, monkeypatch, capsys):
    shutil.copytree(performance_page.LOG, tmp_path / "log")
    for name in ("PAGE", "README", "LOG"):
        monkeypatch.setattr(performance_page, name, tmp_path / getattr(performance_page, name).name)
    monkeypatch.setattr(performance_page, "BENCHMARKS", tmp_path)
    plots = tmp_path / roofline.PLOTS
    performance_page.README.write_text(f"{performance_page.BEGIN}\n{performance_page.END}\n")
    assert performance_page.main(["write"]) == 0
    assert performance_page.main(["check"]) == 0
    drawn = {path.name for path in plots.glob("*.svg")}
    assert all(f"](plots/{name})" in (tmp_path / "levels.md").read_text() for name in drawn)
    assert "floors.svg" in drawn
    (plots / "older.svg").write_text("<svg/>")
    assert performance_page.main(["check"]) == 1
    assert "older.svg" in capsys.readouterr().err
    assert performance_page.main(["write"]) == 0
    assert {path.name for path in plots.glob("*.svg")} == drawn
