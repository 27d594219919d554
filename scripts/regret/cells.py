"""The time of a line of a sweep, as the page and the fit use it."""

from __future__ import annotations


def total(line: dict) -> float:
    """Seconds of a run, with those of building the reverse of a directed graph where the strategy needs one."""
    return line["seconds"] + (line.get("reverse_built") or 0.0)
