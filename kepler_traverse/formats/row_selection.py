"""Which rows of an edge list a graph is built from, and in which direction each row is an edge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SRC_TO_DST, BOTH_WAYS, DST_TO_SRC = 1, 0, -1  # directions of a row


@dataclass(frozen=True, eq=False, kw_only=True)
class RowSelection:
    """What is known of the rows whose columns a builder gets."""

    total: int  # rows of the edge list, those that a filter left out included
    # int64 array of shape (rows,) or None: numbers in the edge list of the rows that are left, ascending. None: all are.
    kept: np.ndarray | None = None
    # int8 array of shape (rows,) or None: ``SRC_TO_DST``, ``BOTH_WAYS`` or ``DST_TO_SRC`` for each row that is left. None:
    # all have the direction of the graph.
    directions: np.ndarray | None = None

    def __len__(self) -> int:
        return self.total if self.kept is None else self.kept.size

    def row(self, position: int) -> int:
        """Return the number in the edge list of a row that is left."""
        return position if self.kept is None else int(self.kept[position])

    def take(self, positions: np.ndarray) -> RowSelection:
        """Return the selection of some of the rows that are left."""
        return RowSelection(
            total=self.total,
            kept=positions if self.kept is None else self.kept[positions],
            directions=None if self.directions is None else self.directions[positions],
        )
