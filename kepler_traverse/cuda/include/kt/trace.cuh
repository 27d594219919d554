// A trace: when each iteration of a search began, its kind, and the size of its frontier.
//
// Compile-time constant:
//   TRACE   iterations that are recorded; 0: none, and the kernel has no code for it
#pragma once

#include <kt/cuda_api.cuh>

namespace kt {

// Kinds of iterations; kepler_traverse.cuda.kernel_trace has their names in the same order.
enum IterationKind { CLUSTER_LEVEL, PUSH, DRAW, PULL, LIST, RELAX, SPLIT, SMALL_RELAX, SMALL_SPLIT, LAST_PASS, END };

// One thread of a search calls it, always the same one of a kernel. `records` holds the number of records, then the
// records, of TRACE_FIELDS words each.
constexpr int32 TRACE_FIELDS = 5;

struct Trace {
  int64* records;

  KT_DEVICE int64 now() const { return TRACE ? nanoseconds() : 0; }
  KT_DEVICE void clear() const {
    if (TRACE) *records = 0;
  }
  KT_DEVICE void add(int64 began, IterationKind iteration, int64 level, int64 vertices, int64 edges) const {
    if (!TRACE || *records >= TRACE) return;
    int64* const record = records + 1 + *records * TRACE_FIELDS;
    record[0] = began;
    record[1] = iteration;
    record[2] = level;
    record[3] = vertices;
    record[4] = edges;
    ++*records;
  }
};

}  // namespace kt
