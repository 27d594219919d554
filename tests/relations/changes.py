"""Changes of a question after which its answer is known from the answer before: other rows, ids, weights and directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from scripts.storm.answers import Table
from scripts.storm.edges import NO_WEIGHTS, EdgeList
from scripts.storm.questions import ALL, ALONG, TURNED, Question

ID_COLUMNS = ("source", "vertex", "target", "predecessor", "src", "dst")
OF_EDGES = (*ALONG, "streets", "flows", "betweenness")
FACTOR = 4
MULTIPLIED = ("distance", "eccentricity", "sum", "mean", "cutoff", "band")
DIVIDED = ("closeness", "harmonic")


@dataclass(frozen=True)
class Changed:
    """Another edge list and question, and a function that makes the answer what it was before."""

    edges: EdgeList
    question: Question
    restore: Callable[[Table], Table]


def _same(table: Table) -> Table:
    return table


def by_column(table: Table, names: tuple[str, ...], change: Callable[[Any], Any]) -> Table:
    """Return a table with other values, except nulls, in some columns; a value may be a tuple of values."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(changed, value))
        return None if value is None else change(value)

    places = [name in names for name in table.columns]
    rows = [
        tuple(
            changed(value) if is_named else value
            for value, is_named in zip(row, places, strict=True)
        )
        for row in table.rows
    ]
    return replace(table, rows=rows)


def without_parallel_rows(edges: EdgeList) -> EdgeList:
    """Return an edge list in which no two rows join the same vertices, so that a row is known by its ends."""
    found = {frozenset((u, v)): (u, v, weight) for u, v, weight in edges.rows}
    return replace(edges, rows=list(found.values()))


def in_other_order(edges: EdgeList, question: Question, draw: Random) -> Changed:
    """Return the same rows in another order."""
    order = draw.sample(range(len(edges.rows)), len(edges.rows))
    place = {row: new for new, row in enumerate(order)}
    options = dict(question.options)
    if "through" in options:
        options["through"] = [place[row] for row in options["through"]]
    if "along" in options:
        options["along"] = {
            name: [values[row] for row in order] for name, values in options["along"].items()
        }
    rows = [edges.rows[row] for row in order]

    def restore(table: Table) -> Table:
        return by_column(table, ("edge",), lambda row: order[row])

    return Changed(replace(edges, rows=rows), replace(question, options=options), restore)


def with_other_ids(edges: EdgeList, question: Question, draw: Random) -> Changed:
    """Return the same graph with other ids in the same order, integers or texts."""
    ids = sorted({end for u, v, _ in edges.rows for end in (u, v)} | set(edges.more_vertices))
    if draw.random() < 0.5:
        new: list[Any] = [f"v{place:06d}é" for place in range(len(ids))]
    else:
        new = [2**40 - 7 * (len(ids) - place) for place in range(len(ids))]
    name = dict(zip(ids, new, strict=True))
    back = dict(zip(new, ids, strict=True))
    options = dict(question.options)
    if "values" in options:
        options["values"] = {
            key: {name[v]: value for v, value in known.items()}
            for key, known in options["values"].items()
        }
    if question.kind == "plan":
        options["groups"] = [[name[v] for v in group] for group in options["groups"]]

    def listed(given: Any) -> Any:
        return given if given is None or given == ALL else [name[v] for v in given]

    pairs = None if question.pairs is None else [(name[u], name[v]) for u, v in question.pairs]
    asked = replace(
        question,
        sources=listed(question.sources),
        targets=listed(question.targets),
        pairs=pairs,
        options=options,
    )
    rows = [(name[u], name[v], weight) for u, v, weight in edges.rows]
    other = replace(edges, rows=rows, more_vertices=[name[v] for v in edges.more_vertices])
    return Changed(other, asked, lambda table: by_column(table, ID_COLUMNS, back.__getitem__))


def with_weights_multiplied(edges: EdgeList, question: Question, _draw: Random) -> Changed | None:
    """Return weights and limits times a power of two, by which sums are multiplied exactly."""
    options = dict(question.options)
    if question.algorithm == "bfs" or "decay" in options:
        return None
    for name in ("cutoffs", "start_costs"):
        if name in options:
            options[name] = [FACTOR * each for each in options[name]]
    limit = question.limit
    if isinstance(limit, list):
        limit = [FACTOR * each for each in limit]
    elif limit is not None:
        limit = FACTOR * limit
    rows = [(u, v, FACTOR * weight) for u, v, weight in edges.rows]

    def restore(table: Table) -> Table:
        table = by_column(table, MULTIPLIED, lambda value: value / FACTOR)
        return by_column(table, DIVIDED, lambda value: value * FACTOR)

    return Changed(
        replace(edges, rows=rows), replace(question, options=options, limit=limit), restore
    )


def turned(edges: EdgeList, question: Question, _draw: Random) -> Changed | None:
    """Return each edge in the other direction, and the other direction asked."""
    if question.kind not in TURNED:
        return None
    options = dict(question.options)
    options["direction"] = "out" if options.get("direction") == "in" else "in"
    rows = [(v, u, weight) for u, v, weight in edges.rows]
    return Changed(replace(edges, rows=rows), replace(question, options=options), _same)


def without_weights(edges: EdgeList, question: Question, _draw: Random) -> Changed | None:
    """Return no weights, where hops are counted."""
    if question.algorithm == "sssp" or not edges.is_weighted:
        return None
    rows = [(u, v, None) for u, v, _ in edges.rows]
    return Changed(replace(edges, rows=rows, weights=NO_WEIGHTS), question, _same)


def with_more_rows(edges: EdgeList, question: Question, draw: Random) -> Changed:
    """Return some rows twice, longer ones beside them, and self-loops, at the end: none of them is on a shortest path."""
    more = [
        (u, v, None if weight is None else weight + draw.choice([0, 0, 1]))
        for u, v, weight in draw.choices(edges.rows, k=3)
    ]
    vertex = edges.rows[0][0]
    more.append((vertex, vertex, more[0][2] and abs(more[0][2])))
    options = dict(question.options)
    if "along" in options:
        options["along"] = {
            name: [*values, 10**6, 10**6, 10**6, 10**6] for name, values in options["along"].items()
        }
    return Changed(
        replace(edges, rows=[*edges.rows, *more]), replace(question, options=options), _same
    )


CHANGES: dict[str, Callable[[EdgeList, Question, Random], Changed | None]] = {
    "rows in another order": in_other_order,
    "other ids": with_other_ids,
    "weights times a power of two": with_weights_multiplied,
    "edges and direction turned": turned,
    "no weights": without_weights,
    "rows that change nothing": with_more_rows,
}
