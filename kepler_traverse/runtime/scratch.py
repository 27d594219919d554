"""Arrays in files: the system writes them to the disk and takes them out of memory where that is
short.

The files have no names, so nothing of them is left when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CapacityError, OutputError, option_text
from .display import in_units
from .file_locks import open_lock, take_lock

_PROBE = 2**20  # bytes that a folder must have space for, unless a caller says how many
_PREFIX = "kepler-"  # begins the names of temporary folders
_LOCK = "_lock"  # name of the file in each folder that its process keeps locked while it runs
_held: dict[str, int] = {}  # folders of this process, and the descriptors of their lock files
READ_AT_A_TIME = 2**25  # bytes of the rows that are read at a time, and of temporary arrays


@contextmanager
def writing_to(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Raise OutputError, which names ``folder``, in place of an OSError of the ``with`` block,
    which writes to that folder. Usually the disk is full.
    """
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{os.fspath(folder)}: the graph cannot be built there: {error.strerror or error}; free space there, or name "
            f"another folder by {option_text('scratch')}"
        ) from None


def _temporary_place() -> str:
    """Return the folder for temporary files, for messages: the one that Python uses, or "/tmp" if
    it finds none that it can write to.
    """
    try:
        return tempfile.gettempdir()
    except OSError:  # no folder that Python knows of is writable
        return "/tmp"


def make_folder() -> str:
    """Make a folder in the place for temporary files, and return its path, for ``delete_folder``.
    OSError if it cannot be made.

    A process that is killed deletes nothing. So each process holds a lock in its folder, and makes
    a new folder only after it has deleted those whose locks are free.
    """
    # To delete folders of other processes is a courtesy: an error is no reason to fail.
    with contextlib.suppress(OSError):
        _delete_abandoned(Path(tempfile.gettempdir()))
    folder = tempfile.mkdtemp(prefix=_PREFIX)
    # On a file system without locks the folder has none, so no other process deletes it.
    with contextlib.suppress(OSError):
        lock = open_lock(Path(folder, f"{_LOCK}.new"))
        _held[folder] = lock
        # The file gets its name when it is locked: others delete folders whose lock file is free.
        if take_lock(lock):
            os.rename(f"{folder}/{_LOCK}.new", f"{folder}/{_LOCK}")
    return folder


def delete_folder(folder: str | os.PathLike[str]) -> None:
    """Delete a folder that ``make_folder`` has made, and release its lock. Errors are ignored."""
    shutil.rmtree(folder, ignore_errors=True)
    if os.fspath(folder) in _held:
        os.close(_held.pop(os.fspath(folder)))


def _delete_abandoned(place: Path) -> None:
    """Delete the folders in ``place`` that processes of this user made and left: those whose locks
    can be taken, since the system releases the locks of a process that ends.
    """
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # another process may delete it meanwhile
            status = folder.lstat()  # of the path itself: a link to another folder is no folder
            if (
                not stat.S_ISDIR(status.st_mode)
                or status.st_uid != os.geteuid()
                or not (folder / _LOCK).is_file()
            ):
                continue
            lock = open_lock(folder / _LOCK)
            try:
                if take_lock(lock):  # its process has ended
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


@contextmanager
def temporary_folder(n_bytes: int = _PROBE) -> Iterator[str]:
    """Yield the path of a new folder for temporary files, which is deleted at the end of the block.

    OutputError, which names the place, if a folder cannot be made there, or if there is no room for
    ``n_bytes`` bytes.
    """
    with contextlib.ExitStack() as stack:
        try:
            folder = make_folder()
            stack.callback(delete_folder, folder)
            # Allocate the space in a file that is deleted at once: an error shows that it is full.
            with tempfile.TemporaryFile(dir=folder) as probe:
                os.posix_fallocate(probe.fileno(), 0, n_bytes)
        except OSError as error:
            raise OutputError(
                f"{_temporary_place()}: temporary files cannot be kept there: {error.strerror}; free space "
                "there, or name another folder by TMPDIR"
            ) from None
        yield folder


@dataclass(frozen=True)
class Scratch:
    """A folder for arrays in files, which need not fit into memory, and a limit of the memory that
    work on them may take.
    """

    folder: str | os.PathLike[str]
    memory: int  # bytes

    def empty(self, size: int, dtype: Any) -> np.ndarray:
        """Return an array of ``size`` elements of type ``dtype`` that is in a file without a name,
        which vanishes with the array. OutputError if the disk is full.
        """
        nbytes = size * np.dtype(dtype).itemsize
        if not nbytes:  # an empty file can be neither allocated nor mapped
            return np.empty(0, dtype)
        with writing_to(self.folder), tempfile.TemporaryFile(dir=self.folder) as file:
            # Reserve the space now. Else a write to the array, on a full disk, would end the
            # process by a signal.
            os.posix_fallocate(file.fileno(), 0, nbytes)
            # The mapping keeps the memory after the file, which has no name, is closed.
            return np.frombuffer(mmap.mmap(file.fileno(), nbytes), dtype)

    def require(self, nbytes: int, what: str) -> None:
        """Raise CapacityError if ``nbytes`` bytes that must be in memory, and the rows that are
        read at a time, exceed the limit. ``what`` names them in the error.
        """
        needed = nbytes + READ_AT_A_TIME
        if needed > self.memory:
            raise CapacityError(
                f"{what} take {in_units(needed)} of memory to number, and the limit is {in_units(self.memory)}; only edges "
                f"can be in files: raise {option_text('build_memory')}"
            )
