"""The batches of a run that may write: which are missing, what their outcomes add to the manifest,
and the report.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from kepler_traverse.errors import OutputError, several

from ..cli import steps
from ..cli.options import Settings
from ..cli.terminal import say
from ..monitoring import console
from ..monitoring.html_report import render_page
from ..monitoring.progress import Progress, collect_facts
from ..output.choice_text import current_strategy
from ..output.layout import part_order
from ..output.manifest_types import Manifest, PartEntry, PartSummary, ShardRecord
from ..output.part_file import checked_part
from ..output.rows import Ids
from ..output.run_folder import (
    REPORT,
    OutputFolder,
    compute_digest,
    is_as_stored,
    mark_fits,
    read_layout,
    status_on_error,
)
from ..output.shard import Shard
from ..scheduling.executor import Task
from ..scheduling.heartbeat import find_heartbeats, read_heartbeat
from .answered_tables import answered_tables, list_tables
from .prepare import Prepared

if TYPE_CHECKING:
    from distributed import Client


class BatchRun:
    """A run that may write: its batches, of which an engine computes those that are missing.

    It is the ``BatchObserver`` of its batches: the scheduler calls ``done``, ``failed``,
    ``retried``, ``draining`` and ``notice``. ``resume_command``: the command that finishes the run,
    for messages. ``shard``: this process among those that share the run; None if it is not shared.

    Attributes
    ----------
    batches : dict of int to list of int
        By the number of each part that is to be computed, the vertex numbers of its sources. Parts
        that are kept from an earlier run are removed before the engine runs.
    prepared : Prepared
        Graph, plan and sources. The engine may release its graph and its plan.
    layout : Layout
        How the sources are divided into parts, and the names of these.
    folder : OutputFolder
        The output folder and the manifest, which gets the outcome of each batch.
    url : str
        The object store of the run, ``""`` if it has none.
    computed, kept : int
        Parts that this run has computed, and those that were there before.
    """

    def __init__(
        self,
        settings: Settings,
        prepared: Prepared,
        folder: OutputFolder,
        resume_command: str,
        shard: Shard | None = None,
    ):
        self._settings = settings
        self.prepared = prepared
        self.folder = folder
        self._resume_command = resume_command
        self._shard = shard
        self.url = "" if folder.store.is_local else str(folder.store)
        self.layout = read_layout(folder.manifest)
        # For each part of the run, the begin and the end (exclusive) of its sources in the list of
        # all sources.
        self._bounds = list(self.layout.bounds())
        # A run that is not shared has all parts, as the only shard would.
        parts = (shard or Shard(0, 1)).parts(self.layout.n_parts)
        self.batches: dict[int, list[int]] = {}
        for part in parts:
            begin, end = self._bounds[part]
            self.batches[part] = prepared.numbers[begin:end].tolist()
        self._n_sources = self._count_missing()  # of all parts: none is kept yet
        self._files_before: set[str] = set()  # of the parts that an earlier run has written
        self.computed = 0
        self.kept = 0

    def _source_ids(self, part: int) -> Ids:
        """Return the ids of the sources of a part."""
        begin, end = self._bounds[part]
        return self.prepared.names[begin:end]

    def batches_of(self, task: Task) -> list[tuple[int, list[int]]]:
        """Return the number of each part of a task with the vertex numbers of its sources, without
        the sources that are given up (``task.without``).
        """
        batches = []
        for part in task.parts:
            sources = [number for number in self.batches[part] if number not in task.without]
            batches.append((part, sources))
        return batches

    def keep_recorded_parts(self, earlier: Manifest, record: ShardRecord | None) -> None:
        """Remove from ``batches`` the parts that are recorded, so that they are not computed again.

        Their files are not looked at: ``finish`` compares all of them, and records those that are
        lost. ``earlier``: manifest of the earlier run. ``record``: the record of this shard, in
        place of the manifest's parts; None if there is none.
        """
        self.folder.keep_tables(earlier["tables"])
        if record is None:
            recorded_sources = {entry["file"]: entry["sources"] for entry in earlier["parts"]}
            done = {
                part
                for part in self.batches
                if recorded_sources.get(self.layout.name(part)) == self._source_ids(part)
            }
        else:
            # The record says that the shard has all of its parts with numbers below ``until``, but
            # for the numbers in ``without``. Parts of other shards drop out with the intersection.
            recorded = set(range(record["until"])).difference(record["without"])
            done = recorded.intersection(self.batches)
        for part in done:
            del self.batches[part]
        self.folder.done = done
        self.kept = len(done)

    def keep_checked_parts(self, earlier: Manifest) -> None:
        """Check the files in the folder, and remove complete and correct parts from ``batches``, so
        that they are not computed again.

        ``earlier``: manifest of the earlier run, whose entries of the parts are compared.
        """
        manifest = self.folder.manifest
        # tables whose files are unchanged get into the new manifest
        self.folder.keep_tables(earlier["tables"])
        recorded = {entry["file"]: entry for entry in earlier["parts"]}
        store = self.folder.store
        versions = store.versions()  # by the names of the files in the folder
        for part in list(self.batches):
            name = self.layout.name(part)
            sources = self._source_ids(part)
            record: PartEntry | None = recorded.get(name)

            # An object with the recorded version is not read; other files are.
            summary: PartSummary | None = None
            if (
                record is not None
                and record["sources"] == sources
                and is_as_stored(record, versions)
            ):
                summary = record
            elif name in versions:
                # ``checked_part`` reads the file; None if it is not complete and correct.
                with store.local([name]) as folder:
                    summary = checked_part(
                        folder, part, self.layout, sources, self.prepared.graph, record
                    )
            if summary is None:
                continue

            entry: PartEntry = {**summary, "sources": sources}
            # An entry of the earlier run is saved already; ``add`` would commit it once more.
            if name in recorded:
                manifest["parts"].append(entry)
            else:  # its writer was killed before it recorded the part
                self.folder.add("parts", entry)
            del self.batches[part]
            self.kept += 1

    def keeps(self, table: str) -> bool:
        """Whether a table of an earlier run, by the name of its file, is on disk unchanged.

        The manifest has such tables since ``OutputFolder.keep_tables``.
        """
        return any(entry["file"] == table for entry in self.folder.manifest["tables"])

    def done(self, part: int, summary: PartSummary, without: frozenset[int]) -> None:
        """Record a part that is written, and save the manifest if that is due.

        ``summary``: what its worker has returned. ``without``: vertex numbers of the sources that
        it lacks, since they are given up.
        """
        sources = [
            source_id
            for number, source_id in zip(self.batches[part], self._source_ids(part), strict=True)
            if number not in without
        ]
        entry: PartEntry = {**summary, "sources": sources}
        self.folder.add("parts", entry)
        if not without:
            self.folder.done.add(part)
        self.computed += 1
        self.folder.save()
        self._progress.advance(part, entry)

    def failed(self, part: int, sources: list[int] | None, reason: str) -> None:
        """Record sources that are given up, each once.

        ``part``: number of their part. ``sources``: their vertex numbers; None for all of the part.
        ``reason``: class and message of the error.
        """
        # Those of the batch that are given up, without those that are recorded already.
        numbers = self.batches[part]
        failures = self.folder.manifest["failed"]
        recorded = {source_id for entry in failures for source_id in entry["sources"]}
        failed_numbers = set(numbers if sources is None else sources)
        given_up = [
            source_id
            for number, source_id in zip(numbers, self._source_ids(part), strict=True)
            if number in failed_numbers and source_id not in recorded
        ]
        self.folder.add(
            "failed", {"file": self.layout.name(part), "sources": given_up, "error": reason}
        )
        self._progress.failed(part, given_up, reason)

    def retried(self, part: int, why: str) -> None:
        """Record in the manifest, and show, that the batch ``part`` is submitted again, and why."""
        self.folder.add("retried", {"file": self.layout.name(part), "why": why})
        self._progress.retried(part, why)

    def draining(self, tasks: int) -> None:
        """Print that the job was interrupted, and that the ``tasks`` that run end first."""
        what = "batches that run are" if tasks > 1 else "batch that runs is"
        say(f"interrupted: the {what} finished first; interrupt again to stop at once")

    def notice(self, message: str) -> None:
        """Print a message about workers or batches, at once."""
        say(message)

    def note_takeover(self, earlier: Manifest) -> None:
        """Record as retried the batches that the process before this one ran when it ended.

        This process takes the place of that one, which died. The heartbeat files that it has left
        say which batches it ran. Batches that it had recorded as retried are taken over from its
        manifest, ``earlier``.
        """
        if self._shard is None:  # those of a shared run are in its log
            self.folder.manifest["retried"] += earlier["retried"]
        why = "the process that ran it was ended"
        for heartbeat in filter(None, map(read_heartbeat, find_heartbeats(self.folder.path))):
            for part in range(heartbeat.part, heartbeat.last + 1):
                if part in self.batches:
                    self.folder.add("retried", {"file": self.layout.name(part), "why": why})

    def _count_missing(self) -> int:
        """Return the number of sources whose parts are not kept."""
        return sum(map(len, self.batches.values()))

    @property
    def _n_kept(self) -> int:
        """Number of sources whose parts an earlier run has written."""
        return self._n_sources - self._count_missing()

    def nothing_is_missing(self, earlier: Manifest) -> bool:
        """Whether the earlier run has completed the folder: all parts and tables are there, and its
        manifest agrees with the parts that were checked here.
        """
        manifest = self.folder.manifest
        parts = manifest["parts"]
        digest = compute_digest(manifest["graph"]["fingerprint"], parts, manifest["result"])
        expected = {"status": "done", "parts": parts, "failed": [], "digest": digest}
        has_tables = all(self.keeps(name) for name in list_tables(self._settings))
        return (
            not self.batches
            and has_tables
            and mark_fits(self.folder.store)
            and {key: dict(earlier)[key] for key in expected} == expected
        )

    def run(self, answer: Callable[[BatchRun], None]) -> None:
        """Compute the missing parts by ``answer`` (``Engine.answer``), and complete the folder.

        Raises the errors of ``pipelines.scheduling.scheduler.Window.run``, after the manifest is
        written. A KeyboardInterrupt says how many sources are done, and how to finish.
        """
        folder = self.folder
        manifest = folder.manifest
        self._files_before = {part["file"] for part in manifest["parts"]}
        if self._shard is None:  # a shared run has begun in ``OutputFolder.join``
            folder.begin()  # deletes what a killed run has left, and writes the first manifest
        with status_on_error(folder):
            try:
                if self.batches:
                    answer(self)
                else:
                    self.finish({})
            except KeyboardInterrupt:
                if manifest["status"] in ("done", "failed"):  # it came while the workers closed
                    return
                n_computed = sum(len(part["sources"]) for part in self._computed_parts())
                raise KeyboardInterrupt(
                    f"interrupted: {self._n_kept + n_computed} of {self._n_sources} sources are "
                    f"done. To finish: {self._resume_command}"
                ) from None

    def finish(self, times: dict[str, float]) -> None:
        """Write the end of the run: seconds, status, tables and ``_SUCCESS``.

        If sources failed, or if the run is shared by several processes, only the status is saved:
        then ``finish`` writes the rest. The engine calls this as soon as all batches have ended, so
        that no result waits for workers to close. ``times``: seconds of each step of the engine;
        empty if no batch ran.
        """
        folder = self.folder
        manifest = folder.manifest
        if times:
            # The seconds of traversing include those in which workers compiled kernels. These are
            # moved to a step of their own; but no more than there are, since a worker may also have
            # compiled before, when it planned.
            compiled = min(times["traverse"], compile_seconds(self._computed_parts()))
            correction = {"traverse": -compiled, "compile": compiled}
            seconds = _add_by_step(self.prepared.seconds, times, correction)
            manifest["seconds"] = {step: round(value, 3) for step, value in seconds.items()}
            steps.compiled(seconds["compile"])
        # A shared run adds its seconds to the next commit. ``save`` with a status writes the whole
        # manifest; in a shared run it writes that commit.
        if self._shard is not None:
            folder.add_seconds(manifest["seconds"])

        if manifest["failed"]:
            folder.save("failed")
        elif self._shard is not None:
            folder.save("done")
        else:
            # Workers end parts in any order, and tables are made in the order of the parts.
            names = sorted((part["file"] for part in manifest["parts"]), key=part_order)
            parts = [folder.path / name for name in names]
            for name, make in answered_tables(self._settings).items():
                folder.put_table(name, make(parts))
            folder.count_traffic()  # requests to object stores, for the manifest
            self._say_unconnected()
            folder.complete()

    def _say_unconnected(self) -> None:
        """Print how many pairs have no path, and which volume of theirs is therefore on no edge.

        Only tables of flows have such numbers (``lost``: pairs, and their volume). Without such
        pairs nothing is printed.
        """
        manifest = self.folder.manifest
        within = "" if manifest["identity"]["limit"] is None else " within the limit"
        for table in manifest["tables"]:
            if "lost" not in table:
                continue
            pairs, volume = table["lost"].values()
            if pairs:
                say(
                    f"{several(int(pairs), 'pair')} without a path{within}: a "
                    f"volume of {volume:,} is on no edge"
                )

    def _computed_parts(self) -> list[PartEntry]:
        """Return the entries of the parts that this process has written."""
        parts = self.folder.manifest["parts"]
        return [part for part in parts if part["file"] not in self._files_before]

    def write_report(self) -> None:
        """Write ``_report.html`` into the output folder, also if the run was interrupted or failed;
        not if the settings want none, or if the run is shared: then ``finish`` writes it. That it
        cannot be written is printed, and no error.
        """
        if not self._settings.report or self._shard is not None:
            return
        try:
            self.folder.put(
                REPORT, render_page(self.folder.manifest, self._resume_command).encode()
            )
        except OutputError as error:
            say(f"no {REPORT}: {error}")
        else:
            say(f"report: {self.folder.store}/{REPORT}")

    def announce(self, seconds: dict[str, float]) -> None:
        """Print that the batches begin, what the steps so far took, and notes on the edge list.

        ``seconds``: of the steps of the engine, by name; those of preparing are added.
        """
        steps.end(seconds=_add_by_step(self.prepared.seconds, seconds))
        built = self.folder.manifest["graph"].get("built", {})
        for note in console.notes_on_edges(self._settings, built):
            say(note)

    @contextlib.contextmanager
    def watch(self, client: Client | None) -> Iterator[None]:
        """Within the block, show the progress of the batches: on the terminal, and on a page of the
        Dask dashboard if there is a ``client`` (of a Dask cluster).
        """
        counts = {"sources": self._n_sources, "kept": self._n_kept}
        facts = collect_facts(self.folder.manifest) | counts
        page = None
        if client is not None:
            from ..monitoring.dashboard_plugin import open_page

            page = open_page(client, facts, say)
        with Progress(facts, page) as self._progress:
            try:
                yield
            finally:
                # Tasks may have changed the strategy, also before an error.
                if self.prepared.choice is not None:
                    self.folder.manifest["strategy"] = current_strategy(self.prepared.choice.record)


def _add_by_step(*times: dict[str, float]) -> dict[str, float]:
    """Return the sums of several dicts of seconds by step, in the order of the steps."""
    totals: dict[str, float] = {}
    for seconds in times:
        for step, value in seconds.items():
            totals[step] = totals.get(step, 0.0) + value
    return {step: totals[step] for step in steps.STEPS if step in totals}


def compile_seconds(parts: Sequence[PartEntry]) -> float:
    """Return the seconds of compiling of the worker that has compiled longest.

    Workers compile at the same time, so the times of different workers are not added.
    """
    seconds_of: Counter[str] = Counter()  # by the name of a worker
    for part in parts:
        seconds_of[part.get("worker", "")] += part.get("phases", {}).get("compile", 0.0)  # type: ignore[assignment]
    return max(seconds_of.values(), default=0.0)
