"""A backend of NetworkX: its functions of shortest paths and breadth-first search, answered by this library.

NetworkX finds it by the entry point ``networkx.backends``. ``backend`` has one attribute per function of NetworkX that is
served, and what NetworkX's protocol asks for: ``can_run``, ``should_run``, ``convert_from_nx``, ``convert_to_nx``.
"""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

from ..networkx_info import get_info
from . import all_sources, loads, single_source, traversal
from .graph import KeplerGraph, convert_from_nx, convert_to_nx
from .refusals import can_run, should_run
from .single_source import Paths

__all__ = ["KeplerGraph", "Paths", "backend", "convert_from_nx", "convert_to_nx"]

_OWN = vars(all_sources) | vars(loads) | vars(single_source) | vars(traversal) | single_source.FROM_TABLE
FUNCTIONS = {name: _OWN[name] for name in get_info()["functions"]}

backend = SimpleNamespace(
    can_run=partial(can_run, FUNCTIONS),
    should_run=should_run,
    convert_from_nx=convert_from_nx,
    convert_to_nx=convert_to_nx,
    **FUNCTIONS,
)
