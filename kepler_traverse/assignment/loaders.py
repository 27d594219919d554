"""The way to all-or-nothing flows that takes less time."""

from __future__ import annotations

import numpy as np

from .all_or_nothing import Ground, Loader, SearchLoader, SweepLoader
from .problem import Problem
from .sweep_loader_gpu import SweepLoaderOnGpu


def make_loader(problem: Problem, is_selected: np.ndarray | None, device: str) -> Loader:
    """Return the faster of two ways to put all trips on their shortest paths: a search per origin,
    or sweeps over a contraction hierarchy (``SweepLoader``).

    The links and the trips alone decide between the two, not the device. Where several paths are
    equally short, the two may take different ones, and flows must not depend on the device.

    The time of a hierarchy is that of one pass per class over its triangles (two arcs of a vertex,
    and the arc that joins their heads). Searches visit all links once per group (a class and an
    origin), and a visit of a link takes as long as several triangles. So a hierarchy is taken if it
    has no more triangles than the searches of a class visit links.

    ``is_selected`` (n_links,) bool: the links of select link; None without. ``device`` is ``"cpu"``
    or ``"cuda"``. Searches are always on the CPU, and so are sweeps over a hierarchy with too many
    levels for a GPU.
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
