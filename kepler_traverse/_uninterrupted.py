"""What a signal must not cut short, in a thread of its own.

Python runs the handler of a signal between two steps of the main thread. The handler raises
KeyboardInterrupt after Ctrl-C. A package that is imported half may fail at each later import of the
process. What another thread does ends as it has begun, and the main thread, which waits for it,
raises the error at once.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from queue import SimpleQueue
from types import ModuleType
from typing import Any

from ._raw_threads import Threads

_threads = Threads()


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function and return what it returns; an interrupt ends the waiting for it alone."""
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
    value, error = answers.get()
    try:
        if error is not None:
            raise error
        return value
    finally:
        del error


def load(name: str) -> ModuleType:
    """Import a module that takes long."""
    if name in sys.modules:
        return import_module(name)
    return run(import_module, name)


os.register_at_fork(before=_threads.join)  # a forked process would wait for their locks forever
atexit.register(_threads.join)
