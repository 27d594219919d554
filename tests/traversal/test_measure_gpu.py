"""The suites of a GPU on small graphs: on a GPU if there is one, else on the host harness."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from pipelines import comparison
from scripts.bench import gpu, gunrock, loads_gpu
from scripts.measure import environment, harness
from scripts.measure.log import Log
from scripts.measure.work import OURS, Inputs
from scripts.papers.experiments import GraphSource
from tests.support.devices import on_a_device, orders, running

IN_TURN = next(iter(orders(in_turn={"block": 64, "resident": 1}).values()))
INPUTS = Inputs(device="cuda")
pytestmark = on_a_device
# In place of Gunrock's program: right distances by all ways but one, which is wrong, and one, which dies. Of Python alone,
# as it is started many times.
STAND_IN = """#!{python} -IS
import heapq
import sys
from array import array
from pathlib import Path

folder, algorithm, _, *ways = sys.argv[1:]
offsets, targets, weights, sources = (
    array("f" if name == "weights" else "i", (Path(folder) / name).read_bytes())
    for name in ("offsets", "targets", "weights", "sources")
)
UNREACHED = 2**31 - 1 if algorithm == "bfs" else 3.4028234663852886e38

def distances(source):
    found = [UNREACHED] * (len(offsets) - 1)
    heap = [(0.0, source)]
    while heap:
        distance, u = heapq.heappop(heap)
        if found[u] != UNREACHED:
            continue
        found[u] = int(distance) if algorithm == "bfs" else distance
        for at in range(offsets[u], offsets[u + 1]):
            heapq.heappush(heap, (distance + weights[at], targets[at]))
    return found

for way in ways:
    if way == "thread_mapped":
        raise SystemExit("an illegal memory access")
    rows = array("i" if algorithm == "bfs" else "f")
    for source in sources:
        rows.extend(distances(source))
    if way == "merge_path_v2":
        rows[-1] += 1
    (Path(folder) / way).write_bytes(rows.tobytes())
    for source in sources:
        print(way, source, 500.0 if way.endswith("+") else 250.0)
    print(way, "ended")
"""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """A small graph, few sources, SciPy in place of cuGraph, and a clock that waits for no device."""
    little = GraphSource("little", generator="lattice", arguments=(5, 6, 0.1))
    monkeypatch.setattr(gpu, "GRAPHS", {"little": little})
    for name, value in {"SINGLE": 2, "MANY": (3,), "LOOPED": 2}.items():
        monkeypatch.setattr(gpu, name, value)
    monkeypatch.setitem(sys.modules, "pylibcugraph", SimpleNamespace())
    for module in (gpu, loads_gpu):
        monkeypatch.setattr(module, "timed_on_gpu", environment.timed)
    choose, encode = comparison.choose_baseline, comparison.in_our_encoding

    def in_our_encoding(answer, graph, algorithm):
        return gpu.graphs.array_module("cuda").asarray(encode(answer, graph.to("cpu"), algorithm))

    monkeypatch.setattr(comparison, "choose_baseline", lambda g, name: choose(g.to("cpu"), name))
    monkeypatch.setattr(comparison, "in_our_encoding", in_our_encoding)
    gpu.case_of.cache_clear()
    with running(IN_TURN):
        yield
    gpu.case_of.cache_clear()


def put_program(folder, monkeypatch):
    """Put the stand-in for Gunrock's program where the suite looks for it."""
    program = folder / "kepler_searches"
    program.write_text(STAND_IN.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setattr(gunrock, "GUNROCK", folder)


def test_one_source_and_many_are_compared_and_timed(tmp_path, monkeypatch):
    put_program(tmp_path, monkeypatch)
    with Log(tmp_path / "log", harness.KEY) as log:
        for work in gpu.works(INPUTS):
            if work.name.startswith("bfs"):
                harness.measure("gpu", work, INPUTS, log)
        found = {(line["work"], line["peer"]): line for line in log.done}
    assert [line["kind"] for line in log.done] == ["time"] * 6
    assert found["bfs, one source", OURS]["edges"] > 30
    assert found["bfs, 3 sources", OURS]["strategy"]
    assert {"dijkstra"} == {line["way"] for line in found.values() if line["peer"] == "cuGraph"}
    beside = found["bfs, one source", "Gunrock"]
    assert (beside["way"], beside["least"]) == ("block_mapped", 0.25)


def test_a_way_of_gunrock_that_dies_or_finds_other_distances_does_not_count(
    tmp_path, monkeypatch, capsys
):
    put_program(tmp_path, monkeypatch)
    case = gpu.case_of(INPUTS, "little")
    right = ["block_mapped", "block_mapped+", "thread_mapped+", "merge_path_v2+"]
    assert list(case.gunrock("bfs")) == right
    assert list(case.gunrock("sssp")) == ["block_mapped"]
    said = capsys.readouterr().out
    assert "an illegal memory access" in said
    assert "merge_path_v2 does not count: 1 distances from source" in said
    monkeypatch.setattr(gunrock, "WAYS", {"bfs": ("thread_mapped",)})
    gpu.case_of.cache_clear()
    with pytest.raises(NotImplementedError, match="no way"):
        gpu.beside_gunrock(gpu.case_of(INPUTS, "little"), "bfs", max)
    monkeypatch.setattr(gunrock, "GUNROCK", tmp_path / "nothing")
    with pytest.raises(ModuleNotFoundError, match="GUNROCK names its folder"):
        gunrock.program()


def test_a_distance_that_differs_from_the_baseline_is_found():
    case = gpu.case_of(INPUTS, "little")
    found = gpu.single(case, "bfs")().found
    wrong = {source: distance + 1 for source, distance in found.items()}
    assert gpu.differences(found, dict(found)) == ""
    assert "distances from source" in gpu.differences(found, wrong)


@pytest.mark.exhaustive
def test_loads_are_those_of_a_plain_loop(monkeypatch):
    monkeypatch.setattr(loads_gpu, "FLOWS", 3)
    case = gpu.case_of(INPUTS, "little")
    assert loads_gpu.betweenness(case, "bfs", 3, "lanes")().found.sum() > 0
    assert loads_gpu.flows(case, "bfs")().more["loads_share"] <= 1
    monkeypatch.setattr(loads_gpu, "reference", lambda *_: 1.5)
    with pytest.raises(SystemExit, match="loads differ"):
        loads_gpu.betweenness(case, "bfs", 3, "lanes")
