"""The knobs of BFS, with their range and where each number came from."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError

# Direction switch: pull once the frontier holds V / SPARSE_FRACTION vertices or more. Sevilmis, Sivri, Aydin 2019,
# section 3.1.3, after Belova and Ouyang 2017.
SPARSE_FRACTION = 32

# CPU: below this many frontier vertices one thread does it. Measured on two cores with USA-road-NE: an empty step costs
# 0.7 us on one thread and 2.6 us on two, and other
# work on the machine hid whatever difference 256, 1024, 4096, 8192 and "always serial" make to whole searches.
SERIAL_FRONTIER = 4096

# Many sources in rows of bits: a level is pushed by one thread while the frontier has at most 1 / PUSH_VERTICES of the
# vertices and 1 / PUSH_EDGES of the edges; else it is pulled by all.
PUSH_VERTICES = 32
PUSH_EDGES = 32

# The same on a GPU. Threads of a block. Lanes that take a row together, fewer where it has fewer words, and how many times
# the mean the largest degree is uneven. Edges of a piece: rows of as many or more are shared by several warps. A level is
# pushed while the frontier has at most 1 / MULTI_SOURCE_PUSH_VERTICES of the vertices and 1 / MULTI_SOURCE_PUSH_EDGES of the
# edges: a pushed edge takes two rows of bits, a pulled one mostly a bit. Measured on an H200, us a source of 1,024, R-MAT 20
# / R-MAT 22 / uniform of 128M edges: 8 lanes 5.1 / 17.9 / 15.0, 16 lanes 4.6 / 15.8 / 16.3; pieces of 64 / 128 / 512 for
# R-MAT 20 5.5 / 5.2 / 6.2; MULTI_SOURCE_PUSH_EDGES 16 / 32 / 64 for the uniform graph 16.2 / 15.0 / 15.0.
MULTI_SOURCE_BLOCK = 256
MULTI_SOURCE_LANES = {"uneven": 16, "even": 8}
MULTI_SOURCE_UNEVEN = 16
MULTI_SOURCE_PIECE = 128
MULTI_SOURCE_PUSH_VERTICES = 8
MULTI_SOURCE_PUSH_EDGES = 32

# A block a source. Threads of a block, where a multiprocessor holds one of them and where it holds several; bytes of visited
# bits in shared memory at most, and where they don't all fit; bytes of bits outside, of all blocks together; slots of the
# table in place of bits, in roots of the number of vertices, and at least; edges that a lane looks at together, for bits and
# for a table; vertices that a queue takes in shared memory, and in global memory beyond.
# Measured on an H200, us a source of 1,024: USA-road-NE, bits in shared memory, blocks of 512 / 1,024 70, 65; 1 / 2 / 4 / 8
# edges ahead 78, 70, 65, 69; 159 / 127 / 95 / 63 KiB of the 186 there, the others outside, 80, 87, 90, 92; room for 2,048
# in place of 512, whose 12 KiB the L1 lacks, 84; a table 160. A lattice of 1500 x 1500, which needs 275 KiB: 217 / 159 /
# 127 / 95 / 63 KiB of them in shared memory 246, 210, 214, 230, 275, all outside 345, a table 277. One of 4000 x 4000, a
# table, 1 / 2 / 4 edges ahead 2,990, 3,160, 3,430.
ALONE_BLOCK = 1024
SHARING_BLOCK = 512
MAX_SHARED_BITS = 1 << 20
SPLIT_BITS = 159 << 10
MAX_BITS_OUTSIDE = 24 << 20
SLOTS_PER_ROOT = 8
MIN_SLOTS = 64
BLOCK_AHEAD = 4
TABLE_AHEAD = 1
BLOCK_QUEUE_CAPACITY = 512
SPILL_CAPACITY = 1 << 16
# Blocks in flight; 0: as many as the device holds at once.
IN_FLIGHT = 0
SHORT_HOPS = 2**15 - 1  # the most that 16 bits hold; a deeper search begins again with 32

# One launch for a whole BFS. Block: threads; as many blocks as fit run at once.
PERSISTENT_BLOCK = 512
# Before that one cluster: its blocks at most, their threads, the vertices that the queue of one takes, and the edges that a
# warp may queue at once; beyond either the grid takes over. Measured on an H200, ms for blocks of 512 / 768 / 1024:
# USA-road-NE 4.9 / 3.4 / 3.6, a lattice of 1500 x 1500 7.0 / 5.0 / 4.8; with clusters of 8 4.8 and 6.5. Room for 512 in
# place of 1024 costs a lattice of 4000 x 4000, which then leaves the cluster, 17 %. What was no faster: two levels between
# barriers (1 %), vertices kept in the block that claimed them (0 to 70 % slower), tables of the last levels in shared memory
# in place of claims in global memory (90 % slower).
CLUSTER = 16
CLUSTER_BLOCK = 1024
CLUSTER_QUEUE_CAPACITY = 1024
BATCH_EDGES = 1024
# Edges of a piece: rows of as many or more are shared by several teams of PIECE_WARPS warps, 0 for whole blocks. And degree
# from which on lanes look for their edges in rows of a frontier that is small, too, so that none waits for a longer row
# beside it (SHARED_ROWS); below, each row has lanes of its own. A warp waits for 32 edges about as long as for one, so what
# counts is the longest chain of such trips. Counted on the host, over the pushed levels of a search, means of six sources,
# for cnr-2000 / web-NotreDame / soc-Slashdot0902 (directed) / R-MAT 19: 2,402 / 1,677 / 400 / 35 trips for pieces of 2,048
# and a block each (measured then on an H200 for cnr-2000: 2.99 ms), 1,031 / 682 / 178 / 13 for pieces of 512, 302 / 277 / 92
# / 14 for those and shared rows, four warps each, 241 / 214 / 69 / 11 for pieces of 256, two warps each.
# Measured on an H200, ms, pieces of 512 by a block, 256 by two warps, 128 and 64 by one: R-MAT 20, which is pulled, 0.122 /
# 0.139 / 0.151 / 0.166; cnr-2000, which has no reverse to pull over, 0.80 / 0.62 / 0.57 / 0.50.
PIECES = {"pull": (512, 0), "push": (64, 1)}
UNEVEN = 64
# Edges that a lane looks at together in pieces and shared rows: so many loads are on their way at once, for more registers.
AHEAD = 2
# Whether the pass that makes distances and predecessors of the claims leaves those as the next search wants them: 8 bytes a
# vertex written there, in place of as many by a launch of their own before a search.
CLEANS_UP = 1
# Blocks that a multiprocessor holds at least, which bounds their registers; 0: the compiler weighs them.
MIN_BLOCKS = 2
# Edges that a thread looks through for a predecessor before its warp helps: 0.39, 0.33, 0.28 and 0.26 ms for 4, 8, 16 and
# 32 on Erdos-Renyi of 2M vertices and 128M edges; no difference on R-MAT 20 to 24.
PATIENCE = 32
# Pull once the frontier has more than 1 / 14 of the unexplored edges, push again below 1 / 24 of the vertices: alpha and
# beta of Beamer, Asanovic, Patterson 2012.
PULL_ABOVE = 14
PUSH_BELOW = 24

WIDTHS = (1, 2, 4, 8, 16, 32)  # lanes that may share a vertex
BLOCKS = (32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of a search in one launch, for measurements and tests that need others than the defaults: ``Query.tuning``.

    Attributes
    ----------
    trace : int
        Iterations of which the kernels note when each began; 0 for none, and then there is no code for it.
    cluster : int
        Blocks of the cluster that begins, at most; 1 where the device has no clusters.
    long_row : int
        Degree from which on lanes look for their edges in the rows of a small frontier, too.
    """

    trace: int = 0
    cluster: int = CLUSTER
    long_row: int = UNEVEN


@dataclass(frozen=True, kw_only=True)
class Bfs4kKnobs:
    """Settings of BFS-4K; the defaults are those of the paper.

    Attributes
    ----------
    k1 : {1, 2, 4, 8, 16, 32}
        Fewest lanes of a virtual warp (5.2). The paper takes 4 on road networks, 32 on graphs of high or uneven degree.
    dynamic_width : bool
        Whether a virtual warp grows up to 32 lanes while the frontier is small (5.2); else it always has ``k1``.
    k2 : float in [0, 1]
        Share of the vertices, those of the highest degree, whose edges are walked apart (5.3); 0 for none. The paper takes
        0.0015 at most, and only where some degrees are beyond 2,048: see ``k3``.
    heavy : {"children", "blocks", "none"}
        Who walks those: kernels that the kernel launches (5.3); a block each; or whoever walks the rest.
    k3 : int, 1 or more
        Edges that each thread of a child kernel walks (5.3). A vertex of fewer than ``k3 * k6`` edges, which is not even
        one block's work, is not heavy.
    k4 : int, 0 or more
        Lanes find their edges by a search while the frontier is smaller than the resident threads / ``k4`` (5.4); 0 for
        never. The paper takes 2 for low and uneven degrees, 1 for others, 0 for high degrees.
    extended : bool
        Whether that search is skipped within a row longer than a warp (EXT, 5.4).
    k5 : int from 0 to 16
        A single block goes on alone while the frontier has at most 1,024 * ``k5`` vertices (5.5); 0 for never. The paper
        takes 1, and 0 for high degrees.
    k6 : {32, 64, 128, 256, 512, 1024}
        Threads of a block where there are many (5.5).
    shared_reads : bool
        Whether a warp reads 32 vertices at once and takes them in turn, where virtual warps have 32 lanes and there are
        more vertices than threads (5.6).
    k7 : int from 0 to 17
        Queues of threads are written side by side if they hold as many vertices on average (5.6); 17 for never.
    append : {"block", "warp", "thread"}
        Who takes places in the next frontier together (5.1).
    duplicates : {"hash64", "keep", "atomic"}
        Vertices found twice in a level: most are dropped by a table in shared memory (6); all stay; or there are none,
        because vertices are claimed with a compare-and-swap.
    counters : bool
        Whether to count, which takes time: ``Traversal.counters``.

    Raises
    ------
    InputError
        A value out of range.
    """

    k1: int = 4
    dynamic_width: bool = True
    k2: float = 0.0015
    heavy: str = "children"
    k3: int = 16
    k4: int = 1
    extended: bool = True
    k5: int = 1
    k6: int = 128
    shared_reads: bool = True
    k7: int = 10
    append: str = "block"
    duplicates: str = "hash64"
    counters: bool = False

    def __post_init__(self):
        for name, expected, fits in (
            ("k1", f"one of {WIDTHS}", self.k1 in WIDTHS),
            ("k2", "a share from 0 to 1", isinstance(self.k2, (int, float)) and 0 <= self.k2 <= 1),
            ("heavy", "'children', 'blocks' or 'none'", self.heavy in ("children", "blocks", "none")),
            ("k3", "a whole number from 1 to 65536", self.k3 in range(1, 65537)),
            ("k4", "a whole number from 0 on", self.k4 in range(2**31)),
            ("k5", "a whole number from 0 to 16", self.k5 in range(17)),
            ("k6", f"one of {BLOCKS}", self.k6 in BLOCKS),
            ("k7", "a whole number from 0 to 17", self.k7 in range(18)),
            ("append", "'block', 'warp' or 'thread'", self.append in ("block", "warp", "thread")),
            ("duplicates", "'hash64', 'keep' or 'atomic'", self.duplicates in ("hash64", "keep", "atomic")),
            *((name, "true or false", isinstance(getattr(self, name), bool)) for name in _SWITCHES),
        ):
            if not fits:
                raise InputError(f"knob {name} of bfs_4k must be {expected}, not {getattr(self, name)!r}")


_SWITCHES = ("dynamic_width", "extended", "shared_reads", "counters")
