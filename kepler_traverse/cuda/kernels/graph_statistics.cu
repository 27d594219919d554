// Numbers about a graph and a search, by which strategies are chosen.
//
//   threads   one per vertex, edge or sample
#include <kt/csr.cuh>
#include <kt/frontier_queue.cuh>

#include "any_integer.cuh"

namespace {
KT_DEVICE kt::int64 degree_of(const offset_t* offsets, kt::int64 v) {
  return kt::load_constant(offsets + v + 1) - kt::load_constant(offsets + v);
}
}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_degrees(const offset_t* __restrict__ offsets, kt::int64 n_vertices, kt::int64* degrees) {
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) degrees[v] = degree_of(offsets, v);
}

// The largest degree, and the sum of the squares of all. A square may have more than 64 bits: its lower
// 32 bits and those above are added separately.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_degree_sums(const offset_t* __restrict__ offsets, kt::int64 n_vertices, kt::uint64* sums) {
  kt::uint64 largest = 0, low = 0, high = 0;
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const kt::uint64 degree = static_cast<kt::uint64>(degree_of(offsets, v));
    const kt::uint64 upper = degree >> 32, lower = degree & 0xffffffffull;
    largest = degree > largest ? degree : largest;
    low += lower * lower & 0xffffffffull;
    high += (lower * lower >> 32) + 2 * upper * lower + (upper * upper << 32);
  }
  for (kt::int32 by = kt::WARP / 2; by; by /= 2) {
    const kt::uint64 other = kt::shuffle_xor(kt::ALL_LANES, largest, by);
    largest = other > largest ? other : largest;
    low += kt::shuffle_xor(kt::ALL_LANES, low, by);
    high += kt::shuffle_xor(kt::ALL_LANES, high, by);
  }
  if (kt::lane()) return;
  kt::atomic_max(sums, largest);
  kt::atomic_add(sums + 1, low);
  kt::atomic_add(sums + 2, high);
}

// first is at least the number of vertices at the start.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_first_of_degree(const offset_t* __restrict__ offsets, kt::int64 n_vertices, kt::int64 degree,
                          kt::int64* first) {
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    if (degree_of(offsets, v) != degree) continue;
    // The first vertex only falls: an old value costs one atomic more.
    if (v < kt::racy_load(first)) kt::atomic_min(first, v);
    break;  // later vertices of this thread have higher numbers
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_degrees_at(const offset_t* __restrict__ offsets, const kt::int64* __restrict__ vertices, kt::int64 n_samples,
                     kt::int64* degrees) {
  for (kt::int64 i = kt::thread_id(); i < n_samples; i += kt::n_threads())
    degrees[i] = degree_of(offsets, kt::load_constant(vertices + i));
}

// The two ends of edges that are given by their positions.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_edges_at(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets, kt::int64 n_vertices,
                   const kt::int64* __restrict__ positions, kt::int64 n_samples, kt::int64* sources, kt::int64* ends) {
  for (kt::int64 i = kt::thread_id(); i < n_samples; i += kt::n_threads()) {
    const kt::int64 position = kt::load_constant(positions + i);
    kt::int64 low = 0, high = n_vertices;  // the first vertex whose list ends behind the position
    while (low < high) {
      const kt::int64 middle = low + (high - low) / 2;
      if (kt::load_constant(offsets + middle + 1) <= position)
        low = middle + 1;
      else
        high = middle;
    }
    sources[i] = low;
    ends[i] = kt::load_constant(targets + position);
  }
}

// Vertices that a search reached, their edges, and vertices at no more than `half` hops.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_count_reached(const offset_t* __restrict__ offsets, const kt::int32* __restrict__ distance,
                        kt::int64 n_vertices, kt::int32 half, kt::uint64* counts) {
  kt::uint64 vertices = 0, edges = 0, early = 0;
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const kt::int32 hops = kt::load_constant(distance + v);
    if (hops < 0) continue;
    ++vertices;
    edges += static_cast<kt::uint64>(degree_of(offsets, v));
    early += hops <= half;
  }
  for (kt::int32 by = kt::WARP / 2; by; by /= 2) {
    vertices += kt::shuffle_xor(kt::ALL_LANES, vertices, by);
    edges += kt::shuffle_xor(kt::ALL_LANES, edges, by);
    early += kt::shuffle_xor(kt::ALL_LANES, early, by);
  }
  if (kt::lane()) return;
  kt::atomic_add(counts, vertices);
  kt::atomic_add(counts + 1, edges);
  kt::atomic_add(counts + 2, early);
}

// Vertices of at least `least` edges in any order, each followed by its degree.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_list_hubs(const offset_t* __restrict__ offsets, kt::int64 n_vertices, kt::int64 least, kt::int64* hubs,
                    kt::int64* counter) {
  for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const kt::int64 degree = degree_of(offsets, v);
    if (degree < least) continue;
    const kt::int64 at = kt::atomic_add(counter, 1);
    hubs[2 * at] = v;
    hubs[2 * at + 1] = degree;
  }
}

// The largest hop count of several searches; an unreached vertex has -1.
extern "C" __global__ void __launch_bounds__(BLOCK)
    graph_max_hops(const kt::uint8* __restrict__ distance, kt::int32 hop_bytes, kt::int64 pitch, kt::int64 n_vertices,
                   kt::int64 n_rows, kt::int32* largest) {
  kt::int32 found = -1;
  for (kt::int64 row = 0; row < n_rows; ++row)
    for (kt::int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
      const kt::int32 hops = static_cast<kt::int32>(kt::load_integer(distance, row * pitch + v, -hop_bytes));
      found = hops > found ? hops : found;
    }
  found = kt::reduce_max(kt::ALL_LANES, found);
  if (kt::lane() == 0) kt::atomic_max(largest, found);
}
