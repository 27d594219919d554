"""Sums of columns of the edge list along the paths whose lengths are the distances: skims.

The paths are those of ``paths``, whatever found the distances. Integers are exact, and floats are
added in the order of the path. Each path is walked back, or a hierarchy adds up from many sources
at once, where no sum depends on the order of addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import arguments
from .._arrays import EXACT_BELOW, Array, is_rows, to_host
from ..cpu import threads
from ..cpu.path_walk import NO_EDGE, Walks, new_walk_scratch
from ..cpu.skims import (
    EdgeColumns,
    SumTree,
    new_sum_tree,
    sum_along_predecessors,
    sum_to_targets,
    violation,
)
from ..cuda.interleaved import sums_up_to
from ..errors import (
    CertificateError,
    InputError,
    PrecisionError,
    is_for_library,
    option_text,
)
from ..graph import Graph
from ..hierarchy.build import find_unit
from ..hierarchy.column_sums import ColumnSums
from ..labels import require_edge_labels
from ..search.algorithms import ALGORITHMS
from ..search.frames import Column
from ..search.query import Digested, TargetLists, compute_digest
from ..search.results import Traversal, Traversals
from .opportunities import find_bounds
from .records import Asked, Values, format_ids, unexplained_error
from .result_kinds import AlongOptions

INT64_END = 2**63
# Kinds whose search has found the paths. All other kinds find them by the distances, which must
# not fall along a path: no weight may be negative.
_FINDS_PATHS = ("nearest", "paths")
# sources from which on a hierarchy of canonical paths is built: it takes as long as so many walks
_MIN_SOURCES_TO_BUILD = 500
# the key in ``graph.derived.cache`` of the columns of the last call
_LAST = "columns along paths"
# Records have sums under the names of the user's columns with this prefix, so that these cannot be
# taken for other values of records.
ALONG = "along "


class AlongPaths(Digested):
    """What to sum along paths: columns of the edge list.

    ``values`` are int64 or float64 arrays by name, with one value per row of the edge list.
    """

    def __init__(self, values: dict[str, np.ndarray]):
        """``values`` are columns of the edge list by name, int64 or float64, with one value per
        row.
        """
        self.values = values
        # The last graph with its ``EdgesAlong``, and the last hierarchy with its ``ColumnSums``:
        # what was derived is kept for the next group or call. Both are None at first.
        self._edges_of_graph: tuple[Graph | None, Any] = (None, None)
        self._sums_of_hierarchy: tuple[Any, Any] = (None, None)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the columns alone: each process derives the rest itself."""
        return AlongPaths, (self.values,)

    @property
    def digest(self) -> str:
        """The SHA-256 of the columns, with their names and types, as hexadecimal digits."""
        return compute_digest(
            [(name, str(value.dtype)) for name, value in self.values.items()], self.values.values()
        )

    def on(self, graph: Graph) -> EdgesAlong:
        """Return the columns by the edges of a graph. They are kept for the next call with the same
        graph.
        """
        if self._edges_of_graph[0] is not graph:
            self._edges_of_graph = graph, _place_on_edges(graph, self.values)
        edges: EdgesAlong = self._edges_of_graph[1]
        return edges

    @cached_property
    def units(self) -> dict[str, float | None]:
        """The number that the values of each column are multiples of, by the name of the column.

        Sums of multiples do not depend on the order of addition. The unit is 1 for integers, and
        None for floats whose sums could be rounded.
        """
        return {
            name: 1.0 if value.dtype.kind == "i" else find_unit(np.abs(value))
            for name, value in self.values.items()
        }

    def in_units(self, totals: np.ndarray) -> dict[str, np.ndarray]:
        """Return sums as the values of records, by ``ALONG`` and the name of the column.

        ``totals``, int64 of shape (n_targets, n_columns), are sums in the units of the columns.
        Sums of a float column are multiplied by its unit.
        """
        sums = {}
        for place, (name, unit) in enumerate(self.units.items()):
            column = np.ascontiguousarray(totals[:, place])
            if self.values[name].dtype.kind == "f":
                column = column * unit
            sums[ALONG + name] = column
        return sums

    def over_hierarchy(self, graph: Graph, algorithm: str, n_sources: int) -> ColumnSums | None:
        """Return an object that adds the columns up over the hierarchy of a graph, or None if paths
        from ``n_sources`` sources are walked back instead. ``algorithm``, "bfs" or "sssp", says
        whether the hierarchy must be of hops or of weights.

        A hierarchy adds in another order than that of the path. So paths are walked back where a
        sum could depend on the order: if a column has no unit, if distances may be rounded, or if a
        sum in units may exceed the integers that float64 holds. They are also walked back where the
        graph has no hierarchy, or none of canonical paths, the paths that ``paths`` returns: one is
        not built for few sources, nor if an edge has a length of 0 or ties would make it too large.
        """
        metric = ALGORITHMS[algorithm].metric
        hierarchy = graph.derived.known_hierarchy(metric)
        # An object that was made for this hierarchy has passed all conditions below.
        if hierarchy is not None and self._sums_of_hierarchy[0] is hierarchy:
            return self._sums_of_hierarchy[1]

        units = self.units.values()
        if hierarchy is None or None in units:
            return None
        weights: Any = graph.weights
        # Floats hold every multiple of the unit up to a bound. The longest sum over the hierarchy,
        # in units, must be within it.
        may_round = metric == "weights" and not graph.integer_weights
        if may_round and hierarchy.longest > EXACT_BELOW[weights.dtype]:
            return None
        edges = self.on(graph)
        if edges.largest_sum(self) >= EXACT_BELOW[np.dtype(np.float64)]:
            return None

        build = n_sources >= _MIN_SOURCES_TO_BUILD
        canonical = edges.graph.derived.canonical_paths(hierarchy, metric, build=build)
        if canonical is None:
            return None
        columns = [edges.in_units(self, name) for name in self.values]
        self._sums_of_hierarchy = hierarchy, ColumnSums(canonical, columns)
        return self._sums_of_hierarchy[1]


class EdgesAlong(NamedTuple):
    """The graph that is searched, and the columns to add up, by its edges, in host memory."""

    graph: Graph  # in host memory
    columns: EdgeColumns  # by the positions of the edges in the reverse of ``graph``
    # the largest absolute value of each column of integers, in the order of ``columns.integers``
    largest: list[int]

    def find_place(self, values: Mapping[str, np.ndarray], name: str) -> tuple[str, int]:
        """Return which array of ``columns`` has a column, ``"integers"`` or ``"floats"``, and its
        position there.

        ``values`` are the columns of the user by name, whose order decides.
        """
        kind = values[name].dtype.kind
        names_of_kind = [other for other, value in values.items() if value.dtype.kind == kind]
        field = "integers" if kind == "i" else "floats"
        return field, names_of_kind.index(name)

    def in_units(self, along: AlongPaths, name: str) -> np.ndarray:
        """Return the column ``name`` as int64 multiples of its unit, by the positions of the edges
        in the reverse of the graph. ``along`` has the columns with their units, of which none is
        None.
        """
        field, place = self.find_place(along.values, name)
        column = getattr(self.columns, field)[:, place]
        if field == "floats":
            column = column / along.units[name]
        return column.astype(np.int64)

    def largest_sum(self, along: AlongPaths) -> float:
        """Return a bound of the absolute value of any sum, in units of its column, along a path
        without a circle: the largest value times the number of vertices. ``along`` has the columns,
        at least one, with their units.
        """
        heaviest = [
            float(np.abs(value).max(initial=0)) / (along.units[name] or 1)
            for name, value in along.values.items()
        ]
        return max(heaviest) * self.graph.n_vertices


def check_options(
    options: AlongOptions, kind: Any, graph: Graph, algorithm: str, _numbers: Any
) -> AlongOptions:
    """Return the options with the columns to sum as ``AlongPaths``, or as they are without such
    columns, and where the job has made ``AlongPaths`` of them.

    ``kind`` is the result kind, and ``algorithm`` is "bfs" or "sssp". Numbers of sources and
    targets, the last argument, are not needed.

    Raises InputError: the graph has negative weights, and the kind finds its paths by distances
    alone; the graph does not know its rows; ``along`` is no table of numbers; a column is called as
    one of the result; or there is not one value per row of the edge list.
    """
    if options.along is None:
        return options
    # Kinds in ``_FINDS_PATHS`` get the paths from their searches. All others walk them back by
    # distances, which must not fall along a path.
    is_weighted = ALGORITHMS[algorithm].is_weighted
    if is_weighted and graph.has_negative_weights and kind.name not in _FINDS_PATHS:
        if is_for_library():
            other = "paths(graph, pairs, along=...)"
        else:
            other = option_text("result", "paths")
        raise InputError(
            f"{option_text('along')} of result {kind.name} needs weights of 0 or more, and the graph "
            f"has negative ones; take the sums of {other}"
        )

    if isinstance(options.along, AlongPaths):
        return options
    if known_rows(graph) is None:
        raise InputError(
            f"along names columns of the edge list, and the graph does not know its rows; build it "
            f"with {option_text('edge_ids', True)}"
        )

    values = columns_along(graph, options.along)
    for name in values:
        # "group" is no column of any kind: results have it only where groups of sources or targets
        # are given, and a column along paths of that name would take its place there.
        if name in kind.columns or name == "group":
            raise InputError(f"along[{name!r}]: the result has a column of this name; rename it")
    columns: Any = _reuse_derived(graph, values)
    return replace(options, along=columns)


def _reuse_derived(graph: Graph, values: Mapping[str, np.ndarray]) -> AlongPaths:
    """Return columns as ``AlongPaths``.

    If their values are equal to those of the last call with this graph, the object of that call is
    returned, with what was derived from it.
    """
    cache = graph.derived.cache
    last: AlongPaths | None = cache.get(_LAST)
    if last is None or not _are_equal(values, last.values):
        # copies, as the caller may change the columns later
        cache[_LAST] = last = AlongPaths({name: value.copy() for name, value in values.items()})
    return last


def _are_equal(columns: Mapping[str, np.ndarray], others: Mapping[str, np.ndarray]) -> bool:
    """Return whether two sets of columns have the same names in the same order, and the same types
    and values.
    """
    return list(columns) == list(others) and all(
        column.dtype == others[name].dtype and np.array_equal(column, others[name])
        for name, column in columns.items()
    )


def columns_along(graph: Graph, along: Any) -> dict[str, np.ndarray]:
    """Return the columns that a user gives to be added up, by name, as int64 or float64 arrays with
    one value per row of the edge list.

    Raises InputError: ``along`` is no table of numbers, or has not one row per row of the edge
    list.
    """
    named = arguments.columns("along", along)
    if named is None:
        raise InputError(
            f"along must be a table, or a mapping of names to columns, not {arguments.describe(along)}: give columns of the "
            "edge list, such as edges[['metres', 'toll']]"
        )

    # Values belong to the rows of the edge list by their positions. An index with other labels than
    # the edge list had would mean another order, and is an error.
    require_edge_labels("along", along, graph.report.row_labels)
    columns = {}
    per = "one per row of the edge list that the graph was built from"
    for name, column in named.items():
        where = f"along[{name!r}]"
        require_edge_labels(where, column, graph.report.row_labels)
        values = arguments.size(where, arguments.as_array(where, column), graph.report.rows, per)
        columns[str(name)] = arguments.numbers(
            where, values, how="cannot be summed; fill such values"
        )
    return columns


def known_rows(graph: Graph) -> Array | None:
    """Return the row of the edge list of each edge of a graph, or of its reverse; None if neither
    knows its rows.

    A graph that is searched against its edges is the reverse of the one that was built, which alone
    knows its rows.
    """
    if graph.edge_rows is not None or not graph.directed:
        return graph.edge_rows
    return graph.reverse.edge_rows


def _place_on_edges(graph: Graph, values: Mapping[str, np.ndarray]) -> EdgesAlong:
    """Return columns by the positions of the edges in ``graph.reverse``, in host memory.

    ``values`` has the columns by name, with one value per row of the edge list.
    """
    if graph.edge_rows is None:
        # A graph that is searched against its edges knows no rows, but its reverse does: it is the
        # graph that was built. The rows of the built graph are by positions in the reverse.
        # ``linked_reverse`` is the reverse whose own reverse is this same object.
        built = graph.reverse.derived.on_host
        host = built.derived.linked_reverse()
        rows: Any = built.edge_rows
    else:
        host = graph.derived.on_host
        rows = host.derived.rows_of_reverse

    # An edge without a row, from a closed vertex to itself, adds 0. Its row is -1, at which
    # ``value[rows]`` reads the last value, and ``where`` drops it.
    has_row = rows >= 0
    columns: dict[str, list[np.ndarray]] = {"i": [], "f": []}
    largest = []
    for value in values.values():
        taken = np.where(has_row, value[rows], value.dtype.type(0))
        columns[value.dtype.kind].append(taken)
        # As integers of Python: the absolute value of the smallest int64 is no int64.
        if value.dtype.kind == "i":
            largest.append(max(int(taken.max(initial=0)), -int(taken.min(initial=0))))

    integers = np.zeros((rows.size, 0), np.int64)
    if columns["i"]:
        integers = np.ascontiguousarray(np.stack(columns["i"], axis=1))
    floats = np.zeros((rows.size, 0), np.float64)
    if columns["f"]:
        floats = np.ascontiguousarray(np.stack(columns["f"], axis=1))
    return EdgesAlong(host, EdgeColumns(integers, floats), largest)


def sums_of_group(asked: Asked[Any], group: Traversals, lists: TargetLists) -> dict[str, Array]:
    """Return the sums of columns at the targets of each source of a group, by the names of the
    values of records.

    Each array has the order and the length of ``lists.vertices``, and 0 where there is no path.
    Without columns to sum the result is empty. ``asked.options`` has the columns. Paths are walked
    back if ``asked.query.walks`` is True, else the sums come from a hierarchy.
    """
    along = asked.options.along
    if along is None:
        return {}
    if asked.query.walks:
        return sums_at_targets(asked.graph, group, lists, asked.query.limit, along)
    return _sums_over_hierarchy(asked, group, lists, along)


def _sums_over_hierarchy(
    asked: Asked[Any], group: Traversals, lists: TargetLists, along: AlongPaths
) -> dict[str, np.ndarray]:
    """Return the sums of the columns ``along`` at the targets of each source, by the names of the
    values of records, from sweeps over a hierarchy. They are in the order of ``lists``, and 0 where
    there is no path within the limit of the source. ``asked.query`` has the sweeps and the limits.

    Raises CertificateError: where the group has all distances, one differs from that of the
    hierarchy, or the sums of the first source are not those of its paths.
    """
    query = asked.query
    # The search may have added the columns up already on its way to the targets.
    if group.sums is not None:
        return along.in_units(_select_sums_of_lists(asked, group, lists))

    # A hierarchy adds up weights as integers, in units of ``hierarchy.unit``. Distances beyond the
    # limit of their source count as those without a path. ``totals`` are the sums of the columns in
    # their units, of shape (n_targets, n_columns). ``rows`` has the number of the source of
    # each target, and ``bounds`` the limits in units: one for all sources, or one each.
    rows = np.repeat(np.arange(len(group)), np.diff(lists.offsets))
    # ``query.sums``, a ``ColumnSums``, has the hierarchy with the columns at its edges.
    hierarchy = query.sums.hierarchy
    limits = [query.limit] if query.limits is None else query.limits.of(group.sources)
    bounds = [sums_up_to(limit, hierarchy.unit, hierarchy.dtype) for limit in limits]
    distance, totals = query.sums.at_targets(group.sources, lists)
    is_known = distance <= np.broadcast_to(bounds, len(group))[rows]
    sums = along.in_units(np.where(is_known[:, None], totals, 0))

    # Only groups with the distances of all vertices can be checked by walks.
    if query.output == "all":
        lengths = np.where(is_known, distance * hierarchy.unit, -1)
        _check_sums(asked, group, lists, lengths, sums)
    return sums


def _select_sums_of_lists(asked: Asked[Any], group: Traversals, lists: TargetLists) -> np.ndarray:
    """Return the sums that the search of a group has added up, at the targets of each source: int64
    in units, of shape (n_targets, n_columns), in the order of ``lists``. ``asked.query`` has the
    limits of the sources and the shared targets.

    The group has them at the shared targets of all sources, of shape (k, n_shared, n_columns).
    These targets ascend, and each list holds some of them in any order.
    """
    sums: Any = group.sums
    # The search has added up to one limit for all, while its distances are cut at the limit of each
    # source. What was cut off has no path: ``returned`` returns distances, and second a mask that
    # is True where one is missing.
    if asked.query.limits is not None:
        sums = np.where(asked.returned(group.distance)[1][:, :, None], 0, sums)

    # Where all lists are alike, the columns of one of them serve all sources.
    first = lists.of(0)
    is_same = np.array_equal(lists.vertices, np.tile(first, len(group)))
    if is_same:
        places = np.searchsorted(asked.query.shared_targets, first)
        return sums[:, places].reshape(places.size * len(group), -1)
    places = np.searchsorted(asked.query.shared_targets, lists.vertices)
    rows = np.repeat(np.arange(len(group)), np.diff(lists.offsets))
    return sums[rows, places]


def _check_sums(
    asked: Asked[Any],
    group: Traversals,
    lists: TargetLists,
    lengths: np.ndarray,
    sums: Mapping[str, np.ndarray],
) -> None:
    """Check sums that a hierarchy has added up; raise CertificateError if one is wrong.

    The paths that were added up must be as long as the distances of the group, at all targets. The
    sums of the first source must be those of its paths, walked back. ``asked`` has the graph, the
    limit and the columns. ``lengths`` are the lengths of the paths that were added up, -1 where
    there is none, and ``sums`` the sums by name, both in the order of ``lists``.
    """
    # ``lists.take`` picks the distances of the targets. ``missing`` is True where there is none, or
    # one beyond the limit.
    distance, missing = (to_host(each) for each in asked.returned(lists.take(group.distance)))
    wrong = [np.flatnonzero(np.where(missing, -1, distance) != lengths)]

    # the first source alone: its list of targets, and its search
    first_lists = lists.part(0, 1)
    first_source = group[:1]
    assert isinstance(first_source, Traversals)
    sums_of_paths = sums_at_targets(
        asked.graph, first_source, first_lists, asked.query.limit, asked.options.along
    )
    # The sums of the first source are the first ones of each column.
    for name, values in sums_of_paths.items():
        wrong.append(np.flatnonzero(values != sums[name][: values.size]))

    places = np.concatenate(wrong)
    if places.size:
        (shown,) = format_ids(asked.graph, lists.vertices[places[0]])
        raise CertificateError(f"the sums along the path to vertex {shown} are wrong")


def sums_at_targets(
    graph: Graph, group: Traversals, lists: TargetLists, limit: float | None, along: AlongPaths
) -> dict[str, np.ndarray]:
    """Return the sums of columns along the canonical paths to the targets of each source, by name,
    of shape (n_targets,) in the order of ``lists``. They are 0 where there is no path within
    ``limit``, None for no limit. ``group`` has the distances from the sources, rows of all vertices
    or ``SparseDistances``.

    Paths are walked back in host memory, also if the graph is on a GPU. The sums of the first
    source are checked.

    Raises PrecisionError (a sum may exceed int64 or float64, or no path explains a distance) or
    CertificateError (a sum of the first source is wrong).
    """
    # The columns by the edges of the graph, and the graph itself, in host memory. They are kept for
    # the next call with this graph.
    edges = along.on(graph)
    host = edges.graph
    is_weighted = ALGORITHMS[group.algorithm].is_weighted
    distance: Any = group.distance
    kind = distance.dtype
    # Lengths of edges are added in the type of the distances, as the search has done.
    if is_weighted:
        reverse = host.derived.sums_in(kind.name).reverse
        weights = reverse.weights
    else:
        reverse = host.reverse
        weights = None
    # the largest distance within the limit, in the type of the distances
    bound = find_bounds([np.inf if limit is None else limit], kind)[0]
    n = host.n_vertices
    scratch: list[Any] = [None] * threads.max_threads()
    sums = _Sums.empty(lists.vertices.size, edges.columns)
    # Per source, a vertex whose distance no edge explains, or ``NO_EDGE``; and one whose sums are
    # wrong, or -1.
    unexplained = np.full(len(group), NO_EDGE)
    with_wrong_sums = np.full(len(group), -1)

    def walk(i: int, thread: int) -> None:
        """Walk the paths from source i back from its targets, and write its sums, with the scratch
        of a thread.
        """
        if scratch[thread] is None:
            scratch[thread] = new_sum_tree(n, edges.columns), new_walk_scratch(n)
        tree, walk_scratch = scratch[thread]

        row = to_host(distance[i]) if is_rows(distance) else distance[i]
        # None twice: distances are sums of the weights as they are, in no other unit, and are all
        # known, so that nothing looks them up on the way.
        walks = Walks(reverse.offsets, reverse.targets, weights, None, row, None, *walk_scratch)
        begin, end = lists.offsets[i : i + 2].tolist()
        targets = np.ascontiguousarray(lists.vertices[begin:end])
        source = int(group.sources[i])
        # The sums of a vertex count only if it has the stamp of the search, so that the scratch
        # need not be cleared. The number of the source is its stamp: no other search has it.
        unexplained[i] = sum_to_targets(source, targets, bound, i, walks, edges.columns, tree)
        if unexplained[i] == NO_EDGE:
            sums.take(tree, targets, i, begin)
            if i == 0:  # ``violation`` returns a vertex, or -1 if all sums are right
                with_wrong_sums[i] = violation(source, i, walks, edges.columns, tree)

    threads.for_each(walk, len(group))
    for vertex in unexplained[unexplained != NO_EDGE].tolist():
        raise unexplained_error(graph, vertex, kind)
    for vertex in with_wrong_sums[with_wrong_sums >= 0].tolist():
        (name,) = format_ids(graph, vertex)
        raise CertificateError(f"the sums along the path to vertex {name} are wrong")
    return sums.name_columns(along, edges)


def sums_along_predecessors(
    graph: Graph, search: Traversal, vertices: Array, along: AlongPaths
) -> dict[str, np.ndarray]:
    """Return the sums of columns at some vertices that a nearest-source search has reached, by
    name.

    ``search`` is a traversal of the graph with one more vertex, the last one: the root, from which
    it begins and which an edge joins to each source. ``vertices`` are vertex numbers, and the sums
    are of their shape. ``along`` has the columns to sum. The edge from the root adds nothing.
    """
    edges = along.on(graph)
    reverse = edges.graph.reverse
    tree = new_sum_tree(edges.graph.n_vertices, edges.columns)
    targets = np.ascontiguousarray(to_host(vertices), np.int64)
    predecessor = to_host(search.predecessor)
    in_edges = reverse.offsets, reverse.targets
    root = edges.graph.n_vertices
    sum_along_predecessors(root, targets, predecessor, in_edges, edges.columns, tree)
    sums = _Sums.empty(targets.size, edges.columns)
    # There is one search: its stamp in the new tree is 0, and its targets begin at 0.
    sums.take(tree, targets, 0, 0)
    return sums.name_columns(along, edges)


class _Sums(NamedTuple):
    """The sums at targets, in the order of their lists; 0 where there is no path."""

    # integers, floats: int64 and float64 of shape (n_targets, n_columns): those of the columns of
    # integers and of floats, each in the order of ``EdgeColumns``
    integers: np.ndarray
    floats: np.ndarray
    hops: np.ndarray  # int32 of shape (n_targets,): the edges of each path

    @classmethod
    def empty(cls, size: int, columns: EdgeColumns) -> _Sums:
        """Return sums of 0 at ``size`` targets; ``columns`` says how many columns there are of
        integers and of floats.
        """
        return cls(
            np.zeros((size, columns.integers.shape[1]), np.int64),
            np.zeros((size, columns.floats.shape[1])),
            np.zeros(size, np.int32),
        )

    def take(self, tree: SumTree, targets: np.ndarray, stamp: int, begin: int) -> None:
        """Copy the sums of the targets of one source from the scratch of a search.

        ``tree`` has the sums of vertices whose stamp is ``stamp``: the others were not reached by
        this search. ``begin`` is where the targets of the source begin in the arrays.
        """
        is_known = tree.stamp[targets] == stamp
        known = targets[is_known]
        places = begin + np.flatnonzero(is_known)
        self.integers[places] = tree.integers[known]
        self.floats[places] = tree.floats[known]
        self.hops[places] = tree.hops[known]

    def name_columns(self, along: AlongPaths, edges: EdgesAlong) -> dict[str, np.ndarray]:
        """Return the sums as values of records, by ``ALONG`` and the name of the column.

        ``along`` has the names in the user's order, and ``edges`` says where each column is in
        these sums.

        Raises PrecisionError: a sum may exceed its type.
        """
        # A sum of integers is at most the largest value times the edges of the longest path. A sum
        # of floats that exceeds its type has become infinite, or NaN.
        most_edges = int(self.hops.max(initial=0))
        named = {}
        for name in along.values:
            field, place = edges.find_place(along.values, name)
            if field == "integers" and edges.largest[place] * most_edges >= INT64_END:
                raise PrecisionError(
                    f"along[{name!r}]: the sum over a path may exceed int64; give the column as floats"
                )
            column = np.ascontiguousarray(getattr(self, field)[:, place])
            named[ALONG + name] = column
            if field == "floats" and not np.isfinite(column).all():
                raise PrecisionError(
                    f"along[{name!r}]: the sum over a path exceeds float64; scale the column down"
                )
        return named


def columns_of_sums(
    options: AlongOptions | AlongPaths, values: Values, missing: Any = None
) -> dict[str, Column]:
    """Return the columns of the sums by the names that the user gave the columns.

    ``options.values`` has the columns of the edge list, whose types the sums get; it is empty if
    none is added up. ``values`` has the sums by ``ALONG`` and the name. ``missing``, bool with one
    entry per record, is True where there is no path and the sum is null; None if there is a path to
    each record.
    """
    return {
        name: Column(values[ALONG + name].astype(column.dtype, copy=False), missing)
        for name, column in options.values.items()
    }
