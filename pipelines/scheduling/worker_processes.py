"""Worker processes of this machine, without Dask: the driver gives them tasks through pipes.

A template process imports what workers need while the driver imports its own modules and reads the
graph. It forks the workers, also one that takes the place of a worker that died. All pipes are
private to the run: nothing listens, and no other user of the machine can send a task.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

from kepler_traverse import _uninterrupted

from ..cli.options import Settings
from ..cli.terminal import say
from .errors import ClusterError
from .executor import BatchExecutor, ErrorKind, Task, WorkerStates
from .gpu_pool import count_gpu_files, visible_gpus
from .in_process import LocalFuture

if TYPE_CHECKING:
    from ..output.manifest_types import BatchOutcome

_TEMPLATE = __name__.replace(".scheduling.worker_processes", ".worker.process")
# Signals are ignored before anything is imported. A terminal or a batch system signals all
# processes of a run, while the driver waits for its tasks. The path of modules is the driver's: the
# current folder, which others may write to, is none of its own. Modules have no unreachable objects,
# for which Python would look again and again: ``serve`` lets it look from then on.
_PROGRAM = """
import gc, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
gc.disable()
sys.path[:] = {path!r}
from {module} import serve
serve({descriptor})
"""
MAX_REQUEST = 2**16  # bytes of a request to the template
# Flags of a run that has no worker processes of its own, or starts them late.
_WITHOUT_TEMPLATE = frozenset(
    {"plan", "resume", "scheduler_address", "scheduler_file", "dashboard_address", "engine"}
)
_MAX_DEATHS = 5  # of workers one after another, before one of them is ready
# Kernels set the number of their threads themselves; these are of libraries beneath NumPy.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class ProcessWorker(Protocol):
    """What a worker process runs; ``worker.process.ProcessWorker`` implements it."""

    def load(self) -> None:
        """Load the graph, and plan."""

    def answer(
        self,
        batches: Any,
        isolate: bool,
        heartbeat_path: Path,
        begin_next: Callable[[], object],
        strategy: str,
    ) -> list[BatchOutcome]:
        """Run the batches of a task, and return the outcome of each.

        The parameters are those of ``TraversalWorker.answer``.
        """


class WorkerDiedError(Exception):
    """The process that had the task is gone."""


def workers_ahead(settings: Settings) -> int | None:
    """Return how many workers start before the graph is read.

    0 means that the graph decides their number: the template starts alone. None means that perhaps
    no worker is needed, so that nothing starts.
    """
    if not settings.has_own_processes or settings.plan or settings.resume:
        return None
    return _count_ahead(settings.workers, settings.device)


def _count_ahead(workers: int | str, device: str | None) -> int | None:
    """Return how many workers start before the graph is read, as ``workers_ahead`` does: 0 for the
    template alone, None for nothing.

    ``workers``: a number or "auto". ``device``: None if it is not set. A number of 2 or more is
    returned; "auto" gives 0 on a host with several GPUs.
    """
    if isinstance(workers, int):
        return workers if workers > 1 else None
    # Elsewhere there are few cores, and the imports would take time from a small run.
    has_several_gpus = device != "cpu" and count_gpu_files() > 1
    return 0 if has_several_gpus else None


@contextlib.contextmanager
def begun_ahead(flags: Mapping[str, Any]) -> Iterator[WorkerProcesses | None]:
    """Start and yield the template of workers, if the flags of a command line ask for workers; else
    yield None.

    ``flags``: the options of the command line by name, not checked yet. Checking all settings takes
    as long as some of the template's imports. So the template starts before that, and ends with the
    block.
    """
    count = _count_ahead(flags.get("workers", "auto"), flags.get("device"))
    if count is None or _WITHOUT_TEMPLATE & flags.keys():
        yield None
        return
    with contextlib.closing(WorkerProcesses()) as processes:
        processes.start()
        yield processes


@contextlib.contextmanager
def started_ahead(
    settings: Settings, begun: WorkerProcesses | None = None
) -> Iterator[WorkerProcesses | None]:
    """Start workers and yield them; they end with the block. Yield None if perhaps none is needed.

    ``begun``: their template, if that has been started; else one is started here.
    """
    count = workers_ahead(settings)
    if count is None:
        yield None
        return
    with contextlib.closing(begun or WorkerProcesses()) as processes:
        if begun is None:
            processes.start()
        processes.add(count, settings.device)
        yield processes


def plain_error(error: BaseException) -> BaseException:
    """Return an error that another process can unpickle: the same one if it can be pickled, else a
    RuntimeError with its class and message.
    """
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


class _Process:
    """A worker process, as the driver sees it; ``pid`` is 0 until it says that it is alive.

    ``environment``: variables that choose its GPU, which its successor gets, too; empty on a CPU.
    ``connection``: the driver's end of the pipe to it.
    """

    reader: threading.Thread  # receives its messages

    def __init__(self, environment: dict[str, str], connection: Connection):
        self.environment = environment
        self.connection = connection
        self.pid = 0
        self.is_ready = False  # whether it has loaded the graph, or has failed to
        self.tasks: dict[int, LocalFuture] = {}  # that it has, by their numbers

    @property
    def name(self) -> str:
        """The name of the worker in messages."""
        return f"process {self.pid}"


class WorkerProcesses(BatchExecutor):
    """Worker processes, which end with ``close``.

    ``start``, ``add`` and ``give`` have to be called, in this order, before ``submit``.
    """

    def __init__(self) -> None:
        # Taken and released by C, between whose steps no handler of a signal runs. It is held where
        # the state below is read or changed.
        self._lock = threading.RLock()
        # an item after each change of which ``give`` must know
        self._changes: SimpleQueue[None] = SimpleQueue()
        self._worker: ProcessWorker | None = None  # that each process gets a copy of
        self._batches_of: Callable[[Task], Any] = lambda _: None  # until ``give``
        self._errors: list[BaseException] = []  # of workers that could not load the graph
        self._waiting: deque[LocalFuture] = deque()  # tasks that no worker has yet
        self._deaths = 0  # of workers one after another, before one of them was ready
        self._is_closed = False  # whether ``close`` was called, after which no worker is replaced
        self._template: subprocess.Popen[bytes] | None = None  # None if none runs
        self._processes: list[_Process] = []  # the workers that are there, ready or not

    def start(self) -> None:
        """Start the template, before it is known how many workers there are."""
        with self._lock:
            self._start_template()

    @property
    def has_workers(self) -> bool:
        """Whether workers have been added by ``add``, ready or not."""
        return bool(self._processes)

    def add(self, n_workers: int, device: str) -> None:
        """Start ``n_workers`` workers. ``device``: "cpu", or another one for a GPU per worker."""
        environments: list[dict[str, str]] = [{}] * n_workers
        if device != "cpu":
            environments = [{"CUDA_VISIBLE_DEVICES": gpu} for gpu in visible_gpus(n_workers)]
        with self._lock:
            for environment in environments:
                self._fork(environment)

    def give(self, worker: ProcessWorker, batches_of: Callable[[Task], Any]) -> None:
        """Have each process load the graph and plan, and wait for all of them.

        ``worker``: the object that runs tasks; each process gets a copy. ``batches_of(task)``
        returns the batches of a task, as ``worker.answer`` takes them. Raises ClusterError (workers
        keep dying) or Exception (what a worker raises while it loads).
        """
        with self._lock:
            self._worker = worker
            self._batches_of = batches_of
            for process in self._processes:
                if process.pid:  # others get it when they say that they are alive
                    _send(process, worker)
        while not self._are_ready():
            self._changes.get()  # waits for the next change of a worker
        if self._errors:
            raise self._errors[0]

    def close(self) -> None:
        """End all processes: workers are killed with the template."""
        with self._lock:
            self._is_closed = True
            processes = list(self._processes)
            self._end_template()
        for process in processes:
            process.reader.join()

    def classify_error(self, error: BaseException) -> ErrorKind:
        """Say what an error of a task means: "worker died" for the error that ``_on_death`` gives
        it, "cancelled", or else "error": its own code has failed.
        """
        if isinstance(error, WorkerDiedError):
            return "worker died"
        return super().classify_error(error)

    def cancel(self, futures: Iterable[LocalFuture]) -> None:
        """Cancel tasks: have their workers drop them, and end their futures."""
        for future in futures:
            with self._lock:
                for process in self._processes:
                    if process.tasks.pop(future.key, None) is not None:
                        _send(process, (future.key, None))
                with contextlib.suppress(ValueError):
                    self._waiting.remove(future)
            future.end(error=CancelledError())

    def states(self, deadline: float) -> WorkerStates:  # noqa: ARG002
        """Return the workers that are ready, by name, and the numbers of the tasks that each has.

        All of them take tasks, so ``running`` is ``workers``. ``deadline`` is ignored: it is for a
        process that runs batches itself, while these are ended by ``restart``. Raises ClusterError
        if no worker is left because they kept dying before they were ready.
        """
        with self._lock:
            if not self._processes:  # none takes the place of the last that died
                self._refuse_many_deaths()
            processing = {
                process.name: list(process.tasks) for process in self._processes if process.is_ready
            }
        names = set(processing)
        return WorkerStates(workers=names, running=names, processing=processing)

    def restart(self, worker: str, why: str) -> None:  # noqa: ARG002
        """Kill the process of a worker by its name; its successor is forked once it is gone.

        A name of no present worker is ignored. ``why`` is ignored, too: it is for an executor that
        cannot do this, and says why in its error.
        """
        with self._lock:
            for process in self._processes:
                if process.name == worker:
                    os.kill(process.pid, signal.SIGKILL)

    def _are_ready(self) -> bool:
        """Whether all workers have loaded the graph, or have failed to: ``_errors`` holds the
        errors of those. Raises ClusterError if workers keep dying.
        """
        with self._lock:
            self._refuse_many_deaths()
            return all(process.is_ready for process in self._processes)

    def submit(self, task: Task) -> LocalFuture:
        """Give a task to a worker, or have it wait until one is ready; return its future."""
        future = LocalFuture(task)
        with self._lock:
            self._waiting.append(future)
            self._distribute_tasks()
        return future

    def _distribute_tasks(self) -> None:
        """Give each waiting task to the ready worker that has the fewest."""
        ready = [process for process in self._processes if process.is_ready]
        while self._waiting and ready:
            future = self._waiting.popleft()
            process = min(ready, key=lambda candidate: len(candidate.tasks))
            process.tasks[future.key] = future
            _send(process, (future.task, self._batches_of(future.task)))

    def _fork(self, environment: dict[str, str]) -> None:
        """Ask the template for a worker, and start a thread that receives its messages.

        ``environment``: variables that choose the GPU of the worker; empty on a CPU. If the
        template is gone, another one is started.
        """
        own_end, workers_end = Pipe()
        with workers_end:  # the descriptor that is sent is a copy
            data = [json.dumps(environment).encode()]
            descriptors = [workers_end.fileno()]
            try:
                socket.send_fds(self._control, data, descriptors)
            except OSError:
                self._start_template()
                socket.send_fds(self._control, data, descriptors)
        process = _Process(environment, own_end)
        self._processes.append(process)
        receive = functools.partial(self._receive_messages, process)
        process.reader = _uninterrupted.start(receive, "kepler-worker-reader")

    def _end_template(self) -> None:
        """Kill the template, and the workers with it."""
        if self._template is not None:
            self._control.close()
            self._template.kill()
            self._template.wait()
            self._template = None

    def _start_template(self) -> None:
        """Start a template; first end the template that runs, if any, with its workers."""
        self._end_template()
        self._control, templates_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with templates_end:  # closed here at the end, so that the template alone has it
            number = templates_end.fileno()
            program = _PROGRAM.format(path=sys.path, module=_TEMPLATE, descriptor=number)
            # In a group of its own, which Ctrl-C does not reach.
            self._template = subprocess.Popen(
                [sys.executable, "-P", "-c", program],
                env=os.environ | _ONE_THREAD,
                stdin=subprocess.DEVNULL,
                pass_fds=[number],
                process_group=0,
            )

    def _receive_messages(self, process: _Process) -> None:
        """Act on the messages of a worker, until it is gone; in a thread of its own.

        A message is a tuple of its kind and the arguments of the method that acts on it.
        """
        actions: dict[str, Callable[..., None]] = {
            "alive": self._on_alive,
            "ready": self._on_ready,
            "ended": self._on_ended,
        }
        try:
            with contextlib.suppress(EOFError, OSError):
                while True:
                    kind, *arguments = process.connection.recv()
                    with self._lock:
                        actions[kind](process, *arguments)
        finally:
            self._on_death(process)

    def _on_alive(self, process: _Process, pid: int) -> None:
        """Note the process id of a worker that has begun, and send it the object that loads the
        graph and runs tasks, if ``give`` was called before.
        """
        process.pid = pid
        if self._worker is not None:
            _send(process, self._worker)

    def _on_ready(self, process: _Process, error: BaseException | None) -> None:
        """Note that a worker has loaded the graph, or the error by which it could not, and give it
        tasks.
        """
        process.is_ready = True  # after an error, too: ``give`` waits for all, and then raises it
        self._deaths = 0
        if error is not None:
            self._errors.append(error)
        self._distribute_tasks()
        self._changes.put(None)

    def _on_ended(
        self, process: _Process, key: int, outcomes: Any, error: BaseException | None
    ) -> None:
        """End the future of a task by its outcomes or its error, unless it was cancelled.

        ``key``: number of the task. One of ``outcomes`` and ``error`` is None.
        """
        future = process.tasks.pop(key, None)
        if future is not None:
            future.end(outcomes, error)

    def _on_death(self, process: _Process) -> None:
        """End the tasks of a worker that is gone with an error, and start another one in its place.

        None is started after ``close``, or if too many workers have died before they were ready.
        """
        with self._lock:
            self._processes.remove(process)
            process.connection.close()
            for future in process.tasks.values():
                future.end(error=WorkerDiedError())
            if self._is_closed:
                return
            if not process.is_ready:
                self._deaths += 1
            is_replaced = self._deaths < _MAX_DEATHS
            if is_replaced:
                self._fork(process.environment)
            self._changes.put(None)  # wakes ``give``, which waits for workers
        if is_replaced and not process.is_ready:
            say("a worker process has died while it started; another one takes its place")

    def _refuse_many_deaths(self) -> None:
        """Raise ClusterError if workers keep dying before they are ready."""
        if self._deaths >= _MAX_DEATHS:
            raise ClusterError(
                f"the workers do not start: {_MAX_DEATHS} processes have died, one after another; "
                "run again with --resume"
            )


def _send(process: _Process, message: Any) -> None:
    """Send a message to a worker.

    An error is suppressed: the thread that receives its messages notices a worker that is gone.
    """
    with contextlib.suppress(OSError):
        process.connection.send(message)
