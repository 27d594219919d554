// Every name of kt/cuda_api.cuh once, with results that the tests know. NVRTC compiles this file, too.
#include <kt/cuda_api.cuh>

using kt::float_of;
using kt::int32;
using kt::int64;
using kt::uint32;
using kt::uint64;

extern "C" __global__ void places(int32* out) {
  int32* const mine = out + 7 * kt::thread_id();
  mine[0] = kt::block_id();
  mine[1] = kt::n_blocks();
  mine[2] = kt::thread_in_block();
  mine[3] = kt::warp_in_block();
  mine[4] = kt::lane();
  mine[5] = static_cast<int32>(kt::warp_id());
  mine[6] = static_cast<int32>(kt::n_warps());
}

extern "C" __global__ void clock_readings(int64* out) {
  const int64 i = kt::thread_id(), n = kt::n_threads();
  out[i] = kt::nanoseconds();
  kt::block_barrier();
  out[n + i] = kt::nanoseconds();
}

extern "C" __global__ void block_barriers(const int32* in, int32* out) {
  const int64 i = kt::thread_id(), n = kt::n_threads();
  const bool mine = in[i] > 0;
  out[i] = kt::block_count(mine);
  out[n + i] = kt::block_any(mine);
  out[2 * n + i] = kt::block_all(mine);
  kt::block_barrier();
  out[3 * n + i] = out[i / 40 * 40 + (i + 1) % 40];
}

template <typename T>
KT_DEVICE void shuffle_all(const T* in, int32 argument, int32 width, T* out) {
  const int32 t = kt::thread_in_block(), n = static_cast<int32>(kt::n_threads());
  const T mine = in[t];
  out[t] = kt::broadcast(kt::ALL_LANES, mine, argument, width);
  out[n + t] = kt::shuffle_up(kt::ALL_LANES, mine, argument, width);
  out[2 * n + t] = kt::shuffle_down(kt::ALL_LANES, mine, argument, width);
  out[3 * n + t] = kt::shuffle_xor(kt::ALL_LANES, mine, argument, width);
  out[4 * n + t] = kt::broadcast(kt::ALL_LANES, mine, argument);
  out[5 * n + t] = kt::shuffle_up(kt::ALL_LANES, mine, argument);
  out[6 * n + t] = kt::shuffle_down(kt::ALL_LANES, mine, argument);
  out[7 * n + t] = kt::shuffle_xor(kt::ALL_LANES, mine, argument);
}
extern "C" __global__ void shuffles(const int32* a, const int64* b, const float* c, const double* d, int32 argument,
                                    int32 width, int32* e, int64* f, float* g, double* h) {
  shuffle_all(a, argument, width, e);
  shuffle_all(b, argument, width, f);
  shuffle_all(c, argument, width, g);
  shuffle_all(d, argument, width, h);
}

// Only the lanes of the mask.
extern "C" __global__ void votes(const int32* in, const int64* wide, uint32 lanes, uint32* out) {
  const int32 t = kt::thread_in_block(), n = static_cast<int32>(kt::n_threads());
  if (!(lanes >> kt::lane() & 1)) return;
  kt::warp_barrier(lanes);
  out[t] = kt::ballot(lanes, in[t] > 0);
  out[n + t] = kt::any(lanes, in[t] > 0);
  out[2 * n + t] = kt::all(lanes, in[t] > 0);
  out[3 * n + t] = kt::match(lanes, in[t]);
  out[4 * n + t] = kt::match(lanes, wide[t]);
  const uint32 here = kt::lanes_here();
  out[5 * n + t] = static_cast<uint32>(kt::count_lanes(here & ~lanes) + (here >> kt::lane() & 1 ? 0 : 1));
  out[6 * n + t] = static_cast<uint32>(kt::count_lanes(lanes & kt::lanes_before()));
  out[7 * n + t] = static_cast<uint32>(kt::first_lane(lanes));
}

extern "C" __global__ void reductions(const int32* in, uint32 lanes, int32* out, uint32* bits) {
  const int32 t = kt::thread_in_block(), n = static_cast<int32>(kt::n_threads());
  if (!(lanes >> kt::lane() & 1)) return;
  const int32 mine = in[t];
  out[t] = kt::reduce_add(lanes, mine);
  out[n + t] = kt::reduce_min(lanes, mine);
  out[2 * n + t] = kt::reduce_max(lanes, mine);
  const uint32 word = static_cast<uint32>(mine);
  bits[t] = kt::reduce_add(lanes, word);
  bits[n + t] = kt::reduce_min(lanes, word);
  bits[2 * n + t] = kt::reduce_max(lanes, word);
  bits[3 * n + t] = kt::reduce_and(lanes, word);
  bits[4 * n + t] = kt::reduce_or(lanes, word);
}

// Of one grid: in a row of `to`, as in global memory, so in shared.
template <typename T>
KT_DEVICE void update(T* to, T value) {
  kt::atomic_add(to, value);
  kt::atomic_min(to + 1, value);
  kt::atomic_max(to + 2, value);
}
template <typename T>
KT_DEVICE void swap_in(T* to, T value) {
  if (value == T(7)) kt::atomic_exchange(to, value);
  T seen = kt::racy_load(to + 1);
  for (T before = T(); seen != before;) {
    before = seen;
    seen = kt::compare_and_swap(to + 1, before, static_cast<T>(before + value));
  }
}
template <typename T>
KT_DEVICE void set_bits(T* to, T bit) {
  kt::atomic_or(to, bit);
  kt::atomic_and(to + 1, static_cast<T>(~bit));
}
extern "C" __global__ void atomics(int32* a, uint32* b, int64* c, uint64* d, int32* swaps, uint64* wide_swaps,
                                   uint32* bits, uint64* wide_bits) {
  const int32 i = static_cast<int32>(kt::thread_id());
  update(a, i - 20);
  update(b, static_cast<uint32>(i));
  update(c, static_cast<int64>(i - 20) * (1ll << 33) + 7);
  update(d, static_cast<uint64>(i) << 33 | 7);
  swap_in(swaps, i);
  swap_in(wide_swaps, static_cast<uint64>(i));
  set_bits(bits, 1u << (i % 32));
  set_bits(wide_bits, static_cast<uint64>(1) << (i % 64));
}

extern "C" __global__ void atomics_return_what_was_there(int32* word, uint64* wide, int32* out) {
  out[0] = kt::atomic_add(word, 2);
  out[1] = kt::atomic_min(word, 1);
  out[2] = kt::atomic_max(word, 9);
  out[3] = kt::atomic_exchange(word, 4);
  out[4] = kt::compare_and_swap(word, 5, 6);
  out[5] = kt::compare_and_swap(word, 4, 8);
  out[6] = static_cast<int32>(kt::atomic_or(wide, static_cast<uint64>(6)));
  out[7] = static_cast<int32>(kt::atomic_and(wide, static_cast<uint64>(12)));
}

// Counts in shared memory how often each of 8 values comes; the others of the block see it after the barrier.
extern "C" __global__ void counts_in_shared_memory(const int32* values, int32* out) {
  KT_SHARED(int32, counts, [2][8]);
  KT_SHARED(int32, last, [1]);
  KT_DYNAMIC_SHARED(uint64, table);
  const int32 t = kt::thread_in_block();
  if (t < 8) {
    counts[0][t] = counts[1][t] = 0;
    table[t] = 0;
  }
  if (t == 0) last[0] = -1;
  kt::block_barrier();
  const int32 value = values[kt::thread_id()];
  kt::atomic_add(&counts[value % 2][value], 1);
  kt::atomic_add(table + value, static_cast<uint64>(1) << 40);
  kt::racy_store(last, value);  // any of them
  kt::block_barrier();
  if (t >= 8) return;
  int32* const mine = out + (kt::block_id() * 8 + t) * 3;
  mine[0] = counts[0][t] + counts[1][t];
  mine[1] = static_cast<int32>(table[t] >> 40);
  mine[2] = kt::racy_load(last);
}

// Every thread adds the value of its neighbor in the next block, `rounds` times.
extern "C" __global__ void passes_round(uint32* arrived, int32* values, int32* others, int32 rounds) {
  const int64 n = kt::n_threads(), i = kt::thread_id();
  for (int32 round = 0; round < rounds; ++round) {
    others[i] = values[(i + n / kt::n_blocks()) % n];
    kt::grid_barrier(arrived);
    values[i] += others[i];
    kt::grid_barrier(arrived);
  }
}

// Block 0 writes, fences and sets a flag; the others wait for it.
extern "C" __global__ void announces(int32* value, int32* flag, int32* out) {
  if (kt::block_id() == 0) {
    if (kt::thread_in_block() == 0) {
      kt::store_l2(value, 42);
      kt::fence();
      kt::atomic_exchange(flag, 1);
    }
  } else {
    while (kt::racy_load(flag) == 0) {
    }
    kt::fence();
    out[kt::thread_id()] = kt::load_l2(value);
  }
}

template <typename T>
KT_DEVICE void copy(const T* from, T* to) {
  const int64 n = kt::n_threads(), i = kt::thread_id();
  kt::store_streaming(to + i, kt::load_constant(from + i));
  kt::store_l2(to + n + i, kt::load_streaming(from + i));
  kt::store_streaming(to + 2 * n + i, kt::load_l2(from + i));
  kt::racy_store(to + 3 * n + i, kt::racy_load(from + i));
}
extern "C" __global__ void copies(const int32* a, const int64* b, const float* c, const double* d, int32* e, int64* f,
                                  float* g, double* h) {
  copy(a, e);
  copy(b, f);
  copy(c, g);
  copy(d, h);
}

extern "C" __global__ void numbers(const float* narrow, const double* wide, float* sums, double* wide_sums, int32* bits,
                                   int64* wide_bits) {
  const int64 n = kt::n_threads(), i = kt::thread_id();
  sums[i] = kt::add_rounded(narrow[i], narrow[(i + 1) % n]);
  wide_sums[i] = kt::add_rounded(wide[i], wide[(i + 1) % n]);
  bits[i] = kt::bits_of(narrow[i]);
  wide_bits[i] = kt::bits_of(wide[i]);
  sums[n + i] = float_of(bits[i]);
  wide_sums[n + i] = float_of(wide_bits[i]);
  wide_sums[2 * n + i] = kt::widened(narrow[i]);
  wide_sums[3 * n + i] = kt::widened(wide[i]);
}
