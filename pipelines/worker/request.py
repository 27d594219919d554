"""What a plan is made for, and what the job reads off a plan, whichever engine has made it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kepler_traverse._arrays import Array
from kepler_traverse.errors import InputError
from kepler_traverse.graph import Graph
from kepler_traverse.query import Query
from kepler_traverse.results import Traversals
from kepler_traverse.strategy import Shape

from ..output.schemas import ResultName

Knobs = dict[str, bool | int | float | str] | None
Ids = list[Any]  # the user's ids: integers, or strings


@dataclass(frozen=True, kw_only=True)
class Request:
    """The part of the settings that a plan needs, with the targets read; small enough to be sent to each worker.

    Attributes
    ----------
    limit : int, float or None
        Largest hop count or distance.
    targets : list of ids or None
    result : str
        Name of the form that is written.
    knobs : dict or None
        Settings of the strategy.
    direction : {"out", "in"}
        Of the distances: from the sources, or to them.
    at_once : int
        Sources that a plan answers at once: those of a part, about, or of more parts where the device has room.
    memory : int or None
        Bytes that the plan of one worker may take beside the graph; None takes what is free.
    chosen : str
        Strategy that the driver has chosen where ``strategy`` is "auto"; "" otherwise.
    shape : Shape or None
        What the driver's plan has seen of the graph, so that no worker searches for it again.
    """

    algorithm: str
    strategy: str
    limit: float | None
    targets: Ids | None
    result: ResultName
    certify: str
    knobs: Knobs
    direction: str = "out"
    at_once: int = 1
    memory: int | None = None
    chosen: str = ""
    shape: Shape | None = None


def weights_of(graph: Graph) -> Array:
    """The weights of a graph for a search that needs them."""
    if graph.weights is None:
        raise InputError("sssp needs weights, and this edge list has none; name their --weight-column, or take bfs")
    return graph.weights


class PlannedStrategy(Protocol):
    """What the plan of a run says of its strategy."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def teaches(self) -> str: ...


class Plan(Protocol):
    """What the driver reads off the plan of a run; ``kepler_traverse.multi_source.planning.MultiSourcePlan`` explains the
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
    """A plan that searches from several sources, each for itself."""

    def run(self, numbers: Sequence[int] | np.ndarray) -> Traversals: ...
