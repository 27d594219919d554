"""A limit per source: each kind of result equals calls with one source and its own limit."""

from __future__ import annotations

import numba
import numpy as np
import pandas as pd
import pytest

from kepler_traverse import bfs_many, graph_from_edges, sssp_many
from kepler_traverse.errors import InputError
from tests.support.devices import host, on_a_device, orders, running
from tests.support.graphs import NAMED, build, weights_for

MODES = orders(in_turn={"block": 64})
EDGES = [row[:2] for row in NAMED["power law"]]
GRAPH = build(EDGES, weights_for(EDGES, 4), directed=True)
SOURCES = GRAPH.ids[[5, 1, 300, 5, 77]].tolist()
CALLS = {
    "bfs": (bfs_many, "max_depth", [2, 0, 1, 2, 3]),
    "sssp": (sssp_many, "cutoff", [9, 0, 2.5, 9, 14]),
}
TARGETS = GRAPH.ids[[9, 1, 40, 7]].tolist()


def of_each(many, name, limits, **options):
    """The results of calls with one source."""
    return [
        many(GRAPH, [one], **{name: limit}, **options)
        for one, limit in zip(SOURCES, limits, strict=True)
    ]


@pytest.mark.parametrize("algorithm", CALLS)
@pytest.mark.parametrize("result", ["distances", "predecessors", "summary", "levels", "targets"])
def test_frames_equal_those_of_calls_with_one_source(result, algorithm):
    many, name, limits = CALLS[algorithm]
    if result == "levels" and algorithm == "sssp":
        return
    options = {"result": result} | ({"targets": TARGETS} if result == "targets" else {})
    found = many(GRAPH, SOURCES, **{name: limits}, **options)
    expected = pd.concat(of_each(many, name, limits, **options), ignore_index=True)
    for column in found if result == "targets" else ():
        found[column], expected[column] = (
            found[column].astype(float),
            expected[column].astype(float),
        )
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


@pytest.mark.parametrize("algorithm", CALLS)
@pytest.mark.parametrize("result", ["matrix", "reachable"])
def test_arrays_equal_those_of_calls_with_one_source(result, algorithm):
    many, name, limits = CALLS[algorithm]
    found = many(GRAPH, SOURCES, result=result, **{name: np.array(limits)})
    one = np.concatenate(of_each(many, name, limits, result=result))
    if result == "matrix" and algorithm == "sssp":
        found, one = (
            np.where(found <= np.array(limits)[:, None], found, np.inf),
            np.where(one <= 1e9, one, np.inf),
        )
        one[one > np.array(limits)[:, None]] = np.inf
    np.testing.assert_array_equal(found, one)


@pytest.fixture
def two_threads():
    """A group has as many sources as some threads take."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(before, 2))
    yield
    numba.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("algorithm", CALLS)
@pytest.mark.parametrize("result", ["distances", "summary"])
def test_the_groups_of_a_stream_joined_are_the_result(result, algorithm):
    many, name, limits = CALLS[algorithm]
    sources = GRAPH.ids[:120].tolist()  # several groups
    strategy = "source_per_thread" if algorithm == "bfs" else "near_far_per_thread"
    options = {"result": result, "strategy": strategy, name: limits * 24}
    groups = list(many(GRAPH, sources, stream=True, **options))
    assert len(groups) > 2
    pd.testing.assert_frame_equal(
        pd.concat(groups, ignore_index=True), many(GRAPH, sources, **options)
    )
    assert not any(frame.attrs for frame in groups)  # a certificate has one limit for all sources


def test_a_set_of_sources_has_no_order_for_its_limits():
    with pytest.raises(InputError, match="sources must be a list, in the order of max_depth"):
        bfs_many(GRAPH, set(SOURCES), max_depth=[1] * len(set(SOURCES)))


@on_a_device
@pytest.mark.parametrize("algorithm", CALLS)
def test_a_gpu_cuts_the_same(algorithm):
    many, name, limits = CALLS[algorithm]
    for result in ("matrix", "reachable"):
        expected = many(GRAPH, SOURCES, result=result, strategy="one_at_a_time", **{name: limits})
        with running(next(iter(MODES.values()))):
            there = GRAPH.to("cuda")
            found = host(
                many(there, SOURCES, result=result, strategy="one_at_a_time", **{name: limits})
            )
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        ([0, 1], {"cutoff": [1]}, "cutoff has 1 value, not 2"),
        ([0], {"cutoff": []}, "cutoff has 0 values, not 1"),
        ([0], {"cutoff": [-1]}, "cutoff must be 0 or more"),
        ([0], {"cutoff": ["1"]}, "cutoff must hold numbers"),
        ([0], {"cutoff": np.ma.array([1.0], mask=[True])}, "cutoff is masked"),
        ([0], {"cutoff": "1"}, "cutoff must be a number"),
        ([0, 0], {"cutoff": [1, 2]}, "source 0 is given twice with different limits"),
        (
            [0],
            {"cutoff": [1], "result": "nearest"},
            "cutoff is a limit per source, and result='nearest' takes none",
        ),
        ([0], {"cutoff": [1], "result": "within", "cutoffs": [1]}, "leave cutoff out"),
        ([0], {"cutoff": [1], "result": "levels"}, "counts hops"),
        ([0], {"cutoff": [1], "result": "targets"}, "needs targets"),
    ],
)
def test_wrong_limits_are_refused(sources, options, message):
    graph = graph_from_edges(np.array([0]), np.array([1]), np.array([1]))
    with pytest.raises(InputError, match=message):
        sssp_many(graph, sources, **options)


def test_limits_of_no_source_give_an_empty_frame():
    assert not len(sssp_many(GRAPH, [], cutoff=[]))
