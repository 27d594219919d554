"""The output folder of a run: its lock, its files, and the check that it is complete."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.parquet as pq

from kepler_traverse.errors import OutputError
from kepler_traverse.runtime.regular_files import irregular, json_of, read_regular, size_and_digest

from .file_locks import NoLocksError, open_lock, take_lock
from .manifest_types import FORMAT, Identity, Manifest, PartEntry, Status, TableEntry, checked
from .part_file import sync_folder

MANIFEST, SUCCESS, LOCK, GRAPH, REPORT = "_manifest.json", "_SUCCESS", "_lock", "_graph", "_report.html"
_TABLE = re.compile(r"_(vertices|pairs|sources|points|hulls)\.pq")
_WRITTEN = rf"_manifest\.json|_SUCCESS|_report\.html|{_TABLE.pattern}"
_OURS = re.compile(
    rf"{_WRITTEN}|_lock|_graph|_graph\.\d+\.tmp|part-\d{{6}}\.(parquet|arrow)"
    rf"|\.(part-\d{{6}}|task-\d{{6,}}|shared|{_WRITTEN})\.\w+\.tmp"
)
_FOLDERS = re.compile(r"_graph(\.\d+\.tmp)?")
_PART = re.compile(r"part-(\d{6})\.(?:parquet|arrow)")
MAX_MANIFEST_BYTES = 2**31
_MAX_MARK_BYTES = 2**10
_LOCK_TRIES = 20
_SAVE_EVERY = 5.0  # seconds between two manifests of a running job; --resume checks parts that the manifest lacks
_SAVING_SHARE = 0.02  # maximum fraction of time spent on writing manifests, whatever their size


@contextlib.contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Raise OutputError in place of an OSError: a file of a run cannot be written, usually because the disk is full."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{folder}: a file cannot be written there: {error.strerror or error}; existing part files are complete. "
            "Fix that (free some space?) and run again with --resume"
        ) from None


def digest_of(fingerprint: str, parts: Sequence[PartEntry]) -> str:
    """Return one checksum of all results; it does not depend on batches, their order, workers or device."""
    total = sum(int(part["checksum"], 16) for part in parts) % 2**64
    return f"{fingerprint[:16]}-{total:016x}"


def check_folder(path: Path, resume: bool) -> Manifest | None:
    """Return the manifest of the run to resume, or None if there is none yet; creates nothing.

    Raises
    ------
    OutputError
        The folder holds files that this run must not modify.
    """
    try:
        names = sorted(os.listdir(path))
        _refuse_others_files(path, names)
    except FileNotFoundError:
        names = []
    except NotADirectoryError:
        raise OutputError(f"{path}: this is a file; --output takes a folder") from None
    except OSError as error:
        raise OutputError(f"{path}: the output folder cannot be read: {error.strerror}; take another folder") from None
    if not resume:
        if names:
            raise OutputError(f"{path}: {_STANDS_THERE[SUCCESS in names]}")
        return None
    if not names:
        what = "is empty" if path.exists() else "does not exist"
        raise OutputError(
            f"{path}: the folder {what}, so there is no run to resume; correct its name, or leave --resume out"
        )
    if MANIFEST not in names:
        if any(name.startswith("part-") for name in names):
            raise OutputError(f"{path}: the folder holds parts but no {MANIFEST}; take a new folder")
        return None  # a run was stopped before it wrote anything
    try:
        return read_manifest(path)
    except ValueError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{path / MANIFEST}: not a manifest of this job ({error}); take a new folder") from None


_STANDS_THERE = {
    True: "the folder holds a finished run; take a new folder, or --resume to check that nothing of that run is missing",
    False: "the folder holds a run that is not finished; take a new folder, or --resume to finish that run",
}


def _refuse_others_files(path: Path, names: list[str]) -> None:
    """Raise OutputError for a file that this job has not written, even if it has the name of one of its files."""
    for name in names:
        if not _OURS.fullmatch(name):
            raise OutputError(f"{path}: the folder holds {name!r}, which is none of this job's files; take a new folder")
        try:
            what, expected = irregular(path / name), "a folder" if _FOLDERS.fullmatch(name) else ""
        except FileNotFoundError:  # a run that writes here has just renamed it
            continue
        if what != expected:
            raise OutputError(
                f"{path / name}: it is {what or 'a file'} and not {expected or 'a regular file'}, so this job has not "
                "written it; delete it, or take a new folder"
            )


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a run.

    Raises
    ------
    OutputError
        It cannot be read at all, or has another format.
    ValueError
        It is damaged, or not a manifest of this job.
    """
    path = folder / MANIFEST
    try:
        data = read_regular(path, MAX_MANIFEST_BYTES)
    except OSError as error:
        raise OutputError(f"{path}: the manifest cannot be read: {error.strerror}") from None
    found: Any = json_of(data)
    written = found.get("format") if isinstance(found, dict) else None
    if type(written) is int and written != FORMAT:
        versions = found.get("versions")
        version = versions.get("kepler_traverse") if isinstance(versions, dict) else None
        by = f"kepler_traverse {version[:32]}" if isinstance(version, str) else "another version"
        raise OutputError(
            f"{path}: {by} wrote this output, in format {written}, and this version reads format {FORMAT}; finish or verify "
            "it with that version, or take a new folder"
        )
    return checked(found, Manifest)


def mark_fits(folder: Path) -> bool:
    """Return whether ``_SUCCESS`` exists and holds the checksum of the manifest."""
    try:
        mark = read_regular(folder / SUCCESS, _MAX_MARK_BYTES)
        manifest = read_regular(folder / MANIFEST, MAX_MANIFEST_BYTES)
    except OSError:
        return False
    return mark.strip() == hashlib.sha256(manifest).hexdigest().encode()


def tables_in(folder: Path) -> set[str]:
    """Return the names of the tables beside the parts."""
    return {name for name in os.listdir(folder) if _TABLE.fullmatch(name)}


def part_number(name: str) -> int | None:
    """Return the number of a part file from its name; None if it is not the name of a part file."""
    found = _PART.fullmatch(name)
    return int(found[1]) if found else None


def fingerprint_of(identity: Identity) -> str:
    """Return the SHA-256 of everything that determines the content of the parts."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def refuse_another_run(path: Path, manifest: Manifest, identity: Identity, n_batches: int, tables: Collection[str]) -> None:
    """Raise OutputError unless the manifest is of the same run and the folder has no parts or tables beyond its own."""
    before: dict[str, Any] = dict(manifest["identity"])
    now: dict[str, Any] = dict(identity)  # a key that only one of them has is of an option that only one was given
    differing = [key for key in before | now if before.get(key) != now.get(key)]
    if differing:
        shown = "; ".join(f"{key} was {_short(before.get(key))} and is {_short(now.get(key))}" for key in differing)
        raise OutputError(f"{path}: --resume needs the settings of the run that it finishes: {shown}")
    for name in sorted(os.listdir(path)):
        number = part_number(name)
        if number is not None and number >= n_batches:
            raise OutputError(
                f"{path / name}: this is none of the {n_batches} parts of the run, and readers of the folder would take its "
                "rows for results; move it elsewhere, and run again with --resume"
            )
    for name in sorted(tables_in(path) - set(tables)):
        raise OutputError(
            f"{path / name}: a run with these settings has no such table; give the settings of the run that it finishes, or "
            "move the file elsewhere, and run again with --resume"
        )


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 20 else text[:16] + "..."


class OutputFolder:
    """The output folder while a run writes to it; a lock excludes other runs.

    Attributes
    ----------
    path : Path
    manifest : dict
        The current manifest; ``save`` writes it.
    """

    def __init__(self, path: Path):
        self.path = path
        self.manifest = cast(Manifest, {})  # until the run is known
        self._save_again_at = 0.0

    def __enter__(self) -> OutputFolder:
        is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            held = self._take_lock()
        except NoLocksError as error:
            (self.path / LOCK).unlink(missing_ok=True)
            if is_new:
                self.path.rmdir()
            raise OutputError(
                f"{self.path}: {error.strerror}, so two runs could not exclude each other here; take an --output on another "
                "file system, or have this one mounted with locks (Lustre: -o flock)"
            ) from None
        except OSError as error:
            raise OutputError(f"{self.path}: the output folder cannot be made or written to: {error.strerror}") from None
        if not held:
            raise OutputError(f"{self.path}: another run is writing to this folder; wait or take a new one")
        return self

    def _take_lock(self) -> bool:
        """Take the folder's lock; False if another process holds it."""
        for _ in range(_LOCK_TRIES):
            lock, free, mine = open_lock(self.path / LOCK), False, False
            try:
                free = take_lock(lock)
                with contextlib.suppress(FileNotFoundError):
                    mine = free and os.path.samestat(os.fstat(lock), os.stat(self.path / LOCK))
            finally:
                if not mine:
                    os.close(lock)
            if mine:
                self._lock = lock
                return True
            if not free:
                return False
            # The run that held the lock has just ended and deleted its lock file.
        return False

    def __exit__(self, *_: Any) -> None:
        status = self.manifest.get("status")
        with contextlib.suppress(OSError):
            if status in ("done", "failed"):  # after an interrupt a remote worker may still write its last part
                self._sweep_leftovers()
        if status == "done":
            shutil.rmtree(self.path / GRAPH, ignore_errors=True)
            (self.path / LOCK).unlink(missing_ok=True)
        os.close(self._lock)

    def sweep(self) -> None:
        """Delete partial files of a killed run, and ``_SUCCESS``."""
        with writing_to(self.path):
            self._sweep_leftovers()
            (self.path / SUCCESS).unlink(missing_ok=True)

    def _sweep_leftovers(self) -> None:
        """Delete partial files of killed workers and runs."""
        for entry in self.path.iterdir():
            if entry.name.endswith(".tmp") and _OURS.fullmatch(entry.name):
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry)
                else:
                    entry.unlink(missing_ok=True)

    def is_complete(self) -> bool:
        """Return whether the folder is unchanged since ``complete``."""
        return mark_fits(self.path)

    def save(self, status: Status | None = None) -> None:
        """Write the manifest; without a status only if some time has passed."""
        now = time.monotonic()
        if status is None and now < self._save_again_at:
            return
        self.manifest["status"] = status or self.manifest["status"]
        self.manifest["parts"].sort(key=lambda part: part["file"])
        self.put(MANIFEST, _text_of(self.manifest))
        took = time.monotonic() - now
        self._save_again_at = now + max(_SAVE_EVERY, took / _SAVING_SHARE)

    def complete(self) -> None:
        """Write the last manifest and then ``_SUCCESS``."""
        parts = self.manifest["parts"]
        self.manifest["digest"] = digest_of(self.manifest["graph"]["fingerprint"], parts)
        self.save("done")
        self.put(SUCCESS, hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest() + "\n")

    def keep_tables(self, known: Sequence[TableEntry]) -> None:
        """Add those of the tables of an earlier manifest to this one that are on disk unchanged."""
        for table in known:
            with contextlib.suppress(OSError):
                if size_and_digest(self.path / table["file"]) == (table["bytes"], table["sha256"]):
                    self.manifest["tables"].append(table)

    def put_table(self, name: str, tables: Iterable[pa.Table]) -> None:
        """Write tables as one of the folder's files, one after the other, whole or not at all; add it to the manifest.

        Raises
        ------
        OutputError
        """
        with self._new_file(name) as file:
            writer: pq.ParquetWriter | None = None
            for table in tables:
                writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd", compression_level=1)
                writer.write_table(table)
            if writer is not None:
                writer.close()
        with writing_to(self.path):
            size, digest = size_and_digest(self.path / name)
        others = [table for table in self.manifest["tables"] if table["file"] != name]
        self.manifest["tables"] = [*others, {"file": name, "bytes": size, "sha256": digest}]

    def put(self, name: str, text: str) -> None:
        """Write one of the folder's files, whole or not at all; raises OutputError."""
        with self._new_file(name) as file:
            # Always UTF-8, whatever the locale; file names may hold bytes that are not text.
            file.write(text.encode("utf-8", "backslashreplace"))

    @contextlib.contextmanager
    def _new_file(self, name: str) -> Iterator[BinaryIO]:
        """Yield a file that becomes one of the folder's when it is whole; raises OutputError."""
        partial = self.path / f".{name}.{os.getpid()}.tmp"
        try:
            with writing_to(self.path):
                with open(partial, "wb", opener=_open_new) as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(partial, self.path / name)
                sync_folder(self.path)
        finally:
            partial.unlink(missing_ok=True)


def _text_of(manifest: Manifest) -> str:
    """Return a manifest with an entry per line, and a part per line.

    With ``indent`` the encoder of ``json`` is not compiled, and takes ten times as long for the ids of many sources.
    """
    entries = {key: json.dumps(value) for key, value in manifest.items()}
    entries["parts"] = "[" + ",".join(f"\n  {json.dumps(part)}" for part in manifest["parts"]) + "\n ]"
    return "{\n" + ",\n".join(f" {json.dumps(key)}: {text}" for key, text in entries.items()) + "\n}\n"


def _open_new(path: str, flags: int) -> int:
    """Open a file for writing, never through a symbolic link or into a FIFO."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)


@contextlib.contextmanager
def status_on_error(folder: OutputFolder) -> Iterator[None]:
    """Record in the manifest that a run was interrupted or failed."""
    try:
        yield
    except BaseException as error:
        stopped = isinstance(error, (KeyboardInterrupt, SystemExit))
        if not stopped:
            folder.manifest["ended_by"] = f"{type(error).__name__}: {error}"
        # On a full disk the last manifest stays; --resume finds the parts that it lacks.
        with contextlib.suppress(OutputError) if isinstance(error, OutputError) else contextlib.nullcontext():
            folder.save("interrupted" if stopped else "failed")
        raise
