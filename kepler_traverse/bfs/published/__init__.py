"""The BFS systems that the papers compare, one strategy each, for study and measurement; ``auto`` chooses none of them."""

from __future__ import annotations

from dataclasses import replace

from . import cpu_baselines, expand_contract, hierarchical_queues, hybrid_and_spmv, topology_driven

STRATEGIES = tuple(
    replace(strategy, published=True)
    for module in (topology_driven, hierarchical_queues, expand_contract, hybrid_and_spmv, cpu_baselines)
    for strategy in module.STRATEGIES
)
