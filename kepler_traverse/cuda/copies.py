"""Copies within the memory of a GPU that compile nothing: assignments and copies of CuPy compile a
kernel per type.
"""

from __future__ import annotations

from .._arrays import Array
from . import cp


def copy_array(array: Array) -> Array:
    """Return a copy of a contiguous array, in memory of the current device."""
    copied = cp.empty(array.shape, array.dtype)
    copy_into(copied, array)
    return copied


def copy_into(target: Array, source: Array) -> None:
    """Copy a contiguous array into another of the same type and size, on the current stream.

    Raises
    ------
    ValueError
        The arrays are not contiguous, or differ in type or size.
    """
    if not (target.flags.c_contiguous and source.flags.c_contiguous):
        raise ValueError("only contiguous arrays are copied as memory")
    if (target.dtype, target.size) != (source.dtype, source.size):
        raise ValueError(
            f"{source.size} elements of {source.dtype} do not fit {target.size} of {target.dtype}"
        )
    if source.size:
        target.data.copy_from_device_async(source.data, source.nbytes)
