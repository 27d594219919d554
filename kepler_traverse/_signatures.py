"""What functions with a ``result`` take and return, for type checkers and editors: a dictionary of
options per result, and an overload per type that comes back. Nothing of it happens at run time.

Written by ``python -m scripts.docs.signatures`` from the dataclasses of options; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    Required,
    TypedDict,
    Unpack,
    overload,
)

if TYPE_CHECKING:
    from .graph import Graph
    from .multi_source.stream import ResultStream
    from .protocols import (
        Frame,
        Ids,
        Integer,
        KindName,
        Knobs,
        Matrix,
        Numbers,
        RecordBatches,
        Sources,
    )
    from .runtime.progress import Report

    class How(TypedDict, total=False):
        """How pairs are searched, whatever is asked of them."""

        strategy: str
        knobs: Knobs | None
        memory: Integer | None

    class HowMany(How, total=False):
        """How searches from several sources are made."""

        hierarchy: Literal["auto", "yes", "no"]
        progress: bool | Report | None

    class BfsDistancesOptions(HowMany, total=False):
        max_depth: Integer | Numbers | None
        targets: Ids | None
        unreached: Literal["omit", "null", "cugraph"]

    class BfsMatrixOptions(HowMany, total=False):
        max_depth: Integer | Numbers | None
        targets: Ids | None
        direction: Literal["out", "in"]
        along: Any

    class BfsSummaryOptions(HowMany, total=False):
        max_depth: Integer | Numbers | None
        direction: Literal["out", "in"]

    class BfsTargetsOptions(HowMany, total=False):
        max_depth: Integer | Numbers | None
        targets: Required[Ids]
        direction: Literal["out", "in"]
        along: Any

    class BfsReachableOptions(HowMany, total=False):
        max_depth: Integer | Numbers | None

    class BfsNearestOptions(HowMany, total=False):
        max_depth: Integer | None
        direction: Literal["out", "in"]
        along: Any
        start_costs: Numbers | None

    class BfsKNearestOptions(HowMany, total=False):
        max_depth: Integer | None
        direction: Literal["out", "in"]
        along: Any
        k: Required[Integer]
        groups: Ids | None

    class BfsNearestTargetsOptions(HowMany, total=False):
        max_depth: Integer | Numbers | None
        targets: Required[Ids]
        direction: Literal["out", "in"]
        along: Any
        k: Required[Integer]
        groups: Ids | None

    class BfsOpportunitiesOptions(HowMany, total=False):
        direction: Literal["out", "in"]
        values: Required[Any]
        cutoffs: Required[Numbers]
        decay: str | None
        source_weights: Numbers | None

    class BfsWithinOptions(HowMany, total=False):
        direction: Literal["out", "in"]
        cutoffs: Required[Numbers]

    class BfsStreetsOptions(HowMany, total=False):
        direction: Literal["out", "in"]
        cutoffs: Required[Numbers]
        along: Required[Any]

    class BfsFlowsOptions(HowMany, total=False):
        max_depth: Integer | None
        targets: Ids | None
        of: Literal["edges", "vertices", "pairs"] | None
        decay: str | None
        source_weights: Numbers | None
        target_weights: Numbers | None
        through: Any

    class BfsBetweennessOptions(HowMany, total=False):
        max_depth: Integer | None
        targets: Ids | None
        of: Literal["edges", "vertices", "pairs"] | None
        endpoints: bool
        normalized: bool
        samples: Integer | None
        epsilon: float | None
        delta: float | None
        seed: Integer | None

    class BfsNearestAsKNearestOptions(HowMany, total=False):
        max_depth: Integer | None
        direction: Literal["out", "in"]
        along: Any
        k: Integer | None
        groups: Ids | None

    class BfsNearestAsNearestTargetsOptions(HowMany, total=False):
        max_depth: Integer | Numbers | None
        targets: Required[Ids]
        direction: Literal["out", "in"]
        along: Any
        k: Integer | None
        groups: Ids | None

    class BfsMany(Protocol):
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal[False] = False,
            **options: Unpack[BfsDistancesOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal[True],
            **options: Unpack[BfsDistancesOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal["arrow"],
            **options: Unpack[BfsDistancesOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["matrix"],
            stream: Literal[False] = False,
            **options: Unpack[BfsMatrixOptions],
        ) -> Matrix: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["matrix"],
            stream: Literal[True],
            **options: Unpack[BfsMatrixOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary", "levels"],
            stream: Literal[False] = False,
            **options: Unpack[BfsSummaryOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary", "levels"],
            stream: Literal[True],
            **options: Unpack[BfsSummaryOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary", "levels"],
            stream: Literal["arrow"],
            **options: Unpack[BfsSummaryOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal[False] = False,
            **options: Unpack[BfsTargetsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal[True],
            **options: Unpack[BfsTargetsOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal["arrow"],
            **options: Unpack[BfsTargetsOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["reachable"],
            stream: Literal[False] = False,
            **options: Unpack[BfsReachableOptions],
        ) -> Matrix: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["reachable"],
            stream: Literal[True],
            **options: Unpack[BfsReachableOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            **options: Unpack[BfsNearestOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["k_nearest"],
            stream: Literal[False] = False,
            **options: Unpack[BfsKNearestOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal[False] = False,
            **options: Unpack[BfsNearestTargetsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal[True],
            **options: Unpack[BfsNearestTargetsOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal["arrow"],
            **options: Unpack[BfsNearestTargetsOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal[False] = False,
            **options: Unpack[BfsOpportunitiesOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal[True],
            **options: Unpack[BfsOpportunitiesOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal["arrow"],
            **options: Unpack[BfsOpportunitiesOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal[False] = False,
            **options: Unpack[BfsWithinOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal[True],
            **options: Unpack[BfsWithinOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal["arrow"],
            **options: Unpack[BfsWithinOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal[False] = False,
            **options: Unpack[BfsStreetsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal[True],
            **options: Unpack[BfsStreetsOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal["arrow"],
            **options: Unpack[BfsStreetsOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["flows"],
            stream: Literal[False] = False,
            **options: Unpack[BfsFlowsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["betweenness"],
            stream: Literal[False] = False,
            **options: Unpack[BfsBetweennessOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            **options: Unpack[BfsNearestAsKNearestOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            **options: Unpack[BfsNearestAsNearestTargetsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[True],
            **options: Unpack[BfsNearestAsNearestTargetsOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal["arrow"],
            **options: Unpack[BfsNearestAsNearestTargetsOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self, graph: Graph, sources: Sources, *, result: KindName, **options: Any
        ) -> Any: ...
        @overload
        def __call__(
            self, graph: Graph, sources: Sources, *, result: str, **options: Unpack[HowMany]
        ) -> Any: ...

    class BfsPairsOptions(How, total=False):
        max_depth: Integer | None
        along: Any

    class BfsFlowsOfPairsOptions(How, total=False):
        max_depth: Integer | None
        of: Literal["edges", "vertices", "pairs"] | None
        decay: str | None
        volumes: Numbers | None
        through: Any

    class BfsPairs(Protocol):
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: Literal["pairs"] = "pairs",
            **options: Unpack[BfsPairsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: Literal["flows"],
            **options: Unpack[BfsFlowsOfPairsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: KindName,
            **options: Any,
        ) -> Any: ...

    class SsspDistancesOptions(HowMany, total=False):
        cutoff: float | Numbers | None
        targets: Ids | None
        unreached: Literal["omit", "null", "cugraph"]

    class SsspMatrixOptions(HowMany, total=False):
        cutoff: float | Numbers | None
        targets: Ids | None
        direction: Literal["out", "in"]
        along: Any

    class SsspSummaryOptions(HowMany, total=False):
        cutoff: float | Numbers | None
        direction: Literal["out", "in"]

    class SsspTargetsOptions(HowMany, total=False):
        cutoff: float | Numbers | None
        targets: Required[Ids]
        direction: Literal["out", "in"]
        along: Any

    class SsspReachableOptions(HowMany, total=False):
        cutoff: float | Numbers | None

    class SsspNearestOptions(HowMany, total=False):
        cutoff: float | None
        direction: Literal["out", "in"]
        along: Any
        start_costs: Numbers | None

    class SsspKNearestOptions(HowMany, total=False):
        cutoff: float | None
        direction: Literal["out", "in"]
        along: Any
        k: Required[Integer]
        groups: Ids | None

    class SsspNearestTargetsOptions(HowMany, total=False):
        cutoff: float | Numbers | None
        targets: Required[Ids]
        direction: Literal["out", "in"]
        along: Any
        k: Required[Integer]
        groups: Ids | None

    class SsspOpportunitiesOptions(HowMany, total=False):
        direction: Literal["out", "in"]
        values: Required[Any]
        cutoffs: Required[Numbers]
        decay: str | None
        source_weights: Numbers | None

    class SsspWithinOptions(HowMany, total=False):
        direction: Literal["out", "in"]
        cutoffs: Required[Numbers]

    class SsspStreetsOptions(HowMany, total=False):
        direction: Literal["out", "in"]
        cutoffs: Required[Numbers]
        along: Required[Any]

    class SsspFlowsOptions(HowMany, total=False):
        cutoff: float | None
        targets: Ids | None
        of: Literal["edges", "vertices", "pairs"] | None
        decay: str | None
        source_weights: Numbers | None
        target_weights: Numbers | None
        through: Any

    class SsspBetweennessOptions(HowMany, total=False):
        cutoff: float | None
        targets: Ids | None
        of: Literal["edges", "vertices", "pairs"] | None
        endpoints: bool
        normalized: bool
        samples: Integer | None
        epsilon: float | None
        delta: float | None
        seed: Integer | None

    class SsspNearestAsKNearestOptions(HowMany, total=False):
        cutoff: float | None
        direction: Literal["out", "in"]
        along: Any
        k: Integer | None
        groups: Ids | None

    class SsspNearestAsNearestTargetsOptions(HowMany, total=False):
        cutoff: float | Numbers | None
        targets: Required[Ids]
        direction: Literal["out", "in"]
        along: Any
        k: Integer | None
        groups: Ids | None

    class SsspMany(Protocol):
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal[False] = False,
            **options: Unpack[SsspDistancesOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal[True],
            **options: Unpack[SsspDistancesOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal["arrow"],
            **options: Unpack[SsspDistancesOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["matrix"],
            stream: Literal[False] = False,
            **options: Unpack[SsspMatrixOptions],
        ) -> Matrix: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["matrix"],
            stream: Literal[True],
            **options: Unpack[SsspMatrixOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary"],
            stream: Literal[False] = False,
            **options: Unpack[SsspSummaryOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary"],
            stream: Literal[True],
            **options: Unpack[SsspSummaryOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary"],
            stream: Literal["arrow"],
            **options: Unpack[SsspSummaryOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal[False] = False,
            **options: Unpack[SsspTargetsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal[True],
            **options: Unpack[SsspTargetsOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal["arrow"],
            **options: Unpack[SsspTargetsOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["reachable"],
            stream: Literal[False] = False,
            **options: Unpack[SsspReachableOptions],
        ) -> Matrix: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["reachable"],
            stream: Literal[True],
            **options: Unpack[SsspReachableOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            **options: Unpack[SsspNearestOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["k_nearest"],
            stream: Literal[False] = False,
            **options: Unpack[SsspKNearestOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal[False] = False,
            **options: Unpack[SsspNearestTargetsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal[True],
            **options: Unpack[SsspNearestTargetsOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal["arrow"],
            **options: Unpack[SsspNearestTargetsOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal[False] = False,
            **options: Unpack[SsspOpportunitiesOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal[True],
            **options: Unpack[SsspOpportunitiesOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal["arrow"],
            **options: Unpack[SsspOpportunitiesOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal[False] = False,
            **options: Unpack[SsspWithinOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal[True],
            **options: Unpack[SsspWithinOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal["arrow"],
            **options: Unpack[SsspWithinOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal[False] = False,
            **options: Unpack[SsspStreetsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal[True],
            **options: Unpack[SsspStreetsOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal["arrow"],
            **options: Unpack[SsspStreetsOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["flows"],
            stream: Literal[False] = False,
            **options: Unpack[SsspFlowsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["betweenness"],
            stream: Literal[False] = False,
            **options: Unpack[SsspBetweennessOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            **options: Unpack[SsspNearestAsKNearestOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            **options: Unpack[SsspNearestAsNearestTargetsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[True],
            **options: Unpack[SsspNearestAsNearestTargetsOptions],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal["arrow"],
            **options: Unpack[SsspNearestAsNearestTargetsOptions],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self, graph: Graph, sources: Sources, *, result: KindName, **options: Any
        ) -> Any: ...
        @overload
        def __call__(
            self, graph: Graph, sources: Sources, *, result: str, **options: Unpack[HowMany]
        ) -> Any: ...

    class SsspPairsOptions(How, total=False):
        cutoff: float | None
        along: Any

    class SsspFlowsOfPairsOptions(How, total=False):
        cutoff: float | None
        of: Literal["edges", "vertices", "pairs"] | None
        decay: str | None
        volumes: Numbers | None
        through: Any

    class SsspPairs(Protocol):
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: Literal["pairs"] = "pairs",
            **options: Unpack[SsspPairsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: Literal["flows"],
            **options: Unpack[SsspFlowsOfPairsOptions],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: KindName,
            **options: Any,
        ) -> Any: ...


def as_bfs_many(function: Callable[..., Any]) -> BfsMany:
    """Return a function, which type checkers then take for one of ``BfsMany``."""
    return function


def as_bfs_pairs(function: Callable[..., Any]) -> BfsPairs:
    """Return a function, which type checkers then take for one of ``BfsPairs``."""
    return function


def as_sssp_many(function: Callable[..., Any]) -> SsspMany:
    """Return a function, which type checkers then take for one of ``SsspMany``."""
    return function


def as_sssp_pairs(function: Callable[..., Any]) -> SsspPairs:
    """Return a function, which type checkers then take for one of ``SsspPairs``."""
    return function
