"""Arrays in pinned host memory that kernels read over the bus: the edges of a graph that a GPU does
not hold.

Such an array is one of CuPy: any kernel may read it, at the speed of the bus. ``HostPages`` is also
an array of NumPy, whose slices are copied to the device without a detour.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._arrays import Array, get_device, to_host
from . import cp

_AT_ONCE = 1 << 26  # elements that ``pin`` copies at once


@functools.cache
def _pages_class(memory: Any) -> type:
    """Return the class of pinned host memory as CuPy takes it, a subclass of ``memory``.

    ``memory`` is CuPy's class ``UnownedMemory``. The class is made here, on the first call, because
    a machine without a GPU has no CuPy.
    """

    class HostPages(memory):
        """Pinned memory, which ``host`` shows as a NumPy array."""

        host: np.ndarray  # one-dimensional, of the type of the array that was pinned

    return HostPages


def pin(array: Array) -> Array:
    """Return a CuPy array of the same content in pinned host memory, or the array itself if it is
    there already.

    Raises
    ------
    MemoryError
        The host has too little memory that can be pinned.
    """
    if is_pinned(array):
        return array

    # CuPy's pool would round the size up to a power of two.
    pages = cp.cuda.PinnedMemory(max(array.nbytes, 1))
    host = np.frombuffer(cp.cuda.PinnedMemoryPointer(pages, 0), array.dtype, array.size)
    flat = array.reshape(-1)  # an array may have two dimensions, such as a row of each direction
    for first in range(0, array.size, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        if get_device(array) == "cuda":
            flat[part].get(out=host[part])
        else:
            host[part] = flat[part]

    # The array of CuPy shows the same memory, and keeps it alive. Its memory also has the array of
    # NumPy, for ``host_view``.
    address = host.ctypes.data
    device = cp.cuda.runtime.getDevice()
    memory = _pages_class(cp.cuda.UnownedMemory)(address, max(array.nbytes, 1), pages, device)
    memory.host = host
    return cp.ndarray(array.shape, array.dtype, memptr=cp.cuda.MemoryPointer(memory, 0))


def is_pinned(array: Array) -> bool:
    """Return whether ``pin`` has made an array; False for None."""
    if array is None or get_device(array) != "cuda":
        return False
    return isinstance(array.data.mem, _pages_class(cp.cuda.UnownedMemory))


def host_view(array: Array) -> np.ndarray:
    """Return an array as one of NumPy: one that ``pin`` has made without a copy, another one from a
    GPU as a copy in host memory.
    """
    if is_pinned(array):
        pages: np.ndarray = array.data.mem.host
        return pages.reshape(array.shape)
    return to_host(array)
