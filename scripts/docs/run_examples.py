"""Run the Python examples of a page, in the order of the page and in one namespace.

``python -m scripts.docs.run_examples PAGE`` runs every block that begins with three backquotes and ``python``. A block with
``>>>`` is compared with the output that it shows, any other one must run. The line ``<!-- needs: osmnx, polars -->`` names
packages without which the page cannot run: the exit code is then 3. It is 1 if an example fails or the page has none.
"""

from __future__ import annotations

import argparse
import doctest
import importlib.util
import re
import sys
import traceback
from pathlib import Path

MISSING = 3  # exit code
_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_NEEDS = re.compile(r"^<!-- needs: (.*?) -->$", re.MULTILINE)
_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


def blocks_of(text: str) -> list[tuple[int, str]]:
    """Return the examples of a page, each with the number of its first line."""
    return [(text.count("\n", 0, found.start(1)) + 1, found[1]) for found in _BLOCK.finditer(text)]


def missing_packages(text: str) -> list[str]:
    """Return the packages that a page says it needs and that are not installed."""
    needed = [name for names in _NEEDS.findall(text) for name in re.split(r"[,\s]+", names) if name]
    return [name for name in needed if importlib.util.find_spec(name) is None]


def run_block(code: str, line: int, page: str, names: dict[str, object]) -> bool:
    """Run one example and return whether it did what the page shows."""
    if re.search(r"^>>> ", code, re.MULTILINE):
        test = doctest.DocTestParser().get_doctest(code, names, page, page, line - 1)
        found = doctest.DocTestRunner(optionflags=_FLAGS).run(test, clear_globs=False)
        names.update(test.globs)
        return not found.failed
    try:
        # The lines before it are empty, so that a traceback has the line numbers of the page.
        exec(compile("\n" * (line - 1) + code, page, "exec"), names)
    except Exception:
        traceback.print_exc()
        return False
    return True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the Python examples of a page.")
    parser.add_argument("page", type=Path)
    page = parser.parse_args(arguments).page
    text = page.read_text(encoding="utf-8")
    missing = missing_packages(text)
    if missing:
        print(f"{page.name} needs {', '.join(missing)}")
        return MISSING
    blocks = blocks_of(text)
    if not blocks:
        print(f"{page.name} has no example")
        return 1
    names = {"__name__": "__main__"}
    for line, code in blocks:
        if not run_block(code, line, page.name, names):
            print(f"{page.name}: the example in line {line} failed")
            return 1
    print(f"{page.name}: {len(blocks)} examples ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
