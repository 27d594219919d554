"""The lines of JSON that a run of ``python -m scripts.papers`` appends to a file."""

from __future__ import annotations

from pathlib import Path

from scripts.measure.environment import about
from scripts.measure.log import Log

PACKAGES = (
    "numpy",
    "numba",
    "scipy",
    "pyarrow",
    "cupy-cuda13x",
    "pylibcugraph-cu13",
    "nvidia-cuda-nvrtc",
)
KEY = ("graph", "algorithm", "part", "group", "device", "strategy", "label", "threads")


class Lines(Log):
    """The log of the works of the papers."""

    def __init__(self, path: Path):
        super().__init__(path, KEY)

    def has_graph(self, graph: str) -> bool:
        return any(line["kind"] == "graph" and line["graph"] == graph for line in self.done)


def key_of(line: dict) -> tuple:
    return tuple(line[name] for name in KEY)


def head(command: str, commit: str | None, seed: int) -> dict:
    """Return the facts of a run; the machine's record names the device."""
    return about(PACKAGES, command, commit) | {"seed": seed}
