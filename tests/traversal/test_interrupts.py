"""Ctrl-C at any moment of any call: the call ends by KeyboardInterrupt, and the next call of the process is right."""

import json
import sys

import pytest

from tests.support import tiers
from tests.support.interrupted_calls import CALLS
from tests.support.processes import ran

# The signal is there when the compiled function makes what it returns, which is what a long search makes likely.
PENDING = """
import os, signal, sys, threading, time
import numpy as np
from kepler_traverse.cpu.atomics import atomic_add
from kepler_traverse.cpu.compiled import njit


class LateError(Exception):
    pass


def raise_late(*_):
    raise LateError


@njit(nogil=True)
def search(state, size):
    atomic_add(state, 0, 1)
    while not atomic_add(state, 1, 0):
        pass
    return RETURNED


def send(state):
    while not state[0]:
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGALRM)
    time.sleep(0.01)
    state[1] = 1


search(np.array([0, 1]), 3)
signal.signal(signal.SIGALRM, raise_late)
for _ in range(3):
    state = np.zeros(2, np.int64)
    threading.Thread(target=send, args=[state]).start()
    try:
        found = search(state, 3)
        time.sleep(0.1)
        print("returned", flush=True)
    except BaseException as error:
        print(type(error).__name__, flush=True)
found = search(np.array([0, 1]), 3)
print(found[0] if isinstance(found, tuple) else found)
"""


@pytest.mark.parametrize(
    "returned",
    tiers.few(
        [
            "(np.ones(size), size)",
            "np.ones(size)",
            "(state, size)",
            "state",
            "(size, (size, np.ones(2)))",
        ],
        1,
    ),
)
def test_an_error_of_a_handler_is_not_lost_while_an_array_is_made(returned):
    child = ran([sys.executable, "-c", PENDING.replace("RETURNED", returned)])
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines()[:3] == ["LateError"] * 3
    assert len(child.stdout.splitlines()) == 4


def interrupt(name, number, seed, times):
    """Return what became of the interrupts of a call in a process of its own, of which the first meets a cold call."""
    child = ran(
        [sys.executable, "-m", "tests.support.interrupted_calls", name, number, seed, times]
    )
    assert child.returncode == 0, (name, child.returncode, child.stdout, child.stderr[-2000:])
    return [json.loads(line) for line in child.stdout.splitlines() if line.startswith("{")]


def check(found, error):
    for each in found:
        assert each["how"] == error, each
        assert each["right"], each


@pytest.mark.parametrize(
    "name", [pytest.param("pairs", marks=pytest.mark.exhaustive), "eight threads"]
)
def test_ctrl_c_ends_a_call_by_keyboard_interrupt(name):
    check(interrupt(name, "SIGINT", 1, 3), "KeyboardInterrupt")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_at_many_moments(name):
    found = [each for seed in (2, 3) for each in interrupt(name, "SIGINT", seed, 7)]
    assert len(found) == 14  # 560 of all calls
    check(found, "KeyboardInterrupt")


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", CALLS)
def test_an_error_of_another_handler_ends_the_call(name):
    check(interrupt(name, "SIGALRM", 4, 3), "LateError")
