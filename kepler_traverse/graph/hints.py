"""What an edge list holds that may have been meant otherwise: columns that were not used, weights
that may mean "closed".
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._arrays import namespace, to_host
from ..errors import EdgeListWarning, option_text
from ..formats.column_names import end_pairs, is_weight_name, listed, plain_name
from ..formats.edge_list import EdgeColumns
from ..formats.files import shown
from . import Graph

# Patterns of names as ``plain_name`` returns them: in lower case, letters and digits only.
# such as "oneway", "dirtravel", "bidirectional"
_DIRECTIONS = re.compile(
    "(is)?oneway(car|street|tag)?|(dir|direction)(of)?travel|travel(dir|direction)|(is)?(bidirectional|twoway)"
)
_CLOSED = re.compile("(is|road)?(closed|blocked)")  # such as "closed" or "roadblocked"
_BACK = "reverse|rev|backward|bwd|back"
# Such as "reversecost" and "rcost" (before: "cost"), or "costreverse" and "timeba" (after: the part
# in front of the word for the other direction, "cost" and "time").
_WEIGHT_BACK = re.compile(f"(?:{_BACK}|r)(?P<before>.+)|(?P<after>.+?)(?:{_BACK}|ba)")
# names of weights that say nothing of what they measure, and may well be negative
_ANY_NUMBER = re.compile("w|wt|weights?|edgeweight")
_CLOSED_COST = -1  # what closes an edge in tables of pgRouting
_EDGES_TRIED = 500  # for which an edge in the other direction is looked for


def with_hints(graph: Graph, columns: EdgeColumns) -> Graph:
    """Return a copy of a graph whose report names the columns that were read, and says what in the
    edge list may have been meant otherwise.

    ``columns`` are those of the edge list that the graph was built from.
    """
    report = graph.report.with_columns(columns)
    report = replace(report, hints=tuple(_hints(graph, columns)))
    with_report: Graph = replace(graph, report=report)
    return with_report


def warn_of_hints(graph: Graph) -> None:
    """Warn of each hint in the report of a graph, an ``EdgeListWarning`` each.

    The line that a warning names is that which called the caller: the user's call of
    ``read_graph``, for example.
    """
    for hint in graph.report.hints:
        warnings.warn(hint, EdgeListWarning, stacklevel=3)


def _hints(graph: Graph, columns: EdgeColumns) -> Iterator[str]:
    """Yield a sentence for each thing that may have been meant otherwise, as ``BuildReport.hints``
    has them.
    """
    # Without edges there is nothing that the columns could be compared with.
    if graph.n_edges:
        yield from _hint_at_unused_columns(graph, columns)
        yield from _hint_at_closed_weights(graph, columns)
        yield from _hint_at_single_ends(graph, columns)
    if columns.first_through > 1 and graph.closed is None:
        first = columns.first_through  # the smallest vertex that paths may lead through
        yield (
            f"by FIRST THRU NODE of the file no path leads through a vertex below {first}, and here paths do: "
            f"give these vertices as {option_text('closed')}"
        )
    if columns.unused_dates:
        names = listed(list(columns.unused_dates))
        yield f"{names} holds dates or times of day, which are no weights: not used"


def _hint_at_unused_columns(graph: Graph, columns: EdgeColumns) -> Iterator[str]:
    """Yield a sentence about unused columns whose names are usual for directions, for weights from
    dst to src, and for closed edges: one sentence per kind, about the first such column.
    """
    # The name of each unused column as names are compared.
    plain = {name: plain_name(name) for name in columns.unused}

    ways = [name for name, text in plain.items() if _DIRECTIONS.fullmatch(text)]
    if ways and columns.oneway is None and graph.directed and not _has_both_directions(graph):
        yield (
            f"column {shown(ways[0])} is not used, and no row has an edge in the other direction: if it says which rows "
            f"lead both ways, give {option_text('oneway_column', ways[0])}"
        )

    back = [name for name, text in plain.items() if _is_weight_back(text)]
    if back:
        yield (
            f"column {shown(back[0])} is not used: if it is the weight of a row in the other direction, give "
            f"{option_text('reverse_weight_column', back[0])}"
        )

    closed = [name for name, text in plain.items() if _CLOSED.fullmatch(text)]
    if closed:
        yield (
            f"column {shown(closed[0])} is not used: "
            f"{option_text('where')} leaves out rows that are closed"
        )


def _is_weight_back(text: str) -> bool:
    """Return whether a name, as ``plain_name`` returns it, is that of a weight with a word for the
    other direction before or behind it, such as that of reverse_cost or time_ba.
    """
    match = _WEIGHT_BACK.fullmatch(text)
    return match is not None and is_weight_name(match["before"] or match["after"])


def _has_both_directions(graph: Graph) -> bool:
    """Return whether one of up to ``_EDGES_TRIED`` edges, spread evenly over the graph, has an edge
    in the other direction.

    An edge list of roads that all lead both ways has such an edge for each.
    """
    # Positions in ``targets``, and the two ends of these edges.
    tried = np.unique(np.linspace(0, graph.n_edges - 1, _EDGES_TRIED).astype(np.int64))
    targets = to_host(graph.targets[namespace(graph.targets).asarray(tried)])
    offsets = to_host(graph.offsets)
    sources = np.searchsorted(offsets, tried, "right") - 1  # the tails of the edges
    for u, v in zip(sources.tolist(), targets.tolist(), strict=True):
        neighbors = to_host(graph.targets[int(offsets[v]) : int(offsets[v + 1])])
        place = int(np.searchsorted(neighbors, u))
        if place < neighbors.size and neighbors[place] == u:
            return True
    return False


def _hint_at_closed_weights(graph: Graph, columns: EdgeColumns) -> Iterator[str]:
    """Yield a sentence if all negative weights are -1, which in some tables closes an edge.

    Nothing is said of a column whose name is not that of a length, time or cost, as it may well
    hold negative numbers.
    """
    weights: Any = graph.weights
    if columns.weight is None:
        name = ""
    else:
        name = plain_name(columns.weight)
    if weights is None or not is_weight_name(name) or _ANY_NUMBER.fullmatch(name):
        return
    # Where no weight is 0 or more, -1 is no exception.
    if weights.min() != _CLOSED_COST or weights.max() < 0:
        return
    if (weights[weights < 0] == _CLOSED_COST).all():
        yield (
            f"column {shown(str(columns.weight))}: each negative weight is -1, and counts as that; if it means that an edge "
            f"is closed, leave those rows out: {option_text('where', f'`{columns.weight}` != -1')}"
        )


def _hint_at_single_ends(graph: Graph, columns: EdgeColumns) -> Iterator[str]:
    """Yield a sentence if an end is the same vertex in all rows: a column that says something else
    of an edge, such as its kind, may have been taken for the end.

    A star has such an end, too. So nothing is said where no other column could be that end, or
    where the names say that these are the ends. Self-loops and rows that lead back are not seen in
    the graph as they are in the column.
    """
    report = graph.report
    is_as_in_rows = graph.directed and not report.self_loops and columns.oneway is None
    # whether the two names are known to be those of the ends of an edge
    is_named = bool(end_pairs([columns.src, columns.dst]))
    # Two rows may well share an end.
    if report.rows < 3 or not is_as_in_rows or is_named or not columns.unused:
        return
    # A vertex with edges is a tail. The first and the last target are compared before all are.
    n_tails = int(namespace(graph.offsets).count_nonzero(graph.offsets[1:] != graph.offsets[:-1]))
    is_one_head = bool(graph.targets[0] == graph.targets[-1]) and bool(
        (graph.targets == graph.targets[0]).all()
    )
    for role, name, is_single in (
        ("src", columns.src, n_tails == 1),
        ("dst", columns.dst, is_one_head),
    ):
        if is_single and graph.n_edges > 1:
            yield f"column {shown(name)} has one value in all rows: is it the {role} of an edge?"
