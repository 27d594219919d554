// Push: every frontier vertex claims its unreached neighbours.
//
// A vertex is claimed with one compare-and-swap, so it enters the next queue
// exactly once. Its predecessor is the smallest frontier neighbour: each of them
// comes here in this level, sees the vertex at `level`, and the smallest stays.
//
//   threads   see kt/edges.cuh
//   reads     n_frontier offsets, their edges    writes   claimed vertices
//
// Sevilmis, Sivri, Aydin. CS406 Project: Parallelization of BFS. 2019, section 5.
#include <kt/edges.cuh>
#include <kt/queue.cuh>

namespace {

struct Claim {
  kt::int32 level;
  kt::int32* distance;
  vertex_t* predecessor;  // null: not wanted
  kt::Appender next;

  KT_DEVICE void operator()(vertex_t u, offset_t, vertex_t v) const {
    // Old is UNREACHED only, and then the compare-and-swap tells.
    kt::int32 hops = kt::racy_load(distance + v);
    if (hops == kt::UNREACHED) {
      hops = kt::compare_and_swap(distance + v, kt::UNREACHED, level);
      if (hops == kt::UNREACHED) {
        next.append(v);
        hops = level;
      }
    }
    if (predecessor && hops == level) kt::keep_smallest(predecessor + v, u);
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_push_thread(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                    const vertex_t* __restrict__ frontier, kt::int64 n_frontier, kt::int32 level, kt::int64 capacity,
                    kt::int32* distance, vertex_t* predecessor, vertex_t* next, kt::int64* counters) {
  kt::edges_by_thread({offsets, targets}, kt::Queue{frontier, n_frontier},
                      Claim{level, distance, predecessor, {next, capacity, counters}});
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_push_warp(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                  const vertex_t* __restrict__ frontier, kt::int64 n_frontier, kt::int32 level, kt::int64 capacity,
                  kt::int32* distance, vertex_t* predecessor, vertex_t* next, kt::int64* counters) {
  kt::edges_by_warp({offsets, targets}, kt::Queue{frontier, n_frontier},
                    Claim{level, distance, predecessor, {next, capacity, counters}});
}

// How many of the wanted vertices are still unreached, into counters[1].
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_count_unreached(const kt::int64* __restrict__ wanted, kt::int64 n_wanted,
                        const kt::int32* __restrict__ distance, kt::int64* counters) {
  for (kt::int64 i = kt::thread_id(); i < n_wanted; i += kt::n_threads())
    if (kt::load_constant(distance + kt::load_constant(wanted + i)) == kt::UNREACHED) kt::count(counters + 1);
}
