"""Jobs on a GPU whose edges are in host memory: the digest of the CPU, for all kinds of hops."""

from __future__ import annotations

import json

import numpy as np
import pytest

from kepler_traverse import cuda, graph_from_edges, save_graph
from kepler_traverse.errors import CapacityError
from kepler_traverse.pipelines import run_job
from pipelines.output.schemas import OUTPUT_SCHEMAS
from pipelines.run import prepare, reading
from pipelines.worker.planning import Request
from tests.conftest import HAS_GPU
from tests.support import tiers
from tests.support.devices import frames_on_pandas, on_a_device, running
from tests.support.graphs import build, rmat

pytestmark = on_a_device

GRAPH = build(rmat(6, 8, seed=3), directed=True)
IDS = GRAPH.ids.tolist()
KINDS = {
    "summary": {},
    "nearest": {},
    "targets": {"targets": IDS[5:15]},
    "flows": {},
    "isochrones": {"cutoffs": [1, 2]},
    "distances": {},
    "predecessors": {},
    "levels": {},
    "k_nearest": {"nearest_k": 2},
    "betweenness": {},
    "nearest_targets": {"targets": IDS[5:15], "nearest_k": 3},
    "matrix": {},
}


@pytest.fixture
def on_gpu():
    with running(None if HAS_GPU else {"block": 64}), frames_on_pandas():
        yield


@pytest.mark.parametrize("result", tiers.few(list(KINDS), 4))
@pytest.mark.usefixtures("on_gpu")
def test_all_kinds_have_the_digest_of_the_cpu(tmp_path, result):
    asked = {"algorithm": "bfs", "sources": IDS[:8], "report": False, "result": result}
    asked |= KINDS[result]
    expected = run_job(GRAPH, output=tmp_path / "cpu", device="cpu", **asked)
    on_host = GRAPH.to("cuda", edges="host")
    found = run_job(on_host, output=tmp_path / "cuda", device="cuda", **asked)
    assert found.digest == expected.digest


def dense():
    """A graph whose edges take most of its memory."""
    src, dst = np.random.default_rng(5).integers(0, 600, (2, 600 * 100))
    return graph_from_edges(src, dst)


@pytest.mark.usefixtures("on_gpu")
def test_a_limit_that_the_graph_exceeds_keeps_its_edges_in_host_memory(tmp_path, monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(prepare, "say", said.append)
    graph = dense()
    asked = {"algorithm": "bfs", "sources": graph.ids[:8].tolist(), "report": False}
    asked |= {"result": "summary", "device": "cuda"}
    expected = run_job(graph, output=tmp_path / "on device", **asked)
    found = run_job(graph, output=tmp_path / "on host", gpu_memory=640_000, **asked)
    assert found.digest == expected.digest
    assert [text for text in said if "the edges stay in host memory (220 KiB)" in text], said
    plans = [
        json.loads((tmp_path / name / "_manifest.json").read_text())
        for name in ("on device", "on host")
    ]
    assert plans[0]["strategy"] != plans[1]["strategy"] == "bit_parallel_streamed"
    assert plans[1]["memory"]["graph"] == 8 * (graph.n_vertices + 1) + graph.ids.nbytes
    assert plans[1]["memory"]["total"] <= 640_000
    with pytest.raises(CapacityError, match="take a smaller graph or a larger limit"):
        run_job(graph, output=tmp_path / "too little", gpu_memory=9_000, **asked)


@pytest.mark.usefixtures("on_gpu")
def test_memory_that_runs_out_while_the_graph_moves_keeps_its_edges_in_host_memory(
    tmp_path, monkeypatch
):
    graph_there = reading._find_or_read

    def move(settings, *given):
        if settings.device != "cpu":
            raise MemoryError("no room")
        return graph_there(settings, *given)

    monkeypatch.setattr(reading, "_find_or_read", move)
    asked = {"sources": IDS[:4], "report": False, "result": "summary", "device": "cuda"}
    found = run_job(GRAPH, output=tmp_path / "out", algorithm="bfs", **asked)
    assert found.n_rows == 4
    weighted = build(rmat(6, 8, seed=3), np.ones(8 << 6))
    with pytest.raises(CapacityError, match="does not fit the memory of a GPU"):
        run_job(weighted, output=tmp_path / "weights", algorithm="sssp", **asked)


@pytest.mark.usefixtures("on_gpu")
def test_a_worker_has_edges_where_the_driver_has_them(tmp_path):
    save_graph(GRAPH, tmp_path / "graph")
    for edges in ("device", "host"):
        request = Request(algorithm="bfs", kind=OUTPUT_SCHEMAS["summary"], edges=edges)
        loaded = request.load(tmp_path / "graph", "cuda")
        assert loaded.derived.edges_on_host == (edges == "host")
        assert loaded.fingerprint == GRAPH.fingerprint
    assert cuda.available()
