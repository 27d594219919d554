"""A worker for ``WorkerProcesses`` whose tasks say what its process does. A process imports this
module.
"""

import gc
import os
import signal
import sys
import time
from pathlib import Path

from kepler_traverse import cuda


class FakeWorker:
    """``at_load``: "die", or the path of a file; the load that takes it away dies, and others raise."""

    def __init__(self, at_load=""):
        self.at_load = at_load

    def load(self):
        if self.at_load == "die":
            os._exit(3)
        if self.at_load:
            try:
                Path(self.at_load).unlink()
            except FileNotFoundError:
                raise LookupError("no such graph") from None
            os.kill(os.getpid(), signal.SIGKILL)

    def answer(self, batches, isolate, heartbeat_path, begin_next, strategy):  # noqa: ARG002
        word, *more = batches
        return getattr(self, f"_{word}")(*more)

    def _die(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def _environ(self, name):
        return os.environ.get(name)

    def _raise(self):
        raise Unreadable("a fault", 1)

    def _wait_for(self, path):
        while not os.path.exists(path):
            time.sleep(0.002)
        return "waited"

    def _wait_for_gate(self, folder):
        return self._wait_for(f"{folder}/{os.getpid()}")

    def _after(self, path, word, *more):
        self._wait_for(path)
        return getattr(self, f"_{word}")(*more)

    def _touch(self, path):
        Path(path).touch()

    def _facts(self):
        return {
            "pid": os.getpid(),
            "template": os.getppid(),
            "imports_dask": "distributed" in sys.modules,
            "collects": gc.isenabled(),
            "has_lost_cuda": cuda._is_lost,
            "of_devices": [
                target
                for number in os.listdir("/proc/self/fd")
                if (target := _target(number)).startswith("/dev/nvidia")
            ],
        }


class OpensGate:
    """A message that opens the gate of the process that reads it, after the messages before it."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return _open_gate, (self.folder,)


def _open_gate(folder):
    Path(folder, str(os.getpid())).touch()


def _target(number):
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return ""


class Unreadable(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, first, second):
        super().__init__(first)
        self.second = second
