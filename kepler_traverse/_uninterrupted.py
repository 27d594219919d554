"""What a signal must not cut short: work in a thread of its own, and waits that leave no lock held.

Python runs the handler of a signal between two steps of the main thread. The handler raises
KeyboardInterrupt after Ctrl-C. A package that is imported half may fail at each later import of the
process. What another thread does ends as it has begun, and the main thread, which waits for it,
raises the error at once.

The conditions of ``threading`` and ``concurrent.futures`` are functions of Python, too. Between the
acquisition of a lock and the ``with`` statement that releases it, the error leaves the lock held.
The thread that needs it, and each one that waits for that thread, then wait forever. Here each step is
one call of C, after which the lock is taken or it is not.

The system may give a signal to any thread, and gives some to another one than the main thread where a
library has threads of its own. That does not wake the main thread, so that it looks for signals
twice per second while it waits.
"""

from __future__ import annotations

import _thread
import atexit
import contextlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from queue import Empty, SimpleQueue
from types import ModuleType
from typing import Any, Generic, TypeVar

T = TypeVar("T")
_LOOKED_EVERY = 0.5  # seconds


def sleep() -> None:
    """Sleep until a signal comes, whichever thread takes it."""
    while True:
        time.sleep(_LOOKED_EVERY)


def _get(queue: SimpleQueue[T]) -> T:
    """Return the next item of a queue; a signal interrupts the waiting, whichever thread takes it."""
    while True:
        with contextlib.suppress(Empty):
            return queue.get(timeout=_LOOKED_EVERY)


class Threads:
    """Threads that can be waited for. The functions that they call raise no errors."""

    def __init__(self) -> None:
        # A lock per thread, by its identity, which is held until the thread ends. Each thread adds
        # its own: what has not begun holds nothing that others wait for.
        self._ends: dict[int, Any] = {}

    def start(self, function: Callable[[], object]) -> None:
        """Call a function on a new thread. RuntimeError: the interpreter starts no more threads."""

        def work() -> None:
            end = _thread.allocate_lock()
            end.acquire()
            self._ends[_thread.get_ident()] = end
            try:
                function()
            finally:
                del self._ends[_thread.get_ident()]
                end.release()

        _thread.start_new_thread(work, ())

    def join(self) -> None:
        """Wait until the others have ended."""
        for ident, end in list(self._ends.items()):
            if ident != _thread.get_ident():
                with end:  # which is free when the thread has ended
                    pass


class SharedCall:
    """A function that its caller and some threads call, each with a number of its own: the caller
    with 0, the threads with 1 to ``n_others``.

    ``join`` may be interrupted, and called again. ``errors``: what the function has raised on
    threads. ``_takers`` maps a number to ``"thread"``, whose thread calls the function, or to
    ``"caller"``, which no longer lets that begin. ``_finished``: numbers whose call has ended.
    ``_wake`` gets an item with each of these.
    """

    def __init__(self, function: Callable[[int], object], n_others: int) -> None:
        self.errors: list[BaseException] = []
        self._function: Callable[[int], object] | None = function
        self._numbers = range(1, n_others + 1)
        # Who takes a number: one call of C decides, and says the same when it is called again.
        self._takers: dict[int, str] = {}
        self._finished: set[int] = set()
        self._wake: SimpleQueue[None] = SimpleQueue()

    def work(self, number: int) -> None:
        """Call the function on a thread, unless the caller waits no longer for that to begin."""
        if self._takers.setdefault(number, "thread") == "caller":
            return
        assert self._function is not None
        try:
            self._function(number)
        except BaseException as error:
            self.errors.append(error)
        finally:
            self._finished.add(number)
            self._wake.put(None)

    def join(self) -> None:
        """Wait until no thread runs the function; those that have not begun never do."""
        for number in self._numbers:
            if self._takers.setdefault(number, "caller") == "thread":
                while number not in self._finished:
                    _get(self._wake)
        self._function = None  # a thread may hold this call a little longer than its caller


class Pool:
    """Threads that take work from a queue. They end with the process, which waits for them then.

    An item of ``_queue`` is a call and the number to call it with; None ends the threads.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads
        self._n_started = 0
        self._threads = Threads()
        self._queue: SimpleQueue[tuple[SharedCall, int] | None] = SimpleQueue()

    def share(self, call: SharedCall, numbers: range) -> None:
        """Let threads work at a call, each with a number; threads are started as they are needed."""
        for number in numbers:
            if self._n_started < min(number, self._n_threads):
                self._threads.start(self._take)
                self._n_started += 1
            self._queue.put((call, number))

    def call(
        self,
        function: Callable[[int], object],
        n_others: int,
        stop: Callable[[], object] = lambda: None,
    ) -> None:
        """Call ``function(number)`` with 0 on the calling thread, and with 1 to ``n_others`` on
        threads that are free.

        It returns, or raises an error or an interrupt, only when no thread runs the function any
        longer, since the threads write into arrays of the caller. ``stop`` is called if the calling
        thread raises, as after Ctrl-C: the other threads then take no further items.
        """
        shared = SharedCall(function, n_others)
        interrupt: BaseException | None = None
        first_error: BaseException | None = None
        has_begun = False
        while True:
            try:  # all is within, since an interrupt may come between any two steps
                if interrupt is not None:
                    stop()
                elif not has_begun:
                    has_begun = True
                    self.share(shared, range(1, n_others + 1))
                    function(0)
                # Those that have not begun find nothing left to do, and may wait for the threads of
                # another call.
                shared.join()
                break
            except BaseException as error:
                interrupt = interrupt or error
        try:
            first_error = interrupt or next(iter(shared.errors), None)
            if first_error is not None:
                raise first_error
        finally:
            # The traceback of an error holds this frame. A frame that names the error keeps all
            # frames of the callers alive, with their arrays, until garbage is collected.
            shared.errors.clear()
            del first_error, interrupt, shared

    def close(self) -> None:
        """End the threads, and wait for what they do."""
        self._queue.put(None)
        self._threads.join()

    def _take(self) -> None:
        """Take work from the queue, on a thread, until there is None."""
        while (work := self._queue.get()) is not None:
            call, number = work
            del work
            call.work(number)
            del call  # which holds arrays of its caller
        self._queue.put(None)  # for the other threads, also one that has not begun


def map_on_threads(
    function: Callable[[Any], Any], items: Sequence[Any], n_threads: int
) -> list[Any]:
    """Return what a function makes of each item, in their order, on up to so many threads.

    Raises the error of the first item that has one. After an error or an interrupt no further item
    is begun.
    """
    results: dict[int, Any] = {}
    errors: dict[int, Exception] = {}
    places = iter(range(len(items)))  # ``next`` of it is one step under the GIL

    def stop() -> None:
        for _ in places:  # no place is left
            pass

    def take(_number: int) -> None:
        for place in places:
            try:
                results[place] = function(items[place])
            except Exception as error:
                errors[place] = error
                stop()

    n_others = min(n_threads, len(items)) - 1
    if n_others < 1:
        take(0)
    else:
        pool = Pool(n_others)
        try:
            pool.call(take, n_others, stop)
        finally:
            pool.close()
    if errors:
        raise errors[min(errors)]
    return [results[place] for place in range(len(items))]


_threads = Threads()


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function and return what it returns, or raise its error.

    The main thread lets another one call it, so that an interrupt ends the waiting alone, and not
    the function.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def work() -> None:
        try:
            answers.put((function(*args), None))
        except BaseException as error:
            answers.put((None, error))

    try:
        _threads.start(work)
    except RuntimeError:  # the interpreter is about to end, and starts no more threads
        work()
    value, error = _get(answers)
    try:
        if error is not None:
            raise error
        return value
    finally:
        del error  # whose traceback holds this frame


def start(function: Callable[[], object], name: str) -> threading.Thread:
    """Call a function on a daemon thread; an interrupt ends the waiting for its start alone."""
    thread = threading.Thread(target=function, name=name, daemon=True)
    run(thread.start)
    return thread


class Answer(Generic[T]):
    """What one thread gives and others wait for, a value or an error. What is given first counts."""

    def __init__(self) -> None:
        # Holds one item at most: ``setdefault``, one call of C, lets the first thread put it there.
        self._given: dict[None, tuple[Any, BaseException | None]] = {}
        self._waiting: list[SimpleQueue[None]] = []  # one per waiting thread, which an item wakes

    @property
    def is_given(self) -> bool:
        """Whether a value or an error is there."""
        return bool(self._given)

    @property
    def error(self) -> BaseException | None:
        """The error, if one is there."""
        return self._given.get(None, (None, None))[1]

    def give(self, value: T | None = None, error: BaseException | None = None) -> None:
        """Let those that wait go on, with a value or an error."""
        self._given.setdefault(None, (value, error))
        for wake in self._waiting:  # one that comes meanwhile finds what is given
            wake.put(None)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is given, or for some seconds; return whether it is."""
        wake: SimpleQueue[None] = SimpleQueue()
        self._waiting.append(wake)
        end = math.inf
        if seconds is not None:
            end = time.monotonic() + seconds
        while not self._given and (left := end - time.monotonic()) > 0:
            with contextlib.suppress(Empty):
                wake.get(timeout=min(left, _LOOKED_EVERY))
        return self.is_given

    def take(self) -> T:
        """Wait for the value and return it, or raise the error."""
        if not self._given:
            self.wait()
        value, error = self._given[None]
        try:
            if error is not None:
                raise error
            return value
        finally:
            del error  # whose traceback holds this frame


class Promise(Answer[T]):
    """What a function returns, which is called once, by the first thread that needs its value.

    The main thread lets another one call it, so that an interrupt leaves no promise unkept.
    ``_takers`` holds one item at most, an object of the thread that calls the function.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__()
        self._function = function
        self._takers: dict[None, object] = {}

    def keep(self) -> None:
        """Call the function on this thread, unless another one does or has."""
        mine = object()
        if self._takers.setdefault(None, mine) is not mine:
            return
        try:
            self.give(self._function())
        except BaseException as error:
            self.give(error=error)

    def wait(self, seconds: float | None = None) -> bool:
        """Begin if no thread has, and wait as ``Answer`` does."""
        if not self._takers:
            begin([self], 1)
        return super().wait(seconds)


def begin(promises: Sequence[Promise[Any]], n_threads: int) -> None:
    """Keep promises on up to so many threads."""
    places = iter(promises)  # ``next`` of it is one step under the GIL

    def keep() -> None:
        for promise in places:
            promise.keep()

    try:
        for _ in range(min(n_threads, len(promises))):
            _threads.start(keep)
    except RuntimeError:  # the interpreter is about to end, and starts no more threads
        keep()


def load(name: str) -> ModuleType:
    """Import a module that takes long."""
    if name in sys.modules:
        return import_module(name)
    return run(import_module, name)


os.register_at_fork(before=_threads.join)  # a forked process would wait for their locks forever
atexit.register(_threads.join)
