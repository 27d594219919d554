"""What type checkers say that calls return; mypy reads this file, and nothing runs it."""

from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
import pandas
import pyarrow

from kepler_traverse import Graph, bfs, bfs_many, bfs_pairs, sssp, sssp_many
from kepler_traverse.multi_source.stream import ResultStream


@dataclass
class OwnKnobs:
    width: int = 3


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
    assert_type(bfs_many(graph, [0], result=name, of_a_plugin=3), Any)
    bfs_many(graph, [0], cutoff=3)  # type: ignore[call-overload]
    sssp_many(graph, [0], memory="much")  # type: ignore[call-overload]
    bfs_many(graph, [0], stream="rows")  # type: ignore[call-overload]


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
