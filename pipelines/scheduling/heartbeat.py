"""The mark of a task: a small file that says which batch and source it is at, and that outlives the worker.

A worker that dies takes everything with it but what it wrote. From its mark the driver learns which of the tasks on that
worker had begun, so that the others are not blamed, and which source it died at. A write to the page cache is enough for
that and takes a microsecond.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import NamedTuple, Protocol

from kepler_traverse.regular_files import read_regular

_PLACE = struct.Struct("<qqq")
_NO_SOURCE = _NOT_BEGUN = -1
_MAX_REASON_LENGTH = 500  # bytes


class Place(NamedTuple):
    """Where a task was last.

    Attributes
    ----------
    part : int
    source : int or None
        Vertex number; None between sources, as while a part is finished on disk.
    reason : str
        Why the worker ended itself, if it did.
    last : int
        The last of several parts whose sources it traversed from together; ``part`` if it was at one.
    """

    part: int
    source: int | None
    reason: str
    last: int


class TaskProgress(Protocol):
    """Is told where a task is."""

    def at(self, part: int, source: int | None = None, last: int | None = None) -> None:
        """The task is at a source (vertex number; None at none) of a part, or of the parts up to ``last``."""


class NullProgress:
    """The ``TaskProgress`` of work that is given to no other worker where it fails: nothing is kept."""

    def at(self, part: int, source: int | None = None, last: int | None = None) -> None:
        pass


class Mark:
    """The mark of a task that runs here; its file ends with the block, unless the process does."""

    def __init__(self, path: Path):
        self._path = path

    def __enter__(self) -> Mark:
        # Never by way of a link that somebody has put there.
        self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
        # All of its room at once, so that a disk that fills up later cannot be mistaken for a fault of a source.
        os.pwrite(
            self._file, _PLACE.pack(_NOT_BEGUN, _NO_SOURCE, _NOT_BEGUN).ljust(_PLACE.size + _MAX_REASON_LENGTH, b"\0"), 0
        )
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._path.unlink(missing_ok=True)

    def at(self, part: int, source: int | None = None, last: int | None = None) -> None:
        place = _PLACE.pack(part, _NO_SOURCE if source is None else source, part if last is None else last)
        os.pwrite(self._file, place, 0)

    def leave(self, reason: str) -> None:
        """Say why this process will end now."""
        os.pwrite(self._file, reason.encode()[:_MAX_REASON_LENGTH], _PLACE.size)

    def is_wanted(self) -> bool:
        """Whether the driver still waits for this task: it takes the mark of one that it has given to another worker."""
        return self._path.exists()


def read_mark(path: Path) -> Place | None:
    """Return where a task is, None if it has not begun or has ended, or what is there is no mark of this job."""
    try:
        content = read_regular(path, _PLACE.size + _MAX_REASON_LENGTH)
    except OSError:
        return None
    if len(content) < _PLACE.size:
        return None
    part, source, last = _PLACE.unpack_from(content)
    if not (0 <= part <= last and source >= _NO_SOURCE):
        return None
    reason = content[_PLACE.size :].rstrip(b"\0").decode(errors="replace")
    return Place(part, None if source == _NO_SOURCE else source, reason, last)
