"""One plan or one stream for several threads: searches run one at a time, and no thread gets the
result of another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..errors import InputError, NegativeCycleError


class SharedIterator(Iterator[Any]):
    """An iterator that several threads may read; each item goes to one of them.

    A subclass has ``_make_next``, which returns the next item, or raises StopIteration at the end.
    If it raises another error, items are missing from then on. So every further ``next``, in any
    thread, raises an InputError.
    """

    def __init__(self, name: str) -> None:
        """``name`` is what errors call the iterator."""
        self._name = name
        self._failure = ""  # the type of the error that has ended it early, "" before
        # Held while an item is made. It is reentrant, so that a progress function that reads the
        # iterator gets an error, and does not wait for itself forever.
        self._reading = threading.RLock()
        self._is_read = False  # whether an item is being made

    def __next__(self) -> Any:
        """Return the next item. InputError after an error, or within the progress function of this
        iterator.
        """
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
            except StopIteration:  # the end, and no failure
                raise
            except BaseException as error:  # Ctrl-C, too, loses an item
                self._failure = type(error).__name__
                raise
            finally:
                self._is_read = False

    def _make_next(self) -> Any:
        """Return the next item; StopIteration at the end."""
        raise NotImplementedError


class SharedItems(SharedIterator):
    """A ``SharedIterator`` of the items of another iterator, such as a generator, that only one
    thread may read at a time.
    """

    def __init__(self, name: str, items: Iterator[Any]) -> None:
        """``name`` is what errors call the iterator, and ``items`` are its items."""
        super().__init__(name)
        self._items = items

    def _make_next(self) -> Any:
        """Return the next item of ``items``, the iterator that was given; StopIteration at the
        end.
        """
        return next(self._items)

    def close(self) -> None:
        """Close ``items``, the iterator that was given, if it has a method ``close``, as generators
        do. No item follows then.
        """
        with self._reading:
            close = getattr(self._items, "close", None)
            if close is not None:
                close()


class SerializedSearch:
    """A planned search that any thread may call.

    A search writes its result into arrays that belong to it. The owner is the thread that made this
    object. It gets these arrays without a copy, and they are valid until its next search. Every
    other thread gets copies. Once the owner has received a result, the other threads share a second
    search with arrays of its own, which is prepared on first use.

    A search that fails or is interrupted, as by Ctrl-C, may leave its arrays in a state that no
    search expects. The next call then prepares a new search.

    Parameters
    ----------
    prepare : callable
        Compiles, allocates arrays and returns ``search(argument)``, which returns an ``Outcome`` or
        a ``MultiSourceOutcome``, named tuples with the arrays.
    """

    def __init__(self, prepare: Callable[[], Callable[..., Any]]) -> None:
        self._prepare = prepare
        # The searches in the two sets of arrays; None where one must be prepared.
        self._owned: Callable[..., Any] | None = prepare()
        self._others: Callable[..., Any] | None = None
        self._owner = threading.current_thread()
        self._owner_has_result = False  # whether the owner may still read arrays of ``_owned``
        self._lock = threading.Lock()

    def __call__(self, argument: Any) -> Any:
        """Search, one thread at a time, and return the outcome. Threads other than the owner get
        copies of its arrays.
        """
        with self._lock:
            if threading.current_thread() is self._owner:
                self._owner_has_result = True
                return self._search("_owned", argument)
            # The owner may still read its last result, whose arrays a search would write.
            outcome = self._search("_others" if self._owner_has_result else "_owned", argument)
            # Copy each field that is an array, as the next call overwrites it.
            copies = {
                name: value.copy()
                for name, value in outcome._asdict().items()
                if hasattr(value, "dtype")
            }
            return outcome._replace(**copies)

    def adopt(self) -> None:
        """Make the calling thread the owner, which gets results without a copy. Arrays that earlier
        searches returned to the owner until now become invalid.
        """
        with self._lock:
            self._owner = threading.current_thread()

    def unguarded(self, argument: Any) -> Any:
        """Search for ``argument`` without the lock and without copies, and return the outcome,
        whose arrays the next search by the owner overwrites.

        It is for a caller that already holds the lock of an enclosing plan, so that no other thread
        searches meanwhile.
        """
        return self._search("_owned", argument)

    def _search(self, name: str, argument: Any) -> Any:
        """Search by ``self._owned`` or ``self._others``, as ``name`` says, and return the outcome.

        The search is used again only if it ends as it should: after an error the attribute is None.
        """
        search: Callable[..., Any] = getattr(self, name) or self._prepare()
        setattr(self, name, None)  # until it has ended as it should
        try:
            outcome = search(argument)
        except NegativeCycleError:  # the search has ended as it should: this is its result
            setattr(self, name, search)
            raise
        setattr(self, name, search)
        return outcome
