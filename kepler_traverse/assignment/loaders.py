"""The way to all-or-nothing flows that takes less time."""

from __future__ import annotations

import numpy as np

from .all_or_nothing import Ground, Loader, SearchLoader, SweepLoader
from .problem import Problem
from .sweep_loader_gpu import SweepLoaderOnGpu


def make_loader(problem: Problem, is_selected: np.ndarray | None, device: str) -> Loader:
    """Return the way to all-or-nothing flows that takes less time.

    The links and the trips alone decide between searches and sweeps: the two may take other paths
    where several are equal, and flows must not depend on the device.

    New weights take one pass over the triangles of a hierarchy per class. Searches visit all links
    per group, which is an origin of a class, and a visit of a link takes as long as several
    triangles. The CPU searches, and sweeps over hierarchies with too many levels for a GPU.
    ``is_selected`` (n_links,) bool: the links of select link; None without.
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
