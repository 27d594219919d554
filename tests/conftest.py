"""Fixtures of all tests: devices, real graphs, Hypothesis profiles, and what runs with --all only."""

import _thread
import gc
import importlib.util
import multiprocessing.forkserver
import os
import signal
import sys
import threading
from pathlib import Path

import hypothesis
import pytest

from kepler_traverse import cuda
from tests.support import tiers

DATA = Path(os.environ.get("KEPLER_DATA", Path(__file__).parents[2] / "shared" / "data"))
HAS_GPU = cuda.available()
# kernels run on the host harness, and the folder for compiled ones must be writable, as the home may not be
if not HAS_GPU:
    os.environ.setdefault("CUPY_CACHE_DIR", str(Path(__file__).parents[1] / "out" / "cupy"))
    collect_ignore = ["traversal/test_gpu.py"]  # nothing but tests for a GPU, thousands

if threading.gettrace():  # the measurement of coverage follows the threads of `threading` alone
    start_new_thread = _thread.start_new_thread

    def start_traced_thread(function, arguments):
        def work(*arguments):
            sys.settrace(threading.gettrace())
            return function(*arguments)

        return start_new_thread(work, arguments)

    _thread.start_new_thread = start_traced_thread

# With Python's own thresholds a tenth of a run is spent on looking for cycles of references.
gc.set_threshold(50_000, 10, 10)

# The same examples each time, so that a red run is the change's doing; new ones are for runs with --all. No machine is too
# slow for them.
_ANY_PACE = {
    "deadline": None,
    "print_blob": True,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
}
hypothesis.settings.register_profile("few", max_examples=8, derandomize=True, **_ANY_PACE)
hypothesis.settings.register_profile("many", max_examples=60, **_ANY_PACE)

# Children are in sessions of their own, and end with their tests: so the tests must end in order, also by `timeout`.
signal.signal(signal.SIGTERM, signal.default_int_handler)

# No power fails while the tests run, so nothing need be on the disk; what is synced must still be open.
os.fsync = lambda file: os.fstat(file) and None

# Workers of clusters that begin in this process are forked from one that has imported what they need, which takes most of
# their time. A job in a process of its own has its workers as a user has them: each imports for itself.
# in CPython 3.11 it can stop its process forever
os.environ["DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED"] = "False"
if importlib.util.find_spec("dask"):  # tests of kernels run without it
    import dask

    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})
    dask.config.set({"distributed.worker.profile.enabled": False})
PINNED = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}  # as pipelines.scheduling.cluster has it


@pytest.fixture(autouse=True, scope="session")
def _server_of_workers():
    """Begins before Dask would begin it without what only this project imports."""
    if "kepler_traverse.pipelines.scheduling.cluster" not in sys.modules:
        yield
        return
    multiprocessing.forkserver.set_forkserver_preload(
        [
            "distributed",
            "kepler_traverse.pipelines.worker.plugin",
            "tests.support.warm_template",
        ]
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in PINNED.items():
            patch.setenv(name, value)
        multiprocessing.forkserver.ensure_running()
    yield


@pytest.fixture(autouse=True, scope="module")
def _old_objects_stay():
    """Imports, tests and compiled functions stay until the end, so the garbage collector need not traverse them again."""
    gc.freeze()


def pytest_addoption(parser):
    parser.addoption(
        "--all",
        action="store_true",
        help="run exhaustive tests, whole products, and more generated examples",
    )


def pytest_configure(config):
    tiers.ALL = config.getoption("--all")
    hypothesis.settings.load_profile("many" if tiers.ALL else "few")


def pytest_collection_modifyitems(config, items):
    """Deselect tests that this machine or this run is not for, before any fixture of theirs is made."""
    left_out = {name for name, runs in (("gpu", HAS_GPU), ("exhaustive", tiers.ALL)) if not runs}
    kept, deselected = [], []
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        (deselected if marks & left_out else kept).append(item)
        if "exhaustive" in marks and "timeout" not in marks:
            item.add_marker(pytest.mark.timeout(480))
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept


@pytest.fixture
def real_graph():
    """Path of a real graph by name; skips where the graphs are absent."""

    def find(name: str) -> Path:
        path = DATA / f"{name}.parquet"
        if not path.exists():
            pytest.skip(f"{path} is absent; set KEPLER_DATA")
        return path

    return find
