"""A pool of host memory. Without it, the rows of each source would be new memory, which the system
clears page by page.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from kepler_traverse import cuda

_MIN_BYTES = 2**10  # of the memory of an array


class Buffers:
    """Lends arrays. Their memory returns to the pool when the last reference to them ends. Threads
    may share it.

    Until ``clear``, the pool holds as much memory as was lent at one time.

    ``new``: ``new(size)`` returns that many bytes of memory, as an array of uint8.
    """

    def __init__(self, new: Callable[[int], np.ndarray]):
        self._new = new
        # memory that is not lent, by its size in bytes
        self._free: defaultdict[int, deque[np.ndarray]] = defaultdict(deque)

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return an uninitialized array, as ``numpy.empty`` does, in memory that the pool lends."""
        dtype = np.dtype(dtype)
        if not isinstance(shape, tuple):
            shape = (shape,)
        nbytes = dtype.itemsize * math.prod(shape)
        # Sizes are powers of two, ``_MIN_BYTES`` at least, so that arrays of about one size use the
        # same memory. The 1 within the shift is for arrays without bytes.
        size = max(_MIN_BYTES, 1 << max(nbytes - 1, 1).bit_length())

        try:
            # Popped without a look at whether there is one: another thread might take it between.
            memory = self._free[size].pop()
        except IndexError:
            memory = self._new(size)

        # The array and all views of it refer to the loan. When the last of them is deleted, the
        # loan is deleted, too, and returns the memory.
        lent = np.asarray(_Loan(self, memory))
        return lent[:nbytes].view(dtype).reshape(shape)

    def take_back(self, memory: np.ndarray) -> None:
        """Keep memory of a loan that has ended, for a next array of its size."""
        self._free[memory.size].append(memory)

    def clear(self) -> None:
        """Return memory that is not lent to the system."""
        self._free.clear()


class _Loan:
    """The owner of the memory of an array of NumPy or pyarrow; when its last array ends, the memory
    returns to the pool.

    ``__array_interface__`` makes NumPy take it for an array: views refer to it as to their base.
    """

    def __init__(self, owner: Buffers, memory: np.ndarray):
        self._owner = owner
        self._memory = memory
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        """Return the memory to the pool: no array uses it any more."""
        self._owner.take_back(self._memory)


def _allocate_pageable(size: int) -> np.ndarray:
    """Allocate ``size`` bytes of ordinary memory."""
    return np.empty(size, np.uint8)


def _allocate_pinned(size: int) -> np.ndarray:
    """Allocate ``size`` bytes of pinned memory, which a GPU writes to directly.

    For other memory the driver copies the bytes once more, on a core that could make rows. If the
    system pins no more memory, it is ordinary memory.
    """
    try:
        return np.frombuffer(cuda.cp.cuda.alloc_pinned_memory(size), np.uint8, size)
    except (MemoryError, cuda.cp.cuda.runtime.CUDARuntimeError):  # the system locks no more of it
        return _allocate_pageable(size)


BUFFERS = Buffers(_allocate_pageable)
FROM_GPU = Buffers(_allocate_pinned)  # for copies from a GPU
