"""Bit-parallel multi-source BFS of a graph whose edges are in host memory: ``bit_parallel_gpu``, with the
edges of a pulled level streamed through the GPU.

Bitsets and offsets stay on the GPU. A level that pulls reads all edges, which are copied by
segments, the edges of adjacent vertices, in several streams: one segment is copied while others are
searched. Kernels read these edges in place, over the bus, where that moves fewer bytes: those of the
frontier of a level that pushes, and segments in which few vertices are left that some source has
not reached. A segment without such vertices is left out.

The bus bounds the time: 8.4 GB of edges take 0.15 s at 55 GB/s. A plain sketch of it took 0.16 to
0.18 s per level on an H200, and 6 ms for each of the last levels, read in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._arrays import Array
from ...cuda import cp, graph_statistics
from ...cuda.host_edges import host_view
from ...cuda.kernel_spec import WARP
from ...cuda.launch import Named, launch
from ...graph import Graph
from ...search.query import Query
from ...search.strategy import MultiSourceSearch, Shape
from ..tuning import StreamedTuning
from . import bit_parallel_gpu
from .bit_parallel_gpu import LEFT, PULL, WORD, GroupRun, clear, group_size, kernels, traverse_by

__all__ = ["group_size", "kernels", "memory", "plan", "terms"]

IN_PLACE = -1  # in the key of a launch, instead of the number of a buffer


class Segment(NamedTuple):
    """The incoming edges of adjacent vertices, which are copied at once. Each end is the position
    after the last one.
    """

    # first_word, end_word: words of bitmaps, one per WORD vertices: the vertices of the segment
    first_word: int
    end_word: int
    # first_edge, end_edge: positions in ``in_targets``
    first_edge: int
    end_edge: int
    # first_chunk, end_chunk: positions in ``hub_chunks``, the list of edge chunks of hubs
    first_chunk: int
    end_chunk: int

    @property
    def n_edges(self) -> int:
        """The number of edges of the segment."""
        return self.end_edge - self.first_edge


class Buffer(NamedTuple):
    """Memory for the edges of one segment, and the stream that copies to it and searches it."""

    number: int  # position among the buffers
    targets: Array  # vertex numbers on the GPU, as many as the largest segment has edges
    stream: Any  # a stream of CuPy
    searched: Any  # an event of CuPy: all searches of this stream in a level are done


def segment_size(n_edges: int, tuning: StreamedTuning) -> int:
    """Return how many edges a segment has at most, unless the WORD vertices of one bitmap word have
    more.
    """
    edges_per_segment = -(-n_edges // tuning.min_segments)
    return max(min(tuning.max_segment, edges_per_segment), tuning.min_segment, 1)


def memory(shape: Shape, query: Query, group: int) -> int:
    """Return the bytes of a run on the GPU: those of ``bit_parallel_gpu`` without the edges of the
    reverse, which are in host memory, and the buffers of segments.

    ``group`` is the number of sources that are searched together.
    """
    tuning = query.get_tuning(StreamedTuning)
    state_bytes = bit_parallel_gpu.memory(shape, query, group)
    if shape.directed:
        state_bytes -= shape.n_edges * shape.index
    # At most the edges of WORD vertices of the highest degree, which no segment can split. The skew
    # is the highest degree divided by the mean.
    max_degree = shape.skew * shape.n_edges / max(shape.n_vertices, 1)
    word_edges = min(int(WORD * max_degree), shape.n_edges)
    buffer = max(segment_size(shape.n_edges, tuning), word_edges)
    return state_bytes + tuning.buffers * min(buffer, shape.n_edges) * shape.index


def terms(shape: Shape, n_sources: int, group: int, machine: Any) -> dict[str, float]:
    """Return how much work all searches take, by terms of the cost model: those of
    ``bit_parallel_gpu``, and ``"bus"``, the bytes of edges that are copied from host memory.

    The model (``auto.costs``) multiplies each amount by fitted nanoseconds per unit. ``group`` is
    the number of sources that are searched together, and ``machine`` a ``Machine``.
    """
    # "edge" counts edges that are pulled, each a vertex number of ``index`` bytes.
    amounts = bit_parallel_gpu.terms(shape, n_sources, group, machine)
    return amounts | {"bus": amounts["edge"] * shape.index}


def plan(graph: Graph, query: Query, group: int) -> MultiSourceSearch:
    """Allocate and compile; return ``traverse(sources, lists=None)`` for up to ``group`` vertex
    numbers at once.
    """
    return traverse_by(StreamedRun(graph, query, group))


def cut_words(word_offsets: np.ndarray, size: int) -> list[int]:
    """Return the first bitmap word of each segment, and the number of words at the end.

    A segment has at most ``size`` edges. It has more only if it is a single word. ``word_offsets``
    has the position of the first edge of each word, and the number of edges at the end.
    """
    n_words = word_offsets.size - 1
    cuts = [0]
    while cuts[-1] < n_words:
        # The segment ends before the last word whose edges would exceed the size, but has a word.
        max_offset = word_offsets[cuts[-1]] + size
        end = int(np.searchsorted(word_offsets, max_offset, side="right")) - 1
        cuts.append(min(max(end, cuts[-1] + 1), n_words))
    return cuts


def make_segments(in_offsets: Array, size: int, chunk: int) -> list[Segment]:
    """Cut the incoming edges of all vertices into segments of about ``size`` edges.

    ``in_offsets`` are the offsets of the reversed graph, on the GPU, of shape (n + 1,). ``chunk``
    is the number of edges of an edge chunk: a hub is a vertex of as many edges or more.
    """
    n_vertices = in_offsets.size - 1
    # Cuts lie at multiples of WORD vertices: pulls of several segments run at once, and write words
    # of bitmaps without atomics. So each word must belong to one segment.
    first_vertices = np.append(np.arange(0, n_vertices, WORD), n_vertices)
    word_offsets = in_offsets[cp.asarray(first_vertices)].get()
    cuts = cut_words(word_offsets, size)
    edges = word_offsets[cuts].tolist()

    # Chunks of hubs are listed in the order of the hubs: count those before each segment.
    hubs, degrees = graph_statistics.hubs(in_offsets, chunk)  # their numbers ascend
    chunks_before = np.append(0, np.cumsum(-(-degrees // chunk)))
    chunks = chunks_before[np.searchsorted(hubs, np.array(cuts) * WORD)].tolist()
    return [
        Segment(cuts[i], cuts[i + 1], edges[i], edges[i + 1], chunks[i], chunks[i + 1])
        for i in range(len(cuts) - 1)
    ]


class StreamedRun(GroupRun):
    """The state of a group, and the buffers through which the edges are streamed.

    - ``segments``: all incoming edges, in the order of the vertices.
    - ``_first_words``: int64 array of shape (n_segments + 1,) on the GPU: the first bitmap word of
      each segment, and the end.
    - ``_edges_left``: int64 array of shape (n_segments,) on the GPU: the edges of those vertices of
      a segment that some source has not reached.
    - ``_host_targets``: NumPy view of ``in_targets``, which are in host memory.
    - ``_may_begin``: event of the main stream, which all buffers wait for before a level.
    """

    def __init__(self, graph: Graph, query: Query, group: int):
        """Cut the edges into segments, and allocate buffers and the state of ``group`` sources."""
        super().__init__(graph, query, group)
        self._streaming = query.get_tuning(StreamedTuning)
        size = segment_size(graph.n_edges, self._streaming)
        self.segments = make_segments(self.in_offsets, size, self._streaming.chunk)
        ends = [segment.end_word for segment in self.segments]
        self._first_words = cp.asarray(np.array([0, *ends], np.int64))
        self._edges_left = cp.zeros(len(self.segments), np.int64)
        self._host_targets = host_view(self.in_targets)
        largest = max((segment.n_edges for segment in self.segments), default=0)
        self._buffers = [
            Buffer(
                number,
                cp.empty(largest, self.in_targets.dtype),
                cp.cuda.Stream(non_blocking=True),
                cp.cuda.Event(disable_timing=True),
            )
            for number in range(self._streaming.buffers)
        ]
        self._may_begin = cp.cuda.Event(disable_timing=True)
        # How many segments of all searches were searched from a copy of their edges, over the bus,
        # or not at all.
        self.counted = {"copied": 0, "in_place": 0, "left_out": 0}

    def pull(
        self, key: tuple[int, ...], pack: Callable[[], Named], changed: dict[str, Any]
    ) -> None:
        """Let all vertices search their incoming edges, one segment after another, each in one of
        several streams.

        ``key`` names the set of arrays, ``pack()`` returns the arguments of the kernel by name, and
        ``changed`` are those that differ per level, as in ``GroupRun.pull``.
        """
        edges_left = self._count_edges_left()
        # No stream may begin before the work that precedes the level is done.
        main = cp.cuda.get_current_stream()
        self._may_begin.record(main)
        for buffer in self._buffers:
            buffer.stream.wait_event(self._may_begin)
        try:
            self._pull_segments(edges_left, key, pack, changed)
        except BaseException:
            # the streams may still write to memory that others get
            for buffer in self._buffers:
                buffer.stream.synchronize()
            raise
        # The main stream goes on with the level only after all segments are searched.
        for buffer in self._buffers:
            buffer.searched.record(buffer.stream)
            main.wait_event(buffer.searched)

    def _count_edges_left(self) -> list[int]:
        """Return for each segment how many incoming edges those of its vertices have that some
        source has not reached. Each such vertex counts as 16 edges at least: 64 bytes are the least
        that a read over the bus takes.
        """
        clear(self._edges_left)
        args = {
            "in_offsets": self.in_offsets,
            "n_vertices": self.n,
            "done": self.done,
            "first_words": self._first_words,
            "n_segments": np.int64(len(self.segments)),
            "edges_left": self._edges_left,
        }
        launch(self.kernels[LEFT], self.done.size, args)
        edges_left: list[int] = self._edges_left.get().tolist()
        return edges_left

    def _pull_segments(
        self,
        edges_left: list[int],
        key: tuple[int, ...],
        pack: Callable[[], Named],
        changed: dict[str, Any],
    ) -> None:
        """Pull in each segment that has edges left: from a copy of its edges, or in place where few
        are left.

        ``edges_left`` is what ``_count_edges_left`` returns. The other arguments are those of
        ``pull``.
        """
        n_taken = 0
        for number, segment in enumerate(self.segments):
            n_left = edges_left[number]
            if n_left == 0:
                # No kernel writes these words. They hold the bits of the level before the last,
                # since levels exchange ``is_found`` and ``in_front``.
                clear(self.is_found[segment.first_word : segment.end_word])
                self.counted["left_out"] += 1
                continue
            # Buffers take turns. The stream of each keeps the order of its copies and kernels.
            buffer = self._buffers[n_taken % len(self._buffers)]
            n_taken += 1
            is_copied = n_left * self._streaming.in_place > segment.n_edges
            if is_copied:
                self._copy_edges(segment, buffer)
            self.counted["copied" if is_copied else "in_place"] += 1
            # Arguments depend on the segment and on where its edges are, besides the arrays of a
            # level.
            segment_key = (number, buffer.number if is_copied else IN_PLACE, *key)
            pack_segment = functools.partial(self._pack_segment, pack, segment, buffer, is_copied)
            n_words = segment.end_word - segment.first_word
            with buffer.stream:
                self.launches[PULL].launch(n_words * WARP, segment_key, pack_segment, **changed)

    def _copy_edges(self, segment: Segment, buffer: Buffer) -> None:
        """Begin to copy the edges of a segment to a buffer, once the stream of the buffer has done
        its earlier work. Return without waiting.
        """
        edges = self._host_targets[segment.first_edge : segment.end_edge]
        buffer.targets.data.copy_from_host_async(edges.ctypes.data, edges.nbytes, buffer.stream)

    def _pack_segment(
        self, pack: Callable[[], Named], segment: Segment, buffer: Buffer, is_copied: bool
    ) -> Named:
        """Return the arguments of a kernel that pulls in a segment, by name.

        They are those of a whole pull, which ``pack()`` returns. The bounds of the segment replace
        those of all vertices, and the copy of its edges in ``buffer``, if ``is_copied``, replaces
        all edges.
        """
        segment_args: dict[str, Any] = {
            "first_word": np.int64(segment.first_word),
            "end_word": np.int64(segment.end_word),
            "hub_chunks": self.hub_chunks[segment.first_chunk : segment.end_chunk],
            "n_hub_chunks": np.int64(segment.end_chunk - segment.first_chunk),
        }
        if is_copied:
            # Offsets count from the first edge of all; the copy begins with ``first_edge``.
            segment_args["in_targets"] = buffer.targets
            segment_args["first_edge"] = np.int64(segment.first_edge)
        return pack().new_child(segment_args)
