"""The main job from settings to results: prepare, size, run, report."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from kepler_traverse import __version__, cuda
from kepler_traverse.errors import CapacityError, OutputError, several
from kepler_traverse.runtime.object_stores import URL
from kepler_traverse.search.exact import describe_distances

from ..cli import steps
from ..cli.options import MG, Settings
from ..cli.settings import unfit_for_mg
from ..cli.shards import Shard, parse_shard
from ..cli.supervisor import UNWATCHED, Supervision
from ..cli.terminal import say
from ..monitoring import console
from ..monitoring.html_report import render_page
from ..output.commits import CommitLog
from ..output.layout import in_order
from ..output.manifest_types import FORMAT, Built, Manifest, PartEntry, PartSummary, ShardRecord
from ..output.part_file import checked_part
from ..output.run_folder import (
    MANIFEST,
    REPORT,
    OutputFolder,
    check_folder,
    compute_digest,
    compute_fingerprint,
    graph_folder,
    is_as_stored,
    mark_fits,
    read_layout,
    refuse_another_run,
    refuse_further_files,
    status_on_error,
)
from ..output.schemas import OUTPUT_SCHEMAS
from ..output.store import Store, open_store
from ..question import Ids
from ..scheduling.heartbeat import left_marks, read_mark
from ..scheduling.scheduler import BatchObserver
from .answered_tables import answered_tables, list_tables, tables_of_graph
from .engine import NOTHING_GIVEN, BatchRun, Engine, Given, KeplerEngine
from .environment import versions
from .finishing import finish_run
from .prepare import Prepared
from .question import make_identity
from .strategy_choice import current

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A run that has ended, and may have failed for some sources."""

    manifest: Manifest
    computed: int  # number of parts that this run has computed
    kept: int  # number of those that were there before
    seconds: float


def run(settings: Settings, resume_command: str, supervision: Supervision = UNWATCHED) -> int:
    """Run the job, print its plan or its summary, and return its exit code: 0, or 3 if some sources failed.

    Parameters and errors are those of ``execute``.
    """
    try:
        finished = execute(settings, resume_command, supervision)
        if finished is None:
            return 0
        console.show_summary(settings, finished.manifest, finished.computed, finished.kept, finished.seconds)
    except KeyboardInterrupt as interrupt:
        raise interrupt if interrupt.args else KeyboardInterrupt(_what_stands(settings, resume_command)) from None
    return 3 if finished.manifest["failed"] else 0


def _what_stands(settings: Settings, resume_command: str) -> str:
    """Describe what an interrupt at any moment has left in the output folder."""
    if settings.output is not None and URL.match(settings.output):
        return f"interrupted. To finish: {resume_command}"
    folder = None if settings.output is None or settings.plan else Path(settings.output).absolute()
    if folder is None or not (folder / MANIFEST).exists():
        return "interrupted before anything was written"
    if mark_fits(Store(folder)):
        return f"interrupted: all results are in {folder}. To write the report too: {resume_command}"
    return f"interrupted: {folder} holds a run that is not finished. To finish: {resume_command}"


def execute(
    settings: Settings, resume_command: str, supervision: Supervision = UNWATCHED, given: Given = NOTHING_GIVEN
) -> Finished | None:
    """Run the job; with ``settings.plan`` print its plan and return None.

    Raises InputError (raised before anything is written), NegativeCycleError (a negative cycle can be reached from some
    source) or KeyboardInterrupt (recorded in the manifest first).

    Parameters
    ----------
    resume_command : str
        The command that finishes the run, shown after an interrupt and in the report.
    supervision : Supervision
        Whether another process takes over if this one dies.
    given : Given
        What a caller in Python gives beyond the settings.
    """
    output = None
    if settings.output is not None and not settings.plan:
        output = open_store(settings.output if URL.match(settings.output) else Path(settings.output).absolute())
    with contextlib.closing(output) if output is not None else contextlib.nullcontext():
        return _execute(settings, output, resume_command, supervision, given)


def _execute(
    settings: Settings, output: Store | None, resume_command: str, supervision: Supervision, given: Given
) -> Finished | None:
    shard = parse_shard(settings.shard, {})
    is_alone = shard is None
    if output is not None and not output.is_local and is_alone:  # without locks, so that others may write there as well
        shard = Shard(0, 1)
    is_by_record = output is not None and not (is_alone or output.is_local)
    log = None if output is None else CommitLog(output, shard if is_by_record else None)
    before = None if output is None else check_folder(output, settings.resume, shared=not is_alone, log=log)
    with open_engine(settings, supervision, given) as engine:
        started = time.perf_counter()
        steps.begin("reading the edge list and building the graph")
        with proposed(settings):
            stored = None if output is None or before is None else graph_folder(output.path, shard)
            prepared = engine.prepare(stored)
            batch_size = settings.batch_size
            if before is not None and batch_size == "auto":  # so that the parts hold the same sources
                batch_size = before["identity"].get("batch_size", "auto")
            prepared.sizing = engine.size(prepared, batch_size)
            prepared.choice = engine.choose(prepared)
        if settings.plan:
            if settings.resume:
                say("note: --plan shows the whole run, also what --resume would find done")
            console.show_plan(settings, prepared)
            return None
        assert output is not None  # merge_settings requires --output, except with --plan
        manifest = _new_manifest(settings, prepared)
        layout, may_extend = read_layout(manifest), prepared.names if shard is None else ()

        def refuse(before: Manifest) -> None:
            refuse_another_run(output, before, manifest["identity"], not is_alone, may_extend)
            if not is_by_record:  # finish lists the parts of a shared run in an object store, which may be many
                refuse_further_files(output, output.versions(), layout, list_tables(settings))

        if before is not None:
            refuse(before)
        with OutputFolder(output, shard, log) as folder:
            record = None if log is None else log.record
            if prepared.choice is not None and before is not None:
                prepared.choice.resume(before.get("choice") if record is None else record["choice"])
                manifest["strategy"] = prepared.choice.strategy
            folder.manifest = manifest
            if shard is not None:
                before = folder.join(before, may_be_there=settings.resume or not is_alone)
                refuse(before)
            job = _Job(settings, prepared, folder, resume_command, engine, shard)
            if before is not None:
                if is_by_record:
                    job.keep_what_is_recorded(before, record)
                else:
                    job.keep_what_is_done(before)
                if supervision.needs_workers:
                    job.note_takeover(before)
            for name, make in tables_of_graph(settings).items():
                if not job.keeps(name):
                    folder.put_table(name, [make(prepared.graph)])
            try:
                if before is not None and shard is None and job.nothing_is_missing(before):
                    folder.manifest = before
                else:
                    job.run()
            finally:
                job.write_report()
            if shard is not None and is_alone and not folder.manifest["failed"]:
                folder.manifest, _ = finish_run(output)
        seconds = time.perf_counter() - started
        return Finished(manifest=folder.manifest, computed=job.computed, kept=job.kept, seconds=seconds)


def open_engine(
    settings: Settings, supervision: Supervision = UNWATCHED, given: Given = NOTHING_GIVEN
) -> AbstractContextManager[Engine]:
    """Return a context that yields the engine named in the settings and stops what the engine has started."""
    if settings.engine == MG:
        from ..multi_gpu.engine import mg_engine

        return mg_engine(settings)
    return contextlib.nullcontext(KeplerEngine(settings, supervision, given))


@contextlib.contextmanager
def proposed(settings: Settings) -> Iterator[None]:
    """If a graph or a plan does not fit one GPU, suggest the multi-GPU engine in the error."""
    try:
        yield
    except (CapacityError, MemoryError) as error:
        if settings.device == "cpu" or settings.engine == MG or not cuda.available():
            raise
        text = str(error)
        if isinstance(error, MemoryError):
            text = f"the graph does not fit the memory of a GPU ({' '.join(text.split())})"
        if settings.engine == "auto" and unfit_for_mg(settings) is None:
            text += f"; or take --engine {MG}, which partitions the graph over all GPUs"
            text += " (and leave --gpu-memory out)" if settings.gpu_memory is not None else ""
        raise CapacityError(text) from error


def _new_manifest(settings: Settings, prepared: Prepared) -> Manifest:
    graph, sizing, choice = prepared.graph, prepared.sizing, prepared.choice
    identity = make_identity(prepared.request, graph.fingerprint, prepared.names, sizing.batch_size, prepared.partitions)
    return {
        "format": FORMAT,
        "status": "running",
        "algorithm": settings.algorithm,
        "result": prepared.request.result,
        "direction": settings.direction,
        "means": OUTPUT_SCHEMAS[prepared.request.result].means,
        "settings": asdict(replace(settings, shard=None)),
        "identity": identity,
        "fingerprint": compute_fingerprint(identity),
        "distances": describe_distances(graph, prepared.request.algorithm),
        "graph": {
            "fingerprint": graph.fingerprint,
            "vertices": graph.n_vertices,
            "stored_edges": graph.n_edges,
            "directed": graph.directed,
            "built": cast(Built, graph.report.facts()),
            "reused": prepared.reused,
        },
        "device": prepared.plan.strategy.device,
        "strategy": prepared.plan.strategy.name if choice is None else choice.strategy,
        "choice": None if choice is None else choice.record,
        "workers": sizing.workers,
        "memory": sizing.memory,
        "sources": prepared.n_sources,
        "duplicate_sources": prepared.duplicates,
        "batches": sizing.n_batches,
        "versions": {
            "kepler_traverse": __version__,
            **versions(("numpy", "numba", "pyarrow", "distributed")),
        },
        "seconds": {name: round(value, 3) for name, value in prepared.seconds.items()},
        "parts": [],
        "tables": [],
        "failed": [],
        "retried": [],
        "digest": None,
    }


class _Job:
    """A run that may write: it computes the missing parts and updates the manifest, as the observer of the batches."""

    def __init__(
        self,
        settings: Settings,
        prepared: Prepared,
        folder: OutputFolder,
        resume_command: str,
        engine: Engine,
        shard: Shard | None = None,
    ):
        self._settings, self._prepared, self._folder = settings, prepared, folder
        self._resume_command, self._engine, self._shard = resume_command, engine, shard
        self._layout, numbers = read_layout(folder.manifest), prepared.numbers
        self._bounds = list(self._layout.bounds())
        parts = (shard or Shard(0, 1)).parts(self._layout.n_parts)
        self._batches = {part: numbers[slice(*self._bounds[part])].tolist() for part in parts}
        self._n_sources = sum(map(len, self._batches.values()))
        self.computed = self.kept = 0  # parts

    def _names(self, part: int) -> Ids:
        return self._prepared.names[slice(*self._bounds[part])]

    def keep_what_is_recorded(self, before: Manifest, record: ShardRecord | None) -> None:
        """Do not make parts again that are recorded: ``finish`` compares all, and records those that are lost.

        They are in the record of the shard, or else in the manifest before.
        """
        self._folder.keep_tables(before["tables"])
        if record is None:
            known = {part["file"]: part["sources"] for part in before["parts"]}
            done = {part for part in self._batches if known.get(self._layout.name(part)) == self._names(part)}
        else:
            done = set(range(record["until"])).difference(record["without"]).intersection(self._batches)
        for part in done:
            del self._batches[part]
        self._folder.done, self.kept = done, len(done)

    def keep_what_is_done(self, before: Manifest) -> None:
        """Check the files that are there; complete and correct parts and tables are not made again."""
        manifest = self._folder.manifest
        self._folder.keep_tables(before["tables"])
        known = {part["file"]: part for part in before["parts"]}
        store = self._folder.store
        there = store.versions()
        for part in list(self._batches):
            name, names = self._layout.name(part), self._names(part)
            record: PartEntry | None = known.get(name)
            summary: PartSummary | None = None
            if record is not None and record["sources"] == names and is_as_stored(record, there):
                summary = record
            elif name in there:
                with store.local([name]) as here:
                    summary = checked_part(here, part, self._layout, names, self._prepared.graph, record)
            if summary is not None:
                entry: PartEntry = {**summary, "sources": names}
                if entry["file"] in known:
                    manifest["parts"].append(entry)
                else:
                    self._folder.add("parts", entry)
                del self._batches[part]
                self.kept += 1

    def keeps(self, table: str) -> bool:
        """Whether a table of an earlier run is on disk unchanged."""
        return any(entry["file"] == table for entry in self._folder.manifest["tables"])

    def done(self, part: int, summary: PartSummary, without: frozenset[int]) -> None:
        numbers, names = self._batches[part], self._names(part)
        sources = [name for number, name in zip(numbers, names, strict=True) if number not in without]
        entry: PartEntry = {**summary, "sources": sources}
        self._folder.add("parts", entry)
        if not without:
            self._folder.done.add(part)
        self.computed += 1
        self._folder.save()
        self._progress.advance(part, entry)

    def failed(self, part: int, sources: list[int] | None, reason: str) -> None:
        numbers, names = self._batches[part], self._names(part)
        known = {name for entry in self._folder.manifest["failed"] for name in entry["sources"]}
        asked = set(numbers if sources is None else sources)
        given_up = [name for i, name in zip(numbers, names, strict=True) if i in asked and name not in known]
        self._folder.add("failed", {"file": self._layout.name(part), "sources": given_up, "error": reason})
        self._progress.failed(part, given_up, reason)

    def retried(self, part: int, why: str) -> None:
        self._folder.add("retried", {"file": self._layout.name(part), "why": why})
        self._progress.retried(part, why)

    def draining(self, tasks: int) -> None:
        what = "batches that run are" if tasks > 1 else "batch that runs is"
        say(f"interrupted: the {what} finished first; interrupt again to stop at once")

    def notice(self, message: str) -> None:
        say(message)

    def note_takeover(self, before: Manifest) -> None:
        """Record as retried what the process was at that ran the batches before, and what it had recorded itself."""
        if self._shard is None:  # those of a shared run are in its log
            self._folder.manifest["retried"] += before["retried"]
        for mark in left_marks(self._folder.path):
            place = read_mark(mark)
            for part in range(place.part, place.last + 1) if place is not None else ():
                if part in self._batches:
                    why = "the process that ran it was ended"
                    self._folder.add("retried", {"file": self._layout.name(part), "why": why})

    @property
    def _n_kept(self) -> int:
        """Sources whose parts were there before."""
        return self._n_sources - sum(map(len, self._batches.values()))

    def nothing_is_missing(self, before: Manifest) -> bool:
        """Whether the folder is complete and its manifest agrees with the parts that were checked here."""
        parts = self._folder.manifest["parts"]
        manifest = self._folder.manifest
        digest = compute_digest(manifest["graph"]["fingerprint"], parts, manifest["result"])
        right = {"status": "done", "parts": parts, "failed": [], "digest": digest}
        has_tables = all(self.keeps(name) for name in list_tables(self._settings))
        return (
            not self._batches
            and has_tables
            and mark_fits(self._folder.store)
            and {key: dict(before)[key] for key in right} == right
        )

    def run(self) -> None:
        """Compute the missing parts and complete the folder.

        Raises the errors of ``pipelines.scheduling.scheduler.Window.run``, after the manifest is written.
        """
        folder, manifest = self._folder, self._folder.manifest
        kept = {part["file"] for part in manifest["parts"]}
        if self._shard is None:
            folder.begin()
        with status_on_error(folder):
            try:
                if self._batches:
                    self._engine.answer(self.batch_run(kept))
                else:
                    self._finish({}, kept)
            except KeyboardInterrupt:
                if manifest["status"] in ("done", "failed"):  # it came while the workers closed
                    return
                done = self._n_kept + sum(len(part["sources"]) for part in manifest["parts"] if part["file"] not in kept)
                how = f"To finish: {self._resume_command}"
                raise KeyboardInterrupt(f"interrupted: {done} of {self._n_sources} sources are done. {how}") from None

    def _finish(self, times: dict[str, float], kept: Collection[str]) -> None:
        """Complete the folder, once all batches have ended.

        ``times``: seconds of each step of the engine. ``kept``: names of the parts that an earlier run has written.
        """
        folder, manifest = self._folder, self._folder.manifest
        if times:
            computed = [part for part in manifest["parts"] if part["file"] not in kept]
            compiled = min(times["traverse"], compile_seconds(computed))
            times = _sum(self._prepared.seconds, times, {"traverse": -compiled, "compile": compiled})
            manifest["seconds"] = {name: round(value, 3) for name, value in times.items()}
            steps.compiled(times["compile"])
        if self._shard is not None:
            folder.add_seconds(manifest["seconds"])
        if manifest["failed"]:
            folder.save("failed")
        elif self._shard is not None:
            folder.save("done")
        else:
            names = sorted((part["file"] for part in manifest["parts"]), key=in_order)  # workers end them in any order
            parts = [folder.path / name for name in names]
            for name, make in answered_tables(self._settings).items():
                folder.put_table(name, make(parts))
            folder.count_traffic()
            for pairs, volume in (each["lost"].values() for each in manifest["tables"] if "lost" in each):
                if pairs:
                    within = " within the limit" if manifest["identity"]["limit"] is not None else ""
                    say(f"{several(int(pairs), 'pair')} without a path{within}: a volume of {volume:,} is on no edge")
            folder.complete()

    def write_report(self) -> None:
        """Write ``_report.html`` into the output folder, also if the run was interrupted or failed."""
        if not self._settings.report or self._shard is not None:
            return
        try:
            self._folder.put(REPORT, render_page(self._folder.manifest, self._resume_command).encode())
        except OutputError as error:
            say(f"no {REPORT}: {error}")
        else:
            say(f"report: {self._folder.store}/{REPORT}")

    def batch_run(self, kept: Collection[str] = ()) -> BatchRun:
        """Return the input of the engine; ``kept`` are the names of the parts that an earlier run has written."""
        return BatchRun(
            batches=self._batches,
            prepared=self._prepared,
            folder=self._folder.path,
            graph=self._folder.graph,
            url="" if self._folder.store.is_local else str(self._folder.store),
            layout=self._layout,
            announce=self._announce,
            watch=self._watched,
            finish=lambda times: self._finish(times, kept),
        )

    def _announce(self, seconds: dict[str, float]) -> None:
        steps.end(seconds=_sum(self._prepared.seconds, seconds))
        for note in console.weights_not_used(self._settings, self._folder.manifest["graph"].get("built", {})):
            say(note)

    @contextlib.contextmanager
    def _watched(self, client: Client | None) -> Iterator[BatchObserver]:
        kept = {"sources": self._n_sources, "kept": self._n_kept}
        facts, news = console.collect_facts(self._folder.manifest) | kept, None
        if client is not None:
            from ..monitoring.dashboard_plugin import open_page

            news = open_page(client, facts, say)
        with console.Progress(facts, news) as self._progress:
            try:
                yield self
            finally:
                if self._prepared.choice is not None:
                    self._folder.manifest["strategy"] = current(self._prepared.choice.record)


def _sum(*of: dict[str, float]) -> dict[str, float]:
    """Return the sums by step, in the order in which the steps begin."""
    totals: dict[str, float] = {}
    for seconds in of:
        for name, value in seconds.items():
            totals[name] = totals.get(name, 0.0) + value
    return {name: totals[name] for name in steps.STEPS if name in totals}


def compile_seconds(parts: Sequence[PartEntry]) -> float:
    """Return the longest time that any worker has compiled in place of traversing."""
    by_worker: Counter[str] = Counter()
    for part in parts:
        by_worker[part.get("worker", "")] += part.get("phases", {}).get("compile", 0.0)  # type: ignore[assignment]
    return max(by_worker.values(), default=0.0)
