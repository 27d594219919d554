"""A process that was forked from one that has traversed raises an error, where it would end by a
signal or hang.

The threads of GNU OpenMP do not survive a fork. A parallel kernel ends the child by SIGTERM, so its
parent waits for an answer forever; it hangs in a child of the child. A forked child therefore
exchanges the compiled code of every parallel kernel for an error that says how to start processes.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from ..errors import ForkError

_PACKAGE = __package__.partition(".")[0]
_MESSAGE = (
    "this process was forked from one that had searched with strategy bit_parallel, and the threads of GNU OpenMP do not "
    "survive a fork; start processes by multiprocessing.get_context('spawn') or 'forkserver', or fork before the first "
    "call"
)


def watch() -> None:
    """Have every process that is forked from this one checked for lost threads, in the child."""
    os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    """In a child that lacks the threads of parallel kernels, exchange their code for an error."""
    if _threads_are_lost():
        for kernel in _parallel_kernels():
            _disarm(kernel)


def _threads_are_lost() -> bool:
    """Return whether the parent's kernels had threads which this process lacks: those of GNU
    OpenMP, and no others.

    Numba loads its module ``parallel`` and chooses a threading layer, such as "omp", when the first
    parallel kernel runs. Without these there are no threads to lose.
    """
    parallel = sys.modules.get("numba.np.ufunc.parallel")
    if parallel is None or getattr(parallel, "_threading_layer", None) != "omp":
        return False
    return sys.modules["numba.np.ufunc.omppool"].openmp_vendor == "GNU"


def _parallel_kernels() -> list[Any]:
    """Return the functions of this package that Numba compiles with ``parallel=True``, each
    once.
    """
    from numba.core.dispatcher import Dispatcher

    kernels = {}  # by id, since several modules may have the name of one
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != _PACKAGE:
            continue
        for value in list(vars(module).values()):
            if isinstance(value, Dispatcher) and value.targetoptions.get("parallel"):
                kernels[id(value)] = value
    return list(kernels.values())


def _disarm(kernel: Any) -> None:
    """Drop the compiled code of a kernel, so that each call would compile, and raise ForkError
    where it does. The object stays, so that every holder of the kernel gets the error.
    """
    kernel._clear()
    kernel._compile_for_args = _refuse


def _refuse(*_: Any, **__: Any) -> NoReturn:
    """Raise ForkError, whatever the arguments: this stands for compiling a kernel whose threads a
    fork has lost.
    """
    raise ForkError(_MESSAGE)
