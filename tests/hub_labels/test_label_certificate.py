"""The certificate of labels accepts right ones, and finds every fault that is planted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kepler_traverse import certify
from kepler_traverse.errors import CertificateError, InputError
from kepler_traverse.hub_labels.arrays import LabelLists
from kepler_traverse.hub_labels.build import build_labels
from tests.support.graphs import build, lattice, rmat, weighted_rows, weights_for

GRID = lattice(14, 14)
ONE_WAY = [(v, v + 1) for v in range(60)] + [(v + 2, v) for v in range(0, 59, 3)]


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("rows", [GRID, ONE_WAY, rmat(7, 4, seed=3)], ids=len)
@pytest.mark.parametrize("metric", ["weights", "hops"])
def test_right_labels_are_certified(rows, directed, metric):
    graph = build(rows, weights_for(rows, 1), directed)
    certificate = certify(graph, graph.labels(metric))
    certificate.require()
    assert len(certificate.proved) == 3
    assert len(certificate.sampled) == 1


@given(weighted_rows(st.sampled_from([0, 1, 2, 2**40])), st.booleans())
def test_right_labels_of_any_graph_are_certified(drawn, directed):
    graph = build(*drawn, directed)
    certify(graph, graph.labels()).require()


def changed(labels, change, direction="outward"):
    """A copy of labels of which one direction is changed."""
    lists = LabelLists(*(array.copy() for array in getattr(labels, direction)))
    lists = change(lists) or lists
    if labels.is_symmetric:
        return replace(labels, outward=lists, inward=lists)
    return replace(labels, **{direction: lists})


def without_row(lists, at):
    row = np.searchsorted(lists.offsets, at, side="right") - 1
    offsets = lists.offsets.copy()
    offsets[row + 1 :] -= 1
    return LabelLists(offsets, np.delete(lists.hubs, at), np.delete(lists.distances, at))


def foreign_rows(lists):
    """Rows of a label that are not its own vertex."""
    is_own = np.zeros(lists.hubs.size, bool)
    is_own[lists.offsets[1:] - 1] = True
    return np.flatnonzero(~is_own)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("direction", ["outward", "inward"])
@pytest.mark.parametrize("fault", ["up", "down", "removed", "swapped", "unsorted", "own"])
def test_planted_faults_are_found(directed, direction, fault):
    graph = build(GRID, [weight + 1 for weight in weights_for(GRID, 2)], directed)
    labels = graph.labels()
    lists = getattr(labels, direction)
    rng = np.random.default_rng(5)
    for at in rng.choice(foreign_rows(lists)[:-1], 12, replace=False):

        def change(lists, at=at):
            if fault == "up":
                lists.distances[at] += 1
            elif fault == "down":
                lists.distances[at] -= 1
            elif fault == "removed":
                return without_row(lists, at)
            elif fault == "swapped":
                lists.distances[[at, at + 1]] = lists.distances[[at + 1, at]]
            elif fault == "unsorted":
                lists.hubs[[at, at + 1]] = lists.hubs[[at + 1, at]]
            else:
                row = np.searchsorted(lists.offsets, at, side="right") - 1
                lists.distances[lists.offsets[row + 1] - 1] = 1
            return None

        if fault == "swapped" and lists.distances[at] == lists.distances[at + 1]:
            continue
        certificate = certify(graph, changed(labels, change, direction))
        assert not certificate.valid
        assert not certificate.proved
        with pytest.raises(CertificateError, match=r"the result is wrong: L[1245]: "):
            certificate.require()


# parallel edges, self-loops, zero weights and their cycles, several components
LENGTHS = st.sampled_from([0, 1, 2, 7, 2**40])


@given(
    weighted_rows(LENGTHS, max_rows=40),
    st.booleans(),
    st.integers(0, 10**6),
    st.sampled_from([-3, -1, 1, 2]),
)
def test_any_changed_distance_is_found(drawn, directed, place, difference):
    graph = build(*drawn, directed)
    labels = graph.labels()
    rows = foreign_rows(labels.outward)
    assume(rows.size)

    def change(lists):
        lists.distances[rows[place % rows.size]] += difference

    assert not certify(graph, changed(labels, change)).valid


@given(weighted_rows(LENGTHS, max_rows=40), st.booleans(), st.integers(0, 10**6))
def test_any_removed_row_is_found(drawn, directed, place):
    graph = build(*drawn, directed)
    labels = graph.labels()
    rows = foreign_rows(labels.outward)
    assume(rows.size)  # labels are the smallest ones, so that each row is needed
    broken = changed(labels, lambda lists: without_row(lists, rows[place % rows.size]))
    assert not certify(graph, broken).valid


@given(weighted_rows(LENGTHS, max_rows=40), st.booleans(), st.integers(0, 10**6), st.integers(0, 3))
def test_any_added_row_that_is_wrong_is_found(drawn, directed, place, distance):
    graph = build(*drawn, directed)
    labels = graph.labels()
    n = graph.n_vertices
    rank = place % n
    own = labels.outward.hubs[slice(*labels.outward.offsets[rank : rank + 2])]
    others = np.setdiff1d(np.arange(rank), own)  # hubs that it lacks, those of other parts included
    assume(others.size)
    hub = int(others[place % others.size])
    ends = labels.order[[rank, hub]]
    assume(labels.between(ends[:1], ends[1:])[0] != distance)

    def change(lists):
        at = lists.offsets[rank] + np.searchsorted(own, hub)
        offsets = lists.offsets.copy()
        offsets[rank + 1 :] += 1
        distances = np.insert(lists.distances, at, distance)
        return LabelLists(offsets, np.insert(lists.hubs, at, hub).astype(np.int32), distances)

    assert not certify(graph, changed(labels, change)).valid


@pytest.mark.parametrize("directed", [True, False])
def test_labels_of_other_weights_are_found(directed):
    graph = build(GRID, weights_for(GRID, 2), directed)
    other = build(GRID, weights_for(GRID, 3), directed)
    assert "L" in "".join(certify(graph, other.labels()).failures)
    certificate = certify(graph, replace(graph.labels("hops"), metric="weights"))
    assert not certificate.valid
    # the hierarchy of the other weights beside them does not help
    mixed = replace(graph)
    mixed.derived.keep_hierarchy(other.hierarchy(), "weights")
    certificate = certify(mixed, other.labels())
    assert set(certificate.failures) <= {"L3", "L5"}
    assert not certificate.valid


def test_a_wrong_shortcut_is_found():
    graph = build(GRID, weights_for(GRID, 2), directed=False)
    hierarchy = graph.hierarchy()
    for difference, rule in ((-1, "L3"), (1, "L3")):
        weights = hierarchy.upward.weights.copy()
        at = np.flatnonzero(weights > 60)[0]  # a shortcut: edges of the graph weigh less than 50
        weights[at] += difference
        edges = hierarchy.upward._replace(weights=weights)
        broken = replace(hierarchy, upward=edges, downward=edges)
        copy = replace(graph)
        copy.derived.keep_hierarchy(broken, "weights")
        certificate = certify(copy, build_labels(broken, "weights"))
        assert rule in certificate.failures


def test_labels_of_another_number_of_vertices_and_cutoffs_are_refused():
    graph = build(GRID, weights_for(GRID, 2), directed=False)
    with pytest.raises(
        InputError, match="196 vertices and the graph 61: they are those of another"
    ):
        certify(build(ONE_WAY, weights_for(ONE_WAY, 1)), graph.labels())
    with pytest.raises(InputError, match="labels go everywhere"):
        certify(graph, graph.labels(), cutoff=5)
