"""How many hubs labels would have, from a sample of vertices, before any are built."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..cpu import threads
from ..cpu.compiled import njit
from ..errors import HierarchyError
from ..hierarchy.arrays import Edges, Hierarchy, concatenate_rows
from ..runtime.display import in_units
from ..runtime.memory import available_memory
from .build import build_labels

MAX_HUBS = 1000  # hubs per vertex; with more, labels take more memory than they save time
_SAMPLE = 256  # the largest number of vertices whose labels are built for an estimate
# A vertex is above another if edges of the hierarchy lead upward to it, over any number of others.
# Its hubs are among these: at least the first share of them, and typically the second, which is
# that of road networks.
_MIN_HUB_SHARE = 0.1
_TYPICAL_HUB_SHARE = 0.25
_COUNTED = 32  # of the sampled vertices, how many have their vertices above counted one by one
_WORK = 4e8  # the largest number of sums that an estimate computes, in less than a second
# Nanoseconds of one thread per row of a label: to find a candidate for a hub; and to test the
# candidate, per hub of the candidate's own label. Measured on road networks.
_PER_ROW = 60.0
_PER_TEST = 1.2
_PEAK = 2  # how many times the bytes of the labels building takes, as their arrays grow by copying


class LabelEstimate(NamedTuple):
    """How large the hub labels of a graph would be, and how long building the labels would take.

    Attributes
    ----------
    hubs : float
        Mean length of a label, of the sampled vertices. If ``sampled`` is 0 it is a guess.
    above : float
        Mean number of vertices above a sampled vertex.
    rows : int
        Pairs of vertex and hub, of all directions that are stored.
    nbytes : int
        Bytes of the labels.
    seconds : float
        Seconds to build them on the threads that the caller may use now.
    sampled : int
        Vertices whose labels were built, or searched for, to find ``hubs``.
    directions : int
        1 for an undirected graph, else 2.
    peak : int
        How many times ``nbytes`` building takes at its peak.
    """

    hubs: float
    above: float
    rows: int
    nbytes: int
    seconds: float
    sampled: int
    directions: int = 1
    peak: int = _PEAK

    @property
    def rows_per_direction(self) -> int:
        """Rows per direction, and a tenth more: memory to reserve, which is likely to suffice."""
        return int(1.1 * self.rows / self.directions)

    def __str__(self) -> str:
        return (
            f"about {self.hubs:,.0f} hubs per vertex, {self.rows:,} rows, "
            f"{in_units(self.nbytes)}, built in {self.seconds:.2g} s"
        )


def estimate_labels(hierarchy: Hierarchy) -> LabelEstimate:
    """Estimate the labels of a hierarchy in less than 2 s, by building those of some random
    vertices and of all vertices above them, which a label is made of.

    The result depends on the hierarchy and the number of threads alone. Two special cases: all is 0
    without vertices; and if even the shortest likely labels are too long, none are built, and
    ``hubs`` is a guess by the vertices above.
    """
    n = hierarchy.n_vertices
    if not n:
        return LabelEstimate(0.0, 0.0, 0, 0, 0.0, 0)

    # A first guess of ``hubs``, the mean length of a label: count the vertices above a few, of
    # which the usual share are hubs. ``sample`` has positions: places of vertices in the order of
    # the hierarchy, 0 at the top.
    numbers = np.random.default_rng(0).permutation(n)[:_SAMPLE]
    sample = np.sort(hierarchy.position[numbers].astype(np.int64))
    mean_above = _mean_above(hierarchy, sample[:: max(1, sample.size // _COUNTED)])
    hubs = _TYPICAL_HUB_SHARE * mean_above

    # Then build the labels of as many vertices as can be built in short time; of none if even the
    # smallest likely labels are too long to pay. Each position has ``hubs`` rows, and each row is
    # tested by as many sums.
    if _MIN_HUB_SHARE * mean_above > MAX_HUBS:
        sample = sample[:0]
    positions = _all_above(hierarchy, sample)
    while sample.size and positions.size * hubs * hubs > _WORK:
        sample = sample[::2][: sample.size // 2]  # every second one; a sample of 1 becomes empty
        positions = _all_above(hierarchy, sample)
    if sample.size:
        # The part has the vertex numbers 0, 1, ... in the order of ``positions``. What the weights
        # mean does not matter, as the rows are only counted. ``labels.directions`` has the label
        # lists of each stored direction: one of an undirected graph, else two.
        labels = build_labels(_part_above(hierarchy, positions), "weights")
        sample_ranks = labels.rank[np.searchsorted(positions, sample)]
        sizes = [np.diff(lists.offsets)[sample_ranks] for lists in labels.directions.values()]
        hubs = float(np.mean(sizes))

    ns_per_row = (_PER_ROW + _PER_TEST * hubs) / threads.count()
    directions = 1 if hierarchy.is_symmetric else 2
    return estimate_from_length(
        n, hubs, mean_above, directions, hierarchy.dtype, ns_per_row, int(sample.size)
    )


def estimate_from_length(
    n: int,
    hubs: float,
    above: float,
    directions: int,
    dtype: np.dtype,
    ns_per_row: float,
    sampled: int,
) -> LabelEstimate:
    """Return the estimate of the labels of ``n`` vertices, of a mean length of ``hubs`` rows.

    Building takes ``ns_per_row`` nanoseconds per row. ``dtype`` is that of the distances.
    ``above``, ``directions`` and ``sampled`` are fields of ``LabelEstimate``.
    """
    rows = round(hubs * n * directions)
    # Per row a hub of 4 bytes and a distance; per vertex its order and rank of 4 bytes each, and an
    # offset of 8 bytes in each direction.
    nbytes = rows * (4 + dtype.itemsize) + n * (8 + 8 * directions)
    return LabelEstimate(hubs, above, rows, nbytes, 1e-9 * rows * ns_per_row, sampled, directions)


def refuse_long_labels(estimate: LabelEstimate) -> None:
    """Raise HierarchyError if labels of this estimate would be too long to pay, or if building them
    needs more memory than is free.
    """
    if estimate.hubs > MAX_HUBS:
        raise HierarchyError(
            f"no labels: they would have {estimate}, and more than {MAX_HUBS:,} hubs per vertex do "
            "not pay; search for pairs without labels"
        )
    free_bytes = available_memory("cpu")
    if estimate.peak * estimate.nbytes > free_bytes:
        raise HierarchyError(
            f"no labels: they would have {estimate}, building takes {estimate.peak} times that memory, and "
            f"{in_units(free_bytes)} are free; search for pairs without labels, with less memory"
        )


def _mean_above(hierarchy: Hierarchy, positions: np.ndarray) -> float:
    """Return the mean number of positions above a position of ``positions``, which has one element
    or more; each counts itself.
    """
    sizes = [_all_above(hierarchy, positions[i : i + 1]).size for i in range(positions.size)]
    return float(np.mean(sizes))


def _all_above(hierarchy: Hierarchy, positions: np.ndarray) -> np.ndarray:
    """Return the positions above any of ``positions``, these included, by edges of either
    direction; int64, ascending.
    """
    return _positions_above(positions, hierarchy.upward, hierarchy.downward)


@njit(cache=True, nogil=True)
def _positions_above(targets, upward, downward):
    """Return the positions above any of ``targets``, these included, int64 in ascending order.

    ``targets`` are positions. ``upward`` and ``downward``, which are ``Edges``, lead from each
    position to those above it. Position 0 is the top, so a position above another has a smaller
    number.
    """
    n = upward.offsets.size - 1
    is_marked = np.zeros(n, np.uint8)  # 1 for a target, and for what is above one
    for target in targets:
        is_marked[target] = 1
    # From the bottom to the top, so that a position is marked before its own edges are followed.
    for p in range(n - 1, -1, -1):
        if is_marked[p]:
            for e in range(upward.offsets[p], upward.offsets[p + 1]):
                is_marked[upward.heads[e]] = 1
            for e in range(downward.offsets[p], downward.offsets[p + 1]):
                is_marked[downward.heads[e]] = 1
    return np.flatnonzero(is_marked)


def _part_above(hierarchy: Hierarchy, positions: np.ndarray) -> Hierarchy:
    """Return the hierarchy of ``positions`` alone, which ascend; all positions above them must be
    among them.

    They are numbered anew in their order. Each new position is its own vertex number, since the
    rows of the labels are only counted.
    """
    numbers = np.arange(positions.size, dtype=np.int32)
    upward = _edges_between(hierarchy.upward, positions)
    if hierarchy.is_symmetric:
        downward = upward
    else:
        downward = _edges_between(hierarchy.downward, positions)
    return replace(hierarchy, order=numbers, position=numbers, upward=upward, downward=downward)


def _edges_between(edges: Edges, positions: np.ndarray) -> Edges:
    """Return the edges that lead upward from ``positions``, which ascend, with their ends numbered
    anew: position ``positions[i]`` becomes i. All heads must be among ``positions``.
    """
    sizes = np.diff(edges.offsets)[positions]
    offsets, entries = concatenate_rows(edges.offsets[positions], sizes)
    heads = np.searchsorted(positions, edges.heads[entries]).astype(np.int32)
    return Edges(offsets, heads, edges.weights[entries])
