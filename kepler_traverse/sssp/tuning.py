"""The knobs of SSSP, with their range and where each number came from."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import InputError

# CPU: below this many frontier vertices one thread does it (as for BFS).
SERIAL_FRONTIER = 4096

# CPU: edges of a vertex, on average, that are shorter than a pile is wide. Davidson et al. (IPDPS 2014) take 32, for warps
# of 32. Measured on one busy core, ms a source for 1 / 2 / 4 / 8 / 16 / 32, weights 1 to 255: soc-Slashdot0902 9.9 / 8.6 /
# 9.0 / 12 / 14 / 18, cnr-2000 25 / 22 / 21 / 17 / 15 / 18, USA-road-NE 112 / 109 / 108 / 97 / 94 / 91, dblp-2010 18 / 19 /
# 15 / 20 / 35 / 48, lattice of 1500 x 1500 252 / 215 / 252 / 202 / 192 / 204.
EDGES_PER_PILE = 6.0
# CPU: from so many near vertices on all threads share them. Two cores, one source, medians in ms, for never / 65,536 /
# 16,384 / 8,192 / 2,048: R-MAT 20 404 / 329 / 328 / 285 / 259, soc-Slashdot0902 22 / 19 / 15 / 11 / 11, USA-road-NE 100 /
# 99 / 100 / 98 / 95.
SHARED_NEAR = 2048

# Many sources on a GPU, a block each. Threads of a block; vertices of a near pile in shared memory; turns before the width
# of piles changes, and vertices a turn below which it grows; edges that a lane looks at together; blocks in flight, 0 for as
# many as the device holds. Measured on an H200, us a source of 1,024, USA-road-NE / USA-road-NY: blocks of 256 / 512 / 1,024
# 244, 213, 224 / 28, 31, 44; MULTI_SOURCE_FEW 0 / 16 / 32 240, 213, 220 / 38, 31, 31; 1 / 4 / 8 edges ahead 229, 213, 304 /
# 29, 31, 56; MULTI_SOURCE_QUEUE_CAPACITY 512 to 2,048 and widths 0.5 to 4 times as large make less than 5 % of difference.
MULTI_SOURCE_BLOCK = 512
MULTI_SOURCE_LARGE = 1 << 19  # vertices below which half as many threads do
MULTI_SOURCE_QUEUE_CAPACITY = 1024
MULTI_SOURCE_WARM_UP = 8
MULTI_SOURCE_FEW = 16
MULTI_SOURCE_AHEAD = 4
IN_FLIGHT = 0

# The same, 32 side by side. Threads of a block; edges of a piece, into which rows of as many or more are cut, where the
# largest degree is ROWS_UNEVEN times the mean, and elsewhere; and edges per round below which piles get wider. Measured on
# an H200, us a source of 1,024, R-MAT 20: blocks of 64 / 128 / 256 357, 359, 386; pieces of 32 / 64 / 256 374, 365, 381.
ROWS_BLOCK = 128
ROWS_UNEVEN = 16
ROWS_PIECES = {"uneven": 64, "even": 256}
ROWS_LIGHT = 1 << 20

# Rounds of Bellman-Ford after which the predecessors are first searched for a cycle; doubled each time, so the searches
# cost O(V log rounds) in all.
FIRST_CYCLE_SEARCH = 16

# Near vertices, edges that leave them, and vertices of the far pile, up to which one block goes on alone.
SMALL_FRONTIER = 1024
SMALL_EDGES = 256
SMALL_FAR = 4096
# Hops that each block takes alone while the near vertices have at most so many edges, and so many on average; and room
# for what a hop lowered, less for vertex numbers or weights of 64 bits. Where there are at most SHORT_ROWS edges per vertex
# more hops: a lattice of 1500 x 1500 takes 14 ms with 8 hops and room for 512, 9.3 with 32 and 1,024; USA-road-NE 14, 11 and
# 9.9 with 4, 8 and 16.
LOCAL_ROUNDS = 8
ROAD_LOCAL_ROUNDS = 32
SHORT_ROWS = 6
LOCAL_ROUND_EDGES = 1 << 17
LOCAL_ROUND_DEGREE = 16
IMPROVED_CAPACITY = 1024
WIDE_IMPROVED_CAPACITY = 512
# Edges of a piece, the warps that walk one together, and the degree from which on lanes share short rows: as for BFS, where
# it says why. Counted on the host, R-MAT 19 / a uniform graph of degree 32, all turns of a search: 724 / 317 trips for
# pieces of 512 and a block each, 486 / 272 for pieces of 256, two warps each, and shared rows.
PIECE = 128
PIECE_WARPS = 1
UNEVEN = 64
# One launch for a whole search: threads of a block, blocks that a multiprocessor holds at least, which bounds their
# registers (0: the compiler weighs them), and edges that a lane looks at together in pieces and shared rows: so many loads
# are on their way at once, for more registers.
# Measured on an H200, ms for (512, 0, 1) / (512, 1, 4) / (256, 3, 2): R-MAT 20 2.1 / 1.62 / 1.73, R-MAT 22 5.1 / 4.5 / 4.5,
# a uniform graph of 128M edges 3.5 / 3.8 / 3.6. With (512, 1, 1) USA-road-NE takes 6.7 in place of 7.2, a lattice of 4000
# x 4000 38 in place of 32.
WORKERS = {"long rows": (256, 3, 2), "short rows": (512, 0, 1)}
# Edges of a row for each lane that it gets even if there are enough rows.
EDGES_PER_LANE = 4
# Edges of a vertex, on average, that are shorter than the first pile is wide if weights are even.
EDGES_PER_WIDTH = 4.0
# The same for one source where rows are not short. Measured on an H200, ms for 4 / 2.8 / 1.4: R-MAT 20 1.22 / 1.10 / 1.09,
# R-MAT 22 3.42 / 2.96 / 2.95, R-MAT 24 15.7 / 13.6 / 13.4, a uniform graph of 128M edges 3.46 / 3.49 / 3.65; USA-road-NE
# and lattices 1 to 3 % slower.
LONG_ROWS_PER_WIDTH = 2.8
# After so many piles, one whose steps had fewer than LIGHT_STEP edges on average doubles the width. Counted on the host, K
# for EDGES_PER_WIDTH: USA-road-NE, weights 1..255, takes 39,284 / 6,205 / 3,799 steps and relaxes each edge 1.0 / 1.04 / 1.2
# times for K 1 / 4 / 16 without doubling; 2,229 and 7.9 times with it; 1,878 and 57 times with everything near. A uniform
# graph of mean degree 64: 53 / 33 / 26 steps, each edge 1.04 / 1.6 / 5.5 times for K 4 / 16 / everything near; R-MAT 18:
# 1.5 / 1.6 / 3.5 times.
WARM_UP = 4
LIGHT_STEP = 8192
# Where rows are not short: edges of a pile below which the width doubles once the far pile shrinks. Measured on an H200, ms
# for 0 / 2^21 / 2^23, first piles as wide as EDGES_PER_WIDTH 4: R-MAT 20 1.7 / 1.20 / 1.18, R-MAT 22 4.5 / 3.50 / 3.43.
TAIL_EDGES = 1 << 23
# Whether predecessors are found inside the search, where distance and vertex number fit a word of 64 bits. In bytes: labels
# of 8 in place of 4 at the far end of each edge walked, one 32-byte sector either way, and one pass of 24 a vertex at the
# end; against one more walk over all edges, 8 bytes and a gather each, and one of 24 a vertex.
PREDECESSORS_INSIDE = True
# Whether the pass at the end leaves labels and marks as the next search wants them, which takes 8 bytes per vertex there;
# else 4 to 12 a vertex are written at the start.
CLEANS_UP = 1

WIDTHS = (1, 2, 4, 8, 16, 32)  # lanes that may share a vertex


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Numbers of a search in one launch, for measurements and tests that need others than the defaults: ``Query.tuning``.

    Attributes
    ----------
    trace : int
        Iterations of which the kernel notes when each began; 0 for none, and then there is no code for it.
    predecessors_inside : bool
        Whether predecessors are found inside the search, where distance and vertex number fit a word of 64 bits.
    """

    trace: int = 0
    predecessors_inside: bool = PREDECESSORS_INSIDE


@dataclass(frozen=True, kw_only=True)
class HBfKnobs:
    """Settings of H-BF; the defaults are those of the paper (Busato, Bombieri 2015), whose sections are named.

    Attributes
    ----------
    edge_classes : bool
        Whether two bits of each edge spare the rounds edges that lead nowhere, and atomics where one edge alone leads to a
        vertex (4.1). Costs a copy of the targets; vertex numbers up to 2^30 only.
    duplicates : {"atomic64", "mark", "keep"}
        A vertex lowered twice in a round: queued once, as the round stands in one word with its distance (4.2; float32
        only); queued once, by an atomic on a mark beside it; or queued twice.
    cache_modifiers : bool
        Whether frontier and offsets are read past the caches, and weights through the read-only one (5.1).
    enqueue : {"shared", "prefix_sum", "atomic"}
        How vertices get into the next frontier: gathered by thread, put in order in shared memory and written side by side
        (5.1); gathered and written from registers; or each at once.
    vertices_per_warp : int from 1 to 1024
        Vertices that a virtual warp takes one after the other (5.2).
    rounds_per_read : int from 1 to 1024
        Rounds launched one after the other before the host reads how large the frontier is. The paper reads after each.
        A traversal begins with single rounds, and waits for an eighth of those before at most.
    min_width, max_width : {1, 2, 4, 8, 16, 32}
        Lanes of a virtual warp: resident threads / frontier size, rounded down to a power of two, within these (5.2).
        Equal ones make a static width.
    heavy : {"children", "blocks", "none"}
        Who walks the edges of a vertex with more than ``heavy_degree``: a kernel that the kernel launches (5.3), of which
        2,048 may wait at once; a block; or the virtual warp that meets it.
    heavy_degree : int, 1 or more
        The paper's T_DP (5.3).
    counters : bool
        Whether to count, which takes time: ``Traversal.counters``.

    Raises
    ------
    InputError
        A value out of range.
    """

    edge_classes: bool = True
    duplicates: str = "atomic64"
    cache_modifiers: bool = True
    enqueue: str = "shared"
    vertices_per_warp: int = 32
    rounds_per_read: int = 1
    min_width: int = 4
    max_width: int = 32
    heavy: str = "children"
    heavy_degree: int = 4096
    counters: bool = False

    def __post_init__(self):
        def is_whole(value, least: int, most: int) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

        checks = {
            "duplicates": ("'atomic64', 'mark' or 'keep'", self.duplicates in ("atomic64", "mark", "keep")),
            "enqueue": ("'shared', 'prefix_sum' or 'atomic'", self.enqueue in ("shared", "prefix_sum", "atomic")),
            "heavy": ("'children', 'blocks' or 'none'", self.heavy in ("children", "blocks", "none")),
            "vertices_per_warp": ("a whole number from 1 to 1024", is_whole(self.vertices_per_warp, 1, 1024)),
            "rounds_per_read": ("a whole number from 1 to 1024", is_whole(self.rounds_per_read, 1, 1024)),
            "min_width": (f"one of {WIDTHS}", is_whole(self.min_width, 1, 32) and self.min_width in WIDTHS),
            "max_width": (f"one of {WIDTHS}", is_whole(self.max_width, 1, 32) and self.max_width in WIDTHS),
            "heavy_degree": ("a whole number from 1 to 2^31 - 1", is_whole(self.heavy_degree, 1, 2**31 - 1)),
        }
        for name in ("edge_classes", "cache_modifiers", "counters"):
            checks[name] = ("true or false", isinstance(getattr(self, name), bool))
        for name, (expected, fits) in checks.items():
            if not fits:
                raise InputError(f"knob {name} of h_bf must be {expected}, not {getattr(self, name)!r}")
        if self.min_width > self.max_width:
            raise InputError(f"knob min_width of h_bf must not exceed max_width, and {self.min_width} > {self.max_width}")
