"""Registry of all BFS strategies."""

from __future__ import annotations

from functools import partial

from ..search import short_search
from ..search.strategy import MultiSourceStrategy, Strategy
from . import cpu_steps, gpu_steps, persistent
from .host_loop import levels, switch
from .multi_source import (
    bit_parallel_cpu,
    bit_parallel_gpu,
    bit_parallel_streamed,
    hierarchy_sweep,
    source_per_block,
    source_per_thread,
)

STRATEGIES = (
    Strategy(
        name="switch",
        aliases=("hybrid",),
        device="cpu",
        plan=levels(cpu_steps.Run, switch(cpu_steps.push, cpu_steps.pull, cpu_steps.is_dense)),
        memory=cpu_steps.memory,
        paper="Beamer, Asanovic, Patterson 2012; switch of Sevilmis, Sivri, Aydin 2019",
        rationale="push while the frontier is small, pull while it is large",
        complexity="O(V + E) pushing, O(V + E) per level pulling",
        default=True,
    ),
    Strategy(
        name="queue",
        device="cpu",
        plan=levels(cpu_steps.Run, cpu_steps.push),
        memory=cpu_steps.memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 4",
        rationale="a level needs only a queue of claimed vertices",
        complexity="O(V + E)",
    ),
    Strategy(
        name="persistent",
        device="cuda",
        plan=persistent.plan,
        memory=persistent.memory,
        needs=frozenset({"narrow"}),
        paper="Beamer, Asanovic, Patterson 2012; persistent threads: Gupta, Stuart, Owens 2012",
        rationale="nothing returns to the host between levels",
        complexity="O(V + E) pushing, O(V + E) per level pulling",
        default=True,
    ),
    Strategy(
        name="queue_warp",
        device="cuda",
        plan=levels(gpu_steps.PushRun, gpu_steps.push("warp")),
        memory=gpu_steps.memory,
        paper="baseline",
        rationale="a warp shares the edges of one vertex",
        complexity="O(V + E)",
        default=True,
    ),
    Strategy(
        name="queue_thread",
        device="cuda",
        plan=levels(gpu_steps.PushRun, gpu_steps.push("thread")),
        memory=gpu_steps.memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 5.2",
        rationale="one thread per frontier vertex: hubs delay their warp",
        complexity="O(V + E)",
        aliases=("sevilmis-frontier-top-down",),
    ),
)

_multi_source = partial(MultiSourceStrategy.from_module, takes_target_lists=True, default=True)
MULTI_SOURCE = (
    *short_search.strategies(
        paper="Cormen, Leiserson, Rivest, Stein, section 22.2",
        complexity="O(S (reached vertices and edges))",
    ),
    _multi_source(
        bit_parallel_cpu,
        name="bit_parallel",
        reverses=True,
        device="cpu",
        paper="Then et al. 2014 (MS-BFS)",
        rationale="one bit per source: one pass over the edges serves hundreds of searches",
        complexity="O(D (V + E)) per group of sources, at most",
    ),
    _multi_source(
        source_per_thread,
        name="source_per_thread",
        device="cpu",
        paper="Cormen, Leiserson, Rivest, Stein, section 22.2",
        rationale="where levels are many and small, one core per source needs no barrier",
        complexity="O(S (V + E))",
    ),
    _multi_source(
        hierarchy_sweep,
        name="hierarchy_sweep",
        finds_paths=True,
        aliases=("phast", "rphast"),
        device="cpu",
        needs=frozenset({"narrow", "hierarchy"}),
        paper=(
            "Delling, Goldberg, Nowatzyk, Werneck 2011 (PHAST); "
            "Geisberger, Sanders, Schultes, Delling 2008"
        ),
        rationale=(
            "short searches upward in a contraction hierarchy, then one sweep "
            "downward for 16 sources side by side"
        ),
        complexity="O(S (V + shortcuts)), after the hierarchy is built",
    ),
    _multi_source(
        bit_parallel_gpu,
        name="bit_parallel",
        reverses=True,
        device="cuda",
        needs=frozenset({"narrow"}),
        paper="Then et al. 2014 (MS-BFS)",
        rationale=(
            "a source bitset is one cache line, and a finished source does not delay the others"
        ),
        complexity="O(D (V + E)) per group of sources, at most",
    ),
    _multi_source(
        bit_parallel_streamed,
        name="bit_parallel_streamed",
        reverses=True,
        device="cuda",
        edges="host",
        needs=frozenset({"narrow"}),
        paper="Then et al. 2014 (MS-BFS)",
        rationale=("hundreds of searches share one pass over the bus, and bitsets stay on the GPU"),
        complexity="O(D (V + E)) per group of sources, at most",
    ),
    _multi_source(
        source_per_block,
        name="source_per_block",
        device="cuda",
        needs=frozenset({"narrow"}),
        paper="Cormen, Leiserson, Rivest, Stein, section 22.2",
        rationale=(
            "where levels are many and small, one block per source needs no barrier of the grid"
        ),
        complexity="O(S (V + E))",
    ),
)
