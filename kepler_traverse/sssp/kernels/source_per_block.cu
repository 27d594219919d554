// Shortest paths from many sources by near and far piles, one source per thread block.
//
// Each block runs a search of its own and then takes the next source from a global counter.
// Iterations are separated by block barriers only. An iteration relaxes the near pile: vertices
// that fall below the threshold are near in the next one, all others go onto the far pile.
// When nothing is near, the threshold rises and the far pile is split: entries below the old
// threshold are stale, since those vertices have been near, and are dropped. The width of the piles
// doubles while they are too small to fill a block.
//
// Frontier    two near piles, by the parity of the iteration, and one far pile. The first
//             QUEUE_CAPACITY vertices of each near pile are in shared memory, all others in
//             global memory
// Queued      one bit per vertex and pile. The first thread to set it queues the vertex, so that no
//             pile outgrows the number of vertices
// Visited     none: an atomic minimum on a distance, an ordered integer, decides
//
// Reads:  the adjacency lists, with weights.
// Writes: one distance per vertex and source, as an ordered integer; the distances of targets.
//
// Compile-time constants:
//   BLOCK            threads per block
//   QUEUE_CAPACITY   vertices per near pile in shared memory
//   UNROLL            edges per lane that are loaded together
//   WARM_UP          iterations after which the size of a pile is judged
//   FEW              vertices per iteration below which the width doubles
//
// Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source shortest paths. IPDPS 2014.
#include <kt/advance.cuh>
#include <kt/float_order.cuh>
#include <kt/frontier_queue.cuh>

// What the host passes (sssp/multi_source/source_per_block.py).
struct SearchArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  int64* taken;                              // the next source, 0 at first
  weight_t limit;                            // vertices beyond it are not reached
  weight_t width;                            // distance between the first two thresholds
  KT_NULLABLE const int64* target_vertices;  // vertices whose distances end a search
  int64 n_target_vertices;
  KT_NULLABLE const int64* target_offsets;  // [n_sources + 1]: begins of lists per source
  vertex_t* piles;                          // [blocks][3][n_vertices]
  uint32* queued;                           // [blocks][3]: one bit per vertex
  int32 is_per_source;                      // whether each source has distances of its own; else each block
  ordered_t* keys;
  KT_NULLABLE ordered_t* at_target_vertices;  // [n_sources][n_target_vertices], or the lists one after the other
  int32* rounds;                              // [n_sources]
  ordered_t* complete;                        // [n_sources]: up to where a search is complete
  ordered_t* below;                           // [n_sources]: its last threshold
};

namespace {

// What the threads of a block share.
struct Counters {
  int64 task;
  ordered_t nearest;  // that a split has left on the far pile
  ordered_t farthest;
  int32 near[3];  // one read, one written, one cleared
  int32 far;
  int32 still_far;  // vertices that a split leaves on the far pile
};

struct Pile {
  vertex_t* in_shared;
  vertex_t* in_global;

  KT_DEVICE void store(int32 i, vertex_t v) const {
    (i < QUEUE_CAPACITY ? in_shared[i] : in_global[i - QUEUE_CAPACITY]) = v;
  }
  KT_DEVICE vertex_t load(int64 i) const { return i < QUEUE_CAPACITY ? in_shared[i] : in_global[i - QUEUE_CAPACITY]; }
};

KT_DEVICE bool set_bit(uint32* bits, int64 v) {
  const uint32 bit = 1u << (v % 32);
  return (kt::atomic_or(bits + v / 32, bit) & bit) == 0;
}
KT_DEVICE void clear_bit(uint32* bits, int64 v) { kt::atomic_and(bits + v / 32, ~(1u << (v % 32))); }

// The key that is higher by a width, and at least the next key, so that there is always progress.
KT_DEVICE ordered_t beyond(ordered_t key, weight_t width) {
  const ordered_t next = kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(key), width));
  return next > key ? next : key + 1;
}

struct TargetVertices {
  const int64* vertices;
  int64 size;
};

struct Search;

// Relaxes edges, N per lane with N loads in flight.
struct Relaxation {
  const Search& search;
  int32 iteration;
  ordered_t threshold;
  Pile to;

  template <int32 N>
  KT_DEVICE void unrolled(const kt::Edges<N>& edges) const;
};

struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  ordered_t limit;
  ordered_t* keys;
  vertex_t* queues;  // the first QUEUE_CAPACITY vertices of two near piles
  vertex_t* piles;   // the others of both, and the far pile
  uint32* queued;    // of all three
  Counters* counters;

  KT_DEVICE Pile near(int32 iteration) const {
    const int32 which = iteration % 2;
    return {queues + which * QUEUE_CAPACITY, piles + which * n_vertices};
  }
  KT_DEVICE uint32* near_queued(int32 iteration) const { return queued + iteration % 2 * n_words(); }
  KT_DEVICE uint32* far_queued() const { return queued + 2 * n_words(); }
  KT_DEVICE int64 n_words() const { return (n_vertices + 31) / 32; }

  KT_DEVICE void begin(vertex_t source) const {
    for (int64 v = kt::thread_in_block(); v < n_vertices; v += BLOCK) keys[v] = kt::INFINITE;
    for (int64 word = kt::thread_in_block(); word < 3 * n_words(); word += BLOCK) queued[word] = 0;
    kt::block_barrier();
    if (kt::thread_in_block() == 0) {
      keys[source] = 0;
      near(0).store(0, source);
      counters->near[0] = 1;
      counters->near[1] = counters->far = 0;
    }
    kt::block_barrier();
  }

  KT_DEVICE void relax(int32 iteration, int32 size, ordered_t threshold) const {
    const Pile from = near(iteration);
    uint32* const queued_from = near_queued(iteration);
    const auto lists = [&](int64 i, bool) {
      const vertex_t u = from.load(i);
      clear_bit(queued_from, u);  // no thread sets bits for this iteration any more
      return kt::adjacency_list(offsets, u);
    };
    Relaxation relaxation = {*this, iteration, threshold, near(iteration + 1)};
    const int32 width = kt::lanes_per_list(BLOCK, size);
    kt::edges_by_discovery<UNROLL>(targets, kt::one_block(), int64{size}, false, lists, relaxation, WARP / width);
  }

  // Moves the vertices below the threshold from the far pile to the next near pile.
  KT_DEVICE void split(int32 iteration, int32 n_far, ordered_t before, ordered_t threshold) const {
    vertex_t* const far = piles + 2 * n_vertices;
    const Pile to = near(iteration + 1);
    if (kt::thread_in_block() == 0) {
      counters->still_far = 0;
      counters->nearest = kt::INFINITE;
    }
    for (int64 first = 0; first < n_far; first += BLOCK) {
      const bool has = first + kt::thread_in_block() < n_far;
      const vertex_t v = has ? far[first + kt::thread_in_block()] : static_cast<vertex_t>(0);
      const ordered_t key = has ? keys[v] : kt::INFINITE;
      kt::block_barrier();  // the next stores go to places that all threads have read
      const bool stays_far = has && key >= threshold;
      const bool is_near = has && key >= before && key < threshold;
      if (has && !stays_far) clear_bit(far_queued(), v);
      if (is_near) set_bit(near_queued(iteration + 1), v);
      const int32 in_near = kt::place_of(is_near, counters->near + (iteration + 1) % 3);
      if (is_near) to.store(in_near, v);
      const int32 in_far = kt::place_of(stays_far, &counters->still_far);
      if (stays_far) far[in_far] = v;
      if (stays_far && key < kt::racy_load(&counters->nearest)) kt::atomic_min(&counters->nearest, key);
    }
    kt::block_barrier();
    if (kt::thread_in_block() == 0) counters->far = counters->still_far;
    kt::block_barrier();
  }

  // Whether the distance of a target of this thread may change. A position that is kept from pile to pile would take
  // registers from the relaxation.
  KT_DEVICE bool is_open(const TargetVertices& target_vertices, ordered_t threshold) const {
    for (int64 i = kt::thread_in_block(); i < target_vertices.size; i += BLOCK)
      if (keys[kt::load_constant(target_vertices.vertices + i)] >= threshold) return true;
    return false;
  }

  // The largest distance of the targets. All threads of the block call it, while no thread relaxes.
  KT_DEVICE ordered_t farthest_of(const TargetVertices& target_vertices) const {
    if (kt::thread_in_block() == 0) counters->farthest = 0;
    kt::block_barrier();
    ordered_t mine = 0;
    for (int64 i = kt::thread_in_block(); i < target_vertices.size; i += BLOCK) {
      const ordered_t key = keys[kt::load_constant(target_vertices.vertices + i)];
      if (key > mine) mine = key;
    }
    if (mine) kt::atomic_max(&counters->farthest, mine);
    kt::block_barrier();
    return counters->farthest;
  }

  // Returns the number of iterations that relaxed edges. Distances up to `complete` are final, and so are all finite
  // ones below the last threshold.
  KT_DEVICE int32 run(vertex_t source, weight_t width, const TargetVertices& target_vertices, ordered_t& complete,
                      ordered_t& threshold) const {
    begin(source);
    threshold = beyond(0, width);
    complete = kt::INFINITE;
    int32 rounds = 0, pile_rounds = 0;
    int64 pile_size = 0;
    bool is_empty = false;  // the last split found nothing
    for (int32 iteration = 0;; ++iteration) {
      // While the near pile has vertices, relax their edges.
      const int32 size = counters->near[iteration % 3];
      if (size) {
        if (kt::thread_in_block() == 0) counters->near[(iteration + 2) % 3] = 0;
        relax(iteration, size, threshold);
        kt::block_barrier();
        ++rounds;
        ++pile_rounds;
        pile_size += size;
        is_empty = false;
        continue;
      }

      // Stop if the far pile is empty as well, or the distances of all targets are final.
      const int32 n_far = counters->far;
      if (n_far == 0) return rounds;
      if (target_vertices.size && !kt::block_any(is_open(target_vertices, threshold))) {
        const ordered_t farthest = farthest_of(target_vertices);
        complete = farthest;
        for (int64 v = kt::thread_in_block(); v < n_vertices; v += BLOCK)
          if (keys[v] > farthest) keys[v] = kt::INFINITE;
        return rounds;
      }

      // Double the width if the near piles were small, raise the threshold, and split the far pile.
      if (pile_rounds >= WARM_UP) {
        if (pile_size < int64{FEW} * pile_rounds) width = kt::add_rounded(width, width);
        pile_rounds = 0;
        pile_size = 0;
      }
      const ordered_t before = threshold;
      threshold = beyond(is_empty ? counters->nearest : threshold, width);
      kt::block_barrier();  // all threads have read what a split changes
      if (kt::thread_in_block() == 0) counters->near[(iteration + 2) % 3] = 0;
      split(iteration, n_far, before, threshold);
      is_empty = true;
    }
  }
};

template <int32 N>
KT_DEVICE void Relaxation::unrolled(const kt::Edges<N>& edges) const {
  ordered_t* const keys = search.keys;
  uint32* const near_queued = search.near_queued(iteration + 1);
  vertex_t v[N];
  ordered_t key[N], before[N];
  bool is_near[N], is_far[N];

  // Lower the distances of the heads.
#pragma unroll
  for (int32 i = 0; i < N; ++i) {
    v[i] = edges.valid[i] ? kt::load_constant(search.targets + edges.e[i]) : edges.u[i];
    const weight_t weight = edges.valid[i] ? kt::load_constant(search.weights + edges.e[i]) : static_cast<weight_t>(0);
    // A thread that improves u from now on queues it for the next iteration.
    const ordered_t here = edges.valid[i] ? kt::racy_load(keys + edges.u[i]) : kt::INFINITE;
    key[i] = kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(here), weight));
  }
#pragma unroll
  for (int32 i = 0; i < N; ++i) before[i] = edges.valid[i] ? kt::racy_load(keys + v[i]) : 0;
#pragma unroll
  for (int32 i = 0; i < N; ++i)  // an old value is too large; then the result of the atomic decides
    if (key[i] <= search.limit && key[i] < before[i]) before[i] = kt::atomic_min(keys + v[i], key[i]);

  // Choose the pile of each vertex that is not on it yet.
  int32 near = 0, far = 0;
#pragma unroll
  for (int32 i = 0; i < N; ++i) {
    const bool is_lower = edges.valid[i] && key[i] <= search.limit && key[i] < before[i];
    const bool is_below = key[i] < threshold;
    const bool is_first = is_lower && set_bit(is_below ? near_queued : search.far_queued(), v[i]);
    near += is_near[i] = is_first && is_below;
    far += is_far[i] = is_first && !is_below;
  }

  // Reserve places for the warp. Both counts are in one word: a warp has 32 N edges.
  static_assert(N * WARP < 1 << 15, "");
  const int32 through = kt::sum_through(near | far << 16);
  const int32 all = kt::broadcast(ALL_LANES, through, WARP - 1);
  if (all == 0) return;
  int32 first = 0;
  if (kt::lane() == 0 && (all & 0xffff))
    first = kt::atomic_add(search.counters->near + (iteration + 1) % 3, all & 0xffff);
  if (kt::lane() == 1 && all >> 16) first = kt::atomic_add(&search.counters->far, all >> 16);
  int32 in_near = kt::broadcast(ALL_LANES, first, 0) + (through & 0xffff) - near;
  int32 in_far = kt::broadcast(ALL_LANES, first, 1) + (through >> 16) - far;
  vertex_t* const far_pile = search.piles + 2 * search.n_vertices;
#pragma unroll
  for (int32 i = 0; i < N; ++i) {
    if (is_near[i]) to.store(in_near++, v[i]);
    if (is_far[i]) far_pile[in_far++] = v[i];
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_source_per_block(const SearchArgs args) {
  KT_SHARED(vertex_t, queues, [2 * QUEUE_CAPACITY]);
  KT_SHARED(Counters, counters, [1]);
  const int64 block = kt::block_id();
  const int64 n_words = (args.n_vertices + 31) / 32;
  vertex_t* const mine = args.piles + 3 * block * args.n_vertices;
  uint32* const bits = args.queued + 3 * block * n_words;
  for (;;) {
    // Take the next source.
    if (kt::thread_in_block() == 0) counters->task = kt::atomic_add(args.taken, int64{1});
    kt::block_barrier();
    const int64 i = counters->task;
    if (i >= args.n_sources) return;
    ordered_t* const keys = args.keys + (args.is_per_source ? i : block) * args.n_vertices;
    const Search search{args.offsets, args.targets, args.weights, args.n_vertices, kt::to_ordered(args.limit), keys,
                        queues,       mine,         bits,         counters};
    const vertex_t source = static_cast<vertex_t>(kt::load_constant(args.sources + i));

    // Its targets are a list of its own, or those of all sources.
    const bool has_list = args.target_offsets;
    const int64 first_target = has_list ? kt::load_constant(args.target_offsets + i) : 0;
    const int64 n_target_vertices =
        has_list ? kt::load_constant(args.target_offsets + i + 1) - first_target : args.n_target_vertices;
    const int64* const target_vertices = args.target_vertices + first_target;

    // Search, then report.
    ordered_t all_up_to = kt::INFINITE, threshold = kt::INFINITE;
    const int32 n_rounds = search.run(source, args.width, {target_vertices, n_target_vertices}, all_up_to, threshold);
    kt::block_barrier();  // all threads have read the task and written the distances
    if (kt::thread_in_block() == 0) {
      args.rounds[i] = n_rounds;
      args.complete[i] = all_up_to;
      args.below[i] = threshold;
    }
    if (args.at_target_vertices)
      for (int64 j = kt::thread_in_block(); j < n_target_vertices; j += BLOCK)
        args.at_target_vertices[(has_list ? first_target : i * n_target_vertices) + j] =
            keys[kt::load_constant(target_vertices + j)];
    kt::block_barrier();
  }
}
