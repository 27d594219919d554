"""Searches on all cores beside NetworKit, whose all-pairs searches use them, and igraph, which uses one."""

from __future__ import annotations

import os
from collections.abc import Iterator

from scripts.bench.cores import PACKAGES, peer, works_of
from scripts.measure.work import OURS, Baseline, Inputs, Work

__all__ = ["PACKAGES", "works"]


def works(_inputs: Inputs) -> Iterator[Work]:
    available = len(os.sched_getaffinity(0))

    def beside(algorithm: str) -> dict[str, Baseline]:
        cores = {OURS: available, "NetworKit": available, "igraph": 1}
        return {library: peer(library, algorithm, count) for library, count in cores.items()}

    return works_of(beside)
