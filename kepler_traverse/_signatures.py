"""What functions with a ``result`` take and return, for type checkers and editors: an overload per
set of options. Nothing of it happens at run time.

Written by ``python -m scripts.docs.signatures`` from the dataclasses of options; do not edit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, Unpack, overload

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

    class BfsMany(Protocol):
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal[False] = False,
            max_depth: Integer | Numbers | None = None,
            targets: Ids | None = None,
            unreached: Literal["omit", "null", "cugraph"] = "omit",
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal[True],
            max_depth: Integer | Numbers | None = None,
            targets: Ids | None = None,
            unreached: Literal["omit", "null", "cugraph"] = "omit",
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal["arrow"],
            max_depth: Integer | Numbers | None = None,
            targets: Ids | None = None,
            unreached: Literal["omit", "null", "cugraph"] = "omit",
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["matrix"],
            stream: Literal[False] = False,
            max_depth: Integer | Numbers | None = None,
            targets: Ids | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> Matrix: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["matrix"],
            stream: Literal[True],
            max_depth: Integer | Numbers | None = None,
            targets: Ids | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary", "levels"],
            stream: Literal[False] = False,
            max_depth: Integer | Numbers | None = None,
            direction: Literal["out", "in"] = "out",
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary", "levels"],
            stream: Literal[True],
            max_depth: Integer | Numbers | None = None,
            direction: Literal["out", "in"] = "out",
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary", "levels"],
            stream: Literal["arrow"],
            max_depth: Integer | Numbers | None = None,
            direction: Literal["out", "in"] = "out",
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal[False] = False,
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal[True],
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal["arrow"],
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["reachable"],
            stream: Literal[False] = False,
            max_depth: Integer | Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> Matrix: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["reachable"],
            stream: Literal[True],
            max_depth: Integer | Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            max_depth: Integer | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            start_costs: Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["k_nearest"],
            stream: Literal[False] = False,
            max_depth: Integer | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal[False] = False,
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal[True],
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal["arrow"],
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal[False] = False,
            direction: Literal["out", "in"] = "out",
            values: Any,
            cutoffs: Numbers,
            decay: str | None = None,
            source_weights: Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal[True],
            direction: Literal["out", "in"] = "out",
            values: Any,
            cutoffs: Numbers,
            decay: str | None = None,
            source_weights: Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal["arrow"],
            direction: Literal["out", "in"] = "out",
            values: Any,
            cutoffs: Numbers,
            decay: str | None = None,
            source_weights: Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal[False] = False,
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal[True],
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal["arrow"],
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal[False] = False,
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            along: Any,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal[True],
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            along: Any,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal["arrow"],
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            along: Any,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["flows"],
            stream: Literal[False] = False,
            max_depth: Integer | None = None,
            targets: Ids | None = None,
            of: Literal["edges", "vertices", "pairs"] | None = None,
            decay: str | None = None,
            source_weights: Numbers | None = None,
            target_weights: Numbers | None = None,
            through: Any = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["betweenness"],
            stream: Literal[False] = False,
            max_depth: Integer | None = None,
            targets: Ids | None = None,
            of: Literal["edges", "vertices", "pairs"] | None = None,
            endpoints: bool = False,
            normalized: bool = True,
            samples: Integer | None = None,
            epsilon: float | None = None,
            delta: float | None = None,
            seed: Integer | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            max_depth: Integer | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer | None = None,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer | None = None,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[True],
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer | None = None,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal["arrow"],
            max_depth: Integer | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer | None = None,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self, graph: Graph, sources: Sources, *, result: KindName, **options: Any
        ) -> Any: ...
        @overload
        def __call__(
            self, graph: Graph, sources: Sources, *, result: str, **how: Unpack[HowMany]
        ) -> Any: ...

    class BfsPairs(Protocol):
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: Literal["pairs"] = "pairs",
            max_depth: Integer | None = None,
            along: Any = None,
            **how: Unpack[How],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: Literal["flows"],
            max_depth: Integer | None = None,
            of: Literal["edges", "vertices", "pairs"] | None = None,
            decay: str | None = None,
            volumes: Numbers | None = None,
            through: Any = None,
            **how: Unpack[How],
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

    class SsspMany(Protocol):
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal[False] = False,
            cutoff: float | Numbers | None = None,
            targets: Ids | None = None,
            unreached: Literal["omit", "null", "cugraph"] = "omit",
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal[True],
            cutoff: float | Numbers | None = None,
            targets: Ids | None = None,
            unreached: Literal["omit", "null", "cugraph"] = "omit",
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["distances", "predecessors"] = "distances",
            stream: Literal["arrow"],
            cutoff: float | Numbers | None = None,
            targets: Ids | None = None,
            unreached: Literal["omit", "null", "cugraph"] = "omit",
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["matrix"],
            stream: Literal[False] = False,
            cutoff: float | Numbers | None = None,
            targets: Ids | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> Matrix: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["matrix"],
            stream: Literal[True],
            cutoff: float | Numbers | None = None,
            targets: Ids | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary"],
            stream: Literal[False] = False,
            cutoff: float | Numbers | None = None,
            direction: Literal["out", "in"] = "out",
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary"],
            stream: Literal[True],
            cutoff: float | Numbers | None = None,
            direction: Literal["out", "in"] = "out",
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["summary"],
            stream: Literal["arrow"],
            cutoff: float | Numbers | None = None,
            direction: Literal["out", "in"] = "out",
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal[False] = False,
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal[True],
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["targets"],
            stream: Literal["arrow"],
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["reachable"],
            stream: Literal[False] = False,
            cutoff: float | Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> Matrix: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["reachable"],
            stream: Literal[True],
            cutoff: float | Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            cutoff: float | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            start_costs: Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["k_nearest"],
            stream: Literal[False] = False,
            cutoff: float | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal[False] = False,
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal[True],
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest_targets", "k_nearest"],
            stream: Literal["arrow"],
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal[False] = False,
            direction: Literal["out", "in"] = "out",
            values: Any,
            cutoffs: Numbers,
            decay: str | None = None,
            source_weights: Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal[True],
            direction: Literal["out", "in"] = "out",
            values: Any,
            cutoffs: Numbers,
            decay: str | None = None,
            source_weights: Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["opportunities"],
            stream: Literal["arrow"],
            direction: Literal["out", "in"] = "out",
            values: Any,
            cutoffs: Numbers,
            decay: str | None = None,
            source_weights: Numbers | None = None,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal[False] = False,
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal[True],
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["within", "isochrones"],
            stream: Literal["arrow"],
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal[False] = False,
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            along: Any,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal[True],
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            along: Any,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["streets"],
            stream: Literal["arrow"],
            direction: Literal["out", "in"] = "out",
            cutoffs: Numbers,
            along: Any,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["flows"],
            stream: Literal[False] = False,
            cutoff: float | None = None,
            targets: Ids | None = None,
            of: Literal["edges", "vertices", "pairs"] | None = None,
            decay: str | None = None,
            source_weights: Numbers | None = None,
            target_weights: Numbers | None = None,
            through: Any = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["betweenness"],
            stream: Literal[False] = False,
            cutoff: float | None = None,
            targets: Ids | None = None,
            of: Literal["edges", "vertices", "pairs"] | None = None,
            endpoints: bool = False,
            normalized: bool = True,
            samples: Integer | None = None,
            epsilon: float | None = None,
            delta: float | None = None,
            seed: Integer | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            cutoff: float | None = None,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer | None = None,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[False] = False,
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer | None = None,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal[True],
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer | None = None,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> ResultStream: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            sources: Sources,
            *,
            result: Literal["nearest"],
            stream: Literal["arrow"],
            cutoff: float | Numbers | None = None,
            targets: Ids,
            direction: Literal["out", "in"] = "out",
            along: Any = None,
            k: Integer | None = None,
            groups: Ids | None = None,
            **how: Unpack[HowMany],
        ) -> RecordBatches: ...
        @overload
        def __call__(
            self, graph: Graph, sources: Sources, *, result: KindName, **options: Any
        ) -> Any: ...
        @overload
        def __call__(
            self, graph: Graph, sources: Sources, *, result: str, **how: Unpack[HowMany]
        ) -> Any: ...

    class SsspPairs(Protocol):
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: Literal["pairs"] = "pairs",
            cutoff: float | None = None,
            along: Any = None,
            **how: Unpack[How],
        ) -> Frame: ...
        @overload
        def __call__(
            self,
            graph: Graph,
            origins: Any,
            destinations: Ids | None = None,
            *,
            result: Literal["flows"],
            cutoff: float | None = None,
            of: Literal["edges", "vertices", "pairs"] | None = None,
            decay: str | None = None,
            volumes: Numbers | None = None,
            through: Any = None,
            **how: Unpack[How],
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
