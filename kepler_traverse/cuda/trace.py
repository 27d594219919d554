"""When a search of one launch began each of its turns: what the kernels wrote, read. See trace.cuh."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# In the order of the enumeration in trace.cuh.
TURNS = (
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


class Turn(NamedTuple):
    """A turn of a search: when it began, what it was, its level or step, and the vertices and edges that it began with."""

    nanoseconds: int
    what: str
    level: int
    vertices: int
    edges: int


def words(room: int) -> int:
    """Length of the int64 array for so many turns."""
    return 1 + _FIELDS * room


def turns(rows) -> list[Turn]:
    """The turns of the last search, out of a copy of that array; times count from the first."""
    table = rows[1 : words(int(rows[0]))].reshape(-1, _FIELDS)
    began = np.asarray(table[:, 0] - table[:1, 0])
    return [Turn(int(at), TURNS[row[1]], *row[2:]) for at, row in zip(began, table.tolist(), strict=True)]
