// CUDA's names for a host compiler, on which kt/cuda_api.cuh builds when no CUDA
// compiler reads it. Every kernel thread is a fiber of runtime.cpp.
//
// No system header is included: a kernel may use any name at global scope. All
// of this is inlined into the kernel, so that a return address gives its lines.
#pragma once

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define SIMT_API __attribute__((visibility("hidden"), noinline))
#define SIMT_INLINE static inline __attribute__((always_inline))

namespace simt {

using u32 = unsigned int;
using i64 = long long;
using u64 = unsigned long long;

struct Index {
  u32 x, y, z;
};

enum class Collective {
  index,
  up,
  down,
  exchange,
  ballot,
  any,
  all,
  match_any,
  match_all,
  add,
  min,
  max,
  and_,
  or_,
  xor_,
  sync
};
enum class Atomic { add, min, max, swap, compare_and_swap, and_, or_, xor_ };
enum class Number { i32, u32, i64, u64, f32, f64 };
enum class Count { none, sum, all, any };

// Constant in a thread; `const` lets the compiler call it once.
SIMT_API Index thread_index() __attribute__((const));
SIMT_API Index block_index() __attribute__((const));
SIMT_API Index block_size() __attribute__((const));
SIMT_API Index grid_size() __attribute__((const));

SIMT_API u64 collective(Collective kind, u32 mask, u64 value, int argument, int width);
SIMT_API u32 converged();
SIMT_API int block_barrier(int predicate, Count count, int line);
SIMT_API void grid_barrier(u32* arrived = nullptr);
SIMT_API void cluster_barrier(int line);
SIMT_API int block_in_cluster() __attribute__((const));
SIMT_API int cluster_index() __attribute__((const));
SIMT_API void* shared_of(const void* pointer, int block);
SIMT_API void has_clusters(const void* kernel, const void* call, u32 blocks);
SIMT_API void fence();
SIMT_API void pause();
SIMT_API i64 nanoseconds();
SIMT_API u64 atomic(void* address, Atomic kind, Number number, u64 value, u64 expected);
SIMT_API void constant(const void* address, u64 size);
SIMT_API void* shared(const void* declaration, u64 size);
SIMT_API void* dynamic_shared();
SIMT_API void launch(void (*call)(const void*, void**), const void* kernel, int blocks, int most, void** arguments,
                     const u64* sizes, u32 n_arguments);

template <typename T>
SIMT_INLINE u64 to_word(T value) {
  static_assert(sizeof(T) <= 8, "at most a word");
  u64 word = 0;
  __builtin_memcpy(&word, &value, sizeof value);
  return word;
}
template <typename T>
SIMT_INLINE T from_word(u64 word) {
  T value;
  __builtin_memcpy(&value, &word, sizeof value);
  return value;
}

template <typename T>
struct NumberOf;
#define SIMT_NUMBER(type, name)                   \
  template <>                                     \
  struct NumberOf<type> {                         \
    static constexpr Number value = Number::name; \
  };
SIMT_NUMBER(int, i32)
SIMT_NUMBER(unsigned int, u32)
SIMT_NUMBER(long long, i64)
SIMT_NUMBER(unsigned long long, u64)
SIMT_NUMBER(float, f32)
SIMT_NUMBER(double, f64)
#undef SIMT_NUMBER

template <typename T>
SIMT_INLINE T update(T* address, Atomic kind, T value, T expected = T()) {
  return from_word<T>(atomic(address, kind, NumberOf<T>::value, to_word(value), to_word(expected)));
}

// Sign-extended, so that signed and unsigned numbers compare alike in 64 bits.
template <typename T>
SIMT_INLINE T reduce(Collective kind, u32 mask, T value) {
  static_assert(sizeof(T) == 4, "warps reduce 32 bits");
  return static_cast<T>(collective(kind, mask, static_cast<u64>(static_cast<i64>(value)), 0, 32));
}

template <typename T>
struct IdentityOf {
  using type = T;
};
template <typename T>
using Identity = typename IdentityOf<T>::type;

// A kernel takes its parameters from an array of pointers to them.
template <unsigned...>
struct Numbers {};
template <typename... P, unsigned... I>
SIMT_INLINE void spread(void (*kernel)(P...), void** arguments, Numbers<I...>) {
  kernel(*static_cast<P*>(arguments[I])...);
}
template <typename... P>
SIMT_INLINE void call(void (*kernel)(P...), void** arguments) {
  spread(kernel, arguments, Numbers<__integer_pack(sizeof...(P))...>());
}
template <typename... P>
inline void call_any(const void* kernel, void** arguments) {
  call(reinterpret_cast<void (*)(P...)>(const_cast<void*>(kernel)), arguments);
}
template <typename... P>
SIMT_INLINE void launch_child(int most, void (*kernel)(P...), int blocks, Identity<P>... arguments) {
  static_assert(((alignof(P) <= 8) && ...), "arguments are kept as words");
  void* places[] = {&arguments..., nullptr};
  const u64 sizes[] = {sizeof(P)..., 0};
  launch(&call_any<P...>, reinterpret_cast<const void*>(kernel), blocks, most, places, sizes, sizeof...(P));
}
template <typename... P>
constexpr int widths(void (*)(P...), int i) {
  const int all[] = {static_cast<int>(sizeof(P))..., 0};
  return i < static_cast<int>(sizeof...(P)) ? all[i] : -1;
}

}  // namespace simt

#define SIMT_ENTRY(name)                                                                            \
  extern "C" __global__ void simt_call_##name(void** arguments) { ::simt::call(&name, arguments); } \
  extern "C" __global__ int simt_width_##name(int i) { return ::simt::widths(&name, i); }

// Registers a kernel with clusters of the size in its source; on a GPU the names of kt/cuda_api.cuh use CLUSTER.
#define SIMT_CLUSTERS(name, n)                                                                                       \
  static_assert((n) == CLUSTER, "KT_CLUSTER takes the constant CLUSTER");                                            \
  __attribute__((constructor)) static void simt_clusters_##name() {                                                  \
    ::simt::has_clusters(reinterpret_cast<const void*>(&name), reinterpret_cast<const void*>(&simt_call_##name), n); \
  }

#define threadIdx (::simt::thread_index())
#define blockIdx (::simt::block_index())
#define blockDim (::simt::block_size())
#define gridDim (::simt::grid_size())
#define warpSize 32

// Shared memory: each block gets its own, of exactly the declared size.
#define SIMT_SHARED(type, name, extent) \
  static const char simt_##name = 0;    \
  using simt_type_##name = type extent; \
  auto& name = *static_cast<simt_type_##name*>(::simt::shared(&simt_##name, sizeof(simt_type_##name)))
#define SIMT_DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(::simt::dynamic_shared())

SIMT_INLINE void __syncthreads(int line = __builtin_LINE()) { simt::block_barrier(0, simt::Count::none, line); }
SIMT_INLINE int __syncthreads_count(int p, int line = __builtin_LINE()) {
  return simt::block_barrier(p, simt::Count::sum, line);
}
SIMT_INLINE int __syncthreads_and(int p, int line = __builtin_LINE()) {
  return simt::block_barrier(p, simt::Count::all, line);
}
SIMT_INLINE int __syncthreads_or(int p, int line = __builtin_LINE()) {
  return simt::block_barrier(p, simt::Count::any, line);
}
SIMT_INLINE void __threadfence() { simt::fence(); }
SIMT_INLINE void __threadfence_block() { simt::fence(); }
SIMT_INLINE void __nanosleep(unsigned) { simt::pause(); }

SIMT_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { simt::collective(simt::Collective::sync, mask, 0, 0, 32); }
SIMT_INLINE unsigned __activemask() { return simt::converged(); }
#define SIMT_SHUFFLE(name, kind)                                                                                      \
  template <typename T>                                                                                               \
  SIMT_INLINE T name(unsigned mask, T value, int argument, int width = 32) {                                          \
    return simt::from_word<T>(simt::collective(simt::Collective::kind, mask, simt::to_word(value), argument, width)); \
  }
SIMT_SHUFFLE(__shfl_sync, index)
SIMT_SHUFFLE(__shfl_up_sync, up)
SIMT_SHUFFLE(__shfl_down_sync, down)
SIMT_SHUFFLE(__shfl_xor_sync, exchange)
#undef SIMT_SHUFFLE
#define SIMT_VOTE(type, name, kind)                                                                  \
  SIMT_INLINE type name(unsigned mask, int predicate) {                                              \
    return static_cast<type>(simt::collective(simt::Collective::kind, mask, predicate != 0, 0, 32)); \
  }
SIMT_VOTE(unsigned, __ballot_sync, ballot)
SIMT_VOTE(int, __any_sync, any)
SIMT_VOTE(int, __all_sync, all)
#undef SIMT_VOTE
template <typename T>
SIMT_INLINE unsigned __match_any_sync(unsigned mask, T value) {
  return static_cast<unsigned>(simt::collective(simt::Collective::match_any, mask, simt::to_word(value), 0, 32));
}
template <typename T>
SIMT_INLINE unsigned __match_all_sync(unsigned mask, T value, int* all) {
  const auto lanes =
      static_cast<unsigned>(simt::collective(simt::Collective::match_all, mask, simt::to_word(value), 0, 32));
  *all = lanes != 0;
  return lanes;
}
#define SIMT_REDUCE(name, kind)                               \
  template <typename T>                                       \
  SIMT_INLINE T name(unsigned mask, T value) {                \
    return simt::reduce(simt::Collective::kind, mask, value); \
  }
SIMT_REDUCE(__reduce_add_sync, add)
SIMT_REDUCE(__reduce_min_sync, min)
SIMT_REDUCE(__reduce_max_sync, max)
SIMT_REDUCE(__reduce_and_sync, and_)
SIMT_REDUCE(__reduce_or_sync, or_)
SIMT_REDUCE(__reduce_xor_sync, xor_)
#undef SIMT_REDUCE

#define SIMT_ATOMIC(name, kind)                              \
  template <typename T>                                      \
  SIMT_INLINE T name(T* address, T value) {                  \
    return simt::update(address, simt::Atomic::kind, value); \
  }
SIMT_ATOMIC(atomicAdd, add)
SIMT_ATOMIC(atomicMin, min)
SIMT_ATOMIC(atomicMax, max)
SIMT_ATOMIC(atomicExch, swap)
SIMT_ATOMIC(atomicAnd, and_)
SIMT_ATOMIC(atomicOr, or_)
SIMT_ATOMIC(atomicXor, xor_)
#undef SIMT_ATOMIC
template <typename T>
SIMT_INLINE T atomicCAS(T* address, T expected, T value) {
  return simt::update(address, simt::Atomic::compare_and_swap, value, expected);
}

// Loads and stores with cache operators are plain ones, except __ldg: it states that no thread writes the word.
template <typename T>
SIMT_INLINE T __ldg(const T* address) {
  simt::constant(address, sizeof(T));
  return *address;
}
#define SIMT_LOAD(name)                  \
  template <typename T>                  \
  SIMT_INLINE T name(const T* address) { \
    return *address;                     \
  }
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
SIMT_LOAD(__ldcv)
#undef SIMT_LOAD
#define SIMT_STORE(name)                       \
  template <typename T>                        \
  SIMT_INLINE void name(T* address, T value) { \
    *address = value;                          \
  }
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)
#undef SIMT_STORE

SIMT_INLINE int __popc(unsigned bits) { return __builtin_popcount(bits); }
SIMT_INLINE int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
SIMT_INLINE int __ffs(int bits) { return __builtin_ffs(bits); }
SIMT_INLINE int __ffsll(long long bits) { return __builtin_ffsll(bits); }
SIMT_INLINE int __clz(int bits) { return bits ? __builtin_clz(static_cast<unsigned>(bits)) : 32; }
SIMT_INLINE int __clzll(long long bits) { return bits ? __builtin_clzll(static_cast<unsigned long long>(bits)) : 64; }
SIMT_INLINE int __float_as_int(float value) { return simt::from_word<int>(simt::to_word(value)); }
SIMT_INLINE float __int_as_float(int bits) { return simt::from_word<float>(simt::to_word(bits)); }
SIMT_INLINE long long __double_as_longlong(double value) { return simt::from_word<long long>(simt::to_word(value)); }
SIMT_INLINE double __longlong_as_double(long long bits) { return simt::from_word<double>(simt::to_word(bits)); }
