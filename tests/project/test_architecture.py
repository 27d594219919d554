"""Rules of the architecture that a program can check; docs/overview.md has the reasons."""

import ast
import doctest
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import kepler_traverse
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS_MULTI_SOURCE
from kepler_traverse.search.strategy import WHY_NOT
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP_MULTI_SOURCE
from tests.support.import_graph import statements_of, tree_of
from tests.support.plans import BFS, SSSP
from tests.support.processes import ran, skip_without_repository

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = sorted((ROOT / "kepler_traverse").rglob("*.py"))
PYTHON = sorted(
    path
    for folder in ("kepler_traverse", "pipelines", "scripts", "tests", "examples")
    for path in (ROOT / folder).rglob("*.py")
)
KERNELS = sorted(
    [*(ROOT / "kepler_traverse").rglob("*.cu"), *(ROOT / "kepler_traverse").rglob("*.cuh")]
)
STRATEGIES = [("bfs", strategy) for strategy in BFS] + [("sssp", strategy) for strategy in SSSP]

# Names that do not describe the contents.
EMPTY_NAMES = {
    "utils", "util", "helpers", "helper", "common", "misc", "core", "base", "manager", "handler", "tools", "stuff",
}  # fmt: skip
# with another word they say something: common_type
EMPTY_FUNCTION_NAMES = EMPTY_NAMES - {"common", "core", "base"}


def relative(path):
    return path.relative_to(ROOT).as_posix()


def words_of(name):
    return set(re.split(r"[_.]", name.lower()))


def functions_in(path):
    return [
        node
        for node in statements_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def public_functions():
    for name in kepler_traverse.__all__:
        if inspect.isfunction(getattr(kepler_traverse, name)):
            yield name


def test_modules_to_check_exist():
    assert len(LIBRARY) > 15
    assert list(public_functions())
    assert STRATEGIES


def test_a_file_is_named_after_what_is_in_it():
    for path in [*PYTHON, *KERNELS]:
        assert not words_of(path.name) & EMPTY_NAMES, relative(path)
        assert not re.search(r"[a-z]\d+$", path.stem), (
            f"{relative(path)} is numbered; name it by its mechanism"
        )


def test_functions_and_classes_have_names_that_say_something():
    for path in LIBRARY:
        named = [
            node.name
            for node in statements_of(path)
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        ]
        assert [
            name
            for name in named
            if words_of(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)) & EMPTY_FUNCTION_NAMES
        ] == [], relative(path)
        assert [name for name in named if name.endswith("_of") and name != "one_of"] == [], (
            relative(path)
        )


def test_a_library_module_says_what_it_is_for():
    for path in LIBRARY:
        tree = tree_of(path)
        assert not tree.body or ast.get_docstring(tree), f"{relative(path)} has no docstring"


def test_device_code_lives_in_cu_files_only():
    for path in [path for path in PYTHON if "tests" not in path.parts]:
        assert "__global__" not in path.read_text(encoding="utf-8"), relative(path)


def test_the_library_neither_prints_nor_reads_the_environment():
    for path in LIBRARY:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id != "print", f"{relative(path)}:{node.lineno} prints"
            # where compiled code and copies are kept, and which plug-ins there are, the environment says
            if isinstance(node, ast.Attribute) and path.name not in (
                "kernel_cache.py",
                "numba_cache.py",
                "object_stores.py",
                "plugins.py",
            ):
                assert node.attr not in {"environ", "getenv"}, (
                    f"{relative(path)}:{node.lineno} reads the environment"
                )


def test_strategy_names_are_compared_nowhere_else():
    names = {name for _, strategy in STRATEGIES for name in (strategy.name, *strategy.aliases)}
    for path in [path for path in LIBRARY if path.name != "strategy.py"]:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Compare):
                compared = [node.left, *node.comparators]
                literals = {part.value for part in compared if isinstance(part, ast.Constant)}
                asked = {getattr(part, "id", getattr(part, "attr", "")) for part in compared}
                assert not (literals & names and asked & {"strategy", "name"}), (
                    f"{relative(path)}:{node.lineno}"
                )


@pytest.mark.parametrize(
    ("algorithm", "strategy"), STRATEGIES, ids=lambda value: getattr(value, "name", value)
)
def test_every_strategy_says_where_it_comes_from_and_what_it_teaches(algorithm, strategy):
    assert strategy.paper, f"{algorithm} {strategy.name} names no origin"
    assert strategy.rationale, f"{algorithm} {strategy.name} says nothing"
    assert strategy.device in ("cpu", "cuda")
    assert strategy.needs <= set(WHY_NOT)


@pytest.mark.parametrize(
    "strategies",
    [BFS, SSSP, BFS_MULTI_SOURCE, SSSP_MULTI_SOURCE],
    ids=["bfs", "sssp", "bfs_many", "sssp_many"],
)
def test_every_strategy_says_how_much_work_it_is(strategies):
    assert [
        strategy.name
        for strategy in strategies
        if not strategy.complexity.startswith(("O(", "S times", "that of"))
    ] == []


@pytest.mark.parametrize("strategies", [BFS, SSSP], ids=["bfs", "sssp"])
def test_names_of_strategies_are_unique_on_a_device_and_each_device_has_a_default(strategies):
    names = [
        (strategy.device, name)
        for strategy in strategies
        for name in (strategy.name, *strategy.aliases)
    ]
    assert len(names) == len(set(names))
    assert {strategy.device for strategy in strategies if strategy.default} == {"cpu", "cuda"}


def test_everything_imports_without_cupy_and_without_loading_data_frames():
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for folder in ("kepler_traverse", "pipelines")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != "__main__.py"
    ]
    code = (
        "import importlib, sys\n"
        "sys.modules.update(cupy=None, cudf=None, cugraph=None)\n"
        "import kepler_traverse\n"
        "heavy = {'pandas', 'dask', 'distributed', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "import pipelines.worker.plugin\n"
        "assert 'pydantic' not in sys.modules\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "assert not kepler_traverse.cuda.available()\n"
    )
    done = ran([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", kepler_traverse.__all__)
def test_a_public_name_is_documented(name):
    assert inspect.getdoc(getattr(kepler_traverse, name))


@pytest.mark.parametrize("name", list(public_functions()))
def test_the_docstring_of_a_public_function_tells_parameters_and_result(name):
    function = getattr(kepler_traverse, name)
    text = own = inspect.getdoc(function)
    # "As ``bfs``" hands on to a function that is documented in full.
    for other in re.findall(r"(?:As|Parameters are those of) ``(\w+)``", own):
        text += inspect.getdoc(getattr(kepler_traverse, other))
    parameters = list(inspect.signature(function).parameters)
    assert [parameter for parameter in parameters if not re.search(rf"\b{parameter}\b", text)] == []
    assert not parameters or "Parameters\n-----" in text
    tells_result = "Returns\n-----" in own or "Yields\n-----" in own
    assert (
        tells_result or inspect.signature(function).return_annotation is not inspect.Signature.empty
    )


@pytest.mark.parametrize("name", kepler_traverse.__all__)
def test_examples_of_public_names_run(name):
    value = getattr(kepler_traverse, name)
    names = {public: getattr(kepler_traverse, public) for public in kepler_traverse.__all__} | {
        "np": np
    }
    tests = doctest.DocTestFinder(recurse=True).find(
        value, name, module=inspect.getmodule(value), extraglobs=names
    )
    results = [
        doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test) for test in tests
    ]
    assert sum(result.failed for result in results) == 0


def test_the_public_names_are_sorted_and_few():
    assert list(kepler_traverse.__all__) == sorted(kepler_traverse.__all__)
    assert len(kepler_traverse.__all__) <= 43


def test_the_job_keeps_no_compiled_code():
    """An installation has it in another place, and compiled code that is loaded names its modules."""
    assert [
        relative(path)
        for path in (ROOT / "pipelines").rglob("*.py")
        if "cache=True" in path.read_text()
    ] == []


def test_the_root_of_the_library_holds_few_modules():
    modules = [path.name for path in LIBRARY if path.parent.name == "kepler_traverse"]
    assert 0 < len(modules) <= 15, modules


def test_a_graph_has_few_public_members_beside_its_arrays():
    arrays = set(inspect.signature(kepler_traverse.Graph).parameters)
    members = {name for name in vars(kepler_traverse.Graph) if not name.startswith("_")} - arrays
    assert len(members) <= 16, sorted(members)


def test_the_name_of_a_test_is_a_sentence():
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        named = [node.name for node in functions_in(path) if node.name.startswith("test_")]
        assert [name for name in named if len(name.split("_")) < 4] == [], relative(path)


def test_children_of_tests_are_started_by_two_modules():
    """Which start with default signals and end with the test, as new programs or as forks; the
    harness calls compilers.
    """
    found = [
        relative(path)
        for path in (ROOT / "tests").rglob("*.py")
        if re.search("^import subprocess", path.read_text(), re.M)
    ]
    assert sorted(found) == [
        "tests/kernels/simt/harness.py",
        "tests/support/forks.py",
        "tests/support/processes.py",
    ]


# What writes a file, and a name that says where: a partial file takes the place of the one before.
_WRITES = re.compile(r"\.write_(text|bytes)\(|write_table\(|\bopen\([^)]*[\"'][wxa]b?[\"']")
_WRITES_WHOLE = re.compile(r"\bpartial\b|\btemporary\b")
# Files that are deleted again, devices, and what writes into an open file.
_WRITES_OTHERS = {
    "kepler_traverse/graph/read.py",
    "kepler_traverse/graph/storage.py",
    "kepler_traverse/formats/omx.py",
    "pipelines/cli/terminal.py",
    "pipelines/output/row_groups.py",
    "pipelines/output/run_folder.py",
    "pipelines/output/tables.py",
    "pipelines/scheduling/existing_cluster.py",
    "pipelines/warm.py",
}


def test_a_file_takes_the_place_of_another_whole():
    found = {
        (relative(path), line.strip())
        for path in [*LIBRARY, *(ROOT / "pipelines").rglob("*.py")]
        for line in path.read_text().splitlines()
        if _WRITES.search(line) and not _WRITES_WHOLE.search(line)
    }
    wrong = {each for each in found if each[0] not in _WRITES_OTHERS}
    assert wrong == set(), "write within regular_files.replacing or written_whole"


# Waits whose locks an interrupt of the main thread may leave held.
_WAITS = re.compile(r"\b(Thread|Timer|Condition|Event|Semaphore|ThreadPoolExecutor|Future|Queue)\(")
# The helper; what other threads than the main one use, which no signal interrupts; and CUDA's events.
_KEEPS_WAITS = {
    "kepler_traverse/_uninterrupted.py",
    "kepler_traverse/bfs/multi_source/bit_parallel_streamed.py",
    "pipelines/serve.py",
    "pipelines/worker/writer_pool.py",
}


def test_the_main_thread_waits_by_what_an_interrupt_leaves_free():
    paths = [*LIBRARY, *(ROOT / "pipelines").rglob("*.py")]
    found = {relative(path) for path in paths if _WAITS.search(path.read_text())}
    assert found - _KEEPS_WAITS == set(), "take Threads, Answer or start of _uninterrupted.py"


def test_files_in_git_are_small():
    skip_without_repository()
    done = ran(["git", "ls-files", "-z"])
    sizes = {
        name: (ROOT / name).stat().st_size
        for name in done.stdout.split("\0")
        if name and (ROOT / name).exists()
    }
    assert {name: size for name, size in sizes.items() if size > 300_000} == {}
