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
    extremes,
    first_use,
    hierarchy,
    hierarchy_baselines,
    hierarchy_gpu,
    networkx_backend,
    ways_in,
)
from scripts.pages import ROOT, between, put, read_record

BENCHMARKS, DOCS = ROOT / "docs/benchmarks", ROOT / "docs"


def beside(program: str, peer: str, size: str, whole: str) -> Callable[[dict[str, Any]], str]:
    """Return the function that makes a table of calls that this library and another one have made.

    Parameters
    ----------
    program : str
        That wrote the record.
    peer : str
        Name of the other library; in lower case its package, and with ``_seconds`` its key in the record.
    size : str
        The key, and the title, of how much a call asked for.
    whole : str
        What a time covers.
    """

    def table_of(record: dict[str, Any]) -> str:
        machine, package = record["machine"], peer.lower()
        lines = [
            f"| graph | vertices | edges | call | {size} | seconds | {peer}, seconds | ratio |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for row in record["rows"]:
            theirs = row[f"{package}_seconds"]
            lines.append(
                f"| {row['graph']} | {row['vertices']:,} | {row['edges']:,} | `{row['call']}` | {row[size]:,} "
                f"| {row['seconds']:.3g} | {theirs:.3g} | {theirs / row['seconds']:.2f} |"
            )
        made = f"on {record['date']} at commit {record['commit']}, on {machine['cores']} cores ({machine['cpu']})"
        return "\n".join(lines) + (
            f"\n\nMeasured by `scripts/bench/{program}.py` {made}, with {peer} {record['versions'][package]}.\n"
            f"Each time covers the whole call, {whole}. A ratio above 1: this library is faster.\n"
            "Both made each call in one process, and their results were compared first.\n"
        )

    return table_of


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
    _of(
        "csgraph",
        "from/scipy.md",
        beside("csgraph", "SciPy", "sources", "from the matrix to the arrays"),
    ),
    _of(
        "pandana_network",
        "from/pandana.md",
        beside("pandana_network", "pandana", "rows", "from Series to Series"),
    ),
    _of("networkx", "from/networkx.md", networkx_backend.table),
    _of("extremes", "results/extremes.md", extremes.table, "extremes: begin", "extremes: end"),
    _of("ways_in", "inputs/tables.md", ways_in.table_of),
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
