"""Gunrock (CUDA C++), which searches from one source at a time: a program of its own, beside the suite ``gpu``.

GUNROCK names a checkout of it, in which ``gunrock.cu`` is built with ``nvcc``; the built program ``kepler_searches`` in an
empty folder does as well. The graph and the sources travel in files. The program dies alone if a search does.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kepler_traverse import cuda
from kepler_traverse._arrays import UNREACHED, to_host

GUNROCK = Path(os.environ.get("GUNROCK", "/tmp/gunrock")).resolve()
# How threads share edges; "+" also removes what is no vertex from frontiers, which Gunrock does for hops alone.
BALANCES = ("block_mapped", "thread_mapped", "merge_path_v2")
WAYS = {"bfs": (*BALANCES, *(f"{each}+" for each in BALANCES)), "sssp": BALANCES}
LIMIT = 90.0  # seconds of a process; ways that have ended by then count
FLAGS = (
    *("-std=c++17", "-O3", "--use_fast_math", "--cudart", "static"),
    *("--expt-extended-lambda", "--expt-relaxed-constexpr", "--diag-suppress=177,550,20014"),
    *("-D__HIP_PLATFORM_NVIDIA__", "-DHIP_BACKEND=1"),
)


def program() -> Path:
    """Build the searches with the flags of Gunrock, if they are not there; ModuleNotFoundError: it is absent."""
    built = GUNROCK / "kepler_searches"
    if built.exists():
        return built
    include = GUNROCK / "include"
    if not (include / "gunrock").exists():
        raise ModuleNotFoundError(f"{GUNROCK} has no Gunrock; GUNROCK names its folder")
    source = Path(__file__).with_suffix(".cu")
    folders = [f"-I{include}", f"-I{include / 'gunrock' / 'compat'}"]
    capability = cuda.cp.cuda.Device().compute_capability
    target = [f"-arch=sm_{capability}", f"-DSM_TARGET={capability}"]
    subprocess.run(["nvcc", *FLAGS, *target, *folders, str(source), "-o", str(built)], check=True)
    return built


def write(folder: Path, graph: Any, sources: np.ndarray) -> None:
    """Write the files that the program reads; searches by hops read weights, too."""
    weights = graph.weights
    if weights is None:
        weights = np.ones(graph.n_edges)
    arrays = {"offsets": graph.offsets, "targets": graph.targets, "sources": sources}
    for name, array in arrays.items():
        to_host(array).astype(np.int32).tofile(folder / name)
    to_host(weights).astype(np.float32).tofile(folder / "weights")


def lines_of(folder: Path, algorithm: str, seconds: float, ways: tuple[str, ...]) -> list[list]:
    """Run the program, and return the words of its whole lines, also if it dies or its time is over."""
    command = [str(program()), str(folder), algorithm, str(seconds), *ways]
    try:
        done = subprocess.run(command, capture_output=True, timeout=LIMIT)
        output, said = done.stdout, done.stderr.decode().strip()
    except subprocess.TimeoutExpired as error:
        output, said = error.stdout or b"", f"stopped after {LIMIT:.0f} s"
    if said:
        print(f"Gunrock, {algorithm}: {said}", flush=True)
    whole, _, _ = output.decode().rpartition("\n")
    return [line.split() for line in whole.splitlines() if line.split(" ")[0] in ways]


def searched(
    folder: Path, algorithm: str, seconds: float
) -> Iterator[tuple[str, dict[int, float]]]:
    """Yield each way that ended, and its seconds by source; after one that died, go on with the next."""
    left = WAYS[algorithm]
    while left:
        times = {}
        for way, word, *milliseconds in lines_of(folder, algorithm, seconds, left):
            times.setdefault(way, {})
            if milliseconds:
                times[way][int(word)] = 1e-3 * float(milliseconds[0])
            else:
                yield way, times[way]
                left = left[left.index(way) + 1 :]
        left = left[1:]


def rows_of(path: Path, algorithm: str, sources: list[int]) -> dict[int, Any]:
    """Return distances in our encoding, by source, on the device."""
    kind, unreached = (np.int32, UNREACHED) if algorithm == "bfs" else (np.float32, np.inf)
    rows = np.fromfile(path, kind).reshape(len(sources), -1)
    largest = (np.iinfo if algorithm == "bfs" else np.finfo)(kind).max
    rows[rows == largest] = unreached
    return dict(zip(sources, cuda.cp.asarray(rows), strict=True))


def times_and_distances(
    graph: Any, algorithm: str, sources: np.ndarray, seconds: float
) -> Iterator[tuple[str, dict[int, float], dict[int, Any]]]:
    """Yield each way, and its seconds and distances by source."""
    program()
    cuda.cp.get_default_memory_pool().free_all_blocks()  # it is another process
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, graph, sources)
        for way, times in searched(folder, algorithm, seconds / len(WAYS[algorithm])):
            yield way, times, rows_of(folder / way, algorithm, list(times))
