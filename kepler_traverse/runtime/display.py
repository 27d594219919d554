"""Text and HTML for people: of graphs, plans and results.

Ids and names of columns come from files, so all of it is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from .. import arguments

_MAX_IDS = 3  # ids that are shown of a graph
_MAX_TEXT = 60  # characters that are shown of an id


def in_units(size: float) -> str:
    """Return a number of bytes as text in bytes, KiB, MiB or GiB, as "1.5 MiB"."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    if unit == "bytes" or size >= 100:
        return f"{size:.0f} {unit}"
    return f"{size:.1f} {unit}"


def html_table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """Return HTML of a table with a row per pair of a name and a value, below a title.

    Title, names and values are escaped. It has no style sheet, so that a page shows it in its own.
    """
    cells = "".join(
        f"<tr><th style='text-align: left'>{html.escape(name)}</th>"
        f"<td style='text-align: left'>{html.escape(printable(str(value)))}</td></tr>"
        for name, value in rows
    )
    return f"<table><caption>{html.escape(title)}</caption><tbody>{cells}</tbody></table>"


def printable(text: str) -> str:
    """Return ``text`` with each character that is not printable, such as a line end or a control
    code of a terminal, escaped as by ``repr``. So it cannot change how other text is shown.
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table of text, the header first. Each column is as wide as its widest
    cell.
    """
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]


def shown_ids(ids: Any) -> str:
    """Return the first few ids of a graph as text, each cut to a readable length, with "..." if
    there are more. ``ids`` is an array of NumPy, CuPy or Arrow.
    """
    first_ids = ids[:_MAX_IDS]
    if hasattr(first_ids, "to_pylist"):
        first_ids = first_ids.to_pylist()
    else:
        first_ids = first_ids.tolist()
    texts = []
    for vertex_id in first_ids:
        text = str(vertex_id)
        texts.append(text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "...")
    if len(ids) > _MAX_IDS:
        texts.append("...")
    return ", ".join(texts)


def graph_rows(graph: Any) -> list[tuple[str, object]]:
    """Return the rows of a table that describes a graph: pairs of a name and a value, such as the
    numbers of vertices and edges. Nothing is computed that takes a pass over the edges.
    """
    report = graph.report
    stored = f"{graph.n_edges:,}"
    if not graph.directed:
        stored += " stored, each edge in both directions"
    if graph.weights is None:
        weights = "none"
    else:
        weights = f"{graph.weights.dtype}, {in_units(graph.weights.nbytes)}"
    if graph.returns_integers:
        weights = f"integers as {weights}"
    if graph.has_string_ids:
        id_kind = "strings"
    else:
        id_kind = str(graph.ids.dtype)

    rows: list[tuple[str, object]] = [
        ("vertices", f"{graph.n_vertices:,}"),
        ("edges", stored),
        ("direction", "directed" if graph.directed else "undirected"),
        ("weights", weights),
        ("ids", f"{id_kind}: {shown_ids(graph.ids)}"),
        ("memory", f"{in_units(graph.nbytes + graph.ids.nbytes)} on {graph.device}"),
    ]

    # From the report of building: the columns that were read, and what was dropped.
    names = (report.src_column, report.dst_column, report.weight_column)
    columns = [name for name in names if name]
    if columns:
        rows.append(("columns", ", ".join(columns)))
    dropped = []
    if report.self_loops:
        dropped.append(f"{report.self_loops:,} self-loops")
    if report.parallel_edges:
        dropped.append(f"{report.parallel_edges:,} parallel edges")
    if dropped:
        rows.append(("dropped", ", ".join(dropped)))
    return rows


def seconds_text(seconds: float) -> str:
    """Return estimated seconds as text, as "1.25 s". Infinite ones are "not known": the cost model
    has no constants for this machine.
    """
    if seconds < float("inf"):
        return f"{seconds:.3g} s"
    return "not known"


def limit_text(limit: float | None) -> str:
    """Return a limit of distances as the end of a sentence, ", up to distance 5"; an empty text if
    it is None.
    """
    if limit is None:
        return ""
    return f", up to distance {arguments.describe(limit)}"
