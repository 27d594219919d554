"""What a child of ``tests.support.forks`` does; it imports nothing that the child does not need."""

import os
import runpy
import signal
import sys
import tempfile


def run(program, words, folder, environ, ends, is_silent):
    """Run a program, which is code or ``-m`` and a module, as a Python of its own would.

    ``ends``: of the pipes for what it writes, those that it writes to; with ``is_silent`` it writes nothing.
    """
    os.setsid()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for number, end in enumerate(ends, 1):
        os.dup2(nowhere if is_silent else end.fileno(), number)
        end.close()
    os.close(nowhere)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environ)
    tempfile.tempdir = None
    if "dask" in sys.modules:
        sys.modules["dask"].config.refresh()
    if program.startswith("-m "):
        sys.argv = [program, *words]
        runpy.run_module(program.removeprefix("-m "), run_name="__main__", alter_sys=True)
    else:
        sys.argv = ["-c", *words]
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
