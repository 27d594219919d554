"""Results of many sources as a stream: one result per group of sources, each made when it is
requested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import NegativeCycleError
from ..runtime.concurrency import SharedIterator
from ..runtime.interrupts import forget_interrupted
from ..runtime.progress import Meter
from .outputs import ResultForm


class ResultStream(SharedIterator):
    """An iterator of results, each of a group of sources; ``bfs_many`` and ``sssp_many`` return it
    with ``stream=True``.

    The groups are consecutive: joined, they are the result without ``stream``, in the order of the
    given sources. Memory holds the plan of one group, and the results that the caller keeps. Any
    number of threads may read a stream. Each result goes to one of them, and the others wait
    meanwhile.

    ``close`` releases the plan's memory. The end of the stream, an error and the end of a ``with``
    block do the same. After an error, Ctrl-C included, every further ``next`` raises InputError, so
    that no reader takes this for the end.

    Attributes
    ----------
    n_sources : int
    n_done : int
        Number of sources whose results were returned.
    """

    def __init__(
        self,
        form: ResultForm,
        numbers: np.ndarray,
        meter: Meter,
        cycle_error: Callable[[NegativeCycleError], NegativeCycleError],
    ) -> None:
        """Prepare a stream, which searches when its first result is requested.

        ``form`` makes the results and has the plan. ``numbers`` are the vertex numbers of the
        sources, in the order of the results. ``meter`` reports the progress. ``cycle_error``
        returns the error that the caller gets in place of one of the search.
        """
        super().__init__("the stream")
        self.n_sources = int(numbers.size)
        self.n_done = 0
        self._device = form.plan.graph.device
        self._meter = meter
        self._cycle_error = cycle_error
        self._form: ResultForm | None = form
        # Not cut at the limit, as each kind of result leaves out what is beyond it.
        self._groups: Any = form.plan.iter_groups(numbers, cut=False)

    def __next__(self) -> Any:
        """Search from the next group of sources and return its result.

        Raises
        ------
        InputError
            If an earlier call has raised an error.
        NegativeCycleError, PrecisionError
            As ``sssp_many``.
        """
        return super().__next__()

    def _make_next(self) -> Any:
        """Return the next result. Close the stream after the last one, and at an error.

        Raises StopIteration: there are no more results, or the stream is closed.
        """
        if self._form is None:
            raise StopIteration
        try:
            result = self._search(self._form)
        except NegativeCycleError as error:
            self.close()
            raise self._cycle_error(error) from None
        except BaseException as error:
            self.close()
            # A shell that keeps the error would keep the arrays of the call with it.
            if isinstance(error, KeyboardInterrupt):
                forget_interrupted(error, self._device)
            raise
        if result is None:
            self.close()
            raise StopIteration
        return result

    def _search(self, form: ResultForm) -> Any:
        """Search from the next group of sources and return its result, or None at the end.

        ``form`` makes the result, and has the plan of the searches.
        """
        with self._meter.running():
            form.plan.adopt()  # readers of record batches may use a thread of their own
            group = next(self._groups, None)
            if group is None:
                return None
            result = form.make_group(group)
            self._meter.advance(len(group))
        self.n_done += len(group)
        return result

    def close(self) -> None:
        """End the stream and release its memory; a closed stream has no further results."""
        with self._reading:  # not while another thread makes a result
            form = self._form
            self._form = None
            if form is not None:
                self._groups = None
                form.plan.release()
                self._meter.close()

    def __enter__(self) -> ResultStream:
        """Return the stream, which the end of the ``with`` block closes."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the stream."""
        self.close()

    def __del__(self) -> None:
        """Close the stream if it is still open, unless its constructor has failed."""
        if hasattr(self, "_form"):
            self.close()

    def __repr__(self) -> str:
        """Return one line: how many sources are done, and whether the stream is closed."""
        state = ", closed" if self._form is None else ""
        return f"<ResultStream: {self.n_done:,} of {self.n_sources:,} sources{state}>"
