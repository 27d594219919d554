"""Bit-parallel multi-source BFS on a GPU: one bit per source in a bitset per vertex. See also
``bit_parallel_cpu``.

Then, Kaufmann, Chirigati, Hoang-Vu, Pham, Kemper, Neumann, Vo. The more the merrier: efficient
multi-source graph traversal. PVLDB 8(4), 2014 (MS-BFS). See bit_parallel.cu. The host waits once
per level for a few counters. Graphs for which this method is chosen have few levels.

Memory accesses bound the time. With 1,024 sources a bitset has 128 bytes. An edge that leads to the
frontier reads one bitset; any other edge reads four bytes and a bit. The bitsets of kron20 have 134
MB, and those of its hubs fit into a cache of 50 MB. A level writes at most all bitsets of front,
seen and found, and one plane per one in the binary number of the level. The output reads the planes
and seen, and writes one byte per source and vertex.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..._arrays import Array, hops_dtype
from ...cuda import cp, graph_statistics
from ...cuda.compiler import Request, kernel, start_compiling
from ...cuda.csr_build import degree_statistics
from ...cuda.kernel_spec import WARP, Entry, make_entries
from ...cuda.launch import Named, PackedLaunches, launch, named
from ...search.strategy import MultiSourceOutcome
from ..tuning import BitParallelGpuTuning

WORD = 32
BITSET_WORDS = (1, 2, 4, 8, 16, 32)  # 32 words are one cache line
TILE = 128  # the pitch of distances is a multiple of this
PLANES = 4  # bit planes of hop counts that are allocated first
# Counters of 64 bits that a level leaves: vertices and edges of the next frontier, targets that
# some source has not reached, and edge chunks that are pushed.
_N_COUNTERS = 4
_COUNTER_WORDS = 2 * _N_COUNTERS

_BITS = Path(__file__).parents[1] / "kernels" / "bit_parallel.cu"
_LEVELS = Path(__file__).parents[1] / "kernels" / "bit_parallel_output.cu"
_DEFAULTS = BitParallelGpuTuning()
_SIZES = (("WORDS", 32), ("LANES", 8), ("CHUNK", _DEFAULTS.chunk))


_bits = make_entries(_BITS, _DEFAULTS.block, constants=_SIZES)
_levels = make_entries(_LEVELS, _DEFAULTS.block, constants=(*_SIZES[:2], ("TILE", TILE)))
_IDLE = _bits("bfs_bit_parallel_idle_warp")
_START = _bits("bfs_bit_parallel_start")
PULL = _bits("bfs_bit_parallel_pull_warp")
_LIST = _bits("bfs_bit_parallel_list")
_PUSH = _bits("bfs_bit_parallel_push_warp", item_threads=WARP)
_FINALIZE = _bits("bfs_bit_parallel_finalize_warp")
_MISSING = _bits("bfs_bit_parallel_missing_warp", item_threads=WARP)
LEFT = _bits("bfs_bit_parallel_left_warp", item_threads=WARP)
_WRITE = _levels("bfs_bit_parallel_write")
_COUNT = _levels("bfs_bit_parallel_count")
ADD = _levels("bfs_bit_parallel_add_warp")
PREDECESSORS = {
    np.dtype(hops): _levels(f"bfs_predecessors_{8 * np.dtype(hops).itemsize}_warp")
    for hops in ("int8", "int16", "int32")
}
ENTRIES = (
    _IDLE,
    _START,
    PULL,
    _LIST,
    _PUSH,
    _FINALIZE,
    _MISSING,
    LEFT,
    _WRITE,
    _COUNT,
    ADD,
    *PREDECESSORS.values(),
)


def group_size(n_sources: int) -> int:
    """Return how many sources are searched together.

    It is the number of bits of a bitset: of the smallest one that has a bit for each of
    ``n_sources``, or of the largest one.
    """
    words = next((words for words in BITSET_WORDS if n_sources <= words * WORD), BITSET_WORDS[-1])
    return WORD * words


def row_pitch(n: int) -> int:
    """Return the length of a row of ``n`` distances in memory: ``n`` rounded up to whole tiles of
    TILE elements.
    """
    return -(-n // TILE) * TILE


def memory(shape, query, group: int) -> int:
    """Return the bytes of a run.

    Four bitsets per vertex, and those of the planes; six bitmaps; edge chunks; distances,
    predecessors; and the reverse graph. The depth is known of one search only, and others may go
    twice as deep.

    ``shape`` is a ``Shape`` (size and depth of the graph), ``query`` a ``Query``, and ``group`` the
    number of sources that are searched together.
    """
    n = shape.n_vertices
    m = shape.n_edges
    depth = 2 * shape.depth

    # Bitsets: seen, front, found and gathered, and the planes that hold the hop counts.
    planes = 0
    if query.output != "counts":
        n_planes = depth.bit_length()
        # Where planes run out, their number about doubles. Old and new ones exist together while
        # they are copied.
        if n_planes <= PLANES:
            planes = PLANES
        else:
            planes = PLANES * (2 ** (-(-n_planes // PLANES)).bit_length())
    bitsets = (4 + planes) * group // 8 * n
    # Edge chunks of 8 bytes: those of a pushed frontier, and those of all hubs.
    tuning = query.get_tuning(BitParallelGpuTuning)  # the defaults, unless the query has its own
    chunks = 8 * (_push_capacity(n, m, tuning) + 2 * m // tuning.chunk + 2)

    # Results: distances of all vertices; or of the targets, whose bitsets are copied first.
    if query.output == "all":
        results = group * row_pitch(n) * hops_dtype(depth).itemsize
    else:
        results = 0
    predecessor_bytes = group * n * shape.index if query.predecessors else 0
    if query.output == "targets":
        # targets per source may be all vertices
        if query.targets is None:
            columns = n
        else:
            columns = query.targets.size
        results = (
            columns * group // 8 * (1 + planes)
            + group * row_pitch(columns) * hops_dtype(depth).itemsize
        )
    if query.output == "counts":
        counts = 24 * group * depth
    else:
        counts = 0
    reverse = m * shape.index + 8 * n if shape.directed else 0
    return (
        bitsets + 6 * (n // 8 + 4) + chunks + results + predecessor_bytes + counts + reverse + 1024
    )


def terms(shape, n_sources: int, group: int, machine) -> dict[str, float]:  # noqa: ARG001
    """Return how much work all searches take, by terms of the cost model: the host waits at each
    level, which visits edges and reads each bitset once.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``shape`` is a
    ``Shape`` (size and depth of the graph), and ``group`` the number of sources that are searched
    together. ``machine`` is ignored: no term depends on its cores or caches.
    """
    groups = -(-n_sources // group)
    bitset_bytes = group // 8
    group_sources = min(group, n_sources)
    levels = groups * shape.likely_depth  # as many as the deepest search has
    # The mean share of the vertices in a frontier. By it, either all levels are pulled or none.
    frontier = shape.frontier_share(group_sources)
    pulled = levels * (frontier > 1 / _DEFAULTS.push_vertices)
    edges = shape.n_edges * shape.edge_share(group_sources)  # that some source of a group visits
    return {
        "start": groups,
        # sort, reverse: the reversed graph is built once, and its edges are sorted
        "sort": shape.directed,
        "reverse": shape.n_edges * shape.directed,
        "level": levels,
        # bytes of bitsets over pushed edges
        "share": (levels - pulled) * shape.n_edges * frontier * bitset_bytes,
        "vertex": levels * shape.n_vertices * bitset_bytes,  # bytes of bitsets of all vertices
        "edge": pulled * edges,  # edges that are pulled
        # bytes of the bitsets that edges read, at least 32 per edge, and of six bitsets per vertex
        "row": groups * (edges * max(bitset_bytes, 32) + 6 * shape.n_vertices * bitset_bytes),
        # distances, where the query outputs those of all vertices
        "write": n_sources * shape.n_vertices * (shape.keep == "all"),
    }


def plan(graph, query, group: int):
    """Allocate and compile; return ``traverse(sources, lists=None)`` for up to ``group`` vertex
    numbers at once.

    ``graph`` is a ``Graph`` on a GPU, and ``query`` a ``Query``, the options of the search.
    """
    return traverse_by(GroupRun(graph, query, group))


def traverse_by(run: GroupRun):
    """Return ``traverse(sources, lists=None)``, which searches with the state ``run``."""
    graph = run.graph
    query = run.query

    def traverse(sources, lists=None) -> MultiSourceOutcome:
        """Search from the vertex numbers ``sources``. Return the outcome: a row per source of what
        ``query.output`` asks for, counts or distances, and predecessors if they are wanted.

        ``lists`` (``TargetLists``) are the targets of each source, if each has its own, else None.
        All searches then end once every source has reached the targets of all. If the query outputs
        distances at targets, these are one array, list after list.
        """
        sources = np.asarray(sources, np.int64)
        k = sources.size
        all_targets = None if lists is None else lists.union()
        if all_targets is not None:
            run.wait_for(all_targets)
        rounds, depth, limit = run.search(sources)
        distance = predecessor = counts = None
        if query.output == "counts":
            counts = run.counts(k, depth)
        else:
            distance = run.distances(k, depth)
            if lists is not None and query.output == "targets":
                # Each source has distances at the targets of all sources; take its own of them.
                distance = lists.take(distance, all_targets)
        if query.predecessors:
            predecessor = predecessors_from_hops(graph, run.kernels, sources, run.padded)
        return MultiSourceOutcome(distance, predecessor, [limit] * k, [rounds] * k, counts)

    return traverse


def predecessors_from_hops(graph, kernels, sources, padded):
    """Return predecessors of shape (k, n) from the hop counts of k searches.

    ``kernels`` maps the entries of ``PREDECESSORS`` to compiled kernels. ``sources`` are vertex
    numbers of shape (k,). ``padded`` has the hop counts, of shape (k, ``row_pitch(n)``): each row
    has unused elements behind the last vertex.
    """
    k = sources.size
    n = graph.n_vertices
    predecessor = cp.empty((k, n), graph.targets.dtype)
    reverse = graph.reverse
    args = {
        "in_offsets": reverse.offsets,
        "in_targets": reverse.targets,
        "n_vertices": np.int64(n),
        "sources": cp.asarray(sources),
        "n_sources": np.int64(k),
        "pitch": np.int64(padded.shape[1]),
        "distance": padded,
        "predecessor": predecessor,
    }
    # One thread per source and vertex, with whole warps per source.
    launch(kernels[PREDECESSORS[padded.dtype]], k * (-(-n // WARP)) * WARP, args)
    return predecessor


def _push_capacity(n: int, m: int, tuning: BitParallelGpuTuning) -> int:
    """Return the maximum number of edge chunks of a frontier that is pushed, for n vertices and m
    edges.

    A larger frontier is not pushed. A vertex has at most one chunk that is not full.
    """
    return n // max(tuning.push_vertices, 1) + m // max(tuning.push_edges, 1) // tuning.chunk + 1


def kernels(graph, query, group: int) -> list[Request]:
    """Return the kernels that ``plan`` needs for the same arguments, so that they can be compiled
    before it is called.
    """
    variants = _variants(graph, group // WORD, ENTRIES, query.get_tuning(BitParallelGpuTuning))
    return [Request(entry, graph.targets.dtype) for entry in variants.values()]


def kernels_for(
    graph, words: int, entries, tuning: BitParallelGpuTuning = _DEFAULTS
) -> dict[Entry, Any]:
    """Return the compiled kernels of ``entries``, by entry, for bitsets of ``words`` words of 32
    bits.
    """
    variants = _variants(graph, words, entries, tuning)
    index = graph.targets.dtype
    # Begin with all of them before the first is waited for, so that they compile at the same time.
    start_compiling(Request(variant, index) for variant in variants.values())
    return {entry: kernel(variant, index) for entry, variant in variants.items()}


def _variants(graph, words: int, entries, tuning: BitParallelGpuTuning) -> dict[Entry, Entry]:
    """Return for each entry its variant with the compile-time constants for a graph, and for
    bitsets of ``words`` words of 32 bits.
    """
    # Where few vertices have most edges, more lanes of a warp share a bitset.
    mean, _, max_degree = degree_statistics(graph.offsets)
    if max_degree >= tuning.uneven_from * mean:
        lanes = tuning.uneven_lanes
    else:
        lanes = tuning.even_lanes
    shared_constants: dict[str, Any] = {"WORDS": words, "LANES": min(words, lanes)}
    variants = {}
    for entry in entries:
        constants = shared_constants
        if entry.file == _BITS:  # the only file that cuts adjacency lists into chunks
            constants = shared_constants | {"CHUNK": tuning.chunk}
        variants[entry] = entry.variant(block=tuning.block, **constants)
    return variants


class GroupRun:
    """The state of a group: bitsets, bitmaps over the vertices, and the counters that a level
    leaves for the next one.

    A bitset has ``words`` words of 32 bits, one bit per source. A bitmap has one bit per vertex.
    Attributes without an underscore are passed to kernels by their names.

    - ``seen``, ``front``, ``found``: bitsets of shape (n, words): the sources that have reached a
      vertex, those that reached it in the last level, and those that reach it in this level.
    - ``gathered``: bitsets of shape (n, words), to which several threads add bits of this level. All
      bits are 0 between levels.
    - ``in_front``, ``is_found``, ``touched``: bitmaps of the vertices whose ``front``, ``found`` or
      ``gathered`` has a bit.
    - ``done``: bitmap of the vertices that all sources with a frontier have reached.
    - ``idle``: bitmap with which ``done`` begins: the vertices without an incoming edge.
    - ``planes``: bit planes of the hop counts, bitsets: row j * n + v holds the sources whose hop
      count of vertex v has bit j of its binary number set. None if only counts are wanted.
    - ``in_offsets``, ``in_targets``: the edges of the reversed graph.
    - ``first_word``, ``end_word``, ``first_edge``: the bitmap words whose vertices a pull visits, here
      all, and the position of the first of their edges.
    - ``hub_chunks``: edge chunks of adjacency lists of ``tuning.chunk`` edges or more, uint64: the
      number of the chunk in its list in the upper half, and the vertex in the lower.
    - ``chunks``: edge chunks, of the same form, of a frontier that is pushed, at most ``capacity``.
    - ``_state``: two uint32 arrays, of which a level reads one and writes the other. Each begins with
      _N_COUNTERS counters of 64 bits. After them is the bitset of the sources that have a frontier.
    - ``target_vertices``: int64 array; a search may end once all sources have reached these. None
      without targets.
    - ``_distance``, ``padded``: hop counts in the memory that groups share, and the rows of the last
      group in it, of shape (k, pitch). None before the first group.
    - ``_level_counts``: per level the number of vertices that each source discovers, int64 of shape
      (32 * words,).
    """

    def __init__(self, graph, query, group: int):
        """Compile the kernels, and allocate for up to ``group`` sources, a multiple of WORD."""
        n = graph.n_vertices
        m = graph.n_edges
        words = group // WORD
        self.graph = graph
        self.query = query
        self._words = words
        self.n = np.int64(n)
        self._tuning = tuning = query.get_tuning(BitParallelGpuTuning)
        reverse = graph.reverse
        self.in_offsets = reverse.offsets
        self.in_targets = reverse.targets
        self.kernels = kernels_for(graph, words, ENTRIES, tuning)
        # Bitsets, which ``_start`` clears. Hop counts need planes, counts of levels do not.
        self.seen, self.front, self.found, self.gathered = (
            cp.empty((n, words), np.uint32) for _ in range(4)
        )
        self.planes: Array = None if query.output == "counts" else self._new_planes(PLANES)

        bitmap = -(-n // 32)  # words of a bitmap, of 32 vertices each
        self.in_front, self.is_found, self.done, self.idle, self.touched = (
            cp.empty(bitmap, np.uint32) for _ in range(5)
        )
        self.first_word = np.int64(0)
        self.end_word = np.int64(bitmap)
        self.first_edge = np.int64(0)
        launch(self.kernels[_IDLE], bitmap * 32, (self.in_offsets, self.n, self.idle))
        # Edge chunks of long adjacency lists, for pulls, and memory for those of a push.
        self.hub_chunks = graph_statistics.chunks_of_hubs(self.in_offsets, tuning.chunk)
        self.n_hub_chunks = np.int64(self.hub_chunks.size)
        self.capacity = np.int64(_push_capacity(n, m, tuning))
        self.chunks = cp.empty(int(self.capacity), np.uint64)
        # Counters and the bitset of a level, twice, and a copy of the counters in pinned memory.
        self._state = [cp.zeros(_COUNTER_WORDS + max(words, 4), np.uint32) for _ in range(2)]
        self._counters_on_host = np.frombuffer(
            cp.cuda.alloc_pinned_memory(8 * _N_COUNTERS), np.int64, _N_COUNTERS
        )
        # Results of the last group.
        self.target_vertices = query.copy_targets_to_gpu()
        self._distance: Array = None
        self.padded: Array = None
        self._level_counts: list[Array] = []
        self.launches = self._new_launches()

    def wait_for(self, targets) -> None:
        """Set the targets of the next searches, which may end once all sources have reached all of
        them.

        ``targets`` are vertex numbers.
        """
        self.target_vertices = cp.asarray(targets, np.int64)

    def _new_launches(self) -> dict[Entry, PackedLaunches]:
        """Return the launches of the kernels that every level takes, by entry.

        Levels swap two sets of arrays. The arguments are packed once for each set.
        """
        return {entry: PackedLaunches(self.kernels[entry]) for entry in (PULL, _PUSH, _FINALIZE)}

    def _new_planes(self, n_planes: int):
        """Allocate ``n_planes`` bit planes of the hop counts, whose bits are not cleared."""
        return cp.empty((n_planes * self.graph.n_vertices, self._words), np.uint32)

    def search(self, sources) -> tuple[int, int, int | None]:
        """Search level by level until no vertex is discovered, the limit of the query is reached,
        or all targets are.

        ``sources`` are vertex numbers, int64 of shape (k,). Return the number of levels that were
        searched; the last level that discovered a vertex; and the level up to which distances are
        complete, None for all.
        """
        query = self.query
        # vertices and edges of the frontier, and targets that some source has not reached
        vertices, edges, missing = self._start(sources)
        level = depth = 0
        while vertices:
            depth = level  # the frontier has vertices, so this level is not empty
            if query.limit is not None and level >= query.limit:
                return level, depth, query.limit
            if self.target_vertices is not None and not missing:
                return level, depth, level
            level += 1
            vertices, edges, missing = self._step(level, vertices, edges)
        return level, depth, query.limit

    def _start(self, sources) -> tuple[int, int, int]:
        """Clear the state of the last group, and put each source on the frontier of its search.

        Return the vertices and edges of the first frontier, and the number of targets that are not
        reached, as ``_read_counters`` does.
        """
        clear(self.seen, self.gathered, self.in_front, self.touched, *self._state)
        # Bitsets outside the frontier are never read. The kernel adds bits to those of the sources.
        self.front[cp.asarray(sources)] = 0
        self.done[...] = self.idle

        # A bit for each source; the other lanes have no search.
        lanes = np.zeros(self._words * WORD, np.uint8)
        lanes[: sources.size] = 1
        alive = np.packbits(lanes, bitorder="little").view(np.uint32)
        self._alive()[...] = cp.asarray(alive)
        args = self.arguments(sources=cp.asarray(sources), n_sources=np.int64(sources.size))
        launch(self.kernels[_START], sources.size, args)
        self._level_counts = [cp.asarray(lanes.astype(np.int64))]
        return self._read_counters()

    def _counters(self):
        """Return the int64 counters that the current level writes, of shape (_N_COUNTERS,)."""
        return self._state[0][:_COUNTER_WORDS].view(np.int64)

    def _alive(self):
        """Return the bitset of the sources that have a frontier after the current level, so that
        their searches continue.
        """
        return self._state[0][_COUNTER_WORDS : _COUNTER_WORDS + self._words]

    def _read_counters(self) -> tuple[int, int, int]:
        """Return the numbers of vertices and edges of the frontier, and of targets that some source
        with a frontier has not reached. The last number is 0 without targets. The host waits for
        the level here.
        """
        if self.target_vertices is not None:
            size = self.target_vertices.size
            n_targets = np.int64(size)
            args = (self.target_vertices, n_targets, self.seen, self._alive(), self._counters())
            launch(self.kernels[_MISSING], size, args)
        self._counters().get(out=self._counters_on_host)
        # The fourth counter, of edge chunks, is for kernels only.
        return tuple(self._counters_on_host[:3].tolist())

    def _step(self, level: int, vertices: int, edges: int) -> tuple[int, int, int]:
        """Find the vertices at ``level``, and make them the frontier.

        ``vertices`` and ``edges`` are the numbers of those of the current frontier. Return the same
        of the next frontier, and the number of targets that are not reached, as ``_read_counters``
        does.
        """
        self._make_planes(level)
        graph = self.graph
        # What the last level has left is read, and the other copy is written.
        counters = self._counters()
        alive = self._alive()
        self._state.reverse()
        clear(self._state[0])

        n = self.n
        threads = int(self.n + 31) // 32 * WARP  # one warp per word of a bitmap
        tuning = self._tuning
        # Push a frontier of few vertices and few edges.
        is_pushed = (
            vertices * tuning.push_vertices <= n and edges * tuning.push_edges <= graph.n_edges
        )
        # Levels exchange two pairs of arrays. Packed arguments are kept for each state of that
        # exchange, which these two addresses tell.
        array_addresses = self.front.data.ptr, counters.data.ptr
        # ``keeps_found``: a pull sets bits of ``is_found``, to which the last kernel adds others.
        changed = {"level": np.int32(level), "keeps_found": np.int32(not is_pushed)}

        def pack() -> Named:
            """Return the arguments of kernels; the next level has ``alive_next`` as ``alive``."""
            return self.arguments(alive=alive, alive_next=self._alive())

        if is_pushed:
            # The frontier is listed in chunks of edges, by a thread per word of its bitmap. Warps
            # then push the chunks. A vertex has at most one chunk that is not full.
            capacity = self.capacity
            args = (graph.offsets, n, self.in_front, capacity, self.chunks, counters)
            launch(self.kernels[_LIST], threads // WARP, args)
            max_chunks = min(vertices + edges // tuning.chunk, int(capacity))
            self.launches[_PUSH].launch(
                max_chunks, array_addresses, lambda: self.arguments(counters=counters)
            )
        else:
            self.pull(array_addresses, pack, changed)

        # Bits that several threads have gathered are moved: all of a push, and of a pull those of
        # hubs.
        if is_pushed or self.hub_chunks.size:
            self.launches[_FINALIZE].launch(threads, array_addresses, pack, **changed)

        self.front, self.found = self.found, self.front
        self.in_front, self.is_found = self.is_found, self.in_front
        if self.query.output == "counts":
            self.count_level(level)
        return self._read_counters()

    def pull(
        self, key: tuple[int, ...], pack: Callable[[], Named], changed: dict[str, Any]
    ) -> None:
        """Launch the kernel in which all vertices search their incoming edges.

        The arguments are those of ``PackedLaunches.launch``: ``key`` names the set of arrays,
        ``pack()`` returns the arguments by name, and ``changed`` are those that differ per level.
        """
        self.launches[PULL].launch(self.in_front.size * WARP, key, pack, **changed)

    def arguments(self, **own: Any) -> Named:
        """Return what kernels may take, by name: attributes of this run, and arrays of the graph.

        ``own`` are further arguments of one kernel; they replace others of the same name.
        """
        return named(self, self.graph, **{"counters": self._counters(), **own})

    def _make_planes(self, level: int) -> None:
        """Make sure that there is a clear plane for each bit that the number ``level`` is the first
        to have.
        """
        n = self.graph.n_vertices
        n_planes = level.bit_length()
        # Only a power of two has a bit that no smaller number has.
        is_power_of_two = level == 1 << (n_planes - 1)
        if self.planes is None or not is_power_of_two:
            return
        if n_planes * n > self.planes.shape[0]:
            old_planes = self.planes
            # twice the planes there were, so that planes are copied seldom
            self.planes = self._new_planes(2 * (n_planes - 1))
            self.planes[: old_planes.shape[0]] = old_planes
            self.launches = self._new_launches()  # earlier launches hold the address of old planes
        clear(self.planes[(n_planes - 1) * n : n_planes * n])

    def count_level(self, level: int) -> None:  # noqa: ARG002
        """Count the vertices that each source has discovered in this level, which are the frontier.

        ``level`` is for a subclass; here the counts are appended.
        """
        counts = cp.zeros(self._words * WORD, np.int64)
        launch(
            self.kernels[_COUNT],
            self.graph.n_vertices,
            (self.front, self.in_front, self.n, counts),
        )
        self._level_counts.append(counts)

    def distances(self, k: int, depth: int):
        """Return the hop counts of the first ``k`` sources, -1 where unreached, of shape (k, n), or
        (k, n_targets) if the query asks for targets.

        The type is the narrowest one that holds ``depth``, the largest hop count. The array is
        valid until the next call.
        """
        n = self.graph.n_vertices
        n_planes = depth.bit_length()
        dtype = hops_dtype(depth)
        seen = self.seen
        planes = self.planes
        if self.query.output == "targets":
            columns = self.target_vertices
            seen = seen[columns]
            planes = cp.ascontiguousarray(
                planes.reshape(-1, n, self._words)[:n_planes, columns]
            ).reshape(-1, self._words)
            n = columns.size

        # Groups share one array, until another type or width is needed.
        pitch = row_pitch(n)
        shape = self._words * WORD, pitch
        if self._distance is None or (self._distance.dtype, self._distance.shape) != (dtype, shape):
            self._distance = self.padded = None  # frees it before the next allocation
            self._distance = cp.empty(shape, dtype)
        self.padded = distance = self._distance[:k]
        sizes = (
            np.int32(n_planes),
            np.int64(n),
            np.int64(k),
            np.int64(pitch),
            np.int32(dtype.itemsize),
        )
        launch(self.kernels[_WRITE], k * pitch, (seen, planes, *sizes, distance.view(np.uint8)))
        return distance[:, :n]

    def counts(self, k: int, depth: int):
        """Return the number of vertices per source and level, int64 of shape (k, depth + 1).

        ``k`` is the number of sources of the group, and ``depth`` the last level that has vertices.
        """
        return cp.stack([counts[:k] for counts in self._level_counts[: depth + 1]], axis=1)


def clear(*arrays) -> None:
    """Set all bits of GPU arrays to zero, on the current stream."""
    for array in arrays:
        array.data.memset_async(0, array.nbytes)
