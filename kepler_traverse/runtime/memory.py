"""Free memory of a device."""

from __future__ import annotations

from .. import cuda


def available_memory(device: str) -> int:
    """Bytes that can be allocated on a device."""
    if device == "cuda":
        return cuda.cp.cuda.runtime.memGetInfo()[0] + cuda.cp.get_default_memory_pool().free_bytes()
    import psutil

    return psutil.virtual_memory().available


def fitting(nbytes: int) -> int:
    """Return so many bytes, or half of those that can be allocated on the GPU if that is less."""
    return min(nbytes, available_memory("cuda") // 2)
