"""What plug-ins may use, and what becomes of those that cannot be used."""

import ast
import doctest
import inspect
import os
import re
import shutil
import sys
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import (
    InputError,
    StrategyError,
    bfs_many,
    extend,
    graph_from_edges,
    strategies,
)
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from kepler_traverse.plugins import VARIABLE
from pipelines.cli.options import _unfit_option
from tests.support.processes import ROOT, ran, ran_after

EXAMPLES = sorted((ROOT / "examples").glob("*_plugin.py"))
GRAPH = graph_from_edges(pd.DataFrame({"src": [1, 2], "dst": [2, 3]}))


# What is public


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_of_a_plugin_imports_public_modules_only(path):
    imports = [
        node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
    ]
    ours = {node.module for node in imports if node.module.partition(".")[0] == "kepler_traverse"}
    assert ours == {"kepler_traverse", "kepler_traverse.extend"}


def test_the_names_for_plugins_are_sorted_and_documented():
    assert sorted(extend.__all__, key=lambda name: (name[0].islower(), name)) == extend.__all__
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   extend\.(\w+)$", page, re.MULTILINE))
    types_alone = {"KindName", "MultiSourceSearch", "Search", "Traversals", "Values"}
    assert listed == set(extend.__all__) - types_alone
    for name in listed:
        assert inspect.getdoc(getattr(extend, name)), name
    assert doctest.testmod(extend).failed == 0


def test_an_option_has_a_default_and_facts_for_its_flag():
    class Options(extend.KindOptions):
        __annotations__ = {"size": int}
        size = extend.option(4, help="a size", least=1, example=5, in_library=False, in_job=False)

    (field,) = fields(dataclass(frozen=True, kw_only=True)(Options))
    assert field.default == 4
    assert field.metadata == {
        "help": "a size", "least": 1, "example": 5, "library": False, "job": False
    }  # fmt: skip


def test_a_call_is_refused_by_a_rule_of_a_plugin(monkeypatch):
    @dataclass(frozen=True, kw_only=True)
    class Options(extend.KindOptions):
        constraints = (
            extend.Constraint(
                names=("size", "width"),
                violated=lambda given: given.is_given("size") and not given.is_given("width"),
                why="{0} needs {width}",
                remedy="give both",
            ),
        )
        size: int = extend.option(1, help="a size")
        width: int = extend.option(1, help="a width")

    kind = extend.ResultKind(name="own", means="m", columns=("source",), options_class=Options)
    monkeypatch.setitem(RESULT_KINDS, "own", kind)
    with pytest.raises(InputError, match=r"^size needs width; give both$"):
        bfs_many(GRAPH, [1], result="own", size=3)


def test_a_call_is_refused_that_lacks_what_a_kind_of_a_plugin_needs(monkeypatch):
    @dataclass(frozen=True, kw_only=True)
    class Options(extend.KindOptions):
        size: int | None = extend.option(None, help="a size")

    def no_records(*_):
        return extend.SourceRecords({}, np.zeros(1, np.int64))

    kind = extend.ResultKind(
        name="own",
        means="m",
        columns=("source",),
        options_class=Options,
        needs=("size",),
        make_records=no_records,
        make_columns=lambda *_: {},
    )
    monkeypatch.setitem(RESULT_KINDS, "own", kind)
    for given in ({}, {"size": None}):
        with pytest.raises(InputError, match=r"^result='own' needs size$"):
            bfs_many(GRAPH, [1], result="own", **given)
    assert len(bfs_many(GRAPH, [1], result="own", size=3)) == 0


# Plug-ins that cannot be used

KIND = """
from dataclasses import dataclass, field
from kepler_traverse.extend import KindOptions, ResultKind, option

@dataclass(frozen=True, kw_only=True)
class Options(KindOptions):
    {field}

KINDS = (ResultKind(name={name!r}, means="m", columns=("source", "a"), options_class=Options),)
"""
STRATEGY = """
from kepler_traverse.extend import Strategy

def made(name):
    return Strategy(name=name, device="cpu", plan=print, memory=print, paper="", rationale="")

STRATEGIES = {strategies}
"""
FINE = "size: int = option(1, help='a size')"
BROKEN = {
    "is_not_there": (None, "cannot be imported: No module named"),
    "needs_another": ("import no_such_package", "cannot be imported: No module named"),
    "raises": ("raise ValueError('one\\ntwo')", "cannot be imported: ValueError: one two"),
    "is_no_python": ("def f(:", "cannot be imported: SyntaxError"),
    "exits": ("raise SystemExit(3)", "cannot be imported: SystemExit: 3"),
    "has_nothing": ("x = 1", "has neither KINDS nor STRATEGIES"),
    "lists_no_kinds": ("KINDS = 5", "has KINDS that are no tuple of ResultKind, but 5"),
    "takes_a_kind": (KIND.format(name="summary", field=FINE), "'summary', and there is one"),
    "takes_a_kind_of_the_job": (KIND.format(name="extremes", field=FINE), "and there is one"),
    "has_no_default": (KIND.format(name="k", field="size: int"), "needs a default for each field"),
    "has_no_help": (KIND.format(name="k", field="size: int = 3"), "a field 'size' without help"),
    "maps_nothing": ("STRATEGIES = [1]", "has STRATEGIES that are no mapping"),
    "has_another_algorithm": (
        STRATEGY.format(strategies="{'dfs': (made('own'),)}"),
        "has STRATEGIES of 'dfs'; the algorithms are 'bfs' and 'sssp'",
    ),
    "lists_no_strategies": ("STRATEGIES = {'bfs': ('x',)}", "STRATEGIES['bfs'] that are no tuple"),
    "has_one_twice": (
        STRATEGY.format(strategies="{'bfs': (made('own'), made('own'))}"),
        "has a strategy 'own', and there is one",
    ),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with plug-ins in which the test runs."""
    for name, (text, _) in BROKEN.items():
        if text is not None:
            (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", BROKEN)
def test_a_plugin_that_cannot_be_used_is_named_after_what_is_not_known(monkeypatch, name):
    monkeypatch.setenv(VARIABLE, name)
    expected = re.escape(BROKEN[name][1])
    with pytest.raises(InputError, match=rf"^result='summry'.*; the plug-in '{name}' .*{expected}"):
        bfs_many(GRAPH, [1], result="summry")
    with pytest.raises(
        StrategyError, match=rf"^no strategy 'heep'.*'{name}' .*{expected}"
    ) as caught:
        bfs_many(GRAPH, [1], strategy="heep")
    assert "\n" not in str(caught.value)
    assert VARIABLE in str(caught.value)
    with pytest.raises(InputError, match=rf"^the plug-in '{name}' .*{expected}"):
        strategies()
    assert len(bfs_many(GRAPH, [1], result="summary", strategy="bit_parallel")) == 1


def test_a_plugin_that_is_corrected_can_be_used_at_once(folder, monkeypatch):
    monkeypatch.setenv(VARIABLE, "late")
    with pytest.raises(StrategyError, match="'late' cannot be imported"):
        bfs_many(GRAPH, [1], strategy="of_late")
    (folder / "late.py").write_text(STRATEGY.format(strategies="{'bfs': (made('of_late'),)}"))
    import importlib

    importlib.invalidate_caches()
    assert "of_late" in set(strategies()["name"])
    del sys.modules["late"]


def test_others_work_beside_a_plugin_that_cannot_be_used(folder, monkeypatch):
    text = STRATEGY.format(strategies="{'bfs': (made('works'),)}")
    needs = 'rationale="", needs=frozenset({"weights"})'
    (folder / "works.py").write_text(text.replace('rationale=""', needs))
    monkeypatch.setenv(VARIABLE, "raises,works")
    with pytest.raises(StrategyError, match=r"^strategy 'works' needs weights") as caught:
        bfs_many(GRAPH, [1], strategy="works")
    assert "raises" not in str(caught.value)


# Kinds that the library can have, and the job cannot
OF_JOB = {
    "is_a_setting": ("output: int = option(1, help='x')", "whose option 'output' is already there"),
    "is_an_option": ("decay: int = option(1, help='x')", "whose option 'decay' is already there"),
    "has_no_flag": ("size: set = option(None, help='x')", "'size' has a type that no flag has"),
}


# The outputs of several command lines of one process, which sees a plug-in.
COMMANDS = """
import sys, shlex
from pipelines.batch_sources import main
from pipelines.verify import main as verify
for line in sys.argv[1:]:
    program, *words = shlex.split(line)
    print('code', {'run': main, 'verify': verify}[program](words), file=sys.stderr)
"""
LINES = (
    "run --help",
    "run edges.csv --sources 1 --output out",
    "run edges.csv --sources 1 --output out --result summry",
    "run own --help",
    "verify out edges.csv",
)


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    """By the name of a plug-in that the job cannot use: the error that is expected, what was said, and the folder."""
    texts = {"raises": BROKEN["raises"]}
    field, problem = OF_JOB["has_no_flag"]
    texts["has_no_flag"] = KIND.format(name="own", field=field), problem
    folders = [tmp_path_factory.mktemp(name) for name in texts]
    scripts = []
    for (name, (text, _)), folder in zip(texts.items(), folders, strict=True):
        (folder / f"{name}.py").write_text(text)
        (folder / "edges.csv").write_text("src,dst\n1,2\n")
        environment = {**os.environ, VARIABLE: name, "PYTHONPATH": f"{folder}:{ROOT}"}
        scripts.append((COMMANDS, LINES, {"env": environment, "cwd": folder}))
    shared = "import numba, numpy, pandas, pyarrow.dataset, pyarrow.parquet"
    done = ran_after(shared, tmp_path_factory.mktemp("outputs"), *scripts)
    return {
        name: (problem, each, folder)
        for (name, (_, problem)), each, folder in zip(texts.items(), done, folders, strict=True)
    }


@pytest.mark.parametrize("name", OF_JOB)
def test_a_kind_that_the_job_cannot_have_is_known_by_its_options(name):
    field, problem = OF_JOB[name]
    scope = {}
    exec(KIND.format(name="own", field=field), scope)
    (kind,) = scope["KINDS"]
    assert problem in _unfit_option(kind)


@pytest.mark.parametrize("name", ["raises", "has_no_flag"])
def test_the_job_refuses_a_plugin_by_one_line(refusals, name):
    problem, done, folder = refusals[name]
    assert "Traceback" not in done.stderr
    stdout, said = done.stdout, re.split(r"code (\d+)\n", done.stderr)
    assert "usage" in stdout
    help_said, help_code, run_said, run_code, kind_said, kind_code, *_ = said
    assert (help_code, run_code, kind_code) == ("0", "2", "2")
    assert help_said.startswith("note: ")
    assert run_said.startswith("error: ")
    for text in (help_said, run_said, said[6], said[8]):
        assert text.count("\n") == 1
        assert problem in text
    assert (said[7], said[9]) == ("2", "2")
    assert "invalid choice: 'summry'" in kind_said
    assert problem in kind_said
    assert not (folder / "out").exists()


@pytest.mark.exhaustive  # as tests/job/test_command_lines.py without a run
def test_an_example_is_taken_from_the_current_folder(tmp_path):
    """As docs/plugins.md says, by the program of an installation, whose path has no current folder."""
    shutil.copy(ROOT / "examples" / "farthest_plugin.py", tmp_path)
    (tmp_path / "roads.csv").write_text("src,dst\n1,2\n2,3\n")
    program = (
        "import sys; sys.path[:] = [one for one in sys.path if one]; "
        "from kepler_traverse.pipelines.__main__ import main; sys.exit(main())"
    )
    line = "run roads.csv --sources 1 --result farthest --n-farthest 2 --output out"
    done = ran(
        [sys.executable, "-c", program, *line.split()],
        env={**os.environ, VARIABLE: "farthest_plugin", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    found = pd.concat(map(pd.read_parquet, sorted((tmp_path / "out").glob("part-*"))))
    assert found["vertex"].tolist() == [3, 2]
