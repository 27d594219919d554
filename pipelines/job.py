"""The main job from settings to results: prepare, size, run, report."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import sys
import time
import uuid
from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path

from kepler_traverse import __version__
from kepler_traverse.errors import InputError, OutputError
from kepler_traverse.storage import save_graph

from . import report
from .batches import Task, Window, batches_of
from .cluster import cluster_for, give_plugin, take_plugin
from .cugraph_mg import Engine, engine_for, proposed
from .dashboard import open_page
from .environment import versions
from .existing import check_existing, check_newcomers, refuse_small_workers, survey, version_here
from .forms import FORMS
from .html_report import page_of
from .manifest import (
    GRAPH,
    REPORT,
    OutputFolder,
    cannot_write,
    check_folder,
    digest_of,
    fingerprint_of,
    refuse_another_run,
    status_on_error,
)
from .prepare import Prepared, load_of, machine_for, prepare
from .settings import MG
from .sink import checked_part, part_name
from .sizing import Sizing, size_up
from .worker import TraversalPlugin, Work, run_batches
from .writers import fits_beside


def run(settings, command: str) -> int:
    """Run the job and return its exit code: 0, or 3 if some sources could not be answered.

    Parameters
    ----------
    settings : Settings
    command : str
        The command line, to tell how to resume.

    Raises
    ------
    InputError
        Before anything is written.
    NegativeCycleError
        A negative cycle can be reached from some source.
    KeyboardInterrupt
        Noted in the manifest first.
    """
    output = None if settings.output is None else Path(settings.output).absolute()
    before = None if output is None or settings.plan else check_folder(output, settings.resume)
    with engine_for(settings) if settings.engine == MG else contextlib.nullcontext() as engine:
        return _run(settings, command, output, before, engine)


def _run(settings, command: str, output: Path | None, before: dict | None, engine: Engine | None) -> int:
    """Run the job by an engine of its own, or by this library."""
    started = time.perf_counter()
    with proposed(settings):
        stored = output / GRAPH if before is not None else None
        prepared = prepare(settings, stored) if engine is None else engine.prepare()
        sizing, identity = _size(settings, prepared, before, engine)
    if settings.plan:
        if settings.resume:
            report.say("note: --plan shows the whole run, also what --resume would find done")
        report.show_plan(settings, prepared, sizing)
        return 0
    if before is not None:
        refuse_another_run(output, before, identity, sizing.n_batches)
    with OutputFolder(output) as folder:
        folder.manifest = _new_manifest(settings, prepared, sizing, identity)
        job = _Job(settings, prepared, sizing, folder, command, engine)
        if before is not None:
            job.keep_what_is_done(before)
        if before is not None and job.nothing_is_missing(before):
            folder.manifest = before
        else:
            try:
                job.run()
            finally:
                job.write_report()
    seconds = time.perf_counter() - started
    report.show_summary(settings, folder.manifest, job.computed, seconds)
    return 3 if folder.manifest["failed"] else 0


def _size(settings, prepared: Prepared, before: dict | None, engine: Engine | None) -> tuple[Sizing, dict]:
    batch_size = settings.batch_size
    if before is not None and batch_size == "auto":
        batch_size = before["identity"].get("batch_size", "auto")  # so that the parts are the same ones
    if engine is not None:
        sizing = engine.size(prepared, batch_size)
    else:
        machine = machine_for(prepared, settings.gpu_memory)
        if machine.device == "cpu" and settings.gpu_memory is not None:  # with --device auto this is known only now
            raise InputError("--gpu-memory has no effect: no GPU answers, so the run is on the CPU; leave it out")
        if settings.scheduler_address or settings.scheduler_file:
            found = survey(settings, machine.device)
            if machine.device == "cpu":  # the workers' memory counts, which may be that of other hosts
                machine = replace(machine, available=sys.maxsize)
            sizing = size_up(load_of(prepared), machine, len(found), batch_size)
            refuse_small_workers(found, sizing.shared_bytes, sizing.worker_bytes)
        else:
            sizing = size_up(load_of(prepared), machine, settings.workers, batch_size)
    request = prepared.request
    identity = {
        "graph": prepared.graph.fingerprint if not settings.plan else "",
        "algorithm": request.algorithm,
        "limit": request.limit,
        "targets": None if request.targets is None else _digest(request.targets),
        "result": request.result,
        "direction": request.direction,
        "certify": request.certify,
        "sources": _digest(prepared.names),
        "batch_size": sizing.batch_size,
    }
    return sizing, identity


def _digest(ids: list) -> str:
    return hashlib.sha256(json.dumps(ids).encode()).hexdigest()


def _new_manifest(settings, prepared: Prepared, sizing: Sizing, identity: dict) -> dict:
    graph = prepared.graph
    return {
        "format": 1,
        "status": "running",
        "algorithm": prepared.request.algorithm,
        "result": prepared.request.result,
        "direction": prepared.request.direction,
        "means": FORMS[prepared.request.result].means,
        "settings": asdict(settings),
        "identity": identity,
        "fingerprint": fingerprint_of(identity),
        "distances": graph.distances_are(prepared.request.algorithm),
        "graph": {
            "fingerprint": graph.fingerprint,
            "vertices": graph.n_vertices,
            "stored_edges": graph.n_edges,
            "directed": graph.directed,
            "built": graph.report.facts(),
            "reused": prepared.reused,
        },
        "device": prepared.plan.strategy.device,
        "strategy": prepared.plan.strategy.name,
        "workers": sizing.workers,
        "memory": sizing.memory,
        "sources": int(prepared.numbers.size),
        "duplicate_sources": prepared.duplicates,
        "batches": sizing.n_batches,
        "versions": {
            "kepler_traverse": __version__,
            **versions(("numpy", "numba", "pyarrow", "distributed")),
        },
        "seconds": {name: round(value, 3) for name, value in prepared.seconds.items()},
        "parts": [],
        "failed": [],
        "retried": [],
        "digest": None,
    }


class _Job:
    """A run that may write: what is missing is computed, and the manifest follows."""

    def __init__(self, settings, prepared: Prepared, sizing: Sizing, folder: OutputFolder, command: str, engine):
        self._settings, self._prepared, self._sizing = settings, prepared, sizing
        self._folder, self._command, self._engine = folder, command, engine
        self._batches = dict(batches_of(prepared.numbers, sizing.batch_size))
        self._is_foreign = bool(settings.scheduler_address or settings.scheduler_file)
        self._run_token = uuid.uuid4().hex[:8]
        self.computed = 0

    def _names(self, part: int) -> list:
        begin = part * self._sizing.batch_size
        return self._prepared.names[begin : begin + self._sizing.batch_size]

    def keep_what_is_done(self, before: dict) -> None:
        """Check the parts on disk; those that are whole and right are not computed again."""
        manifest = self._folder.manifest
        known = {part["file"]: part for part in before["parts"]}
        for part in list(self._batches):
            names = self._names(part)
            summary = checked_part(
                self._folder.path,
                part,
                manifest["fingerprint"],
                names,
                self._prepared.graph,
                known.get(part_name(part)),
                manifest["result"],
            )
            if summary is not None:
                manifest["parts"].append(summary | {"sources": names})
                del self._batches[part]

    def take(self, part: int, summary: dict, without: Collection[int]) -> None:
        """A part is written, but for the sources ``without``."""
        numbers, names = self._batches[part], self._names(part)
        summary |= {"sources": [name for number, name in zip(numbers, names, strict=True) if number not in without]}
        self._folder.manifest["parts"].append(summary)
        self.computed += 1
        self._folder.save()

    def give_up(self, part: int, sources: list[int] | None, reason: str) -> list:
        """Sources of a part (all if None) cannot be answered; return their ids."""
        numbers, names = self._batches[part], self._names(part)
        known = {name for entry in self._folder.manifest["failed"] for name in entry["sources"]}
        asked = set(numbers if sources is None else sources)
        given_up = [name for i, name in zip(numbers, names, strict=True) if i in asked and name not in known]
        self._folder.manifest["failed"].append({"file": part_name(part), "sources": given_up, "error": reason})
        return given_up

    def note_retry(self, part: int, why: str) -> None:
        self._folder.manifest["retried"].append({"file": part_name(part), "why": why})

    def nothing_is_missing(self, before: dict) -> bool:
        """Whether the folder is complete, and its manifest says of the parts what has been found of them here."""
        parts = self._folder.manifest["parts"]
        digest = digest_of(self._folder.manifest["graph"]["fingerprint"], parts)
        right = {"status": "done", "parts": parts, "failed": [], "digest": digest}
        return not self._batches and self._folder.is_complete() and {key: before[key] for key in right} == right

    def run(self) -> None:
        """Compute what is missing and complete the folder.

        Raises what ``pipelines.batches.Window.run`` raises, with the manifest written.
        """
        folder, manifest = self._folder, self._folder.manifest
        folder.sweep()
        with status_on_error(folder):
            folder.save("running")
            try:
                if self._batches and self._engine is not None:
                    self._run_by_engine()
                elif self._batches:
                    self._run_batches()
            except KeyboardInterrupt:
                done, total = sum(len(part["sources"]) for part in manifest["parts"]), manifest["sources"]
                how = f"{self._command} --resume"
                raise KeyboardInterrupt(f"interrupted: {done} of {total} sources are done. To finish: {how}") from None
            if manifest["failed"]:
                folder.save("failed")
            else:
                folder.complete()

    def write_report(self) -> None:
        """Put ``_report.html`` beside the results, also where a run has not come to its end."""
        if not self._settings.report:
            return
        try:
            self._folder.put(REPORT, page_of(self._folder.manifest, self._command))
        except OutputError as error:
            report.say(f"no {REPORT}: {error}")
        else:
            report.say(f"report: {self._folder.path / REPORT}")

    def _run_batches(self) -> None:
        work = self._work()
        if self._is_foreign:
            check_existing(self._settings, work.device, self._shared_folders())
        started = time.perf_counter()
        if self._prepared.folder is None:
            try:
                save_graph(self._prepared.graph, work.graph_folder, self._prepared.origin)
            except OSError as error:
                raise cannot_write(self._folder.path, error) from None
        device, bytes_a_gpu = work.device, self._sizing.memory["total"]
        self._prepared.release()
        stored = time.perf_counter()
        with cluster_for(self._settings, device, min(self._sizing.workers, len(self._batches)), bytes_a_gpu) as client:
            self._say_notes()
            report.say(f"dashboard: {client.dashboard_link}")
            plugin = f"kepler-traverse-{self._run_token}"
            give_plugin(client, TraversalPlugin(work, plugin), plugin)
            ready = time.perf_counter()
            facts = report.facts_of(self._folder.manifest)
            with report.Progress(facts, open_page(client, facts, report.say)) as progress:
                window = self._window(client, plugin, progress)
                try:
                    window.run(list(self._batches))
                finally:
                    if client.status == "running" and self._is_foreign:
                        take_plugin(client, plugin)
            ended = time.perf_counter()
        times = {"store": stored - started, "start": ready - stored, "traverse": ended - ready}
        self._folder.manifest["seconds"] |= {name: round(value, 3) for name, value in times.items()}

    def _run_by_engine(self) -> None:
        engine, manifest = self._engine, self._folder.manifest
        started = time.perf_counter()
        self._say_notes()
        report.say(f"dashboard: {engine.client.dashboard_link}")
        facts = report.facts_of(manifest)
        with report.Progress(facts, open_page(engine.client, facts, report.say)) as progress:
            engine.answer(self._batches, self._prepared, self._folder.path, manifest["fingerprint"], _Told(self, progress))
        times = {"start": engine.start_seconds, "traverse": time.perf_counter() - started}
        manifest["seconds"] |= {name: round(value, 3) for name, value in times.items()}

    def _say_notes(self) -> None:
        for note in report.weights_not_used(self._settings, self._folder.manifest["graph"].get("built", {})):
            report.say(note)

    def _work(self) -> Work:
        request = self._prepared.request
        return Work(
            run=self._folder.manifest["fingerprint"],
            graph_folder=self._prepared.folder or self._folder.path / GRAPH,
            output=self._folder.path,
            device=self._prepared.graph.device,
            threads=0 if self._is_foreign else self._sizing.threads,
            writers=1 if self._is_foreign else self._sizing.writers,
            version=version_here() if self._is_foreign else "",
            **asdict(request),
        )

    def _shared_folders(self) -> list[Path]:
        """What all workers must see, whichever hosts they are on."""
        cache = self._prepared.folder
        return [self._folder.path] if cache is None else list(dict.fromkeys([self._folder.path, cache.parent]))

    def _window(self, client, plugin: str, progress) -> Window:
        deadline = self._settings.batch_deadline
        writers = 1 if self._is_foreign else self._sizing.writers
        beside = writers > 1 and fits_beside(self._sizing.batch_size, self._folder.manifest["graph"]["vertices"])
        needed = self._sizing.shared_bytes + self._sizing.worker_bytes
        return Window(
            client,
            self._submitter(client, plugin),
            _Told(self, progress),
            self._folder.path,
            deadline=None if deadline == "auto" else deadline,
            patience=self._settings.worker_timeout,
            first=2 * writers if beside else 1,
            newcomers=functools.partial(check_newcomers, client, needed=needed) if self._is_foreign else None,
        )

    def _submitter(self, client, plugin: str):
        def submit(task: Task):
            batches = [(part, [s for s in self._batches[part] if s not in task.without]) for part in task.parts]
            # "bfs-000012-...": the dashboard groups by what stands before the first number.
            key = f"{self._folder.manifest['algorithm']}-{task.parts[0]:06d}-{task.number}-{self._run_token}"
            return client.submit(run_batches, plugin, batches, task.careful, task.mark, key=key, pure=False)

        return submit


class _Told:
    """Takes what becomes of the batches into the manifest, and tells whoever watches."""

    def __init__(self, job: _Job, progress):
        self._job, self._progress = job, progress

    def done(self, part: int, summary: dict, without: frozenset[int]) -> None:
        self._job.take(part, summary, without)
        self._progress.advance(part, summary)

    def failed(self, part: int, sources: list[int] | None, reason: str) -> None:
        self._progress.failed(part, self._job.give_up(part, sources, reason), reason)

    def retried(self, part: int, why: str) -> None:
        self._job.note_retry(part, why)
        self._progress.retried(part, why)

    def draining(self, tasks: int) -> None:
        what = "batches that run are" if tasks > 1 else "batch that runs is"
        report.say(f"interrupted: the {what} finished first; interrupt again to stop at once")

    def notice(self, message: str) -> None:
        report.say(message)
