"""The frontier on a GPU: the queue of this level, the next one, and the counters that the host
reads once per level.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..errors import FrontierOverflowError
from . import cp


class Frontier:
    """The vertices that a search expands next: two queues and a few counters, allocated once.

    A capacity of as many vertices as the graph has is enough, because a vertex enters a queue at
    most once per level.

    Attributes
    ----------
    capacity : int
        Number of vertices that each queue can hold.
    queue : CuPy array of shape (capacity,)
        The vertex numbers of this level: its first ``size`` elements.
    next : CuPy array of shape (capacity,)
        Memory for the vertices of the next level, which kernels write.
    size : int
        Number of vertices of this level.
    counters : CuPy int64 array of shape (n_counters,)
        The number of vertices in ``next``, and other numbers that a step counts.
    """

    def __init__(self, capacity: int, dtype: DTypeLike, n_counters: int = 2):
        """Allocate two queues of ``capacity`` vertex numbers of the type ``dtype``, and
        ``n_counters`` counters. No vertex is queued.
        """
        self.capacity = capacity
        self.queue = cp.empty(capacity, dtype)
        self.next = cp.empty(capacity, dtype)
        self.size = 0
        self.counters = cp.zeros(n_counters, np.int64)
        # Where ``read_counters`` copies them. Pinned memory, so that the copy neither blocks nor
        # passes through a buffer of the driver.
        self._host_counters = np.frombuffer(
            cp.cuda.alloc_pinned_memory(self.counters.nbytes), np.int64, n_counters
        )

    def start(self, source: int) -> None:
        """Make one vertex, by its number, the frontier."""
        self.queue[0] = source
        self.size = 1

    def arguments(self) -> dict[str, Any]:
        """Return the arguments that are about the frontier, by the names that kernels have for
        them: both queues, their capacity, and the counters. The size is not among them.
        """
        capacity = np.int64(self.capacity)
        return {
            "frontier": self.queue,
            "next": self.next,
            "capacity": capacity,
            "counters": self.counters,
        }

    def clear_counters(self) -> None:
        """Set the counters to 0, on the current stream."""
        self.counters.data.memset_async(0, self.counters.nbytes)

    def read_counters(self) -> list[int]:
        """Wait for the current stream and return the counters: the only copy to the host per level."""
        self.counters.get(out=self._host_counters)
        return self._host_counters.tolist()

    def advance(self) -> int:
        """Make the next level the current one: read the counters and swap the queues. Return the
        second counter, whose meaning is that of the kernel which wrote it.

        Raises
        ------
        FrontierOverflowError
            More vertices were queued than the capacity.
        """
        size, second_counter, *_ = self.read_counters()
        if size > self.capacity:
            raise FrontierOverflowError(
                f"the frontier holds {size} vertices, its queue {self.capacity}"
            )
        self.swap(size)
        return second_counter

    def swap(self, size: int) -> None:
        """Swap the queues. The one that becomes ``queue`` holds ``size`` vertices."""
        self.queue, self.next = self.next, self.queue
        self.size = size
