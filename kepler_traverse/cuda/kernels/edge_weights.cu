// Weights of an edge list: converted and checked. And sums and samples of the weights of a graph.
//
// Floats are checked by their bits, as -ftz=true takes subnormal numbers for 0.
//
//   threads   one per weight or sample
#include <kt/csr.cuh>
#include <kt/float_order.cuh>
#include <kt/frontier_queue.cuh>

#include "any_integer.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK)
    weights_from_integers(const uint8* integers, int64 n, int32 kind, weight_t* weights) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads())
    weights[i] = static_cast<weight_t>(kt::load_integer(integers, i, kind));
}

// found: numbers that are not finite, the first of them, and negative zeros.
extern "C" __global__ void __launch_bounds__(BLOCK) weights_check(const weight_t* weights, int64 n, int64* found) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads()) {
    const ordered_t bits = kt::bits_of(kt::load_constant(weights + i));
    if ((bits & kt::INFINITE) == kt::INFINITE) {
      kt::count(found);
      kt::atomic_min(found + 1, i);
    }
    if (bits == ~kt::Key<weight_t>::LOWEST_BITS) kt::count(found + 2);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    weights_without_negative_zeros(const weight_t* weights, int64 n, weight_t* cleared) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads()) {
    // Of -0.0 only the sign bit is set: the inverse of LOWEST_BITS.
    const ordered_t bits = kt::bits_of(kt::load_constant(weights + i));
    cleared[i] = kt::of_bits<weight_t>(bits == ~kt::Key<weight_t>::LOWEST_BITS ? 0 : bits);
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    weights_count_negative_loops(const vertex_t* src, const vertex_t* dst, const weight_t* weights, int64 n,
                                 int64* counter) {
  for (int64 i = kt::thread_id(); i < n; i += kt::n_threads())
    if (kt::load_constant(src + i) == kt::load_constant(dst + i) && kt::bits_of(kt::load_constant(weights + i)) < 0)
      kt::count(counter);
}

// Sum k adds the weights k, k + n_sums, k + 2 n_sums, ...: the same in every run and on every device.
extern "C" __global__ void __launch_bounds__(BLOCK)
    weights_sum(const weight_t* weights, int64 n, int64 n_sums, double* sums) {
  for (int64 k = kt::thread_id(); k < n_sums; k += kt::n_threads()) {
    double sum = 0;
    for (int64 i = k; i < n; i += n_sums) sum += static_cast<double>(kt::load_constant(weights + i));
    sums[k] = sum;
  }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    weights_sample(const weight_t* weights, int64 step, int64 n_samples, weight_t* samples) {
  for (int64 k = kt::thread_id(); k < n_samples; k += kt::n_threads())
    samples[k] = kt::load_constant(weights + k * step);
}
