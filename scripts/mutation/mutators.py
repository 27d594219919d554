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

ROOT = Path(__file__).resolve().parents[2]

# Patterns and their replacements, for one line without its comment; replacements may use groups.
SWAPS = [
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" \+ 1\b", ""),
    (r" \+ 1\b", " + 2"),
    (r" - 1u?\b", ""),
    (r"\b0\b(?=[;,)])", "1"),
    (r"\b1\b(?=[;,)])", "0"),
    (r"!(?=[\w(])", ""),
    (r"~(?=\w)", ""),
    (r" \? (.+?) : (.+?)(?=[;)])", r" ? \2 : \1"),
    (r"\breturn;", ";"),
    (r"\bcontinue;", ";"),
    (r"< (n_\w+|list\.size|end|capacity);", r"< \1 - 1;"),
    (r"\bsize\b(?=;)", "size - 1"),
    (r"(\bi|\be) = (.+?)(?=; (?:i|e) <)", r"\1 = \2 + 1"),
    (r" \+= ((?:kt::)?(?:n_threads\(\)|n_warps\(\)|WARP))", r" += 2 * \1"),
    (r"\+ lane\(\)", ""),
    (r"\bthread_id\(\)(?=;)", "warp_id()"),
    (r"\bwarp_id\(\)(?=;)", "thread_id()"),
    (r"\bint64 (?=[a-z]\w* =)", "int32 "),
    (r"static_cast<(kt::)?int64>", r"static_cast<\1int32>"),
    (r"\boffset_t (?=[a-z]\w* =)", "int32 "),
    (r"static_cast<(?:kt::)?(?:word|uint64|uint32)>", ""),
    (r"racy_load\(([^()]+)\)", r"load_constant(\1)"),
    (r"(?:kt::)?racy_load\(([^()]+)\)", r"*(\1)"),
    (r"(?:kt::)?racy_store\(([^()]+), ([^()]+)\)", r"*(\1) = \2"),
    (
        r"return atomicM(in|ax)\(address, value\)",
        r"auto old = *address; if (value < old) *address = value; return old",
    ),
    (r"atomicMin", "atomicMax"),
    (r"return atomicExch\(address, value\)", "auto old = *address; *address = value; return old"),
    (
        r"return atomicCAS\(address, expected, value\)",
        "auto old = *address; if (old == expected) *address = value; return old",
    ),
    (
        r"return static_cast<int64>\(atomicAdd\(.*\)\);",
        "const int64 old = *address; *address = old + value; return old;",
    ),
    (r"__shfl_sync\(lanes, value, from\)", "__shfl_sync(0xffffffffu, value, from)"),
    (r"__shfl_sync\(lanes, value, from\)", "value"),
    (r"__activemask\(\)", "0xffffffffu"),
    (r"count_lanes\(lanes\)", "1"),
    (r"count_lanes\(lanes & lanes_before\(\)\)", "count_lanes(lanes_before())"),
    (r"count_lanes\(lanes & lanes_before\(\)\)", "count_lanes(lanes)"),
    (r"\+ count_lanes\(lanes & lanes_before\(\)\)", ""),
    (r"first_lane\(lanes\)", "0"),
    (r"<< lane\(\)", "<< (lane() + 1)"),
    (r"% WARP", "% 16"),
    (r"/ WARP", "/ 16"),
    (r"(?<!\* )\bcounters\b(?=\))", "counters + 1"),
    (r"(?<!\* )\bcounts\b(?=\))", "counts + 1"),
    (r"(counters|counts) \+ (\d)", r"\1"),
    (r" << (\w+) \|", r" << (\1 - 1) |"),
    (r"load_constant\((\w+) \+ (\w+)\)", r"load_constant(\1 + \2 + 1)"),
    (r"\[(v|i|at|place)\] =", r"[0] ="),
    (r"\b(from_ordered|to_ordered)\(key", r"\1(~key"),
    (r"a \+ b", "a - b"),
    (r"0x7f", "0x7e"),
    (r"\bu\b(?=\);$)", "v"),
    (r"(\w+) - first_(row|edge)", r"\1"),
    (r"(kt::|\b)ALL_LANES\b", r"(\1ALL_LANES >> 1)"),
    (r"(?:kt::|\b)ALL_LANES\b", "1u"),
    (r", width\)", ", WARP)"),
    (r"shuffle_up|shfl_up", lambda at: at[0].replace("up", "down")),
    (r"shuffle_down|shfl_down", lambda at: at[0].replace("down", "up")),
    (r"shuffle_xor|shfl_xor", lambda at: at[0].replace("xor", "down")),
    (r"\b(atomic|reduce)_(add|min|and)\(", r"\1_max("),
    (r"\b(atomic|reduce)_max\(", r"\1_min("),
    (r"\batomic_or\(", "atomic_and("),
    (r"\batomic_and\(", "atomic_or("),
    (r"__reduce_(add|min|and)_sync", "__reduce_or_sync"),
    (r"__reduce_(max|or)_sync", "__reduce_add_sync"),
    (r"atomic(?:Add|Max|Exch)\b(?=[,(])", "atomicMin"),
    (r"atomicOr\b(?=,)", "atomicAnd"),
    (r"atomicAnd\b(?=,)", "atomicOr"),
    (r"(?<!block_)\bany\(", "all("),
    (r"(?<!block_)\ball\(", "any("),
    (r"\bblock_any\(", "block_all("),
    (r"\bblock_all\(", "block_any("),
    (r"__syncthreads_or\b", "__syncthreads_and"),
    (r"__syncthreads_and\b", "__syncthreads_or"),
    (r"__(ballot|any|all)_sync\(lanes, predicate\)", r"__\1_sync(lanes, !predicate)"),
    (r"(KT_SHARED\(.*, \[)(.+?)\]", r"\1\2 - 1]"),
    (r"\batomic_add\(([^(),]+), ([^(),]+)\);", r"racy_store(\1, racy_load(\1) + \2);"),
    (r"(launch_child\((?!MAX_)\w+), [^,]+,", r"\1, 1,"),
]
# A statement of one line that has an effect and declares nothing.
STATEMENT = re.compile(
    r"^( *(?:if \(.*\) |for \(.*\) )?)((?:[\w:.]+\(.*\)|[\w.]+(?:\[.*\])? = .*);)$"
)

# Python that decides what is computed, written and accepted: plans, readers of input, writers of output, verification.
PYTHON = (
    "kepler_traverse/auto/*.py",
    "kepler_traverse/formats/*.py",
    "kepler_traverse/multi_source/candidates.py",
    "kepler_traverse/multi_source/group_search.py",
    "kepler_traverse/multi_source/planning.py",
    "kepler_traverse/multi_source/workload.py",
    "pipelines/output/*.py",
    "pipelines/run/memory_plan.py",
    "pipelines/verification/*.py",
    "pipelines/worker/planning.py",
    "pipelines/worker/writer_pool.py",
)
# An operator of Python and what replaces it.
OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.FloorDiv: ast.Mult, ast.Div: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


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
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    lines, found = text.splitlines(), {}
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
        below, inside = node.body, True
    else:
        below = (
            [node.value]
            if isinstance(node, ast.AnnAssign) and node.value
            else [*ast.iter_child_nodes(node)]
        )
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
            yield ast.unparse(
                ast.Call(ast.Name("max" if name == "min" else "min"), node.args, node.keywords)
            )
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
    found: dict[tuple[int, str], Mutant] = {}
    for number, line in _read_by_the_host(path.read_text().splitlines()):
        code = line.split("//")[0].rstrip()
        if not code.strip() or code.lstrip().startswith(
            ("#", "template", "static_assert", "using", "asm")
        ):
            continue
        changed = [
            code[: at.start()] + (new(at) if callable(new) else at.expand(new)) + code[at.end() :]
            for old, new in SWAPS
            for at in re.finditer(old, code)
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
    branches: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.startswith("#if"):
            if re.match(r"#ifndef __CUDACC__|#if !defined\(__CUDACC__\)$", line):
                branches.append("host")
            else:
                branches.append(
                    "cuda" if re.match(r"#ifdef __CUDACC__|#if defined\(__CUDA", line) else "either"
                )
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
    by_file: dict[str, list[Mutant]] = {}
    for mutant in mutants:
        by_file.setdefault(mutant.file, []).append(mutant)
    queue: list[tuple[float, str, Mutant]] = []
    for file, own in by_file.items():
        shuffled = random.Random(f"{seed} {file}").sample(own, len(own))
        of_line: Counter[int] = Counter()
        place_of: dict[Mutant, int] = {}
        for mutant in shuffled:
            of_line[mutant.line] += 1
            place_of[mutant] = of_line[mutant.line]
        chosen = sorted(shuffled, key=place_of.__getitem__)[
            : max(least, math.ceil(share * len(own)))
        ]
        queue += [(place / len(chosen), file, mutant) for place, mutant in enumerate(chosen)]
    return [mutant for _, _, mutant in sorted(queue, key=lambda place: place[:2])]
