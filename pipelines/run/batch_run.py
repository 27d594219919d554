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
from ..output.choice_text import current
from ..output.layout import in_order
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
from ..scheduling.heartbeat import left_marks, read_mark
from .answered_tables import answered_tables, list_tables
from .prepare import Prepared

if TYPE_CHECKING:
    from distributed import Client


class BatchRun:
    """A run that may write: its batches, of which an engine computes those that are missing; it
    observes them.

    Attributes
    ----------
    batches : dict of int to list of int
        Vertex numbers of the sources by part; entries do not change while the engine runs.
    prepared : Prepared
        The engine may release it.
    layout : Layout
    folder : OutputFolder
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
        numbers = prepared.numbers
        self._bounds = list(self.layout.bounds())
        parts = (shard or Shard(0, 1)).parts(self.layout.n_parts)
        self.batches = {part: numbers[slice(*self._bounds[part])].tolist() for part in parts}
        self._n_sources = sum(map(len, self.batches.values()))
        self._files_before: set[str] = set()  # of the parts that an earlier run has written
        self.computed = self.kept = 0

    def _names(self, part: int) -> Ids:
        """Return the ids of the sources of a part."""
        return self.prepared.names[slice(*self._bounds[part])]

    def batches_of(self, task: Task) -> list[tuple[int, list[int]]]:
        """Return the batches of a task, without the sources that are given up."""
        return [
            (part, [s for s in self.batches[part] if s not in task.without]) for part in task.parts
        ]

    def keep_what_is_recorded(self, before: Manifest, record: ShardRecord | None) -> None:
        """Do not make parts again that are recorded: ``finish`` compares all, and records those
        that are lost.

        They are in the record of the shard, or else in the manifest before.
        """
        self.folder.keep_tables(before["tables"])
        if record is None:
            known = {part["file"]: part["sources"] for part in before["parts"]}
            done = {
                part
                for part in self.batches
                if known.get(self.layout.name(part)) == self._names(part)
            }
        else:
            recorded = set(range(record["until"])).difference(record["without"])
            done = recorded.intersection(self.batches)
        for part in done:
            del self.batches[part]
        self.folder.done = done
        self.kept = len(done)

    def keep_what_is_done(self, before: Manifest) -> None:
        """Check the files that are there; complete and correct parts and tables are not made again."""
        manifest = self.folder.manifest
        self.folder.keep_tables(before["tables"])
        known = {part["file"]: part for part in before["parts"]}
        store = self.folder.store
        there = store.versions()
        for part in list(self.batches):
            name = self.layout.name(part)
            names = self._names(part)
            record: PartEntry | None = known.get(name)
            summary: PartSummary | None = None
            if record is not None and record["sources"] == names and is_as_stored(record, there):
                summary = record
            elif name in there:
                with store.local([name]) as here:
                    summary = checked_part(
                        here, part, self.layout, names, self.prepared.graph, record
                    )
            if summary is None:
                continue
            entry: PartEntry = {**summary, "sources": names}
            if name in known:
                manifest["parts"].append(entry)
            else:
                self.folder.add("parts", entry)
            del self.batches[part]
            self.kept += 1

    def keeps(self, table: str) -> bool:
        """Whether a table of an earlier run is on disk unchanged."""
        return any(entry["file"] == table for entry in self.folder.manifest["tables"])

    def done(self, part: int, summary: PartSummary, without: frozenset[int]) -> None:
        """Record a part that is written."""
        numbers = self.batches[part]
        names = self._names(part)
        sources = [
            name for number, name in zip(numbers, names, strict=True) if number not in without
        ]
        entry: PartEntry = {**summary, "sources": sources}
        self.folder.add("parts", entry)
        if not without:
            self.folder.done.add(part)
        self.computed += 1
        self.folder.save()
        self._progress.advance(part, entry)

    def failed(self, part: int, sources: list[int] | None, reason: str) -> None:
        """Record sources that are given up, each once."""
        numbers = self.batches[part]
        names = self._names(part)
        known = {name for entry in self.folder.manifest["failed"] for name in entry["sources"]}
        asked = set(numbers if sources is None else sources)
        given_up = [
            name for i, name in zip(numbers, names, strict=True) if i in asked and name not in known
        ]
        self.folder.add(
            "failed", {"file": self.layout.name(part), "sources": given_up, "error": reason}
        )
        self._progress.failed(part, given_up, reason)

    def retried(self, part: int, why: str) -> None:
        self.folder.add("retried", {"file": self.layout.name(part), "why": why})
        self._progress.retried(part, why)

    def draining(self, tasks: int) -> None:
        what = "batches that run are" if tasks > 1 else "batch that runs is"
        say(f"interrupted: the {what} finished first; interrupt again to stop at once")

    def notice(self, message: str) -> None:
        say(message)

    def note_takeover(self, before: Manifest) -> None:
        """Record as retried what the process was at that ran the batches before, and what it had
        recorded itself.
        """
        if self._shard is None:  # those of a shared run are in its log
            self.folder.manifest["retried"] += before["retried"]
        why = "the process that ran it was ended"
        for place in filter(None, map(read_mark, left_marks(self.folder.path))):
            for part in range(place.part, place.last + 1):
                if part in self.batches:
                    self.folder.add("retried", {"file": self.layout.name(part), "why": why})

    @property
    def _n_kept(self) -> int:
        """Sources whose parts were there before."""
        return self._n_sources - sum(map(len, self.batches.values()))

    def nothing_is_missing(self, before: Manifest) -> bool:
        """Whether the folder is complete and its manifest agrees with the parts that were checked
        here.
        """
        parts = self.folder.manifest["parts"]
        manifest = self.folder.manifest
        digest = compute_digest(manifest["graph"]["fingerprint"], parts, manifest["result"])
        right = {"status": "done", "parts": parts, "failed": [], "digest": digest}
        has_tables = all(self.keeps(name) for name in list_tables(self._settings))
        return (
            not self.batches
            and has_tables
            and mark_fits(self.folder.store)
            and {key: dict(before)[key] for key in right} == right
        )

    def run(self, answer: Callable[[BatchRun], None]) -> None:
        """Compute the missing parts by an engine, and complete the folder.

        Raises the errors of ``pipelines.scheduling.scheduler.Window.run``, after the manifest is
        written.
        """
        folder = self.folder
        manifest = folder.manifest
        self._files_before = {part["file"] for part in manifest["parts"]}
        if self._shard is None:
            folder.begin()
        with status_on_error(folder):
            try:
                if self.batches:
                    answer(self)
                else:
                    self.finish({})
            except KeyboardInterrupt:
                if manifest["status"] in ("done", "failed"):  # it came while the workers closed
                    return
                done = self._n_kept + sum(len(part["sources"]) for part in self._parts_computed())
                how = f"To finish: {self._resume_command}"
                raise KeyboardInterrupt(
                    f"interrupted: {done} of {self._n_sources} sources are done. {how}"
                ) from None

    def finish(self, times: dict[str, float]) -> None:
        """Complete the folder as soon as all batches have ended, so that what closes after that
        delays no result.

        ``times``: seconds of each step of the engine.
        """
        folder = self.folder
        manifest = folder.manifest
        if times:
            compiled = min(times["traverse"], compile_seconds(self._parts_computed()))
            times = _sum(self.prepared.seconds, times, {"traverse": -compiled, "compile": compiled})
            manifest["seconds"] = {name: round(value, 3) for name, value in times.items()}
            steps.compiled(times["compile"])
        if self._shard is not None:
            folder.add_seconds(manifest["seconds"])
        if manifest["failed"]:
            folder.save("failed")
        elif self._shard is not None:
            folder.save("done")
        else:
            # workers end them in any order
            names = sorted((part["file"] for part in manifest["parts"]), key=in_order)
            parts = [folder.path / name for name in names]
            for name, make in answered_tables(self._settings).items():
                folder.put_table(name, make(parts))
            folder.count_traffic()
            self._say_lost()
            folder.complete()

    def _say_lost(self) -> None:
        """Say how many pairs have no path, and which volume therefore is on no edge."""
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

    def _parts_computed(self) -> list[PartEntry]:
        """Return the parts that this run has written."""
        parts = self.folder.manifest["parts"]
        return [part for part in parts if part["file"] not in self._files_before]

    def write_report(self) -> None:
        """Write ``_report.html`` into the output folder, also if the run was interrupted or failed."""
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
        """Say that the batches begin, and what the steps so far took."""
        steps.end(seconds=_sum(self.prepared.seconds, seconds))
        for note in console.notes_on_edges(
            self._settings, self.folder.manifest["graph"].get("built", {})
        ):
            say(note)

    @contextlib.contextmanager
    def watch(self, client: Client | None) -> Iterator[BatchRun]:
        """Yield this observer of the batches, with a page of the dashboard if there is a client."""
        kept = {"sources": self._n_sources, "kept": self._n_kept}
        facts = collect_facts(self.folder.manifest) | kept
        page = None
        if client is not None:
            from ..monitoring.dashboard_plugin import open_page

            page = open_page(client, facts, say)
        with Progress(facts, page) as self._progress:
            try:
                yield self
            finally:
                if self.prepared.choice is not None:
                    self.folder.manifest["strategy"] = current(self.prepared.choice.record)


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
