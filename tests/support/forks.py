"""Children that are forked from a process that has imported the library: they take a third of the time of a new Python.

They are for tests of what a program does, and of what is left of it when it is killed. How it
starts (imports, environment, locale) and how an interpreter ends are tested with
``tests.support.processes.started``, which yields what has the same methods.
"""

import contextlib
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pipelines.scheduling.cluster  # noqa: F401  # where it is imported, conftest.py starts the process that forks
from tests.support import forked_child
from tests.support.processes import PATIENCE, ROOT, at_once, finish, kill_session


class Child:
    """A forked child, with what tests use of ``subprocess.Popen``."""

    def __init__(
        self, program: str, words: list[Any], folder: Path, environ: dict[str, str], is_silent: bool
    ):
        context = multiprocessing.get_context("forkserver")
        pipes = [context.Pipe(duplex=False) for _ in range(2)]
        given = (program, [str(word) for word in words], str(folder), environ)
        ends = [write for _, write in pipes]
        self._process = context.Process(target=forked_child.run, args=(*given, ends, is_silent))
        self._process.start()
        self.stdout, self.stderr = (_opened(read) for read, _ in pipes)
        for end in ends:
            end.close()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit code, or minus the signal that ended the child; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code if the child has ended."""
        return self.returncode

    def wait(self) -> int | None:
        """Wait for the end of the child."""
        self._process.join(PATIENCE)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:  # noqa: ARG002
        """Return what the child writes until its end."""
        written = at_once(self.stdout.read, self.stderr.read)
        self.wait()
        return tuple(written)

    def send_signal(self, number: int) -> None:
        """Send a signal to the child, if it runs."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the child at once."""
        self.send_signal(signal.SIGKILL)


def _opened(connection: Any) -> Any:
    """Return the end of a pipe as a file of text."""
    with connection:
        return os.fdopen(os.dup(connection.fileno()), encoding="utf-8", errors="surrogateescape")


@contextlib.contextmanager
def forked(
    program: str,
    *words: Any,
    cwd: Path = ROOT,
    env: dict[str, str] | None = None,
    is_silent: bool = False,
) -> Iterator[Child]:
    """Start a program, which is code or ``-m`` and a module, in a session of its own; at the end kill the session.

    With ``is_silent`` what it writes is thrown away.
    """
    environ = dict(os.environ if env is None else env)
    child = Child(program, list(words), cwd, environ, is_silent)
    try:
        yield child
    finally:
        kill_session(child)
        child.kill()
        child.wait()
        child.stdout.close()
        child.stderr.close()


def ran_forked(program: str, *words: Any, **options: Any) -> subprocess.CompletedProcess:
    """Run a program to its end."""
    with forked(program, *words, **options) as child:
        return subprocess.CompletedProcess([program, *words], *finish(child))
