"""Flows on a GPU: volumes on the canonical shortest paths, summed per edge or vertex, from
distances alone; see flows.cu.

Each source has a thread block. Memory accesses bound the time, since the arrays of all blocks
exceed every cache. Where volumes and counts fit into a word, each vertex takes four accesses that
are not in the order of the vertices. Otherwise there are about twice as many, and as many rounds as
the longest path of the tree has edges, with two barriers each. Where memory is short, fewer sources
are held at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._arrays import Array, flatten_distances, is_hops
from ..cuda import cp
from ..cuda.compiler import Request, kernel
from ..cuda.kernel_spec import Entry
from ..cuda.launch import blocks_at_once, launch_blocks
from ..runtime import memory

if TYPE_CHECKING:
    from ..graph import Graph

BLOCK = 256  # threads per source; more where fewer sources are held at once
BLOCKS = 1056  # sources that are held at once, eight per multiprocessor of the largest GPUs
LONG = 32  # edges that one thread reads alone
# Bits of a word that holds the volume of a vertex and two counts of its children in the tree of
# paths. One bit is left over, because the bound of the volumes is a sum of floats that may be
# rounded.
WORD_BITS = 63
MIN_WIDE_EDGES = 2**32 - 1  # edges from which on their positions need 64 bits
STATE_BYTES = 1 << 34  # bytes of the arrays of all blocks; one block may exceed it

_FILE = Path(__file__).parent / "kernels" / "flows.cu"
_CONSTANTS = tuple(
    {
        "LONG": LONG,
        "HOP_BYTES": 0,
        "EDGE_BYTES": 4,
        "INTEGERS": 0,
        "WIDE": 1,
        "DECAY": 0,
        "THROUGH": 0,
    }.items()
)
_FLOWS = Entry("flows_source_per_block", _FILE, BLOCK, constants=_CONSTANTS)
ENTRIES = (_FLOWS,)


@dataclass(frozen=True)
class Volumes:
    """What the targets of each source take: an amount times the factor of the source times the
    decay of the distance.

    Arrays are NumPy's; k sources have n_targets targets.
    """

    # int64 (n_targets,): distinct vertex numbers, the same for each source, or those of all pairs
    targets: np.ndarray
    # int64 (if the sums are integers) or float64 (n_targets,): what each target takes of a source
    amounts: np.ndarray
    factors: np.ndarray  # of the same type (k,): by which the amounts of each source are multiplied
    # int64 (k + 1,), of pairs: those of source i are from offsets[i] to offsets[i + 1] - 1
    offsets: np.ndarray | None  # None if all sources have the same targets
    bound: Any  # the largest distance that is served, in the type of the distances, below infinity
    exponent: int = 0  # of the unit of the sums; 0 for integers
    # decay, parameters: as ``cpu.opportunities`` has them; 0 is NO_DECAY
    decay: int = 0
    parameters: tuple[float, float] = (0.0, 0.0)
    # int64 (n_targets,), of pairs: their rows in the table of all pairs; None without pairs
    rows: np.ndarray | None = None
    # uint8, CuPy: not 0 at the edges of the reversed graph of which a path must use one; None if
    # all paths count
    named: Array | None = None


def add_flows(
    graph: Graph, sources: np.ndarray, distance: Array, volumes: Volumes, of: str, sums: Any
) -> np.ndarray:
    """Add the volumes of a group of sources to the sums of the edges or of the vertices of their
    paths.

    Parameters
    ----------
    graph : Graph
        On a GPU. Its reverse is made if it is not there yet.
    sources : int64 array of shape (k,)
        Vertex numbers.
    distance : CuPy array of shape (k, n_vertices)
        Hops, or distances in the type of the weights, which are not negative.
    volumes : Volumes
        What the targets of the sources take.
    of : {"edges", "vertices", "pairs"}
        What carries the volumes. Vertices also carry volumes that begin or end there.
    sums : loads.OnGpu
        Receives the sums: uint64 ``low`` and int64 ``high`` of shape (n_cells + 2,). The cells are
        the edges of the reversed graph, the vertices, or all pairs. Then follow the volume without
        a path, and the number of such pairs.

    Returns
    -------
    bool array of shape (k,), NumPy
        True for sources that added nothing and are left to the caller: an edge on a shortest path
        adds nothing to its length.
    """
    k, n = distance.shape
    of_hops = is_hops(distance.dtype)
    # Lengths of edges are added in the type of the distances, as the search has done.
    reverse = (graph if of_hops else graph.derived.sums_in(distance.dtype.name)).reverse
    is_narrow = graph.n_edges < MIN_WIDE_EDGES
    n_cells = sums.low.size - 2  # without the places of pairs that have no path
    is_through = volumes.named is not None
    # Bits of a word that count children in the tree of paths. They are 0 if these bits do not fit
    # beside the volume: each vertex then needs more words.
    count_bits = _count_bits(graph, volumes)
    is_wide = count_bits == 0
    index = graph.targets.dtype
    edge_bytes = 4 if is_narrow else 8

    # Sources are held at once as far as ``STATE_BYTES``, or half of the free memory of the GPU,
    # allows. Where they are fewer, each has more threads. How many blocks are resident depends on
    # their size, so that their number is bounded again once the kernel is chosen.
    bytes_per_source = n * _state_bytes(index.itemsize, edge_bytes, is_wide, is_through)
    blocks = max(1, min(k, BLOCKS, memory.fitting(STATE_BYTES) // max(bytes_per_source, 1)))
    block_size = 1024
    while block_size > BLOCK and block_size * blocks > BLOCK * BLOCKS:
        block_size //= 2
    search = kernel(*_request(distance.dtype, index, edge_bytes, is_wide, volumes, block_size))
    blocks = max(1, min(blocks, blocks_at_once(search)))

    # ``pitch`` is the number of elements from the distances of one source to those of the next.
    rows, pitch = flatten_distances(distance)
    is_left = cp.zeros(k, np.int32)
    # The kernel takes three pairs of arrays: for vertices, edges and pairs. It gets the pair of
    # arrays of what carries the loads. The other two are None, and it adds nothing to them.
    words = (sums.low, sums.high)
    vertex_low, vertex_high = words if of == "vertices" else (None, None)
    edge_low, edge_high = words if of == "edges" else (None, None)
    pair_low, pair_high = words if of == "pairs" else (None, None)
    bound = np.asarray(volumes.bound)
    args = {
        "in_offsets": reverse.offsets,
        "in_targets": reverse.targets,
        "in_weights": None if of_hops else reverse.weights,
        "n_vertices": np.int64(n),
        "sources": cp.asarray(sources, np.int64),
        "n_sources": np.int64(k),
        "taken": cp.zeros(1, np.int64),  # how many sources blocks have taken, one after another
        "distance": rows.view(np.uint8),
        "pitch": pitch,
        "offsets": None if volumes.offsets is None else cp.asarray(volumes.offsets, np.int64),
        "targets": cp.asarray(volumes.targets, np.int64),
        "rows": cp.asarray(volumes.rows, np.int64) if of == "pairs" else None,
        "named": volumes.named,
        "amounts": cp.asarray(volumes.amounts).view(np.int64),
        "factors": cp.asarray(volumes.factors).view(np.int64),
        "n_targets": np.int64(volumes.targets.size),
        # floats of 0 or more have the order of their bits
        "limit": np.int64(bound.view(f"i{bound.itemsize}")),
        "parameter": np.float64(volumes.parameters[0]),
        "width": np.float64(volumes.parameters[1]),
        "exponent": np.int32(volumes.exponent),
        "edges": cp.empty(blocks * n * edge_bytes, np.uint8),
        "waits_for": cp.empty(blocks * n, np.int32) if is_wide else None,
        "queue": cp.empty(blocks * n, index) if is_wide else None,
        "low": cp.empty(blocks * n, np.uint64),
        "high": cp.empty(blocks * n, np.int64) if is_wide else None,
        "count_bits": np.int32(count_bits),
        "uses": cp.empty(blocks * n, np.uint8) if is_through else None,
        "left": is_left,
        "vertex_low": vertex_low,
        "vertex_high": vertex_high,
        "edge_low": edge_low,
        "edge_high": edge_high,
        "pair_low": pair_low,
        "pair_high": pair_high,
        "lost_low": sums.low[n_cells:],
        "lost_high": sums.high[n_cells:],
    }
    launch_blocks(search, blocks, args)
    return is_left.get() != 0


def bytes_needed(
    n_sources: int, n_vertices: int, n_pairs: int, index: int, is_through: bool = False
) -> int:
    """Return the bytes that ``add_flows`` takes at most, in addition to the graph, its reverse,
    distances and sums: for a group of ``n_sources`` sources, which have ``n_pairs`` pairs or
    targets.

    ``index`` is the size of a vertex number in bytes. ``is_through`` says whether paths must use
    named edges.
    """
    bytes_per_source = n_vertices * _state_bytes(index, is_through=is_through)
    of_blocks = min(STATE_BYTES, min(n_sources, BLOCKS) * bytes_per_source)
    # The arrays of all blocks are at most ``STATE_BYTES``, or those of one block if that is more.
    # Per pair a target, a row and an amount. Per source its number, the begin of its pairs and its
    # factor, and 4 bytes that say whether it is left. Two more numbers are the end of the pairs,
    # and how many sources blocks have taken.
    return max(bytes_per_source, of_blocks) + 24 * n_pairs + 28 * n_sources + 16


def likely_kernels(hops: bool, weight_t: Any) -> list[Request]:
    """Return requests to compile the kernel of the likeliest distances and volumes, before these
    are known.

    ``hops`` says whether distances are hops, of 16 bits then, or have the type of the weights,
    ``weight_t``. Most often each pair carries 1: an integer, without decay and named edges.
    """
    units = Volumes(np.zeros(0), np.zeros(0), np.zeros(0), None, 0)
    return [_request(np.dtype(np.int16 if hops else weight_t), np.int32, 4, False, units)]


def _count_bits(graph: Graph, volumes: Volumes) -> int:
    """Return how many bits hold the number of children of a vertex in the tree of paths, if one
    word holds two such numbers and the volume that a source sends; else 0.
    """
    # Floats need two words. Named edges need the queue, in which rounds find what uses them.
    if volumes.exponent or volumes.named is not None:
        return 0
    # A vertex has at most as many children as edges leave it.
    bits = int(graph.derived.degrees.max()).bit_length()
    sent = volumes.amounts.sum(dtype=np.float64) * volumes.factors.max(initial=0)
    if sent < 2.0 ** (WORD_BITS - 2 * bits):
        return bits
    return 0


def _state_bytes(
    index: int, edge_bytes: int = 8, is_wide: bool = True, is_through: bool = False
) -> int:
    """Return the bytes that a block of threads needs per vertex: for its edge of the tree, its
    volume, and what else the kernel needs.

    ``index`` and ``edge_bytes`` are the sizes of a vertex number and of an edge's position. With
    ``is_wide``, counts do not fit into the word of the volume: then there are a count, an entry of
    the queue and the upper word of the volume. ``is_through`` adds a mark, for paths that must use
    named edges.
    """
    wide_bytes = 4 + index + 8
    return edge_bytes + 8 + wide_bytes * is_wide + is_through


def _request(
    kind: np.dtype,
    vertex_t: Any,
    edge_bytes: int,
    is_wide: bool,
    volumes: Volumes,
    block: int = BLOCK,
) -> Request:
    """Return a request for the kernel, with the compile-time constants that fit the arguments.

    ``kind`` is the type of the distances, ``vertex_t`` that of vertex numbers, and ``block`` the
    number of threads per source. ``edge_bytes`` and ``is_wide`` are those of ``_state_bytes``. Of
    ``volumes`` it matters whether they are integers, whether they decay, and whether edges are
    named.
    """
    return Request.reading(
        kind,
        _FLOWS,
        vertex_t,
        block=block,
        LONG=LONG,
        EDGE_BYTES=edge_bytes,
        INTEGERS=int(volumes.exponent == 0),
        WIDE=int(is_wide),
        DECAY=volumes.decay,
        THROUGH=int(volumes.named is not None),
    )
