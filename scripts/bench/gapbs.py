"""One source on a CPU beside the GAP Benchmark Suite (C++), each in a process of its own.

GAPBS names a checkout of it, which is built there. It finds parents of hops, and distances without predecessors, and so do
plans without predecessors here. Its threads wait actively, or passively, and delta-stepping has the width of buckets that
is the fastest from the first source.
"""

from __future__ import annotations

import os
from functools import partial

from scripts.bench import cpu
from scripts.measure.work import OURS, Call, Prepare

PACKAGES = ()
COUNTS = {"bfs": cpu.SINGLE, "sssp": cpu.SINGLE}
WAITS = {"GAPBS": "active", "GAPBS, passive threads": "passive"}


def prepare(wait: str, algorithm: str) -> Prepare:
    """As ``cpu.prepare``; the library reads how threads wait as it is loaded."""

    def of(case: cpu.Case) -> Call:
        os.environ["OMP_WAIT_POLICY"] = wait
        return cpu.prepare("GAPBS", algorithm, 1)(case)

    return of


def warm_up(peer: str, algorithm: str) -> None:
    if peer == OURS:
        cpu.warm_up(peer, algorithm)


WORKS = tuple(
    cpu.work_of(
        f"{algorithm}, one source",
        graph,
        case=partial(cpu.case_of, graph=graph, counts=COUNTS),
        peers={
            OURS: cpu.prepare(OURS, algorithm, 1),
            **{peer: prepare(wait, algorithm) for peer, wait in WAITS.items()},
        },
        warm_up=partial(warm_up, algorithm=algorithm),
    )
    for graph in cpu.GRAPHS
    for algorithm in COUNTS
)
