"""Ctrl-C and SIGTERM end a job with a clean manifest, also when a library catches the exception that they raise."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import Any

_requested = False
_held = False


def listen() -> None:
    """From now on raise KeyboardInterrupt on both signals: a scheduler that ends the job gets what Ctrl-C gets."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _raise)


def check() -> None:
    """Raise KeyboardInterrupt again if one was asked for and somebody caught it."""
    if _requested:
        raise KeyboardInterrupt


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Let what must not be torn in two come to its end before a first interrupt is raised; a second one does not wait."""
    global _held
    _held = True
    try:
        yield
    finally:
        _held = False
    check()


def _raise(_number: Any, _frame: Any) -> None:
    global _requested
    is_first, _requested = not _requested, True
    if not (_held and is_first):
        raise KeyboardInterrupt
