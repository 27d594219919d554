"""The answers of one batch, source by source, and what happens where one does not come.

Sources are taken in groups. A group that fails is halved and tried again in the same worker, down to one source; the one
that fails alone is left out and reported, and the others are answered. What memory a group held is free before it is
tried again.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from kepler_traverse import cuda
from kepler_traverse.certificate import certify
from kepler_traverse.errors import NegativeCycleError
from kepler_traverse.frames import table_of

from .sink import as_written
from .sizing import ROWS_A_GROUP
from .tallies import counted

MOST_IN_A_GROUP = 64
_CUDA_ERRORS = ("CUDARuntimeError", "CUDADriverError")
_CUDA_OUT_OF_MEMORY = ("cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on either device; CuPy's own error for it is a MemoryError."""
    return isinstance(error, MemoryError) or (
        type(error).__name__ in _CUDA_ERRORS and any(name in str(error) for name in _CUDA_OUT_OF_MEMORY)
    )


def is_sticky(error: BaseException) -> bool:
    """Whether an error makes every later CUDA call of this process fail, too."""
    return type(error).__name__ in _CUDA_ERRORS and not is_out_of_memory(error)


def free_memory() -> None:
    """Give back what nobody holds any more."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    if cuda.available():
        cuda.cp.get_default_memory_pool().free_all_blocks()


class Answers:
    """Answers sources with one plan.

    Parameters
    ----------
    graph, plan : Graph, Plan
    work : Work

    Attributes
    ----------
    group : int
        How many sources are answered before their rows go to the writer. Halved wherever memory runs out, and kept so.
    """

    def __init__(self, graph, plan, work):
        self._graph, self._plan, self._work = graph, plan, work
        self.group = max(1, min(MOST_IN_A_GROUP, ROWS_A_GROUP // max(1, graph.n_vertices)))

    def of(self, part: int, sources: Sequence[int], careful: bool, mark, clock, tally, failed: list) -> Iterator[tuple]:
        """Yield (source id, table, checksum) for each source in order.

        Parameters
        ----------
        part : int
        sources : sequence of vertex numbers
        careful : bool
            One source at a time, because a worker has died of one of them.
        mark : Mark
            Told where this is.
        clock : Phases
        tally : Tally
        failed : list
            Gets ``(source, reason)`` for each source that is left out.

        Raises
        ------
        NegativeCycleError
        Exception
            A CUDA error after which this process cannot go on (``is_sticky``).
        """
        size = 1 if careful else self.group
        first = sources[0] if len(sources) else None  # all of them may have been given up
        groups = deque(sources[i : i + size] for i in range(0, len(sources), size))
        tried_again = None
        while groups:
            group = groups.popleft()
            answers, reason, memory_ran_out = self._try(part, group, first, mark, clock)
            if answers is not None:
                for answer, seconds, counts in answers:
                    tally.add(answer[0], seconds, *counts)
                    yield answer
                mark.at(part)
                continue
            if memory_ran_out:
                free_memory()
                self.group = max(1, min(self.group, len(group) // 2))
            if len(group) > 1:
                middle = len(group) // 2
                groups.extendleft((group[middle:], group[:middle]))
            elif memory_ran_out and tried_again != group[0]:
                tried_again = group[0]  # alone, and with all memory that can be had
                groups.appendleft(group)
            else:
                failed.append((int(group[0]), reason))

    def _try(self, part, group, first, mark, clock) -> tuple[list | None, str, bool]:
        """Answer a group; the exception, which holds on to memory, is gone when this returns."""
        try:
            return self._answer(part, group, first, mark, clock), "", False
        except NegativeCycleError:
            raise
        except Exception as error:
            if is_sticky(error):
                raise
            name = f"source {id_of(self._graph, int(group[0]))}"
            return None, ": ".join([type(error).__name__, name, str(error)]), is_out_of_memory(error)

    def _answer(self, part, group, first, mark, clock) -> list[tuple]:
        """Rows, checksum and counts of each source of a group: the place for a plan that traverses from many at once."""
        graph, plan, work = self._graph, self._plan, self._work
        answers = []
        for source in group:
            mark.at(part, int(source))
            with clock("traverse") as traversing:
                traversal = plan.run(int(source))
            if work.certify == "all" or (work.certify == "sample" and source == first):
                with clock("certify"):
                    certify(graph, traversal).require()
            written = as_written(traversal, plan.query)
            table = table_of(graph, traversal if work.predecessors else replace(traversal, predecessor=None), plan.query)
            checksum, *counts = counted(graph, traversal, written)
            answers.append(((id_of(graph, int(source)), table, checksum), traversing.seconds, counts))
        return answers


def id_of(graph, number: int):
    """The user's id of one vertex, as a plain Python value."""
    return names_of(graph, np.array([number]))[0]


def names_of(graph, numbers: np.ndarray) -> list:
    """The user's ids of vertices, as plain Python values."""
    if graph.device == "cuda" and not graph.has_string_ids:
        return graph.ids[cuda.cp.asarray(numbers)].tolist()
    return graph.ids_at(numbers).tolist()
