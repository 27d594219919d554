#!/usr/bin/env python
"""Generate edge lists as Parquet, the same ones for the same seed.

python scripts/make_graphs.py rmat --scale 16 --edge-factor 16 --seed 1 --weights --output rmat.parquet
python scripts/make_graphs.py lattice --rows 300 --columns 300 --drop 0.1 --seed 1 --weights --output road.parquet
python scripts/make_graphs.py erdos-renyi --vertices 100000 --edges 800000 --seed 1 --output random.parquet
python scripts/make_graphs.py mesh --rows 300 --columns 300 --seed 1 --weights --output mesh.parquet
python scripts/make_graphs.py degree-six --rows 300 --columns 300 --output grid.parquet
python scripts/make_graphs.py scale-free --vertices 100000 --seed 1 --output hubs.parquet
python scripts/make_graphs.py potentials road.parquet --largest 10000 --seed 1 --output negative.parquet

The generators also run on a GPU: give them ``xp=cupy`` and ``rng=Draws(cupy, seed)``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

# Probabilities of the quadrants: those of Graph500.
RMAT = (0.57, 0.19, 0.19, 0.05)

_GOLDEN = 0x9E3779B97F4A7C15
_LAST_64_BITS = (1 << 64) - 1


def _mix(x):
    """The output function of splitmix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


class Draws:
    """Random numbers of splitmix64, each computed from its position, so that NumPy and CuPy give the same.

    Has the methods of ``numpy.random.Generator`` that the generators below need.
    """

    def __init__(self, xp, seed: int):
        self.xp = xp
        self.seed = seed
        self.drawn = 0

    def _bits(self, size: int):
        position = self.xp.arange(size, dtype=np.uint64)
        start = (
            int(_mix(np.array([self.seed], np.uint64))[0]) + (self.drawn + 1) * _GOLDEN
        ) & _LAST_64_BITS
        self.drawn += size
        return _mix(position * np.uint64(_GOLDEN) + np.uint64(start))

    def random(self, size: int, dtype=np.float64):
        """Multiples of 2^-24 in [0, 1), which both float types hold exactly."""
        return (self._bits(size) >> np.uint64(40)).astype(dtype) * dtype(2.0**-24)

    def integers(self, low: int, high: int, size: int, dtype=np.int64):
        return (self._bits(size) % np.uint64(high - low)).astype(dtype) + dtype(low)

    def permutation(self, n: int):
        return self.xp.argsort(self._bits(n))


def rmat(scale: int, edge_factor: int, seed: int, xp=np, rng=None) -> tuple:
    """Edges of an R-MAT graph of 2**scale possible vertices, as listed: duplicates and self-loops stay.

    Chakrabarti, Zhan, Faloutsos. R-MAT: a recursive model for graph mining. SDM 2004. Vertex numbers are shuffled, so
    that a number tells nothing about the degree.
    """
    rng = rng or np.random.default_rng(seed)
    src, dst = rmat_ends(scale, edge_factor << scale, rng, xp)
    shuffled = rng.permutation(1 << scale)
    return shuffled[src], shuffled[dst]


def rmat_ends(scale: int, n_edges: int, rng, xp=np, quadrants=RMAT) -> tuple:
    """Edges of ``rmat`` before the shuffle. A large graph consists of several such blocks and one shuffle."""
    a, b, c, _ = quadrants
    src = xp.zeros(n_edges, np.int64)
    dst = xp.zeros(n_edges, np.int64)
    for _ in range(scale):
        draw = rng.random(n_edges, np.float32)
        src = 2 * src + (draw >= a + b)
        dst = 2 * dst + (((draw >= a) & (draw < a + b)) | (draw >= a + b + c))
    return src, dst


def lattice(rows: int, columns: int, drop: float, seed: int, xp=np, rng=None) -> tuple:
    """Edges of a road-like graph, each street once: a grid of which some edges are missing and some bend.

    A vertex is joined to the next one in its row and in its column. One street in five ends one row further down or
    one column to the right. The fraction ``drop`` is omitted. Read it as undirected.
    """
    rng = rng or np.random.default_rng(seed)
    number = xp.arange(rows * columns, dtype=np.int64)
    row = number // columns
    column = number % columns
    ends = []
    for down, right in ((0, 1), (1, 0)):
        bent = rng.random(number.size) < 0.2
        to_row = row + down + (bent & (right == 1))
        to_column = column + right + (bent & (down == 1))
        kept = (to_row < rows) & (to_column < columns) & (rng.random(number.size) >= drop)
        ends.append((number[kept], (to_row * columns + to_column)[kept]))
    return xp.concatenate([src for src, _ in ends]), xp.concatenate([dst for _, dst in ends])


def mesh(rows: int, columns: int, seed: int, xp=np, rng=None) -> tuple:
    """Edges of a triangulated grid, each once: like a Delaunay triangulation, with 6 neighbors per vertex on average.

    A vertex is joined to the next one in its row and in its column, and each cell has one of its two diagonals, at
    random, so that inner vertices have 4 to 8 neighbors. Read it as undirected.
    """
    rng = rng or np.random.default_rng(seed)
    return _triangulated(rows, columns, rng.random(rows * columns) < 0.5, xp)


def degree_six(rows: int, columns: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """Edges of a grid whose inner vertices all have 6 neighbors, each once: every cell has the same diagonal.

    The "regular graphs" of Luo, Wong, Hwu (DAC 2010). Nothing is drawn. Read it as undirected.
    """
    return _triangulated(rows, columns, xp.ones(rows * columns, bool), xp)


def _triangulated(rows: int, columns: int, falls, xp) -> tuple:
    """A grid with a diagonal in each cell, which falls to the right where ``falls`` says so for its first vertex."""
    number = xp.arange(rows * columns, dtype=np.int64)
    row = number // columns
    column = number % columns
    has_right = column + 1 < columns
    has_below = row + 1 < rows
    src = [number[has_right], number[has_below]]
    dst = [number[has_right] + 1, number[has_below] + columns]
    cell = has_right & has_below
    src.append(xp.where(falls, number, number + 1)[cell])
    dst.append(xp.where(falls, number + columns + 1, number + columns)[cell])
    return xp.concatenate(src), xp.concatenate(dst)


HUB_EDGES = 1000  # of one vertex in as many


def scale_free(vertices: int, seed: int, xp=np, rng=None) -> tuple:
    """Edges out of few hubs and many other vertices: 0.1 % of the vertices have 1,000, the others 5 to 7, 6 on average.

    After Luo, Wong, Hwu (DAC 2010), Table 3. The other ends are drawn uniformly; duplicates and self-loops stay. Read it
    as directed, so that vertices have these degrees.
    """
    rng = rng or np.random.default_rng(seed)
    first = xp.arange(0, vertices - HUB_EDGES + 1, HUB_EDGES, dtype=np.int64)
    hubs = first + rng.integers(0, HUB_EDGES, first.size)
    is_small = xp.ones(vertices, bool)
    is_small[hubs] = False
    beyond_five = rng.integers(0, 3, vertices)
    small = xp.flatnonzero(is_small)
    parts = [
        xp.tile(small, 5),
        *(xp.flatnonzero(is_small & (beyond_five >= count)) for count in (1, 2)),
    ]
    src = xp.concatenate([*parts, xp.repeat(hubs, HUB_EDGES)])
    return src, rng.integers(0, vertices, src.size)


def potential(ids, largest: int, seed: int):
    """Integers 0..largest, one for each vertex id, by a hash of id and seed; NumPy or CuPy, as the ids are."""
    start = np.uint64(int(_mix(np.array([seed], np.uint64))[0]))
    return (
        _mix(_mix(ids.astype(np.int64).astype(np.uint64)) + start) % np.uint64(largest + 1)
    ).astype(np.int64)


def with_potentials(src, dst, weight, largest: int, seed: int):
    """Weights w + h[src] - h[dst]: negative ones appear, but no negative cycle where there was none.

    h is ``potential``. The distance from s to v becomes d + h[s] - h[v], and shortest paths stay shortest paths.
    """
    return weight + (potential(src, largest, seed) - potential(dst, largest, seed)).astype(
        weight.dtype
    )


def erdos_renyi(vertices: int, edges: int, seed: int, xp=np, rng=None) -> tuple:  # noqa: ARG001
    """Edges whose two ends are drawn independently and uniformly; duplicates and self-loops stay."""
    rng = rng or np.random.default_rng(seed)
    return rng.integers(0, vertices, edges), rng.integers(0, vertices, edges)


def weights_for(n_edges: int, seed: int) -> np.ndarray:
    """Integer weights 1..255, drawn uniformly with a separate seed, so that edges do not depend on them."""
    return np.random.default_rng([seed, 1]).integers(1, 256, n_edges, dtype=np.int32)


def write(path: Path, src: np.ndarray, dst: np.ndarray, weight: np.ndarray | None = None) -> None:
    """Write an edge list as Parquet with columns ``src, dst[, weight]``."""
    import pyarrow
    import pyarrow.parquet

    columns = {"src": src, "dst": dst} | ({} if weight is None else {"weight": weight})
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd")


class Kind(NamedTuple):
    """A kind of graph: its generator, the defaults of its arguments, and what it is like."""

    generate: Callable[..., tuple]
    defaults: dict[str, float]
    about: str


GRID = {"rows": 300, "columns": 300}
KINDS = {
    "rmat": Kind(rmat, {"scale": 16, "edge-factor": 16}, "skewed degrees, as in a social network"),
    "lattice": Kind(
        lattice, GRID | {"drop": 0.1}, "small degrees and long paths, as in a road network"
    ),
    "mesh": Kind(mesh, GRID, "about 6 neighbors each, as in a triangulation"),
    "degree-six": Kind(degree_six, GRID, "a grid with 6 neighbors each; the seed has no effect"),
    "scale-free": Kind(
        scale_free, {"vertices": 100_000}, "1,000 edges for 0.1 %% of the vertices, 6 for others"
    ),
    "erdos-renyi": Kind(
        erdos_renyi, {"vertices": 100_000, "edges": 800_000}, "edges drawn uniformly"
    ),
}
MEANING = {
    "scale": "2**SCALE possible vertices",
    "edge-factor": "edges per possible vertex",
    "drop": "fraction of the streets omitted",
}
POTENTIALS = "negative weights without negative cycles, from a weighted edge list"


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--seed", type=int, default=1)
    shared.add_argument("--output", type=Path, required=True, help="the Parquet file to write")
    parser = argparse.ArgumentParser(
        description="Generate an edge list as Parquet, the same one for the same seed."
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    for name, kind in KINDS.items():
        added = kinds.add_parser(name, parents=[shared], help=kind.about)
        for option, value in kind.defaults.items():
            given = {"type": type(value), "default": value, "help": MEANING.get(option)}
            added.add_argument(f"--{option}", **given)
        added.add_argument(
            "--weights", action="store_true", help="add integer weights 1..255 as column 'weight'"
        )
    negative = kinds.add_parser("potentials", parents=[shared], help=POTENTIALS)
    negative.add_argument("edges", type=Path, help="Parquet file with columns src, dst, weight")
    negative.add_argument(
        "--largest", type=int, default=10_000, help="largest potential of a vertex"
    )
    return parser.parse_args(arguments)


def read_weighted(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns ``src, dst, weight`` of a Parquet file; leaves with a message where there are no such columns."""
    import pyarrow.parquet

    names = pyarrow.parquet.read_schema(path).names
    missing = [name for name in ("src", "dst", "weight") if name not in names]
    if missing:
        raise SystemExit(f"{path}: no column {missing[0]!r}; potentials need src, dst and weight")
    table = pyarrow.parquet.read_table(path, columns=["src", "dst", "weight"])
    src, dst, weight = (table[name].to_numpy() for name in table.column_names)
    return src, dst, weight


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    weight = None
    if options.kind == "potentials":
        src, dst, weight = read_weighted(options.edges)
        weight = with_potentials(src, dst, weight, options.largest, options.seed)
    else:
        kind = KINDS[options.kind]
        values = (getattr(options, name.replace("-", "_")) for name in kind.defaults)
        src, dst = kind.generate(*values, options.seed)
        if options.weights:
            weight = weights_for(src.size, options.seed)
    write(options.output, src, dst, weight)
    print(f"{options.output}: {src.size:,} rows")


if __name__ == "__main__":
    main()
