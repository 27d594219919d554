"""The choice between strategies, as a manifest records it: the last strategy, and a sentence."""

from __future__ import annotations

from .manifest_types import StrategyChoice as Record


def current(record: Record) -> str:
    """Return the last strategy of a run's tasks."""
    if record["switches"]:
        return record["switches"][-1]["strategy"]
    return record["first"]


def sentence(record: Record | None) -> str:
    """Describe in one sentence the choice, the measurements and the changes; "" if there was no
    choice.
    """
    if not record:
        return ""
    estimates = {each["strategy"]: each["estimated"] for each in record["candidates"]}
    others = ", ".join(
        f"{name} {_seconds(value)}" for name, value in estimates.items() if name != record["first"]
    )
    text = (
        f"{record['first']} was chosen by estimates for all sources: "
        f"{_seconds(estimates.get(record['first']))}"
    )
    text += f", {others}" if others else ""
    took = [
        f"{each['strategy']} {each['sources']:,} sources in {_seconds(each['seconds'])} "
        f"(estimated {_seconds(each['estimated'])})"
        for each in record["measured"]
    ]
    text += f"; measured: {', '.join(took)}" if took else ""
    for switch in record["switches"]:
        text += (
            f"; {switch['strategy']} went on after {switch['measured_sources']:,} measured sources"
        )
    return text


def _seconds(value: float | None) -> str:
    if value is None:
        return "not estimated"
    return f"{value:.3g} s"
