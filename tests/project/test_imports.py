"""No circle of imports: each module can be read, imported and tested after those that it imports."""

import ast
import functools
import importlib.util
import sys
from pathlib import Path

import pytest

from tests.support.import_graph import find_circle, import_graph
from tests.support.processes import ran

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("kepler_traverse", "pipelines", "scripts", "tests")


def test_imports_form_no_circle():
    graph = import_graph(ROOT, FOLDERS)
    assert len(graph) > 300
    assert {"kepler_traverse.graph", "kepler_traverse.search.query"} <= graph[
        "kepler_traverse.search.plan"
    ]
    assert "kepler_traverse.search.plan" in graph["kepler_traverse.multi_source.entry_points"]
    assert find_circle(graph) == []


def late_imports(text: str) -> set[tuple[str, str]]:
    """Return the modules and names that functions of a module import from our folders."""
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    found = (inner for function in functions for inner in ast.walk(function))
    return {
        (node.module, alias.name)
        for node in found
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(FOLDERS)
        for alias in node.names
    }


@functools.cache
def names_of(module: str) -> set[str]:
    """Return the names that a module has at its top level, without importing it; a package may make some when asked."""
    spec = importlib.util.find_spec(module)
    if spec.submodule_search_locations:
        of_files = {path.stem for path in Path(spec.origin).parent.iterdir()}
        return of_files | set(dir(importlib.import_module(module)))
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    nodes = [inner for node in tree.body for inner in [node, *getattr(node, "body", ())]]
    names = {getattr(node, "name", "") for node in nodes}
    names |= {name.id for node in nodes for name in ast.walk(node) if isinstance(name, ast.Name)}
    imports = (node.names for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return names | {alias.asname or alias.name for each in imports for alias in each}


def is_there(module: str, name: str) -> bool:
    try:
        return name in names_of(module)
    except (ModuleNotFoundError, AttributeError):
        return False


def test_names_that_functions_of_scripts_import_are_there():
    imports = {
        each
        for path in (ROOT / "scripts").rglob("*.py")
        for each in late_imports(path.read_text(encoding="utf-8"))
    }
    assert len(imports) > 30
    assert [each for each in sorted(imports) if not is_there(*each)] == []
    wrong = "def f():\n    from scripts.pages import nothing\n    from scripts.pages import put"
    assert [each[1] for each in late_imports(wrong) if not is_there(*each)] == ["nothing"]


CIRCLES = {
    "from a module": {
        "a.py": "from pkg.b import x",
        "b.py": "from pkg.c import x",
        "c.py": "from pkg.a import x",
    },
    "relative": {"a.py": "from . import b", "b.py": "from .a import x"},
    "of two packages": {
        "one/__init__.py": "from ..two import x",
        "two/__init__.py": "import pkg.one",
    },
    "with the package itself": {"__init__.py": "from .a import x", "a.py": "from . import y"},
    "below a condition": {
        "a.py": "try:\n    import pkg.b\nexcept ImportError:\n    pass",
        "b.py": "class B:\n    import pkg.a",
    },
    "in a function": {"a.py": "def f():\n    from .b import x", "b.py": "from .a import x"},
    "for hints alone": {
        "a.py": "if TYPE_CHECKING:\n    from .b import x",
        "b.py": "from .a import x",
    },
}
NO_CIRCLES = {
    "a package and its module": {
        "__init__.py": "from .a import x",
        "a.py": "from .b import x",
        "b.py": "import pkg.c",
    },
    "a diamond": {
        "a.py": "from . import b, c",
        "b.py": "from . import d",
        "c.py": "from . import d",
        "d.py": "x = 1",
    },
}


def circle_of(folder: Path, files: dict[str, str]) -> list[str]:
    for name, text in {"__init__.py": "", "c.py": "", **files}.items():
        file = folder / "pkg" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return find_circle(import_graph(folder, ("pkg",)))


@pytest.mark.parametrize("name", CIRCLES)
def test_find_circle_names_the_modules_of_a_circle(tmp_path, name):
    circle = circle_of(tmp_path, CIRCLES[name])
    assert circle[0] == circle[-1]
    expected = {
        "pkg." + file.removesuffix(".py").removesuffix("/__init__") for file in CIRCLES[name]
    }
    assert {module if module != "pkg" else "pkg.__init__" for module in circle} == expected


def test_find_circle_lists_each_module_before_the_one_that_it_imports(tmp_path):
    circle = circle_of(tmp_path, CIRCLES["from a module"])
    assert "-".join(circle).replace("pkg.", "") in ("a-b-c-a", "b-c-a-b", "c-a-b-c")


@pytest.mark.parametrize("name", NO_CIRCLES)
def test_find_circle_accepts_imports_without_a_circle(tmp_path, name):
    assert circle_of(tmp_path, NO_CIRCLES[name]) == []


def test_importing_the_library_imports_nothing_large_before_it_is_used():
    code = (
        "import sys, kepler_traverse; early = {'numpy', 'numba', 'pyarrow'} & set(sys.modules); "
        # which would set these names to modules
        "import kepler_traverse.bfs.registry, kepler_traverse.sssp.registry; "
        "print(sorted(early), kepler_traverse.bfs.__name__, kepler_traverse.sssp.__name__)"
    )
    done = ran([sys.executable, "-c", code])
    assert done.stdout.split() == ["[]", "bfs", "sssp"], done.stderr


def test_every_public_name_is_there():
    import kepler_traverse

    assert set(kepler_traverse.__all__) <= set(dir(kepler_traverse))
    assert [name for name in kepler_traverse.__all__ if not hasattr(kepler_traverse, name)] == []
    assert callable(kepler_traverse.bfs)
    with pytest.raises(AttributeError, match="no attribute 'bfs_all'"):
        _ = kepler_traverse.bfs_all
