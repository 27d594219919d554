"""Many searches at once on a GPU over a contraction hierarchy; see hierarchy_sweep.cu, and
``hierarchy_sweep`` for the CPU.

Memory traffic bounds the time: a sweep from k sources reads a line of k sums per edge of the
hierarchy, less what the cache holds, and writes one per vertex. Few sources have narrow lines, and
levels then take as long as their launches.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import EXACT_BELOW
from ...cuda import cp
from ...cuda.compiler import Request, kernel
from ...cuda.interleaved import (
    UNREACHED,
    InterleavedDistances,
    Scale,
    as_wide_as,
    likely_kernels,
    share_chunks,
    sums_up_to,
    words_per_thread,
)
from ...cuda.kernel_spec import WARP, make_entries
from ...cuda.launch import (
    Named,
    blocks_for,
    launch,
    launch_blocks,
    max_grid,
    named,
    prepare,
    resident_threads,
    threads_per_multiprocessor,
)
from ...hierarchy.on_gpu import on_gpu
from ...search.strategy import MultiSourceOutcome
from .. import gpu_steps
from . import source_per_block

GROUP = 1024
group_size = partial(min, GROUP)
_SEARCH_BLOCK = 128
_TOP_BLOCK = 1024
_LEVEL_BLOCK = 256
_SEARCHES_PER_PROCESSOR = 4  # blocks that search upward, each with a sum per vertex
# reached vertices of a search at first; road networks have some hundred, lattices some thousand
_CAPACITY = 4096
_NARROW = 128  # vertices of a level that one block per 32 sources sweeps
_EDGES = 3  # upward edges per vertex that the estimate of memory assumes
_FILE = Path(__file__).parents[1] / "kernels" / "hierarchy_sweep.cu"
_CONSTANTS = (("WORDS", 4),)
_entry = make_entries(_FILE, _SEARCH_BLOCK, constants=_CONSTANTS)
_SEARCH = _entry("hierarchy_search_upward")
_CLEAR = _entry("hierarchy_clear_lines_warp", block=_LEVEL_BLOCK, item_threads=WARP)
_PLACE = _entry("hierarchy_place_sums")
_TOP = _entry("hierarchy_sweep_top", block=_TOP_BLOCK)
_LEVEL = _entry("hierarchy_sweep_level_warp", block=_LEVEL_BLOCK, item_threads=WARP)
ENTRIES = (_SEARCH, _CLEAR, _PLACE, _TOP, _LEVEL)


def _lanes(group: int) -> int:
    """Sums per line: whole warps, and from 128 on as many as let each thread read 16 bytes."""
    step = WARP if group <= 2 * WARP else 4 * WARP
    return -(-group // step) * step


def _searches_at_once(group: int) -> int:
    return min(
        group, _SEARCHES_PER_PROCESSOR * max(1, resident_threads() // threads_per_multiprocessor())
    )


def memory(shape, query, group: int) -> int:
    """Bytes of a run: the hierarchy, lines, the sums of upward searches, and rows or what the query
    asks for.
    """
    n = shape.n_vertices
    blocks = _searches_at_once(group)
    sums = max(shape.weight, 4)
    hierarchy = n * (8 + 4 + _EDGES * (4 + sums)) * (2 if shape.directed else 1)
    lists = blocks * 2 * 4 * _CAPACITY + group * _CAPACITY * (4 + sums)
    searches = blocks * (n * sums + n // 8) + lists
    if query.output == "targets" and query.targets is not None:
        columns = query.targets.size
    else:
        columns = n
    if query.predecessors:
        back = group * n * shape.index + gpu_steps.memory(n, shape.n_edges, True)
    else:
        back = 0
    return hierarchy + searches + _lanes(group) * n * sums + group * columns * shape.weight + back


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Amounts of the terms of the cost: launches per group, lines, and rows of distances."""
    groups = -(-n_sources // max(group, 1))
    lanes = groups * _lanes(min(group, n_sources))
    if shape.keep == "targets":
        return {"start": groups, "vertex": lanes * shape.n_vertices / 16}
    return {
        "start": groups,
        "vertex": lanes * shape.n_vertices,
        "write": n_sources * shape.n_vertices * shape.weight / 4,
    }


def kernels(graph, query, group: int) -> list[Request]:  # noqa: ARG001
    """See ``MultiSourceStrategy.kernels``."""
    kind = graph.derived.known_hierarchy("weights").dtype
    entry = _SEARCH.variant(WORDS=words_per_thread(_lanes(group), kind))
    return [Request(entry, np.int32, as_wide_as(kind)), *likely_kernels(kind, graph.weights.dtype)]


def plan(graph, query, group: int):
    """Allocate and compile; return ``traverse(sources)`` for several vertex numbers."""
    run = _Run(graph, query, group)

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        return run.search(np.asarray(sources, np.int64), lists)

    return traverse


class _Run:
    """The state of a group: lines, and what blocks need that search upward."""

    def __init__(self, graph, query, group: int):
        self._graph = graph
        self._query = query
        self._group = group
        self._hierarchy = hierarchy = graph.derived.known_hierarchy("weights")
        self._device = on_gpu(hierarchy)
        self._kind, self._lanes = kind, lanes = hierarchy.dtype, _lanes(group)
        self._bound = sums_up_to(query.limit, hierarchy.unit, kind) + 1
        # else what finds sums that this type rounds would miss some
        if self._bound > EXACT_BELOW[graph.weights.dtype]:
            self._bound = int(UNREACHED[kind])
        self._sweep = self._device.sweep
        self._columns = None
        if query.output == "targets" and query.targets is not None:
            self._sweep, columns = self._device.restricted(query.targets)
            self._columns = cp.asarray(columns)
        constants: dict[str, Any] = {"WORDS": words_per_thread(lanes, kind)}
        self._kernels = {
            entry: kernel(entry.variant(**constants), np.int32, as_wide_as(kind))
            for entry in ENTRIES
        }
        self.lines = cp.empty((self._sweep.n_places, lanes), kind)
        self.is_set = cp.zeros(self._sweep.n_places, np.uint8)
        if self._columns is None:
            n_columns = graph.n_vertices
        else:
            n_columns = self._columns.size
        keeps_rows = not ("interleaved" in query.forms or query.has_target_lists)
        if keeps_rows:
            self._rows = cp.empty((group, n_columns), graph.weights.dtype)
        else:
            self._rows = None
        self._single = gpu_steps.Run(graph, query) if query.predecessors else None
        self._needs_check = (
            not graph.integer_weights and hierarchy.longest >= EXACT_BELOW[graph.weights.dtype]
        )
        # sources that were taken, overflows, and the largest sum
        self._counts = cp.zeros(3, np.int64)
        self._allocate_searches(min(_CAPACITY, graph.n_vertices))
        self._levels = self._prepare_sweep()

    def _allocate_searches(self, capacity: int) -> None:
        n = self._graph.n_vertices
        blocks = _searches_at_once(self._group)
        self._capacity = capacity
        self.sums = cp.full((blocks, n), UNREACHED[self._kind], self._kind)
        self.marks = cp.zeros((blocks, -(-n // 32)), np.uint32)
        self.queues = cp.empty((blocks, 2, capacity), np.int32)
        self.reached = cp.empty((self._group, capacity), np.int32)
        self.reached_sums = cp.empty((self._group, capacity), self._kind)
        self.n_reached = cp.empty(self._group, np.int64)

    def search(self, sources: np.ndarray, lists) -> MultiSourceOutcome:
        hierarchy = self._hierarchy
        query = self._query
        k = sources.size
        self._search_upward(sources)
        self._clear_and_place(k)
        for launch_level in self._levels:
            launch_level()
        highest = int(self._counts.get()[2])
        if self._needs_check and highest >= EXACT_BELOW[self._graph.weights.dtype]:
            # Sums of floats round there as they are added, so they depend on the path.
            other = source_per_block.plan(self._graph, query, k)
            if lists is None:
                return other(sources)
            return other(sources, lists)
        highest_within = min(highest, self._bound - 1)
        dtype = self._graph.weights.dtype
        scale = Scale(hierarchy.unit, dtype, self._bound, highest_within)
        interleaved = InterleavedDistances(self.lines, k, scale)
        rounds = [hierarchy.levels] * k
        limits = [query.limit] * k
        below = math.nextafter(interleaved.highest * hierarchy.unit, math.inf)
        if lists is not None and query.output == "targets":
            return MultiSourceOutcome(
                self._at_targets(interleaved, lists), None, limits, rounds, below=below
            )
        if "interleaved" in query.forms and not query.predecessors and query.output == "all":
            return MultiSourceOutcome(interleaved, None, limits, rounds, below=below)
        out = None if self._rows is None else self._rows[:k]
        distance = interleaved.rows(self._columns, out)
        predecessor = gpu_steps.finish_each(self._single, sources, distance)
        return MultiSourceOutcome(distance, predecessor, limits, rounds, below=below)

    def _search_upward(self, sources: np.ndarray) -> None:
        """Search upward from all sources; with more capacity if a search reaches more vertices than
        expected.
        """
        graph = self._graph
        edges = self._device.upward
        while True:
            self._counts.data.memset_async(0, self._counts.nbytes)
            self.is_set.data.memset_async(0, self.is_set.nbytes)
            args = self._arguments(
                **edges._asdict(),
                sources=cp.asarray(sources),
                n_sources=np.int64(sources.size),
                taken=self._counts[:1],
                overflows=self._counts[1:2],
            )
            launch_blocks(self._kernels[_SEARCH], min(sources.size, self.sums.shape[0]), args)
            if self._capacity >= graph.n_vertices or not int(self._counts[1:2].get()[0]):
                return
            self.sums = self.marks = self.queues = self.reached = self.reached_sums = None
            self._allocate_searches(min(4 * self._capacity, graph.n_vertices))

    def _clear_and_place(self, k: int) -> None:
        """Write the sums of the upward searches into lines, which they alone have set."""
        args = self._arguments(n_sources=np.int64(k), n_places=np.int64(self._sweep.n_places))
        launch(self._kernels[_CLEAR], self._sweep.n_places, args)
        launch_blocks(self._kernels[_PLACE], min(k, max_grid(_SEARCH_BLOCK)), args)

    def _arguments(self, **own: Any) -> Named:
        places = self._sweep.places
        of_all = {
            "capacity": np.int64(self._capacity),
            "pitch": np.int64(self._lanes),
            "places": places,
        }
        return named(self, self._graph, **of_all, **own)

    def _prepare_sweep(self) -> list[Any]:
        """Prepare the launches of a sweep, which are the same each time.

        The first levels, while they have few vertices, take one launch. Each further level takes
        one.
        """
        sweep = self._sweep
        sizes = np.diff(sweep.levels)
        if (sizes > _NARROW).any():
            n_top = int(np.argmax(sizes > _NARROW))
        else:
            n_top = sizes.size
        downward = {**sweep.downward._asdict(), "by_level": sweep.by_level}
        of_top = {"level_offsets": sweep.level_offsets, "n_levels": np.int64(n_top)}
        of_level = {"first": np.int64(0), "n_places": np.int64(0), "chunks_per_item": np.int32(0)}
        common = self._arguments(**downward, **of_top, **of_level, largest=self._counts[2:])
        if n_top:
            launches = [prepare(self._kernels[_TOP], self._lanes // WARP, common)]
        else:
            launches = []
        for level in range(n_top, sizes.size):
            n_items, per_item = share_chunks(int(sizes[level]), self._lanes, self._kind)
            args = common | {
                "first": np.int64(sweep.levels[level]),
                "n_places": np.int64(sizes[level]),
                "chunks_per_item": np.int32(per_item),
            }
            launches.append(prepare(self._kernels[_LEVEL], blocks_for(_LEVEL, n_items), args))
        return launches

    def _at_targets(self, interleaved: InterleavedDistances, lists) -> Any:
        """Distances at the targets of each source, of shape (n_targets,)."""
        rows = np.repeat(np.arange(lists.offsets.size - 1), np.diff(lists.offsets))
        sums = interleaved.lines[cp.asarray(lists.vertices), cp.asarray(rows)]
        return cp.where(sums < self._bound, sums * interleaved.unit, np.inf).astype(
            interleaved.dtype
        )
