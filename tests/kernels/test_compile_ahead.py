"""Compiling in threads: each file once, errors where the kernel is needed, and the times that it took."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import numpy as np
import pytest

from kepler_traverse import cuda, graph_from_edges, plan_bfs_many
from kepler_traverse.api.compile_ahead import compile_ahead, compile_times
from kepler_traverse.cuda import compiler, csr_build, exact, vertex_ids
from kepler_traverse.cuda.compiler import Request, kernel, start_compiling
from kepler_traverse.errors import InputError
from tests.support.processes import PATIENCE


class Cupy:
    """A stand-in whose modules wait for ``gate`` before they are compiled."""

    def __init__(self):
        self.gate, self.compiled, self.devices, self.broken = threading.Event(), [], [], False
        self.cuda = SimpleNamespace(
            runtime=SimpleNamespace(
                getDevice=lambda: 3, setDevice=self.devices.append, getDeviceCount=lambda: 4
            )
        )
        self.cuda.Device = lambda _number=0: SimpleNamespace(
            compute_capability="90", attributes=_ATTRIBUTES
        )

    def RawModule(self, code, options, enable_cooperative_groups=False):  # noqa: ARG002
        return SimpleNamespace(
            compile=lambda: self._compile(options), get_function=lambda name: name
        )

    def _compile(self, options):
        assert self.gate.wait(PATIENCE)
        if self.broken:
            raise RuntimeError("a broken compiler")
        self.compiled.append(options)


_ATTRIBUTES = {"MultiProcessorCount": 132, "MaxThreadsPerMultiProcessor": 2048}


@pytest.fixture
def cupy(monkeypatch, tmp_path):
    stand_in = Cupy()
    for module in (cuda, compiler):
        monkeypatch.setattr(module, "cp", stand_in)
    monkeypatch.setattr("kepler_traverse.cuda.launch.cp", stand_in)
    monkeypatch.setattr("kepler_traverse.cuda.require", lambda: None)
    monkeypatch.setattr(compiler, "require", lambda: None)
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))
    compiler._module.cache_clear()
    yield stand_in
    stand_in.gate.set()
    compiler._module.cache_clear()


def test_compile_ahead_returns_at_once_and_wait_waits(cupy):
    ahead = start_compiling([Request(csr_build.ENTRIES[0]), Request(vertex_ids.ENTRIES[0])])
    assert not ahead.is_done
    assert not cupy.compiled
    cupy.gate.set()
    ahead.wait()
    assert ahead.is_done
    assert len(cupy.compiled) == 2


def test_kernels_of_one_file_are_compiled_once_whoever_comes_first(cupy):
    ahead = start_compiling(Request(entry) for entry in vertex_ids.ENTRIES)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(kernel(vertex_ids.ENTRIES[1], np.int32)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    cupy.gate.set()
    for thread in threads:
        thread.join()
    ahead.wait()
    assert len(cupy.compiled) == 1
    assert {each.function for each in found} == {"ids_count"}


def test_a_thread_compiles_for_the_callers_device(cupy):
    cupy.gate.set()
    start_compiling([Request(exact.ENTRIES[0])]).wait()
    assert cupy.devices == [3]


def test_an_error_is_raised_where_the_kernel_is_needed_and_the_next_call_compiles_again(cupy):
    cupy.broken = True
    cupy.gate.set()
    start_compiling([Request(exact.ENTRIES[0])]).wait()
    with pytest.raises(RuntimeError, match="a broken compiler"):
        kernel(exact.ENTRIES[0], np.int32)
    cupy.broken = False
    assert kernel(exact.ENTRIES[0], np.int32).function == "exact_any_beyond"


def test_times_count_modules_and_tell_waiting_from_compiling(cupy):
    cupy.gate.set()
    start_compiling([Request(exact.ENTRIES[0])]).wait()
    times = compile_times()
    assert times.modules == 1
    assert times.compiling > 0
    assert times.waiting == 0
    kernel(exact.ENTRIES[0], np.int64)
    assert compile_times().modules == 2
    assert compile_times().waiting > 0


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
@pytest.mark.parametrize("result", ["distances", "summary"])
@pytest.mark.parametrize("directed", [True, False])
def test_a_run_asks_for_files_of_the_library_alone(cupy, algorithm, result, directed):
    cupy.gate.set()
    compile_ahead(algorithm, result=result, directed=directed).wait()
    files = {key[0].stem for key in compiler._module._promises}
    assert {
        "csr_build",
        "vertex_ids",
        "graph_statistics",
        "persistent_cluster",
        "persistent_grid",
    } <= files
    assert ("edge_weights" in files) == (algorithm == "sssp")
    assert ("hop_histograms" in files) == (algorithm == "bfs" and result == "summary")
    assert ("distance_stats" in files) == (algorithm == "sssp" and result == "summary")


@pytest.mark.parametrize(
    "wrong", [{"result": "none"}, {"directed": 1}, {"weight_type": "int8"}, {"certify": "no"}]
)
@pytest.mark.usefixtures("cupy")
def test_wrong_arguments_are_refused(wrong):
    with pytest.raises(InputError):
        compile_ahead("bfs", **wrong)


@pytest.mark.gpu
@pytest.mark.parametrize("directed", [True, False])
def test_compile_ahead_compiles_what_a_run_needs(directed):
    cp = cuda.cp
    compiler._module.cache_clear()
    compile_ahead("bfs", directed=directed).wait()
    before = compile_times()
    src, dst = cp.asarray(np.arange(99)), cp.asarray(np.arange(1, 100))
    graph = graph_from_edges(src, dst, directed=directed)
    assert compile_times().modules == before.modules
    plan = plan_bfs_many(graph, n_sources=4)
    assert plan.run([0]).distance.get()[0].tolist() == list(range(100))
