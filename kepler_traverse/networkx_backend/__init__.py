"""A backend of NetworkX: its functions of shortest paths and breadth-first search, answered by this
library.

NetworkX finds it by the entry point ``networkx.backends``. ``backend`` has one attribute per
function of NetworkX that is served, and what NetworkX's protocol asks for: ``can_run``,
``should_run``, ``convert_from_nx``, ``convert_to_nx``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import networkx as nx

from ..errors import CapacityError, PrecisionError
from ..networkx_info import get_info
from . import all_sources, loads, single_source, traversal
from .graph import KeplerGraph, convert_from_nx, convert_to_nx
from .refusals import can_run, should_run, warn_once
from .single_source import Paths

__all__ = ["KeplerGraph", "Paths", "backend", "convert_from_nx", "convert_to_nx"]

# all names of the modules that answer NetworkX's functions; each function has NetworkX's name
_OWN = (
    vars(all_sources)
    | vars(loads)
    | vars(single_source)
    | vars(traversal)
    | single_source.FROM_TABLE
)


def _with_parameters(name: str, answer: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the parameters of NetworkX's function ``name``.

    ``answer`` is this backend's function. It takes the values of all parameters by position, in
    NetworkX's order; the returned function fills in NetworkX's defaults.
    """
    # NetworkX exports this function under another name than the one by which it asks backends
    if name == "newman_betweenness_centrality":
        networkx_function = nx.load_centrality
    else:
        networkx_function = getattr(nx, name)
    signature = inspect.signature(networkx_function.orig_func)

    def function(*args: Any, **kwargs: Any) -> Any:
        """Answer a call of NetworkX's function, whose arguments may be given by name.

        ``args`` and ``kwargs`` are the arguments of the call. Raises TypeError if they do not fit
        NetworkX's signature.
        """
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        try:
            return answer(*bound.args)
        except (PrecisionError, CapacityError) as error:
            # upon this error NetworkX answers the call itself
            raise NotImplementedError(str(error)) from error

    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


FUNCTIONS = {name: _with_parameters(name, _OWN[name]) for name in get_info()["functions"]}


def _can_run(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool | str:
    """Return True, or the reason why the backend cannot answer a call as NetworkX does.

    ``name`` is NetworkX's function, called with ``args`` and ``kwargs``. Users are warned once of
    each reason; ``warn_once`` decides of which calls.
    """
    answer = can_run(FUNCTIONS, name, args, kwargs)
    warn_once(name, args, kwargs, answer)
    return answer


backend = SimpleNamespace(
    can_run=_can_run,
    should_run=should_run,
    convert_from_nx=convert_from_nx,
    convert_to_nx=convert_to_nx,
    **FUNCTIONS,
)
