"""The knobs of BFS, with their range and where each number came from."""

from __future__ import annotations

# Direction switch: pull once the frontier holds V / SPARSE_FRACTION vertices or more. Sevilmis, Sivri, Aydin 2019,
# section 3.1.3, after Belova and Ouyang 2017.
SPARSE_FRACTION = 32

# CPU: below this many frontier vertices one thread does it. Measured on two cores with USA-road-NE: an empty step costs
# 0.7 us on one thread and 2.6 us on two, and other
# work on the machine hid whatever difference 256, 1024, 4096, 8192 and "always serial" make to whole searches.
SERIAL_FRONTIER = 4096
