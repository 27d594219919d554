"""The text of docs/guarantees.md: scripts/templates/guarantees.md with the figures that scripts/evidence measured."""

from __future__ import annotations

import textwrap

from scripts.mutation import record
from scripts.pages import filled


def wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text.strip(), 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


FILTERS = {
    "passed": lambda of: f"{of['ran'] - of['failed']} of {of['ran']}",
    "thousands": "{:,}".format,
    "wrap": wrapped,
}


def page(measured: dict) -> str:
    """The whole text of docs/guarantees.md."""
    return filled(
        "guarantees.md",
        FILTERS,
        measured=measured,
        gpu_checks=sorted(key for key in measured if key.startswith("gpu_check_")),
        of=lambda key: measured.get(key, {}).get("figures", {}),
        mutants=record.counts_of(record.read_record()),
    )
