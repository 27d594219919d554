"""Free memory of a device."""

from __future__ import annotations

import sys

from .. import cuda
from ..errors import CapacityError, one_line


def available_memory(device: str) -> int:
    """Return the bytes that can be allocated on a device; of a host no more than the process may
    still have (``ulimit -v``).
    """
    if device == "cuda":
        return cuda.cp.cuda.runtime.memGetInfo()[0] + cuda.cp.get_default_memory_pool().free_bytes()
    import psutil

    return min(psutil.virtual_memory().available, _left_of_limit())


def _left_of_limit() -> int:
    """Return the bytes of address space that the process may still take."""
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
    """Raise CapacityError unless a result of so many bytes fits into the memory that is free."""
    n_free = available_memory(device)
    if nbytes > n_free:
        needed = f"needs {nbytes / 2**20:,.1f} MiB, and {n_free / 2**20:,.1f} MiB are free"
        raise CapacityError(f"{what} {needed}; {advice}")


def out_of_memory(error: MemoryError) -> CapacityError:
    """Return the error of a call that an allocation has ended."""
    reason = one_line(error) or "an allocation failed"
    return CapacityError(
        f"the memory does not do for this call: {reason}; take stream=True, "
        "fewer sources, or a smaller result (summary)"
    )


def fitting(nbytes: int) -> int:
    """Return so many bytes, or half of those that can be allocated on the GPU if that is less."""
    return min(nbytes, available_memory("cuda") // 2)
