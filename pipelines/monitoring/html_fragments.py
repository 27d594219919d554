"""HTML that the dashboard's page and the report share: text, tables, and the style with a light and a dark scheme."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from ..cli.terminal import printable
from .run_stats import RunStats

# Style sheets do not apply to Bokeh's canvas: this script sets the colors of the scheme in its models.
SCHEME_SCRIPT = """
(function () {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function paint() {
    const ink = dark.matches ? "#d5dae1" : "#24292f", faint = dark.matches ? "#363c45" : "#dfe3e8";
    const paper = dark.matches ? "#1a1e24" : "#ffffff";
    for (const document of Bokeh.documents) {
      for (const model of document._all_models.values()) {
        const give = (values) => {
          const known = Object.entries(values).filter(([key]) => key in model.properties);
          model.setv(Object.fromEntries(known), {sync: false});  // the server need not know
        };
        give({
          background_fill_color: paper, border_fill_color: paper, outline_line_color: faint, text_color: ink,
          axis_label_text_color: ink, major_label_text_color: ink, axis_line_color: ink, major_tick_line_color: ink,
          minor_tick_line_color: faint, label_text_color: ink, border_line_color: paper,
        });
        if (model.grid_line_color) give({grid_line_color: faint});
      }
    }
    window.document.documentElement.dataset.painted = dark.matches ? "dark" : "light";
  }
  dark.addEventListener("change", paint);
  (function wait() {
    const ready = window.Bokeh !== undefined && Bokeh.documents.length > 0 && Bokeh.documents.every((d) => d.is_idle);
    if (ready) paint(); else window.setTimeout(wait, 50);
  })();
})();
"""

STYLE = """
:root { color-scheme: light dark; --ink: #24292f; --soft: #59636e; --paper: #ffffff; --ground: #f4f6f8; --line: #dfe3e8;
  --good: #1a7f37; --bad: #c62828; --warn: #9a6700; --accent: #0a58ca; }
@media (prefers-color-scheme: dark) { :root { --ink: #d5dae1; --soft: #9aa4b0; --paper: #1a1e24; --ground: #101318;
  --line: #363c45; --good: #4ac26b; --bad: #ff7b72; --warn: #d4a72c; --accent: #79b8ff; } }
* { box-sizing: border-box; }
:host { display: block; color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
:host > div { display: block; width: 100%; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 1.2rem 1rem 3rem; }
nav { background: var(--paper); border-bottom: 1px solid var(--line); padding: .5rem 1rem; }
nav a { margin-right: 1.1rem; }
a { color: var(--accent); text-decoration: none; }
h1 { font-size: 1.5rem; margin: .2rem 0 .4rem; }
h2 { font-size: 1.1rem; margin: 0 0 .7rem; }
p { margin: .5rem 0 .7rem; max-width: 75ch; }
.soft { color: var(--soft); }
code, pre { font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
pre { background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem;
  white-space: pre-wrap; }
section, .section { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: 1rem 1.2rem;
  margin: 0 0 1rem; }
.cards { display: flex; flex-wrap: wrap; gap: .7rem; margin: .8rem 0 1rem; }
.card { background: var(--paper); border: 1px solid var(--line); border-radius: 8px; padding: .6rem .8rem;
  flex: 1 1 auto; min-width: 6.5rem; }
.card b { display: block; font-size: 1.1rem; font-variant-numeric: tabular-nums; white-space: nowrap; }
.card > span { color: var(--soft); font-size: .85rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(440px, 1fr)); gap: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .28rem .9rem .28rem 0; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere; }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
td.n, th.n { text-align: right; white-space: nowrap; width: 1%; }
td.n + td:not(.n), th.n + th:not(.n) { padding-left: .9rem; }
td.key { width: 18rem; color: var(--soft); }
.good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
.meter { height: 8px; background: var(--line); border-radius: 4px; overflow: hidden; margin: .2rem 0 .9rem; }
.meter i { display: block; height: 100%; background: var(--good); }
.plot { display: block; width: 100%; height: auto; margin: .3rem 0 1rem; }
.plot text { fill: var(--ink); font: 12px system-ui, "DejaVu Sans", sans-serif; }
.plot .title { font-weight: 600; font-size: 13px; } .plot .middle { text-anchor: middle; } .plot .end { text-anchor: end; }
.plot .grid { stroke: var(--line); stroke-width: 1; } .plot .axis { stroke: var(--soft); stroke-width: 1; }
html[data-painted] #waiting { display: none; }
summary { cursor: pointer; font-weight: 600; }
@media (max-width: 600px) { .pair { grid-template-columns: 1fr; } main { padding: .6rem; } }
"""


class Markup(str):
    """Text that is HTML already; all other text is escaped when it is inserted."""

    __slots__ = ()


def text(value: Any) -> str:
    """Return a value as HTML; characters that are not printable, except line ends, are escaped as by ``repr``."""
    if isinstance(value, Markup):
        return value
    return escape("\n".join(map(printable, str(value).split("\n"))))


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Sequence[int] = ()) -> Markup:
    """Return a table; the columns in ``numbers`` are aligned to the right."""
    kind = [' class="n"' if i in numbers else "" for i in range(len(heads))]
    head = "".join(f"<th{kind[i]}>{text(name)}</th>" for i, name in enumerate(heads))
    body = "".join(
        "<tr>" + "".join(f"<td{kind[i]}>{text(value)}</td>" for i, value in enumerate(row)) + "</tr>" for row in rows
    )
    return Markup(f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')


def pairs(rows: Iterable[tuple[str, object]]) -> Markup:
    """Return a table with one name and value per line."""
    body = "".join(f'<tr><td class="key">{text(name)}</td><td>{text(value)}</td></tr>' for name, value in rows)
    return Markup(f"<table><tbody>{body}</tbody></table>")


def cards(rows: Iterable[tuple[str, object]]) -> Markup:
    """Return the key figures as a row of cards."""
    body = "".join(f'<div class="card"><span>{text(name)}</span><b>{text(value)}</b></div>' for name, value in rows)
    return Markup(f'<div class="cards">{body}</div>')


def seconds(value: float | None) -> str:
    """Return a duration as text."""
    if value is None:
        return "not known"
    if value < 100:
        return f"{value:.3g} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def count(value: float) -> str:
    """Return a rate or a large number as text, with about three digits."""
    for size, unit in ((1e9, " billion"), (1e6, " million")):
        if abs(value) >= size:
            return f"{value / size:,.3g}{unit}" if value < 1000 * size else f"{value / size:,.0f}{unit}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def title(run: Mapping[str, Any]) -> str:
    """Return the title of a run, from its ``algorithm``, ``sources`` and ``result``."""
    n, result = run["sources"], run["result"]
    said = f"{run['algorithm']} from {n:,} source" + ("" if n == 1 else "s")
    return said if result == "distances" else f"{said}: {result}"


def edges_rate(chronicle: RunStats, rate: float) -> str:
    """Return edges per second; a dash for results that do not tell which vertices were reached."""
    return count(rate) if chronicle.whole.edges else "-"


def sources_text(failure: dict[str, Any]) -> str:
    """Return the sources of a failure in the notation of ``--sources``."""
    shown = ", ".join(str(source) for source in failure["sources"])
    return shown + (
        f" and {failure['n'] - len(failure['sources']):,} more" if failure["n"] > len(failure["sources"]) else ""
    )


def slowest(chronicle: RunStats) -> Markup:
    """Return tables of the slowest batches and sources."""
    if not chronicle.whole.batches:
        return Markup('<p class="soft">No batch is done yet.</p>')
    phases = ("traverse", "certify", "rows", "write")
    rows = []
    for batch in chronicle.slowest():
        took = (batch["ended"] - batch["started"], *(batch["phases"].get(phase, 0.0) for phase in phases))
        rows.append([batch["part"], f"{batch['sources']:,}", *(f"{value:.3f}" for value in took), batch["worker"]])
    batches = table(("batch", "sources", "seconds", *phases, "worker"), rows, numbers=range(7))
    rows = [[part, f"{took:.4f}", source] for took, source, part in chronicle.slowest_sources()]
    sources = table(("batch", "seconds", "source"), rows, numbers=(0, 1))
    said = "<p>Sources that took longest to traverse from, at most one of each batch:</p>"
    return Markup(batches + (said + sources if rows else ""))


def trouble(chronicle: RunStats) -> Markup:
    """Return the last failures and retries of a run."""
    if not chronicle.failures and not chronicle.retries:
        return Markup('<p class="good">None.</p>')
    parts = []
    if chronicle.failures:
        rows = [[f["part"], f"{f['n']:,}", sources_text(f), f["error"]] for f in chronicle.failed]
        parts.append(f"<p>Failures: {chronicle.failures:,}, the last ones</p>")
        parts.append(table(("batch", "sources", "which", "error"), rows, numbers=(0, 1)))
    if chronicle.retries:
        rows = [[r["part"], r["why"]] for r in chronicle.retried]
        parts.append(f"<p>Retries: {chronicle.retries:,}, the last ones</p>")
        parts.append(table(("batch", "why"), rows, numbers=(0,)))
    return Markup("".join(parts))
