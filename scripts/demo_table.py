#!/usr/bin/env python
"""Compare finished runs of the job in a table, from the output of ``--json``: python scripts/demo_table.py RUN.json..."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HEADER = ["graph", "algorithm", "device", "sources", "rows", "seconds", "certified", "digest"]
TEXT = {"graph", "algorithm", "device", "certified", "digest"}


def row_of(summary: dict) -> list[str]:
    """Return one line of the table; the manifest has what the summary lacks."""
    manifest = json.loads((Path(summary["output"]) / "_manifest.json").read_text())
    settings = manifest["settings"]
    return [
        ", ".join(Path(edges).stem for edges in settings["edges"]),
        summary["algorithm"],
        summary["device"],
        f"{summary['sources']:,}",
        f"{summary['rows']:,}",
        f"{summary['seconds']['total']:.1f}",
        settings["certify"],
        summary["digest"],
    ]


def main(files: list[str]) -> None:
    summaries = [json.loads(Path(file).read_text()) for file in files]
    rows = [HEADER, *map(row_of, summaries)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(HEADER, row, widths, strict=True)
        print(
            "  ".join(
                f"{cell:<{width}}" if name in TEXT else f"{cell:>{width}}"
                for name, cell, width in cells
            ).rstrip()
        )
    print("\nResults, as Parquet with the columns source, vertex, distance, predecessor:")
    for summary in summaries:
        print(f"  {summary['output']}")


if __name__ == "__main__":
    main(sys.argv[1:])
