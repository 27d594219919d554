"""The knobs of the published BFS systems. The defaults are the published values."""

from __future__ import annotations

from dataclasses import dataclass

from ..knobs import WIDTHS, Knobs, number, one_of, switch, whole

BLOCKS = (32, 64, 128, 256, 512, 1024)

# vertices; with 64-bit numbers 32 KiB of the 48 KiB that a block has by default
MAX_DEFERRED = 4096


@dataclass(frozen=True, kw_only=True)
class ScanKnobs(Knobs):
    """Settings of the scans of all vertices or edges: the shape of the grid, which Springer varies
    in figure 8.

    Attributes
    ----------
    block : {32, 64, 128, 256, 512, 1024}
        Threads per block.
    grid : int, 0 or more
        Blocks. 0: a thread per vertex, lane or edge, in at most four times as many blocks as the
        device holds at once.
    """

    of = "a scan"
    block: int = one_of(*BLOCKS, default=256)
    grid: int = whole(0, 0, 2**31 - 1)


@dataclass(frozen=True, kw_only=True)
class VirtualWarpKnobs(ScanKnobs):
    """Settings of the scan by virtual warps, beside those of all scans.

    Attributes
    ----------
    width : {1, 2, 4, 8, 16, 32}
        Lanes per vertex (Hong et al.; Springer, section 3.5, whose figure 13 has 16). In table 2 of
        BFS-4K the best width is between 1 (roads) and 32 (Kronecker graphs).
    """

    of = "scan_virtual_warp"
    width: int = one_of(*WIDTHS, default=16)


@dataclass(frozen=True, kw_only=True)
class DeferKnobs(ScanKnobs):
    """Settings of the scan that defers high-degree vertices, beside those of all scans. Defaults:
    Springer's figure 12.

    Attributes
    ----------
    defer_from : int, 0 or more
        Vertices of this degree or more wait until their block has scanned all others
        (``DEFER_MAX``).
    room : int from 0 to 4096
        Capacity of the queue in the shared memory of a block (``D_BLOCK_QUEUE_SIZE``). If it is
        below the number of threads of a block, no vertex waits.
    """

    of = "scan_deferred"
    defer_from: int = whole(16, 0, 2**63 - 1)
    room: int = whole(2048, 0, MAX_DEFERRED)


@dataclass(frozen=True, kw_only=True)
class BlockQueueKnobs(Knobs):
    """Settings of ``queue_of_blocks``. The defaults are those of Springer.

    Attributes
    ----------
    queues : {"block", "warp"}
        The queue in shared memory to which a thread appends: that of its block (Springer, 3.6) or
        of its warp (Luo, Wong, Hwu 2010, 3.2).
    room : int from 1 to 8192
        Total capacity of the queues of a block, in vertices (Springer, figure 14).
    """

    of = "queue_of_blocks"
    queues: str = one_of("block", "warp")
    room: int = whole(8192, 1, 8192)


@dataclass(frozen=True, kw_only=True)
class WarpQueueKnobs(Knobs):
    """Settings of ``queue_of_warps``. The defaults are those of Luo, Wong, Hwu 2010.

    Attributes
    ----------
    alone_up_to : int from 0 to 512
        Frontiers of at most this many vertices are expanded by a single block, with one thread per
        vertex (3.3); 0: never.
    grid_up_to : int, 0 or more
        Frontiers of at most this many vertices are expanded by a grid with barriers, in one launch
        (3.3); 0: never. The paper has one thread per vertex: 30 multiprocessors with 512 threads.
    room : int from 1 to 8192
        Total capacity of the queues of a block's warps, in vertices (4). In the paper it is enough
        for all neighbors of all threads; its graphs have up to 7 per vertex.
    split_above : int, 0 or more
        Longer adjacency lists are split into edge chunks of this many edges (4); 0: never. In the
        paper's irregular graphs 0.1 % of the vertices have 1,000 edges, the others up to 7.
    """

    of = "queue_of_warps"
    alone_up_to: int = whole(512, 0, 512)
    grid_up_to: int = whole(15360, 0)
    room: int = whole(3584, 1, 8192)
    split_above: int = whole(7, 0)


GATHERINGS = ("scan", "warp", "scan_warp", "scan_warp_block")


@dataclass(frozen=True, kw_only=True)
class GatherKnobs(Knobs):
    """Settings of the strategies that gather edges. The defaults are those of Merrill, Garland,
    Grimshaw 2012.

    Attributes
    ----------
    gathering : {"scan_warp_block", "scan_warp", "scan", "warp"}
        Which threads visit the edges of a vertex. ``scan``: lanes that find their edges by binary
        search; ``warp``: a warp, from 32 edges on, or for each vertex if nothing else is named;
        ``block``: a block, from as many edges on as it has threads.
    bits : bool
        Whether one bit per vertex is read before its distance.
    warp_culling, history_culling : bool
        Whether duplicates are searched for among the vertices of a warp, and among those that a
        block has found.
    counters : bool
        Whether to count, which takes time: ``Traversal.counters``.
    """

    of = "a strategy that gathers"
    gathering: str = one_of(*GATHERINGS, default="scan_warp_block")
    bits: bool = switch(True)
    warp_culling: bool = switch(True)
    history_culling: bool = switch(True)
    counters: bool = switch(False)


@dataclass(frozen=True, kw_only=True)
class Bfs4kKnobs(Knobs):
    """Options of BFS-4K. The defaults are those of the paper, whose sections are in parentheses.

    Attributes
    ----------
    k1 : {1, 2, 4, 8, 16, 32}
        Minimum number of lanes of a virtual warp (5.2). The paper uses 4 on road networks and 32 on
        graphs of high or uneven degree.
    dynamic_width : bool
        Whether a virtual warp grows up to 32 lanes while the frontier is small (5.2); otherwise it
        has ``k1`` lanes.
    k2 : float in [0, 1]
        Share of the vertices, those of the highest degree, whose edges are visited separately
        (5.3); 0 for none. The paper uses at most 0.0015, and only if some degrees exceed 2,048: see
        ``k3``.
    heavy : {"children", "blocks", "none"}
        Mapping of these vertices: child kernels by dynamic parallelism (5.3), one block per vertex,
        or the same as for all other vertices.
    k3 : int, 1 or more
        Edges that each thread of a child kernel visits (5.3). A vertex of fewer than ``k3 * k6``
        edges, too few for one block, is not treated separately.
    k4 : int, 0 or more
        Lanes find their edges by a search while the frontier is smaller than the number of resident
        threads / ``k4`` (5.4); 0 for never. The paper uses 2 for low and uneven degrees, 1 for
        others, 0 for high degrees.
    extended : bool
        Whether that search is skipped within an adjacency list longer than a warp (EXT, 5.4).
    k5 : int from 0 to 16
        A single block continues without grid barriers while the frontier has at most 1,024 * ``k5``
        vertices (5.5); 0 for never. The paper uses 1, and 0 for high degrees.
    k6 : {32, 64, 128, 256, 512, 1024}
        Threads per block where a level runs on many blocks (5.5).
    shared_reads : bool
        Whether a warp reads 32 vertices at once and processes them one after the other. Applies if
        virtual warps have 32 lanes and the frontier has more vertices than there are threads (5.6).
    k7 : int from 0 to 17
        Queues of threads are written to contiguous memory if they hold at least ``k7`` vertices on
        average (5.6); 17 for never.
    append : {"block", "warp", "thread"}
        The scope that reserves positions in the next frontier together (5.1).
    duplicates : {"hash64", "keep", "atomic"}
        Handling of vertices that are found twice in a level. ``"hash64"``: a hash table in shared
        memory removes most (6). ``"keep"``: all remain. ``"atomic"``: there are none, since a
        compare-and-swap claims each vertex.
    counters : bool
        Whether to fill ``Traversal.counters``, which takes time.
    """

    of = "bfs_4k"
    k1: int = one_of(*WIDTHS, default=4)
    dynamic_width: bool = switch(True)
    k2: float = number(0.0015, "a share from 0 to 1", most=1)
    heavy: str = one_of("children", "blocks", "none")
    k3: int = whole(16, 1, 65536)
    k4: int = whole(1, 0, 2**31 - 1)
    extended: bool = switch(True)
    k5: int = whole(1, 0, 16)
    k6: int = one_of(*BLOCKS, default=128)
    shared_reads: bool = switch(True)
    k7: int = whole(10, 0, 17)
    append: str = one_of("block", "warp", "thread")
    duplicates: str = one_of("hash64", "keep", "atomic")
    counters: bool = switch(False)
