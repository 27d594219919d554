"""The graph that every traversal reads: an immutable CSR."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import InitVar, asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from .. import arguments, cuda
from .._arrays import Array, get_device, iter_slices, to_host
from ..cuda import host_edges
from ..errors import InputError, option_text, several
from ..runtime.display import graph_rows, html_table
from .closed import are_two_numbers_each
from .derived import METRICS, Derived
from .ids import VertexIds, pack_strings, unpack_strings

if TYPE_CHECKING:
    from ..hierarchy.arrays import Hierarchy
    from ..hub_labels.arrays import HubLabels


NO_ROW = -1  # in ``Graph.edge_rows``: the edge from a closed vertex to itself
# fields of a ``BuildReport`` that are recorded only where they are set
_ONLY_IF_SET = ("row_labels", "reverse_weight_column", "closed_directions", "limited_by")


def no_edge(n_vertices: int) -> int:
    """Return the value in ``Graph.edges_of_rows`` of a row that became no stored edge, and is no
    self-loop.

    A self-loop of vertex v has -1 - v, which is -n_vertices or more; this is the next number below.
    """
    return -1 - n_vertices


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
        Edges dropped because an edge of smaller or equal weight joins the same two vertices. In an
        undirected graph this includes the edge of larger weight where both directions are listed.
    negative_zeros : int
        Weights of -0.0 that became 0.0.
    isolated_vertices : int
        Vertices without an edge in the graph.
    weight_source : str
        Type of the weights in the input, ``""`` without weights.
    src_column, dst_column, weight_column : str
        Columns of the files that the edges were read from. ``"0"`` is the first column of a text
        file without names; ``""`` means no column.
    oneway_column : str
        The column of directions, ``""`` without one.
    reverse_weight_column : str
        The column of the weights from dst to src, ``""`` without one.
    closed_directions : int
        With two weights per record, how many directions their weights close: up to two per record.
    where : str
        The filter of rows, ``""`` without one.
    limited_by : str
        What has left out vertices: ``"only_vertices"``, ``"largest_component"`` or ``""``; or
        ``"nodes"`` of a graph that was made from one of another library.
    row_labels : str
        What identifies the labels of the rows, if the edges are a data frame with an index of its
        own. Only a graph that was built with ``edge_ids=True`` has it.
    unused_columns : tuple of str
        Columns that were not read.
    unused_numbers : tuple of str
        Unused columns that are known to hold numbers.
    hints : tuple of str
        What in the edge list may have been meant otherwise, a sentence each: an unused column of
        directions, a weight that may mean "closed". Reading it warned of each
        (``EdgeListWarning``).
    seconds : dict of str to float
        Seconds to ``read`` the edge list and to ``build`` the graph. Empty for a graph that was not
        made from files. A comparison of two reports ignores this field and the next.
    in_files : bool
        Whether the graph was built in files, for want of memory.
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
    reverse_weight_column: str = ""
    closed_directions: int = 0
    limited_by: str = ""
    row_labels: str = ""
    unused_columns: tuple[str, ...] = ()
    unused_numbers: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    seconds: dict[str, float] = field(default_factory=dict, compare=False)
    in_files: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        # A stored graph holds its report as JSON, which has lists but no tuples.
        for name in ("unused_columns", "unused_numbers", "hints"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def facts(self) -> dict[str, Any]:
        """Return the fields by name, as they are stored.

        It is equal for equal edge lists: ``seconds`` and ``in_files``, which are of one run, are
        not in it, nor fields of ``_ONLY_IF_SET`` that are not set.
        """
        left_out = ["seconds", "in_files"]
        left_out += [name for name in _ONLY_IF_SET if not getattr(self, name)]
        return {name: value for name, value in asdict(self).items() if name not in left_out}

    @classmethod
    def recorded_names(cls) -> tuple[str, ...]:
        """Return the names of the fields that ``facts`` may hold."""
        # In an empty report none of ``_ONLY_IF_SET`` is set, so no name is here twice.
        return (*cls().facts(), *_ONLY_IF_SET)

    def with_columns(self, columns: Any) -> BuildReport:
        """Return a copy that names the columns and the filter of a ``formats.EdgeColumns``, where
        None stands for a column that is not read.
        """
        return replace(
            self,
            src_column=columns.src,
            dst_column=columns.dst,
            weight_column=columns.weight or "",
            oneway_column=columns.oneway or "",
            reverse_weight_column=columns.reverse_weight or "",
            where=columns.where,
            unused_columns=columns.unused,
            unused_numbers=columns.unused_numbers,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Graph:
    """A directed or undirected graph in compressed sparse rows, on the CPU or on a GPU.

    Make one with ``read_graph`` or ``graph_from_edges``, which handle duplicates, self-loops and
    ids. The library identifies a vertex by its number 0..n-1. ``ids`` holds the user's id of each
    number, in ascending order.

    Attributes
    ----------
    offsets : int64 array of shape (n_vertices + 1,)
        The adjacency list of vertex v is ``targets[offsets[v]:offsets[v + 1]]``.
    targets : int32 or int64 array of shape (n_edges,)
        Ascending within an adjacency list, without duplicates and self-loops.
    weights : array of shape (n_edges,) or None
        float32 or float64. Integer weights have the narrowest of float32, float64 and int64 that
        represents each weight exactly.
    ids : integer array, or pyarrow strings, of shape (n_vertices,)
        Ascending; strings by their UTF-8 bytes. Integers are on the same device, strings always on
        the host.
    directed : bool
        False means that every edge is stored in both directions with the same weight.
    report : BuildReport
        What building changed in the edge list, and which columns it read.
    integer_weights : bool
        Whether the weights are integers. If so, every distance is an exact sum, or the search
        raises an error.
    float_distances : bool
        Whether distances of integer weights are returned as floats of the weights' type, because
        the caller chose that type.
    negative_loops : dict of int to int or float
        Maps the number of each vertex with a self-loop of negative weight to that weight. A search
        that reaches such a vertex has no result.
    may_pull : bool
        Whether a BFS from one source may use the reverse of a directed graph; see
        ``Derived.with_reverse``.
    edge_rows : integer array of shape (n_edges,) or None
        With ``edge_ids=True``: the row of the edge list that each stored edge is, counted from 0
        over all rows of all files, those included that a filter left out. Of parallel edges it is
        the row of the smallest weight, the first of several such rows. 4 bytes per stored edge, 8
        if the edge list has 2^31 rows or more.
    edges_of_rows : integer array of shape (1 or 2, rows) or None
        With ``edge_ids=True``, if self-loops, parallel edges or a filter left rows without a stored
        edge of their own: positions in ``targets`` of the edge of each row and, where rows can be
        edges in both directions, of the edge back. ``-1 - v`` for a self-loop of vertex v, and ``-1
        - n_vertices`` for no edge. 4 bytes per element, or 8.
    closed : int64 array of shape (2, n_closed), or None
        The vertices through which no path leads, each of which has two numbers and two places in
        ``ids``: where paths begin, and where they end. An edge of weight 0 without a row
        (``edge_rows`` is -1) leads from the first to the second. In host memory.

    Parameters
    ----------
    known_fingerprint : str, optional
        The ``fingerprint``, where it is known already: computing it takes seconds for a large
        graph. Copies with other arrays do not inherit it.
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
    closed: np.ndarray | None = None
    known_fingerprint: InitVar[str | None] = None
    # What ``derived`` has computed, by name, and the fingerprint. Copies with other arrays do not
    # inherit it, since it is no parameter.
    _cache: dict[str, Any] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self, known_fingerprint: str | None) -> None:
        """Check types and shapes, as the arrays may come from a caller. Of values only those of
        ``closed`` are read.
        """
        # The report and the number of vertices come first: other checks need them.
        arguments.instance("report", self.report, BuildReport, "leave it out")
        self._check_rows_of_edges()
        self._check_closed()
        self._check_ids()
        for name in ("directed", "integer_weights", "float_distances", "may_pull"):
            arguments.flag(name, getattr(self, name))
        arguments.instance(
            "negative_loops", self.negative_loops, dict, "it maps vertex numbers to weights"
        )
        self._check_edge_rows()
        if known_fingerprint is not None:
            text = arguments.text("known_fingerprint", known_fingerprint)
            if not re.fullmatch("[0-9a-f]{64}", text):
                raise InputError(
                    "known_fingerprint must be a SHA-256 of 64 hexadecimal digits, not "
                    f"{arguments.describe(known_fingerprint)}"
                )
            self._cache["fingerprint"] = known_fingerprint

    def _refuse(self, name: str) -> NoReturn:
        """Raise InputError, which describes the attribute ``name``: it is no array of the right
        kind and shape.
        """
        raise InputError(
            f"{name} must be an array as read_graph makes it, not "
            f"{arguments.describe(getattr(self, name))}"
        )

    def _check_rows_of_edges(self) -> None:
        """Raise InputError unless offsets, targets and weights, if there are any, are arrays of the
        types and sizes that a CSR has.
        """
        # For each array, the letters that NumPy has for its kinds of types (signed and unsigned
        # integers, floats), and the bytes that an element may have.
        for name, kinds, widths in (
            ("offsets", "i", (8,)),
            ("targets", "i", (4, 8)),
            ("weights", "iuf", (1, 2, 4, 8)),
        ):
            array = getattr(self, name)
            if array is None and name == "weights":
                continue
            if not _is_array(array, kinds) or array.dtype.itemsize not in widths or array.ndim != 1:
                self._refuse(name)
        has_other_size = self.weights is not None and self.weights.size != self.targets.size
        if not self.offsets.size or has_other_size:
            raise InputError(
                "offsets must have n_vertices + 1 elements, and weights as many as targets"
            )

    def _check_closed(self) -> None:
        """Raise InputError unless ``closed`` is an array of two vertex numbers per closed vertex."""
        if self.closed is None:
            return
        # without its last axis, which has the vertices, the shape is (2,)
        is_numbers = _is_array(self.closed, "i") and self.closed.shape[:-1] == (2,)
        if not is_numbers or not are_two_numbers_each(self.closed, self.n_vertices):
            self._refuse("closed")

    def _check_ids(self) -> None:
        """Raise InputError unless there is one integer or text per vertex."""
        is_column = _is_array(self.ids) or hasattr(self.ids, "to_pylist")
        if not is_column or getattr(self.ids, "ndim", 1) != 1 or len(self.ids) != self.n_vertices:
            raise InputError(
                f"ids must be an array of {self.n_vertices} ids, one fewer than "
                f"offsets, not {arguments.describe(self.ids)}"
            )
        if not self.has_string_ids and self.ids.dtype.kind not in "iu":
            raise InputError(f"ids must be integers or pyarrow strings, not {self.ids.dtype}")

    def _check_edge_rows(self) -> None:
        """Raise InputError unless ``edge_rows`` and ``edges_of_rows`` are integers, one per stored
        edge or per row of the edge list. None is neither.
        """
        n_rows = self.report.rows
        for name, shapes in (
            ("edge_rows", [(self.n_edges,)]),
            ("edges_of_rows", [(1, n_rows), (2, n_rows)]),
        ):
            array = getattr(self, name)
            if array is not None and not (_is_array(array, "i") and array.shape in shapes):
                self._refuse(name)

    @property
    def n_vertices(self) -> int:
        """Number of vertices: a closed vertex has two numbers, and counts twice."""
        return int(self.offsets.size - 1)

    @property
    def n_edges(self) -> int:
        """Number of stored edges: an undirected edge counts twice."""
        return int(self.targets.size)

    @property
    def device(self) -> str:
        """``"cpu"`` or ``"cuda"``, by the type of the arrays."""
        return get_device(self.offsets)

    @property
    def nbytes(self) -> int:
        """Bytes of the CSR arrays, without the ids."""
        return int(
            self.offsets.nbytes
            + self.targets.nbytes
            + (0 if self.weights is None else self.weights.nbytes)
        )

    @property
    def _edge_arrays(self) -> list[str]:
        """The names of the arrays with a value per edge or per row of the edge list."""
        names = ("targets", "weights", "edge_rows", "edges_of_rows")
        return [name for name in names if getattr(self, name) is not None]

    @property
    def has_negative_weights(self) -> bool:
        """Whether an edge, or a self-loop that was dropped, has a weight below 0."""
        return self.derived.has_negative_weights

    @property
    def returns_integers(self) -> bool:
        """Whether weighted distances are returned as integers."""
        return self.integer_weights and not self.float_distances

    @property
    def distance_dtype(self) -> np.dtype:
        """Type of the ``distance`` column of a weighted search: int64 for integer weights, else
        that of the weights.
        """
        weights: Array = self.weights  # not None: only weighted searches ask
        if self.returns_integers:
            return np.dtype(np.int64)
        return weights.dtype

    @property
    def derived(self) -> Derived:
        """What is derived from the graph on first use and then kept with it: degrees, copies,
        hierarchies.
        """
        return Derived(self, self._cache)

    @property
    def reverse(self) -> Graph:
        """The graph with every edge reversed, which is kept. An undirected graph is its own
        reverse.
        """
        reverse: Graph = self.derived.reverse
        return reverse

    def hierarchy(self, metric: str = "weights") -> Hierarchy:
        """Return the graph's contraction hierarchy, which is built on the first call and kept.

        It adds shortcuts to the graph so that searches from many sources become one sweep over few
        edges. On road networks ``sssp_many`` is then tens of times as fast, and takes it by itself.
        Building takes seconds per million vertices on all threads of the CPU; the result does not
        depend on their number. ``save_graph`` stores it with the graph.

        Weights are integers of at least 0, or floats that are small multiples of one power of two.

        Parameters
        ----------
        metric : {"weights", "hops"}
            What distances are: sums of weights, for ``sssp_many``, or numbers of edges, for
            ``bfs_many``. A graph can have both hierarchies.

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
        return self.derived.hierarchy(metric)

    def labels(self, metric: str = "weights") -> HubLabels:
        """Return the graph's hub labels, which are built on the first call and kept.

        They are for many pairs of which few share an origin. The label of a vertex is a short list
        of other vertices, its hubs, with their distances. The distance of a pair is the smallest
        sum of distances over the hubs that both labels list. On road networks ``sssp_pairs``
        answers a pair in a microsecond, and takes labels by itself.

        Labels are made from the hierarchy, which is built first if the graph has none, in seconds
        per million vertices. Where contraction does not pay, as in a network with some vertices of
        very high degree, they are built without it, as pruned landmark labels, if all lengths are
        above 0. The hierarchy that follows from these labels is then kept, too. The result does not
        depend on the number of threads. ``save_graph`` stores labels with the graph.

        Parameters
        ----------
        metric : {"weights", "hops"}
            As in ``hierarchy``, whose conditions hold.

        Raises
        ------
        HierarchyError
            The conditions of a hierarchy do not hold, or labels would be longer than pays, or than
            memory holds; the message says how long.

        Examples
        --------
        >>> import numpy as np
        >>> graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]), np.array([2, 3]))
        >>> graph.labels().between(np.array([0]), np.array([2])).tolist()
        [5]
        """
        return self.derived.labels(metric)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over vertices, edges, weights and ids, which does not depend on the device.

        It is computed on first use, and kept.
        """
        if "fingerprint" in self._cache:
            return str(self._cache["fingerprint"])

        # What results depend on beside the arrays; ``kind`` is the type of the ids. What a graph
        # lacks is not hashed.
        digest = hashlib.sha256(
            f"{self.n_vertices} {self.n_edges} {self.directed} {self._vertex_ids.kind}".encode()
        )
        if self.integer_weights:
            digest.update(b"integers as floats" if self.float_distances else b"integers")
        if self.closed is not None:
            digest.update(f"closed {self.closed.tolist()}".encode())
        if self.negative_loops:
            digest.update(repr(sorted(self.negative_loops.items())).encode())

        # The arrays, each after its type. Targets are hashed as int64, so that those of either
        # width have the same digest.
        names = ["offsets", "targets", "weights"]
        if not self.has_string_ids:
            names.append("ids")
        for name in names:
            array = getattr(self, name)
            if array is None:
                continue
            if name == "targets":
                kind = np.dtype(np.int64)
            else:
                kind = array.dtype
            digest.update(str(kind).encode())
            for part in self._pieces(name):
                digest.update(np.ascontiguousarray(part.astype(kind, copy=False)).data)
        if self.has_string_ids:
            self._vertex_ids.hash_strings(digest)
        self._cache["fingerprint"] = digest.hexdigest()
        return str(self._cache["fingerprint"])

    def __getstate__(self) -> dict[str, Any]:
        """Return what equal graphs have alike, so that a pickle, and ``joblib.hash``, does not
        depend on earlier calls.

        Hierarchies are in it. What else is derived is computed anew where it is needed.
        """
        state = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        state["report"] = replace(self.report, seconds={}, in_files=False)
        # The cache has a hierarchy under the name of its metric. It is kept without the seconds of
        # building it, which differ by the run.
        state["_cache"] = {
            metric: replace(self._cache[metric], seconds=0.0)
            for metric in METRICS
            if metric in self._cache
        }
        if self.has_string_ids:
            state["ids"] = pack_strings(self.ids)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields; ids that are strings come as ``pack_strings`` returns them."""
        ids = state["ids"]
        if isinstance(ids, tuple):
            ids = unpack_strings(*ids)
        vars(self).update(state | {"ids": ids})  # past the class, which is frozen

    def _pieces(self, name: str) -> Iterator[np.ndarray]:
        """Yield the array ``name`` of the graph in host memory, in slices.

        A graph whose edges are in partitions on several workers overrides it.
        """
        yield from (to_host(part) for _, part in iter_slices(getattr(self, name)))

    @property
    def has_string_ids(self) -> bool:
        """Whether ids are strings; else they are integers."""
        return self._vertex_ids.are_strings

    @cached_property
    def _vertex_ids(self) -> VertexIds:
        """The dictionary that translates ids to vertex numbers and back."""
        return VertexIds(self.ids, self.closed, self.report.limited_by)

    def to(self, device: str, edges: str = "device") -> Graph:
        """Return this graph on ``"cuda"`` or ``"cpu"``, or the graph itself if it is there already.

        Parameters
        ----------
        device : {"cpu", "cuda"}
        edges : {"device", "host"}
            Where a graph on a GPU has its edges. ``"host"``: in pinned memory of the host, for a
            graph that the GPU does not hold; the GPU then holds 8 bytes per vertex of it.
            ``bfs_many`` copies the edges to the GPU as it needs them.

        Raises
        ------
        DeviceError
            The device does not exist, or this machine cannot use it.
        InputError
            ``edges="host"`` with ``device="cpu"``.
        """
        device = arguments.device(device)
        edges = arguments.choice("edges", edges, ("device", "host"))
        if device == "cpu" and edges == "host":
            raise InputError(
                f"{option_text('edges', 'host')} is for device 'cuda', and on device 'cpu' all edges "
                "are in host memory; leave it out"
            )
        # The graph is there already, with its edges in the memory that is asked for.
        if device == self.device and (edges == "host") == self.derived.edges_on_host:
            return self

        # Offsets and ids go to the device. The arrays of edges may stay in host memory.
        # ``host_view`` returns an array of NumPy: a view of pinned memory, or a copy of GPU memory.
        if device == "cuda":
            # DeviceError if there is no GPU that can be used
            cuda.require()
            move = _to_gpu
        else:
            move = host_edges.host_view
        # ``pin`` copies an array to pinned memory of the host, which a GPU can read.
        move_edges = host_edges.pin if edges == "host" else move
        arrays = {name: move_edges(getattr(self, name)) for name in self._edge_arrays}
        arrays["offsets"] = move(self.offsets)
        if not self.has_string_ids:
            arrays["ids"] = move(self.ids)

        # A copy of the same contents keeps the fingerprint and the hierarchies.
        moved = replace(self, **arrays, known_fingerprint=self._cache.get("fingerprint"))
        moved.derived.take_hierarchies(self)  # their arrays are in host memory on any device
        return moved

    def to_numbers(self, ids: Any, role: str = "source") -> np.ndarray:
        """Translate the user's vertex ids to vertex numbers.

        Parameters
        ----------
        ids : iterable of int or str, or an array of them
        role : str
            What an error message calls the ids.

        Returns
        -------
        numpy.ndarray
            int64 numbers, in the order of ``ids``; of a closed vertex that where paths begin.

        Raises
        ------
        UnknownVertexError
            Some ids are not vertices of this graph (the message names them), or ``ids`` is not a
            list of ids.
        """
        return self._vertex_ids.to_numbers(ids, role)

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
        return self._vertex_ids.at(numbers)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        if self.weights is None:
            weights = "unweighted"
        else:
            weights = f"{self.weights.dtype} weights"
        if self.returns_integers:
            weights = "integer weights"
        size = f"{several(self.n_vertices, 'vertex')}, {several(self.n_edges, 'stored edge')}"
        return f"<Graph: {size}, {kind}, {weights}, {self.device}>"

    def _repr_html_(self) -> str:
        return html_table("Graph", graph_rows(self))


def has_vertex(graph: Graph, name: str | int) -> bool:
    """Return whether the id ``name`` is a vertex of the graph. It must have the type of the graph's
    ids.
    """
    return graph._vertex_ids.contains(name)


def list_distinct_ids(graph: Graph) -> Any:
    """Return the ids of a graph in ascending order, each once: ``graph.ids`` has that of a closed
    vertex twice. It is an integer array, or an array of pyarrow strings.
    """
    return graph._vertex_ids.array


def find_vertices(graph: Graph, labels: Any) -> np.ndarray:
    """Return the vertex numbers of labels, such as those of a data frame's index, as an int64
    array.

    A label that is no id of the graph has the number ``labels.NO_NUMBER``, which is -1.
    """
    return graph._vertex_ids.find(labels)


def _to_gpu(array: Array) -> Array:
    """Return an array in the memory of the GPU. A CuPy array whose pages are pinned host memory is
    copied, too; one in GPU memory is returned as it is.
    """
    return cuda.cp.asarray(host_edges.host_view(array) if host_edges.is_pinned(array) else array)


def _is_array(value: Any, kinds: str = "") -> bool:
    """Return whether a value is a plain array of NumPy or CuPy, and not of a subclass.

    ``kinds`` are the letters of the types that it may have, as ``dtype.kind`` has them; "" is any.
    """
    is_array = type(value) is np.ndarray or get_device(value) == "cuda"
    return is_array and (not kinds or value.dtype.kind in kinds)
