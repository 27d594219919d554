"""The check of lines that no test reaches: what it says about a measurement, and what it leaves out by a rule."""

import ast
import json
import os
import sys

import pytest

from scripts.ci import branches
from scripts.ci.branches import OF_MODULE, Place
from tests.support.import_graph import tree_of
from tests.support.processes import ROOT, ran


def report(share=97.0, **missing):
    """A report on one file, with the lines that are missing per function."""
    functions = {
        name.replace("module", ""): {"missing_lines": lines, "executed_lines": [] if lines else [9]}
        for name, lines in missing.items()
    }
    totals = {"percent_covered": share, "num_statements": 100, "num_branches": 10}
    return {"totals": totals, "files": {"a.py": {"functions": functions}}}


@pytest.mark.parametrize(
    ("found", "known", "said"),
    [
        (report(f=[3], g=[]), {Place("a.py", "f"): "a GPU"}, []),
        (report(module=[1]), {Place("a.py", OF_MODULE): "a GPU"}, []),
        (report(f=[3, 4]), {}, ["a.py: f: no test reaches it, lines 3 to 4"]),
        (
            report(share=94.99),
            {},
            ["94.99 % of lines and branches are reached, and 95.0 % must be"],
        ),
        (report(f=[]), {Place("a.py", "f"): "a GPU"}, []),
        (
            report(),
            {Place("b.py", "f"): "a GPU"},
            ["b.py: f is gone: take it out of uncovered.json"],
        ),
    ],
)
def test_what_is_not_reached_must_be_listed_and_nothing_else(found, known, said):
    assert branches.problems(found, known) == said


def test_what_is_missing_is_printed_in_the_form_of_the_list(tmp_path, monkeypatch):
    places = [Place("b.py", "g"), Place("a.py", OF_MODULE), Place("a.py", "f")]
    text = branches.form(places, "a GPU")
    monkeypatch.setattr(branches, "LISTED", tmp_path / "listed.json")
    branches.LISTED.write_text(text)
    assert branches.listed() == dict.fromkeys(places, "a GPU")
    assert json.loads(text) == {"a GPU": {"a.py": [OF_MODULE, "f"], "b.py": ["g"]}}


def functions_of(node, prefix=""):
    """The qualified names of functions, as the measurement has them."""
    for inner in ast.iter_child_nodes(node):
        is_function = isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))
        name = prefix + inner.name if is_function or isinstance(inner, ast.ClassDef) else ""
        if is_function:
            yield name
        yield from functions_of(inner, f"{name}." if name else prefix)


def test_the_list_names_functions_that_exist_and_a_reason_for_each():
    for place, reason in branches.listed().items():
        assert place.function in {OF_MODULE, *functions_of(tree_of(ROOT / place.file))}, place
        assert len(reason) > 3, place


def compiled_functions(path):
    """The first and the last line of each compiled function of a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            names = {
                name.id
                for each in node.decorator_list
                for name in ast.walk(each)
                if isinstance(name, ast.Name)
            }
            if names & {"njit", "intrinsic", "numba"}:
                yield range(node.body[0].lineno, node.end_lineno + 1)


@pytest.mark.exhaustive
def test_the_lines_of_compiled_functions_are_left_out_by_the_rule():
    coverage = pytest.importorskip("coverage")
    measured = coverage.Coverage(data_file=None, config_file=str(ROOT / "pyproject.toml"))
    count = 0
    for path in sorted((ROOT / "kepler_traverse").rglob("*.py")):
        found = list(compiled_functions(path))
        if found:
            _, lines, _, _, _ = measured.analysis2(str(path))
            assert not [line for span in found for line in span if line in lines], path
            assert lines, "the module itself is measured"
            count += len(found)
    assert count > 100


WRONG_INDEX = """
import numpy as np
from numba import njit

@njit(cache=True, nogil=True)
def read(values, at):
    return values[at]

print(read(np.zeros(3), 5))
"""


@pytest.mark.exhaustive
def test_an_index_beyond_an_array_is_an_error_of_compiled_code_that_looks(tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text(WRONG_INDEX)
    variables = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = ran([sys.executable, script], env=variables)
    assert "IndexError: index is out of bounds" in done.stderr
