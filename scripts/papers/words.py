"""How the pages of the papers write factors, ranges and times."""

from __future__ import annotations

from collections.abc import Iterable


def factor(value: float) -> str:
    if value < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}"


def extremes(values: dict[str, float]) -> str:
    """Return the least and the largest value, each with its name."""
    low = min(values, key=values.__getitem__)
    high = max(values, key=values.__getitem__)
    words = f"{factor(values[low])} ({low})"
    if low != high:
        words += f" to {factor(values[high])} ({high})"
    return words


def span(values: Iterable[float]) -> str:
    """Return the least and the largest value."""
    listed = list(values)
    low, high = factor(min(listed)), factor(max(listed))
    if low == high:
        return low
    return f"{low} to {high}"


def named(names: Iterable[str], none: str = "none") -> str:
    """Return names in one line; ``none`` if there is none."""
    return ", ".join(names) or none
