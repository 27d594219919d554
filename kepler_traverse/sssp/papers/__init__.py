"""The SSSP systems that the papers compare, one row each, to read and measure side by side; ``auto`` takes none of them."""

from __future__ import annotations

from dataclasses import replace

from . import on_cpu, on_gpu

STRATEGIES = tuple(replace(strategy, published=True) for module in (on_gpu, on_cpu) for strategy in module.STRATEGIES)
