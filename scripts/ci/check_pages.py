"""Pages for users are short, and are no diary. This counts their words, and finds words of a diary.

``python scripts/ci/check_pages.py`` reads all pages for users; arguments are some of them. A page has a limit of words by
the first pattern of check_pages.toml that matches its path. Bars and rules of tables are no words. What was tried, wanted or
missed, and the load of a machine, belong to docs/benchmarks/log. Commands of a checkout that a wheel does not have are
refused as well. Exit code 1 says that a page has too many words or such a word.
"""

from __future__ import annotations

import re
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_LISTED = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
LIMITS: dict[str, int] = _LISTED["limits"]
DIARY: dict[str, str] = _LISTED["diary"]
COMMANDS: dict[str, str] = _LISTED["commands"]
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
