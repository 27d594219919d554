// BFS with a queue per block or per warp in shared memory, and one thread per frontier vertex.
//
//   bfs_block_queues                one level per launch
//   bfs_block_queues_grid           several levels per launch, with a barrier of the grid between them
//   bfs_block_queues_single_block   several levels by one block, with the frontier in shared memory
//
// Frontier    the queues of the blocks are emptied into a queue in global memory (BlockQueues)
// Visited     the distances: a compare-and-swap claims a vertex, so it is queued once
//
// If long adjacency lists are split (published/row_splitting.py), the queues hold edge chunks: `offsets`
// are those of the chunks, and the thread that claims a vertex queues all of its chunks.
//
//   shared   n_queues * queue_capacity vertices; after them the frontier of a single block
//   reads    adjacency lists of the frontier    writes   claimed vertices and the next queue
//
// Luo, Wong, Hwu. An effective GPU implementation of breadth-first search. DAC 2010.
// Springer. Breadth-first Search in CUDA. Tokyo Institute of Technology, section 3.6.
#include <kt/advance.cuh>
#include <kt/bfs_visit.cuh>
#include <kt/frontier_queue.cuh>
#include <kt/thread_queue.cuh>

// What the host passes (published/bfs/hierarchical_queues.py).
struct QueueArgs {
  const offset_t* offsets;
  const vertex_t* targets;
  KT_NULLABLE const int64* first_chunk;
  KT_NULLABLE const vertex_t* owner;
  vertex_t* frontier;
  int64 n_frontier;
  int32 level;  // of the frontier; bfs_block_queues: of the vertices that are claimed
  int32 last_level;
  int64 max_frontier;  // for another level in this launch
  int32 n_queues;
  int32 queue_capacity;
  int64 capacity;  // of frontier and next
  int32* distance;
  KT_NULLABLE vertex_t* predecessor;
  vertex_t* next;
  int64* counters;
  uint32* arrived;
};

namespace {

// Queues of a block in shared memory, of `queue_capacity` vertices each: one per warp (W-frontiers)
// or one per block. Concatenated they are the block's queue (B-frontier), for which one atomic
// reserves slots in the queue of the grid (G-frontier). A vertex that exceeds the capacity goes
// directly to the queue of the grid.
//
// Luo, Wong, Hwu. An effective GPU implementation of breadth-first search. DAC 2010, section 3.2.
struct BlockQueues {
  vertex_t* slots;  // [n_queues * queue_capacity]
  int32* sizes;     // [n_queues], zero at first; they count past the capacity
  int64* starts;    // [n_queues + 1]
  int32 n_queues;   // no more than a warp has lanes
  int32 queue_capacity;
  kt::Appender grid;

  KT_DEVICE void append(vertex_t v) const {
    const int32 queue = kt::warp_in_block() % n_queues;
    const int32 place = kt::atomic_add(sizes + queue, 1);
    if (place < queue_capacity)
      slots[queue * queue_capacity + place] = v;
    else
      grid.append(v);
  }

  // Empties the queues. All threads of the block call it; a block barrier must follow before the next append.
  // `to` is as in kt/thread_queue.cuh; one thread calls reserve.
  template <typename To>
  KT_DEVICE void empty(To&& to) const {
    kt::block_barrier();
    if (kt::thread_in_block() == 0) {
      int64 total = 0;
      for (int32 queue = 0; queue < n_queues; ++queue) {
        starts[queue] = total;
        total += size(queue);
      }
      starts[n_queues] = total ? to.reserve(total) : 0;
    }
    kt::block_barrier();
    const bool is_one = n_queues == 1;
    for (int32 queue = is_one ? 0 : kt::warp_in_block(); queue < n_queues; queue += BLOCK / WARP) {
      const int64 first = starts[n_queues] + starts[queue];
      const int32 n = size(queue);
      for (int32 i = is_one ? kt::thread_in_block() : kt::lane(); i < n; i += is_one ? BLOCK : WARP)
        to.store(first + i, slots[queue * queue_capacity + i]);
    }
    kt::block_barrier();
    if (kt::thread_in_block() < n_queues) sizes[kt::thread_in_block()] = 0;
  }

 private:
  KT_DEVICE int32 size(int32 queue) const { return sizes[queue] < queue_capacity ? sizes[queue] : queue_capacity; }
};

// A frontier that is written in the same launch, so its loads must not be cached as constants.
struct WrittenQueue {
  const vertex_t* vertices;
  int64 size;
  KT_DEVICE vertex_t operator[](int64 i) const { return vertices[i]; }
};

struct EdgeChunks {
  const int64* first;     // [n_vertices + 1]; null if adjacency lists are not split
  const vertex_t* owner;  // [n_chunks]
};

struct Expand {
  EdgeChunks chunks;
  kt::Reach reach;
  BlockQueues queues;

  // u is the number of a chunk if adjacency lists are split, and else a vertex.
  KT_DEVICE void operator()(vertex_t u, offset_t, vertex_t v) const {
    if (chunks.first == nullptr) {
      if (reach.claim(u, v)) queues.append(v);
    } else if (reach.claim(kt::load_constant(chunks.owner + u), v)) {
      const int64 end = kt::load_constant(chunks.first + v + 1);
      for (int64 chunk = kt::load_constant(chunks.first + v); chunk < end; ++chunk)
        queues.append(static_cast<vertex_t>(chunk));
    }
  }
};

// Expands as many vertices at a time as the grid has threads. The blocks then empty their queues, which can therefore
// be small (Springer).
template <typename List>
KT_DEVICE void expand_level(kt::Csr graph, List list, const Expand& expand) {
  for (int64 first = 0; first < list.size; first += kt::n_threads()) {
    const int64 left = list.size - first;
    kt::edges_by_thread(graph, List{list.vertices + first, left < kt::n_threads() ? left : kt::n_threads()}, expand);
    expand.queues.empty(expand.queues.grid);
    kt::block_barrier();
  }
}

}  // namespace

// counters[0] becomes the size of the next frontier.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_block_queues(const QueueArgs args) {
  KT_DYNAMIC_SHARED(vertex_t, slots);
  KT_SHARED(int32, sizes, [WARP]);
  KT_SHARED(int64, starts, [WARP + 1]);
  if (kt::thread_in_block() < args.n_queues) sizes[kt::thread_in_block()] = 0;
  kt::block_barrier();
  expand_level({args.offsets, args.targets}, kt::Queue{args.frontier, args.n_frontier},
               {{args.first_chunk, args.owner},
                {args.level, args.distance, args.predecessor},
                {slots, sizes, starts, args.n_queues, args.queue_capacity, {args.next, args.capacity, args.counters}}});
}

// Levels up to last_level while the frontier has at most max_frontier vertices (3.3).
//
//   counters[0]          the size of the last frontier: in `next` after an odd number of levels, and else in `frontier`
//   counters[2]          the number of levels
//   counters[3] to [5]   sizes of the frontiers of three levels: one is read, one written, one cleared
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_block_queues_grid(const QueueArgs args) {
  KT_DYNAMIC_SHARED(vertex_t, slots);
  KT_SHARED(int32, sizes, [WARP]);
  KT_SHARED(int64, starts, [WARP + 1]);
  if (kt::thread_in_block() < args.n_queues) sizes[kt::thread_in_block()] = 0;
  kt::block_barrier();
  int64* const counters = args.counters;
  int64 size = args.n_frontier;
  int32 level = args.level;
  int32 n_levels = 0;
  do {
    vertex_t* const here = n_levels % 2 ? args.next : args.frontier;
    vertex_t* const there = n_levels % 2 ? args.frontier : args.next;
    int64* const found = counters + 3 + (n_levels + 1) % 3;
    if (kt::thread_id() == 0) counters[3 + (n_levels + 2) % 3] = 0;
    expand_level({args.offsets, args.targets}, WrittenQueue{here, size},
                 {{args.first_chunk, args.owner},
                  {level + 1, args.distance, args.predecessor},
                  {slots, sizes, starts, args.n_queues, args.queue_capacity, {there, args.capacity, found}}});
    kt::grid_barrier(args.arrived);
    size = *found;
    ++n_levels;
    ++level;
  } while (size > 0 && size <= args.max_frontier && level < args.last_level);
  if (kt::thread_id() == 0) {
    counters[0] = size;
    counters[2] = n_levels;
  }
}

// The same by one block. Its frontier is in shared memory, so no queue in global memory is needed between levels. What
// exceeds the queues of a level is in `next`; the last frontier is in `next` as a whole.
extern "C" __global__ void __launch_bounds__(BLOCK) bfs_block_queues_single_block(const QueueArgs args) {
  KT_DYNAMIC_SHARED(vertex_t, slots);
  KT_SHARED(int32, sizes, [WARP]);
  KT_SHARED(int64, starts, [WARP + 1]);
  KT_SHARED(int64, spilled, [1]);
  const int32 n_queues = args.n_queues, queue_capacity = args.queue_capacity;
  const int64 capacity = args.capacity;
  vertex_t* const next = args.next;
  vertex_t* const here = slots + n_queues * queue_capacity;
  if (kt::thread_in_block() < n_queues) sizes[kt::thread_in_block()] = 0;
  if (kt::thread_in_block() == 0) *spilled = 0;
  for (int64 i = kt::thread_in_block(); i < args.n_frontier; i += BLOCK) here[i] = kt::load_constant(args.frontier + i);
  kt::block_barrier();
  int64 size = args.n_frontier;
  int32 level = args.level;
  int32 n_levels = 0;
  while (true) {
    const Expand expand = {{args.first_chunk, args.owner},
                           {level + 1, args.distance, args.predecessor},
                           {slots, sizes, starts, n_queues, queue_capacity, {next, capacity, spilled}}};
    kt::edges_by_thread({args.offsets, args.targets}, WrittenQueue{here, size}, expand);
    kt::block_barrier();
    const int64 n_spilled = *spilled;
    size = n_spilled;
    for (int32 queue = 0; queue < n_queues; ++queue)
      size += sizes[queue] < queue_capacity ? sizes[queue] : queue_capacity;
    ++n_levels;
    ++level;
    const bool is_last = size == 0 || size > args.max_frontier || level >= args.last_level;
    expand.queues.empty(kt::into([=](int64) { return n_spilled; },
                                 [=](int64 place, vertex_t v) {
                                   if (!is_last)
                                     here[place] = v;
                                   else if (place < capacity)
                                     next[place] = v;
                                 }));
    if (is_last) break;
    for (int64 i = kt::thread_in_block(); i < n_spilled; i += BLOCK) here[i] = next[i];
    if (kt::thread_in_block() == 0) *spilled = 0;
    kt::block_barrier();
  }
  if (kt::thread_in_block() == 0) {
    args.counters[0] = size;
    args.counters[2] = n_levels;
  }
}
