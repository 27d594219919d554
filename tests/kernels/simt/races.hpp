// The memory that a launch may access, and the last accesses to each word of it.
//
// Two accesses to a word by different threads, one of them a write, race unless
// both are atomic (or volatile: kt::racy_load, kt::racy_store) or one happens
// before the other: by a block, cluster or grid barrier, by __syncwarp, or by a fence
// before an atomic write and one after the atomic read that sees it, or by the
// launch of the second one's grid. Shuffles
// and votes order nothing, as in CUDA.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "simt.hpp"

namespace races {

using simt::u32;
using simt::u64;

constexpr u32 READ = 0, WRITE = 1, ATOMIC = 2, CONSTANT = 4;
constexpr int ENTRIES_PER_WORD = 8;  // of concurrent accesses the last ones

// A vector clock: per thread of the grid, the time up to which its accesses happen before.
using Seen = std::shared_ptr<std::vector<u32>>;

struct Clock {
  u32 thread = 0, time = 1;
  Seen seen, released, acquired;
};

struct Entry {
  u32 thread, time;
  const char* pc;
  unsigned char bytes, kind;
  int next;
};

struct Cell {
  int first = -1;
  unsigned char constant = 0, written = 0;
};

struct Region {
  const char* begin;
  const char* end;
  int argument;
  const void* block;  // whose shared memory it is, in place of an argument
  std::string name;
  std::vector<Cell> cells;
};

struct Conflict {
  const char* what;
  u32 other;
  const char* other_pc;
};

static std::vector<std::unique_ptr<Region>> regions;
static std::vector<Entry> entries;
static std::vector<int> unused;
static std::unordered_map<u64, Seen> synchronised;
// The region that an instruction accessed last, and most likely accesses again.
constexpr size_t LAST_AT = 512;
static Region* last_at[LAST_AT];

static void reset() {
  regions.clear();
  std::fill_n(last_at, LAST_AT, nullptr);
  entries.clear();
  unused.clear();
  synchronised.clear();
}

static void add(std::unique_ptr<Region> region) {
  region->cells.resize((reinterpret_cast<u64>(region->end - 1) >> 2) - (reinterpret_cast<u64>(region->begin) >> 2) + 1);
  regions.push_back(std::move(region));
}

static void add_shared(const char* begin, u64 size, const void* block, std::string name) {
  if (size) add(std::make_unique<Region>(Region{begin, begin + size, 0, block, std::move(name), {}}));
}

// Arrays that overlap become one region.
static void add_array(const char* begin, u64 size, int argument) {
  if (!size) return;
  auto region = std::make_unique<Region>(Region{begin, begin + size, argument, nullptr, {}, {}});
  for (size_t i = 0; i < regions.size();)
    if (regions[i]->begin < region->end && region->begin < regions[i]->end) {
      region->begin = std::min(region->begin, regions[i]->begin);
      region->end = std::max(region->end, regions[i]->end);
      region->argument = std::min(region->argument, regions[i]->argument);
      regions.erase(regions.begin() + static_cast<long>(i));
    } else {
      ++i;
    }
  region->name = "argument " + std::to_string(region->argument);
  add(std::move(region));
}

static void forget(const char* begin) {
  std::fill_n(last_at, LAST_AT, nullptr);
  std::erase_if(regions, [=](auto& region) { return region->begin == begin; });
}

static bool holds(const Region& region, const char* place, u64 size) {
  return place >= region.begin && place + size <= region.end;
}

static Region* find(const char* place, u64 size, const char* pc) {
  Region*& last = last_at[(reinterpret_cast<u64>(pc) >> 2) % LAST_AT];
  if (last && holds(*last, place, size)) return last;
  for (auto& region : regions)
    if (holds(*region, place, size)) return last = region.get();
  return nullptr;
}

static std::string nearest(const char* place, const std::string& whose) {
  const Region* best = nullptr;
  u64 distance = ~u64{0};
  for (auto& region : regions) {
    const u64 off = static_cast<u64>(place >= region->begin ? place - region->begin : region->begin - place);
    const u64 off_end = static_cast<u64>(place >= region->end ? place - region->end : region->end - place);
    if (std::min(off, off_end) < distance) {
      distance = std::min(off, off_end);
      best = region.get();
    }
  }
  if (!best) return "of everything";
  return "at byte " + std::to_string(place - best->begin) + " of " + best->name + (best->block ? "" : whose) +
         ", which has " + std::to_string(best->end - best->begin);
}

static u32 up_to(const std::vector<u32>& seen, u32 thread) { return thread < seen.size() ? seen[thread] : 0; }

static void take_later(std::vector<u32>& into, const std::vector<u32>& other) {
  if (into.size() < other.size()) into.resize(other.size());
  for (size_t i = 0; i < other.size(); ++i) into[i] = std::max(into[i], other[i]);
}

static void set(std::vector<u32>& seen, const Clock& clock) {
  if (seen.size() <= clock.thread) seen.resize(clock.thread + 1);
  seen[clock.thread] = clock.time;
}

static void join(Seen& into, const Seen& other) {
  if (!other || into == other) return;
  if (!into) {
    into = other;
    return;
  }
  auto both = std::make_shared<std::vector<u32>>(*into);
  take_later(*both, *other);
  into = both;
}

static Seen with_own(const Clock& clock) {
  auto copy = clock.seen ? std::make_shared<std::vector<u32>>(*clock.seen) : std::make_shared<std::vector<u32>>();
  set(*copy, clock);
  return copy;
}

static void fence(Clock& clock) {
  join(clock.seen, clock.acquired);
  clock.released = with_own(clock);
  ++clock.time;
}

// The accesses of a thread before it launches a grid happen before those of the threads of that grid.
static Seen launch(Clock& clock) {
  Seen seen = with_own(clock);
  ++clock.time;
  return seen;
}

// All previous accesses of some threads happen before the next accesses of each of them.
static void order(const std::vector<Clock*>& clocks) {
  auto all = std::make_shared<std::vector<u32>>();
  const std::vector<u32>* last = nullptr;
  for (const Clock* clock : clocks) {
    if (clock->seen && clock->seen.get() != last) take_later(*all, *clock->seen);
    last = clock->seen.get();
  }
  for (const Clock* clock : clocks) set(*all, *clock);
  for (Clock* clock : clocks) {
    clock->seen = all;
    ++clock->time;
  }
}

static bool is_before(u32 thread, u32 time, const Clock& clock) {
  return thread == clock.thread || (clock.seen && up_to(*clock.seen, thread) >= time);
}

static const char* visit(Cell& cell, bool is_shared, unsigned char bytes, u32 kind, const Clock& clock, const char* pc,
                         Conflict& found) {
  if (kind & CONSTANT) {
    cell.constant |= bytes;
    return cell.written & bytes ? "loads as constant what this launch writes:" : nullptr;
  }
  if (kind & WRITE) {
    if (cell.constant & bytes) return "writes what this launch loads as constant:";
    cell.written |= bytes;
  } else if (is_shared && (cell.written & bytes) != bytes) {
    return "reads what nobody wrote:";
  }
  // The same access of this thread again, with none of other threads in between: it was compared already.
  if (cell.first >= 0) {
    Entry& last = entries[static_cast<size_t>(cell.first)];
    if (last.thread == clock.thread && last.time == clock.time && last.bytes == bytes && last.kind == kind) {
      last.pc = pc;
      return nullptr;
    }
  }
  int length = 0;
  for (int* link = &cell.first; *link >= 0;) {
    const int at = *link;
    const Entry& entry = entries[static_cast<size_t>(at)];
    const bool before = is_before(entry.thread, entry.time, clock);
    if (!before && entry.bytes & bytes && (entry.kind | kind) & WRITE && !(entry.kind & kind & ATOMIC)) {
      found.other = entry.thread;
      found.other_pc = entry.pc;
      return entry.kind & kind & WRITE ? "races, both writing"
             : kind & WRITE            ? "races, writing what another reads,"
                                       : "races, reading what another writes,";
    }
    // Whatever conflicts with the entry later would conflict with this access too.
    const bool covered = before && !(entry.bytes & ~bytes) && (kind & WRITE || !(entry.kind & WRITE)) &&
                         (!(kind & ATOMIC) || entry.kind & ATOMIC);
    if (covered || ++length > ENTRIES_PER_WORD) {
      *link = entry.next;
      unused.push_back(at);
    } else {
      link = &entries[static_cast<size_t>(at)].next;
    }
  }
  int at;
  if (unused.empty()) {
    at = static_cast<int>(entries.size());
    entries.emplace_back();
  } else {
    at = unused.back();
    unused.pop_back();
  }
  entries[static_cast<size_t>(at)] = {clock.thread, clock.time, pc, bytes, static_cast<unsigned char>(kind),
                                      cell.first};
  cell.first = at;
  return nullptr;
}

// Record an access; report it if it races.
static bool races(Region& region, const char* place, u64 size, u32 kind, Clock& clock, const char* pc,
                  Conflict& found) {
  const u64 origin = reinterpret_cast<u64>(region.begin) >> 2, begin = reinterpret_cast<u64>(place), end = begin + size;
  found = {nullptr, 0, nullptr};
  for (u64 word = begin >> 2; word << 2 < end; ++word) {
    unsigned char bytes = 0;
    for (u64 b = 0; b < 4; ++b)
      if ((word << 2) + b >= begin && (word << 2) + b < end) bytes |= static_cast<unsigned char>(1u << b);
    found.what = visit(region.cells[word - origin], region.block != nullptr, bytes, kind, clock, pc, found);
    if (found.what) return true;
    if (!(kind & ATOMIC)) continue;
    const auto released = synchronised.find(word);
    if (released != synchronised.end()) join(clock.acquired, released->second);
    if (kind & WRITE && clock.released) join(synchronised[word], clock.released);
  }
  return false;
}

}  // namespace races
