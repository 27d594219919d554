"""An interrupt between any two steps of a wait leaves no lock held: the call ends, and the next one works."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from pathlib import Path

import pytest

import kepler_traverse
from kepler_traverse import _uninterrupted
from kepler_traverse._uninterrupted import map_on_threads
from kepler_traverse.cpu import threads

WAITS = {
    Path(threading.__file__),
    *Path(sys.modules[Future.__module__].__file__).parent.glob("*.py"),
}
OURS = Path(kepler_traverse.__file__).parent


class Interrupt:
    """Raises KeyboardInterrupt at the n-th step of the main thread in code that waits, as the handler of a signal does."""

    def __init__(self, step, is_second=False):
        self.left = step
        self.again = is_second
        self.has_come = False

    def __call__(self, frame, _event, _argument):
        path = Path(frame.f_code.co_filename)
        if path not in WAITS and OURS not in path.parents:
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
        call()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return trace.has_come


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


@pytest.mark.timeout(60)
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


@pytest.mark.timeout(60)
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


@pytest.mark.timeout(60)
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
