"""Many searches at once on a GPU over a contraction hierarchy; see hierarchy_sweep.cu, and
``hierarchy_sweep`` for the CPU. Hub labels, if the graph has some, answer few targets per source.

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
    words_per_thread,
)
from ...cuda.kernel_spec import WARP, make_entries
from ...cuda.launch import (
    Named,
    PackedLaunches,
    blocks_for,
    max_grid,
    named,
    prepare,
    resident_threads,
    threads_per_multiprocessor,
)
from ...hierarchy.on_gpu import on_gpu
from ...hub_labels.on_gpu import on_gpu as labels_on_gpu
from ...search.answering import answering_labels
from ...search.strategy import MultiSourceOutcome
from .. import gpu_steps
from . import source_per_block
from .hierarchy_sweep import first_beyond

GROUP = 1024
group_size = partial(min, GROUP)
_SEARCH_BLOCK = 128
_TOP_BLOCK = 1024
_LEVEL_BLOCK = 256
_SEARCHES_PER_PROCESSOR = 4  # blocks that search upward, each with a sum per vertex
# reached vertices of a search at first; road networks have some hundred, lattices some thousand
_CAPACITY = 4096
_BYTES_PER_ANSWER = 40  # of a pair that labels answer: its ends, its sum, and two arrays on the way
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
    """Return the number of sums per line for ``group`` sources: a multiple of a warp, 32. Above 64
    sources it is a multiple of 128, so that each thread of a warp reads 16 bytes.
    """
    step = WARP if group <= 2 * WARP else 4 * WARP
    return -(-group // step) * step


def _searches_at_once(group: int) -> int:
    """Return how many of ``group`` sources are searched from at a time, a block each."""
    multiprocessors = max(1, resident_threads() // threads_per_multiprocessor())
    return min(group, _SEARCHES_PER_PROCESSOR * multiprocessors)


def memory(shape, query, group: int) -> int:
    """Return the bytes of a run: the hierarchy, lines, the sums of upward searches, and rows or
    what the query asks for; or labels, and the pairs that they answer.

    ``shape`` is a ``Shape`` (size of the graph), ``query`` a ``Query``, and ``group`` the number of
    sources that are searched together.
    """
    n = shape.n_vertices
    # Hub labels: a list of hubs and sums per vertex, and per direction of a directed graph.
    if shape.hubs:
        lists = n * (8 + int(shape.hubs * (4 + max(shape.weight, 4))))
        answers = int(group * shape.per_source * (_BYTES_PER_ANSWER + shape.weight))
        return n * 4 + lists * (1 + shape.directed) + answers

    # Per vertex and direction an offset, a place in its level, and edges with heads and weights.
    blocks = _searches_at_once(group)
    sum_bytes = max(shape.weight, 4)
    hierarchy = n * (8 + 4 + _EDGES * (4 + sum_bytes)) * (2 if shape.directed else 1)
    # Searches: per block two queues, and a sum and a bit per vertex; per source what it reaches.
    lists = blocks * 2 * 4 * _CAPACITY + group * _CAPACITY * (4 + sum_bytes)
    searches = blocks * (n * sum_bytes + n // 8) + lists

    # Lines, and rows of the result.
    if query.output == "targets" and query.targets is not None:
        columns = query.targets.size
    else:
        columns = n
    if query.predecessors:
        predecessor_bytes = group * n * shape.index + gpu_steps.memory(n, shape.n_edges, True)
    else:
        predecessor_bytes = 0
    lines = _lanes(group) * n * sum_bytes
    rows = group * columns * shape.weight
    return hierarchy + searches + lines + rows + predecessor_bytes


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return how much work all searches take, by terms of the cost model: ``"start"`` counts
    groups, ``"vertex"`` sums of lines, and ``"write"`` distances of 4 bytes.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``shape`` is a
    ``Shape`` (size of the graph), and ``group`` the number of sources that are searched together.
    ``machine`` is ignored: no term depends on its cores or caches. Hub labels, or targets of all
    sources, leave out ``"write"``.
    """
    groups = -(-n_sources // max(group, 1))
    # Hub labels answer, each with ``hubs`` rows on average. A pair reads the rows of two labels,
    # which is counted as one sum of a line per row: a sum takes about as many bytes.
    if shape.hubs:
        return {"start": groups, "vertex": n_sources * shape.per_source * shape.hubs}
    lanes = groups * _lanes(min(group, n_sources))
    # With targets only the part of the hierarchy above them is swept. Its size is not known, and is
    # taken as a sixteenth.
    if shape.keep == "targets":
        return {"start": groups, "vertex": lanes * shape.n_vertices / 16}
    return {
        "start": groups,
        "vertex": lanes * shape.n_vertices,
        "write": n_sources * shape.n_vertices * shape.weight / 4,
    }


def kernels(graph, query, group: int) -> list[Request]:  # noqa: ARG001
    """Return the kernels that ``plan`` needs for the same arguments, so that they can be compiled
    before it is called. Of ``graph`` only the hierarchy of weights matters, and ``query`` is
    ignored.
    """
    # Kernels get the float type of the width of the sums (``as_wide_as``) in place of that of
    # weights, and take sums as the integers of this width.
    sum_dtype = graph.derived.known_hierarchy("weights").dtype
    entry = _SEARCH.variant(WORDS=words_per_thread(_lanes(group), sum_dtype))
    return [
        Request(entry, np.int32, as_wide_as(sum_dtype)),
        *likely_kernels(sum_dtype, graph.weights.dtype),
    ]


def plan(graph, query, group: int):
    """Allocate and compile; return ``traverse(sources, lists=None)`` for up to ``group`` vertex
    numbers at once.

    ``graph`` is a ``Graph`` on a GPU that has a hierarchy of its weights, and ``query`` a
    ``Query``, the options of the search.
    """
    # Hub labels, if the graph has some and they answer this query faster than a search; else None.
    labels = answering_labels(graph, query, "weights")
    if labels is not None:
        return _plan_labels(graph, query, labels)
    run = _Run(graph, query, group)

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome: distances of all vertices
        or at the targets, in a form that ``query.forms`` admits, and predecessors if they are
        wanted.

        ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else None.
        If the query outputs distances at targets, those at the lists are one array, list after
        list.
        """
        return run.search(np.asarray(sources, np.int64), lists)

    return traverse


def _plan_labels(graph, query, labels):
    """Return ``traverse(sources, lists=None)``, which finds the distance of each pair of a source
    and one of its targets on the GPU, from the hub labels ``labels``.
    """
    hierarchy = graph.derived.known_hierarchy("weights")
    dtype = graph.weights.dtype
    device = labels_on_gpu(labels)
    # Where the type of the distances does not hold the limit, only unreached sums are left out, so
    # that the check for rounded sums sees all others.
    bound = int(first_beyond(query.limit, hierarchy, dtype))
    # Below EXACT_BELOW the type of the distances holds all integers. Distances of integer weights
    # are checked by the caller.
    needs_check = not graph.integer_weights and hierarchy.longest >= EXACT_BELOW[dtype]
    below = math.nextafter(hierarchy.longest * hierarchy.unit, math.inf)  # above all distances

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Look up the distances at the targets of the vertex numbers ``sources``, and return the
        outcome, which has nothing else.

        ``lists`` (``TargetLists``) are the targets of each source: the distances are one array,
        list after list. With None all sources have the targets of the query, and the distances have
        a row per source. Where a sum may have been rounded, all sources are searched by
        ``source_per_block`` instead.
        """
        source_numbers = np.asarray(sources, np.int64)
        k = source_numbers.size
        if lists is None:
            sizes = query.targets.size  # of all sources
            ends = np.tile(query.targets, k)
        else:
            sizes = np.diff(lists.offsets)  # of each source
            ends = lists.vertices
        begins = cp.asarray(np.repeat(source_numbers, sizes))
        # int64 sums in units, one per pair; a sum of ``bound`` or more is no distance
        sums = device.between(begins, cp.asarray(np.asarray(ends, np.int64)))

        # Sums that floats would round depend on the order of addition. Then all sources are
        # searched, as a search adds from the source on.
        is_reached = sums < bound
        if needs_check and bool((is_reached & (sums >= EXACT_BELOW[dtype])).any()):
            return source_per_block.plan(graph, query, k)(sources, lists)
        distance = cp.where(is_reached, sums * hierarchy.unit, np.inf).astype(dtype)
        if lists is None:
            distance = distance.reshape(k, sizes)
        limits = [query.limit] * k
        return MultiSourceOutcome(distance, None, limits, [hierarchy.levels] * k, below=below)

    return traverse


class _Run:
    """The state of the searches from a group of sources: lines, and what blocks need that search
    upward.

    A line holds the sums of one vertex from all sources, side by side: a lane per source. A place
    is the number of a line. A search upward follows the edges of the hierarchy from a source to
    vertices above it. Attributes without an underscore are passed to kernels by their names. n is
    the number of vertices, and ``blocks`` search at once.

    - ``lines``: sums in units, of shape (places, lanes): the distances of each place from all
      sources.
    - ``is_set``: uint8 of shape (places,): 1 where a search upward has set the line.
    - ``sources``: int64 of shape (group,): vertex numbers.
    - ``sums``: of shape (blocks, n): the sums of one search, all unreached before and after.
    - ``marks``: uint32 bits of shape (blocks, words), one per vertex of a search.
    - ``queues``: int32 of shape (blocks, 2, capacity): vertices of a search.
    - ``reached``, ``reached_sums``: of shape (group, capacity): the vertices that the search of each
      source reaches, and their sums. ``n_reached``, int64 of shape (group,), says how many.
    - ``_bound``: the smallest sum that is no distance of the result.
    - ``_columns``: the place of each target on the GPU, None if all vertices are the result.
    - ``_rows``: memory for distances of shape (group, columns), None where no rows are written.
    - ``_single``: state of one search, which finds predecessors; None if none are wanted.
    - ``_counts``: int64 of shape (3,): sources that blocks have taken, searches that reached more
      than ``capacity`` vertices, and the largest sum.
    """

    def __init__(self, graph, query, group: int):
        """Compile the kernels, and allocate for up to ``group`` sources."""
        self._graph = graph
        self._query = query
        self._group = group
        self._hierarchy = hierarchy = graph.derived.known_hierarchy("weights")
        self._device = on_gpu(hierarchy)  # its edges upward, and its sweep, in GPU memory
        self._sum_dtype = sum_dtype = hierarchy.dtype
        self._lanes = lanes = _lanes(group)
        self._bound = int(first_beyond(query.limit, hierarchy, graph.weights.dtype))

        # A sweep of the whole hierarchy, or of the part above the targets.
        self._sweep = self._device.sweep
        self._columns = None
        if query.output == "targets" and query.targets is not None:
            self._sweep, columns = self._device.restrict(query.targets)
            self._columns = cp.asarray(columns)

        # Kernels get the float type of the width of the sums (``as_wide_as``) in place of that of
        # weights, and take sums as the integers of this width.
        words = words_per_thread(lanes, sum_dtype)  # of 32 bits, which a thread reads at once
        self._kernels = {
            entry: kernel(entry.variant(WORDS=words), np.int32, as_wide_as(sum_dtype))
            for entry in ENTRIES
        }
        # Lines, and rows of distances unless the caller takes lines or each source has its own
        # targets.
        self.lines = cp.empty((self._sweep.n_places, lanes), sum_dtype)
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
        # Below EXACT_BELOW the type of the distances holds all integers. Distances of integer
        # weights are checked by the caller.
        self._needs_check = (
            not graph.integer_weights and hierarchy.longest >= EXACT_BELOW[graph.weights.dtype]
        )

        # What searches upward need, and launches that are the same for each group.
        self._counts = cp.zeros(3, np.int64)
        self.sources = cp.empty(group, np.int64)
        self._allocate_searches(min(_CAPACITY, graph.n_vertices))
        n_lines = self._sweep.n_places
        self._clear = prepare(self._kernels[_CLEAR], blocks_for(_CLEAR, n_lines), self._arguments())
        self._levels = self._prepare_sweep()

    def _allocate_searches(self, capacity: int) -> None:
        """Allocate what blocks need that search upward, for ``capacity`` reached vertices per
        search.
        """
        n = self._graph.n_vertices
        blocks = _searches_at_once(self._group)
        # frees what there was before the next allocation
        self._searches: Any = None
        self._places: Any = None
        for name in ("sums", "marks", "queues", "reached", "reached_sums"):
            setattr(self, name, None)
        self._capacity = capacity
        self.sums = cp.full((blocks, n), UNREACHED[self._sum_dtype], self._sum_dtype)
        self.marks = cp.zeros((blocks, -(-n // 32)), np.uint32)
        self.queues = cp.empty((blocks, 2, capacity), np.int32)
        self.reached = cp.empty((self._group, capacity), np.int32)
        self.reached_sums = cp.empty((self._group, capacity), self._sum_dtype)
        self.n_reached = cp.empty(self._group, np.int64)
        # New launches, since earlier ones hold the addresses of the old arrays.
        self._searches = PackedLaunches(self._kernels[_SEARCH])
        self._places = PackedLaunches(self._kernels[_PLACE])

    def search(self, sources: np.ndarray, lists) -> MultiSourceOutcome:
        """Search from ``sources``, int64 vertex numbers, and return what the query asks for:
        distances at the targets of each source, interleaved lines, or rows with predecessors.

        ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else None.
        Where a sum may have been rounded, all sources are searched by ``source_per_block`` instead.
        """
        hierarchy = self._hierarchy
        query = self._query
        k = sources.size
        highest = self._sweep_from(sources)
        if self._needs_check and highest >= EXACT_BELOW[self._graph.weights.dtype]:
            # Sums that floats would round depend on the order of addition. Then all sources are
            # searched again, without the hierarchy, as a search adds from the source on.
            search_without_hierarchy = source_per_block.plan(self._graph, query, k)
            if lists is None:
                return search_without_hierarchy(sources)
            return search_without_hierarchy(sources, lists)

        # Sums beyond the limit are no distances.
        highest_within = min(highest, self._bound - 1)
        dtype = self._graph.weights.dtype
        scale = Scale(hierarchy.unit, dtype, self._bound, highest_within)
        # The lines as distances, of ``k`` lanes: ``scale`` turns sums in units into floats.
        interleaved = InterleavedDistances(self.lines, k, scale)
        rounds = [hierarchy.levels] * k
        limits = [query.limit] * k
        below = math.nextafter(interleaved.highest * hierarchy.unit, math.inf)  # above all of them
        # The result in one of three forms: distances at the targets, lines, or rows.
        if lists is not None and query.output == "targets":
            return MultiSourceOutcome(
                self._at_targets(interleaved, lists), None, limits, rounds, below=below
            )
        if "interleaved" in query.forms and not query.predecessors and query.output == "all":
            return MultiSourceOutcome(interleaved, None, limits, rounds, below=below)
        out = None if self._rows is None else self._rows[:k]
        distance = interleaved.rows(self._columns, out)
        # None if no predecessors are wanted.
        predecessor = gpu_steps.finish_each(self._single, sources, distance)
        return MultiSourceOutcome(distance, predecessor, limits, rounds, below=below)

    def _sweep_from(self, sources: np.ndarray) -> int:
        """Search upward from all sources and sweep; return the largest sum, in units.

        Where a search reaches more vertices than its arrays hold, all is done again with more
        capacity. That is rare. So the host does not wait for the searches before it launches the
        sweep, and asks only afterwards.
        """
        n = self._graph.n_vertices
        self.sources[: sources.size].set(sources)
        while True:
            self._launch_all(np.int64(sources.size))
            _, overflows, highest = self._counts.get().tolist()
            if not overflows or self._capacity >= n:
                return int(highest)
            self._allocate_searches(min(4 * self._capacity, n))

    def _launch_all(self, n_sources: np.int64) -> None:
        """Search upward from the first ``n_sources`` of ``sources``, write the sums that are found
        into lines, and sweep.
        """
        for array in (self._counts, self.is_set):
            array.data.memset_async(0, array.nbytes)
        # A block per search, up to as many as have memory; each takes one source after another.
        n_searching = min(int(n_sources), self.sums.shape[0])
        self._searches.launch_blocks(n_searching, 0, self._arguments, n_sources=n_sources)
        # The searches have flagged the lines that they reach. These become unreached in all lanes,
        # and then each search writes its sums to its own lane.
        self._clear()
        n_placing = min(int(n_sources), max_grid(_SEARCH_BLOCK))
        self._places.launch_blocks(n_placing, 0, self._arguments, n_sources=n_sources)
        for launch_level in self._levels:
            launch_level()

    def _arguments(self, **own: Any) -> Named:
        """Return what kernels may take, by name: edges and places of the hierarchy, attributes of
        this run, and arrays of the graph.

        ``own`` are further arguments of one kernel; they replace others of the same name.
        """
        shared = {
            **self._device.upward._asdict(),
            "capacity": np.int64(self._capacity),
            "pitch": np.int64(self._lanes),
            "places": self._sweep.places,
            "n_places": np.int64(self._sweep.n_places),
            "taken": self._counts[:1],
            "overflows": self._counts[1:2],
        }
        return named(self, self._graph, **(shared | own))

    def _prepare_sweep(self) -> list[Any]:
        """Return the launches of a sweep, which are the same each time, as functions without
        arguments.

        The first levels, while they have few vertices, take one launch. Each further level takes
        one.
        """
        sweep = self._sweep
        sizes = np.diff(sweep.levels)  # vertices per level, from the top to the bottom
        # The first level that is not narrow begins the further ones.
        if (sizes > _NARROW).any():
            n_top = int(np.argmax(sizes > _NARROW))
        else:
            n_top = sizes.size
        downward = {**sweep.downward._asdict(), "by_level": sweep.by_level}
        of_top = {"level_offsets": sweep.level_offsets, "n_levels": np.int64(n_top)}
        # placeholders, which the launch of each level replaces below; ``first`` is its first place
        of_level = {"first": np.int64(0), "n_places": np.int64(0), "chunks_per_item": np.int32(0)}
        common = self._arguments(**downward, **of_top, **of_level, largest=self._counts[2:])
        if n_top:
            launches = [prepare(self._kernels[_TOP], self._lanes // WARP, common)]
        else:
            launches = []
        for level in range(n_top, sizes.size):
            n_items, per_item = share_chunks(int(sizes[level]), self._lanes, self._sum_dtype)
            args = common | {
                "first": np.int64(sweep.levels[level]),
                "n_places": np.int64(sizes[level]),
                "chunks_per_item": np.int32(per_item),
            }
            launches.append(prepare(self._kernels[_LEVEL], blocks_for(_LEVEL, n_items), args))
        return launches

    def _at_targets(self, interleaved: InterleavedDistances, lists) -> Any:
        """Return the distances at the targets of each source, of shape (n_targets,), CuPy, in the
        order of ``lists``; infinite where unreached or beyond the limit.
        """
        # The source, and so the lane, of each target.
        rows = np.repeat(np.arange(lists.offsets.size - 1), np.diff(lists.offsets))
        sums = interleaved.lines[cp.asarray(lists.vertices), cp.asarray(rows)]
        return cp.where(sums < self._bound, sums * interleaved.unit, np.inf).astype(
            interleaved.dtype
        )
