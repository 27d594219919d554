"""Devices for tests of a single strategy: a GPU if there is one, else the host harness in several orders."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import certify, cuda
from kepler_traverse._arrays import get_device, to_host
from kepler_traverse.auto.survey import outline
from kepler_traverse.multi_source import planning
from kepler_traverse.multi_source.workload import Shapes
from tests.conftest import HAS_GPU
from tests.kernels.simt import device, harness
from tests.support import oracle, tiers

on_a_device = (
    pytest.mark.gpu
    if HAS_GPU
    else pytest.mark.skipif(
        harness.COMPILER is None, reason="no g++ to compile kernels for the host"
    )
)


def orders(**modes: dict) -> dict:
    """Settings of the harness by name, without ``--all`` the last; one without any where there is a GPU."""
    if HAS_GPU:
        return {"GPU": None}
    return {
        name.replace("_", " "): settings
        for name, settings in list(modes.items())[None if tiers.ALL else -1 :]
    }


@contextmanager
def running(settings: dict | None):
    """Run GPU strategies on the harness with these settings, or with None on the GPU."""
    if settings is None:
        yield
    else:
        with device.present(), harness.settings(**settings):
            yield


@contextmanager
def planned_by_outline():
    """Plan searches by the size of the graph alone.

    The few searches by which a plan estimates its times take longer on the harness than those of a small test, whose
    strategy is named.
    """

    def known_without_a_search(work, *_):
        return Shapes.alike(outline(work.graph)).for_output(work)

    with pytest.MonkeyPatch.context() as patch:
        if not HAS_GPU:
            patch.setattr(planning, "measure_shapes", known_without_a_search)
        yield


@contextmanager
def frames_on_pandas():
    """Make frames of a GPU by pandas in place of cuDF, as the harness needs it."""

    def on_host(column):
        return to_host(column) if get_device(column) == "cuda" else column

    class Series(pd.Series):
        def __init__(self, data=None, *given, **options):
            super().__init__(on_host(data), *given, **options)

        @staticmethod
        def from_arrow(values):
            return pd.Series(values.to_pandas())

        def mask(self, is_null):
            values = pd.array(np.asarray(self), dtype=str(self.dtype).capitalize())
            values[np.asarray(is_null)] = pd.NA
            return pd.Series(values)

    def make_frame(columns=None, **options):
        """Make a frame in host memory, also of the arrays of a GPU."""
        if isinstance(columns, dict):
            columns = {name: on_host(column) for name, column in columns.items()}
        return pd.DataFrame(columns, **options)

    frame = make_frame if HAS_GPU else pd.DataFrame
    of_pandas = SimpleNamespace(DataFrame=frame, Series=Series, concat=pd.concat)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cudf", of_pandas)
        yield


# Of one block size, so that kernels are compiled once.
MODES = orders(in_turn={"block": 64}, stress={"stress": True, "seed": 1, "block": 64})
FIRST = next(iter(MODES.values()))


def in_each(modes: dict, **options):
    """Return a fixture whose tests run on a GPU, or on the harness in each of these orders; its value is the order."""

    @pytest.fixture(params=modes, **options)
    def mode(request):
        with running(modes[request.param]):
            yield request.param

    return mode


def in_one(settings: dict | None):
    """Return a fixture whose tests run on a GPU, or on the harness with these settings."""

    @pytest.fixture
    def one_order():
        with running(settings):
            yield

    return one_order


def each_namespace(*kinds: str):
    """Return a fixture: NumPy for "cpu", the harness's stand-in for CuPy for "host", CuPy for "gpu"."""
    marks = {
        "gpu": pytest.mark.gpu,
        "host": pytest.mark.skipif(harness.COMPILER is None, reason="no g++ to compile kernels"),
    }

    @pytest.fixture(
        params=[pytest.param(kind, marks=marks.get(kind, ())) for kind in kinds], scope="module"
    )
    def namespace(request):
        if request.param == "host":
            with device.present(), harness.settings(stress=True, seed=5, block=64, resident=2):
                yield device.cp
        else:
            yield np if request.param == "cpu" else cuda.cp

    return namespace


def host(array) -> np.ndarray:
    """A NumPy array of what the device holds."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def count_allocations(monkeypatch, *modules) -> list[int]:
    """Record the bytes of each array that these modules allocate from now on, except those that NumPy derives."""
    taken = []

    class Counting:
        def __getattr__(self, name):
            made = getattr(before, name)
            if name not in ("empty", "zeros"):
                return made

            def make(*arguments):
                array = made(*arguments)
                taken.append(array.nbytes)
                return array

            return make

    before = modules[0].cp
    for module in modules:
        monkeypatch.setattr(module, "cp", Counting())
    return taken


def require_hops(result, graph, rows, source, directed=True) -> None:
    """Raise unless a search is certified, and equal to the oracle up to where it went."""
    certify(graph, result).require()
    limit = np.inf if result.limit is None else result.limit
    expected = oracle.bfs(oracle.edges_of(rows, directed), source)
    assert distances(result, graph) == {v: d for v, d in expected.items() if d <= limit}


def distances(result, graph) -> dict:
    """Reached vertices by the user's id, as Python numbers."""
    reached = np.flatnonzero(host(result.reached))
    return dict(
        zip(host(graph.ids)[reached].tolist(), host(result.distance)[reached].tolist(), strict=True)
    )
