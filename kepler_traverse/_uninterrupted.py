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
_LOOKED_EVERY = 0.5  # seconds between two looks for signals while a thread waits


def sleep() -> None:
    """Sleep without an end. The handler of a signal, whichever thread the system gives it to, ends
    it by raising an error.
    """
    while True:
        time.sleep(_LOOKED_EVERY)


def _get(queue: SimpleQueue[T]) -> T:
    """Return the next item of a queue, and wait until there is one. A signal interrupts the
    waiting, whichever thread the system gives it to.
    """
    # In the main thread, Python runs handlers of signals between two turns of this loop.
    while True:
        with contextlib.suppress(Empty):
            return queue.get(timeout=_LOOKED_EVERY)


class Threads:
    """Threads that can be waited for. The functions that they call must raise no errors."""

    def __init__(self) -> None:
        # By the identity of each thread that runs, a lock that it holds until it ends. Each thread
        # adds its own: one that has not begun is not waited for.
        self._ends: dict[int, Any] = {}

    def start(self, function: Callable[[], object]) -> None:
        """Call a function on a new thread. RuntimeError: the interpreter starts no more threads."""

        def work() -> None:
            """Call the function, and hold a lock meanwhile."""
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
        """Wait until all threads that run have ended, except the calling one."""
        for ident, end in list(self._ends.items()):
            if ident != _thread.get_ident():
                with end:  # the thread releases it when it ends
                    pass


class SharedCall:
    """A function that its caller and some threads call, each with a number of its own: the caller
    with 0, the threads with 1 to ``n_others``.

    A thread that has not begun when the caller waits in ``join`` never begins.
    """

    def __init__(self, function: Callable[[int], object], n_others: int) -> None:
        self.errors: list[BaseException] = []  # what the function has raised on threads
        self._function: Callable[[int], object] | None = function  # None after ``join``
        self._numbers = range(1, n_others + 1)
        # By number: "thread" if a thread calls the function with it, "caller" if the caller has
        # decided that none does. ``setdefault``, one call of C, decides which comes first.
        self._takers: dict[int, str] = {}
        self._finished: set[int] = set()  # numbers whose call has ended
        self._wake: SimpleQueue[None] = SimpleQueue()  # gets an item when a call has ended

    def work(self, number: int) -> None:
        """Call the function with a number, on the calling thread, unless the caller is in ``join``
        already.
        """
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
        """Wait until no thread runs the function, and let no further thread begin. An interrupt may
        end it, and it can be called again.
        """
        for number in self._numbers:
            if self._takers.setdefault(number, "caller") == "thread":
                while number not in self._finished:
                    _get(self._wake)
        # A thread may keep this object a little longer than the caller does, but not the function
        # with the caller's arrays.
        self._function = None


class Pool:
    """Threads that take work from a queue. They run until ``close``.

    ``n_threads`` is the most threads that are started; none is started before there is work.
    """

    def __init__(self, n_threads: int) -> None:
        self._n_threads = n_threads  # the most threads that are started
        self._n_started = 0
        self._threads = Threads()
        # A call and the number to call it with; None ends the threads.
        self._queue: SimpleQueue[tuple[SharedCall, int] | None] = SimpleQueue()

    def share(self, call: SharedCall, numbers: range) -> None:
        """Let threads work at a call, each with one of ``numbers`` (1 and following). Threads are
        started as they are needed.
        """
        # Threads of earlier calls take numbers, too: one more is started only if there are fewer
        # than ``number``.
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
                # Threads that have not begun would find nothing left to do. They are not waited
                # for, since they may be at work for another call.
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
        """End the threads, and wait until they have finished the work that they have begun."""
        self._queue.put(None)
        self._threads.join()

    def _take(self) -> None:
        """Work at the calls in the queue, on a thread of the pool, until an item is None."""
        while (work := self._queue.get()) is not None:
            # Delete the names: while the thread waits for the next item, they would keep the call
            # and the arrays of its caller.
            call, number = work
            del work
            call.work(number)
            del call
        self._queue.put(None)  # for the other threads, also one that has not begun


def map_on_threads(
    function: Callable[[Any], Any], items: Sequence[Any], n_threads: int
) -> list[Any]:
    """Return ``function(item)`` for each item, in their order, computed on up to ``n_threads``
    threads.

    Raises the error of the first item that has one. After an error or an interrupt no further item
    is begun.
    """
    results: dict[int, Any] = {}  # by the position of the item
    errors: dict[int, Exception] = {}
    # The positions that no thread has taken. Threads share the iterator without a lock, since
    # ``next`` of it is one step under the GIL.
    places = iter(range(len(items)))

    def stop() -> None:
        """Take all positions that are left, so that no thread gets a further one."""
        for _ in places:
            pass

    def take(_number: int) -> None:
        """Call the function for items that no other thread takes. ``Pool.call`` passes the number
        of the thread, which is ignored: any thread may take any item.
        """
        for place in places:
            try:
                results[place] = function(items[place])
            except Exception as error:
                errors[place] = error
                stop()

    n_others = min(n_threads, len(items)) - 1  # besides the calling thread
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


_threads = Threads()  # those of ``run`` and ``begin``, which the end of the process waits for


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function with ``args`` and return what it returns, or raise its error.

    The main thread lets another thread call it, and waits. So an interrupt, such as Ctrl-C, ends
    the waiting, and the function itself runs to its end.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    answers: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()  # a value or an error

    def work() -> None:
        """Call the function, and put its value or its error into the queue."""
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
        del error  # its traceback holds this frame: the name would close a cycle


def start(function: Callable[[], object], name: str) -> threading.Thread:
    """Call a function on a new daemon thread called ``name``, and return the thread once it has
    started.

    An interrupt ends the waiting for its start, and leaves no thread half started.
    """
    thread = threading.Thread(target=function, name=name, daemon=True)
    run(thread.start)
    return thread


class Answer(Generic[T]):
    """A value or an error that one thread gives and others wait for. The first that is given
    counts; later ones are ignored.
    """

    def __init__(self) -> None:
        # The value and the error, one of them None; empty before. ``setdefault``, one call of C,
        # lets only the first thread put them there.
        self._given: dict[None, tuple[Any, BaseException | None]] = {}
        self._waiting: list[SimpleQueue[None]] = []  # one per waiting thread; an item wakes it

    @property
    def is_given(self) -> bool:
        """Whether a value or an error was given."""
        return bool(self._given)

    @property
    def error(self) -> BaseException | None:
        """The error that was given, None if there is none or a value was given."""
        return self._given.get(None, (None, None))[1]

    def give(self, value: T | None = None, error: BaseException | None = None) -> None:
        """Set the value, or the error if it is not None, and wake the threads that wait."""
        self._given.setdefault(None, (value, error))
        # A thread that begins to wait meanwhile finds the value, and needs no waking.
        for wake in self._waiting:
            wake.put(None)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until a value or an error is there, for ``seconds`` at most (None: without limit).
        Return whether it is there.
        """
        # The queue is listed before ``_given`` is looked at, so that no waking is missed.
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
        """Wait until a value or an error is given. Return the value, or raise the error."""
        if not self._given:
            self.wait()
        value, error = self._given[None]
        try:
            if error is not None:
                raise error
            return value
        finally:
            del error  # its traceback holds this frame: the name would close a cycle


class Promise(Answer[T]):
    """The value of a function that is called once, when a thread first needs the value.

    A thread of its own calls it, so that an interrupt of the main thread does not cut it short.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        super().__init__()
        self._function = function
        # Empty until a thread calls the function; then an object of that thread.
        self._takers: dict[None, object] = {}

    def keep(self) -> None:
        """Call the function on this thread and give its value or error, unless a thread does so or
        has done so.
        """
        mine = object()  # the thread whose object ``setdefault`` stores calls the function
        if self._takers.setdefault(None, mine) is not mine:
            return
        try:
            self.give(self._function())
        except BaseException as error:
            self.give(error=error)

    def wait(self, seconds: float | None = None) -> bool:
        """Let a thread call the function, unless one has begun. Wait for its value or error, for
        ``seconds`` at most (None: without limit), and return whether it is there.
        """
        if not self._takers:
            begin([self], 1)
        return super().wait(seconds)


def begin(promises: Sequence[Promise[Any]], n_threads: int) -> None:
    """Let up to ``n_threads`` new threads call the functions of promises, in their order. Return at
    once, without waiting for them.
    """
    # Threads share the iterator without a lock, since ``next`` of it is one step under the GIL.
    places = iter(promises)

    def keep() -> None:
        """Keep promises that no other thread takes."""
        for promise in places:
            promise.keep()

    try:
        for _ in range(min(n_threads, len(promises))):
            _threads.start(keep)
    except RuntimeError:  # the interpreter is about to end, and starts no more threads
        keep()


def load(name: str) -> ModuleType:
    """Import the module ``name``, which takes long, and return it. An interrupt does not leave it
    half imported, since the main thread lets another thread import it.
    """
    if name in sys.modules:  # no other thread is needed
        return import_module(name)
    return run(import_module, name)


os.register_at_fork(before=_threads.join)  # a forked process would wait for their locks forever
atexit.register(_threads.join)
