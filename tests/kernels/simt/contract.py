"""Copies of the tests of test_contract.py for strategies that run on the harness."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.support import tiers
from tests.support.graphs import NAMED, rmat

FILE = Path(__file__).parents[2] / "traversal" / "test_contract.py"
# A third of the edges in about as many levels, with adjacency lists of one edge and of more than a block has threads. The
# stars have the adjacency lists that are split into chunks, as in test_contract.py.
POWER_LAW = rmat(8, 12, seed=3)
# Stars for blocks of 256 threads, which have 32 or 128 here: 31 to 33 and 1,023 to 1,025 leaves are at their limits.
LEFT_OUT = {"star of 255", "star of 256", "star of 257"}

GRAPHS = [name for name in NAMED if name not in LEFT_OUT]


def directions(kind, name) -> tuple[bool, ...]:
    """Each kind of weights has one direction, because no code depends on both; hops have one per graph, by turns."""
    if kind == "hops":
        return (True, False) if tiers.ALL else (GRAPHS.index(name) % 2 == 0,)
    return (kind == "floats",)


def contract(rows, **named) -> dict:
    """Return the tests that take a strategy, by name, for those of the given strategies that are for GPUs.

    ``named`` are graphs that replace those of the same name.
    """
    spec = importlib.util.spec_from_file_location("contract_of_gpu_rows", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.NAMED = module.NAMED | {"power law": POWER_LAW} | named
    module.directions = directions
    tests = {}
    for name, function in vars(module).items():
        marks = getattr(function, "pytestmark", [])
        if not name.startswith("test_") or not any(map(_gives_rows, marks)):
            continue
        marks = [_for_rows(mark, rows) if _gives_rows(mark) else mark for mark in marks]
        function.pytestmark = list(map(_fewer_graphs, marks))
        if rows_in({name: function}):
            tests[name] = function
    return tests


def rows_in(tests: dict) -> set[str]:
    """Return the names of the strategies that these tests take."""
    marks = [
        mark for function in tests.values() for mark in function.pytestmark if _gives_rows(mark)
    ]
    return {param.values[0].name for mark in marks for param in mark.args[1]}


def _gives_rows(mark) -> bool:
    return mark.name == "parametrize" and mark.args[0] == "row"


def _fewer_graphs(mark):
    name, values = mark.args[:2] if mark.name == "parametrize" else ("", ())
    if name == "name":
        return pytest.mark.parametrize(name, tiers.few(GRAPHS, 6)).mark
    return (
        pytest.mark.parametrize(name, tiers.few(values, 3)).mark
        if name in ("depth", "cutoff")
        else mark
    )


def _for_rows(mark, rows):
    """Return the same test without other strategies, those of CPUs, and the mark that skips tests without a GPU."""
    own = [
        param
        for param in mark.args[1]
        if param.values[0].device == "cuda" and param.values[0] in rows
    ]
    return pytest.mark.parametrize(
        "row", [pytest.param(*param.values, id=param.id) for param in own], **mark.kwargs
    ).mark
