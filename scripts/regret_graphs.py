"""The graphs of the regret sweep: files of a folder, and generated ones, the same for the same seed with NumPy and CuPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from scripts.make_graphs import erdos_renyi, lattice, mesh, rmat

SEED = 1
SMALLEST, LARGEST = 1_000, {"cpu": 1_000_000, "cuda": 10_000_000}
FAMILIES = ("road", "lattice", "mesh", "web", "social", "uniform", "star", "path")
WIDE = 1_000_000
TAIL = 64  # pages


@dataclass(frozen=True)
class GraphSource:
    """One graph of the sweep; ``make()`` returns its ends."""

    name: str
    family: str
    directed: bool
    size: int
    make: Callable


def road(n: int) -> tuple:
    """A lattice whose edges are cut into three by vertices of degree two."""
    side = max(2, int((n / 5) ** 0.5))
    src, dst = lattice(side, side, 0.1, SEED)
    first = side * side + 2 * np.arange(src.size)
    return np.concatenate([src, first, first + 1]), np.concatenate([first, first + 1, dst])


def web(n: int) -> tuple:
    """A core that few pages lead to, and deep tails that lead out of it: most sources reach a tail alone."""
    rng = np.random.default_rng(SEED)
    core = n // 8
    src, dst = rng.integers(0, core, (2, 12 * core))
    dst = np.minimum(dst, rng.integers(0, core, dst.size))  # some pages are linked to from everywhere
    tail = np.arange(core, n)
    place = (tail - core) % TAIL
    before = np.where(place > 0, tail - 1, rng.integers(0, core, tail.size))
    further = np.minimum(tail + rng.integers(1, 4, tail.size), np.minimum(tail - place + TAIL, n) - 1)
    return np.concatenate([src, before, tail]), np.concatenate([dst, tail, further])


def ends_of(family: str, n: int) -> tuple:
    """Ends of a graph of about so many vertices."""
    side = max(2, int(n**0.5))
    if family == "road":
        return road(n)
    if family == "lattice":
        return lattice(side, side, 0.0, SEED)
    if family == "mesh":
        return mesh(side, side, SEED)
    if family == "web":
        return web(n)
    if family == "social":
        return rmat(max(int(np.log2(n)), 4), 16, SEED)
    if family == "uniform":
        return erdos_renyi(n, 8 * n, SEED)
    if family == "star":
        return np.zeros(n - 1, np.int64), np.arange(1, n)
    return np.arange(n - 1), np.arange(1, n)


def generated(smallest: int, largest: int) -> Iterator[GraphSource]:
    """Graphs of each family, of sizes by powers of ten, the families side by side."""
    size = smallest
    while size <= largest:
        for family in FAMILIES:
            ways = {"web": (True,), "social": (False, True), "uniform": (False, True)}.get(family, (False,))
            for directed in ways:
                name = f"{family} {size:,}" + (", directed" if directed else "")
                yield GraphSource(name, family, directed, size, lambda family=family, size=size: ends_of(family, size))
        size *= 10


DIRECTED_FILES = ("cnr-2000", "web-NotreDame", "soc-Slashdot0902", "soc-Epinions1", "algs4-10000EWD", "USA-road-d.NY")


def of_folder(folder: Path | None) -> Iterator[GraphSource]:
    """Graphs of a folder's Parquet files with columns src and dst; signed weights are left out and hashed ones taken."""
    import pyarrow.parquet

    for path in sorted(folder.glob("*.parquet")) if folder else ():
        file = pyarrow.parquet.ParquetFile(path)
        if not {"src", "dst"} <= set(file.schema_arrow.names):
            continue

        def make(path=path):
            table = pyarrow.parquet.read_table(path, columns=["src", "dst"])
            return table["src"].to_numpy().astype(np.int64), table["dst"].to_numpy().astype(np.int64)

        rows = file.metadata.num_rows
        yield GraphSource(path.stem, "file", path.stem in DIRECTED_FILES, rows, make)


def weights_of(src: np.ndarray, dst: np.ndarray, kind: str) -> np.ndarray:
    """Weights by a hash of an edge's ends, either way the same: all 1 (``unit``), or 1 to a million, small ones often."""
    if kind == "unit":
        return np.ones(src.size, np.float32)
    low, high = np.minimum(src, dst).astype(np.uint64), np.maximum(src, dst).astype(np.uint64)
    mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xBF58476D1CE4E5B9))
    mixed ^= mixed >> np.uint64(29)
    share = ((mixed * np.uint64(0x94D049BB133111EB)) >> np.uint64(40)).astype(np.float64) / (1 << 24)
    return np.floor(WIDE**share).astype(np.float32)  # as many between 1 and 10 as between 100 and 1,000


def build(source: GraphSource, weights: str | None, device: str):
    """The graph on a device; ``weights`` is None, ``unit`` or ``wide``."""
    from kepler_traverse import graph_from_edges

    src, dst = source.make()
    given = () if weights is None else (weights_of(src, dst, weights),)
    graph = graph_from_edges(src, dst, *given, directed=source.directed)
    return graph.to(device)
