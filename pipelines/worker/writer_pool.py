"""Writer threads: a worker writes parts on threads while it continues to traverse.

A traversal on a GPU takes a fraction of the time that one core needs for rows and Parquet. So a
worker with spare cores passes each part to a thread once its distances are certified. A task lets
the next one begin while its last parts are written. The content of a part does not depend on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from kepler_traverse.runtime.memory import available_memory

from ..output.schemas import ROWS_PER_GROUP, ROWS_PER_PART
from .device_errors import is_out_of_memory
from .host_limits import MEMORY_LIMIT

# per row that is being encoded, about: its ids, its distance and their encoded form
_ROW_BYTES = 48
_HELD_BYTES = 12  # per row of a part that waits to be written: a distance and a predecessor


def writers_for(n_vertices: int, cores: int, all_cores: int) -> int:
    """Return how many threads of a worker may write: one per core, limited by its share of half of
    the free memory.

    ``cores`` are those of this worker, and ``all_cores`` those of the machine.
    """
    a_part = _HELD_BYTES * max(ROWS_PER_PART, n_vertices) + _ROW_BYTES * (
        ROWS_PER_GROUP + n_vertices
    )
    share = min(available_memory("cpu"), MEMORY_LIMIT) // 2 * cores // max(all_cores, cores)
    return max(1, min(cores, share // a_part))


def can_write_in_background(n_sources: int, n_vertices: int) -> bool:
    """Whether all traversals of a part may be held in host memory until it is written."""
    return n_sources == 1 or n_sources * n_vertices <= ROWS_PER_PART


class Writers:
    """Threads of a worker that write parts while later parts are traversed.

    ``most``: parts in flight at once, of all tasks together; ``take`` waits while there are more.
    """

    def __init__(self, most: int):
        self.most = most
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="kepler-writer")
        self._under_way: list[Future[Any]] = []

    def take(self, ends: Iterable[Callable[..., Any]]) -> list[Future[Any]]:
        """Submit parts to the threads, and return their futures in order; only one thread may call
        this at a time.

        ``ends``: each finishes one part, after this thread has done its share of the work; the part
        begins when the next one is requested. The last parts returned still run. After an error
        other than lack of memory no further part has begun.
        """
        parts: list[Future[Any]] = []
        try:
            for end in ends:
                parts.append(self._pool.submit(end))
                self._under_way.append(parts[-1])
                self._let_some_end()
                if any(_is_fatal(part) for part in parts if part.done()):
                    break
        except BaseException:
            wait(parts)
            raise
        return parts

    def _let_some_end(self) -> None:
        while True:
            self._under_way = [part for part in self._under_way if not part.done()]
            if len(self._under_way) <= self.most:
                return
            wait(self._under_way, return_when=FIRST_COMPLETED)

    def close(self) -> None:
        self._pool.shutdown(wait=False)


def _is_fatal(part: Future[Any]) -> bool:
    error = part.exception()
    return error is not None and not is_out_of_memory(error)
