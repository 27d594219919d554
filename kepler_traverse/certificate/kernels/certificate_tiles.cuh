// Distance tiles: the distances of one vertex from a block of sources, adjacent in TILE_BYTES bytes,
// so that an edge is read once for all of these sources. Several lanes share a tile and check the
// edges of its vertex one after another.
//
// `findings` holds two numbers per rule: how often the rule is violated, and the smallest place where
// it is. OTHER are two numbers with another meaning.
//
// Compile-time constants:
//   CHUNK        edges per chunk of a long adjacency list
//   TILE         vertices that a block lays out at once
//   TILE_BYTES   bytes per distance tile
#pragma once

#include <kt/advance.cuh>
#include <kt/frontier_queue.cuh>

namespace kt {

constexpr int32 IN_FLIGHT = 4;  // tiles that a lane loads at once

enum Finding { C1, C2, C3, C4, OTHER };

KT_DEVICE void report(int64* findings, Finding rule, int64 place) {
  count(findings + 2 * rule);
  atomic_min(findings + 2 * rule + 1, place);
}

// Compares the distance of a vertex with the best one that its in-neighbors allow.
template <typename Key>
KT_DEVICE void compare(int64* findings, bool is_source, Key here, Key best, Key limit, int64 place) {
  if (here > best) {
    if (is_source || best <= limit) report(findings, C3, place);
  } else if (here < best && !is_source) {
    report(findings, C4, place);
  }
}

// Transposes distances, as read(v, cell) returns them, into tiles. Writes whole tiles.
template <typename Cell, typename Read>
KT_DEVICE void lay_out(Cell (&tile)[TILE_BYTES / sizeof(Cell)][TILE + 1], int64 n_vertices, Cell* tiles, Read read) {
  constexpr int32 CELLS = TILE_BYTES / sizeof(Cell);
  for (int64 first = int64{block_id()} * TILE; first < n_vertices; first += int64{n_blocks()} * TILE) {
    const int32 here = n_vertices - first < TILE ? static_cast<int32>(n_vertices - first) : TILE;
    block_barrier();
    for (int32 i = thread_in_block(); i < CELLS * TILE; i += BLOCK)
      if (i % TILE < here) tile[i / TILE][i % TILE] = read(first + i % TILE, i / TILE);
    block_barrier();
    for (int32 i = thread_in_block(); i < CELLS * here; i += BLOCK)
      tiles[first * CELLS + i] = tile[i % CELLS][i / CELLS];
  }
}

// The adjacency lists of CHUNK edges or more, in chunks. `slot` numbers the vertex whose best distance is stored.
struct Hubs {
  const vertex_t* vertices;
  const uint64* chunks;  // which CHUNK edges above, slot below
  const int64* counts;   // hubs, chunks
  KT_DEVICE int64 slot(int64 i) const { return static_cast<int64>(load_constant(chunks + i) & 0xffffffffu); }
  KT_DEVICE AdjacencyList chunk(const offset_t* offsets, int64 i) const {
    const AdjacencyList list = adjacency_list(offsets, load_constant(vertices + slot(i)));
    return cut<CHUNK>(list, static_cast<int64>(load_constant(chunks + i) >> 32));
  }
};

// Visits all edges, with as many lanes per adjacency list as a tile has. `checked` begins a list, takes
// its edges, and at the end of a chunk stores its best distances, at the end of a whole list compares.
template <typename DistanceTile>
KT_DEVICE void walk(Csr graph, int64 n_vertices, const Hubs& hubs, DistanceTile& checked) {
  const auto visit = [&](bool valid, vertex_t, offset_t e, vertex_t u) { checked.take(valid, e, u); };

  // The chunks of long lists. The next list, or the end, closes the one that is open.
  bool is_open = false;
  int64 slot = 0;
  const auto keep = [&] {
    if (is_open) checked.keep(slot);
    is_open = false;
  };
  const auto chunk = [&](int64 i, bool) {
    keep();
    const AdjacencyList list = hubs.chunk(graph.offsets, i);
    slot = hubs.slot(i);
    checked.begin(list.u);
    is_open = true;
    return list;
  };
  edges_by_virtual_warp(graph.targets, whole_grid(), load_constant(hubs.counts + 1), DistanceTile::LANES, chunk, visit);
  keep();

  // The lists shorter than CHUNK, in the same way.
  const auto compare_last = [&] {
    if (is_open) checked.compare_with_best();
    is_open = false;
  };
  const auto whole = [&](int64 i, bool) {
    compare_last();
    const AdjacencyList list = adjacency_list(graph.offsets, static_cast<vertex_t>(i));
    if (list.end - list.begin >= CHUNK) return AdjacencyList{list.u, list.end, list.end};
    checked.begin(list.u);
    is_open = true;
    return list;
  };
  edges_by_virtual_warp(graph.targets, whole_grid(), n_vertices, DistanceTile::LANES, whole, visit);
  compare_last();
}

// Compares the vertices with CHUNK edges or more, from the best distances that their chunks stored.
template <typename DistanceTile>
KT_DEVICE void finalize(const Hubs& hubs, DistanceTile& checked) {
  const int64 n = load_constant(hubs.counts) * DistanceTile::LANES;
  for (int64 i = thread_id(); i < n; i += n_threads()) {
    checked.begin(load_constant(hubs.vertices + i / DistanceTile::LANES));
    checked.recall(i / DistanceTile::LANES);
    checked.compare_with_best();
  }
}

// Calls each(first, n) for IN_FLIGHT edges at a time of the n edges that the lanes of a list hold.
template <int32 LANES, typename Each>
KT_DEVICE void broadcast_edges(bool valid, Each each) {
  const uint32 of_list = (~0u >> (WARP - LANES)) << (lane() / LANES * LANES);
  const int32 n = count_lanes(ballot(ALL_LANES, valid) & of_list);
  const int32 max_n = reduce_max(ALL_LANES, n);
  for (int32 first = 0; first < max_n; first += IN_FLIGHT) each(first, n);
}

}  // namespace kt
