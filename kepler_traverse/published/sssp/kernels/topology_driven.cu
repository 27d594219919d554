// Topology-driven SSSP, without a frontier: each round visits every vertex, active or not.
//
// Sweep: every reached vertex relaxes all its edges, in one array of distances that all threads read
// and lower at the same time. A flag says whether a distance fell.
//   Burtscher, Nasre, Pingali. A quantitative study of irregular programs on GPUs. IISWC
//   2012 (LonestarGPU).
//
// Mask: only vertices whose mask is set do so, and their masks are cleared. Candidate distances go
// into a second array, so that no distance changes while others read it. Another kernel copies the
// distances that fell and sets the masks.
//   Harish, Narayanan. Accelerating large graph algorithms on the GPU using CUDA. HiPC 2007.
//
//   threads   one per vertex, see kt/advance.cuh    writes   distances, masks, the flag counters[0]
#include <kt/advance.cuh>
#include <kt/relax.cuh>

// What the host passes (published/sssp/bellman_ford_gpu.py).
struct RoundArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  const weight_t* weights;
  int64 n_vertices;
  weight_t limit;
  ordered_t* keys;
  KT_NULLABLE int32* mask;
  KT_NULLABLE ordered_t* updating;
  KT_NULLABLE vertex_t* parent;
  int64* counters;
};

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_sweep_thread(const RoundArgs args) {
  const kt::Relaxing relaxing = {args.weights, kt::to_ordered(args.limit), args.keys, args.parent};
  int64* const counters = args.counters;
  const auto visit = [=](vertex_t u, offset_t e, vertex_t v) {
    const ordered_t src_distance = kt::racy_load(relaxing.keys + u);
    // If u is reached or improves after this load, the flag requests another round. All threads write the same.
    if (src_distance < kt::INFINITE && relaxing.relax(u, src_distance, e, v)) kt::racy_store(counters, int64{1});
  };
  kt::edges_by_thread({args.offsets, args.targets}, kt::Range{0, args.n_vertices}, visit);
}

extern "C" __global__ void __launch_bounds__(BLOCK) sssp_mask_relax_thread(const RoundArgs args) {
  const kt::Relaxing relaxing = {args.weights, kt::to_ordered(args.limit), args.updating, args.parent};
  const offset_t* const offsets = args.offsets;
  const ordered_t* const keys = args.keys;
  int32* const mask = args.mask;
  const auto lists = [=](int64 u, bool) {
    if (mask[u] == 0) return kt::AdjacencyList{};
    mask[u] = 0;
    return kt::adjacency_list(offsets, static_cast<vertex_t>(u));
  };
  kt::edges_by_virtual_warp(args.targets, kt::whole_grid(), args.n_vertices, 1, lists,
                            [=](bool valid, vertex_t u, offset_t e, vertex_t v) {
                              if (valid) relaxing.relax(u, kt::load_constant(keys + u), e, v);
                            });
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    sssp_mask_update(const ordered_t* updating, int64 n_vertices, ordered_t* keys, int32* mask, int64* counters) {
  for (int64 v = kt::thread_id(); v < n_vertices; v += kt::n_threads()) {
    const ordered_t key = kt::load_constant(updating + v);
    if (key >= keys[v]) continue;
    keys[v] = key;
    mask[v] = 1;
    kt::racy_store(counters, int64{1});  // all write the same
  }
}
