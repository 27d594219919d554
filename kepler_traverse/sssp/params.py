"""The knobs of SSSP, with their range and where each number came from."""

from __future__ import annotations

# CPU: below this many frontier vertices one thread does it (as for BFS).
SERIAL_FRONTIER = 4096

# CPU: width of a pile as a multiple of the mean weight. Davidson et al. (IPDPS 2014) take 32 / mean degree for warps of
# 32. Measured on two busy cores: USA-road-NE 0.25 / 0.20 / 0.19 / 0.20 / 0.32 s for 1 / 4 / 8 / 16 / 32, soc-Slashdot0902
# 0.03 / 0.04 / 0.04 / 0.04 s for 1 / 4 / 8 / 16.
PILE_WIDTH = 4.0

# Rounds of Bellman-Ford after which the predecessors are first searched for a cycle; doubled each time, so the searches
# cost O(V log rounds) in all.
FIRST_CYCLE_SEARCH = 16
