"""Distances from many sources are certified without predecessors, or the broken rule is named."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import plan_bfs, plan_bfs_many, plan_sssp
from kepler_traverse._arrays import namespace
from kepler_traverse.certificate import batch_cpu, batch_gpu, certify_many
from kepler_traverse.errors import CertificateError, DeviceError, InputError
from kepler_traverse.search.query import Query
from kepler_traverse.search.results import checksum as checksum_of
from pipelines.output.schemas import OUTPUT_SCHEMAS
from pipelines.worker.batch_context import BatchContext
from pipelines.worker.planning import Request
from pipelines.worker.traverse import BatchTraverser
from scripts.evidence.fault_injection import DISTANCE_FAULTS, with_fault
from tests.support import tiers
from tests.support.devices import FIRST, MODES, on_a_device, running
from tests.support.graphs import (
    NAMED,
    awkward_floats,
    build,
    edge_rows,
    lattice,
    star,
    weighted_rows,
    weights_for,
)

INTEGERS = (np.int8, np.int16, np.int32)
KINDS = {
    order: ("hops", "float32", "float64") if order != "stress" else ("hops", "float32")
    for order in MODES
}


def rows_of(plan, sources):
    return np.array([plan.run(int(source)).distance.copy() for source in sources])


def on_the_gpu(graph, sources, distances, limit=None, spare: int = 0):
    """The certificate of a GPU, of rows that are so many places wider apart than they are long."""
    there = graph.to("cuda")
    rows = namespace(there.offsets).empty(
        (distances.shape[0], distances.shape[1] + spare), distances.dtype
    )
    rows = rows[:, : distances.shape[1]]
    rows[...] = namespace(there.offsets).asarray(distances)
    return certify_many(there, sources, rows, limit)


@given(
    edge_rows(), st.booleans(), st.one_of(st.none(), st.integers(0, 4)), st.sampled_from(INTEGERS)
)
@settings(max_examples=tiers.examples(40))
def test_hops_of_any_graph_are_proven_right(rows, directed, depth, kind):
    graph = build(rows, directed=directed)
    sources = np.arange(graph.n_vertices)
    distances = rows_of(plan_bfs(graph, max_depth=depth, predecessors=False), sources).astype(kind)
    certify_many(graph, sources, distances, depth).require()


@given(
    edge_rows(),
    st.booleans(),
    st.integers(1, batch_cpu.FEW),
    st.sampled_from(INTEGERS),
    st.integers(-1, 5),
    st.data(),
)
@settings(max_examples=tiers.examples(60), deadline=None)
def test_certificates_of_few_sources_are_those_of_many(rows, directed, k, kind, wrong, data):
    graph = build(rows, directed=directed)
    sources = np.arange(graph.n_vertices)[:k]
    distances = rows_of(plan_bfs(graph, predecessors=False), sources).astype(kind)
    distances[
        data.draw(st.integers(0, sources.size - 1)), data.draw(st.integers(0, graph.n_vertices - 1))
    ] = wrong
    few = certify_many(graph, sources, distances)
    many = (
        np.resize(sources, batch_cpu.FEW + 1),
        np.resize(distances, (batch_cpu.FEW + 1, graph.n_vertices)),
    )
    assert few.failures.keys() == certify_many(graph, *many).failures.keys()


@given(weighted_rows(awkward_floats), st.booleans(), st.one_of(st.none(), awkward_floats))
@settings(max_examples=tiers.examples(40))
def test_distances_of_any_graph_are_proven_right(drawn, directed, cutoff):
    graph = build(*drawn, directed=directed)
    sources = np.arange(graph.n_vertices)
    distances = rows_of(plan_sssp(graph, cutoff=cutoff, predecessors=False), sources)
    certify_many(graph, sources, distances, cutoff).require()


@pytest.mark.parametrize("n_sources", [16, 17, 65])
def test_certify_many_finds_a_wrong_distance_of_any_source(n_sources):
    rows = [r[:2] for r in NAMED["power law"]]
    graph = build(rows, weights_for(rows, 1, "floats"))
    sources = np.resize(np.flatnonzero(graph.derived.degrees > 4), n_sources)
    for plan, step in (
        (plan_bfs(graph, predecessors=False), 1),
        (plan_sssp(graph, predecessors=False), 0.5),
    ):
        distances = rows_of(plan, sources)
        certify_many(graph, sources, distances).require()
        for at in {0, n_sources // 2, n_sources - 1}:
            vertex = int(np.flatnonzero(distances[at] > 0)[-1])
            wrong = distances.copy()
            wrong[at, vertex] += step
            certificate = certify_many(graph, sources, wrong)
            assert set(certificate.failures) <= {"C3", "C4"}
            assert f"from source {graph.ids[sources[at]]} to vertex" in next(
                iter(certificate.failures.values())
            )


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
    assert not certify_many(
        graph, np.array([0]), np.where(exact == length // 2, -1, distances).astype(kind), length
    ).valid


def test_certify_many_rejects_cycles_of_zero_and_absorbed_weights():
    for weights, near in (([5, 0, 0], 3), (np.array([1e8, 1, 1], np.float32), 9.9e7)):
        graph = build([(0, 1), (1, 2), (2, 1)], weights)
        right = rows_of(plan_sssp(graph), [0, 1])
        certify_many(graph, np.array([0, 1]), right).require()
        wrong = right.copy()
        wrong[0, 1:] = near
        assert set(certify_many(graph, np.array([0, 1]), wrong).failures) == {"C5"}


def test_certify_many_follows_long_chains_of_zero_weights():
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
        ([0, 1], right.astype(np.float16), None, "float32 weights"),
        ([0, 1], np.zeros((2, 3), np.uint8), None, "float32 weights"),
        ([0, 1], right, -1, "0 or more"),
    ]:
        with pytest.raises(InputError, match=match):
            certify_many(graph, np.array(sources), distances, limit)
    with pytest.raises(InputError, match="has no weights"):
        certify_many(build([(0, 1), (1, 2)]), np.array([0, 1]), right)
    with pytest.raises(CertificateError, match="C1"):
        certify_many(graph, np.array([1, 0]), right).require()


def test_distances_elsewhere_than_the_graph_are_refused():
    graph = build([(0, 1)])
    object.__setattr__(graph, "__class__", type("OnAGpu", (type(graph),), {"device": "cuda"}))
    with pytest.raises(DeviceError, match="distances are on the cpu and the graph on the cuda"):
        certify_many(graph, np.array([0]), np.array([[0, 1]], np.int8))


# --- on a GPU ----------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    """Rows of few edges are cut as those of hubs are."""
    monkeypatch.setattr(batch_gpu, "CHUNK", 8)


@on_a_device
@pytest.mark.parametrize("fault", DISTANCE_FAULTS, ids=lambda fault: fault.__name__)
def test_a_gpu_names_every_seeded_fault_as_the_cpu_does(fault):
    with running(FIRST):
        named = 0
        for kind in ("hops", "zeros", "negative"):
            case = with_fault(fault, 1, kind)
            if case is None:
                continue
            graph, result, right = case
            sources, wrong = np.array([result.source] * 2), np.array([right, result.distance])
            expected = certify_many(graph, sources, wrong).failures
            assert on_the_gpu(graph, sources, wrong, spare=3).failures == expected
            assert expected or wrong[0].tobytes() == wrong[1].tobytes()
            named += bool(expected)
    assert named


@on_a_device
@pytest.mark.parametrize(
    ("kind", "order"), [(kind, order) for order in MODES for kind in KINDS[order]]
)
def test_a_gpu_proves_what_the_cpu_proves(kind, order):
    rows = [r[:2] for r in NAMED["power law"]] + [(v + 60, u) for u, v in star(40)]
    weights = None if kind == "hops" else np.array(weights_for(rows, 1, "floats"), kind)
    graph = build(rows, weights, weight_type="auto" if kind == "hops" else kind)
    sources = np.resize(np.flatnonzero(graph.derived.degrees > 2), 66)
    right = rows_of((plan_bfs if kind == "hops" else plan_sssp)(graph, predecessors=False), sources)
    with running(MODES[order]):
        for width in (
            (np.int8, np.int32) if kind == "hops" and order != "stress" else (right.dtype,)
        ):
            distances = right.astype(width)
            on_the_gpu(graph, sources, distances, spare=5).require()
            wrong = distances.copy()
            wrong[65, np.flatnonzero(right[65] > 0)[-1]] += 1
            found = on_the_gpu(graph, sources, wrong).failures
            assert found == certify_many(graph, sources, wrong).failures != {}


@on_a_device
@pytest.mark.parametrize(("length", "limit"), [(252, 2.5), (254, 0), (300, 300), (126, 254)])
def test_a_gpu_counts_as_far_as_a_type_goes(length, limit):
    graph = build([(v, v + 1) for v in range(length)])
    exact = np.arange(length + 1)[None]
    within = np.where(exact <= limit, exact, -1).astype(np.int16)
    with running(FIRST):
        on_the_gpu(graph, np.array([0]), exact.astype(np.int16)).require()
        on_the_gpu(graph, np.array([0]), within, limit).require()
        lost = np.where(exact == min(int(limit), length), -1, within)
        expected = certify_many(graph, np.array([0]), lost, limit).failures
        assert on_the_gpu(graph, np.array([0]), lost, limit).failures == expected != {}


@on_a_device
@pytest.mark.parametrize("order", MODES)
def test_certify_many_on_a_gpu_follows_zero_chains_and_rejects_cycles(order):
    rows = [(v, v + 1) for v in range(40)] + [(v + 1, v) for v in range(40)]
    chain, sources = build(rows, [0] * len(rows)), np.arange(0, 41, 10)
    circle = build([(0, 1), (1, 2), (2, 1)], np.array([1e8, 1, 1], np.float32))
    wrong = rows_of(plan_sssp(circle), [0, 1])
    wrong[0, 1:] = 9.9e7
    with running(MODES[order]):
        on_the_gpu(chain, sources, rows_of(plan_sssp(chain), sources)).require()
        expected = certify_many(circle, np.array([0, 1]), wrong).failures
        assert on_the_gpu(circle, np.array([0, 1]), wrong).failures == expected
        assert set(expected) == {"C5"}


@on_a_device
def test_a_job_proves_groups_on_a_gpu_without_predecessors(monkeypatch):
    rows = [r[:2] for r in NAMED["power law"]]
    graph = build(rows)
    proven = []
    monkeypatch.setattr(
        "kepler_traverse.certificate.certify_many",
        lambda *of: proven.append(len(of[1])) or certify_many(*of),
    )
    traversals = plan_bfs_many(graph, n_sources=5, strategy="bit_parallel").run(range(5))
    work = Request(
        algorithm="bfs",
        strategy="auto",
        kind=OUTPUT_SCHEMAS["distances"],
        knobs=None,
        at_once=5,
        certify="all",
    )
    with running(FIRST):
        there = graph.to("cuda")
        moved = replace(traversals, distance=namespace(there.offsets).asarray(traversals.distance))
        plan = SimpleNamespace(
            group=5, query=Query(predecessors=False), run=lambda _numbers, **_: moved
        )
        answers, context = BatchTraverser(there, plan, work), BatchContext(stats=Mock())
        found_rows = list(answers.answer_batch(0, range(5), context))
        assert [answer.checksums for answer in found_rows] == [
            [checksum_of(traversal)] for traversal in traversals
        ]
        moved.distance[3, 7] += 1
        assert not list(answers.answer_batch(0, range(3, 4), context))
    assert proven == [5, 5]
    assert "C3" in context.failed[0][1]


# --- a limit per source ------------------------------------------------------------------------------------------------


def limited(graph, kind, n_sources=40):
    """Distances from sources to a limit each; the last source has none."""
    plan = plan_bfs if kind == "hops" else plan_sssp
    full = rows_of(plan(graph, predecessors=False), np.arange(n_sources))
    unreached = -1 if kind == "hops" else np.inf
    limits = [*np.sort(full, axis=1)[:, graph.n_vertices // 2].tolist()[:-1], None]
    for distance, limit in zip(full, limits, strict=True):
        if limit is not None:
            distance[distance > limit] = unreached
    return full, limits


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=on_a_device)])
@pytest.mark.parametrize("kind", ["hops", "weights"])
def test_certify_many_checks_each_source_to_its_own_limit(kind, device):
    rows = lattice(8, 12)  # on the host harness a larger one takes seconds
    graph = build(rows, weights_for(rows, 3), directed=False)
    distances, limits = limited(graph, kind)
    sources = np.arange(len(limits))
    unreached = -1 if kind == "hops" else np.inf

    def rules(changed, limits=limits):
        if device == "cpu":
            return set(certify_many(graph, sources, changed, limits).failures)
        with running(FIRST):
            return set(on_the_gpu(graph, sources, changed, limits).failures)

    assert len({limit for limit in limits if limit is not None}) > 3
    assert rules(distances) == set()
    assert (
        rules(distances, np.array([np.inf if limit is None else limit for limit in limits]))
        == set()
    )
    lost = distances.copy()
    lost[7, np.flatnonzero(distances[7] == limits[7])[0]] = unreached  # within its own limit
    assert rules(lost) == {"C3"}
    largest = int(np.argmax([limit or 0 for limit in limits]))
    smallest = int(np.argmin([np.inf if limit is None else limit for limit in limits]))
    assert limits[smallest] < limits[largest]
    swapped = list(limits)
    swapped[smallest], swapped[largest] = limits[largest], limits[smallest]
    assert {"C2"} <= rules(distances, swapped)
    too_far = list(limits)
    too_far[smallest] = limits[largest]  # farther than the distances go
    assert rules(distances, too_far) == {"C3"}


def test_certify_many_refuses_limits_that_are_not_one_per_source():
    graph = build(NAMED["cycle"])
    distances = rows_of(plan_bfs(graph, predecessors=False), np.arange(3))
    with pytest.raises(InputError, match="limit has 2 values, not 3: give one per source"):
        certify_many(graph, np.arange(3), distances, [1, 2])
    with pytest.raises(InputError, match="limit must be 0 or more"):
        certify_many(graph, np.arange(3), distances, [1, 2, -1])
