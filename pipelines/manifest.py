"""The output folder of a run: who may write to it, what is in it, and when it is complete."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from pathlib import Path

from kepler_traverse.errors import OutputError

from .sink import sync_folder

MANIFEST, SUCCESS, LOCK, GRAPH, REPORT = "_manifest.json", "_SUCCESS", "_lock", "_graph", "_report.html"
_OURS = re.compile(
    r"_manifest\.json|_SUCCESS|_lock|_report\.html|_graph|_graph\.\d+\.tmp|part-\d{6}\.parquet"
    r"|\.(part-\d{6}|task-\d{6,}|shared|_manifest\.json|_SUCCESS|_report\.html)\.\w+\.tmp"
)
_SAVE_EVERY = 5.0  # seconds between two manifests of a running job; parts that it does not name are checked on resuming
_SAVING_SHARE = 0.02  # of the time goes into manifests at most, however long they are


def cannot_write(folder: Path, error: OSError) -> OutputError:
    """The error for an output folder that does not take a file: mostly the disk is full."""
    return OutputError(
        f"{folder}: a file cannot be written there: {error.strerror or error}; what is there is whole. "
        "Mend that (free some space?) and run again with --resume"
    )


def digest_of(fingerprint: str, parts: list[dict]) -> str:
    """One value for the results of all sources, whatever the batches, their order, the workers and the device."""
    total = sum(int(part["checksum"], 16) for part in parts) % 2**64
    return f"{fingerprint[:16]}-{total:016x}"


def check_folder(path: Path, resume: bool) -> dict | None:
    """Return the manifest of the run to resume, None where there is nothing yet; creates nothing.

    Raises
    ------
    OutputError
        The folder holds something that this run must not touch.
    """
    if not path.exists():
        return None
    if not path.is_dir():
        raise OutputError(f"{path}: this is a file; --output takes a folder")
    names = sorted(entry.name for entry in path.iterdir())
    foreign = [name for name in names if not _OURS.fullmatch(name)]
    if foreign:
        raise OutputError(f"{path}: the folder holds {foreign[0]!r}, which is none of this job's files; take a new folder")
    if names and not resume:
        raise OutputError(
            f"{path}: the folder holds the output of another run; take a new folder, or --resume to finish that run"
        )
    if MANIFEST not in names:
        if any(name.startswith("part-") for name in names):
            raise OutputError(f"{path}: the folder holds parts but no {MANIFEST}; take a new folder")
        return None
    try:
        manifest = json.loads((path / MANIFEST).read_text())
        manifest["identity"], manifest["parts"], manifest["fingerprint"]
    except (ValueError, KeyError, TypeError):
        raise OutputError(f"{path / MANIFEST}: not a manifest of this job; take a new folder") from None
    return manifest


def fingerprint_of(identity: dict) -> str:
    """SHA-256 of everything that decides what the parts hold."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def refuse_another_run(path: Path, manifest: dict, identity: dict) -> None:
    """Raise OutputError unless a manifest is of this very run."""
    before = manifest["identity"]
    differing = [key for key in identity if before.get(key) != identity[key]]
    if differing:
        shown = "; ".join(f"{key} was {_short(before.get(key))} and is {_short(identity[key])}" for key in differing)
        raise OutputError(f"{path}: --resume needs the settings of the run that it finishes: {shown}")


def _short(value) -> str:
    text = json.dumps(value)
    return text if len(text) <= 20 else text[:16] + "..."


class OutputFolder:
    """The folder while a run writes to it; no second run gets it at the same time.

    Attributes
    ----------
    path : Path
    manifest : dict
        As it will be written; ``save`` does it.
    """

    def __init__(self, path: Path):
        self.path = path
        self.manifest: dict = {}
        self._save_again_at = 0.0

    def __enter__(self) -> OutputFolder:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.path / LOCK, os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise OutputError(f"{self.path}: the output folder cannot be made or written to: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._lock).st_ino != os.stat(self.path / LOCK).st_ino:
                raise BlockingIOError  # the run that held it has just ended and took its lock file away
        except OSError:
            os.close(self._lock)
            raise OutputError(f"{self.path}: another run is writing to this folder; wait or take a new one") from None
        return self

    def __exit__(self, *_) -> None:
        if self.manifest.get("status") == "done":
            shutil.rmtree(self.path / GRAPH, ignore_errors=True)
            (self.path / LOCK).unlink(missing_ok=True)
        os.close(self._lock)

    def sweep(self) -> None:
        """Delete what a killed run left half-written, and the mark of completeness."""
        for entry in self.path.iterdir():
            if entry.name.endswith(".tmp"):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        (self.path / SUCCESS).unlink(missing_ok=True)

    def is_complete(self) -> bool:
        """Whether the folder is what ``complete`` left."""
        mark = self.path / SUCCESS
        return mark.is_file() and mark.read_text().strip() == hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest()

    def save(self, status: str | None = None) -> None:
        """Write the manifest; without a status only if some time has passed."""
        now = time.monotonic()
        if status is None and now < self._save_again_at:
            return
        self.manifest["status"] = status or self.manifest["status"]
        self.manifest["parts"].sort(key=lambda part: part["file"])
        self.put(MANIFEST, json.dumps(self.manifest, indent=1) + "\n")
        took = time.monotonic() - now
        self._save_again_at = now + max(_SAVE_EVERY, took / _SAVING_SHARE)

    def complete(self) -> None:
        """Write the last manifest and then the mark that everything is there."""
        parts = self.manifest["parts"]
        self.manifest["digest"] = digest_of(self.manifest["graph"]["fingerprint"], parts)
        self.save("done")
        self.put(SUCCESS, hashlib.sha256((self.path / MANIFEST).read_bytes()).hexdigest() + "\n")

    def put(self, name: str, text: str) -> None:
        """Write one of the folder's files, whole or not at all; raises OutputError."""
        partial = self.path / f".{name}.{os.getpid()}.tmp"
        try:
            with open(partial, "w") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(partial, self.path / name)
            sync_folder(self.path)
        except OSError as error:
            partial.unlink(missing_ok=True)
            raise cannot_write(self.path, error) from None


@contextlib.contextmanager
def status_on_error(folder: OutputFolder):
    """Note in the manifest that a run was interrupted or failed."""
    try:
        yield
    except BaseException as error:
        stopped = isinstance(error, (KeyboardInterrupt, SystemExit))
        if not stopped:
            folder.manifest["ended_by"] = f"{type(error).__name__}: {error}"
        # On a full disk the last manifest stays as it is; resuming finds the parts that it does not name.
        with contextlib.suppress(OutputError) if isinstance(error, OutputError) else contextlib.nullcontext():
            folder.save("interrupted" if stopped else "failed")
        raise
