"""The GPU measurements of scripts/evidence on small graphs: on a GPU if there is one, else on the host harness."""

from __future__ import annotations

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas
import pytest

from kepler_traverse import graph_from_edges
from pipelines import comparison
from scripts.bench import large_graphs
from scripts.evidence import __main__ as trust
from scripts.evidence import gpu, large_graph, page
from scripts.papers.experiments import GraphSource
from tests.support.devices import on_a_device, orders, running

IN_TURN = next(iter(orders(in_turn={"block": 64, "resident": 1}).values()))
pytestmark = on_a_device


@pytest.fixture(autouse=True)
def _device():
    with running(IN_TURN):
        yield


def small_graph(seed, weight_type="auto"):
    rng = np.random.default_rng(seed)
    weights = (
        rng.integers(0, 31, 80) if seed % 2 == 0 else rng.exponential(1, 80).astype(np.float32)
    )
    src, dst = rng.integers(0, 25, (2, 80))
    kind = ("integers", "floats")[seed % 2]
    return graph_from_edges(src, dst, weights, directed=seed < 2, weight_type=weight_type), kind


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(gpu, "random_graph", small_graph)
    rows = {
        name: calls._replace(
            strategies=[
                row
                for row in calls.strategies
                if row.name in ("queue_warp", "frontier") or row.device == "cpu"
            ],
            several=calls.several_of("cuda")[-1:],
        )
        for name, calls in gpu.ALGORITHMS.items()
    }
    monkeypatch.setattr(gpu, "ALGORITHMS", rows)


@pytest.fixture
def scipy_instead(monkeypatch):
    def baseline_of(graph, algorithm):
        return comparison.choose_baseline(graph.to("cpu"), algorithm)

    def in_our_encoding(answer, graph, algorithm):
        return gpu.cuda.cp.asarray(comparison.in_our_encoding(answer, graph.to("cpu"), algorithm))

    monkeypatch.setattr(gpu, "choose_baseline", baseline_of)
    monkeypatch.setattr(gpu, "in_our_encoding", in_our_encoding)


OPTIONS = SimpleNamespace(
    parity_graphs=2, parity_seconds=600, bits_graphs=1, graphs=None, gpu_answers=6, gpu_cases=1
)


@pytest.mark.usefixtures("small", "scipy_instead")
def test_parity_counts_what_is_equal_and_what_differs(monkeypatch):
    figures = gpu.measure_parity(OPTIONS)
    assert figures["errors"] == []
    assert set(figures["rows"]) == {"bfs", "sssp, integers", "sssp, floats"}
    for name in ("bfs", "sssp, integers"):
        row = figures["rows"][name]
        assert row["results"] == row["certified"] == row["equal"] == 3 * row["graphs"] > 0
        assert row["distances"] > 0 == row["differing"]
    right = gpu.in_our_encoding

    def one_off(*arguments):
        distance = right(*arguments)
        distance[7] += 1
        return distance

    monkeypatch.setattr(gpu, "in_our_encoding", one_off)
    wrong = gpu.measure_parity(OPTIONS)["rows"]["bfs"]
    assert (wrong["equal"], wrong["differing"], wrong["certified"]) == (
        0,
        wrong["results"],
        wrong["results"],
    )
    monkeypatch.setattr(gpu, "choose_baseline", lambda *_: 1 / 0)
    assert "graph 0: ZeroDivisionError" in gpu.measure_parity(OPTIONS)["errors"][0]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_bits_are_compared_with_those_of_the_cpu(device):
    figures = gpu.measure_bits(OPTIONS, device)
    assert figures["errors"] == []
    assert figures["equal"] == figures["distances"] > (200 if device == "cuda" else 50)
    assert figures["equal_predecessors"] == figures["predecessors"]


@pytest.mark.exhaustive
@pytest.mark.usefixtures("small")
def test_evidence_compares_many_sources_at_once_with_each_alone(monkeypatch, tmp_path):
    src, dst = np.random.default_rng(3).integers(0, 25, (2, 60))
    pandas.DataFrame({"src": src, "dst": dst}).to_parquet(tmp_path / "some.parquet")
    for name, value in {"GROUP_SIZES": (1, 33), "DIFFERENT": 8, "COMPARED_AT_ONCE": 20}.items():
        monkeypatch.setattr(gpu, name, value)
    options = SimpleNamespace(graphs=tmp_path)
    figures = gpu.measure_many(options)
    assert figures["errors"] == []
    assert figures["graphs"] == {"some": {"searches": 136, "equal": 136}}
    assert len(figures["strategies"]) > 1
    assert "136 of 136 searches in groups of 1, 33" in page_of("gpu_many", figures)
    calls = gpu.ALGORITHMS["bfs"]
    shallow = calls._replace(one=partial(calls.one, max_depth=1))
    monkeypatch.setitem(gpu.ALGORITHMS, "bfs", shallow)
    assert gpu.measure_many(options)["graphs"]["some"]["equal"] < 136


@pytest.mark.usefixtures("small")
def test_certificate_is_timed_after_it_rejected_a_fault(monkeypatch):
    monkeypatch.setattr(
        gpu, "COST_GRAPHS", (GraphSource("small", generator="rmat", arguments=(5, 4)),)
    )
    monkeypatch.setattr(gpu, "COST_SOURCES", {("cuda", "bfs"): 9, ("cuda", "sssp"): 3})
    monkeypatch.setattr(gpu, "COST_REPEATS", 1)
    figures = gpu.measure_cost(OPTIONS)
    assert figures["errors"] == []
    assert [row["algorithm"] for row in figures["rows"]] == ["bfs", "sssp"]
    assert all(row["certificate"] > 0 and row["certificate_of_many"] > 0 for row in figures["rows"])
    assert "| small | bfs |" in page_of("gpu_cost", figures)
    monkeypatch.setattr(
        gpu, "certify_many", lambda *_: SimpleNamespace(valid=True, require=lambda: None)
    )
    assert "was not noticed" in gpu.measure_cost(OPTIONS)["errors"][0]


def test_faults_are_found_by_the_certificates_of_a_gpu(monkeypatch):
    monkeypatch.setattr(gpu.fault_injection, "FAULTS", gpu.fault_injection.FAULTS[::9])
    monkeypatch.setattr(gpu.fault_injection, "KINDS", ("hops", "floats"))
    figures = gpu.measure_faults(OPTIONS)
    assert (figures["answers"] >= 6, figures["alarms"]) == (True, 0)
    for of in figures["classes"].values():
        assert of["certify"][0] == of["certify"][1] > 0
    assert "correct results were certified" in page_of("gpu_faults", figures)


def test_a_graph_beyond_a_boundary_is_built_searched_and_certified(monkeypatch):
    for name, value in {"SCALE": 6, "EDGE_FACTOR": 6, "PIECE": 100, "BOUNDARY": 200}.items():
        monkeypatch.setattr(large_graph, name, value)
    monkeypatch.setattr(large_graphs, "PIECE", 100)
    figures = large_graph.measure_huge(OPTIONS)
    assert figures["errors"] == []
    assert (figures["rows"], figures["type_of_targets"]) == (384, "int32")
    assert (figures["looked_up"], figures["lost"], figures["certified"]) == (300, 0, 6)
    assert figures["faults"][0] == figures["faults"][1] > 0
    assert "edges turned round" in page_of("huge", figures)
    monkeypatch.setattr(large_graph, "plan_sssp", lambda _graph: 1 / 0)
    figures = large_graph.measure_huge(OPTIONS)
    assert len(figures["errors"]) == 1
    assert figures["certified"] == 4


def page_of(key, figures):
    return page.page(
        {key: {"date": "2026-01-01", "commit": "abc", "machine": "a GPU", "figures": figures}}
    )


def test_figures_measured_elsewhere_are_added_and_a_measure_that_fails_stops_no_other(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(trust, "MEASURED", tmp_path / "guarantees.json")
    monkeypatch.setattr(trust, "PAGE", tmp_path / "guarantees.md")
    monkeypatch.setattr(trust, "machine", lambda: {"gpu": "a GPU", "driver": "1"})
    monkeypatch.setitem(trust.GPU_MEASURES, "parity", lambda _: 1 / 0)
    bits = {
        "graphs": 2,
        "distances": 7,
        "equal": 7,
        "predecessors": 7,
        "equal_predecessors": 7,
        "errors": [],
    }
    monkeypatch.setitem(trust.GPU_MEASURES, "gpu_bits", lambda _: bits)
    there = tmp_path / "there.json"
    assert (
        trust.main(
            ["measure", "--only", "parity", "gpu_bits", "--output", str(there), "--commit", "abc"]
        )
        == 1
    )
    assert "failed: parity" in capsys.readouterr().err
    assert list(json.loads(there.read_text())) == ["gpu_bits"]
    assert not trust.PAGE.exists()
    assert trust.main(["add", str(there)]) == 0
    assert trust.main(["check"]) == 0
    text = trust.PAGE.read_text()
    assert "7 of 7 arrays of distances" in text
    assert ", commit abc, a GPU, driver 1)" in text
    _, _, of_cugraph = text.partition("## Equal to cuGraph\n")
    assert "Not measured yet." in of_cugraph.partition("\n## ")[0]
