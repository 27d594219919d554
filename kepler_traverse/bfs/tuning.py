"""Tuning parameters of BFS: ranges, defaults, and the measurement or publication behind each
default.
"""

from __future__ import annotations

from dataclasses import dataclass

# Switch of direction: pull once the frontier holds V / SPARSE_FRACTION vertices or more (Sevilmis,
# Sivri, Aydin 2019, section 3.1.3, after Belova and Ouyang 2017).
SPARSE_FRACTION = 32

# CPU: a level with fewer frontier vertices runs on one thread. Measured on two cores with
# USA-road-NE: an empty step costs 0.7 us on one thread and 2.6 us on two. Differences between 256,
# 1024, 4096, 8192 and "always serial" in whole searches were below the noise of other work on the
# machine.
SERIAL_FRONTIER = 4096

# Persistent kernel: one launch for a whole BFS, with as many blocks as are resident at once.
# Threads per block.
PERSISTENT_BLOCK = 512
# The search begins on one cluster. The grid continues once a queue or a warp's edges exceed the
# capacities below. Measured on an H200, ms for blocks of 512 / 768 / 1024: USA-road-NE 4.9 / 3.4 /
# 3.6, a lattice of 1500 x 1500 7.0 / 5.0 / 4.8; with clusters of 8 blocks 4.8 and 6.5. With a queue
# capacity of 512 in place of 1024 a lattice of 4000 x 4000 exceeds the cluster and takes 17 %
# longer. No faster were two levels between barriers (1 %), vertices that stay in the block that
# claimed them (0 to 70 % slower), and tables of the last levels in shared memory in place of claims
# in global memory (90 % slower). Maximum number of blocks of the cluster.
CLUSTER = 16
# Threads of each of these blocks.
CLUSTER_BLOCK = 1024
# Vertices that the queue of a block holds.
CLUSTER_QUEUE_CAPACITY = 1024
# Edges that a warp may queue at once.
BATCH_EDGES = 1024
# CHUNKS and UNEVEN balance the edges of long adjacency lists. A warp waits for 32 edges about as
# long as for one, so the longest chain of such loads determines the time. Loads of the longest
# chain, counted on the host over the pushed levels of a search, means of six sources, for cnr-2000
# / web-NotreDame / soc-Slashdot0902 (directed) / R-MAT 19:
#   chunks of 2,048, one block each                               2,402 / 1,677 / 400 / 35 (cnr-2000 on an H200: 2.99 ms)
#   chunks of 512, one block each                                 1,031 / 682 / 178 / 13
#   chunks of 512, four warps each, and shared adjacency lists    302 / 277 / 92 / 14
#   chunks of 256, two warps each, and shared adjacency lists     241 / 214 / 69 / 11
# Measured on an H200, ms, for chunks of 512 by a block / 256 by two warps / 128 by one warp / 64 by
# one warp:
#   R-MAT 20, which is pulled                                     0.122 / 0.139 / 0.151 / 0.166
#   cnr-2000, which has no reverse to pull over                   0.80 / 0.62 / 0.57 / 0.50
# Edges per edge chunk, and warps of a team (0: a whole block). Several teams share an adjacency
# list that is at least as long as a chunk.
CHUNKS = {"pull": (512, 0), "push": (64, 1)}
# Degree from which on lanes also search for their edges in the adjacency lists of a small frontier
# (SHARED_LISTS), so that no lane waits for a longer list. Below it each adjacency list has lanes of
# its own.
UNEVEN = 64
# Unroll factor over the edges of chunks and shared adjacency lists: more loads in flight, but more
# registers.
UNROLL = 2
# Whether the pass that computes distances and predecessors from the claims also resets the claims
# for the next search. It writes 8 bytes per vertex; otherwise a separate launch before the search
# writes as many.
CLEANS_UP = 1
# Minimum number of resident blocks per multiprocessor, which bounds their registers; 0: the
# compiler decides.
MIN_BLOCKS = 2
# Edges that a thread checks for a predecessor before its warp helps. Measured for 4 / 8 / 16 / 32:
# 0.39 / 0.33 / 0.28 / 0.26 ms on an Erdos-Renyi graph of 2M vertices and 128M edges; no difference
# on R-MAT 20 to 24.
PATIENCE = 32
# Pull once the frontier has more than 1 / 14 of the unexplored edges, push again below 1 / 24 of
# the vertices: alpha and beta of Beamer, Asanovic, Patterson 2012.
PULL_ABOVE = 14
PUSH_BELOW = 24


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Tuning parameters of the persistent kernel, for measurements and tests that change the
    defaults (``Query.tuning``).
    """

    # number of iterations whose start times the kernels record. With 0 the code for it is not
    # compiled.
    trace: int = 0
    # maximum number of blocks of the cluster that begins the search; 1 on a device without clusters
    cluster: int = CLUSTER
    # Degree from which on lanes also search for their edges in the adjacency lists of a small
    # frontier.
    long_row: int = UNEVEN


@dataclass(frozen=True, kw_only=True)
class BitParallelCpuTuning:
    """Tuning parameters of bit-parallel search on a CPU (``Query.tuning``).

    One thread pushes a level while the frontier has at most 1 / ``push_vertices`` of the vertices
    and 1 / ``push_edges`` of the edges. Otherwise all threads pull.
    """

    # push_vertices, push_edges: divisors, as said above
    push_vertices: int = 32
    push_edges: int = 32


@dataclass(frozen=True, kw_only=True)
class BitParallelGpuTuning:
    """Tuning parameters of bit-parallel search on a GPU (``Query.tuning``)."""

    # Measured on an H200 with 1,024 sources, us per source:
    #   lanes        R-MAT 20 / R-MAT 22 / uniform graph of 128M edges: 8 lanes 5.1 / 17.9 / 15.0, 16 lanes 4.6 / 15.8 / 16.3
    #   chunk        64 / 128 / 512 on R-MAT 20: 5.5 / 5.2 / 6.2
    #   push_edges   16 / 32 / 64 on the uniform graph: 16.2 / 15.0 / 15.0
    block: int = 256  # threads per block
    # uneven_lanes, even_lanes: lanes that cooperate on one source bitset where degrees are uneven,
    # or even; fewer where a bitset has fewer words
    uneven_lanes: int = 16
    even_lanes: int = 8
    uneven_from: int = 16  # degrees are uneven if the largest is at least this many times the mean
    # edges of an edge chunk: several warps share an adjacency list of as many edges or more
    chunk: int = 128
    # push_vertices, push_edges: a level is pushed while the frontier has at most 1 /
    # ``push_vertices`` of the vertices and 1 / ``push_edges`` of the edges. A pushed edge accesses
    # two bitsets, a pulled edge mostly one bit.
    push_vertices: int = 8
    push_edges: int = 32


@dataclass(frozen=True, kw_only=True)
class StreamedTuning(BitParallelGpuTuning):
    """Tuning parameters of bit-parallel search with edges in host memory (``Query.tuning``)."""

    # Of a sketch with segments of 64 M edges in three streams, copies ran at 54 to 55 GB/s on an
    # H200, and hid the kernels.
    buffers: int = 3  # segments that are copied or searched at once, each in a stream of its own
    # max_segment, min_segment: edges of a segment
    max_segment: int = 1 << 26
    min_segment: int = 1 << 12
    min_segments: int = 64  # segments of the whole graph, which decide the memory of the buffers
    # A segment is read in place if at most 1 / in_place of its edges, in pieces of 64 bytes, are
    # those of vertices that some source has not reached. In the sketch all edges together took 1.2
    # times as long in place as by copies.
    in_place: int = 3


@dataclass(frozen=True, kw_only=True)
class SourcePerBlockTuning:
    """Tuning parameters of BFS with one source per block (``Query.tuning``)."""

    # Measured on an H200 with 1,024 sources, us per source:
    #   USA-road-NE, bits in shared memory   blocks of 512 / 1,024 threads: 70 / 65
    #                                        bits_unroll 1 / 2 / 4 / 8: 78 / 70 / 65 / 69 159 / 127
    #                                        / 95 / 63 KiB of the 186 KiB in shared memory, the
    #                                        others in global memory: 80 / 87 / 90 / 92 queue
    #                                        capacity 2,048 in place of 512, which takes 12 KiB from
    #                                        the L1: 84 hash table in place of bits: 160
    #   lattice of 1500 x 1500 (275 KiB)     217 / 159 / 127 / 95 / 63 KiB in shared memory: 246 / 210 / 214 / 230 / 275
    #                                        all in global memory 345, hash table 277
    #   lattice of 4000 x 4000, hash table   table_unroll 1 / 2 / 4: 2,990 / 3,160 / 3,430
    # alone_block, sharing_block: threads per block where a multiprocessor holds one block, or
    # several blocks
    alone_block: int = 1024
    sharing_block: int = 512
    max_shared_bits: int = 1 << 20  # maximum bytes of visited bits in shared memory
    split_bits: int = 159 << 10  # bytes of visited bits in shared memory where not all of them fit
    # maximum bytes of visited bits in global memory, of all blocks together
    max_bits_outside: int = 24 << 20
    # slots of the hash table that replaces the bits, per square root of the number of vertices
    slots_per_root: int = 8
    min_slots: int = 64  # minimum number of slots of the hash table
    # bits_unroll, table_unroll: unroll factor over the edges with visited bits, and with a hash
    # table
    bits_unroll: int = 4
    table_unroll: int = 1
    queue_capacity: int = 512  # vertices that a queue holds in shared memory
    spill_capacity: int = 1 << 16  # vertices that a queue holds in global memory after that
    in_flight: int = 0  # blocks in flight; 0: as many as the device holds at once
    short_hops: int = 2**15 - 1  # largest 16-bit distance; a deeper search restarts with 32 bits
