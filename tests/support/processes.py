"""Child processes of tests: they start with default signals, and end with the test, also if it fails."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 300.0  # seconds; only what never ends takes as long
SILENT = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
_QUIET = {
    "stdin": subprocess.DEVNULL,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
    "cwd": ROOT,
}


@contextlib.contextmanager
def default_signals() -> Iterator[None]:
    """SIGINT and SIGHUP are not ignored; a shell starts what runs in the background so, and children inherit it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGHUP)}
    ignored = [number for number, handler in before.items() if handler is signal.SIG_IGN]
    try:
        for number in ignored:
            signal.signal(number, lambda *_: None)  # a child has no handlers but the default ones
        yield
    finally:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def started(command: list[Any], **options: Any) -> Iterator[subprocess.Popen]:
    """Start a child in a session of its own, with pipes for text; at the end kill the session, and close the pipes."""
    with default_signals():
        child = subprocess.Popen(
            [str(word) for word in command], start_new_session=True, **_QUIET | options
        )
    try:
        yield child
    finally:
        kill_session(child)
        child.wait()
        for pipe in filter(None, (child.stdin, child.stdout, child.stderr)):
            pipe.close()


def finish(child: subprocess.Popen) -> tuple[int, str, str]:
    """Wait for the end of a child; return its exit code and what it has written."""
    out, err = child.communicate(timeout=PATIENCE)
    return child.returncode, out, err


def ran(command: list[Any], **options: Any) -> subprocess.CompletedProcess:
    """Run a child to its end."""
    with started(command, **options) as child:
        return subprocess.CompletedProcess(command, *finish(child))


# Begins with what scripts share, and runs each in a fork of its own, as ``python -c`` would: in its folder and environment,
# with its words and its outputs. What they share is imported once, and not taken down again by each.
_FORKS = """
import atexit, gc, json, os, sys, threading, traceback
exec(sys.argv[1])
gc.collect()
gc.freeze()
def run(code, words, cwd, env, out, err):
    for place, file in ((1, out), (2, err)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), place)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.argv[1:] = words
    sys.path[1:1] = [each for each in env.get("PYTHONPATH", "").split(":") if each]
    try:
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        assert end.code is None or isinstance(end.code, int), end.code
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    else:
        status = 0
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
for script in json.loads(sys.argv[2]):
    number = os.fork()
    if number == 0:
        run(**script)
    print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)
"""


def ran_after(
    shared: str, folder: Path, *scripts: tuple[str, list[Any], dict[str, Any]]
) -> list[subprocess.CompletedProcess]:
    """Run scripts to their ends, each in a fork of one process that has run ``shared``: imports that they have in common.

    A script is its code, its words, and its ``cwd`` and ``env`` as of a child. Its outputs pass through ``folder``.
    """
    given = []
    for number, (code, words, options) in enumerate(scripts):
        place = {name: str(folder / f"{number}.{name}") for name in ("out", "err")}
        where = {"cwd": str(options.get("cwd", ROOT)), "env": options.get("env", dict(os.environ))}
        given.append({"code": code, "words": [str(word) for word in words]} | place | where)
    done = ran([sys.executable, "-c", _FORKS, shared, json.dumps(given)])
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    codes = [int(line) for line in done.stdout.split()]
    return [
        subprocess.CompletedProcess(
            each["code"], code, Path(each["out"]).read_text(), Path(each["err"]).read_text()
        )
        for each, code in zip(given, codes, strict=True)
    ]


def skip_without_repository() -> None:
    """Skip a test, or a module that is being imported, in a copy of the code that is no checkout."""
    if shutil.which("git") is None or ran(["git", "rev-parse", "--verify", "HEAD"]).returncode:
        pytest.skip("not a git checkout", allow_module_level=True)


def skip_where_nothing_is_installed() -> None:
    """Skip tests that install packages where scripts/check.sh installs none: there may be no network."""
    if os.environ.get("KEPLER_PYTHON"):
        pytest.skip("KEPLER_PYTHON is set, so nothing is installed")


def session_of(child: subprocess.Popen) -> list[psutil.Process]:
    """The running processes of the session of a child."""
    found = []
    for number in psutil.pids():
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if (
                os.getsid(number) == child.pid
                and (process := psutil.Process(number)).status() != psutil.STATUS_ZOMBIE
            ):
                found.append(process)
    return found


def kill_session(child: Any) -> None:
    """End all processes of the session of a child."""
    for process in session_of(child):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """Call functions in threads of their own; return what they return, once all have."""
    with ThreadPoolExecutor(len(calls)) as threads:
        return [call.result() for call in [threads.submit(call) for call in calls]]


def wait_until(condition: Callable[[], Any], child: subprocess.Popen | None = None) -> Any:
    """Wait for what nothing announces, such as a file; return it. A child that ends before is a failure."""
    until = time.monotonic() + PATIENCE
    while True:
        has_ended = child is not None and child.poll() is not None
        if found := condition():
            return found
        assert not has_ended, f"the process has ended with {child.returncode}"
        assert time.monotonic() < until, "it has not happened"
        time.sleep(0.005)
