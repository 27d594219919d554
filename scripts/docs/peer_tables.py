"""Write the table of measurements in docs/from/scipy.md from docs/benchmarks/csgraph.json.

``python -m scripts.docs.scipy_page`` writes it; with ``--check`` nothing is written, and the exit code is 1 if it is stale.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORD, PAGE = ROOT / "docs/benchmarks/csgraph.json", ROOT / "docs/from/scipy.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


def table_of(record: dict[str, Any]) -> str:
    """Return the measurements as a table, with a line that says where and how they were made."""
    machine, versions = record["machine"], record["versions"]
    lines = [
        "| graph | vertices | edges | call | sources | seconds | SciPy, seconds | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in record["rows"]:
        ratio = row["scipy_seconds"] / row["seconds"]
        lines.append(
            f"| {row['graph']} | {row['vertices']:,} | {row['edges']:,} | `{row['call']}` | {row['sources']} "
            f"| {row['seconds']:.3g} | {row['scipy_seconds']:.3g} | {ratio:.2f} |"
        )
    made = f"on {record['date']} at commit {record['commit']}, on {machine['cores']} cores ({machine['cpu']})"
    return "\n".join(lines) + (
        f"\n\nMeasured by `scripts/bench/csgraph.py` {made}, with SciPy {versions['scipy']}.\n"
        "Each time covers the whole call, from the matrix to the arrays. A ratio above 1: this library is faster.\n"
        "Both made each call in one process, and their results were compared first.\n"
    )


def page_with(text: str, table: str) -> str:
    """Return the page with another table."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{table}{END}{rest.split(END)[1]}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write the measurements in docs/from/scipy.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is stale")
    options = parser.parse_args(arguments)
    text = PAGE.read_text(encoding="utf-8")
    new = page_with(text, table_of(json.loads(RECORD.read_text(encoding="utf-8"))))
    if not options.check:
        PAGE.write_text(new, encoding="utf-8")
    elif text != new:
        print(f"{PAGE.name} is stale: run python -m scripts.docs.scipy_page", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
