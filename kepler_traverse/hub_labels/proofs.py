"""Prove hub labels right against a graph and its hierarchy, without a search and without a sample.

- L1: hubs ascend within a label, its own is the last, and edges of the hierarchy lead to hubs of
  smaller rank. So every step below ends.
- L2: each distance is the smallest sum over an edge to a vertex above and the row of that vertex.
- L3: each edge of the hierarchy is one of the graph, or the sum of two over a vertex below it.
- L4: no two rows with a common hub answer less than a row does, and what an edge and the row of the
  vertex above it sum up to is answered by at most that.
- L5: each edge of the graph, and each two edges of the hierarchy that meet below, are answered by
  at most their sum, or are an edge of the hierarchy of at most that weight.

By L2 and L3 every row is the length of a path, so that no answer is too small. By L5, and since
rows are paths upward, a path that dips below a vertex can be exchanged for one that does not, and
is not longer: from any vertex to any other, a shortest path leads upward first and then downward.
By L4 the first vertex of a path upward has a row to a hub from which the rest is as short; applied
in turn at both ends, which only moves the hub up, it ends at a common hub. So no answer is too
large either, and by L4 each row is a distance, since it is what its pair is answered.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..cpu import threads
from ..cpu.atomics import atomic_add, atomic_min
from ..cpu.compiled import njit
from ..hierarchy.arrays import Edges, Hierarchy, renumbered
from ..hierarchy.build import edges_in_units
from .arrays import HubLabels, LabelLists
from .queries import clear, lay_out, merge, smallest_sum
from .stored import are_no_labels

_CHUNK = 64  # vertices that a thread takes at a time
# Faults of rows, as indices of ``faults``: a row is not a smallest sum (L2), a row is larger than
# the answer for its pair (L4), or a row that is needed is missing (L4).
_PATH, _LARGE, _UNCOVERED = range(3)
# Faults of edges, as indices of ``faults``: of two edges of the hierarchy that meet below their
# ends, or of an edge of the graph (both L5).
_VALLEY, _EDGE = range(2)
_NONE = -1  # in place of a vertex, where no single vertex is at fault


class Rows(NamedTuple):
    """The rows of one direction, which are checked, and what they are compared with.

    A row is a hub of a label with its distance. A rank is a place in the order of the hierarchy, 0
    at the top.
    """

    # of the hierarchy, from each rank to smaller ranks, in the direction of the rows: upward for
    # the distances from vertices to hubs, downward for those from hubs to vertices
    edges: Edges
    labels_ahead: LabelLists  # the labels whose rows are checked
    labels_back: LabelLists  # those of the other direction: a pair needs a label of each
    unreached: np.integer  # the sum that stands for no path; all sums of distances are smaller


class Sides(NamedTuple):
    """The edges of a hierarchy by rank, and which of them are explained so far (rule L3)."""

    # upward, downward: from each rank to smaller ranks, and to each rank from smaller ranks. Both
    # are stored by the larger rank, so that ``heads`` are the smaller ones. One object if
    # undirected
    upward: Edges
    downward: Edges
    # explained, explained_down: output, uint8 arrays with one value per edge of ``upward`` and of
    # ``downward``: 1 if an edge of the graph between the same ends, or the sum of two edges by way
    # of a lower vertex, has its weight. One array if both sides are the same
    explained: np.ndarray
    explained_down: np.ndarray


class Fault(NamedTuple):
    """A rule that labels break, and where."""

    rule: str  # {"L1", ..., "L5"}
    vertex: int  # the number of the vertex at fault with the smallest rank; -1 if of no one vertex
    reason: str  # what is wrong, as a clause for an error


def find_fault(graph: Any, hierarchy: Hierarchy, labels: HubLabels) -> Fault | None:
    """Return the first rule that labels break, or None if each of their answers is right.

    ``graph`` is on the CPU. ``hierarchy`` is its hierarchy for the metric of the labels.
    """
    # The form comes first: the other checks use ranks as indices without looking at them.
    fault = _find_fault_of_form(hierarchy, labels)
    if fault:
        return fault
    upward, downward = _edges_by_rank(hierarchy, labels)
    directions = [(upward, labels.outward, labels.inward)]
    if not labels.is_symmetric:
        directions.append((downward, labels.inward, labels.outward))
    for edges, labels_ahead, labels_back in directions:
        fault = _find_fault_of_rows(labels, edges, labels_ahead, labels_back)
        if fault:
            return fault
    return _find_fault_of_edges(graph, labels, upward, downward)


def _find_fault_of_form(hierarchy: Hierarchy, labels: HubLabels) -> Fault | None:
    """Check L1: the arrays form labels that fit the hierarchy, so that the other rules can be
    checked. Return the first fault, or None.
    """
    n = hierarchy.n_vertices
    order = labels.order
    is_order = order.shape == (n,) and np.array_equal(np.sort(order), np.arange(n))
    if not is_order or not np.array_equal(labels.rank[order], np.arange(n)):
        return Fault("L1", _NONE, "the order does not have each vertex once")

    if labels.unit != hierarchy.unit:
        return Fault("L1", _NONE, "the unit is not that of the hierarchy")
    if any(are_no_labels(lists, n) for lists in labels.directions.values()):
        return Fault("L1", _NONE, "a label is not sorted, or does not end with its own vertex")
    # An answer is the sum of a distance of each direction, and must be below ``unreached``.
    lists = (labels.outward, labels.inward)
    if sum(int(label_lists.distances.max(initial=0)) for label_lists in lists) >= labels.unreached:
        return Fault("L1", _NONE, "a distance is too large")
    if labels.dtype != hierarchy.dtype or labels.inward.distances.dtype != hierarchy.dtype:
        return Fault("L1", _NONE, "distances do not have the type of the hierarchy")
    if labels.is_symmetric != hierarchy.is_symmetric:
        return Fault("L1", _NONE, "labels and hierarchy do not have the same directions")
    upward, downward = _edges_by_rank(hierarchy, labels)
    for edges in [upward] if downward is upward else [upward, downward]:
        # the rank from which each edge leads upward, so that its head must be smaller
        tails = np.repeat(np.arange(n), np.diff(edges.offsets))
        if bool((edges.heads >= tails).any()):
            return Fault("L1", _NONE, "an edge of the hierarchy leads to a hub of larger rank")
    return None


def _edges_by_rank(hierarchy: Hierarchy, labels: HubLabels) -> tuple[Edges, Edges]:
    """Return the edges of a hierarchy upward and downward, by the ranks of the labels.

    The hierarchy has them by position. Both number the vertices from the top, but in orders that
    may differ, since ranks go by level.
    """
    positions = hierarchy.position[labels.order]
    ranks = labels.rank[hierarchy.order]
    upward = renumbered(hierarchy.upward, positions, ranks)
    if hierarchy.is_symmetric:
        return upward, upward
    return upward, renumbered(hierarchy.downward, positions, ranks)


def _find_fault_of_rows(
    labels: HubLabels, edges: Edges, labels_ahead: LabelLists, labels_back: LabelLists
) -> Fault | None:
    """Check L2 and L4 for the rows of one direction; return the first fault, or None.

    ``edges``, ``labels_ahead`` and ``labels_back`` are the fields of ``Rows``.
    """
    n = labels.n_vertices
    faults = np.full(3, n, np.int64)  # by kind of fault, the smallest rank that has it; n for none
    # ``sums`` and ``label`` of ``_check_rows``, one of each per thread.
    scratch = [
        [np.full(n, labels.unreached, labels.dtype) for _ in range(threads.count())]
        for _ in range(2)
    ]
    rows = Rows(edges, labels_ahead, labels_back, labels.unreached)
    threads.run(_check_rows, -(-n // _CHUNK), rows, faults, own=scratch)
    reasons = (
        ("L2", "a row is not the smallest sum over an edge to a vertex above and a row of it"),
        ("L4", "two rows with a common hub answer less than a row does"),
        ("L4", "a hub is missing: an edge and a row of the vertex above it sum up to less"),
    )
    for (rule, reason), rank in zip(reasons, faults.tolist(), strict=True):
        if rank < n:
            return Fault(rule, int(labels.order[rank]), reason)
    return None


def _find_fault_of_edges(
    graph: Any, labels: HubLabels, upward: Edges, downward: Edges
) -> Fault | None:
    """Check L3 and L5 for the edges of the hierarchy, ``upward`` and ``downward`` by rank, and for
    those of the graph; return the first fault, or None.
    """
    n = labels.n_vertices
    faults = np.full(2, n, np.int64)  # by kind of fault, the smallest rank that has it; n for none
    explained = [np.zeros(edges.heads.size, np.uint8) for edges in (upward, downward)]
    if labels.is_symmetric:
        explained[1] = explained[0]
    sides = Sides(upward, downward, *explained)

    # Both kernels mark the edges of the hierarchy that they explain.
    answers = labels.answers  # the labels of both directions, as compiled code takes them
    n_items = -(-n // _CHUNK)
    threads.run(_check_valleys, n_items, sides, labels.is_symmetric, answers, faults)
    # the lengths of the edges of the graph in the unit of the labels, as integers
    lengths = edges_in_units(graph, labels.metric, labels.unit)
    graph_edges = Edges(graph.offsets, graph.targets, lengths)
    threads.run(_check_edges, n_items, graph_edges, labels.rank, sides, answers, faults)

    # L3: each edge of the hierarchy must have been marked. ``argmin`` is the first edge that was
    # not. It belongs to the last rank whose edges begin at this edge or before.
    for edges, are_explained in zip((upward, downward), explained, strict=True):
        if not are_explained.all():
            rank_at_fault = (
                int(np.searchsorted(edges.offsets, are_explained.argmin(), side="right")) - 1
            )
            reason = "an edge of the hierarchy is none of the graph, and no sum of two below it"
            return Fault("L3", int(labels.order[rank_at_fault]), reason)
    reasons = (
        "two edges of the hierarchy that meet there sum up to less than their ends are answered",
        "an edge of the graph is lighter than the answer for its ends",
    )
    for reason, rank in zip(reasons, faults.tolist(), strict=True):
        if rank < n:
            return Fault("L5", int(labels.order[rank]), reason)
    return None


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _sum_up(v, edges, labels_ahead, sums):
    """Write to ``sums``, at each hub of a neighbor above rank ``v``, the smallest sum of an edge
    from ``v`` and the row of its neighbor.

    ``edges`` and ``labels_ahead`` are those of ``Rows``. ``sums``, of shape (n,), is all unreached
    before.
    """
    for e in range(edges.offsets[v], edges.offsets[v + 1]):
        above = edges.heads[e]
        for i in range(labels_ahead.offsets[above], labels_ahead.offsets[above + 1]):
            hub = labels_ahead.hubs[i]
            sums[hub] = min(sums[hub], labels_ahead.distances[i] + edges.weights[e])


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _has_other_sums(v, labels_ahead, sums):
    """Return whether a row of rank ``v``, other than that of ``v`` itself, differs from the sum
    that ``_sum_up`` has written at its hub in ``sums``.
    """
    has_other = False
    # The last row of a label is its own rank.
    for i in range(labels_ahead.offsets[v], labels_ahead.offsets[v + 1] - 1):
        has_other |= labels_ahead.distances[i] != sums[labels_ahead.hubs[i]]
    return has_other


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _check_answers(v, rows, faults, sums, label):
    """Check L4 at rank ``v``: compare what labels answer for ``v`` and each hub that has a sum with
    that sum, and with the row of ``v`` for this hub if there is one.

    ``sums`` and ``label``, both of shape (n,), have the sums of ``_sum_up`` and the distances of
    the label of ``v`` at the places of hubs, and unreached elsewhere. The sums become unreached
    again. ``faults`` receives ``v`` where it is the smallest rank at fault.
    """
    edges = rows.edges
    labels_ahead = rows.labels_ahead
    labels_back = rows.labels_back
    unreached = rows.unreached
    for e in range(edges.offsets[v], edges.offsets[v + 1]):
        above = edges.heads[e]
        for i in range(labels_ahead.offsets[above], labels_ahead.offsets[above + 1]):
            hub = labels_ahead.hubs[i]
            if sums[hub] == unreached:
                continue  # this hub was compared by way of another edge, and its sum cleared
            # The answer for v and the hub, by the label of v and that of the hub.
            begin = labels_back.offsets[hub]
            answer = smallest_sum(
                begin, labels_back.offsets[hub + 1], labels_back, label, unreached
            )
            if answer > sums[hub]:
                atomic_min(faults, _UNCOVERED, v)
            # The label of the hub has itself at distance 0, so that the answer is at most the row
            # of v. If it is less, the row is too large.
            if label[hub] != unreached and answer != label[hub]:
                atomic_min(faults, _LARGE, v)
            sums[hub] = unreached


@njit(cache=True, nogil=True)
def _check_rows(next_item, n_items, rows, faults, sums, label):
    """Check L2 and L4 at each rank, and write to ``faults`` the smallest rank per kind of fault.

    ``rows`` are ``Rows``. An item is a chunk of ``_CHUNK`` ranks. Threads take items from the
    counter ``next_item``, until it is ``n_items``. ``sums`` and ``label``, of shape (n,), are the
    thread's own, and all unreached before and after.
    """
    labels_ahead = rows.labels_ahead
    n = labels_ahead.offsets.size - 1
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for v in range(item * _CHUNK, min((item + 1) * _CHUNK, n)):
            _sum_up(v, rows.edges, labels_ahead, sums)
            if _has_other_sums(v, labels_ahead, sums):
                atomic_min(faults, _PATH, v)
            # The sums of L2 are also what L4 compares answers with. ``lay_out`` writes the label of
            # v to ``label``, by hub; ``clear`` makes these places unreached again.
            lay_out(v, labels_ahead, label)
            _check_answers(v, rows, faults, sums, label)
            clear(v, labels_ahead, label, rows.unreached)


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _is_covered(tail, head, weight, sides, answers):
    """Return whether the hierarchy has an edge from rank ``tail`` to rank ``head`` of at most
    ``weight``, or labels answer the pair by at most ``weight``.

    ``sides`` are ``Sides``, and ``answers`` are ``BothLabels``. An edge of the hierarchy that has
    exactly this weight is marked as explained.
    """
    # Edges are stored at their larger rank, the lower end.
    if head < tail:
        edges = sides.upward
        explained = sides.explained
        low = tail
        high = head
    else:
        edges = sides.downward
        explained = sides.explained_down
        low = head
        high = tail
    for e in range(edges.offsets[low], edges.offsets[low + 1]):
        if edges.heads[e] == high:
            if edges.weights[e] == weight:
                explained[e] = 1
            if edges.weights[e] <= weight:
                return True
    return merge(tail, head, answers) <= weight


@njit(cache=True, nogil=True)
def _check_valleys(next_item, n_items, sides, is_symmetric, answers, faults):
    """Check L5 for each two edges of the hierarchy that meet at a vertex below both of their ends,
    and mark the edges that such a pair explains.

    ``sides`` are ``Sides``, and ``answers`` are ``BothLabels``. ``is_symmetric`` says that both
    directions are the same. A fault writes the rank of the vertex below to ``faults``. An item is a
    chunk of ``_CHUNK`` ranks. Threads take items from the counter ``next_item``, until it is
    ``n_items``.
    """
    upward = sides.upward
    downward = sides.downward
    n = upward.offsets.size - 1
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for v in range(item * _CHUNK, min((item + 1) * _CHUNK, n)):
            for i in range(downward.offsets[v], downward.offsets[v + 1]):
                # The path leads down edge i to v, and up edge j. If both directions are the same,
                # each two edges are taken once.
                first = upward.offsets[v]
                if is_symmetric:
                    first = i + 1
                for j in range(first, upward.offsets[v + 1]):
                    tail = downward.heads[i]
                    head = upward.heads[j]
                    through = np.int64(downward.weights[i]) + np.int64(upward.weights[j])
                    # This also marks the edge between both ends that has this sum as its weight.
                    if tail != head and not _is_covered(tail, head, through, sides, answers):
                        atomic_min(faults, _VALLEY, v)


@njit(cache=True, nogil=True)
def _check_edges(next_item, n_items, graph_edges, rank, sides, answers, faults):
    """Check L5 for the edges of the graph: the hierarchy or the labels have a way as short as each.
    Mark the edges of the hierarchy that an edge of the graph explains.

    ``graph_edges`` are between vertex numbers, with lengths in units, and ``rank`` has the rank of
    each vertex. ``sides`` are ``Sides``, and ``answers`` are ``BothLabels``. A fault writes the
    rank of the tail to ``faults``. An item is a chunk of ``_CHUNK`` vertices. Threads take items
    from the counter ``next_item``, until it is ``n_items``.
    """
    offsets = graph_edges.offsets
    heads = graph_edges.heads
    n = offsets.size - 1
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for v in range(item * _CHUNK, min((item + 1) * _CHUNK, n)):
            for e in range(offsets[v], offsets[v + 1]):
                # This also marks the edge of the hierarchy with the same ends and weight.
                if not _is_covered(rank[v], rank[heads[e]], graph_edges.weights[e], sides, answers):
                    atomic_min(faults, _EDGE, rank[v])
