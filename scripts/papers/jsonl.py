"""The JSON Lines of the suite ``papers``. The first line has machine, date and versions."""

from __future__ import annotations

import json
import time
from pathlib import Path

PACKAGES = ("numpy", "numba", "scipy", "pyarrow", "cupy-cuda13x", "pylibcugraph-cu13", "nvidia-cuda-nvrtc")


class Lines:
    """The output: one JSON object per line, flushed at once."""

    def __init__(self, path: Path, append: bool):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.done = self.kept(path) if append and path.exists() else []
        self.file = open(path, "a" if append else "w")  # noqa: SIM115  (closed on leaving)
        self.errors = sum(line["kind"] == "error" for line in self.done)
        self.began = time.perf_counter()

    @staticmethod
    def kept(path: Path) -> list[dict]:
        """Return the existing lines; an incomplete last line is dropped, also from the file."""
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        return [json.loads(line) for line in whole.splitlines()]

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_) -> None:
        self.file.close()

    def write(self, kind: str, **record) -> None:
        self.errors += kind == "error"
        record = {"kind": kind, **record, "at": round(time.perf_counter() - self.began, 1)}
        self.file.write(json.dumps(record, default=plain) + "\n")
        self.file.flush()

    def spent(self) -> float:
        """Seconds since this process began to write."""
        return time.perf_counter() - self.began

    def has(self, **keys) -> bool:
        return any(all(line.get(key) == value for key, value in keys.items()) for line in self.done)


def plain(value):
    """NumPy's scalars as Python's, for JSON."""
    return value.item()


def head(options, arguments: list[str]) -> dict:
    from scripts.bench.environment import about

    facts = about(PACKAGES, f"python -m scripts.bench --suite papers {' '.join(arguments)}", options.commit)
    return facts | {name: getattr(options, name) for name in ("device", "repeats", "seed")}
