// Weights of a customizable hierarchy from the costs of its links, and what its arcs carry, handed down to the links.
//
// Dibbelt, Strasser, Wagner 2014. An arc leads from its tail to a head above it, and has two sides: side 2 * arc upward
// and side 2 * arc + 1 downward. Two arcs of one tail, the low one with the lower head, make a triangle with the arc
// that joins their heads. All arcs are sorted by tail and then by head. hierarchy/customizable.py does the same on a
// CPU, with equal bits: weights are integers, and volumes are added up in one order.
//
//   customizable_join_warp     the joining arc of each triangle; once per hierarchy
//   customizable_set_links     the least cost of the links of each side
//   customizable_lower         weights over triangles, from the bottom on; a barrier of the grid separates levels
//   customizable_prove_links   finds links shorter than their arc, and the first one that is as long
//   customizable_prove_warp    finds triangles shorter than the arc that joins them, and the lowest that is as long
//   customizable_mark          the sides that hand down to a marked link, from the bottom on
//   customizable_hand_down     the volume of each side from the triangles that it belongs to, from the top on
//   customizable_take_sides    weights of one side of some arcs
//   customizable_put_sides     volumes of one side of some arcs
//
// Compile-time constants:
//   BLOCK   threads per block
#include <kt/cuda_api.cuh>

namespace {

constexpr int64 UNREACHED = int64{1} << 61;  // no way; twice it fits
constexpr int64 UP = 0;
constexpr int64 DOWN = 1;
constexpr int64 NO_TRIANGLE = 0x7fffffffffffffff;
constexpr int32 NO_LINK = 0x7fffffff;

}  // namespace

// What the host passes (hierarchy/customizable_gpu.py), here and below.
struct JoinArgs {
  int64 n_arcs;
  const int64* offsets;  // of the arcs of each rank
  const int32* heads;
  const int64* first_triangle;  // of each low arc; those of its later arcs follow
  int32* joins;                 // the joining arc of each triangle
};

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_join_warp(const JoinArgs args) {
  for (int64 low = kt::warp_id(); low < args.n_arcs; low += kt::n_warps()) {
    const int64 first = kt::load_constant(args.first_triangle + low);
    const int64 n = kt::load_constant(args.first_triangle + low + 1) - first;
    const int64 tail = kt::load_constant(args.heads + low);
    for (int64 i = kt::lane(); i < n; i += WARP) {
      const int32 head = kt::load_constant(args.heads + low + 1 + i);
      // Find the arc from `tail` to `head` by bisection.
      int64 begin = kt::load_constant(args.offsets + tail);
      int64 end = kt::load_constant(args.offsets + tail + 1);
      while (end - begin > 1) {
        const int64 middle = (begin + end) / 2;
        if (kt::load_constant(args.heads + middle) <= head) {
          begin = middle;
        } else {
          end = middle;
        }
      }
      args.joins[first + i] = static_cast<int32>(begin);
    }
  }
}

struct LinkArgs {
  int64 n_links;
  const int32* sides;  // of each link; negative for a loop
  const int64* costs;
  int64* weights;
};

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_set_links(const LinkArgs args) {
  for (int64 link = kt::thread_id(); link < args.n_links; link += kt::n_threads()) {
    const int32 side = kt::load_constant(args.sides + link);
    if (side >= 0) kt::atomic_min(args.weights + side, kt::load_constant(args.costs + link));
  }
}

struct LowerArgs {
  const int32* by_level;       // arcs, from the lowest level of their tails on
  const int64* level_offsets;  // where each level begins
  int64 n_levels;
  const int64* first_triangle;
  const int32* joins;
  int64* weights;
  uint32* arrived;  // 0 before the launch
};

namespace {

KT_DEVICE void lower(int64* weight, int64 through) {
  if (through < kt::racy_load(weight)) kt::atomic_min(weight, through);  // it falls only
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_lower(const LowerArgs args) {
  for (int64 level = 0; level < args.n_levels; ++level) {
    const int64 end = kt::load_constant(args.level_offsets + level + 1);
    for (int64 at = kt::load_constant(args.level_offsets + level) + kt::warp_id(); at < end; at += kt::n_warps()) {
      // All triangles below the arcs of this tail are done, so that their weights are final.
      const int64 low = kt::load_constant(args.by_level + at);
      const int64 first = kt::load_constant(args.first_triangle + low);
      const int64 n = kt::load_constant(args.first_triangle + low + 1) - first;
      if (n == 0) continue;
      const int64 up = args.weights[2 * low + UP];
      const int64 down = args.weights[2 * low + DOWN];
      for (int64 i = kt::lane(); i < n; i += WARP) {
        const int64 high = low + 1 + i;
        const int64 joined = kt::load_constant(args.joins + first + i);
        lower(args.weights + 2 * joined + UP, down + args.weights[2 * high + UP]);
        lower(args.weights + 2 * joined + DOWN, args.weights[2 * high + DOWN] + up);
      }
    }
    kt::grid_barrier(args.arrived);
  }
}

struct ProveLinksArgs {
  int64 n_links;
  const int32* sides;
  const int64* costs;
  const int64* weights;
  int32* links;     // of each side, the first link that explains it; NO_LINK before
  int32* is_wrong;  // set where a link is shorter
};

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_prove_links(const ProveLinksArgs args) {
  for (int64 link = kt::thread_id(); link < args.n_links; link += kt::n_threads()) {
    const int32 side = kt::load_constant(args.sides + link);
    if (side < 0) continue;
    const int64 cost = kt::load_constant(args.costs + link);
    const int64 weight = kt::load_constant(args.weights + side);
    if (cost < weight) kt::racy_store(args.is_wrong, 1);  // all threads store the same value
    if (cost == weight && cost < UNREACHED) kt::atomic_min(args.links + side, static_cast<int32>(link));
  }
}

struct ProveArgs {
  int64 n_arcs;
  const int64* first_triangle;
  const int32* joins;
  const int64* weights;
  int64* triangles;  // of each side, the lowest triangle that explains it: its two arcs; NO_TRIANGLE before
  int32* is_wrong;   // set where a triangle is shorter
};

namespace {

// The low arc of a triangle before the high one, so that of two with one joining arc the lower one is smaller.
KT_DEVICE int64 triangle_of(int64 low, int64 high) { return low << 32 | high; }

KT_DEVICE void prove(const ProveArgs& args, int64 side, int64 through, int64 triangle) {
  const int64 weight = kt::load_constant(args.weights + side);
  if (through < weight) kt::racy_store(args.is_wrong, 1);  // all threads store the same value
  if (through == weight && weight < UNREACHED) kt::atomic_min(args.triangles + side, triangle);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_prove_warp(const ProveArgs args) {
  for (int64 low = kt::warp_id(); low < args.n_arcs; low += kt::n_warps()) {
    const int64 first = kt::load_constant(args.first_triangle + low);
    const int64 n = kt::load_constant(args.first_triangle + low + 1) - first;
    if (n == 0) continue;
    const int64 up = kt::load_constant(args.weights + 2 * low + UP);
    const int64 down = kt::load_constant(args.weights + 2 * low + DOWN);
    for (int64 i = kt::lane(); i < n; i += WARP) {
      const int64 high = low + 1 + i;
      const int64 joined = kt::load_constant(args.joins + first + i);
      const int64 ahead = down + kt::load_constant(args.weights + 2 * high + UP);
      const int64 back = kt::load_constant(args.weights + 2 * high + DOWN) + up;
      prove(args, 2 * joined + UP, ahead, triangle_of(low, high));
      prove(args, 2 * joined + DOWN, back, triangle_of(low, high));
    }
  }
}

namespace {

struct Sides {
  int64 first;  // passed before the second one
  int64 second;
};

// Both sides that explain a side by its triangle.
KT_DEVICE Sides sides_of(int64 side, int64 triangle) {
  const int64 low = triangle >> 32;
  const int64 high = triangle & 0xffffffff;
  const int64 downward = side % 2 == UP ? low : high;
  const int64 upward = side % 2 == UP ? high : low;
  return {2 * downward + DOWN, 2 * upward + UP};
}

}  // namespace

struct MarkArgs {
  const int32* by_level;
  const int64* level_offsets;
  int64 n_levels;
  const int32* links;
  const int64* triangles;
  const uint8* is_marked;  // of each link
  uint8* marks;            // of each side
  uint32* arrived;         // 0 before the launch
};

namespace {

KT_DEVICE uint8 mark_of(const MarkArgs& args, int64 side) {
  const int32 link = kt::load_constant(args.links + side);
  if (link != NO_LINK) return kt::load_constant(args.is_marked + link);
  const int64 triangle = kt::load_constant(args.triangles + side);
  if (triangle == NO_TRIANGLE) return 0;
  const Sides below = sides_of(side, triangle);
  return args.marks[below.first] | args.marks[below.second];
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_mark(const MarkArgs args) {
  for (int64 level = 0; level < args.n_levels; ++level) {
    const int64 first = kt::load_constant(args.level_offsets + level);
    const int64 n_sides = 2 * (kt::load_constant(args.level_offsets + level + 1) - first);
    for (int64 at = kt::thread_id(); at < n_sides; at += kt::n_threads()) {
      const int64 side = 2 * int64{kt::load_constant(args.by_level + first + at / 2)} + at % 2;
      args.marks[side] = mark_of(args, side);
    }
    kt::grid_barrier(args.arrived);
  }
}

struct HandArgs {
  const int32* by_level;
  const int64* level_offsets;
  int64 n_levels;
  int64 n_ends;  // ranks below have no triangles
  const int64* offsets;
  const int32* tails;
  const int64* first_triangle;
  const int32* joins;
  const int64* costs;
  const int64* weights;
  const int32* links;
  const int64* triangles;
  double* loads;  // of each side
  double* flow;   // of each link; 0 before the launch
  int32* is_wrong;
  uint32* arrived;  // 0 before the launch
};

namespace {

// What a side hands to the arcs of a triangle.
KT_DEVICE double handed(const HandArgs& args, int64 side, int64 triangle) {
  const double load = args.loads[side];
  if (load == 0.0) return 0.0;
  if (kt::load_constant(args.links + side) != NO_LINK) return 0.0;
  return kt::load_constant(args.triangles + side) == triangle ? load : 0.0;
}

// Adds what the lanes have in their order.
KT_DEVICE double add_in_order(double sum, double own) {
  for (uint32 left = kt::ballot(ALL_LANES, own != 0.0); left; left &= left - 1)
    sum += kt::broadcast(ALL_LANES, own, kt::first_lane(left));
  return sum;
}

// Gives the link that explains a side its volume, and compares weights with what explains them.
KT_DEVICE void end_side(const HandArgs& args, int64 side, double load) {
  args.loads[side] = load;
  if (load == 0.0) return;
  const int64 weight = kt::load_constant(args.weights + side);
  const int32 link = kt::load_constant(args.links + side);
  const int64 triangle = kt::load_constant(args.triangles + side);
  bool is_right = false;
  if (link != NO_LINK) {
    args.flow[link] = load;  // a link belongs to one side
    is_right = kt::load_constant(args.costs + link) == weight;
  } else if (triangle != NO_TRIANGLE) {
    const Sides below = sides_of(side, triangle);
    is_right = kt::load_constant(args.weights + below.first) + kt::load_constant(args.weights + below.second) == weight;
  }
  if (!is_right) kt::racy_store(args.is_wrong, 1);  // all threads store the same value
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_hand_down(const HandArgs args) {
  for (int64 level = args.n_levels - 1; level >= 0; --level) {
    const int64 last = kt::load_constant(args.level_offsets + level + 1);
    for (int64 at = kt::load_constant(args.level_offsets + level) + kt::warp_id(); at < last; at += kt::n_warps()) {
      const int64 arc = kt::load_constant(args.by_level + at);
      const int64 tail = kt::load_constant(args.tails + arc);
      const int64 begin = kt::load_constant(args.offsets + tail);
      double up = args.loads[2 * arc + UP];
      double down = args.loads[2 * arc + DOWN];

      // Add what the joining arcs of its triangles hand down: a lane takes one partner, the other arc of a triangle.
      // The joining arcs are higher. Those of later partners are higher than those of earlier ones, and count first.
      const int64 end = tail < args.n_ends ? begin : kt::load_constant(args.offsets + tail + 1);
      for (int64 i = end - 1; i >= begin; i -= WARP) {
        const int64 other = i - kt::lane();
        const bool is_low = other > arc;
        double of_up = 0.0;
        double of_down = 0.0;
        if (other >= begin && other != arc) {
          const int64 low = is_low ? arc : other;
          const int64 high = is_low ? other : arc;
          const int64 joined =
              kt::load_constant(args.joins + kt::load_constant(args.first_triangle + low) + high - low - 1);
          of_up = handed(args, 2 * joined + UP, triangle_of(low, high));
          of_down = handed(args, 2 * joined + DOWN, triangle_of(low, high));
        }
        // The way upward over the joining arc passes the low arc downward and the high one upward.
        up = add_in_order(up, is_low ? of_down : of_up);
        down = add_in_order(down, is_low ? of_up : of_down);
      }
      kt::warp_barrier(ALL_LANES);  // all lanes have read the volumes
      if (kt::lane() == 0) {
        end_side(args, 2 * arc + UP, up);
        end_side(args, 2 * arc + DOWN, down);
      }
    }
    kt::grid_barrier(args.arrived);
  }
}

struct TakeArgs {
  int64 n_arcs;
  int64 way;  // UP or DOWN
  const int32* arcs;
  const int64* weights;
  int64* taken;
};

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_take_sides(const TakeArgs args) {
  for (int64 i = kt::thread_id(); i < args.n_arcs; i += kt::n_threads())
    args.taken[i] = kt::load_constant(args.weights + 2 * int64{kt::load_constant(args.arcs + i)} + args.way);
}

struct PutArgs {
  int64 n_arcs;
  int64 way;
  const int32* arcs;
  const double* volumes;
  double* loads;
};

extern "C" __global__ void __launch_bounds__(BLOCK) customizable_put_sides(const PutArgs args) {
  for (int64 i = kt::thread_id(); i < args.n_arcs; i += kt::n_threads())
    args.loads[2 * int64{kt::load_constant(args.arcs + i)} + args.way] = kt::load_constant(args.volumes + i);
}
