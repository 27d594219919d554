"""What people and programs are told: progress and messages on stderr, the plan or the summary on stdout."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict

from tqdm import tqdm

from .sizing import in_units

_SUMMARY = ("algorithm", "device", "strategy", "workers", "sources", "duplicate_sources", "batches")
_LINE_EVERY = 10.0  # seconds between two lines of progress where nobody watches


def say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


class Progress:
    """Sources done, sources a second and time left: a bar on a terminal, now and then a line elsewhere."""

    def __init__(self, done: int, total: int):
        self._bar = tqdm(total=total, initial=done, unit="source", file=sys.stderr, disable=None, dynamic_ncols=True)
        self._done, self._total, self._new = done, total, 0
        self._started = self._told = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_) -> None:
        self._bar.close()

    def advance(self, part: int, summary: dict) -> None:  # noqa: ARG002
        """A part is written; ``summary`` is what the manifest holds about it."""
        sources = len(summary["sources"])
        self._new += sources
        self._bar.update(sources)
        now = time.monotonic()
        if self._bar.disable and now - self._told >= _LINE_EVERY:
            self._told = now
            rate = self._new / (now - self._started)
            done = self._done + self._new
            say(f"{done}/{self._total} sources, {rate:.1f} sources/s, about {(self._total - done) / rate:.0f} s left")

    def failed(self, part: int, sources: list, error: str) -> None:  # noqa: ARG002
        """Some sources of a part are given up."""
        tqdm.write(f"batch {part} failed: {error}", file=sys.stderr)

    def retried(self, part: int, why: str) -> None:
        """A part is tried again."""


def show_plan(settings, prepared, sizing) -> None:
    """Print what would run."""
    graph, plan = prepared.graph, prepared.plan
    if settings.json:
        facts = {
            "graph": {
                "vertices": graph.n_vertices,
                "stored_edges": graph.n_edges,
                "directed": graph.directed,
                "max_degree": graph.max_degree,
                "built": asdict(graph.report),
            },
            "algorithm": plan.algorithm,
            "device": graph.device,
            "strategy": plan.strategy.name,
            "sources": int(prepared.numbers.size),
            "duplicate_sources": prepared.duplicates,
            **asdict(sizing),
        }
        print(json.dumps(facts))
        return
    built = graph.report
    chosen = "chosen as the first default that fits this graph" if settings.strategy == "auto" else "as asked for"
    lines = [
        ("graph", f"{graph.n_vertices:,} vertices, {graph.n_edges:,} stored edges, {_kind(graph)}"),
        ("degrees", f"at most {graph.max_degree:,}"),
        ("built", f"{built.rows:,} rows; dropped: {built.self_loops:,} self-loops, {built.parallel_edges:,} parallel edges"),
        ("strategy", f"{plan.strategy.name} for {plan.algorithm} on {graph.device}, {chosen}: {plan.strategy.teaches}"),
        ("sources", f"{prepared.numbers.size:,}{_duplicates(prepared.duplicates)}"),
        ("batches", f"{sizing.n_batches:,} of {sizing.batch_size:,} sources, one part file each"),
        ("workers", f"{sizing.workers} with {sizing.threads} thread{'s' if sizing.threads > 1 else ''} each"),
        *((f"memory: {name}", in_units(size)) for name, size in sizing.memory.items()),
        ("output", f"at most {in_units(sizing.output_bytes)} before compression"),
    ]
    width = max(len(name) for name, _ in lines)
    print("\n".join(f"{name:<{width}}  {text}" for name, text in lines))


def show_summary(settings, manifest: dict, computed: int, seconds: float) -> None:
    """Print what was done."""
    failed = manifest["failed"]
    facts = {
        "output": settings.output,
        "status": manifest["status"],
        **{key: manifest[key] for key in _SUMMARY},
        "computed": computed,
        "kept": len(manifest["parts"]) - computed,
        "failed": failed,
        "rows": sum(part["rows"] for part in manifest["parts"]),
        "bytes": sum(part["bytes"] for part in manifest["parts"]),
        "digest": manifest["digest"],
        "seconds": manifest["seconds"] | {"total": round(seconds, 3)},
    }
    if settings.json:
        print(json.dumps(facts))
        return
    kept = f" ({facts['kept']} batches were there already)" if facts["kept"] else ""
    sources = f"{facts['sources']:,} sources{_duplicates(facts['duplicate_sources'])}"
    print(f"{sources}, {facts['rows']:,} rows in {seconds:.1f} s{kept}")
    print(f"results: {settings.output} ({len(manifest['parts'])} parts, {in_units(facts['bytes'])})")
    if failed:
        print(f"failed: {len(failed)} of {facts['batches']} batches, see _manifest.json; --resume tries them again")
    else:
        print(f"digest: {facts['digest']}")


def _kind(graph) -> str:
    weights = "unweighted" if graph.weights is None else f"{graph.weights.dtype} weights"
    return f"{'directed' if graph.directed else 'undirected'}, {weights}"


def _duplicates(count: int) -> str:
    return f" ({count:,} given more than once are computed once)" if count else ""
