"""What a signal must not cut short, in a thread of its own.

Python runs the handler of a signal between two steps of the main thread. The handler raises
KeyboardInterrupt after Ctrl-C. A package that is imported half may fail at each later import of the
process. What another thread does ends as it has begun, and the main thread, which waits for it,
raises the error at once.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from importlib import import_module
from types import ModuleType
from typing import Any

_threads: set[threading.Thread] = set()  # that still work


def run(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function and return what it returns; an interrupt ends the waiting for it alone."""
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    done: Future[Any] = Future()

    def work() -> None:
        try:
            done.set_result(function(*args))
        except BaseException as error:
            done.set_exception(error)
        finally:
            _threads.discard(thread)

    thread = threading.Thread(target=work, name="kepler_traverse uninterrupted")
    _threads.add(thread)
    try:
        thread.start()
    except RuntimeError:  # the interpreter is about to end, and starts no more threads
        work()
    return done.result()


def load(name: str) -> ModuleType:
    """Import a module that takes long."""
    if name in sys.modules:
        return import_module(name)
    return run(import_module, name)


def _end_threads() -> None:
    """Wait for all threads: a forked process would wait for their locks forever."""
    for thread in _threads - {threading.current_thread()}:
        thread.join()


os.register_at_fork(before=_end_threads)
