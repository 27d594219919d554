"""Runs of little work, which have no worker processes: the same results, and the same promises about failures."""

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from kepler_traverse.cpu import compile_clock
from pipelines import warm
from pipelines.batch_sources import main
from pipelines.cli import signals, steps
from pipelines.cli.command_line import parse_flags
from pipelines.cli.settings import read_settings
from pipelines.cli.supervisor import UNWATCHED, Supervision
from pipelines.run.batch_run import compile_seconds
from pipelines.run.engine import KeplerEngine
from pipelines.run.memory_plan import Load, Machine, Sizing, runs_in_this_process
from pipelines.scheduling.errors import ProcessUnusableError
from pipelines.scheduling.executor import Task
from pipelines.scheduling.in_process import NAME, InProcessExecutor
from pipelines.scheduling.scheduler import Window
from pipelines.worker.phase_timer import PhaseTimer
from scripts.bench import startup_job
from scripts.measure.work import Inputs
from tests.support.forks import forked, ran_forked
from tests.support.jobs import Observer, manifest_of, parts_of, write_edges
from tests.support.processes import PATIENCE, finish, session_of, started, wait_until


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    rng = np.random.default_rng(6)
    src, dst = rng.integers(0, 500, (2, 2500))
    src[:100] = 7  # a hub
    return write_edges(
        tmp_path_factory.mktemp("edges") / "edges.parquet", src, dst, rng.integers(1, 99, src.size)
    )


def flags(edges, *words, size="3"):
    same = ["--random-sources", "12", "--batch-size", size, "--device", "cpu", "--json"]
    return [str(word) for word in [edges, *same, *words]]


def start(argv, folder, before="", by=forked):
    """Start the program, after some code has been run in its process."""
    code = f"import sys\n{before}\nfrom pipelines import batch_sources\nsys.exit(batch_sources.program())"
    return by(code, *argv, "--output", folder)


def in_new_python(code, *words):
    """Start a program that has not imported anything."""
    return started([sys.executable, "-c", code, *words])


def finished(argv, folder, before="", by=in_new_python):
    with start(argv, folder, before, by) as job:
        return finish(job)


@pytest.mark.parametrize(
    "words",
    [
        ["--algorithm", "sssp", "--result", "predecessors"],
        ["--result", "summary"],
        ["--result", "nearest", "--undirected"],
    ],
    ids=["predecessors", "summary", "nearest"],
)
@pytest.mark.exhaustive  # as tests/frozen/test_frozen_behaviour.py, with workers that are threads
def test_a_run_in_process_writes_the_bytes_of_a_run_on_a_cluster(edges, tmp_path, capsys, words):
    argv = flags(edges, *words, size="auto")
    assert main([*argv, "--output", str(tmp_path / "here")]) == 0
    assert "dashboard: " not in capsys.readouterr().err
    # The address of a dashboard is asked for, so there is a cluster.
    with_dashboard = ["--dashboard-address", "localhost:0"]
    assert main([*argv, *with_dashboard, "--output", str(tmp_path / "there")]) == 0
    assert "dashboard: http" in capsys.readouterr().err
    here = manifest_of(tmp_path / "here")
    there = manifest_of(tmp_path / "there")
    assert {part["worker"] for part in here["parts"]} == {NAME}
    assert NAME not in {part["worker"] for part in there["parts"]}
    assert here["digest"] == there["digest"]
    assert parts_of(tmp_path / "here") == parts_of(tmp_path / "there")
    assert set(here["seconds"]) == {"read", "build", "plan", "compile", "start", "traverse"}
    assert all("compile" in part["phases"] for part in [*here["parts"], *there["parts"]])


def test_strategy_of_a_run_in_process_is_the_fastest_by_estimate_for_all_threads(tmp_path):
    row, column = np.divmod(np.arange(150 * 150), 150)
    src = np.concatenate([np.flatnonzero(column < 149), np.flatnonzero(row < 149)])
    dst = src + np.repeat([1, 150], src.size // 2)
    weight = np.random.default_rng(0).integers(1, 100, src.size)
    write_edges(tmp_path / "grid.parquet", src, dst, weight)
    words = ["--undirected", "--algorithm", "sssp", "--random-sources", "48", "--device", "cpu"]
    assert main([str(tmp_path / "grid.parquet"), *words, "--output", str(tmp_path / "out")]) == 0
    manifest = manifest_of(tmp_path / "out")
    assert {part["worker"] for part in manifest["parts"]} == {NAME}
    estimates = {each["strategy"]: each["estimated"] for each in manifest["choice"]["candidates"]}
    assert len(estimates) > 1
    assert manifest["choice"]["first"] == min(estimates, key=estimates.__getitem__)


IMPORTS = "import atexit, os\nfrom pipelines.cli import supervisor\n" + """
def run(main, argv):
    code = main(argv, supervisor.Supervision(channel=os.open(os.devnull, os.O_WRONLY)))
    print(*{name.partition(".")[0] for name in sys.modules} | sys.modules.keys() & {"scipy.linalg"})
    return code
supervisor.run = run
"""  # fmt: skip


def test_a_small_run_imports_no_dask_bokeh_pandas_or_linear_algebra(edges, tmp_path):
    code, out, err = finished(flags(edges), tmp_path / "out", IMPORTS)
    assert code == 0, err
    summary, modules = out.splitlines()
    assert json.loads(summary)["status"] == "done"
    loaded = set(modules.split())
    assert {"numba", "pyarrow"} <= loaded
    assert not loaded & {
        "bokeh",
        "pandas",
        "distributed",
        "dask",
        "tornado",
        "prometheus_client",
        "cudf",
        "matplotlib",
    }
    assert "scipy.linalg" not in loaded


@pytest.fixture(scope="module")
def undisturbed(edges, tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "out"
    assert main([*flags(edges), "--output", str(folder)]) == 0
    return folder


# Each fault strikes in the first process that runs batches. Worker processes import everything anew, and have none.
FAULT = """
from kepler_traverse.multi_source import planning
run = planning.MultiSourcePlan.run
calls = []
def faulty(plan, numbers, **given):
    calls.append(numbers)
    if len(calls) > 2:
        strike()
    return run(plan, numbers, **given)
planning.MultiSourcePlan.run = faulty
"""
FAULTS = {
    "device lost": (
        "class CUDARuntimeError(RuntimeError): pass\n"
        "def strike(): raise CUDARuntimeError('cudaErrorIllegalAddress: an illegal memory access')\n",
        "it cannot go on",
    ),
    "killed": (
        "import os, signal\ndef strike(): os.kill(os.getpid(), signal.SIGKILL)\n",
        "it was ended by SIGKILL",
    ),
    "hangs": (
        # PyDLL keeps the interpreter, as a kernel does: no thread of the process can do anything about it.
        "import ctypes\ndef strike(): ctypes.PyDLL(None).sleep(1000)\n"
        "from pipelines.scheduling import in_process, scheduler, worker_monitor\n"
        "in_process._ALARM_AFTER, scheduler._MIN_DEADLINE, worker_monitor._LOOK_EVERY = 1.0, 2.0, 0.1\n",
        "it was ended by SIGALRM",
    ),
}


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(name, marks=() if name == "killed" else pytest.mark.exhaustive)
        for name in FAULTS
    ],
)
def test_worker_processes_run_what_a_process_that_fails_has_left(
    edges, undisturbed, tmp_path, fault
):
    before, said = FAULTS[fault]
    one_worker = flags(edges, "--workers", "1")
    code, out, err = finished(one_worker, tmp_path / "out", before + FAULT)
    assert code == 0, err
    assert (
        f"the process that ran the batches is gone: {said}; worker processes run the remaining ones"
        in err
    )
    summary = json.loads(out)
    manifest = manifest_of(tmp_path / "out")
    assert summary["digest"] == manifest_of(undisturbed)["digest"]
    assert summary["kept"] + summary["computed"] == summary["batches"]
    assert summary["computed"] > 0
    assert parts_of(tmp_path / "out") == parts_of(undisturbed)
    workers = Counter(part.get("worker", NAME) == NAME for part in manifest["parts"])
    assert workers[False] > 0, "the rest is computed by worker processes"
    retried = [entry["why"] for entry in manifest["retried"]]
    assert any(
        retry.startswith(("the process that ran it was ended", "this process cannot compute"))
        for retry in retried
    )
    assert "Traceback" not in err


def test_an_unwatched_run_whose_device_is_lost_says_how_to_go_on(
    edges, tmp_path, capsys, monkeypatch
):
    from kepler_traverse.multi_source import planning

    class CUDARuntimeError(RuntimeError):
        """Named as CuPy's."""

    def faulty(_plan, _numbers, **_given):
        raise CUDARuntimeError("cudaErrorIllegalAddress")

    with monkeypatch.context() as patch:
        patch.setattr(planning.MultiSourcePlan, "run", faulty)
        assert main([*flags(edges), "--output", str(tmp_path / "out")]) == 1
    assert (
        "CUDARuntimeError: cudaErrorIllegalAddress); run again with --resume"
        in capsys.readouterr().err
    )
    assert manifest_of(tmp_path / "out")["status"] == "failed"
    assert main([*flags(edges), "--output", str(tmp_path / "out"), "--resume"]) == 0


HANGS = """
import sys, time
from pipelines.cli import signals
def strike():
    open(sys.argv[-1] + ".hangs", "w").close()
    while not signals._is_requested:
        time.sleep(0.01)
"""
IGNORES = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"


@pytest.mark.parametrize(
    "how", [pytest.param("the whole job", marks=pytest.mark.exhaustive), "the program alone"]
)
def test_a_killed_run_in_process_frees_its_folder_and_resumes_to_the_same_digest(
    edges, undisturbed, tmp_path, how
):
    folder = tmp_path / "out"
    with start(flags(edges, size="1"), folder, HANGS + FAULT) as job:
        wait_until(folder.with_suffix(".hangs").exists, job)
        assert len(session_of(job)) > 1
        if how == "the whole job":
            os.killpg(job.pid, signal.SIGKILL)
        else:
            job.kill()
        # the process that computes does not outlive the one that watches it
        wait_until(lambda: not session_of(job))
    assert manifest_of(folder)["status"] == "running"
    resumes = "sys.argv.append('--resume')"
    code, out, err = finished(flags(edges, size="1"), folder, resumes, by=forked)
    assert code == 0, err
    summary = json.loads(out)
    assert summary["kept"] > 0
    assert summary["digest"] == manifest_of(undisturbed)["digest"]


@pytest.mark.parametrize(
    ("number", "to_all", "before"),
    [
        pytest.param(signal.SIGINT, False, "", marks=pytest.mark.exhaustive),
        pytest.param(signal.SIGTERM, False, IGNORES, marks=pytest.mark.exhaustive),
        (signal.SIGTERM, True, ""),
    ],
)
def test_an_interrupted_run_in_process_ends_its_batch_and_says_how_to_resume(
    edges, tmp_path, number, to_all, before
):
    folder = tmp_path / "out"
    with start(flags(edges, size="1"), folder, before + HANGS + FAULT) as job:
        wait_until(folder.with_suffix(".hangs").exists, job)
        for process in psutil.Process(job.pid).children() if to_all else ():
            process.send_signal(number)  # as batch systems do
        job.send_signal(number)
        code, out, err = finish(job)
    assert (code, out) == (130, ""), err
    assert err.splitlines()[-1].endswith("--resume")
    manifest = manifest_of(folder)
    assert manifest["status"] == "interrupted"
    assert sorted(part["file"] for part in manifest["parts"]) == sorted(parts_of(folder))


SUPERVISED = """
import os, signal, sys, time
from pipelines.cli import supervisor
def main(argv, supervision):
    print(argv, supervision.needs_workers, flush=True)
    {body}
sys.exit(supervisor.run(main, ["a"]))
"""


@pytest.mark.parametrize(
    ("body", "code", "lines"),
    [
        ("return 3", 3, ["['a'] False"]),
        ("sys.exit(4)", 4, ["['a'] False"]),
        ("raise KeyboardInterrupt", 130, ["['a'] False"]),
        # before any batch: there is nothing to resume
        ("os.kill(os.getpid(), 9)", 1, ["['a'] False"]),
        ("supervision.begin(); os.kill(os.getpid(), 9)", 1, ["['a'] False", "['a', '--resume'] True"]),
        ("supervision.begin(); supervision.end(); os.kill(os.getpid(), 9)", 1, ["['a'] False"]),
        ("return 0 if supervision.needs_workers else supervisor.EXIT_UNUSABLE", 0,
         ["['a'] False", "['a', '--resume'] True"]),
    ],
)  # fmt: skip
def test_supervisor_passes_exit_codes_on_and_resumes_once(body, code, lines):
    done = ran_forked(SUPERVISED.format(body=body))
    assert (done.returncode, done.stdout.splitlines()) == (code, lines), done.stderr


FORWARDS = """
from pipelines.cli import supervisor
supervisor._HURRY_SECONDS = 0.1
forward = supervisor._Child._forward
def forwards(*args):
    forward(*args)
    print("forwarded", flush=True)
supervisor._Child._forward = forwards
"""


def test_supervisor_ends_a_child_that_hears_no_interrupt():
    body = """
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT, signal.SIGTERM])
    print("deaf", flush=True)
    time.sleep(1000)
"""
    with forked(FORWARDS + SUPERVISED.format(body=body)) as job:
        assert [job.stdout.readline(), job.stdout.readline()] == ["['a'] False\n", "deaf\n"]
        for _ in range(2):
            job.send_signal(signal.SIGINT)
            assert job.stdout.readline() == "forwarded\n"  # two signals at once would be one
        assert finish(job)[0] == 130


def outcomes_of(task):
    return [{"part": part, "summary": {"seconds": 0.001}, "failed": []} for part in task.parts]


def test_in_process_executor_runs_each_batch_once_and_one_task_at_a_time(tmp_path):
    running = Counter()
    most = []

    def run(task, begin_next):  # noqa: ARG001
        running["now"] += 1
        most.append(running["now"])
        running["now"] -= 1
        return outcomes_of(task)

    observer = Observer()
    with InProcessExecutor(run) as executor:
        Window(executor, observer, tmp_path).run(list(range(500)))
    assert observer.parts == Counter(range(500))
    assert set(most) == {1}


def test_in_process_executor_begins_the_next_task_once_the_first_makes_way(tmp_path):
    second = threading.Event()

    def run(task, begin_next):
        if task.number == 1:
            begin_next()
            assert second.wait(PATIENCE)
        else:
            second.set()
        return outcomes_of(task)

    observer = Observer()
    with InProcessExecutor(run) as executor:
        Window(executor, observer, tmp_path).run([0, 1])
    assert observer.parts == Counter([0, 1])


def task(number, tmp_path):
    return Task(
        number=number,
        parts=(number,),
        isolate=False,
        without=frozenset(),
        heartbeat=tmp_path / "mark",
    )


def test_in_process_executor_never_begins_a_cancelled_task(tmp_path):
    go_on = threading.Event()
    ran = []

    def run(one, begin_next):  # noqa: ARG001
        ran.append(one.number)
        assert go_on.wait(PATIENCE)
        return outcomes_of(one)

    with InProcessExecutor(run) as executor:
        futures = [executor.submit(task(number, tmp_path)) for number in (1, 2, 3)]
        executor.cancel(futures[1:2])
        ended = threading.Event()
        futures[2].add_done_callback(lambda _: ended.set())
        assert executor.states(1.0).processing == {NAME: [1, 3]}
        go_on.set()
        assert ended.wait(PATIENCE)
    assert ran == [1, 3]
    assert [future.status for future in futures] == ["finished", "cancelled", "finished"]
    assert [executor.get_outcomes(future) is None for future in futures] == [False, True, False]


def test_in_process_executor_ends_the_run_where_the_process_is_unusable_or_hangs(tmp_path):
    def run(one, begin_next):  # noqa: ARG001
        raise ValueError("of the device")

    observer = Observer("this process cannot compute any longer (ValueError: of the device)")
    with (
        InProcessExecutor(run, is_unusable=lambda error: isinstance(error, ValueError)) as executor,
        pytest.raises(
            ProcessUnusableError, match=r"ValueError: of the device\); run again with --resume"
        ),
    ):
        Window(executor, observer, tmp_path).run([0, 1])
    with pytest.raises(
        ProcessUnusableError, match=r"a batch took longer than 5 seconds .*--resume"
    ):
        executor.restart(NAME, "a batch took longer than 5 seconds at worker w, which is restarted")


LOAD = Load(
    n_vertices=1000, n_sources=10, graph_bytes=10**6, reverse_bytes=0, state_bytes=0, row_bytes=20,
    rows_per_source=1000, most_rows=1000, certified=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("workers", "seconds", "n_sources", "here"),
    [
        (2, 1.0, 10, True),
        (2, 19.0, 10, True),
        (2, 21.0, 10, False),
        (1, 11.0, 10, True),
        (1, 61.0, 10, False),
        (2, 1.0, 10**6, False),  # a billion rows
        (2, None, 10, True),
        (2, None, 10**5, False),
    ],
)
def test_little_work_runs_in_process(workers, seconds, n_sources, here):
    load = Load(**{**vars(LOAD), "n_sources": n_sources})
    sizing = Sizing(
        workers=workers, threads=1, batch_size=1, n_batches=1, memory={}, output_bytes=0
    )
    machine = Machine(device="cpu", cores=2, n_gpus=0, available=2**40)
    assert runs_in_this_process(load, sizing, machine, seconds) is here


@pytest.mark.parametrize(
    ("workers", "seconds", "here"),
    [(2, 11.0, True), (2, 13.0, False), (8, 6.5, True), (8, 7.0, False)],
)
def test_a_run_leaves_one_gpu_where_several_have_made_up_for_their_start(workers, seconds, here):
    sizing = Sizing(
        workers=workers, threads=1, batch_size=1, n_batches=1, memory={}, output_bytes=0
    )
    machine = Machine(device="cuda", cores=16, n_gpus=workers, available=2**40)
    assert runs_in_this_process(LOAD, sizing, machine, seconds) is here


@pytest.mark.parametrize(
    ("gpus", "search", "write", "here"),
    [
        (2, 10.0, 1000.0, True),  # the cores of the host are what the run waits for
        (8, 10.0, 1000.0, True),
        (2, 100.0, 99.0, True),  # the start takes longer than what is gained
        (2, 100.0, 80.0, False),
        (2, 100.0, 1.0, False),
        (4, 13.0, 14.0, True),
        (4, 40.0, 14.0, False),
    ],
)
def test_further_gpus_are_used_for_searches_and_not_for_rows_to_be_written(
    gpus, search, write, here
):
    cores = 16
    rows = 1000
    sources = int(write * cores / (5e-8 * rows))
    load = Load(**{**vars(LOAD), "n_sources": sources, "rows_per_source": rows})
    sizing = Sizing(workers=gpus, threads=1, batch_size=1, n_batches=1, memory={}, output_bytes=0)
    machine = Machine(device="cuda", cores=cores, n_gpus=gpus, available=2**40)
    assert runs_in_this_process(load, sizing, machine, search) is here
    proven = Load(**{**vars(load), "certified": True})
    assert runs_in_this_process(proven, sizing, machine, search / 2) is here


@pytest.mark.parametrize("gpus", [2, 3, 4, 8])
def test_there_is_one_size_from_which_on_further_gpus_are_used(gpus):
    sizing = Sizing(workers=gpus, threads=1, batch_size=1, n_batches=1, memory={}, output_bytes=0)
    machine = Machine(device="cuda", cores=16, n_gpus=gpus, available=2**40)
    found = [
        runs_in_this_process(
            Load(**{**vars(LOAD), "n_sources": 10**4 * factor}), sizing, machine, 0.1 * factor
        )
        for factor in range(1, 1000)
    ]
    assert found[0]
    assert not found[-1]
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize(
    ("words", "supervision", "here"),
    [
        ([], UNWATCHED, True),
        (["--workers", "1"], UNWATCHED, True),
        (["--workers", "2"], UNWATCHED, False),
        (["--batch-deadline", "700"], UNWATCHED, False),
        (["--dashboard-address", "127.0.0.1:8787"], UNWATCHED, False),
        ([], Supervision(needs_workers=True), False),
    ],
)
def test_settings_that_name_workers_get_worker_processes(edges, words, supervision, here):
    settings = read_settings(*parse_flags([*flags(edges, *words), "--output", "out"]))
    engine = KeplerEngine(settings, supervision)
    prepared = engine.prepare(None)
    sizing = engine.size(prepared, settings.batch_size)
    assert sizing.in_process is here
    assert sizing.batch_size == 3
    if here:
        assert sizing.workers == 1
        assert sizing.threads == prepared.threads, "the plan is for the threads that the run has"


def test_compiling_is_a_phase_of_its_own(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def work(seconds):
        now[0] += seconds

    phases = PhaseTimer()
    with phases("write"):
        work(1)
        with phases("traverse") as lap:
            work(2)
            with compile_clock.compiling():
                work(4)
        with compile_clock.compiling():
            work(8)
        work(16)
    assert phases.seconds == {
        "load": 0,
        "compile": 12,
        "traverse": 2,
        "certify": 0,
        "rows": 0,
        "write": 17,
    }
    assert lap.seconds == 2
    assert phases.elapsed == 19


def test_compiling_by_numba_is_measured_in_the_thread_that_waits():
    import numba

    compile_clock.listen()
    before = compile_clock.seconds()
    mine = compile_clock.thread_seconds()

    @numba.njit
    def doubled(value):
        return 2 * value

    thread = threading.Thread(target=doubled, args=(1,))
    thread.start()
    thread.join()
    assert compile_clock.seconds() > before
    assert compile_clock.thread_seconds() == mine, (
        "another thread has compiled, and this one needed nothing of it"
    )
    doubled(1.5)
    assert compile_clock.thread_seconds() > mine


def test_seconds_of_compiling_are_those_of_the_worker_that_compiled_longest():
    parts = [
        {"worker": "a", "phases": {"compile": 2.0}},
        {"worker": "b", "phases": {"compile": 3.0}},
    ]
    assert compile_seconds([*parts, {"worker": "a", "phases": {"compile": 2.0}}, {}]) == 4.0
    assert compile_seconds([]) == 0.0


@pytest.mark.exhaustive
def test_after_warming_a_run_compiles_nothing(edges, tmp_path, capsys):
    assert warm.main(["--device", "cpu"]) == 0
    assert "tiny runs" in capsys.readouterr().out
    for i, words in enumerate(
        [
            ["--algorithm", "sssp", "--result", "predecessors"],
            ["--result", "levels", "--undirected"],
        ]
    ):
        # Another process has what was kept on disk, and nothing else.
        code, _, err = finished(flags(edges, *words), tmp_path / str(i))
        assert code == 0, err
        assert manifest_of(tmp_path / str(i))["seconds"]["compile"] == 0


def test_a_tiny_run_that_fails_ends_the_warming_with_its_error(capsys, monkeypatch):
    monkeypatch.setattr(warm, "runs", lambda *_: [["no-such-file.parquet", "--sources", "1"]])
    assert warm.main(["--device", "cpu"]) == 2
    assert "no-such-file.parquet" in capsys.readouterr().err


def test_a_step_that_takes_long_is_named_and_a_short_one_is_not(capsys, monkeypatch):
    monkeypatch.setattr(steps, "_NAMED_AFTER", 0.2)
    monkeypatch.setattr(steps, "_steps", None)
    steps.begin("unseen")
    steps.show()
    steps.begin("short")
    steps.begin("long")
    said = []
    wait_until(lambda: said.append(capsys.readouterr().err) or "long" in "".join(said))
    steps.end(seconds={"read": 0.01, "build": 2.0, "compile": 13.44})
    steps.compiled(13.44)
    steps.compiled(0.01)
    assert ("".join(said) + capsys.readouterr().err).splitlines() == [
        "long",
        "building 2.0 s",
        "compiled for 13.4 s",
    ]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_jobs_of_the_benchmark_are_command_lines_that_the_job_takes(device, tmp_path):
    for case in startup_job.cases(device):
        words = startup_job.words_of(case, f"{case.graph}.parquet", device)
        output = ["--json", "--output", str(tmp_path / "out")]
        assert read_settings(*parse_flags([*words, *output])).json


@pytest.mark.exhaustive
def test_the_benchmark_measures_a_job_by_its_steps(edges):
    case = startup_job.Case("a job", edges.stem, ("--random-sources", "2"))
    found = startup_job.prepare(Inputs(graphs=edges.parent), case)()
    assert found.seconds > found.more["outside"] > 0
    assert {"read", "build", "plan", "compile", "start", "traverse"} < set(found.more)


def test_an_interrupt_while_a_task_is_given_out_leaves_no_lock_held(tmp_path, monkeypatch):
    """The thread that runs the task would wait for the lock, and the end of the run for the thread."""
    monkeypatch.setattr(signals, "_is_requested", False)
    executor = SimpleNamespace(submit=lambda _: Future())  # as those of Dask, with locks
    window = Window(executor, SimpleNamespace(), tmp_path)
    steps = iter(range(10_000))

    def trace(frame, _event, _argument):
        if frame.f_code.co_filename.endswith(("threading.py", "_base.py", "scheduler.py")):
            if next(steps) == at:
                signals.interrupt(None, None)
            return trace
        return None

    for at in range(200):
        signals._is_requested = False
        steps = iter(range(10_000))
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            window._start([at], isolate=False)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        for future in window._in_flight:
            is_free = []
            asked = threading.Thread(
                target=lambda future=future, is_free=is_free: is_free.append(
                    future._condition.acquire(blocking=False)
                )
            )
            asked.start()
            asked.join()
            assert is_free == [True], at
        if next(steps) <= at:
            break
        window._in_flight.clear()
    assert 10 < at < 199


def test_a_run_that_fails_returns_when_its_task_has_ended(tmp_path):
    began, may_end, ended = (threading.Event() for _ in range(3))

    def run(task, begin_next):  # noqa: ARG001
        began.set()
        may_end.wait(PATIENCE)
        ended.set()
        return []

    task = Task(number=1, parts=(), isolate=False, without=frozenset(), heartbeat=tmp_path)
    with contextlib.suppress(LookupError), InProcessExecutor(run) as executor:
        executor.submit(task)
        began.wait(PATIENCE)
        threading.Timer(0.1, may_end.set).start()
        raise LookupError
    assert ended.is_set()
