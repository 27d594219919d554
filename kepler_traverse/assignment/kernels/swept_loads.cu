// Volumes on shortest paths over a customizable hierarchy, from many origins at once.
//
// assignment/swept_loads.py does the same on a CPU, with equal bits: distances are integers, and volumes are added up
// in one order. A lane of lines is an origin. The numbers of lines are those of a part of the hierarchy: `rise` above
// the origins, or `fall` above the destinations. Sums of unreached vertices are UNREACHED or more, and count as
// UNREACHED.
//
//   swept_rise_warp        one origin per warp: distances over all arcs above it, in ascending order, and their proof
//   swept_fall             distances from the top to the bottom; a barrier of the grid separates levels
//   swept_parents_warp     the first arc that explains each distance, and the proof of the distances
//   swept_distances_warp   one origin per warp: the distance of each pair, and the volume that waits at its destination
//   swept_carry            volumes from the bottom to the top, each over the arc that explains the distance
//   swept_climb            one origin per thread: volumes from the top of the search upward down to the origin
//   swept_mark_rise        one origin per thread: which paths of the search upward use a selected link
//   swept_mark_fall        the same of the paths downward, from the top to the bottom
//   swept_select_warp      one origin per warp: the volume of each pair whose path uses a selected link
//   swept_add_flow_warp    what each arc carries: the volumes of some lanes, in their order
//   swept_close_shares     adds what the last share of the origins carries
//   swept_check_links_warp finds links that make a distance shorter
//
// Compile-time constants:
//   BLOCK   threads per block
#include <kt/cuda_api.cuh>

namespace {

constexpr int64 UNREACHED = int64{1} << 61;  // twice it fits
constexpr int64 UP = 0;                      // of the two sides of an arc
constexpr int64 DOWN = 1;
constexpr int32 NO_ARC = -1;
constexpr int32 FROM_BELOW = -2;  // in place of an arc: the search upward explains the distance
constexpr int32 WARPS = BLOCK / WARP;
constexpr int32 TILE = 4 * WARPS;  // arcs whose volumes are in shared memory at once

KT_DEVICE int64 lesser(int64 a, int64 b) { return a < b ? a : b; }
KT_DEVICE void report(int32* is_wrong) { kt::racy_store(is_wrong, 1); }  // all threads store the same value

}  // namespace

// What the host passes (assignment/swept_loads_gpu.py), here and below.
struct RiseArgs {
  int64 n_lanes;
  int64 pitch;         // lanes per line
  const int32* start;  // of each lane, its list
  const int64* list_offsets;
  const int32* lists;  // numbers above an origin in ascending order, the origin first
  const int64* offsets;
  const int32* heads;
  const int64* weights;
  int64* far;      // UNREACHED before
  int32* entries;  // the last arc of each path upward; NO_ARC before
  int32* is_wrong;
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_rise_warp(const RiseArgs args) {
  for (int64 lane = kt::warp_id(); lane < args.n_lanes; lane += kt::n_warps()) {
    int64* const far = args.far + lane;
    const int64 list = kt::load_constant(args.start + lane);
    const int64 begin = kt::load_constant(args.list_offsets + list);
    const int64 end = kt::load_constant(args.list_offsets + list + 1);
    const int64 origin = kt::load_constant(args.lists + begin);
    if (kt::lane() == 0) far[origin * args.pitch] = 0;
    kt::warp_barrier(ALL_LANES);
    for (int64 i = begin; i < end; ++i) {
      const int64 v = kt::load_constant(args.lists + i);
      const int64 own = far[v * args.pitch];
      if (own == UNREACHED) continue;
      const int64 last = kt::load_constant(args.offsets + v + 1);
      for (int64 arc = kt::load_constant(args.offsets + v) + kt::lane(); arc < last; arc += WARP) {
        const int64 at = kt::load_constant(args.heads + arc) * args.pitch;  // each head once
        const int64 through = own + kt::load_constant(args.weights + arc);
        if (through < far[at]) {
          far[at] = through;
          args.entries[at + lane] = static_cast<int32>(arc);
        }
      }
      kt::warp_barrier(ALL_LANES);
    }
    bool is_right = far[origin * args.pitch] == 0;
    for (int64 i = begin; i < end; ++i) {
      const int64 v = kt::load_constant(args.lists + i);
      const int64 own = far[v * args.pitch];
      const int64 last = kt::load_constant(args.offsets + v + 1);
      for (int64 arc = kt::load_constant(args.offsets + v) + kt::lane(); arc < last; arc += WARP)
        is_right &=
            own + kt::load_constant(args.weights + arc) >= far[kt::load_constant(args.heads + arc) * args.pitch];
    }
    if (!is_right) report(args.is_wrong);
  }
}

struct FallArgs {
  int64 pitch;
  const int32* by_level;  // numbers, from the bottom on
  const int64* level_offsets;
  int64 n_levels;
  const int64* offsets;
  const int32* heads;
  const int64* weights;
  const int32* from_rise;  // of each number that of `rise`, or -1
  const int64* far;
  int64* lines;
  uint32* arrived;  // 0 before the launch
};

// A block takes a vertex and a warp of lanes. Its warps share the arcs, since those at the top have many.
extern "C" __global__ void __launch_bounds__(BLOCK) swept_fall(const FallArgs args) {
  KT_SHARED(int64, least, [BLOCK]);
  const int64 n_parts = args.pitch / WARP;
  for (int64 level = args.n_levels - 1; level >= 0; --level) {
    const int64 first = kt::load_constant(args.level_offsets + level);
    const int64 n_items = (kt::load_constant(args.level_offsets + level + 1) - first) * n_parts;
    for (int64 item = kt::block_id(); item < n_items; item += kt::n_blocks()) {
      const int64 v = kt::load_constant(args.by_level + first + item / n_parts);
      const int64 lane = item % n_parts * WARP + kt::lane();
      const int64 last = kt::load_constant(args.offsets + v + 1);
      int64 best = UNREACHED;
#pragma unroll 4
      for (int64 arc = kt::load_constant(args.offsets + v) + kt::warp_in_block(); arc < last; arc += WARPS) {
        const int64 near = args.lines[kt::load_constant(args.heads + arc) * args.pitch + lane];
        best = lesser(best, near + kt::load_constant(args.weights + arc));
      }
      least[kt::thread_in_block()] = best;
      kt::block_barrier();
      if (kt::warp_in_block() == 0) {
        const int64 low = kt::load_constant(args.from_rise + v);
        if (low >= 0) best = lesser(best, kt::load_constant(args.far + low * args.pitch + lane));
        for (int32 i = 1; i < WARPS; ++i) best = lesser(best, least[i * WARP + kt::lane()]);
        args.lines[v * args.pitch + lane] = best;
      }
      kt::block_barrier();
    }
    kt::grid_barrier(args.arrived);
  }
}

struct ParentArgs {
  int64 n_numbers;
  int64 pitch;
  const int64* offsets;
  const int32* heads;
  const int64* weights;
  const int32* from_rise;
  const int64* far;
  const int64* lines;
  int32* parents;  // an arc, FROM_BELOW or NO_ARC
  int32* is_wrong;
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_parents_warp(const ParentArgs args) {
  const int64 n_parts = args.pitch / WARP;
  for (int64 item = kt::warp_id(); item < args.n_numbers * n_parts; item += kt::n_warps()) {
    const int64 v = item / n_parts;
    const int64 lane = item % n_parts * WARP + kt::lane();
    const int64 own = kt::load_constant(args.lines + v * args.pitch + lane);
    const int64 last = kt::load_constant(args.offsets + v + 1);
    int32 parent = NO_ARC;
    bool is_right = true;
#pragma unroll 4
    for (int64 arc = kt::load_constant(args.offsets + v); arc < last; ++arc) {
      const int64 near = kt::load_constant(args.lines + kt::load_constant(args.heads + arc) * args.pitch + lane);
      const int64 through = near + kt::load_constant(args.weights + arc);
      is_right &= own <= through;
      if (parent == NO_ARC && own == through) parent = static_cast<int32>(arc);
    }
    const int64 low = kt::load_constant(args.from_rise + v);
    if (low >= 0) {
      const int64 below = kt::load_constant(args.far + low * args.pitch + lane);
      is_right &= own <= below;
      if (own == below) parent = FROM_BELOW;
    }
    args.parents[v * args.pitch + lane] = parent;
    if (!is_right) report(args.is_wrong);
  }
}

struct DistanceArgs {
  int64 n_lanes;
  int64 pitch;
  int64 first_group;        // that of the first lane
  const int64* first_pair;  // of each group
  const int32* ends;        // of each pair, the number of its destination
  const double* volumes;
  const int64* lines;
  int64* distances;
  KT_NULLABLE double* waiting;  // 0 before
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_distances_warp(const DistanceArgs args) {
  for (int64 lane = kt::warp_id(); lane < args.n_lanes; lane += kt::n_warps()) {
    const int64 end = kt::load_constant(args.first_pair + args.first_group + lane + 1);
    for (int64 pair = kt::load_constant(args.first_pair + args.first_group + lane) + kt::lane(); pair < end;
         pair += WARP) {
      const int64 at = kt::load_constant(args.ends + pair) * args.pitch + lane;
      const int64 distance = kt::load_constant(args.lines + at);
      args.distances[pair] = distance;
      // the destinations of a group differ
      if (args.waiting && distance < UNREACHED) args.waiting[at] = kt::load_constant(args.volumes + pair);
    }
  }
}

struct CarryArgs {
  int64 pitch;
  const int32* by_level;
  const int64* level_offsets;
  int64 n_levels;
  const int64* below_offsets;  // arcs that lead to each number, by their tails
  const int32* below;
  const int32* below_tails;
  const int32* parents;
  double* waiting;
  int32* is_wrong;
  uint32* arrived;  // 0 before the launch
};

// A block takes a vertex and a warp of lanes. Its warps load what comes from below, and the first one adds it in order.
extern "C" __global__ void __launch_bounds__(BLOCK) swept_carry(const CarryArgs args) {
  KT_SHARED(double, moved, [TILE * WARP]);
  const int64 n_parts = args.pitch / WARP;
  for (int64 level = 0; level < args.n_levels; ++level) {
    const int64 first = kt::load_constant(args.level_offsets + level);
    const int64 n_items = (kt::load_constant(args.level_offsets + level + 1) - first) * n_parts;
    for (int64 item = kt::block_id(); item < n_items; item += kt::n_blocks()) {
      const int64 u = kt::load_constant(args.by_level + first + item / n_parts);
      const int64 lane = item % n_parts * WARP + kt::lane();
      const int64 end = kt::load_constant(args.below_offsets + u + 1);
      double sum = kt::warp_in_block() == 0 ? args.waiting[u * args.pitch + lane] : 0.0;
      for (int64 tile = kt::load_constant(args.below_offsets + u); tile < end; tile += TILE) {
        bool has_moved = false;
        for (int32 i = kt::warp_in_block(); i < TILE; i += WARPS) {
          double volume = 0.0;
          if (tile + i < end) {
            const int64 at = kt::load_constant(args.below_tails + tile + i) * args.pitch + lane;
            if (kt::load_constant(args.parents + at) == kt::load_constant(args.below + tile + i))
              volume = args.waiting[at];
          }
          moved[i * WARP + kt::lane()] = volume;
          has_moved |= volume != 0.0;
        }
        if (kt::block_any(has_moved) && kt::warp_in_block() == 0)
          for (int32 i = 0; i < TILE; ++i) sum += moved[i * WARP + kt::lane()];
        kt::block_barrier();
      }
      if (kt::warp_in_block() == 0) {
        args.waiting[u * args.pitch + lane] = sum;
        if (sum != 0.0 && kt::load_constant(args.parents + u * args.pitch + lane) == NO_ARC) report(args.is_wrong);
      }
    }
    kt::grid_barrier(args.arrived);
  }
}

struct ClimbArgs {
  int64 n_lanes;
  int64 pitch;
  const int32* start;
  const int64* list_offsets;
  const int32* lists;
  const int32* tails;  // of the arcs of `rise`
  const int32* meets;  // of each number of `rise` that of `fall`, or -1
  const int32* entries;
  const int32* parents;
  const double* waiting;
  double* climb;  // 0 before
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_climb(const ClimbArgs args) {
  for (int64 lane = kt::thread_id(); lane < args.n_lanes; lane += kt::n_threads()) {
    const int64 list = kt::load_constant(args.start + lane);
    const int64 begin = kt::load_constant(args.list_offsets + list);
    for (int64 i = kt::load_constant(args.list_offsets + list + 1) - 1; i > begin; --i) {
      const int64 v = kt::load_constant(args.lists + i);
      const int64 meet = kt::load_constant(args.meets + v);
      double volume = args.climb[v * args.pitch + lane];
      if (meet >= 0 && kt::load_constant(args.parents + meet * args.pitch + lane) == FROM_BELOW)
        volume += kt::load_constant(args.waiting + meet * args.pitch + lane);
      if (volume == 0.0) continue;
      args.climb[v * args.pitch + lane] = volume;
      const int32 arc = kt::load_constant(args.entries + v * args.pitch + lane);
      args.climb[kt::load_constant(args.tails + arc) * args.pitch + lane] += volume;
    }
  }
}

struct MarkRiseArgs {
  int64 n_lanes;
  int64 pitch;
  const int32* start;
  const int64* list_offsets;
  const int32* lists;
  const int32* tails;
  const int32* entries;
  const int32* arcs;   // those of the hierarchy, of which `marks` has both sides
  const uint8* marks;  // of each side, whether it stands for a selected link
  uint8* uses;         // of each number of `rise` and lane; 0 before
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_mark_rise(const MarkRiseArgs args) {
  for (int64 lane = kt::thread_id(); lane < args.n_lanes; lane += kt::n_threads()) {
    const int64 list = kt::load_constant(args.start + lane);
    const int64 end = kt::load_constant(args.list_offsets + list + 1);
    for (int64 i = kt::load_constant(args.list_offsets + list); i < end; ++i) {
      const int64 at = kt::load_constant(args.lists + i) * args.pitch + lane;
      const int32 arc = kt::load_constant(args.entries + at);
      if (arc == NO_ARC) continue;
      const uint8 own = kt::load_constant(args.marks + 2 * int64{kt::load_constant(args.arcs + arc)} + UP);
      args.uses[at] = own | args.uses[kt::load_constant(args.tails + arc) * args.pitch + lane];
    }
  }
}

struct MarkFallArgs {
  int64 pitch;
  const int32* by_level;
  const int64* level_offsets;
  int64 n_levels;
  const int32* heads;
  const int32* parents;
  const int32* from_rise;
  const uint8* above;  // what `swept_mark_rise` found
  const int32* arcs;
  const uint8* marks;
  uint8* uses;      // of each number of `fall` and lane
  uint32* arrived;  // 0 before the launch
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_mark_fall(const MarkFallArgs args) {
  for (int64 level = args.n_levels - 1; level >= 0; --level) {
    const int64 first = kt::load_constant(args.level_offsets + level);
    const int64 n_items = (kt::load_constant(args.level_offsets + level + 1) - first) * args.pitch;
    for (int64 item = kt::thread_id(); item < n_items; item += kt::n_threads()) {
      const int64 v = kt::load_constant(args.by_level + first + item / args.pitch);
      const int64 lane = item % args.pitch;
      const int32 parent = kt::load_constant(args.parents + v * args.pitch + lane);
      uint8 uses = 0;
      if (parent == FROM_BELOW) {
        uses = kt::load_constant(args.above + kt::load_constant(args.from_rise + v) * args.pitch + lane);
      } else if (parent != NO_ARC) {
        const uint8 own = kt::load_constant(args.marks + 2 * int64{kt::load_constant(args.arcs + parent)} + DOWN);
        uses = own | args.uses[kt::load_constant(args.heads + parent) * args.pitch + lane];
      }
      args.uses[v * args.pitch + lane] = uses;
    }
    kt::grid_barrier(args.arrived);
  }
}

struct SelectArgs {
  int64 n_lanes;
  int64 pitch;
  int64 first_group;
  const int64* first_pair;
  const int32* ends;
  const double* volumes;
  const int64* lines;
  const uint8* uses;
  double* selected;  // of each pair
  double* waiting;   // 0 before
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_select_warp(const SelectArgs args) {
  for (int64 lane = kt::warp_id(); lane < args.n_lanes; lane += kt::n_warps()) {
    const int64 end = kt::load_constant(args.first_pair + args.first_group + lane + 1);
    for (int64 pair = kt::load_constant(args.first_pair + args.first_group + lane) + kt::lane(); pair < end;
         pair += WARP) {
      const int64 at = kt::load_constant(args.ends + pair) * args.pitch + lane;
      const bool is_selected = kt::load_constant(args.lines + at) < UNREACHED && kt::load_constant(args.uses + at);
      const double volume = is_selected ? kt::load_constant(args.volumes + pair) : 0.0;
      args.selected[pair] = volume;
      args.waiting[at] = volume;
    }
  }
}

struct FlowArgs {
  int64 n_arcs;
  int64 n_lanes;
  int64 pitch;
  const int32* at;        // of each arc, the number whose volume it may carry
  const int32* chosen;    // of each number and lane, the arc that carries its volume
  const double* volumes;  // of each number and lane
  const int32* shares;    // of each lane, its share of the origins, in ascending order
  int32 share;            // of the lane before the first one
  double* open;           // of each arc, the sum of that share
  double* closed;         // the sum of those before
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_add_flow_warp(const FlowArgs args) {
  for (int64 arc = kt::warp_id(); arc < args.n_arcs; arc += kt::n_warps()) {
    const int64 row = kt::load_constant(args.at + arc) * args.pitch;
    int32 share = args.share;
    double open = args.open[arc];
    double closed = args.closed[arc];
    for (int64 begin = 0; begin < args.n_lanes; begin += WARP) {
      const int64 lane = begin + kt::lane();
      const bool carries = lane < args.n_lanes && kt::load_constant(args.chosen + row + lane) == arc;
      const double own = carries ? kt::load_constant(args.volumes + row + lane) : 0.0;
      for (uint32 left = kt::ballot(ALL_LANES, own != 0.0); left; left &= left - 1) {
        const int32 from = kt::first_lane(left);
        const int32 of_lane = kt::load_constant(args.shares + begin + from);
        if (of_lane != share) {
          closed += open;
          open = 0.0;
          share = of_lane;
        }
        open += kt::broadcast(ALL_LANES, own, from);
      }
    }
    const int32 last = kt::load_constant(args.shares + args.n_lanes - 1);
    kt::warp_barrier(ALL_LANES);  // all lanes have read the sums
    if (kt::lane() == 0) {
      args.closed[arc] = share == last ? closed : closed + open;
      args.open[arc] = share == last ? open : 0.0;
    }
  }
}

struct CloseArgs {
  int64 n_arcs;
  const double* open;
  double* closed;
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_close_shares(const CloseArgs args) {
  for (int64 arc = kt::thread_id(); arc < args.n_arcs; arc += kt::n_threads())
    args.closed[arc] += kt::load_constant(args.open + arc);
}

struct CheckArgs {
  int64 n_links;
  int64 n_lanes;
  int64 pitch;
  const int32* tails;
  const int32* heads;
  const int64* costs;
  const int32* origins;  // of each lane, the number of its origin
  const int64* lines;
  int32* is_wrong;
};

extern "C" __global__ void __launch_bounds__(BLOCK) swept_check_links_warp(const CheckArgs args) {
  bool is_right = true;
  for (int64 link = kt::warp_id(); link < args.n_links; link += kt::n_warps()) {
    const int64* const near = args.lines + kt::load_constant(args.tails + link) * args.pitch;
    const int64* const own = args.lines + kt::load_constant(args.heads + link) * args.pitch;
    const int64 cost = kt::load_constant(args.costs + link);
    for (int64 lane = kt::lane(); lane < args.n_lanes; lane += WARP)
      is_right &= kt::load_constant(own + lane) <= kt::load_constant(near + lane) + cost;
  }
  for (int64 lane = kt::thread_id(); lane < args.n_lanes; lane += kt::n_threads())
    is_right &= kt::load_constant(args.lines + kt::load_constant(args.origins + lane) * args.pitch + lane) == 0;
  if (!is_right) report(args.is_wrong);
}
