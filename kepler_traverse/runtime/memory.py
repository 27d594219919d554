"""Free memory of a device."""

from __future__ import annotations

import sys

from .. import cuda
from ..errors import CapacityError, one_line


def available_memory(device: str) -> int:
    """Return the number of bytes that can be allocated on a device, "cpu" or "cuda".

    On the CPU it is at most what the process may still take by ``ulimit -v``.
    """
    if device == "cuda":
        # The free memory of the driver, and the memory of CuPy's pool that is not in use.
        return cuda.cp.cuda.runtime.memGetInfo()[0] + cuda.cp.get_default_memory_pool().free_bytes()
    import psutil

    return min(psutil.virtual_memory().available, _left_of_limit())


def _left_of_limit() -> int:
    """Return the number of bytes of address space that the process may still take under ``ulimit
    -v``; a huge number if there is no limit.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return sys.maxsize
    import psutil

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(0, limit - psutil.Process().memory_info().vms)


def require_memory(nbytes: int, device: str, what: str, advice: str) -> None:
    """Raise CapacityError unless ``nbytes`` bytes fit into the free memory of a device, "cpu" or
    "cuda".

    ``what`` names the result in the error, and ``advice`` ends it.
    """
    n_free = available_memory(device)
    if nbytes > n_free:
        needed = f"needs {nbytes / 2**20:,.1f} MiB, and {n_free / 2**20:,.1f} MiB are free"
        raise CapacityError(f"{what} {needed}; {advice}")


def out_of_memory(error: MemoryError) -> CapacityError:
    """Return the CapacityError to raise in place of a MemoryError that has ended a call."""
    reason = one_line(error) or "an allocation failed"
    return CapacityError(
        f"the memory does not do for this call: {reason}; take stream=True, "
        "fewer sources, or a smaller result (summary)"
    )


def fitting(nbytes: int) -> int:
    """Return ``nbytes``, or half of the bytes that can be allocated on the GPU, whichever is less.

    The other half is left for arrays that are allocated besides.
    """
    return min(nbytes, available_memory("cuda") // 2)
