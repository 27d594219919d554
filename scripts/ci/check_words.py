"""Refuse words that docs/glossary.md has replaced, in identifiers of code and in comments and pages.

    python -m scripts.ci.check_words [FILE ...]

Without files it reads all files that git knows or would add. Exit code 1 if a word was found. Code is searched for names.
Comments, docstrings and Markdown are searched for idioms. Texts that a program prints are not searched. Dated measurements,
and pages that are rendered from them, keep their words.
"""

import ast
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ALLOWED: dict[str, list[str]] = _LISTED["allowed"]
DATED: list[str] = _LISTED["dated"]
PACKAGES = ("kepler_traverse/*", "pipelines/*")


def patterns(name: str) -> dict[str, str]:
    """Return the patterns of a table and what to write, with alternatives in the places of their names."""
    found = {}
    for pattern, better in _LISTED[name].items():
        for each, words in _LISTED["alternatives"].items():
            pattern = pattern.replace(f"<{each}>", words)
        found[pattern] = better
    return found


IDENTIFIERS = patterns("identifiers")
WORDS = patterns("words")
IDIOMS = patterns("idioms")
CUDA = (".cu", ".cuh", ".cpp", ".hpp", ".h")
# A comment, a text in quotes or the name of a header, a name, or the end of a line.
_CUDA_PARTS = re.compile(
    r"(//[^\n]*|/\*.*?\*/)|(\"(?:\\.|[^\"\\\n])*\"|#include[^\n]*)|([A-Za-z_]\w*)|\n", re.S
)


def files_of_git() -> list[str]:
    """Return the paths, from the root, of files that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (ROOT / name).is_file())


def docstrings_of(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind ``docstring`` and text of the lines of the docstrings of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            said = ast.get_docstring(node, clean=False)
            if said is not None:
                for number, line in enumerate(said.split("\n"), node.body[0].lineno):
                    yield number, "docstring", line


def python_parts(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind (``code``, ``comment`` or ``docstring``) and text of a Python file."""
    yield from docstrings_of(text)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], "code", token.string
        elif token.type == tokenize.COMMENT:
            yield token.start[0], "comment", token.string


def cuda_parts(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield the same of a kernel file, without texts in quotes and names of headers."""
    number = 1
    for match in _CUDA_PARTS.finditer(text):
        if match[3]:
            yield number, "code", match[3]
        elif match[1]:
            for i, line in enumerate(match[1].split("\n")):
                yield number + i, "comment", line
        number += match[0].count("\n")


def parts_of(path: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of what is searched in a file; nothing for files of other kinds."""
    if path.endswith(".py"):
        yield from python_parts(text)
    elif path.endswith(CUDA):
        yield from cuda_parts(text)
    elif path.endswith(".md"):
        for number, line in enumerate(text.splitlines(), 1):
            yield number, "comment", line


def _matches(path: str, patterns) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def retired_words(path: str, text: str) -> list[str]:
    """Return a line of text for each retired word in a file.

    Parameters
    ----------
    path : str
        Path from the root, with slashes. It decides which words are searched for.
    text : str
        Content of the file.
    """
    names = IDENTIFIERS
    idioms = IDIOMS
    if _matches(path, PACKAGES):
        names = IDENTIFIERS | WORDS
    if _matches(path, ("*check_words.py",)):
        names = {}
    if _matches(path, DATED):
        idioms = {}
    found = []
    known = {}
    for line, kind, part in parts_of(path, text):
        if kind == "code":
            if part not in known:  # names recur
                known[part] = next(
                    (word for pattern, word in names.items() if re.fullmatch(pattern, part)), None
                )
            better = known[part]
            if better is not None and not _matches(path, ALLOWED.get(part, ())):
                found.append(f"{path}:{line}: {part}: write {better}")
        else:
            for pattern, better in idioms.items():
                found += [
                    f"{path}:{line}: {match[0]!r}: write {better!r}"
                    for match in re.finditer(pattern, part)
                ]
    return found


def main(argv: list[str] | None = None) -> int:
    """Print the retired words of the files given, or of all; return 1 if there are any."""
    given = sys.argv[1:] if argv is None else argv
    paths = [Path(name).resolve().relative_to(ROOT).as_posix() for name in given] or files_of_git()
    found = []
    for path in paths:
        if path.endswith((".py", ".md", *CUDA)):
            found += retired_words(path, (ROOT / path).read_text(encoding="utf-8"))
    for each in found:
        print(each)
    if found:
        print(f"{len(found)} retired words; docs/glossary.md has the terms", file=sys.stderr)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
