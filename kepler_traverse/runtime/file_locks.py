"""File locks. The system releases them when the process that holds them ends."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

# Errors of file systems without such locks: Lustre without ``-o flock``, NFS without its lock
# service, some of FUSE.
_UNSUPPORTED = {errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL}


class NoLocksError(OSError):
    """The file system has no file locks."""


def open_lock(path: Path) -> int:
    """Open a lock file, which is created if it does not exist; return its descriptor.

    OSError if the path is not a regular file. Links are not followed.
    """
    # O_NONBLOCK: opening a named pipe, which is refused below, must not wait for its other end.
    descriptor = os.open(
        path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644
    )
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return descriptor


def take_lock(descriptor: int, wait: bool = False) -> bool:
    """Take the lock of a file that ``open_lock`` has opened, and return True. Return False if
    another process holds it; with ``wait``, wait until it is free instead.

    The lock is held until the descriptor is closed. NoLocksError if the file system has no locks.
    """
    try:
        operation = fcntl.LOCK_EX
        if not wait:
            operation |= fcntl.LOCK_NB
        fcntl.flock(descriptor, operation)
    except BlockingIOError:  # EWOULDBLOCK and nothing else: another process holds it
        return False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            reason = f"its file system has no file locks (flock: {error.strerror})"
            raise NoLocksError(error.errno, reason) from None
        raise
    return True
