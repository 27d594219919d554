"""What type checkers say that calls return; mypy reads this file, and nothing runs it."""

from typing import Any, assert_type

import numpy as np

from kepler_traverse import Graph, bfs_many, sssp_many
from kepler_traverse.multi_source.stream import ResultStream


def types_of_results(graph: Graph, name: str) -> None:
    assert_type(bfs_many(graph, [0], result="matrix"), np.ndarray | Any)
    assert_type(sssp_many(graph, "all", result="reachable", cutoff=2.0), np.ndarray | Any)
    assert_type(bfs_many(graph, [0]), Any)
    assert_type(sssp_many(graph, [0], result="nearest", k=2), Any)
    assert_type(bfs_many(graph, [0], result="matrix", stream=True), ResultStream)
    assert_type(sssp_many(graph, [0], stream=True, memory=1 << 30), ResultStream)
    assert_type(sssp_many(graph, [0], stream="arrow"), Any)
    assert_type(bfs_many(graph, [0], result=name, of_a_plugin=3), Any)
    bfs_many(graph, [0], cutoff=3)  # type: ignore[call-overload]
    sssp_many(graph, [0], memory="much")  # type: ignore[call-overload]
    bfs_many(graph, [0], stream="rows")  # type: ignore[call-overload]
