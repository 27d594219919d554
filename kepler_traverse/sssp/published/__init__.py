"""The SSSP systems that the papers compare, one strategy each, for study and measurement; ``auto`` chooses none of them."""

from __future__ import annotations

from dataclasses import replace

from . import bellman_ford_gpu, cpu_baselines

STRATEGIES = tuple(
    replace(strategy, published=True) for module in (bellman_ford_gpu, cpu_baselines) for strategy in module.STRATEGIES
)
