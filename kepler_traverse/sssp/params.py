"""The knobs of SSSP, with their range and where each number came from."""

from __future__ import annotations

# CPU: below this many frontier vertices one thread beats waking the others (as for BFS).
SERIAL_FRONTIER = 1024

# Width of a pile as a multiple of the mean weight. Davidson et al. (IPDPS 2014) take 32 / mean degree for warps of 32;
# on a CPU a narrower pile saves relaxations and costs only a call.
PILE_WIDTH = 4.0

# Rounds of Bellman-Ford after which the predecessors are first searched for a cycle; doubled each time, so the searches
# cost O(V log rounds) in all.
FIRST_CYCLE_SEARCH = 16
