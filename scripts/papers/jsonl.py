"""The lines of JSON that a run of ``python -m scripts.papers`` appends to a file."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

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


class Lines:
    """The file: one JSON object per line, flushed at once. A run goes on where an earlier one ended."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.done = read_whole_lines(path) if path.exists() else []
        self.known = {key_of(line) for line in self.done if "strategy" in line}
        self.errors = sum(line["kind"] == "error" for line in self.done)
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        self.began = time.perf_counter()

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, kind: str, **record: Any) -> None:
        self.errors += kind == "error"
        line = {"kind": kind, **record}
        self.done.append(line)
        if "strategy" in line:
            self.known.add(key_of(line))
        self.file.write(json.dumps(line | {"at": round(self.spent(), 1)}, default=plain) + "\n")
        self.file.flush()

    def spent(self) -> float:
        """Return the seconds since this process began to write."""
        return time.perf_counter() - self.began

    def has_graph(self, graph: str) -> bool:
        return any(line["kind"] == "graph" and line["graph"] == graph for line in self.done)


def read_whole_lines(path: Path) -> list[dict]:
    """Return the existing lines; an incomplete last line is dropped, also from the file."""
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def key_of(line: dict) -> tuple:
    return tuple(line[name] for name in KEY)


def plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's, for JSON."""
    return value.item()


def head(command: str, commit: str | None, seed: int) -> dict:
    """Return the facts of a run; the machine's record names the device."""
    from scripts.measure.environment import about

    return about(PACKAGES, command, commit) | {"seed": seed}
