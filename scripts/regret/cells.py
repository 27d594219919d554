"""What the lines of a sweep count for, on the page and in the fit alike."""

from __future__ import annotations


def total(line: dict) -> float:
    """Seconds of a run, with those of building the reverse of a directed graph where the strategy needs one."""
    return line["seconds"] + (line.get("reverse_built") or 0.0)
