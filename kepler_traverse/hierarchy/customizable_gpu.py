"""A customizable hierarchy on a GPU; see customizable.cu for the kernels, and ``customizable`` for
the CPU, which explains ranks, arcs, sides and triangles.

A triangle is two arcs from one rank, and the arc that joins their heads. This third arc is looked
up once. A set of costs then takes one launch of a kernel over all levels from the bottom, and one
over all triangles, which proves the weights and finds the link or triangle that explains each.
Volumes are handed down by a launch over the levels from the top.

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

_BLOCK = 256  # threads of a block
# With more levels, the barriers between them take longer than the whole work does on a CPU.
MAX_LEVELS = 1 << 15
# The largest numbers stand for none, since kernels take the minimum of all that explain a weight.
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
    """Numbered items (arcs or vertices) in levels. The work on a level needs the results of the
    levels before it.

    ``by_level`` (n,) int32, CuPy: the numbers of the items, level by level. ``offsets``
    (n_levels + 1,) int64, CuPy: where each level begins in ``by_level``, and the end.
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
        """Return the items 0 to n - 1 by their levels; ``level`` (n,) int, NumPy, has that of each
        item.
        """
        by_level, offsets = stable_order(level, int(level.max(initial=-1)) + 1)
        return cls(cp.asarray(by_level.astype(np.int32)), cp.asarray(offsets))


@njit(cache=True, nogil=True)
def find_levels(offsets: np.ndarray, heads: np.ndarray) -> np.ndarray:
    """Return the level of each rank, int32 of shape (n,): 0 if no arc leads to it from below, else
    1 more than the highest level of a rank from which an arc leads to it.

    ``offsets`` and ``heads`` are the arcs from each rank to ranks above it.
    """
    n = offsets.size - 1
    level = np.zeros(n, np.int32)
    for v in range(n):
        for arc in range(offsets[v], offsets[v + 1]):
            level[heads[arc]] = max(level[heads[arc]], level[v] + 1)
    return level


def run(entry: Entry, work_items: int, **arguments: Any) -> None:
    """Launch a kernel with one thread (or warp, as ``entry`` says) per work item. ``arguments`` are
    those of the kernel, by name.
    """
    launch(kernel(entry, np.int32), work_items, arguments)  # compiled for int32 as vertex numbers


def run_together(entry: Entry, **arguments: Any) -> None:
    """Launch a kernel whose blocks wait for each other at barriers, with as many blocks as the GPU
    runs at once: a block that waited for one that has not begun would wait forever.

    ``arguments`` are those of the kernel, by name. The counter of the blocks at a barrier,
    ``arrived``, is added to them.
    """
    compiled = kernel(entry, np.int32)  # for int32 as the type of vertex numbers
    arrived = cp.zeros(1, np.uint32)
    launch_blocks(compiled, blocks_at_once(compiled), {**arguments, "arrived": arrived})


class CustomizableOnGpu:
    """The arcs of a hierarchy on the current GPU, and their weights at the last costs.

    Attributes
    ----------
    weights : int64 array of shape (2 * n_arcs,), CuPy
        The weight of each side (an arc in one direction, ``2 * arc + UP`` or ``2 * arc + DOWN``);
        ``UNREACHED`` where there is no way.
    is_wrong : int32 array of shape (1,), CuPy
        Kernels set it to other than 0 where a proof fails. The caller clears it.

    The private arrays, all of CuPy: ``_tails``, ``_sides`` and ``_offsets`` are those of
    ``Topology``. ``_first_triangle`` (n_arcs + 1,) int64 has the number of the first triangle of
    each arc, and ``_joins`` (n_triangles,) int32 the arc that joins the heads of each. What
    explains the weight of each side: ``_links`` (2 * n_arcs,) int32, the first such link, and
    ``_triangles`` (2 * n_arcs,) int64, the two arcs of the first such triangle, the lower one in
    the upper 32 bits. In both arrays the largest number of the type stands for no link or triangle.
    """

    def __init__(self, topology: Topology, levels: np.ndarray, is_wrong: Any) -> None:
        """Copy the arcs to the GPU, and find the third arc of each triangle.

        ``levels`` (n_ranks,): the level of each rank, as ``find_levels`` returns it. ``is_wrong``:
        see the class.
        """
        self._n_ends = topology.n_ends
        self._tails = cp.asarray(topology.tails)
        self._sides = cp.asarray(topology.sides)
        self._offsets = cp.asarray(topology.offsets)
        self._levels = Levels.of(levels[topology.tails])

        # An arc and each later arc of its tail make a triangle. Arcs of ends (the lowest ranks,
        # through which no path leads) make none.
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
        """Set ``weights`` from the costs of the links, int64 of shape (n_links,), CuPy.

        Costs are at least 0, and add up to at most ``customizable.MAX_SUM``.
        """
        self.weights.fill(UNREACHED)
        run(_SET_LINKS, costs.size, **self._link_arguments(costs))
        run_together(_LOWER, **self._levels.arguments(), **self._triangle_arguments())

    def prove(self, costs: Any) -> None:
        """Compare the weights with each link and each triangle, and set ``is_wrong`` if one is
        shorter than its side. Find the first link or triangle that explains each weight.

        ``costs`` are those that ``customize`` was called with.
        """
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
        """Return the arguments, by name, that all kernels over the links have."""
        return {
            "n_links": np.int64(costs.size),
            "sides": self._sides,
            "costs": costs,
            "weights": self.weights,
        }

    def _triangle_arguments(self) -> dict[str, Any]:
        """Return the arguments, by name, that all kernels over the triangles have."""
        return {
            "first_triangle": self._first_triangle,
            "joins": self._joins,
            "weights": self.weights,
        }

    def take_weights(self, arcs: Any, way: int) -> Any:
        """Return the weights of some arcs in one direction, int64 of the shape of ``arcs``, CuPy.

        ``arcs`` are numbers of arcs, int32, CuPy; ``way`` is the direction, ``UP`` or ``DOWN``.
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
        """Return 1 for each side that stands for a marked link, among others, so that ``hand_down``
        would add its volume to this link, else 0: uint8 of shape (2 * n_arcs,), CuPy.

        ``is_marked`` (n_links,) uint8, CuPy: not 0 for a marked link. ``prove`` must have been
        called before, since it finds the links that sides stand for.
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
        """Return the volume on each link, float64 of shape (n_links,), CuPy, from the volumes on
        the arcs. Set ``is_wrong`` if a volume reaches no link, or the costs do not add up.

        ``costs`` are those of ``prove``, which has found the links that arcs stand for.
        ``volumes``: tuples of the numbers of some arcs, int32; a direction, ``UP`` or ``DOWN``; and
        the volume on each of these arcs in this direction, float64.
        """
        # the volume on each side
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
    """A ``customizable.Part`` on the current GPU: some ranks of a hierarchy, all ranks above them,
    and the arcs between them. Ranks are numbered anew, in the same order.

    Attributes
    ----------
    n_numbers : int
        Number of ranks in the part.
    offsets, heads, tails : int64, int32 and int32 arrays, CuPy
        The arcs from each number to numbers above it, and the lower number of each arc.
    arcs : int32 array, CuPy
        The number of each of these arcs in the whole hierarchy.
    levels : Levels
        The numbers by level, from the bottom on.
    below_offsets, below, below_tails : int64, int32 and int32 arrays, CuPy
        The arcs of the part that lead to each number from below, and their tails, in ascending
        order of the tails.
    """

    def __init__(self, part: Part) -> None:
        """Copy a part to the current GPU, and find its levels."""
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
