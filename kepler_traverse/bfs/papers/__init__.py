"""The BFS systems that the papers compare, one row each, to read and measure side by side; ``auto`` takes none of them."""

from __future__ import annotations

from . import gathers, layers, on_cpu, queues, scans

STRATEGIES = (
    *scans.STRATEGIES,
    *queues.STRATEGIES,
    *gathers.STRATEGIES,
    *layers.STRATEGIES,
    *on_cpu.STRATEGIES,
)
