"""The tests of test_contract.py for rows that run on the harness, in copies of their own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).parents[1] / "test_contract.py"


def contract(rows, **named) -> dict:
    """The tests that take a row of a catalogue, by name, for those of the given rows that are for GPUs.

    ``named`` are graphs that they take in place of those of that name.
    """
    spec = importlib.util.spec_from_file_location("contract_of_gpu_rows", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.NAMED = module.NAMED | named
    tests = {}
    for name, function in vars(module).items():
        marks = getattr(function, "pytestmark", [])
        if not name.startswith("test_") or not any(map(_gives_rows, marks)):
            continue
        function.pytestmark = [_for_rows(mark, rows) if _gives_rows(mark) else mark for mark in marks]
        if rows_in({name: function}):
            tests[name] = function
    return tests


def rows_in(tests: dict) -> set[str]:
    """The names of the rows that these tests take."""
    marks = [mark for function in tests.values() for mark in function.pytestmark if _gives_rows(mark)]
    return {param.values[0].name for mark in marks for param in mark.args[1]}


def _gives_rows(mark) -> bool:
    return mark.name == "parametrize" and mark.args[0] == "row"


def _for_rows(mark, rows):
    """The same without other rows, without those of CPUs, and without the mark that skips the rest."""
    own = [param for param in mark.args[1] if param.values[0].device == "cuda" and param.values[0] in rows]
    return pytest.mark.parametrize("row", [pytest.param(*param.values, id=param.id) for param in own], **mark.kwargs).mark
