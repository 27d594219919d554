"""Writer threads: a worker writes parts on threads while it continues to traverse.

A traversal on a GPU takes a fraction of the time that one core needs for rows and Parquet. So a
worker with spare cores passes its results, once they are certified, to threads in pieces of about 8
million distances. Helpers make the rows of a piece and encode row groups, in any order. One thread
per part takes rows and encoded row groups in their order, and writes the file. So parts of all
sizes are written by as many threads. A task lets the next one begin while its last parts are
written. The content of a part does not depend on this.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple, TypeVar

from kepler_traverse.errors import KeplerError
from kepler_traverse.runtime.memory import available_memory

from ..output.row_groups import EncodedGroup
from ..output.rows import Rows
from ..output.schemas import GROUP_BYTES, ROWS_PER_GROUP, ROWS_PER_PART
from .device_errors import is_out_of_memory
from .host_limits import MEMORY_LIMIT
from .phase_timer import Phases

# per row that is being encoded, about: its ids, its distance and their encoded form
_ROW_BYTES = 48
# per distance of a piece: it and a predecessor, and the rows that are made of them
_HELD_BYTES = 12
# row groups per thread that are encoded, or wait for it or to be written
_GROUPS_PER_THREAD = 3

PIECE_BYTES = _HELD_BYTES * ROWS_PER_PART  # of rows that are made where the search runs

# threads beyond those that encode, for parts that wait for a disk or a store to take them
_FINISHING = 2

Value = TypeVar("Value")


class MadeRows(NamedTuple):
    """The rows of a piece, and the seconds of the search per source."""

    rows: list[Rows]
    seconds: float


MakeRows = Callable[[Phases], MadeRows]  # with a clock for the thread


class AbandonedPartError(KeplerError):
    """The search of a part has ended before the part was whole."""


def bytes_of_writer(n_vertices: int) -> int:
    """Return the memory that each writer thread adds: a piece, and row groups of it."""
    piece = _HELD_BYTES * max(ROWS_PER_PART, n_vertices)
    return piece + _ROW_BYTES * (ROWS_PER_GROUP + n_vertices) + _GROUPS_PER_THREAD * GROUP_BYTES


def writers_within(n_vertices: int, cores: int, memory: int) -> int:
    """Return how many threads of a worker may write: one per core, limited by memory in bytes."""
    return max(1, min(cores, memory // bytes_of_writer(n_vertices)))


def writers_for(n_vertices: int, cores: int, all_cores: int) -> int:
    """Return how many threads of a worker may write, within its share of half of the free memory.

    ``cores`` are those of this worker, and ``all_cores`` those of the machine.
    """
    share = min(available_memory("cpu"), MEMORY_LIMIT) // 2 * cores // max(all_cores, cores)
    return writers_within(n_vertices, cores, share)


def can_write_in_background(n_sources: int, n_vertices: int, sort: str) -> bool:
    """Whether a part is written in pieces while its worker traverses.

    Rows that are sorted are all held until the last one is known, so these must be few.
    """
    return sort == "source" or n_sources == 1 or n_sources * n_vertices <= ROWS_PER_PART


def sources_per_piece(n_vertices: int) -> int:
    """Return how many sources with a distance per vertex make a piece."""
    return max(1, ROWS_PER_PART // max(n_vertices, 1))


class Writers:
    """Threads of a worker that write parts while later sources are traversed.

    ``most``: threads that make rows and encode, and pieces in flight but one, of all tasks together.
    """

    def __init__(self, most: int):
        self.most = most
        self._parts = ThreadPoolExecutor(most + _FINISHING, thread_name_prefix="kepler-writer")
        self._helpers = ThreadPoolExecutor(most, thread_name_prefix="kepler-encoder")
        self._changed = threading.Condition()
        self._n_pieces = 0
        self._n_groups = 0

    def take(self, parts: Generator[Callable[[], Any]]) -> list[Future[Any]]:
        """Submit parts to the threads, and return their futures in order; only one thread may call
        this at a time.

        ``parts``: each writes one part from pieces, of which this thread makes the remaining ones
        before the next part is yielded. The last parts returned still run. After an error other
        than lack of memory no further part is requested, and the last one is abandoned.
        """
        begun: list[Future[Any]] = []
        try:
            with contextlib.closing(parts):
                for write in parts:
                    begun.append(self._parts.submit(write))
                    if any(_is_fatal(part) for part in begun if part.done()):
                        break
        except BaseException:
            wait(begun)
            raise
        return begun

    def open(self) -> Pieces:
        """Return the pieces of a part that begins."""
        return Pieces(self)

    def start(self, work: Callable[[Phases], Value], phase: str) -> Future[tuple[Value, Phases]]:
        """Do work on a helper; its clock counts for a phase."""

        def timed() -> tuple[Value, Phases]:
            clock = Phases()
            with clock(phase):
                value = work(clock)
            return value, clock

        return self._helpers.submit(timed)

    def take_capacity(self, is_closed: Callable[[], bool]) -> None:
        """Wait until one more piece may be in flight, or until it is not wanted."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_pieces <= self.most or is_closed())
            self._n_pieces += 1

    def leave_capacity(self) -> None:
        """Let another piece be in flight."""
        with self._changed:
            self._n_pieces -= 1
            self._changed.notify_all()

    def take_group(self, must: bool) -> bool:
        """Count one more row group, unless there are many; ``must``: also then."""
        with self._changed:
            if not must and self._n_groups >= _GROUPS_PER_THREAD * self.most:
                return False
            self._n_groups += 1
            return True

    def leave_group(self) -> None:
        """Count one row group less."""
        with self._changed:
            self._n_groups -= 1

    def close(self) -> None:
        self._parts.shutdown(wait=False)
        self._helpers.shutdown(wait=False)


class Pieces:
    """The pieces of one part, from the thread that traverses to the one that writes the part."""

    def __init__(self, writers: Writers):
        self._writers = writers
        # a piece, an error in place of further ones, or None after the last
        self._queue: queue.SimpleQueue[Future[tuple[MadeRows, Phases]] | Exception | None] = (
            queue.SimpleQueue()
        )
        self._error: BaseException | None = None

    @property
    def is_closed(self) -> bool:
        """Whether no more pieces are wanted."""
        return self._error is not None

    @contextlib.contextmanager
    def capacity(self) -> Iterator[Callable[[MakeRows], None]]:
        """Wait until another piece may be in flight, and yield the function that takes its rows,
        which a helper makes.

        Raises the error, other than lack of memory, by which the part has failed.
        """
        self._writers.take_capacity(lambda: self.is_closed)
        is_taken = False

        def put(make_rows: MakeRows) -> None:
            nonlocal is_taken
            is_taken = True
            self._queue.put(self._writers.start(make_rows, "rows"))
            if self.is_closed:
                self._drop_queued()

        try:
            if self._error is not None and not is_out_of_memory(self._error):
                raise self._error
            yield put
        finally:
            if not is_taken:
                self._writers.leave_capacity()

    def end(self) -> None:
        """Say that there are no more pieces."""
        self._queue.put(None)

    def fail(self, error: Exception) -> None:
        """Say that there are no more pieces, and that the part is not to be written."""
        self._queue.put(error)

    def close(self, error: BaseException) -> None:
        """Take no more pieces: the part has failed. In the thread that writes it."""
        self._error = error
        self._drop_queued()

    def _drop_queued(self) -> None:
        """Take what is in the queue out of it, so that other parts may have pieces in flight."""
        with contextlib.suppress(queue.Empty):
            while True:
                if isinstance(self._queue.get_nowait(), Future):
                    self._writers.leave_capacity()

    def rows(self, clock: Phases) -> Iterator[tuple[Rows, float]]:
        """Yield the rows in order, with the seconds of the search per source; the thread that
        writes the part waits for them here.

        Raises Exception: the one given to ``fail``, or that of making rows.
        """
        while True:
            with clock(""):
                piece = self._queue.get()
            if piece is None:
                return
            if isinstance(piece, Exception):
                raise piece
            try:
                with clock(""):
                    made, spent = piece.result()
                del piece  # it holds the rows
                clock.add(spent)
                for rows in made.rows:
                    yield rows, made.seconds
                del made
            finally:
                self._writers.leave_capacity()


class PartEncoders:
    """Encodes the row groups of one part on helpers; see ``row_groups.Encoders``."""

    def __init__(self, writers: Writers, clock: Phases):
        self._writers = writers
        self._clock = clock
        self._begun: deque[Future[tuple[EncodedGroup, Phases]]] = deque()

    def begin(self, encode: Callable[[], EncodedGroup], /) -> Iterator[EncodedGroup]:
        while not self._writers.take_group(must=not self._begun):
            yield self._next()
        self._begun.append(self._writers.start(lambda _: encode(), "write"))
        while self._begun and self._begun[0].done():
            yield self._next()

    def rest(self) -> Iterator[EncodedGroup]:
        while self._begun:
            yield self._next()

    def _next(self) -> EncodedGroup:
        """Wait for the first row group that has begun."""
        first = self._begun.popleft()
        try:
            with self._clock(""):
                group, spent = first.result()
        finally:
            self._writers.leave_group()
        self._clock.add(spent)
        return group

    def abandon(self) -> None:
        """Forget the row groups that have begun, after an error."""
        while self._begun:
            self._begun.popleft().cancel()
            self._writers.leave_group()


def _is_fatal(part: Future[Any]) -> bool:
    error = part.exception()
    return error is not None and not is_out_of_memory(error)
