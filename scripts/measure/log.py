"""The log of measurements, a file of JSON lines: a run that is cut off goes on where it was when called again."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any


class Log:
    """The file: one JSON object per line, flushed at once. ``key`` names the entries by which a line is known."""

    def __init__(self, path: Path, key: tuple[str, ...]):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.key = key
        path.touch()
        self.done = read_whole_lines(path)
        self.known = {self.key_of(line) for line in self.done if self.is_keyed(line)}
        self.errors = sum(line["kind"] == "error" for line in self.done)
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115
        self.began = time.perf_counter()

    def __enter__(self) -> Log:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def is_keyed(self, line: dict) -> bool:
        return all(name in line for name in self.key)

    def key_of(self, line: dict) -> tuple:
        return tuple(line[name] for name in self.key)

    def write(self, kind: str, **record: Any) -> None:
        self.errors += kind == "error"
        line = {"kind": kind, **record}
        self.done.append(line)
        if self.is_keyed(line):
            self.known.add(self.key_of(line))
        self.file.write(json.dumps(line | {"at": round(self.spent(), 1)}, default=plain) + "\n")
        self.file.flush()

    def spent(self) -> float:
        """Return the seconds since this process began to write."""
        return time.perf_counter() - self.began


def read_whole_lines(path: Path) -> list[dict]:
    """Return the existing lines; an incomplete last line is dropped, also from the file."""
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    return [json.loads(line) for line in whole.splitlines()]


def plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's, for JSON."""
    return value.item()
