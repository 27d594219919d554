"""Classify errors: out of memory, and CUDA errors after which a process cannot continue."""

from __future__ import annotations

_CUDA_ERRORS = ("CUDARuntimeError", "CUDADriverError")
_CUDA_OUT_OF_MEMORY = ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, of the host or of a GPU; CuPy's own error for it is a MemoryError."""
    # CUDA's errors are recognized by the names of their classes, because CuPy may be missing.
    return isinstance(error, MemoryError) or (
        type(error).__name__ in _CUDA_ERRORS
        and any(name in str(error) for name in _CUDA_OUT_OF_MEMORY)
    )


def is_sticky(error: BaseException) -> bool:
    """Whether an error makes every later CUDA call of this process fail, too.

    All CUDA errors count as such, except want of memory. The process must then be replaced.
    """
    return type(error).__name__ in _CUDA_ERRORS and not is_out_of_memory(error)
