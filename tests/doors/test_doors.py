"""Every argument that takes ids, numbers, tables or files, in every container: the result of the plain form, or our error.

A new argument of a public function, or a new option of the job, fails here until it has its row in the table.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import kepler_traverse
from kepler_traverse import Graph, KeplerError
from kepler_traverse.hub_labels.arrays import HubLabels
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from pipelines.cli.options import OPTIONS
from tests.doors.containers import EITHER, EQUAL, REFUSED
from tests.doors.table import DOORS, FUNCTIONS, JOB, OPTIONS_OF_KINDS

_ROOT = Path(__file__).parents[2]
_SCREEN = 24 * 80
_EVERY = 13  # in the short test a door takes one form of so many
_NEEDS = {
    "pyg.AddShortestPathEncoding",
    "networkx_backend.convert_from_nx",
    "networkx_backend.convert_to_nx",
}  # other packages


# Programs of plug-ins call these, with vertex numbers and arrays that the library has made.
_OF_PLUGINS = "extend."


def listed(row):
    """Arguments of a row of the table, with their kinds or ``""``."""
    return {name: kind for name, _, kind in (each.partition(":") for each in row.split())}


# What docs/labels.md names, beside the functions of docs/api.md.
_OF_LABELS = {
    "hub_labels.HubLabels.between": HubLabels.between,
}


def public_functions():
    """Functions and methods that docs/api.md lists, and those of hub labels, by name."""
    yield from _OF_LABELS.items()
    page = (_ROOT / "docs/api.md").read_text()
    names = [
        line.strip()
        for line in page.splitlines()
        if line.startswith("   ") and not line.strip().startswith(":")
    ]
    for name in sorted({*names, *kepler_traverse.__all__} - _NEEDS):
        if name.startswith(_OF_PLUGINS):
            continue
        module, _, last = name.rpartition(".")
        value = getattr(
            import_module(f"kepler_traverse.{module}") if module else kepler_traverse, last
        )
        if not inspect.isclass(value):
            yield name, value
        elif not issubclass(value, Exception):
            kept = (
                ("__call__", "__init__")
                if not is_dataclass(value) and last == "Network"
                else ("__call__",)
            )
            for method, own in vars(value).items():
                function = getattr(own, "__func__", own)
                if inspect.isfunction(function) and (not method.startswith("_") or method in kept):
                    yield f"{name}.{method}", function


def test_every_argument_of_a_public_function_has_its_row():
    found = {}
    for name, function in public_functions():
        arguments = [each for each in inspect.signature(function).parameters if each != "self"]
        if arguments:
            found[name] = arguments
    assert found == {name: list(listed(row)) for name, row in FUNCTIONS.items()}


def test_every_option_of_a_kind_has_its_row():
    library = {
        each.name
        for kind in RESULT_KINDS.values()
        for each in fields(kind.options_class)
        if each.metadata.get("library", True)
    }
    assert library - {"geometry"} == set(listed(OPTIONS_OF_KINDS)) - {"groups_of_targets"}


def test_every_option_of_the_job_has_its_row():
    assert {option.key for option in OPTIONS if option.in_python} == set(listed(JOB))


def test_every_row_with_a_kind_has_a_door():
    crossed = {
        f"{name}.{argument}"
        for name, row in FUNCTIONS.items()
        for argument, kind in listed(row).items()
        if kind
    }
    crossed |= {f"options.{name}" for name, kind in listed(OPTIONS_OF_KINDS).items() if kind}
    crossed |= {f"job.{name}" for name, kind in listed(JOB).items() if kind}
    assert crossed == {name.partition("#")[0] for name in DOORS}


def plain(result):
    """A result as values that can be compared: columns of frames without their index, arrays, graphs by their content."""
    if isinstance(result, Graph):
        rows = None if result.edge_rows is None else result.edge_rows.tolist()
        return result.fingerprint, rows
    if isinstance(result, pa.Table):
        return {name: plain(result[name]) for name in result.column_names}
    if isinstance(result, pd.DataFrame):
        return {str(name): plain(result[name]) for name in result.columns}
    if isinstance(result, (pa.Array, pa.ChunkedArray, np.ndarray)):
        return plain(result.tolist())
    if isinstance(result, (pd.Series, pd.Index)):
        return plain([None if each is pd.NA else each for each in result.tolist()])
    if isinstance(result, (list, tuple)):
        return [plain(each) for each in result]
    if hasattr(result, "distance"):
        return plain(np.asarray(result.distance))
    return None if result != result else result  # NaN


def outcome(door, text, form):
    """What comes of a form: EQUAL with the result, REFUSED with the text of our error; any other error is raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pandas and Dask, about their own futures
            return EQUAL, plain(door.call(text, form.value, form.partner))
    except KeplerError as error:
        return REFUSED, str(error)


def faults(name, chosen):
    """Describe what is wrong with some forms of a door."""
    door = DOORS[name]
    for text in door.texts:
        way, expected = outcome(door, text, door.plain(text))
        if way == REFUSED:
            yield f"the plain form is refused: {expected}"
            continue
        for at, form in enumerate(door.forms(text)):
            if not chosen(at):
                continue
            where = f"{form.name}{' (text)' if text else ''}"
            try:
                way, found = outcome(door, text, form)
            except Exception as error:
                yield f"{where}: {type(error).__name__}: {error}"
                continue
            if way == EQUAL and (form.must == REFUSED or found != expected):
                yield f"{where}: should be {form.must}, and has the result {str(found)[:300]}, not {str(expected)[:300]}"
            elif way == REFUSED and form.must not in (REFUSED, EITHER):
                yield f"{where}: is refused: {found[:300]}"
            elif way == REFUSED and len(found) > _SCREEN:
                yield f"{where}: its message has {len(found)} characters"


@pytest.mark.parametrize("name", [name for name, door in DOORS.items() if not door.is_slow])
def test_a_door_takes_some_forms_and_refuses_others(name):
    first = list(DOORS).index(name)
    assert list(faults(name, lambda at: (at + first) % _EVERY == 0)) == []


@pytest.mark.parametrize("name", ["job.sources", "job.pairs"])
def test_a_door_of_the_job_takes_some_forms(name):
    assert list(faults(name, lambda at: at % 16 == 0)) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", DOORS)
def test_a_door_takes_or_refuses_every_form(name):
    if name.startswith("maps."):
        pytest.importorskip("matplotlib")
    assert list(faults(name, lambda _: True)) == []
