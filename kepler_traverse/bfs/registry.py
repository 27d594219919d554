"""Registry of all BFS strategies."""

from __future__ import annotations

from ..strategy import MultiSourceStrategy, Strategy
from . import cpu_steps, gpu_steps, persistent, published
from .host_loop import levels, switch
from .multi_source import bit_parallel_cpu, bit_parallel_gpu, source_per_block, source_per_thread
from .published import bfs_4k
from .tuning import Bfs4kKnobs

STRATEGIES = (
    Strategy(
        name="switch",
        also=("hybrid",),
        device="cpu",
        plan=levels(cpu_steps.Run, switch(cpu_steps.push, cpu_steps.pull, cpu_steps.is_dense)),
        memory=cpu_steps.memory,
        paper="Beamer, Asanovic, Patterson 2012; switch of Sevilmis, Sivri, Aydin 2019",
        teaches="push while the frontier is small, pull while it is large",
        complexity="O(V + E) pushing, O(V + E) a level pulling",
        wins="two cores, one source: faster than SciPy, NetworKit and igraph on all four graphs measured",
        default=True,
    ),
    Strategy(
        name="queue",
        device="cpu",
        plan=levels(cpu_steps.Run, cpu_steps.push),
        memory=cpu_steps.memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 4",
        teaches="a queue of claimed vertices is all a level needs",
        complexity="O(V + E)",
    ),
    Strategy(
        name="persistent",
        device="cuda",
        plan=persistent.plan,
        memory=persistent.memory,
        needs=frozenset({"narrow"}),
        paper="Beamer, Asanovic, Patterson 2012; persistent threads: Gupta, Stuart, Owens 2012",
        teaches="nothing returns to the host between levels",
        complexity="O(V + E) pushing, O(V + E) a level pulling",
        wins="H200: on 14 of 15 graphs, 1.3 to 13 times as fast as the next row",
        default=True,
    ),
    Strategy(
        name="queue_warp",
        device="cuda",
        plan=levels(gpu_steps.PushRun, gpu_steps.push("warp")),
        memory=gpu_steps.memory,
        paper="baseline",
        teaches="a warp shares the edges of one vertex",
        complexity="O(V + E)",
        wins="H200: on cnr-2000, directed",
        default=True,
    ),
    Strategy(
        name="queue_thread",
        device="cuda",
        plan=levels(gpu_steps.PushRun, gpu_steps.push("thread")),
        memory=gpu_steps.memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 5.2",
        teaches="one thread a frontier vertex: heavy vertices hold up their warp",
        complexity="O(V + E)",
        also=("sevilmis-frontier-top-down",),
    ),
    Strategy(
        name="bfs_4k",
        device="cuda",
        plan=levels(bfs_4k.Run, bfs_4k.step),
        memory=bfs_4k.memory,
        paper="Busato, Bombieri 2015 (BFS-4K)",
        teaches="the frontier's size chooses the kernel, the lanes per vertex, and the search for edges",
        complexity="O(V + E), and again for what duplicates are left",
        wins="H200: on roads, meshes and R-MAT, of those rows that return to the host",
        knobs=Bfs4kKnobs,
        published=True,
    ),
    *published.STRATEGIES,
)

MULTI_SOURCE = (
    MultiSourceStrategy.of(
        bit_parallel_cpu,
        name="bit_parallel",
        also=("many_bits",),
        reverses=True,
        device="cpu",
        paper="Then et al. 2014 (MS-BFS)",
        teaches="a bit a source: one walk over the edges serves hundreds of searches",
        complexity="O(D (V + E)) a group of sources, at most",
        wins="two cores, 256 sources: on graphs of few levels, 9 to 25 times as fast as the best library",
        default=True,
    ),
    MultiSourceStrategy.of(
        source_per_thread,
        name="source_per_thread",
        also=("many_queues",),
        device="cpu",
        paper="Cormen, Leiserson, Rivest, Stein, section 22.2",
        teaches="where levels are many and small, a core a source needs no barrier",
        complexity="O(S (V + E))",
        wins="two cores, 256 sources: on USA-road-NE, 3 times as fast as the best library",
        default=True,
    ),
    MultiSourceStrategy.of(
        bit_parallel_gpu,
        name="bit_parallel",
        also=("many_bits",),
        reverses=True,
        device="cuda",
        needs=frozenset({"narrow"}),
        paper="Then et al. 2014 (MS-BFS)",
        teaches="a row of bits is one line of memory, and no source that is through holds up the others",
        default=True,
        complexity="O(D (V + E)) a group of sources, at most",
        wins="H200, 1,024 sources: on graphs of few levels, 230 to 1,300 times as fast as cuGraph's loop",
    ),
    MultiSourceStrategy.of(
        source_per_block,
        name="source_per_block",
        also=("many_blocks",),
        device="cuda",
        needs=frozenset({"narrow"}),
        paper="Cormen, Leiserson, Rivest, Stein, section 22.2",
        teaches="where levels are many and small, a block a source needs no barrier of the grid",
        default=True,
        complexity="O(S (V + E))",
        wins="H200, 1,024 sources: on roads and lattices, 370 to 10,000 times as fast as cuGraph's loop",
    ),
)
