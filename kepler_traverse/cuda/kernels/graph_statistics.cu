// Numbers about a graph and a search, by which strategies are chosen.
//
//   threads   one per vertex, edge or sample
#include <kt/csr.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/scan.cuh>

#include "any_integer.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_degrees(const offset_t* offsets, int64 n_vertices, int64* degrees) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) degrees[v] = kt::degree_of(offsets, v);
}

// The largest degree, and the sum of the squares of all. A square may have more than 64 bits: its lower
// 32 bits and those above are added separately.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_degree_sums(const offset_t* offsets, int64 n_vertices, uint64* sums) {
  uint64 largest = 0, low = 0, high = 0;
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const uint64 degree = static_cast<uint64>(kt::degree_of(offsets, v));
    const uint64 upper = degree >> 32, lower = degree & 0xffffffffull;
    largest = degree > largest ? degree : largest;
    low += lower * lower & 0xffffffffull;
    high += (lower * lower >> 32) + 2 * upper * lower + (upper * upper << 32);
  }
  // Each warp adds its numbers once.
  largest = kt::largest_of_all(largest);
  low = kt::sum_of_all(low);
  high = kt::sum_of_all(high);
  if (kt::lane()) return;
  kt::atomic_max(sums, largest);
  kt::atomic_add(sums + 1, low);
  kt::atomic_add(sums + 2, high);
}

// first is at least the number of vertices at the start.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_first_of_degree(const offset_t* offsets, int64 n_vertices, int64 degree, int64* first) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    if (kt::degree_of(offsets, v) != degree) continue;
    // The first vertex only falls: an old value costs one atomic more.
    if (v < kt::racy_load(first)) kt::atomic_min(first, v);
    break;  // later vertices of this thread have higher numbers
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_degrees_at(const offset_t* offsets, const int64* vertices, int64 n_samples, int64* degrees) {
  for (int64 i = kt::thread_id(); i < n_samples; i += kt::n_threads())
    degrees[i] = kt::degree_of(offsets, kt::load_constant(vertices + i));
}

// The two ends of edges that are given by their positions.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_edges_at(const offset_t* offsets, const vertex_t* targets, int64 n_vertices, const int64* positions,
                   int64 n_samples, int64* sources, int64* ends) {
  for (int64 i = kt::thread_id(); i < n_samples; i += kt::n_threads()) {
    const int64 position = kt::load_constant(positions + i);
    // The first vertex whose list ends behind the position.
    sources[i] = kt::first_where(0, n_vertices, [=](int64 v) { return kt::load_constant(offsets + v + 1) > position; });
    ends[i] = kt::load_constant(targets + position);
  }
}

// Vertices that a search reached, their edges, and vertices at no more than `half` hops.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_count_reached(const offset_t* offsets, const int32* distance, int64 n_vertices, int32 half, uint64* counts) {
  uint64 vertices = 0, edges = 0, early = 0;
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const int32 hops = kt::load_constant(distance + v);
    if (hops < 0) continue;
    ++vertices;
    edges += static_cast<uint64>(kt::degree_of(offsets, v));
    early += hops <= half;
  }

  // Each warp adds its numbers once.
  vertices = kt::sum_of_all(vertices);
  edges = kt::sum_of_all(edges);
  early = kt::sum_of_all(early);
  if (kt::lane()) return;
  kt::atomic_add(counts, vertices);
  kt::atomic_add(counts + 1, edges);
  kt::atomic_add(counts + 2, early);
}

// Vertices of at least `least` edges in any order, each followed by its degree.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_list_hubs(const offset_t* offsets, int64 n_vertices, int64 least, int64* hubs, int64* counter) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const int64 degree = kt::degree_of(offsets, v);
    if (degree < least) continue;
    const int64 at = kt::atomic_add(counter, 1);
    hubs[2 * at] = v;
    hubs[2 * at + 1] = degree;
  }
}

// The largest hop count of several searches; an unreached vertex has -1.
extern "C" __global__ void __launch_bounds__(BLOCK) graph_max_hops(const uint8* distance, int32 hop_bytes, int64 pitch,
                                                                   int64 n_vertices, int64 n_rows, int32* largest) {
  int32 found = -1;
  for (int64 row = 0; row < n_rows; ++row)
    for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
      const int32 hops = static_cast<int32>(kt::load_integer(distance, row * pitch + v, -hop_bytes));
      found = hops > found ? hops : found;
    }
  found = kt::reduce_max(ALL_LANES, found);
  if (kt::lane() == 0) kt::atomic_max(largest, found);
}
