"""The mutations of scripts/mutation: one change in one line at a time."""

from __future__ import annotations

import ast
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.pages import listed

ROOT = Path(__file__).resolve().parents[2]

_LISTED = listed(__file__)
SWAPS: list[tuple[re.Pattern, str]] = [(re.compile(old), new) for old, new in _LISTED["swaps"]]
PYTHON: list[str] = _LISTED["python"]
OPERATORS = {getattr(ast, old): getattr(ast, new) for old, new in _LISTED["operators"].items()}
# A statement of one line that has an effect and declares nothing.
STATEMENT = re.compile(
    r"^( *(?:if \(.*\) |for \(.*\) )?)((?:[\w:.]+\(.*\)|[\w.]+(?:\[.*\])? = .*);)$"
)


@dataclass(frozen=True)
class Mutant:
    file: str
    line: int
    before: str
    after: str

    @property
    def change(self) -> str:
        return f"`{_shown(self.before)}` to `{_shown(self.after)}`"


def _shown(line: str) -> str:
    return (
        " ".join(line.split()).replace("|", "\\|").replace("`", "'").replace("](", "] (")
        or "nothing"
    )


def kernel_files() -> list[Path]:
    package = ROOT / "kepler_traverse"
    return sorted([*package.rglob("*.cu"), *package.rglob("*.cuh")])


def python_files() -> list[Path]:
    return sorted(path for pattern in PYTHON for path in ROOT.glob(pattern))


def _python_mutants_of(path: Path) -> list[Mutant]:
    """Return the changes of each statement and expression inside a function that stands on one line."""
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {}
    for node in _computing_nodes(ast.parse(text)):
        if node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1].encode()
        for new in _changes(node):
            changed = (
                line[: node.col_offset] + new.encode() + line[node.end_col_offset :]
            ).decode()
            found.setdefault(
                (node.lineno, changed), Mutant(name, node.lineno, line.decode(), changed)
            )
    return list(found.values())


def _computing_nodes(node: ast.AST, inside: bool = False) -> Iterator[ast.AST]:
    """Yield the nodes inside functions, but for signatures, type hints, assertions and the text of messages."""
    compiled = isinstance(node, ast.FunctionDef) and "njit" in " ".join(
        map(ast.unparse, node.decorator_list)
    )
    if compiled or isinstance(node, ast.Assert):  # a compiled function can run no probe
        return
    if inside and hasattr(node, "lineno"):
        yield node
    if isinstance(node, ast.Raise | ast.JoinedStr):
        return
    if isinstance(node, ast.FunctionDef):
        below = node.body
        inside = True
    else:
        below = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.AnnAssign) and node.value:
            below = [node.value]
    for part in below:
        yield from _computing_nodes(part, inside)


def _changes(node: ast.AST) -> Iterator[str]:
    """Yield what may stand in the place of a node."""
    match node:
        case ast.Compare(ops=[op, *_]):
            yield ast.unparse(
                ast.Compare(node.left, [OPERATORS[type(op)](), *node.ops[1:]], node.comparators)
            )
        case ast.BoolOp():
            yield f"({ast.unparse(ast.BoolOp(OPERATORS[type(node.op)](), node.values))})"
        case ast.BinOp() if (
            type(node.op) in OPERATORS and not _is_text(node.left) and not _is_text(node.right)
        ):
            yield f"({ast.unparse(ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right))})"
        case ast.UnaryOp(op=ast.Not()):
            yield f"({ast.unparse(node.operand)})"
        case ast.Constant(value=bool(value)):
            yield str(not value)
        case ast.Constant(value=int(value)):
            yield from (str(value + 1), f"({value - 1})")
        case ast.Call(func=ast.Name(id="min" | "max" as name)):
            other = {"min": "max", "max": "min"}[name]
            yield ast.unparse(ast.Call(ast.Name(other), node.args, node.keywords))
        case ast.Call(
            args=[
                ast.Name() | ast.Attribute() as first,
                ast.Name() | ast.Attribute() as second,
                *rest,
            ]
        ):
            if ast.unparse(node.func) not in ("isinstance", "getattr", "hasattr", "zip"):
                yield ast.unparse(ast.Call(node.func, [second, first, *rest], node.keywords))
        case ast.IfExp():
            yield f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"
        case (
            ast.Expr(value=ast.Call() | ast.Await())
            | ast.Raise()
            | ast.Continue()
            | ast.Break()
            | ast.AugAssign()
        ):
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]) | ast.Return(value=None):
            yield "pass"


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr | ast.List) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def probed(text: str, lines: set[int], probe: str) -> str:
    """Return a Python module that runs ``probe``, with the line's number, before the statement of each line."""
    tree = ast.parse(text)
    bodies = [
        body for node in ast.walk(tree) for name in ("body", "orelse", "finalbody")
        if isinstance(body := getattr(node, name, None), list) and body
    ]  # fmt: skip
    for number in sorted(lines):
        body, statement = min(
            (
                (body, stmt)
                for body in bodies
                for stmt in body
                if stmt.lineno <= number <= (stmt.end_lineno or 0)
            ),
            key=lambda place: (place[1].end_lineno or 0) - place[1].lineno,
        )
        body.insert(body.index(statement), ast.parse(probe.format(line=number)).body[0])
    return ast.unparse(tree)


def mutants_of(path: Path) -> list[Mutant]:
    """Return every change of SWAPS at every place, conditions that are always or never true, and removed statements.

    In a Python file: operators, constants, conditions, order of arguments, and removed statements.
    """
    if path.suffix == ".py":
        return _python_mutants_of(path)
    name = path.relative_to(ROOT).as_posix()
    found = {}
    for number, line in _read_by_the_host(path.read_text().splitlines()):
        code = line.split("//")[0].rstrip()
        if not code.strip() or code.lstrip().startswith(
            ("#", "template", "static_assert", "using", "asm")
        ):
            continue
        changed = [
            code[: at.start()] + at.expand(new) + code[at.end() :]
            for old, new in SWAPS
            for at in old.finditer(code)
            # the name that is defined
            if not re.fullmatch(r"(KT_DEVICE|constexpr) \w+ ", code[: at.start()])
        ]
        for at in re.finditer(r"\bif \(", code):
            end = _closing(code, at.end())
            if end:
                changed += [code[: at.end()] + fixed + code[end:] for fixed in ("true", "false")]
        statement = STATEMENT.match(code)
        if statement and not statement[2].startswith("return"):
            changed.append(statement[1] + ";")
        for after in changed:
            if after != code:
                found.setdefault((number, after), Mutant(name, number, code, after))
    return list(found.values())


_NEXT_BRANCH = {
    "host": "cuda, to the end",
    "cuda, to the end": "cuda, to the end",
    "cuda": "host",
    "either": "either",
}


def _read_by_the_host(lines: list[str]) -> list[tuple[int, str]]:
    """Return the lines, numbered from 1, without those for CUDA compilers alone."""
    found = []
    # of each #if that is open: for a CUDA compiler, for the host, or for either
    branches = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#if"):
            if re.match(r"#ifndef __CUDACC__|#if !defined\(__CUDACC__\)$", line):
                branches.append("host")
            elif re.match(r"#ifdef __CUDACC__|#if defined\(__CUDA", line):
                branches.append("cuda")
            else:
                branches.append("either")
        elif line.startswith(("#elif", "#else")):
            branches[-1] = _NEXT_BRANCH[branches[-1]]
        elif line.startswith("#endif"):
            branches.pop()
        elif not {"cuda", "cuda, to the end"} & set(branches):
            found.append((number, line))
    return found


def _closing(code: str, start: int) -> int | None:
    depth = 1
    for at in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if not depth:
            return at
    return None


def sample(mutants: list[Mutant], share: float, least: int, seed: int) -> list[Mutant]:
    """Return a fraction of the mutants of each file, or a minimum number, from as many lines as possible.

    The same files, fraction and seed give the same mutants, in an order that has mutants of every file early.
    """
    by_file = {}
    for mutant in mutants:
        by_file.setdefault(mutant.file, []).append(mutant)
    queue = []
    for file, own in by_file.items():
        shuffled = random.Random(f"{seed} {file}").sample(own, len(own))
        of_line = Counter()
        place_of = {}
        for mutant in shuffled:
            of_line[mutant.line] += 1
            place_of[mutant] = of_line[mutant.line]
        chosen = sorted(shuffled, key=place_of.__getitem__)[
            : max(least, math.ceil(share * len(own)))
        ]
        queue += [(place / len(chosen), file, mutant) for place, mutant in enumerate(chosen)]
    return [mutant for _, _, mutant in sorted(queue, key=lambda place: place[:2])]
