"""The options of a traversal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from ._arrays import Array

TuningClass = TypeVar("TuningClass")


@dataclass(frozen=True, kw_only=True)
class Query:
    """Options of a traversal, without its source.

    Attributes
    ----------
    predecessors : bool
    limit : int, float or None
        Largest distance of interest (inclusive).
    targets : int64 array of vertex numbers (NumPy, ascending, distinct) or None
        The traversal may stop once these are settled.
    knobs : object or None
        Options of the strategy, an instance of its ``Strategy.knobs``. With None the strategy chooses them.
    tuning : object or None
        Tuning parameters of one strategy in place of the measured defaults, an instance of its class in ``bfs.tuning`` or
        ``sssp.tuning``.
    output : {"all", "targets", "counts"}
        Output of a traversal from many sources: distances of all vertices, distances of the targets, or only the number
        of vertices at each hop count.
    """

    predecessors: bool = True
    limit: float | None = None
    targets: Array | None = None
    knobs: object | None = None
    tuning: Any = None
    output: str = "all"

    def tuning_of(self, kind: type[TuningClass]) -> TuningClass:
        """Return the tuning parameters of a strategy, or its defaults if the query has none.

        Raises
        ------
        TypeError
            The query has those of another strategy.
        """
        if self.tuning is None:
            return kind()
        if not isinstance(self.tuning, kind):
            raise TypeError(f"tuning must be of type {kind.__name__}, not {type(self.tuning).__name__}")
        return self.tuning
