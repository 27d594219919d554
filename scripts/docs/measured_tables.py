"""Write the tables of measurements that pages have between two markers, from the records in docs/benchmarks.

``python -m scripts.docs.measured_tables`` writes them. With ``--check`` nothing is written, and the exit code is 1 if a page
is stale. The programs of ``scripts.bench`` write the records.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from scripts.bench import (
    first_use,
    hierarchy,
    hierarchy_baselines,
    hierarchy_gpu,
    ways_in,
)
from scripts.pages import ROOT, between, put, read_record

BENCHMARKS, DOCS = ROOT / "docs/benchmarks", ROOT / "docs"


class Table(NamedTuple):
    """A table of a page: its record, the function that makes its lines, and the markers around them."""

    record: Path
    page: Path
    lines: Callable[[Any], str]
    markers: tuple[str, str]


def _of(
    name: str,
    page: str,
    lines: Callable[[Any], str],
    begin: str = "measured: begin",
    end: str = "measured: end",
) -> Table:
    return Table(
        BENCHMARKS / f"{name}.json", DOCS / page, lines, (f"<!-- {begin} -->", f"<!-- {end} -->")
    )


TABLES: Sequence[Table] = (
    _of("ways_in", "inputs.md", ways_in.table_of),
    _of("first_use", "versions.md", first_use.sizes_table, "sizes: begin", "sizes: end"),
    _of("first_use", "../README.md", first_use.sentence, "sizes: begin", "sizes: end"),
    _of("hierarchy", "hierarchies.md", hierarchy.rendered, "measured", "end"),
    _of("hierarchy_more", "hierarchies.md", hierarchy.rendered_more, "measured more", "end more"),
    _of(
        "hierarchy_gpu",
        "hierarchies.md",
        hierarchy_gpu.rendered,
        "measured on a GPU",
        "end of the GPU",
    ),
    _of(
        "hierarchy_baselines",
        "hierarchies.md",
        hierarchy_baselines.rendered,
        "baselines",
        "end of baselines",
    ),
)


def pages(tables: Sequence[Table]) -> dict[Path, str]:
    """Return the texts of the pages with the tables of their records."""
    texts: dict[Path, str] = {}
    for table in tables:
        text = texts.get(table.page) or table.page.read_text(encoding="utf-8")
        texts[table.page] = between(text, *table.markers, table.lines(read_record(table.record)))
    return texts


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Write the tables of measurements from their records."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a page is stale"
    )
    options = parser.parse_args(arguments)
    return put(pages(TABLES), "scripts.docs.measured_tables", options.check)


if __name__ == "__main__":
    sys.exit(main())
