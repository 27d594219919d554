"""The certificate must reject every wrong result and accept every correct one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import bfs, bfs_many, plan_bfs, plan_sssp, sssp, sssp_many
from kepler_traverse.certificate import certify
from kepler_traverse.errors import CertificateError, InputError
from scripts.evidence.fault_injection import (
    DISTANCE_FAULTS,
    FAULTS,
    KINDS,
    count_false_alarms,
    forget,
    is_noticed,
    with_fault,
)
from tests.support.graphs import NAMED, awkward_floats, build, edge_rows, weighted_rows, weights_for


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_every_seeded_fault_is_noticed_by_both_certificates(fault):
    made = 0
    for kind in KINDS:  # those of float64 take a second set of compiled loops, so fewer of them
        for seed in range(1 if kind == "doubles" else 3):
            case = with_fault(fault, seed, kind)
            if case is None:
                continue
            graph, result, right = case
            noticed = is_noticed(graph, result, right)
            assert all(noticed.values()), f"{kind}, seed {seed}: {noticed}"
            assert len(noticed) == 2 or fault not in DISTANCE_FAULTS
            with pytest.raises(CertificateError, match=r"C[1-5]"):
                certify(graph, result).require()
            made += 1
    assert made >= 5


def test_certify_accepts_correct_results_of_all_kinds():
    assert count_false_alarms(150) == (150, 0)


def test_certify_rejects_a_cycle_of_zero_weights_with_too_small_distances():
    graph = build([(0, 1), (1, 2), (2, 1)], [5, 0, 0])
    result = plan_sssp(graph)(0).copy()
    result.distance[1:] = 3
    result.predecessor[1:] = [2, 1]
    assert set(certify(graph, result).failures) == {"C5"}


def test_certify_rejects_a_cycle_of_absorbed_weights():
    graph = build([(0, 1), (1, 2), (2, 1)], np.array([1e8, 1, 1], np.float32))
    result = plan_sssp(graph)(0).copy()
    assert result.distance[2] == result.distance[1]
    certify(graph, result).require()
    result.predecessor[1] = 2
    assert set(certify(graph, result).failures) == {"C5"}


@given(edge_rows(), st.booleans(), st.one_of(st.none(), st.integers(0, 4)))
def test_certify_accepts_hops(rows, directed, depth):
    graph = build(rows, directed=directed)
    plan = plan_bfs(graph, max_depth=depth)
    for source in range(graph.n_vertices):
        certify(graph, plan.run(source)).require()


@given(weighted_rows(awkward_floats), st.booleans(), st.one_of(st.none(), awkward_floats))
def test_certify_accepts_distances(drawn, directed, cutoff):
    graph = build(*drawn, directed=directed)
    plan = plan_sssp(graph, cutoff=cutoff)
    for source in range(graph.n_vertices):
        certify(graph, plan.run(source)).require()


def test_a_limit_does_not_excuse_what_lies_within_it():
    graph = build(NAMED["path"])
    result = plan_bfs(graph, max_depth=10)(0).copy()
    forget(result, [10])
    assert set(certify(graph, result).failures) == {"C3"}


def test_frames_are_certified_as_well():
    rows = [r[:2] for r in NAMED["power law"]]
    graph = build(rows, weights_for(rows, 1))
    sources = [rows[0][0], rows[1][0]]
    assert certify(graph, bfs(graph, sources[0])).valid
    assert certify(graph, sssp(graph, sources[0], unreached="null")).valid
    assert certify(graph, bfs_many(graph, sources, result="predecessors")).valid
    frame = sssp_many(graph, sources, result="predecessors")
    assert certify(graph, frame).sources == 2
    frame.loc[len(frame) - 1, "distance"] += 1
    assert not certify(graph, frame).valid
    with pytest.raises(InputError, match="twice"):
        certify(graph, frame.iloc[[0, 1, 1]])
    assert not certify(graph, frame.drop(index=frame.index[-1])).valid


def test_a_certificate_without_predecessors_is_refused():
    graph = build([(0, 1)])
    with pytest.raises(InputError, match="predecessors=True"):
        certify(graph, plan_bfs(graph, predecessors=False)(0))
    with pytest.raises(InputError, match="predecessors=True"):
        certify(graph, bfs(graph, 0, predecessors=False))
