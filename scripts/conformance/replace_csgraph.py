"""A pytest plugin: SciPy's tests of csgraph call the functions of ``kepler_traverse.csgraph``.

python -m pytest -p scripts.conformance.replace_csgraph --pyargs scipy.sparse.csgraph.tests.test_shortest_path

The names that this library has are replaced in the module of tests. Calls are counted per name: a test suite that calls none
of them would pass for nothing, so the run fails.
"""

from __future__ import annotations

import functools
from collections import Counter

import pytest
import scipy.sparse.csgraph

from kepler_traverse import csgraph

REPLACED = tuple(
    name for name in csgraph.__all__ if name not in ("from_matrix", "NegativeCycleError")
)
calls: Counter[str] = Counter()


def _counted(name: str):
    function = getattr(csgraph, name)

    @functools.wraps(function)
    def call(*args, **kwargs):
        calls[name] += 1
        return function(*args, **kwargs)

    return call


def pytest_collection_finish(session: pytest.Session) -> None:
    functions = {getattr(scipy.sparse.csgraph, name): _counted(name) for name in REPLACED}
    for module in {item.module for item in session.items}:
        for name in REPLACED:
            if hasattr(module, name):
                setattr(module, name, functions[getattr(module, name)])
    # functions that are parameters of a test were taken from the module before
    for item in session.items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        for name, value in parameters.items():
            if callable(value):
                parameters[name] = functions.get(value, value)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    counts = ", ".join(f"{name} {calls[name]}" for name in REPLACED)
    terminalreporter.write_line(f"calls of kepler_traverse.csgraph: {counts}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.testscollected and not calls:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
