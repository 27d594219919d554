"""The SSSP systems that the papers compare, one row each, to read and measure side by side; ``auto`` takes none of them."""

from __future__ import annotations

from . import on_cpu, on_gpu

STRATEGIES = (*on_gpu.STRATEGIES, *on_cpu.STRATEGIES)
