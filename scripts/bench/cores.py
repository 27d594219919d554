"""How searches on a CPU gain by more cores. Each measurement is a process of its own that may use the first N cores."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator
from functools import partial

from scripts.bench.cpu import Case, case_of, strategy_of
from scripts.bench.libraries import LIBRARIES, digest
from scripts.measure.environment import timed
from scripts.measure.work import ONCE, OURS, Baseline, Call, Inputs, Prepare, Timed, Work

PACKAGES = ("networkit", "igraph")
GRAPHS = ("USA-road-NE", "cnr-2000", "dblp-2010")
SOURCES = {"bfs": 256, "sssp": 32}
RUNS = 3


def prepare(library: str, algorithm: str) -> Prepare:
    """Prepare a call that searches several times; the first time compiles and plans, and is not counted. Others run once."""

    def of(case: Case) -> Call:
        run = LIBRARIES[library](case.rows, algorithm, case.directed)
        sources = case.rows.sources[: SOURCES[algorithm]]

        def several() -> Timed:
            distances, taken = timed(run, sources)
            digests = list(map(digest, distances))
            if library == OURS:
                taken = statistics.median(timed(run, sources)[1] for _ in range(RUNS))
            return Timed(digests, taken, strategy_of(run))

        return several

    return of


def peer(library: str, algorithm: str, cores: int) -> Baseline:
    return Baseline(prepare=prepare(library, algorithm), cores=cores, facts={"cores": cores})


def works(_inputs: Inputs) -> Iterator[Work]:
    """Yield searches by this library on 1, 2, 4 cores and so on, and beside others: igraph uses one core."""
    available = len(os.sched_getaffinity(0))
    counts = [1 << bit for bit in range(available.bit_length()) if 1 << bit <= available]
    beside = {OURS: available, "NetworKit": available, "igraph": 1}
    for graph in GRAPHS:
        for algorithm, count in SOURCES.items():
            name = f"{algorithm}, {count} sources"
            given = {
                "graph": graph,
                "size": count,
                "case": partial(case_of, graph=graph),
                "repeats": ONCE,
                "in_a_process": True,
                "limit": 120.0,
            }
            own = {f"{OURS}, {cores} cores": peer(OURS, algorithm, cores) for cores in counts}
            yield Work(name=name, peers=own, **given)
            others = {library: peer(library, algorithm, n) for library, n in beside.items()}
            yield Work(name=f"{name}, libraries", peers=others, **given)
