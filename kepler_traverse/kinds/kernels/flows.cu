// Flows: what each edge or vertex carries if volumes take the canonical shortest paths, with one source per block.
//
// Distances are given. The canonical predecessor of a vertex is its smallest in-neighbor that is nearer and whose edge
// is tight. So the predecessors of a source form a tree, and the volume through a vertex is its own and that of its
// children. A vertex is ready when all of its children are. It then adds its volume to the sums and to its parent. Sums
// are exact (kt/exact_sum.cuh), so they have the same bits in any order.
//
// Where it fits, one word per vertex has its volume and the counts of its children. One atomic then hands a volume on
// and tells whether the parent is ready. Threads take the vertices without children in the order of their numbers, and
// each climbs from parent to parent for as long as these are ready. So there are no rounds, and a block reads what is
// near in the order of the vertices at nearly the same time.
//
// Otherwise, the vertices in the order in which they became ready are the queue, and rounds of ready vertices end with
// a barrier of the block.
//
// Where paths must use one of some edges, the rounds run first without volumes. Back over the queue, from the source
// on, each vertex whose path uses such an edge is marked. Then only these take their volumes, and the rounds run again.
//
//   flows_source_per_block   blocks take sources until none is left
//
// Compile-time constants:
//   BLOCK        threads per block
//   HOP_BYTES    bytes per hop count; 0 if distances are weighted, of type weight_t
//   LONG         edges that one thread reads alone
//   EDGE_BYTES   bytes that hold the position of an edge
//   INTEGERS     whether volumes are integers, without a decay
//   WIDE         whether what a source sends may not fit into a word beside two counts of children, or THROUGH
//   DECAY        0 none, 1 exponential, 2 linear, 3 gaussian
//   THROUGH      whether paths must use a named edge
#include <kt/advance.cuh>
#include <kt/decay.cuh>
#include <kt/exact_sum.cuh>
#include <kt/tight_edges.cuh>

namespace {

using edge_t = kt::Unsigned<EDGE_BYTES>::type;
constexpr edge_t NO_EDGE = static_cast<edge_t>(-1);  // larger than all
using vertex_count = kt::Unsigned<sizeof(vertex_t)>::type;

}  // namespace

// What the host passes (kinds/flows_gpu.py).
struct FlowArgs {
  const offset_t* in_offsets;  // of the reverse graph
  const vertex_t* in_targets;
  KT_NULLABLE const weight_t* in_weights;
  int64 n_vertices;
  const int64* sources;
  int64 n_sources;
  int64* taken;
  const uint8* distance;
  int64 pitch;                       // from the distances of one source to those of the next
  KT_NULLABLE const int64* offsets;  // where the targets of each source begin; without them each source has all
  const int64* targets;
  KT_NULLABLE const int64* rows;   // of the targets in the table of all pairs, if that is listed
  KT_NULLABLE const uint8* named;  // [edges of the reverse graph]: not 0 at those that are named, if THROUGH
  const int64* amounts;            // of each target: an integer if INTEGERS, or the bits of a double
  const int64* factors;            // of each source, likewise
  int64 n_targets;
  int64 limit;       // the largest distance that is served, in the order of distances
  double parameter;  // of the decay
  double width;      // a second one, of a logistic decay
  int32 exponent;    // of the unit of sums
  uint8* edges;      // [blocks][n_vertices][EDGE_BYTES]: the edge from the parent, by its position in the reverse graph
  KT_NULLABLE int32* waits_for;  // [blocks][n_vertices]: children that are not ready, if WIDE
  KT_NULLABLE vertex_t* queue;   // [blocks][n_vertices], if WIDE
  uint64* low;                   // [blocks][n_vertices]: volumes; unless WIDE, above the counts
  KT_NULLABLE int64* high;
  int32 count_bits;         // unless WIDE, of the number of children, and of the number of those that are ready
  KT_NULLABLE uint8* uses;  // [blocks][n_vertices]: whether the path uses a named edge
  int32* left;              // sources that are left to the host
  KT_NULLABLE uint64* vertex_low;
  KT_NULLABLE int64* vertex_high;
  KT_NULLABLE uint64* edge_low;  // of the edges of the reverse graph
  KT_NULLABLE int64* edge_high;
  KT_NULLABLE uint64* pair_low;  // of the table of all pairs
  KT_NULLABLE int64* pair_high;
  uint64* lost_low;  // volumes without a path, and their number
  int64* lost_high;
};

namespace {

// Of the very products of cpu/tree_flows.py.
KT_DEVICE kt::Exact volume_of(const FlowArgs& args, int64 amount, int64 factor, bool is_served, double far) {
  if (INTEGERS) return {static_cast<uint64>(amount) * static_cast<uint64>(factor), 0};
  double volume = kt::float_of(amount) * kt::float_of(factor);
  if (DECAY != kt::NO_DECAY && is_served) volume *= kt::Decay::weight_at(far, args.parameter, args.width);
  return kt::exact_of(volume, args.exponent, true);
}

// The tree of one source, of which all threads of a block have a copy.
struct Tree {
  const FlowArgs& args;
  kt::Distances distance;
  int64 source;
  edge_t* edges;
  int32* waits_for;
  vertex_t* queue;
  uint64* low;
  int64* high;
  uint8* uses;

  // Unless WIDE, a word has the volume above two counts of children: those that are ready, and all.
  KT_DEVICE uint64 above_counts(uint64 volume) const { return volume << 2 * args.count_bits; }
  KT_DEVICE uint64 count_in(uint64 word) const { return word & ((uint64{1} << args.count_bits) - 1); }

  // Adds to the volume of a vertex.
  KT_DEVICE void add(vertex_t v, kt::Exact volume) const {
    if constexpr (WIDE != 0)
      kt::add_exactly(low + v, high + v, volume);
    else
      kt::atomic_add(low + v, above_counts(volume.low));
  }
  // Tells a vertex that it has one more child.
  KT_DEVICE void count_child(vertex_t v) const {
    if constexpr (WIDE != 0)
      kt::atomic_add(waits_for + v, 1);
    else
      kt::atomic_add(low + v, uint64{1});
  }
  KT_DEVICE kt::Exact volume_at(vertex_t v) const { return {low[v], WIDE ? high[v] : 0}; }

  // Calls visit(is_there, v) for all vertices. Warps stay converged.
  template <typename Visit>
  KT_DEVICE void vertices(Visit visit) const {
    for (int64 first = kt::warp_in_block() * WARP; first < args.n_vertices; first += BLOCK) {
      const bool is_there = first + kt::lane() < args.n_vertices;
      visit(is_there, static_cast<vertex_t>(is_there ? first + kt::lane() : 0));
    }
  }

  // Sets the volumes and counts of all vertices to 0.
  KT_DEVICE void clear() const {
    vertices([&](bool is_there, vertex_t v) {
      if (!is_there) return;
      low[v] = 0;
      if (!WIDE) return;
      waits_for[v] = 0;
      high[v] = 0;
    });
  }

  // The first tight edge of the list of each lane. All lanes of a warp call it.
  KT_DEVICE edge_t first_tight(kt::AdjacencyList mine) const {
    edge_t found = NO_EDGE;
    const bool is_long = mine.end - mine.begin > LONG;
    const auto look = [&](vertex_t v, offset_t e, vertex_t u) {
      if (found == NO_EDGE && distance.is_tight(distance[u], args.in_weights, e, distance[v]))
        found = static_cast<edge_t>(e);
    };
    // Short lists are read by their lanes, and long ones by all lanes, one list after the other.
    if (!is_long) kt::edges_of_thread(args.in_targets, mine, look);
    for (uint32 left = kt::ballot(ALL_LANES, is_long); left; left &= left - 1) {
      const int32 owner = kt::first_lane(left);
      const kt::AdjacencyList list = {kt::broadcast(ALL_LANES, mine.u, owner),
                                      kt::broadcast(ALL_LANES, mine.begin, owner),
                                      kt::broadcast(ALL_LANES, mine.end, owner)};
      edge_t first = NO_EDGE;
      kt::edges_of_list(args.in_targets, {0, 1}, list, [&](bool valid, vertex_t v, offset_t e, vertex_t u) {
        if (valid && first == NO_EDGE && distance.is_tight(distance[u], args.in_weights, e, distance[v]))
          first = static_cast<edge_t>(e);
      });
      for (int32 mask = 1; mask < WARP; mask *= 2) {
        const edge_t other = kt::shuffle_xor(ALL_LANES, first, mask);
        first = other < first ? other : first;
      }
      if (kt::lane() == owner) found = first;
    }
    return found;
  }

  // Finds the parent of each vertex and tells it. Returns whether this thread has a vertex without one.
  KT_DEVICE bool find_parents() const {
    bool lacks_one = false;
    vertices([&](bool is_there, vertex_t v) {
      const bool looks = is_there && v != source && kt::is_reached(distance[v]);
      const edge_t e = first_tight(looks ? kt::adjacency_list(args.in_offsets, v) : kt::AdjacencyList{});
      if (!looks) return;
      edges[v] = e;
      lacks_one = lacks_one || e == NO_EDGE;
      if (e != NO_EDGE) count_child(kt::load_constant(args.in_targets + e));
    });
    return lacks_one;
  }

  // Takes the volume of the j-th target: to its vertex, or to its pair.
  KT_DEVICE void place(int64 j, vertex_t v, kt::Exact volume) const {
    if (args.pair_low) {  // each row is there once
      const int64 pair = kt::load_constant(args.rows + j);
      args.pair_low[pair] = volume.low;
      args.pair_high[pair] = volume.high;
    } else if (args.offsets) {
      add(v, volume);
    } else if constexpr (WIDE != 0) {  // targets of all sources are distinct
      low[v] = volume.low;
      high[v] = volume.high;
    } else {
      low[v] += above_counts(volume.low);
    }
  }

  // Gives each target of a source its volume; those without a path are lost.
  KT_DEVICE void place_volumes(int64 row) const {
    const int64 begin = args.offsets ? kt::load_constant(args.offsets + row) : 0;
    const int64 end = args.offsets ? kt::load_constant(args.offsets + row + 1) : args.n_targets;
    const int64 factor = kt::load_constant(args.factors + row);
    for (int64 first = begin + kt::warp_in_block() * WARP; first < end; first += BLOCK) {
      const int64 j = first + kt::lane();
      kt::Exact lost;
      bool is_lost = false;
      if (j < end) {
        const vertex_t v = static_cast<vertex_t>(kt::load_constant(args.targets + j));
        const kt::distance_key key = distance[v];
        is_lost = !kt::is_reached(key) || key > args.limit;
        const double far = is_lost ? 0.0 : kt::length_of(key);
        const kt::Exact volume = volume_of(args, kt::load_constant(args.amounts + j), factor, !is_lost, far);
        if (is_lost)
          lost = volume;
        else if (!THROUGH || uses[v])
          place(j, v, volume);
      }

      const uint32 lanes = kt::ballot(ALL_LANES, is_lost);
      if (lanes == 0) continue;
      lost = kt::sum_of_lanes(lost);
      if (kt::lane() != 0) continue;
      kt::add_exactly(args.lost_low, args.lost_high, lost);
      kt::add_exactly(args.lost_low + 1, args.lost_high + 1, {static_cast<uint64>(kt::count_lanes(lanes)), 0});
    }
  }

  // Appends the vertices of the lanes that are ready to the queue. All lanes of a warp call it.
  KT_DEVICE void append(vertex_t v, bool is_ready, vertex_t* size) const {
    const uint32 lanes = kt::ballot(ALL_LANES, is_ready);
    if (lanes == 0) return;
    vertex_t place = 0;
    if (kt::lane() == 0) place = kt::atomic_add(size, static_cast<vertex_t>(kt::count_lanes(lanes)));
    place = kt::broadcast(ALL_LANES, place, 0) + static_cast<vertex_t>(kt::count_lanes(lanes & kt::lanes_before()));
    if (is_ready) queue[place] = v;
  }

  // Adds the volume of a vertex that is ready to the sums and to its parent. Returns whether that is ready, too.
  KT_DEVICE bool hand_on(vertex_t v, vertex_t* parent) const {
    const kt::Exact volume = volume_at(v);
    const bool is_nonzero = (volume.low | static_cast<uint64>(volume.high)) != 0;
    if (is_nonzero && args.vertex_low) kt::add_exactly(args.vertex_low + v, args.vertex_high + v, volume);
    if (v == source) return false;
    const edge_t e = edges[v];
    const vertex_t u = kt::load_constant(args.in_targets + e);
    if (is_nonzero) {
      if (args.edge_low) kt::add_exactly(args.edge_low + e, args.edge_high + e, volume);
      add(u, volume);
    }
    *parent = u;
    return kt::atomic_add(waits_for + u, -1) == 1;
  }

  // Hands all volumes on, from the leaves to the source. Returns where the last round begins in the queue. With
  // THROUGH, the volume of the first vertex of a round is then where the round before begins.
  KT_DEVICE vertex_t hand_all_on(vertex_t* size) const {
    // The first round: vertices without children.
    vertices([&](bool is_there, vertex_t v) {
      append(v, is_there && kt::is_reached(distance[v]) && waits_for[v] == 0, size);
    });
    kt::block_barrier();

    vertex_t last = 0;
    for (vertex_t begin = 0, end = size[0]; begin < end;) {
      kt::block_barrier();
      for (vertex_t first = begin + kt::warp_in_block() * WARP; first < end; first += BLOCK) {
        vertex_t parent = 0;
        const bool is_ready = first + kt::lane() < end && hand_on(queue[first + kt::lane()], &parent);
        append(parent, is_ready, size);
      }
      kt::block_barrier();
      if (THROUGH && kt::thread_in_block() == 0) low[queue[begin]] = static_cast<uint64>(last);
      last = begin;
      begin = end;
      end = size[0];
    }
    return last;
  }

  // Unless WIDE. Adds the volume of a vertex that is ready to the sums and to its parent, which replaces it. Returns
  // whether that is ready, too.
  KT_DEVICE bool climb_from(vertex_t* v, uint64* volume) const {
    if (*volume && args.vertex_low) kt::add_exactly(args.vertex_low + *v, args.vertex_high + *v, {*volume, 0});
    if (*v == source) return false;
    const edge_t e = edges[*v];
    const vertex_t u = kt::load_constant(args.in_targets + e);
    // One atomic hands the volume on and counts this child as ready.
    const uint64 handed = above_counts(*volume) + (uint64{1} << args.count_bits);
    const uint64 word = kt::atomic_add(low + u, handed) + handed;
    if (*volume && args.edge_low) kt::add_exactly(args.edge_low + e, args.edge_high + e, {*volume, 0});
    *v = u;
    *volume = word >> 2 * args.count_bits;
    return count_in(word) == count_in(word >> args.count_bits);
  }

  // Unless WIDE. Hands all volumes on. Lanes that do not climb take the next vertices.
  KT_DEVICE void climb(vertex_count* taken) const {
    const vertex_count n = static_cast<vertex_count>(args.n_vertices);
    bool climbs = false;
    vertex_t v = 0;
    uint64 volume = 0;
    for (vertex_count next = 0; next < n || kt::any(ALL_LANES, climbs);) {
      // Give the next vertices to the lanes that do not climb, of which those without children begin to.
      const uint32 idle = kt::ballot(ALL_LANES, !climbs);
      if (next < n && idle) {
        if (kt::lane() == 0) next = kt::atomic_add(taken, static_cast<vertex_count>(kt::count_lanes(idle)));
        next = kt::broadcast(ALL_LANES, next, 0);
        const vertex_count mine = next + static_cast<vertex_count>(kt::count_lanes(idle & kt::lanes_before()));
        if (!climbs && mine < n) {
          v = static_cast<vertex_t>(mine);
          // Others write only the words of parents. Of these the number of children is read, which no longer changes.
          const uint64 word = kt::racy_load_cached(low + v);
          volume = word >> 2 * args.count_bits;
          climbs = count_in(word) == 0 && kt::is_reached(distance[v]);
        }
      }
      if (climbs) climbs = climb_from(&v, &volume);
    }
  }

  // Marks the vertices whose paths use a named edge, by the rounds from the last one on.
  KT_DEVICE void mark(vertex_t begin, vertex_t end) const {
    for (;;) {
      for (vertex_t i = begin + static_cast<vertex_t>(kt::thread_in_block()); i < end; i += BLOCK) {
        const vertex_t v = queue[i];
        const edge_t e = v == source ? NO_EDGE : edges[v];
        uses[v] = v != source && (kt::load_constant(args.named + e) || uses[kt::load_constant(args.in_targets + e)]);
      }
      kt::block_barrier();
      if (begin == 0) return;
      end = begin;
      begin = static_cast<vertex_t>(low[queue[begin]]);
    }
  }

  // Makes each vertex wait for its children again, without volumes.
  KT_DEVICE void wait_again() const {
    vertices([&](bool is_there, vertex_t v) {
      if (!is_there) return;
      low[v] = 0;
      if (v != source && kt::is_reached(distance[v]))
        kt::atomic_add(waits_for + kt::load_constant(args.in_targets + edges[v]), 1);
    });
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) flows_source_per_block(const FlowArgs args) {
  KT_SHARED(int64, next_source, [1]);
  KT_SHARED(vertex_t, size, [1]);
  KT_SHARED(vertex_count, taken, [1]);
  const int64 n = args.n_vertices, place = kt::block_id() * n;
  for (;;) {
    if (kt::thread_in_block() == 0) {
      next_source[0] = kt::atomic_add(args.taken, int64{1});
      size[0] = 0;
      taken[0] = 0;
    }
    kt::block_barrier();
    const int64 row = next_source[0];
    if (row >= args.n_sources) return;
    const Tree tree{args,
                    kt::distances_of(args.distance, args.pitch, row),
                    kt::load_constant(args.sources + row),
                    reinterpret_cast<edge_t*>(args.edges) + place,
                    WIDE ? args.waits_for + place : nullptr,
                    WIDE ? args.queue + place : nullptr,
                    args.low + place,
                    WIDE ? args.high + place : nullptr,
                    THROUGH ? args.uses + place : nullptr};

    // Find the tree.
    tree.clear();
    kt::block_barrier();
    if (kt::block_any(tree.find_parents())) {  // an edge on a shortest path adds nothing
      if (kt::thread_in_block() == 0) args.left[row] = 1;
      continue;
    }

    // Mark which paths use a named edge, by rounds without volumes.
    if constexpr (THROUGH != 0) {
      const vertex_t last = tree.hand_all_on(size);
      tree.mark(last, size[0]);
      tree.wait_again();
      if (kt::thread_in_block() == 0) size[0] = 0;
      kt::block_barrier();
    }

    // Place the volumes, and hand them on to the source.
    tree.place_volumes(row);
    if constexpr (WIDE != 0) {
      if (args.pair_low == nullptr) tree.hand_all_on(size);
    } else {
      kt::block_barrier();
      if (args.pair_low == nullptr) tree.climb(taken);
    }
    kt::block_barrier();
  }
}
