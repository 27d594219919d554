"""The imports between modules, read from the source files."""

import ast
import functools
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path


def import_graph(root: Path, folders: tuple[str, ...]) -> dict[str, set[str]]:
    """Map each module below some folders to the modules there that it imports, in functions and for type hints, too.

    The import of a package that the import of its module implies is left out.
    """
    paths = {
        _module_name(root, path): path
        for folder in folders
        for path in sorted((root / folder).rglob("*.py"))
    }
    return {name: set(_imports(name, path, paths.keys())) for name, path in paths.items()}


def find_circle(graph: dict[str, set[str]]) -> list[str]:
    """Return a circle of imports as a list that begins and ends with the same module, or an empty list without one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[::-1]  # from the module that imports to the one that is imported
    return []


def tree_of(path: Path) -> ast.Module:
    """Return the syntax tree of a file. Several tests walk through the same one."""
    return _parse(path, path.stat().st_mtime_ns)


@functools.lru_cache(1000)
def _parse(path: Path, _changed: int) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def statements_of(path: Path) -> Iterator[ast.AST]:
    """Yield the statements of a module, also those of functions and classes; most of its nodes are in expressions."""
    unread: list[ast.AST] = [tree_of(path)]
    while unread:
        node = unread.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            unread += getattr(node, field, ())


def _module_name(root: Path, path: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name: str, path: Path, modules) -> Iterator[str]:
    """Yield which of the modules a module imports, or from which it imports names."""
    package = name.split(".")
    if path.name != "__init__.py":
        package.pop()
    for node in statements_of(path):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join(filter(None, [*above, node.module]))
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                names.append(inner if inner in modules else source)
        yield from (each for each in names if each in modules)
