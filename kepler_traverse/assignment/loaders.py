"""The way to all-or-nothing flows that takes less time."""

from __future__ import annotations

import numpy as np

from .all_or_nothing import Ground, Loader, SearchLoader, SweepLoader
from .problem import Problem
from .sweep_loader_gpu import SweepLoaderOnGpu


def make_loader(problem: Problem, is_selected: np.ndarray | None, device: str) -> Loader:
    """Return the way that takes less time, by the links and the trips alone: both ways may take other
    paths where several are equal, and flows do not depend on the device.

    New weights take one pass over the triangles of a hierarchy per class, and searches visit all links
    per origin and class. A visit of a link takes as long as several triangles. A CPU searches, and
    sweeps over hierarchies that a GPU does not take.
    """
    n_groups = problem.demand.origin.size
    n_visits = n_groups * problem.network.n_links // len(problem.classes)
    ground = Ground.of(problem, most_triangles=n_visits)
    if ground is None:
        return SearchLoader(problem, is_selected)
    if device == "cuda":
        on_gpu = SweepLoaderOnGpu.of(problem, ground, is_selected)
        if on_gpu is not None:
            return on_gpu
    return SweepLoader(problem, ground, is_selected)
