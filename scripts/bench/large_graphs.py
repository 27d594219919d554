"""Graphs of billions of edges, drawn and built on a GPU, and the record of scripts that measure them.

Edges are drawn by pieces as integers of 32 bits, so that the list takes 8 bytes per edge, and the CSR is built beside it.
"""

from __future__ import annotations

import json
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kepler_traverse import cuda
from kepler_traverse._arrays import index_dtype
from kepler_traverse.cuda import csr_build
from kepler_traverse.graph import Graph
from scripts.make_graphs import Draws, rmat_ends
from scripts.measure.environment import commit, machine

PIECE = 1 << 26  # edges drawn at once
SEED = 1
# Of the domains of a web graph, one in so many links to others.
LINKING = 4


class Figures:
    """Prints one line of JSON per figure, and appends it to a file at once. No step begins when the time is over."""

    def __init__(self, path: Path, seconds: float):
        self._path = path
        self._began = time.monotonic()
        self._ends = self._began + seconds
        self.n_failed = 0
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")

    @property
    def left(self) -> float:
        """Seconds until the time is over."""
        return self._ends - time.monotonic()

    def put(self, step: str, **values: Any) -> None:
        """Record a figure."""
        line = {"at": round(time.monotonic() - self._began, 1), "step": step, **values}
        text = json.dumps(line)
        print(text, flush=True)
        with self._path.open("a") as file:
            file.write(text + "\n")

    def put_surroundings(self) -> None:
        self.put("surroundings", commit=commit(), **machine())

    @contextmanager
    def step(self, name: str, needs: float = 0.0) -> Iterator[dict[str, Any]]:
        """Time a step, whose values it adds to the dict, and record it, or how it failed.

        ``needs``: seconds that must be left for it to begin. Raises SkippedError if they are not.
        """
        if self.left < needs:
            self.put(name, skipped=f"{self.left:.0f} s are left")
            raise SkippedError(name)
        values: dict[str, Any] = {}
        synchronize()
        began = time.perf_counter()
        try:
            yield values
        except SkippedError:
            raise
        except Exception as error:
            self.n_failed += 1
            where = traceback.format_exc().splitlines()[-8:]
            self.put(name, failed=f"{type(error).__name__}: {error}", where=where, **values)
            raise SkippedError(name) from error
        synchronize()
        seconds = time.perf_counter() - began
        self.put(name, seconds=round(seconds, 4), gpu_gib=held_gib(), **values)


class SkippedError(Exception):
    """A step failed, or had no time; steps that need it are left out."""


def synchronize() -> None:
    cuda.cp.cuda.get_current_stream().synchronize()


def held_gib() -> float:
    """Return GiB that CuPy's pool holds of the memory of the GPU."""
    return round(cuda.cp.get_default_memory_pool().total_bytes() / 2**30, 2)


def free_pool() -> None:
    cuda.cp.get_default_memory_pool().free_all_blocks()


def draw_rmat(scale: int, n_edges: int, piece: int = PIECE) -> tuple[Any, Any]:
    """Return both ends of the edges of an R-MAT graph, int32, whose vertex numbers are shuffled."""
    draws = Draws(cuda.cp, SEED)
    shuffled = draws.permutation(1 << scale).astype(np.int32)
    src = cuda.cp.empty(n_edges, np.int32)
    dst = cuda.cp.empty(n_edges, np.int32)
    for part in _parts(n_edges, piece):
        ends = rmat_ends(scale, part.stop - part.start, draws, cuda.cp)
        src[part] = shuffled[ends[0]]
        dst[part] = shuffled[ends[1]]
    return src, dst


def draw_web(n_vertices: int, n_edges: int, piece: int = PIECE) -> tuple[Any, Any]:
    """Return both ends of the links of a web graph, int32: R-MAT, with sources among every fourth vertex.

    So three quarters of the vertices, and those without luck, link to no other. Numbers are shuffled.
    """
    scale = max(1, (n_vertices - 1).bit_length())
    draws = Draws(cuda.cp, SEED)
    shuffled = draws.permutation(n_vertices).astype(np.int32)
    src = cuda.cp.empty(n_edges, np.int32)
    dst = cuda.cp.empty(n_edges, np.int32)
    for part in _parts(n_edges, piece):
        ends = rmat_ends(scale, part.stop - part.start, draws, cuda.cp)
        linking = ends[0] % n_vertices // LINKING * LINKING
        src[part] = shuffled[linking]
        dst[part] = shuffled[ends[1] % n_vertices]
    return src, dst


def _parts(n_edges: int, piece: int) -> Iterator[slice]:
    for first in range(0, n_edges, piece):
        yield slice(first, min(first + piece, n_edges))


def build(src: Any, dst: Any, n_vertices: int, directed: bool) -> Graph:
    """Return the graph of vertices 0 to n - 1 on the GPU, without loops and parallel edges."""
    offsets, targets, _, _, _ = csr_build.assemble(src, dst, None, n_vertices, not directed)
    return Graph(
        offsets=offsets,
        targets=targets,
        weights=None,
        ids=cuda.cp.arange(n_vertices, dtype=index_dtype(n_vertices)),
        directed=directed,
    )
