"""Files that are read: regular files, of a bounded size where they are read back, and JSON that
means one thing.

A reader waits forever at a FIFO, and a device such as /dev/zero has no end. Another user who can
write to a folder can put one of these in place of a file, or a link to another file, or JSON that
Python's reader accepts although it is malformed: a key twice, NaN, lists nested a thousand deep.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import shutil
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

from .._uninterrupted import map_on_threads
from ..errors import InputError, OutputError, one_line

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
MAX_DEPTH = 32  # of lists and objects in each other
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def irregular(path: str | os.PathLike[str], follow: bool = False) -> str:
    """Say what a path is if it is there and no regular file, else ``""``; nothing is opened."""
    return _KINDS.get(stat.S_IFMT(os.stat(path, follow_symlinks=follow).st_mode), "")


def open_regular(path: str | os.PathLike[str], follow: bool = False) -> BinaryIO:
    """Open a regular file for reading; never waits. OSError if it cannot be opened, or is no
    regular file.

    ``follow`` says whether a link in the file's own place is followed: one that a user has named
    is, one in a folder of ours is not.
    """
    what = irregular(path, follow)
    if not what:
        # Without waiting, and without following: it may have been exchanged meanwhile.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        if not follow:
            flags |= os.O_NOFOLLOW
        descriptor = os.open(path, flags)
        what = _KINDS.get(stat.S_IFMT(os.fstat(descriptor).st_mode), "")
        if not what:
            return os.fdopen(descriptor, "rb")
        os.close(descriptor)
    raise OSError(errno.EINVAL, f"it is {what} and not a regular file", str(path))


def read_regular(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Read a whole regular file; OSError if it cannot be read, is none, or is larger than
    ``max_bytes``.
    """
    with open_regular(path) as file:
        # Not by reading: a huge file would fill the memory first.
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise OSError(
                errno.EFBIG,
                f"it has {size:,} bytes, and {max_bytes:,} are the most that is read",
                str(path),
            )
        return file.read(size)  # a reader allocates what it is asked for


def refuse_irregular(path: Path) -> None:
    """Raise ValueError for what is no regular file, before it is opened: opening a FIFO would
    block.
    """
    what = irregular(path)
    if what:
        raise ValueError(f"{path.name} is {what}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield where the block writes a file that then takes the place of another, whole or, after an
    error, not at all.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_ADVICE = dict.fromkeys(_SPACE, "free some space there, or name another place")
_ADVICE[errno.ENOENT] = "make its folder first"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield where the block writes a file that a user has named. It then takes the place of that
    file, whole or, after an error, not at all.

    Raises OutputError: it cannot be written, as on a full disk.
    """
    try:
        with replacing(path) as partial:
            yield partial
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "name another place")
        # what Arrow says names the file beside it
        reason = os.strerror(error.errno) if error.errno else one_line(error)
        raise OutputError(f"{path}: it cannot be written: {reason}; {advice}") from None


@contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder beside another, for the block to fill and rename; what is left of it after
    an error is removed.
    """
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    # left by a process of the same number that was killed
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o755)
    try:
        yield partial
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def deny_others(folder: Path) -> None:
    """Let no other user write to a folder and what is in it, whatever the umask; see
    ``require_private``.
    """
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~OTHERS_WRITE)


def size_and_digest(path: Path) -> tuple[int, str]:
    """Return the bytes and the SHA-256 of a regular file; raises OSError as ``open_regular``."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return size, hashlib.file_digest(cast(Any, file), "sha256").hexdigest()


def compute_digests(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of files in a folder, by name; raises OSError as ``open_regular``."""

    def compute_digest(name: str) -> str:
        _, digest = size_and_digest(folder / name)
        return digest

    digests = map_on_threads(compute_digest, names, os.cpu_count() or 1)
    return dict(zip(names, digests, strict=True))


def differing_file(folder: Path, digests: dict[str, str]) -> str:
    """Describe the first file that is not the one of its SHA-256; ``""`` if all are."""
    actual = compute_digests(folder, list(digests))
    for name, digest in digests.items():
        if actual[name] != digest:
            return f"{name} differs from its checksum"
    return ""


def sealed(facts: dict[str, Any]) -> bytes:
    """Return facts as JSON with a SHA-256 of them, as ``read_sealed`` reads."""
    digest = hashlib.sha256(json.dumps(facts, indent=1).encode()).hexdigest()
    return json.dumps(facts | {"checksum": digest}, indent=1).encode()


def read_sealed(path: str | os.PathLike[str], max_bytes: int) -> tuple[Any, bool]:
    """Read JSON of a regular file; return it, without its checksum, and whether it is what
    ``sealed`` made, to the byte.

    OSError and ValueError as of ``read_regular`` and ``read_json``.
    """
    data = read_regular(path, max_bytes)
    facts = read_json(data)
    if not isinstance(facts, dict):
        return facts, False
    facts.pop("checksum", None)
    return facts, data == sealed(facts)


def read_json(data: bytes) -> object:
    """Read JSON.

    ValueError if it is no JSON in UTF-8, has a key twice in one object, a number that is none (NaN,
    infinity, more digits than Python converts), or lists and objects more than ``MAX_DEPTH`` deep.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_refuse_repeated_keys,
            parse_constant=_refuse_constant,
            parse_float=_read_finite,
        )
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None

    # One level of lists and objects after the other, without recursion.
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            inner for outer in level for inner in _contents(outer) if isinstance(inner, list | dict)
        ]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


_TOO_DEEP = f"lists and objects are more than {MAX_DEPTH} deep"


def _contents(value: Any) -> Any:
    """Return the values in a list or an object; none in other values."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()


def _refuse_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON from its keys and values; ValueError if a key occurs twice."""
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return result


def _refuse_constant(text: str) -> NoReturn:
    """Raise ValueError for NaN and infinity, which JSON does not have."""
    raise ValueError(f"{text} is no number")


def _read_finite(text: str) -> float:
    """Return a float; ValueError if it is beyond those of 64 bits."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is beyond the numbers of 64 bits")
    return value


def require_private(path: Path) -> None:
    """Refuse a folder or file that other users could have written: they could have written its
    fingerprint, too.

    InputError if the path is a link, belongs to another user, or its mode lets others write.
    """
    try:
        status = os.lstat(path)
    except OSError as error:
        raise InputError(f"{path}: it cannot be looked at: {error.strerror}") from None
    if stat.S_ISLNK(status.st_mode):
        raise InputError(
            f"{path}: it is a symbolic link, which may lead to a graph of "
            "another user; name the folder itself"
        )
    if status.st_uid not in (0, os.geteuid()):
        raise InputError(
            f"{path}: it belongs to another user, who chooses the graph; take a folder of your own"
        )
    if status.st_mode & OTHERS_WRITE:
        raise InputError(
            f"{path}: others can write to it, and so choose the graph; run chmod go-w on it if its content is yours"
        )
