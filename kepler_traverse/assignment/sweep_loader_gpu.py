"""All-or-nothing flows by sweeps over a hierarchy on a GPU, with the bits of the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..cuda import cp
from ..errors import CertificateError
from ..hierarchy.customizable import DOWN, UP
from ..hierarchy.customizable_gpu import MAX_LEVELS, CustomizableOnGpu, find_levels
from .all_or_nothing import FAULT, Ground, HierarchyLoader, Loaded
from .problem import Problem
from .swept_loads_gpu import CarriedOnGpu, GroundOnGpu, Sweeps


class _Selected(NamedTuple):
    """The paths of one class that use a selected link; CuPy arrays.

    ``marks`` (2 * n_arcs,) uint8: 1 for each side (an arc in one direction) that stands for a
    selected link. ``volume`` (n_pairs,) float64: the volume of each pair whose path uses one, else
    0. ``carried``: these volumes on the arcs.
    """

    marks: Any
    volume: Any
    carried: CarriedOnGpu


class SweepLoaderOnGpu(HierarchyLoader):
    """All-or-nothing flows by sweeps over a hierarchy on the current GPU.

    All attributes of this class are on the GPU. ``_is_wrong`` (1,) int32: kernels set it to other
    than 0 where a proof fails. ``_arcs``: the arcs of the hierarchy with their weights.
    ``_searches``: the parts of the hierarchy above origins and destinations. ``_demand``: the
    arrays ``first_pair`` and ``volume`` of ``Demand``. ``_costs_there`` (n_links,) int64 and
    ``_near_there`` (n_pairs,) int64, where "there" is the GPU: the costs of the class at work as
    whole numbers, and the distances of the pairs. Their twins on the host are ``_costs`` and
    ``_near`` of the base class.
    """

    device = "cuda"

    @classmethod
    def of(
        cls, problem: Problem, ground: Ground, is_selected: np.ndarray | None = None
    ) -> SweepLoaderOnGpu | None:
        """Return the loader of a problem on the current GPU; None if its hierarchy has so many
        levels that a CPU takes less time.

        ``is_selected`` (n_links,) bool: the links of select link; None without.
        """
        topology = ground.customizable.topology
        levels = find_levels(topology.offsets, topology.heads)
        if int(levels.max(initial=0)) >= MAX_LEVELS:
            return None
        return cls(problem, ground, levels, is_selected)

    def __init__(
        self, problem: Problem, ground: Ground, levels: np.ndarray, is_selected: np.ndarray | None
    ) -> None:
        """Copy the hierarchy to the GPU. ``levels`` (n_ranks,): the level of each rank, as
        ``find_levels`` returns it.
        """
        super().__init__(problem, ground, is_selected)
        topology = ground.customizable.topology
        self._is_wrong = cp.zeros(1, np.int32)
        self._arcs = CustomizableOnGpu(topology, levels, self._is_wrong)
        self._searches = GroundOnGpu(ground.searches)
        demand = problem.demand
        self._demand = cp.asarray(demand.first_pair), cp.asarray(demand.volume)
        self._costs_there = cp.empty(self._costs.size, np.int64)
        self._near_there = cp.empty(self._near.size, np.int64)

    def _new_memory(self, n: int, kind: type) -> np.ndarray:
        """Return an array of ``n`` numbers of a type in pinned memory of the host, not set: the GPU
        copies from and to it without a buffer in between.
        """
        n_bytes = n * np.dtype(kind).itemsize
        return np.frombuffer(cp.cuda.alloc_pinned_memory(n_bytes), kind, n)

    @cached_property
    def _all_ranks(self) -> GroundOnGpu:
        """The ground for proofs by the links, whose part ``fall`` has all vertices. It shares
        ``rise`` with ``_searches``.
        """
        return GroundOnGpu(self._ground.with_all_ranks(), self._searches.rise)

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        """Tails and heads of the links as ranks of the hierarchy, int32 (n_links,), CuPy."""
        return cp.asarray(self._ground.tails), cp.asarray(self._ground.heads)

    def _load_class(self, k: int, costs: np.ndarray, result: Loaded) -> None:
        """Write the flows of class ``k`` to ``result``, and the distances of its pairs to
        ``_near``.

        There are three steps: weights of the arcs from ``costs`` (n_links,), whole numbers; volumes
        on the arcs; and these volumes handed to the links. Groups are searched some at a time, as
        many as fit the memory. CertificateError if the result of a step is not proved. The selected
        flows of ``result`` are None if no link is selected.
        """
        # The weights, and what explains each.
        sweeps = self._sweeps(costs, self._searches)
        self._arcs.prove(self._costs_there)

        # The volumes on the arcs. ``lines`` has what was found for the groups of a batch: distances,
        # the arcs of their paths, and the volumes on these. ``carry`` takes the volumes of the
        # pairs from the destinations to the origins, and ``add`` adds them to the sums per arc.
        carried = self._new_carried(k)
        selected = self._new_selected(k)
        begin = int(self._first_group[k])  # groups of ``CarriedOnGpu`` are counted from here
        for first, last in self._batches(k, self._searches):
            lines = sweeps.search(first, last, self._near_there)
            sweeps.carry(first, lines)
            carried.add(first - begin, lines)
            if selected is not None:
                sweeps.carry_selected(first, lines, selected.marks, selected.volume)
                selected.carried.add(first - begin, lines)

        # The volumes on the links, copied to the host.
        self._arcs.hand_down(self._costs_there, carried.volumes()).get(out=result.flow[k])
        if selected is not None:
            assert result.selected_flow is not None
            assert result.selected_volume is not None
            flow = self._arcs.hand_down(self._costs_there, selected.carried.volumes())
            flow.get(out=result.selected_flow[k])
            result.selected_volume[self._pairs(k)] = selected.volume[self._pairs(k)].get()
        # Kernels have run to their ends by now, so that all proofs are known.
        self._require_proof()
        self._take_distances(k)

    def _new_carried(self, k: int) -> CarriedOnGpu:
        """Return arrays for the volumes of class ``k`` on the arcs, all 0."""
        # Shares of the groups as on the CPU, so that sums have the same bits.
        return CarriedOnGpu(self._searches, self._first_blocks(k, self._n_shares(k)))

    def _new_selected(self, k: int) -> _Selected | None:
        """Return the marks of arcs that stand for selected links, and arrays for the volumes of
        class ``k`` over them, all 0; None if no link is selected.

        The weights of the hierarchy must be those of the class, since the marks follow from them.
        """
        if self._is_selected is None:
            return None
        is_marked = cp.asarray(self._is_selected.view(np.uint8))
        return _Selected(
            marks=self._arcs.mark_sides(is_marked),
            volume=cp.zeros(self._problem.demand.volume.size, np.float64),
            carried=self._new_carried(k),
        )

    def _prove_class(self, k: int, costs: np.ndarray) -> None:
        """Write the distances of the pairs of class ``k`` to ``_near``; CertificateError if the
        links do not prove the distances of all vertices from each origin.

        ``costs`` (n_links,) int64 are whole numbers. No volumes are carried (``carries=False``),
        since a proof needs distances alone.
        """
        sweeps = self._sweeps(costs, self._all_ranks)
        for first, last in self._batches(k, self._all_ranks):
            lines = sweeps.search(first, last, self._near_there, carries=False)
            sweeps.check_links(first, lines, (*self._ends, self._costs_there))
        self._require_proof()
        self._take_distances(k)

    def _take_distances(self, k: int) -> None:
        """Copy the distances of the pairs of class ``k`` from the GPU to ``_near``."""
        pairs = self._pairs(k)
        if pairs.stop > pairs.start:  # a class may have no pair
            self._near_there[pairs].get(out=self._near[pairs])

    def _sweeps(self, costs: np.ndarray, ground: GroundOnGpu) -> Sweeps:
        """Set the weights of the hierarchy from ``costs`` (n_links,) int64, and return the searches
        over both parts of ``ground`` at these weights.
        """
        self._costs_there.set(costs)
        self._is_wrong.fill(0)
        self._arcs.customize(self._costs_there)
        weights = (
            self._arcs.take_weights(ground.rise.arcs, UP),
            self._arcs.take_weights(ground.fall.arcs, DOWN),
        )
        return Sweeps(ground, self._demand, weights, self._is_wrong)

    def _batches(self, k: int, ground: GroundOnGpu) -> Iterator[tuple[int, int]]:
        """Yield ranges of the groups of class ``k``, each as large as fits the memory of the GPU:
        the first group, and the group after the last one of the range, both numbered over all
        classes. Nothing is yielded for a class without groups.
        """
        begin = int(self._first_group[k])
        end = int(self._first_group[k + 1])
        at_once = ground.lanes_at_once(end - begin)  # a lane is a group of a batch
        for first in range(begin, end, at_once):
            yield first, min(first + at_once, end)

    def _require_proof(self) -> None:
        """Raise CertificateError if a kernel has found a distance that is not proved."""
        if int(self._is_wrong[0]):
            raise CertificateError(FAULT)
