"""Rows of the record as templates read them, and how their figures are written."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from scripts.measure.record import Record, Row
from scripts.measure.work import OURS

# --- rows


def seconds_of(row: Row) -> float:
    """Return the least of the repeats, or the median where that alone was recorded."""
    return row.get("least", row.get("median"))


def per_source(row: Row) -> float:
    """Return milliseconds per source of a row."""
    return 1e3 * seconds_of(row) / row["size"]


def with_figures(row: Row) -> Row:
    """Return a row with ``time`` in seconds, ``each`` in milliseconds per source, and its ``algorithm``."""
    if seconds_of(row) is None:  # sizes
        return row
    figures = {"time": seconds_of(row), "each": per_source(row)}
    return row | figures | {"algorithm": row["work"].partition(",")[0]}


@dataclass(frozen=True)
class Beside:
    """The rows of a work on a device, by their peers."""

    rows: dict[str, Row]

    @property
    def ours(self) -> Row | None:
        return self.rows.get(OURS)

    @property
    def peers(self) -> list[Row]:
        return [row for peer, row in self.rows.items() if peer != OURS]

    @property
    def fastest(self) -> Row | None:
        return min(self.peers, key=seconds_of, default=None)

    @property
    def of_whole(self) -> float | None:
        """The seconds of the fastest peer for the whole work, if it answered a part of it."""
        peer = self.fastest
        return peer and seconds_of(peer) * self.rows[OURS]["size"] / peer["size"]

    def without(self, peer: str) -> Beside:
        return Beside({name: row for name, row in self.rows.items() if name != peer})


def by_work(rows: Iterable[Row]) -> list[dict[str, Row]]:
    """Return the rows of each graph, work and device, by their peers."""
    found = {}
    for row in rows:
        found.setdefault((row["graph"], row["work"], row["device"]), {})[row["peer"]] = row
    return list(found.values())


class Measured:
    """The record, as templates ask it."""

    def __init__(self, record: Record):
        self._record = record

    def rows(self, suite: str, device: str | None = None) -> list[Row]:
        found = map(with_figures, self._record.rows(suite))
        return [row for row in found if device in (None, row["device"])]

    def works(self, suite: str, device: str | None = None) -> list[Beside]:
        return [Beside(rows) for rows in by_work(self.rows(suite, device))]

    def find(self, suite: str, graph: str, work: str, device: str | None = None) -> Beside:
        rows = self.rows(suite, device)
        of_work = [row for row in rows if (row["graph"], row["work"]) == (graph, work)]
        return Beside({row["peer"]: row for row in of_work})

    def installed_by(self, suite: str) -> str:
        run = self.rows(suite)[0]["run"]
        packages = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
        return (
            f"Measured by `python -m scripts.measure run {suite}` on {run['date']} at commit "
            f"{run['commit']}, on {run['machine']['cores']} cores ({run['machine']['cpu']}),\n"
            f"with {packages}."
        )

    def asked(self) -> dict:
        """Return what templates call."""
        names = ("rows", "works", "find", "installed_by")
        return {name: getattr(self, name) for name in names}


# --- machines


def runs_of(rows: Iterable[Row]) -> list[dict]:
    """Return the runs of rows, each once."""
    return list({str(row["run"]): row["run"] for row in rows}.values())


def host_of(run: dict) -> str:
    return f"{run['machine']['cpu']}, {run['machine']['cores']} cores"


def machine_of(run: dict) -> str:
    machine = run["machine"]
    words = host_of(run)
    if machine["memory_gib"]:
        words += f", {machine['memory_gib']} GiB"
    gpu = machine["gpu"]
    if gpu and machine["driver"]:
        gpu += f" (driver {machine['driver']})"
    return "; ".join(filter(None, (gpu, words)))


def made_by(rows: list[Row]) -> str:
    """Return machines, and the dates and commits of the runs of rows on each."""
    commits: dict[str, dict[str, dict[str, None]]] = {}
    for run in runs_of(rows):
        of_day = commits.setdefault(machine_of(run), {}).setdefault(run["date"], {})
        of_day[f"`{run['commit']}`"] = None
    made = []
    for name, days in commits.items():
        shown = (f"{day}, commit {', '.join(some)}" for day, some in days.items())
        made.append(f"{name} ({'; '.join(shown)})")
    return "; ".join(made) + "."


def made_on(rows: list[Row], where: str = "host") -> str:
    """Return the machine of the first run: its ``host``, its ``gpu`` and cores, or its ``card`` alone."""
    run = runs_of(rows)[0]
    gpu = run["machine"]["gpu"]
    named = {"host": host_of(run), "card": gpu, "gpu": f"{gpu}, {run['machine']['cores']} cores"}
    return f"{named[where]} ({run['date']}, commit `{run['commit']}`)."


def versions(rows: list[Row], packages: Any) -> str:
    """Return packages with their versions in the runs of rows, the first one of each; a dict has their titles."""
    found = ChainMap(*(run["versions"] for run in runs_of(rows)))
    titles = dict(zip(packages, packages, strict=True))
    if isinstance(packages, dict):
        titles = packages
    return ", ".join(f"{titles[name]} {found[name]}" for name in titles if name in found)


# --- figures


def seconds(value: float | None) -> str:
    if not value:
        return "-"
    if value < 100:
        return f"{value:.3g}"
    return f"{value:.0f}"


def number(value: Any) -> str:
    """Return a cell of four significant digits, thousands separated; texts as they are."""
    if not value and value != 0:
        return "-"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.4g}"


def factor(slow: float | None, fast: float | None) -> str:
    if not slow or not fast:
        return "-"
    if slow >= 100 * fast:
        return f"{slow / fast:,.0f}"
    return f"{slow / fast:,.1f}"


def long(row: Row | None, whole: Row) -> str:
    """Return the seconds or hours that a peer takes, or is estimated to take for the whole work."""
    if not row:
        return "-"
    taken = seconds_of(row) * whole["size"] / row["size"]
    words = f"{taken:,.3g} s"
    if taken >= 7200:
        words = f"{taken / 3600:.1f} h"
    elif taken >= 1000:
        words = f"{taken:,.0f} s"
    if row["size"] == whole["size"]:
        return words
    return f"{words} (estimated)"


FILTERS = {
    "call": lambda row: re.sub(r", [\d,]+ (sources|nodes)$", "", row["work"]),
    "digits": lambda value: f"{value:,.3g}",
    "each": lambda taken, row: f"{1e3 * taken / row['size']:.3g}" if taken else "-",
    "factor": factor,
    "fixed": lambda value: f"{value:.3f}" if value else "-",
    "graph": lambda row: f"{row['graph']}, {'directed' if row['directed'] else 'undirected'}",
    "host": host_of,
    "long": long,
    "mib": lambda value: f"{value / 2**20:.0f}",
    "number": number,
    "ratio": lambda slow, fast: f"{seconds_of(slow) / seconds_of(fast):,.2f}",
    "seconds": seconds,
    "size": lambda value: f"{value / 2**20:,.0f} MiB" if value else "-",
}
GIVEN = {"OURS": OURS, "made_by": made_by, "made_on": made_on, "versions": versions}
