"""Processes that are forked after a traversal: each call works, or is one error that names spawn and forkserver."""

import os
import pickle
import select
import signal
from types import SimpleNamespace

import pytest

from kepler_traverse import cuda
from kepler_traverse.errors import ForkError
from tests.support.processes import PATIENCE, ran_after

# Every public call, made in a child of a process that has searched on threads, and in a child of that child.
CALLS = """
import os, sys
import numpy as np
import kepler_traverse as kt
from kepler_traverse.certificate import certify_many

src, dst = np.arange(3000), np.arange(1, 3001)
graph = kt.graph_from_edges(src, dst, np.ones(3000), directed=False)
frame = kt.sssp(graph, 0)
many = kt.plan_sssp_many(graph, n_sources=3)
found = many.run([0, 1, 2])
levels = kt.plan_bfs_many(graph, n_sources=20, strategy="bit_parallel")  # its kernels run on the threads of OpenMP
levels.run(np.arange(20))
assert kt.certify(graph, frame).valid
import numba
assert numba.threading_layer() == "omp", numba.threading_layer()

CALLS = {
    "bfs": lambda: kt.bfs(graph, 1),
    "sssp": lambda: kt.sssp(graph, 1),
    "bfs_many": lambda: kt.bfs_many(graph, [1, 2, 3]),
    "sssp_many": lambda: kt.sssp_many(graph, [1, 2, 3]),
    "nearest": lambda: kt.sssp_many(graph, [1, 2, 3], result="nearest"),
    "plan_bfs": lambda: kt.plan_bfs(graph)(1),
    "plan_sssp": lambda: kt.plan_sssp(graph)(1),
    "a plan of the parent": lambda: many.run([3, 4]),
    "another plan of the parent": lambda: levels.run(np.arange(20)),
    "certify": lambda: kt.certify(graph, frame),
    "certify_many": lambda: certify_many(graph, np.arange(3), found.distance.copy()),
    "graph_from_edges": lambda: kt.graph_from_edges(src, dst),
    "reverse": lambda: graph.reverse,
    "paths": lambda: kt.paths(frame, [2]),
}


def call_all(who):
    for name, call in CALLS.items():
        try:
            call()
            end = "works"
        except kt.KeplerError as error:
            end = f"{type(error).__name__}: {error}"
        print(f"{who}|{name}|{end}", flush=True)


if os.fork() == 0:
    call_all("child")
    if os.fork() == 0:
        call_all("grandchild")
        os._exit(0)
    os._exit(os.waitstatus_to_exitcode(os.wait()[1]))
status = os.waitstatus_to_exitcode(os.wait()[1])
call_all("parent")
sys.exit(status)
"""


# The only calls of the process are those of a child of it, which begins before the first call.
BEFORE = """
import os
import numpy as np
import kepler_traverse as kt
if os.fork() == 0:
    graph = kt.graph_from_edges(np.arange(100), np.arange(1, 101))
    os._exit(0 if len(kt.bfs_many(graph, [0, 1])) == 201 else 1)
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The two programs, run to their ends, after the imports of other projects that they share."""
    shared = "import numba, numpy, pandas, pyarrow.parquet"
    return ran_after(shared, tmp_path_factory.mktemp("outputs"), (CALLS, [], {}), (BEFORE, [], {}))


@pytest.fixture(scope="module")
def ends(programs):
    """What became of each call, by process and name."""
    done = programs[0]
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "Terminating" not in done.stderr
    return {tuple(line.split("|")[:2]): line.split("|")[2] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("who", ["child", "grandchild"])
def test_a_call_after_a_fork_works_or_says_what_to_do(ends, who):
    mine = {name: end for (process, name), end in ends.items() if process == who}
    assert len(mine) == 14
    refused = {name: end for name, end in mine.items() if end != "works"}
    for name, end in refused.items():
        assert end.startswith("ForkError: this process was forked"), (name, end)
        assert "multiprocessing.get_context('spawn') or 'forkserver'" in end
    assert set(refused) == {"another plan of the parent"}


def test_the_parent_goes_on_after_a_fork(ends):
    assert {end for (who, _), end in ends.items() if who == "parent"} == {"works"}


def forked(call):
    """What a call raises in a child of this process."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            call()
            error = None
        except BaseException as found:
            error = found
        os.write(write, pickle.dumps(error))
        os._exit(0)
    os.close(write)
    ready, _, _ = select.select([read], [], [], PATIENCE)
    if not ready:
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert ready, "the child hangs"
    with open(read, "rb") as pipe:
        return pickle.loads(pipe.read())


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_gpu_of_the_parent_is_refused_in_a_forked_child_and_the_cpu_is_not_taken_in_silence(
    monkeypatch,
):
    from kepler_traverse.cuda.compiler import Kernel
    from kepler_traverse.graph import read

    class Lost(Exception):
        pass

    runtime = SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=Lost)
    monkeypatch.setattr(cuda, "cp", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    monkeypatch.setattr(cuda, "_has_answered", False)
    kernel = Kernel(entry=None, function=len, dtypes=())
    assert forked(lambda: kernel.function("")) is None, "nothing was used yet"
    assert cuda.available()
    for call in (
        cuda.available,
        cuda.require,
        lambda: read._find_device("auto"),
        lambda: kernel.function(""),
    ):
        error = forked(call)
        assert isinstance(error, ForkError), error
        assert "used a GPU" in str(error)
    assert cuda.available()


def test_processes_that_are_spawned_or_forked_before_the_first_call_are_none_of_it(programs):
    assert programs[1].returncode == 0, programs[1].stderr
