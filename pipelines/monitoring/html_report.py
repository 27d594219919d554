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
from .run_stats import PHASES, RunStats, summarize_batch

# seconds without work after which the pause is removed from the time axis: the run was resumed
PAUSE = 60.0
_STATUS = {
    "done": ("good", "done: every result is there"),
    "failed": ("bad", "ended with failures"),
    "interrupted": ("warn", "interrupted"),
    "running": ("warn", "not finished"),
}


def render_page(manifest: Manifest, resume_command: str) -> str:
    """Return the report as HTML.

    ``manifest``: manifest of a run that has ended in any way. ``resume_command``: the command that
    finishes the run.
    """
    # Part files that an earlier run left without a manifest have no times.
    timed = [summarize_batch(part_number(part["file"]) or 0, part) for part in manifest["parts"]]
    batches, pauses = closed_up(sorted(filter(None, timed), key=lambda batch: batch["started"]))
    stats = _collect(manifest, batches)
    return (
        html_fragments.environment()
        .get_template("report.html")
        .render(
            title=html_fragments.title(manifest),
            status=_STATUS[manifest["status"]],
            made=time.strftime("%Y-%m-%d %H:%M:%S %z"),
            manifest=manifest,
            run=stats,
            numbers=_numbers(manifest, stats),
            errors=_errors(manifest),
            resume_command=resume_command,
            plan=_plan(manifest),
            busiest=[row for table in manifest["tables"] for row in table.get("busiest", ())],
            **_proof(manifest),
            times=_times(manifest, stats),
            pauses=pauses,
            plots=draw_plots(stats, manifest["algorithm"], batches),
            settings=[
                (key, _shown(value))
                for key, value in manifest["settings"].items()
                if value is not None
            ],
        )
    )


def closed_up(batches: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[float]]:
    """Remove the pauses between a run and its resumption from the times of batches, which are
    ordered by their start.

    Returns the batches, and the seconds that were removed, each more than ``PAUSE``.
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


def _collect(manifest: Manifest, batches: list[dict[str, Any]]) -> RunStats:
    """Return the statistics of a run, by its manifest."""
    timed = sum(batch["sources"] for batch in batches)
    there = sum(len(part["sources"]) for part in manifest["parts"])
    stats = RunStats(batches[0]["started"] if batches else 0.0, manifest["sources"], there - timed)
    failed = [
        {**each, "part": part_number(each["file"]), "n": len(each["sources"])}
        for each in manifest["failed"]
    ]
    retried = [{**each, "part": part_number(each["file"])} for each in manifest["retried"]]
    stats.take({"batches": batches, "failed": failed, "retried": retried})
    for part in manifest["parts"]:
        stats.distances = sum_histograms(stats.distances, part.get("distances"))
    return stats


def _numbers(manifest: Manifest, stats: RunStats) -> list[tuple[str, str]]:
    """Return the names and values of the numbers at the top."""
    whole = stats.whole
    took = max(stats.ended - stats.started, 1e-9)
    parts = manifest["parts"]
    return [
        ("sources done", f"{stats.done:,} of {stats.total:,}"),
        ("rows", f"{sum(part['rows'] for part in parts):,}"),
        ("written", in_units(sum(part["bytes"] for part in parts))),
        ("batches", f"{len(parts):,}"),
        ("sources/s", html_fragments.count(whole.sources / took) if whole.batches else "not known"),
        (
            "edges/s",
            html_fragments.edges_rate(stats, whole.edges / took) if whole.batches else "not known",
        ),
        ("failed sources", f"{stats.failed_sources:,}"),
        ("retries", f"{stats.retries:,}"),
        *(
            (f"{name} without a path", f"{value:,}")
            for table in manifest["tables"]
            for name, value in table.get("lost", {}).items()
        ),
    ]


def _errors(manifest: Manifest) -> list[dict[str, Any]]:
    """Return the kinds of errors, the most frequent first, each with the number and the first of
    its sources.
    """
    by_error: dict[str, list[Failure]] = {}
    for failure in manifest["failed"]:
        by_error.setdefault(failure["error"], []).append(failure)
    kinds = []
    for error, failures in sorted(by_error.items(), key=lambda entry: -len(entry[1])):
        names = [source for failure in failures for source in failure["sources"]]
        kinds.append({"error": error, "sources": names[:12], "n": len(names)})
    return kinds


def _plan(manifest: Manifest) -> list[tuple[str, object]]:
    """Return the lines on what was computed, and how."""
    graph = manifest["graph"]
    settings = manifest["settings"]
    built = graph.get("built", {})
    direction = "directed" if graph["directed"] else "undirected"
    same = manifest["duplicate_sources"]
    edges = settings["edges"]
    if isinstance(edges, list | tuple):
        edges = ", ".join(edges)
    return [
        ("edge list", edges),
        (
            "graph",
            f"{graph['vertices']:,} vertices, {graph['stored_edges']:,} stored edges, {direction}",
        ),
        ("graph fingerprint", graph["fingerprint"]),
        (
            "built from",
            ", ".join(
                f"{key.replace('_', ' ')}: {_shown(value)}"
                for key, value in built.items()
                if value != "" and not key.endswith(("_column", "_columns", "_numbers", "hints"))
            ),
        ),
        *(("note", hint) for hint in built.get("hints", [])),
        ("columns", columns_text(built, settings.get("columns"), settings.get("along"))),
        ("result", describe_result(manifest["result"])),
        ("distances", ", ".join(manifest.get("distances", {}).values())),
        *(
            [("direction", "in: distances to the sources")]
            if manifest.get("direction") == "in"
            else []
        ),
        ("algorithm", f"{manifest['algorithm']} by {manifest['strategy']} on {manifest['device']}"),
        *(
            [("choice of strategy", describe_choice(manifest["choice"]))]
            if manifest.get("choice")
            else []
        ),
        (
            "sources",
            f"{manifest['sources']:,}" + (f", and {same:,} given more than once" if same else ""),
        ),
        *((name, bound_text(estimate)) for name, estimate in read_estimate(manifest).items()),
        ("workers", f"{manifest['workers']:,}"),
        *((f"memory: {name}", in_units(size)) for name, size in manifest.get("memory", {}).items()),
    ]


def _proof(manifest: Manifest) -> dict[str, Any]:
    """Return ``proof``, the outcome of the certificates with the digests, and ``proven``, the class
    of that outcome.
    """
    wrong = sum(
        len(failure["sources"])
        for failure in manifest["failed"]
        if "CertificateError" in failure["error"]
    )
    how, proven = _say_proven(manifest)
    rejected = "none was rejected"
    state = "good" if how == "all" else "warn"
    if wrong:
        rejected = f"{wrong:,} more were rejected and not written"
        state = "bad"
    rows = [
        ("certificates", f"{proven}; {rejected}"),
        ("digest", manifest["digest"] or "none: the run is not complete"),
        ("run fingerprint", manifest["fingerprint"]),
    ]
    return {"proof": rows, "proven": state}


def _say_proven(manifest: Manifest) -> tuple[str, str]:
    """Return how much was certified ("all", "sample" or "none"), and a sentence on it."""
    parts = manifest["parts"]
    how = manifest["settings"]["certify"]
    done = sum(len(part["sources"]) for part in parts)
    kind = OUTPUT_SCHEMAS[manifest["result"]]
    if kind.is_distances:
        what = "results"
        then = "they were written"
    else:
        what = "traversals"
        then = f"{kind.name} was computed from them"
    if how == "none":
        return how, f"no {what[:-1]} was certified: the run had --certify none"
    if kind.of_labels or manifest.get("proved") == "labels":
        return "all", "the hub labels were proved as a whole before a row was written"
    where = "certified over all vertices and edges"
    if kind.one_search:  # there is only one part file
        then = "its rows were computed" if done else "any row was computed"
        return "all", f"the search from all sources together was {where} before {then}"
    if how == "all":
        return how, f"all {done:,} {what} were {where} before {then}"
    first = f"{len(parts):,} of {done:,} {what}, the first of each batch,"
    return how, f"{first} were certified before {then}"


def _times(manifest: Manifest, stats: RunStats) -> list[tuple[str, str]]:
    """Return the seconds of each step, and of the phases of workers."""
    seconds = manifest["seconds"]
    whole = stats.whole
    named = {key: text for key, (_, text) in STEPS.items()}
    if "build" not in seconds:
        named["read"] = "reading the graph"
    rows = [(named.get(key, key), html_fragments.seconds(value)) for key, value in seconds.items()]
    busy = sum(whole.phases.values())
    for phase in PHASES:
        took = whole.phases[phase]
        share = f" ({100 * took / busy:.1f} %)" if busy else ""
        rows.append((f"of the workers' time: {phase}", html_fragments.seconds(took) + share))
    return rows


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value)
