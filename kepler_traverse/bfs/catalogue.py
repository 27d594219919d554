"""Every way to run a BFS, one row each."""

from __future__ import annotations

from ..strategy import ManyStrategy, Strategy
from . import bfs_4k, cpu, gpu, many_bits, many_bits_gpu, many_blocks, many_queues, papers, persistent
from .levels import levels, switch
from .params import Bfs4kKnobs

STRATEGIES = (
    Strategy(
        name="switch",
        also=("hybrid",),
        device="cpu",
        plan=levels(cpu.Run, switch(cpu.push, cpu.pull, cpu.is_dense)),
        memory=cpu.memory,
        paper="Beamer, Asanovic, Patterson 2012; switch of Sevilmis, Sivri, Aydin 2019",
        teaches="push while the frontier is small, pull while it is large",
        default=True,
    ),
    Strategy(
        name="queue",
        device="cpu",
        plan=levels(cpu.Run, cpu.push),
        memory=cpu.memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 4",
        teaches="a queue of claimed vertices is all a level needs",
    ),
    Strategy(
        name="persistent",
        device="cuda",
        plan=persistent.plan,
        memory=persistent.memory,
        needs=frozenset({"narrow"}),
        paper="Beamer, Asanovic, Patterson 2012; persistent threads: Gupta, Stuart, Owens 2012",
        teaches="nothing returns to the host between levels",
        default=True,
    ),
    Strategy(
        name="queue_warp",
        device="cuda",
        plan=levels(gpu.PushRun, gpu.push("warp")),
        memory=gpu.memory,
        paper="baseline",
        teaches="a warp shares the edges of one vertex",
        default=True,
    ),
    Strategy(
        name="queue_thread",
        device="cuda",
        plan=levels(gpu.PushRun, gpu.push("thread")),
        memory=gpu.memory,
        paper="Sevilmis, Sivri, Aydin 2019, section 5.2",
        teaches="one thread a frontier vertex: heavy vertices hold up their warp",
    ),
    Strategy(
        name="bfs_4k",
        device="cuda",
        plan=levels(bfs_4k.Run, bfs_4k.step),
        memory=bfs_4k.memory,
        paper="Busato, Bombieri 2015 (BFS-4K)",
        teaches="the frontier's size chooses the kernel, the lanes a vertex gets, and the search for edges",
        knobs=Bfs4kKnobs,
    ),
    *papers.STRATEGIES,
)

MANY = (
    ManyStrategy(
        name="many_bits",
        device="cpu",
        plan=many_bits.plan,
        memory=many_bits.memory,
        group_size=many_bits.group_size,
        cost=many_bits.cost,
        paper="Then et al. 2014 (MS-BFS)",
        teaches="a bit a source: one walk over the edges serves hundreds of searches",
        default=True,
    ),
    ManyStrategy(
        name="many_queues",
        device="cpu",
        plan=many_queues.plan,
        memory=many_queues.memory,
        group_size=many_queues.group_size,
        cost=many_queues.cost,
        paper="Cormen, Leiserson, Rivest, Stein, section 22.2",
        teaches="where levels are many and small, a core a source needs no barrier",
        default=True,
    ),
    ManyStrategy(
        name="many_bits",
        device="cuda",
        plan=many_bits_gpu.plan,
        memory=many_bits_gpu.memory,
        group_size=many_bits_gpu.group_size,
        cost=many_bits_gpu.cost,
        needs=frozenset({"narrow"}),
        paper="Then et al. 2014 (MS-BFS)",
        teaches="a row of bits is one line of memory, and no source that is through holds up the others",
    ),
    ManyStrategy(
        name="many_blocks",
        device="cuda",
        plan=many_blocks.plan,
        memory=many_blocks.memory,
        group_size=many_blocks.group_size,
        cost=many_blocks.cost,
        needs=frozenset({"narrow"}),
        paper="Cormen, Leiserson, Rivest, Stein, section 22.2",
        teaches="where levels are many and small, a block a source needs no barrier of the grid",
    ),
)
