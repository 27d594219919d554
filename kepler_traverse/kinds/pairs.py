"""Distances of pairs: one row per row given. Searches are grouped by origin, and each may stop at its own destinations."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arguments
from .._arrays import make_offsets
from ..errors import InputError, UnknownVertexError
from ..formats.column_names import end_pairs, listed
from ..graph import Graph
from ..protocols import Ids
from ..search.frames import Column, columns_on_device, frame_from
from ..search.query import PairTable, TargetLists
from ..search.results import Traversals
from .records import Asked, SourceRecords, Values, columns_of_records, joined, records_of_group
from .result_kinds import PLAIN, RESULT_KINDS, KindOptions


def pair_table(origins: np.ndarray, destinations: np.ndarray) -> PairTable:
    """Group rows of vertex numbers by origin."""
    distinct, first, place = np.unique(origins, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    rank_of_row = rank[place]
    rows = np.argsort(rank_of_row, kind="stable")
    offsets = make_offsets(np.bincount(rank_of_row, minlength=order.size))
    return PairTable(distinct[order], TargetLists(offsets, destinations[rows]), rows)


def columns_of_pairs(given: Any, name: str = "pairs") -> tuple[Ids, Ids]:
    """Return the two columns of pairs that an argument has: a tuple or list of both, or a table that names them."""
    if isinstance(given, (tuple, list)) and len(given) == 2:
        return given[0], given[1]
    columns = arguments.columns(name, given)
    if columns is None:
        raise InputError(
            f"{name} must be (origins, destinations) or a table with two such columns, not {arguments.describe(given)}"
        )
    named = {str(each): column for each, column in columns.items()}
    ends = end_pairs(list(named))
    if len(ends) != 1:
        raise InputError(
            f"it is not sure which columns hold the {name}; the table has {listed(list(named))}; give (origins, "
            "destinations)"
        )
    return named[ends[0][0]], named[ends[0][1]]


def numbers_of_pairs(
    graph: Graph, origins: Ids, destinations: Ids, names: tuple[str, str] = ("origins", "destinations")
) -> tuple[np.ndarray, np.ndarray]:
    """Return the vertex numbers of the origins and of the destinations, which ``names`` calls by their arguments.

    Raises UnknownVertexError (a row holds no vertex of the graph; the message names the row and the id) or InputError (there
    are not as many origins as destinations).
    """
    numbers = numbers_of_rows(graph, names[0], origins), numbers_of_rows(graph, names[1], destinations)
    if numbers[0].size != numbers[1].size:
        raise InputError(
            f"{numbers[0].size} {names[0]} and {numbers[1].size} {names[1]}: a pair needs one of each, so give columns of "
            "the same length"
        )
    return numbers


def numbers_of_rows(graph: Graph, name: str, given: Ids) -> np.ndarray:
    """Return the vertex numbers of one column of ids; the error for an unknown vertex names its row."""
    given = arguments.arrow(name, given)
    missing = given.isna() if hasattr(given, "isna") else given.is_null() if hasattr(given, "is_null") else None
    if missing is not None:
        is_missing = np.asarray(missing, bool)
        if is_missing.any():
            raise UnknownVertexError(f"{name}, row {int(is_missing.argmax())}: it holds no id; drop such rows")
    ids = arguments.ids(name, given)
    role = name.removesuffix("s")
    try:
        return graph.to_numbers(ids, role)
    except UnknownVertexError:
        row, end = 0, len(ids)  # the first row without a vertex is from ``row`` to ``end - 1``
        while end - row > 1:
            middle = (row + end) // 2
            try:
                graph.to_numbers(ids[row:middle], role)
                row = middle
            except UnknownVertexError:
                end = middle
        if ids[row] is None or ids[row] != ids[row]:  # NaN, with which data frames mark what is missing
            raise UnknownVertexError(f"{name}, row {row}: it holds no id; drop such rows") from None
        try:
            graph.to_numbers(ids[row : row + 1], role)
        except UnknownVertexError as error:
            raise UnknownVertexError(f"{name}, row {row}: {error}") from None
        raise


def frame_of_pairs(name: str, plan: Any, table: PairTable, without: str, options: KindOptions = PLAIN) -> Any:
    """Search from all origins and return a frame in the order of the rows of the table.

    ``name`` is that of a kind, of which the frame lacks the column ``without``.
    """
    graph = plan.graph
    of = {"graph": graph, "algorithm": plan.algorithm, "query": plan.query, "options": options}
    making = Asked(kind=RESULT_KINDS[name], pairs=table, **of)
    if plan.query.targets is not None:  # one origin, whose plan has its destinations
        groups = iter([plan.run(table.sources)])
    else:
        groups = plan.iter_groups(table.sources, table.lists)
    parts, sources = [], [np.zeros(0, np.int64)]
    for group in groups:
        parts.append(records_of_group(making, group))
        sources.append(np.repeat(group.sources, parts[-1].sizes))
    records = joined(parts)
    order = np.argsort(records.values["pair"], kind="stable")
    columns = columns_of_records(making, np.concatenate(sources)[order], records.take(order))
    del columns[without]
    return frame_from(columns_on_device(columns, graph), graph.device)


def make_records(asked: Asked, group: Traversals) -> SourceRecords:
    """Return ``pair, target, distance, missing`` of the rows of each origin."""
    table, distance = asked.select_pairs(group), group.distance
    if distance.ndim > 1:  # from each origin to all vertices, or to the destinations of the only one
        distance = table.lists.take(distance, None if asked.query.output == "all" else asked.query.targets)
    distance, missing = asked.returned(distance)
    values = {"pair": table.rows, "target": table.lists.vertices, "distance": distance, "missing": missing}
    return SourceRecords(values, np.diff(table.lists.offsets))


def make_columns(asked: Asked, values: Values) -> dict[str, Column]:
    """Return columns ``pair, target, distance``."""
    return {"pair": Column(values["pair"]), **asked.columns_at_targets(values)}


def rows(question: Any, n_vertices: int, depth: int) -> tuple[int, int]:  # noqa: ARG001
    """Return the number of pairs of an origin, on average and at most."""
    return question.pairs.rows_per_source
