"""What runs in the worker processes of ``scheduling.worker_processes``: the template, and the
workers that it forks.

The template imports what a worker needs, once per run, and asks for no GPU: CUDA does not survive a
fork. A worker that takes the place of one that died is forked from it, too, and is there in
milliseconds.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import json
import os
import signal
import socket
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from kepler_traverse.errors import show_notices

from ..cli.terminal import say
from ..output.manifest_types import BatchOutcome
from ..scheduling.executor import Task
from ..scheduling.in_process import InProcessExecutor, LocalFuture
from ..scheduling.worker_processes import MAX_REQUEST, plain_error
from . import lean_imports, own_gpu
from .traversal_worker import TraversalWorker

_PR_SET_PDEATHSIG = 1
_opening: threading.Thread | None = None  # opens the GPU while the driver reads the graph


class ProcessWorker(TraversalWorker):
    """A ``TraversalWorker`` in a process of its own."""

    def load(self) -> None:
        """Wait until the GPU is open, and load the graph."""
        self.address = f"process {os.getpid()}"
        if _opening is not None:
            _opening.join()
            if self.work.device == "cuda":
                own_gpu.limit_process()
        super().load()

    def give_up(self) -> None:
        """End the process."""
        os._exit(1)  # another process takes its place


def serve(number: int) -> NoReturn:
    """Be the template: fork a worker for each request of a socket, and end with the socket.

    ``number``: descriptor of the socket. A request is the environment of the worker in JSON, with
    the descriptor of its connection. Workers are killed when the template ends.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no worker that has ended stays as a zombie
    show_notices(say)
    lean_imports.hide_unused_packages(uses_cudf=False)
    gc.freeze()  # workers share the memory of all modules
    control = socket.socket(fileno=number)
    while True:
        request, descriptors, *_ = socket.recv_fds(control, MAX_REQUEST, 1)
        if not descriptors:  # the driver has closed the socket
            os._exit(0)
        environment = json.loads(request)
        if not environment:  # no GPU: it computes on the CPU
            _load_compiler()
        template = os.getpid()
        if not os.fork():
            control.close()
            _be_worker(environment, descriptors[0], template)
        os.close(descriptors[0])


@functools.cache
def _load_compiler() -> None:
    """Import what Numba imports before it loads or compiles its first function: once for all workers."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    gc.freeze()


def _be_worker(environment: dict[str, str], descriptor: int, template: int) -> NoReturn:
    """Load what the driver gives, then run its tasks, until the connection ends.

    ``environment``: variables that choose the GPU of the worker; empty if it has none.
    ``descriptor``: of its connection to the driver. ``template``: the process that was forked.
    """
    global _opening
    code = 1
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.update(environment)
        # A template that died before the line above has sent no signal, and is not the parent now.
        if os.getppid() == template:
            driver = Connection(descriptor)
            driver.send(("alive", os.getpid()))
            if environment:
                _opening = own_gpu.begin_to_open()
            _serve_driver(driver)
    except (EOFError, OSError):  # the driver is gone
        code = 0
    except BaseException:
        say(*traceback.format_exc().splitlines())
    finally:
        # A return would lead back into the loop of the template, of which this process is a copy.
        os._exit(code)


def _serve_driver(driver: Connection) -> NoReturn:
    """Load the graph, say whether that worked, and run tasks."""
    worker = driver.recv()
    error = None
    try:
        worker.load()
    except Exception as raised:
        error = plain_error(raised)
    driver.send(("ready", error))
    _run_tasks(driver, worker)


def _run_tasks(driver: Connection, worker: TraversalWorker) -> NoReturn:
    """Run tasks as they come, one after another; raise EOFError where the driver is gone.

    The driver sends each task with its batches, and the number of one that is cancelled with None.
    """
    futures: dict[int, LocalFuture] = {}  # of the tasks that have not ended, by their numbers
    batches: dict[int, Any] = {}  # of the tasks that have not begun
    sends = threading.Lock()  # parts of several tasks may end at the same time

    def run(task: Task, begin_next: Callable[[], object]) -> list[BatchOutcome]:
        """Run the batches of a task, which the driver has sent with it."""
        of_task = batches.pop(task.number)
        return worker.answer(of_task, task.isolate, task.heartbeat, begin_next, task.strategy)

    def report(future: LocalFuture) -> None:
        """Send the outcomes of a task that has ended, or its error, unless it was cancelled."""
        futures.pop(future.key, None)
        batches.pop(future.key, None)
        if future.status == "cancelled":
            return
        error = future.exception()
        outcomes = None
        if error is None:
            outcomes = future.outcomes()
        else:
            error = plain_error(error)
        with sends:
            driver.send(("ended", future.key, outcomes, error))

    with InProcessExecutor(run) as executor:
        while True:
            message, of_task = driver.recv()
            if of_task is None:  # the message is the number of a task that is cancelled
                if message in futures:
                    executor.cancel([futures[message]])
                continue
            batches[message.number] = of_task
            future = executor.submit(message)
            futures[message.number] = future
            future.add_done_callback(report)
