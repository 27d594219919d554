"""Parts, written on threads of a worker while it goes on traversing.

A traversal on a GPU takes a fraction of the time that rows and Parquet take on one core. So a worker that has cores besides
its own hands each part over once its distances are proven right, and a task makes way for the next one while its last parts
are written. What is in a part does not depend on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from distributed.system import MEMORY_LIMIT

from kepler_traverse.multi_source.planning import available_memory

from ..output.schemas import ROWS_PER_GROUP, ROWS_PER_PART
from .device_errors import is_out_of_memory

_ROW_BYTES = 48  # of one row that is being encoded, about: its ids and distance, and what becomes of them
_HELD_BYTES = 12  # of one row of a part that waits to be written: a distance and a predecessor


def writers_for(n_vertices: int, cores: int, all_cores: int) -> int:
    """How many threads of a worker may write: one a core, as far as its share of half of the free memory goes.

    Parameters
    ----------
    n_vertices : int
    cores, all_cores : int
        Of this worker, of the machine.
    """
    a_part = _HELD_BYTES * max(ROWS_PER_PART, n_vertices) + _ROW_BYTES * (ROWS_PER_GROUP + n_vertices)
    share = min(available_memory("cpu"), MEMORY_LIMIT) // 2 * cores // max(all_cores, cores)
    return max(1, min(cores, share // a_part))


def can_write_in_background(n_sources: int, n_vertices: int) -> bool:
    """Whether all traversals of a part may be held in host memory until it is written."""
    return n_sources == 1 or n_sources * n_vertices <= ROWS_PER_PART


class Writers:
    """Threads of a worker that end parts while others begin.

    Parameters
    ----------
    most : int
        Threads.

    Attributes
    ----------
    most : int
        Parts that are written at once, of whichever tasks; one more waits.
    """

    def __init__(self, most: int):
        self.most = most
        self._pool = ThreadPoolExecutor(most, thread_name_prefix="kepler-writer")
        self._under_way: list[Future[Any]] = []

    def take(self, ends: Iterable[Callable[..., Any]]) -> list[Future[Any]]:
        """End parts, each of which begins where the next callable is asked for; by one thread at a time.

        Parameters
        ----------
        ends : iterable of callables
            Each is what is left to do for a part, once what is done in this thread has been done for it.

        Returns
        -------
        list of Future
            In the order of the parts; the last ones are still under way. After an error other than of memory no further part
            has begun.
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
