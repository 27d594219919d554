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

# what distances over a hierarchy or labels are: sums of weights, or numbers of edges
METRICS = ("weights", "hops")
# By metric, the names of labels in the cache. A hierarchy is there under the name of its metric.
_LABELS = {metric: f"labels of {metric}" for metric in METRICS}
# properties of ``Derived`` that are equal in copies with the same edges, whatever the weights
_FACTS_OF_EDGES = ("degrees", "max_degree", "topological_order")
# those that are equal in copies with the same weights, too
_FACTS = (*_FACTS_OF_EDGES, "has_negative_weights", "heaviest")
# held while a reverse is built, so that threads that share a graph build one; reentrant, since a
# graph with its edges in host memory has the reverse of its copy there built
_REVERSING = threading.RLock()
_CONTRACTING = threading.RLock()  # the same for hierarchies and labels, which need hierarchies


def _computed_once(compute: Callable[[Any], Any]) -> property:
    """Return a property of ``Derived`` whose value ``compute`` returns on first use, and which is
    then kept in the cache of the graph under the name of the function.

    ``functools.cached_property`` would lose it, as each ``Graph.derived`` is a new object.
    """
    name = compute.__name__

    @functools.wraps(compute)
    def get(derived: Derived) -> Any:
        if name not in derived.cache:
            derived.cache[name] = compute(derived)
        return derived.cache[name]

    return property(get)


class Derived:
    """What is derived from a graph on first use, and then kept with it: degrees, the reverse,
    copies in other types, hierarchies and labels.

    Attributes
    ----------
    cache : dict
        Maps names, such as those of properties and metrics, to what is derived. It belongs to the
        graph. A copy of a graph with other arrays begins with an empty one.
    """

    def __init__(self, graph: Any, cache: dict[str, Any]) -> None:
        self._graph = graph
        self.cache = cache

    @_computed_once
    def degrees(self) -> Array:
        """Out-degree of every vertex, int64 of shape (n_vertices,), on the graph's device."""
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
        """The vertex numbers in an order such that each edge leads to a later one, an array in host
        memory; None if there is a cycle. A self-loop that the graph dropped is no cycle.
        """
        if not self._graph.directed and self._graph.n_edges:
            return None  # an undirected edge leads there and back
        return topological_order(self.on_host)

    @_computed_once
    def has_negative_weights(self) -> bool:
        """Whether an edge, or a self-loop that the graph dropped, has a weight below 0."""
        weights = self._graph.weights
        if weights is None:
            return False
        # The bits as signed integers have the sign of the weights, as none is -0.0. CuPy would
        # compare subnormal weights as 0.
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
        # The smallest and the largest weight of each slice: one of them has the largest magnitude.
        # As numbers of Python they do not overflow when the sign changes.
        extents = [
            (number(values.min()), number(values.max())) for _, values in iter_slices(graph.weights)
        ]
        return max(max(abs(low), abs(high)) for low, high in extents)

    @property
    def max_sum(self) -> float | int:
        """A bound on the absolute sum of the weights of any path without a cycle, which has at most
        n_vertices - 1 edges.
        """
        return self.heaviest * max(self._graph.n_vertices - 1, 0)

    @_computed_once
    def min_weight(self) -> Any:
        """The smallest weight, a scalar of their type. Without edges it is infinity, or 2^63 - 1
        for integers.
        """
        weights: Array = self._graph.weights
        if not self._graph.n_edges:
            return weights.dtype.type(np.inf if weights.dtype.kind == "f" else MAX_INTEGER)
        # The bits of non-negative floats sort as integers in the order of the floats. They are
        # compared as integers because CuPy would treat subnormal numbers as 0.
        if self.has_negative_weights:
            keys = weights
        else:
            keys = weights.view(f"i{weights.itemsize}")
        # An array of one element per slice, whose scalar keeps the type that its bits are read in.
        smallest = min(to_host(part.min(keepdims=True))[0] for _, part in iter_slices(keys))
        return smallest.view(weights.dtype)

    @property
    def edges_on_host(self) -> bool:
        """Whether the graph is on a GPU and its edges are in pinned memory of the host, as
        ``Graph.to("cuda", edges="host")`` puts them.
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
        """The graph with every edge reversed, which is built on first use and kept. An undirected
        graph is its own reverse.
        """
        graph = self._graph
        if not graph.directed:
            return graph
        with _REVERSING:  # another thread may be building it
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
        """The row of the edge list of each edge of the reverse, in the order of its ``targets``: an
        integer array of shape (n_edges,).

        The graph is in host memory, and knows its ``edge_rows``.
        """
        graph = self._graph
        if not graph.directed:
            return graph.edge_rows
        # Reversing moves weights with their edges, so rows are given in place of weights.
        _, _, edge_rows = csr_build.transpose(graph.offsets, graph.targets, graph.edge_rows)
        return edge_rows

    def linked_reverse(self) -> Any:
        """Return the reverse, and keep this graph as its reverse, so that reversing it again builds
        no third graph.
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
        # All arrays are those of the graph, so that what is derived from them holds for the copy.
        copy = self._copy(("fingerprint", "reverse", *_FACTS), may_pull=True)
        copy.derived.take_hierarchies(self._graph)
        _ = copy.reverse  # builds it
        return copy

    @_computed_once
    def on_host(self) -> Any:
        """The graph in host memory: itself, or a copy."""
        return self._graph.to("cpu")

    def sums_in(self, dtype: str) -> Any:
        """Return the graph with its weights in the type ``dtype``: itself if they are of this type,
        else a copy, which is kept. A search of the copy sums weights in ``dtype``.

        ``dtype`` is "float32", "float64" or "int64", and must represent each weight exactly.
        """
        name = arguments.choice("dtype", dtype, [str(kind) for kind in EXACT_BELOW])
        graph = self._graph
        if graph.weights.dtype == name:
            return graph
        if name not in self.cache:
            # The copy begins with facts such as degrees alone; the rest follows below.
            copy = self._copy(_FACTS, weights=graph.weights.astype(name))
            # The copy is kept before the reverse is converted. The reverse may have this graph as
            # its own reverse, and then asks this graph for the same copy. If the copy were not
            # there yet, the two calls would call each other without an end.
            self.cache[name] = copy
            if graph.directed and "reverse" in self.cache:
                copy.derived.cache["reverse"] = self.cache["reverse"].derived.sums_in(name)
        self.cache[name].derived.take_hierarchies(graph)  # they may have been built after the copy
        return self.cache[name]

    def hierarchy(self, metric: str) -> Hierarchy:
        """Return the contraction hierarchy of a metric, "weights" or "hops", which is built on the
        first call and kept.

        InputError or HierarchyError if the graph can have none; see ``Graph.hierarchy``.
        """
        from ..hierarchy.build import build_hierarchy

        metric = arguments.choice("metric", metric, METRICS)
        if metric == "hops":
            # The edge from a closed vertex to itself has weight 0, but would count as a hop.
            refuse_closed(self._graph, "a hierarchy of hops reads no weights")
        with _CONTRACTING:  # another thread may be building it
            hierarchy = self.known_hierarchy(metric) or build_hierarchy(self._graph, metric)
            self.keep_hierarchy(hierarchy, metric)
            return hierarchy

    def known_hierarchy(self, metric: str) -> Hierarchy | None:
        """Return the hierarchy of a metric if it was built or loaded, or None; nothing is built.

        If the graph has none but its reverse has one, the hierarchy of the reverse is turned around
        and kept, which takes no contraction.
        """
        metric = arguments.choice("metric", metric, METRICS)
        if metric not in self.cache and self._graph.directed and "reverse" in self.cache:
            other = self.cache["reverse"].derived.cache.get(metric)
            if other is not None:
                self.keep_hierarchy(other.reversed(), metric)
        return self.cache.get(metric)

    def keep_hierarchy(self, hierarchy: Hierarchy, metric: str) -> None:
        """Keep a hierarchy of this graph for a metric, in place of the one that is known."""
        self.cache[metric] = hierarchy

    def canonical_paths(
        self, hierarchy: Hierarchy, metric: str, build: bool
    ) -> CanonicalHierarchy | None:
        """Return a hierarchy whose shortcuts stand for canonical paths, so that other columns of
        the edges can be summed along these. It is kept.

        The canonical path to a vertex is the one that comes from its smallest predecessor, and so
        on back to the source. The graph is in host memory, and ``hierarchy`` is its hierarchy for
        ``metric``. Return None if none is known and ``build`` is false, if an edge has a length of
        0, or if ties would make it much larger than that hierarchy.
        """
        from ..hierarchy.canonical import build_canonical

        name = f"canonical paths of {metric}"
        with _CONTRACTING:
            if build and name not in self.cache:
                # None is kept, too, so that what does not pay is not tried again.
                self.cache[name] = build_canonical(self._graph, hierarchy, metric)
            return self.cache.get(name)

    def take_hierarchies(self, graph: Any, metrics: tuple[str, ...] = METRICS) -> None:
        """Keep the known hierarchies and labels of another graph for some metrics.

        ``graph`` has the same edges, and for the metric "weights" the same weights.
        """
        for metric in metrics:
            hierarchy = graph.derived.known_hierarchy(metric)
            if hierarchy is not None:
                self.keep_hierarchy(hierarchy, metric)
            labels = graph.derived.known_labels(metric)
            if labels is not None:
                self.keep_labels(labels, metric)

    def labels(self, metric: str) -> HubLabels:
        """Return the hub labels of a metric, "weights" or "hops", which are built on the first call
        and kept.

        HierarchyError if the graph can have none, or they would be too long; see ``Graph.labels``.
        """
        from ..hub_labels.build import build_labels
        from ..hub_labels.estimate import refuse_long_labels
        from ..hub_labels.pruned import build_pruned

        metric = arguments.choice("metric", metric, METRICS)
        with _CONTRACTING:
            labels = self.known_labels(metric)
            if labels is None:
                estimate = self.estimate_labels(metric)
                # HierarchyError if they do not pay, or do not fit in free memory
                refuse_long_labels(estimate)
                # Estimating has built the hierarchy, unless only pruned labels pay.
                hierarchy = self.known_hierarchy(metric)
                if hierarchy is None:
                    # labels of the vertices by falling degree, and a hierarchy of the same order
                    hierarchy, labels = build_pruned(self._graph.to("cpu"), metric)
                    self.keep_hierarchy(hierarchy, metric)
                else:
                    # The last argument is how many pairs of vertex and hub get memory at first.
                    labels = build_labels(hierarchy, metric, estimate.rows_per_direction)
            self.keep_labels(labels, metric)
            return labels

    def estimate_labels(self, metric: str = "weights") -> LabelEstimate:
        """Return an estimate of the hubs, rows, bytes and seconds of the labels of a metric.

        It takes less than 2 s over the hierarchy, which is built first if there is none. If a
        hierarchy does not pay, the estimate is of pruned labels, which need none. HierarchyError if
        the graph can have neither.
        """
        from ..hierarchy.build import why_not
        from ..hub_labels.estimate import estimate_labels
        from ..hub_labels.pruned import estimate_pruned, has_positive_lengths

        try:
            hierarchy = self.hierarchy(metric)
        except HierarchyError:
            # Contracting was given up as it does not pay. A graph that meets no condition of a
            # hierarchy, or has edges of weight 0, has no pruned labels either.
            # ``why_not`` returns the condition that the graph does not meet, None if it meets all.
            if why_not(self._graph, metric) or not has_positive_lengths(self._graph, metric):
                raise
            return estimate_pruned(self._graph.to("cpu"), metric)
        return estimate_labels(hierarchy)

    def known_labels(self, metric: str) -> HubLabels | None:
        """Return the hub labels of a metric if they were built or loaded, or None; nothing is
        built.

        If the graph has none but its reverse has some, the labels of the reverse are turned around
        and kept.
        """
        name = _LABELS[arguments.choice("metric", metric, METRICS)]
        if name not in self.cache and self._graph.directed and "reverse" in self.cache:
            other = self.cache["reverse"].derived.cache.get(name)
            if other is not None:
                self.keep_labels(other.reversed(), metric)
        return self.cache.get(name)

    def keep_labels(self, labels: HubLabels, metric: str) -> None:
        """Keep hub labels of this graph for a metric, in place of those that are known."""
        self.cache[_LABELS[metric]] = labels

    def without_hierarchy(self) -> Any:
        """Return the graph without its hierarchies and labels, which searches then cannot use; the
        graph itself keeps them.
        """
        copy = self._copy(("fingerprint", *_FACTS))
        # The reverse is copied without hierarchies, too. Else ``known_hierarchy`` of the copy would
        # turn around the hierarchies of its reverse.
        if "reverse" in self.cache:
            copy.derived.cache["reverse"] = self.cache["reverse"].derived._copy(_FACTS)
        return copy

    def take_topology(self, graph: Any) -> None:
        """Keep what another graph, with the same edges and other weights, has derived from its
        edges alone: degrees, the topological order, and hierarchies and labels of hops.
        """
        known = graph.derived.cache
        self.cache.update({name: known[name] for name in _FACTS_OF_EDGES if name in known})
        self.take_hierarchies(graph, ("hops",))

    def _copy(self, shared: tuple[str, ...], **changes: Any) -> Any:
        """Return a copy of the graph in which the fields ``changes`` have other values.

        Its cache begins with the entries of this one that have the names ``shared``.
        """
        copy = replace(self._graph, **changes)
        copy.derived.cache.update({name: self.cache[name] for name in shared if name in self.cache})
        return copy
