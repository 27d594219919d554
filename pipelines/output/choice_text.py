"""The choice between strategies, as a manifest records it: the last strategy, and a sentence."""

from __future__ import annotations

from .manifest_types import StrategyChoice as Record


def current_strategy(record: Record) -> str:
    """Return the strategy that a run has changed to last; the first one if it has not changed."""
    if record["switches"]:
        return record["switches"][-1]["strategy"]
    return record["first"]


def describe_choice(record: Record | None) -> str:
    """Describe in one sentence the choice, the measurements and the changes; "" if there was no
    choice (``record`` is None).
    """
    if not record:
        return ""
    # The choice: the estimate of the first strategy, and then those of the others.
    first = record["first"]
    estimates = {
        candidate["strategy"]: candidate["estimated"] for candidate in record["candidates"]
    }
    texts = [_seconds(estimates.get(first))]
    texts += [f"{name} {_seconds(value)}" for name, value in estimates.items() if name != first]
    text = f"{first} was chosen by estimates for all sources: {', '.join(texts)}"

    # What was measured since, and to which strategies the run has changed.
    measurements = [
        f"{measured['strategy']} {measured['sources']:,} sources in "
        f"{_seconds(measured['seconds'])} (estimated {_seconds(measured['estimated'])})"
        for measured in record["measured"]
    ]
    if measurements:
        text += f"; measured: {', '.join(measurements)}"

    for switch in record["switches"]:
        text += (
            f"; {switch['strategy']} went on after {switch['measured_sources']:,} measured sources"
        )
    return text


def _seconds(value: float | None) -> str:
    """Return estimated or measured seconds as text; None stands for no estimate."""
    if value is None:
        return "not estimated"
    return f"{value:.3g} s"
