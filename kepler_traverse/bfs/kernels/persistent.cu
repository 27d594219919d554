// Persistent: a whole BFS in one cooperative launch; nothing returns to the host.
//
// A vertex holds the smallest claim that came for it: (level, predecessor) in one
// word, so one atomic minimum decides both, and the smallest predecessor is kept by
// any order of events. Every vertex enters the queue once; levels follow each other
// in it. All blocks know the same counts after a grid barrier and so choose alike:
//
//   small   block 0 goes on alone, its queues in shared memory    a block barrier a level
//   push    the grid; rows of CHUNK edges and more in pieces      a grid barrier a level
//   pull    the grid over bitmaps, each row up to its first hit   a grid barrier a level
//
// Beamer, Asanovic, Patterson. Direction-optimizing breadth-first search. SC 2012.
// Gupta, Stuart, Owens. A study of persistent threads style GPU programming. 2012.
#include <kt/edges.cuh>
#include <kt/local_queue.cuh>

namespace {

using kt::int32;
using kt::int64;
using kt::uint32;
using kt::uint64;

// A level and a vertex share a word: the host takes no graph of 2^31 vertices or more.
using claim_t = kt::Unsigned<PREDECESSORS ? 8 : 4>::type;
constexpr claim_t UNCLAIMED = ~claim_t{0};  // as int32, in its upper half: UNREACHED; in its lower: NO_PREDECESSOR

KT_DEVICE claim_t claim_of(int32 level, vertex_t u) {
  return PREDECESSORS ? static_cast<claim_t>(static_cast<uint64>(level) << 32 | static_cast<uint32>(u))
                      : static_cast<claim_t>(level);
}
KT_DEVICE int32 level_of(claim_t claim) {
  return static_cast<int32>(static_cast<uint64>(claim) >> (PREDECESSORS ? 32 : 0));
}

// What the blocks tell each other about the next frontier, in three turns: one is
// read, one written, one cleared.
enum Count { QUEUED, PIECES, VERTICES, EDGES, WALKED, LEVEL, N_COUNTS };

struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  const offset_t* in_offsets;  // null: no pulling
  const vertex_t* in_targets;
  int64 n_vertices;
  claim_t* claims;
  vertex_t* queue;
  uint64* pieces;  // (piece, vertex) of rows that are walked in pieces
  int64* counts;   // [3][N_COUNTS]

  KT_DEVICE int64* turn(int32 t) const { return counts + t % 3 * N_COUNTS; }
  KT_DEVICE offset_t degree(vertex_t v) const {
    return kt::load_constant(offsets + v + 1) - kt::load_constant(offsets + v);
  }
};

// The frontier as all blocks know it.
struct Frontier {
  int32 level = 0;
  int64 queue_begin = 0, n_queued = 1;
  int64 pieces_begin = 0, n_pieces = 0;
  int64 vertices = 1, edges = 0;
};

// Puts claimed vertices into the queue, long rows into pieces, and adds up degrees.
struct Collector {
  Search search;
  int64 queue_end, pieces_end;
  int64* next;
  int64 edges = 0;

  KT_DEVICE void store(int64 place, vertex_t v) {
    search.queue[queue_end + place] = v;
    edges += cut(v);
  }
  KT_DEVICE int64 cut(vertex_t v) {
    const offset_t degree = search.degree(v);
    if (degree >= CHUNK) {
      const int64 n = (degree + CHUNK - 1) / CHUNK;
      const int64 place = pieces_end + kt::atomic_add(next + PIECES, n);
      for (int64 i = 0; i < n; ++i)
        search.pieces[place + i] = static_cast<uint64>(i) << 32 | static_cast<uint32>(v);
    }
    return degree;
  }
};

// Claims the far ends of edges; all lanes of a warp come.
template <bool LOOK_FIRST, typename Reserve, typename Store>
struct Push {
  claim_t* claims;
  int32 level;
  Reserve reserve;
  Store store;
  kt::LocalQueue found;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t, vertex_t v) {
    bool fresh = false;
    if (valid) {
      const claim_t mine = claim_of(level + 1, u);
      // Claims only fall: an old one costs an atomic, and the atomic tells.
      if (!LOOK_FIRST || mine < kt::racy_load(claims + v))
        fresh = level_of(kt::atomic_min(claims + v, mine)) == kt::UNREACHED;
    }
    if (fresh) found.push(v);
    if (kt::any(kt::ALL_LANES, found.is_full())) empty();
  }
  KT_DEVICE void empty() { found.empty_into(kt::LOCAL_QUEUE + 1, reserve, store); }
};

template <bool LOOK_FIRST, typename Reserve, typename Store>
KT_DEVICE Push<LOOK_FIRST, Reserve, Store> push_of(claim_t* claims, int32 level, Reserve reserve, Store store) {
  return {claims, level, reserve, store, {}};
}

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

KT_DEVICE void push_level(const Search& search, const Frontier& frontier, Collector& into) {
  auto push = push_of<true>(
      search.claims, frontier.level, [&](int64 n) { return kt::atomic_add(into.next + QUEUED, n); },
      [&](int64 place, vertex_t v) { into.store(place, v); });
  const vertex_t* const queue = search.queue + frontier.queue_begin;
  const auto rows = [&](int64 i, bool) {
    const kt::Row row = kt::row_of(search.offsets, queue[i]);
    return row.end - row.begin < CHUNK ? row : kt::Row{};
  };
  walk(search.targets, kt::whole_grid(), frontier.n_queued, rows, push);
  for (int64 i = kt::block_id(); i < frontier.n_pieces; i += kt::n_blocks()) {
    const uint64 piece = search.pieces[frontier.pieces_begin + i];
    kt::Row row = kt::row_of(search.offsets, static_cast<vertex_t>(piece & 0xffffffffu));
    row.begin += static_cast<offset_t>(piece >> 32) * CHUNK;
    if (row.end > row.begin + CHUNK) row.end = row.begin + CHUNK;
    kt::edges_of_row(search.targets, kt::one_block(), row, push);
  }
  push.empty();
}

// Levels of block 0 alone, until the frontier outgrows it. What it ends with goes into
// the queue and the counts, as if the grid had found it.
KT_DEVICE void small_levels(const Search& search, const Frontier& frontier, int32 last_level, const int64* wanted,
                            int64 n_wanted, vertex_t* queues, int64* sizes, Collector& into) {
  int32 level = frontier.level;
  int64 size = frontier.n_queued, walked = 0;
  for (int64 i = kt::thread_in_block(); i < size; i += BLOCK) queues[i] = search.queue[frontier.queue_begin + i];
  if (kt::thread_in_block() < 6) sizes[kt::thread_in_block()] = 0;
  kt::block_barrier();
  const vertex_t* here = queues;
  while (true) {
    here = queues + (level - frontier.level) % 2 * SMALL;
    vertex_t* const there = queues + (level + 1 - frontier.level) % 2 * SMALL;
    const int32 turn = (level - frontier.level) % 3;
    int64* const found = sizes + (turn + 1) % 3;
    int64* const edges = sizes + 3 + turn;
    int64 mine = 0;
    for (int64 i = kt::thread_in_block(); i < size && i < SMALL; i += BLOCK) mine += search.degree(here[i]);
    mine = kt::sum_through(mine);
    if (kt::lane() == kt::WARP - 1) kt::atomic_add(edges, mine);
    bool is_missing = n_wanted == 0;
    for (int64 i = kt::thread_in_block(); i < n_wanted; i += BLOCK)
      // Nobody claims before the barrier.
      is_missing |= level_of(kt::racy_load(search.claims + kt::load_constant(wanted + i))) == kt::UNREACHED;
    is_missing = kt::block_any(is_missing);
    const int64 to_walk = *edges;
    if (size == 0 || size > SMALL || to_walk > SMALL_EDGES || level == last_level || !is_missing) break;
    if (kt::thread_in_block() == 0) sizes[(turn + 2) % 3] = sizes[3 + (turn + 1) % 3] = 0;
    auto push = push_of<false>(
        search.claims, level, [=](int64 n) { return kt::atomic_add(found, n); },
        [&](int64 place, vertex_t v) {
          if (place < SMALL)
            there[place] = v;
          else
            search.queue[into.queue_end + place] = v;
        });
    const auto rows = [&](int64 i, bool) { return kt::row_of(search.offsets, here[i]); };
    walk(search.targets, kt::one_block(), size, rows, push);
    push.empty();
    kt::block_barrier();
    walked += to_walk;
    size = *found;
    ++level;
  }
  for (int64 i = kt::thread_in_block(); i < size; i += BLOCK) {
    if (i < SMALL) search.queue[into.queue_end + i] = here[i];
    into.edges += into.cut(search.queue[into.queue_end + i]);
  }
  if (kt::thread_in_block() == 0) {
    into.next[QUEUED] = size;
    into.next[LEVEL] = level;
    into.next[WALKED] = walked;
  }
}

// Bit by bit: which vertices are reached, and which of them in this level.
KT_DEVICE void draw_bitmaps(const Search& search, int32 level, uint32* visited, uint32* front) {
  const int64 n_words = (search.n_vertices + 31) / 32;
  for (int64 word = kt::warp_id(); word < n_words; word += kt::n_warps()) {
    const int64 v = word * 32 + kt::lane();
    // Past the end all are visited.
    const int32 at = v < search.n_vertices ? level_of(kt::racy_load(search.claims + v)) : level + 1;
    const uint32 reached = kt::ballot(kt::ALL_LANES, at != kt::UNREACHED);
    const uint32 in_level = kt::ballot(kt::ALL_LANES, at == level);
    if (kt::lane() == 0) {
      visited[word] = reached;
      front[word] = in_level;
    }
  }
}

KT_DEVICE int64 pull_level(const Search& search, int32 level, uint32* visited, const uint32* front, uint32* next,
                           Collector& into) {
  const int64 n_words = (search.n_vertices + 31) / 32;
  int64 vertices = 0;
  for (int64 word = kt::warp_id(); word < n_words; word += kt::n_warps()) {
    const uint32 before = visited[word];
    uint32 claimed = 0;
    if (before != kt::ALL_LANES) {
      const vertex_t v = static_cast<vertex_t>(word * 32 + kt::lane());
      const kt::Row row = before >> kt::lane() & 1 ? kt::Row{} : kt::row_of(search.in_offsets, v);
      // Rows ascend, so the first hit is the smallest predecessor.
      const vertex_t u = kt::first_hit(search.in_targets, row, PATIENCE,
                                       [=](vertex_t of) { return front[of / 32] >> of % 32 & 1; });
      const bool is_claimed = u != kt::NO_PREDECESSOR;
      if (is_claimed) {
        search.claims[v] = claim_of(level + 1, u);
        into.edges += search.degree(v);
        ++vertices;
      }
      claimed = kt::ballot(kt::ALL_LANES, is_claimed);
    }
    kt::warp_barrier(kt::ALL_LANES);  // all have read the word
    if (kt::lane() == 0) {
      next[word] = claimed;
      if (claimed) visited[word] = before | claimed;
    }
  }
  return vertices;
}

// From a bitmap back to the queue.
KT_DEVICE void list_bitmap(const Search& search, const uint32* front, Collector& into) {
  const int64 n_words = (search.n_vertices + 31) / 32;
  kt::LocalQueue found;
  const auto reserve = [&](int64 n) { return kt::atomic_add(into.next + QUEUED, n); };
  const auto store = [&](int64 place, vertex_t v) { into.store(place, v); };
  for (int64 word = kt::warp_id(); word < n_words; word += kt::n_warps()) {
    if (front[word] >> kt::lane() & 1) found.push(static_cast<vertex_t>(word * 32 + kt::lane()));
    if (kt::any(kt::ALL_LANES, found.is_full())) found.empty_into(kt::LOCAL_QUEUE + 1, reserve, store);
  }
  found.empty_into(kt::LOCAL_QUEUE + 1, reserve, store);
}

// Adds what the threads of a block have counted to the counts of all.
KT_DEVICE void publish(int64* next, int64 vertices, int64 edges, int64* sums) {
  vertices = kt::sum_through(vertices);
  edges = kt::sum_through(edges);
  if (kt::lane() == kt::WARP - 1 && edges) {
    kt::atomic_add(sums, vertices);
    kt::atomic_add(sums + 1, edges);
  }
  kt::block_barrier();
  if (kt::thread_in_block() < 2 && sums[kt::thread_in_block()]) {
    kt::atomic_add(next + VERTICES + kt::thread_in_block(), sums[kt::thread_in_block()]);
    sums[kt::thread_in_block()] = 0;
  }
}

// What the blocks have told each other, as the next frontier.
KT_DEVICE void advance(Frontier& frontier, const int64* told) {
  frontier.level = static_cast<int32>(told[LEVEL]);
  frontier.queue_begin += frontier.n_queued;
  frontier.n_queued = told[QUEUED];
  frontier.pieces_begin += frontier.n_pieces;
  frontier.n_pieces = told[PIECES];
  frontier.vertices = told[QUEUED] + told[VERTICES];
  frontier.edges = told[EDGES];
}

// All blocks come, after a barrier, with the same claims before them.
KT_DEVICE bool is_one_unreached(const claim_t* claims, const int64* wanted, int64 n_wanted) {
  bool is_missing = false;
  for (int64 i = kt::thread_in_block(); i < n_wanted; i += BLOCK)
    is_missing |= level_of(claims[kt::load_constant(wanted + i)]) == kt::UNREACHED;
  return kt::block_any(is_missing);
}

}  // namespace

// Into outcome: the levels walked, and whether vertices were left to walk from.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_persistent(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                   const offset_t* __restrict__ in_offsets, const vertex_t* __restrict__ in_targets, int64 n_vertices,
                   int64 n_edges, vertex_t source, int32 last_level, const int64* __restrict__ wanted, int64 n_wanted,
                   uint64* packed, vertex_t* queue, uint64* pieces, uint32* bitmaps, int64* counts, uint32* arrived,
                   int32* distance, vertex_t* predecessor, int64* outcome) {
  KT_SHARED(vertex_t, queues, [2 * SMALL]);
  KT_SHARED(int64, sizes, [6]);
  KT_SHARED(int64, told, [N_COUNTS]);
  KT_SHARED(int64, sums, [2]);
  claim_t* const claims = PREDECESSORS ? reinterpret_cast<claim_t*>(packed) : reinterpret_cast<claim_t*>(distance);
  const Search search = {offsets, targets, in_offsets, in_targets, n_vertices, claims, queue, pieces, counts};
  const int64 n_words = (n_vertices + 31) / 32;
  uint32* const visited = bitmaps;
  uint32* front = bitmaps + n_words;
  uint32* next_front = bitmaps + 2 * n_words;

  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads())
    claims[v] = v == source ? claim_of(0, source) : UNCLAIMED;
  if (kt::thread_id() < 3 * N_COUNTS) counts[kt::thread_id()] = 0;
  if (kt::thread_in_block() < 2) sums[kt::thread_in_block()] = 0;
  Frontier frontier;
  frontier.edges = search.degree(source);
  if (frontier.edges >= CHUNK) frontier.n_pieces = (frontier.edges + CHUNK - 1) / CHUNK;
  if (kt::block_id() == 0) {
    if (kt::thread_in_block() == 0) queue[0] = source;
    for (int64 i = kt::thread_in_block(); i < frontier.n_pieces; i += BLOCK)
      pieces[i] = static_cast<uint64>(i) << 32 | static_cast<uint32>(source);
  }
  int64 unexplored = n_edges;
  bool is_pulling = false, has_pulled = in_offsets == nullptr;
  for (int32 turn = 0;; ++turn) {
    kt::grid_barrier(arrived);
    if (turn > 0) {
      if (kt::thread_in_block() < N_COUNTS) told[kt::thread_in_block()] = search.turn(turn)[kt::thread_in_block()];
      kt::block_barrier();
      advance(frontier, told);
      unexplored -= told[WALKED];
    }
    if (frontier.vertices == 0 || frontier.level >= last_level) break;
    if (n_wanted) {
      const bool is_missing = is_one_unreached(claims, wanted, n_wanted);
      kt::grid_barrier(arrived);  // all have looked before anybody claims more
      if (!is_missing) break;
    }
    if (kt::thread_id() < N_COUNTS) search.turn(turn + 2)[kt::thread_id()] = 0;
    Collector into = {search, frontier.queue_begin + frontier.n_queued, frontier.pieces_begin + frontier.n_pieces,
                      search.turn(turn + 1)};
    int64 vertices = 0, level = frontier.level + 1, walked = frontier.edges;
    const bool is_small = !is_pulling && frontier.vertices <= SMALL && frontier.edges <= SMALL_EDGES;
    if (is_small) {
      if (kt::block_id() == 0) small_levels(search, frontier, last_level, wanted, n_wanted, queues, sizes, into);
    } else if (is_pulling && frontier.vertices < n_vertices / BETA) {
      list_bitmap(search, front, into);
      is_pulling = false;
      level = frontier.level;
      walked = 0;
    } else {
      if (!has_pulled && frontier.edges > unexplored / ALPHA) {
        draw_bitmaps(search, frontier.level, visited, front);
        is_pulling = has_pulled = true;
        kt::grid_barrier(arrived);
      }
      if (is_pulling) {
        vertices = pull_level(search, frontier.level, visited, front, next_front, into);
        uint32* const written = next_front;
        next_front = front;
        front = written;
      } else {
        push_level(search, frontier, into);
      }
    }
    if (kt::thread_id() == 0 && !is_small) {
      into.next[LEVEL] = level;
      into.next[WALKED] = walked;
    }
    publish(into.next, vertices, into.edges, sums);
  }
  if (PREDECESSORS)
    for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
      const claim_t claim = claims[v];
      distance[v] = level_of(claim);
      predecessor[v] = static_cast<vertex_t>(static_cast<int32>(claim & 0xffffffffu));
    }
  if (kt::thread_id() == 0) {
    outcome[0] = frontier.level;
    outcome[1] = frontier.vertices > 0;
  }
}
