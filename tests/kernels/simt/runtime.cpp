// One fiber per CUDA thread: the scheduler, barriers, collectives, atomics, and
// what the compiler's instrumentation calls at every access and basic block.
//
// A fault stops the launch: its report names kernel, block and thread, and
// <pc N> stands for a place in the code that harness.py turns into lines.
#include <cxxabi.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "races.hpp"
#include "simt.hpp"

#if __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
constexpr size_t STACK = 256 << 10;
#else
constexpr size_t STACK = 64 << 10;
#endif
#if !defined(__x86_64__) || defined(SIMT_UCONTEXT)
#include <ucontext.h>
#define SIMT_UCONTEXT 1
#endif

extern "C" __attribute__((visibility("hidden"))) char __ehdr_start, _end;  // this library's image, from the linker

using namespace simt;
using std::string;

// ---------------------------------------------------------------- what Python hands over

struct Extent {
  char* begin;
  u64 size;
  u64 argument;
};
// What a thread did, for tests that ask which lane touches what.
struct Event {
  u64 thread;   // of the grid, and for a child behind all grids before
  u64 address;  // a number of blocks, if a child was launched
  u32 size;
  u32 kind;  // those of races.hpp, or COLLECTIVE and its number, or CHILD; IN_CHILD is added in a child
};
constexpr u32 COLLECTIVE = 1 << 16, CHILD = 1 << 17, IN_CHILD = 1 << 18;

struct Launch {
  const char* kernel;
  void (*call)(void**);
  void** arguments;
  const Extent* arrays;
  u32 n_arrays, n_arguments;
  u32 grid, block;
  u32 cooperative, room;  // blocks that fit at once: all of a cooperative grid must
  u32 resident;           // blocks that run at once otherwise
  u32 stress;             // switch at random, else in turn and at atomics, barriers and collectives alone
  u32 races;
  u64 dynamic_shared, seed, step_limit;
  void* stacks;  // simt_stacks() of one library, for all: each stack is two mappings, of which a process has few
  Event* events;  // null: none is recorded
  u64 most_events;
  u64* n_events;  // counts past most_events
};

namespace {

constexpr int WARP = 32;
constexpr u32 STEPS_IN_A_ROW = 4096;  // then others get their turn, so that a spinning thread sees what it waits for
constexpr u32 STRESS_ONE_IN = 8;
constexpr u32 MAX_CLUSTER = 8;         // that every device with clusters takes
constexpr u32 DEEPEST = 24;                // grids below the one that the host launched
constexpr u64 SWITCHES_CONVERGING = 4096;  // lanes stop waiting for company at __activemask

enum class State { ready, converging, block_barrier, cluster_barrier, grid_barrier, collective, exited };

struct Context {
#if SIMT_UCONTEXT
  ucontext_t machine;
#else
  void* sp = nullptr;
#endif
  const void* stack = nullptr;
  size_t size = 0;
  void* fake = nullptr;
};

struct Block;
struct Thread {
  Context context;
  Block* block;
  u32 index;
  State state;
  const char* pc;
  Collective kind;
  u32 mask;
  u64 value, result;
  int argument, width;
  races::Clock clock;
};

// A grid that the host launched, or a child that a thread of another grid launched.
struct Grid {
  string kernel, launched_by;
  void (*call)(const void*, void**);
  const void* function;
  void** arguments;
  const char* arguments_end;
  u32 n_blocks, cluster, first_thread, depth;
  u64 dynamic_shared;
  races::Seen seen;
  u32 next_block = 0;
  std::unique_ptr<u64[]> memory = nullptr;  // of a child's arguments
};

struct Cluster {
  std::vector<Block*> blocks;
  u32 n_exited = 0, n_waiting = 0;
  int line = 0;
  string first_exited;
  bool all_began = false;  // as a barrier has shown
};

// Lanes of a warp that wait in one collective: for all of its mask.
struct Gathering {
  u32 mask, arrived;
  Collective kind;
};
struct Warp {
  u32 exited = 0;
  std::vector<Gathering> gatherings;  // no two of the same mask
};

struct LastAccess {
  u32 time;
  const char* pc;
};

struct Block {
  Grid* grid;
  std::shared_ptr<Cluster> cluster;
  u32 index, n_exited = 0, n_waiting = 0;
  int line = 0;
  u32 sum = 0;
  Count count = Count::none;
  u32 first_exited = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::map<const void*, std::pair<char*, u64>> shared;
  std::set<const char*> reached;        // shared memory of others that its threads asked for
  std::map<u32, LastAccess> by_others;  // to its shared memory, each thread's last that no thread here comes after
};

const Launch* launched = nullptr;
std::vector<std::unique_ptr<Grid>> grids;    // by their first thread; the first is the host's
std::deque<Grid*> waiting_children;          // with blocks that have not begun
std::vector<std::unique_ptr<Block>> blocks;  // where each runs, clusters side by side; the last place is for children
std::vector<char*> own_stacks;
std::vector<char*>* stacks;
std::deque<Thread*> ready;
Context scheduler;
Thread* self = nullptr;
u32 n_finished, n_at_grid_barrier;
std::map<u32*, u32> at_grid_barriers;  // the counts of blocks as they must be
u32* grid_barrier_word;
bool has_space;  // maybe a block can begin
u64 n_steps, n_switches, random_state;
u32 steps_in_a_row;
string report;

u64 draw() {  // splitmix64
  u64 x = (random_state += 0x9E3779B97F4A7C15ull);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
bool one_in(u32 n) { return draw() % n == 0; }
u32 lowest(u32 lanes) { return static_cast<u32>(__builtin_ctz(lanes)); }

// In half of the launches a quarter of the warps lags: they wait while other warps can run. Thus the accesses of a warp
// right after a barrier may follow all accesses of the others before the next barrier.
u64 laggards;  // 0: none
bool lags(const Thread& thread) {
  const u64 warp = (thread.block->index + 1) * u64{0x9E3779B97F4A7C15} + thread.index / WARP;
  return laggards && ((warp ^ laggards) * 0xBF58476D1CE4E5B9ull >> 60) % 4 == 0;
}

// ---------------------------------------------------------------- fibers

#if !SIMT_UCONTEXT
// Saves what a call must keep, on the stack that it leaves.
extern "C" void simt_switch(void** leave, void* enter) __attribute__((visibility("hidden")));
asm(R"(
.text
.globl simt_switch
.hidden simt_switch
.type simt_switch, @function
simt_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch, .-simt_switch
)");
#endif

void swap(Context& leave, Context& enter, [[maybe_unused]] bool for_good = false) {
#if __SANITIZE_ADDRESS__
  __sanitizer_start_switch_fiber(for_good ? nullptr : &leave.fake, enter.stack, enter.size);
#endif
#if SIMT_UCONTEXT
  swapcontext(&leave.machine, &enter.machine);
#else
  simt_switch(&leave.sp, enter.sp);
#endif
#if __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(leave.fake, nullptr, nullptr);
#endif
}

void fiber();

void prepare(Context& context, char* stack) {
#if __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(stack, STACK);
#endif
  context.stack = stack;
  context.size = STACK;
  context.fake = nullptr;
#if SIMT_UCONTEXT
  getcontext(&context.machine);
  context.machine.uc_stack.ss_sp = stack;
  context.machine.uc_stack.ss_size = STACK;
  context.machine.uc_link = nullptr;
  makecontext(&context.machine, fiber, 0);
#else
  void** top = reinterpret_cast<void**>(stack + STACK);
  *--top = nullptr;  // where a caller's address would lie
  *--top = reinterpret_cast<void*>(fiber);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  context.sp = top;
#endif
}

char* stack_of(size_t i) {
  while (stacks->size() <= i) {  // below each a page that faults
    char* place = static_cast<char*>(
        mmap(nullptr, STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (place == MAP_FAILED || mprotect(place, 4096, PROT_NONE) != 0) abort();
    stacks->push_back(place + 4096);
  }
  return (*stacks)[i];
}

// ---------------------------------------------------------------- reports

__attribute__((format(printf, 1, 2))) string text(const char* format, ...) {
  char buffer[512];
  va_list values;
  va_start(values, format);
  vsnprintf(buffer, sizeof buffer, format, values);
  va_end(values);
  return buffer;
}

string at(const char* pc) { return text("<pc %#llx>", pc ? u64(pc - &__ehdr_start) - 1 : 0ull); }
string name_of(const Thread& thread) { return text("block %u, thread %u", thread.block->index, thread.index); }
string name_of(const Grid& grid) { return "kernel " + grid.kernel + grid.launched_by; }
// A thread by its number among the threads of all grids; in the current grid without the kernel's name.
string name_of(u32 global) {
  const auto after = std::upper_bound(grids.begin(), grids.end(), global,
                                      [](u32 thread, const auto& grid) { return thread < grid->first_thread; });
  const Grid& grid = **(after - 1);
  const u32 thread = global - grid.first_thread;
  return (&grid == self->block->grid ? "" : name_of(grid) + ", ") +
         text("block %u, thread %u", thread / launched->block, thread % launched->block);
}

[[noreturn]] void fail(const string& what, const Thread& at_fault) {
  report = name_of(*at_fault.block->grid) + ", " + name_of(at_fault) + ": " + what;
  swap(self->context, scheduler, true);
  abort();
}

[[noreturn]] void fail(const string& what) { fail(what, *self); }

const char* const COLLECTIVES[] = {"__shfl_sync",       "__shfl_up_sync",    "__shfl_down_sync",  "__shfl_xor_sync",
                                   "__ballot_sync",     "__any_sync",        "__all_sync",        "__match_any_sync",
                                   "__match_all_sync",  "__reduce_add_sync", "__reduce_min_sync", "__reduce_max_sync",
                                   "__reduce_and_sync", "__reduce_or_sync",  "__reduce_xor_sync", "__syncwarp"};

string waiting(const Thread& thread) {
  if (thread.state == State::block_barrier) return "at a block barrier " + at(thread.pc);
  if (thread.state == State::cluster_barrier) return "at a cluster barrier " + at(thread.pc);
  if (thread.state == State::grid_barrier) return "at a grid barrier " + at(thread.pc);
  return text("in %s of lanes 0x%08x ", COLLECTIVES[int(thread.kind)], thread.mask) + at(thread.pc);
}

// No thread can continue: report where each waits.
void stuck() {
  report = text("kernel %s: no thread can go on;", launched->kernel);
  int lines = 0;
  for (auto& block : blocks)
    for (size_t i = 0; block && i < block->threads.size();) {
      const Thread& first = block->threads[i];
      size_t last = i + 1;
      auto same = [&](const Thread& t) {
        return t.state == first.state && (t.state == State::exited ||
                                          (t.pc == first.pc && (t.state != State::collective || t.mask == first.mask)));
      };
      while (last < block->threads.size() && same(block->threads[last])) ++last;
      if (++lines <= 24)
        report += "\n  " + (block->grid->depth ? name_of(*block->grid) + ", " : "") +
                  text("block %u, thread %zu to %zu: ", block->index, i, last - 1) +
                  (first.state == State::exited ? "exited" : "waits " + waiting(first));
      i = last;
    }
}

// ---------------------------------------------------------------- the scheduler

void go_on(Thread& thread) {
  thread.state = State::ready;
  ready.push_back(&thread);
}

void leave(State state, const char* pc) {
  self->state = state;
  self->pc = pc;
  swap(self->context, scheduler);
}

void yield() {
  ready.push_back(self);
  swap(self->context, scheduler);
}

// Release lanes that wait for others at __activemask, together with those of their warp that wait at the same place.
bool release_converging() {
  bool any = false;
  for (auto& block : blocks)
    for (size_t i = 0; block && i < block->threads.size(); ++i) {
      Thread& first = block->threads[i];
      if (first.state != State::converging) continue;
      const size_t end = std::min(block->threads.size(), (i / WARP + 1) * WARP);
      u32 lanes = 0;
      for (size_t j = i; j < end; ++j)
        if (block->threads[j].state == State::converging && block->threads[j].pc == first.pc) lanes |= 1u << (j % WARP);
      const char* pc = first.pc;
      for (size_t j = i; j < end; ++j) {
        Thread& thread = block->threads[j];
        if (thread.state != State::converging || thread.pc != pc) continue;
        thread.result = lanes;
        go_on(thread);
      }
      any = true;
    }
  return any;
}

void admit_block(size_t place, Grid& grid, const std::shared_ptr<Cluster>& cluster) {
  auto block = std::make_unique<Block>();
  block->grid = &grid;
  block->cluster = cluster;
  block->index = grid.next_block++;
  block->threads.resize(launched->block);
  block->warps.resize((launched->block + WARP - 1) / WARP);
  for (u32 i = 0; i < launched->block; ++i) {
    Thread& thread = block->threads[i];
    thread.block = block.get();
    thread.index = i;
    thread.pc = nullptr;
    thread.clock.thread = grid.first_thread + block->index * launched->block + i;
    thread.clock.seen = grid.seen;
    prepare(thread.context, stack_of(place * launched->block + i));
    go_on(thread);
  }
  cluster->blocks.push_back(block.get());
  blocks[place] = std::move(block);
}

// The blocks of a cluster begin together.
void admit(size_t place, Grid& grid) {
  const auto cluster = std::make_shared<Cluster>();
  for (u32 i = 0; i < grid.cluster; ++i) admit_block(place + i, grid, cluster);
}

bool has_ended(const Cluster& cluster) { return cluster.n_exited == cluster.blocks.size() * launched->block; }

// Shared memory stays until all of a cluster has ended: an access after that of its block is a fault, not a crash.
void retire(size_t place) {
  if (!blocks[place]) return;
  const auto cluster = blocks[place]->cluster;
  for (Block* block : cluster->blocks)
    for (auto& entry : block->shared) {
      races::forget(entry.second.first);
      free(entry.second.first);
    }
  for (size_t i = cluster->blocks.size(); i-- > 0;) blocks[place + i].reset();
}

// Clusters begin where others have ended: those of the host's grid first, or under stress any.
void begin_blocks() {
  Grid& root = *grids.front();
  for (size_t place = 0; place < blocks.size(); place += root.cluster) {
    if (blocks[place] && !has_ended(*blocks[place]->cluster)) continue;
    const bool root_waits = root.next_block < root.n_blocks && place + 1 < blocks.size();
    if (!root_waits && waiting_children.empty()) continue;
    retire(place);
    if (root_waits && (waiting_children.empty() || !launched->stress || one_in(2))) {
      admit(place, root);
      continue;
    }
    const auto child =
        waiting_children.begin() + static_cast<long>(launched->stress ? draw() % waiting_children.size() : 0);
    Grid& grid = **child;
    if (grid.next_block + 1 == grid.n_blocks) waiting_children.erase(child);
    admit(place, grid);
  }
}

void run() {
  const u32 cluster = grids.front()->cluster;
  const u32 resident = (std::max(launched->resident, 1u) + cluster - 1) / cluster * cluster;
  blocks.resize(1 + (launched->cooperative ? launched->grid : std::min(launched->grid, resident)));
  has_space = true;
  while (report.empty()) {
    if (has_space) {
      has_space = false;
      begin_blocks();
    }
    if (ready.empty()) {
      if (release_converging()) continue;
      for (auto& block : blocks)
        if (block && block->n_exited < launched->block) {
          stuck();
          break;
        }
      return;
    }
    if (launched->stress) {
      u64 chosen = draw() % ready.size();
      for (int again = 0; again < 4 && lags(*ready[chosen]); ++again) chosen = draw() % ready.size();
      std::swap(ready.front(), ready[chosen]);
    }
    self = ready.front();
    ready.pop_front();
    steps_in_a_row = 0;
    swap(scheduler, self->context);
    self = nullptr;
    if (++n_switches % SWITCHES_CONVERGING == 0) release_converging();
  }
}

void fiber() {
#if __SANITIZE_ADDRESS__
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.stack, &scheduler.size);
#endif
  Block& block = *self->block;
  block.grid->call(block.grid->function, block.grid->arguments);
  if (block.n_waiting)
    fail(text("exits, and %u threads of its block wait at a barrier ", block.n_waiting) +
         at(std::find_if(block.threads.begin(), block.threads.end(), [](Thread& t) {
              return t.state == State::block_barrier;
            })->pc));
  Cluster& cluster = *block.cluster;
  if (cluster.n_waiting)
    fail(text("exits, and %u threads of its cluster wait at a cluster barrier", cluster.n_waiting));
  if (n_at_grid_barrier) fail(text("exits, and %u threads wait at a grid barrier", n_at_grid_barrier));
  Warp& warp = block.warps[self->index / WARP];
  u32 waiting_for_it = 0;
  for (const Gathering& gathering : warp.gatherings)
    if (gathering.mask >> (self->index % WARP) & 1) waiting_for_it |= gathering.arrived;
  if (waiting_for_it) {
    const Thread& other = block.threads[self->index / WARP * WARP + lowest(waiting_for_it)];
    fail(text("exits, and thread %u waits for it ", other.index) + waiting(other));
  }
  warp.exited |= 1u << (self->index % WARP);
  std::erase_if(block.by_others,
                [](auto& access) { return races::is_before(access.first, access.second.time, self->clock); });
  if (!block.n_exited++) block.first_exited = self->index;
  if (block.n_exited == launched->block && !block.by_others.empty()) {
    const auto& [thread, access] = *block.by_others.begin();
    fail("ends its block while " + name_of(thread) + " may still touch its shared memory " + at(access.pc) +
         ": no barrier of the cluster lies between");
  }
  if (!cluster.n_exited++) cluster.first_exited = name_of(*self);
  ++n_finished;
  has_space = has_space || has_ended(cluster);
  self->state = State::exited;
  swap(self->context, scheduler, true);
  abort();
}

// ---------------------------------------------------------------- steps and accesses

__attribute__((always_inline)) inline const char* caller() {
  return static_cast<const char*>(__builtin_return_address(0));
}

void step(const char* pc) {
  if (++n_steps > launched->step_limit) fail(text("no end after %llu steps, now ", launched->step_limit) + at(pc));
  if (++steps_in_a_row > STEPS_IN_A_ROW || (launched->stress && one_in(STRESS_ONE_IN))) yield();
}

void note(u64 address, u64 size, u32 kind) {
  if (!launched->events) return;
  const u64 place = (*launched->n_events)++;
  if (place >= launched->most_events) return;
  const Grid& grid = *self->block->grid;
  const u64 thread = u64(grid.first_thread) + u64(self->block->index) * launched->block + self->index;
  launched->events[place] = {thread, address, static_cast<u32>(size), kind | (grid.depth ? IN_CHILD : 0)};
}

// A child's arguments are not those that the launch numbers.
string of_the_launch() { return self->block->grid->depth ? " of kernel " + grids.front()->kernel : ""; }

// Shared memory of another block: of this cluster, by an address that kt::shared_of gave, and while that block runs.
void touch_other(const races::Region& region, const char* pc) {
  Block& owner = *static_cast<Block*>(const_cast<void*>(region.block));
  const string what = "touches " + region.name + " of " + name_of(*owner.grid);
  if (!self->block->reached.count(region.begin)) fail(what + ", which is another block's, " + at(pc));
  if (!owner.cluster->all_began)
    fail(what + ", which may not have begun: no barrier of the cluster comes before, " + at(pc));
  if (owner.n_exited == launched->block) fail(what + ", which has ended, " + at(pc));
  owner.by_others[self->clock.thread] = {self->clock.time, pc};
}

void access(const void* address, u64 size, u32 kind, const char* pc) {
  if (!self) return;
  const char* const place = static_cast<const char*>(address);
  const char* const stack = static_cast<const char*>(self->context.stack);
  if (place >= stack && place < stack + STACK) return;
  if (place >= &__ehdr_start && place < &_end) return;
  const Grid& grid = *self->block->grid;
  if (place >= reinterpret_cast<char*>(grid.arguments) && place < grid.arguments_end) return;
  step(pc);
  note(reinterpret_cast<u64>(place), size, kind);
#if __SANITIZE_ADDRESS__
  return;  // the sanitizer knows the bounds
#endif
  races::Region* region = races::find(place, size, pc);
  if (!region)
    fail(text("%s %llu bytes out of bounds ", kind & races::WRITE ? "writes" : "reads", size) +
         races::nearest(place, of_the_launch()) + ", " + at(pc));
  if (region->block && region->block != self->block) touch_other(*region, pc);
  races::Conflict found;
  if (launched->races && races::races(*region, place, size, kind, self->clock, pc, found)) {
    string message = text("%s %llu bytes at byte %llu of ", found.what, size, u64(place - region->begin)) +
                     region->name + (region->block ? "" : of_the_launch()) + ", " + at(pc);
    if (found.other_pc) message += "; the other is " + name_of(found.other) + ", " + at(found.other_pc);
    fail(message);
  }
}

}  // namespace

// What the compiler calls: -fsanitize=thread at every access, -fsanitize-coverage=trace-pc at every basic block.
#define SIMT_ACCESS(name, size, kind) \
  extern "C" SIMT_API void name(void* p) { access(p, size, kind, caller()); }
#define SIMT_ACCESSES(size)                                                            \
  SIMT_ACCESS(__tsan_read##size, size, races::READ)                                    \
  SIMT_ACCESS(__tsan_write##size, size, races::WRITE)                                  \
  SIMT_ACCESS(__tsan_unaligned_read##size, size, races::READ)                          \
  SIMT_ACCESS(__tsan_unaligned_write##size, size, races::WRITE)                        \
  SIMT_ACCESS(__tsan_volatile_read##size, size, races::READ | races::ATOMIC)           \
  SIMT_ACCESS(__tsan_volatile_write##size, size, races::WRITE | races::ATOMIC)         \
  SIMT_ACCESS(__tsan_unaligned_volatile_read##size, size, races::READ | races::ATOMIC) \
  SIMT_ACCESS(__tsan_unaligned_volatile_write##size, size, races::WRITE | races::ATOMIC)
SIMT_ACCESSES(1)
SIMT_ACCESSES(2)
SIMT_ACCESSES(4)
SIMT_ACCESSES(8)
SIMT_ACCESSES(16)
extern "C" SIMT_API void __tsan_read_range(void* p, unsigned long size) { access(p, size, races::READ, caller()); }
extern "C" SIMT_API void __tsan_write_range(void* p, unsigned long size) { access(p, size, races::WRITE, caller()); }
extern "C" SIMT_API void __tsan_func_entry(void*) {}
extern "C" SIMT_API void __tsan_func_exit() {}
extern "C" SIMT_API void __tsan_init() {}
extern "C" SIMT_API void __sanitizer_cov_trace_pc() {
  if (self) step(caller());
}
#if __SANITIZE_ADDRESS__
// The last words of a sanitizer that ends the process.
static void name_the_thread() {
  if (!self) return;
  const string name = name_of(*self->block->grid) + ", " + name_of(*self);
  fprintf(stderr, "%s (seed %llu)\n", name.c_str(), launched->seed);
}
#endif

// ---------------------------------------------------------------- what simt.hpp calls

namespace simt {

Index thread_index() { return {self->index, 0, 0}; }
Index block_index() { return {self->block->index, 0, 0}; }
Index block_size() { return {launched->block, 1, 1}; }
Index grid_size() { return {self->block->grid->n_blocks, 1, 1}; }

void constant(const void* address, u64 size) { access(address, size, races::READ | races::CONSTANT, caller()); }

void pause() { yield(); }

void fence() { races::fence(self->clock); }

i64 nanoseconds() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int block_in_cluster() { return static_cast<int>(self->block->index % self->block->grid->cluster); }
int cluster_index() { return static_cast<int>(self->block->index / self->block->grid->cluster); }

namespace {
char* shared_in(Block& block, const void* declaration, u64 size) {
  auto& place = block.shared[declaration];
  if (!place.first) {
    place = {static_cast<char*>(malloc(size ? size : 1)), size};
    memset(place.first, 0xA5, size);
    races::add_shared(place.first, size, &block, text("shared memory of block %u", block.index));
  }
  return place.first;
}

// The kernels that have clusters, by their addresses; filled before any launch.
std::map<const void*, u32>& cluster_sizes() {
  static std::map<const void*, u32> sizes;
  return sizes;
}
}  // namespace

void has_clusters(const void* kernel, const void* call, u32 n_blocks) {
  cluster_sizes()[kernel] = cluster_sizes()[call] = n_blocks;
}

void* shared(const void* declaration, u64 size) { return shared_in(*self->block, declaration, size); }

void* dynamic_shared() { return shared(&blocks, self->block->grid->dynamic_shared); }

void* shared_of(const void* pointer, int of) {
  const char* const pc = caller();
  const std::vector<Block*>& cluster = self->block->cluster->blocks;
  if (of < 0 || static_cast<u32>(of) >= cluster.size())
    fail(text("asks for shared memory of block %d of its cluster, which has %zu", of, cluster.size()) + ", " + at(pc));
  for (const auto& [declaration, memory] : self->block->shared) {
    const char* const place = static_cast<const char*>(pointer);
    if (place < memory.first || place >= memory.first + memory.second) continue;
    Block& owner = *cluster[static_cast<size_t>(of)];
    char* const there = shared_in(owner, declaration, memory.second);
    self->block->reached.insert(there);
    return there + (place - memory.first);
  }
  fail("asks for another block's variable by a pointer that is not to its own shared memory, " + at(pc));
}

namespace {
string kernel_name(const void* kernel) {
  Dl_info found;
  if (!dladdr(kernel, &found) || !found.dli_sname || found.dli_saddr != kernel)
    return at(static_cast<const char*>(kernel) + 1);
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(found.dli_sname, nullptr, nullptr, nullptr),
                                                     free);
  return plain ? plain.get() : found.dli_sname;
}
}  // namespace

void launch(void (*call)(const void*, void**), const void* kernel, int n_blocks, int most, void** arguments,
            const u64* sizes, u32 n_arguments) {
  const Grid& parent = *self->block->grid;
  note(static_cast<u64>(n_blocks), 0, CHILD);
  const string name = kernel_name(kernel), here = ", " + at(caller());
  if (launched->cooperative) fail("launches " + name + ", and the threads of a cooperative grid may not" + here);
  if (cluster_sizes().count(kernel)) fail("launches " + name + ", which has clusters: children have none here" + here);
  if (n_blocks < 1) fail("launches " + name + text(" with %d blocks", n_blocks) + here);
  if (parent.depth == DEEPEST) fail("launches " + name + text(" as a child deeper than %u", DEEPEST) + here);
  // No thread can know that a child has ended before the launch has.
  if (grids.size() > static_cast<u32>(most))
    fail("launches " + name + text(" after %d others, which may all wait still", most) + here);
  const Grid& last = *grids.back();
  const u32 first_thread = last.first_thread + last.n_blocks * launched->block;
  // Pointers to the arguments, and these behind them.
  u64 n_words = n_arguments;
  for (u32 i = 0; i < n_arguments; ++i) n_words += (sizes[i] + 7) / 8;
  auto memory = std::make_unique<u64[]>(n_words);
  u64* next = &memory[n_arguments];
  for (u32 i = 0; i < n_arguments; ++i) {
    memory[i] = reinterpret_cast<u64>(next);
    memcpy(next, arguments[i], sizes[i]);
    next += (sizes[i] + 7) / 8;
  }
  grids.push_back(std::make_unique<Grid>(Grid{
      name,
      ", launched by " + name_of(*self) + " of " + parent.kernel,
      call,
      kernel,
      reinterpret_cast<void**>(memory.get()),
      reinterpret_cast<char*>(next),
      static_cast<u32>(n_blocks),
      1,
      first_thread,
      parent.depth + 1,
      0,
      races::launch(self->clock),
  }));
  grids.back()->memory = std::move(memory);
  waiting_children.push_back(grids.back().get());
  has_space = true;
  yield();
}

namespace {
template <typename T>
u64 apply(void* address, Atomic kind, u64 word, u64 expected) {
  T before, after = from_word<T>(word);
  const T value = after;
  memcpy(&before, address, sizeof before);
  switch (kind) {
    case Atomic::add:
      after = static_cast<T>(before + value);
      break;
    case Atomic::min:
      after = std::min(before, value);
      break;
    case Atomic::max:
      after = std::max(before, value);
      break;
    case Atomic::swap:
      break;
    case Atomic::compare_and_swap:
      if (to_word(before) != expected) after = before;
      break;
    case Atomic::and_:
      after = from_word<T>(to_word(before) & word);
      break;
    case Atomic::or_:
      after = from_word<T>(to_word(before) | word);
      break;
    case Atomic::xor_:
      after = from_word<T>(to_word(before) ^ word);
      break;
  }
  memcpy(address, &after, sizeof after);
  return to_word(before);
}
}  // namespace

u64 atomic(void* address, Atomic kind, Number number, u64 value, u64 expected) {
  const u64 size = number == Number::i32 || number == Number::u32 || number == Number::f32 ? 4 : 8;
  if (!launched->stress) yield();
  access(address, size, races::WRITE | races::ATOMIC, caller());
  if (reinterpret_cast<uintptr_t>(address) % size)
    fail("atomic on an address that is no multiple of its size " + at(caller()));
  switch (number) {
    case Number::i32:
      return apply<int>(address, kind, value, expected);
    case Number::u32:
      return apply<u32>(address, kind, value, expected);
    case Number::i64:
      return apply<i64>(address, kind, value, expected);
    case Number::u64:
      return apply<u64>(address, kind, value, expected);
    case Number::f32:
      return apply<float>(address, kind, value, expected);
    case Number::f64:
      return apply<double>(address, kind, value, expected);
  }
  abort();
}

namespace {
// Order the accesses of these threads: those before this call come before those after it.
void order(Thread* threads, size_t n, u32 lanes = ~0u) {
  if (!launched->races) return;
  std::vector<races::Clock*> clocks;
  for (size_t i = 0; i < n; ++i)
    if (lanes >> (i % WARP) & 1) clocks.push_back(&threads[i].clock);
  races::order(clocks);
}
}  // namespace

int block_barrier(int predicate, Count count, int line) {
  Block& block = *self->block;
  const char* const pc = caller();
  if (block.n_exited)
    fail(text("waits at a block barrier that thread %u never reaches: it has exited, ", block.first_exited) + at(pc));
  if (!block.n_waiting) {
    block.line = line;
    block.count = count;
    block.sum = 0;
  } else if (block.line != line || block.count != count) {
    fail(text("waits at another block barrier than %u threads of its block, ", block.n_waiting) + at(pc));
  }
  block.sum += predicate != 0;
  if (++block.n_waiting < block.threads.size()) {
    leave(State::block_barrier, pc);
    return static_cast<int>(self->result);
  }
  block.n_waiting = 0;
  order(block.threads.data(), block.threads.size());
  const u64 n = block.threads.size();
  const u64 result = count == Count::all ? block.sum == n : count == Count::any ? block.sum > 0 : block.sum;
  for (Thread& thread : block.threads) {
    thread.result = result;
    if (&thread != self) go_on(thread);
  }
  yield();
  return static_cast<int>(result);
}

void cluster_barrier(int line) {
  Cluster& cluster = *self->block->cluster;
  const char* const pc = caller();
  if (cluster.n_exited)
    fail("waits at a cluster barrier that " + cluster.first_exited + " never reaches: it has exited, " + at(pc));
  if (!cluster.n_waiting) cluster.line = line;
  if (cluster.line != line)
    fail(text("waits at another cluster barrier than %u threads of its cluster, ", cluster.n_waiting) + at(pc));
  if (++cluster.n_waiting < cluster.blocks.size() * launched->block) return leave(State::cluster_barrier, pc);
  cluster.n_waiting = 0;
  cluster.all_began = true;
  std::vector<races::Clock*> clocks;
  for (Block* block : cluster.blocks)
    for (Thread& thread : block->threads) {
      clocks.push_back(&thread.clock);
      if (&thread != self) go_on(thread);
    }
  if (launched->races) races::order(clocks);
  yield();
}

namespace {
// The word that counts blocks at grid barriers. On a GPU they wait until it shows that all have arrived.
void count_block(u32* arrived, const char* pc) {
  access(arrived, sizeof *arrived, races::WRITE | races::ATOMIC, pc);
  const auto [counter, is_new] = at_grid_barriers.emplace(arrived, 0);
  if (*arrived != counter->second)
    fail(text("waits at a grid barrier whose count of blocks is %u, and should be %u, ", *arrived, counter->second) +
         at(pc));
  *arrived = ++counter->second;
}
}  // namespace

void grid_barrier(u32* arrived) {
  const char* const pc = caller();
  if (!launched->cooperative)
    fail("waits at a grid barrier, and the launch is not cooperative: its blocks need not run at once, " + at(pc));
  if (n_finished) fail(text("waits at a grid barrier, and %u threads of the grid have exited, ", n_finished) + at(pc));
  if (arrived && self->index == 0) count_block(arrived, pc);
  if (!n_at_grid_barrier) grid_barrier_word = arrived;
  if (grid_barrier_word != arrived)
    fail(text("waits at a grid barrier with another count of blocks than %u threads, ", n_at_grid_barrier) + at(pc));
  if (++n_at_grid_barrier < launched->grid * launched->block) return leave(State::grid_barrier, pc);
  n_at_grid_barrier = 0;
  std::vector<races::Clock*> clocks;
  for (auto& block : blocks) {
    if (!block) continue;
    block->cluster->all_began = true;
    for (Thread& thread : block->threads) {
      clocks.push_back(&thread.clock);
      if (&thread != self) go_on(thread);
    }
  }
  if (launched->races) races::order(clocks);
  yield();
}

u32 converged() {
  const char* const pc = caller();
  if (launched->stress && one_in(2)) return 1u << (self->index % WARP);
  leave(State::converging, pc);
  return static_cast<u32>(self->result);
}

namespace {

// The lane whose value a shuffle returns to this one.
int shuffle_source(const Thread& me) {
  const int lane = static_cast<int>(me.index % WARP), first = lane / me.width * me.width;
  int from = lane ^ me.argument;
  if (me.kind == Collective::index) from = first + (me.argument & (me.width - 1));
  if (me.kind == Collective::up) from = lane - me.argument;
  if (me.kind == Collective::down) from = lane + me.argument;
  const bool below = from < first && me.kind != Collective::exchange;
  return below || from >= first + me.width ? lane : from;
}

u64 voted(const Thread* warp, const Thread& me) {
  const bool is_match = me.kind == Collective::match_any || me.kind == Collective::match_all;
  u32 lanes = 0;
  for (int i = 0; i < WARP; ++i)
    if (me.mask >> i & 1 && (is_match ? warp[i].value == me.value : warp[i].value != 0)) lanes |= 1u << i;
  if (me.kind == Collective::any) return lanes != 0;
  if (me.kind == Collective::all) return lanes == me.mask;
  return me.kind == Collective::match_all && lanes != me.mask ? 0 : lanes;
}

u64 reduced(const Thread* warp, const Thread& me) {
  u64 total = me.value;
  for (int i = 0; i < WARP; ++i) {
    if (!(me.mask >> i & 1) || i == static_cast<int>(me.index % WARP)) continue;
    const u64 value = warp[i].value;
    const bool less = static_cast<i64>(value) < static_cast<i64>(total);
    switch (me.kind) {
      case Collective::add:
        total += value;
        break;
      case Collective::min:
        total = less ? value : total;
        break;
      case Collective::max:
        total = less ? total : value;
        break;
      case Collective::and_:
        total &= value;
        break;
      case Collective::or_:
        total |= value;
        break;
      default:
        total ^= value;
        break;
    }
  }
  return total;
}

// A vote or a reduction returns the same for each lane of its mask.
bool is_one_for_all(Collective kind) { return kind >= Collective::ballot && kind != Collective::match_any; }

u64 result_for(const Thread* warp, const Thread& me) {
  if (me.kind == Collective::sync) return 0;
  if (me.kind >= Collective::add) return reduced(warp, me);
  if (me.kind >= Collective::ballot) return voted(warp, me);
  const int from = shuffle_source(me);
  if (!(me.mask >> from & 1))
    fail(text("%s reads lane %d, which is not of its lanes 0x%08x, ", COLLECTIVES[int(me.kind)], from, me.mask) +
             at(me.pc),
         me);
  return warp[from].value;
}

}  // namespace

u64 collective(Collective kind, u32 mask, u64 value, int argument, int width) {
  Thread& me = *self;
  note(mask, 0, COLLECTIVE | static_cast<u32>(kind));
  const u32 lane = me.index % WARP;
  Thread* const warp = &me.block->threads[me.index - lane];
  const u32 n_lanes = std::min<u32>(WARP, launched->block - (me.index - lane));
  me.kind = kind;
  me.mask = mask;
  me.value = value;
  me.argument = argument;
  me.width = width;
  me.pc = caller();
  const auto here = [&] { return text("%s of lanes 0x%08x ", COLLECTIVES[int(kind)], mask) + at(me.pc); };
  if (!(mask >> lane & 1)) fail(here() + " is none of the calling lane");
  Warp& of_warp = me.block->warps[me.index / WARP];
  auto& gatherings = of_warp.gatherings;
  auto gathering =
      std::find_if(gatherings.begin(), gatherings.end(), [=](const Gathering& g) { return g.mask == mask; });
  if (gathering == gatherings.end()) gathering = gatherings.insert(gathering, {mask, 0, kind});
  const u32 not_there = n_lanes < WARP ? ~0u << n_lanes : 0;
  const u32 others = gathering->kind == kind ? 0 : gathering->arrived;
  if (const u32 wrong = mask & (not_there | of_warp.exited | others)) {
    const u32 i = lowest(wrong);
    if (i >= n_lanes) fail(here() + text(" names lane %u, which the block does not have", i));
    if (of_warp.exited >> i & 1) fail(here() + text(" waits for lane %u, which has exited", i));
    fail(here() + text(" meets thread %u ", warp[i].index) + waiting(warp[i]));
  }
  gathering->arrived |= 1u << lane;
  if (gathering->arrived != mask) {
    leave(State::collective, me.pc);
    return me.result;
  }
  gatherings.erase(gathering);
  const u64 of_all = is_one_for_all(kind) ? result_for(warp, me) : 0;
  for (u32 i = 0; i < n_lanes; ++i)
    if (mask >> i & 1) warp[i].result = is_one_for_all(kind) ? of_all : result_for(warp, warp[i]);
  for (u32 i = 0; i < n_lanes; ++i)
    if (mask >> i & 1 && i != lane) go_on(warp[i]);
  if (kind == Collective::sync) order(warp, n_lanes, mask);
  return me.result;
}

}  // namespace simt

extern "C" __attribute__((visibility("default"))) void* simt_stacks() { return &own_stacks; }

// Run a kernel; returns null, or the report of a fault.
extern "C" __attribute__((visibility("default"))) const char* simt_launch(const Launch* launch) {
#if __SANITIZE_ADDRESS__
  __sanitizer_set_death_callback(name_the_thread);
  signal(SIGABRT, [](int) { name_the_thread(); });  // how UBSan ends
#endif
  launched = launch;
  stacks = static_cast<std::vector<char*>*>(launch->stacks);
  blocks.clear();
  ready.clear();
  report.clear();
  n_finished = n_at_grid_barrier = 0;
  at_grid_barriers.clear();
  grids.clear();
  waiting_children.clear();
  n_steps = n_switches = 0;
  random_state = launch->seed;
  laggards = launch->stress && one_in(2) ? draw() : 0;
  races::reset();
  for (u32 i = 0; i < launch->n_arrays; ++i)
    races::add_array(launch->arrays[i].begin, launch->arrays[i].size, static_cast<int>(launch->arrays[i].argument));
  const auto clustered = cluster_sizes().find(reinterpret_cast<const void*>(launch->call));
  const u32 cluster = clustered == cluster_sizes().end() ? 1 : clustered->second;
  grids.push_back(std::make_unique<Grid>(Grid{
      launch->kernel,
      "",
      [](const void* function, void** arguments) {
        reinterpret_cast<void (*)(void**)>(const_cast<void*>(function))(arguments);
      },
      reinterpret_cast<const void*>(launch->call),
      launch->arguments,
      reinterpret_cast<char*>(launch->arguments + 2 * launch->n_arguments),
      launch->grid,
      cluster,
      0,
      0,
      launch->dynamic_shared,
      nullptr,
  }));
  if (launch->cooperative && launch->grid > launch->room)
    report = text("kernel %s: a cooperative grid of %u blocks, and %u fit at once", launch->kernel, launch->grid,
                  launch->room);
  else if (cluster > MAX_CLUSTER)
    report = text("kernel %s: clusters of %u blocks, and %u are the most everywhere", launch->kernel, cluster,
                  MAX_CLUSTER);
  else if (launch->grid % cluster)
    report = text("kernel %s: a grid of %u blocks, which is no multiple of its clusters of %u", launch->kernel,
                  launch->grid, cluster);
  else
    run();
  for (size_t place = 0; place < blocks.size(); ++place) retire(place);
  blocks.clear();
  launched = nullptr;
  return report.empty() ? nullptr : report.c_str();
}
