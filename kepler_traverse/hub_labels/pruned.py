"""Hub labels of networks with hubs of many edges, in which contraction would add ever more edges.

Akiba, Iwata, Yoshida 2013 (pruned landmark labeling). Vertices are searched from by falling degree.
A search ends where the labels so far answer no more than its distance, and adds a row to the label
of each other vertex that it settles. So labels are the smallest ones of their order, as those that
``build`` makes of a hierarchy: a hub of v is the highest vertex of all shortest paths between the
two.

The hierarchy of that order follows from them: a row is an edge unless two rows by way of a vertex
between them sum up to it. By it labels are proved, stored and used as all others.
"""

from __future__ import annotations

import heapq
import time
from typing import Any, NamedTuple

import numpy as np

from .._arrays import make_offsets
from ..cpu import threads
from ..cpu.atomics import atomic_add
from ..cpu.compiled import njit
from ..errors import HierarchyError
from ..hierarchy.arrays import MAX_SUM, Edges, Hierarchy, renumbered
from ..hierarchy.build import edges_in_units, unit_of_lengths
from ..hierarchy.sweep import UNREACHED, longest_upward
from .arrays import HubLabels, LabelLists
from .build import heights
from .estimate import LabelEstimate, estimate_from_length
from .queries import clear, lay_out

_BLOCK = 16  # rows of a label that are adjacent in memory while labels grow
_ROOTS = 1 << 12  # searches before space is checked and Python can be interrupted again
_CHUNK = 64  # vertices that a thread takes at a time
_SAMPLED_EDGES = 1e7  # edges that the searches of an estimate relax, which takes about a second
# The smallest and the largest number of searches of an estimate, also where other numbers would
# relax ``_SAMPLED_EDGES`` edges.
_MIN_SAMPLE = 4
_MAX_SAMPLE = 64
_PEAK = 7  # how many times the bytes of the labels building takes; measured on email-Enron
_NS_PER_ROW = 2000.0  # nanoseconds per row of a label to build them, on the one thread that does


class Growing(NamedTuple):
    """The labels of one direction while searches add rows.

    A label belongs to a rank, and a row is a hub, also a rank, and its distance. The rows of a
    label are in a chain of blocks of ``_BLOCK`` rows, of which all but the last are full.
    """

    hubs: np.ndarray  # int32 array of shape (n_blocks, _BLOCK): the hub of each row
    distances: np.ndarray  # int64 array of the shape of ``hubs``: the distance in units
    # int64 array of shape (n_blocks,): the number of the next block of the same label; -1 for the
    # last block of a label
    following: np.ndarray
    # first, last: int64 arrays of shape (n,): the first and the last block of each label; -1 while
    # the label has no row
    first: np.ndarray
    last: np.ndarray
    sizes: np.ndarray  # int64 array of shape (n,): the rows of each label
    used: np.ndarray  # int64 array of shape (1,): the blocks that labels have taken

    @classmethod
    def of(cls, n: int, n_blocks: int) -> Growing:
        """Return empty labels of ``n`` ranks, with space for ``n_blocks`` blocks of rows."""
        return cls(
            np.empty((n_blocks, _BLOCK), np.int32),
            np.empty((n_blocks, _BLOCK), np.int64),
            np.full(n_blocks, -1, np.int64),
            np.full(n, -1, np.int64),
            np.full(n, -1, np.int64),
            np.zeros(n, np.int64),
            np.zeros(1, np.int64),
        )

    def with_space(self, n_blocks: int) -> Growing:
        """Return labels with space for ``n_blocks`` free blocks behind the used ones. The arrays
        over blocks are copied; those over ranks are shared with this object.
        """
        new_blocks = Growing.of(0, n_blocks)
        used = self.used[0]
        return self._replace(
            hubs=np.concatenate([self.hubs[:used], new_blocks.hubs]),
            distances=np.concatenate([self.distances[:used], new_blocks.distances]),
            following=np.concatenate([self.following[:used], new_blocks.following]),
        )


class SearchScratch(NamedTuple):
    """Memory of a search from a rank, the root. Each array has shape (n,)."""

    # int64: the distance of each hub in the label of the root, at the place of the hub, and
    # unreached at all others. All unreached before and after a search
    dense: np.ndarray
    # int64: the smallest distance of each rank from the root so far. All unreached before and after
    tentative: np.ndarray
    # int32: the ranks that have a tentative distance, which is reset at the end. A search knows how
    # many of these it has written
    touched: np.ndarray


class Ranks(NamedTuple):
    """A graph whose vertices are numbered by rank, their place in an order; rank 0 is the top."""

    order: np.ndarray  # int32 array of shape (n,): the vertex of each rank
    rank: np.ndarray  # int32 array of shape (n,): the rank of each vertex; 0 is the top
    # the edges from each rank: ``heads`` are ranks, higher and lower ones, and ``weights`` are
    # lengths in units
    ahead: Edges
    # the edges to each rank, whose tails are ``heads``; the same object for an undirected graph
    back: Edges
    unit: float  # the power of two that lengths are multiples of; 1 for integers

    @property
    def sides(self) -> list[Edges]:
        """The edges of each direction: one of an undirected graph, else ``ahead`` and ``back``."""
        if self.back is self.ahead:
            return [self.ahead]
        return [self.ahead, self.back]


def ranks_by_degree(graph: Any, metric: str) -> Ranks:
    """Return a graph with its vertices ranked by falling degree, vertices of equal degree by their
    numbers. In a directed graph the degree counts edges of both directions.

    ``metric`` is "weights" or "hops", which says what the lengths of the edges are.
    """
    # all lengths are multiples of ``unit``, and are integers once they are divided by it
    unit = unit_of_lengths(graph, metric)
    graphs = [graph, graph.reverse] if graph.directed else [graph]  # one per direction
    degree = np.zeros(graph.n_vertices, np.int64)
    for direction in graphs:
        degree += np.diff(direction.offsets)
    order = np.argsort(-degree, kind="stable").astype(np.int32)
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size, dtype=np.int32)
    sides = []
    for direction in graphs:
        lengths = edges_in_units(direction, metric, unit)
        edges = Edges(direction.offsets, direction.targets, lengths)
        sides.append(renumbered(edges, order, rank))
    return Ranks(order, rank, sides[0], sides[-1], unit)


def has_positive_lengths(graph: Any, metric: str) -> bool:
    """Return whether no edge of a graph has length zero, by a metric, "weights" or "hops".

    With an edge of length zero, a way through a higher vertex can be as short as one of its parts.
    The edges that ``_find_edges`` takes from labels are then no shortcuts of a hierarchy.
    """
    return metric == "hops" or not graph.n_edges or bool(graph.weights.min() > 0)


def estimate_pruned(graph: Any, metric: str) -> LabelEstimate:
    """Estimate the labels of a graph in about a second, by the lengths of the labels of some random
    vertices. A search from a vertex counts its hubs: a hub is a vertex that is the highest on all
    shortest paths to itself.

    ``metric`` is "weights" or "hops".
    """
    ranks = ranks_by_degree(graph, metric)
    n = graph.n_vertices
    n_affordable = int(_SAMPLED_EDGES / max(graph.n_edges, 1))
    # As many as are affordable, within the bounds of a sample, and at most one per vertex.
    n_searches = min(n, max(_MIN_SAMPLE, min(n_affordable, _MAX_SAMPLE)))

    # a fixed seed, so that a graph always has the same estimate
    numbers = np.random.default_rng(0).permutation(n)[:n_searches]
    # Sums of weights may fit into int32, too, but this is known only after building.
    dtype = np.dtype(np.int32 if metric == "hops" else np.int64)
    # pairs of the hubs of a rank and the ranks that it reaches, one per search
    counts = [count_hubs(int(rank), side) for side in ranks.sides for rank in ranks.rank[numbers]]
    hubs, reached = np.mean(counts, axis=0).tolist()
    # Rows, bytes and seconds follow from the mean length of a label, ``hubs``. ``peak`` is how many
    # times these bytes building takes; the default is that of labels of a contraction hierarchy.
    estimate = estimate_from_length(
        n, hubs, reached, len(ranks.sides), dtype, _NS_PER_ROW, n_searches
    )
    return estimate._replace(peak=_PEAK)


def build_pruned(graph: Any, metric: str) -> tuple[Hierarchy, HubLabels]:
    """Return the hierarchy of a graph with its vertices by falling degree, and the labels of that
    order. ``metric`` is "weights" or "hops".

    Raises HierarchyError: a sum of weights may reach 2^61.
    """
    start_time = time.perf_counter()
    ranks = ranks_by_degree(graph, metric)
    lists = _search_from_all(ranks)  # per direction: outward, and inward of a directed graph
    sides = [_find_edges(labels) for labels in lists]

    # Sums of 32 bits where these hold all. A shortest path leads upward and then downward, so it is
    # at most the sum of the longest path in each direction, each cut at ``MAX_SUM``.
    longest = sum(int(longest_upward(*edges, MAX_SUM)) for edges in (sides[0], sides[-1]))
    if longest >= MAX_SUM:
        raise HierarchyError("no labels: a sum of weights may reach 2^61; take smaller weights")
    if longest < UNREACHED[np.dtype(np.int32)]:
        lists = [labels._replace(distances=labels.distances.astype(np.int32)) for labels in lists]
        sides = [edges._replace(weights=edges.weights.astype(np.int32)) for edges in sides]

    # Below, index 0 is outward and index -1 inward; an undirected graph has one direction for both.
    # The height of a rank is 0 without an edge from below, else 1 more than the largest height of
    # the ranks below.
    height = heights(sides[0].offsets, sides[0].heads, sides[-1].offsets, sides[-1].heads)
    n_shortcuts = sum(map(_count_shortcuts, sides, ranks.sides))

    hierarchy = Hierarchy(
        order=ranks.order,
        position=ranks.rank,
        upward=sides[0],
        downward=sides[-1],
        unit=ranks.unit,
        longest=longest,
        levels=int(height.max(initial=-1)) + 1,
        shortcuts=n_shortcuts,
    )
    labels = HubLabels(
        order=ranks.order,
        rank=ranks.rank,
        outward=lists[0],
        inward=lists[-1],
        unit=ranks.unit,
        metric=metric,
        seconds=time.perf_counter() - start_time,
    )
    return hierarchy, labels


def _search_from_all(ranks: Ranks) -> list[LabelLists]:
    """Return the labels of each direction that is stored, outward and then inward, with distances
    of 64 bits. An undirected graph has one direction.
    """
    n = ranks.order.size
    growing = [Growing.of(n, 2 * n) for _ in ranks.sides]
    unreached = UNREACHED[np.dtype(np.int64)]
    scratch = SearchScratch(np.full(n, unreached), np.full(n, unreached), np.empty(n, np.int32))
    next_rank = 0
    while next_rank < n:
        # A search adds at most one block to each label, so n free blocks suffice for one search.
        # Space grows by n blocks and half of the used ones, so that it is copied seldom.
        for i, labels in enumerate(growing):
            if labels.used[0] + n > labels.following.size:
                growing[i] = labels.with_space(n + int(labels.used[0]) // 2)
        outward = growing[0]
        inward = growing[-1]
        end = min(n, next_rank + _ROOTS)
        sides = ranks.ahead, ranks.back, ranks.back is not ranks.ahead
        next_rank = search_from_some(next_rank, end, sides, outward, inward, scratch)
    return [_flatten(labels) for labels in growing]


def _flatten(lists: Growing) -> LabelLists:
    """Return growing labels, ``lists``, as compressed sparse rows. Hubs ascend within a label,
    since searches begin at ranks in ascending order.
    """
    offsets = make_offsets(lists.sizes)
    hubs = np.empty(offsets[-1], np.int32)
    distances = np.empty(offsets[-1], np.int64)
    copy_blocks(lists, offsets, hubs, distances)
    return LabelLists(offsets, hubs, distances)


def _find_edges(lists: LabelLists) -> Edges:
    """Return the edges of the hierarchy of the labels' order, in one direction, by rank.

    They are the rows of labels that are not the sum of two rows by way of a vertex between their
    two ends. The last row of each label, the rank itself, is no edge.
    """
    offsets, hubs, distances = lists
    n = offsets.size - 1
    is_edge = np.zeros(hubs.size, np.uint8)
    unreached = UNREACHED[np.dtype(np.int64)]
    # ``dense`` and ``between`` of ``mark_edges``, one of each per thread
    scratch = [
        [np.full(n, unreached) for _ in range(threads.count())],
        [np.full(n, -1, np.int32) for _ in range(threads.count())],
    ]
    threads.run(mark_edges, -(-n // _CHUNK), lists, unreached, is_edge, own=scratch)

    # Rows keep their order, so that those of a rank follow each other.
    edge_rows = np.flatnonzero(is_edge)
    edges_before = np.concatenate([[0], np.cumsum(is_edge, dtype=np.int64)])
    return Edges(edges_before[offsets], hubs[edge_rows], distances[edge_rows])


def _count_shortcuts(edges: Edges, graph_edges: Edges) -> int:
    """Return how many ``edges`` of a hierarchy are not among ``graph_edges``, the edges of the
    graph, with the same weight. Both are by rank.
    """
    n = edges.offsets.size - 1
    if not graph_edges.heads.size:
        return int(edges.heads.size)

    def number_pairs(edges: Edges) -> np.ndarray:
        """Return one number per edge, the same for edges with the same two ends: tail * n +
        head.
        """
        return np.repeat(np.arange(n), np.diff(edges.offsets)) * n + edges.heads

    graph_pairs = number_pairs(graph_edges)
    pairs = number_pairs(edges)
    order = np.argsort(graph_pairs)
    # The place of each edge among those of the graph, if it is one of them; else any place, which
    # the comparison below shows.
    places = order[
        np.minimum(np.searchsorted(graph_pairs, pairs, sorter=order), graph_pairs.size - 1)
    ]
    is_in_graph = (graph_pairs[places] == pairs) & (graph_edges.weights[places] == edges.weights)
    return int(pairs.size - is_in_graph.sum())


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _write_dense(rank, lists, dense, unreached=None):
    """Write the distances of the growing label of ``rank`` to the places of its hubs in ``dense``,
    of shape (n,); or ``unreached`` in place of each distance, to clear them.
    """
    block = lists.first[rank]
    n_left = lists.sizes[rank]
    while n_left > 0:
        for i in range(min(n_left, _BLOCK)):
            hub = lists.hubs[block, i]
            if unreached is None:
                dense[hub] = lists.distances[block, i]
            else:
                dense[hub] = unreached
        n_left -= _BLOCK
        block = lists.following[block]


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _is_covered(rank, distance, lists, dense):
    """Return whether a common hub of a rank and the root of a search answers the pair by
    ``distance`` or less.

    ``lists`` are the growing labels, of which that of ``rank`` is read. ``dense`` has the distances
    of the label of the root at the places of its hubs, and unreached elsewhere.
    """
    block = lists.first[rank]
    n_left = lists.sizes[rank]
    while n_left > 0:
        for i in range(min(n_left, _BLOCK)):
            if dense[lists.hubs[block, i]] + lists.distances[block, i] <= distance:
                return True
        n_left -= _BLOCK
        block = lists.following[block]
    return False


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _add_row(rank, hub, distance, lists):
    """Add a row of ``hub`` and ``distance`` to the growing label of ``rank``, in a new block if its
    last block is full. ``lists`` are ``Growing`` with a free block.
    """
    place = lists.sizes[rank] % _BLOCK
    # No block yet, or the last block is full: take a free block, and chain it to the last block.
    if place == 0:
        block = lists.used[0]
        lists.used[0] += 1
        if lists.sizes[rank] == 0:
            lists.first[rank] = block
        else:
            lists.following[lists.last[rank]] = block
        lists.last[rank] = block
    block = lists.last[rank]
    lists.hubs[block, place] = hub
    lists.distances[block, place] = distance
    lists.sizes[rank] += 1


@njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
def _search(root, edges, root_labels, grown_labels, scratch):
    """Search from the rank ``root`` along ``edges`` by Dijkstra's algorithm, and add it as a hub to
    the labels of the ranks that it settles: itself and lower ones, which have larger numbers.

    ``root_labels`` are the labels in the direction of the edges, of which that of the root is read.
    ``grown_labels`` are those to which rows are added: of the other direction. ``scratch`` is
    ``SearchScratch``.
    """
    dense = scratch.dense
    tentative = scratch.tentative
    touched = scratch.touched
    unreached = tentative[root]
    _write_dense(root, root_labels, dense)
    heap = [(np.int64(0), np.int64(root))]  # distances and ranks
    tentative[root] = 0
    touched[0] = root
    n_touched = 1

    while heap:
        distance, rank = heapq.heappop(heap)
        if distance > tentative[rank]:  # an entry that a shorter path has replaced
            continue
        # Labels so far answer the pair by ``distance`` or less: the search goes no further here.
        if rank != root and _is_covered(rank, distance, grown_labels, dense):
            continue
        _add_row(rank, root, distance, grown_labels)
        for e in range(edges.offsets[rank], edges.offsets[rank + 1]):
            head = np.int64(edges.heads[e])
            candidate = distance + edges.weights[e]
            # A higher rank, which has a smaller number, has searched before, and labels answer its
            # distance from the root.
            if head > root and candidate < tentative[head]:
                if tentative[head] == unreached:
                    touched[n_touched] = head
                    n_touched += 1
                tentative[head] = candidate
                heapq.heappush(heap, (candidate, head))

    for i in range(n_touched):
        tentative[touched[i]] = unreached
    _write_dense(root, root_labels, dense, unreached)  # also where rows were added since


@njit(cache=True, nogil=True)
def search_from_some(first, end, sides, outward, inward, scratch):
    """Search from the ranks ``first`` to ``end - 1``, and add rows to their labels, as long as
    there are free blocks. Return the next rank to search from.

    ``sides`` are three values: the edges from each rank, those to each rank, and whether the graph
    is directed, so that it is searched in both directions. ``outward`` and ``inward`` are
    ``Growing``, one object of an undirected graph. ``scratch`` is ``SearchScratch``.
    """
    ahead, back, is_directed = sides
    n = scratch.tentative.size
    for root in range(first, end):
        # A search may need a block per rank.
        n_free = min(
            outward.following.size - outward.used[0], inward.following.size - inward.used[0]
        )
        if n_free < n:
            return root
        _search(root, ahead, outward, inward, scratch)
        if is_directed:
            _search(root, back, inward, outward, scratch)
    return end


@njit(cache=True, nogil=True)
def copy_blocks(lists, offsets, hubs, distances):
    """Copy growing labels, ``lists``, to the arrays ``hubs`` and ``distances``, in which the label
    of each rank begins at ``offsets[rank]``.
    """
    for rank in range(lists.sizes.size):
        block = lists.first[rank]
        for row in range(offsets[rank], offsets[rank + 1]):
            place = (row - offsets[rank]) % _BLOCK
            if place == 0 and row > offsets[rank]:
                block = lists.following[block]
            hubs[row] = lists.hubs[block, place]
            distances[row] = lists.distances[block, place]


@njit(cache=True, nogil=True)
def mark_edges(next_item, n_items, lists, unreached, is_edge, dense, between):
    """Set ``is_edge``, uint8 with one value per row, to 1 for the rows that are edges of the
    hierarchy: not the sum of two rows by way of a rank between.

    ``lists`` are ``LabelLists``. An item is a chunk of ``_CHUNK`` ranks. Threads take items from
    the counter ``next_item``, until it is ``n_items``. ``dense`` and ``between`` are the thread's
    own. ``dense``, of shape (n,), is all unreached before and after. ``between``, int32 of shape
    (n,), is -1 before the first call. In it a hub has the number of the last rank whose row for
    this hub is the sum of two rows by way of a rank between. So it need not be cleared from rank to
    rank.
    """
    offsets = lists.offsets
    hubs = lists.hubs
    distances = lists.distances
    n = offsets.size - 1
    while True:
        item = atomic_add(next_item, 0, 1)
        if item >= n_items:
            return
        for v in range(item * _CHUNK, min((item + 1) * _CHUNK, n)):
            lay_out(v, lists, dense)  # the distances of the label of v, at the places of its hubs
            # Each two rows: of v for the hub ``middle``, and of ``middle`` for a hub above
            # ``middle``. The last row of a label, its own rank, is left out.
            for i in range(offsets[v], offsets[v + 1] - 1):
                middle = hubs[i]
                for j in range(offsets[middle], offsets[middle + 1] - 1):
                    if dense[hubs[j]] == distances[i] + distances[j]:
                        between[hubs[j]] = v
            for i in range(offsets[v], offsets[v + 1] - 1):
                is_edge[i] = between[hubs[i]] != v
            clear(v, lists, dense, unreached)


@njit(cache=True, nogil=True)
def count_hubs(source, edges):
    """Return the number of hubs of the rank ``source`` along ``edges``, and how many ranks it
    reaches, itself included.

    A rank is a hub if it is the highest, so the smallest number, on all shortest paths to it.
    """
    n = edges.offsets.size - 1
    tentative = np.full(n, np.iinfo(np.int64).max, np.int64)
    # the highest rank on all shortest paths to each rank so far, itself included; -1 once settled
    highest = np.empty(n, np.int64)
    heap = [(np.int64(0), np.int64(source))]
    tentative[source] = 0
    highest[source] = source
    n_hubs = 0
    n_reached = 0

    while heap:
        distance, rank = heapq.heappop(heap)
        if distance > tentative[rank] or highest[rank] < 0:  # replaced, or settled before
            continue
        highest_on_path = highest[rank]
        highest[rank] = -1  # settled
        n_reached += 1
        n_hubs += highest_on_path == rank
        for e in range(edges.offsets[rank], edges.offsets[rank + 1]):
            head = np.int64(edges.heads[e])
            candidate = distance + edges.weights[e]
            if candidate < tentative[head]:
                tentative[head] = candidate
                highest[head] = min(highest_on_path, head)
                heapq.heappush(heap, (candidate, head))
            elif candidate == tentative[head]:  # another shortest path; -1 of a settled rank stays
                highest[head] = min(highest_on_path, highest[head])
    return n_hubs, n_reached
