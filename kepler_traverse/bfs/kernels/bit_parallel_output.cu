// Results of a bit-parallel BFS.
//
//   bfs_bit_parallel_write    hop counts, from bit planes
//   bfs_bit_parallel_count    number of vertices per source in a frontier
//   bfs_bit_parallel_add      number of sources per vertex of a frontier, weighted by the level
//   bfs_predecessors_*_warp   predecessors, from hop counts of 8, 16 or 32 bits
//
// The distances of a source take `pitch` values, a multiple of TILE, so that a warp writes whole
// cache lines: four hop counts of 8 bits per lane.
//
// Reads:  seen and planes (bit_parallel.cu); for predecessors, the reverse graph and the distances.
// Writes: `hop_bytes` bytes per vertex and source; one predecessor per vertex and source.
//
// Compile-time constants: BLOCK; TILE, vertices; and WORDS and LANES of source_bitsets.cuh.
#include <kt/advance.cuh>

#include "source_bitsets.cuh"

namespace {

constexpr int32 COLUMNS = WORDS < 4 ? WORDS : 4;
constexpr int32 OCTETS = 8;  // planes at once
constexpr int32 DIGITS = 8;  // of a counter, which so holds up to 255
constexpr int32 A_LANE = TILE / WARP;

// Transposes a matrix of 8 x 8 bits.
KT_DEVICE uint64 transposed(uint64 x) {
  uint64 t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AAull;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCCull;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0ull;
  return x ^ t ^ (t << 28);
}

KT_DEVICE uint32 octet(uint64 x, int32 i) { return static_cast<uint32>(x >> (8 * i)) & 0xffu; }

// Of a tile of vertices: the bit planes of one byte of the hop counts, and the sources that have not reached a vertex.
struct Tile {
  uint32 planes[OCTETS][COLUMNS][TILE];
  uint32 unseen[COLUMNS][TILE];
};

// The hop counts of a vertex from eight sources, or one byte of each; all bits are set if a source has not reached it.
KT_DEVICE uint64 hops_of_eight(const Tile& tile, int32 n_planes, int32 column, int32 i, int32 eight) {
  uint64 bits = octet(tile.unseen[column][i], eight) * 0x0101010101010101ull;
  for (int32 plane = 0; plane < n_planes; ++plane)
    bits |= static_cast<uint64>(octet(tile.planes[plane][column][i], eight)) << (8 * plane);
  return transposed(bits);
}

}  // namespace

// What the host passes (bfs/multi_source/bit_parallel_gpu.py).
template <typename hop_t>
struct PredecessorArgs {
  const offset_t* in_offsets;
  const vertex_t* in_targets;
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  int64 pitch;
  const hop_t* distance;
  vertex_t* predecessor;
};

namespace {

template <typename hop_t>
KT_DEVICE void find_predecessors(const PredecessorArgs<hop_t>& args) {
  const int64 n_vertices = args.n_vertices;
  const int64 n_words = (n_vertices + WARP - 1) / WARP;
  for (int64 task = kt::warp_id(); task < args.n_sources * n_words; task += kt::n_warps()) {
    const int64 i = task / n_words;
    const int64 v = task % n_words * WARP + kt::lane();
    const hop_t* const hops_of = args.distance + i * args.pitch;
    const int32 hops = v < n_vertices ? kt::load_constant(hops_of + v) : kt::UNREACHED;
    const kt::AdjacencyList in_list =
        hops > 0 ? kt::adjacency_list(args.in_offsets, static_cast<vertex_t>(v)) : kt::AdjacencyList{};
    // Adjacency lists are sorted, so the first hit is the smallest predecessor. Each lane looks for a level of its
    // own, so other lanes cannot help it: hence the unlimited patience.
    const vertex_t found = kt::first_hit(args.in_targets, in_list, 0x7fffffff,
                                         [&](vertex_t u) { return kt::load_constant(hops_of + u) == hops - 1; });
    if (v < n_vertices)
      args.predecessor[i * n_vertices + v] =
          v == kt::load_constant(args.sources + i) ? static_cast<vertex_t>(v) : found;
  }
}

}  // namespace

// Each block writes tiles of TILE vertices, COLUMNS words of their bitsets at a time. The arguments are no struct: with
// one, the kernel needs 58 registers in place of 48, and fewer blocks fit on a multiprocessor.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_bit_parallel_write(const uint32* seen, const uint32* planes, int32 n_planes, int64 n_vertices, int64 n_sources,
                           int64 pitch, int32 hop_bytes, uint8* distance) {
  KT_SHARED(Tile, tile, [1]);
  const int64 n_tiles = (n_vertices + TILE - 1) / TILE;
  for (int64 task = kt::block_id(); task < n_tiles * (WORDS / COLUMNS) * hop_bytes; task += kt::n_blocks()) {
    const int32 byte = static_cast<int32>(task % hop_bytes);
    const int32 first_column = static_cast<int32>(task / hop_bytes % (WORDS / COLUMNS)) * COLUMNS;
    const int64 first = task / hop_bytes / (WORDS / COLUMNS) * TILE;
    int32 n_here = n_planes - byte * OCTETS;
    n_here = n_here < 0 ? 0 : n_here < OCTETS ? n_here : OCTETS;

    // Load the bits of the tile: those of `seen`, then the planes of this byte.
    kt::block_barrier();  // all threads have read the last tile
    for (int32 at = kt::thread_in_block(); at < (n_here + 1) * TILE; at += BLOCK) {
      const int32 i = at % TILE;
      const int32 plane = at / TILE - 1;
      if (first + i >= n_vertices) continue;
      const uint32* const from = plane < 0 ? seen : planes + (byte * OCTETS + plane) * n_vertices * WORDS;
      for (int32 column = 0; column < COLUMNS; ++column) {
        const uint32 bits = kt::load_constant(from + (first + i) * WORDS + first_column + column);
        (plane < 0 ? tile->unseen[column] : tile->planes[plane][column])[i] = plane < 0 ? ~bits : bits;
      }
    }
    kt::block_barrier();

    // Write them: a warp takes the hop counts from eight sources, a lane those of A_LANE adjacent vertices.
    for (int32 octet_of = kt::warp_in_block(); octet_of < COLUMNS * 4; octet_of += BLOCK / WARP) {
      const int32 column = octet_of / 4;
      uint64 hops[A_LANE];
#pragma unroll
      for (int32 j = 0; j < A_LANE; ++j) {
        const int32 i = kt::lane() * A_LANE + j;
        hops[j] = first + i < n_vertices ? hops_of_eight(tile[0], n_here, column, i, octet_of % 4) : 0;
      }
      const int64 source = int64{32} * (first_column + column) + 8 * (octet_of % 4);
#pragma unroll
      for (int32 eighth = 0; eighth < 8; ++eighth) {
        if (source + eighth >= n_sources) break;
        uint8* const to = distance + ((source + eighth) * pitch + first + kt::lane() * A_LANE) * hop_bytes + byte;
        if (hop_bytes == 1) {
          uint32 four = 0;
#pragma unroll
          for (int32 j = 0; j < A_LANE; ++j) four |= octet(hops[j], eighth) << (8 * j);
          kt::store_streaming(reinterpret_cast<uint32*>(to), four);
        } else {
#pragma unroll
          for (int32 j = 0; j < A_LANE; ++j) to[j * hop_bytes] = static_cast<uint8>(octet(hops[j], eighth));
        }
      }
    }
  }
}

// Counts the vertices per source in a frontier. A thread counts for the 32 sources of one word, in
// a bit-sliced counter: digit d holds bit d of all 32 counts.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_bit_parallel_count(const uint32* front, const uint32* in_front, int64 n_vertices, int64* counts) {
  KT_SHARED(int32, sums, [32 * WORDS]);
  for (int32 i = kt::thread_in_block(); i < 32 * WORDS; i += BLOCK) sums[i] = 0;
  kt::block_barrier();
  constexpr int32 AT_ONCE = BLOCK / WORDS;
  const int32 column = kt::thread_in_block() % WORDS;
  uint32 digits[DIGITS] = {};
  int32 n_counted = 0;

  // Moves the counts of this thread to those of the block, before a digit overflows.
  const auto flush = [&] {
    for (int32 bit = 0; bit < 32; ++bit) {
      uint32 count = 0;
#pragma unroll
      for (int32 d = 0; d < DIGITS; ++d) count |= (digits[d] >> bit & 1u) << d;
      if (count) kt::atomic_add(sums + 32 * column + bit, static_cast<int32>(count));
    }
    for (uint32& digit : digits) digit = 0;
    n_counted = 0;
  };

  // Add the bits of each vertex like binary numbers: the carry of a digit goes to the next one.
  for (int64 v = int64{kt::block_id()} * AT_ONCE + kt::thread_in_block() / WORDS; v < n_vertices;
       v += int64{kt::n_blocks()} * AT_ONCE) {
    if (!kt::has_bit(in_front, v)) continue;
    uint32 carry = kt::load_constant(front + v * WORDS + column);
#pragma unroll
    for (int32 d = 0; d < DIGITS; ++d) {
      const uint32 before = digits[d];
      digits[d] = before ^ carry;
      carry &= before;
    }
    if (++n_counted == (1 << DIGITS) - 1) flush();
  }
  if (n_counted) flush();

  kt::block_barrier();
  for (int32 i = kt::thread_in_block(); i < 32 * WORDS; i += BLOCK)
    if (sums[i]) kt::atomic_add(counts + i, int64{sums[i]});
}

// Adds `unit` to the sum of each vertex of a frontier, once per source that has reached it in this level. A warp owns
// 32 vertices.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_bit_parallel_add_warp(const uint32* front, const uint32* in_front, int64 n_vertices, uint64 unit,
                              uint64* sums) {
  for (int64 word = kt::warp_id(); word < (n_vertices + 31) / 32; word += kt::n_warps()) {
    for (uint32 left = kt::load_constant(in_front + word); left;) {
      const int32 bit = kt::take_bit(left);
      const int64 v = word * 32 + bit;
      int32 n_sources = 0;
      if (bit >= 0) {
        const kt::LaneWords mine = kt::constant_lane_words(front, v);
#pragma unroll
        for (int32 i = 0; i < kt::WORDS_PER_LANE; ++i) n_sources += kt::count_lanes(mine.words[i]);
      }
#pragma unroll
      for (int32 mask = 1; mask < LANES; mask *= 2) n_sources += kt::shuffle_xor(ALL_LANES, n_sources, mask);
      if (bit >= 0 && kt::lane_in_bitset() == 0) sums[v] += unit * static_cast<uint64>(n_sources);
    }
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK) bfs_predecessors_8_warp(const PredecessorArgs<signed char> args) {
  find_predecessors(args);
}
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_predecessors_16_warp(const PredecessorArgs<short> args) {
  find_predecessors(args);
}
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_predecessors_32_warp(const PredecessorArgs<int32> args) {
  find_predecessors(args);
}
