// Advance: visits the edges of a frontier. These are the only loops over edges. They differ in load
// balancing.
//
// The first two take a Queue of vertices or a Range of vertex numbers, and call visit(u, edge, v) once
// for every edge (u, v) that leaves them, in any order. The lanes of a warp may have diverged there.
//
//   edges_by_thread         thread-mapped: one thread per vertex, for short adjacency lists
//   edges_by_warp           warp-mapped: one warp per vertex, for lists of about 32 edges or more
//
// The next one does the same for an adjacency list that the caller chooses:
//
//   edges_of_thread         one thread visits the adjacency list that it holds
//
// The others keep the warp converged: all its lanes call visit(valid, u, edge, v), so that the
// visitor may use warp collectives. Lanes without an edge pass valid == false. lists(i, is_first)
// returns the i-th adjacency list of n. It may return an empty one, after it has passed the vertex to
// another queue; is_first is true in one lane per list, so that this happens once.
//
//   edges_by_virtual_warp   sub-warp-mapped: 2^k lanes per vertex (Hong et al. 2011)
//   edges_by_discovery      scan and binary search: a warp takes 32 lists, each lane finds its edge
//   edges_of_lanes          the same for the adjacency lists that the lanes of a warp hold
//   edges_of_list           all warps of a team visit one adjacency list
//   edges_until             2^k lanes visit the list that they hold, until the visitor stops them
//   first_hit               each lane searches a list of its own for the first match
//
// Functions with a parameter N visit N edges per lane at once, so that N loads are in flight. A visitor of
// N > 1 edges, or one that has no other form, is called as visit.unrolled(edges) and loads the targets itself.
//
// An adjacency list may be visited in chunks, which words name (chunk_of, list_chunks).
//
// All functions stride over their list by the number of threads or warps, so any grid size works.
//
// Compile-time constants:
//   BLOCK        threads per block
//   MIN_BLOCKS   blocks that fit on a multiprocessor at once, for KT_BOUNDS; 0 or undefined: no bound
#pragma once

#include <kt/csr.cuh>
#include <kt/scan.cuh>

// For __launch_bounds__. MIN_BLOCKS limits the registers per thread, so that MIN_BLOCKS blocks fit on
// a multiprocessor. If it is 0 or undefined, the compiler chooses.
#if defined(MIN_BLOCKS) && MIN_BLOCKS > 0
#define KT_BOUNDS BLOCK, MIN_BLOCKS
#else
#define KT_BOUNDS BLOCK
#endif

namespace kt {

static_assert(BLOCK % WARP == 0, "a block is made of whole warps");

// Where an edge is not valid, u is still the number of a vertex.
template <int32 N>
struct Edges {
  bool valid[N];
  vertex_t u[N];
  offset_t e[N];
};

// Calls visit(valid, u, edge, v) for one edge per lane, with u in place of v where the edge is not valid.
template <typename Visit>
KT_DEVICE void visit_edge(const vertex_t* targets, bool valid, vertex_t u, offset_t e, Visit& visit) {
  visit(valid, u, e, valid ? load_constant(targets + e) : u);
}

// Visits N edges per lane: by visit_edge if N is 1 and the visitor has that form, else by visit.unrolled. The last
// argument, 0, prefers the first function where both fit, as it is an int.
template <typename Visit>
KT_DEVICE auto visit_edges(const vertex_t* targets, const Edges<1>& edges, Visit& visit, int)
    -> decltype(visit(true, edges.u[0], edges.e[0], edges.u[0])) {
  return visit_edge(targets, edges.valid[0], edges.u[0], edges.e[0], visit);
}
template <int32 N, typename Visit>
KT_DEVICE void visit_edges(const vertex_t*, const Edges<N>& edges, Visit& visit, long) {
  visit.unrolled(edges);
}

// The vertices of a frontier: a list of them, or consecutive numbers.
struct Queue {
  const vertex_t* vertices;
  int64 size;
  KT_DEVICE vertex_t operator[](int64 i) const { return load_constant(vertices + i); }
};

struct Range {
  int64 first;
  int64 size;
  KT_DEVICE vertex_t operator[](int64 i) const { return static_cast<vertex_t>(first + i); }
};

// The adjacency list of u: edge positions begin to end - 1.
struct AdjacencyList {
  vertex_t u = 0;
  offset_t begin = 0;
  offset_t end = 0;
};

KT_DEVICE AdjacencyList adjacency_list(const offset_t* offsets, vertex_t u) {
  return {u, load_constant(offsets + u), load_constant(offsets + u + 1)};
}

// The chunk of so many edges of a long adjacency list.
template <int32 LENGTH>
KT_DEVICE AdjacencyList cut(AdjacencyList list, int64 chunk) {
  list.begin += chunk * LENGTH;
  if (list.end > list.begin + LENGTH) list.end = list.begin + LENGTH;
  return list;
}

// The same of a word with the number of the chunk above VERTEX_BITS bits, and the vertex in these.
template <int32 LENGTH, int32 VERTEX_BITS = 32>
KT_DEVICE AdjacencyList chunk_of(const offset_t* offsets, uint64 word) {
  const vertex_t u = static_cast<vertex_t>(word & ((uint64{1} << VERTEX_BITS) - 1));
  return cut<LENGTH>(adjacency_list(offsets, u), static_cast<int64>(word >> VERTEX_BITS));
}

// Lists the chunks of an adjacency list if it has LENGTH edges or more.
template <int32 LENGTH, int32 VERTEX_BITS = 32>
KT_DEVICE void list_chunks(vertex_t v, offset_t degree, uint64* chunks, int64* count) {
  if (degree < LENGTH) return;
  const int64 n = (degree + LENGTH - 1) / LENGTH;
  const int64 first = atomic_add(count, n);
  for (int64 i = 0; i < n; ++i)
    chunks[first + i] =
        static_cast<uint64>(i) << VERTEX_BITS | (VERTEX_BITS == 32 ? static_cast<uint32>(v) : static_cast<uint64>(v));
}

template <typename Visit>
KT_DEVICE void edges_of_thread(const vertex_t* targets, AdjacencyList list, Visit& visit) {
  for (offset_t e = list.begin; e < list.end; ++e) visit(list.u, e, load_constant(targets + e));
}

template <typename Vertices, typename Visit>
KT_DEVICE void edges_by_thread(Csr graph, Vertices vertices, Visit visit) {
  for (int64 i = thread_id(); i < vertices.size; i += n_threads())
    edges_of_thread(graph.targets, adjacency_list(graph.offsets, vertices[i]), visit);
}

template <typename Vertices, typename Visit>
KT_DEVICE void edges_by_warp(Csr graph, Vertices vertices, Visit visit) {
  for (int64 i = warp_id(); i < vertices.size; i += n_warps()) {
    const vertex_t u = vertices[i];
    const offset_t end = load_constant(graph.offsets + u + 1);
    for (offset_t e = load_constant(graph.offsets + u) + lane(); e < end; e += WARP)
      visit(u, e, load_constant(graph.targets + e));
  }
}

// A team of warps, such as the grid or one block, and the number of this warp in it.
struct Team {
  int64 warp;
  int64 n_warps;
};
KT_DEVICE Team whole_grid() { return {warp_id(), n_warps()}; }
KT_DEVICE Team one_block() { return {warp_in_block(), BLOCK / WARP}; }

// Teams of `requested` warps each, at most a block; 0: a block.
struct Teams {
  int32 warps;
  KT_DEVICE explicit Teams(int32 requested)
      : warps(requested > 0 && requested < BLOCK / WARP ? requested : BLOCK / WARP) {}
  KT_DEVICE int64 mine() const { return warp_id() / warps; }
  KT_DEVICE int64 how_many() const { return n_warps() / warps; }
  KT_DEVICE Team team() const { return {warp_in_block() % warps, warps}; }
};

// The width for edges_by_virtual_warp: the most lanes per adjacency list for which there are enough threads.
template <typename T>
KT_DEVICE int32 lanes_per_list(T n_threads, T n_lists) {
  int32 width = WARP;
  while (width > 1 && static_cast<T>(width) * n_lists > n_threads) width /= 2;
  return width;
}

template <int32 N = 1, typename Lists, typename Visit>
KT_DEVICE void edges_by_virtual_warp(const vertex_t* targets, Team team, int64 n, int32 width, Lists lists,
                                     Visit&& visit) {
  // The width is a power of two. A shift replaces a division, which would take longer than the load after it.
  const int32 shift = first_lane(static_cast<uint32>(width));
  const int32 lists_at_once = WARP >> shift;
  const int32 in_group = lane() & (width - 1);
  for (int64 first = team.warp * lists_at_once; first < n; first += team.n_warps * lists_at_once) {
    const int64 i = first + (lane() >> shift);
    const AdjacencyList list = i < n ? lists(i, in_group == 0) : AdjacencyList{};
    for (offset_t at = list.begin + in_group; any(ALL_LANES, at < list.end); at += N * width) {
      Edges<N> edges;
#pragma unroll
      for (int32 k = 0; k < N; ++k) {
        edges.e[k] = at + k * width;
        edges.valid[k] = edges.e[k] < list.end;
        edges.u[k] = list.u;
      }
      visit_edges(targets, edges, visit, 0);
    }
  }
}

// Visits the edges of the adjacency lists that the lanes of a warp hold, in order. Each lane finds
// its edge by binary search. `extended`, for N == 1: while the list of the last lane has edges for a
// whole warp, the warp visits them without a new search.
template <int32 N = 1, typename Visit>
KT_DEVICE void edges_of_lanes(const vertex_t* targets, AdjacencyList mine, bool extended, Visit&& visit) {
  const offset_t through = sum_through(mine.end - mine.begin);
  // Edge position minus position in the concatenation of all lists of the warp.
  const offset_t shift = mine.end - through;
  const offset_t total = broadcast(ALL_LANES, through, WARP - 1);
  for (offset_t at = 0; at < total; at += N * WARP) {
    Edges<N> edges = {};
    int32 owner = 0;
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      const offset_t k = at + i * WARP + lane();
      if (i > 0 && at + i * WARP >= total) continue;  // for all lanes
      owner = lane_past(through, k);
      edges.valid[i] = k < total;
      edges.u[i] = broadcast(ALL_LANES, mine.u, owner);
      edges.e[i] = broadcast(ALL_LANES, shift, owner) + k;
    }
    visit_edges(targets, edges, visit, 0);
    // The list of the last lane may have whole warps of edges left: they need no search.
    if constexpr (N == 1) {
      if (!extended) continue;
      const int32 last = broadcast(ALL_LANES, owner, WARP - 1);
      const offset_t list_end = broadcast(ALL_LANES, through, last);
      if (at + 2 * WARP > list_end) continue;
      const vertex_t last_u = broadcast(ALL_LANES, mine.u, last);
      const offset_t last_shift = broadcast(ALL_LANES, shift, last);
      for (; at + 2 * WARP <= list_end; at += WARP)
        visit_edge(targets, true, last_u, last_shift + at + WARP + lane(), visit);
    }
  }
}

// A warp takes `at_once` adjacency lists at a time: 32, or fewer if there are not enough for all warps.
template <int32 N = 1, typename Lists, typename Visit>
KT_DEVICE void edges_by_discovery(const vertex_t* targets, Team team, int64 n, bool extended, Lists lists,
                                  Visit&& visit, int32 at_once = WARP) {
  for (int64 first = team.warp * at_once; first < n; first += team.n_warps * at_once) {
    const bool holds_one = lane() < at_once && first + lane() < n;
    edges_of_lanes<N>(targets, holds_one ? lists(first + lane(), true) : AdjacencyList{}, extended, visit);
  }
}

template <int32 N = 1, typename Visit>
KT_DEVICE void edges_of_list(const vertex_t* targets, Team team, AdjacencyList list, Visit&& visit) {
  for (offset_t first = list.begin + team.warp * WARP * N; first < list.end; first += team.n_warps * WARP * N) {
    Edges<N> edges;
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      edges.e[i] = first + i * WARP + lane();
      edges.valid[i] = edges.e[i] < list.end;
      edges.u[i] = list.u;
    }
    visit_edges(targets, edges, visit, 0);
  }
}

// Visits the edges of an adjacency list that `width` lanes hold together, until visit returns false.
// It must return the same value in all lanes of the list.
template <typename Visit>
KT_DEVICE void edges_until(const vertex_t* targets, AdjacencyList list, int32 width, Visit&& visit) {
  offset_t first = list.begin;
  while (any(ALL_LANES, first < list.end)) {
    const offset_t e = first + (lane() & (width - 1));
    const bool valid = e < list.end;
    const bool wants_more = visit(valid, valid ? load_constant(targets + e) : list.u);
    first = wants_more ? first + width : list.end;
  }
}

// Returns the first target of each lane's adjacency list for which is_hit(target), or NO_PREDECESSOR.
// A lane searches `patience` edges alone; then the whole warp searches the rest of its list.
template <typename IsHit>
KT_DEVICE vertex_t first_hit(const vertex_t* targets, AdjacencyList list, int32 patience, IsHit is_hit) {
  // Alone, with several loads in flight; the first hit of them counts.
  vertex_t found = NO_PREDECESSOR;
  offset_t e = list.begin;
  const offset_t alone = list.end - list.begin < patience ? list.end : list.begin + patience;
  while (e < alone && found == NO_PREDECESSOR) {
    constexpr int32 IN_FLIGHT = 4;  // loads
    vertex_t heads[IN_FLIGHT];
#pragma unroll
    for (int32 i = 0; i < IN_FLIGHT; ++i) heads[i] = load_constant(targets + (e + i < alone ? e + i : alone - 1));
#pragma unroll
    for (int32 i = IN_FLIGHT - 1; i >= 0; --i)
      if (is_hit(heads[i])) found = heads[i];
    e = e + IN_FLIGHT < alone ? e + IN_FLIGHT : alone;
  }

  // Together, one list after the other.
  for (uint32 left = ballot(ALL_LANES, found == NO_PREDECESSOR && e < list.end); left; left &= left - 1) {
    const int32 owner = first_lane(left);
    const offset_t end = broadcast(ALL_LANES, list.end, owner);
    for (offset_t first = broadcast(ALL_LANES, e, owner); first < end; first += WARP) {
      const vertex_t v = first + lane() < end ? load_constant(targets + first + lane()) : static_cast<vertex_t>(0);
      const uint32 hits = ballot(ALL_LANES, first + lane() < end && is_hit(v));
      if (hits == 0) continue;
      const vertex_t hit = broadcast(ALL_LANES, v, first_lane(hits));
      if (lane() == owner) found = hit;
      break;
    }
  }
  return found;
}

}  // namespace kt
