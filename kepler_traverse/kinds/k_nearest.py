"""The k nearest sources of each vertex, with ties in favor of the source of the smaller number.

Hops and sums of integer weights take one search from all sources with k labels per vertex. With
float weights, and where a GPU has no memory for the labels, there is one search per source, and
each group of sources is merged into the k labels: a float sum may round to that of a nearer source,
which one search would not notice where it drops a label. Both are exact and return the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from .. import arguments
from .._arrays import (
    MAX_INTEGER,
    Array,
    at_most,
    distances_to_keys,
    get_device,
    is_reached,
    is_rows,
    keys_to_distances,
    namespace,
    sort_distinct,
    to_host,
)
from ..cpu.edges import Edges
from ..errors import CertificateError, InputError
from ..graph import Graph
from ..runtime.memory import available_memory
from ..search.algorithms import ALGORITHMS
from ..search.exact import common_type, convert_distances
from ..search.frames import Column
from ..search.query import Digested, Nearest, compute_digest
from ..search.results import Traversals
from . import along
from . import k_nearest_cpu as cpu
from . import k_nearest_gpu as gpu
from .records import format_ids
from .result_kinds import NearestOptions

_SHARE_OF_MEMORY = 0.5  # that one search may take, as the reverse graph may be built, too


class SourceGroups(Digested):
    """The groups of sources, or of targets; a vertex may be in several.

    Attributes
    ----------
    labels : list of int or str
        The distinct labels of the groups, ascending.
    members : list of int64 arrays
        The distinct vertex numbers of each group, ascending, in the order of ``labels``.
    """

    def __init__(self, labels: list[Any], numbers: np.ndarray):
        """``labels`` and ``numbers`` have one entry per row of the user's table: the label of a
        group, and a vertex number.
        """
        self.labels = sorted(set(labels))
        place = {label: i for i, label in enumerate(self.labels)}
        group_of_row = np.array([place[label] for label in labels], np.int64)
        self.members = [sort_distinct(numbers[group_of_row == i]) for i in range(len(self.labels))]

    @property
    def digest(self) -> str:
        """The SHA-256 of the labels and their members, as hexadecimal digits."""
        members = [numbers.tolist() for numbers in self.members]
        return compute_digest([list(group) for group in zip(self.labels, members, strict=True)])


def check_options(
    options: NearestOptions,
    kind: Any,
    graph: Graph,
    algorithm: str,
    numbers: Mapping[str, np.ndarray],
) -> NearestOptions:
    """Return the options with a checked ``k``, with groups as ``SourceGroups``, and with columns to
    sum as ``AlongPaths``.

    ``kind`` and ``algorithm`` are those of ``along.check_options``. ``numbers`` has the vertex
    numbers of ``sources`` and ``targets``, as far as they are known. It is empty where the job has
    already read the groups as ``SourceGroups``.

    Raises InputError: ``k`` is less than 1; groups are not one label per vertex, are not all
    integers or all strings, or have no order; and as ``along.check_options``.
    """
    checked = along.check_options(options, kind, graph, algorithm, numbers)
    options = replace(options, along=checked.along)
    k = arguments.whole("k", options.k, least=1)
    groups = options.groups
    if groups is not None and numbers:
        # The metadata of the option says whether groups are those of the sources or of the targets.
        (table,) = (each.metadata["table"] for each in fields(options) if each.name == "groups")
        groups = _check_groups(groups, table.removesuffix("s"), numbers[table])
    return replace(options, k=k, groups=groups)


def query_of_targets(options: NearestOptions, targets: np.ndarray) -> dict[str, Nearest]:
    """Return the field ``nearest`` of a ``Query``: how many targets of each group are wanted, and
    the groups. Without groups, all targets are one group.

    ``options`` are checked, with groups as ``SourceGroups`` or None. No more targets of a group are
    wanted than there are targets. ``targets`` are vertex numbers. Raises InputError: there is no
    target.
    """
    if not targets.size:
        raise InputError("result='nearest_targets' needs at least one target")
    groups = options.groups
    assert options.k is not None
    k = min(options.k, targets.size)
    if groups is None:
        return {"nearest": Nearest(k, [sort_distinct(targets)], None)}
    return {"nearest": Nearest(k, groups.members, groups.labels)}


def _check_groups(groups: Any, name: str, numbers: np.ndarray) -> SourceGroups:
    """Return the groups that a user gives, one label per source or target, as ``SourceGroups``.

    ``name`` is "source" or "target", for errors, and ``numbers`` has the vertex number of each.
    Raises InputError: there is not one label each, or labels are not all integers or all strings.
    """
    if isinstance(groups, (set, frozenset)):
        raise InputError(f"groups must be a list, in the order of the {name}s; a set has no order")
    labels = arguments.ids("groups", groups)
    arguments.size("groups", labels, numbers.size, f"one per {name}")
    if isinstance(labels, np.ndarray):
        labels = labels.tolist()
    else:
        labels = list(labels)
    if len({type(label) for label in labels}) > 1 or not all(
        isinstance(label, (int, str)) for label in labels
    ):
        raise InputError("groups must be all integers or all strings")
    return SourceGroups(labels, numbers)


def rows_of_labels(
    graph: Graph, algorithm: str, numbers: np.ndarray, distance: Array, owner: Array
) -> tuple[Array, Array, Array, Array]:
    """Return ``vertex, rank, source, distance``, four arrays with one entry per label, by ascending
    vertex and rank.

    Vertices and sources are vertex numbers, and ranks begin with 1. Distances are int32 if
    ``algorithm`` counts hops, else in the type that the graph returns. ``numbers`` are the vertex
    numbers of the sources, ascending. ``distance`` and ``owner``, of shape (n_vertices, k), are
    results of ``merge_groups``: ``owner`` has positions in ``numbers``, and -1 where there is no
    label.
    """
    xp = namespace(owner)
    is_label = owner >= 0
    # A closed vertex, through which no path leads, has two numbers. Results list it once, by the
    # number where paths end.
    if graph.closed is not None:
        is_label[xp.asarray(graph.closed[0])] = False

    vertex, rank = xp.nonzero(is_label)
    length = distance[vertex, rank]
    source = xp.asarray(numbers)[owner[vertex, rank]]

    rank = rank.astype(np.int64) + 1
    if ALGORITHMS[algorithm].counts_hops:
        length = length.astype(np.int32)
    elif graph.integer_weights:
        length = length.astype(graph.distance_dtype)
    return vertex, rank, source, length


def columns_of_rows(graph: Graph, rows: tuple[Array, Array, Array, Array]) -> dict[str, Column]:
    """Return ``rows``, the four arrays of ``rows_of_labels``, as columns by name, with ids in place
    of vertex numbers.
    """
    vertex, rank, source, distance = rows
    return {
        "vertex": Column.of_vertices(graph, vertex),
        "rank": Column(rank),
        "source": Column.of_vertices(graph, source),
        "distance": Column(distance),
    }


def search_labels(
    graph: Graph, algorithm: str, numbers: np.ndarray, k: int, limit: float | None
) -> tuple[Array, Array]:
    """Return the k nearest sources of each vertex by one search from all sources, in the form of
    ``merge_groups``. ``takes_one_search`` must be True.

    ``algorithm`` is "bfs" or "sssp". ``numbers`` are the vertex numbers of the sources, ascending.
    Sources beyond ``limit`` do not count; None stands for no limit. The arrays are on the device of
    the graph.
    """
    largest = _largest_within(limit)
    if get_device(graph.offsets) == "cuda":
        weights = None if ALGORITHMS[algorithm].counts_hops else graph.reverse.weights
        if weights is not None:
            weights = weights.astype(np.int64)
        return gpu.k_nearest(graph, weights, numbers, k, largest)
    return cpu.k_nearest(_integer_edges(graph, algorithm), numbers, k, largest)


def _largest_within(limit: float | None) -> int:
    """Return the largest int64 distance within a limit; None stands for no limit."""
    if limit is None:
        return MAX_INTEGER
    return int(min(limit, MAX_INTEGER))


def _integer_edges(graph: Graph, algorithm: str) -> Edges:
    """Return the edges of a graph in host memory, with int64 weights. If ``algorithm`` counts hops,
    the weights have the shape (0,), and each edge counts 1.
    """
    weights = np.zeros(0, np.int64)
    if not ALGORITHMS[algorithm].counts_hops and graph.weights is not None:
        weights = graph.weights.astype(np.int64)
    return Edges(graph.offsets, graph.targets, weights)


def certify_labels(
    graph: Graph,
    algorithm: str,
    numbers: np.ndarray,
    limit: float | None,
    distance: Array,
    owner: Array,
) -> None:
    """Check the results of ``search_labels`` by a proof that does not repeat the search; see
    ``k_nearest_cpu.violation``. It runs on the CPU, also if the graph is on a GPU.

    ``algorithm``, ``numbers`` and ``limit`` are those of ``search_labels``. ``distance`` and
    ``owner``, of shape (n_vertices, k), are what it has returned: ``owner`` has positions in
    ``numbers``, -1 where there is no label. Raises CertificateError: the labels of a vertex are
    wrong.
    """
    labels = (to_host(each).astype(np.int64) for each in (distance, owner))
    edges = _integer_edges(graph.to("cpu"), algorithm)
    vertex = cpu.violation(edges, numbers, _largest_within(limit), *labels)
    if vertex >= 0:
        raise CertificateError(
            f"the nearest sources of vertex {format_ids(graph, vertex)[0]} are wrong"
        )


def takes_one_search(graph: Graph, counts_hops: bool, k: int) -> bool:
    """Return whether one search from all sources finds the k nearest ones. ``counts_hops`` says
    whether distances are numbers of edges.

    All sums must be exact integers of 0 or more that fit int64. On a GPU, its memory must hold k
    labels per vertex.
    """
    if get_device(graph.offsets) == "cuda":
        needed = gpu.bytes_needed(graph.n_vertices, graph.n_edges, k, not counts_hops)
        if needed > available_memory("cuda") * _SHARE_OF_MEMORY:
            return False
    if counts_hops:
        return True
    # A search adds one more edge to the longest path before it compares the sum.
    return (
        graph.returns_integers
        and not graph.has_negative_weights
        and graph.derived.max_sum + graph.derived.heaviest < MAX_INTEGER
    )


def merge_groups(
    groups: Iterable[Traversals], n_vertices: int, k: int, limit: float | None, xp: Any
) -> tuple[Array, Array]:
    """Return the distances and the positions of the k nearest sources of each vertex, from groups
    of searches with one source each. A source beyond ``limit``, None for no limit, is none of them.

    Groups are by ascending source, and each is used up before the next one is requested. Both
    arrays have the shape (n_vertices, k), and the nearest sources come first. Distances have the
    widest type of a group. Positions, int64, count the sources in the order of the groups; they are
    -1 where there is none. ``xp`` is NumPy or CuPy.
    """
    # One row per rank, so that each step of the loop below is one operation on all vertices. Keys
    # are integers in the order of the distances; the largest int64 stands for no label.
    keys = xp.full((k, n_vertices), MAX_INTEGER, np.int64)
    owner = xp.full((k, n_vertices), -1, np.int64)
    kind = np.dtype(np.int8)
    position = 0
    for group in groups:
        # A group may have wider distances than those before: keys of both must compare.
        if group.distance.dtype != kind:
            keys = _widen_keys(keys, kind, group.distance.dtype, xp)
            kind = common_type(kind, group.distance.dtype)

        # Insert the label of one source into the labels of each vertex, which are in order.
        for vertices, distance in _iter_reached(group.distance, xp):
            if limit is None:
                is_near = is_reached(distance)
            else:
                is_near = is_reached(distance) & at_most(distance, limit)
            key = distances_to_keys(convert_distances(distance, kind))
            new_key = xp.where(is_near, key, MAX_INTEGER)
            new_owner = xp.where(is_near, position, -1)
            has_moved = xp.zeros(distance.size, bool)
            for j in range(k):
                # A label of an earlier source stays before this one where distances are equal. Once
                # one label has moved, all after it move: the old one takes the next place.
                old_key = keys[j, vertices]
                old_owner = owner[j, vertices]
                has_moved |= new_key < old_key
                # Both are chosen before they are written: old labels may be views.
                next_key = xp.where(has_moved, old_key, new_key)
                next_owner = xp.where(has_moved, old_owner, new_owner)
                keys[j, vertices] = xp.where(has_moved, new_key, old_key)
                owner[j, vertices] = xp.where(has_moved, new_owner, old_owner)
                new_key = next_key
                new_owner = next_owner
            position += 1
    return keys_to_distances(keys, kind).T, owner.T


def _iter_reached(distance: Any, xp: Any) -> Iterator[tuple[Any, Array]]:
    """Yield for each source of a group the vertices with distances from it, and these distances.

    The vertices can index an array over all vertices: they are vertex numbers of reached vertices,
    or a slice of all vertices, also of those that are not reached. ``distance`` is an array with a
    row per source, or ``SparseDistances``. ``xp``, NumPy or CuPy, is the library of the arrays that
    are returned.
    """
    if is_rows(distance):
        yield from ((slice(None), row) for row in distance)
        return
    for begin, end in pairwise(distance.offsets.tolist()):
        yield xp.asarray(distance.vertices[begin:end]), xp.asarray(distance.distance[begin:end])


def _widen_keys(keys: Array, kind: np.dtype, to: np.dtype, xp: Any) -> Array:
    """Return keys of distances of the type ``kind`` as keys in the type that holds these distances
    and those of the type ``to``.

    A key is a distance as an integer in the same order; the largest int64 stands for no label.
    ``xp`` is NumPy or CuPy, the library of the keys.
    """
    wide = common_type(kind, to)
    # The largest int64 is no key of a distance and stays as it is: 0 is converted in place of it.
    has_no_label = keys == MAX_INTEGER
    distance = keys_to_distances(xp.where(has_no_label, 0, keys), kind)
    return xp.where(has_no_label, MAX_INTEGER, distances_to_keys(distance.astype(wide)))
