"""Where Numba keeps compiled code, also where neither the package nor the user's home can be
written to.

Numba looks for a folder beside each module, then in the user's cache, and raises an error if it may
write to neither, as in a container with a read-only image. Such a process takes a folder in the
place for temporary files, which later processes find again.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from pathlib import Path

import numba
from numba.core.caching import Cache, IndexDataCacheFile

from ..errors import OutputError, notice

_PACKAGE = Path(__file__).parents[1]


def choose_folder() -> None:
    """Name a folder for compiled code to Numba if those that it would take cannot be written to.

    OutputError if NUMBA_CACHE_DIR names a folder that cannot be made or written to.
    """
    if numba.config.CACHE_DIR:
        if not _can_be_made(Path(numba.config.CACHE_DIR)):
            raise OutputError(
                _say_why_not_kept(numba.config.CACHE_DIR, "it cannot be made, or not written to")
            )
        return
    if all(map(_is_writable, _folders())) or _can_be_made(_user_cache()):
        return
    numba.config.CACHE_DIR = str(_private_temporary_folder())


def name_files_by_variant() -> None:
    """Have Numba name the file of a compiled function after the types that it is compiled for.

    Numba numbers these files. Two processes that compile one function for different types at the
    same time can take the same number, and the index then names, for the types of the first
    process, the code that the second process has compiled for its own types. A later process runs
    this code, which reads and writes memory that is not its own (issues 4807 and 10128 of Numba).
    """
    IndexDataCacheFile.save = _save


def ignore_indexes_of_other_versions() -> None:
    """Have Numba compile anew where its index names what this version of the package lacks.

    An index holds the types that functions were compiled for, among them classes of this package.
    Numba reads the whole index before it compares the time of the source file. So an index that
    names a missing class cannot be read at all.
    """
    load = IndexDataCacheFile._load_index

    def load_index(file: IndexDataCacheFile) -> dict[object, str]:
        """Return the index of a function: file names by types; empty if a class is missing."""
        try:
            return load(file)
        except (AttributeError, ImportError):
            return {}

    IndexDataCacheFile._load_index = load_index


def _save(file: IndexDataCacheFile, key: tuple[object, ...], data: object) -> None:
    """Save the compiled code of one function for some types, and then its name in the index.

    It takes the place of Numba's ``IndexDataCacheFile.save``: ``key`` stands for the types, and
    ``data`` is the code. The index is read anew. If another process writes it at the same time, one
    of the names is lost, and that code is compiled again.
    """
    variant = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
    name = f"{file._index_name.removesuffix('.nbi')}.{variant}.nbc"
    file._save_data(name, data)
    file._save_index(file._load_index() | {key: name})


def go_on_where_code_cannot_be_kept() -> None:
    """Have Numba run code that it cannot keep, usually since the disk is full, with a notice that
    names the folder, rather than raise an error.
    """
    save = Cache._save_overload

    def guarded(cache: Cache, signature: object, data: object) -> None:
        """Save compiled code as Numba does, and report an error of the file system."""
        try:
            save(cache, signature, data)
        except OSError as error:
            why = error.strerror or str(error)
            notice(
                _say_why_not_kept(cache.cache_path, why)
                + "; until then each process compiles it again"
            )

    Cache._save_overload = guarded


def _say_why_not_kept(folder: str, why: str) -> str:
    """Return the text that compiled code cannot be kept in ``folder``, with the reason ``why`` and
    what to do.
    """
    return (
        f"{folder}: compiled code cannot be kept there: {why}; free space there, or name another "
        "folder by NUMBA_CACHE_DIR"
    )


def _folders() -> list[Path]:
    """Return the folders of this package whose modules have compiled functions, beside which Numba
    keeps the code.
    """
    return [
        _PACKAGE / name
        for name in (
            "assignment",
            "bfs",
            "bfs/multi_source",
            "certificate",
            "cpu",
            "hierarchy",
            "hub_labels",
            "kinds",
            "networkx_backend",
            "published/bfs",
            "published/sssp",
            "search",
            "sssp",
            "sssp/multi_source",
        )
    ]


def _is_writable(folder: Path) -> bool:
    """Return whether Numba can keep code beside the modules of a folder, in ``__pycache__``."""
    cache = folder / "__pycache__"
    if cache.exists():
        return os.access(cache, os.W_OK)
    return os.access(folder, os.W_OK)


def _user_cache() -> Path:
    """Return the folder that Numba takes in the user's cache; it may not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numba"


def _can_be_made(folder: Path) -> bool:
    """Make a folder unless it exists, and return whether it exists and can be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _is_private(status: os.stat_result) -> bool:
    """Return whether a folder with this status is owned by this user, and neither its group nor
    others may write to it.
    """
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _private_temporary_folder() -> Path:
    """Return a folder for compiled code that only this user can write to: another user that could
    would have code of theirs run.

    It has the same name in later processes, unless another user has taken that name.
    """
    folder = Path(tempfile.gettempdir()) / f"kepler_traverse-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        status = None
    if status and stat.S_ISDIR(status.st_mode) and _is_private(status):
        return folder
    return Path(tempfile.mkdtemp(prefix="kepler_traverse-"))


def own_folder() -> Path | None:
    """Return a folder for what was measured of this machine; None where there is none that is this
    user's alone.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kepler_traverse"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except (OSError, RuntimeError):  # RuntimeError: no home
        return None
    if _is_private(status) and os.access(folder, os.W_OK):
        return folder
    return None
