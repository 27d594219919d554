"""Many-source graph traversal on GPUs and CPUs: BFS hops and shortest distances, with a certificate
for each result.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api.components import components
    from .api.path_frames import paths
    from .api.registry import strategies
    from .api.snapping import snap
    from .bfs import bfs, bfs_many, bfs_pairs, plan_bfs, plan_bfs_many
    from .certificate import Certificate, certify, certify_many
    from .errors import (
        CapacityError,
        CertificateError,
        DeviceError,
        EdgeListError,
        ForkError,
        FrontierOverflowError,
        HierarchyError,
        InputError,
        KeplerError,
        NegativeCycleError,
        OutputError,
        PrecisionError,
        StrategyError,
        UnknownVertexError,
    )
    from .formats.geoparquet import write_geoparquet
    from .graph import Graph
    from .graph.edges import graph_from_edges
    from .graph.integer_weights import integer_weights
    from .graph.new_weights import with_weights
    from .graph.read import read_graph
    from .graph.storage import load_graph, save_graph
    from .multi_source.planning import MultiSourcePlan
    from .search.plan import Plan
    from .search.results import Traversal, Traversals
    from .sssp import plan_sssp, plan_sssp_many, sssp, sssp_many, sssp_pairs

# pyproject.toml reads this line without importing anything; a plain checkout has it, too.
__version__ = "0.1.0"

__all__ = [
    "CapacityError",
    "Certificate",
    "CertificateError",
    "DeviceError",
    "EdgeListError",
    "ForkError",
    "FrontierOverflowError",
    "Graph",
    "HierarchyError",
    "InputError",
    "KeplerError",
    "MultiSourcePlan",
    "NegativeCycleError",
    "OutputError",
    "Plan",
    "PrecisionError",
    "StrategyError",
    "Traversal",
    "Traversals",
    "UnknownVertexError",
    "bfs",
    "bfs_many",
    "bfs_pairs",
    "certify",
    "certify_many",
    "components",
    "graph_from_edges",
    "integer_weights",
    "load_graph",
    "paths",
    "plan_bfs",
    "plan_bfs_many",
    "plan_sssp",
    "plan_sssp_many",
    "read_graph",
    "save_graph",
    "snap",
    "sssp",
    "sssp_many",
    "sssp_pairs",
    "strategies",
    "with_weights",
    "write_geoparquet",
]

# The names of each module, which is imported when one of them is first used: NumPy and Numba take
# most of a second.
_NAMES = {
    "errors": tuple(name for name in __all__ if name.endswith("Error")),
    "api.components": ("components",),
    "api.path_frames": ("paths",),
    "api.registry": ("strategies",),
    "api.snapping": ("snap",),
    "bfs": ("bfs", "bfs_many", "bfs_pairs", "plan_bfs", "plan_bfs_many"),
    "certificate": ("Certificate", "certify", "certify_many"),
    "formats.geoparquet": ("write_geoparquet",),
    "graph": ("Graph",),
    "graph.edges": ("graph_from_edges",),
    "graph.integer_weights": ("integer_weights",),
    "graph.new_weights": ("with_weights",),
    "graph.read": ("read_graph",),
    "graph.storage": ("load_graph", "save_graph"),
    "multi_source.planning": ("MultiSourcePlan",),
    "search.plan": ("Plan",),
    "search.results": ("Traversal", "Traversals"),
    "sssp": ("plan_sssp", "plan_sssp_many", "sssp", "sssp_many", "sssp_pairs"),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}  # module by name


def __getattr__(name: str) -> Any:
    """Return a public name, for which Python calls this where the module does not have it yet:
    import its module and keep the value, so that Python finds it from then on.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    """Return the names of this module, those that are not imported yet included."""
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    """The type of this module, in which ``bfs`` and ``sssp`` stay functions.

    There are subpackages of the same names. When Python imports one, it sets the attribute of this
    module to the subpackage, which ``__setattr__`` prevents.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, unless it would replace a public function by a subpackage."""
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
