// Loads and stores: of constant arrays, with cache hints, and of words that other threads write at
// the same time. cuda_api.cuh includes it.
#pragma once

namespace kt {

// An array that no thread writes during the launch.
template <typename T>
KT_DEVICE T load_constant(const T* address) {
  return __ldg(address);
}

// N adjacent words of such an array, with the widest loads. The address is aligned to the width of these loads.
template <int32 N>
KT_DEVICE void load_constant_words(const uint32* address, uint32 (&words)[N]) {
#if defined(__CUDACC__)
  if constexpr (N % 4 == 0) {
#pragma unroll
    for (int32 i = 0; i < N; i += 4) {
      const uint4 four = __ldg(reinterpret_cast<const uint4*>(address + i));
      words[i] = four.x;
      words[i + 1] = four.y;
      words[i + 2] = four.z;
      words[i + 3] = four.w;
    }
  } else if constexpr (N == 2) {
    const uint2 two = __ldg(reinterpret_cast<const uint2*>(address));
    words[0] = two.x;
    words[1] = two.y;
  } else {
    for (int32 i = 0; i < N; ++i) words[i] = load_constant(address + i);
  }
#else
  for (int32 i = 0; i < N; ++i) words[i] = load_constant(address + i);
#endif
}

// The same for words that this thread, or any thread before the last barrier, has written, and stores of such words.
template <int32 N>
KT_DEVICE void load_words(const uint32* address, uint32 (&words)[N]) {
#if defined(__CUDACC__)
  if constexpr (N == 4) {
    const uint4 four = *reinterpret_cast<const uint4*>(address);
    words[0] = four.x;
    words[1] = four.y;
    words[2] = four.z;
    words[3] = four.w;
  } else {
    for (int32 i = 0; i < N; ++i) words[i] = address[i];
  }
#else
  for (int32 i = 0; i < N; ++i) words[i] = address[i];
#endif
}
template <int32 N>
KT_DEVICE void store_words(uint32* address, const uint32 (&words)[N]) {
#if defined(__CUDACC__)
  if constexpr (N == 4) {
    *reinterpret_cast<uint4*>(address) = make_uint4(words[0], words[1], words[2], words[3]);
  } else if constexpr (N == 2) {
    *reinterpret_cast<uint2*>(address) = make_uint2(words[0], words[1]);
  } else {
    for (int32 i = 0; i < N; ++i) address[i] = words[i];
  }
#else
  for (int32 i = 0; i < N; ++i) address[i] = words[i];
#endif
}

// Loads and stores with cache hints; the results are the same.
//   streaming   the data is read or written once: evict it first
//   L2          bypass the L1 cache
template <typename T>
KT_DEVICE T load_streaming(const T* address) {
  return __ldcs(address);
}
template <typename T>
KT_DEVICE T load_l2(const T* address) {
  return __ldcg(address);
}
template <typename T>
KT_DEVICE void store_streaming(T* address, T value) {
  __stcs(address, value);
}
template <typename T>
KT_DEVICE void store_l2(T* address, T value) {
  __stcg(address, value);
}

// Accesses to a word that other threads write during the launch. An old value must do no harm; each
// caller says why it does none. Relaxed: the word is not held in a register and not served from the
// L1 cache, and it is not ordered with other words.
template <typename T>
KT_DEVICE volatile T* of_any_space(T* address) {
#if defined(__CUDACC__) && CLUSTER > 1
  // NVRTC drops `volatile` where it sees that an address comes from shared_of.
  asm("" : "+l"(address));
#endif
  return address;
}
template <typename T>
KT_DEVICE T racy_load(const T* address) {
  return *of_any_space(address);
}
// The same, but the L1 cache may serve the load. It sees what was stored before the last barrier; it may not see
// later stores.
template <typename T>
KT_DEVICE T racy_load_cached(const T* address) {
#if defined(__CUDACC__)
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a word of global memory");
  if constexpr (sizeof(T) == 4) {
    uint32 word;
    asm volatile("ld.relaxed.cta.global.u32 %0, [%1];" : "=r"(word) : "l"(address));
    return static_cast<T>(word);
  } else {
    uint64 word;
    asm volatile("ld.relaxed.cta.global.u64 %0, [%1];" : "=l"(word) : "l"(address));
    return static_cast<T>(word);
  }
#else
  return racy_load(address);
#endif
}
template <typename T>
KT_DEVICE void racy_store(T* address, T value) {
  *of_any_space(address) = value;
}

}  // namespace kt
