"""The question of a run: what is asked of a graph. ``run.question`` reads it, the identity of the parts records it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from kepler_traverse.search.query import Digested, digest_of

if TYPE_CHECKING:
    from kepler_traverse.kinds.k_nearest import SourceGroups
    from kepler_traverse.search.query import PairTable, SourceValues

    from .output.schemas import ResultName

Ids = list[Any]  # the user's ids: integers, or strings


class AlongPaths(Digested):
    """What to sum along the paths of pairs.

    Attributes
    ----------
    values : dict of str to int64 or float64 array
        By name, one value per row of the edge list.
    """

    def __init__(self, values: dict[str, np.ndarray]):
        self.values = values

    @property
    def digest(self) -> str:
        return digest_of([(name, str(value.dtype)) for name, value in self.values.items()], self.values.values())


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of a graph: which result, of which searches, within which limits. It decides what the parts hold.

    Attributes
    ----------
    result : str
        Name of the output schema.
    limit : int, float or None
        Maximum hop count or distance of all searches.
    targets : list of ids or None
    direction : {"out", "in"}
        Direction of the distances: from the sources ("out") or to them ("in").
    pairs : PairTable or None
        The rows of ``--pairs``, as vertex numbers.
    reduction : Reduction, KindOptions or None
        The options of the kind of result: cutoffs and attributes of the vertices, or an instance of its own dataclass.
    k : int or None
        Number of nearest sources of each vertex, for the kind that takes it.
    groups : SourceGroups or None
        Groups of the sources, or of the targets for kinds that take these, each with its own nearest ones.
    limits : SourceValues or None
        The limit of each source. Searches run to the largest, which is ``limit``, and results are cut at their own.
    along : AlongPaths or None
        Columns of the edge list to sum along paths.
    unreached : {"omit", "null", "cugraph"}
        How vertices without a path are written.
    unconnected : {"refuse", "largest"}
        For the extremes of a graph.
    """

    algorithm: str
    result: ResultName
    certify: str
    limit: float | None
    targets: Ids | None = None
    direction: str = "out"
    pairs: PairTable | None = None
    reduction: Any = None
    k: int | None = None
    groups: SourceGroups | None = None
    limits: SourceValues | None = None
    along: AlongPaths | None = None
    unreached: str = "omit"
    unconnected: str = "refuse"
