"""The way to all-or-nothing flows that takes less time."""

from __future__ import annotations

import numpy as np

from ..errors import InputError, option_text
from .all_or_nothing import Ground, Loader, SearchLoader, SweepLoader
from .problem import Problem
from .sweep_loader_gpu import SweepLoaderOnGpu


def make_loader(problem: Problem, is_selected: np.ndarray | None, device: str) -> Loader:
    """Return the way that takes less time; on a GPU InputError for a network without a hierarchy.

    New weights take one pass over the triangles of a hierarchy per class, and searches visit all links
    per origin and class. A visit of a link takes as long as several triangles.
    """
    n_groups = problem.demand.origin.size
    n_visits = n_groups * problem.network.n_links // len(problem.classes)
    ground = Ground.of(problem, most_triangles=n_visits)
    if device == "cuda":
        if ground is None:
            raise InputError(
                f"{option_text('device', 'cuda')}: a GPU needs a hierarchy, and searches take less time "
                f"on these links and trips; leave {option_text('device')} out"
            )
        return SweepLoaderOnGpu(problem, ground)
    if ground is None:
        return SearchLoader(problem, is_selected)
    return SweepLoader(problem, ground, is_selected)
