"""Tuning parameters of SSSP: ranges, defaults, and the measurement or publication behind each
default.
"""

from __future__ import annotations

from dataclasses import dataclass

# CPU: a round with fewer frontier vertices runs on one thread (as for BFS).
SERIAL_FRONTIER = 4096

# CPU: width of a pile, in mean weights divided by the mean degree. Davidson et al. (IPDPS 2014) use
# 32, for warps of 32. Measured on one busy core, ms per source for 1 / 2 / 4 / 8 / 16 / 32, weights
# 1 to 255:
#   soc-Slashdot0902          9.9 / 8.6 / 9.0 / 12 / 14 / 18
#   cnr-2000                  25 / 22 / 21 / 17 / 15 / 18
#   USA-road-NE               112 / 109 / 108 / 97 / 94 / 91
#   dblp-2010                 18 / 19 / 15 / 20 / 35 / 48
#   lattice of 1500 x 1500    252 / 215 / 252 / 202 / 192 / 204
EDGES_PER_PILE = 6.0
# CPU: number of near vertices from which on all threads share them. Measured on two cores with one
# source, medians in ms for never / 65,536 / 16,384 / 8,192 / 2,048:
#   R-MAT 20                  404 / 329 / 328 / 285 / 259
#   soc-Slashdot0902          22 / 19 / 15 / 11 / 11
#   USA-road-NE               100 / 99 / 100 / 98 / 95
SHARED_NEAR = 2048

# Rounds of Bellman-Ford before the first search of the predecessors for a cycle. The number doubles
# after each search, so all searches together cost O(V log rounds).
FIRST_CYCLE_SEARCH = 16

# One block continues without grid barriers while none of these three is exceeded:
SMALL_FRONTIER = 1024  # near vertices
SMALL_EDGES = 256  # edges that leave them
SMALL_FAR = 4096  # vertices of the far pile
# Local rounds between two grid barriers: each block alone relaxes the vertices that it improved. A
# lattice of 1500 x 1500 takes 14 ms with 8 local rounds and a capacity of 512, and 9.3 with 32 and
# 1,024. USA-road-NE takes 14, 11 and 9.9 ms with 4, 8 and 16.
LOCAL_ROUNDS = 8
# The same on graphs of at most SHORT_LISTS edges per vertex.
ROAD_LOCAL_ROUNDS = 32
# Mean degree up to which adjacency lists are called short.
SHORT_LISTS = 6
# Edges of the near vertices up to which blocks run local rounds.
LOCAL_ROUND_EDGES = 1 << 17
# Mean degree of the near vertices up to which blocks run local rounds.
LOCAL_ROUND_DEGREE = 16
# Vertices improved in a local round that a block can hold.
IMPROVED_CAPACITY = 1024
# The same for vertex numbers or weights of 64 bits.
WIDE_IMPROVED_CAPACITY = 512
# Load balance of long adjacency lists, as in bfs/tuning.py, which explains it. Loads of the longest
# chain, counted on the host over all iterations of a search, for R-MAT 19 / a uniform graph of
# degree 32: 724 / 317 for chunks of 512 and one block each; 486 / 272 for chunks of 256, two warps
# each, and shared adjacency lists. Edges of an edge chunk.
CHUNK = 128
# Warps that visit a chunk together.
CHUNK_WARPS = 1
# Degree from which on lanes share short adjacency lists.
UNEVEN = 64
# Persistent kernel: one launch for a whole search. The three numbers are: threads per block; the
# minimum number of resident blocks per multiprocessor, which bounds their registers (0: the
# compiler decides); the unroll factor over the edges of chunks and shared adjacency lists (more
# loads in flight, but more registers). Measured on an H200, ms for (512, 0, 1) / (512, 1, 4) /
# (256, 3, 2):
#   R-MAT 20                          2.1 / 1.62 / 1.73
#   R-MAT 22                          5.1 / 4.5 / 4.5
#   uniform graph of 128M edges       3.5 / 3.8 / 3.6
# With (512, 1, 1) USA-road-NE takes 6.7 in place of 7.2, a lattice of 4000 x 4000 38 in place of
# 32.
WORKERS = {"long lists": (256, 3, 2), "short lists": (512, 0, 1)}
# Minimum mean number of edges per lane for which adjacency lists get more lanes than the frontier
# needs to fill the device.
EDGES_PER_LANE = 4
# Width of the first pile, in mean weights divided by the mean degree.
EDGES_PER_WIDTH = 4.0
# The same for one source where adjacency lists are not short. Measured on an H200, ms for 4 / 2.8 /
# 1.4:
#   R-MAT 20                          1.22 / 1.10 / 1.09
#   R-MAT 22                          3.42 / 2.96 / 2.95
#   R-MAT 24                          15.7 / 13.6 / 13.4
#   uniform graph of 128M edges       3.46 / 3.49 / 3.65
#   USA-road-NE and lattices          1 to 3 % slower
LONG_LISTS_EDGES_PER_WIDTH = 2.8
# Counted on the host for EDGES_PER_WIDTH = K: steps, and how often each edge is relaxed.
#   USA-road-NE, weights 1..255       K 1 / 4 / 16 without doubling: 39,284 / 6,205 / 3,799 steps, 1.0 / 1.04 / 1.2 times;
#                                     with doubling 2,229 steps, 7.9 times; with everything near
#                                     1,878 steps, 57 times
#   uniform graph, mean degree 64     K 4 / 16 / everything near: 53 / 33 / 26 steps, 1.04 / 1.6 / 5.5 times
#   R-MAT 18                          K 4 / 16 / everything near: 1.5 / 1.6 / 3.5 times
# Piles before the width may double.
WARM_UP = 4
# The width doubles after a pile whose steps had fewer edges than this on average.
LIGHT_STEP = 8192
# Where adjacency lists are not short: the width doubles after a pile of fewer edges once the far
# pile shrinks. Measured on an H200, ms for 0 / 2^21 / 2^23, with first piles for EDGES_PER_WIDTH 4:
# R-MAT 20 1.7 / 1.20 / 1.18, R-MAT 22 4.5 / 3.50 / 3.43.
TAIL_EDGES = 1 << 23
# Whether the search itself finds predecessors, where a distance and a vertex number fit into one
# 64-bit word. Inside, each visited edge accesses a label of 8 bytes in place of 4 (one 32-byte
# sector either way), and a final pass moves 24 bytes per vertex. Outside, another pass visits all
# edges (8 bytes and a gather each) and moves 24 bytes per vertex.
PREDECESSORS_INSIDE = True
# Whether the final pass resets labels and marks for the next search. It then writes 8 bytes per
# vertex; otherwise 4 to 12 bytes per vertex are written at the start.
CLEANS_UP = 1


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Tuning parameters of the persistent kernel, for measurements and tests that change the
    defaults (``Query.tuning``).
    """

    # number of iterations whose start times the kernel records. With 0 the code for it is not
    # compiled.
    trace: int = 0
    # Whether the search itself finds predecessors, where a distance and a vertex number fit into
    # one 64-bit word.
    predecessors_inside: bool = PREDECESSORS_INSIDE


@dataclass(frozen=True, kw_only=True)
class SourcePerBlockTuning:
    """Tuning parameters of SSSP with one source per block (``Query.tuning``)."""

    # Measured on an H200 with 1,024 sources, us per source:
    #                                   USA-road-NE        USA-road-NY
    #   blocks of 256 / 512 / 1,024     244 / 213 / 224    28 / 31 / 44
    #   few 0 / 16 / 32                 240 / 213 / 220    38 / 31 / 31
    #   unroll 1 / 4 / 8                229 / 213 / 304    29 / 31 / 56
    # A queue_capacity of 512 to 2,048, and widths 0.5 to 4 times as large, differ by less than 5 %.
    block: int = 512  # threads per block
    large: int = 1 << 19  # graphs of fewer vertices use half as many threads
    queue_capacity: int = 1024  # vertices that a near pile holds in shared memory
    warm_up: int = 8  # iterations before the width of piles may change
    few: int = 16  # vertices per iteration below which piles get wider
    unroll: int = 4  # unroll factor over edges
    in_flight: int = 0  # blocks in flight; 0: as many as the device holds at once


@dataclass(frozen=True, kw_only=True)
class SourcePerLaneTuning:
    """Tuning parameters of SSSP with one source per lane, 32 sources interleaved
    (``Query.tuning``).
    """

    # Measured on an H200 with 1,024 sources, us per source on R-MAT 20: blocks of 64 / 128 / 256
    # 357 / 359 / 386; chunks of 32 / 64 / 256 374 / 365 / 381.
    block: int = 128  # threads per block
    uneven_from: int = 16  # degrees are uneven if the largest is at least this many times the mean
    # uneven_chunk, even_chunk: edges of an edge chunk where degrees are uneven, or even: adjacency
    # lists of as many edges or more are split
    uneven_chunk: int = 64
    even_chunk: int = 256
    warm_up: int = 8  # rounds before the width of piles may change
    light: int = 1 << 20  # edges per round below which piles get wider
