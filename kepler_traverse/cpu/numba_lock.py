"""Replace the lock under which Numba starts its threads by one that an interrupt cannot leave held.

Each call of ``numba.set_num_threads`` takes this lock, too.

Numba takes a lock of ``multiprocessing``, whose ``__enter__`` is a function of Python. Ctrl-C can
raise KeyboardInterrupt after that function has acquired the lock and before the ``with`` statement
that releases it has begun. Then every other thread waits for it forever. ``threading.RLock`` is
acquired by one call of C, after which no signal is looked at.
"""

from __future__ import annotations

import os
import threading

from numba.np.ufunc import parallel


def replace() -> None:
    """Give Numba a lock of this process, and a new one to each process that is forked from it."""
    parallel._backend_init_process_lock = threading.RLock()
    os.register_at_fork(after_in_child=_replace_in_child)


def _replace_in_child() -> None:
    """Give Numba a new lock in a forked child: a thread that the child does not have may have held
    the old one.
    """
    parallel._backend_init_process_lock = threading.RLock()
