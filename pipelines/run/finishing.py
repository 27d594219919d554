"""Complete a run whose parts are all computed: check them, close the log, write tables, manifest
and ``_SUCCESS``.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kepler_traverse._uninterrupted import map_on_threads
from kepler_traverse.errors import OutputError, several
from kepler_traverse.kinds.question import digest_of_ids
from kepler_traverse.runtime.object_stores import AT_ONCE, TRAFFIC

from ..cli.options import Settings
from ..cli.settings import checked_settings
from ..cli.terminal import called_as, pasted
from ..monitoring.html_report import render_page
from ..output.commits import CommitLog
from ..output.manifest_types import Manifest, PartEntry
from ..output.run_folder import (
    LEFT_BY_SHARDS,
    LOCK,
    MANIFEST,
    REPORT,
    OutputFolder,
    check_folder,
    commit,
    delete_left,
    graph_folder,
    is_as_stored,
    is_whole,
    mark_fits,
    read_layout,
    refuse_further_files,
    refuse_others_files,
    writing_to,
)
from ..output.shard import Shard
from ..output.store import Store
from .answered_tables import answered_tables, list_tables, tables_of_graph

_LISTED = 5


class IncompleteError(OutputError):
    """The run lacks parts."""


def finish_run(store: Store, tables: dict[str, Any] | None = None) -> tuple[Manifest, bool]:
    """Complete a run in shards; return its manifest, and whether it was complete before, or another
    call has closed it.

    ``tables``: paths of given tables that were moved, by their settings.

    Raises IncompleteError (parts are missing, damaged or not recorded, or sources failed),
    OutputError (there is no such run, or the folder cannot be written to) or InputError (a given
    table cannot be read, or has changed).
    """
    checked = set[str]()
    log = CommitLog(store)
    manifest = _read(store, log)
    is_first = False
    if manifest["status"] == "done" and mark_fits(store):
        _refuse_changed(store, manifest)
        # perhaps the call that completed the run was killed before it was written
        with contextlib.suppress(OutputError):
            if not store.has(REPORT):
                _put_report(store, manifest)
        return manifest, True
    if store.is_local and store.has(LOCK):
        raise OutputError(
            f"{store}: a run without --shard writes to the folder, or "
            "was stopped; finish it with --resume"
        )
    while True:
        settings = replace(checked_settings(manifest["settings"]), **(tables or {}))
        _check_parts(store, manifest, log, list_tables(settings), checked)
        folder = OutputFolder(store)
        folder.manifest = manifest
        # by this call, or by one that may have been stopped since
        if log.is_closed or manifest["status"] == "done":
            break
        _put_tables(folder, settings)
        with writing_to(store), contextlib.suppress(FileNotFoundError):
            is_first = log.close(manifest["tables"], TRAFFIC.take())
        manifest = _read(store, log)  # with what a shard has committed meanwhile
        # If another call has completed the run meanwhile, its log was gone, and what was closed is
        # none of the run.
        is_first = is_first and manifest["status"] != "done"
    folder.complete()
    _put_report(store, manifest)
    with writing_to(store):
        if store.is_local:
            delete_left(store.path, LEFT_BY_SHARDS)
        else:  # what a job that was killed has left for workers that share no folder with it
            store.delete(graph_folder(store.path, Shard(0, 1)).name)
    return manifest, not is_first


def _put_report(store: Store, manifest: Manifest) -> None:
    """Write the report of a run, unless its settings want none."""
    if checked_settings(manifest["settings"]).report:
        page = render_page(manifest, f"{called_as('finish')} {pasted([str(store)])}")
        OutputFolder(store).put(REPORT, page.encode())


def _read(store: Store, log: CommitLog) -> Manifest:
    """Read the manifest of the run; raise OutputError if there is none."""
    manifest = check_folder(store, resume=True, shared=True, log=log)
    if manifest is None:
        raise OutputError(
            f"{store}: the folder holds no {MANIFEST}, so there is no "
            "run to finish; correct its name"
        )
    return manifest


def _check_parts(
    store: Store, manifest: Manifest, log: CommitLog, tables: set[str], checked: set[str]
) -> None:
    """Raise IncompleteError unless all parts are there as they were recorded; ``checked`` are the
    SHA-256 of known ones.

    Recorded parts that are not are recorded as lost, so that their shards compute them again.
    """
    recorded = {part["file"]: part for part in manifest["parts"]}
    layout = read_layout(manifest)
    if layout.n_parts != manifest["batches"]:
        raise OutputError(
            f"{store}/{MANIFEST}: it is damaged: it has "
            f"{manifest['batches']} batches, and its sources make others"
        )
    names = layout.names()
    new = [
        recorded[name]
        for name in names
        if name in recorded and recorded[name]["sha256"] not in checked
    ]
    damaged = []
    if new or not checked:
        there = store.versions()
        refuse_others_files(store, there)
        refuse_further_files(store, there, layout, tables)
        damaged = _find_damaged(store, new, there)
    if damaged and not log.is_closed and manifest["status"] != "done":
        commit(store, log, {"lost": damaged})
    missing = [name for name in names if name not in recorded]
    faults = _describe_faults(missing, damaged, manifest)
    if faults:
        to_compute = {*missing, *damaged, *(each["file"] for each in manifest["failed"])}
        again = _shards_of(log, [number for number, name in enumerate(names) if name in to_compute])
        raise IncompleteError(f"{store}: {'; '.join(faults)}; run {again} again, and then finish")
    sources = [source for name in names for source in recorded[name]["sources"]]
    if digest_of_ids(sources) != manifest["identity"]["sources"]:
        raise OutputError(
            f"{store}: the recorded parts do not hold the sources of the run; take a new folder"
        )
    checked.update(part["sha256"] for part in new)


def _find_damaged(store: Store, parts: Sequence[PartEntry], there: Mapping[str, str]) -> list[str]:
    """Return the names of the parts that are not as they were recorded; ``there`` are the versions
    of the files of the folder.
    """
    unsure = [part for part in parts if not is_as_stored(part, there)]
    are_whole = map_on_threads(lambda each: is_whole(store, each), unsure, AT_ONCE)
    return [part["file"] for part, is_there in zip(unsure, are_whole, strict=True) if not is_there]


def _describe_faults(
    missing: Sequence[str], damaged: Sequence[str], manifest: Manifest
) -> list[str]:
    """Say which parts are not there as they were recorded, and which sources failed."""
    failed = Counter(failure["error"] for failure in manifest["failed"] for _ in failure["sources"])
    faults = [
        _listed("is missing", "are missing", missing),
        _listed("is damaged", "are damaged", damaged),
        *(
            f"{several(count, 'source')} failed: {error}"
            for error, count in failed.most_common(_LISTED)
        ),
    ]
    return [fault for fault in faults if fault]


def _shards_of(log: CommitLog, parts: Sequence[int]) -> str:
    """Name the shards that compute some parts, if the run was shared among one number of them."""
    counts = {int(name.partition("/")[2]) for name in log.shards}
    if len(counts) != 1 or 0 in counts:
        return "their shards"
    (count,) = counts
    indices = sorted({part % count for part in parts})
    shown = _first([f"--shard {index}/{count}" for index in indices])
    return f"the shard{'s' if len(indices) > 1 else ''} {shown}"


def _refuse_changed(store: Store, manifest: Manifest) -> None:
    """Raise IncompleteError unless the parts of a finished run are there, and in an object store as
    they were put.
    """
    there = store.versions()
    changed = [
        part["file"]
        for part in manifest["parts"]
        if part["file"] not in there
        or (there[part["file"]] and not is_as_stored(part, there) and not is_whole(store, part))
    ]
    if changed:
        faults = _listed("is missing or damaged", "are missing or damaged", changed)
        raise IncompleteError(
            f"{store}: the run was finished before, and {faults}; --resume computes them again"
        )


def _listed(one: str, many: str, names: Sequence[str]) -> str:
    """Say of parts what is wrong with them; ``""`` if there are none."""
    if not names:
        return ""
    verb = one if len(names) == 1 else many
    return f"{several(len(names), 'part')} {verb} ({_first(names)})"


def _first(texts: Sequence[str]) -> str:
    """Return the first of some texts, and dots for the others."""
    return ", ".join(texts[:_LISTED]) + (", ..." if len(texts) > _LISTED else "")


def _put_tables(folder: OutputFolder, settings: Settings) -> None:
    """Write the tables that are made of all parts; those of the graph are written by the shards."""
    store = folder.store
    folder.manifest["tables"] = []
    for name in tables_of_graph(settings):
        folder.list_table(name, {})
    parts = [part["file"] for part in folder.manifest["parts"]]
    for name, make in answered_tables(settings).items():
        with store.local([*tables_of_graph(settings), *parts]) as here:
            folder.put_table(name, make([here / part for part in parts]))
