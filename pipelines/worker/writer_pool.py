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
from .phase_timer import PhaseTimer

# per row that is being encoded, about: its ids, its distance and their encoded form
_ENCODING_ROW_BYTES = 48
# per distance of a piece: it and a predecessor, and the rows that are made of them
_PIECE_ROW_BYTES = 12
# row groups per thread that are encoded, or wait for it or to be written
_GROUPS_PER_THREAD = 3

PIECE_BYTES = _PIECE_ROW_BYTES * ROWS_PER_PART  # of rows that are made where the search runs

# threads beyond those that encode, for parts that wait for a disk or a store to take them
_STORING_THREADS = 2

Value = TypeVar("Value")


class MadeRows(NamedTuple):
    """The rows of a piece: the results of some sources of one part."""

    rows: list[Rows]  # in the order of the sources
    seconds: float  # of the search, per source


MakeRows = Callable[[PhaseTimer], MadeRows]  # it gets the timer of the thread that calls it


class AbandonedPartError(KeplerError):
    """The search of a part has ended before the part was whole."""


def bytes_of_writer(n_vertices: int) -> int:
    """Return the bytes of memory that each writer thread adds: a piece, a row group that is being
    encoded, and row groups that wait.
    """
    # A piece has at least one source. A row group ends with the rows of a source, so that it may
    # have those of one source more.
    piece = _PIECE_ROW_BYTES * max(ROWS_PER_PART, n_vertices)
    encoding = _ENCODING_ROW_BYTES * (ROWS_PER_GROUP + n_vertices)
    return piece + encoding + _GROUPS_PER_THREAD * GROUP_BYTES


def writers_within(n_vertices: int, cores: int, memory: int) -> int:
    """Return how many threads of a worker may write: one per core, limited by memory in bytes."""
    return max(1, min(cores, memory // bytes_of_writer(n_vertices)))


def writers_for(n_vertices: int, cores: int, all_cores: int) -> int:
    """Return how many threads of a worker may write, within its share of half of the free memory.

    ``cores`` are those of this worker, and ``all_cores`` those of the machine. The workers of a
    machine share the memory in proportion to their cores.
    """
    for_writers = min(available_memory("cpu"), MEMORY_LIMIT) // 2
    share = for_writers * cores // max(all_cores, cores)
    return writers_within(n_vertices, cores, share)


def can_write_in_background(n_sources: int, n_vertices: int, sort: str) -> bool:
    """Whether a part is written in pieces while its worker traverses.

    ``n_sources`` are those of the part. ``sort`` is ``"source"`` or ``"distance"``. Rows that are
    sorted by distance are all held until the last one is known, so they must be few.
    """
    return sort == "source" or n_sources == 1 or n_sources * n_vertices <= ROWS_PER_PART


def sources_per_piece(n_vertices: int) -> int:
    """Return how many sources, each with a distance per vertex, make a piece of about
    ``ROWS_PER_PART`` distances; at least one.
    """
    return max(1, ROWS_PER_PART // max(n_vertices, 1))


class Writers:
    """Threads of a worker that write parts while later sources are traversed.

    There are two pools: helpers, which make rows and encode row groups, and threads that write one
    part each, in order.

    Attributes
    ----------
    n_threads : int
        Number of helpers. At most ``n_threads + 1`` pieces of all tasks are in flight, and about
        ``_GROUPS_PER_THREAD * n_threads`` row groups. The limits follow if it is lowered later,
        after memory ran out; the pools keep their threads.
    """

    def __init__(self, n_threads: int):
        self.n_threads = n_threads
        self._parts = ThreadPoolExecutor(
            n_threads + _STORING_THREADS, thread_name_prefix="kepler-writer"
        )
        self._helpers = ThreadPoolExecutor(n_threads, thread_name_prefix="kepler-encoder")
        # holds the lock of both counts below; notified when a piece is no longer in flight
        self._changed = threading.Condition()
        self._n_pieces = 0  # in flight: from before they are made until their rows are taken
        self._n_groups = 0  # row groups that are being encoded, or wait to be written

    def submit_parts(self, parts: Generator[Callable[[], Any]]) -> list[Future[Any]]:
        """Submit parts to the threads, and return their futures in order; only one thread may call
        this at a time.

        ``parts`` yields functions that write one part each, from pieces. It makes the pieces of a
        part, in this thread, when the next function is requested. The last parts may still run when
        this returns. After an error of a part other than lack of memory no further part is
        requested, and the part whose pieces are not complete is abandoned.
        """
        futures: list[Future[Any]] = []
        try:
            with contextlib.closing(parts):
                for write in parts:
                    # The part is written from now on, while the loop's next step searches for it.
                    futures.append(self._parts.submit(write))
                    if any(_is_fatal(future) for future in futures if future.done()):
                        break
        except BaseException:
            wait(futures)  # no thread writes to a part of a task that has ended
            raise
        return futures

    def open(self) -> Pieces:
        """Return an empty ``Pieces`` for a part that begins."""
        return Pieces(self)

    def start(
        self, work: Callable[[PhaseTimer], Value], phase: str
    ) -> Future[tuple[Value, PhaseTimer]]:
        """Do work on a helper thread; return a future of its value and of a new timer.

        The timer has counted the time of the work for ``phase``. ``work`` gets the timer, so that
        it can count parts of its time for other phases.
        """

        def timed() -> tuple[Value, PhaseTimer]:
            """Do the work, and count its time."""
            clock = PhaseTimer()
            with clock(phase):
                value = work(clock)
            return value, clock

        return self._helpers.submit(timed)

    def take_capacity(self, is_closed: Callable[[], bool]) -> None:
        """Wait until one more piece may be in flight, and count it.

        ``is_closed()`` says whether the part of the piece has failed; then there is no wait.
        """
        # One piece per helper may be in flight, and one more, which is counted here and which the
        # search then makes.
        with self._changed:
            self._changed.wait_for(lambda: self._n_pieces <= self.n_threads or is_closed())
            self._n_pieces += 1

    def leave_capacity(self) -> None:
        """Let another piece be in flight."""
        with self._changed:
            self._n_pieces -= 1
            self._changed.notify_all()

    def take_group(self, must: bool) -> bool:
        """Count one more row group, and return True; return False if there are as many as allowed.

        ``must``: count it even then.
        """
        with self._changed:
            if not must and self._n_groups >= _GROUPS_PER_THREAD * self.n_threads:
                return False
            self._n_groups += 1
            return True

    def leave_group(self) -> None:
        """Count one row group less: it is written, or was given up."""
        with self._changed:  # no thread waits for this: ``take_group`` returns False instead
            self._n_groups -= 1

    def close(self) -> None:
        """End the threads once they have no work."""
        self._parts.shutdown(wait=False)
        self._helpers.shutdown(wait=False)


class Pieces:
    """The pieces of one part, from the thread that traverses to the one that writes the part.

    The thread that traverses calls ``capacity`` for each piece, and ``end`` or ``fail`` after the
    last piece. The thread that writes calls ``rows``, and ``close`` if it fails.
    """

    def __init__(self, writers: Writers):
        self._writers = writers
        # The future of a piece, an error in place of further pieces, or None after the last piece.
        self._queue: queue.SimpleQueue[Future[tuple[MadeRows, PhaseTimer]] | Exception | None] = (
            queue.SimpleQueue()
        )
        # by which the thread that writes has failed; None while it takes pieces
        self._error: BaseException | None = None

    @property
    def is_closed(self) -> bool:
        """Whether no more pieces are wanted."""
        return self._error is not None

    @contextlib.contextmanager
    def capacity(self) -> Iterator[Callable[[MakeRows], None]]:
        """Wait until another piece may be in flight, and yield the function ``put``.

        ``put(make_rows)`` has a helper make the rows of the piece, and queues them. If the block
        does not call it, another piece may be in flight instead. Raises the error by which the part
        has failed in the thread that writes it, other than lack of memory. After lack of memory the
        search goes on, since the part is written again later.
        """
        self._writers.take_capacity(lambda: self.is_closed)
        is_put = False

        def put(make_rows: MakeRows) -> None:
            """Have a helper make the rows of a piece, and queue them for the thread that writes."""
            nonlocal is_put
            is_put = True
            self._queue.put(self._writers.start(make_rows, "rows"))
            # The thread that closes may have emptied the queue before this piece was in it.
            if self.is_closed:
                self._drop_queued()

        try:
            if self._error is not None and not is_out_of_memory(self._error):
                raise self._error
            yield put
        finally:
            if not is_put:
                self._writers.leave_capacity()

    def end(self) -> None:
        """Say that there are no more pieces; the part is whole."""
        self._queue.put(None)

    def fail(self, error: Exception) -> None:
        """Say that there are no more pieces, and that the part is not to be written."""
        self._queue.put(error)

    def close(self, error: BaseException) -> None:
        """Take no more pieces: the part has failed by ``error``. The thread that writes the part
        calls this.
        """
        self._error = error
        self._drop_queued()

    def _drop_queued(self) -> None:
        """Take what is in the queue out of it, so that other parts may have pieces in flight."""
        with contextlib.suppress(queue.Empty):
            while True:
                if isinstance(self._queue.get_nowait(), Future):
                    self._writers.leave_capacity()

    def rows(self, clock: PhaseTimer) -> Iterator[tuple[Rows, float]]:
        """Yield the rows of the part in order, with the seconds of the search per source; the
        thread that writes the part waits for them here.

        ``clock`` is the timer of this thread, to which the time of making the rows is added. Raises
        Exception: the error given to ``fail``, or the error of a helper that made rows.
        """
        while True:
            with clock(""):  # the time of waiting counts for no phase
                piece = self._queue.get()
            if piece is None:
                return
            if isinstance(piece, Exception):
                raise piece
            # All references to the rows are deleted before another piece may be in flight, so that
            # its memory is free by then.
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
    """Encodes the row groups of one part on helper threads, and returns them in order.

    It has the methods of ``row_groups.Encoders``. ``clock`` is the timer of the thread that writes
    the part, to which the time of encoding is added.
    """

    def __init__(self, writers: Writers, clock: PhaseTimer):
        self._writers = writers
        self._clock = clock
        # row groups that have begun and are not returned yet, in order
        self._pending: deque[Future[tuple[EncodedGroup, PhaseTimer]]] = deque()

    def begin(self, encode: Callable[[], EncodedGroup], /) -> Iterator[EncodedGroup]:
        """Begin to encode a row group on a helper; yield earlier ones that are ready to be written,
        in order.
        """
        # While there are as many row groups as allowed, the first pending one is waited for. A part
        # without a pending row group begins one in any case: it has none to wait for.
        while not self._writers.take_group(must=not self._pending):
            yield self._next()
        self._pending.append(self._writers.start(lambda _: encode(), "write"))
        while self._pending and self._pending[0].done():
            yield self._next()

    def rest(self) -> Iterator[EncodedGroup]:
        """Wait for all pending row groups, and yield them."""
        while self._pending:
            yield self._next()

    def _next(self) -> EncodedGroup:
        """Wait for the first pending row group, and return it."""
        first = self._pending.popleft()
        try:
            with self._clock(""):  # the time of waiting counts for no phase
                group, spent = first.result()
        finally:
            self._writers.leave_group()
        self._clock.add(spent)
        return group

    def abandon(self) -> None:
        """Forget the pending row groups, which exist only after an error, and count them off."""
        while self._pending:
            self._pending.popleft().cancel()
            self._writers.leave_group()


def _is_fatal(part: Future[Any]) -> bool:
    """Whether a part that has ended has failed by an error other than want of memory, after which
    no further part is begun.
    """
    error = part.exception()
    return error is not None and not is_out_of_memory(error)
