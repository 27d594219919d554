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

_MAX_LISTED = 5  # names or errors in one message


class IncompleteError(OutputError):
    """The run lacks parts."""


def finish_run(store: Store, tables: dict[str, Any] | None = None) -> tuple[Manifest, bool]:
    """Complete a run in shards, all of whose parts are computed.

    Parameters
    ----------
    store : Store
        The output folder of the run.
    tables : dict of str to any, optional
        Present paths of tables that the user gave to the run and has moved since, by the names of
        their settings.

    Returns
    -------
    manifest : Manifest
        Of the complete run.
    is_late : bool
        Whether the run was complete before this call, or another call has closed its log.

    Raises
    ------
    IncompleteError
        Parts are missing, damaged or not recorded, or sources failed.
    OutputError
        There is no such run, or the folder cannot be written to.
    InputError
        A given table cannot be read, or has changed.
    """
    # Shards record their parts by commits, which the log has in order. ``_read_manifest`` adds the
    # commits to the manifest.
    log = CommitLog(store)
    manifest = _read_manifest(store, log)
    # ``mark_fits``: ``_SUCCESS`` exists and has the checksum of the manifest.
    if manifest["status"] == "done" and mark_fits(store):
        _refuse_changed(store, manifest)
        # The call that completed the run may have been killed before it wrote the report.
        with contextlib.suppress(OutputError):
            if not store.has(REPORT):
                _put_report(store, manifest)
        return manifest, True
    if store.is_local and store.has(LOCK):
        raise OutputError(
            f"{store}: a run without --shard writes to the folder, or "
            "was stopped; finish it with --resume"
        )

    # Check all parts, write the tables, and close the log. A shard may commit further parts
    # meanwhile: then the log is read and checked again, until what is checked is what is closed.
    checked = set[str]()  # SHA-256 of the parts that were found whole
    is_first = False  # whether this call has closed the log
    while True:
        # the settings of the run, with the present paths of tables that have moved
        settings = replace(checked_settings(manifest["settings"]), **(tables or {}))
        _check_parts(store, manifest, log, list_tables(settings), checked)
        folder = OutputFolder(store)
        folder.manifest = manifest
        # Closed in the last round, or by another call, which may have been stopped since.
        if log.is_closed or manifest["status"] == "done":
            break
        _put_tables(folder, settings)
        # FileNotFoundError: another call has completed the run, and has deleted the folder of the
        # log.
        # ``close`` adds the last commit, with the tables and the numbers of requests to the object
        # store (``TRAFFIC.take``). It returns False, and adds nothing, if there are commits that
        # were not read: the next round reads them.
        with writing_to(store), contextlib.suppress(FileNotFoundError):
            is_first = log.close(manifest["tables"], TRAFFIC.take())
        manifest = _read_manifest(store, log)
        # If another call has completed the run meanwhile, the log of the run was gone, and the one
        # that this call has closed is none of the run.
        is_first = is_first and manifest["status"] != "done"

    # The manifest, ``_SUCCESS`` and the report; nothing else is needed any more.
    folder.complete()
    _put_report(store, manifest)
    with writing_to(store):
        if store.is_local:  # what killed shards have left in the folder
            delete_left(store.path, LEFT_BY_SHARDS)
        else:  # what a job that was killed has left for workers that share no folder with it
            store.delete(graph_folder(store.path, Shard(0, 1)).name)
    return manifest, not is_first


def _put_report(store: Store, manifest: Manifest) -> None:
    """Write ``_report.html`` of a run, unless its settings want none."""
    if checked_settings(manifest["settings"]).report:
        page = render_page(manifest, f"{called_as('finish')} {pasted([str(store)])}")
        OutputFolder(store).put(REPORT, page.encode())


def _read_manifest(store: Store, log: CommitLog) -> Manifest:
    """Read the manifest of the run with its commits; raise OutputError if there is none."""
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
    """Raise IncompleteError unless all parts are in the folder as they were recorded.

    Parts that are damaged are recorded as lost, so that their shards compute them again. ``log``:
    the log of the run, which gets that record. ``tables``: names of the tables of the run.
    ``checked``: SHA-256 of the parts that need no check; those that this call has checked are
    added. Raises OutputError for files that are not of the run.
    """
    # ``layout`` has the names of all parts that the run must have, by its sources and batch size.
    recorded = {part["file"]: part for part in manifest["parts"]}
    layout = read_layout(manifest)
    if layout.n_parts != manifest["batches"]:
        raise OutputError(
            f"{store}/{MANIFEST}: it is damaged: it has "
            f"{manifest['batches']} batches, and its sources make others"
        )

    # Look at the files of the parts that are new since the last call.
    names = layout.names()
    unchecked = [
        recorded[name]
        for name in names
        if name in recorded and recorded[name]["sha256"] not in checked
    ]
    damaged = []
    if unchecked or not checked:  # the first call looks for files of others in any case
        # Versions of the files by name. Refused are files that no job of this kind writes, and then
        # parts and tables of another run, whose rows readers would take for results.
        versions = store.versions()
        refuse_others_files(store, versions)
        refuse_further_files(store, versions, layout, tables)
        damaged = _find_damaged(store, unchecked, versions)
    # A closed log takes no commit, and that of a finished run is deleted.
    if damaged and not log.is_closed and manifest["status"] != "done":
        commit(store, log, {"lost": damaged})

    # Name the faults, and the shards that repair them.
    missing = [name for name in names if name not in recorded]
    faults = _describe_faults(missing, damaged, manifest)
    if faults:
        to_compute = {*missing, *damaged, *(failure["file"] for failure in manifest["failed"])}
        parts = [number for number, name in enumerate(names) if name in to_compute]
        shards = _name_shards(log, parts)
        raise IncompleteError(f"{store}: {'; '.join(faults)}; run {shards} again, and then finish")
    # The ids of the sources of all parts, in order, against the digest of those of the run.
    sources = [source for name in names for source in recorded[name]["sources"]]
    if digest_of_ids(sources) != manifest["identity"]["sources"]:
        raise OutputError(
            f"{store}: the recorded parts do not hold the sources of the run; take a new folder"
        )
    checked.update(part["sha256"] for part in unchecked)


def _find_damaged(
    store: Store, parts: Sequence[PartEntry], versions: Mapping[str, str]
) -> list[str]:
    """Return the names of the parts that are not in the store as they were recorded.

    ``versions``: version of each file in the store, by its name. A part whose version is the
    recorded one is not read; the files of the others are.
    """
    unsure = [part for part in parts if not is_as_stored(part, versions)]
    # Several files are read at a time.
    are_whole = map_on_threads(lambda part: is_whole(store, part), unsure, AT_ONCE)
    return [part["file"] for part, is_part in zip(unsure, are_whole, strict=True) if not is_part]


def _describe_faults(
    missing: Sequence[str], damaged: Sequence[str], manifest: Manifest
) -> list[str]:
    """Return texts that say which parts are not there as they were recorded, and which sources
    failed; an empty list if nothing is wrong.

    ``missing`` and ``damaged``: names of parts that no commit has, and of those whose file differs
    from its entry.
    """
    faults = [
        _describe_parts("is missing", "are missing", missing),
        _describe_parts("is damaged", "are damaged", damaged),
    ]
    # Failed sources by error: each of them counts.
    n_failed = Counter(
        failure["error"] for failure in manifest["failed"] for _ in failure["sources"]
    )
    for error, count in n_failed.most_common(_MAX_LISTED):
        faults.append(f"{several(count, 'source')} failed: {error}")
    return [fault for fault in faults if fault]


def _name_shards(log: CommitLog, parts: Sequence[int]) -> str:
    """Return a text that names the shards which compute some parts, as flags.

    ``log``: says which shards have committed. ``parts``: numbers of the parts. The text is "their
    shards" if processes gave different numbers of shards, or none has committed.
    """
    counts = {int(name.partition("/")[2]) for name in log.shards}  # N of I/N; 0 is no number
    if len(counts) != 1 or 0 in counts:
        return "their shards"
    (count,) = counts
    indices = sorted({part % count for part in parts})  # a shard has every N-th part
    flags = _join_first([f"--shard {index}/{count}" for index in indices])
    return f"the shard{'s' if len(indices) > 1 else ''} {flags}"


def _refuse_changed(store: Store, manifest: Manifest) -> None:
    """Raise IncompleteError unless the parts of a finished run are in its folder, or in the object
    store as they were put.
    """
    versions = store.versions()  # by name; "" for files of a folder, which have no versions

    def is_changed(part: PartEntry) -> bool:
        """Whether a part is missing, or its object is another one, with other bytes."""
        name = part["file"]
        if name not in versions:
            return True
        # A file in a folder has no version: it counts as unchanged, and is not read.
        return bool(versions[name]) and not (is_as_stored(part, versions) or is_whole(store, part))

    changed = [part["file"] for part in manifest["parts"] if is_changed(part)]
    if changed:
        faults = _describe_parts("is missing or damaged", "are missing or damaged", changed)
        raise IncompleteError(
            f"{store}: the run was finished before, and {faults}; --resume computes them again"
        )


def _describe_parts(singular: str, plural: str, names: Sequence[str]) -> str:
    """Return a text that says what is wrong with the parts ``names``; ``""`` if there are none.

    ``singular`` and ``plural``: the verb for one part and for several, such as "is missing".
    """
    if not names:
        return ""
    verb = singular if len(names) == 1 else plural
    return f"{several(len(names), 'part')} {verb} ({_join_first(names)})"


def _join_first(texts: Sequence[str]) -> str:
    """Return the first ``_MAX_LISTED`` texts, joined by commas, and dots for further ones."""
    return ", ".join(texts[:_MAX_LISTED]) + (", ..." if len(texts) > _MAX_LISTED else "")


def _put_tables(folder: OutputFolder, settings: Settings) -> None:
    """Write the tables that are made of all parts, and list all tables in the manifest.

    The tables of the graph were written by the shards, so they are only listed.
    """
    store = folder.store
    folder.manifest["tables"] = []
    for name in tables_of_graph(settings):
        folder.list_table(name, {})
    parts = [part["file"] for part in folder.manifest["parts"]]
    for name, make in answered_tables(settings).items():
        # The files of an object store are fetched to a local folder.
        with store.local([*tables_of_graph(settings), *parts]) as local_folder:
            folder.put_table(name, make([local_folder / part for part in parts]))
