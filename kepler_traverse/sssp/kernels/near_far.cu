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
#include <kt/piles.cuh>

namespace {

using kt::int32;
using kt::int64;
using kt::ordered_t;
using kt::uint32;
using kt::uint64;

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
  vertex_t* piles;     // [2][n_vertices]
  uint64* all_pieces;  // [2][piece_room]
  int64 piece_room;

  KT_DEVICE vertex_t* near(int32 turn) const { return turn % 2 ? next_queue : queue; }
  KT_DEVICE uint64* pieces(int32 turn) const { return all_pieces + turn % 2 * piece_room; }
  KT_DEVICE vertex_t* far(int64 side) const { return piles + side * n_vertices; }
};

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

// Whether the targets asked for are settled; all threads of a block come. What is not
// below the threshold now will never be below this one, so an old distance says the same.
KT_DEVICE bool is_enough(const Search& search, const int64* told) {
  if (search.n_wanted == 0 || told[kt::NEAR] || told[kt::GAP]) return false;
  bool is_open = false;
  for (int64 i = kt::thread_in_block(); i < search.n_wanted; i += BLOCK)
    is_open |= kt::racy_load(search.keys + kt::load_constant(search.wanted + i)) >= told[kt::THRESHOLD];
  return !kt::block_any(is_open);
}

// Offers the far end of an edge a path through the near one; all lanes of a warp come.
template <typename Who>
struct Relax {
  const Search search;  // no reference: into is the compiler's to keep in memory, this is not
  ordered_t threshold;
  int32 step;
  kt::Piles<Who>& into;
  bool goes_on;  // in this block
  kt::Lowered lowered;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t e, vertex_t v) {
    bool is_near = false, is_far = false;
    if (valid) {
      // If u falls meanwhile it is queued for that, so an old distance is no harm.
      const weight_t nearer = kt::from_ordered<weight_t>(kt::racy_load(search.keys + u));
      const ordered_t key = kt::to_ordered(kt::add_rounded(nearer, kt::load_constant(search.weights + e)));
      // Distances only fall: an old one costs an atomic that changes nothing.
      if (key <= search.farthest && key < kt::racy_load(search.keys + v)) {
        if (key >= threshold) {
          is_far = kt::atomic_min(search.keys + v, key) == kt::INFINITE;
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

// Few rows get several lanes each, and so do long ones; of many short ones a warp takes
// 32 and its lanes find their edges.
template <typename Rows, typename Visit>
KT_DEVICE void walk(const vertex_t* targets, kt::Team team, int64 size, int64 edges, Rows rows, Visit& visit) {
  int32 width = kt::lanes_a_row(team.n_warps * kt::WARP, size);
  while (width < kt::WARP && 2 * width * size * EDGES_A_LANE <= edges) width *= 2;
  if (width >= 4)
    kt::edges_by_virtual_warp(targets, team, size, width, rows, visit);
  else
    kt::edges_by_discovery(targets, team, size, true, rows, visit);
}

// Hops of one block, from what it has lowered; long rows wait for the next turn.
template <typename Who>
KT_DEVICE void go_on(const Search& search, const kt::Hops& hops, Relax<Who>& offer) {
  for (int32 hop = 1; hop < HOPS; ++hop) {
    kt::block_barrier();
    const kt::Lowered from = hops.of(hop - 1);
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
      if (is_first && offer.is_first_in(v))
        offer.into.put_near(kt::atomic_add(offer.into.next + kt::NEAR, int64{1}), v);
      return kt::Row{};
    };
    walk(search.targets, kt::one_block(), size, 0, rows, offer);
  }
}

template <typename Who>
KT_DEVICE void relax(const Search& search, const int64* told, int32 turn, const vertex_t* near, const kt::Hops& hops,
                     kt::Piles<Who>& into) {
  // Where degrees are high, a block's share of the edges could grow beyond all others'.
  const bool goes_on = !Who::IS_SMALL && HOPS > 1 && told[kt::PIECES] == 0 && told[kt::EDGES] <= HOP_EDGES &&
                       told[kt::EDGES] <= HOP_DEGREE * told[kt::NEAR];
  const ordered_t threshold = static_cast<ordered_t>(told[kt::THRESHOLD]);
  Relax<Who> offer = {search, threshold, static_cast<int32>(told[kt::STEP]), into, goes_on, hops.of(0)};
  const auto rows = [&](int64 i, bool) {
    const kt::Row row = kt::row_of(search.offsets, near[i]);
    return Who::IS_SMALL || row.end - row.begin < CHUNK ? row : kt::Row{};
  };
  walk(search.targets, Who::team(), told[kt::NEAR], told[kt::EDGES] - told[kt::PIECES] * CHUNK, rows, offer);
  if (goes_on) go_on(search, hops, offer);
  const int64 n_pieces = Who::IS_SMALL ? 0 : told[kt::PIECES];
  for (int64 i = kt::block_id(); i < n_pieces; i += kt::n_blocks()) {
    const uint64 piece = search.pieces(turn)[i];
    kt::Row row = kt::row_of(search.offsets, static_cast<vertex_t>(piece & ((uint64{1} << kt::VERTEX_BITS) - 1)));
    row.begin += static_cast<offset_t>(piece >> kt::VERTEX_BITS) * CHUNK;
    if (row.end > row.begin + CHUNK) row.end = row.begin + CHUNK;
    kt::edges_of_row(search.targets, kt::one_block(), row, offer);
  }
}

template <typename Who>
KT_DEVICE void split(const Search& search, const int64* told, ordered_t threshold, kt::Piles<Who>& into) {
  const vertex_t* const pile = search.far(told[kt::SIDE]);
  const int64 size = kt::far_size(told);
  for (int64 first = Who::team().warp * kt::WARP; first < size; first += Who::team().n_warps * kt::WARP) {
    const int64 i = first + kt::lane();
    const vertex_t v = i < size ? pile[i] : static_cast<vertex_t>(0);
    const ordered_t key = i < size ? search.keys[v] : static_cast<ordered_t>(-1);
    const bool is_kept = key >= threshold;
    if (is_kept && kt::INFINITE - key > into.gap) into.gap = kt::INFINITE - key;
    into.add(!is_kept && key >= told[kt::THRESHOLD], is_kept, v);
  }
}

// One turn, from what is told to what is told next.
template <typename Who>
KT_DEVICE void take_turn(const Search& search, const int64* told, int64* next, int32 turn, const vertex_t* near,
                         vertex_t* near_shared, const kt::Hops& hops, int64* of_block) {
  const bool splits = told[kt::NEAR] == 0;
  const kt::Threshold now = splits ? kt::raised(told)
                                   : kt::Threshold{static_cast<ordered_t>(told[kt::THRESHOLD]),
                                                   kt::float_of(static_cast<ordered_t>(told[kt::WIDTH]))};
  const int64 side = splits ? 1 - told[kt::SIDE] : told[kt::SIDE];
  const int64 pile = splits ? 0 : kt::far_size(told);
  kt::Piles<Who> into = {search.offsets,         next, search.near(turn + 1), near_shared, search.pieces(turn + 1),
                         search.far(side) + pile};
  if (splits)
    split(search, told, now.key, into);
  else
    relax(search, told, turn, near, hops, into);
  into.empty();
  kt::publish<Who>(next, splits, into.edges, into.gap, of_block);
  if (!Who::is_first()) return;
  next[kt::STEP] = told[kt::STEP] + !splits;
  next[kt::THRESHOLD] = now.key;
  next[kt::WIDTH] = kt::bits_of(now.width);
  next[kt::PILE] = pile;
  next[kt::SIDE] = side;
  next[kt::PHASE] = told[kt::PHASE] + (splits && !told[kt::GAP]);
  next[kt::PHASE_STEPS] = splits ? 0 : told[kt::PHASE_STEPS] + 1;
  next[kt::PHASE_EDGES] = splits ? 0 : told[kt::PHASE_EDGES] + told[kt::EDGES];
}

// Turns of few alone, until there is too much for them. They end as a turn of the grid does.
template <typename Few>
KT_DEVICE void small_turns(const Search& search, const int64* told, int64* next, int32 turn_of_grid, vertex_t* queues,
                           int64* words) {
  for (int64 i = Few::thread(); i < told[kt::NEAR]; i += Few::n_threads()) queues[i] = search.near(turn_of_grid)[i];
  for (int64 w = Few::thread(); w < 3 * kt::N_WORDS; w += Few::n_threads()) words[w] = w < kt::N_WORDS ? told[w] : 0;
  const int64* now = words;
  int32 turn = 0;
  while (true) {
    Few::barrier();
    now = words + turn % 3 * kt::N_WORDS;
    if (kt::is_over(now) || !kt::is_small(now) || is_enough(search, now)) break;
    if (Few::thread() < kt::N_WORDS) words[(turn + 2) % 3 * kt::N_WORDS + Few::thread()] = 0;
    take_turn<Few>(search, now, words + (turn + 1) % 3 * kt::N_WORDS, turn_of_grid, queues + turn % 2 * SMALL,
                   queues + (turn + 1) % 2 * SMALL, {}, nullptr);
    ++turn;
  }
  vertex_t* const near = search.near(turn_of_grid + 1);
  for (int64 i = Few::thread(); i < now[kt::NEAR]; i += Few::n_threads()) {
    if (i < SMALL) near[i] = queues[turn % 2 * SMALL + i];
    kt::cut(near[i], kt::degree_of(search.offsets, near[i]), search.pieces(turn_of_grid + 1), next + kt::PIECES);
  }
  if (Few::thread() < kt::N_WORDS && Few::thread() != kt::PIECES) next[Few::thread()] = now[Few::thread()];
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
  KT_SHARED(int64, small_words, [3 * kt::N_WORDS]);
  KT_SHARED(int64, told, [kt::N_WORDS]);
  KT_SHARED(int64, of_block, [kt::N_WORDS]);
  KT_SHARED(vertex_t, lowered, [2 * LOCAL]);
  KT_SHARED(ordered_t, lowered_to, [2 * LOCAL]);
  KT_SHARED(int32, n_lowered, [3]);
  const kt::Hops hops = {lowered, lowered_to, n_lowered};
  const Search search = {offsets,    targets,  weights, n_vertices, kt::to_ordered(limit),
                         wanted,     n_wanted, keys,    marks,      queue,
                         next_queue, piles,    pieces,  piece_room};
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    keys[v] = v == source ? 0 : kt::INFINITE;
    marks[v] = -1;
  }
  if (kt::thread_in_block() < kt::N_WORDS) of_block[kt::thread_in_block()] = 0;
  if (kt::thread_id() == 0) {
    for (int32 w = 0; w < 3 * kt::N_WORDS; ++w) words[w] = 0;
    queue[0] = source;
    words[kt::NEAR] = 1;
    words[kt::EDGES] = kt::degree_of(offsets, source);
    words[kt::THRESHOLD] = kt::to_ordered(width) > 0 ? kt::to_ordered(width) : 1;
    words[kt::WIDTH] = kt::bits_of(width);
    kt::cut(source, words[kt::EDGES], pieces, words + kt::PIECES);
  }
  bool is_settled = false;
  for (int32 turn = 0;; ++turn) {
    kt::grid_barrier(arrived);
    const int32 t = kt::thread_in_block();
    if (t < kt::N_WORDS) told[t] = words[turn % 3 * kt::N_WORDS + t];
    if (t < 3) n_lowered[t] = 0;
    kt::block_barrier();
    if (kt::is_over(told)) break;
    is_settled = is_enough(search, told);
    if (is_settled) break;
    if (kt::thread_id() < kt::N_WORDS) words[(turn + 2) % 3 * kt::N_WORDS + kt::thread_id()] = 0;
    int64* const next = words + (turn + 1) % 3 * kt::N_WORDS;
    if (!kt::is_small(told))
      take_turn<Grid>(search, told, next, turn, search.near(turn), nullptr, hops, of_block);
    else if (kt::block_id() == 0)
      small_turns<OneBlock>(search, told, next, turn, queues, small_words);
  }
  if (kt::thread_id() == 0) {
    outcome[0] = told[kt::STEP];
    outcome[1] = is_settled;
  }
}
