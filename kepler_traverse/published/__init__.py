"""The systems that the papers compare, one strategy each, for study and measurement; ``auto``
chooses none of them.

They come to the library as those of any plug-in do; see ``kepler_traverse.plugins``.
"""

from __future__ import annotations

from dataclasses import replace

from .bfs import bfs_4k, expand_contract, hierarchical_queues, hybrid_and_spmv, topology_driven
from .bfs import cpu_baselines as bfs_on_cpu
from .sssp import bellman_ford_gpu, h_bf, threshold_methods
from .sssp import cpu_baselines as sssp_on_cpu

_BFS = (bfs_4k, topology_driven, hierarchical_queues, expand_contract, hybrid_and_spmv, bfs_on_cpu)
_SSSP = (h_bf, bellman_ford_gpu, threshold_methods, sssp_on_cpu)

BFS = tuple(replace(strategy, published=True) for module in _BFS for strategy in module.STRATEGIES)
SSSP = tuple(
    replace(strategy, published=True) for module in _SSSP for strategy in module.STRATEGIES
)
STRATEGIES = {"bfs": BFS, "sssp": SSSP}
