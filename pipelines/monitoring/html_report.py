"""The report of a run: one self-contained HTML file, generated from the manifest."""

from __future__ import annotations

import json
import time
from typing import Any

from ..cli.terminal import in_units
from ..output.manifest_types import Failure, Manifest
from ..output.part_stats import merged
from ..output.schemas import OUTPUT_SCHEMAS
from ..run.strategy_choice import sentence
from . import html_fragments, svg_plots
from .console import columns_text
from .html_fragments import Markup
from .plot_data import MAX_ROWS, time_unit, timeline_data
from .run_stats import PHASES, RunStats, batch_of

PAUSE = 60.0  # seconds without work after which the pause is removed from the time axis: the run was resumed
_STATUS = {
    "done": ("good", "done: every result is there"),
    "failed": ("bad", "ended with failures"),
    "interrupted": ("warn", "interrupted"),
    "running": ("warn", "not finished"),
}
# No other file is ever asked for, and no script runs, whatever the page holds: the browser sees to it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def page_of(manifest: Manifest, resume_command: str) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    manifest : dict
        Manifest of a run that has ended in any way.
    resume_command : str
        The command that finishes the run.
    """
    batches, pauses = closed_up(_timed(manifest))
    chronicle = _chronicle(manifest, batches)
    drawn = _drawn(manifest, batches, chronicle)
    title = html_fragments.title(manifest)
    sections = [
        ("What failed, and how to finish", _unfinished(manifest, resume_command)),
        ("What ran", _plan(manifest)),
        ("Whether it is right", _proof(manifest)),
        ("Where the time went", Markup(_times(manifest, chronicle, pauses) + drawn["time"])),
        ("Distances", drawn["distances"]),
        ("Slowest batches and sources", html_fragments.slowest(chronicle) if batches else ""),
        ("Versions", html_fragments.pairs(manifest["versions"].items())),
        (
            "Settings",
            html_fragments.pairs((key, _shown(value)) for key, value in manifest["settings"].items() if value is not None),
        ),
    ]
    body = _head(title, manifest, chronicle) + "".join(
        f"<section><h2>{html_fragments.text(name)}</h2>{content}</section>" for name, content in sections if content
    )
    return _PAGE.format(
        policy=_POLICY,
        title=html_fragments.text(title),
        style=html_fragments.STYLE,
        body=body,
    )


def _timed(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the batches with times; part files that an earlier run left without a manifest have none."""
    batches = (batch_of(int(part["file"][5:11]), part) for part in manifest["parts"])
    return sorted((batch for batch in batches if batch is not None), key=lambda batch: batch["started"])


def closed_up(batches: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[float]]:
    """Remove the pauses between a run and its resumption from the times of batches, which are ordered by their start.

    Returns
    -------
    batches : list of dict
    pauses : list of float
        Seconds removed, each longer than ``PAUSE``.
    """
    closed: list[dict[str, Any]] = []
    pauses: list[float] = []
    end: float | None = None
    for batch in batches:
        if end is not None and batch["started"] - end > PAUSE:
            pauses.append(batch["started"] - end)
        end = max(end or batch["ended"], batch["ended"])
        out = sum(pauses)
        closed.append(batch | {"started": batch["started"] - out, "ended": batch["ended"] - out})
    return closed, pauses


def _chronicle(manifest: Manifest, batches: list[dict[str, Any]]) -> RunStats:
    timed = sum(batch["sources"] for batch in batches)
    there = sum(len(part["sources"]) for part in manifest["parts"])
    started = batches[0]["started"] if batches else 0.0
    chronicle = RunStats(started, manifest["sources"], there - timed)
    for batch in batches:
        chronicle.add(batch, batch["ended"])
    for part in manifest["parts"]:
        chronicle.distances = merged(chronicle.distances, part.get("distances"))
    for failure in manifest["failed"]:
        names = failure["sources"]
        chronicle.add_failure(int(failure["file"][5:11]), names, len(names), failure["error"])
    for retry in manifest.get("retried", ()):
        chronicle.add_retry(int(retry["file"][5:11]), retry["why"])
    return chronicle


def _head(title: str, manifest: Manifest, chronicle: RunStats) -> str:
    kind, status = _STATUS[manifest["status"]]
    whole, took = chronicle.whole, max(chronicle.ended - chronicle.started, 1e-9)
    parts = manifest["parts"]
    numbers = [
        ("sources done", f"{chronicle.done:,} of {chronicle.total:,}"),
        ("rows", f"{sum(part['rows'] for part in parts):,}"),
        ("written", in_units(sum(part["bytes"] for part in parts))),
        ("batches", f"{len(parts):,}"),
        ("sources/s", html_fragments.count(whole.sources / took) if whole.batches else "not known"),
        ("edges/s", html_fragments.edges_rate(chronicle, whole.edges / took) if whole.batches else "not known"),
        ("failed sources", f"{chronicle.failed_sources:,}"),
        ("retries", f"{chronicle.retries:,}"),
    ]
    where = manifest["settings"]["output"]
    made = time.strftime("%Y-%m-%d %H:%M:%S %z")
    return (
        f'<h1>{html_fragments.text(title)}</h1><p><b class="{kind}">{status}</b> '
        f'<span class="soft">{html_fragments.text(where)}, report made {made}</span></p>{html_fragments.cards(numbers)}'
    )


def _unfinished(manifest: Manifest, resume_command: str) -> str:
    """Return what is missing, by error, and the command that computes it; empty for a complete run."""
    if manifest["status"] == "done":
        return ""
    done = sum(len(part["sources"]) for part in manifest["parts"])
    failed = sum(len(failure["sources"]) for failure in manifest["failed"])
    left = max(0, manifest["sources"] - done - failed)
    text = [f"<p>Sources that failed: {failed:,}; not computed: {left:,}. Existing part files are complete and stay.</p>"]
    first = ""
    if "ended_by" in manifest:
        text.append(f"<p>This error ended the run:</p><pre>{html_fragments.text(manifest['ended_by'])}</pre>")
        first = " after this is fixed"
    text.append(f"<p>To compute the rest{first}:</p><pre>{html_fragments.text(resume_command)}</pre>")
    by_error: dict[str, list[Failure]] = {}
    for failure in manifest["failed"]:
        by_error.setdefault(failure["error"], []).append(failure)
    rows = []
    for error, failures in sorted(by_error.items(), key=lambda entry: -len(entry[1])):
        names = [source for failure in failures for source in failure["sources"]]
        rows.append([f"{len(names):,}", html_fragments.sources_text({"sources": names[:12], "n": len(names)}), error])
    if rows:
        more = len(rows) - 50
        text.append(html_fragments.table(("sources", "which", "error"), rows[:50], numbers=(0,)))
        text.append(f"<p>{more:,} further kinds of errors are in _manifest.json.</p>" if more > 0 else "")
    return "".join(text)


def _plan(manifest: Manifest) -> Markup:
    graph, settings = manifest["graph"], manifest["settings"]
    built, direction = graph.get("built", {}), "directed" if graph["directed"] else "undirected"
    same = manifest["duplicate_sources"]
    rows = [
        ("edge list", ", ".join(settings["edges"]) if isinstance(settings["edges"], list | tuple) else settings["edges"]),
        ("graph", f"{graph['vertices']:,} vertices, {graph['stored_edges']:,} stored edges, {direction}"),
        ("graph fingerprint", Markup(f"<code>{html_fragments.text(graph['fingerprint'])}</code>")),
        (
            "built from",
            ", ".join(
                f"{key.replace('_', ' ')}: {_shown(value)}"
                for key, value in built.items()
                if value != "" and not key.endswith(("_column", "_columns", "_numbers"))
            ),
        ),
        ("columns", columns_text(built)),
        ("result", f"{manifest['result']}: {manifest['means']}"),
        ("distances", ", ".join(manifest.get("distances", {}).values())),
        *([("direction", "in: distances to the sources")] if manifest.get("direction") == "in" else []),
        ("algorithm", f"{manifest['algorithm']} by {manifest['strategy']} on {manifest['device']}"),
        *([("choice of strategy", sentence(manifest["choice"]))] if manifest.get("choice") else []),
        ("sources", f"{manifest['sources']:,}" + (f", and {same:,} given more than once" if same else "")),
        ("workers", f"{manifest['workers']:,}"),
        *((f"memory: {name}", in_units(size)) for name, size in manifest.get("memory", {}).items()),
    ]
    return html_fragments.pairs(rows)


def _proof(manifest: Manifest) -> str:
    """Return the outcome of the certificates, and how to check the files."""
    parts, how = manifest["parts"], manifest["settings"]["certify"]
    done = sum(len(part["sources"]) for part in parts)
    wrong = sum(len(failure["sources"]) for failure in manifest["failed"] if "CertificateError" in failure["error"])
    form = OUTPUT_SCHEMAS[manifest["result"]]
    what, then = (
        ("results", "they were written") if form.is_distances else ("traversals", f"{form.name} was computed from them")
    )
    proven = {
        "all": f"all {done:,} {what} were certified over all vertices and edges before {then}",
        "sample": f"{len(parts):,} of {done:,} {what}, the first of each batch, were certified before {then}",
        "none": f"no {what[:-1]} was certified: the run had --certify none",
    }[how]
    if form.merged and how != "none":
        how = "all"  # there is only one part file
        then = "its rows were computed" if done else "any row was computed"
        proven = f"the search from all sources together was certified over all vertices and edges before {then}"
    kind = "bad" if wrong else "good" if how == "all" else "warn"
    rejected = f"{wrong:,} more were rejected and not written" if wrong else "none was rejected"
    rows = [
        ("certificates", Markup(f'<span class="{kind}">{html_fragments.text(proven)}; {rejected}</span>')),
        ("digest", Markup(f"<code>{html_fragments.text(manifest['digest'] or 'none: the run is not complete')}</code>")),
        ("run fingerprint", Markup(f"<code>{html_fragments.text(manifest['fingerprint'])}</code>")),
    ]
    return html_fragments.pairs(rows) + (
        '<p class="soft">The digest is the same for the same graph, sources and limits, whatever the batches, workers or '
        "device. _manifest.json has the SHA-256 of every part, and _SUCCESS that of _manifest.json.</p>"
    )


def _times(manifest: Manifest, chronicle: RunStats, pauses: list[float]) -> str:
    seconds, whole = manifest["seconds"], chronicle.whole
    named = {
        "read": "reading the edge list" if "build" in seconds else "reading the graph",
        "build": "building the graph",
        "plan": "planning",
        "compile": "compiling, once for this machine",
        "store": "storing the graph",
        "start": "starting workers, which load the graph",
        "traverse": "batches",
    }
    rows = [(named.get(key, key), html_fragments.seconds(value)) for key, value in seconds.items()]
    busy = sum(whole.phases.values())
    for phase in PHASES:
        share = f" ({100 * whole.phases[phase] / busy:.1f} %)" if busy else ""
        rows.append((f"of the workers' time: {phase}", html_fragments.seconds(whole.phases[phase]) + share))
    text: str = html_fragments.pairs(rows)
    if pauses:
        cut = ", ".join(html_fragments.seconds(pause) for pause in pauses[:12])
        said = f"The run was resumed; the time in between is cut out of the figures: {cut}. "
        said += "The first seconds above are of the last start, those of the workers of all."
        text += f'<p class="soft">{said}</p>'
    if chronicle.kept:
        text += (
            f'<p class="soft">No times are known for {chronicle.kept:,} sources, whose part files an earlier run wrote.</p>'
        )
    return text


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _drawn(manifest: Manifest, batches: list[dict[str, Any]], chronicle: RunStats) -> dict[str, str]:
    """The plots as HTML by section."""
    drawn = {"time": "", "distances": ""}
    if batches:
        names = chronicle.busiest(MAX_ROWS)
        lanes = {name: name if name in names else names[-1] for name in {batch["worker"] for batch in batches}}
        unit, size = time_unit(chronicle.ended - chronicle.started)
        timeline = svg_plots.timeline(timeline_data(batches, lanes, chronicle.started, size), names, unit)
        pair = "".join(f"<div>{svg_plots.rates(chronicle, what)}</div>" for what in ("sources", "edges"))
        drawn["time"] = f'<div class="pair">{pair}</div>{timeline}{svg_plots.phases(chronicle.shares(MAX_ROWS))}'
    if chronicle.distances is not None:
        plots = (plot(chronicle.distances, manifest["algorithm"]) for plot in (svg_plots.reach, svg_plots.histogram))
        drawn["distances"] = f'<div class="pair">{"".join(f"<div>{plot}</div>" for plot in plots)}</div>'
    return drawn
