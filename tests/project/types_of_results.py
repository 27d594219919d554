"""What type checkers say that calls return; mypy reads this file, and nothing runs it."""

from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
import pandas
import pyarrow

from kepler_traverse import Graph, bfs, bfs_many, bfs_pairs, sssp, sssp_many, sssp_pairs
from kepler_traverse.extend import (
    Asked,
    KindName,
    KindOptions,
    MakeRecords,
    ResultKind,
    SourceRecords,
    option,
)
from kepler_traverse.multi_source.stream import ResultStream


@dataclass
class OwnKnobs:
    width: int = 3


@dataclass(frozen=True, kw_only=True)
class OwnOptions(KindOptions):
    n_farthest: int = option(3, help="number of vertices per source")


def make_own(asked: Asked[OwnOptions], _group: Any) -> SourceRecords:
    assert_type(asked.options, OwnOptions)
    assert_type(asked.options.n_farthest, int)
    print(asked.options.farthest)  # type: ignore[attr-defined]
    return SourceRecords({}, np.zeros(0, np.int64))


def types_of_kinds() -> None:
    kind = ResultKind(name="own", means="", columns=("source",), options_class=OwnOptions)
    assert_type(kind, ResultKind[OwnOptions])
    assert_type(kind.options_class(), OwnOptions)
    _records: MakeRecords[OwnOptions] = make_own
    _wrong: MakeRecords[KindOptions] = make_own  # type: ignore[assignment]


def types_of_results(graph: Graph, name: str) -> None:
    assert_type(bfs_many(graph, [0], result="matrix"), np.ndarray | Any)
    assert_type(sssp_many(graph, "all", result="reachable", cutoff=2.0), np.ndarray | Any)
    assert_type(bfs_many(graph, [0]), pandas.DataFrame | Any)
    assert_type(bfs(graph, 0), pandas.DataFrame | Any)
    assert_type(bfs_pairs(graph, [0], [1]), pandas.DataFrame | Any)
    assert_type(sssp_many(graph, [0], result="nearest", k=2), pandas.DataFrame | Any)
    assert_type(bfs_many(graph, [0], result="matrix", stream=True), ResultStream)
    assert_type(sssp_many(graph, [0], stream=True, memory=1 << 30), ResultStream)
    assert_type(sssp_many(graph, [0], stream="arrow"), pyarrow.RecordBatchReader | Any)
    assert_type(bfs_many(graph, [0], result=KindName(name), of_a_plugin=3), Any)
    assert_type(bfs_many(graph, [0], result=name, memory=1 << 30), Any)
    bfs_many(graph, [0], cutoff=3)  # type: ignore[call-overload]
    sssp_many(graph, [0], memory="much")  # type: ignore[call-overload]
    bfs_many(graph, [0], stream="rows")  # type: ignore[call-overload]


def types_of_options(graph: Graph, table: Any, limits: np.ndarray) -> None:
    sssp_many(graph, [0, 1], cutoff=[2.5, 3], unreached="null")
    sssp_many(graph, [0, 1], result="predecessors", cutoff=limits)
    sssp_many(graph, [0], result="targets", targets=[1], stream="arrow")
    sssp_many(graph, [0], result="summary", direction="in", stream=True)
    sssp_many(graph, [0], result="opportunities", values=table, cutoffs=limits, decay="linear:9")
    sssp_many(graph, [0], result="within", cutoffs=(1, 2.5))
    sssp_many(graph, [0], result="isochrones", cutoffs=[300])
    sssp_many(graph, [0], result="nearest", k=2, groups=["a"])
    sssp_many(graph, [0], result="nearest", targets=[1], stream=True)
    sssp_many(graph, [0], result="k_nearest", k=2)
    sssp_many(graph, [0], result="flows", source_weights=limits, target_weights=[2], targets=[1])
    sssp_many(graph, "all", result="betweenness", samples=100, seed=1, normalized=False)
    sssp_pairs(graph, [0], [1], result="flows", volumes=limits, decay="linear:9", of="pairs")
    bfs_many(graph, [0], result="levels")


def wrong_options(graph: Graph, table: Any) -> None:
    many, pairs = sssp_many, sssp_pairs
    bfs_many(graph, [0], result="levels", cutoffs=[1])  # type: ignore[call-overload]
    many(graph, [0], max_depth=3)  # type: ignore[call-overload]
    many(graph, [0], unreached="drop")  # type: ignore[call-overload]
    many(graph, [0], result="predecessors", direction="in")  # type: ignore[call-overload]
    many(graph, [0], result="matrix", stream="arrow")  # type: ignore[call-overload]
    many(graph, [0], result="reachable", targets=[1])  # type: ignore[call-overload]
    many(graph, [0], result="summary", cutoffs=[1])  # type: ignore[call-overload]
    many(graph, [0], result="nearest", stream=True)  # type: ignore[call-overload]
    many(graph, [0], result="nearest_targets", k=2)  # type: ignore[call-overload]
    many(graph, [0], result="opportunities", values=table)  # type: ignore[call-overload]
    many(graph, [0], result="within", cutoffs=[1], cutoff=2)  # type: ignore[call-overload]
    many(graph, [0], result="flows", direction="in")  # type: ignore[call-overload]
    many(graph, [0], result="flows", samples=3)  # type: ignore[call-overload]
    many(graph, [0], result="flows", volumes=[3])  # type: ignore[call-overload]
    many(graph, [0], result="betweenness", of="nodes")  # type: ignore[call-overload]
    many(graph, [0], result="summry", cutoffs=[1])  # type: ignore[call-overload]
    pairs(graph, [0], [1], volumes=[3])  # type: ignore[call-overload]
    pairs(graph, [0], [1], result="flows", target_weights=[3])  # type: ignore[call-overload]
    bfs_pairs(graph, [0], [1], cutoff=3)  # type: ignore[call-overload]


def types_of_ids(graph: Graph, array: np.ndarray, column: "pandas.Series[Any]") -> None:
    bfs_many(graph, 3)
    bfs_many(graph, "home")
    bfs_many(graph, {"home", "work"})
    bfs_many(graph, range(4))
    bfs_many(graph, (each for each in ("home", "work")))
    bfs_many(graph, array)
    bfs_many(graph, graph.ids)
    bfs_many(graph, column)
    bfs_many(graph, pyarrow.array([1, 2]))
    bfs(graph, np.int64(3), targets=[np.int64(1)])
    sssp(graph, 3.5)  # type: ignore[arg-type]
    sssp(graph, [3])  # type: ignore[arg-type]
    bfs(graph, 0, targets=3)  # type: ignore[arg-type]
    bfs_many(graph, None)  # type: ignore[call-overload]


def types_of_knobs(graph: Graph) -> None:
    bfs(graph, 0, knobs={"width": 3, "duplicates": "mark"})
    bfs(graph, 0, knobs=OwnKnobs())
    bfs(graph, 0, knobs="mark")  # type: ignore[arg-type]
    bfs(graph, 0, knobs=[3])  # type: ignore[arg-type]
