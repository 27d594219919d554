"""All-or-nothing flows over a customizable hierarchy on a GPU; see swept_loads.cu for the kernels,
and ``swept_loads`` for the CPU.

A group is a class and an origin, with its pairs. A lane is a group that is searched at a time: a
column of the arrays of ``Lines``. All groups of a class are lanes at once, or as many as fit the
memory. Volumes are added up in the order of the CPU: at a vertex those from below in ascending
order, on an arc those of the origins in their order, by shares of the groups.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..cuda import cp
from ..cuda.kernel_spec import WARP, make_entries
from ..hierarchy.customizable import DOWN, UNREACHED, UP
from ..hierarchy.customizable_gpu import PartOnGpu, run, run_together
from .swept_loads import NO_ARC, WIDTH, Ground

_BLOCK = 256  # threads of a block of the GPU
_MAX_BYTES = 1 << 33  # of the arrays of ``Lines``, for the lanes that are searched at a time
# Bytes per lane and number: a distance, an arc and a volume, and whether the path uses a selected
# link.
_PER_LANE = 8 + 4 + 8 + 1
_entry = make_entries(Path(__file__).parent / "kernels" / "swept_loads.cu", _BLOCK)
_RISE = _entry("swept_rise_warp", item_threads=WARP)
_PARENTS = _entry("swept_parents_warp", item_threads=WARP)
_DISTANCES = _entry("swept_distances_warp", item_threads=WARP)
_CLIMB = _entry("swept_climb")
_MARK_RISE = _entry("swept_mark_rise")
_SELECT = _entry("swept_select_warp", item_threads=WARP)
_ADD_FLOW = _entry("swept_add_flow_warp", item_threads=WARP)
_CLOSE = _entry("swept_close_shares")
_CHECK_LINKS = _entry("swept_check_links_warp", item_threads=WARP)
_FALL = _entry("swept_fall", is_cooperative=True)
_CARRY = _entry("swept_carry", is_cooperative=True)
_MARK_FALL = _entry("swept_mark_fall", is_cooperative=True)
ENTRIES = (
    *(_RISE, _FALL, _PARENTS, _DISTANCES, _CARRY, _CLIMB),
    *(_MARK_RISE, _MARK_FALL, _SELECT),
    *(_ADD_FLOW, _CLOSE, _CHECK_LINKS),
)


class GroundOnGpu:
    """The parts of a hierarchy that the searches of all groups need, copied to the current GPU.

    It has the fields of ``swept_loads.Ground`` by the same names: the parts ``rise`` above the
    origins and ``fall`` above the destinations, and CuPy arrays that connect them. A number is the
    position of a vertex in a part. There are two more arrays:

    - ``from_rise`` (n_fall,) int32: for each number of ``fall``, that of the same vertex in
      ``rise``, or -1 if it is not there.
    - ``origins`` (n_groups,) int32: the number in ``fall`` of the origin of each group. It is of
      use only if ``fall`` has all vertices; else it may be -1.
    """

    def __init__(self, ground: Ground, rise: PartOnGpu | None = None) -> None:
        """Copy ``ground`` to the GPU. ``rise``: the part above the same origins if it is on the GPU
        already, so that it is not copied again.
        """
        self.rise = rise or PartOnGpu(ground.rise)
        self.fall = PartOnGpu(ground.fall)
        self.meets = cp.asarray(ground.meets)
        # ``from_rise`` is the inverse of ``meets``, for the vertices that both parts have.
        is_met = np.flatnonzero(ground.meets >= 0)
        from_rise = np.full(ground.fall.ranks.size, -1, np.int32)
        from_rise[ground.meets[is_met]] = is_met
        self.from_rise = cp.asarray(from_rise)
        self.start = cp.asarray(ground.start)
        self.list_offsets = cp.asarray(ground.list_offsets)
        self.lists = cp.asarray(ground.lists)
        self.end = cp.asarray(ground.end)
        # The first number of each list is that of its origin in ``rise``. ``start`` gives the list
        # of each group, and ``meets`` the number of the same vertex in ``fall``.
        origins = ground.lists[ground.list_offsets[:-1]]
        self.origins = cp.asarray(ground.meets[origins][ground.start])

    def lanes_at_once(self, n_lanes: int) -> int:
        """Return how many of ``n_lanes`` lanes are searched at a time: a multiple of the warp, such
        that their arrays take at most ``_MAX_BYTES`` and half of the free memory of the GPU. One
        warp is taken also where its arrays are larger.
        """
        per_lane = _PER_LANE * (self.rise.n_numbers + self.fall.n_numbers)
        free, _ = cp.cuda.runtime.memGetInfo()
        fitting = min(_MAX_BYTES, free // 2) // per_lane  # lanes whose arrays fit
        return min(_whole_warps(max(n_lanes, 1)), max(WARP, fitting // WARP * WARP))


def _whole_warps(n_lanes: int) -> int:
    """Return ``n_lanes`` rounded up to a multiple of the warp, the threads that run together."""
    return -(-n_lanes // WARP) * WARP


class Sweeps:
    """Searches for the groups of one class, at the weights of this class.

    Groups are numbered over all classes. A range of them is searched at a time, and its volumes are
    carried to the arcs; the first group of the range has lane 0.
    """

    def __init__(self, ground: GroundOnGpu, demand: Any, weights: tuple[Any, Any], is_wrong: Any):
        """Keep the arguments for the kernels; all arrays are on the GPU.

        ``demand``: the arrays ``first_pair`` and ``volume`` of ``Demand``. ``weights``: those of
        the arcs of ``rise``, upward, and of ``fall``, downward, int64. ``is_wrong`` (1,) int32:
        kernels set it to other than 0 where a proof fails.
        """
        self._ground = ground
        self._demand = demand
        self._weights = weights
        self._is_wrong = is_wrong

    def search(self, first: int, last: int, distances: Any, carries: bool = True) -> Lines:
        """Find the distances of the pairs of the groups ``first`` to ``last - 1``, and write them
        to ``distances`` (n_pairs,) int64, CuPy.

        Return the ``Lines`` of these groups. With ``carries``, the volume of each pair waits in
        them at its destination, for ``carry``. Without, they have distances alone (``waiting`` is
        None), for ``check_links``.
        """
        # Three kernels: searches upward from the origins, a sweep downward, and the distances and
        # volumes of the pairs.
        ground = self._ground
        lines = Lines(ground, last - first, carries)
        run(
            _RISE,
            lines.n_lanes,
            **lines.lists(first),
            offsets=ground.rise.offsets,
            heads=ground.rise.heads,
            weights=self._weights[0],
            far=lines.far,
            entries=lines.entries,
            is_wrong=self._is_wrong,
        )
        run_together(
            _FALL,
            pitch=lines.pitch,
            **ground.fall.levels.arguments(),
            **self._of_fall(lines),
        )
        run(
            _DISTANCES,
            lines.n_lanes,
            n_lanes=np.int64(lines.n_lanes),
            pitch=lines.pitch,
            first_group=np.int64(first),
            first_pair=self._demand[0],
            ends=ground.end,
            volumes=self._demand[1],
            lines=lines.distance,
            distances=distances,
            waiting=lines.waiting,
        )
        return lines

    def _of_fall(self, lines: Lines) -> dict[str, Any]:
        """Return the arguments, by name, of kernels over the part above the destinations."""
        ground = self._ground
        return {
            "offsets": ground.fall.offsets,
            "heads": ground.fall.heads,
            "weights": self._weights[1],
            "from_rise": ground.from_rise,
            "far": lines.far,
            "lines": lines.distance,
        }

    def carry(self, first: int, lines: Lines) -> None:
        """Prove the distances of the lanes in ``lines``, find the arcs that explain them, and carry
        the volumes that wait at the destinations over these arcs to the origins.

        ``first`` is the group of lane 0.
        """
        # A warp works at one number of ``fall`` in as many lanes as it has threads.
        fall = self._ground.fall
        run(
            _PARENTS,
            fall.n_numbers * int(lines.pitch) // WARP,
            n_numbers=np.int64(fall.n_numbers),
            pitch=lines.pitch,
            **self._of_fall(lines),
            parents=lines.parents,
            is_wrong=self._is_wrong,
        )
        self._pass_on(first, lines)

    def carry_selected(self, first: int, lines: Lines, marks: Any, selected: Any) -> None:
        """Carry the volumes of those paths alone that use a selected link, after ``carry``, which
        has found the arcs of the paths. The volumes of all paths in ``lines`` are overwritten.

        ``first`` is the group of lane 0. ``marks`` (2 * n_arcs,) uint8: 1 for each side (an arc in
        one direction) that stands for a selected link. ``selected`` (n_pairs,) float64 is written:
        the volume of each pair whose path uses such a link, else 0.
        """
        uses = self._find_uses(first, lines, marks)
        lines.clear_volumes()
        run(
            _SELECT,
            lines.n_lanes,
            n_lanes=np.int64(lines.n_lanes),
            pitch=lines.pitch,
            first_group=np.int64(first),
            first_pair=self._demand[0],
            ends=self._ground.end,
            volumes=self._demand[1],
            lines=lines.distance,
            uses=uses,
            selected=selected,
            waiting=lines.waiting,
        )
        self._pass_on(first, lines)

    def _find_uses(self, first: int, lines: Lines, marks: Any) -> Any:
        """Return, for each number of ``fall`` and each lane, 1 if its path uses a selected link,
        else 0: uint8 of the shape of ``lines.distance``.

        ``first`` is the group of lane 0, and ``marks`` is that of ``carry_selected``.
        """
        ground = self._ground
        above = cp.zeros(lines.far.shape, np.uint8)  # the same for the numbers of ``rise``
        run(
            _MARK_RISE,
            lines.n_lanes,
            **lines.lists(first),
            tails=ground.rise.tails,
            entries=lines.entries,
            arcs=ground.rise.arcs,
            marks=marks,
            uses=above,
        )
        uses = cp.empty(lines.distance.shape, np.uint8)
        run_together(
            _MARK_FALL,
            pitch=lines.pitch,
            **ground.fall.levels.arguments(),
            heads=ground.fall.heads,
            parents=lines.parents,
            from_rise=ground.from_rise,
            above=above,
            arcs=ground.fall.arcs,
            marks=marks,
            uses=uses,
        )
        return uses

    def _pass_on(self, first: int, lines: Lines) -> None:
        """Carry the volumes that wait at the destinations over the arcs that explain the distances.

        The first kernel carries them up the part ``fall``, to the numbers whose distances the
        search upward explains. The second one carries them from there down to the origins. The
        volumes stay in ``lines``, for ``CarriedOnGpu.add``.
        """
        ground = self._ground
        fall = ground.fall
        run_together(
            _CARRY,
            pitch=lines.pitch,
            **fall.levels.arguments(),
            below_offsets=fall.below_offsets,
            below=fall.below,
            below_tails=fall.below_tails,
            parents=lines.parents,
            waiting=lines.waiting,
            is_wrong=self._is_wrong,
        )
        run(
            _CLIMB,
            lines.n_lanes,
            **lines.lists(first),
            tails=ground.rise.tails,
            meets=ground.meets,
            entries=lines.entries,
            parents=lines.parents,
            waiting=lines.waiting,
            climb=lines.climb,
        )

    def check_links(self, first: int, lines: Lines, links: tuple[Any, Any, Any]) -> None:
        """Set ``is_wrong`` unless the links prove the distances of all vertices: that of the origin
        is 0, and no link makes a vertex nearer.

        So no distance is too large. That an arc explains each distance is the part of ``carry``.

        The part ``fall`` must have all vertices, so that the numbers of its rows are the ranks of
        the hierarchy. ``first`` is the group of lane 0. ``links`` are the tails and the heads of the
        links, which are ranks, and their costs, CuPy arrays of shape (n_links,).
        """
        tails, heads, costs = links
        run(
            _CHECK_LINKS,
            costs.size,
            n_links=np.int64(costs.size),
            n_lanes=np.int64(lines.n_lanes),
            pitch=lines.pitch,
            tails=tails,
            heads=heads,
            costs=costs,
            origins=self._ground.origins[first : first + lines.n_lanes],
            lines=lines.distance,
            is_wrong=self._is_wrong,
        )


class Lines:
    """Distances from the origins of some lanes, with the arcs and volumes of their paths if these
    carry volumes.

    CuPy arrays have a row per number of a part and a column per lane. There are ``pitch`` columns,
    ``n_lanes`` rounded up to whole warps.

    Attributes
    ----------
    far : int64, by the numbers of ``rise``
        Distances of the search upward; ``UNREACHED`` where there is none.
    entries : int32, by the numbers of ``rise``
        The last arc of each path upward, or ``NO_ARC``.
    climb : float64, by the numbers of ``rise``
        Volumes that paths upward carry. Missing if nothing is carried.
    distance : int64, by the numbers of ``fall``
        The distances.
    parents : int32, by the numbers of ``fall``
        The arc that explains the distance. Missing if nothing is carried.
    waiting : float64, by the numbers of ``fall``
        Volumes on their way to the origin. None if nothing is carried.
    """

    def __init__(self, ground: GroundOnGpu, n_lanes: int, carries: bool) -> None:
        """Allocate the arrays for ``n_lanes`` lanes; ``carries``: whether paths carry volumes."""
        self._ground = ground
        self.n_lanes = n_lanes
        self.pitch = np.int64(_whole_warps(n_lanes))
        above = (ground.rise.n_numbers, int(self.pitch))
        below = (ground.fall.n_numbers, int(self.pitch))
        self.far = cp.full(above, UNREACHED, np.int64)
        self.entries = cp.full(above, NO_ARC, np.int32)
        self.distance = cp.empty(below, np.int64)
        self.waiting: Any = None
        if carries:
            self.climb = cp.zeros(above, np.float64)
            self.parents = cp.empty(below, np.int32)
            self.waiting = cp.zeros(below, np.float64)

    def clear_volumes(self) -> None:
        """Set all volumes to 0, so that other volumes can be carried over the same paths."""
        self.climb.fill(0.0)
        self.waiting.fill(0.0)

    def lists(self, first: int) -> dict[str, Any]:
        """Return the arguments, by name, of kernels that read the lists of numbers above the
        origins of these lanes; ``first`` is the group of lane 0.
        """
        ground = self._ground
        return {
            "n_lanes": np.int64(self.n_lanes),
            "pitch": self.pitch,
            "start": ground.start[first : first + self.n_lanes],
            "list_offsets": ground.list_offsets,
            "lists": ground.lists,
        }


class CarriedOnGpu:
    """The volumes of one class on the arcs of both parts: ``rise`` upward, ``fall`` downward.

    The CPU adds up each share of the groups in an array of its own, and then adds the shares. To
    get the same bits, this object has two sums per arc: that of the share at work, and that of all
    shares before it.

    ``_shares`` int32, NumPy: the share of each group of the class. ``_sums``: for ``rise`` and
    ``fall``, the two sums, float64 arrays over the arcs of the part.
    """

    def __init__(self, ground: GroundOnGpu, first_block: np.ndarray) -> None:
        """``first_block``: the first block (of ``WIDTH`` groups) of each share, and the number of
        blocks.
        """
        self._ground = ground
        # The share of each block, and then of each of its groups; the last block may have fewer.
        blocks = np.repeat(np.arange(first_block.size - 1), np.diff(first_block))
        self._shares = np.repeat(blocks, WIDTH).astype(np.int32)
        self._sums = [
            (cp.zeros(part.arcs.size, np.float64), cp.zeros(part.arcs.size, np.float64))
            for part in (ground.rise, ground.fall)
        ]

    def add(self, first: int, lines: Lines) -> None:
        """Add the volumes that the lanes of ``lines`` carry.

        ``first`` is the position of the group of lane 0 among the groups of the class. Calls must
        be in the order of the groups.
        """
        ground = self._ground
        shares = cp.asarray(self._shares[first : first + lines.n_lanes])
        # The share of the group before lane 0, whose sum is still open; for the first group its
        # own.
        before = self._shares[max(first - 1, 0)]
        # Per part: for each arc the number that a path enters by it, for each number the arc by
        # which its path enters it, and the volume that the path carries.
        choices = (
            (ground.rise.heads, lines.entries, lines.climb),
            (ground.fall.tails, lines.parents, lines.waiting),
        )
        for (at, chosen, volumes), (open_sums, closed) in zip(choices, self._sums, strict=True):
            run(
                _ADD_FLOW,
                at.size,
                n_arcs=np.int64(at.size),
                n_lanes=np.int64(lines.n_lanes),
                pitch=lines.pitch,
                at=at,
                chosen=chosen,
                volumes=volumes,
                shares=shares,
                share=before,
                open=open_sums,
                closed=closed,
            )

    def volumes(self) -> list[tuple[Any, int, Any]]:
        """Return for both parts the arcs of the hierarchy, their direction (``UP`` or ``DOWN``),
        and the volume on each, float64.

        The open sum of the last share is added to the sums of the shares before it, so that ``add``
        must not be called any more.
        """
        ground = self._ground
        found = []
        for part, way, (open_sums, closed) in zip(
            (ground.rise, ground.fall), (UP, DOWN), self._sums, strict=True
        ):
            run(
                _CLOSE,
                closed.size,
                n_arcs=np.int64(closed.size),
                open=open_sums,
                closed=closed,
            )
            found.append((part.arcs, way, closed))
        return found
