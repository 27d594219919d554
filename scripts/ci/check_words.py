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
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_COUNTED = (
    "batches|bins|bits|blocks|bytes|cores|edges|entries|files|groups|hops|lanes|levels|nanoseconds|parts|pieces|rows|seconds|"
    "slots|sources|steps|tasks|threads|values|vertices|warps|words"
)
_EACH = (
    "batch|block|bucket|byte|child|column|core|edge|file|gpu|group|lane|level|line|part|pile|process|root|row|second|source|"
    "target|task|thread|unit|vertex|warp|width|word|worker"
)

# Identifiers in any code of the project: pattern, what to write.
IDENTIFIERS = {
    rf"(?i:(?!test_)(?:\w*_)?(?:{_COUNTED})_a_(?:{_EACH})(?:_\w+)?)": "_per_",
    r"_?(?:[A-Z0-9]+_)*(?:MOST|LARGEST|LONGEST)_[A-Z]\w*": "MAX_",
    r"_?(?:[A-Z0-9]+_)*(?:FEWEST|SMALLEST|SHORTEST|LEAST)_[A-Z]\w*": "MIN_",
    r"_?Many(?:Plan|Strategy|Outcome)": "MultiSource",
    r"free_memory": "available_memory or release_cached_memory",
    r"misfit": "unsupported_reason",
    r"turns_of|take_turn|small_turns|\w+_TURNS": "iterations or repeats",
    r"(?!test_)\w+_(?:ROOM|room)": "capacity",
    r"keep_for|of_kept|Kept": "output, or the batch",
    r"fits_beside": "can_write_in_background",
    r"_?n_wanted|at_wanted": "target_vertices",
    r"Peer|peer_of|_of_peer|PEERS": "baseline",
    r"Stretch|stretches_of": "span",
    r"\w*(?i:neighbour)\w*": "neighbor",
    r"_?ask_for(?:_line)?|_?AHEAD": "prefetch",
    r"(?!test_)(?:\w+_)?(?:untold|goes_on)": "unlisted, or what continues",
}
# Words alone, in the library and the job: too common elsewhere.
WORDS = {
    r"_?[Tt]old|_N_TOLD|_TOLD\w*": "counters, observer or reported",
    r"turns?|Turn|TURNS": "iteration",
    r"rooms?|ROOM|_ROOM": "capacity",
    r"offers?|Offers?|offering|Offering|offer_of": "relax or candidate",
    r"Who": "Scope",
    r"Answers|_Answers|MergedAnswers|MergedPlan|merged_search": "BatchTraverser, or the nearest-source search",
    r"fresh|is_fresh": "discovered",
    r"_?figures": "statistics",
    r"_?strikes?|_?suspects|_flying|_?careful": "failures, retry_alone, in_flight, isolate",
}
PACKAGES = ("kepler_traverse/*", "pipelines/*")

_UNITS = (
    "ms|µs|us|seconds?|bytes?|bits?|MB|GB|KB|MiB|GiB|milliseconds|microseconds|edges|rows|lanes|sources|vertices|launches|"
    "words|entries|loads|tasks|batches|blocks|threads|warps|levels|numbers|requests|atomics|times|traversals"
)
_ONE = (
    "source|vertex|edge|worker|GPU|core|level|launch|row|group|traversal|block|warp|thread|lane|task|batch|part|distance|file|"
    "search|barrier|round|pile|bucket|target|process"
)
# "64 bytes a vertex" is one per vertex; "times a source that is given" is another sentence.
_NOT_PER = "of|that|which|has|is|may|takes|with|at|in|for|whose|can|must|holds|where|to|alone|from|by|and|or|on|as"
IDIOMS = {
    rf"\b(?:{_UNITS}) an? (?:{_ONE})\b(?! (?:{_NOT_PER})\b)": "per",
    r"\b[Aa] bit a (?:source|vertex)\b": "one bit per",
    r"\b(?i:whoever|nobody|somebody|whom)\b": "any thread, user or process that",
    r"\b[Mm]end(?:s|ed|ing)?\b": "repair, correct or fix",
    r"\b(?:told|kept|tell|keep) apart\b": "distinguish, or separate",
    r"\bvouch(?:es|ed)?\b": "certify or agree",
    r"\b(?:come|comes|came) to lie\b": "is stored",
    r"\bfor ever\b": "forever",
    r"\b(?:go|goes|went|going) on alone\b": "continue alone",
    r"\bturn(?:ed|s)? round\b": "reverse",
    r"\b(?:is|are|was) through\b": "is finished",
    r"\b[Ww]ritten beside\b": "written in the background",
    r"\b[Bb]eside (?:cuGraph|SciPy|NetworkX|pandas|other libraries)\b": "compared with",
    r"\bstretch(?:es)?\b": "span or range",
    r"\bproven right\b": "certified or verified",
    r"\bstrangers?\b": "untrusted",
}

# Options that users name in their files, and what implements them.
ALLOWED = {
    "edges_a_bucket": ("*",),
    "edges_a_pile": ("*",),
    "room": ("*/params.py", "*/published/*"),
}
# Dated measurements, pages written from them, what writes these, and the words themselves.
DATED = (
    "docs/*.json",
    "docs/glossary.md",
    "docs/performance.md",
    "docs/regret.md",
    "docs/mutants.md",
    "docs/guarantees.md",
    "docs/benchmarks/*",
    "docs/published/*",
    "docs/strategies.md",
    "CHANGELOG.md",
    "*.svg",
    "*check_words.py",
)
CUDA = (".cu", ".cuh", ".cpp", ".hpp", ".h")
_CUDA_PARTS = re.compile(r"(//[^\n]*|/\*.*?\*/)|(\"(?:\\.|[^\"\\\n])*\"|#include[^\n]*)", re.S)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


def files_of_git() -> list[str]:
    """Return the paths, from the root, of files that git knows or would add."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return sorted(name for name in done.stdout.split("\0") if name and (ROOT / name).is_file())


def docstrings_of(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind ``docstring`` and text of the lines of the docstrings of a Python file."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                for i, line in enumerate(first.value.value.split("\n")):
                    yield first.lineno + i, "docstring", line


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
    at = 0
    for match in [*_CUDA_PARTS.finditer(text), None]:
        end = len(text) if match is None else match.start()
        for name in _IDENTIFIER.finditer(text, at, end):
            yield text.count("\n", 0, name.start()) + 1, "code", name[0]
        if match is not None:
            at = match.end()
            for i, line in enumerate((match[1] or "").split("\n")):
                yield text.count("\n", 0, match.start()) + 1 + i, "comment", line


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
    names = IDENTIFIERS | WORDS if _matches(path, PACKAGES) else IDENTIFIERS
    idioms = {} if _matches(path, DATED) else IDIOMS
    if _matches(path, ("*check_words.py",)):
        names = {}
    found, known = [], {}
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
    paths = (
        [Path(name).resolve().relative_to(ROOT).as_posix() for name in given]
        if given
        else files_of_git()
    )
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
