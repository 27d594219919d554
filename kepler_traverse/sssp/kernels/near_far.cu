// Near and far: shortest paths in one cooperative launch; nothing returns to the host.
//
// Distances are ordered integers (kt/ordered.cuh), so an offer is one atomic minimum.
// A vertex that fell below the threshold enters the next near queue, once a turn: its
// mark holds the last turn that queued it. One met for the first time at or beyond the
// threshold enters the far pile. Thresholds only rise, so it does so once in a search,
// and an entry below the threshold is stale: that vertex has been near. Once nothing is
// near, the threshold rises and the pile is split. A pile of one place a vertex and a
// queue of one place a vertex therefore never overflow.
//
// A turn begins with a barrier, after which all know the same counts and choose alike:
//
//   relax   the edges of the near queue; rows of CHUNK edges and more in pieces. While they
//           are few, each block goes on from what it lowered for HOPS hops, to itself
//   split   the far pile by the next threshold; no distance changes
//   small   block 0 takes turns of its own, near queues and counts in shared memory
//
// Davidson, Baxter, Garland, Owens. Work-efficient parallel GPU methods for single-source
// shortest paths. IPDPS 2014. Wang, Fussell, Lin. ADDS. PPoPP 2021 (a width that adapts).
#include <kt/edges.cuh>
#include <kt/local_queue.cuh>
#include <kt/ordered.cuh>

namespace {

using kt::int32;
using kt::int64;
using kt::uint32;
using kt::uint64;
using ordered_t = kt::key_of<weight_t>;

constexpr ordered_t INFINITE = kt::Key<weight_t>::INFINITE;
constexpr int32 VERTEX_BITS = 40;  // of a piece; the others say which one of its row it is

// What a turn tells the next, in three places: one is read, one written, one cleared.
// Those before STEP are added up by all, the others come from one thread.
enum Word {
  NEAR,    // vertices of the near queue,
  EDGES,   // their edges,
  PIECES,  // and pieces of their long rows
  FAR,     // vertices put on the far pile, beside
  GAP,     // after a split: how far the nearest of them lies below INFINITE
  STEP,    // turns that relaxed
  THRESHOLD,
  WIDTH,  // bits of what is added to it
  PILE,   // vertices that were on the far pile before
  SIDE,   // which of two holds it
  PHASE,  // thresholds so far
  PHASE_STEPS,
  PHASE_EDGES,  // walked since the last one
  N_WORDS
};

struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  ordered_t farthest;
  const int64* wanted;
  int64 n_wanted;
  ordered_t* keys;
  int32* marks;
  vertex_t* queue;
  vertex_t* next_queue;
  vertex_t* piles;   // [2][n_vertices]
  uint64* all_pieces;  // [2][piece_room]
  int64 piece_room;

  KT_DEVICE vertex_t* near(int64 turn) const { return turn % 2 ? next_queue : queue; }
  KT_DEVICE uint64* pieces(int64 turn) const { return all_pieces + turn % 2 * piece_room; }
  KT_DEVICE vertex_t* far(int64 side) const { return piles + side * n_vertices; }
};

KT_DEVICE offset_t degree_of(const offset_t* offsets, vertex_t v) {
  return kt::load_constant(offsets + v + 1) - kt::load_constant(offsets + v);
}

// Lists the pieces of a long row.
KT_DEVICE void cut(vertex_t v, offset_t degree, uint64* pieces, int64* count) {
  if (degree < CHUNK) return;
  const int64 n = (degree + CHUNK - 1) / CHUNK;
  const int64 place = kt::atomic_add(count, n);
  for (int64 i = 0; i < n; ++i) pieces[place + i] = static_cast<uint64>(i) << VERTEX_BITS | static_cast<uint64>(v);
}

// Who takes turns together.
struct Grid {
  static constexpr bool IS_SMALL = false;
  KT_DEVICE static kt::Team team() { return kt::whole_grid(); }
  KT_DEVICE static bool is_first() { return kt::thread_id() == 0; }
};
struct OneBlock {
  static constexpr bool IS_SMALL = true;
  KT_DEVICE static kt::Team team() { return kt::one_block(); }
  KT_DEVICE static int64 thread() { return kt::thread_in_block(); }
  KT_DEVICE static int64 n_threads() { return BLOCK; }
  KT_DEVICE static bool is_first() { return thread() == 0; }
  KT_DEVICE static void barrier() { kt::block_barrier(); }
};

KT_DEVICE int64 far_size(const int64* told) { return told[PILE] + told[FAR]; }
KT_DEVICE bool is_over(const int64* told) { return told[NEAR] == 0 && far_size(told) == 0; }
KT_DEVICE bool is_small(const int64* told) {
  return told[NEAR] ? told[NEAR] <= SMALL && told[EDGES] <= SMALL_EDGES : far_size(told) <= SMALL_FAR;
}

// Whether the targets asked for are settled; all threads of a block come. What is not
// below the threshold now will never be below this one, so an old distance says the same.
KT_DEVICE bool is_enough(const Search& search, const int64* told) {
  if (search.n_wanted == 0 || told[NEAR] || told[GAP]) return false;
  bool is_open = false;
  for (int64 i = kt::thread_in_block(); i < search.n_wanted; i += BLOCK)
    is_open |= kt::racy_load(search.keys + kt::load_constant(search.wanted + i)) >= told[THRESHOLD];
  return !kt::block_any(is_open);
}

struct Threshold {
  ordered_t key;
  weight_t width;
};

KT_DEVICE ordered_t beyond(ordered_t key, weight_t width) {
  return kt::to_ordered(kt::add_rounded(kt::from_ordered<weight_t>(key), width));
}

// Steps that leave the device idle are too many, whatever work fewer cost; in those that
// fill it, work counts. The first piles say nothing: where degrees are high, frontiers
// of few edges grow by themselves.
KT_DEVICE Threshold raised(const int64* told) {
  const ordered_t key = static_cast<ordered_t>(told[THRESHOLD]);
  weight_t width = kt::float_of(static_cast<ordered_t>(told[WIDTH]));
  if (told[GAP]) {
    // Where the width vanishes beside the distance, the nearest vertices make the pile.
    const ordered_t nearest = static_cast<ordered_t>(INFINITE - told[GAP]);
    const ordered_t next = beyond(nearest, width);
    return {next > nearest ? next : nearest + 1, width};
  }
  if (told[PHASE] >= WARM_UP && told[PHASE_EDGES] < LIGHT * told[PHASE_STEPS])
    width = kt::add_rounded(width, width);
  return {beyond(key, width), width};
}

// Puts vertices where the next turn looks for them; all lanes of a warp come.
template <typename Who>
struct Piles {
  const offset_t* offsets;
  int64* next;
  vertex_t* near;
  vertex_t* near_shared;  // the first SMALL, of few
  uint64* pieces;
  vertex_t* far;  // behind what is there
  int64 edges = 0, gap = 0;
  kt::LocalQueue found_near = {}, found_far = {};

  KT_DEVICE void add(bool is_near, bool is_far, vertex_t v) {
    if (is_near) found_near.push(v);
    if (is_far) found_far.push(v);
    if (kt::any(kt::ALL_LANES, found_near.is_full() || found_far.is_full())) empty();
  }
  KT_DEVICE void put_near(int64 place, vertex_t v) {
    const offset_t degree = degree_of(offsets, v);
    edges += degree;
    if (Who::IS_SMALL && place < SMALL)
      near_shared[place] = v;
    else
      near[place] = v;
    if (!Who::IS_SMALL) cut(v, degree, pieces, next + PIECES);
  }
  // Called from every walk, and seldom: one copy of it.
  __device__ __attribute__((noinline)) void empty() {
    found_near.empty_into(
        kt::LOCAL_QUEUE + 1, [&](int64 n) { return kt::atomic_add(next + NEAR, n); },
        [&](int64 place, vertex_t v) { put_near(place, v); });
    found_far.empty_into(
        kt::LOCAL_QUEUE + 1, [&](int64 n) { return kt::atomic_add(next + FAR, n); },
        [&](int64 place, vertex_t v) { far[place] = v; });
  }
};

// What a block lowered in a hop, to go on from in the next. A vertex lowered again is here
// again, and its older entry, which holds the distance of then, leads nowhere.
struct Lowered {
  vertex_t* vertices;
  ordered_t* keys;
  int32* size;

  KT_DEVICE bool store(vertex_t v, ordered_t key) const {
    const int32 place = kt::atomic_add(size, 1);
    if (place >= LOCAL) return false;
    vertices[place] = v;
    keys[place] = key;
    return true;
  }
};

// The same of each hop: two are in use, and three sizes, as one is cleared.
struct Hops {
  vertex_t* vertices;
  ordered_t* keys;
  int32* sizes;
  KT_DEVICE Lowered of(int32 hop) const {
    return {vertices + hop % 2 * LOCAL, keys + hop % 2 * LOCAL, sizes + hop % 3};
  }
};

// Offers the far end of an edge a path through the near one; all lanes of a warp come.
template <typename Who>
struct Relax {
  const Search search;  // no reference: into is the compiler's to keep in memory, this is not
  ordered_t threshold;
  int32 step;
  Piles<Who>& into;
  bool goes_on;  // in this block
  Lowered lowered;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t e, vertex_t v) {
    bool is_near = false, is_far = false;
    if (valid) {
      // If u falls meanwhile it is queued for that, so an old distance is no harm.
      const weight_t nearer = kt::from_ordered<weight_t>(kt::racy_load(search.keys + u));
      const ordered_t key = kt::to_ordered(kt::add_rounded(nearer, kt::load_constant(search.weights + e)));
      // Distances only fall: an old one costs an atomic that changes nothing.
      if (key <= search.farthest && key < kt::racy_load(search.keys + v)) {
        if (key >= threshold) {
          is_far = kt::atomic_min(search.keys + v, key) == INFINITE;
        } else if (goes_on) {
          is_near = key < kt::atomic_min(search.keys + v, key) && !lowered.store(v, key) && is_first_in(v);
        } else {
          // By this offer or by a better one v falls: it need not be known by which.
          is_near = is_first_in(v);
          kt::atomic_min(search.keys + v, key);
        }
      }
    }
    into.add(is_near, is_far, v);
  }
  KT_DEVICE bool is_first_in(vertex_t v) { return kt::atomic_exchange(search.marks + v, step) != step; }
};

KT_DEVICE int32 lanes_a_row(int64 n_threads, int64 n_rows) {
  int32 width = 1;
  while (width < kt::WARP && 2 * width * n_rows <= n_threads) width *= 2;
  return width;
}

// Few rows get several lanes each; of many a warp takes 32 and its lanes find their edges.
template <typename Rows, typename Visit>
KT_DEVICE void walk(const vertex_t* targets, kt::Team team, int64 size, Rows rows, Visit& visit) {
  const int32 width = lanes_a_row(team.n_warps * kt::WARP, size);
  if (width >= 4)
    kt::edges_by_virtual_warp(targets, team, size, width, rows, visit);
  else
    kt::edges_by_discovery(targets, team, size, true, rows, visit);
}

// Hops of one block, from what it has lowered; long rows wait for the next turn.
template <typename Who>
KT_DEVICE void go_on(const Search& search, const Hops& hops, Relax<Who>& offer) {
  for (int32 hop = 1; hop < HOPS; ++hop) {
    kt::block_barrier();
    const Lowered from = hops.of(hop - 1);
    const int32 size = *from.size < LOCAL ? *from.size : LOCAL;
    if (size == 0) break;
    if (kt::thread_in_block() == 0) *hops.of(hop + 1).size = 0;
    offer.lowered = hops.of(hop);
    offer.goes_on = hop + 1 < HOPS;
    const auto rows = [&](int64 i, bool is_first) {
      const vertex_t v = from.vertices[i];
      if (kt::racy_load(search.keys + v) < from.keys[i]) return kt::Row{};
      const kt::Row row = kt::row_of(search.offsets, v);
      if (row.end - row.begin < CHUNK) return row;
      if (is_first && offer.is_first_in(v)) offer.into.put_near(kt::atomic_add(offer.into.next + NEAR, int64{1}), v);
      return kt::Row{};
    };
    walk(search.targets, kt::one_block(), size, rows, offer);
  }
}

template <typename Who>
KT_DEVICE void relax(const Search& search, const int64* told, int64 turn, const vertex_t* near, const Hops& hops,
                     Piles<Who>& into) {
  const bool goes_on = !Who::IS_SMALL && HOPS > 1 && told[PIECES] == 0 && told[EDGES] <= HOP_EDGES;
  Relax<Who> offer = {search, static_cast<ordered_t>(told[THRESHOLD]), static_cast<int32>(told[STEP]), into, goes_on,
                      hops.of(0)};
  const auto rows = [&](int64 i, bool) {
    const kt::Row row = kt::row_of(search.offsets, near[i]);
    return Who::IS_SMALL || row.end - row.begin < CHUNK ? row : kt::Row{};
  };
  walk(search.targets, Who::team(), told[NEAR], rows, offer);
  if (goes_on) go_on(search, hops, offer);
  const int64 n_pieces = Who::IS_SMALL ? 0 : told[PIECES];
  for (int64 i = kt::block_id(); i < n_pieces; i += kt::n_blocks()) {
    const uint64 piece = search.pieces(turn)[i];
    kt::Row row = kt::row_of(search.offsets, static_cast<vertex_t>(piece & ((uint64{1} << VERTEX_BITS) - 1)));
    row.begin += static_cast<offset_t>(piece >> VERTEX_BITS) * CHUNK;
    if (row.end > row.begin + CHUNK) row.end = row.begin + CHUNK;
    kt::edges_of_row(search.targets, kt::one_block(), row, offer);
  }
}

template <typename Who>
KT_DEVICE void split(const Search& search, const int64* told, ordered_t threshold, Piles<Who>& into) {
  const vertex_t* const pile = search.far(told[SIDE]);
  const int64 size = far_size(told);
  for (int64 first = Who::team().warp * kt::WARP; first < size; first += Who::team().n_warps * kt::WARP) {
    const int64 i = first + kt::lane();
    const vertex_t v = i < size ? pile[i] : static_cast<vertex_t>(0);
    const ordered_t key = i < size ? search.keys[v] : static_cast<ordered_t>(-1);
    const bool is_kept = key >= threshold;
    if (is_kept && INFINITE - key > into.gap) into.gap = INFINITE - key;
    into.add(!is_kept && key >= told[THRESHOLD], is_kept, v);
  }
}

// Adds what threads have counted to what the next turn is told.
template <typename Who>
KT_DEVICE void publish(int64* next, bool has_split, int64 edges, int64 gap, int64* of_block) {
  int64* const to = Who::IS_SMALL ? next : of_block;
  const int32 most = 1 << 26;  // 32 of them fit, and so many are many
  const int32 of_warp = kt::reduce_add(kt::ALL_LANES, edges < most ? static_cast<int32>(edges) : most - 1);
  if (kt::lane() == 0 && of_warp) kt::atomic_add(to + EDGES, int64{of_warp});
  if (has_split) {
    for (int32 mask = 1; mask < kt::WARP; mask *= 2) {
      const int64 other = kt::shuffle_xor(kt::ALL_LANES, gap, mask);
      if (other > gap) gap = other;
    }
    if (kt::lane() == 0 && gap) kt::atomic_max(to + GAP, gap);
  }
  if (Who::IS_SMALL) return;
  kt::block_barrier();
  if (kt::thread_in_block() == 0) {
    if (to[EDGES]) kt::atomic_add(next + EDGES, to[EDGES]);
    if (to[GAP]) kt::atomic_max(next + GAP, to[GAP]);
    to[EDGES] = to[GAP] = 0;
  }
}

// One turn, from what is told to what is told next.
template <typename Who>
KT_DEVICE void take_turn(const Search& search, const int64* told, int64* next, int64 turn, const vertex_t* near,
                         vertex_t* near_shared, const Hops& hops, int64* of_block) {
  const bool splits = told[NEAR] == 0;
  const Threshold now = splits ? raised(told)
                               : Threshold{static_cast<ordered_t>(told[THRESHOLD]),
                                           kt::float_of(static_cast<ordered_t>(told[WIDTH]))};
  const int64 side = splits ? 1 - told[SIDE] : told[SIDE];
  const int64 pile = splits ? 0 : far_size(told);
  Piles<Who> into = {search.offsets, next, search.near(turn + 1), near_shared, search.pieces(turn + 1), search.far(side) + pile};
  if (splits)
    split(search, told, now.key, into);
  else
    relax(search, told, turn, near, hops, into);
  into.empty();
  publish<Who>(next, splits, into.edges, into.gap, of_block);
  if (!Who::is_first()) return;
  next[STEP] = told[STEP] + !splits;
  next[THRESHOLD] = now.key;
  next[WIDTH] = kt::bits_of(now.width);
  next[PILE] = pile;
  next[SIDE] = side;
  next[PHASE] = told[PHASE] + (splits && !told[GAP]);
  next[PHASE_STEPS] = splits ? 0 : told[PHASE_STEPS] + 1;
  next[PHASE_EDGES] = splits ? 0 : told[PHASE_EDGES] + told[EDGES];
}

// Turns of few alone, until there is too much for them. They end as a turn of the grid does.
template <typename Few>
KT_DEVICE void small_turns(const Search& search, const int64* told, int64* next, int64 turn_of_grid, vertex_t* queues,
                           int64* words) {
  for (int64 i = Few::thread(); i < told[NEAR]; i += Few::n_threads()) queues[i] = search.near(turn_of_grid)[i];
  for (int64 w = Few::thread(); w < 3 * N_WORDS; w += Few::n_threads()) words[w] = w < N_WORDS ? told[w] : 0;
  const int64* now = words;
  int64 turn = 0;
  while (true) {
    Few::barrier();
    now = words + turn % 3 * N_WORDS;
    if (is_over(now) || !is_small(now) || is_enough(search, now)) break;
    if (Few::thread() < N_WORDS) words[(turn + 2) % 3 * N_WORDS + Few::thread()] = 0;
    take_turn<Few>(search, now, words + (turn + 1) % 3 * N_WORDS, turn_of_grid, queues + turn % 2 * SMALL,
                   queues + (turn + 1) % 2 * SMALL, {}, nullptr);
    ++turn;
  }
  vertex_t* const near = search.near(turn_of_grid + 1);
  for (int64 i = Few::thread(); i < now[NEAR]; i += Few::n_threads()) {
    if (i < SMALL) near[i] = queues[turn % 2 * SMALL + i];
    cut(near[i], degree_of(search.offsets, near[i]), search.pieces(turn_of_grid + 1), next + PIECES);
  }
  if (Few::thread() < N_WORDS && Few::thread() != PIECES) next[Few::thread()] = now[Few::thread()];
}

}  // namespace

// Into outcome: the steps taken, and whether vertices were left because the targets are settled.
extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_near_far(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                  const weight_t* __restrict__ weights, int64 n_vertices, weight_t limit, weight_t width,
                  const int64* __restrict__ wanted, int64 n_wanted, vertex_t source, ordered_t* keys, int32* marks,
                  vertex_t* queue, vertex_t* next_queue, vertex_t* piles, uint64* pieces, int64 piece_room,
                  int64* words, uint32* arrived, int64* outcome) {
  KT_SHARED(vertex_t, queues, [2 * SMALL]);
  KT_SHARED(int64, small_words, [3 * N_WORDS]);
  KT_SHARED(int64, told, [N_WORDS]);
  KT_SHARED(int64, of_block, [N_WORDS]);
  KT_SHARED(vertex_t, lowered, [2 * LOCAL]);
  KT_SHARED(ordered_t, lowered_to, [2 * LOCAL]);
  KT_SHARED(int32, n_lowered, [3]);
  const Hops hops = {lowered, lowered_to, n_lowered};
  const Search search = {offsets, targets,    weights, n_vertices, kt::to_ordered(limit), wanted, n_wanted, keys, marks,
                         queue,   next_queue, piles,   pieces,     piece_room};
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    keys[v] = v == source ? 0 : INFINITE;
    marks[v] = -1;
  }
  if (kt::thread_in_block() < N_WORDS) of_block[kt::thread_in_block()] = 0;
  if (kt::thread_id() == 0) {
    for (int32 w = 0; w < 3 * N_WORDS; ++w) words[w] = 0;
    queue[0] = source;
    words[NEAR] = 1;
    words[EDGES] = degree_of(offsets, source);
    words[THRESHOLD] = kt::to_ordered(width) > 0 ? kt::to_ordered(width) : 1;
    words[WIDTH] = kt::bits_of(width);
    cut(source, words[EDGES], pieces, words + PIECES);
  }
  bool is_settled = false;
  for (int64 turn = 0;; ++turn) {
    kt::grid_barrier(arrived);
    if (kt::thread_in_block() < N_WORDS) told[kt::thread_in_block()] = words[turn % 3 * N_WORDS + kt::thread_in_block()];
    if (kt::thread_in_block() < 3) n_lowered[kt::thread_in_block()] = 0;
    kt::block_barrier();
    if (is_over(told)) break;
    is_settled = is_enough(search, told);
    if (is_settled) break;
    if (kt::thread_id() < N_WORDS) words[(turn + 2) % 3 * N_WORDS + kt::thread_id()] = 0;
    int64* const next = words + (turn + 1) % 3 * N_WORDS;
    if (!is_small(told))
      take_turn<Grid>(search, told, next, turn, search.near(turn), nullptr, hops, of_block);
    else if (kt::block_id() == 0)
      small_turns<OneBlock>(search, told, next, turn, queues, small_words);
  }
  if (kt::thread_id() == 0) {
    outcome[0] = told[STEP];
    outcome[1] = is_settled;
  }
}
