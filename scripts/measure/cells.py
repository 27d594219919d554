"""Cells and rows of the tables of measurements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from scripts.measure.record import Row

Cells = dict[str, Callable[[Any], str]]


# --- cells


def seconds_of(row: Row | None) -> float | None:
    """Return the least of the repeats, or the median where that alone was recorded."""
    return None if row is None else row.get("least", row.get("median"))


def seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def number(value: Any) -> str:
    """Return a cell of four significant digits, thousands separated; texts as they are."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


def factor(slow: float | None, fast: float | None) -> str:
    return f"{slow / fast:,.{0 if slow >= 100 * fast else 1}f}" if slow and fast else "-"


def size(value: float | None) -> str:
    return "-" if value is None else f"{value / 2**20:,.0f} MiB"


def per_source(row: Row | None) -> float | None:
    """Return milliseconds per source of a row."""
    return None if row is None else 1e3 * seconds_of(row) / row["size"]


def ratio(slow: Row, fast: Row) -> str:
    return f"{seconds_of(slow) / seconds_of(fast):.2f}"


def entry(name: str) -> Callable[[Row], str]:
    """Return the function that shows an entry of a row."""
    return lambda row: number(row.get(name))


# --- rows


def by_work(rows: Iterable[Row]) -> list[dict[str, Row]]:
    """Return the rows of each graph, work and device, by their peers."""
    found: dict[tuple, dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["graph"], row["work"], row["device"]), {})[row["peer"]] = row
    return list(found.values())


def call_of(row: Row) -> str:
    """Return the call of a work, without its size, with which the name may end."""
    return re.sub(r", [\d,]+ (sources|nodes)$", "", row["work"])


def runs_of(rows: Iterable[Row]) -> list[dict]:
    """Return the runs of rows, each once."""
    found = {id(row["run"]): row["run"] for row in rows}
    return list({str(run): run for run in found.values()}.values())


def host_of(run: dict) -> str:
    return f"{run['machine']['cpu']}, {run['machine']['cores']} cores"


def measured_on(rows: list[Row], versions: str) -> str:
    """Return the sentence on where and when rows were measured."""
    run = runs_of(rows)[0]
    return f"Measured on {run['date']} at commit {run['commit']}: {host_of(run)}; {versions}."
