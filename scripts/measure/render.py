"""The pages that show measurements, rendered from their record by the templates of scripts/templates."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.bench import roofline
from scripts.measure import logs
from scripts.measure.cells import FILTERS, GIVEN, Measured
from scripts.measure.environment import ROOT
from scripts.measure.record import Record
from scripts.pages import between, filled, listed, put

DOCS = ROOT / "docs"
BENCHMARKS = DOCS / "benchmarks"


def text(template: str, record: Record) -> str:
    """Return the text of a template of the record."""
    return filled(template, FILTERS, **GIVEN, **Measured(record).asked())


class Part(NamedTuple):
    """A part of a page, between two markers, and its template."""

    page: Path
    template: str
    begin: str = "measured: begin"
    end: str = "measured: end"


PARTS: Sequence[Part] = tuple(
    Part(ROOT / each.pop("page"), **each) for each in listed(__file__)["parts"]
)


def pages(record: Record, parts: Sequence[Part]) -> dict[Path, str]:
    """Return the texts of the pages with their parts."""
    texts = {}
    for part in parts:
        before = texts.get(part.page) or part.page.read_text(encoding="utf-8")
        markers = f"<!-- {part.begin} -->", f"<!-- {part.end} -->"
        texts[part.page] = between(before, *markers, text(f"parts/{part.template}.md", record))
    return texts


def whole_pages(record: Record) -> dict[Path, str]:
    """Return the texts of the pages that are generated as a whole, and of plots."""
    levels, plots = roofline.page(record)
    texts = {
        DOCS / "performance.md": text("performance.md", record),
        BENCHMARKS / "levels.md": levels,
        logs.LOG / "README.md": logs.index(record),
    }
    return texts | {BENCHMARKS / name: plot for name, plot in plots.items()}


def put_pages(record: Record, check: bool = False) -> int:
    """Write the pages, or with ``check`` say which are stale; return the exit code."""
    texts = pages(record, PARTS) | whole_pages(record)
    if check and (edited := logs.edited(record)):
        print(f"{' and '.join(edited)}: a log is never edited, and this one was", file=sys.stderr)
        return 1
    return put(texts, "scripts.measure write", check, BENCHMARKS / roofline.PLOTS)
