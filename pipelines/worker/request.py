"""The inputs of a plan, and the attributes of a plan that the job uses, whichever engine has made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kepler_traverse._arrays import Array
from kepler_traverse.errors import InputError
from kepler_traverse.graph import Graph
from kepler_traverse.multi_source.pairs import PairTable
from kepler_traverse.query import Query, TargetLists
from kepler_traverse.results import Traversals
from kepler_traverse.strategy import Shape

from ..output.schemas import ResultName
from .along_paths import AlongPaths
from .source_facts import SourceGroups, SourceLimits

Knobs = dict[str, bool | int | float | str] | None
Ids = list[Any]  # the user's ids: integers, or strings


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
        Groups of the sources, each with its own nearest ones.
    limits : SourceLimits or None
        The limit of each source. Searches run to the largest, which is ``limit``, and results are cut at their own.
    along : AlongPaths or None
        Columns of the edge list to sum along paths.
    unreached : {"omit", "null", "cugraph"}
        How vertices without a path are written.
    unconnected : {"refuse", "largest"}, or None
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
    limits: SourceLimits | None = None
    along: AlongPaths | None = None
    unreached: str = "omit"
    unconnected: str | None = None


@dataclass(frozen=True, kw_only=True)
class Request(Question):
    """A question and how it is answered; small enough to be sent to each worker.

    Attributes
    ----------
    knobs : dict or None
        Options of the strategy.
    at_once : int
        Maximum size of a group: about the sources of one part, or of several parts if the device has enough memory.
    memory : int or None
        Bytes that the plan of one worker may use in addition to the graph; None allows all free memory.
    chosen : str
        Strategy that the driver has chosen if ``strategy`` is "auto"; "" otherwise.
    shape : Shape or None
        What the driver's plan has measured of the graph, so that no worker measures it again.
    uses_hierarchy : bool
        Whether a hierarchy that is stored with the graph may be used.
    """

    strategy: str = "auto"
    knobs: Knobs = None
    at_once: int = 1
    memory: int | None = None
    chosen: str = ""
    shape: Shape | None = None
    uses_hierarchy: bool = True

    @classmethod
    def of(cls, question: Question, **resources: Any) -> Request:
        """Return a request that answers a question with these resources."""
        return cls(**({name: value for name, value in vars(question).items() if name not in resources} | resources))


def weights_of(graph: Graph) -> Array:
    """Return the weights of a graph; raise InputError if it has none."""
    if graph.weights is None:
        raise InputError("sssp needs weights, and this edge list has none; name their --weight-column, or take bfs")
    return graph.weights


class PlannedStrategy(Protocol):
    """The attributes of a strategy that the job uses."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def rationale(self) -> str: ...


class Plan(Protocol):
    """The attributes of a plan that the driver uses; ``kepler_traverse.multi_source.planning.MultiSourcePlan`` explains the
    attributes."""

    @property
    def algorithm(self) -> str: ...
    @property
    def strategy(self) -> PlannedStrategy: ...
    @property
    def query(self) -> Query: ...
    @property
    def group(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def why(self) -> str: ...


class SearchPlan(Plan, Protocol):
    """A plan of a multi-source search: each source has its own distances."""

    def run(self, numbers: Sequence[int] | np.ndarray, lists: TargetLists | None = None, /) -> Traversals: ...
