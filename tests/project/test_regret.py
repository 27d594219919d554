"""The sweep works end to end on tiny graphs and finds a wrong strategy; numbers and page follow from its lines."""

import json
from dataclasses import replace

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from kepler_traverse import bfs_many, plan_bfs_many
from kepler_traverse.auto.costs import load_costs
from scripts.measure import __main__ as measure
from scripts.measure.work import Repeats
from scripts.regret import __main__ as regret
from scripts.regret import fit, graphs, suite
from scripts.regret.graphs import FAMILIES

SOME = ("road", "web", "star")


def swept(folder, monkeypatch, passes, size=60):
    """Measure graphs of this size and the files of a folder; return the log, and its lines as the fit reads them."""
    once = Repeats(most=1, seconds=3.0)  # each strategy is run twice, since all are compared before
    given = {"PASSES": passes, "SMALLEST": size, "LARGEST": size, "Repeats": lambda **_: once}
    given["LEAST"] = 60.0  # seconds: no strategy is left out because the machine is busy
    for name, value in given.items():
        monkeypatch.setattr(suite, name, value)
    log = folder / "lines.jsonl"
    measure.main(["run", "regret", "--graphs", str(folder), "--output", str(log)])
    return log, fit.read([log])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The log of a sweep that has a file, and its lines."""
    folder = tmp_path_factory.mktemp("sweep")
    chain = pyarrow.table({"src": [0, 1, 2], "dst": [1, 2, 3]})
    pyarrow.parquet.write_table(chain, folder / "chain.parquet")
    passes = ((8, "distances"), (1, "distances"), (8, "summary"), (8, "targets"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graphs, "FAMILIES", SOME)
        yield swept(folder, patch, passes)


def test_a_sweep_has_every_family_result_and_strategy_with_machine_and_commit(whole):
    every = [line for line in whole[1] if line["kind"] == "time"]
    assert {line["family"] for line in every} == {*SOME, "file"}
    assert {line["result"] for line in every} == {"distances", "summary", "targets"}
    assert {line["sources"] for line in every} == {1, 8}
    many = {(line["algorithm"], line["strategy"]) for line in every if line["sources"] == 8}
    of_bfs = ("short_search", "bit_parallel", "source_per_thread", "switch", "auto")
    of_sssp = ("short_search", "near_far_per_thread", "near_far", "auto")
    expected = {"bfs": of_bfs, "sssp": of_sssp}
    assert many == {(name, each) for name, listed in expected.items() for each in listed}
    one = {
        (line["algorithm"], line["strategy"], line["reverse"])
        for line in every
        if line["sources"] == 1
    }
    assert {
        ("bfs", "switch", "built"),
        ("bfs", "switch", "at hand"),
        ("bfs", "queue", ""),
        ("sssp", "frontier", ""),
    } <= one
    assert not [line for line in every if line["strategy"] in ("fifo", "h_bf", "bfs_4k")], (
        "published systems are left out"
    )
    for line in every:
        assert line["commit"]
        assert line["machine"]["cores"] >= 1
        assert line["versions"]["numpy"]
        assert line["seconds"] > 0
    assert regret.regrets(whole[1]), "cells of several strategies"


def case_of(size=60, weights="", n_sources=8, result="distances"):
    return suite.Case(
        suite.Cell(next(graphs.generated(size, size)), weights, n_sources, result), "cpu"
    )


def test_a_strategy_that_finds_something_else_ends_the_sweep(monkeypatch, tmp_path):
    def wrong(group, *rest):
        is_wrong = group.strategy == "source_per_thread"
        return {place: value + is_wrong for place, value in right(group, *rest).items()}

    right = suite.digests_of
    monkeypatch.setattr(suite, "digests_of", wrong)
    with pytest.raises(SystemExit, match="source_per_thread: source 0 differs from the others"):
        swept(tmp_path, monkeypatch, ((8, "distances"),))


def test_a_strategy_much_slower_than_the_best_is_left_out_with_its_seconds(monkeypatch):
    case = case_of(n_sources=4096)
    case.best = 1e-9
    monkeypatch.setattr(suite, "LEAST", 1e-9)
    monkeypatch.setattr(suite, "HOPELESS", 1e9)
    with pytest.raises(suite.TooSlowError, match=r"^over 0\."):
        suite.of_many(case, case.loop)
    monkeypatch.setattr(suite, "HOPELESS", 1e-9)
    with pytest.raises(suite.TooSlowError, match="by its estimate"):
        suite.of_many(case, "bit_parallel")


def test_checksums_of_a_sweep_see_one_changed_distance():
    graph = graphs.build(next(iter(graphs.generated(60, 60))), None, "cpu")
    group = plan_bfs_many(graph, n_sources=4, strategy="source_per_thread").run(np.arange(4))
    before = suite.digests_of(group, 0, 1, "bfs")
    wider = replace(group, distance=group.distance.astype(np.int32))
    assert suite.digests_of(wider, 0, 1, "bfs") == before, "whatever type hops have"
    wider.distance[2, 5] += 1
    after = suite.digests_of(wider, 0, 1, "bfs")
    assert [place for place in before if before[place] != after[place]] == [2]
    assert list(suite.digests_of(group, 3, 2, "bfs")) == [4, 6], "every second one of all"


@pytest.mark.parametrize("family", FAMILIES)
def test_generated_graphs_are_the_same_again_and_about_as_large_as_asked_for(family):
    (src, dst), (again, there) = (graphs.ends_of(family, 1000) for _ in range(2))
    assert np.array_equal(src, again)
    assert np.array_equal(dst, there)
    assert 400 <= np.unique([src, dst]).size <= 1600


def test_generated_web_has_sources_that_reach_little():
    source = next(source for source in graphs.generated(1000, 1000) if source.family == "web")
    graph = graphs.build(source, None, "cpu")
    reached = (bfs_many(graph, graph.ids, result="matrix") >= 0).sum(axis=1)
    assert np.median(reached) < 0.1 * graph.n_vertices
    assert reached.max() > 0.5 * graph.n_vertices


def line(strategy, seconds, **others):
    facts = {
        "kind": "time",
        "device": "cpu",
        "graph": "g",
        "work": "w",
        "reverse": "",
        "weights": "",
        "algorithm": "bfs",
        "sources": 8,
        "result": "distances",
    }
    facts |= {
        "machine": {"cpu": "C", "cores": 2, "gpu": None},
        "commit": "abc",
        "versions": {},
        "auto": "a",
        "planning": 0.001,
    }
    return facts | {"strategy": strategy, "seconds": seconds} | others


def test_numbers_and_page_are_those_of_the_lines():
    lines = [line("a", 0.4), line("b", 0.1), line("c", None, over=2.0), line("auto", 0.15)]
    lines += [line("a", 0.001, graph="short"), line("b", 0.0001, graph="short")]
    lines += [
        line("a", 0.1, graph="right"),
        line("b", 0.4, graph="right"),
        line("auto", 0.1, graph="right"),
    ]
    (numbers,) = regret.summarised(lines)["machines"]
    assert (numbers["cells"], numbers["long_cells"], numbers["largest"]) == (3, 2, 4.0)
    assert numbers["mean"] == 2.0
    assert numbers["corrected_mean"] == pytest.approx(1.5**0.5, abs=1e-4)
    assert [cell["graph"] for cell in numbers["worst"]] == ["g", "right"]
    page = regret.page(regret.summarised(lines))
    assert "| g | bfs | 8 | distances | a 400 ms | b 100 ms | 4.00 | 1.50 |" in page
    assert "geometric mean 2.0" in page


def test_predicted_and_measured_times_have_a_row_per_graph_with_the_worst_of_it():
    def row(graph, strategy, predicted, measured):
        return [graph, "", "bfs", 64, "distances", f"bfs {strategy}", predicted, measured]

    rows = [row("g", "a", 0.02, 0.01), row("g", "b", 0.01, 0.04), row("g", "c", 9.0, 0.001)]
    rows.append(row("h", "a", 0.011, 0.01))
    in_g, in_h = regret.by_graph(regret.in_digits(rows))
    assert (in_g.times, in_g.near) == (2, 1), "what takes less than 5 ms does not count"
    assert in_g.mean == pytest.approx(0.5**0.5)
    assert in_g[4:] == ("bfs, distances, 64 sources: b", 0.01, 0.04)
    assert in_h[:3] == ("h", 1, 1)
    numbers = {
        "short": regret.SHORT,
        "machines": [],
        "predictions": {"cpu": regret.in_digits(rows)},
    }
    text = regret.page(numbers)
    assert "2 of 3 within 2" in text
    assert "| g | 2 | 1 | 0.71 | bfs, distances, 64 sources: b | 10 ms | 40 ms | 0.25 |" in text


def test_a_constant_that_no_time_depends_on_keeps_its_value():
    amounts = [{"edge": 1e6 * n, "fetch": 0.1 * n} for n in (1, 2, 3)]
    seconds = np.array([0.005, 0.010, 0.015])
    found = fit.fitted(amounts, seconds, {"edge": 1.0, "fetch": 40.0})
    assert found["edge"] == pytest.approx(5.0, rel=0.05), "the times decide, and not what it was"
    kept = fit.fitted(
        [{"edge": 1e6, "fetch": 1e4}], np.array([0.0014]), {"edge": 1.0, "fetch": 40.0}
    )
    assert kept == pytest.approx({"edge": 1.0, "fetch": 40.0}, rel=0.01)


def test_short_searches_and_hierarchies_are_measured_where_they_apply(monkeypatch, tmp_path):
    monkeypatch.setattr(graphs, "FAMILIES", ("lattice", "social"))
    passes = ((64, "within"), (64, "nearest"), (64, "hierarchy"))
    _, every = swept(tmp_path, monkeypatch, passes, size=200)
    lines = [line for line in every if line["kind"] == "time"]
    ways = {(line["algorithm"], line["result"], line["strategy"]) for line in lines}
    for algorithm in ("bfs", "sssp"):
        assert {
            (algorithm, "within", "short_search"),
            (algorithm, "nearest", "from_targets"),
            (algorithm, "hierarchy", "hierarchy_sweep"),
        } <= ways
    assert {line["graph"] for line in lines if line["result"] == "hierarchy"} == {"lattice 200"}
    fitted = [line for line in lines if fit.usable(line)]
    assert fitted
    assert all(fit.amounts_of(line, load_costs("cpu")) for line in fitted)


def test_of_what_was_measured_again_the_fastest_counts(tmp_path):
    about = {"kind": "run", "machine": {}, "commit": "", "versions": {}}
    key = {"kind": "time", "device": "cpu", "graph": "g", "work": "w"}
    lines = [about]
    lines += [key | {"peer": "a", "least": least} for least in (0.4, 0.2)]
    lines += [key | {"kind": "left", "peer": name, "why": "over 0.1"} for name in "ab"]
    lines += [key | {"peer": "a", "least": 0.1, "graph": "other"}]
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    found = [
        (each["graph"], each["strategy"], each["seconds"], each["over"])
        for each in fit.read([tmp_path / "lines.jsonl"])
    ]
    assert found == [("g", "a", 0.2, None), ("g", "b", None, 0.1), ("other", "a", 0.1, None)]


def test_a_strategy_that_was_cut_off_has_at_least_the_regret_that_it_had_by_then():
    (cell,) = regret.regrets([line("a", None, over=0.8), line("b", 0.1), line("c", 0.2)])
    assert cell["regret"] == pytest.approx(8.0)


@pytest.mark.exhaustive
def test_constants_are_fitted_unless_those_before_are_better(whole, tmp_path, monkeypatch, capsys):
    kept = {"name": "a GPU", "device": "cuda"}
    before = {"machines": [kept | {"device": "cpu"}, kept], "predictions": {}}
    for name, text in (("COSTS", "{}"), ("NUMBERS", json.dumps(before)), ("PAGE", "")):
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(regret, name, tmp_path / name)
    monkeypatch.setattr(regret, "load_costs", lambda *_: costs)
    costs = load_costs("cpu")
    regret.load_costs.cache_clear = lambda: None
    log = str(whole[0])
    assert regret.main(["fit", log]) == 0
    assert "after: 0 cells" in capsys.readouterr().out, "all are short"
    found = json.loads((tmp_path / "COSTS").read_text())["cpu"]["nanoseconds"]
    assert set(found) == {
        "bfs bit_parallel", "bfs short_search", "bfs source_per_thread", "bfs switch repeated",
        "sssp near_far_per_thread", "sssp near_far repeated", "sssp short_search",
    }  # fmt: skip
    assert all(value > 0 for terms in found.values() for value in terms.values())
    assert regret.main(["numbers", log]) == 0
    numbers = json.loads((tmp_path / "NUMBERS").read_text())
    assert [each["device"] for each in numbers["machines"]] == ["cuda", "cpu"]
    means = iter([1.0, 1.1])
    monkeypatch.setattr(regret, "mean", lambda _values: next(means))
    (tmp_path / "COSTS").write_text("{}")
    assert regret.main(["fit", log]) == 1
    assert (tmp_path / "COSTS").read_text() == "{}", "the new constants are worse"


def test_constants_are_adjusted_to_choose_a_fast_strategy(monkeypatch):
    """``b`` is a little faster than ``a`` on most graphs, and much slower on some, which one constant cannot distinguish."""
    monkeypatch.setattr(fit, "amounts_of", lambda line, _costs: {"edge": 1e9 * line["edges"]})
    monkeypatch.setattr(fit, "strategy_of", lambda line: line["strategy"])
    monkeypatch.setattr(fit, "cost_key", lambda algorithm, strategy: f"{algorithm} {strategy}")
    lines = []
    for edges, ratio in enumerate([0.85] * 5 + [5.0] * 2, 1):
        lines += [
            line(name, edges * each, graph=str(edges), edges=edges)
            for name, each in (("a", 1.0), ("b", ratio))
        ]

    def faster(constants):
        return min(constants, key=lambda key: constants[key]["edge"])

    by_errors = {
        f"bfs {name}": fit.fitted(
            [{"edge": 1e9 * each["edges"]} for each in own],
            np.array([each["seconds"] for each in own]),
        )
        for name in "ab"
        for own in [[each for each in lines if each["strategy"] == name]]
    }
    assert faster(by_errors) == "bfs b"
    assert faster(fit.adjusted(lines, None, by_errors)) == "bfs a"
