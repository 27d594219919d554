"""A small process that watches the one that computes, and takes over if that one dies.

A run of little work has no worker processes. What a worker process would give, that another one
takes its place, comes from here: the program forks before it imports anything large. The child does
all the work. If the child is killed while it runs batches, or finds that it cannot go on, a second
child resumes the run, this time with worker processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from kepler_traverse._uninterrupted import start

from . import signals
from .command_line import options_in, to_resume
from .terminal import flush, say

EXIT_UNUSABLE = 75  # of a child whose process cannot go on; never that of the program
EXIT_KILLED = 1
# what a child tells
_HAS_FOLDER = b"f"
_RUNS_BATCHES = b"b"
_PR_SET_PDEATHSIG = 1
_HURRY_SECONDS = 5.0  # time for a child after a second interrupt


class Supervision:
    """What the process that computes knows of the one that watches it.

    ``needs_workers``: batches must run in worker processes, because a process that ran them itself
    has died. ``channel``: descriptor to write to as the run proceeds; -1 without a watching
    process.
    """

    def __init__(self, needs_workers: bool = False, channel: int = -1):
        self.needs_workers = needs_workers
        self._channel = channel
        self.has_folder = False  # whether the output folder has files of this run

    @property
    def is_watched(self) -> bool:
        """Whether another process takes over if this one dies."""
        return self._channel >= 0

    def begin_folder(self) -> None:
        """Note that the output folder has files of this run: from now on ``--resume`` goes on with
        it.
        """
        self.has_folder = True
        self._tell(_HAS_FOLDER)

    def begin(self) -> None:
        """Tell the watching process that this one runs batches itself: from now on it may be
        resumed.
        """
        self._tell(_RUNS_BATCHES)

    def _tell(self, what: bytes) -> None:
        if self.is_watched:
            with contextlib.suppress(OSError):
                os.write(self._channel, what)


UNWATCHED = Supervision()
Main = Callable[[list[str], Supervision], int]


def run(main: Main, argv: list[str]) -> int:
    """Run ``main(argv, supervision)`` in a child of this process, and again with ``--resume`` if
    the child dies.

    Return the exit code of the program.
    """
    if sys.platform != "linux":
        signals.listen()
        return main(argv, UNWATCHED)
    code, reported = _watch(main, argv, needs_workers=False)
    if code == EXIT_UNUSABLE or (_RUNS_BATCHES in reported and code < 0):
        how = "it cannot go on"
        if code < 0:
            how = f"it was ended by {_signal_name(-code)}"
        say(
            f"the process that ran the batches is gone: {how}; worker "
            "processes run the remaining ones"
        )
        argv = to_resume(argv)
        code, reported = _watch(main, argv, needs_workers=True)
    if code < 0:
        has_begun = _HAS_FOLDER in reported or "--resume" in options_in(argv)
        how = " with --resume" if has_begun else ""
        say(f"error: the job was ended by {_signal_name(-code)}; run it again{how}")
        code = EXIT_KILLED
    return code


def _watch(main: Main, argv: list[str], needs_workers: bool) -> tuple[int, bytes]:
    """Run the program in a child; return its exit code, or minus the signal that ended it, and what
    it has reported.
    """
    reads, writes = os.pipe()
    parent = os.getpid()
    flush()  # or the child would write what is buffered a second time
    child = _Child()
    with child.signals_forwarded():
        child.pid = os.fork()
        if not child.pid:
            os.close(reads)
            _be_child(main, argv, Supervision(needs_workers, writes), parent)
        os.close(writes)
        code = child.wait()
    with os.fdopen(reads, "rb") as channel:
        os.set_blocking(channel.fileno(), False)
        return code, channel.read() or b""


class _Child:
    """The process that computes, as its parent sees it; ``pid`` is 0 before it begins."""

    def __init__(self) -> None:
        self.pid = 0
        self._requests = 0

    @contextlib.contextmanager
    def signals_forwarded(self) -> Iterator[None]:
        """Forward each request to end as one SIGINT; the child has a process group of its own and
        does not act on SIGTERM.

        Otherwise it would take Ctrl-C, or the SIGTERM that a batch system sends to all processes,
        for two requests.
        """
        before = {number: signal.signal(number, self._forward) for number in signals.heeded()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _forward(self, _number: int, _frame: Any) -> None:
        """Handle a signal to end: interrupt the child, and kill it after the second one."""
        self._requests += 1
        if self._requests == 2:  # a kernel may keep the child from hearing it
            start(self._kill_late, "kepler-end")
        self._kill(signal.SIGINT)

    def _kill_late(self) -> None:
        time.sleep(_HURRY_SECONDS)
        self._kill(signal.SIGKILL)

    def _kill(self, number: int) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self) -> int:
        """Return the exit code of the child, or minus the signal that ended it."""
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and self._requests:
            return 128 + signal.SIGINT
        return code


def _be_child(main: Main, argv: list[str], supervision: Supervision, parent: int) -> NoReturn:
    """Run the program and end this process at once: there is nothing left that the end of an
    interpreter would do.
    """
    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        # A terminal may be set to stop processes in the background that write to it (stty tostop).
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        # If the watching process is killed, so is this one, and the lock of the output folder is
        # free.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            # which comes from the watching process alone
            signal.signal(signal.SIGINT, signals.interrupt)
            # a handler, since workers would inherit that it is ignored
            signal.signal(signal.SIGTERM, lambda *_: None)
            code = main(argv, supervision)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    finally:
        signals.ignore()  # an interrupt would go on beyond this function
        flush()
        os._exit(code)


def _signal_name(number: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
