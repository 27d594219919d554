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
    """The groups of sources, of which each row has a label and a vertex number; a source may be in
    several.

    ``labels`` are the distinct ones, ascending; ``members`` has the distinct int64 vertex numbers
    of each, ascending.
    """

    def __init__(self, labels: list[Any], numbers: np.ndarray):
        self.labels = sorted(set(labels))
        place = {label: i for i, label in enumerate(self.labels)}
        own = np.array([place[label] for label in labels], np.int64)
        self.members = [sort_distinct(numbers[own == i]) for i in range(len(self.labels))]

    @property
    def digest(self) -> str:
        return compute_digest(
            [[label, own.tolist()] for label, own in zip(self.labels, self.members, strict=True)]
        )


def check_options(
    options: NearestOptions,
    kind: Any,
    graph: Graph,
    algorithm: str,
    numbers: Mapping[str, np.ndarray],
) -> NearestOptions:
    """Return options with a checked ``k``, and with groups as ``SourceGroups``.

    Raises InputError: ``k`` is less than 1; groups are not one per vertex, or not of one type, or
    have no order.
    """
    checked = along.check_options(options, kind, graph, algorithm, numbers)
    options = replace(options, along=checked.along)
    (table,) = (each.metadata["table"] for each in fields(options) if each.name == "groups")
    k = arguments.whole("k", options.k, least=1)
    groups = options.groups
    if groups is not None and numbers:  # without numbers the job has read the groups
        groups = _check_groups(groups, table.removesuffix("s"), numbers[table])
    return replace(options, k=k, groups=groups)


def query_of_targets(options: NearestOptions, targets: np.ndarray) -> dict[str, Nearest]:
    """Return what a query says of the nearest targets.

    Raises InputError: there is no target.
    """
    if not targets.size:
        raise InputError("result='nearest_targets' needs at least one target")
    groups = options.groups
    k = options.k
    assert k is not None
    every = Nearest(k, [sort_distinct(targets)], None)
    return {"nearest": every if groups is None else Nearest(k, groups.members, groups.labels)}


def _check_groups(groups: Any, name: str, numbers: np.ndarray) -> SourceGroups:
    """Return the argument ``groups``, one label per source or target, as ``name`` says."""
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
    """Return ``vertex, rank, source, distance`` by ascending vertex and rank, with vertex numbers.

    ``numbers`` are those of the sources, ascending; ``distance`` and ``owner`` are results of
    ``merge_groups``.
    """
    xp = namespace(owner)
    is_label = owner >= 0
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
    """Return the result of ``rows_of_labels`` as columns with ids."""
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
    """Return the results of ``merge_groups`` by one search from all sources, where
    ``takes_one_search``.
    """
    counts_hops = ALGORITHMS[algorithm].counts_hops
    if limit is None:
        most = MAX_INTEGER
    else:
        most = int(min(limit, MAX_INTEGER))
    if get_device(graph.offsets) == "cuda":
        weights: Array = None if counts_hops else graph.reverse.weights
        return gpu.k_nearest(
            graph, None if weights is None else weights.astype(np.int64), numbers, k, most
        )
    if counts_hops or graph.weights is None:
        weights = np.zeros(0, np.int64)
    else:
        weights = graph.weights.astype(np.int64)
    return cpu.k_nearest(graph.offsets, graph.targets, weights, numbers, k, most)


def certify_labels(
    graph: Graph,
    algorithm: str,
    numbers: np.ndarray,
    limit: float | None,
    distance: Array,
    owner: Array,
) -> None:
    """Check the results of ``search_labels`` on the CPU; see ``k_nearest_cpu.violation``.

    Raises CertificateError: the labels of a vertex are wrong.
    """
    here = graph.to("cpu")
    counts_hops = ALGORITHMS[algorithm].counts_hops
    if limit is None:
        most = MAX_INTEGER
    else:
        most = int(min(limit, MAX_INTEGER))
    if counts_hops or here.weights is None:
        weights = np.zeros(0, np.int64)
    else:
        weights = here.weights.astype(np.int64)
    labels = (to_host(each).astype(np.int64) for each in (distance, owner))
    edges = cpu.Edges(here.offsets, here.targets, weights)
    vertex = cpu.violation(edges, numbers, most, *labels)
    if vertex >= 0:
        raise CertificateError(
            f"the nearest sources of vertex {format_ids(graph, vertex)[0]} are wrong"
        )


def takes_one_search(graph: Graph, counts_hops: bool, k: int) -> bool:
    """Whether sums are exact integers without a sum below zero or beyond int64, and a GPU has
    memory for k labels.
    """
    if get_device(graph.offsets) == "cuda":
        needed = gpu.bytes_needed(graph.n_vertices, graph.n_edges, k, not counts_hops)
        if needed > available_memory("cuda") * _SHARE_OF_MEMORY:
            return False
    if counts_hops:
        return True
    return (
        graph.returns_integers
        and not graph.has_negative_weights
        and graph.derived.max_sum + graph.derived.heaviest < MAX_INTEGER
    )


def merge_groups(
    groups: Iterable[Traversals], n_vertices: int, k: int, limit: float | None, xp: Any
) -> tuple[Array, Array]:
    """Return the distances and the positions of the k nearest sources of each vertex, from the
    distances of all.

    Groups are by ascending source, and each is used before the next one is requested. The arrays,
    of shape (n_vertices, k), have distances in the widest type of a group, and int64 positions in
    the order of the sources, -1 where there is none.
    """
    keys = xp.full((k, n_vertices), MAX_INTEGER, np.int64)
    owner = xp.full((k, n_vertices), -1, np.int64)
    kind = np.dtype(np.int8)
    position = 0
    for group in groups:
        if group.distance.dtype != kind:
            keys = _changed(keys, kind, group.distance.dtype, xp)
            kind = common_type(kind, group.distance.dtype)
        for at, distance in _iter_reached(group.distance, xp):
            if limit is None:
                near = is_reached(distance)
            else:
                near = is_reached(distance) & at_most(distance, limit)
            key = xp.where(near, distances_to_keys(convert_distances(distance, kind)), MAX_INTEGER)
            own = xp.where(near, position, -1)
            moves = xp.zeros(distance.size, bool)
            for j in range(k):
                # A label of an earlier source stays before this one where distances are equal. Once
                # one label has moved, all after it move.
                moves |= key < keys[j, at]
                keys[j, at], key = (
                    xp.where(moves, key, keys[j, at]),
                    xp.where(moves, keys[j, at], key),
                )
                owner[j, at], own = (
                    xp.where(moves, own, owner[j, at]),
                    xp.where(moves, owner[j, at], own),
                )
            position += 1
    return keys_to_distances(keys, kind).T, owner.T


def _iter_reached(distance: Any, xp: Any) -> Iterator[tuple[Any, Array]]:
    """Yield for each source the vertices with distances from it, as an index, and these distances."""
    if is_rows(distance):
        yield from ((slice(None), row) for row in distance)
        return
    for part in (slice(*bounds) for bounds in pairwise(distance.offsets.tolist())):
        yield xp.asarray(distance.vertices[part]), xp.asarray(distance.distance[part])


def _changed(keys: Array, kind: np.dtype, to: np.dtype, xp: Any) -> Array:
    """Return the keys of distances of one type as those of a type that holds them all."""
    wide = common_type(kind, to)
    none = keys == MAX_INTEGER
    distance = xp.where(none, 0, keys)
    return xp.where(
        none, MAX_INTEGER, distances_to_keys(keys_to_distances(distance, kind).astype(wide))
    )
