"""Pages for users are short, and are no diary. This counts their words, and finds words of a diary.

``python scripts/ci/check_pages.py`` reads all pages for users; arguments are some of them. A page has a limit of words by
the first pattern of ``LIMITS`` that matches its path. Bars and rules of tables are no words. What was tried, wanted or
missed, and the load of a machine, belong to docs/benchmarks/log. Commands of a checkout that a wheel does not have are
refused as well. Exit code 1 says that a page has too many words or such a word.
"""

from __future__ import annotations

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The most words of a page for users, by its path. Pages that no pattern matches are for developers, or evidence.
LIMITS = {
    "README.md": 1500,
    "docs/quickstart.md": 1000,
    "docs/operations.md": 200,
    "docs/operations/*.md": 1500,
    "docs/results.md": 400,
    "docs/results/*.md": 1200,
    "docs/from/*.md": 1500,
    "docs/inputs.md": 400,
    "docs/inputs/*.md": 1000,
    "docs/performance.md": 3400,
    "docs/memory.md": 650,
    "docs/gallery.md": 300,
    "docs/city.md": 600,
    "docs/proximity.md": 600,
    "docs/traffic.md": 900,
    "docs/hierarchies.md": 2000,
    "docs/labels.md": 1600,
    "docs/semantics.md": 2500,
    "docs/settings.md": 4000,
    "docs/plugins.md": 500,
    "docs/versions.md": 600,
}
DIARY = {
    r"\b[Tt]ried\b": "what was tried",
    r"\b[Ww]anted\b": "what was wanted",
    r"\b[Mm]issed\b": "what was missed",
    r"\bloads? (?:(?:of|was|is|at|to|from|between) )*\d": "the load of a machine",
    r"\bload of (?:the|a) (?:machine|host)\b": "the load of a machine",
}
# Commands of a checkout that a user of the wheel does not have, and what to write.
COMMANDS = {r"python3? -m pipelines\b[\w.]*": "the wheel has kepler-traverse in its place"}
_WORD = re.compile(r"\S*\w\S*")


def limit_of(path: str) -> int | None:
    """Return the most words of a page by its path from the root, or None if it is not for users."""
    return next((most for pattern, most in LIMITS.items() if fnmatch(path, pattern)), None)


def count_words(text: str) -> int:
    """Return the number of words of a page; a word has a letter or a digit."""
    return len(_WORD.findall(text))


def faults_of(path: str, text: str) -> list[str]:
    """Return a line of text for each fault of a page.

    Parameters
    ----------
    path : str
        Path from the root, with slashes. It decides on the limit.
    text : str
        Content of the page.
    """
    most = limit_of(path)
    if most is None:
        return []
    faults = []
    n_words = count_words(text)
    if n_words > most:
        faults.append(f"{path}: {n_words:,} words, and {most:,} are the limit of LIMITS")
    refused = {each: f"{what} belongs to docs/benchmarks/log" for each, what in DIARY.items()}
    for pattern, what in (refused | COMMANDS).items():
        for found in re.finditer(pattern, text.replace("\n", " ")):
            line = text.count("\n", 0, found.start()) + 1
            faults.append(f"{path}:{line}: {found[0]!r}: {what}")
    return faults


def pages() -> list[str]:
    """Return the paths of all pages for users."""
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    paths = sorted(path.relative_to(ROOT).as_posix() for path in found)
    return [path for path in paths if limit_of(path) is not None]


def main(argv: list[str] | None = None) -> int:
    """Print the faults of the pages given, or of all; return 1 if there are any."""
    given = sys.argv[1:] if argv is None else argv
    paths = [Path(name).resolve().relative_to(ROOT).as_posix() for name in given] or pages()
    faults = []
    for path in paths:
        faults += faults_of(path, (ROOT / path).read_text(encoding="utf-8"))
    for each in faults:
        print(each)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
