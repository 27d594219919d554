"""The advice of messages is valid where they appear: options exist in the program, arguments in a public function."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import kepler_traverse
from kepler_traverse import assignment, csgraph, extremes, planning, pyg
from kepler_traverse.errors import InputError
from pipelines import assignment as assignment_program
from pipelines import compare, serve, verify
from pipelines import extremes as extremes_program
from pipelines.cli import command_line, options
from tests.support.import_graph import tree_of

ROOT = Path(__file__).resolve().parents[2]
MESSAGES = {
    folder: sorted(path for path in (ROOT / folder).rglob("*.py") if "cuda" not in path.parts)
    for folder in ("kepler_traverse", "pipelines")
}
# Of `dask worker`, which messages about workers name, of nvidia-smi, of finish, and of every program.
OTHER_PROGRAMS = {
    "--memory-limit",
    "--query-gpu",
    "--format",
    "--help",
    "--version",
    "--gpu",
    "--table",
}
# Arguments of public names that are not functions of the package.
METHODS = ("Graph",)
OF_PANDAS = {"copy"}


def texts_of(path):
    """Texts of a module that are no docstrings, those with values in them as one."""
    tree = tree_of(path)
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def errors_in(path):
    """Texts within ``raise`` statements of a module."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Raise) and node.exc is not None:
            parts = [part.value for part in ast.walk(node.exc) if isinstance(part, ast.Constant)]
            yield node.lineno, " ".join(part for part in parts if isinstance(part, str))


def known_options():
    programs = [
        command_line.parser(),
        verify.parser(),
        extremes_program.parser(),
        assignment_program.parser(),
        serve.parser(),
    ]
    known = {name for program in programs for name in program._option_string_actions}
    return known | {"--hash-weights"} | OTHER_PROGRAMS


def known_arguments():
    functions = [getattr(kepler_traverse, name) for name in kepler_traverse.__all__]
    functions += [
        method
        for name in METHODS
        for _, method in inspect.getmembers(getattr(kepler_traverse, name), callable)
    ]
    functions += [
        *(getattr(csgraph, name) for name in csgraph.__all__),
        pyg.AddShortestPathEncoding.__init__,
    ]
    functions += [extremes.extremes, extremes.top_closeness, assignment.assign]
    functions += [planning.read_omx, planning.write_omx]
    found = set(OF_PANDAS)
    for function in functions:
        try:
            found |= set(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            continue
    return found


def test_every_option_that_the_job_names_exists():
    known, resumes = known_options(), 0
    for path in MESSAGES["pipelines"]:
        for line, text in texts_of(path):
            resumes += "--resume" in text
            if "var(--" in text:  # variables of a style sheet
                continue
            for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*[a-z](?![\w-])", text):
                assert flag in known, f"{path.name}:{line} names {flag}"
    assert resumes > 5  # some are there to be checked
    assert "--memory-limit" in known
    assert "--frobnicate" not in known


def test_every_argument_that_an_error_of_the_library_names_exists():
    known, advised = known_arguments(), 0
    for path in MESSAGES["kepler_traverse"]:
        for line, text in errors_in(path):
            advised += "predecessors=True" in text
            for name in re.findall(r"(?<![\w.])([a-z][a-z_]+)=(?=['\"\w{]|[\s,;)]|$)", text):
                assert name in known, f"{path.name}:{line} advises {name}="
            assert not re.search(r"(?<![\w-])--[a-z]", text), (
                f"{path.name}:{line} names an option, and has no command line"
            )
    assert advised
    assert {"predecessors", "result", "unreached", "targets"} <= known


@pytest.mark.parametrize("search", ["bfs", "sssp", "bfs_many", "sssp_many"])
def test_advice_of_paths_works_with_the_search_that_was_made(search):
    graph = kepler_traverse.graph_from_edges(
        np.array([1, 2]), np.array([2, 3]), np.array([1.0, 1.0])
    )
    call = getattr(kepler_traverse, search)
    is_many = search.endswith("many")
    sources = [1] if is_many else 1
    without = call(graph, sources) if is_many else call(graph, sources, predecessors=False)
    with pytest.raises(InputError) as caught:
        kepler_traverse.paths(without, [3])
    advised = {"predecessors": True, "result": "predecessors"}
    named = {
        name: advised[name] for name in re.findall(r"(\w+)=", str(caught.value)) if name in advised
    }
    usable = {
        name: value for name, value in named.items() if name in inspect.signature(call).parameters
    }
    assert usable, f"{search} takes nothing of what is advised: {caught.value}"
    assert kepler_traverse.paths(call(graph, sources, **usable), [3]).vertex.tolist() == [1, 2, 3]


def test_compare_names_the_options_that_it_has():
    with pytest.raises(
        options.UsageError, match="unknown option --hash-weight; did you mean --hash-weights"
    ):
        compare.parser().parse_args(["edges.csv", "--hash-weight"])
