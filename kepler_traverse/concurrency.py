"""One plan for several threads: searches run one at a time, and no thread overwrites the result of another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class SerializedSearch:
    """A planned search that any thread may call.

    A search writes into arrays that belong to its plan, and its result is these arrays. The owner, which is the thread that
    made the plan, gets them as they are, valid until its next search. Every other thread gets copies. As soon as the owner
    has had a result, the other threads search in arrays of their own, which are allocated then.

    Parameters
    ----------
    prepare : callable
        Compiles and allocates, and returns ``search(argument)``, which gives an ``Outcome`` or a ``MultiSourceOutcome``.
    """

    def __init__(self, prepare: Callable[[], Callable[..., Any]]) -> None:
        self._prepare = prepare
        self._owned = prepare()
        self._others: Callable[..., Any] | None = None
        self._owner = threading.current_thread()
        self._owner_has_result = False
        self._lock = threading.Lock()

    def __call__(self, argument: Any) -> Any:
        with self._lock:
            if threading.current_thread() is self._owner:
                self._owner_has_result = True
                return self._owned(argument)
            if self._owner_has_result and self._others is None:
                self._others = self._prepare()
            outcome = (self._others or self._owned)(argument)
            arrays = {name: value for name, value in outcome._asdict().items() if hasattr(value, "dtype")}
            return outcome._replace(**{name: array.copy() for name, array in arrays.items()})

    def adopt(self) -> None:
        """Make the calling thread the owner; results of earlier searches do not hold any more."""
        with self._lock:
            self._owner = threading.current_thread()

    def unguarded(self, argument: Any) -> Any:
        """Search without the lock and without copies: for a caller that holds the lock of another plan around this one."""
        return self._owned(argument)
