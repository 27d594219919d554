"""The report of a run: one self-contained HTML file, generated from the manifest."""

from __future__ import annotations

import json
import time
from typing import Any

from kepler_traverse.runtime.display import in_units

from ..cli.steps import STEPS
from ..output.choice_text import describe_choice
from ..output.layout import part_number
from ..output.load_tables import describe_result
from ..output.manifest_types import Failure, Manifest
from ..output.part_stats import sum_histograms
from ..output.schemas import OUTPUT_SCHEMAS
from . import html_fragments
from .console import bound_text, columns_text, read_estimate
from .run_plots import draw_plots
from .run_stats import MAX_LISTED, PHASES, RunStats, summarize_batch

# A time of more seconds without work, between a run and its resumption, is removed from time axes.
PAUSE = 60.0
# by the status of a manifest, the class of its colour, and how the run has ended
_STATUS = {
    "done": ("good", "done: every result is there"),
    "failed": ("bad", "ended with failures"),
    "interrupted": ("warn", "interrupted"),
    "running": ("warn", "not finished"),
}


def render_page(manifest: Manifest, resume_command: str) -> str:
    """Return the report as HTML.

    ``manifest`` is that of a run that has ended in any way. ``resume_command`` is the command line
    that finishes the run.
    """
    # Part files that an earlier run left without a manifest have no times: of these the summary is
    # None.
    summaries = [
        summarize_batch(part_number(part["file"]) or 0, part) for part in manifest["parts"]
    ]
    timed = sorted(filter(None, summaries), key=lambda batch: batch["started"])
    batches, pauses = remove_pauses(timed)
    stats = _collect_stats(manifest, batches)
    return (
        html_fragments.environment()
        .get_template("report.html")
        .render(
            title=html_fragments.title(manifest),
            status=_STATUS[manifest["status"]],
            made=time.strftime("%Y-%m-%d %H:%M:%S %z"),
            manifest=manifest,
            run=stats,
            numbers=_list_numbers(manifest, stats),
            errors=_group_errors(manifest),
            resume_command=resume_command,
            plan=_list_plan(manifest),
            busiest=[row for table in manifest["tables"] for row in table.get("busiest", ())],
            **_list_proof(manifest),
            times=_list_times(manifest, stats),
            pauses=pauses,
            plots=draw_plots(stats, manifest["algorithm"], batches),
            settings=[
                (key, _to_text(value))
                for key, value in manifest["settings"].items()
                if value is not None
            ],
        )
    )


def remove_pauses(batches: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[float]]:
    """Remove the pauses between a run and its resumption from the times of batches.

    ``batches``, as ``run_stats.summarize_batch`` makes them, are ordered by their start. Return
    them with earlier times where a pause came before, and the seconds of each pause: the times of
    more than ``PAUSE`` seconds in which no batch ran.
    """
    moved: list[dict[str, Any]] = []
    pauses: list[float] = []
    # the latest end of the batches so far, in seconds since the epoch; None before the first
    end: float | None = None
    for batch in batches:
        if end is not None and batch["started"] - end > PAUSE:
            pauses.append(batch["started"] - end)
        end = max(end or batch["ended"], batch["ended"])
        removed = sum(pauses)
        times = {"started": batch["started"] - removed, "ended": batch["ended"] - removed}
        moved.append(batch | times)
    return moved, pauses


def _collect_stats(manifest: Manifest, batches: list[dict[str, Any]]) -> RunStats:
    """Return the statistics of a run.

    ``manifest`` is that of the run. ``batches`` are those that have times, as
    ``run_stats.summarize_batch`` makes them, ordered by their start.
    """
    n_timed = sum(batch["sources"] for batch in batches)
    n_done = sum(len(part["sources"]) for part in manifest["parts"])
    started = batches[0]["started"] if batches else 0.0
    # Sources of parts without times count as those of an earlier run, which has written them.
    stats = RunStats(started, manifest["sources"], n_done - n_timed)
    failed = [
        {**failure, "part": part_number(failure["file"]), "n": len(failure["sources"])}
        for failure in manifest["failed"]
    ]
    retried = [{**retry, "part": part_number(retry["file"])} for retry in manifest["retried"]]
    stats.take({"batches": batches, "failed": failed, "retried": retried})
    for part in manifest["parts"]:
        stats.distances = sum_histograms(stats.distances, part.get("distances"))
    return stats


def _list_numbers(manifest: Manifest, stats: RunStats) -> list[tuple[str, str]]:
    """Return the numbers at the top of the report, each as a name and a text."""
    whole = stats.whole
    parts = manifest["parts"]
    sources_per_second = "not known"
    edges_per_second = "not known"
    if whole.batches:  # else no batch has times
        seconds = max(stats.ended - stats.started, 1e-9)  # not 0, since it divides
        sources_per_second = html_fragments.count(whole.sources / seconds)
        edges_per_second = html_fragments.edges_rate(stats, whole.edges / seconds)
    return [
        ("sources done", f"{stats.done:,} of {stats.total:,}"),
        ("rows", f"{sum(part['rows'] for part in parts):,}"),
        ("written", in_units(sum(part["bytes"] for part in parts))),
        ("batches", f"{len(parts):,}"),
        ("sources/s", sources_per_second),
        ("edges/s", edges_per_second),
        ("failed sources", f"{stats.failed_sources:,}"),
        ("retries", f"{stats.retries:,}"),
        # of results that add up loads: pairs, or their values, that found no path
        *(
            (f"{name} without a path", f"{value:,}")
            for table in manifest["tables"]
            for name, value in table.get("lost", {}).items()
        ),
    ]


def _group_errors(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the errors of a run, grouped by their text: a dictionary per text with ``error``, the
    text, ``sources``, the first ones that failed so, and ``n``, the number of all of these. Errors
    of most batches come first.
    """
    by_error: dict[str, list[Failure]] = {}
    for failure in manifest["failed"]:
        by_error.setdefault(failure["error"], []).append(failure)
    kinds = []
    for error, failures in sorted(by_error.items(), key=lambda entry: -len(entry[1])):
        sources = [source for failure in failures for source in failure["sources"]]
        kinds.append({"error": error, "sources": sources[:MAX_LISTED], "n": len(sources)})
    return kinds


def _list_plan(manifest: Manifest) -> list[tuple[str, object]]:
    """Return the lines of the report on what was computed, and how, each as a name and a text."""
    graph = manifest["graph"]
    settings = manifest["settings"]
    built = graph.get("built", {})

    # The graph.
    edges = settings["edges"]
    if isinstance(edges, list | tuple):
        edges = ", ".join(edges)
    direction = "directed" if graph["directed"] else "undirected"
    size = f"{graph['vertices']:,} vertices, {graph['stored_edges']:,} stored edges, {direction}"
    # Columns and hints have lines of their own.
    own_lines = ("_column", "_columns", "_numbers", "hints")
    report = [
        f"{key.replace('_', ' ')}: {_to_text(value)}"
        for key, value in built.items()
        if value != "" and not key.endswith(own_lines)
    ]
    lines: list[tuple[str, object]] = [
        ("edge list", edges),
        ("graph", size),
        ("graph fingerprint", graph["fingerprint"]),
        ("built from", ", ".join(report)),
        *(("note", hint) for hint in built.get("hints", [])),
        ("columns", columns_text(built, settings.get("columns"), settings.get("along"))),
    ]

    # The question and how it was answered.
    lines += [
        ("result", describe_result(manifest["result"])),
        ("distances", ", ".join(manifest.get("distances", {}).values())),
    ]
    if manifest.get("direction") == "in":
        lines.append(("direction", "in: distances to the sources"))
    lines.append(
        ("algorithm", f"{manifest['algorithm']} by {manifest['strategy']} on {manifest['device']}")
    )
    if manifest.get("choice"):
        lines.append(("choice of strategy", describe_choice(manifest["choice"])))

    # Sources, workers and memory.
    sources = f"{manifest['sources']:,}"
    if manifest["duplicate_sources"]:
        sources += f", and {manifest['duplicate_sources']:,} given more than once"
    lines += [
        ("sources", sources),
        *((name, bound_text(estimate)) for name, estimate in read_estimate(manifest).items()),
        ("workers", f"{manifest['workers']:,}"),
        *((f"memory: {name}", in_units(size)) for name, size in manifest.get("memory", {}).items()),
    ]
    return lines


def _list_proof(manifest: Manifest) -> dict[str, Any]:
    """Return two variables of the template: ``proof``, the lines on certificates and digests, each
    as a name and a text; and ``proven``, the class of their colour: "good", "warn" or "bad".
    """
    # sources whose certificate has failed
    n_rejected = sum(
        len(failure["sources"])
        for failure in manifest["failed"]
        if "CertificateError" in failure["error"]
    )
    how_much, proven = _describe_certified(manifest)
    rejected = "none was rejected"
    outcome = "good" if how_much == "all" else "warn"
    if n_rejected:
        rejected = f"{n_rejected:,} more were rejected and not written"
        outcome = "bad"
    rows = [
        ("certificates", f"{proven}; {rejected}"),
        ("digest", manifest["digest"] or "none: the run is not complete"),
        ("run fingerprint", manifest["fingerprint"]),
    ]
    return {"proof": rows, "proven": outcome}


def _describe_certified(manifest: Manifest) -> tuple[str, str]:
    """Return how much was certified, "all", "sample" or "none", and the same in words."""
    certify = manifest["settings"]["certify"]
    kind = OUTPUT_SCHEMAS[manifest["result"]]
    # What was certified, and what came after that.
    if kind.is_distances:
        certified = "result"
        then = "they were written"
    else:
        certified = "traversal"
        then = f"{kind.name} was computed from them"
    if certify == "none":
        return certify, f"no {certified} was certified: the run had --certify none"
    if kind.of_labels or manifest.get("proved") == "labels":
        return "all", "the hub labels were proved as a whole before a row was written"

    parts = manifest["parts"]
    n_done = sum(len(part["sources"]) for part in parts)
    scope = "certified over all vertices and edges"
    if kind.one_search:  # there is only one part file
        then = "its rows were computed" if n_done else "any row was computed"
        return "all", f"the search from all sources together was {scope} before {then}"
    if certify == "all":
        return certify, f"all {n_done:,} {certified}s were {scope} before {then}"
    first = f"{len(parts):,} of {n_done:,} {certified}s, the first of each batch,"
    return certify, f"{first} were certified before {then}"


def _list_times(manifest: Manifest, stats: RunStats) -> list[tuple[str, str]]:
    """Return the lines of the report on times, each as a name and a text: the steps of the run, and
    the phases of the work of all workers together.
    """
    seconds = manifest["seconds"]
    phases = stats.whole.phases
    names = {step: text for step, (_, text) in STEPS.items()}
    if "build" not in seconds:  # a graph was read that is stored, or read and built in one step
        names["read"] = "reading the graph"
    rows = [
        (names.get(step, step), html_fragments.seconds(value)) for step, value in seconds.items()
    ]
    total = sum(phases.values())
    for phase in PHASES:
        share = f" ({100 * phases[phase] / total:.1f} %)" if total else ""
        time_of_phase = html_fragments.seconds(phases[phase])
        rows.append((f"of the workers' time: {phase}", time_of_phase + share))
    return rows


def _to_text(value: Any) -> str:
    """Return the value of a setting as text: a text without quotes, and others as in JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value)
