"""What a traversal is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._arrays import Array


@dataclass(frozen=True, kw_only=True)
class Query:
    """Options of a traversal, beside its source.

    Attributes
    ----------
    predecessors : bool
    limit : int, float or None
        Largest distance of interest (inclusive).
    targets : int64 array of vertex numbers (NumPy, ascending, distinct) or None
        The traversal may stop once these are settled.
    knobs : object or None
        Settings of the strategy, an instance of its ``Strategy.knobs``; None leaves them to its rule.
    tuning : object or None
        Numbers that a strategy takes in place of its measured ones, an instance of the algorithm's ``params.Tuning``.
    output : {"all", "targets", "counts"}
        Of a traversal from many sources: distances of all vertices, of the targets, or only how many lie at each hop count.
    """

    predecessors: bool = True
    limit: float | None = None
    targets: Array | None = None
    knobs: object | None = None
    tuning: Any = None
    output: str = "all"
