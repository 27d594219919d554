"""The answers of one batch, source by source, and what happens where one does not come.

Sources are taken in groups, as many as the plan answers at once. A group that fails is halved and tried again in the same
worker, down to one source; the one that fails alone is left out and reported, and the others are answered. What memory a
group held is free before it is tried again. Rows are made of one traversal at a time, when the writer wants them.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kepler_traverse import cuda
from kepler_traverse._arrays import namespace
from kepler_traverse.certificate import certify, certify_many
from kepler_traverse.errors import NegativeCycleError
from kepler_traverse.results import Traversals

from .buffers import BUFFERS
from .rows import Vertices, id_of, is_made_on_host, on_host, rows_of

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
    BUFFERS.clear()
    pa.default_memory_pool().release_unused()
    if cuda.available():
        cuda.cp.get_default_memory_pool().free_all_blocks()


class Answers:
    """Answers sources, each for itself, with one plan.

    Whatever is written of distances, they are proven right before anything is made of them.

    Parameters
    ----------
    graph, plan : Graph, ManyPlan
    work : Work or Request

    Attributes
    ----------
    group : int
        How many sources are answered at once. Halved wherever memory runs out, and kept so.
    """

    def __init__(self, graph, plan, work):
        self._graph, self._plan, self._work = graph, plan, work
        self._asked = None if work.targets is None else graph.numbers_of(work.targets, "target")
        self.group = plan.group
        self._vertices = Vertices(graph)

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
        for traversals, seconds in self._groups(part, sources, careful, mark, clock, failed):
            yield from self._rows(traversals, seconds, clock, tally)
            mark.at(part)

    def kept(self, part: int, sources: Sequence[int], mark, clock, tally, failed: list) -> list[tuple]:
        """Traverse from all sources of a part, so that ``of_kept`` can make the rows beside the next part's traversals.

        Parameters are those of ``of``.

        Returns
        -------
        list of (Traversals or list of rows, float)
            In host memory: traversals where rows are made there, rows otherwise.
        """
        self._vertices.bring()  # here, since other threads leave the device alone
        found, beside = [], is_made_on_host(self._work.result, self._plan.query, self._graph)
        for traversals, seconds in self._groups(part, sources, False, mark, clock, failed):
            if beside:
                with clock("rows"):
                    found.append((on_host(traversals), seconds))
            else:
                found.append((list(self._rows(traversals, seconds, clock, tally)), seconds))
        mark.at(part)
        return found

    def of_kept(self, found: list[tuple], clock, tally) -> Iterator[tuple]:
        """Yield what ``of`` yields, of what ``kept`` returned; in any thread."""
        for traversals, seconds in found:
            yield from traversals if isinstance(traversals, list) else self._rows(traversals, seconds, clock, tally)

    def _rows(self, traversals: Traversals, seconds: float, clock, tally) -> Iterator[tuple]:
        with clock("rows"):  # some of it is done here, and the rest from row to row
            made = rows_of(self._work.result, self._graph, self._plan.query, traversals, self._asked, self._vertices)
        while True:
            with clock("rows"):
                rows = next(made, None)
            if rows is None:
                return
            tally.add(rows.source, seconds, *rows.counts)
            yield rows.source, rows.table, rows.checksum

    def _groups(self, part, sources, careful, mark, clock, failed) -> Iterator[tuple[Traversals, float]]:
        """Yield groups of traversals, proven right, and the seconds that one of their sources took."""
        size = 1 if careful else self.group
        first = sources[0] if len(sources) else None  # all of them may have been given up
        groups = deque(sources[i : i + size] for i in range(0, len(sources), size))
        tried_again = None
        while groups:
            group = groups.popleft()
            traversals, seconds, reason, memory_ran_out = self._try(part, group, first, mark, clock)
            if traversals is not None:
                yield traversals, seconds
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

    def _try(self, part, group, first, mark, clock) -> tuple[Traversals | None, float, str, bool]:
        """Traverse from a group; the exception, which holds on to memory, is gone when this returns."""
        try:
            return *self._traverse(part, group, first, mark, clock), "", False
        except NegativeCycleError:
            raise
        except Exception as error:
            if is_sticky(error):
                raise
            name = f"source {id_of(self._graph, int(group[0]))}"
            return None, 0.0, ": ".join([type(error).__name__, name, str(error)]), is_out_of_memory(error)

    def _traverse(self, part, group, first, mark, clock) -> tuple[Traversals, float]:
        """Distances from each source of a group, proven right, and the seconds that one took."""
        # Of several, nobody could tell at which one the worker died; the driver then has them taken one at a time.
        mark.at(part, int(group[0]) if len(group) == 1 else None)
        with clock("traverse") as traversing:
            traversals = self._plan.run(group)
        with clock("certify"):
            if self._work.certify == "all":
                self._certify(traversals)
            elif self._work.certify == "sample" and group[0] == first:
                self._certify(traversals[:1])
        return traversals, traversing.seconds / len(group)

    def _certify(self, traversals: Traversals) -> None:
        if traversals.predecessor is not None:
            for traversal in traversals:
                certify(self._graph, traversal).require()
            return
        limits = np.array([np.inf if limit is None else limit for limit in traversals.limits], np.float64)
        for limit in np.unique(limits):  # searches stopped by their targets end where they end
            these = np.flatnonzero(limits == limit)
            distance = traversals.distance
            if these.size < len(traversals):
                distance = distance[namespace(distance).asarray(these)]
            limit = None if np.isinf(limit) else limit.item()
            certify_many(self._graph, traversals.sources[these], distance, limit).require()
