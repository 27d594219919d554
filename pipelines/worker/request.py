"""A question with how it is answered, and what the job uses of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kepler_traverse._arrays import Array
from kepler_traverse.errors import InputError
from kepler_traverse.graph import Graph
from kepler_traverse.multi_source.together import SearchTogether
from kepler_traverse.search.query import Query, TargetLists
from kepler_traverse.search.results import Traversals
from kepler_traverse.search.strategy import Shape

from ..question import Question

Knobs = dict[str, bool | int | float | str] | None


class GroupPlan(Protocol):
    """A plan of searches from one group of sources after the other: ``MultiSourcePlan``, or that of ``--engine cugraph-mg``.

    The attributes mean the same as in ``MultiSourcePlan``. A strategy has ``name``, ``device`` and ``rationale``.
    """

    algorithm: str
    query: Query
    nbytes: int
    depth: int

    @property
    def why(self) -> str: ...

    @property
    def strategy(self) -> Any: ...

    @property
    def group(self) -> int: ...

    def run(self, numbers: Sequence[int] | np.ndarray, lists: TargetLists | None = None, /) -> Traversals:
        """Search from the sources of a group."""


Plan = GroupPlan | SearchTogether


@dataclass(frozen=True, kw_only=True)
class Request(Question):
    """A question and how it is answered; small enough to be sent to each worker."""

    strategy: str = "auto"
    knobs: Knobs = None  # options of the strategy
    # Maximum size of a group: about the sources of one part, or of several parts if the device has enough memory.
    at_once: int = 1
    # Bytes that the plan of one worker may use in addition to the graph; None allows all free memory.
    memory: int | None = None
    chosen: str = ""  # strategy that the driver has chosen if ``strategy`` is "auto"; "" otherwise
    shape: Shape | None = None  # what the driver's plan has measured of the graph, so that no worker measures it again
    uses_hierarchy: bool = True  # whether a hierarchy that is stored with the graph may be used

    @classmethod
    def of(cls, question: Question, **resources: Any) -> Request:
        """Return a request that answers a question with these resources."""
        return cls(**({name: value for name, value in vars(question).items() if name not in resources} | resources))


def require_weights(graph: Graph) -> Array:
    """Return the weights of a graph; raise InputError if it has none."""
    if graph.weights is None:
        raise InputError(
            "sssp needs weights, and this edge list has none; name their column by --columns weight=NAME, or take bfs"
        )
    return graph.weights
