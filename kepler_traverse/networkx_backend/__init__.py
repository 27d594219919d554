"""A backend of NetworkX: its functions of shortest paths and breadth-first search, answered by this library.

NetworkX finds it by the entry point ``networkx.backends``. ``backend`` has one attribute per function of NetworkX that is
served, and what NetworkX's protocol asks for: ``can_run``, ``should_run``, ``convert_from_nx``, ``convert_to_nx``.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

from . import all_sources, single_source, traversal
from .graph import KeplerGraph, convert_from_nx, convert_to_nx
from .lazy_paths import Paths
from .refusals import can_run, should_run

__all__ = ["KeplerGraph", "Paths", "backend", "convert_from_nx", "convert_to_nx"]

FUNCTIONS = {
    function.__name__: function for function in (*all_sources.FUNCTIONS, *single_source.FUNCTIONS, *traversal.FUNCTIONS)
}

backend = SimpleNamespace(
    can_run=partial(can_run, FUNCTIONS),
    should_run=should_run,
    convert_from_nx=convert_from_nx,
    convert_to_nx=convert_to_nx,
    **FUNCTIONS,
)
