"""Distances to the sources (``direction="in"``), compared with those of the graph with every edge
reversed.
"""

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import InputError, bfs_many, bfs_pairs, graph_from_edges, sssp_many, sssp_pairs
from kepler_traverse.errors import NegativeCycleError

RNG = np.random.default_rng(3)
N = 40
TABLE = pd.DataFrame(
    {
        "src": RNG.integers(0, N, 110) * 2,
        "dst": RNG.integers(0, N, 110) * 2,
        "weight": RNG.integers(1, 20, 110),
    }
)
CLOSED = [2, 10, 16, 40, 44]
GRAPHS = {
    name: (
        graph_from_edges(TABLE, **options),
        graph_from_edges(TABLE.rename(columns={"src": "dst", "dst": "src"}), **options),
    )
    for name, options in {
        "plain": {"vertices": range(0, 2 * N, 2)},
        "closed": {"vertices": range(0, 2 * N, 2), "closed": CLOSED},
    }.items()
}
SOURCES = [10, 4, 66, 4]
TARGETS = [20, 10, 72, 0, 44]
CALLS = {
    "targets": {"targets": TARGETS},
    "matrix": {"targets": TARGETS},
    "matrix of all": {},
    "nearest": {},
    "k nearest": {"k": 2},
    "nearest targets": {"k": 2, "targets": TARGETS},
    "isochrones": {"cutoffs": [5, 18]},
    "within": {"cutoffs": [5, 18]},
}


def result_of(name):
    return {"matrix of all": "matrix", "k nearest": "nearest", "nearest targets": "nearest"}.get(
        name, name
    )


@pytest.mark.parametrize("name", list(CALLS))
@pytest.mark.parametrize(
    ("kind", "many"), [("plain", bfs_many), ("plain", sssp_many), ("closed", sssp_many)]
)
def test_results_are_those_of_the_reversed_edges(name, kind, many):
    graph, reverse = GRAPHS[kind]
    sources = sorted(set(SOURCES)) if "nearest" in name else SOURCES
    options = {"result": result_of(name), **CALLS[name]}
    made = many(graph, sources, direction="in", **options)
    expected = many(reverse, sources, **options)
    if isinstance(made, np.ndarray):
        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(made, expected)
    else:
        pd.testing.assert_frame_equal(made, expected)
    assert many(graph, sources, **options) is not made


@pytest.mark.parametrize("kind", list(GRAPHS))
@pytest.mark.parametrize("engine", ["search", "hierarchy", "labels"])
def test_pairs_to_one_place_are_one_search(kind, engine):
    graph, reverse = GRAPHS[kind]
    if engine == "hierarchy":
        graph.hierarchy()
    if engine == "labels":
        graph.labels()
    origins = [10] * N
    destinations = list(range(0, 2 * N, 2))
    made = sssp_pairs(graph, origins, destinations, direction="in")
    assert made.equals(sssp_pairs(reverse, origins, destinations))
    assert made.source.tolist() == origins
    there = sssp_pairs(graph, destinations, origins)
    assert made.distance.tolist() == there.distance.tolist()
    if kind == "plain":
        hops = bfs_pairs(graph, origins, destinations, direction="in")
        assert hops.distance.tolist() == bfs_pairs(graph, destinations, origins).distance.tolist()


def test_kinds_that_have_paths_refuse_it():
    graph, _ = GRAPHS["plain"]
    for result in ("distances", "predecessors", "reachable", "flows", "betweenness"):
        with pytest.raises(InputError, match=r"direction='in' is for result .*not " + result):
            sssp_many(graph, [4], result=result, direction="in")
    with pytest.raises(InputError, match=r"direction='in' is for result .*not flows"):
        sssp_pairs(graph, [4], [8], result="flows", direction="in")
    with pytest.raises(InputError, match="direction"):
        sssp_pairs(graph, [4], [8], direction="back")


def test_a_negative_cycle_is_told_in_the_direction_of_the_edges():
    graph = graph_from_edges([0, 1, 2, 2], [1, 2, 0, 3], [1, 1, -4, 1])
    with pytest.raises(NegativeCycleError) as caught:
        sssp_pairs(graph, [3], [0], direction="in")
    cycle = caught.value.cycle
    assert cycle[cycle.index(0) :] + cycle[: cycle.index(0)] == [0, 1, 2]
