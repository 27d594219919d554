"""The SSSP systems that the papers compare, one row each, to read and measure side by side; ``auto`` takes none of them."""

from __future__ import annotations

from dataclasses import replace

from . import bellman_ford_gpu, cpu_baselines

STRATEGIES = tuple(
    replace(strategy, published=True) for module in (bellman_ford_gpu, cpu_baselines) for strategy in module.STRATEGIES
)
