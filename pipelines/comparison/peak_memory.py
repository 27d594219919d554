"""Peak memory of a process that holds a stored graph and traverses it, with this library or with the baseline."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kepler_traverse.graph import Graph
from kepler_traverse.graph.storage import load_graph, save_graph

from ..cli.terminal import show
from .baselines import choose_baseline, our_plan

_SOURCES = 4  # all traversals need the same memory


def peak_memory(graph: Graph, algorithm: str, strategy: str, sources: Any) -> dict[str, int]:
    """Return the peak resident bytes of one process per library; both map the same stored graph first."""
    first = ",".join(str(source) for source in sources[:_SOURCES])
    peaks = {}
    with tempfile.TemporaryDirectory() as folder:
        save_graph(graph, Path(folder) / "graph")
        for side in ("ours", "peer"):
            command = [sys.executable, "-m", __name__, f"{folder}/graph", side, algorithm, strategy, first]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"measuring the memory of {side} failed: {done.stderr.strip()}")
            peaks[side] = json.loads(done.stdout)
    return peaks


def _traverse(folder: str, side: str, algorithm: str, strategy: str, sources: str) -> int:
    graph = load_graph(folder, verify=False)
    traverse: Callable[[int], object]
    if side == "ours":
        traverse = our_plan(graph, algorithm, strategy).run
    else:
        (traverse,) = choose_baseline(graph, algorithm)[1].values()
    for source in sources.split(","):
        traverse(int(source))
    # Not ru_maxrss, which includes the parent's pages if this process was started from a large one.
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    show(str(_traverse(*sys.argv[1:])))
