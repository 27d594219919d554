"""Copies within the memory of a GPU that compile nothing; an assignment compiles a kernel of CuPy for its types."""

from __future__ import annotations


def copy_into(target, source) -> None:
    """Copy a contiguous array into another of the same type and size, on the current stream.

    Raises
    ------
    ValueError
        The arrays are not contiguous, or differ in type or size.
    """
    if not (target.flags.c_contiguous and source.flags.c_contiguous):
        raise ValueError("only contiguous arrays are copied as memory")
    if (target.dtype, target.size) != (source.dtype, source.size):
        raise ValueError(f"{source.size} elements of {source.dtype} do not fit {target.size} of {target.dtype}")
    if source.size:
        target.data.copy_from_device_async(source.data, source.nbytes)
