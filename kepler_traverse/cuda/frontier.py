"""The frontier on the GPU: this level's queue, the next one, and the counters that the host reads once a level."""

from __future__ import annotations

import numpy as np

from ..errors import FrontierOverflowError
from . import cp


class Frontier:
    """Two queues of vertices and a few counters, allocated once.

    Attributes
    ----------
    queue, next : arrays of shape (capacity,)
        The vertices of this level, and room for those of the next.
    size : int
        How many vertices ``queue`` holds.
    capacity : int
        A vertex enters a queue at most once a level, so one place a vertex is enough.
    counters : int64 array of shape (n_counters,)
        The size of ``next``, and whatever else a step counts.
    """

    def __init__(self, capacity: int, dtype, n_counters: int = 2):
        self.capacity = capacity
        self.queue, self.next = cp.empty(capacity, dtype), cp.empty(capacity, dtype)
        self.size = 0
        self.counters = cp.zeros(n_counters, np.int64)
        # Pinned, so that the copy of a few bytes neither blocks nor goes through a buffer of the driver.
        self._host_counters = np.frombuffer(cp.cuda.alloc_pinned_memory(self.counters.nbytes), np.int64, n_counters)

    def start(self, source: int) -> None:
        self.queue[0] = source
        self.size = 1

    def clear_counters(self) -> None:
        self.counters.data.memset_async(0, self.counters.nbytes)

    def read_counters(self) -> list[int]:
        """Wait for the current stream and return the counters: the one copy to the host a level."""
        self.counters.get(out=self._host_counters)
        return self._host_counters.tolist()

    def advance(self) -> int:
        """Make the next queue the present one; return the second counter.

        Raises
        ------
        FrontierOverflowError
            More vertices were queued than there is room for.
        """
        size, other, *_ = self.read_counters()
        if size > self.capacity:
            raise FrontierOverflowError(f"the frontier holds {size} vertices, its queue {self.capacity}")
        self.swap(size)
        return other

    def swap(self, size: int) -> None:
        """Make the next queue, of that many vertices, the present one."""
        self.queue, self.next = self.next, self.queue
        self.size = size
