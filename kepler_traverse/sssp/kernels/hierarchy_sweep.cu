// Distances from many sources over a contraction hierarchy: a search upward from each source, and one
// sweep downward for all of them.
//
// Delling, Goldberg, Nowatzyk, Werneck 2011 (PHAST). A line holds the sums of one vertex from all
// sources, adjacent in memory. So a sweep reads an edge once for all sources, and all accesses to
// lines are coalesced. Sums are integers. UNREACHED is more than any sum, and twice it fits the type.
//
//   hierarchy_search_upward      one source per block: relaxes edges that lead upward until no sum
//                                improves. Lists the reached vertices with their sums
//   hierarchy_clear_lines_warp   sets the lines of all vertices that a search has reached
//   hierarchy_place_sums         writes the sums of the searches into lines
//   hierarchy_sweep_top          one block per 32 sources: the first levels, which have few vertices. A
//                                barrier of the block separates levels, because sources never meet
//   hierarchy_sweep_level_warp   one level: the sum of a vertex is the smallest over its edges from above
//
// The vertices of a hierarchy have places, the numbers of their lines. A sweep for few targets gives
// places only to vertices that lie above a target.
//
// Compile-time constants:
//   BLOCK   threads per block
//   WORDS   32-bit words of a line per thread of a sweep: 1, 2 or 4
#include <kt/advance.cuh>
#include <kt/float_order.cuh>

namespace {

constexpr ordered_t UNREACHED = static_cast<ordered_t>(1) << (8 * sizeof(ordered_t) - 2);

KT_DEVICE ordered_t lesser(ordered_t a, ordered_t b) { return a < b ? a : b; }

struct Counters {
  int64 task;
  int64 queued[3];  // vertices of the queues of three rounds: the current one, the next one, and one that is cleared
  int64 reached;
};

}  // namespace

// What the host passes (sssp/multi_source/hierarchy_sweep_gpu.py), here and below.
struct SearchArgs {
  const offset_t* offsets;  // edges that lead upward
  const vertex_t* heads;
  const ordered_t* weights;
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  int64 capacity;     // of a queue, and of the list of a source
  int64* taken;       // sources that blocks have taken
  ordered_t* sums;    // per block and vertex; UNREACHED before and after the launch
  uint32* marks;      // per block, one bit per vertex: it is in the next queue. 0 before and after the launch
  vertex_t* queues;   // two per block
  vertex_t* reached;  // per source
  ordered_t* reached_sums;
  int64* n_reached;
  KT_NULLABLE const int32* places;  // of the vertices; negative for those without a line. Null: their numbers
  uint8* is_set;                    // per line: whether a search has reached its vertex
  int64* overflows;                 // searches for which the capacity is too small
};

namespace {

struct Upward {
  const SearchArgs& args;
  Counters* counters;
  ordered_t* sums;
  uint32* marks;
  vertex_t* queues;
  vertex_t* reached;

  KT_DEVICE void start(vertex_t source) const {
    counters->queued[0] = 1;
    counters->queued[1] = counters->queued[2] = 0;
    counters->reached = 1;
    sums[source] = 0;
    queues[0] = source;
    reached[0] = source;
  }

  // Relaxes until a round improves nothing. Returns whether all lists had the capacity.
  KT_DEVICE bool run() const {
    for (int32 round = 0;; ++round) {
      const int64 n = counters->queued[round % 3];
      const vertex_t* const now = queues + round % 2 * args.capacity;
      vertex_t* const next = queues + (round + 1) % 2 * args.capacity;
      if (n == 0 || n > args.capacity) return n == 0;
      // A vertex that improves from the barrier on is queued for the next round.
      for (int64 i = kt::thread_in_block(); i < n; i += BLOCK) {
        const vertex_t u = now[i];
        kt::atomic_and(marks + u / 32, ~(1u << u % 32));
      }
      if (kt::thread_in_block() == 0) counters->queued[(round + 2) % 3] = 0;
      kt::block_barrier();
      const auto list = [&](int64 i, bool) { return kt::adjacency_list(args.offsets, now[i]); };
      kt::edges_by_discovery(args.heads, kt::one_block(), n, false, list,
                             [&](bool valid, vertex_t u, offset_t e, vertex_t v) {
                               if (valid) relax(u, e, v, next, counters->queued + (round + 1) % 3);
                             });
      kt::block_barrier();
    }
  }

  KT_DEVICE void relax(vertex_t u, offset_t e, vertex_t v, vertex_t* next, int64* n_next) const {
    // A thread that improves u from now on queues it again, so an old sum does no harm.
    const ordered_t through = kt::racy_load(sums + u) + kt::load_constant(args.weights + e);
    if (through >= kt::racy_load(sums + v)) return;
    const ordered_t before = kt::atomic_min(sums + v, through);
    if (before <= through) return;
    if (before == UNREACHED) {
      const int64 place = kt::atomic_add(&counters->reached, int64{1});
      if (place < args.capacity) reached[place] = v;
    }
    const uint32 bit = 1u << v % 32;
    if (kt::atomic_or(marks + v / 32, bit) & bit) return;
    const int64 place = kt::atomic_add(n_next, int64{1});
    if (place < args.capacity) next[place] = v;
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) hierarchy_search_upward(const SearchArgs args) {
  KT_SHARED(Counters, counters, [1]);
  const int64 block = kt::block_id();
  for (;;) {
    // Take the next source and search from it.
    if (kt::thread_in_block() == 0) counters->task = kt::atomic_add(args.taken, int64{1});
    kt::block_barrier();
    const int64 i = counters->task;
    if (i >= args.n_sources) return;
    const Upward search{args,
                        counters,
                        args.sums + block * args.n_vertices,
                        args.marks + block * ((args.n_vertices + 31) / 32),
                        args.queues + 2 * block * args.capacity,
                        args.reached + i * args.capacity};
    if (kt::thread_in_block() == 0) search.start(static_cast<vertex_t>(kt::load_constant(args.sources + i)));
    kt::block_barrier();

    const bool has_capacity = search.run() && counters->reached <= args.capacity;
    kt::block_barrier();
    if (kt::thread_in_block() == 0) {
      args.n_reached[i] = has_capacity ? counters->reached : 0;
      if (!has_capacity) kt::atomic_add(args.overflows, int64{1});
    }

    // List the sums of the reached vertices, and clear those of the block. After an overflow the host clears sums and
    // marks.
    const int64 n = has_capacity ? counters->reached : 0;
    for (int64 j = kt::thread_in_block(); j < n; j += BLOCK) {
      const vertex_t v = search.reached[j];
      args.reached_sums[i * args.capacity + j] = search.sums[v];
      search.sums[v] = UNREACHED;
      const int64 place = args.places ? kt::load_constant(args.places + v) : v;
      if (place >= 0) kt::racy_store(args.is_set + place, uint8{1});  // all threads store the same value
    }
    kt::block_barrier();
  }
}

struct ClearArgs {
  int64 n_places;
  int64 pitch;  // sums per line
  const uint8* is_set;
  ordered_t* lines;
};

extern "C" __global__ void __launch_bounds__(BLOCK) hierarchy_clear_lines_warp(const ClearArgs args) {
  for (int64 place = kt::warp_id(); place < args.n_places; place += kt::n_warps()) {
    if (!kt::load_constant(args.is_set + place)) continue;
    for (int64 i = kt::lane(); i < args.pitch; i += WARP) args.lines[place * args.pitch + i] = UNREACHED;
  }
}

struct PlaceArgs {
  int64 n_sources;
  int64 capacity;
  int64 pitch;
  const vertex_t* reached;
  const ordered_t* reached_sums;
  const int64* n_reached;
  KT_NULLABLE const int32* places;
  ordered_t* lines;
};

extern "C" __global__ void __launch_bounds__(BLOCK) hierarchy_place_sums(const PlaceArgs args) {
  for (int64 i = kt::block_id(); i < args.n_sources; i += kt::n_blocks()) {
    const int64 n = kt::load_constant(args.n_reached + i);
    for (int64 j = i * args.capacity + kt::thread_in_block(); j < i * args.capacity + n; j += BLOCK) {
      const vertex_t v = kt::load_constant(args.reached + j);
      const int64 place = args.places ? kt::load_constant(args.places + v) : v;
      if (place >= 0) args.lines[place * args.pitch + i] = kt::load_constant(args.reached_sums + j);
    }
  }
}

struct SweepArgs {
  const offset_t* offsets;  // edges from above, by place
  const vertex_t* heads;    // places
  const ordered_t* weights;
  const int32* by_level;       // places, level by level
  const int64* level_offsets;  // where each level begins
  int64 n_levels;              // of the top
  int64 first;                 // of by_level, where the level begins
  int64 n_places;
  int32 chunks_per_item;  // parts of a line that a warp takes; a divisor of their number
  int64 pitch;
  const uint8* is_set;
  ordered_t* lines;
  int64* largest;  // the largest finite sum
};

namespace {

constexpr int32 IN_FLIGHT = 4;  // lines that a thread loads at once

// Only few threads find a larger sum than those before, so most of them only load.
KT_DEVICE void keep_largest(int64* largest, ordered_t mine) {
  const int64 of_warp = kt::largest_of_all(int64{mine});
  if (kt::lane() == 0 && of_warp > kt::racy_load(largest)) kt::atomic_max(largest, of_warp);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) hierarchy_sweep_top(const SweepArgs args) {
  ordered_t largest = 0;
  for (int64 chunk = kt::block_id(); chunk * WARP < args.pitch; chunk += kt::n_blocks()) {
    ordered_t* const lines = args.lines + chunk * WARP + kt::lane();
    for (int64 level = 0; level < args.n_levels; ++level) {
      const int64 end = kt::load_constant(args.level_offsets + level + 1);
      for (int64 i = kt::load_constant(args.level_offsets + level) + kt::warp_in_block(); i < end; i += BLOCK / WARP) {
        const int64 place = kt::load_constant(args.by_level + i);
        ordered_t best = kt::load_constant(args.is_set + place) ? lines[place * args.pitch] : UNREACHED;
        const offset_t last = kt::load_constant(args.offsets + place + 1);
        for (offset_t e = kt::load_constant(args.offsets + place); e < last; e += IN_FLIGHT) {
          ordered_t through[IN_FLIGHT];
#pragma unroll
          for (int32 j = 0; j < IN_FLIGHT; ++j) {
            const offset_t at = e + j < last ? e + j : last - 1;
            through[j] = lines[kt::load_constant(args.heads + at) * args.pitch] + kt::load_constant(args.weights + at);
          }
#pragma unroll
          for (int32 j = 0; j < IN_FLIGHT; ++j) best = lesser(best, through[j]);
        }
        lines[place * args.pitch] = best;
        if (best < UNREACHED && best > largest) largest = best;
      }
      kt::block_barrier();
    }
  }
  keep_largest(args.largest, largest);
}

// A warp takes a vertex and some chunks of its line, so that it reads the edges once for all of them.
extern "C" __global__ void __launch_bounds__(BLOCK) hierarchy_sweep_level_warp(const SweepArgs args) {
  constexpr int32 SUMS = 4 * WORDS / sizeof(ordered_t);  // per thread
  union Vector {
    uint32 words[WORDS];
    ordered_t sums[SUMS];
  };
  const int64 n_shares = args.pitch / (WARP * SUMS) / args.chunks_per_item;  // items of a vertex
  ordered_t largest = 0;
  for (int64 item = kt::warp_id(); item < args.n_places * n_shares; item += kt::n_warps()) {
    const int64 place = kt::load_constant(args.by_level + args.first + item / n_shares);
    const bool is_set = kt::load_constant(args.is_set + place);
    const offset_t begin = kt::load_constant(args.offsets + place);
    const int32 n_edges = static_cast<int32>(kt::load_constant(args.offsets + place + 1) - begin);

    // Hold the first IN_FLIGHT edges in registers for all chunks.
    vertex_t heads[IN_FLIGHT];
    ordered_t weights[IN_FLIGHT];
#pragma unroll
    for (int32 j = 0; j < IN_FLIGHT; ++j) {
      heads[j] = j < n_edges ? kt::load_constant(args.heads + begin + j) : static_cast<vertex_t>(0);
      weights[j] = j < n_edges ? kt::load_constant(args.weights + begin + j) : static_cast<ordered_t>(0);
    }

    // For each chunk, load the lines of these edges and of the vertex, then take the least sums.
    ordered_t* lines = args.lines + (item % n_shares * args.chunks_per_item * WARP + kt::lane()) * SUMS;
    for (int32 chunk = 0; chunk < args.chunks_per_item; ++chunk, lines += WARP * SUMS) {
      const auto load = [&](int64 of, Vector& line) {
        kt::load_constant_words(reinterpret_cast<const uint32*>(lines + of * args.pitch), line.words);
      };
      Vector best, near[IN_FLIGHT];
#pragma unroll
      for (int32 j = 0; j < IN_FLIGHT; ++j)
        if (j < n_edges) load(heads[j], near[j]);
      if (is_set) {
        kt::load_words(reinterpret_cast<const uint32*>(lines + place * args.pitch), best.words);
      } else {
#pragma unroll
        for (int32 i = 0; i < SUMS; ++i) best.sums[i] = UNREACHED;
      }
#pragma unroll
      for (int32 j = 0; j < IN_FLIGHT; ++j)
        if (j < n_edges) {
#pragma unroll
          for (int32 i = 0; i < SUMS; ++i) best.sums[i] = lesser(best.sums[i], near[j].sums[i] + weights[j]);
        }
      // The other edges, one by one.
      for (int32 j = IN_FLIGHT; j < n_edges; ++j) {
        const ordered_t weight = kt::load_constant(args.weights + begin + j);
        load(kt::load_constant(args.heads + begin + j), near[0]);
#pragma unroll
        for (int32 i = 0; i < SUMS; ++i) best.sums[i] = lesser(best.sums[i], near[0].sums[i] + weight);
      }
      kt::store_words(reinterpret_cast<uint32*>(lines + place * args.pitch), best.words);
#pragma unroll
      for (int32 i = 0; i < SUMS; ++i)
        if (best.sums[i] < UNREACHED && best.sums[i] > largest) largest = best.sums[i];
    }
  }
  keep_largest(args.largest, largest);
}
