"""How the pages of the papers write factors, ranges and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scripts.papers.record import NotMeasuredError


def factor(value: float) -> str:
    if value < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}"


def listed(values: Iterable[float]) -> list[float]:
    """Return values; NotMeasuredError: there is none."""
    found = list(values)
    if not found:
        raise NotMeasuredError
    return found


def extremes(values: Mapping[str, float]) -> str:
    """Return the least and the largest value, each with its name."""
    listed(values.values())
    low = min(values, key=values.__getitem__)
    high = max(values, key=values.__getitem__)
    words = f"{factor(values[low])} ({low})"
    if low != high:
        words += f" to {factor(values[high])} ({high})"
    return words


def span(values: Iterable[float]) -> str:
    """Return the least and the largest value."""
    found = listed(values)
    low = factor(min(found))
    high = factor(max(found))
    if low == high:
        return low
    return f"{low} to {high}"


def figures(values: Mapping[str, float], unit: str = "") -> str:
    """Return each value with its name."""
    listed(values.values())
    return ", ".join(f"{name} {factor(value)}{unit}" for name, value in values.items())


def named(names: Iterable[str], none: str = "none") -> str:
    """Return names in one line; ``none`` if there is none."""
    return ", ".join(names) or none
