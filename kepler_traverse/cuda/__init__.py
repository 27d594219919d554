"""The only package that imports CuPy. It imports on every machine; ``require`` says what is missing
where it cannot run.
"""

from __future__ import annotations

import os
import sys

from ..errors import DeviceError, ForkError, how_to_install

try:
    import cupy as cp
except ImportError:  # a machine without a GPU imports everything and runs on the CPU
    cp = None


# whether a GPU has answered, in this process or in the one that it was forked from
_has_answered = False
_is_lost = False  # whether a GPU had answered before this process was forked, and cannot here


def available() -> bool:
    """Return whether CuPy is installed and finds a GPU. Later calls look for one again.

    Raises
    ------
    ForkError
        A GPU has answered in the process that this one was forked from, and none can answer here.
    """
    global _has_answered
    if cp is None:
        return False
    refuse_after_fork()
    # Once True it stays True, as the process has used CUDA, which a fork then loses.
    try:
        _has_answered = cp.cuda.runtime.getDeviceCount() > 0 or _has_answered
    except cp.cuda.runtime.CUDARuntimeError:
        return False
    return _has_answered


def refuse_after_fork() -> None:
    """Raise ForkError in a process that was forked from one which had asked for a GPU: CUDA does
    not survive that.
    """
    if _is_lost:
        raise ForkError(
            "this process was forked from one that had already used a GPU, and CUDA does not survive a fork; start "
            "processes by multiprocessing.get_context('spawn') or 'forkserver', or fork before the first call"
        )


def _after_fork() -> None:
    """Have each use of a GPU raise ForkError in a forked child whose parent had used one. Python
    calls this in each child after a fork.
    """
    global _is_lost
    _is_lost = _has_answered
    # Kernels that the parent has compiled raise the error when they are launched: on the class
    # ``Kernel`` a property takes the place of the attribute that holds the compiled function. The
    # module of the class may not be imported, and then there are no kernels.
    if _is_lost and (loader := sys.modules.get(f"{__name__}.compiler")):
        loader.Kernel.function = property(lambda _: refuse_after_fork())


os.register_at_fork(after_in_child=_after_fork)


def require() -> None:
    """Raise a DeviceError that says what is missing unless a GPU can be used."""
    if cp is None:
        raise DeviceError(
            "device 'cuda' needs CuPy, which is not installed: "
            f"{how_to_install('cuda13')}, or take device 'cpu'"
        )
    if not available():
        raise DeviceError(
            "device 'cuda' was asked for, but no GPU answers on this machine; take device 'cpu'"
        )


__all__ = ["available", "cp", "require"]
