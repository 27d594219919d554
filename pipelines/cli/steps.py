"""Report on stderr what a run does before its first batch, so that the terminal is not empty.

A step that is over in half a second is not named. The module imports nothing large: the first step
is to import the rest.
"""

from __future__ import annotations

import sys
import time

from kepler_traverse._uninterrupted import start

from .terminal import say

# The steps of a run, in the order in which they begin. Each has two names: one in the line of the
# terminal with the times of all steps, where "" leaves the step out, and one in the report.
STEPS = {
    "read": ("reading", "reading the edge list"),
    "build": ("building", "building the graph"),
    "plan": ("planning", "planning"),
    "compile": ("", "compiling, once for this machine"),
    "store": ("storing the graph", "storing the graph"),
    "start": ("starting workers", "starting workers, which load the graph"),
    "traverse": ("", "batches"),
}
_NAMED_AFTER = 0.5  # seconds
_SHOWN_FROM = 0.05  # seconds, which are shown with one digit
_TICK = 0.1  # seconds between two looks at the present step


class _Steps:
    """The present step, and a thread that prints its name if it takes long."""

    def __init__(self) -> None:
        self._name = ""  # of the present step
        self._since = 0.0  # when it began, in seconds of ``time.monotonic``
        # whether its name was printed, or need not be: before the first step there is none
        self._is_named = True
        self._compiling_is_named = False  # whether it was printed that code is compiled
        self._have_ended = False  # whether the last step has ended
        start(self._watch, "kepler-steps")

    def begin(self, name: str) -> None:
        """Begin a step, whose name is printed if it takes long. The one before has ended."""
        self._since = time.monotonic()
        self._name = name
        self._is_named = False  # last, since the thread then prints the name

    def end(self) -> None:
        """End the last step: from now on no name is printed."""
        self._is_named = True
        self._have_ended = True

    def _watch(self) -> None:
        """Print the name of each step that takes long, and once that code is compiled."""
        compiled_before = _compile_seconds()
        # Goes on after the last step, since the first batch may compile, too.
        while not (self._compiling_is_named and self._have_ended):
            time.sleep(_TICK)
            if not self._is_named and time.monotonic() - self._since > _NAMED_AFTER:
                self._is_named = True
                say(self._name)
            compiled = _compile_seconds() - compiled_before
            if not self._compiling_is_named and compiled > _NAMED_AFTER:
                self._compiling_is_named = True
                say("compiling (once for this machine)")


def _compile_seconds() -> float:
    """Return the seconds for which this process has compiled; 0 if the library's clock for that has
    not been imported. Importing it here would take long.
    """
    clock = sys.modules.get("kepler_traverse.cpu.compile_clock")
    seconds = getattr(clock, "seconds", None)  # another thread may be importing the module
    return 0.0 if seconds is None else seconds()


_steps: _Steps | None = None  # None until ``show`` is called: nothing is printed


def show() -> None:
    """Print on stderr, from now on, the names of steps that take long."""
    global _steps
    _steps = _Steps()


def begin(name: str) -> None:
    """Begin a step, whose name is printed if it takes long. The one before has ended."""
    if _steps is not None:
        _steps.begin(name)


def end(*, seconds: dict[str, float] | None = None) -> None:
    """End the last step, and print on one line how long the steps took.

    ``seconds`` has the time of each step by the keys of ``STEPS``; None prints nothing. Steps of
    less than 0.05 s are left out.
    """
    if _steps is None:
        return
    _steps.end()
    times = []
    for step, value in (seconds or {}).items():
        name, _ = STEPS[step]
        if name and value >= _SHOWN_FROM:
            times.append(f"{name} {value:.1f} s")
    if times:
        say(", ".join(times))


def compiled(seconds: float) -> None:
    """Print for how many seconds the whole run has compiled code, batches included."""
    if _steps is not None and seconds >= _SHOWN_FROM:
        say(f"compiled for {seconds:.1f} s")
