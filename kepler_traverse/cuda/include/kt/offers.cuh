// Offers: relaxing edges in a search by near and far piles (near_far.cu).
// EDGES_A_LANE, SHARED_ROWS and AHEAD, beside what piles.cuh needs, are constants that the
// compiler is given.
#pragma once

#include <kt/edges_ahead.cuh>
#include <kt/piles.cuh>

namespace kt {

struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  ordered_t farthest;
  const int64* wanted;
  int64 n_wanted;
  label_t* labels;
  int32* marks;
  vertex_t* queue;
  vertex_t* next_queue;
  vertex_t* piles;     // [2][n_vertices]
  uint64* all_pieces;  // [2][piece_room]
  int64 piece_room;
  int32 n_hops;

  KT_DEVICE vertex_t* near(int32 turn) const { return turn % 2 ? next_queue : queue; }
  KT_DEVICE uint64* pieces(int32 turn) const { return all_pieces + turn % 2 * piece_room; }
  KT_DEVICE vertex_t* far(int64 side) const { return piles + side * n_vertices; }
  KT_DEVICE ordered_t key(vertex_t v) const { return key_in(racy_load(labels + v)); }
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
      const Offer offer = offer_of(u, search.key(u), load_constant(search.weights + e));
      if (goes_on && offer.key <= search.farthest) {
        // Few edges: an atomic in vain costs less than a look before it, one more trip to the L2.
        const ordered_t before = key_in(atomic_min(search.labels + v, offer.label));
        is_far = before == INFINITE && offer.key < before && offer.key >= threshold;
        is_near = offer.key < before && offer.key < threshold && !lowered.store(v, offer.key) && is_first_in(v);
      } else {
        make(offer, v, racy_load(search.labels + v), is_near, is_far);
      }
    }
    into.add(is_near, is_far, v);
  }
  // The same for several edges of each lane, whose loads are on their way together.
  template <int32 N>
  KT_DEVICE void ahead(const Edges<N>& edges) {
    vertex_t v[N];
    weight_t weight[N];
    ordered_t nearer[N];
    label_t old[N];
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      v[i] = edges.valid[i] ? load_constant(search.targets + edges.e[i]) : edges.u[i];
      weight[i] = edges.valid[i] ? load_constant(search.weights + edges.e[i]) : weight_t{0};
      // If u falls during this turn it is queued for that.
      nearer[i] = key_in(racy_load_cached(search.labels + edges.u[i]));
    }
#pragma unroll
    for (int32 i = 0; i < N; ++i) old[i] = racy_load(search.labels + v[i]);
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      bool is_near = false, is_far = false;
      if (edges.valid[i]) make(offer_of(edges.u[i], nearer[i], weight[i]), v[i], old[i], is_near, is_far);
      into.add(is_near, is_far, v[i]);
    }
  }

 private:
  struct Offer {
    ordered_t key;
    label_t label;
  };
  // If u falls meanwhile it is queued for that, so an old distance is no harm.
  KT_DEVICE Offer offer_of(vertex_t u, ordered_t nearer, weight_t weight) const {
    const ordered_t key = to_ordered(add_rounded(from_ordered<weight_t>(nearer), weight));
    return {key, label_of(key, nearer < key ? u : NO_PREDECESSOR)};
  }
  // Labels only fall: an old one costs an atomic that changes nothing.
  KT_DEVICE void make(const Offer& offer, vertex_t v, label_t old, bool& is_near, bool& is_far) {
    const ordered_t key = offer.key;
    if (key > search.farthest || offer.label >= old) return;
    label_t* const place = search.labels + v;
    if (PREDECESSORS && key == key_in(old)) {
      atomic_min(place, offer.label);  // a smaller predecessor, no smaller distance
    } else if (key >= threshold) {
      is_far = key_in(atomic_min(place, offer.label)) == INFINITE;
    } else if (goes_on) {
      is_near = key < key_in(atomic_min(place, offer.label)) && !lowered.store(v, key) && is_first_in(v);
    } else {
      // By this offer or by a better one v falls: it need not be known by which.
      is_near = is_first_in(v);
      atomic_min(place, offer.label);
    }
  }

 public:
  KT_DEVICE bool is_first_in(vertex_t v) { return atomic_exchange(search.marks + v, step) != step; }
};

// Few rows get several lanes each, and so do long ones; of many short ones a warp takes
// 32 and its lanes find their edges. With SHARED_ROWS they do so of few rows, too, and no
// lane waits for a longer row.
template <typename Rows, typename Visit>
KT_DEVICE void walk(const vertex_t* targets, Team team, int64 size, int64 edges, Rows rows, Visit& visit) {
  int32 width = lanes_a_row(team.n_warps * WARP, size);
  while (width < WARP && 2 * width * size * EDGES_A_LANE <= edges) width *= 2;
  const int32 at_once = SHARED_ROWS && width >= 4 ? WARP / width : WARP;
  if (width >= 4 && !SHARED_ROWS)
    edges_by_virtual_warp(targets, team, size, width, rows, visit);
  else if (AHEAD > 1)
    edges_by_discovery_ahead<AHEAD>(team, size, rows, visit, at_once);
  else
    edges_by_discovery(targets, team, size, true, rows, visit, at_once);
}

// Hops of one block, from what it has lowered; long rows wait for the next turn.
template <typename Who>
KT_DEVICE void go_on(const Search& search, const Hops& hops, Relax<Who>& offer) {
  for (int32 hop = 1; hop < search.n_hops; ++hop) {
    block_barrier();
    const Lowered from = hops.of(hop - 1);
    const int32 size = *from.size < LOCAL ? *from.size : LOCAL;
    if (size == 0) break;
    if (thread_in_block() == 0) *hops.of(hop + 1).size = 0;
    offer.lowered = hops.of(hop);
    offer.goes_on = hop + 1 < search.n_hops;
    const auto rows = [&](int64 i, bool is_first) {
      const vertex_t v = from.vertices[i];
      const Row row = row_of(search.offsets, v);  // on its way together with the label
      if (search.key(v) < from.keys[i]) return Row{};
      if (row.end - row.begin < CHUNK) return row;
      if (is_first && offer.is_first_in(v)) offer.into.put_near(atomic_add(offer.into.next + NEAR, int64{1}), v);
      return Row{};
    };
    walk(search.targets, one_block(), size, 0, rows, offer);
  }
}

}  // namespace kt
