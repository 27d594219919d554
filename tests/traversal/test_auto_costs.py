"""Estimates scale with the machine, fitting recovers constants from synthetic times, and searches survey a graph."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from kepler_traverse.auto import calibration, survey
from kepler_traverse.auto.costs import SPEED_OF_TERM, Costs, Machine, load_costs
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS_MULTI_SOURCE
from kepler_traverse.multi_source.one_at_a_time import one_at_a_time
from kepler_traverse.search.strategy import Shape
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP_MULTI_SOURCE
from scripts.regret import fit
from tests.support.graphs import build
from tests.support.plans import BFS, SSSP

CPU = Machine(cores=2, cache=1 << 20, copy=1e-10, load=1e-7, step=2e-9)
ROWS = [
    *(("bfs", row) for row in BFS_MULTI_SOURCE),
    *(("sssp", row) for row in SSSP_MULTI_SOURCE if row.default),
    *(("bfs", one_at_a_time(row, "bfs")) for row in BFS if row.default),
    *(("sssp", one_at_a_time(row, "sssp")) for row in SSSP if row.default),
]
WITHOUT_CONSTANTS = {"queue_warp", "frontier"}  # default where the first one cannot run


def shape_of(n=1000, m=5000, depth=20, **others):
    return Shape(n, m, False, depth, 4, 4, rounds=depth, **others)


@pytest.mark.parametrize(
    ("algorithm", "row"), ROWS, ids=lambda value: getattr(value, "name", value)
)
def test_every_strategy_that_auto_takes_has_an_estimate_that_grows_with_its_sources(algorithm, row):
    costs = load_costs(row.device)
    terms = row.terms(shape_of(), 64, 32, costs.measured_on)
    assert set(terms) <= set(SPEED_OF_TERM[row.device])
    if row.name in WITHOUT_CONSTANTS:
        return
    outputs = [{"keep": "all"}, {"keep": "counts"}, {"keep": "targets", "hubs": 60.0}]
    if row.finds_paths:
        outputs += [{"keep": "paths"}, {"keep": "paths", "hubs": 60.0}]
    for output in outputs:
        shape = shape_of(10**6, 10**7, **output)
        few, many = (
            costs.seconds(algorithm, row, shape, k, row.group_size(k), costs.measured_on)
            for k in (64, 65536)
        )
        assert 0 < few < many < float("inf"), output


def test_terms_scale_with_their_own_speeds():
    costs = Costs(device="cpu", measured_on=CPU, nanoseconds={})
    slow = Machine(cores=2, cache=1 << 20, copy=2e-10, load=1.5e-7, step=8e-9)
    assert costs.scaled({"write": 1.0, "miss": 1.0, "edge": 1.0}, slow) == pytest.approx(
        {"write": 2, "miss": 1.5, "edge": 4}
    )
    frozen = Machine(cores=2, cache=1 << 20, copy=1.0, load=1.0, step=1.0)
    assert costs.scaled({"edge": 1.0, "fetch": 1.0}, frozen) == {"edge": 16, "fetch": 2}, (
        "a calibration that was disturbed has a bound, and that of memory is narrow"
    )


PER_SOURCE = [
    (algorithm, row)
    for algorithm, row in ROWS
    if row.device == "cpu"
    and row.name not in {"bit_parallel", "hierarchy_sweep", "topological_sweep", *WITHOUT_CONSTANTS}
]


@pytest.mark.parametrize(
    ("algorithm", "row"), PER_SOURCE, ids=lambda value: getattr(value, "name", value)
)
def test_what_no_cache_holds_costs_more_where_neighbors_have_numbers_far_apart(algorithm, row):
    costs = load_costs("cpu")

    def per_edge(n, scatter, **others):
        # a depth at which no search for hops pulls
        shape = shape_of(n, 4 * n, 2000, scatter=scatter, **others)
        machine = costs.measured_on
        return costs.seconds(algorithm, row, shape, 64, row.group_size(64), machine) / (256 * n)

    large = per_edge(10**7, 1.0) / per_edge(10**7, 0.0)
    small = per_edge(10**4, 1.0) / per_edge(10**4, 0.0)
    assert large > 1.5
    assert small < 1.05
    most = per_edge(10**7, 1.0, reach=1e-3, walked=1e-3) / per_edge(
        10**7, 0.0, reach=1e-3, walked=1e-3
    )
    assert most < large, "searches that reach a part keep that part in the caches"


def test_estimates_decrease_with_cores_and_cache():
    row = next(row for row in BFS_MULTI_SOURCE if row.name == "source_per_thread")
    costs = Costs(
        device="cpu",
        measured_on=CPU,
        nanoseconds={"bfs source_per_thread": {"edge": 1.0, "miss": 1.0}},
    )

    def seconds(**changes):
        machine = Machine(**(vars(CPU) | changes))
        return costs.seconds("bfs", row, shape_of(10**6, 10**7), 64, 32, machine)

    assert seconds(cores=16) == pytest.approx(seconds() / 8)
    assert seconds(cache=1 << 30) < seconds()


def test_a_strategy_without_constants_is_never_the_cheapest():
    costs = Costs(device="cpu", measured_on=CPU, nanoseconds={})
    assert costs.seconds("bfs", BFS_MULTI_SOURCE[0], shape_of(), 64, 64, CPU) == float("inf")


def made_up_lines(constants: dict, graphs: int = 12) -> list[dict]:
    rng, lines = np.random.default_rng(2), []
    costs = Costs(device="cpu", measured_on=CPU, nanoseconds=constants)
    for graph in range(graphs):
        n = int(10 ** rng.uniform(3, 6))
        shape = shape_of(
            n,
            int(n * rng.uniform(2, 20)),
            int(10 ** rng.uniform(0.7, 3)),
            walked=rng.uniform(0.2, 1),
        )
        for k in (8, 64, 512):
            for row in BFS_MULTI_SOURCE:
                if row.device != "cpu" or "hierarchy" in row.needs:
                    continue
                line = {
                    "graph": f"graph {graph}",
                    "weights": "",
                    "algorithm": "bfs",
                    "sources": k,
                    "result": "distances",
                }
                line |= {
                    "device": "cpu",
                    "strategy": row.name,
                    "is_loop": False,
                    "group": row.group_size(k),
                }
                seconds = costs.seconds("bfs", row, shape, k, row.group_size(k), CPU)
                lines.append(
                    line | {"seconds": seconds, "shape": shape._asdict(), "speeds": vars(CPU)}
                )
    return lines


SHORT = {"bfs short_search": {"vertex": 50.0}}


def test_constants_come_back_out_of_the_times_that_they_make():
    constants = {
        "bfs bit_parallel": {"level": 2e4, "edge": 1.5, "write": 3.0},
        "bfs source_per_thread": {"start": 2e4, "vertex": 20.0, "edge": 2.0},
        **SHORT,
    }
    lines = made_up_lines(constants, graphs=6)
    costs = Costs(device="cpu", measured_on=CPU, nanoseconds={})
    found = fit.fit(lines, costs)
    for line in lines:
        assert fit.predicted(line, found, costs) == pytest.approx(line["seconds"], rel=0.05)
    checked = fit.cross_validated(lines, costs)
    assert checked["regret"]["largest"] < 1.1
    assert checked["errors"]["bfs source_per_thread"]["p90"] < 1.1


@pytest.mark.exhaustive
def test_cross_validation_shows_a_graph_that_no_other_resembles():
    lines = made_up_lines(
        {"bfs bit_parallel": {"level": 2e4, "edge": 1.5}, "bfs source_per_thread": {"edge": 2.0}}
        | SHORT
    )
    costs = Costs(device="cpu", measured_on=CPU, nanoseconds={})

    def max_error():
        return max(error["p90"] for error in fit.cross_validated(lines, costs)["errors"].values())

    assert max_error() < 1.1
    for line in lines:
        line["seconds"] *= {"graph 3": 10, "graph 5": 0.1}.get(line["graph"], 1)
    assert max_error() > 3


def test_a_fit_keeps_the_constants_of_other_devices(tmp_path):
    lines, output = tmp_path / "lines.jsonl", tmp_path / "costs.json"
    output.write_text(json.dumps({"cuda": {"nanoseconds": {"bfs bit_parallel": {"edge": 7.0}}}}))
    constants = {
        "bfs bit_parallel": {"level": 2e4, "edge": 1.5},
        "bfs source_per_thread": {"edge": 2.0},
    } | SHORT
    made = made_up_lines(constants, graphs=6)
    about = {"kind": "run", "machine": {}, "commit": "", "versions": {}}
    logged = [
        line | {"kind": "time", "least": line["seconds"], "peer": line["strategy"], "work": str(i)}
        for i, line in enumerate(made)
    ]
    lines.write_text("".join(json.dumps(line) + "\n" for line in [about, *logged]))
    fit.main([lines], output)
    found = json.loads(output.read_text())
    assert found["cuda"]["nanoseconds"] == {"bfs bit_parallel": {"edge": 7.0}}
    assert found["cpu"]["nanoseconds"]["bfs source_per_thread"]["edge"] == pytest.approx(
        2.0, rel=0.02
    )


# --- the survey of a graph -----------------------------------------------------------------------------------------------


def surveyed(graph, n_sources=1000, algorithm="bfs"):
    return survey.survey(graph, algorithm, (), n_sources)


def test_a_survey_sees_how_little_most_sources_of_a_directed_graph_reach():
    core = [(i, j) for i in range(40) for j in range(40) if i != j]
    leaves = [(v, v + 1) for v in range(100, 4000, 2)]  # each reaches one other vertex
    shape = surveyed(build(core + leaves, directed=True))
    assert shape.most > 0.4
    assert shape.reach < 0.1
    undirected = surveyed(build(core, directed=False))
    assert (undirected.reach, undirected.walked) == (1.0, 1.0)


def test_levels_of_a_truncated_search_are_extrapolated(monkeypatch):
    monkeypatch.setattr(survey, "_MIN_EDGES", 2000)
    n = 200_000
    along = surveyed(build([(v, v + 1) for v in range(n)], directed=False), n_sources=1)
    assert n / 4 <= along.depth <= 2 * n
    side = 300
    square = [(v, v + 1) for v in range(side * side) if (v + 1) % side] + [
        (v, v + side) for v in range(side * (side - 1))
    ]
    grid = surveyed(build(square, directed=False), n_sources=1)
    assert side / 2 <= grid.depth <= 4 * side


def test_weights_that_differ_widely_mean_more_rounds():
    rows = [(v, v + 1) for v in range(100)]
    even = surveyed(build(rows, [1.0] * 100), algorithm="sssp")
    uneven = surveyed(build(rows, [10.0 ** (v % 6) for v in range(100)]), algorithm="sssp")
    assert even.spread == 0 < uneven.spread
    assert even.rounds < uneven.rounds


@pytest.mark.parametrize(
    ("weights", "tail"),
    [([3.0], 1.0), ([0.0], 1.0), ([0.0, 0.0, 5.0], 100.0), ([1.0, 1.0, 10.0], 4.0)],
)
def test_the_tail_of_weights_is_their_mean_by_their_median(weights, tail):
    rows = [(v, v + 1) for v in range(30)]
    given = (30 * weights)[:30]
    assert surveyed(build(rows, given), algorithm="sssp").tail == pytest.approx(tail)


def test_piles_are_expected_to_relax_again_where_few_weights_are_large():
    """As measured: five times as long on a road network, and thirty times on a lattice, but not on a path or a star."""
    row = next(row for row in SSSP_MULTI_SOURCE if row.name == "near_far_per_thread")
    costs = load_costs("cpu")

    def longer(n_edges, depth):
        def seconds(tail):
            shape = shape_of(250_000, n_edges, depth, tail=tail)
            return costs.seconds("sssp", row, shape, 64, 64, costs.measured_on)

        assert seconds(1.5) < 1.3 * seconds(1.0), "ordinary weights"
        return seconds(72.0) / seconds(1.0)

    assert longer(500_000, 100_000) == 1, "a path"
    assert longer(730_000, 1800) > 3
    assert longer(730_000, 1800) < longer(980_000, 1800)
    assert longer(4_000_000, 12) < longer(980_000, 1800), "few rounds improve a vertex few times"


def test_equal_graphs_are_seen_equally():
    rows = np.random.default_rng(1).integers(0, 3000, (9000, 2)).tolist()
    assert surveyed(build(rows)) == surveyed(build(rows))


# --- the machine ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(calibration.numba_cache, "own_folder", lambda: tmp_path)
    calibration._load_or_measure.cache_clear()
    yield tmp_path
    calibration._load_or_measure.cache_clear()


def test_machine_speeds_are_measured_once_and_stored_per_user(folder, monkeypatch):
    found = calibration.get_machine("cpu")
    (file,) = folder.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    calibration._load_or_measure.cache_clear()
    monkeypatch.setattr(calibration, "_measure_cpu", lambda: pytest.fail("measured again"))
    assert calibration.get_machine("cpu") == found


@pytest.fixture
def measured(folder, monkeypatch):
    """The file of a machine that takes no time to measure."""
    monkeypatch.setattr(calibration, "_measure_cpu", lambda: CPU)
    calibration.get_machine("cpu")
    (file,) = folder.iterdir()
    return file


@pytest.mark.parametrize(
    "text",
    ["", "{}", '{"cores": 2}', "[1]", '{"cores":2,"cache":1,"copy":-1,"load":1,"step":1}', "nul"],
)
def test_a_file_that_says_no_machine_is_measured_again(measured, text):
    measured.write_text(text)
    calibration._load_or_measure.cache_clear()
    assert calibration.get_machine("cpu").copy == CPU.copy
    assert json.loads(measured.read_text())["copy"] == CPU.copy


def test_a_file_that_others_may_write_to_is_not_believed(measured):
    measured.write_text(json.dumps(vars(CPU) | {"copy": 123.0}))
    assert calibration._read(measured).copy == 123.0
    os.chmod(measured, 0o622)
    assert calibration._read(measured) is None


def test_missing_cache_folder_is_no_error(monkeypatch):
    monkeypatch.setattr(calibration.numba_cache, "own_folder", lambda: None)
    calibration._load_or_measure.cache_clear()
    assert calibration.get_machine("cpu").step > 0
    calibration._load_or_measure.cache_clear()


def test_machine_without_memory_for_measuring_uses_the_default_speeds(folder, monkeypatch):
    def short():
        raise MemoryError

    monkeypatch.setattr(calibration, "_measure_cpu", short)
    assert calibration._load_or_measure("cpu") == load_costs("cpu").measured_on
    assert not list(folder.iterdir())


def test_a_survey_without_memory_for_a_search_leaves_the_shape_of_the_degrees(monkeypatch):
    def no_memory(*_):
        raise MemoryError

    graph = build([(v, v + 1) for v in range(100)], [1.0] * 100)
    on_host = survey.survey(graph, "sssp", (), 64)
    by_degrees = survey._with_degrees_and_weights(graph, survey.outline(graph), "sssp")
    # The graph is on the host, so the statistics that a GPU would compute are those of the host.
    monkeypatch.setattr(survey, "_with_degrees_and_weights", lambda *_: by_degrees)
    monkeypatch.setattr(type(graph), "device", "cuda")
    monkeypatch.setattr(survey, "_search_samples", no_memory)
    shape = survey.survey(graph, "sssp", (), 64)
    assert on_host.depth > 0
    assert (shape.depth, shape.skew) == (0, on_host.skew)
