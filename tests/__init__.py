"""Tests. Some need two threads, which Numba would not make on one core."""

import os

CORES = sorted(os.sched_getaffinity(0))
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
# On a machine of many cores each of as many workers would start as many threads. So a worker has two cores, of which one is
# also the next worker's. Children inherit them.
if WORKER.isdigit():
    os.sched_setaffinity(0, {CORES[(int(WORKER) + step) % len(CORES)] for step in (0, 1)})
if len(CORES) == 1:
    os.environ.setdefault("NUMBA_NUM_THREADS", "2")
