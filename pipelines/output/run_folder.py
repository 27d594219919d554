"""The output folder of a run: its lock, its files, and the check that it is complete."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pyarrow as pa
import pyarrow.parquet as pq

from kepler_traverse.cpu.exact_sums import PRIME
from kepler_traverse.errors import KeplerError, OutputError
from kepler_traverse.kinds.question import digest_of_ids
from kepler_traverse.runtime.file_locks import NoLocksError, open_lock, take_lock
from kepler_traverse.runtime.object_stores import TRAFFIC
from kepler_traverse.runtime.regular_files import irregular, read_json, size_and_digest

from .commits import COMMITS, CommitLog, with_commits
from .layout import PARTITION, Layout, part_number, part_order
from .load_tables import read_facts
from .manifest_types import (
    FORMAT,
    Facts,
    Identity,
    Manifest,
    PartEntry,
    Status,
    TableEntry,
    checked,
)
from .schemas import OUTPUT_SCHEMAS
from .store import Store

if TYPE_CHECKING:
    from .shard import Shard

MANIFEST = "_manifest.json"
SUCCESS = "_SUCCESS"
LOCK = "_lock"
GRAPH = "_graph"
REPORT = "_report.html"
# Names in the folder of a run: what it writes at its end, copies of its graph, temporary files of
# workers and of drivers, and folders of Delta Lake and Iceberg.
# "_vertices.pq": a table beside the parts
_TABLE = re.compile(r"_(vertices|cells|loads|pairs|sources|points|hulls)\.pq")
_WRITTEN = rf"_manifest\.json|_SUCCESS|_report\.html|{_TABLE.pattern}"
_GRAPHS = r"_graph(-\d+)?(\.\d+\.tmp)?"  # "_graph", of shard 2 "_graph-2", "_graph.4711.tmp"
_OF_WORKERS = r"\.(part-\d{6}|task-\d{6,}|shared)\.\w+\.tmp"  # ".part-000012.4f1e09.tmp"
_OF_DRIVERS = rf"\.({_WRITTEN})\.\w+\.tmp"  # "._manifest.json.4f1e09.tmp"
_TABLES_OF_PARTS = "_delta_log|_iceberg"
_FOLDERS = re.compile(rf"{COMMITS}|{_GRAPHS}|{_TABLES_OF_PARTS}|{PARTITION}")
_OURS = re.compile(
    rf"{_WRITTEN}|_lock|{_FOLDERS.pattern}|({PARTITION}/)?part-\d{{6}}\.(parquet|arrow)|{_OF_WORKERS}|{_OF_DRIVERS}"
)
LEFT = re.compile(rf"{_OF_WORKERS}|{_OF_DRIVERS}|_graph(-\d+)?\.\d+\.tmp")  # by killed processes
_LEFT_OF_DONE = re.compile(rf"{LEFT.pattern}|{_GRAPHS}")  # what a run that is done does not need
LEFT_BY_SHARDS = re.compile(rf"{_OF_WORKERS}|{_GRAPHS}")
MAX_MANIFEST_BYTES = 2**31
_MAX_MARK_BYTES = 2**10
_LOCK_TRIES = 20
# Seconds between two commits of a running job; --resume reads parts that none of them has. Many
# processes commit more rarely, so that they seldom take the same number.
_COMMIT_EVERY = 2.0
_COMMIT_SECONDS_PER_SHARD = 0.25


class ChangedFolderError(KeplerError):
    """Another process has changed the folder meanwhile; what this one has computed is lost, and a
    next attempt goes on.
    """


@contextlib.contextmanager
def writing_to(folder: Path | Store) -> Iterator[None]:
    """Within the block, raise OutputError in place of an OSError: a file of a run cannot be
    written, usually because the disk is full.

    ``folder`` is what messages name. In place of a FileNotFoundError it raises ChangedFolderError:
    another process has deleted what was just there.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise ChangedFolderError(
            f"{folder}: another process has completed the run meanwhile, or has deleted files of it ({error.filename}); run "
            "this command again, which says what is missing"
        ) from None
    except OSError as error:
        place = folder
        is_of_disk = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        if isinstance(folder, Store) and not folder.is_local and is_of_disk:
            place = folder.path  # where files are prepared: no store says such a thing
        raise OutputError(
            f"{place}: a file cannot be written there: {error.strerror or error}; existing part files are complete. "
            "Fix that (free some space?) and run again with --resume"
        ) from None


def compute_digest(fingerprint: str, parts: Sequence[PartEntry], result: str = "distances") -> str:
    """Return one checksum of all results; it does not depend on batches, their order, workers or
    device.

    ``fingerprint``: that of the graph, whose first 16 digits begin the text. ``parts``: all parts.
    Their checksums are added, which makes the other 16 digits. ``result``: name of the result kind.
    """
    modulus = 2**64
    if OUTPUT_SCHEMAS[result].adds_up:
        modulus = PRIME  # of checksums of loads, which are linear
    total = sum(int(part["checksum"], 16) for part in parts) % modulus
    return f"{fingerprint[:16]}-{total:016x}"


def check_folder(
    store: Store, resume: bool, shared: bool = False, log: CommitLog | None = None
) -> Manifest | None:
    """Return the manifest of the run to resume, or None if there is none yet; create nothing.

    Parameters
    ----------
    store : Store
        The output folder.
    resume : bool
        Whether the run goes on with one that is there. Otherwise, unless ``shared``, the folder
        must be new or empty.
    shared : bool
        Whether several processes share the run. Then the folder may be new or hold a run:
        whichever process comes first begins the run.
    log : CommitLog, optional
        Log of the run, which reads the record of its shard here.

    Raises
    ------
    OutputError
        The folder holds files that this run must not modify, or cannot be read.
    """
    try:
        # Where all writers share a run that has begun, finish lists its parts, which may be many.
        is_known = shared and not store.is_local and store.has(MANIFEST)
        names = [MANIFEST] if is_known else sorted(store.versions())
        refuse_others_files(store, names)  # files that this job never writes
        if log is not None:
            log.find_record()  # into ``log.record``, if the shard has one
    except NotADirectoryError:
        raise OutputError(f"{store}: this is a file; --output takes a folder") from None
    except OSError as error:
        raise OutputError(
            f"{store}: the output folder cannot be read: {error.strerror}; take another folder"
        ) from None

    if not (resume or shared):
        if names:
            raise OutputError(f"{store}: {_STANDS_THERE[SUCCESS in names]}")
        return None
    if not names and not shared:
        state = "does not exist"
        if store.is_local and store.path.exists():
            state = "is empty"
        raise OutputError(
            f"{store}: the folder {state}, so there is no run to resume; "
            "correct its name, or leave --resume out"
        )

    if MANIFEST not in names:
        if any(part_number(name) is not None for name in names):
            raise OutputError(
                f"{store}: the folder holds parts but no {MANIFEST}; take a new folder"
            )
        return None  # a run was stopped before it wrote anything
    try:
        return read_manifest(store, log)
    except ValueError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(
            f"{store}/{MANIFEST}: not a manifest of this job ({error}); take a new folder"
        ) from None


# Messages about a run in a folder that should be new, by whether it is finished.
_STANDS_THERE = {
    True: (
        "the folder holds a finished run; take a new folder, or --resume to "
        "check that nothing of that run is missing"
    ),
    False: (
        "the folder holds a run that is not finished; take a new "
        "folder, or --resume to finish that run"
    ),
}


def refuse_others_files(store: Store, names: Iterable[str]) -> None:
    """Raise OutputError if one of ``names`` in the folder is no file or folder of this job.

    Also refused are links, FIFOs and the like under the name of one of its files.
    """
    for name in names:
        if not _OURS.fullmatch(name):
            raise OutputError(
                f"{store}: the folder holds {name!r}, which is none of "
                "this job's files; take a new folder"
            )
        expected = ""
        if _FOLDERS.fullmatch(name):
            expected = "a folder"
        try:
            fault = irregular_fault(store, name, expected)
        except FileNotFoundError:  # a run that writes here has just renamed it
            continue
        if fault:
            raise OutputError(
                f"{store}/{name}: {fault}, so this job has not written it; delete it, or take a "
                "new folder"
            )


def irregular_fault(store: Store, name: str, expected: str) -> str:
    """Describe what is at ``name`` if it is not what is ``expected``; ``""`` if it is.

    ``expected`` is "a folder", or ``""`` for a regular file. An object store has objects alone, so
    that ``""`` is returned for it. Raises FileNotFoundError: a folder on a disk has no such name.
    """
    if not store.is_local:
        return ""
    what = irregular(store.path / name)
    if what == expected:
        return ""
    return f"it is {what or 'a file'} and not {expected or 'a regular file'}"


def read_manifest(store: Store, log: CommitLog | None = None) -> Manifest:
    """Read the manifest of a run; add what the commits say if the run is not finished.

    Parameters
    ----------
    store : Store
        The output folder.
    log : CommitLog, optional
        Log of the run; by default a new one. If it has the record of its shard, which says in short
        which parts of this shard are done, no commit is read, and the manifest is returned as it
        is.

    Raises
    ------
    OutputError
        The manifest or the commits cannot be read, a commit is damaged or missing, or the manifest
        has another format or is that of ``--result assignment``.
    ValueError
        The manifest is damaged, or none of this job, or the folder of the commits is a symbolic
        link.
    """
    data = _get_manifest(store)
    content: Any = read_json(data)
    if isinstance(content, dict):
        _refuse_other_formats(f"{store}/{MANIFEST}", content)
    manifest = checked(content, Manifest)
    if manifest["status"] == "done" or (log is not None and log.record is not None):
        return manifest

    if (store.path / COMMITS).is_symlink():
        raise ValueError(f"{COMMITS} is a symbolic link")
    # An error here may mean that a process has just completed the run, so it is not raised yet.
    problem: Exception | None = None
    try:
        manifest = with_commits(manifest, (log or CommitLog(store)).read())
    except (OSError, ValueError) as error:
        problem = error

    # If the manifest has changed meanwhile, a process has completed the run, and has deleted the
    # commits. Then the new manifest is read.
    if _get_manifest(store) != data:
        return read_manifest(store, log)
    if isinstance(problem, OSError):
        raise OutputError(
            f"{store}/{COMMITS}: the commits of the run cannot be read: {problem.strerror}"
        )
    if problem is not None:
        raise OutputError(
            f"{store}/{COMMITS}: {problem}; delete {COMMITS}, and run the same shards again, or this run with --resume: "
            "parts that are whole are kept"
        )
    return manifest


def _refuse_other_formats(path: str, content: dict[str, Any]) -> None:
    """Raise OutputError for a manifest that another program, or another version, has written.

    ``path``: of the file, for errors. ``content``: what it has, not checked yet.
    """
    if content.get("result") == "assignment":
        raise OutputError(
            f"{path}: it is of --result assignment; "
            "kepler-traverse assignment LINKS --trips FILE --verify DIR verifies it"
        )
    format_ = content.get("format")
    if type(format_) is not int or format_ == FORMAT:  # one that is no number is refused later
        return
    writer = "another version"
    versions = content.get("versions")
    if isinstance(versions, dict) and isinstance(versions.get("kepler_traverse"), str):
        writer = f"kepler_traverse {versions['kepler_traverse'][:32]}"
    raise OutputError(
        f"{path}: {writer} wrote this output, in format {format_}, and this version reads format {FORMAT}; finish or verify "
        "it with that version, or take a new folder"
    )


def _get_manifest(store: Store) -> bytes:
    """Read the file of the manifest; raise OutputError if it cannot be read."""
    try:
        return store.get(MANIFEST, MAX_MANIFEST_BYTES)
    except OSError as error:
        raise OutputError(
            f"{store}/{MANIFEST}: the manifest cannot be read: {error.strerror}"
        ) from None


def mark_fits(store: Store) -> bool:
    """Return whether ``_SUCCESS`` exists and holds the checksum of the manifest."""
    try:
        mark = store.get(SUCCESS, _MAX_MARK_BYTES)
        manifest = store.get(MANIFEST, MAX_MANIFEST_BYTES)
    except OSError:
        return False
    return mark.strip() == hashlib.sha256(manifest).hexdigest().encode()


def is_as_stored(part: PartEntry, versions: Mapping[str, str]) -> bool:
    """Return whether a part is known to be in an object store unchanged since it was put there.

    ``versions``: what ``Store.versions`` returns now. A part or a store without versions gives
    False: it is not known.
    """
    version = part.get("stored", {}).get("version")
    return bool(version) and versions.get(part["file"]) == version


def tables_in(names: Iterable[str]) -> set[str]:
    """Return those of ``names`` that are tables beside the parts, such as ``_vertices.pq``."""
    return {name for name in names if _TABLE.fullmatch(name)}


def read_layout(manifest: Manifest) -> Layout:
    """Return how the sources of a run are divided into parts, and how its parts are named."""
    identity = manifest["identity"]
    partitions = identity.get("partitions", {"": manifest["sources"]})
    sort = identity.get("sort", "source")
    run = manifest["fingerprint"]
    return Layout(manifest["result"], identity["batch_size"], partitions, sort, run)


def compute_fingerprint(identity: Identity) -> str:
    """Return the SHA-256 of everything that determines the content of the parts, except the sources
    of a sample.

    So a run with a larger sample (the identity has a ``seed``) keeps the parts of a smaller one.
    The footer of each part has its sources.
    """
    facts = {
        key: value for key, value in identity.items() if key != "sources" or "seed" not in identity
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def refuse_another_run(
    store: Store,
    manifest: Manifest,
    identity: Identity,
    is_shard: bool = False,
    sources: Sequence[Any] = (),
) -> None:
    """Raise OutputError unless the manifest is of the same run.

    Parameters
    ----------
    store : Store
        The output folder, for messages.
    manifest : Manifest
        Of the run that is there.
    identity : Identity
        Of this run: everything that determines the content of its parts.
    is_shard : bool
        Whether the run is shared by several processes; this decides the message.
    sources : sequence
        Ids of the sources of this run, if they are a sample. The run that is there may then have
        only the first of them.
    """
    before: dict[str, Any] = dict(manifest["identity"])
    # A key that only one of them has is an option that was given to only one.
    now: dict[str, Any] = dict(identity)
    differing = [key for key in before | now if before.get(key) != now.get(key)]
    if not differing:
        return
    is_other_sample = differing == ["sources"] and "seed" in now
    if is_other_sample:
        first = list(sources[: manifest["sources"]])
        if digest_of_ids(first) == before["sources"]:
            return

    rule = "--resume needs the settings of the run that it finishes"
    if is_shard:
        rule = "--shard needs the settings of the process that began the run"
    changes = [
        f"{key} was {_short(before.get(key))} and is {_short(now.get(key))}" for key in differing
    ]
    if is_other_sample:
        changes.append(
            "this sample does not begin with that of the run, so that it is a new run in a new folder"
        )
    raise OutputError(f"{store}: {rule}: {'; '.join(changes)}")


def refuse_further_files(
    store: Store, names: Collection[str], layout: Layout, tables: Collection[str]
) -> None:
    """Raise OutputError for a part or a table that does not belong to the run.

    ``names``: all names in the folder. ``layout``: which parts the run has. ``tables``: names of
    the tables that it has.
    """
    for name in sorted(names):
        if part_number(name) is not None and not layout.has(name):
            raise OutputError(
                f"{store}/{name}: this is none of the {layout.n_parts} parts of the run, and readers of the folder would "
                "take its rows for results; move it elsewhere, and run again with --resume"
            )
    for name in sorted(tables_in(names) - set(tables)):
        raise OutputError(
            f"{store}/{name}: a run with these settings has no such table; give the settings of the run that it finishes, "
            "or move the file elsewhere, and run again with --resume"
        )


def _short(value: Any) -> str:
    """Return a value of an identity as JSON, for a message; a long text, as a digest, is cut to 16
    characters.
    """
    text = json.dumps(value)
    return text if len(text) <= 20 else text[:16] + "..."


class OutputFolder:
    """The output folder while a run writes to it. A lock excludes other runs, unless the run is
    shared.

    As a context manager it makes the folder and holds the lock. ``shard``: this process among those
    that share the run and write to the folder at the same time; None if the run is not shared.
    ``log``: the log of the run's commits, if it has been read already.

    Attributes
    ----------
    store : Store
        Where parts, tables and manifest are put.
    path : Path
        The folder itself; of an object store, the local folder in which files are prepared.
    graph : Path
        Where worker processes find the graph.
    manifest : Manifest
        Empty until the run is known. Of a shared run it has what this process knows of it.
    done : set of int
        Numbers of the parts of a shard that have all their sources.
    """

    def __init__(self, store: Store, shard: Shard | None = None, log: CommitLog | None = None):
        self.store = store
        self.path = store.path
        self._is_shared = shard is not None
        self.graph = graph_folder(store.path, shard)
        self.manifest = cast(Manifest, {})
        self.done: set[int] = set()
        self._log: CommitLog | None = log or CommitLog(store)  # None if the run is finished
        self._added: dict[str, Any] = {}  # entries of the next commit, by their keys
        self._shards: list[str] = []  # this process as I/N, if others commit to the run, too
        index = 0
        count = 1
        if shard is not None and shard.count > 1:
            index = shard.index
            count = shard.count
            self._shards = [str(shard)]
        # The first commits of the shards are spread evenly over an interval.
        self._commit_every = max(_COMMIT_EVERY, count * _COMMIT_SECONDS_PER_SHARD)
        # when the next commit is due, in seconds of ``time.monotonic``
        self._commit_again_at = time.monotonic() + self._commit_every * (index + 1) / count

    def __enter__(self) -> OutputFolder:
        """Make the folder, and take its lock unless the run is shared.

        Raises OutputError: the folder cannot be made, another run holds the lock, or the file
        system has no locks.
        """
        is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            may_write = self._is_shared or self._take_lock()
        except NoLocksError as error:
            # What this call has made goes again: an empty lock file would look like a run.
            (self.path / LOCK).unlink(missing_ok=True)
            if is_new:
                self.path.rmdir()
            raise OutputError(
                f"{self.path}: {error.strerror}, so two runs could not exclude each other here; take an --output on another "
                "file system, or have this one mounted with locks (Lustre: -o flock)"
            ) from None
        except OSError as error:
            raise OutputError(
                f"{self.path}: the output folder cannot be made or written to: {error.strerror}"
            ) from None
        if not may_write:
            raise OutputError(
                f"{self.path}: another run is writing to this folder; wait or take a new one"
            )
        return self

    def _take_lock(self) -> bool:
        """Take the folder's lock; return False if another process holds it.

        A run that ends deletes its lock file. So the lock counts only if the file is still there:
        otherwise another process may take the lock of a new file of that name.
        """
        for _ in range(_LOCK_TRIES):
            lock = open_lock(self.path / LOCK)
            is_taken = False
            is_current = False  # whether the file that is locked still has the name
            try:
                is_taken = take_lock(lock)
                with contextlib.suppress(FileNotFoundError):
                    is_current = os.path.samestat(os.fstat(lock), os.stat(self.path / LOCK))
            finally:
                if not (is_taken and is_current):
                    os.close(lock)
            if not is_taken:
                return False
            if is_current:
                self._lock = lock
                return True
        return False

    def __exit__(self, *_: Any) -> None:
        """Delete what an ended run no longer needs, and release the lock.

        A shared run has no lock, and deletes only the graph of this process.
        """
        status = self.manifest.get("status")
        if self._is_shared:
            if status == "done":
                shutil.rmtree(self.graph, ignore_errors=True)
            return
        with contextlib.suppress(OSError):
            # After an interrupt nothing is deleted: a remote worker may still write its last part.
            if status in ("done", "failed"):
                delete_left(self.path, _LEFT_OF_DONE if status == "done" else LEFT)
        # The file is deleted while its lock is held: afterwards it could be that of another run.
        if status == "done":
            (self.path / LOCK).unlink(missing_ok=True)
        os.close(self._lock)  # releases the lock

    def begin(self) -> None:
        """Delete partial files of a killed run, and ``_SUCCESS``, and write the first manifest."""
        with writing_to(self.path):
            delete_left(self.path, LEFT)
            (self.path / SUCCESS).unlink(missing_ok=True)
        self.save("running")

    def join(self, before: Manifest | None, may_be_there: bool = True) -> Manifest:
        """Begin a shared run, unless another process has; return its manifest.

        Parameters
        ----------
        before : Manifest or None
            The manifest, if another process was seen to have begun the run.
        may_be_there : bool
            Whether another process may have begun it meanwhile; False makes that an error.

        Raises
        ------
        OutputError
            The manifest that is there cannot be read, or has another format. Or the other process
            has other versions of packages, which may write other bytes.
        """
        manifest = before
        if manifest is None:
            # ``BatchRun.finish`` commits all seconds of this process, those of preparing included,
            # and readers add the seconds of commits to those of the manifest: here they would count
            # twice.
            own: Any = self.manifest | {"seconds": {}}
            # ``put_new`` creates the file, or changes nothing and returns False if there is one.
            with writing_to(self.store):
                is_first = self.store.put_new(MANIFEST, _to_text(own))
            if not (is_first or may_be_there):
                raise OutputError(f"{self.store}: {_STANDS_THERE[False]}")
            # That of this process, or of the one that was first.
            manifest = check_folder(self.store, resume=True, shared=True)
        assert manifest is not None  # this process or another one has just written it

        # ``there``: version with which the run began. ``here``: version of this process.
        for name in ("kepler_traverse", "pyarrow"):
            there = manifest["versions"].get(name)
            here = self.manifest["versions"].get(name)
            if there != here:
                raise OutputError(
                    f"{self.store}: --shard needs the versions of the process that began the run: {name} was {there} and is "
                    f"{here}; install the same everywhere, or take a new folder"
                )
        # The manifest of a finished run has what the commits had, and readers look at it alone. A
        # further commit would begin a log that belongs to no run, so ``save`` adds none.
        if manifest["status"] == "done":
            self._log = None
        return manifest

    def add(self, key: Literal["parts", "failed", "retried"], entry: Any) -> None:
        """Add an entry to the list ``key`` of the manifest, and to the next commit, which ``save``
        writes: a part, sources that are given up, or a batch that was submitted again.
        """
        self.manifest[key].append(entry)
        self._added.setdefault(key, []).append(entry)

    def add_seconds(self, seconds: dict[str, float]) -> None:
        """Add the seconds of this process, by step, to the next commit of a shared run."""
        self._added["seconds"] = seconds

    def count_traffic(self) -> dict[str, int]:
        """Count the requests of this process to object stores since the last call.

        Add them to the manifest, and return them by kind, with the bytes sent and received.
        """
        counts = TRAFFIC.take()
        if counts:
            total = Counter(self.manifest.get("traffic", {})) + Counter(counts)
            self.manifest["traffic"] = cast(Any, dict(total))
        return counts

    def save(self, status: Status | None = None) -> None:
        """Save what was added since the last call.

        Without a ``status`` it is committed, unless the last commit was a moment ago. With one,
        which becomes the status of the run, the whole manifest is written, and the commits are
        deleted. A shared run commits in either case: ``finish`` alone writes its manifest.
        """
        if status is None and time.monotonic() < self._commit_again_at:
            return
        self.manifest["status"] = status or self.manifest["status"]

        if status is not None and not self._is_shared:
            self.count_traffic()
            self._put_manifest()
            self._clear_log()
        # The last commit of a shared run also counts requests, and may have nothing else.
        elif self._log is not None and (self._added or (status is not None and TRAFFIC.requests)):
            self._commit(self._log)

        if status is not None and self._is_shared and self._log is not None:
            # Another process may have completed the run, and deleted the log before this commit.
            # The run is whole anyway, so the commit is deleted.
            with contextlib.suppress(OSError):
                if self.store.has(SUCCESS):
                    self.store.delete(COMMITS)
        self._added = {}
        self._commit_again_at = time.monotonic() + self._commit_every

    def _commit(self, log: CommitLog) -> None:
        """Add to the log of the run what was added since the last commit.

        A shard then replaces its record, unless the log is closed.
        """
        choice = self.manifest.get("choice")
        added = self._added | {"choice": choice, "traffic": self.count_traffic()}
        if self._shards:
            added["shards"] = self._shards
        if commit(self.store, log, added):
            with writing_to(self.store):
                log.put_record(self.done, choice)

    def complete(self) -> None:
        """Write the last manifest and then ``_SUCCESS``, which holds its SHA-256.

        The mark comes last: a folder that has it has all else.
        """
        manifest = self.manifest
        manifest["digest"] = compute_digest(
            manifest["graph"]["fingerprint"], manifest["parts"], manifest["result"]
        )
        manifest["status"] = "done"
        text = self._put_manifest()
        self.put(SUCCESS, hashlib.sha256(text).hexdigest().encode() + b"\n")
        # A user who may write, but not delete, has a whole run all the same.
        with contextlib.suppress(OutputError):
            self._clear_log()

    def _put_manifest(self) -> bytes:
        """Write the manifest, with its parts in their order; return its text."""
        self.manifest["parts"].sort(key=lambda part: part_order(part["file"]))
        text = _to_text(self.manifest)
        self.put(MANIFEST, text)
        return text

    def _clear_log(self) -> None:
        """Delete the commits, whose content the manifest has now, and begin an empty log."""
        with writing_to(self.store):
            self.store.delete(COMMITS)
        self._log = CommitLog(self.store)

    def keep_tables(self, known: Sequence[TableEntry]) -> None:
        """Add tables of an earlier manifest (``known``) to this one, if their files have not
        changed.
        """
        self.manifest["tables"] += [table for table in known if is_whole(self.store, table)]

    def list_table(self, name: str, facts: Facts) -> None:
        """Add a table that is in the folder to the manifest, in place of an earlier entry.

        ``facts``: what its metadata say, for the entry. Raises OutputError: it cannot be read.
        """
        with writing_to(self.store):
            size, digest = size_and_digest_in(self.store, name)
        others = [table for table in self.manifest["tables"] if table["file"] != name]
        entry: TableEntry = {"file": name, "bytes": size, "sha256": digest, **facts}
        self.manifest["tables"] = [*others, entry]

    def put_table(self, name: str, tables: Iterable[pa.Table]) -> None:
        """Write the rows of ``tables``, one after the other, to a Parquet file of the folder, and
        add it to the manifest.

        There is at least one table. Facts for the manifest are read from the metadata of the last.
        The file is whole or not there. Raises OutputError.
        """
        with writing_to(self.store), self.store.new_file(name) as file:
            writer: pq.ParquetWriter | None = None
            facts: Facts = {}
            for table in tables:
                facts = read_facts(table.schema)
                writer = writer or pq.ParquetWriter(
                    file, table.schema, compression="zstd", compression_level=1
                )
                writer.write_table(table)
            if writer is not None:
                writer.close()
        self.list_table(name, facts)

    def put(self, name: str, data: bytes) -> None:
        """Write one of the folder's files, whole or not at all; raises OutputError."""
        with writing_to(self.store), self.store.new_file(name) as file:
            file.write(data)


def size_and_digest_in(store: Store, name: str) -> tuple[int, str]:
    """Return size in bytes and SHA-256 of a file in a store; raises OSError.

    From an object store the file is copied to this machine first.
    """
    with store.local([name]) as folder:
        return size_and_digest(folder / name)


def is_whole(store: Store, entry: PartEntry | TableEntry) -> bool:
    """Return whether a file is in the store with the size and SHA-256 of its manifest entry."""
    try:
        return size_and_digest_in(store, entry["file"]) == (entry["bytes"], entry["sha256"])
    except OSError:
        return False


def commit(store: Store, log: CommitLog, added: Any) -> bool:
    """Add a commit to the log of a run; return False if the log is closed. Raises OutputError.

    ``added``: entries of the commit by the keys of ``Commit``.
    """
    try:
        with writing_to(store):
            return log.append(added)
    except ValueError as error:
        raise OutputError(
            f"{store}/{COMMITS}: {error}; move it elsewhere, and run again with --resume"
        ) from None


def graph_folder(path: Path, shard: Shard | None = None) -> Path:
    """Return where a run stores its graph for worker processes: the folder "_graph" in the folder
    ``path`` of the run, or "_graph-2" for process 2 of a shared run. ``shard`` is None if the run
    is not shared.
    """
    return path / (GRAPH if shard is None else f"{GRAPH}-{shard.index}")


def delete_left(path: Path, names: re.Pattern[str]) -> None:
    """Delete what killed workers and runs have left in a folder: files and folders whose whole name
    matches ``names``. A link is deleted, and not what it leads to.
    """
    for entry in path.iterdir():
        if not names.fullmatch(entry.name):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)


def _to_text(manifest: Manifest) -> bytes:
    """Return a manifest as JSON, with one line per key and one line per part.

    It is always UTF-8, whatever the locale; bytes of file names that are not text are escaped. The
    lines are joined here, because ``json.dumps`` with ``indent`` does not use its compiled encoder,
    and takes ten times as long for the ids of many sources.
    """
    values = {key: json.dumps(value) for key, value in manifest.items()}
    parts = ",".join(f"\n  {json.dumps(part)}" for part in manifest["parts"])
    values["parts"] = f"[{parts}\n ]"
    entries = ",\n".join(f" {json.dumps(key)}: {value}" for key, value in values.items())
    return f"{{\n{entries}\n}}\n".encode("utf-8", "backslashreplace")


@contextlib.contextmanager
def status_on_error(folder: OutputFolder) -> Iterator[None]:
    """Record in the manifest that the run was interrupted or failed if the block raises; then raise
    the error again.
    """
    try:
        yield
    except BaseException as error:
        status: Status = "interrupted"
        if not isinstance(error, (KeyboardInterrupt, SystemExit)):
            status = "failed"
            folder.manifest["ended_by"] = f"{type(error).__name__}: {error}"
        try:
            folder.save(status)
        except OutputError:
            # On a full disk the last manifest stays; --resume finds the parts that it lacks.
            if not isinstance(error, OutputError):
                raise
        raise
