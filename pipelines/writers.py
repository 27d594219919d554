"""The parts of one task, written on threads of a worker while it goes on traversing.

A traversal on a GPU takes a fraction of the time that rows and Parquet take on one core. So a worker that has cores besides
its own hands each part over once its distances are proven right. What is in a part does not depend on this.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from distributed.system import MEMORY_LIMIT

from kepler_traverse.many import free_memory

from .answers import is_out_of_memory
from .sizing import ROWS_A_GROUP, ROWS_A_PART

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
    a_part = _HELD_BYTES * max(ROWS_A_PART, n_vertices) + _ROW_BYTES * (ROWS_A_GROUP + n_vertices)
    share = min(free_memory("cpu"), MEMORY_LIMIT) // 2 * cores // max(all_cores, cores)
    return max(1, min(cores, share // a_part))


def fits_beside(n_sources: int, n_vertices: int) -> bool:
    """Whether all traversals of a part may be held in host memory until it is written."""
    return n_sources == 1 or n_sources * n_vertices <= ROWS_A_PART


def side_by_side(ends: Iterable[Callable], writers: int) -> list[Future]:
    """End parts on threads while others begin.

    Parameters
    ----------
    ends : iterable of callables
        Each is what is left to do for a part, once what is done in this thread has been done for it.
    writers : int
        Threads; as many parts are being written, and one more waits.

    Returns
    -------
    list of Future
        All done, in the order of the parts. After an error other than of memory no further part has begun.
    """
    parts: list[Future] = []
    with ThreadPoolExecutor(writers, thread_name_prefix="kepler-writer") as pool:
        for end in ends:
            parts.append(pool.submit(end))
            under_way = [part for part in parts if not part.done()]
            if len(under_way) > writers:
                wait(under_way, return_when=FIRST_COMPLETED)
            if any(_is_fatal(part) for part in parts if part.done()):
                break
    return parts


def _is_fatal(part: Future) -> bool:
    error = part.exception()
    return error is not None and not is_out_of_memory(error)
