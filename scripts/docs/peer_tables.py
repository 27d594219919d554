"""Write the tables of measurements in docs/from/scipy.md and docs/from/pandana.md from the records in docs/benchmarks.

``python -m scripts.docs.peer_tables`` writes them. With ``--check`` nothing is written, and the exit code is 1 if a page is
stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


class Page(NamedTuple):
    """A table of calls that both libraries made.

    Attributes
    ----------
    record, path : Path
    program : str
        That wrote the record.
    peer : str
        Name of the other library; in lower case its package, and with ``_seconds`` its key in the record.
    size : str
        The key, and the title, of how much a call asked for.
    whole : str
        What a time covers.
    """

    record: Path
    path: Path
    program: str
    peer: str
    size: str
    whole: str


PAGES = (
    Page(
        ROOT / "docs/benchmarks/csgraph.json",
        ROOT / "docs/from/scipy.md",
        "scripts/bench/csgraph.py",
        "SciPy",
        "sources",
        "from the matrix to the arrays",
    ),
    Page(
        ROOT / "docs/benchmarks/pandana_network.json",
        ROOT / "docs/from/pandana.md",
        "scripts/bench/pandana_network.py",
        "pandana",
        "rows",
        "from Series to Series",
    ),
)


def table_of(page: Page, record: dict[str, Any]) -> str:
    """Return the measurements as a table, with a line that says where and how they were made."""
    machine, package = record["machine"], page.peer.lower()
    lines = [
        f"| graph | vertices | edges | call | {page.size} | seconds | {page.peer}, seconds | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in record["rows"]:
        theirs = row[f"{package}_seconds"]
        lines.append(
            f"| {row['graph']} | {row['vertices']:,} | {row['edges']:,} | `{row['call']}` | {row[page.size]:,} "
            f"| {row['seconds']:.3g} | {theirs:.3g} | {theirs / row['seconds']:.2f} |"
        )
    made = f"on {record['date']} at commit {record['commit']}, on {machine['cores']} cores ({machine['cpu']})"
    load = f" The load of the machine was {record['load']:.1f} before." if "load" in record else ""
    return "\n".join(lines) + (
        f"\n\nMeasured by `{page.program}` {made}, with {page.peer} {record['versions'][package]}.{load}\n"
        f"Each time covers the whole call, {page.whole}. A ratio above 1: this library is faster.\n"
        "Both made each call in one process, and their results were compared first.\n"
    )


def page_with(text: str, table: str) -> str:
    """Return the page with another table."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{table}{END}{rest.split(END)[1]}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the measurements in docs/from/scipy.md and docs/from/pandana.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is stale")
    options = parser.parse_args(arguments)
    stale = 0
    for page in PAGES:
        text = page.path.read_text(encoding="utf-8")
        new = page_with(text, table_of(page, json.loads(page.record.read_text(encoding="utf-8"))))
        if not options.check:
            page.path.write_text(new, encoding="utf-8")
        elif text != new:
            print(f"{page.path.name} is stale: run python -m scripts.docs.peer_tables", file=sys.stderr)
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
