"""When a search of one launch began each of its iterations, as its kernels recorded it. See
trace.cuh.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array

# What iterations do, by the number that kernels write: the order is that of the enumeration in
# trace.cuh.
ITERATIONS = (
    "cluster level",
    "push",
    "draw bitmaps",
    "pull",
    "list bitmap",
    "relax",
    "split",
    "small relax",
    "small split",
    "last pass",
    "end",
)
_FIELDS = 5  # int64 words per record: time, kind, level, vertices and edges


class Iteration(NamedTuple):
    """An iteration of a search in one launch: one pass of the loop inside its kernel."""

    nanoseconds: int  # from the beginning of the first iteration to that of this one
    what: str  # its kind, one of ``ITERATIONS``
    level: int  # number of the level of a breadth-first search, or of the step of another one
    vertices: int  # number of vertices of its frontier, which it expands
    edges: int  # number of edges that leave them


@dataclass(frozen=True)
class TracedSearch:
    """A search in one launch, and the array in which its kernel records its iterations."""

    search: Callable[[int], Any]  # takes a vertex number
    # int64 of ``words(capacity)`` elements: the number of iterations, and then ``_FIELDS`` of each;
    # None if the kernel was compiled without a trace
    trace: Array | None

    def __call__(self, source: int) -> Any:
        """Search from the vertex number ``source``, and return what ``search`` does, an
        ``Outcome``.
        """
        return self.search(source)

    def iterations(self) -> list[Iteration]:
        """Return the iterations of the last search, in their order; none without a trace."""
        if self.trace is None:
            return []
        return iterations(self.trace.get())


def words(capacity: int) -> int:
    """Return the length of the int64 array that holds the trace of up to ``capacity`` iterations: a
    word for their number, and the words of each.
    """
    return 1 + _FIELDS * capacity


def iterations(trace: np.ndarray) -> list[Iteration]:
    """Return the iterations of the last search from a copy of its trace in host memory.

    ``trace`` is the int64 array that a kernel has written: the number of iterations, and then the
    words of each. Times count from the first iteration.
    """
    n_iterations = int(trace[0])
    table = trace[1 : words(n_iterations)].reshape(-1, _FIELDS).tolist()
    return [
        Iteration(began - table[0][0], ITERATIONS[kind], level, vertices, edges)
        for began, kind, level, vertices, edges in table
    ]
