"""The graphs of the regret sweep: files of a folder, and generated ones, the same for the same seed with NumPy and CuPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kepler_traverse import cuda
from kepler_traverse._arrays import namespace
from scripts.make_graphs import Draws, erdos_renyi, lattice, mesh, rmat

SEED = 1
SMALLEST = 1_000
LARGEST = {"cpu": 1_000_000, "cuda": 10_000_000}
FAMILIES = ("road", "lattice", "mesh", "web", "social", "uniform", "dense", "star", "path")
NETWORKS = ("road", "lattice")
NETWORK_FILES = ("USA-road", "luxembourg")
WIDE = 1_000_000
TAIL = 64  # pages


@dataclass(frozen=True)
class GraphSource:
    """One graph of the sweep; ``make(xp)`` returns its ends as arrays of NumPy or CuPy."""

    name: str
    family: str
    directed: bool
    size: int
    make: Callable

    @property
    def is_network(self) -> bool:
        """Whether it is like a network of roads, which a hierarchy is built of."""
        return self.family in NETWORKS or self.name.startswith(NETWORK_FILES)


def road(n: int, xp=np) -> tuple:
    """A lattice whose edges are divided into three by vertices of degree two."""
    side = max(2, int((n / 5) ** 0.5))
    src, dst = lattice(side, side, 0.1, SEED, xp, Draws(xp, SEED))
    first = side * side + 2 * xp.arange(src.size)
    return xp.concatenate([src, first, first + 1]), xp.concatenate([first, first + 1, dst])


def web(n: int, xp=np) -> tuple:
    """A core that few pages lead to, and deep tails that lead out of it: most sources reach a tail alone."""
    rng = Draws(xp, SEED)
    core = n // 8
    src = rng.integers(0, core, 12 * core)
    dst = rng.integers(0, core, 12 * core)
    # some pages are linked to from everywhere
    dst = xp.minimum(dst, rng.integers(0, core, dst.size))
    tail = xp.arange(core, n)
    place = (tail - core) % TAIL
    before = xp.where(place > 0, tail - 1, rng.integers(0, core, tail.size))
    further = xp.minimum(
        tail + 1 + rng.integers(0, 3, tail.size), xp.minimum(tail - place + TAIL, n) - 1
    )
    return xp.concatenate([src, before, tail]), xp.concatenate([dst, tail, further])


def ends_of(family: str, n: int, xp=np) -> tuple:
    """Ends of a graph of about so many vertices."""
    side = max(2, int(n**0.5))
    if family == "road":
        return road(n, xp)
    if family == "lattice":
        return lattice(side, side, 0.0, SEED, xp, Draws(xp, SEED))
    if family == "mesh":
        return mesh(side, side, SEED, xp, Draws(xp, SEED))
    if family == "web":
        return web(n, xp)
    if family == "social":
        return rmat(max(int(np.log2(n)), 4), 16, SEED, xp, Draws(xp, SEED))
    if family in ("uniform", "dense"):
        return erdos_renyi(n, {"uniform": 8, "dense": 32}[family] * n, SEED, xp, Draws(xp, SEED))
    if family == "star":
        return xp.zeros(n - 1, np.int64), xp.arange(1, n)
    return xp.arange(n - 1), xp.arange(1, n)


def generated(smallest: int, largest: int) -> Iterator[GraphSource]:
    """Graphs of each family, in sizes by powers of ten; the families alternate."""
    size = smallest
    while size <= largest:
        for family in FAMILIES:
            ways = {"web": (True,), "social": (False, True), "uniform": (False, True)}.get(
                family, (False,)
            )
            for directed in ways:
                name = f"{family} {size:,}" + (", directed" if directed else "")
                yield GraphSource(
                    name,
                    family,
                    directed,
                    size,
                    lambda xp=np, family=family, size=size: ends_of(family, size, xp),
                )
        size *= 10


DIRECTED_FILES = (
    "cnr-2000",
    "web-NotreDame",
    "soc-Slashdot0902",
    "soc-Epinions1",
    "algs4-10000EWD",
    "USA-road-d.NY",
)


def of_folder(folder: Path | None) -> Iterator[GraphSource]:
    """Graphs of a folder's Parquet files with columns src and dst; signed weights are replaced by hashed ones."""
    import pyarrow.parquet

    for path in sorted(folder.glob("*.parquet")) if folder else ():
        file = pyarrow.parquet.ParquetFile(path)
        if not {"src", "dst"} <= set(file.schema_arrow.names):
            continue

        def make(xp=np, path=path):
            table = pyarrow.parquet.read_table(path, columns=["src", "dst"])
            return tuple(
                xp.asarray(table[name].to_numpy().astype(np.int64)) for name in ("src", "dst")
            )

        rows = file.metadata.num_rows
        yield GraphSource(path.stem, "file", path.stem in DIRECTED_FILES, rows, make)


def weights_of(src, dst, kind: str):
    """Weights by a hash of an edge's ends, either way the same: all 1 (``unit``), 1 to 100 (``even``), or 1 to a million.

    Of the last ones (``wide``) small ones are frequent.
    """
    xp = namespace(src)
    if kind == "unit":
        return xp.ones(src.size, np.float32)
    low = xp.minimum(src, dst).astype(np.uint64)
    high = xp.maximum(src, dst).astype(np.uint64)
    mixed = (low * np.uint64(0x9E3779B97F4A7C15)) ^ (high * np.uint64(0xBF58476D1CE4E5B9))
    mixed ^= mixed >> np.uint64(29)
    share = ((mixed * np.uint64(0x94D049BB133111EB)) >> np.uint64(40)).astype(np.float64) / (
        1 << 24
    )
    if kind == "even":
        return xp.floor(1 + 100 * share).astype(np.float32)
    # as many between 1 and 10 as between 100 and 1,000
    return xp.floor(WIDE**share).astype(np.float32)


def build(source: GraphSource, weights: str | None, device: str):
    """The graph on a device; ``weights`` is None, ``unit``, ``even`` or ``wide``."""
    from kepler_traverse import graph_from_edges

    src, dst = source.make(cuda.cp if device == "cuda" else np)
    given = () if weights is None else (weights_of(src, dst, weights),)
    return graph_from_edges(src, dst, *given, directed=source.directed)
