"""Compiled loops on several threads: each thread calls the same kernel, and the kernel takes items
until none is left.

Kernels are plain functions that release the GIL. A parallel loop of Numba's takes about three times
as long to compile, and its threads do not survive a fork.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np

from .._uninterrupted import Pool

# int64 numbers of a cache line. A counter has a line of its own, of which one number is used, so
# that no other array shares its memory.
_CACHE_LINE = 8

_pool: Pool | None = None  # the threads of this process; None until they are started


def max_threads() -> int:
    """Return how many threads a call may ever use in this process."""
    return numba.config.NUMBA_NUM_THREADS


def count() -> int:
    """Return how many threads the calling thread may use now; ``numba.set_num_threads`` sets it."""
    # Numba knows no other number before its threads have been started, which takes time and is not
    # needed here.
    numbas = sys.modules.get("numba.np.ufunc.parallel")
    if getattr(numbas, "_is_initialized", False):
        return numba.get_num_threads()
    return max_threads()


def run(
    kernel: Callable[..., object],
    n_items: int,
    *args: object,
    own: Sequence[Sequence[Any] | np.ndarray] = (),
) -> None:
    """Call a kernel on up to as many threads as there are items; return when all items are done.

    The kernel, compiled with ``nogil=True``, is called as ``kernel(next_item, n_items, *args)``. It
    takes item numbers by ``atomic_add(next_item, 0, 1)`` until one is ``n_items`` or more. ``own``
    is a sequence of arrays or lists, each with a row (or element) for each of ``count()`` threads:
    the row of thread i of each is passed to the kernel on thread i, after ``args``. After an
    interrupt, threads end with the item that they are at.
    """
    next_item = np.zeros(_CACHE_LINE, np.int64)

    def work(thread: int) -> None:
        """Call the kernel with the memory of one thread."""
        rows_of_thread = [rows[thread] for rows in own]
        kernel(next_item, n_items, *args, *rows_of_thread)

    def stop() -> None:
        """Leave no item for the threads to take, after an interrupt."""
        next_item[0] = n_items

    on_each(work, n_items, stop)


def run_alone(kernel: Callable[..., object], n_items: int, *args: object) -> None:
    """Call a kernel as ``run`` does, on the calling thread only, for work that is too small to
    share.
    """
    kernel(np.zeros(_CACHE_LINE, np.int64), n_items, *args)


def for_each(function: Callable[[int, int], object], n_items: int) -> None:
    """Call ``function(item, thread)`` for each item number, on threads that take items as they
    become free.

    ``thread`` is a number from 0 to below ``max_threads()``. No two calls that run at the same time
    have the same number.
    """
    items = iter(range(n_items))  # ``next`` of it is one step under the GIL, so it needs no lock

    def take(thread: int) -> None:
        """Call the function for items until none is left."""
        for item in items:
            function(item, thread)

    def stop() -> None:
        """Leave no item for the threads to take, after an interrupt."""
        for _ in items:
            pass

    on_each(take, n_items, stop=stop)


def on_each(
    function: Callable[[int], object], n_threads: int, stop: Callable[[], object] = lambda: None
) -> None:
    """Call ``function(thread)`` on the calling thread and on up to ``n_threads - 1`` others, and
    return when all have ended.

    ``thread`` is 0 for the calling thread, and a different number from 1 on for each other thread.
    If the calling thread raises an error, as after Ctrl-C, ``stop()`` is called, which should make
    the other threads end soon; by default it does nothing.
    """
    others = min(count(), n_threads) - 1  # threads next to the calling one; it works alone at 0
    if others < 1:
        function(0)
    else:
        _threads().call(function, others, stop)


def _threads() -> Pool:
    """Return the pool of threads that work beside the calling thread. The first call in a process
    starts them.
    """
    global _pool
    if _pool is None:
        _pool = Pool(max_threads() - 1)
    return _pool


def _after_fork() -> None:
    """Forget the threads of the parent, which a child does not have."""
    global _pool
    _pool = None


def _at_exit() -> None:
    """End the threads of this process, if there are any, before the interpreter ends."""
    if _pool is not None:
        _pool.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
