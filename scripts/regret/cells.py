"""The lines of sweeps, as the page and the fit use them."""

from __future__ import annotations

import json
from pathlib import Path

_MEASURED = (
    "device",
    "machine",
    "graph",
    "weights",
    "algorithm",
    "sources",
    "result",
    "strategy",
    "repeats",
    "reverse",
)


def read(files: list[Path]) -> list[dict]:
    """Return the lines of sweeps. Of repeated measurements only the fastest is returned."""
    fastest: dict[str, dict] = {}
    for line in (json.loads(text) for file in files for text in file.read_text().splitlines()):
        key = json.dumps([line.get(name) for name in _MEASURED])
        before = fastest.setdefault(key, line)
        if line.get("seconds") is not None and (
            before.get("seconds") is None or line["seconds"] < before["seconds"]
        ):
            fastest[key] = line
    return list(fastest.values())


def total(line: dict) -> float:
    """Seconds of a run, with those of building the reverse of a directed graph where the strategy needs one."""
    return line["seconds"] + (line.get("reverse_built") or 0.0)
