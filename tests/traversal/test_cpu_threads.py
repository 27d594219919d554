"""Threads of compiled kernels: every item once, errors of any thread, and threads after a fork."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from kepler_traverse.cpu import threads
from tests.support.processes import PATIENCE


@pytest.fixture(autouse=True)
def _four_threads(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 4)
    monkeypatch.setattr(threads, "max_threads", lambda: 4)
    monkeypatch.setattr(threads, "_pool", None)


def test_each_item_is_done_once_and_by_one_thread_number_at_a_time():
    done, busy, lock = np.zeros(500, np.int64), set(), threading.Lock()

    def work(item: int, thread: int) -> None:
        with lock:
            assert thread not in busy
            busy.add(thread)
        done[item] += 1
        with lock:
            busy.remove(thread)

    threads.for_each(work, done.size)
    assert (done == 1).all()


def test_threads_used_are_at_most_the_items():
    numbers = []
    threads.on_each(numbers.append, 3)
    assert set(numbers) <= {0, 1, 2}
    assert 0 in numbers


def test_an_error_in_another_thread_reaches_the_caller():
    barrier = threading.Barrier(2, timeout=PATIENCE)

    def fail(thread: int) -> None:
        barrier.wait()
        if thread:
            raise ValueError(f"thread {thread}")

    with pytest.raises(ValueError, match="thread 1"):
        threads.on_each(fail, 2)


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_child_starts_threads_of_its_own():
    threads.for_each(lambda _item, _thread: None, 8)
    child = os.fork()
    if not child:
        done = []
        threads.for_each(lambda item, _thread: done.append(item), 8)
        os._exit(0 if sorted(done) == list(range(8)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
