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

_PR_SET_PDEATHSIG = 1  # of Linux's prctl: the signal that a process gets when its parent dies
# Opens the GPU while the driver reads the graph; None without a GPU.
_opening: threading.Thread | None = None


class ProcessWorker(TraversalWorker):
    """A ``TraversalWorker`` in a process of its own."""

    def load(self) -> None:
        """Wait until the GPU is open, if there is one, and load the graph and plan."""
        self.address = f"process {os.getpid()}"
        if _opening is not None:
            _opening.join()
            if self.work.device == "cuda":
                own_gpu.limit_process()
        super().load()

    def give_up(self) -> None:
        """End the process at once, without returning: no later CUDA call in it would succeed."""
        os._exit(1)  # the driver starts another process in its place


def serve(number: int) -> NoReturn:
    """Be the template: fork a worker for each request that a socket gets, until it is closed.

    ``number`` is the file descriptor of a Unix socket to the driver. A request has the worker's
    environment variables, in JSON, and the descriptor of the worker's connection to the driver.
    Workers are killed when the template ends.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no worker that has ended stays as a zombie
    show_notices(say)
    # so that pyarrow and Numba import neither pandas nor SciPy, which no worker uses
    lean_imports.hide_unused_packages(uses_cudf=False)
    # Workers share the memory of all modules: frozen objects are not touched by a garbage
    # collection, which would copy their pages.
    gc.freeze()
    gc.enable()
    control = socket.socket(fileno=number)
    while True:
        # at most ``MAX_REQUEST`` bytes and one descriptor
        request, descriptors, *_ = socket.recv_fds(control, MAX_REQUEST, 1)
        if not descriptors:  # the driver has closed the socket
            os._exit(0)
        environment = json.loads(request)
        if not environment:  # no GPU: it computes on the CPU
            _load_compiler()
        template = os.getpid()
        if not os.fork():  # in the new worker, which never returns from ``_be_worker``
            control.close()
            _be_worker(environment, descriptors[0], template)
        os.close(descriptors[0])


@functools.cache
def _load_compiler() -> None:
    """Import what Numba imports before its first function, once in the template for all workers.

    The decorator makes a second call do nothing. Workers share the memory of these modules: frozen
    objects are not touched by a garbage collection, which would copy their pages.
    """
    from numba.core.registry import cpu_target

    # This imports the modules, and registers their functions.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    gc.freeze()


def _be_worker(environment: dict[str, str], descriptor: int, template: int) -> NoReturn:
    """Be a worker: load the graph that the driver names, and run its tasks until the connection
    ends.

    ``environment``: variables that choose the GPU of the worker; empty if it has none.
    ``descriptor``: file descriptor of its connection to the driver. ``template``: process id of the
    template, from which this process was forked.
    """
    global _opening
    code = 1
    try:
        # The kernel kills this process when the template ends.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # the template ignores it
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
    """Receive the worker object from the driver, load its graph, send whether that worked, and run
    tasks.

    After an error the process still takes tasks: the driver decides what becomes of it.
    """
    worker = driver.recv()
    error = None
    try:
        worker.load()
    except Exception as raised:
        error = plain_error(raised)
    driver.send(("ready", error))
    _run_tasks(driver, worker)


def _run_tasks(driver: Connection, worker: TraversalWorker) -> NoReturn:
    """Run tasks as they come, one after another; raise EOFError when the driver is gone.

    Each message of the driver is a pair. It is a task with its batches, or, to cancel a task, its
    number with None. The answer to a task is ``("ended", number, outcomes, error)``. One of the
    last two is None.
    """
    futures: dict[int, LocalFuture] = {}  # of the tasks that have not ended, by their numbers
    batches: dict[int, Any] = {}  # of the tasks that have not begun
    sends = threading.Lock()  # parts of several tasks may end at the same time

    def run(task: Task, begin_next: Callable[[], object]) -> list[BatchOutcome]:
        """Run the batches of a task, which the driver has sent with it."""
        of_task = batches.pop(task.number)  # the batches of this task
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
