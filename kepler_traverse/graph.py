"""The graph that every traversal reads: an immutable CSR and the user's vertex ids."""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import InitVar, asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from . import arguments, cuda
from ._arrays import EXACT_BELOW, MAX_INTEGER, Array, device_of, iter_slices, to_host
from .algorithms import ALGORITHMS
from .cpu import csr_build
from .cuda import csr_build as csr_on_gpu
from .cuda import graph_statistics
from .display import graph_rows, html_table
from .errors import DeviceError, InputError, UnknownVertexError, option_text
from .protocols import CsrBackend

if TYPE_CHECKING:
    from .hierarchy.arrays import Hierarchy

_FEW_NAMES = 64  # up to this many strings, a binary search for each is faster than hashing all ids
_HASHED_AT_ONCE = 1 << 16  # strings per update of the fingerprint
_EXPLAINED = 3  # unknown ids for which an error names the nearest known ones
_COMPARED_NAMES = 2000  # known names that an unknown name is compared with
_COMPARED_LENGTH = 200  # characters of a name that are compared
_HIERARCHIES = {"weights": "_hierarchy", "hops": "_hop_hierarchy"}  # where each is kept, by its metric
_CACHED = ("degrees", "max_degree", "has_negative_weights", "heaviest")  # equal in copies with the same edges
_REVERSING = threading.RLock()  # held while a reverse is built, so that threads that share a graph build one
_CONTRACTING = threading.RLock()  # the same for a hierarchy


@dataclass(frozen=True, kw_only=True)
class BuildReport:
    """What building a graph changed in the edge list, with a count of each repair.

    Attributes
    ----------
    rows : int
        Records of the edge list, those that a filter left out included.
    filtered_rows : int
        Records that a filter left out (``where``, ``only_vertices``).
    self_loops : int
        Records dropped because both ends are the same vertex.
    parallel_edges : int
        Edges dropped because an edge of smaller or equal weight joins the same two vertices. In an undirected graph
        this includes the edge of larger weight where both directions are listed.
    negative_zeros : int
        Weights of -0.0 that became 0.0.
    isolated_vertices : int
        Vertices without an edge in the graph.
    weight_source : str
        Type of the weights in the input, ``""`` without weights.
    src_column, dst_column, weight_column : str
        Columns of the files that the edges were read from. ``"0"`` is the first column of a text file without names;
        ``""`` means no column.
    oneway_column : str
        The column of directions, ``""`` without one.
    where : str
        The filter of rows, ``""`` without one.
    unused_columns : tuple of str
        Columns that were not read.
    unused_numbers : tuple of str
        Unused columns that are known to hold numbers.
    seconds : dict of str to float
        Seconds to ``read`` the edge list and to ``build`` the graph. Empty for a graph that was not made from files.
        A comparison of two reports ignores this field.
    """

    rows: int = 0
    filtered_rows: int = 0
    self_loops: int = 0
    parallel_edges: int = 0
    negative_zeros: int = 0
    isolated_vertices: int = 0
    weight_source: str = ""
    src_column: str = ""
    dst_column: str = ""
    weight_column: str = ""
    oneway_column: str = ""
    where: str = ""
    unused_columns: tuple[str, ...] = ()
    unused_numbers: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        # A stored graph holds its report as JSON, which has lists but no tuples.
        for name in ("unused_columns", "unused_numbers"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def facts(self) -> dict[str, Any]:
        """The report as a dict without ``seconds``. It is equal for equal edge lists, so it can be stored."""
        return {name: value for name, value in asdict(self).items() if name != "seconds"}

    def with_columns(self, columns: Any) -> BuildReport:
        """Return a copy that names the columns of a ``formats.EdgeColumns``."""
        return replace(
            self,
            src_column=columns.src,
            dst_column=columns.dst,
            weight_column=columns.weight or "",
            oneway_column=columns.oneway or "",
            where=columns.where,
            unused_columns=columns.unused,
            unused_numbers=columns.unused_numbers,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """A directed or undirected graph in compressed sparse rows, on the CPU or on a GPU.

    Make one with ``read_graph`` or ``graph_from_edges``, which handle duplicates, self-loops and ids. The library
    identifies a vertex by its number 0..n-1. ``ids`` holds the user's id of each number, in ascending order.

    Attributes
    ----------
    offsets : int64 array of shape (n_vertices + 1,)
        The adjacency list of vertex v is ``targets[offsets[v]:offsets[v + 1]]``.
    targets : int32 or int64 array of shape (n_edges,)
        Ascending within an adjacency list, without duplicates and self-loops.
    weights : array of shape (n_edges,) or None
        float32 or float64. Integer weights have the narrowest of float32, float64 and int64 that represents each
        weight exactly.
    ids : integer array on the same device, or pyarrow strings (always on the host), of shape (n_vertices,)
        Ascending; strings by their UTF-8 bytes.
    directed : bool
        False means that every edge is stored in both directions with the same weight.
    report : BuildReport
    integer_weights : bool
        Whether the weights are integers. If so, every distance is an exact sum, or the search raises an error.
    float_distances : bool
        Whether distances of integer weights are returned as floats of the weights' type, because the caller chose
        that type.
    negative_loops : dict of int to int or float
        Maps the number of each vertex with a self-loop of negative weight to that weight. A search that reaches such
        a vertex has no result.
    may_pull : bool
        Whether a BFS from one source may use the reverse of a directed graph; see ``with_reverse``.
    edge_rows : integer array of shape (n_edges,) or None
        With ``edge_ids=True``: the row of the edge list that each stored edge is, counted from 0 over all rows of all
        files, those included that a filter left out. Of parallel edges it is the row of the smallest weight, the first of
        several such rows. 4 bytes per stored edge, 8 if the edge list has 2^31 rows or more.
    edges_of_rows : integer array of shape (1 or 2, rows) or None
        With ``edge_ids=True``, if self-loops, parallel edges or a filter left rows without a stored edge of their own:
        positions in ``targets`` of the edge of each row and, where rows can be edges in both directions, of the edge
        back. ``-1 - v`` for a self-loop of vertex v, and ``-1 - n_vertices`` for no edge. 4 bytes per element, or 8.

    Parameters
    ----------
    known_fingerprint : str, optional
        The ``fingerprint``, where it is known already: computing it takes seconds for a large graph. Copies with other
        arrays do not inherit it.
    """

    offsets: Array
    targets: Array
    weights: Array | None
    ids: Any
    directed: bool = True
    report: BuildReport = field(default_factory=BuildReport)
    integer_weights: bool = False
    float_distances: bool = False
    negative_loops: dict[int, Any] = field(default_factory=dict)
    may_pull: bool = False
    edge_rows: Array | None = None
    edges_of_rows: Array | None = None
    known_fingerprint: InitVar[str | None] = None
    # Made on first use. Copies with other arrays do not inherit them, since they are no parameters.
    _reverse: Graph | None = field(init=False, default=None, repr=False)
    _with_sums_in: dict[str, Graph] | None = field(init=False, default=None, repr=False)
    _hierarchy: Any = field(init=False, default=None, repr=False)
    _hop_hierarchy: Any = field(init=False, default=None, repr=False)

    def __post_init__(self, known_fingerprint: str | None) -> None:
        for name, kinds, width in (("offsets", "i", (8,)), ("targets", "i", (4, 8)), ("weights", "iuf", (1, 2, 4, 8))):
            array = getattr(self, name)
            if array is None and name == "weights":
                continue
            is_array = type(array) is np.ndarray or device_of(array) == "cuda"
            if not is_array or array.dtype.kind not in kinds or array.dtype.itemsize not in width or array.ndim != 1:
                raise InputError(f"{name} must be an array as read_graph makes it, not {arguments.describe(array)}")
        if not self.offsets.size or (self.weights is not None and self.weights.size != self.targets.size):
            raise InputError("offsets must have n_vertices + 1 elements, and weights as many as targets")
        is_array = type(self.ids) is np.ndarray or device_of(self.ids) == "cuda" or hasattr(self.ids, "to_pylist")
        if not is_array or getattr(self.ids, "ndim", 1) != 1 or len(self.ids) != self.n_vertices:
            raise InputError(
                f"ids must be an array of {self.n_vertices} ids, one fewer than offsets, not {arguments.describe(self.ids)}"
            )
        if not self.has_string_ids and self.ids.dtype.kind not in "iu":
            raise InputError(f"ids must be integers or pyarrow strings, not {self.ids.dtype}")
        for name in ("directed", "integer_weights", "float_distances", "may_pull"):
            arguments.flag(name, getattr(self, name))
        arguments.instance("negative_loops", self.negative_loops, dict, "it maps vertex numbers to weights")
        arguments.instance("report", self.report, BuildReport, "leave it out")
        n_rows = self.report.rows
        for name, shapes in (("edge_rows", [(self.n_edges,)]), ("edges_of_rows", [(1, n_rows), (2, n_rows)])):
            array = getattr(self, name)
            if array is None:
                continue
            is_array = type(array) is np.ndarray or device_of(array) == "cuda"
            if not is_array or array.dtype.kind != "i" or array.shape not in shapes:
                raise InputError(f"{name} must be an array as read_graph makes it, not {arguments.describe(array)}")
        if known_fingerprint is not None:
            # cached_property stores its value under this key.
            vars(self)["fingerprint"] = _checked_fingerprint(known_fingerprint)

    @property
    def n_vertices(self) -> int:
        return int(self.offsets.size - 1)

    @property
    def n_edges(self) -> int:
        """Number of stored edges: an undirected edge counts twice."""
        return int(self.targets.size)

    @property
    def device(self) -> str:
        """``"cpu"`` or ``"cuda"``, by the type of the arrays."""
        return device_of(self.offsets)

    @property
    def nbytes(self) -> int:
        """Bytes of the CSR arrays, without the ids."""
        return int(self.offsets.nbytes + self.targets.nbytes + (0 if self.weights is None else self.weights.nbytes))

    @cached_property
    def degrees(self) -> Array:
        """Out-degree of every vertex, int64."""
        return graph_statistics.degrees(self.offsets) if self.device == "cuda" else np.diff(self.offsets)

    @cached_property
    def max_degree(self) -> int:
        return int(self.degrees.max()) if self.n_vertices else 0

    @cached_property
    def has_negative_weights(self) -> bool:
        if self.weights is None:
            return False
        return bool(self.negative_loops) or self._lowest_bits() < 0

    def _lowest_bits(self) -> int:
        """The smallest of the weights' bits as signed integers; their sign is that of the weights, as none is -0.0."""
        weights: Array = self.weights
        return min((int(part.min()) for _, part in iter_slices(weights.view(f"i{weights.itemsize}"))), default=0)

    @cached_property
    def heaviest(self) -> float | int:
        """The largest absolute weight, 0 without edges; an int where weights are integers."""
        if self.weights is None or not self.n_edges:
            return 0
        number = int if self.integer_weights else float
        found = [(number(values.min()), number(values.max())) for _, values in iter_slices(self.weights)]
        return max(max(abs(low), abs(high)) for low, high in found)

    @property
    def max_sum(self) -> float | int:
        """A bound on the absolute sum of the weights of any path without a cycle."""
        return self.heaviest * max(self.n_vertices - 1, 0)

    @property
    def returns_integers(self) -> bool:
        """Whether weighted distances are returned as integers."""
        return self.integer_weights and not self.float_distances

    @property
    def distance_dtype(self) -> np.dtype:
        """Type of the ``distance`` column of a weighted search: int64 for integer weights, else that of the weights."""
        weights: Array = self.weights
        return np.dtype(np.int64) if self.returns_integers else weights.dtype

    def distances_are(self, algorithm: str) -> dict[str, str]:
        """Describe, for display, the type of a search's distances and the guarantee for their sums."""
        if ALGORITHMS[arguments.choice("algorithm", algorithm, tuple(ALGORITHMS))].counts_hops:
            return {"type": "int32", "sums": "hops"}
        exact = "exact integers" if self.returns_integers else "exact integers, or an error" if self.integer_weights else ""
        return {"type": str(self.distance_dtype), "sums": exact or "least sum over all paths, rounded from left to right"}

    def with_sums_in(self, dtype: str) -> Graph:
        """Return this graph with its weights converted to another type. The copy is cached.

        The type must represent every weight exactly.

        Parameters
        ----------
        dtype : {"float32", "float64", "int64"}
        """
        name = arguments.choice("dtype", dtype, [str(kind) for kind in EXACT_BELOW])
        weights: Array = self.weights
        if weights.dtype == name:
            return self
        if self._with_sums_in is None:
            object.__setattr__(self, "_with_sums_in", {})
        made: Any = self._with_sums_in
        if name not in made:
            graph = replace(self, weights=weights.astype(name))
            graph._take_cached(self, _CACHED)
            made[name] = graph  # stored before its reverse is made: the reverse of that may be this graph
            if self.directed and self._reverse is not None:
                graph._keep_reverse(self._reverse.with_sums_in(name))
        made[name]._take_hierarchies(self)  # they may have been built after the copy
        return made[name]

    def _take_cached(self, graph: Graph, names: tuple[str, ...]) -> None:
        """Take properties that a graph with the same edges has computed already; ``cached_property`` stores them there."""
        vars(self).update({name: vars(graph)[name] for name in names if name in vars(graph)})

    @cached_property
    def min_weight(self) -> Any:
        """The smallest weight, a scalar of their type; infinite without edges."""
        weights: Array = self.weights
        if not self.n_edges:
            return weights.dtype.type(np.inf if weights.dtype.kind == "f" else MAX_INTEGER)
        # The bits of non-negative floats sort as integers in the order of the floats. They are compared as integers because
        # CuPy would treat subnormal numbers as 0.
        order = weights if self.has_negative_weights else weights.view(f"i{weights.itemsize}")
        return min(to_host(values.min(keepdims=True))[0] for _, values in iter_slices(order)).view(weights.dtype)

    @property
    def reverse(self) -> Graph:
        """The graph with every edge reversed, which is kept. An undirected graph is its own reverse."""
        if not self.directed:
            return self
        with _REVERSING:
            if self._reverse is None:
                backend: CsrBackend = csr_on_gpu if self.device == "cuda" else csr_build
                offsets, targets, weights = backend.transpose(self.offsets, self.targets, self.weights)
                reversed_graph = replace(
                    self, offsets=offsets, targets=targets, weights=weights, edge_rows=None, edges_of_rows=None
                )
                self._keep_reverse(reversed_graph)
            reverse: Any = self._reverse
            return reverse

    def linked_reverse(self) -> Graph:
        """Return the reverse, whose own reverse is this graph, so that reversing it builds no third graph."""
        reverse = self.reverse
        if self.directed and reverse._reverse is None:
            reverse._keep_reverse(self)
        return reverse

    def drop_reverse(self) -> None:
        """Release the memory of the reverse; it is built again when it is needed."""
        self._keep_reverse(None)

    def _keep_reverse(self, reverse: Graph | None) -> None:
        object.__setattr__(self, "_reverse", reverse)

    def hierarchy(self, metric: str = "weights") -> Hierarchy:
        """Return the graph's contraction hierarchy, which is built on the first call and kept.

        It adds shortcuts to the graph so that searches from many sources become one sweep over few edges. On road networks
        ``sssp_many`` is then tens of times as fast, and takes it by itself. Building takes seconds per million vertices on
        all threads of the CPU; the result does not depend on their number. ``save`` stores it with the graph.

        Weights are integers of at least 0, or floats that are small multiples of one power of two.

        Parameters
        ----------
        metric : {"weights", "hops"}
            What distances are: sums of weights, for ``sssp_many``, or numbers of edges, for ``bfs_many``. A graph can have
            both hierarchies.

        Raises
        ------
        HierarchyError
            The graph has no hierarchy, or none that pays; the message says why.

        Examples
        --------
        >>> import numpy as np
        >>> graph_from_edges(np.array([0, 1]), np.array([1, 2]), np.array([2, 3])).hierarchy().levels
        2
        """
        from .hierarchy.build import build_hierarchy

        metric = arguments.choice("metric", metric, tuple(_HIERARCHIES))
        with _CONTRACTING:
            hierarchy: Hierarchy = self.known_hierarchy_of(metric) or build_hierarchy(self, metric)
            self._keep_hierarchy(hierarchy, metric)
            return hierarchy

    @property
    def known_hierarchy(self) -> Hierarchy | None:
        """The hierarchy of the weights if it was built or loaded, or None."""
        return self.known_hierarchy_of("weights")

    def known_hierarchy_of(self, metric: str) -> Hierarchy | None:
        """Return the hierarchy if it was built or loaded, or None. A reversed graph takes that of the other direction.

        Parameters
        ----------
        metric : {"weights", "hops"}
        """
        name = _HIERARCHIES[arguments.choice("metric", metric, tuple(_HIERARCHIES))]
        if getattr(self, name) is None and self.directed and self._reverse is not None:
            other = getattr(self._reverse, name)
            if other is not None:
                self._keep_hierarchy(other.reversed(), metric)
        found: Hierarchy | None = getattr(self, name)
        return found

    def drop_hierarchy(self) -> None:
        """Release the hierarchies of both metrics, if there are any; stored ones stay on disk."""
        for metric in _HIERARCHIES:
            self._keep_hierarchy(None, metric)
            if self._reverse is not None:
                self._reverse._keep_hierarchy(None, metric)

    def _keep_hierarchy(self, hierarchy: Hierarchy | None, metric: str = "weights") -> None:
        object.__setattr__(self, _HIERARCHIES[metric], hierarchy)

    def _take_hierarchies(self, graph: Graph) -> None:
        """Take the hierarchies of a graph with the same edges and weights."""
        for metric in _HIERARCHIES:
            if graph.known_hierarchy_of(metric) is not None:
                self._keep_hierarchy(graph.known_hierarchy_of(metric), metric)

    def with_reverse(self) -> Graph:
        """Return the graph with its reverse built, which BFS from one source on a GPU then uses.

        Without the reverse, a BFS of a directed graph can only push along the edges that leave the frontier. With it,
        BFS can also pull over the edges that enter unreached vertices, which was up to 18 times faster on web graphs.
        Building the reverse takes longer than one search, so a plan for one source never builds it. An undirected graph
        is its own reverse. Results are the same.
        """
        if not self.directed:
            return self
        graph = replace(self, may_pull=True)
        graph._take_cached(self, (*_CACHED, "fingerprint"))
        graph._keep_reverse(self._reverse)
        graph._take_hierarchies(self)
        _ = graph.reverse
        return graph

    def with_weights(self, weight: Any, *, per: str = "row", weight_type: str = "auto") -> Graph:
        """Return the graph with other weights on the same edges, which is not built again.

        It is equal to a graph that is built from the same rows with these weights: of parallel edges the smallest of the
        new weights counts, and ``edge_rows`` follow it. The topology is shared with this graph, not copied.

        Parameters
        ----------
        weight : number array
            By the rules of ``graph_from_edges``, and on the device of the graph.
        per : {"row", "edge"}
            ``"row"``: one weight per row of the edge list, ``report.rows`` of them, those of rows that a filter left out
            included. They have no effect, whatever they are. It needs a graph that was built with ``edge_ids=True``.
            ``"edge"``: one weight per stored edge, ``n_edges`` of them, in the order of ``targets``. In an undirected
            graph both directions of an edge must have one weight. ``edge_rows`` stay as they are.
        weight_type : {"auto", "float32", "float64"}
            As for ``graph_from_edges``.

        Raises
        ------
        EdgeListError
            A wrong number of weights, or weights that building refuses; the message names the row.
        InputError
            The graph does not know its rows (``per="row"``); it has self-loops of negative weight, or the two
            directions of an edge differ (``per="edge"``).
        DeviceError
            Weights and graph are on different devices.

        Examples
        --------
        >>> graph = graph_from_edges([1, 2, 1], [2, 3, 2], [5, 1, 7], edge_ids=True)
        >>> graph.edge_rows.tolist()
        [0, 1]
        >>> rush_hour = graph.with_weights([9, 2, 8])
        >>> rush_hour.weights.tolist(), rush_hour.edge_rows.tolist()
        ([8.0, 2.0], [2, 1])
        """
        from .new_weights import graph_with_weights

        return graph_with_weights(self, weight, per, weight_type)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over vertices, edges, weights and ids. It does not depend on the device."""
        digest = hashlib.sha256(f"{self.n_vertices} {self.n_edges} {self.directed} {self._id_kind}".encode())
        if self.integer_weights:
            digest.update(b"integers as floats" if self.float_distances else b"integers")
        if self.negative_loops:
            digest.update(repr(sorted(self.negative_loops.items())).encode())
        for name in ("offsets", "targets", "weights") if self.has_string_ids else ("offsets", "targets", "weights", "ids"):
            if getattr(self, name) is None:
                continue
            kind = np.dtype(np.int64) if name == "targets" else getattr(self, name).dtype
            digest.update(str(kind).encode())
            for array in self._pieces(name):
                digest.update(np.ascontiguousarray(array.astype(kind, copy=False)).data)
        if self.has_string_ids:
            self._hash_strings(digest)
        return digest.hexdigest()

    def _hash_strings(self, digest: Any) -> None:
        """Hash the lengths of the ids and then their bytes, so that the boundaries of ids are unambiguous."""
        import pyarrow.compute

        for begin in range(0, len(self.ids), _HASHED_AT_ONCE):
            piece = self.ids.slice(begin, _HASHED_AT_ONCE)
            digest.update(np.asarray(pyarrow.compute.binary_length(piece)).astype(np.int64).data)
            digest.update("".join(piece.to_pylist()).encode())

    def _pieces(self, name: str) -> Iterator[np.ndarray]:
        """Yield an array of the graph in host memory, in slices."""
        yield to_host(getattr(self, name))

    @property
    def has_string_ids(self) -> bool:
        return not hasattr(self.ids, "dtype")

    @property
    def _id_kind(self) -> str:
        return "string" if self.has_string_ids else self.ids.dtype.name

    def to(self, device: str) -> Graph:
        """Return this graph on ``"cuda"`` or ``"cpu"``, or the graph itself if it is there already.

        Raises
        ------
        DeviceError
            The device does not exist, or this machine cannot use it.
        """
        device = arguments.choice("device", device, ("cpu", "cuda"), DeviceError)
        if device == self.device:
            return self
        if device == "cuda":
            cuda.require()
            move = cuda.cp.asarray
        else:
            move = to_host
        moved = replace(
            self,
            offsets=move(self.offsets),
            targets=move(self.targets),
            weights=None if self.weights is None else move(self.weights),
            ids=self.ids if self.has_string_ids else move(self.ids),
            edge_rows=None if self.edge_rows is None else move(self.edge_rows),
            edges_of_rows=None if self.edges_of_rows is None else move(self.edges_of_rows),
            known_fingerprint=vars(self).get("fingerprint"),
        )
        moved._take_hierarchies(self)  # their arrays are in host memory on any device
        return moved

    def numbers_of(self, ids: Any, role: str = "source") -> np.ndarray:
        """Translate the user's vertex ids to vertex numbers.

        Parameters
        ----------
        ids : iterable of int or str, or an array of them
        role : str
            What an error message calls the ids.

        Returns
        -------
        numpy.ndarray
            int64 numbers, in the order of ``ids``.

        Raises
        ------
        UnknownVertexError
            Some ids are not vertices of this graph (the message names them), or ``ids`` is not a list of ids.
        """
        requested = arguments.ids(arguments.text("role", role) + "s", ids)
        if isinstance(requested, list):
            expected = str if self.has_string_ids else int
            wrong = [i for i in requested if not isinstance(i, expected) or isinstance(i, bool)]
        else:
            wrong = requested[:1].tolist() if self.has_string_ids else []
        if wrong:
            kind = "strings" if self.has_string_ids else "integers"
            raise UnknownVertexError(
                f"{role} {arguments.describe(wrong[0])} is not a vertex: the ids of this graph are {kind}"
            )
        numbers = self._string_numbers(requested) if self.has_string_ids else self._integer_numbers(requested)
        missing = [requested[i] if isinstance(requested, list) else requested[i].item() for i in np.flatnonzero(numbers < 0)]
        if missing:
            shown = ", ".join(map(arguments.describe, missing[:10])) + (", ..." if len(missing) > 10 else "")
            raise UnknownVertexError(
                f"{len(missing)} {role}{'s are' if len(missing) > 1 else ' is'} not in the graph: {shown}. "
                f"{self._nearest_ids(missing[:_EXPLAINED])}Take ids that occur in the edge list, or add vertices without "
                f"an edge by {option_text('vertices')}."
            )
        return numbers

    def _nearest_ids(self, missing: list[Any]) -> str:
        """Describe the ids of the graph that are nearest to some unknown ids: neighbouring integers or similar strings."""
        near = self._similar_names if self.has_string_ids else self._neighboring_ids
        found = {unknown: near(unknown) for unknown in missing}
        describe = arguments.describe
        return "".join(
            f"Near {describe(unknown)} {'are' if len(ids) > 1 else 'is'} {' and '.join(map(describe, ids))}. "
            for unknown, ids in found.items()
            if ids
        )

    def _neighboring_ids(self, requested: int) -> list[int]:
        ids = self._host_ids
        limits = np.iinfo(ids.dtype)
        at = int(np.searchsorted(ids, np.array(min(max(requested, limits.min), limits.max), ids.dtype)))
        return [ids[i].item() for i in (at - 1, at) if 0 <= i < ids.size]

    def _similar_names(self, requested: str) -> list[str]:
        """Up to two similar ids, among those that sort near the name or differ from it only in case or blanks."""
        import bisect
        import difflib

        def place(name: Any) -> Any:
            return bisect.bisect_left(self.ids, name.encode(errors="replace"), key=lambda scalar: scalar.as_py().encode())

        if len(self.ids) <= _COMPARED_NAMES:
            names = self.ids.to_pylist()
        else:
            bare = requested.strip()
            spelled = {requested, bare, bare.lower(), bare.upper(), bare.title(), bare.capitalize()}
            width = _COMPARED_NAMES // (2 * len(spelled))
            places = [place(name) for name in spelled]
            names = [name for at in places for name in self.ids.slice(max(0, at - width), 2 * width).to_pylist()]
        # The time to compare two names grows with the square of their length.
        folded = {name.casefold().strip(): name for name in names if len(name) <= _COMPARED_LENGTH}
        alike = difflib.get_close_matches(requested.casefold().strip()[:_COMPARED_LENGTH], folded, 2)
        return [folded[name] for name in alike]

    def _integer_numbers(self, requested: list[int] | np.ndarray) -> np.ndarray:
        ids = self._host_ids
        limits = np.iinfo(ids.dtype)
        if isinstance(requested, list):
            fits = np.array([limits.min <= i <= limits.max for i in requested], bool)
            in_range = np.array([i if fit else 0 for i, fit in zip(requested, fits, strict=True)], ids.dtype)
        else:
            fits = (requested >= limits.min) & (requested <= limits.max)
            in_range = np.where(fits, requested, 0).astype(ids.dtype)
        at = np.minimum(np.searchsorted(ids, in_range), max(ids.size - 1, 0))
        found = fits & (ids[at] == in_range) if ids.size else np.zeros(len(requested), bool)
        return np.where(found, at, -1).astype(np.int64)

    def _string_numbers(self, requested: Any) -> np.ndarray:
        try:
            "".join(requested).encode()
        except UnicodeEncodeError:  # a lone surrogate, which no text file can contain
            texts = np.array([arguments.is_encodable(name) for name in requested])
            numbers = np.full(len(requested), -1)
            numbers[texts] = self._string_numbers([name for name, is_text in zip(requested, texts, strict=True) if is_text])
            return numbers
        if len(requested) > _FEW_NAMES:
            import pyarrow
            import pyarrow.compute

            # UTF-8 cannot encode a lone surrogate, so no id contains one.
            known = [name if name.isascii() or arguments.is_encodable(name) else None for name in requested]
            at = pyarrow.compute.index_in(pyarrow.array(known, self.ids.type), value_set=self.ids)
            positions: np.ndarray = at.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
            return positions
        import bisect

        def number(name: Any) -> Any:
            at = bisect.bisect_left(
                self.ids, name.encode(errors="surrogatepass"), key=lambda scalar: scalar.as_py().encode()
            )
            return at if at < len(self.ids) and self.ids[at].as_py() == name else -1

        return np.array([number(name) for name in requested], np.int64)

    @cached_property
    def _host_ids(self) -> np.ndarray:
        return to_host(self.ids)

    def ids_at(self, numbers: Array) -> Any:
        """Translate vertex numbers to the user's ids: an array, or pyarrow strings.

        Parameters
        ----------
        numbers : integer array of shape (k,) on this graph's device, or list

        Raises
        ------
        UnknownVertexError
            ``numbers`` are not vertex numbers. The range of numbers in GPU memory is not checked.
        """
        if device_of(numbers) == "cpu":
            numbers = arguments.vertex_numbers(numbers, self.n_vertices)
        return self.ids.take(_arrow_indices(numbers)) if self.has_string_ids else self.ids[numbers]

    @classmethod
    def from_networkx(cls, graph: Any, weight: str | None = None) -> Graph:
        """Convert a graph of NetworkX, or of OSMnx, on the CPU.

        Parameters
        ----------
        graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
            All nodes are integers, or all are strings. They are the ids. Parallel edges keep the minimum weight.
        weight : str, optional
            The edge attribute that is the weight, as ``"length"`` for a street network of OSMnx. Every edge must have it.
            Without a name the graph has no weights.

        Raises
        ------
        InputError
            Nodes of other or of mixed types, or an edge without the attribute: NetworkX takes such an edge for 1 long.

        Examples
        --------
        >>> import networkx
        >>> roads = networkx.Graph()
        >>> roads.add_edge("Ulm", "Bonn", minutes=240)
        >>> Graph.from_networkx(roads, weight="minutes")
        <Graph: 2 vertices, 2 stored edges, undirected, integer weights, cpu>
        """
        from .convert import from_networkx

        return from_networkx(graph, weight)

    @classmethod
    def from_igraph(cls, graph: Any, weight: str | None = None, ids: str | None = None) -> Graph:
        """Convert a graph of igraph, on the CPU.

        Parameters
        ----------
        graph : igraph.Graph
        weight : str, optional
            The edge attribute that is the weight. Without a name the graph has no weights.
        ids : str, optional
            The vertex attribute that holds the ids, as ``"name"``. By default ids are igraph's 0..n-1.

        Raises
        ------
        InputError
            No such attribute, ids that are missing, of other or of mixed types or given twice, or weights that are missing.
        """
        from .convert import from_igraph

        return from_igraph(graph, weight, ids)

    @classmethod
    def from_cugraph(cls, graph: Any) -> Graph:
        """Convert a graph of cuGraph, in GPU memory. Its weights are used if it has any.

        Parameters
        ----------
        graph : cugraph.Graph
            On one GPU. Vertices are integers, which stay in GPU memory, or strings, which give a graph on the CPU.

        Raises
        ------
        InputError
            Ids of several columns.
        """
        from .convert import from_cugraph

        return from_cugraph(graph)

    def to_scipy(self) -> Any:
        """Return the adjacency matrix as ``scipy.sparse.csr_array`` of shape (n_vertices, n_vertices).

        Rows and columns are vertex numbers, in the order of ``ids``. An edge without a weight is an int8 one. A weight of
        zero is an explicit zero, which SciPy's ``csgraph`` takes for an edge. Self-loops of negative weight are entries of
        the diagonal. The matrix is a copy: changing it does not change the graph.
        """
        from .convert import to_scipy

        return to_scipy(self)

    def to_arrow(self) -> Any:
        """Return the edges as a ``pyarrow.Table`` with columns ``src``, ``dst`` and, with weights, ``weight``.

        Ids are the user's. An undirected edge is one row. Self-loops of negative weight are rows. Vertices without an edge
        are in no row; ``ids`` has all.
        """
        from .convert import to_arrow

        return to_arrow(self)

    def to_networkx(self, weight: str = "weight") -> Any:
        """Return a ``networkx.DiGraph``, or ``networkx.Graph`` if undirected.

        Parameters
        ----------
        weight : str
            The edge attribute that gets the weights.
        """
        from .convert import to_networkx

        return to_networkx(self, weight)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the graph to a folder, from which ``Graph.load`` maps it without building it again.

        The folder appears complete or not at all. An existing stored graph of this name is replaced.

        Raises
        ------
        InputError
            Something else than a stored graph has this name, or the folder cannot be written.
        """
        from .storage import is_stored_graph, save_graph

        path = arguments.paths_of("folder", [folder])[0]
        if os.path.lexists(path) and not is_stored_graph(path):
            raise InputError(f"{path} exists and is no stored graph; name a new folder, or remove it")
        try:
            save_graph(self, path)
        except OSError as error:
            raise InputError(f"{path}: the graph cannot be written: {error.strerror or error}") from error

    @classmethod
    def load(cls, folder: str | os.PathLike[str], device: str = "cpu") -> Graph:
        """Read a graph that ``save`` wrote; its structure and the SHA-256 of each file are checked.

        Parameters
        ----------
        folder : path
        device : {"cpu", "cuda"}

        Raises
        ------
        InputError
            The folder holds no stored graph, it is damaged, or others could have written it.
        DeviceError
            This machine cannot use the device.
        """
        from .storage import load_graph

        arguments.choice("device", device, ("cpu", "cuda"), DeviceError)
        return load_graph(arguments.paths_of("folder", [folder])[0], device, verify=True)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        weights = "unweighted" if self.weights is None else f"{self.weights.dtype} weights"
        if self.returns_integers:
            weights = "integer weights"
        return f"<Graph: {self.n_vertices:,} vertices, {self.n_edges:,} stored edges, {kind}, {weights}, {self.device}>"

    def _repr_html_(self) -> str:
        return html_table("Graph", graph_rows(self))


def _arrow_indices(numbers: np.ndarray) -> Any:
    import pyarrow

    return pyarrow.array(to_host(numbers))


def has_vertex(graph: Graph, name: str | int) -> bool:
    """Whether an id is a vertex of the graph. The id must have the type of the graph's ids."""
    names: list[Any] = [name]
    found = graph._string_numbers(names) if graph.has_string_ids else graph._integer_numbers(names)
    return bool(found[0] >= 0)


def _checked_fingerprint(value: str) -> str:
    text = arguments.text("known_fingerprint", value)
    if not re.fullmatch("[0-9a-f]{64}", text):
        raise InputError(f"known_fingerprint must be a SHA-256 of 64 hexadecimal digits, not {arguments.describe(value)}")
    return text
