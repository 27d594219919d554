"""How many workers one Dask scheduler can keep busy: measure its cost per task, then simulate the cluster.

python -m scripts.bench.scheduler_model                          # measure, then simulate 8, 64 and 512 workers
python -m scripts.bench.scheduler_model --cost 0.002             # simulate only, with this many seconds per task

The measurement uses the job's own window of tasks, a real scheduler in a separate process, and two workers. Tasks only
return what a task of three batches returns. The cost is the CPU time of scheduler and driver together, because the job's
own cluster runs both in one process, where they alternate.

The simulation is a closed system. Each worker has a window of tasks, works on one at a time, and reports each to the one
server. The server handles reports in order of arrival, takes the cost of a task for each, and sends the worker another task.
"""

from __future__ import annotations

import argparse
import heapq
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from distributed import Client

from pipelines.scheduling.cluster import pinned
from pipelines.scheduling.dask_executor import DaskExecutor
from pipelines.scheduling.scheduler import WINDOW, Window

WORKERS = (8, 64, 512)
SECONDS = (0.03, 0.1, 0.3, 1.0, 2.0, 3.0, 5.0, 10.0)  # a task
# standard deviation of the logarithm of a task's time: most are within a quarter of the mean
SPREAD = 0.25
TASKS_PER_WORKER = 60
ENOUGH = 0.95  # fraction of the time in which workers are busy


def simulate(
    workers: int, seconds: float, cost: float, window: int = WINDOW, seed: int = 1
) -> float:
    """Return the fraction of the time in which workers are busy, after the first tasks were sent.

    Parameters
    ----------
    seconds : float
        Mean time of a task.
    cost : float
        Seconds that scheduler and driver take for one.
    window : int
        Tasks per worker that are in flight.
    """
    rng = np.random.default_rng(seed)
    spread = rng.lognormal(-(SPREAD**2) / 2, SPREAD, (workers, TASKS_PER_WORKER))
    times = (seconds * spread).tolist()
    # queued at the worker, or in transit to the server and back, without started ones
    queued = [window] * workers
    done, busy = [0] * workers, [0.0] * workers
    idle_since: list[float | None] = [None] * workers
    events = [(times[w][0], w, "ended") for w in range(workers)]
    for w in range(workers):
        queued[w] -= 1
    heapq.heapify(events)
    server_free_at = last = 0.0
    while events:
        now, w, what = heapq.heappop(events)
        if what == "ended":
            busy[w] += times[w][done[w]]
            done[w] += 1
            last = max(last, now)
            server_free_at = max(server_free_at, now) + cost
            heapq.heappush(events, (server_free_at, w, "arrived"))
        else:
            queued[w] += 1
        is_idle = what == "ended" or idle_since[w] is not None
        if is_idle and done[w] < TASKS_PER_WORKER:
            if queued[w]:
                queued[w] -= 1
                idle_since[w] = None
                heapq.heappush(events, (now + times[w][done[w]], w, "ended"))
            else:
                idle_since[w] = now
        if done[w] == TASKS_PER_WORKER and what == "ended":
            # Later this worker would wait for others that are slower by chance. The steady state is measured.
            return sum(busy) / (workers * now)
    return sum(busy) / (workers * last)


class _Nobody:
    """An observer that ignores all outcomes."""

    def done(self, part, summary, without): ...

    def failed(self, part, sources, reason):  # noqa: ARG002
        raise RuntimeError(f"batch {part}: {reason}")

    def retried(self, part, why):
        raise RuntimeError(f"batch {part}: {why}")

    def draining(self, tasks): ...


def no_work(parts: tuple[int, ...]) -> list[dict]:
    """Return the outcome of a task of some batches, without work."""
    summary = {
        **{
            "file": "part-000000.parquet",
            "rows": 8_000_000,
            "sha256": "0" * 64,
            "checksum": "0" * 16,
            "bytes": 10**8,
        },
        **{
            "started": time.time(),
            "ended": time.time(),
            "seconds": 1.0,
            "worker": "tls://192.168.100.100:12345",
        },
        "phases": {"load": 0.0, "traverse": 0.123456, "certify": 0.123456, "write": 0.123456},
        **{"edges": 10**10, "rounds": 1000, "slowest": (123456789, 0.123456)},
        "distances": {"width": 64.0, "first": 0, "counts": [123456] * 60},
    }
    return [{"part": part, "summary": summary, "failed": []} for part in parts]


def measure(tasks: int) -> dict[str, float]:
    """Return CPU seconds per task of a real scheduler and of a driver."""
    with tempfile.TemporaryDirectory() as folder, pinned():
        file = Path(folder) / "scheduler.json"
        processes = [_start("dask_scheduler", file, "--port", "0", folder=folder)]
        try:
            while not file.exists():
                time.sleep(0.05)
            processes += [
                _start("dask_worker", file, "--nthreads", "1", "--no-nanny", folder=folder)
                for _ in range(2)
            ]
            with Client(scheduler_file=str(file), set_as_default=False) as client:
                client.wait_for_workers(2, timeout=60)
                _run(client, 300, Path(folder))  # imports and first connections
                scheduler, driver = psutil.Process(processes[0].pid), psutil.Process()
                before, begin = (_cpu(scheduler), _cpu(driver)), time.perf_counter()
                # the window forms tasks of three batches
                tasks = _run(client, 3 * tasks, Path(folder))
                seconds = time.perf_counter() - begin
                after = _cpu(scheduler), _cpu(driver)
        finally:
            for process in processes[::-1]:
                process.terminate()
                process.wait()
    used = [(end - start) / tasks for start, end in zip(before, after, strict=True)]
    return {"scheduler": used[0], "driver": used[1], "tasks": tasks, "seconds": seconds}


def _start(module: str, file: Path, *words: str, folder: str) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        f"distributed.cli.{module}",
        "--host",
        "127.0.0.1",
        "--no-dashboard",
        *words,
    ]
    places = os.pathsep.join(
        [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    )
    return subprocess.Popen(
        [*command, "--scheduler-file", str(file), "--local-directory" if module == "dask_worker" else "--pid-file",
         folder if module == "dask_worker" else f"{folder}/pid"],
        env=os.environ | {"PYTHONPATH": places}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _run(client: Client, batches: int, folder: Path) -> int:
    """Run batches without work and return the number of their tasks."""
    tasks = []

    def submit(task):
        tasks.append(task)
        return client.submit(
            no_work, task.parts, key=f"bfs-{task.number:06d}-{time.monotonic_ns()}", pure=False
        )

    Window(DaskExecutor(client, submit), _Nobody(), folder).run(list(range(batches)))
    return len(tasks)


def table(cost: float) -> str:
    """Return a Markdown table of the fraction of time in which workers are busy, and the shortest sufficient task."""
    head = "| workers | " + " | ".join(f"{seconds:g} s" for seconds in SECONDS) + " | 95 % from |"
    lines = [head, "|" + "---:|" * (len(SECONDS) + 2)]
    for workers in WORKERS:
        shares = [simulate(workers, seconds, cost) for seconds in SECONDS]
        lines.append(
            f"| {workers} | "
            + " | ".join(f"{100 * s:.0f} %" for s in shares)
            + f" | {shortest(workers, cost):.2f} s |"
        )
    return "\n".join(lines)


def shortest(workers: int, cost: float) -> float:
    """Return the shortest task with which workers are busy for ``ENOUGH`` of the time, by bisection."""
    low, high = 0.0, 1.0
    while simulate(workers, high, cost) < ENOUGH:
        low, high = high, 2 * high
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if simulate(workers, middle, cost) < ENOUGH else (low, middle)
    return high


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=2000, help="how many to measure with")
    parser.add_argument(
        "--cost", type=float, help="seconds of scheduler and driver per task, instead of measuring"
    )
    arguments = parser.parse_args(argv)
    cost = arguments.cost
    if cost is None:
        measured = measure(arguments.tasks)
        cost = measured["scheduler"] + measured["driver"]
        print(
            f"a task costs {1e3 * measured['scheduler']:.2f} ms of the scheduler and {1e3 * measured['driver']:.2f} ms of "
            f"the driver (CPU time; {measured['tasks']:.0f} tasks in {measured['seconds']:.1f} s)\n"
        )
    print(
        f"Share of the time in which workers are busy, at {1e3 * cost:.2f} ms per task, by the length of a task:\n"
    )
    print(table(cost))
    return 0


if __name__ == "__main__":
    sys.exit(main())
