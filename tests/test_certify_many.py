"""Distances from many sources are proven right without predecessors, or the rule that they break is named."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import NAMED, awkward_floats, build, edge_rows, weighted_rows, weights_for
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import plan_bfs, plan_sssp
from kepler_traverse.certificate import certify_many
from kepler_traverse.errors import CertificateError, DeviceError, InputError

INTEGERS = (np.int8, np.int16, np.int32)


def rows_of(plan, sources):
    return np.array([plan.run(int(source)).distance.copy() for source in sources])


@given(edge_rows(), st.booleans(), st.one_of(st.none(), st.integers(0, 4)), st.sampled_from(INTEGERS))
@settings(max_examples=40)
def test_hops_of_any_graph_are_proven_right(rows, directed, depth, kind):
    graph = build(rows, directed=directed)
    sources = np.arange(graph.n_vertices)
    distances = rows_of(plan_bfs(graph, max_depth=depth, predecessors=False), sources).astype(kind)
    certify_many(graph, sources, distances, depth).require()


@given(weighted_rows(awkward_floats), st.booleans(), st.one_of(st.none(), awkward_floats))
@settings(max_examples=40)
def test_distances_of_any_graph_are_proven_right(drawn, directed, cutoff):
    graph = build(*drawn, directed=directed)
    sources = np.arange(graph.n_vertices)
    distances = rows_of(plan_sssp(graph, cutoff=cutoff, predecessors=False), sources)
    certify_many(graph, sources, distances, cutoff).require()


@pytest.mark.parametrize("n_sources", [16, 17, 65])
def test_one_wrong_distance_is_found_wherever_its_source_stands(n_sources):
    rows = [r[:2] for r in NAMED["power law"]]
    graph = build(rows, weights_for(rows, 1, "floats"))
    sources = np.resize(np.flatnonzero(graph.degrees > 4), n_sources)
    for plan, step in ((plan_bfs(graph, predecessors=False), 1), (plan_sssp(graph, predecessors=False), 0.5)):
        distances = rows_of(plan, sources)
        certify_many(graph, sources, distances).require()
        for at in {0, n_sources // 2, n_sources - 1}:
            vertex = int(np.flatnonzero(distances[at] > 0)[-1])
            wrong = distances.copy()
            wrong[at, vertex] += step
            certificate = certify_many(graph, sources, wrong)
            assert set(certificate.failures) <= {"C3", "C4"}
            assert f"from source {graph.ids[sources[at]]} to vertex" in next(iter(certificate.failures.values()))


@pytest.mark.parametrize("length", [126, 127, 128, 252, 253, 254, 255, 300, 1200])
@pytest.mark.parametrize("kind", INTEGERS)
def test_a_path_as_long_as_a_narrow_type_counts_is_proven_and_one_longer_is_not(kind, length):
    graph = build([(v, v + 1) for v in range(length)])
    exact = np.arange(length + 1)[None]
    fits = length <= np.iinfo(kind).max
    distances = np.where(exact <= np.iinfo(kind).max, exact, -1).astype(kind)
    certificate = certify_many(graph, np.array([0]), distances)
    assert certificate.valid == fits
    assert fits or set(certificate.failures) == {"C3"}
    assert certify_many(graph, np.array([0]), distances, min(length, int(np.iinfo(kind).max))).valid
    assert not certify_many(graph, np.array([0]), np.where(exact == length // 2, -1, distances).astype(kind), length).valid


def test_circles_of_zero_and_absorbed_weights_cannot_vouch_for_themselves():
    for weights, near in (([5, 0, 0], 3), (np.array([1e8, 1, 1], np.float32), 9.9e7)):
        graph = build([(0, 1), (1, 2), (2, 1)], weights)
        right = rows_of(plan_sssp(graph), [0, 1])
        certify_many(graph, np.array([0, 1]), right).require()
        wrong = right.copy()
        wrong[0, 1:] = near
        assert set(certify_many(graph, np.array([0, 1]), wrong).failures) == {"C5"}


def test_long_chains_of_zero_weights_are_followed():
    rows = [(v, v + 1) for v in range(400)] + [(v + 1, v) for v in range(400)]
    graph = build(rows, [0] * len(rows))
    sources = np.arange(0, 401, 20)
    certify_many(graph, sources, rows_of(plan_sssp(graph), sources)).require()


def test_arguments_that_do_not_fit_are_refused():
    graph = build([(0, 1), (1, 2)], [1, 2])
    right = rows_of(plan_sssp(graph), [0, 1])
    for sources, distances, limit, match in [
        ([], right, None, "at least one"),
        ([0.5, 1], right, None, "vertex numbers"),
        ([0], right, None, "shape"),
        ([0, 3], right, None, r"0\.\.2"),
        ([0, -1], right, None, r"0\.\.2"),
        ([0, 1], right.astype(np.float64), None, "float32 weights"),
        ([0, 1], np.zeros((2, 3), np.int64), None, "int8, int16 or int32"),
        ([0, 1], right, -1, "0 or more"),
    ]:
        with pytest.raises(InputError, match=match):
            certify_many(graph, np.array(sources), distances, limit)
    with pytest.raises(InputError, match="has no weights"):
        certify_many(build([(0, 1), (1, 2)]), np.array([0, 1]), right)
    with pytest.raises(CertificateError, match="C1"):
        certify_many(graph, np.array([1, 0]), right).require()


def test_a_graph_elsewhere_than_on_the_cpu_is_refused():
    graph = build([(0, 1)])
    object.__setattr__(graph, "__class__", type("OnAGpu", (type(graph),), {"device": "cuda"}))
    with pytest.raises(DeviceError, match="works on the CPU"):
        certify_many(graph, np.array([0]), np.array([[0, 1]], np.int8))
