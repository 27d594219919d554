"""When a search of one launch began each of its turns: what the kernels wrote, read. See trace.cuh."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._arrays import Array

if TYPE_CHECKING:
    from ..protocols import Search
    from ..strategy import Outcome

# In the order of the enumeration in trace.cuh.
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
_FIELDS = 5


class Iteration(NamedTuple):
    """A turn of a search: when it began, what it was, its level or step, and the vertices and edges that it began with."""

    nanoseconds: int
    what: str
    level: int
    vertices: int
    edges: int


@dataclass(frozen=True)
class TracedSearch:
    """A search in one launch, and the array in which its kernel notes its turns; see ``protocols.TracedSearch``.

    Attributes
    ----------
    search : Search
    trace : int64 array or None
        Of ``words(room)`` elements; None where the kernel was compiled without a trace.
    """

    search: Search
    trace: Array | None

    def __call__(self, source: int) -> Outcome:
        """Search from a vertex number."""
        return self.search(source)

    def iterations(self) -> list[Iteration]:
        """Return the turns of the last search."""
        return [] if self.trace is None else iterations(self.trace.get())


def words(capacity: int) -> int:
    """Length of the int64 array for so many turns."""
    return 1 + _FIELDS * capacity


def iterations(rows: np.ndarray) -> list[Iteration]:
    """The turns of the last search, out of a copy of that array; times count from the first."""
    table = rows[1 : words(int(rows[0]))].reshape(-1, _FIELDS)
    began = np.asarray(table[:, 0] - table[:1, 0])
    return [Iteration(int(at), ITERATIONS[row[1]], *row[2:]) for at, row in zip(began, table.tolist(), strict=True)]
