"""Many-source graph traversal on GPUs and CPUs: BFS hops and shortest distances, with a certificate for each result."""

from .bfs import bfs, bfs_many, plan_bfs, plan_bfs_many
from .certificate import Certificate, certify, certify_many
from .edges import graph_from_edges
from .errors import (
    CapacityError,
    CertificateError,
    DeviceError,
    EdgeListError,
    ForkError,
    FrontierOverflowError,
    InputError,
    KeplerError,
    NegativeCycleError,
    OutputError,
    PrecisionError,
    StrategyError,
    UnknownVertexError,
)
from .frames import paths
from .graph import Graph
from .multi_source.planning import MultiSourcePlan
from .plan import Plan
from .read import read_graph
from .registry import strategies
from .results import Traversal, Traversals
from .sssp import plan_sssp, plan_sssp_many, sssp, sssp_many

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
    "certify",
    "certify_many",
    "graph_from_edges",
    "paths",
    "plan_bfs",
    "plan_bfs_many",
    "plan_sssp",
    "plan_sssp_many",
    "read_graph",
    "sssp",
    "sssp_many",
    "strategies",
]
