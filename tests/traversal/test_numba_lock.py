"""Ctrl-C at any moment leaves no lock of Numba held, on which the searches of other threads would wait forever."""

import sys

import pytest

from tests.support.processes import ran

# A timer interrupts the main thread again and again while it asks for Numba's threads.
PROGRAM = """
import random, signal, sys, threading
import numba
{imported}

def interrupt(*_):
    raise KeyboardInterrupt

numba.set_num_threads(1)  # starts the threads
signal.signal(signal.SIGALRM, interrupt)
draw = random.Random(7)
for _ in range(4000):
    try:
        signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-6, 6e-5))
        while True:
            numba.set_num_threads(1)
    except KeyboardInterrupt:
        pass
signal.signal(signal.SIGALRM, signal.SIG_IGN)
other = threading.Thread(target=numba.set_num_threads, args=(1,), daemon=True)
other.start()
other.join(10)
print("waits" if other.is_alive() else "free")
"""


def test_an_interrupt_leaves_no_lock_of_numba_held():
    done = ran([sys.executable, "-c", PROGRAM.format(imported="import kepler_traverse.cpu")])
    assert done.stdout.strip() == "free", done.stderr


@pytest.mark.exhaustive
def test_the_lock_that_numba_takes_would_be_held():
    """What ``cpu/numba_lock.py`` is for; once Numba is corrected, that module can go."""
    done = ran([sys.executable, "-c", PROGRAM.format(imported="")])
    assert done.stdout.strip() == "waits", done.stderr
