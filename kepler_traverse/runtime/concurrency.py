"""One plan or one stream for several threads: searches run one at a time, and no thread gets the
result of another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import InputError, NegativeCycleError


class SharedIterator(Iterator[Any]):
    """An iterator that any threads may read, each item by one of them.

    A subclass has ``_make_next``, which returns the next item, or raises StopIteration at the end.
    If it raises another error, items are missing from then on. So every further ``next`` is an
    error, in whatever thread. ``_failure`` is the name of that error, "" before. ``_is_read`` is
    True while an item is made: the lock lets its own thread in again, which a progress function
    could use.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._failure = ""
        self._reading = threading.RLock()
        self._is_read = False

    def __next__(self) -> Any:
        with self._reading:
            if self._failure:
                raise InputError(f"{self._name} has ended early, by {self._failure}; make it anew")
            if self._is_read:
                raise InputError(
                    f"{self._name} is read within its own progress function; read it outside"
                )
            self._is_read = True
            try:
                return self._make_next()
            except StopIteration:
                raise
            except BaseException as error:
                self._failure = type(error).__name__
                raise
            finally:
                self._is_read = False

    def _make_next(self) -> Any:
        """Return the next item; StopIteration at the end."""
        raise NotImplementedError


class SharedItems(SharedIterator):
    """``SharedIterator`` of an iterator for one thread, as a generator is."""

    def __init__(self, name: str, items: Iterator[Any]) -> None:
        super().__init__(name)
        self._items = items

    def _make_next(self) -> Any:
        return next(self._items)

    def close(self) -> None:
        """End early, as ``close`` of a generator does, if the iterator has one."""
        with self._reading:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()


class SerializedSearch:
    """A planned search that any thread may call.

    A search writes its result into arrays that belong to its plan. The owner is the thread that
    made the plan. It gets these arrays without a copy, and they are valid until its next search.
    Every other thread gets copies. Once the owner has received a result, the other threads share a
    second set of arrays, which is allocated on first use.

    A search that fails or is interrupted, as by Ctrl-C, may leave its arrays in a state that no
    search expects. The next call then prepares anew: ``prepare`` compiles, allocates and returns
    ``search(argument)``, which returns an ``Outcome`` or a ``MultiSourceOutcome``.

    ``_owned`` and ``_others`` are the searches in the two sets of arrays; None where one must be
    prepared. ``_owner_has_result``: whether the owner may still read arrays of the first set.
    """

    def __init__(self, prepare: Callable[[], Callable[..., Any]]) -> None:
        self._prepare = prepare
        self._owned: Callable[..., Any] | None = prepare()
        self._others: Callable[..., Any] | None = None
        self._owner = threading.current_thread()
        self._owner_has_result = False
        self._lock = threading.Lock()

    def __call__(self, argument: Any) -> Any:
        with self._lock:
            if threading.current_thread() is self._owner:
                self._owner_has_result = True
                return self._search("_owned", argument)
            # The owner may still read its last result, whose arrays a search would write.
            outcome = self._search("_others" if self._owner_has_result else "_owned", argument)
            copies = {
                name: value.copy()
                for name, value in outcome._asdict().items()
                if hasattr(value, "dtype")
            }
            return outcome._replace(**copies)

    def adopt(self) -> None:
        """Make the calling thread the owner. Results of earlier searches become invalid."""
        with self._lock:
            self._owner = threading.current_thread()

    def unguarded(self, argument: Any) -> Any:
        """Search without the lock and without copies: for a caller that already holds the lock of
        an enclosing plan.
        """
        return self._search("_owned", argument)

    def _search(self, name: str, argument: Any) -> Any:
        """Search in a set of arrays, "_owned" or "_others", which is not used again if the search
        does not end as it should.
        """
        search: Callable[..., Any] = getattr(self, name) or self._prepare()
        setattr(self, name, None)  # until it has ended as it should
        try:
            outcome = search(argument)
        except NegativeCycleError:  # a result, too
            setattr(self, name, search)
            raise
        setattr(self, name, search)
        return outcome
