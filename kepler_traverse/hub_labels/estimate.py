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

MAX_HUBS = 1000  # per vertex; beyond, labels take more memory than they save time
_SAMPLE = 256  # vertices whose labels are built
# Share of the vertices above one that are its hubs, at least: a quarter in road networks, less in
# lattices.
_MIN_HUB_SHARE = 0.1
_TYPICAL_HUB_SHARE = 0.25
_COUNTED = 32  # of these, vertices whose vertices above are counted one by one
_WORK = 4e8  # sums of the estimate, which takes less than a second
# Nanoseconds of one thread per row: to find a candidate, and per hub to test it; from road networks
_PER_ROW = 60.0
_PER_TEST = 1.2
_PEAK = 2  # times the bytes of the labels that building takes, where their arrays grow


class LabelEstimate(NamedTuple):
    """What the labels of a hierarchy would be; see ``estimate_labels``.

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
        Seconds to build them on the threads of now.
    sampled : int
        Vertices whose labels were built.
    directions : int
        1 of an undirected graph, else 2.
    peak : int
        Times the bytes of the labels that building takes.
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
        """Rows that are likely to do for a direction, with some to spare."""
        return int(1.1 * self.rows / self.directions)

    def __str__(self) -> str:
        return (
            f"about {self.hubs:,.0f} hubs per vertex, {self.rows:,} rows, "
            f"{in_units(self.nbytes)}, built in {self.seconds:.2g} s"
        )


def estimate_labels(hierarchy: Hierarchy) -> LabelEstimate:
    """Estimate the labels of a hierarchy in less than 2 s, by building those of some vertices and of
    all vertices above them.
    """
    n = hierarchy.n_vertices
    if not n:
        return LabelEstimate(0.0, 0.0, 0, 0, 0.0, 0)

    # A first guess: count the vertices above a few, of which the usual share are hubs.
    numbers = np.random.default_rng(0).permutation(n)[:_SAMPLE]
    sample = np.sort(hierarchy.position[numbers].astype(np.int64))
    mean_above = _mean_above(hierarchy, sample[:: max(1, sample.size // _COUNTED)])
    hubs = _TYPICAL_HUB_SHARE * mean_above

    # Then the labels of as many vertices as can be built in short time; of none if even the
    # smallest likely labels are too long to pay.
    if _MIN_HUB_SHARE * mean_above > MAX_HUBS:
        sample = sample[:0]
    positions = _all_above(hierarchy, sample)
    while sample.size and positions.size * hubs * hubs > _WORK:
        sample = sample[::2][: sample.size // 2]  # half of them, and of one none
        positions = _all_above(hierarchy, sample)
    if sample.size:
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
    """Return the estimate of labels of a mean length ``hubs``, whose rows take ``ns_per_row``
    nanoseconds each.
    """
    rows = round(hubs * n * directions)
    nbytes = rows * (4 + dtype.itemsize) + n * (8 + 8 * directions)
    return LabelEstimate(hubs, above, rows, nbytes, 1e-9 * rows * ns_per_row, sampled, directions)


def refuse_long_labels(estimate: LabelEstimate) -> None:
    """Raise HierarchyError if labels would be too long to pay, or need more memory than is free."""
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
    """Return how many positions are above each of some, on average."""
    sizes = [_all_above(hierarchy, positions[i : i + 1]).size for i in range(positions.size)]
    return float(np.mean(sizes))


def _all_above(hierarchy: Hierarchy, positions: np.ndarray) -> np.ndarray:
    """Return the positions above some, these included, by edges of either direction; ascending."""
    return _positions_above(positions, hierarchy.upward, hierarchy.downward)


@njit(cache=True, nogil=True)
def _positions_above(targets, upward, downward):
    """Return the positions above some, these included, int64 in ascending order.

    ``targets`` are positions. ``upward`` and ``downward`` lead from each position to those above
    it. Position 0 is the top, so a position above another has a smaller number.
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
    """Return the hierarchy of some positions, which ascend; all that is above them must be among
    them.

    They are numbered anew in their order. Each new position is its own vertex number, since the
    labels are only counted.
    """
    numbers = np.arange(positions.size, dtype=np.int32)
    upward = _edges_between(hierarchy.upward, positions)
    if hierarchy.is_symmetric:
        downward = upward
    else:
        downward = _edges_between(hierarchy.downward, positions)
    return replace(hierarchy, order=numbers, position=numbers, upward=upward, downward=downward)


def _edges_between(edges: Edges, positions: np.ndarray) -> Edges:
    """Return the edges of some positions, which are numbered anew in their order."""
    sizes = np.diff(edges.offsets)[positions]
    offsets, entries = concatenate_rows(edges.offsets[positions], sizes)
    heads = np.searchsorted(positions, edges.heads[entries]).astype(np.int32)
    return Edges(offsets, heads, edges.weights[entries])
