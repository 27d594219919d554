"""Betweenness on a GPU: paths and dependencies from the distances of a group of sources.

Sums are exact (kt/exact_sum.cuh), and each source adds in the order of adjacency lists. So the
result has the same bits for any batch size and either method:

- By hops of one byte, 32 sources are interleaved, one per lane; see betweenness_lanes.cu. A level
  reads of each edge, in the lanes where the level fits, a line of levels and a line of doubles: 32
  and up to 256 bytes. Let an average vertex have b levels among 32 sources. Then a group reads
  about 2 m (36 b + 256) bytes for m stored edges, less what the cache holds.
- By weights, or where searches have more levels, each source has a thread block; see
  betweenness_blocks.cu. A round takes five dependent loads per way and two barriers. There are as
  many rounds as the longest shortest path has edges.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._arrays import Array, flatten_distances, is_hops
from ..cuda import cp, graph_statistics
from ..cuda.compiler import Request, kernel
from ..cuda.kernel_spec import WARP, Entry, make_entries
from ..cuda.launch import blocks_at_once, launch, launch_blocks
from ..runtime import memory
from .loads import OnGpu

if TYPE_CHECKING:
    from ..graph import Graph

BLOCK = 256  # threads per block of the kernels for 32 sources
PATHS_LOG2 = 1000  # a source with 2**PATHS_LOG2 shortest paths to a vertex is left to the host
# Edges of a vertex whose values are added up before they are added to its other chunks of so many
# edges. Both methods have the same number, and so results of equal bits.
CHUNK = 256
# lines of 32 doubles that are held at once, 620 MB, but at least those of one group
LINES_AT_ONCE = 1 << 21
SOURCE_BLOCK = 512  # threads per source, where each source has a block
STATE_BYTES = 1 << 34  # bytes of the arrays of all sources that are held at once
BLOCKS = 264  # sources that are held at once, two per multiprocessor of the largest GPUs

_FOLDER = Path(__file__).parent / "kernels"
_lanes = make_entries(
    _FOLDER / "betweenness_lanes.cu",
    BLOCK,
    constants=(("CHUNK", CHUNK), ("PATHS_LOG2", PATHS_LOG2)),
    item_threads=WARP,
)
_LINES = _lanes("betweenness_lines_warp")
_CHUNKS = _lanes("betweenness_chunks_warp")
_COUNTS = _lanes("betweenness_counts_warp")
_LOADS = _lanes("betweenness_loads_warp")
_blocks = make_entries(
    _FOLDER / "betweenness_blocks.cu",
    SOURCE_BLOCK,
    constants=(("CHUNK", CHUNK), ("PATHS_LOG2", PATHS_LOG2), ("LONG", 32), ("HOP_BYTES", 0)),
)
_BLOCKS = _blocks("betweenness_source_per_block")
_ENDS = _blocks("betweenness_ends_warp", item_threads=WARP)
ENTRIES = (_LINES, _CHUNKS, _COUNTS, _LOADS, _BLOCKS, _ENDS)


class LoadSums(NamedTuple):
    """Sums of loads, in units of 2**-64; None where they are not asked for.

    Attributes
    ----------
    vertices, edges : OnGpu or None
        uint64 ``low`` and int64 ``high``, the words of 128-bit integers, of shapes (n_vertices,)
        and (n_edges,). They may have more places behind these, to which nothing is added.
    """

    vertices: Any = None
    edges: Any = None


def add_loads(
    graph: Graph,
    sources: np.ndarray,
    distance: Array,
    sums: LoadSums,
    is_target: Array | None = None,
    endpoints: bool = False,
    method: str = "auto",
) -> np.ndarray:
    """Add what each source contributes to the betweenness of vertices and of stored edges.

    The source's own dependency is not added.

    Parameters
    ----------
    graph : Graph
        On a GPU. Its reverse is made if it is not there yet.
    sources : int64 array of shape (k,)
        Vertex numbers.
    distance : CuPy array of shape (k, n_vertices)
        Hops, or distances in the type of the weights, all of which are positive.
    sums : LoadSums
        To which loads are added. Edges are in the order of ``graph.targets``.
    is_target : uint8 CuPy array of shape (n_vertices,), optional
        Paths that end at vertices where it is 0 do not count. By default all paths do.
    endpoints : bool
        Whether vertices also count the paths from the sources that begin or end at them.
    method : {"auto", "lanes", "blocks"}
        "lanes" searches from 32 sources together, and needs hops of one byte; "blocks" has a block
        of threads per source. "auto" takes "lanes" for such hops.

    Returns
    -------
    bool array of shape (k,), NumPy
        True for sources that added nothing and are left to the caller: with ``2**PATHS_LOG2``
        shortest paths to a vertex or more, or with an edge on a shortest path that adds nothing to
        its length.
    """
    if not len(distance):
        return np.zeros(0, bool)
    vertex_sums, edge_sums = sums
    output = {
        "is_target": is_target,
        "vertex_low": None if vertex_sums is None else vertex_sums.low,
        "vertex_high": None if vertex_sums is None else vertex_sums.high,
        "edge_low": None if edge_sums is None else edge_sums.low,
        "edge_high": None if edge_sums is None else edge_sums.high,
    }
    if method == "lanes" or (method == "auto" and distance.dtype == np.int8):
        is_left = _add_by_lanes(graph, distance, output)
    else:
        is_left = _add_by_blocks(graph, sources, distance, output)

    # Another kernel counts the ends of paths. It skips the sources that are left to the caller.
    if endpoints and vertex_sums is not None:
        flat, pitch = flatten_distances(distance)
        ends = {
            "distance": flat.view(np.uint8),
            "pitch": pitch,
            "n_vertices": np.int64(graph.n_vertices),
            "sources": cp.asarray(sources, np.int64),
            "n_sources": np.int64(len(distance)),
            "overflows": cp.asarray(is_left, np.int32),
            "is_target": is_target,
            "high": vertex_sums.high,
        }
        # Each source has a warp per 32 vertices.
        add_ends = kernel(*_request(_ENDS, distance.dtype, graph.targets.dtype))
        launch(add_ends, len(distance) * -(-graph.n_vertices // WARP), ends)
    return is_left


def order_by_in_edges(graph: Graph, edge_sums: OnGpu) -> OnGpu:
    """Return sums of stored edges in the order of the edges of the reversed graph, which lists them
    by their heads. ``edge_sums`` has them in the order of ``graph.targets``.
    """
    order = cp.argsort(graph.targets, kind="stable")
    # Behind the edges are the places for pairs without a path, which stay where they are.
    return OnGpu(*(cp.concatenate([words[order], words[order.size :]]) for words in edge_sums))


def _add_by_lanes(graph: Graph, distance: Array, output: dict[str, Any]) -> np.ndarray:
    """Add loads by hops of one byte, for some groups of 32 sources at a time; see
    betweenness_lanes.cu.

    ``distance`` has the hops from k sources, of shape (k, n_vertices). ``output`` has, by name, the
    arguments of the kernels that receive sums. Return, as ``add_loads``, a bool array with True for
    sources that added nothing.
    """
    n = graph.n_vertices
    k = len(distance)
    # A lane is one of the 32 sources of a group. Each vertex has one level (1 byte) and one value
    # (8 bytes) per lane, and one word that says which levels its lanes have. A list of ``CHUNK``
    # edges or more has at most 2 / CHUNK chunks per edge, each with a sum of 8 bytes per lane: 2 *
    # 8 * 32 / 256, two bytes per edge.
    bytes_per_group = n * (9 * WARP + 8) + 2 * graph.n_edges
    # ``fitting`` is ``STATE_BYTES``, or half of the free memory of the GPU if that is less.
    fitting = memory.fitting(STATE_BYTES) // max(bytes_per_group, 1)
    at_once = max(1, min(-(-k // WARP), _groups_at_once(n), fitting))
    levels = cp.empty(at_once * n * WARP, np.uint8)
    values = cp.empty(at_once * n * WARP, np.float64)
    present = cp.empty(at_once * n, np.uint64)

    # Counting paths reads the edges into each vertex, and adding loads those out of it. The lists
    # of vertices with many edges, hubs, are cut into chunks that are added up separately.
    directions = []
    for direction in (graph.reverse, graph):
        hubs = graph_statistics.chunks_of_hubs(direction.offsets, CHUNK)
        directions.append(
            {
                "offsets": direction.offsets,
                "targets": direction.targets,
                "hub_chunks": hubs,
                "n_hub_chunks": np.int64(hubs.size),
            }
        )
    partial = cp.empty(
        at_once * WARP * max(int(direction["n_hub_chunks"]) for direction in directions), np.float64
    )

    are_left = []
    for first in range(0, k, at_once * WARP):
        rows = distance[first : first + at_once * WARP]
        flat, pitch = flatten_distances(rows)
        n_groups = -(-len(rows) // WARP)
        depth = graph_statistics.max_hops(rows)
        # Each group has a warp per 32 vertices.
        lines = {"levels": levels, "present": present, "values": values, "n_vertices": np.int64(n)}
        launch(
            kernel(_LINES.variant(**_sizes()), graph.targets.dtype),
            n_groups * -(-n // WARP),
            {
                **lines,
                "distance": flat.view(np.uint8),
                "pitch": pitch,
                "n_sources": np.int64(len(rows)),
            },
        )

        overflows = cp.zeros(n_groups * WARP, np.int32)
        args = {
            **lines,
            "n_groups": np.int64(n_groups),
            "partial": partial,
            "overflows": overflows,
            **output,
        }

        # Count paths from level to level, and add dependencies back.
        for level in range(1, depth + 1):
            _launch_level({**args, **directions[0]}, _COUNTS, level, level - 1, level == depth)
        for level in range(depth - 1, -1, -1):
            _launch_level({**args, **directions[1]}, _LOADS, level, level + 1, False)
        are_left.append(overflows.get()[: len(rows)] != 0)
    return np.concatenate(are_left)


def _launch_level(
    args: dict[str, Any], entry: Entry, level: int, neighbor_level: int, is_last: bool
) -> None:
    """Launch the two kernels of one level, which read values of its neighbors in the level
    ``neighbor_level``.

    The first kernel sums the edge chunks of hubs, vertices with many edges, into ``partial`` of
    ``args``. The second one, ``entry``, adds these up, and the values of the neighbors of all other
    vertices. ``is_last`` says that no level is behind this one.
    """
    args = {
        **args,
        "level": np.int32(level),
        "wanted": np.int32(neighbor_level),
        "is_last": np.int32(is_last),
    }
    kind = args["targets"].dtype
    n_groups = int(args["n_groups"])
    launch(kernel(_CHUNKS.variant(**_sizes()), kind), n_groups * int(args["n_hub_chunks"]), args)
    launch(kernel(entry.variant(**_sizes()), kind), n_groups * int(args["n_vertices"]), args)


def _add_by_blocks(
    graph: Graph, sources: np.ndarray, distance: Array, output: dict[str, Any]
) -> np.ndarray:
    """Add loads with one block of threads per source; see betweenness_blocks.cu.

    ``distance``, of shape (k, n_vertices), has hops or weighted distances from ``sources``.
    ``output`` has, by name, the arguments of the kernel that receive sums. Return, as
    ``add_loads``, a bool array with True for sources that added nothing.
    """
    of_hops = is_hops(distance.dtype)
    # Lengths of edges are added in the type of the distances, as the search has done.
    if not of_hops:
        graph = graph.derived.sums_in(distance.dtype.name)
    n = graph.n_vertices
    k = len(distance)
    index = graph.targets.dtype
    reverse = graph.reverse
    search = kernel(*_request(_BLOCKS, distance.dtype, index))
    bytes_per_source = n * _block_bytes(index.itemsize)
    # As many blocks as the GPU runs at once, and as fit into ``STATE_BYTES`` or half of its free
    # memory. A block takes the next source when it has finished one.
    fitting = memory.fitting(STATE_BYTES) // max(bytes_per_source, 1)
    blocks = max(1, min(k, BLOCKS, blocks_at_once(search), fitting))

    flat, pitch = flatten_distances(distance)
    overflows = cp.zeros(k, np.int32)  # not 0 for sources that add nothing
    args = {
        "offsets": graph.offsets,
        "targets": graph.targets,
        "weights": None if of_hops else graph.weights,
        "in_offsets": reverse.offsets,
        "in_targets": reverse.targets,
        "in_weights": None if of_hops else reverse.weights,
        "n_vertices": np.int64(n),
        "sources": cp.asarray(sources, np.int64),
        "n_sources": np.int64(k),
        "taken": cp.zeros(1, np.int64),  # how many sources blocks have taken
        "distance": flat.view(np.uint8),
        "pitch": pitch,
        # per block: the paths to each vertex, and later (1 + dependency) / paths; how many of its
        # predecessors are not ready; the vertices in the order in which they become ready; and
        # where each round begins there
        "values": cp.empty(blocks * n, np.float64),
        "waits_for": cp.empty(blocks * n, np.int32),
        "order": cp.empty(blocks * n, index),
        "rounds": cp.empty(blocks * (n + 1), index),
        "overflows": overflows,
        **output,
    }
    launch_blocks(search, blocks, args)
    return overflows.get() != 0


def bytes_needed(
    n_sources: int, n_vertices: int, n_edges: int, index: int, one_byte_hops: bool
) -> int:
    """Return the bytes that ``add_loads`` takes at most, in addition to the graph, its reverse,
    distances and sums.

    They are for a group of ``n_sources`` sources; ``n_vertices`` and ``n_edges`` are of the graph.
    ``index`` is the size of a vertex number in bytes. ``one_byte_hops`` says whether distances are
    hops of one byte.
    """
    if one_byte_hops:
        groups = min(-(-n_sources // WARP), _groups_at_once(n_vertices))
        # At most: lists of ``CHUNK`` edges or more are cut, and the last chunk may be short. Each
        # group has a double per lane and chunk. The chunks themselves are words, of the edges out
        # of vertices and of those into them.
        chunks = 2 * n_edges // CHUNK + 1
        return groups * (n_vertices * (9 * WARP + 8) + 8 * WARP * chunks) + 2 * 8 * chunks
    # A block of threads per source, of which at most ``BLOCKS`` exist. Per source there are its
    # number and, twice in 4 bytes, whether it has added nothing.
    return min(n_sources, BLOCKS) * n_vertices * _block_bytes(index) + 16 * n_sources


def likely_kernels(hops: bool, weight_t: Any) -> list[Request]:
    """Return requests to compile the kernels of distances whose type is not known yet.

    ``hops`` says whether distances are hops. Else they have the type of the weights, ``weight_t``.
    """
    # Hops of one byte take the kernels for 32 sources, and wider ones a block per source.
    if hops:
        return [
            Request(_COUNTS.variant(**_sizes())),
            _request(_BLOCKS, np.dtype(np.int16), np.int32),
        ]
    return [_request(_BLOCKS, np.dtype(weight_t), np.int32)]


def _groups_at_once(n_vertices: int) -> int:
    """Return how many groups of 32 sources are held at once at most, in a graph of ``n_vertices``
    vertices: each group has a line of 32 doubles per vertex, of which ``LINES_AT_ONCE`` may exist.
    It is 1 where not even the lines of one group are so few.
    """
    return max(1, LINES_AT_ONCE // max(n_vertices, 1))


def _block_bytes(index: int) -> int:
    """Return the bytes that a block of threads needs per vertex: a double, a count, and two vertex
    numbers of ``index`` bytes.
    """
    return 8 + 4 + 2 * index


def _sizes() -> dict[str, Any]:
    """Return the compile-time constants that the kernels of both methods have."""
    return {"CHUNK": CHUNK, "PATHS_LOG2": PATHS_LOG2}


def _request(entry: Entry, kind: np.dtype, vertex_t: Any) -> Request:
    """Return a request for the kernel of ``entry``, with a block of threads per source, that reads
    distances of the type ``kind`` and vertex numbers of the type ``vertex_t``.
    """
    return Request.reading(kind, entry, vertex_t, block=SOURCE_BLOCK, **_sizes())
