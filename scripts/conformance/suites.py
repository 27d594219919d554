"""What scripts/conformance.sh runs, one suite after the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.pages import listed

ROOT = Path(__file__).resolve().parents[2]
GPU_SKIPS = ("no GPU with CuPy", "cupy", "cudf", "cugraph")


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A run of pytest whose results are counted."""

    name: str
    title: str  # what the tests are and how they call this library
    # Arguments of Python; with ``is_script`` a shell script of this repository and its arguments. What it runs by pytest is
    # counted by the report that ``PYTEST_ADDOPTS`` asks for.
    command: tuple[str, ...]
    # The file or folder that has the tests or runs them. A suite without it has not run.
    needs: str
    packages: tuple[str, ...]  # distributions whose versions are recorded
    # whether the tests are this library's: then a skip is a failure, except where a GPU is missing
    is_own: bool = False
    is_script: bool = False
    # Arguments that select the part that check.sh --all runs; none if check.sh --all runs all of it, or leaves it out.
    part: tuple[str, ...] = ()
    in_check: bool = False  # whether check.sh --all runs it, or its part

    @property
    def is_here(self) -> bool:
        return (ROOT / self.needs).exists()

    @property
    def program(self) -> str:
        if self.is_script:
            return "bash"
        return sys.executable

    def allows_skip(self, reason: str) -> bool:
        return not self.is_own or any(text in reason for text in GPU_SKIPS)


def _suites() -> Iterator[Suite]:
    for about in listed(__file__)["suites"]:
        lists = {name: tuple(each) for name, each in about.items() if isinstance(each, list)}
        yield Suite(**about | lists)


SUITES = tuple(_suites())
