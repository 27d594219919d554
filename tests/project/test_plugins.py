"""Plug-ins: a strategy and a result kind that modules outside the package add work in the library and in the job."""

import os
import sys

import numpy as np
import pandas as pd
import pytest
from distributed import Client

from kepler_traverse import InputError, StrategyError, graph_from_edges, sssp, sssp_many, strategies
from kepler_traverse.plugins import VARIABLE
from pipelines import run_job
from pipelines.verify import main as verify
from tests.support.clusters import threads_of_this_process
from tests.support.processes import ROOT, ran

RNG = np.random.default_rng(7)
EDGES = pd.DataFrame(
    {
        "src": RNG.integers(0, 90, 400),
        "dst": RNG.integers(0, 90, 400),
        "weight": RNG.integers(0, 9, 400),
    }
)
SOURCES = np.unique(EDGES.src)[:7].tolist()
NAME = "scipy_dijkstra"


@pytest.fixture
def plugin(monkeypatch):
    monkeypatch.setenv(VARIABLE, "examples.dijkstra_plugin")


def farthest_of(frame, count):
    """The oracle: the farthest vertices of each source in a frame of distances."""
    frame = frame.sort_values(
        ["source", "distance", "vertex"], ascending=[True, False, True], ignore_index=True
    )
    frame.insert(1, "rank", frame.groupby("source").cumcount() + 1)
    return frame[frame["rank"] <= count].reset_index(drop=True)


# In a process of its own, because options of the job are made when it is imported.
OF_KIND = """
import sys
from pathlib import Path
import pandas as pd
from distributed import Client
from kepler_traverse import InputError, read_graph, sssp_many
from pipelines import run_job
from pipelines.batch_sources import main
from pipelines.verify import main as verify
from tests.project.test_plugins import farthest_of
from tests.support.clusters import threads_of_this_process

edges, folder, sources = sys.argv[1], sys.argv[2], ["v3", "v1", "v8"]
graph = read_graph(edges)
expected = farthest_of(sssp_many(graph, sorted(sources), cutoff=9), 2)
frame = sssp_many(graph, sorted(sources), result="farthest", n_farthest=2, cutoff=9)
pd.testing.assert_frame_equal(frame, expected)
stream = list(sssp_many(graph, sorted(sources), result="farthest", n_farthest=2, cutoff=9, stream=True))
pd.testing.assert_frame_equal(pd.concat(stream, ignore_index=True), expected)
try:
    sssp_many(graph, sources, result="farthest", n_farthest=0)
except InputError as error:
    assert "n_farthest must be" in str(error)
options = {"algorithm": "sssp", "sources": sources, "result": "farthest", "n_farthest": 2, "cutoff": 9, "batch_size": 1}
with threads_of_this_process(n_workers=2, memory_limit=0) as cluster, Client(cluster, set_as_default=False) as client:
    found = run_job(edges, output=folder, client=client, device="cpu", report=False, **options)
pd.testing.assert_frame_equal(found.to_pandas().sort_values(["source", "rank"], ignore_index=True), expected)
(Path(folder) / "part-000001.parquet").unlink()
again = run_job(edges, output=folder, resume=True, device="cpu", report=False, **options)
assert again.digest == found.digest
assert verify([folder, edges]) == 0
assert main(["--help"]) == 0
assert main([edges, "--sources", "v1", "--n-farthest", "2", "--output", folder + "x"]) == 2
"""


def test_a_result_kind_of_a_plugin_is_written_resumed_and_verified(tmp_path):
    frame = EDGES.assign(src="v" + EDGES.src.astype(str), dst="v" + EDGES.dst.astype(str))
    frame.to_parquet(tmp_path / "edges.parquet")
    environment = {**os.environ, VARIABLE: "examples.farthest_plugin", "PYTHONPATH": str(ROOT)}
    command = [
        sys.executable,
        "-c",
        OF_KIND,
        str(tmp_path / "edges.parquet"),
        str(tmp_path / "out"),
    ]
    done = ran(command, env=environment)
    assert done.returncode == 0, done.stderr
    assert "--n-farthest N" in done.stdout
    assert "--n-farthest is for --result farthest, not distances; leave it out" in done.stderr


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
    options = {
        "algorithm": "sssp",
        "sources": SOURCES,
        "device": "cpu",
        "report": False,
        "batch_size": 2,
    }
    expected = run_job(tmp_path / "edges.parquet", output=tmp_path / "own", **options)
    with (
        threads_of_this_process(n_workers=2, memory_limit=0) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        found = run_job(
            tmp_path / "edges.parquet",
            output=tmp_path / "out",
            client=client,
            strategy=NAME,
            **options,
        )
    assert found.digest == expected.digest
    assert NAME in found.manifest["strategy"]
    assert verify([str(tmp_path / "out"), str(tmp_path / "edges.parquet")]) == 0


def test_an_unknown_strategy_and_a_missing_plugin_are_errors(monkeypatch):
    graph = graph_from_edges(EDGES)
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(StrategyError, match=f"no strategy '{NAME}'"):
        sssp_many(graph, SOURCES, strategy=NAME)
    monkeypatch.setenv(VARIABLE, "no_such_module")
    with pytest.raises(
        InputError, match=r"plug-in 'no_such_module' cannot be imported.*KEPLER_PLUGINS"
    ):
        sssp_many(graph, SOURCES, strategy=NAME)
