"""Arrays in files: the system writes them to the disk and takes them out of memory where that is short.

The files have no names, so nothing of them is left when the process ends, however it ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import CapacityError, option_text
from .display import in_units

READ_AT_A_TIME = 2**25  # bytes of the rows that are read at a time, and of temporary arrays


@dataclass(frozen=True)
class Scratch:
    """A folder on a disk for arrays that need not fit into memory, and the bytes of memory that work on them may take."""

    folder: str | os.PathLike[str]
    memory: int

    def empty(self, size: int, dtype: Any) -> np.ndarray:
        """Return an array in a file, as ``numpy.empty`` returns one in memory; raises OSError if the disk is full."""
        nbytes = size * np.dtype(dtype).itemsize
        if not nbytes:
            return np.empty(0, dtype)
        with tempfile.TemporaryFile(dir=self.folder) as file:
            # Without room of its own, a write to a full disk would end the process by a signal.
            os.posix_fallocate(file.fileno(), 0, nbytes)
            return np.frombuffer(mmap.mmap(file.fileno(), nbytes), dtype)

    def require(self, nbytes: int, what: str) -> None:
        """Raise CapacityError if something that must be in memory exceeds the limit, beside what is read at a time."""
        needed = nbytes + READ_AT_A_TIME
        if needed > self.memory:
            raise CapacityError(
                f"{what} take {in_units(needed)} of memory to number, and the limit is {in_units(self.memory)}; only edges "
                f"can be in files: raise {option_text('build_memory')}"
            )
