// The state that one iteration of a persistent loop leaves for the next, in three copies.
//
// In iteration i all threads read copy i, add to copy i + 1 and clear copy i + 2 (modulo 3).
// A copy is therefore cleared one barrier before it is written and written one barrier
// before it is read, and one barrier per iteration orders all three.
//
// A State consists of 64-bit words, so that the threads of a block copy or clear it in one
// step, one word each.
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

template <typename State>
struct TripleBuffer {
  static constexpr int32 N_WORDS = sizeof(State) / sizeof(int64);
  static_assert(sizeof(State) == N_WORDS * sizeof(int64) && N_WORDS <= BLOCK, "each thread copies at most one word");

  State* states;  // [3]

  KT_DEVICE State& read(int32 iteration) const { return states[iteration % 3]; }
  KT_DEVICE State& written(int32 iteration) const { return states[(iteration + 1) % 3]; }
  KT_DEVICE State& cleared(int32 iteration) const { return states[(iteration + 2) % 3]; }

  // All threads of a scope call these; the first N_WORDS threads copy or clear.
  KT_DEVICE static void copy(State& to, const State& from, int64 thread) {
    if (thread < N_WORDS) words_of(to)[thread] = reinterpret_cast<const int64*>(&from)[thread];
  }
  KT_DEVICE static void clear(State& state, int64 thread) {
    if (thread < N_WORDS) words_of(state)[thread] = 0;
  }
  KT_DEVICE static int64* words_of(State& state) { return reinterpret_cast<int64*>(&state); }
};

}  // namespace kt
