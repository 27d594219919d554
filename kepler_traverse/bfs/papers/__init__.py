"""The BFS systems that the papers compare, one row each, to read and measure side by side; ``auto`` takes none of them."""

from __future__ import annotations

from dataclasses import replace

from . import gathers, layers, on_cpu, queues, scans

STRATEGIES = tuple(
    replace(strategy, published=True)
    for module in (scans, queues, gathers, layers, on_cpu)
    for strategy in module.STRATEGIES
)
