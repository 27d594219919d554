"""The certificate must object to every wrong answer and to no right one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from graphs import NAMED, awkward_floats, build, edge_rows, weighted_rows, weights_for
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import bfs, bfs_many, plan_bfs, plan_sssp, sssp, sssp_many
from kepler_traverse.certificate import certify
from kepler_traverse.errors import CertificateError, InputError


def random_case(seed, kind):
    """A small directed graph and a right answer on it; kinds are those whose faults differ."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(8, 60)), int(rng.integers(20, 200))
    ends = rng.integers(0, n, (m, 2))
    weights = {
        "hops": None,
        "integers": rng.integers(1, 20, m),
        "zeros": rng.integers(0, 3, m),
        "floats": rng.exponential(1, m).astype(np.float32),
    }[kind]
    graph = build([tuple(e) for e in ends.tolist()], weights)
    plan = plan_bfs(graph) if weights is None else plan_sssp(graph)
    best = max(range(graph.n_vertices), key=lambda s: int(plan.run(s).reached.sum()))
    return graph, plan.run(best).copy(), rng


def reached_but_source(result):
    return [v for v in np.flatnonzero(result.reached).tolist() if v != result.source]


def explains(graph, result, u, v):
    row = slice(graph.offsets[u], graph.offsets[u + 1])
    at = np.flatnonzero(graph.targets[row] == v)
    if not at.size or not result.reached[u]:
        return False
    step = 1 if graph.weights is None else graph.weights[row][at[0]]
    return result.distance[v] == result.distance[u] + step


NOT_HERE = "this fault cannot be made in this answer"


def one_step_up(result, graph, rng):  # noqa: ARG001
    """The smallest change of one distance."""
    v = rng.choice(reached_but_source(result))
    hops = result.algorithm == "bfs"
    result.distance[v] = result.distance[v] + 1 if hops else np.nextafter(result.distance[v], np.float32(np.inf))


def one_step_down(result, graph, rng):  # noqa: ARG001
    v = rng.choice([v for v in reached_but_source(result) if result.distance[v] > 0])
    hops = result.algorithm == "bfs"
    result.distance[v] = result.distance[v] - 1 if hops else np.nextafter(result.distance[v], np.float32(-np.inf))


def subtree_too_far(result, graph, rng):  # noqa: ARG001
    top = rng.choice(reached_but_source(result))
    below = {top}
    while True:
        more = {v for v in reached_but_source(result) if int(result.predecessor[v]) in below} | below
        if more == below:
            break
        below = more
    result.distance[list(below)] += 1


def forget(result, vertices):
    result.distance[vertices] = -1 if result.algorithm == "bfs" else np.inf
    result.predecessor[vertices] = -1


def lost_frontier(result, graph, rng):  # noqa: ARG001
    middle = rng.choice(result.distance[reached_but_source(result)])
    forget(result, [v for v in reached_but_source(result) if result.distance[v] >= middle])


def lost_last_level(result, graph, rng):  # noqa: ARG001
    last = result.distance[reached_but_source(result)].max()
    forget(result, [v for v in reached_but_source(result) if result.distance[v] == last])


def only_the_source(result, graph, rng):  # noqa: ARG001
    forget(result, reached_but_source(result))


def phantom_vertex(result, graph, rng):  # noqa: ARG001
    outside = np.flatnonzero(~result.reached)
    if not outside.size:
        return NOT_HERE
    v = rng.choice(outside)
    result.distance[v], result.predecessor[v] = result.distance[result.reached].max() + 1, result.source
    return None


def predecessor_that_is_no_neighbour(result, graph, rng):
    v = rng.choice(reached_but_source(result))
    strangers = [u for u in range(graph.n_vertices) if u != v and not explains(graph, result, u, v)]
    result.predecessor[v] = rng.choice(strangers)


def predecessor_lost(result, graph, rng):  # noqa: ARG001
    result.predecessor[rng.choice(reached_but_source(result))] = -1


def predecessor_out_of_range(result, graph, rng):
    result.predecessor[rng.choice(reached_but_source(result))] = graph.n_vertices


def distance_not_a_number(result, graph, rng):  # noqa: ARG001
    result.distance[rng.choice(reached_but_source(result))] = np.nan


def distance_below_zero(result, graph, rng):  # noqa: ARG001
    result.distance[rng.choice(reached_but_source(result))] = -2


def source_not_at_zero(result, graph, rng):  # noqa: ARG001
    result.distance[result.source] = 1


def second_root(result, graph, rng):  # noqa: ARG001
    v = rng.choice(reached_but_source(result))
    result.distance[v], result.predecessor[v] = 0, v


FAULTS = [
    one_step_up,
    one_step_down,
    subtree_too_far,
    lost_frontier,
    lost_last_level,
    only_the_source,
    phantom_vertex,
    predecessor_that_is_no_neighbour,
    predecessor_lost,
    predecessor_out_of_range,
    distance_not_a_number,
    distance_below_zero,
    source_not_at_zero,
    second_root,
]


@pytest.mark.parametrize("kind", ["hops", "integers", "zeros", "floats"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_every_seeded_fault_is_rejected(fault, kind):
    if fault is distance_not_a_number and kind == "hops":
        pytest.skip("hops are integers")
    made = 0
    for seed in range(14):
        graph, result, rng = random_case(seed, kind)
        if len(reached_but_source(result)) < 2 or result.distance[reached_but_source(result)].max() == 0:
            continue
        certify(graph, result).require()
        if fault(result, graph, rng) is NOT_HERE:
            continue
        made += 1
        certificate = certify(graph, result)
        assert not certificate.valid, f"seed {seed}"
        with pytest.raises(CertificateError, match=r"C[1-5]"):
            certificate.require()
    assert made >= 3


@pytest.mark.parametrize("kind", ["hops", "integers", "zeros", "floats"])
def test_the_row_of_another_source_is_rejected(kind):
    for seed in range(12):
        graph, result, _ = random_case(seed, kind)
        other = reached_but_source(result)[0]
        assert not certify(graph, replace(result, source=other)).valid


def test_a_circle_of_zero_weights_cannot_vouch_for_a_distance_that_is_too_small():
    graph = build([(0, 1), (1, 2), (2, 1)], [5, 0, 0])
    result = plan_sssp(graph)(0).copy()
    result.distance[1:] = 3
    result.predecessor[1:] = [2, 1]
    assert set(certify(graph, result).failures) == {"C5"}


def test_a_circle_of_absorbed_weights_is_found():
    graph = build([(0, 1), (1, 2), (2, 1)], np.array([1e8, 1, 1], np.float32))
    result = plan_sssp(graph)(0).copy()
    assert result.distance[2] == result.distance[1]
    certify(graph, result).require()
    result.predecessor[1] = 2
    assert set(certify(graph, result).failures) == {"C5"}


@given(edge_rows(), st.booleans(), st.one_of(st.none(), st.integers(0, 4)))
def test_no_false_alarm_on_hops(rows, directed, depth):
    graph = build(rows, directed=directed)
    plan = plan_bfs(graph, max_depth=depth)
    for source in range(graph.n_vertices):
        certify(graph, plan.run(source)).require()


@given(weighted_rows(awkward_floats), st.booleans(), st.one_of(st.none(), awkward_floats))
def test_no_false_alarm_on_distances(drawn, directed, cutoff):
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
