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

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH  # bits of a mode that let group or others write
MAX_DEPTH = 32  # levels of lists and objects in each other that JSON may have
_KINDS = {  # what is no regular file, by the type in its mode
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def irregular(path: str | os.PathLike[str], follow: bool = False) -> str:
    """Return what is at a path that is no regular file, as "a FIFO"; ``""`` for a regular file.

    Nothing is opened. ``follow`` says whether a symbolic link is followed. OSError if there is
    nothing at the path.
    """
    return _KINDS.get(stat.S_IFMT(os.stat(path, follow_symlinks=follow).st_mode), "")


def open_regular(path: str | os.PathLike[str], follow: bool = False) -> BinaryIO:
    """Open a regular file for reading, in binary mode; never wait. OSError if it cannot be opened,
    or is no regular file.

    ``follow`` says whether the path itself may be a symbolic link: True for a path that a user has
    named, False for a file in a folder that this library has made.
    """
    what = irregular(path, follow)
    if not what:
        # Another user may have exchanged the file since the check. So these flags neither wait for
        # a FIFO nor follow a link, and the open file is checked once more.
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
    """Return the content of a regular file; OSError if it cannot be read, is no regular file, or is
    larger than ``max_bytes``.
    """
    with open_regular(path) as file:
        # Ask for the size before reading: a huge file would fill the memory.
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise OSError(
                errno.EFBIG,
                f"it has {size:,} bytes, and {max_bytes:,} are the most that is read",
                str(path),
            )
        return file.read(size)  # not more, if the file grows meanwhile


def refuse_irregular(path: Path) -> None:
    """Raise ValueError if a path is no regular file. Callers do this before they open it, since
    opening a FIFO would wait forever.
    """
    what = irregular(path)
    if what:
        raise ValueError(f"{path.name} is {what}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file for the ``with`` block to write. At its end the file takes
    the place of ``path``; after an error it is deleted, and ``path`` stays as it was.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        yield partial
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# What to do about errors of writing, by ``errno``.
_ADVICE = dict.fromkeys(_SPACE, "free some space there, or name another place")
_ADVICE[errno.ENOENT] = "make its folder first"


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file for the ``with`` block to write. At its end the file takes
    the place of ``path``, which a user has named; after an error ``path`` stays as it was.

    OutputError, in place of OSError, if the file cannot be written, as on a full disk.
    """
    try:
        with replacing(path) as partial:
            yield partial
    except OSError as error:
        advice = _ADVICE.get(error.errno or 0, "name another place")
        # The text of Arrow's errors names the temporary file, which means nothing to the user.
        reason = os.strerror(error.errno) if error.errno else one_line(error)
        raise OutputError(f"{path}: it cannot be written: {reason}; {advice}") from None


@contextmanager
def partial_folder(folder: Path) -> Iterator[Path]:
    """Yield the path of a new temporary folder next to ``folder``, for the ``with`` block to fill
    and to rename to ``folder``. After an error it is removed.
    """
    partial = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    # An earlier process with the same number may have been killed and left such a folder.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o755)
    try:
        yield partial
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def deny_others(folder: Path) -> None:
    """Let no other user write to a folder and to what is in it, whatever the umask: clear the bits
    of their modes that allow it. ``require_private`` accepts such folders.
    """
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & ~OTHERS_WRITE)


def size_and_digest(path: Path) -> tuple[int, str]:
    """Return the size in bytes of a regular file, and its SHA-256 in hexadecimal. OSError if it
    cannot be opened, or is no regular file.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        return size, hashlib.file_digest(cast(Any, file), "sha256").hexdigest()


def compute_digests(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the SHA-256 of files in a folder, in hexadecimal, by name. OSError if one cannot be
    opened, or is no regular file.
    """

    def compute_digest(name: str) -> str:
        """Return the SHA-256 of one file."""
        _, digest = size_and_digest(folder / name)
        return digest

    digests = map_on_threads(compute_digest, names, os.cpu_count() or 1)
    return dict(zip(names, digests, strict=True))


def differing_file(folder: Path, digests: dict[str, str]) -> str:
    """Return a text that names the first file in a folder whose SHA-256 differs from its value in
    ``digests``, which maps names of files to SHA-256 in hexadecimal; ``""`` if no file differs.
    OSError if a file cannot be opened, or is no regular file.
    """
    actual = compute_digests(folder, list(digests))
    for name, digest in digests.items():
        if actual[name] != digest:
            return f"{name} differs from its checksum"
    return ""


def sealed(facts: dict[str, Any]) -> bytes:
    """Return facts as JSON in UTF-8, with a SHA-256 of them under the key "checksum", for
    ``read_sealed``.
    """
    digest = hashlib.sha256(json.dumps(facts, indent=1).encode()).hexdigest()
    return json.dumps(facts | {"checksum": digest}, indent=1).encode()


def read_sealed(path: str | os.PathLike[str], max_bytes: int) -> tuple[Any, bool]:
    """Return the JSON in a regular file, without the key "checksum", and whether the file is what
    ``sealed`` made of it, to the byte.

    OSError if the file cannot be read or is larger than ``max_bytes``, ValueError if it is no JSON.
    """
    data = read_regular(path, max_bytes)
    facts = read_json(data)
    if not isinstance(facts, dict):
        return facts, False
    facts.pop("checksum", None)
    return facts, data == sealed(facts)


def read_json(data: bytes) -> object:
    """Return the value of JSON text.

    ValueError if it is no JSON in UTF-8, has a key twice in one object, a number that is none (NaN,
    infinity, more digits than Python converts), or lists and objects more than ``MAX_DEPTH`` deep.
    Python's reader would accept most of these.
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

    # Count the levels of lists and objects without recursion. ``level`` has the lists and objects
    # of one level, at first the value itself, and each pass replaces them by those of the next
    # level.
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner for outer in level for inner in _contents(outer) if isinstance(inner, list | dict)
        ]
        if not level:
            return value
    raise ValueError(_TOO_DEEP)


_TOO_DEEP = f"lists and objects are more than {MAX_DEPTH} deep"


def _contents(value: Any) -> Any:
    """Return the values that a list or an object (a dict) of JSON contains; an empty tuple for any
    other value of JSON.
    """
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, list):
        return value
    return ()


def _refuse_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON, a dict, from its keys and values; ValueError if a key occurs twice.

    ``json.loads`` would keep the last value without a word.
    """
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return result


def _refuse_constant(text: str) -> NoReturn:
    """Raise ValueError for NaN and infinity: ``json.loads`` accepts them, but they are no JSON."""
    raise ValueError(f"{text} is no number")


def _read_finite(text: str) -> float:
    """Return the float of a text of JSON; ValueError if it is beyond the floats of 64 bits."""
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is beyond the numbers of 64 bits")
    return value


def require_private(path: Path) -> None:
    """Raise InputError if other users could have written a folder or file: the path is a symbolic
    link, belongs to a user other than this one and root, or its mode lets others write.

    A fingerprint in a file proves nothing then, since they could have written that, too.
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
