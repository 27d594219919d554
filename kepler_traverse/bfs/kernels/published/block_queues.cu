// A queue of the grid by way of queues of the blocks; a thread a vertex.
//
// The level is expanded by one launch; or several levels by a grid whose blocks wait for
// each other, or by a single block whose frontier lies in shared memory. Vertices are
// claimed with a compare-and-swap and so queued once.
//
// With `pieces` the queue holds pieces of rows (published/row_splitting.py): `offsets` are those of
// the pieces then, and any thread that reaches a vertex queues all of its pieces.
//
//   shared   n_queues * queue_capacity vertices; the frontier of a single block after them
//
// Luo, Wong, Hwu. An effective GPU implementation of breadth-first search. DAC 2010.
// Springer. Breadth-first Search in CUDA. Tokyo Institute of Technology, section 3.6.
#include <kt/advance.cuh>
#include <kt/bfs_visit.cuh>
#include <kt/frontier_queue.cuh>

namespace {

using kt::int32;
using kt::int64;

// A frontier that is written in the same launch, so no array of constants.
struct Written {
  const vertex_t* vertices;
  int64 size;
  KT_DEVICE vertex_t operator[](int64 i) const { return vertices[i]; }
};

struct Pieces {
  const int64* first;     // [n_vertices + 1]; null: each row is one
  const vertex_t* owner;  // [n_pieces]
};

struct Expand {
  Pieces pieces;
  kt::Reach reach;
  kt::BlockQueues queues;

  KT_DEVICE void operator()(vertex_t u, offset_t, vertex_t v) const {
    if (pieces.first == nullptr) {
      if (reach.claim(u, v)) queues.append(v);
    } else if (reach.claim(kt::load_constant(pieces.owner + u), v)) {
      const int64 end = kt::load_constant(pieces.first + v + 1);
      for (int64 piece = kt::load_constant(pieces.first + v); piece < end; ++piece)
        queues.append(static_cast<vertex_t>(piece));
    }
  }
};

// A frontier, as many vertices at a time as the grid has threads; after each the blocks empty
// their queues, so that those can be small (Springer).
template <typename List>
KT_DEVICE void expand_level(kt::Csr graph, List list, const Expand& expand) {
  const kt::Appender grid = expand.queues.grid;
  for (int64 first = 0; first < list.size; first += kt::n_threads()) {
    const int64 left = list.size - first;
    kt::edges_by_thread(graph, List{list.vertices + first, left < kt::n_threads() ? left : kt::n_threads()}, expand);
    expand.queues.empty([=](int64 n) { return kt::atomic_add(grid.counter, n); },
                        [=](int64 place, vertex_t v) {
                          if (place < grid.capacity) grid.vertices[place] = v;
                        });
    kt::block_barrier();
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_block_queues(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                     const int64* __restrict__ first_piece, const vertex_t* __restrict__ owner,
                     const vertex_t* __restrict__ frontier, int64 n_frontier, int32 level, int32 n_queues,
                     int32 queue_capacity, int64 capacity, int32* distance, vertex_t* predecessor, vertex_t* next,
                     int64* counters) {
  KT_DYNAMIC_SHARED(vertex_t, places);
  KT_SHARED(int32, sizes, [kt::WARP]);
  KT_SHARED(int64, starts, [kt::WARP + 1]);
  if (kt::thread_in_block() < n_queues) sizes[kt::thread_in_block()] = 0;
  kt::block_barrier();
  expand_level({offsets, targets}, kt::Queue{frontier, n_frontier},
               {{first_piece, owner},
                {level, distance, predecessor},
                {places, sizes, starts, n_queues, queue_capacity, {next, capacity, counters}}});
}

// Levels up to last_level while the frontier has at most `most` vertices, a barrier of the
// grid apart (3.3). Into counters[0]: the size of the frontier it ends with; into
// counters[2]: the levels it took. After an odd number that frontier is in `next`, after an
// even one in `queue`. counters[3] to [5]: sizes of the frontiers of three levels in turn;
// one is read, one written, one cleared.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_block_queues_grid(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                          const int64* __restrict__ first_piece, const vertex_t* __restrict__ owner, vertex_t* queue,
                          int64 n_frontier, int32 level, int32 last_level, int64 most, int32 n_queues,
                          int32 queue_capacity, int64 capacity, int32* distance, vertex_t* predecessor, vertex_t* next,
                          int64* counters, kt::uint32* arrived) {
  KT_DYNAMIC_SHARED(vertex_t, places);
  KT_SHARED(int32, sizes, [kt::WARP]);
  KT_SHARED(int64, starts, [kt::WARP + 1]);
  if (kt::thread_in_block() < n_queues) sizes[kt::thread_in_block()] = 0;
  kt::block_barrier();
  int64 size = n_frontier;
  int32 taken = 0;
  do {
    vertex_t* const here = taken % 2 ? next : queue;
    vertex_t* const there = taken % 2 ? queue : next;
    int64* const found = counters + 3 + (taken + 1) % 3;
    if (kt::thread_id() == 0) counters[3 + (taken + 2) % 3] = 0;
    expand_level({offsets, targets}, Written{here, size},
                 {{first_piece, owner},
                  {level + 1, distance, predecessor},
                  {places, sizes, starts, n_queues, queue_capacity, {there, capacity, found}}});
    kt::grid_barrier(arrived);
    size = *found;
    ++taken;
    ++level;
  } while (size > 0 && size <= most && level < last_level);
  if (kt::thread_id() == 0) {
    counters[0] = size;
    counters[2] = taken;
  }
}

// The same by one block, whose frontier of at most `most` vertices lies in shared memory: no
// G-frontier is needed. What outgrows the queues of a level lies in `next`; in the end all does.
extern "C" __global__ void __launch_bounds__(BLOCK)
    bfs_block_queues_alone(const offset_t* __restrict__ offsets, const vertex_t* __restrict__ targets,
                           const int64* __restrict__ first_piece, const vertex_t* __restrict__ owner,
                           const vertex_t* __restrict__ frontier, int64 n_frontier, int32 level, int32 last_level,
                           int64 most, int32 n_queues, int32 queue_capacity, int64 capacity, int32* distance,
                           vertex_t* predecessor, vertex_t* next, int64* counters) {
  KT_DYNAMIC_SHARED(vertex_t, places);
  KT_SHARED(int32, sizes, [kt::WARP]);
  KT_SHARED(int64, starts, [kt::WARP + 1]);
  KT_SHARED(int64, spilled, [1]);
  vertex_t* const here = places + n_queues * queue_capacity;
  if (kt::thread_in_block() < n_queues) sizes[kt::thread_in_block()] = 0;
  if (kt::thread_in_block() == 0) *spilled = 0;
  for (int64 i = kt::thread_in_block(); i < n_frontier; i += BLOCK) here[i] = kt::load_constant(frontier + i);
  kt::block_barrier();
  int64 size = n_frontier;
  int32 taken = 0;
  while (true) {
    const Expand expand = {{first_piece, owner},
                           {level + 1, distance, predecessor},
                           {places, sizes, starts, n_queues, queue_capacity, {next, capacity, spilled}}};
    kt::edges_by_thread({offsets, targets}, Written{here, size}, expand);
    kt::block_barrier();
    const int64 before = *spilled;
    size = before;
    for (int32 queue = 0; queue < n_queues; ++queue)
      size += sizes[queue] < queue_capacity ? sizes[queue] : queue_capacity;
    ++taken;
    ++level;
    const bool is_last = size == 0 || size > most || level >= last_level;
    expand.queues.empty([=](int64) { return before; },
                        [=](int64 place, vertex_t v) {
                          if (!is_last)
                            here[place] = v;
                          else if (place < capacity)
                            next[place] = v;
                        });
    if (is_last) break;
    for (int64 i = kt::thread_in_block(); i < before; i += BLOCK) here[i] = next[i];
    if (kt::thread_in_block() == 0) *spilled = 0;
    kt::block_barrier();
  }
  if (kt::thread_in_block() == 0) {
    counters[0] = size;
    counters[2] = taken;
  }
}
