"""What is derived from a graph when it is first asked for, and kept with it: facts, copies in other
types, hierarchies.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import arguments
from .._arrays import EXACT_BELOW, MAX_INTEGER, Array, iter_slices, to_host
from ..cpu import csr_build
from ..cpu.topological_order import topological_order
from ..cuda import csr_build as csr_on_gpu
from ..cuda import graph_statistics
from ..cuda.host_edges import is_pinned
from ..errors import HierarchyError
from ..protocols import CsrBackend
from .closed import refuse_closed

if TYPE_CHECKING:
    from ..hierarchy.arrays import Hierarchy
    from ..hierarchy.canonical import CanonicalHierarchy
    from ..hub_labels.arrays import HubLabels
    from ..hub_labels.estimate import LabelEstimate

METRICS = ("weights", "hops")  # of hierarchies and labels
_LABELS = {metric: f"labels of {metric}" for metric in METRICS}  # their names in the cache
_FACTS_OF_EDGES = ("degrees", "max_degree", "topological_order")
# equal in copies with the same weights
_FACTS = (*_FACTS_OF_EDGES, "has_negative_weights", "heaviest")
# held while a reverse is built, so that threads that share a graph build one; reentrant, since a
# graph with its edges in host memory has the reverse of its copy there built
_REVERSING = threading.RLock()
_CONTRACTING = threading.RLock()  # the same for hierarchies and labels, which need hierarchies


def _computed_once(compute: Callable[[Any], Any]) -> property:
    """Return a property whose value is computed on first use and then kept in the cache of the
    graph.
    """
    name = compute.__name__

    @functools.wraps(compute)
    def get(derived: Derived) -> Any:
        if name not in derived.cache:
            derived.cache[name] = compute(derived)
        return derived.cache[name]

    return property(get)


class Derived:
    """What is derived from a graph: see ``Graph.derived``.

    ``cache`` maps names, such as those of properties, to what is derived; it belongs to the graph.
    A copy of a graph with other arrays begins with an empty one.
    """

    def __init__(self, graph: Any, cache: dict[str, Any]) -> None:
        self._graph = graph
        self.cache = cache

    @_computed_once
    def degrees(self) -> Array:
        """Out-degree of every vertex, int64."""
        offsets = self._graph.offsets
        if self._graph.device == "cuda":
            return graph_statistics.degrees(offsets)
        return np.diff(offsets)

    @_computed_once
    def max_degree(self) -> int:
        """The largest out-degree, 0 without vertices."""
        if self._graph.n_vertices:
            return int(self.degrees.max())
        return 0

    @_computed_once
    def topological_order(self) -> np.ndarray | None:
        """The vertices, in host memory, such that each edge leads to a later one; None if there is
        a cycle. A self-loop that the graph dropped is none.
        """
        if not self._graph.directed and self._graph.n_edges:
            return None
        return topological_order(self.on_host)

    @_computed_once
    def has_negative_weights(self) -> bool:
        """Whether an edge, or a self-loop that the graph dropped, has a weight below 0."""
        weights = self._graph.weights
        if weights is None:
            return False
        # The bits as signed integers have the sign of the weights, as none is -0.0.
        bits = weights.view(f"i{weights.itemsize}")
        lowest = min((int(part.min()) for _, part in iter_slices(bits)), default=0)
        return bool(self._graph.negative_loops) or lowest < 0

    @_computed_once
    def heaviest(self) -> float | int:
        """The largest absolute weight, 0 without edges; an int where weights are integers."""
        graph = self._graph
        if graph.weights is None or not graph.n_edges:
            return 0
        number = int if graph.integer_weights else float
        extents = [
            (number(values.min()), number(values.max())) for _, values in iter_slices(graph.weights)
        ]
        return max(max(abs(low), abs(high)) for low, high in extents)

    @property
    def max_sum(self) -> float | int:
        """A bound on the absolute sum of the weights of any path without a cycle."""
        return self.heaviest * max(self._graph.n_vertices - 1, 0)

    @_computed_once
    def min_weight(self) -> Any:
        """The smallest weight, a scalar of their type; infinite without edges."""
        weights: Array = self._graph.weights
        if not self._graph.n_edges:
            return weights.dtype.type(np.inf if weights.dtype.kind == "f" else MAX_INTEGER)
        # The bits of non-negative floats sort as integers in the order of the floats. They are
        # compared as integers because CuPy would treat subnormal numbers as 0.
        if self.has_negative_weights:
            keys = weights
        else:
            keys = weights.view(f"i{weights.itemsize}")
        smallest = min(to_host(part.min(keepdims=True))[0] for _, part in iter_slices(keys))
        return smallest.view(weights.dtype)

    @property
    def edges_on_host(self) -> bool:
        """Whether the graph is on a GPU, and its edges are in pinned memory of the host
        (``Graph.to``).
        """
        return is_pinned(self._graph.targets)

    @property
    def nbytes_on_device(self) -> int:
        """Bytes of the CSR arrays in the memory of the graph's device, without the ids."""
        graph = self._graph
        if self.edges_on_host:
            return int(graph.offsets.nbytes)
        return int(graph.nbytes)

    @property
    def reverse(self) -> Any:
        """The graph with every edge reversed; see ``Graph.reverse``."""
        graph = self._graph
        if not graph.directed:
            return graph
        with _REVERSING:
            if "reverse" not in self.cache:
                self.cache["reverse"] = self._build_reverse()
            return self.cache["reverse"]

    def _build_reverse(self) -> Any:
        """Return a new graph with every edge reversed, which knows no rows of the edge list."""
        graph = self._graph
        if self.edges_on_host:
            # The edges are in host memory, so the host reverses them.
            return graph.to("cpu").derived.reverse.to("cuda", edges="host")
        backend: CsrBackend = csr_on_gpu if graph.device == "cuda" else csr_build
        offsets, targets, weights = backend.transpose(graph.offsets, graph.targets, graph.weights)
        closed = graph.closed
        if closed is not None:
            closed = closed[::-1]  # paths now begin where they ended
        return replace(
            graph,
            offsets=offsets,
            targets=targets,
            weights=weights,
            edge_rows=None,
            edges_of_rows=None,
            closed=closed,
        )

    @_computed_once
    def rows_of_reverse(self) -> np.ndarray:
        """The rows of the edges by their positions in the reverse, of a graph in host memory.

        Rows are moved as weights are.
        """
        graph = self._graph
        if not graph.directed:
            return graph.edge_rows
        _, _, edge_rows = csr_build.transpose(graph.offsets, graph.targets, graph.edge_rows)
        return edge_rows

    def linked_reverse(self) -> Any:
        """Return the reverse, whose own reverse is this graph, so that reversing it builds no third
        graph.
        """
        reverse = self.reverse
        if self._graph.directed:
            reverse.derived.cache.setdefault("reverse", self._graph)
        return reverse

    def drop_reverse(self) -> None:
        """Release the memory of the reverse; it is built again when it is needed."""
        self.cache.pop("reverse", None)

    def with_reverse(self) -> Any:
        """Return the graph with its reverse built, which BFS from one source on a GPU then uses.

        Without the reverse, a BFS of a directed graph can only push along the edges that leave the
        frontier. With it, BFS can also pull over the edges that enter unreached vertices, which was
        up to 18 times faster on web graphs. Building the reverse takes longer than one search, so a
        plan for one source never builds it. An undirected graph is its own reverse. Results are the
        same.
        """
        if not self._graph.directed:
            return self._graph
        copy = self._copy(("fingerprint", "reverse", *_FACTS), may_pull=True)
        copy.derived.take_hierarchies(self._graph)
        _ = copy.reverse  # builds it
        return copy

    @_computed_once
    def on_host(self) -> Any:
        """The graph in host memory: itself, or a copy."""
        return self._graph.to("cpu")

    def sums_in(self, dtype: str) -> Any:
        """Return the graph with its weights in float32, float64 or int64, which must represent each
        exactly. It is kept.
        """
        name = arguments.choice("dtype", dtype, [str(kind) for kind in EXACT_BELOW])
        graph = self._graph
        if graph.weights.dtype == name:
            return graph
        if name not in self.cache:
            copy = self._copy(_FACTS, weights=graph.weights.astype(name))
            # kept before its reverse is made: the reverse of that may be this graph
            self.cache[name] = copy
            if graph.directed and "reverse" in self.cache:
                copy.derived.cache["reverse"] = self.cache["reverse"].derived.sums_in(name)
        self.cache[name].derived.take_hierarchies(graph)  # they may have been built after the copy
        return self.cache[name]

    def hierarchy(self, metric: str) -> Hierarchy:
        """Return the hierarchy, which is built on the first call; see ``Graph.hierarchy``."""
        from ..hierarchy.build import build_hierarchy

        metric = arguments.choice("metric", metric, METRICS)
        if metric == "hops":
            refuse_closed(self._graph, "a hierarchy of hops reads no weights")
        with _CONTRACTING:
            hierarchy = self.known_hierarchy(metric) or build_hierarchy(self._graph, metric)
            self.keep_hierarchy(hierarchy, metric)
            return hierarchy

    def known_hierarchy(self, metric: str) -> Hierarchy | None:
        """Return the hierarchy if it was built or loaded, or None. A reversed graph takes that of
        the other direction.
        """
        metric = arguments.choice("metric", metric, METRICS)
        if metric not in self.cache and self._graph.directed and "reverse" in self.cache:
            other = self.cache["reverse"].derived.cache.get(metric)
            if other is not None:
                self.keep_hierarchy(other.reversed(), metric)
        return self.cache.get(metric)

    def keep_hierarchy(self, hierarchy: Hierarchy, metric: str) -> None:
        """Keep a hierarchy of this graph that was built elsewhere."""
        self.cache[metric] = hierarchy

    def canonical_paths(
        self, hierarchy: Hierarchy, metric: str, build: bool
    ) -> CanonicalHierarchy | None:
        """Return the hierarchy of canonical paths of a graph in host memory, from its hierarchy; see
        ``hierarchy.canonical``. It is kept.

        None if there is none, or if it is not known and ``build`` is false.
        """
        from ..hierarchy.canonical import build_canonical

        name = f"canonical paths of {metric}"
        with _CONTRACTING:
            if build and name not in self.cache:
                self.cache[name] = build_canonical(self._graph, hierarchy, metric)
            return self.cache.get(name)

    def take_hierarchies(self, graph: Any, metrics: tuple[str, ...] = METRICS) -> None:
        """Take the hierarchies and labels of a graph with the same edges, and the same weights where
        they are of weights.
        """
        for metric in metrics:
            hierarchy = graph.derived.known_hierarchy(metric)
            if hierarchy is not None:
                self.keep_hierarchy(hierarchy, metric)
            labels = graph.derived.known_labels(metric)
            if labels is not None:
                self.keep_labels(labels, metric)

    def labels(self, metric: str) -> HubLabels:
        """Return the hub labels, which are built on the first call; see ``Graph.labels``."""
        from ..hub_labels.build import build_labels
        from ..hub_labels.estimate import refuse_long_labels
        from ..hub_labels.pruned import build_pruned

        metric = arguments.choice("metric", metric, METRICS)
        with _CONTRACTING:
            labels = self.known_labels(metric)
            if labels is None:
                estimate = self.estimate_labels(metric)
                refuse_long_labels(estimate)
                # Estimating has built the hierarchy, unless only pruned labels pay.
                hierarchy = self.known_hierarchy(metric)
                if hierarchy is None:
                    hierarchy, labels = build_pruned(self._graph.to("cpu"), metric)
                    self.keep_hierarchy(hierarchy, metric)
                else:
                    labels = build_labels(hierarchy, metric, estimate.rows_per_direction)
            self.keep_labels(labels, metric)
            return labels

    def estimate_labels(self, metric: str = "weights") -> LabelEstimate:
        """Estimate hubs, rows, bytes and seconds of the labels, in less than 2 s over the hierarchy,
        which is built first if there is none; or of pruned labels, if none would pay.
        """
        from ..hierarchy.build import why_not
        from ..hub_labels.estimate import estimate_labels
        from ..hub_labels.pruned import estimate_pruned, has_positive_lengths

        try:
            hierarchy = self.hierarchy(metric)
        except HierarchyError:
            if why_not(self._graph, metric) or not has_positive_lengths(self._graph, metric):
                raise
            return estimate_pruned(self._graph.to("cpu"), metric)
        return estimate_labels(hierarchy)

    def known_labels(self, metric: str) -> HubLabels | None:
        """Return the labels if they were built or loaded, or None. A reversed graph takes those of
        the other direction.
        """
        name = _LABELS[arguments.choice("metric", metric, METRICS)]
        if name not in self.cache and self._graph.directed and "reverse" in self.cache:
            other = self.cache["reverse"].derived.cache.get(name)
            if other is not None:
                self.keep_labels(other.reversed(), metric)
        return self.cache.get(name)

    def keep_labels(self, labels: HubLabels, metric: str) -> None:
        """Keep labels of this graph that were built elsewhere."""
        self.cache[_LABELS[metric]] = labels

    def without_hierarchy(self) -> Any:
        """Return the graph without its hierarchies and labels, which searches then cannot use; the
        graph itself keeps them.
        """
        copy = self._copy(("fingerprint", *_FACTS))
        if "reverse" in self.cache:
            copy.derived.cache["reverse"] = self.cache["reverse"].derived._copy(_FACTS)
        return copy

    def take_topology(self, graph: Any) -> None:
        """Take what a graph with the same edges and other weights has derived from its edges."""
        known = graph.derived.cache
        self.cache.update({name: known[name] for name in _FACTS_OF_EDGES if name in known})
        self.take_hierarchies(graph, ("hops",))

    def _copy(self, shared: tuple[str, ...], **changes: Any) -> Any:
        """Return a copy of the graph, with changes, whose cache begins with the names ``shared``."""
        copy = replace(self._graph, **changes)
        copy.derived.cache.update({name: self.cache[name] for name in shared if name in self.cache})
        return copy
