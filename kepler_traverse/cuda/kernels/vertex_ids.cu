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
KT_DEVICE bool is_first(const kt::uint8* sorted, kt::int64 i, kt::int32 kind) {
  return i == 0 || kt::load_integer(sorted, i, kind) != kt::load_integer(sorted, i - 1, kind);
}
KT_DEVICE kt::int64 above(const kt::uint8* ids, kt::int64 i, kt::int32 kind, kt::int64 lowest) {
  return static_cast<kt::int64>(static_cast<kt::uint64>(kt::load_integer(ids, i, kind)) -
                                static_cast<kt::uint64>(lowest));
}
}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_mark(const kt::uint8* __restrict__ ids, kt::int64 n, kt::int32 kind, kt::int64 lowest, kt::uint8* present) {
  // Every thread that marks an id stores the same byte.
  for (kt::int64 i = kt::thread_id(); i < n; i += kt::n_threads())
    kt::racy_store(present + above(ids, i, kind, lowest), static_cast<kt::uint8>(1));
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_count(const kt::uint8* __restrict__ present, kt::int64 span, kt::int64* counter) {
  for (kt::int64 i = kt::thread_id(); i < span; i += kt::n_threads())
    if (kt::load_constant(present + i)) kt::count(counter);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_flags(const kt::uint8* __restrict__ present, kt::int64 span, vertex_t* flags) {
  for (kt::int64 i = kt::thread_id(); i < span; i += kt::n_threads()) flags[i] = kt::load_constant(present + i);
}

// ranks are the prefix sums of flags, or null where every id of the range is present.
extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_list(const kt::uint8* __restrict__ present, const vertex_t* __restrict__ ranks, kt::int64 span,
             kt::int64 lowest, kt::int32 kind, kt::uint8* out) {
  for (kt::int64 i = kt::thread_id(); i < span; i += kt::n_threads()) {
    if (!kt::load_constant(present + i)) continue;
    const kt::int64 rank = ranks ? kt::load_constant(ranks + i) - 1 : i;
    kt::store_integer(out, rank, kind, static_cast<kt::int64>(static_cast<kt::uint64>(lowest) + i));
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_number(const kt::uint8* __restrict__ ids, kt::int64 n, kt::int32 kind, kt::int64 lowest,
               const vertex_t* __restrict__ ranks, vertex_t* numbers) {
  for (kt::int64 i = kt::thread_id(); i < n; i += kt::n_threads()) {
    const kt::int64 at = above(ids, i, kind, lowest);
    numbers[i] = ranks ? kt::load_constant(ranks + at) - 1 : static_cast<vertex_t>(at);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_flag_first(const kt::uint8* __restrict__ sorted, kt::int64 n, kt::int32 kind, kt::int64* flags) {
  for (kt::int64 i = kt::thread_id(); i < n; i += kt::n_threads()) flags[i] = is_first(sorted, i, kind);
}

// places are the prefix sums of flags.
extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_take_first(const kt::uint8* __restrict__ sorted, const kt::int64* __restrict__ places, kt::int64 n,
                   kt::int32 kind, kt::uint8* out) {
  for (kt::int64 i = kt::thread_id(); i < n; i += kt::n_threads())
    if (is_first(sorted, i, kind))
      kt::store_integer(out, kt::load_constant(places + i) - 1, kind, kt::load_integer(sorted, i, kind));
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ids_search(const kt::uint8* __restrict__ ids, kt::int64 n, kt::int32 kind, const kt::uint8* __restrict__ sorted,
               kt::int64 n_sorted, vertex_t* numbers) {
  for (kt::int64 i = kt::thread_id(); i < n; i += kt::n_threads()) {
    const kt::uint64 key = kt::sort_key(kt::load_integer(ids, i, kind), kind);
    kt::int64 low = 0, high = n_sorted;
    while (low < high) {
      const kt::int64 middle = low + (high - low) / 2;
      if (kt::sort_key(kt::load_integer(sorted, middle, kind), kind) < key)
        low = middle + 1;
      else
        high = middle;
    }
    numbers[i] = static_cast<vertex_t>(low);
  }
}
