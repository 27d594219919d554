"""A clock for machines that do other work, too: seconds without those in which threads waited for a core.

Linux counts the nanoseconds that each thread waited for a core. Of a call that took ``t`` seconds let the threads have run
for ``r`` seconds on ``c`` cores and waited for ``w``, and let the calling thread have run for ``o``. On a machine that does
nothing else the call takes about the largest of ``t - w`` (one thread runs at a time), ``o`` (the caller's own work) and
``r / c`` (all cores share the work). Caches and memory are shared with other processes all the same, and work of child
processes is not seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scripts.measure.work import Timed

_THREADS = Path("/proc/self/task")


class Times(NamedTuple):
    """Seconds of the clock, that this thread ran, that all threads of this process ran, and that they waited for a core."""

    clock: float
    own: float
    ran: float
    waited: float


def now() -> Times:
    """Return the times of this moment. Where the system does not count them, no thread waits."""
    waited = 0
    for thread in os.listdir(_THREADS) if _THREADS.is_dir() else ():
        try:
            with open(f"{_THREADS}/{thread}/schedstat", "rb") as file:
                waited += int(file.read().split()[1])
        except OSError:  # the thread has ended
            continue
    return Times(time.perf_counter(), time.thread_time(), time.process_time(), 1e-9 * waited)


def between(began: Times, ended: Times, device: str = "cpu") -> float:
    """Return the seconds between two moments; of the CPU without those in which threads waited for a core."""
    clock, own, ran, waited = (after - before for before, after in zip(began, ended, strict=True))
    if device != "cpu":
        return clock
    return min(clock, max(clock - waited, own, ran / len(os.sched_getaffinity(0))))


def computing(began: Times, ended: Times, device: str) -> float:
    """Return the seconds that threads computed, as if they shared the work evenly; of a GPU those of the clock.

    Where threads wait for each other, a thread that waits for a core lets others sleep, so that the seconds without waiting
    for a core are too many on a busy machine.
    """
    clock, own, ran, _ = (after - before for before, after in zip(began, ended, strict=True))
    if device != "cpu":
        return clock
    return min(clock, max(own, ran / len(os.sched_getaffinity(0))))


def undisturbed(call: Callable) -> Timed:
    """Return what a call returns, and its seconds without those in which threads waited for a core."""
    began = now()
    found = call()
    return Timed(found, between(began, now()))


def with_processor(call: Callable) -> Timed:
    """Return what a call returns, its seconds, and those of the processor, which other programs do not lengthen as much."""
    used = time.process_time()
    began = time.perf_counter()
    found = call()
    seconds = time.perf_counter() - began
    return Timed(found, seconds, {"processor": round(time.process_time() - used, 4)})
