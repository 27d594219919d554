"""Ctrl-C and SIGTERM end a job with a clean manifest, also when a library catches the exception that they raise."""

from __future__ import annotations

import signal

_asked = False


def listen() -> None:
    """From now on raise KeyboardInterrupt on both signals: a scheduler that ends the job gets what Ctrl-C gets."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _raise)


def check() -> None:
    """Raise KeyboardInterrupt again if one was asked for and somebody caught it."""
    if _asked:
        raise KeyboardInterrupt


def _raise(_number, _frame) -> None:
    global _asked
    _asked = True
    raise KeyboardInterrupt
