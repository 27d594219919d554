"""An interrupt between any two steps of a wait leaves no lock held: the call ends, and the next one works."""

from __future__ import annotations

import signal
import sys
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from random import Random
from types import SimpleNamespace

import pytest

import kepler_traverse
from kepler_traverse import _uninterrupted
from kepler_traverse._uninterrupted import Answer, Promise, map_on_threads
from kepler_traverse.cpu import threads
from pipelines.scheduling import in_process
from pipelines.scheduling.executor import Task
from pipelines.scheduling.in_process import InProcessExecutor
from pipelines.scheduling.worker_processes import WorkerProcesses
from tests.support.processes import PATIENCE

WAITS = {
    Path(threading.__file__),
    *Path(sys.modules[Future.__module__].__file__).parent.glob("*.py"),
}
OURS = {Path(kepler_traverse.__file__).parent, Path(in_process.__file__).parents[1]}


class Interrupt:
    """Raises KeyboardInterrupt at the n-th step of the main thread in code that waits, as the handler of a signal does."""

    def __init__(self, step, is_second=False):
        self.left = step
        self.again = is_second
        self.has_come = False

    def __call__(self, frame, _event, _argument):
        path = Path(frame.f_code.co_filename)
        if path not in WAITS and OURS.isdisjoint(path.parents):
            return None
        self.left -= 1
        if not self.left:
            self.has_come = True
            if self.again:  # an impatient user
                self.again = False
                self.left = 7
            raise KeyboardInterrupt
        return self


def interrupted(call, step, is_second=False):
    """Call a function with an interrupt at a step; return whether it came."""
    trace = Interrupt(step, is_second)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        next(alone(call))
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    assert sys.exc_info() == (None, None, None)
    return trace.has_come


def alone(call):
    """Call a function in a generator, with which the error ends that it handles.

    CPython 3.11 may go on to handle an error if a trace interrupts its handler, and later errors of
    the process then have it as their context.
    """
    yield call()


def until_it_ends(call, check, is_second=False):
    step = 0
    while step < 2_000:
        step += 1
        came = interrupted(call, step, is_second)
        check()
        if not came:
            return step
    raise AssertionError("the call has too many steps")


@pytest.fixture(autouse=True)
def _threads(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 3)
    monkeypatch.setattr(threads, "max_threads", lambda: 3)
    monkeypatch.setattr(threads, "_pool", None)


@pytest.mark.parametrize("is_second", [False, True])
def test_threads_of_kernels_end_after_an_interrupt_at_any_step(is_second):
    running = []
    lock = threading.Lock()

    def work(thread):
        with lock:
            running.append(thread)
        with lock:
            running.remove(thread)

    def call():
        threads.on_each(work, 3)

    def check():
        assert not running
        call()

    assert until_it_ends(call, check, is_second) > 20


def test_what_is_not_cut_short_ends_after_an_interrupt_at_any_step():
    done = []

    def call():
        own = []
        assert _uninterrupted.run(lambda: own.append(1) or 5) == 5
        done.append(own)

    def check():
        _uninterrupted._threads.join()
        call()
        assert done[-1] == [1]

    assert until_it_ends(call, check) > 5


def test_a_map_ends_after_an_interrupt_at_any_step():
    running = set()

    def double(value):
        running.add(value)
        running.discard(value)
        return 2 * value

    def call():
        assert map_on_threads(double, range(4), 3) == [0, 2, 4, 6]

    def check():
        assert not running
        call()

    assert until_it_ends(call, check) > 20


def test_a_map_keeps_the_order_and_raises_the_first_error():
    def root(value):
        if value % 3 == 2:
            raise ValueError(value)
        return value

    assert map_on_threads(root, [1, 0, 4, 3], 2) == [1, 0, 4, 3]
    assert map_on_threads(root, [], 4) == []
    with pytest.raises(ValueError, match=r"^2$"):
        map_on_threads(root, [2, 5], 8)


def settled(is_so):
    """Wait until threads have come so far."""
    until = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < until
        time.sleep(1e-4)


def test_a_thread_that_was_to_start_has_started_after_an_interrupt_at_any_step():
    started = []

    def check():
        _uninterrupted._threads.join()
        settled(lambda: not any(each.name == "of a test" for each in threading.enumerate()))
        _uninterrupted.start(lambda: started.append(1), "of a test").join(PATIENCE)
        assert started.pop()
        started.clear()

    def call():
        _uninterrupted.start(lambda: started.append(1), "of a test").join()

    assert until_it_ends(call, check) > 20


def test_a_promise_is_kept_once_after_an_interrupt_at_any_step():
    kept, promises = [], []

    def make():
        kept.append(1)
        return 5

    def call():
        promises.append(Promise(make))
        assert promises[-1].take() == 5

    def check():
        if promises:  # else it was not even made
            assert promises.pop().take() == 5  # another one of its callers, as a second thread is
            assert len(kept) == 1
            kept.clear()

    assert until_it_ends(call, check) > 20


def test_what_is_given_first_counts():
    answer = Answer()
    assert not answer.wait(0)
    answer.give(1)
    answer.give(error=ValueError())
    assert answer.take() == 1
    assert answer.error is None


def test_worker_processes_hold_no_lock_after_an_interrupt_at_random_moments(monkeypatch):
    """No handler of a signal runs between two steps of C: a trace, as above, would be too strict."""

    def fork(processes, _environment):
        ready = SimpleNamespace(pid=0, is_ready=True, name="one", tasks={})
        ready.reader = _uninterrupted.start(lambda: processes._changes.put(None), "kepler-fake")
        processes._processes.append(ready)

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(WorkerProcesses, "_fork", fork)
    before = signal.signal(signal.SIGALRM, interrupt)
    draw = Random(3)
    n_interrupts = 0
    try:
        for _ in range(300):
            processes = WorkerProcesses()
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 2e-3))
                processes.add(1, "cpu")
                processes.give("a worker", list)
                while True:
                    processes.states(1.0)
                    processes.cancel([])
                    processes.restart("none", "")
            except KeyboardInterrupt:
                n_interrupts += 1
            assert _uninterrupted.run(processes._lock.acquire, True, PATIENCE)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert n_interrupts == 300


def test_tasks_in_this_process_end_after_an_interrupt_at_any_step(tmp_path):
    ran = []
    others = threading.enumerate()  # of earlier tests

    def run(task, begin_next):  # noqa: ARG001
        ran.append(task.number)
        return []

    def call():
        ended = SimpleQueue()
        with InProcessExecutor(run) as executor:
            for number in (1, 2):
                task = Task(
                    number=number, parts=(), isolate=False, without=frozenset(), heartbeat=tmp_path
                )
                future = executor.submit(task)
                future.add_done_callback(ended.put)
                executor.states(1.0)
            executor.cancel([future])
            assert {ended.get(timeout=PATIENCE).status for _ in "ab"} <= {"finished", "cancelled"}

    def check():
        _uninterrupted._threads.join()
        settled(lambda: not [each for each in threading.enumerate() if each not in others])
        ran.clear()

    assert until_it_ends(call, check) > 20


def is_in_a_wait():
    """Whether the main thread has come to code that waits."""
    frame = sys._current_frames()[threading.main_thread().ident]
    while frame is not None and frame.f_code.co_filename != _uninterrupted.__file__:
        frame = frame.f_back
    return frame is not None


def share_until_stopped(is_over):
    """Wait for a thread of a pool, which ends after ``stop``."""
    pool = _uninterrupted.Pool(1)
    has_begun = threading.Event()

    def work(number):
        if number:
            has_begun.set()
            is_over.wait(PATIENCE)
        has_begun.wait(PATIENCE)

    try:
        pool.call(work, 1, is_over.set)
    finally:
        pool.close()


@pytest.mark.parametrize(
    "wait",
    [
        lambda _: _uninterrupted.sleep(),
        lambda is_over: _uninterrupted.run(is_over.wait, PATIENCE),
        lambda _: Answer().wait(),
        lambda _: Answer().wait(PATIENCE),
        share_until_stopped,
    ],
    ids=["sleep", "run", "answer", "answer for some seconds", "pool"],
)
def test_a_signal_that_another_thread_takes_ends_a_wait(wait):
    is_over = threading.Event()
    # an earlier test of this process may have had the signal ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def send():
        settled(is_in_a_wait)  # before, the interrupt would end the tests
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    sender = threading.Thread(target=send)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            wait(is_over)
    finally:
        is_over.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
