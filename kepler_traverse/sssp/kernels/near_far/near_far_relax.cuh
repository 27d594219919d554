// Relaxing edges in a near-far search (near_far.cu).
//
// Compile-time constants, other than those of near_far_state.cuh:
//   EDGES_PER_LANE   minimum mean number of edges per lane for which a list gets more lanes
//   SHARED_LISTS     1: lanes search for their edges even if the near queue is small
//   UNROLL           edges per lane that are loaded together
#pragma once

#include "near_far_state.cuh"

namespace kt {

// The kernel's arguments, as far as device functions need them.
struct Search {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  ordered_t limit_key;  // vertices beyond this key are not reached
  const int64* target_vertices;
  int64 n_target_vertices;
  label_t* labels;
  int32* last_queued;  // [n_vertices]: the last step that queued a vertex as near
  vertex_t* queue;
  vertex_t* next_queue;
  vertex_t* piles;     // [2][n_vertices]
  uint64* all_chunks;  // [2][chunk_capacity]
  int64 chunk_capacity;
  int32 n_local_rounds;

  KT_DEVICE vertex_t* near(int32 iteration) const { return iteration % 2 ? next_queue : queue; }
  KT_DEVICE uint64* chunks(int32 iteration) const { return all_chunks + iteration % 2 * chunk_capacity; }
  KT_DEVICE vertex_t* far(int64 side) const { return piles + side * n_vertices; }
  KT_DEVICE ordered_t key(vertex_t v) const { return key_in(racy_load(labels + v)); }
};

// Relaxes edges; all lanes of a warp call it.
template <typename Scope>
struct Relax {
  const Search search;  // by value, so that the compiler can keep its fields in registers
  ordered_t threshold;
  int32 step;
  Piles<Scope>& into;
  bool runs_locally;  // the block runs a local round next, from the vertices that it improves now
  Improved improved;

  KT_DEVICE void operator()(bool valid, vertex_t u, offset_t e, vertex_t v) {
    bool is_near = false, is_far = false;
    if (valid) {
      const Candidate candidate = candidate_of(u, search.key(u), load_constant(search.weights + e));
      if (runs_locally && candidate.key <= search.limit_key) {
        // With few edges, a failed atomic costs less than a load before it, which is one more round trip to the L2.
        const ordered_t old_key = key_in(atomic_min(search.labels + v, candidate.label));
        is_far = old_key == INFINITE && candidate.key < old_key && candidate.key >= threshold;
        is_near = candidate.key < old_key && candidate.key < threshold && !improved.store(v, candidate.key) && claim(v);
      } else {
        relax(candidate, v, racy_load(search.labels + v), is_near, is_far);
      }
    }
    into.add(is_near, is_far, v);
  }
  // The same for N edges per lane, with N loads in flight.
  template <int32 N>
  KT_DEVICE void unrolled(const Edges<N>& edges) {
    vertex_t v[N];
    weight_t weight[N];
    ordered_t src_distance[N];
    label_t old[N];
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      v[i] = edges.valid[i] ? load_constant(search.targets + edges.e[i]) : edges.u[i];
      weight[i] = edges.valid[i] ? load_constant(search.weights + edges.e[i]) : weight_t{0};
      // May be out of date: a thread that improves u in this iteration queues u again.
      src_distance[i] = key_in(racy_load_cached(search.labels + edges.u[i]));
    }
#pragma unroll
    for (int32 i = 0; i < N; ++i) old[i] = racy_load(search.labels + v[i]);
#pragma unroll
    for (int32 i = 0; i < N; ++i) {
      bool is_near = false, is_far = false;
      if (edges.valid[i]) relax(candidate_of(edges.u[i], src_distance[i], weight[i]), v[i], old[i], is_near, is_far);
      into.add(is_near, is_far, v[i]);
    }
  }

 private:
  struct Candidate {
    ordered_t key;
    label_t label;
  };
  // The distance of u may be out of date: a thread that improves u queues it again.
  KT_DEVICE Candidate candidate_of(vertex_t u, ordered_t src_distance, weight_t weight) const {
    const ordered_t key = to_ordered(add_rounded(from_ordered<weight_t>(src_distance), weight));
    return {key, label_of(key, src_distance < key ? u : NO_PREDECESSOR)};
  }
  // `old` may be out of date. Labels only fall, so it is then too large, and the atomic may change nothing.
  KT_DEVICE void relax(const Candidate& candidate, vertex_t v, label_t old, bool& is_near, bool& is_far) {
    const ordered_t key = candidate.key;
    if (key > search.limit_key || candidate.label >= old) return;
    label_t* const place = search.labels + v;
    if (PREDECESSORS && key == key_in(old)) {
      atomic_min(place, candidate.label);  // a smaller predecessor, no smaller distance
    } else if (key >= threshold) {
      is_far = key_in(atomic_min(place, candidate.label)) == INFINITE;
    } else if (runs_locally) {
      is_near = key < key_in(atomic_min(place, candidate.label)) && !improved.store(v, key) && claim(v);
    } else {
      // This candidate or a smaller one improves v in this iteration; which one does not matter.
      is_near = claim(v);
      atomic_min(place, candidate.label);
    }
  }

 public:
  KT_DEVICE bool claim(vertex_t v) { return atomic_exchange(search.last_queued + v, step) != step; }
};

// Visits the edges of `size` adjacency lists. Scope or long lists get several lanes each. Of many short
// lists a warp takes 32, and its lanes search for their edges. With SHARED_LISTS the lanes search in
// the first case too, so that no lane waits for a longer list.
template <typename Lists, typename Visit>
KT_DEVICE void visit_lists(const vertex_t* targets, Team team, int64 size, int64 edges, Lists lists, Visit& visit) {
  int32 width = lanes_per_list(team.n_warps * WARP, size);
  while (width < WARP && 2 * width * size * EDGES_PER_LANE <= edges) width *= 2;
  const int32 at_once = SHARED_LISTS && width >= 4 ? WARP / width : WARP;
  if (width >= 4 && !SHARED_LISTS)
    edges_by_virtual_warp(targets, team, size, width, lists, visit);
  else
    edges_by_discovery<UNROLL>(targets, team, size, true, lists, visit, at_once);
}

// Runs the local rounds of one block, from the vertices that it improved itself. Long adjacency lists
// wait for the next iteration of the grid.
template <typename Scope>
KT_DEVICE void run_local_rounds(const Search& search, const LocalRounds& local_rounds, Relax<Scope>& relaxer) {
  for (int32 local_round = 1; local_round < search.n_local_rounds; ++local_round) {
    block_barrier();
    const Improved from = local_rounds.improved_in(local_round - 1);
    const int32 size = *from.size < LOCAL ? *from.size : LOCAL;
    if (size == 0) break;
    if (thread_in_block() == 0) *local_rounds.improved_in(local_round + 1).size = 0;
    relaxer.improved = local_rounds.improved_in(local_round);
    relaxer.runs_locally = local_round + 1 < search.n_local_rounds;
    const auto lists = [&](int64 i, bool is_first) {
      const vertex_t v = from.vertices[i];
      const AdjacencyList list = adjacency_list(search.offsets, v);  // the label's load is then in flight as well
      if (search.key(v) < from.keys[i]) return AdjacencyList{};
      if (list.end - list.begin < CHUNK) return list;
      if (is_first && relaxer.claim(v)) relaxer.into.store_near(atomic_add(&relaxer.into.next->near, int64{1}), v);
      return AdjacencyList{};
    };
    visit_lists(search.targets, one_block(), size, 0, lists, relaxer);
  }
}

}  // namespace kt
