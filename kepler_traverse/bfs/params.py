"""The knobs of BFS, with their range and where each number came from."""

from __future__ import annotations

# Direction switch: pull once the frontier holds V / SPARSE_FRACTION vertices or more. Sevilmis, Sivri, Aydin 2019,
# section 3.1.3, after Belova and Ouyang 2017.
SPARSE_FRACTION = 32

# CPU: below this many frontier vertices one thread beats waking the others (measured on two cores: a parallel region
# costs about 5 us, a frontier vertex of a road network about 10 ns).
SERIAL_FRONTIER = 2048
