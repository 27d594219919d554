"""Plug-ins: a strategy that a module outside the package adds works in the library and in the job."""

import numpy as np
import pandas as pd
import pytest
from distributed import Client

from kepler_traverse import InputError, StrategyError, graph_from_edges, sssp, sssp_many, strategies
from kepler_traverse.plugins import VARIABLE
from pipelines import run_job
from pipelines.verify import main as verify
from tests.support.clusters import threads_of_this_process

RNG = np.random.default_rng(7)
EDGES = pd.DataFrame({"src": RNG.integers(0, 90, 400), "dst": RNG.integers(0, 90, 400), "weight": RNG.integers(0, 9, 400)})
SOURCES = np.unique(EDGES.src)[:7].tolist()
NAME = "scipy_dijkstra"


@pytest.fixture
def plugin(monkeypatch):
    monkeypatch.setenv(VARIABLE, "examples.dijkstra_plugin")


@pytest.mark.usefixtures("plugin")
def test_a_strategy_of_a_plugin_is_listed_and_searches():
    graph = graph_from_edges(EDGES)
    assert NAME in strategies().query("algorithm == 'sssp' and sources == 'one'")["name"].tolist()
    expected = sssp_many(graph, SOURCES, cutoff=12)
    pd.testing.assert_frame_equal(sssp_many(graph, SOURCES, cutoff=12, strategy=NAME), expected)
    with pytest.raises(StrategyError, match="finds distances only"):
        sssp(graph, SOURCES[0], strategy=NAME)


@pytest.mark.usefixtures("plugin")
def test_a_strategy_of_a_plugin_runs_in_the_job_and_is_verified(tmp_path):
    EDGES.to_parquet(tmp_path / "edges.parquet")
    options = {"algorithm": "sssp", "sources": SOURCES, "device": "cpu", "report": False, "batch_size": 2}
    expected = run_job(tmp_path / "edges.parquet", output=tmp_path / "own", **options)
    with threads_of_this_process(n_workers=2, memory_limit=0) as cluster, Client(cluster, set_as_default=False) as client:
        found = run_job(tmp_path / "edges.parquet", output=tmp_path / "out", client=client, strategy=NAME, **options)
    assert found.digest == expected.digest
    assert NAME in found.manifest["strategy"]
    assert verify([str(tmp_path / "out"), str(tmp_path / "edges.parquet")]) == 0


def test_an_unknown_strategy_and_a_missing_plugin_are_errors(monkeypatch):
    graph = graph_from_edges(EDGES)
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(StrategyError, match=f"no strategy '{NAME}'"):
        sssp_many(graph, SOURCES, strategy=NAME)
    monkeypatch.setenv(VARIABLE, "no_such_module")
    with pytest.raises(InputError, match=r"plug-in 'no_such_module' cannot be imported.*KEPLER_PLUGINS"):
        sssp_many(graph, SOURCES, strategy=NAME)
