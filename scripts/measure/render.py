"""The pages that show measurements, rendered from their record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.bench import networkx_backend
from scripts.bench.extremes import LIBRARIES
from scripts.measure.environment import ROOT
from scripts.measure.record import Record, Row
from scripts.measure.work import OURS
from scripts.pages import between, by_columns, put

DOCS = ROOT / "docs"
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


def entry(name: str) -> Callable[[Row], str]:
    """Return the function that shows an entry of a row."""
    return lambda row: number(row.get(name))


# --- rows


def by_work(rows: Iterable[Row]) -> list[dict[str, Row]]:
    """Return the rows of each graph and work, by their peers."""
    found: dict[tuple, dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["graph"], row["work"]), {})[row["peer"]] = row
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


# --- tables


def beside(suite: str, peer: str, size: str, whole: str) -> Callable[[Record], str]:
    """Return the function that makes a table of calls that this library and another one have made.

    Parameters
    ----------
    suite : str
    peer : str
        Name of the other library; in lower case its package.
    size : str
        The title of how much a call asked for.
    whole : str
        What a time covers.
    """

    def table_of(record: Record) -> str:
        rows = record.rows(suite)
        columns: Cells = {
            "graph": lambda of: of[OURS]["graph"],
            "vertices": lambda of: number(of[OURS]["vertices"]),
            "edges": lambda of: number(of[OURS]["edges"]),
            "call": lambda of: f"`{call_of(of[OURS])}`",
            size: lambda of: number(of[OURS]["size"]),
            "seconds": lambda of: f"{seconds_of(of[OURS]):.3g}",
            f"{peer}, seconds": lambda of: f"{seconds_of(of[peer]):.3g}",
            "ratio": lambda of: f"{seconds_of(of[peer]) / seconds_of(of[OURS]):.2f}",
        }
        run = runs_of(rows)[0]
        machine = run["machine"]
        made = f"on {run['date']} at commit {run['commit']}, on {machine['cores']} cores ({machine['cpu']})"
        both = [of for of in by_work(rows) if peer in of]
        return by_columns(columns, both) + (
            f"\nMeasured by `scripts/bench/{suite}.py` {made}, with {peer} {run['versions'][peer.lower()]}.\n"
            f"Each time covers the whole call, {whole}. A ratio above 1: this library is faster.\n"
            "Both made each call in one process, and their results were compared first.\n"
        )

    return table_of


def extremes(record: Record) -> str:
    """Return seconds of each library, and the smallest ratio to this one."""
    rows = record.rows("extremes")
    peers = [library for library in LIBRARIES if any(row["peer"] == library for row in rows)]

    def ratio(of: dict[str, Row]) -> str:
        others = [seconds_of(row) for peer, row in of.items() if peer != OURS]
        return f"{min(others) / seconds_of(of[OURS]):,.2f}" if others else "-"

    columns: Cells = {
        "graph": lambda of: of[OURS]["graph"],
        "vertices": lambda of: number(of[OURS]["vertices"]),
        "call": lambda of: of[OURS]["work"],
        **{
            LIBRARIES[peer]: lambda of, peer=peer: (
                f"{seconds_of(of[peer]):,.3g} s" if peer in of else "-"
            )
            for peer in peers
        },
        "fastest peer / kepler": ratio,
    }
    versions = ", ".join(
        f"{LIBRARIES[peer]} {runs_of(rows)[0]['versions'][peer]}" for peer in peers if peer != OURS
    )
    return f"{by_columns(columns, by_work(rows))}\n{measured_on(rows, versions)}\n"


def backend(record: Record) -> str:
    """Return seconds of NetworkX, this library and other backends."""
    rows = record.rows("networkx_backend")
    titles = {"networkx": "NetworkX", "parallel": "nx-parallel", "cugraph": "nx-cugraph"}
    peers = [peer for peer in titles if any(row["peer"] == peer for row in rows)]

    def shown(of: dict[str, Row], peer: str) -> str:
        if peer not in of:
            return "-"
        size, nodes = of[peer]["size"], of[OURS]["size"]
        taken = seconds_of(of[peer]) * nodes / size
        words = f"{taken:,.3g} s" if taken < 1000 else f"{taken:,.0f} s"
        words = f"{taken / 3600:.1f} h" if taken >= 7200 else words
        return words if size == nodes else f"{words} (estimated)"

    columns: Cells = {
        "call": lambda of: f"`{call_of(of[OURS])}`",
        "nodes": lambda of: number(of[OURS]["size"]),
        OURS: lambda of: shown(of, OURS),
        networkx_backend.CONVERTING: lambda of: shown(of, networkx_backend.CONVERTING),
        **{titles[peer]: lambda of, peer=peer: shown(of, peer) for peer in peers},
    }
    packages = [package for package in networkx_backend.PACKAGES if package in versions_in(rows)]
    versions = ", ".join(f"{package} {versions_in(rows)[package]}" for package in packages)
    return f"{by_columns(columns, by_work(rows))}\n{measured_on(rows, versions)}\n"


def versions_in(rows: list[Row]) -> dict[str, str]:
    """Return the versions of packages in the runs of rows, the first one of each."""
    found: dict[str, str] = {}
    for run in reversed(runs_of(rows)):
        found |= run["versions"]
    return found


# --- pages


class Part(NamedTuple):
    """A part of a page, between two markers, and the function that makes it from the record."""

    page: Path
    text: Callable[[Record], str]
    begin: str = "measured: begin"
    end: str = "measured: end"


PARTS: Sequence[Part] = (
    Part(
        DOCS / "from/scipy.md",
        beside("csgraph", "SciPy", "sources", "from the matrix to the arrays"),
    ),
    Part(
        DOCS / "from/pandana.md",
        beside("pandana_network", "pandana", "rows", "from Series to Series"),
    ),
    Part(DOCS / "from/networkx.md", backend),
    Part(DOCS / "results/extremes.md", extremes, "extremes: begin", "extremes: end"),
)


def pages(record: Record, parts: Sequence[Part]) -> dict[Path, str]:
    """Return the texts of the pages with their parts."""
    texts: dict[Path, str] = {}
    for part in parts:
        text = texts.get(part.page) or part.page.read_text(encoding="utf-8")
        markers = f"<!-- {part.begin} -->", f"<!-- {part.end} -->"
        texts[part.page] = between(text, *markers, part.text(record))
    return texts


def put_pages(record: Record, check: bool = False) -> int:
    """Write the pages, or with ``check`` say which are stale; return the exit code."""
    return put(pages(record, PARTS), "scripts.measure write", check)
