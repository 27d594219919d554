"""What ``python -m pipelines.compare --json`` printed, as the lines of a log: the suite ``compare``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from scripts.measure.harness import rounded
from scripts.measure.work import OURS


def lines_of(file: Path, options: argparse.Namespace) -> list[dict]:
    """Return the lines of a comparison; none if a file is not that of one."""
    try:
        comparison = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        return []
    if not isinstance(comparison, dict) or "runs" not in comparison:
        return []
    lacking = [name for name in ("commit", "date", "cpu") if getattr(options, name) is None]
    if lacking:
        given = ", ".join(f"--{name}" for name in lacking)
        raise SystemExit(f"{file}: a comparison does not record its machine and date: give {given}")
    machine = {name: comparison[name] for name in ("cores", "gpu")}
    machine |= {"cpu": options.cpu, "driver": options.driver, "memory_gib": None}
    run = {
        "kind": "run",
        "date": options.date,
        "commit": options.commit,
        "command": command_of(comparison),
        "machine": machine,
        "versions": comparison["versions"],
    }
    return [run, *rows_of(comparison)]


def rows_of(comparison: dict) -> Iterator[dict]:
    graph = comparison["graph"]
    names = (Path(edges).name.partition(".")[0] for edges in comparison["edges"])
    about = {"kind": "time", "suite": "compare", "graph": ", ".join(names)}
    about |= {"device": comparison["device"], "size": comparison["sources"]}
    for run in comparison["runs"]:
        if not run["equal"] or run["certified"] != comparison["sources"]:
            raise SystemExit(f"{run['algorithm']} on {about['graph']} differs or is not certified")
        work = about | {"work": f"{run['algorithm']}, {comparison['sources']} sources"}
        shape = {"vertices": graph["vertices"], "edges": graph["stored_edges"]}
        shape |= {"directed": graph["directed"], "strategy": run["strategy"]}
        ours, theirs = (rounded(run[key]["total"] / 1e3) for key in ("ours_ms", "peer_ms"))
        yield work | {"peer": OURS, "least": ours, **shape}
        yield work | {"peer": f"{run['peer']} {run['peer_way']}", "least": theirs}


def command_of(comparison: dict) -> str:
    """Return the command line of a comparison, as far as the comparison records it."""
    flags = [Path(edges).name for edges in comparison["edges"]]
    for flag, name in (("random-sources", "sources"), ("seed", "seed"), ("device", "device")):
        flags.append(f"--{flag} {comparison[name]}")
    flags += ["--hash-weights"] * comparison["hash_weights"]
    flags += ["--undirected"] * (not comparison["graph"]["directed"])
    return f"python -m pipelines.compare {' '.join(flags)} --json"
