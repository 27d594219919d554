"""A plugin of pytest: count the calls of each function of the backend `kepler`, and fail a run that misses one.

A suite would pass without a call if NetworkX did not find the backend or the backend refused everything.
"""

from __future__ import annotations

from collections import Counter

from kepler_traverse.networkx_backend import FUNCTIONS, backend

CALLS: Counter[str] = Counter()


def _counted(name, function):
    def count_and_call(*args, **keywords):
        CALLS[name] += 1
        return function(*args, **keywords)

    return count_and_call


def pytest_configure():
    for name, function in FUNCTIONS.items():
        setattr(backend, name, _counted(name, function))


def _missed() -> list[str]:
    return sorted(set(FUNCTIONS) - set(CALLS))


def pytest_sessionfinish(session):
    if _missed() and not session.exitstatus:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(
        f"{sum(CALLS.values()):,} calls of {len(CALLS)} functions of the backend kepler"
    )
    if _missed():
        terminalreporter.write_line(f"no test called {', '.join(_missed())}", red=True)
