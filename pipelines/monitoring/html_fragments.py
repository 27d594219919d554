"""HTML of the report and of the dashboard's page, by the templates beside this module, which escape
what is inserted.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..cli.terminal import printable
from .run_stats import RunStats

if TYPE_CHECKING:
    from jinja2 import Environment


def printed(value: Any) -> Any:
    """Return a value as text, in which characters that are not printable, except line ends, are
    escaped as by ``repr``.

    HTML that is marked as such, by a method ``__html__``, stays as it is.
    """
    if hasattr(value, "__html__"):
        return value
    return "\n".join(map(printable, str(value).split("\n")))


@functools.cache
def environment() -> Environment:
    """Return the environment of jinja2 by which pages are made of templates. All that a template
    inserts is made printable and escaped.
    """
    # Imported only here, because workers and runs without a report need none.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        finalize=printed,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"n": "{:,}".format, "seconds": seconds, "which": list_sources}
    return templates


def seconds(value: float | None) -> str:
    """Return a duration, given in seconds, as text: in minutes or hours if it is long, and "not
    known" for None.
    """
    if value is None:
        return "not known"
    if value < 100:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s"


def count(value: float) -> str:
    """Return a rate or a large number as text, with about three digits, in millions or billions if
    it is that large.
    """
    for size, unit in ((1e9, " billion"), (1e6, " million")):
        if abs(value) >= size:
            # three digits, or all digits of a number of thousands of the unit
            if value < 1000 * size:
                return f"{value / size:,.3g}{unit}"
            return f"{value / size:,.0f}{unit}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def title(run: Mapping[str, Any]) -> str:
    """Return the title of a run, such as "sssp from 64 sources". Of ``run``, a manifest or the
    facts of a run, it takes ``algorithm``, ``sources``, their number, and ``result``.
    """
    n_sources = run["sources"]
    result = run["result"]
    searches = f"{run['algorithm']} from {n_sources:,} source" + ("" if n_sources == 1 else "s")
    if result == "distances":
        return searches
    return f"{searches}: {result}"


def edges_rate(stats: RunStats, rate: float) -> str:
    """Return ``rate``, edges per second, as text. Return a dash if ``stats`` has counted no edges,
    as for results that do not say which vertices were reached.
    """
    return count(rate) if stats.whole.edges else "-"


def list_sources(failure: Mapping[str, Any]) -> str:
    """Return the sources of a failure as text: the first ones, and how many more there are.

    ``failure`` has ``sources``, the first of those that failed, and ``n``, the number of all.
    """
    text = ", ".join(map(str, failure["sources"]))
    n_more = failure["n"] - len(failure["sources"])
    return f"{text} and {n_more:,} more" if n_more > 0 else text
