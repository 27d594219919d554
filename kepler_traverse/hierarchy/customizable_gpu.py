"""A customizable hierarchy on a GPU; see customizable.cu, and ``customizable`` for the CPU.

The arc that joins the heads of each triangle is looked up once. A set of costs then takes a launch
over all levels from the bottom, and one over all triangles, which proves the weights and finds what
explains them. Volumes are handed down by a launch over the levels from the top.

Memory is 4 bytes per triangle and about 70 per arc.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..cpu.compiled import njit
from ..cpu.counting_sort import stable_order
from ..cuda import cp
from ..cuda.compiler import kernel
from ..cuda.kernel_spec import WARP, Entry, make_entries
from ..cuda.launch import blocks_at_once, launch, launch_blocks
from .customizable import UNREACHED, Part, Topology

_BLOCK = 256
# Beyond, barriers between levels take longer than a CPU does.
MAX_LEVELS = 1 << 15
_NO_TRIANGLE = np.iinfo(np.int64).max
_NO_LINK = np.iinfo(np.int32).max
_entry = make_entries(Path(__file__).parent / "kernels" / "customizable.cu", _BLOCK)
_JOIN = _entry("customizable_join_warp", item_threads=WARP)
_SET_LINKS = _entry("customizable_set_links")
_PROVE_LINKS = _entry("customizable_prove_links")
_PROVE = _entry("customizable_prove_warp", item_threads=WARP)
_TAKE = _entry("customizable_take_sides")
_PUT = _entry("customizable_put_sides")
_LOWER = _entry("customizable_lower", is_cooperative=True)
_MARK = _entry("customizable_mark", is_cooperative=True)
_HAND_DOWN = _entry("customizable_hand_down", is_cooperative=True)
ENTRIES = (_JOIN, _SET_LINKS, _PROVE_LINKS, _PROVE, _TAKE, _PUT, _LOWER, _MARK, _HAND_DOWN)


class Levels(NamedTuple):
    """Items in levels, each of which needs those of the levels before.

    ``by_level`` (n,) int32, CuPy: the items, level by level. ``offsets`` (n_levels + 1,) int64,
    CuPy: where each level begins in ``by_level``.
    """

    by_level: Any
    offsets: Any

    def arguments(self) -> dict[str, Any]:
        """Return the arrays by the names that they have in the arguments of kernels."""
        return {
            "by_level": self.by_level,
            "level_offsets": self.offsets,
            "n_levels": np.int64(self.offsets.size - 1),
        }

    @classmethod
    def of(cls, level: np.ndarray) -> Levels:
        """Return items by their levels; ``level`` (n,) int, NumPy."""
        by_level, offsets = stable_order(level, int(level.max(initial=-1)) + 1)
        return cls(cp.asarray(by_level.astype(np.int32)), cp.asarray(offsets))


@njit(cache=True, nogil=True)
def find_levels(offsets: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Return the level of each rank, int32: 0 without an arc from below, else above all of these."""
    n = offsets.size - 1
    level = np.zeros(n, np.int32)
    for v in range(n):
        for arc in range(offsets[v], offsets[v + 1]):
            level[heads[arc]] = max(level[heads[arc]], level[v] + 1)
    return level


def run(entry: Entry, work_items: int, **arguments: Any) -> None:
    """Launch a kernel over so many items."""
    launch(kernel(entry, np.int32), work_items, arguments)


def run_together(entry: Entry, **arguments: Any) -> None:
    """Launch a kernel that has barriers of the grid, with all blocks that are resident at once.

    ``arrived`` of its arguments counts the blocks at a barrier.
    """
    compiled = kernel(entry, np.int32)
    arrived = cp.zeros(1, np.uint32)
    launch_blocks(compiled, blocks_at_once(compiled), {**arguments, "arrived": arrived})


class CustomizableOnGpu:
    """The arcs of a hierarchy on the current GPU, and their weights at the last costs.

    Attributes
    ----------
    weights : int64 array of shape (2 * n_arcs,), CuPy
        As ``customizable.Arcs`` has them.
    is_wrong : int32 array of shape (1,), CuPy
        Set where a proof fails.

    The private arrays, all of CuPy: ``_tails``, ``_sides`` and ``_offsets`` are those of
    ``Topology``. ``_first_triangle`` (n_arcs + 1,) int64 has the number of the first triangle of
    each arc, and ``_joins`` (n_triangles,) int32 the arc that joins the heads of each. What
    explains the weight of each side: ``_links`` (2 * n_arcs,) int32, the first such link, and
    ``_triangles`` (2 * n_arcs,) int64, the first such triangle. The largest number of their type
    stands for none.
    """

    def __init__(self, topology: Topology, levels: np.ndarray, is_wrong: Any) -> None:
        """``levels``: the level of each rank, as ``find_levels`` returns it."""
        self._n_ends = topology.n_ends
        self._tails = cp.asarray(topology.tails)
        self._sides = cp.asarray(topology.sides)
        self._offsets = cp.asarray(topology.offsets)
        self._levels = Levels.of(levels[topology.tails])

        # An arc and each later one of its tail make a triangle, but for those of ends.
        n_arcs = topology.heads.size
        n_later = topology.offsets[topology.tails + 1] - 1 - np.arange(n_arcs)
        n_later[: topology.offsets[topology.n_ends]] = 0
        first_triangle = np.concatenate([[0], np.cumsum(n_later)])
        self._first_triangle = cp.asarray(first_triangle)
        self._joins = cp.empty(int(first_triangle[-1]), np.int32)
        run(
            _JOIN,
            n_arcs,
            n_arcs=np.int64(n_arcs),
            offsets=self._offsets,
            heads=cp.asarray(topology.heads),
            first_triangle=self._first_triangle,
            joins=self._joins,
        )
        self.weights = cp.empty(2 * n_arcs, np.int64)
        self.is_wrong = is_wrong
        self._links = cp.empty(2 * n_arcs, np.int32)
        self._triangles = cp.empty(2 * n_arcs, np.int64)

    def customize(self, costs: Any) -> None:
        """Set the weights to those of costs of the links, int64, CuPy; see ``customizable.customize``."""
        self.weights.fill(UNREACHED)
        run(_SET_LINKS, costs.size, **self._link_arguments(costs))
        run_together(_LOWER, **self._levels.arguments(), **self._triangle_arguments())

    def prove(self, costs: Any) -> None:
        """Compare the weights with each link and each triangle, and find those that explain them."""
        self._links.fill(_NO_LINK)
        self._triangles.fill(_NO_TRIANGLE)
        n_arcs = self._tails.size
        run(
            _PROVE_LINKS,
            costs.size,
            **self._link_arguments(costs),
            links=self._links,
            is_wrong=self.is_wrong,
        )
        run(
            _PROVE,
            n_arcs,
            n_arcs=np.int64(n_arcs),
            **self._triangle_arguments(),
            triangles=self._triangles,
            is_wrong=self.is_wrong,
        )

    def _link_arguments(self, costs: Any) -> dict[str, Any]:
        """Return what kernels over the links have in common."""
        return {
            "n_links": np.int64(costs.size),
            "sides": self._sides,
            "costs": costs,
            "weights": self.weights,
        }

    def _triangle_arguments(self) -> dict[str, Any]:
        """Return what kernels over the triangles have in common."""
        return {
            "first_triangle": self._first_triangle,
            "joins": self._joins,
            "weights": self.weights,
        }

    def take_weights(self, arcs: Any, way: int) -> Any:
        """Return the weights of some arcs in one direction, int64, CuPy.

        ``arcs`` are int32, CuPy; ``way`` is ``UP`` or ``DOWN``.
        """
        taken = cp.empty(arcs.size, np.int64)
        run(
            _TAKE,
            arcs.size,
            n_arcs=np.int64(arcs.size),
            way=np.int64(way),
            arcs=arcs,
            weights=self.weights,
            taken=taken,
        )
        return taken

    def mark_sides(self, is_marked: Any) -> Any:
        """Return which sides ``hand_down`` hands down to a link that is marked, uint8, CuPy, by
        what ``prove`` has found. ``is_marked`` (n_links,): uint8, CuPy.
        """
        marks = cp.empty(self.weights.size, np.uint8)
        run_together(
            _MARK,
            **self._levels.arguments(),
            links=self._links,
            triangles=self._triangles,
            is_marked=is_marked,
            marks=marks,
        )
        return marks

    def hand_down(self, costs: Any, volumes: Any) -> Any:
        """Return what the links carry, float64, CuPy, by what ``prove`` has found.

        ``volumes``: tuples of arcs, a direction, and what the arcs carry there.
        """
        loads = cp.zeros(self.weights.size, np.float64)
        for arcs, way, carried in volumes:
            run(
                _PUT,
                arcs.size,
                n_arcs=np.int64(arcs.size),
                way=np.int64(way),
                arcs=arcs,
                volumes=carried,
                loads=loads,
            )

        flow = cp.zeros(costs.size, np.float64)
        run_together(
            _HAND_DOWN,
            **self._levels.arguments(),
            n_ends=np.int64(self._n_ends),
            offsets=self._offsets,
            tails=self._tails,
            first_triangle=self._first_triangle,
            joins=self._joins,
            costs=costs,
            weights=self.weights,
            links=self._links,
            triangles=self._triangles,
            loads=loads,
            flow=flow,
            is_wrong=self.is_wrong,
        )
        return flow


class PartOnGpu:
    """A part of a hierarchy on the current GPU, in levels.

    Attributes
    ----------
    n_numbers : int
    arcs, offsets, heads, tails : CuPy
        As ``customizable.Part`` has them.
    levels : Levels
        Of the numbers, from the bottom on.
    below_offsets, below, below_tails : int64, int32 and int32, CuPy
        The arcs that lead to each number, and their tails, in ascending order.
    """

    def __init__(self, part: Part) -> None:
        self.n_numbers = int(part.ranks.size)
        self.arcs = cp.asarray(part.arcs)
        self.offsets = cp.asarray(part.offsets)
        self.heads = cp.asarray(part.heads)
        self.tails = cp.asarray(part.tails)
        self.levels = Levels.of(find_levels(part.offsets, part.heads))
        below, below_offsets = stable_order(part.heads, self.n_numbers)
        self.below_offsets = cp.asarray(below_offsets)
        self.below = cp.asarray(below.astype(np.int32))
        self.below_tails = cp.asarray(part.tails[below])
