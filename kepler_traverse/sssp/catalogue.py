"""Every way to compute shortest distances, one row each."""

from __future__ import annotations

from ..strategy import ManyStrategy, Strategy
from . import cpu, gpu, h_bf, integer_sums, many_blocks, many_piles, many_rows, near_far, papers, persistent
from .params import HBfKnobs
from .rounds import rounds

STRATEGIES = (
    Strategy(
        name="near_far",
        device="cpu",
        plan=near_far.plan,
        memory=near_far.memory,
        needs=frozenset({"weights", "non_negative"}),
        paper="Davidson, Baxter, Garland, Owens 2014",
        teaches="settle what is near before touching what is far",
        complexity="O(V E) at worst; an edge is relaxed again only while its pile is near",
        wins="two cores, one source: faster than SciPy, NetworKit, igraph and rustworkx on all four graphs measured",
        default=True,
    ),
    Strategy(
        name="frontier",
        device="cpu",
        plan=rounds(cpu.Run, cpu.relax),
        memory=cpu.memory,
        needs=frozenset({"weights"}),
        paper="Bellman-Ford with active vertices: Busato, Bombieri 2015, algorithm 3",
        teaches="relax only what changed; negative weights are welcome",
        complexity="O(V E)",
        default=True,
    ),
    Strategy(
        name="persistent",
        device="cuda",
        plan=persistent.plan,
        memory=persistent.memory,
        needs=frozenset({"weights", "non_negative"}),
        paper="Davidson, Baxter, Garland, Owens 2014; a width that adapts: Wang, Fussell, Lin 2021 (ADDS)",
        teaches="nothing returns to the host between steps",
        complexity="O(V E) at worst; an edge is relaxed again only while its pile is near",
        wins="H200: on 14 of 15 graphs without negative weights, 1.1 to 5.7 times as fast as the next row",
        default=True,
    ),
    Strategy(
        name="frontier",
        device="cuda",
        plan=rounds(gpu.Run, gpu.relax("warp")),
        memory=gpu.memory,
        needs=frozenset({"weights"}),
        paper="Bellman-Ford with active vertices: Busato, Bombieri 2015, algorithm 3",
        teaches="one atomic minimum a relaxation, one queue entry a vertex and round",
        complexity="O(V E)",
        wins="H200: second to persistent on dblp-2010 and web-NotreDame",
        default=True,
    ),
    Strategy(
        name="h_bf",
        device="cuda",
        plan=rounds(h_bf.Run, h_bf.relax),
        memory=h_bf.memory,
        needs=frozenset({"weights"}),
        paper="Busato, Bombieri 2015 (H-BF)",
        teaches="edges of some classes need no atomic, and some no relaxation before the end",
        complexity="O(V E)",
        wins="H200: on USA-road-NY with negative weights, and on cnr-2000, directed",
        knobs=HBfKnobs,
        published=True,
    ),
    *(
        Strategy(
            name="dijkstra_int64",
            device=device,
            plan=integer_sums.plan,
            memory=integer_sums.memory,
            needs=frozenset({"weights"}),
            paper="Dijkstra 1959; Bellman-Ford where weights are negative",
            teaches="exact sums of integers beyond 2^53, on the host",
            complexity="O((V + E) log V); O(V E) with negative weights",
            sums="int64",
        )
        for device in ("cpu", "cuda")
    ),
    *papers.STRATEGIES,
)

MANY = (
    ManyStrategy.of(
        many_piles,
        name="many_piles",
        device="cpu",
        needs=frozenset({"weights", "non_negative"}),
        paper="Davidson, Baxter, Garland, Owens 2014",
        teaches="one core a source, near and far piles, no atomic",
        complexity="S times that of near_far",
        wins="two cores, 64 sources: 3.4 to 6.2 times as fast as the best library on all four graphs measured",
        default=True,
    ),
    ManyStrategy.of(
        many_blocks,
        name="many_blocks",
        device="cuda",
        needs=frozenset({"weights", "non_negative", "narrow"}),
        paper="Davidson, Baxter, Garland, Owens 2014",
        teaches="a block a source: near and far piles with no barrier of the grid",
        default=True,
        complexity="S times that of near_far",
        wins="H200, 1,024 sources: on roads, 11,000 to 22,000 times as fast as cuGraph's loop",
    ),
    ManyStrategy.of(
        many_rows,
        name="many_rows",
        device="cuda",
        needs=frozenset({"weights", "non_negative", "narrow"}),
        paper="Davidson, Baxter, Garland, Owens 2014; Then et al. 2014 (MS-BFS)",
        teaches="distances of 32 sources side by side: each edge is read once for all of them",
        default=True,
        complexity="that of near_far for 32 sources, as long as their piles are alike",
        wins="H200, 1,024 sources: on R-MAT, 97 to 260 times as fast as cuGraph's loop",
    ),
    *(
        ManyStrategy(
            name="dijkstra_int64",
            device=device,
            plan=integer_sums.plan_many,
            memory=integer_sums.memory_of_many,
            group_size=integer_sums.group_size,
            terms=integer_sums.terms,
            needs=frozenset({"weights"}),
            paper="Dijkstra 1959; Bellman-Ford where weights are negative",
            teaches="exact sums of integers beyond 2^53, on the host, one core per source",
            complexity="O(S (V + E) log V); O(S V E) with negative weights",
            sums="int64",
        )
        for device in ("cpu", "cuda")
    ),
)
