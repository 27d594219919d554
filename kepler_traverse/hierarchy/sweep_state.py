"""The memory of a sweep on one thread."""

from __future__ import annotations

import numpy as np

from .sweep import LANES, UNREACHED


class SweepState:
    """What one thread needs; pages that it never touches cost nothing."""

    def __init__(self, n_vertices: int, n_places: int, kind: np.dtype):
        self.lines = aligned_lines(n_places, kind)
        self.is_set = np.zeros(n_places, np.uint8)
        self.heap, self.reached = np.empty((2, n_vertices), np.int32)
        self._n_vertices, self._kind = n_vertices, kind
        self._tentative: np.ndarray | None = None

    def arrays(self) -> tuple[np.ndarray, ...]:
        if self._tentative is None:
            self._tentative = np.full(self._n_vertices, UNREACHED[self._kind], self._kind)
        return self.lines, self.is_set, self._tentative, self.heap, self.reached


def aligned_lines(n_places: int, kind: np.dtype) -> np.ndarray:
    """Lines that each fill one cache line."""
    lanes = LANES[kind]
    memory = np.empty((n_places + 1) * lanes, kind)
    first = -(memory.ctypes.data // kind.itemsize) % lanes
    return memory[first : first + n_places * lanes].reshape(n_places, lanes)
