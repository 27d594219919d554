// Vertex ids to vertex numbers: the rank of each id among all ids.
//
// Ids that fill a part of their range are ranked by a table over the range: marked, counted, and
// numbered by prefix sums. Other ids are sorted, and ranked by binary search. Sorting and prefix
// sums are CuPy's (cuda/vertex_ids.py); its own kernels for the rest would each be compiled alone.
//
//   threads   one per id, or per entry of the table
//
// ids and out have any integer type, see any_integer.cuh.
#include <kt/csr.cuh>
#include <kt/frontier_queue.cuh>

#include "any_integer.cuh"

namespace {
// Whether a value of a sorted array is the first of its equals.
KT_DEVICE bool is_first(const uint8* sorted, int64 i, int32 kind) {
  return i == 0 || kt::load_integer(sorted, i, kind) != kt::load_integer(sorted, i - 1, kind);
}
// How far an id is above the lowest one. Unsigned, so that the difference does not overflow.
KT_DEVICE int64 above(const uint8* ids, int64 i, int32 kind, int64 lowest) {
  return static_cast<int64>(static_cast<uint64>(kt::load_integer(ids, i, kind)) - static_cast<uint64>(lowest));
}
}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_mark(const uint8* ids, int64 n, int32 kind, int64 lowest, uint8* present) {
  // Every thread that marks an id stores the same byte.
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads())
    kt::racy_store(present + above(ids, i, kind, lowest), static_cast<uint8>(1));
}

extern "C" __global__ void __launch_bounds__(BLOCK) ids_count(const uint8* present, int64 span, int64* counter) {
  for (int64 i = kt::thread_id(); i < span; i += kt::n_threads())
    if (kt::load_constant(present + i)) kt::count(counter);
}

extern "C" __global__ void __launch_bounds__(BLOCK) ids_flags(const uint8* present, int64 span, vertex_t* flags) {
  // Flags are of the type of vertex numbers, so that their prefix sums are ranks.
  for (int64 i = kt::thread_id(); i < span; i += kt::n_threads()) flags[i] = kt::load_constant(present + i);
}

// ranks are the prefix sums of flags, or null where every id of the range is present.
extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_list(const uint8* present, const vertex_t* ranks, int64 span, int64 lowest, int32 kind, uint8* out) {
  for (int64 i = kt::thread_id(); i < span; i += kt::n_threads()) {
    if (!kt::load_constant(present + i)) continue;
    const int64 rank = ranks ? kt::load_constant(ranks + i) - 1 : i;
    kt::store_integer(out, rank, kind, static_cast<int64>(static_cast<uint64>(lowest) + i));
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_number(const uint8* ids, int64 n, int32 kind, int64 lowest, const vertex_t* ranks, vertex_t* numbers) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads()) {
    const int64 at = above(ids, i, kind, lowest);
    numbers[i] = ranks ? kt::load_constant(ranks + at) - 1 : static_cast<vertex_t>(at);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_flag_first(const uint8* sorted, int64 n, int32 kind, int64* flags) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads()) flags[i] = is_first(sorted, i, kind);
}

// places are the prefix sums of flags.
extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_take_first(const uint8* sorted, const int64* places, int64 n, int32 kind, uint8* out) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads())
    if (is_first(sorted, i, kind))
      kt::store_integer(out, kt::load_constant(places + i) - 1, kind, kt::load_integer(sorted, i, kind));
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_search(const uint8* ids, int64 n, int32 kind, const uint8* sorted, int64 n_sorted, vertex_t* numbers) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads()) {
    // The first place whose id is not below this one.
    const uint64 key = kt::sort_key(kt::load_integer(ids, i, kind), kind);
    const auto is_past = [=](int64 at) { return kt::sort_key(kt::load_integer(sorted, at, kind), kind) >= key; };
    numbers[i] = static_cast<vertex_t>(kt::first_where(0, n_sorted, is_past));
  }
}
