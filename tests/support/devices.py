"""Devices for tests of a single strategy: a GPU if there is one, else the host harness in several orders."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest

from tests.conftest import HAS_GPU
from tests.kernels.simt import device, harness
from tests.support import tiers

on_a_device = (
    pytest.mark.gpu
    if HAS_GPU
    else pytest.mark.skipif(harness.COMPILER is None, reason="no g++ to compile kernels for the host")
)


def orders(**modes: dict) -> dict:
    """Settings of the harness by name, without ``--all`` the last; one without any where there is a GPU."""
    if HAS_GPU:
        return {"GPU": None}
    return {name.replace("_", " "): settings for name, settings in list(modes.items())[None if tiers.ALL else -1 :]}


@contextmanager
def running(settings: dict | None):
    """Run GPU strategies on the harness with these settings, or with None on the GPU."""
    if settings is None:
        yield
    else:
        with device.present(), harness.settings(**settings):
            yield


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


def distances(result, graph) -> dict:
    """Reached vertices by the user's id, as Python numbers."""
    reached = np.flatnonzero(host(result.reached))
    return dict(zip(host(graph.ids)[reached].tolist(), host(result.distance)[reached].tolist(), strict=True))
