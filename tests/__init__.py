"""Tests. Some need two threads, which Numba would not make on one core."""

import os

if len(os.sched_getaffinity(0)) == 1:
    os.environ.setdefault("NUMBA_NUM_THREADS", "2")
