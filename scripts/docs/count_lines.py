"""Lines of code of a strategy: its plan, the code that the plan reaches in its algorithm's folder, and its kernels.

Blank lines, comments and docstrings do not count. Shared code does not count either: the drivers (host_loop.py),
``tuning.py``, ``params.py``, ``cuda/``, ``cpu/`` and the headers ``kt/``.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
import tokenize
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from kepler_traverse.bfs.host_loop import LevelLoop
from kepler_traverse.cuda.kernel_spec import Entry
from kepler_traverse.sssp.host_loop import RoundLoop

OWNERS = ("kepler_traverse.bfs", "kepler_traverse.sssp", "kepler_traverse.published")
SHARED = ("host_loop", "tuning", "params")
_SILENT = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def is_own(module: str) -> bool:
    return module in OWNERS or module.startswith(tuple(f"{owner}." for owner in OWNERS))


def names_in(code: CodeType) -> set[str]:
    """Return the names that a function looks up, including those of nested functions."""
    inner = (names_in(constant) for constant in code.co_consts if isinstance(constant, CodeType))
    return set(code.co_names).union(*inner)


def used_by(function: FunctionType) -> list:
    """Return what a function can reach by a name, an attribute of a module, its closure or a default."""
    names = names_in(function.__code__)
    found = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [value for value in found if isinstance(value, ModuleType) and is_own(value.__name__)]
    found += [vars(module)[name] for module in modules for name in names if name in vars(module)]
    found += [cell.cell_contents for cell in function.__closure__ or ()]
    return found + list(function.__defaults__ or ())


def function_of(member):
    """The function behind a member of a class."""
    # property, cached_property, staticmethod and classmethod
    for wrapping in ("fget", "func", "__func__"):
        member = getattr(member, wrapping, None) or member
    return member


def reached(plan) -> tuple[set, set[Entry]]:
    """The functions and classes of strategies that a plan reaches, and the kernels."""
    definitions = set()
    kernels = set()
    seen = set()
    waiting = [plan]
    while waiting:
        value = waiting.pop()
        value = getattr(value, "py_func", value)  # functions compiled by Numba
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Entry):
            kernels.add(value)
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += value
        elif isinstance(value, LevelLoop | RoundLoop):
            waiting += [*vars(value).values(), type(value).__call__]
        elif isinstance(value, partial):
            waiting += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, FunctionType | type) and is_own(value.__module__):
            definitions.add(value)
            if isinstance(value, FunctionType):
                waiting += used_by(value)
            else:
                waiting += [*value.__bases__, *map(function_of, vars(value).values())]
    return definitions, kernels


@cache
def lines_with_code(path: Path) -> frozenset[int]:
    """Numbers of the lines of a Python file that hold more than comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    numbers = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            numbers.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            numbers.difference_update(range(node.lineno, node.end_lineno + 1))
    return frozenset(numbers)


@cache
def lines_of(code: CodeType | type) -> range:
    """Return the numbers of the lines of a class, or of the code of a function."""
    lines, first = inspect.getsourcelines(code)
    return range(first, first + len(lines))


def host_lines(definitions: set) -> int:
    """Return the number of lines of these functions and classes; nested ones count once."""
    numbers = set()
    for value in definitions:
        if value.__module__.rpartition(".")[2] in SHARED:
            continue
        code = getattr(value, "__code__", value)
        path = Path(inspect.getsourcefile(code) or "")
        if path.stem != value.__module__.rpartition(".")[2]:
            continue  # created by a decorator
        numbers |= {(path, number) for number in lines_of(code) if number in lines_with_code(path)}
    return len(numbers)


def kernel_lines(kernels: set[Entry]) -> int:
    """Return the number of lines of the kernels' files without entry points of other strategies."""
    count = 0
    for path in {kernel.file for kernel in kernels}:
        text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        mine = {kernel.name for kernel in kernels if kernel.file == path}
        for entry in re.findall(r'^extern "C".*?^}$', text, re.MULTILINE | re.DOTALL):
            if not any(re.search(rf"\b{name}\(", entry) for name in mine):
                text = text.replace(entry, "")
        count += sum(bool(re.sub(r"//.*", "", line).strip()) for line in text.splitlines())
    return count


def lines_of_code(plan) -> tuple[int, int]:
    """Return the lines of Python and of CUDA C++ that a strategy's ``plan`` uses, alone or with some other strategies."""
    definitions, kernels = reached(plan)
    return host_lines(definitions), kernel_lines(kernels)
