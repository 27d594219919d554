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

# exit code of a child whose process cannot go on, so that another one should; the program itself
# never returns it
EXIT_UNUSABLE = 75
EXIT_KILLED = 1  # exit code of the program if its process was killed
# messages that a child writes to its channel
_HAS_FOLDER = b"f"  # the output folder has files of this run
_RUNS_BATCHES = b"b"  # the child runs batches itself
_PR_SET_PDEATHSIG = 1  # of prctl: which signal this process gets when its parent dies
_HURRY_SECONDS = 5.0  # time for a child after a second interrupt


class Supervision:
    """What the process that computes knows of the one that watches it.

    Parameters
    ----------
    needs_workers : bool
        Whether batches must run in worker processes, because a process that ran them itself has
        died.
    channel : int
        Descriptor of the pipe to the watching process, to which this one writes as the run
        proceeds; -1 if no process watches.
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
        """Record that the output folder has files of this run, which ``--resume`` can finish from
        now on.
        """
        self.has_folder = True
        self._tell(_HAS_FOLDER)

    def begin(self) -> None:
        """Tell the watching process that this one runs batches itself: if it dies from now on,
        worker processes resume the run.
        """
        self._tell(_RUNS_BATCHES)

    def _tell(self, message: bytes) -> None:
        """Write a message to the channel, if a process watches."""
        if self.is_watched:
            with contextlib.suppress(OSError):  # the watching process may be gone
                os.write(self._channel, message)


UNWATCHED = Supervision()
# a program: takes the words of its command line, and returns its exit code
Main = Callable[[list[str], Supervision], int]


def run(main: Main, argv: list[str]) -> int:
    """Run ``main(argv, supervision)`` in a child of this process, and in a second one with
    ``--resume`` if the first one dies while it runs batches. Return the exit code of the program.
    """
    # watching needs calls that Linux alone has
    if sys.platform != "linux":
        signals.listen()
        return main(argv, UNWATCHED)
    code, messages = _watch(main, argv, needs_workers=False)

    # The child ran batches and died, or cannot go on: a second one has worker processes.
    if code == EXIT_UNUSABLE or (_RUNS_BATCHES in messages and code < 0):
        why = "it cannot go on"
        if code < 0:
            why = f"it was ended by {_signal_name(-code)}"
        say(
            f"the process that ran the batches is gone: {why}; worker "
            "processes run the remaining ones"
        )
        argv = to_resume(argv)
        code, messages = _watch(main, argv, needs_workers=True)

    if code < 0:
        has_begun = _HAS_FOLDER in messages or "--resume" in options_in(argv)
        how = " with --resume" if has_begun else ""
        say(f"error: the job was ended by {_signal_name(-code)}; run it again{how}")
        code = EXIT_KILLED
    return code


def _watch(main: Main, argv: list[str], needs_workers: bool) -> tuple[int, bytes]:
    """Run the program in a child of this process, and wait for its end. Return its exit code, or
    minus the number of the signal that ended it; and the bytes that it has written to its channel.
    """
    read_end, write_end = os.pipe()
    parent = os.getpid()
    flush()  # or the child would write what is buffered a second time
    child = _Child()
    with child.signals_forwarded():
        child.pid = os.fork()
        if not child.pid:  # this is the child, which ends in ``_be_child``
            os.close(read_end)
            _be_child(main, argv, Supervision(needs_workers, write_end), parent)
        os.close(write_end)
        code = child.wait()
    with os.fdopen(read_end, "rb") as channel:
        # Processes that the child has started may still have the other end open, so that a read to
        # the end of the pipe would wait for them.
        os.set_blocking(channel.fileno(), False)
        return code, channel.read() or b""


class _Child:
    """The process that computes, as its parent sees it."""

    def __init__(self) -> None:
        self.pid = 0  # 0 before it begins, and after its end
        self._requests = 0  # signals to end that came so far

    @contextlib.contextmanager
    def signals_forwarded(self) -> Iterator[None]:
        """Forward each request to end to the child as one SIGINT, within the block.

        The child has a process group of its own and does not act on SIGTERM. Otherwise it would
        take Ctrl-C, or the SIGTERM that a batch system sends to all processes, for two requests.
        """
        handlers = {number: signal.signal(number, self._forward) for number in signals.heeded()}
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def _forward(self, _number: int, _frame: Any) -> None:
        """Handle a signal to end: interrupt the child. After the second signal, also kill it if it
        has not ended a few seconds later.
        """
        self._requests += 1
        if self._requests == 2:  # a kernel may keep the child from hearing the signal
            start(self._kill_late, "kepler-end")
        self._kill(signal.SIGINT)

    def _kill_late(self) -> None:
        """Kill the child after a few seconds, unless it has ended by itself."""
        time.sleep(_HURRY_SECONDS)
        self._kill(signal.SIGKILL)

    def _kill(self, number: int) -> None:
        """Send a signal, by its number, to the child, if it has begun and has not ended."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self) -> int:
        """Wait for the end of the child. Return its exit code, or minus the number of the signal
        that ended it; 130 if it was killed after a request to end.
        """
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and self._requests:
            return 128 + signal.SIGINT
        return code


def _be_child(main: Main, argv: list[str], supervision: Supervision, parent: int) -> NoReturn:
    """Run the program in the child, and end this process with its exit code.

    It ends at once (``os._exit``), since there is nothing left that the end of an interpreter would
    do. ``parent`` is the number of the watching process.
    """
    code = 1  # if the program raises another exception than those below
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        # Outside the group of the terminal, this process would be stopped when it writes to a
        # terminal with stty tostop.
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        # If the watching process is killed, so is this one, and the lock of the output folder is
        # free.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:  # else the watching process was killed before the last call
            # SIGINT comes from the watching process alone.
            signal.signal(signal.SIGINT, signals.interrupt)
            # A handler that does nothing, since workers would inherit that the signal is ignored.
            signal.signal(signal.SIGTERM, lambda *_: None)
            code = main(argv, supervision)
    except SystemExit as end:  # as Python does: None is 0, and a text or another object is 1
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    finally:
        signals.ignore()  # an interrupt would leave this function and go on in the parent's code
        flush()
        os._exit(code)


def _signal_name(number: int) -> str:
    """Return the name of a signal by its number, such as SIGKILL; one that Python does not know as
    "signal" and the number.
    """
    with contextlib.suppress(ValueError):
        return signal.Signals(number).name
    return f"signal {number}"
