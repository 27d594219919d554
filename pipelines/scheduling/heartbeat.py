"""The heartbeat of a task: a small file that says which batch and source the task is at, and that
outlives the worker.

Where worker and driver share no folder, the worker sends its progress, and the driver writes the
file.

When a worker dies, only its files remain. From the heartbeat the driver learns which tasks of that
worker had begun and which source it died at, so that no failure is counted for the other tasks. A
write to the page cache is enough for that and takes a microsecond.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple

from kepler_traverse.runtime.regular_files import read_regular

_PLACE = struct.Struct("<qqq")  # part, source and last part; a reason in UTF-8 follows
_NO_SOURCE = -1
_NOT_BEGUN = -1  # in place of a part
_MAX_REASON_LENGTH = 500  # bytes


class Place(NamedTuple):
    """Where a task was last."""

    part: int  # number of the part, or of the first of several parts that are searched together
    # vertex number; None between sources, for example while a part is completed on disk
    source: int | None
    reason: str  # why the worker ended its own process, if it did
    # number of the last of several parts whose sources it traversed together; equals ``part`` for a
    # single part
    last: int


class TaskProgress:
    """Records where a task is; this one records nothing, for work that no other worker retries."""

    def record(self, part: int, source: int | None = None, last: int | None = None) -> None:
        """Record where the task is.

        ``part``: number of the part that it works on, or of the first of several. ``source``: the
        vertex number of the source that is searched; None for no source, or for several. ``last``:
        number of the last part whose sources are searched together; None for ``part`` itself.
        """


class Heartbeat(TaskProgress):
    """The heartbeat of a task that runs in this process: a context manager around the task.

    Its file is deleted at the end of the block, but survives if the process dies. ``path``: of the
    file, which the driver has chosen.
    """

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> Heartbeat:
        """Create the file; it says that the task has not begun."""
        # Another worker may have had the task, and a file of this name, before Dask gave the task
        # to this one. Without its file, that worker sees that it is not wanted any more.
        self._path.unlink(missing_ok=True)
        # Never follow a symbolic link that another user may have created.
        self._file = os.open(
            self._path, os.O_CREAT | os.O_RDWR | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644
        )
        # Write the full size at once, so that a disk that fills up later is not mistaken for a
        # failure of a source.
        os.pwrite(self._file, heartbeat_content(_NOT_BEGUN), 0)
        return self

    def __exit__(self, *_: object) -> None:
        """Delete the file, unless another worker has the task now."""
        if self.is_wanted():
            self._path.unlink(missing_ok=True)
        os.close(self._file)

    def record(self, part: int, source: int | None = None, last: int | None = None) -> None:
        """Write the place of the task to the file, over the place that it had before.

        ``part``: number of the part that the task works on, or of the first of several.
        ``source``: vertex number of the source that is searched; None for no source, or for
        several. ``last``: number of the last part whose sources are searched together; None for
        ``part`` itself.
        """
        os.pwrite(self._file, _pack_place(part, source, last), 0)

    def record_reason(self, reason: str) -> None:
        """Record why this process will end now; the driver reports the reason.

        It stands behind the place in the file, which stays as it is.
        """
        os.pwrite(self._file, reason.encode()[:_MAX_REASON_LENGTH], _PLACE.size)

    def is_wanted(self) -> bool:
        """Whether the driver still waits for this worker.

        The driver deletes the file of a task that it no longer waits for, and another worker that
        has got the task creates a file of its own. So the file must still be the one that this
        worker has opened.
        """
        try:
            return os.path.samestat(os.fstat(self._file), os.lstat(self._path))
        except OSError:
            return False


def _pack_place(part: int, source: int | None, last: int | None) -> bytes:
    """Return where a task is, as the 24 bytes at the begin of its file.

    The arguments are those of ``TaskProgress.record``. A source that is None becomes -1.
    """
    if source is None:
        source = _NO_SOURCE
    if last is None:
        last = part
    return _PLACE.pack(part, source, last)


def heartbeat_content(
    part: int, source: int | None = None, last: int | None = None, reason: str = ""
) -> bytes:
    """Return the content of the file of a task: its place, and the reason for which its process
    ends (``""`` for none). The size is always the same.
    """
    reason_bytes = reason.encode()[:_MAX_REASON_LENGTH]
    return _pack_place(part, source, last) + reason_bytes.ljust(_MAX_REASON_LENGTH, b"\0")


def write_heartbeat(
    folder: Path, event: tuple[float, tuple[str, tuple[int, int | None, int | None] | None, str]]
) -> None:
    """Write a heartbeat that a worker has sent to a file in ``folder``, as if the worker had
    written it.

    ``event``: the time, and what ``EventHeartbeat`` sends: name of the file, place (part, source
    and last part) and reason. Without a place the task has ended, and its file is deleted.
    """
    _, (name, place, reason) = event
    # Only the last part of the name counts, so that no file elsewhere is written.
    path = folder / Path(name).name
    if place is None:
        path.unlink(missing_ok=True)
        return
    part, source, last = place
    path.touch()
    with open(path, "r+b") as file:  # "wb" would empty it first, and a reader could see that
        file.write(heartbeat_content(part, source, last, reason))


def read_heartbeat(path: Path) -> Place | None:
    """Return where a task is, from its heartbeat file; None if it has not begun or has ended, or if
    the file is not one of this job.
    """
    try:
        content = read_regular(path, _PLACE.size + _MAX_REASON_LENGTH)
    except OSError:
        return None
    if len(content) < _PLACE.size:
        return None
    part, source, last = _PLACE.unpack_from(content)
    if not (0 <= part <= last and source >= _NO_SOURCE):
        return None
    if source == _NO_SOURCE:
        source = None
    reason = content[_PLACE.size :].rstrip(b"\0").decode(errors="replace")
    return Place(part, source, reason, last)


def find_heartbeats(folder: Path) -> list[Path]:
    """Return the heartbeat files that a process which was killed has left in the output folder."""
    return sorted(folder.glob(".task-*.tmp"))
