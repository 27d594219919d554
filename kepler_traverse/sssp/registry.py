"""Registry of all SSSP strategies."""

from __future__ import annotations

from functools import partial

from ..search import short_search
from ..search.strategy import MultiSourceStrategy, Strategy
from . import cpu_steps, gpu_steps, integer_sums, near_far_cpu, near_far_gpu
from .host_loop import rounds
from .multi_source import (
    hierarchy_sweep,
    hierarchy_sweep_gpu,
    source_per_block,
    source_per_lane,
    source_per_thread,
    topological_sweep,
)

STRATEGIES = (
    Strategy(
        name="near_far",
        device="cpu",
        plan=near_far_cpu.plan,
        memory=near_far_cpu.memory,
        needs=frozenset({"weights", "non_negative"}),
        paper="Davidson, Baxter, Garland, Owens 2014",
        rationale="settle near vertices before visiting far ones",
        complexity=(
            "O(V E) at worst; an edge is relaxed again only while its source is in the near pile"
        ),
        default=True,
    ),
    Strategy(
        name="frontier",
        device="cpu",
        plan=rounds(cpu_steps.Run, cpu_steps.relax),
        memory=cpu_steps.memory,
        needs=frozenset({"weights"}),
        paper="Bellman-Ford with active vertices: Busato, Bombieri 2015, algorithm 3",
        rationale="relax only edges of improved vertices; accepts negative weights",
        complexity="O(V E)",
        default=True,
    ),
    Strategy(
        name="persistent",
        device="cuda",
        plan=near_far_gpu.plan,
        memory=near_far_gpu.memory,
        needs=frozenset({"weights", "non_negative"}),
        paper=(
            "Davidson, Baxter, Garland, Owens 2014; a width that adapts: "
            "Wang, Fussell, Lin 2021 (ADDS)"
        ),
        rationale="nothing returns to the host between steps",
        complexity=(
            "O(V E) at worst; an edge is relaxed again only while its source is in the near pile"
        ),
        default=True,
    ),
    Strategy(
        name="frontier",
        device="cuda",
        plan=rounds(gpu_steps.Run, gpu_steps.relax("warp")),
        memory=gpu_steps.memory,
        needs=frozenset({"weights"}),
        paper="Bellman-Ford with active vertices: Busato, Bombieri 2015, algorithm 3",
        rationale="one atomic minimum per relaxation, one queue entry per vertex and round",
        complexity="O(V E)",
        default=True,
    ),
    *(
        Strategy(
            name="dijkstra_int64",
            device=device,
            plan=integer_sums.plan,
            memory=integer_sums.memory,
            needs=frozenset({"weights"}),
            paper="Dijkstra 1959; Bellman-Ford where weights are negative",
            rationale="exact sums of integers beyond 2^53, on the host",
            complexity="O((V + E) log V); O(V E) with negative weights",
            sums="int64",
        )
        for device in ("cpu", "cuda")
    ),
)

_multi_source = partial(MultiSourceStrategy.from_module, takes_target_lists=True, default=True)
MULTI_SOURCE = (
    *short_search.strategies(
        frozenset({"weights", "non_negative"}),
        cpu_steps.overflow_error,
        paper="Meyer, Sanders 2003 (delta-stepping)",
        complexity="O(S (reached edges) (looks per edge)), less where sources are near each other",
    ),
    _multi_source(
        source_per_thread,
        name="near_far_per_thread",
        device="cpu",
        needs=frozenset({"weights", "non_negative"}),
        paper="Davidson, Baxter, Garland, Owens 2014",
        rationale="one core per source, near and far piles, no atomic",
        complexity="S times that of near_far",
    ),
    _multi_source(
        topological_sweep,
        name="topological_sweep",
        takes_target_lists=False,
        device="cpu",
        needs=frozenset({"weights", "acyclic"}),
        paper="Cormen, Leiserson, Rivest, Stein, section 24.2",
        rationale=(
            "each edge is relaxed once, in topological order, for 16 sources side by side; "
            "accepts negative weights"
        ),
        complexity="O(S (V + E))",
    ),
    _multi_source(
        hierarchy_sweep,
        name="hierarchy_sweep",
        finds_paths=True,
        aliases=("phast", "rphast"),
        device="cpu",
        needs=frozenset({"weights", "non_negative", "narrow", "hierarchy"}),
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
        hierarchy_sweep_gpu,
        name="hierarchy_sweep",
        aliases=("phast", "rphast"),
        device="cuda",
        needs=frozenset({"weights", "non_negative", "narrow", "hierarchy"}),
        paper=(
            "Delling, Goldberg, Nowatzyk, Werneck 2011 (PHAST); "
            "Geisberger, Sanders, Schultes, Delling 2008"
        ),
        rationale=(
            "short searches upward in a contraction hierarchy, then one sweep "
            "downward for 1,024 sources side by side"
        ),
        complexity="O(S (V + shortcuts)), after the hierarchy is built",
    ),
    _multi_source(
        source_per_block,
        name="source_per_block",
        device="cuda",
        needs=frozenset({"weights", "non_negative", "narrow"}),
        paper="Davidson, Baxter, Garland, Owens 2014",
        rationale="one block per source: near and far piles without a barrier of the grid",
        complexity="S times that of near_far",
    ),
    _multi_source(
        source_per_lane,
        name="source_per_lane",
        device="cuda",
        needs=frozenset({"weights", "non_negative", "narrow"}),
        paper="Davidson, Baxter, Garland, Owens 2014; Then et al. 2014 (MS-BFS)",
        rationale="distances from 32 sources interleaved: each edge is read once for all of them",
        complexity="that of near_far per 32 sources, if their piles are similar",
    ),
    *(
        MultiSourceStrategy(
            name="dijkstra_int64",
            device=device,
            edges="any",
            plan=integer_sums.plan_multi_source,
            memory=integer_sums.memory_of_multi_source,
            group_size=integer_sums.group_size,
            terms=integer_sums.terms,
            needs=frozenset({"weights"}),
            paper="Dijkstra 1959; Bellman-Ford where weights are negative",
            rationale="exact sums of integers beyond 2^53, on the host, one core per source",
            complexity="O(S (V + E) log V); O(S V E) with negative weights",
            sums="int64",
        )
        for device in ("cpu", "cuda")
    ),
)
