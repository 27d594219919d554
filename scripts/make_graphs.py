#!/usr/bin/env python
"""Generate edge lists as Parquet, the same ones for the same seed.

python scripts/make_graphs.py rmat --scale 16 --edge-factor 16 --seed 1 --weights --output rmat.parquet
python scripts/make_graphs.py lattice --rows 300 --columns 300 --drop 0.1 --seed 1 --weights --output road.parquet
python scripts/make_graphs.py erdos-renyi --vertices 100000 --edges 800000 --seed 1 --output random.parquet
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

# Probabilities of the quadrants: those of Graph500.
RMAT = (0.57, 0.19, 0.19, 0.05)


def rmat(scale: int, edge_factor: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges of an R-MAT graph of 2**scale possible vertices, as listed: duplicates and self-loops stay.

    Chakrabarti, Zhan, Faloutsos. R-MAT: a recursive model for graph mining. SDM 2004. Vertex numbers are shuffled, so
    that a number tells nothing about the degree.
    """
    rng = np.random.default_rng(seed)
    n_edges = edge_factor << scale
    a, b, c, _ = RMAT
    src = np.zeros(n_edges, np.int64)
    dst = np.zeros(n_edges, np.int64)
    for _ in range(scale):
        draw = rng.random(n_edges, np.float32)
        src = 2 * src + (draw >= a + b)
        dst = 2 * dst + (((draw >= a) & (draw < a + b)) | (draw >= a + b + c))
    shuffled = rng.permutation(1 << scale)
    return shuffled[src], shuffled[dst]


def lattice(rows: int, columns: int, drop: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges of a road-like graph, each street once: a grid of which some edges are missing and some bend.

    A vertex is joined to the next one in its row and in its column. One street in five ends one row further down or
    one column to the right; the share ``drop`` is left out. Read it as undirected.
    """
    rng = np.random.default_rng(seed)
    number = np.arange(rows * columns, dtype=np.int64)
    row, column = np.divmod(number, columns)
    ends = []
    for down, right in ((0, 1), (1, 0)):
        bent = rng.random(number.size) < 0.2
        to_row = row + down + (bent & (right == 1))
        to_column = column + right + (bent & (down == 1))
        kept = (to_row < rows) & (to_column < columns) & (rng.random(number.size) >= drop)
        ends.append((number[kept], (to_row * columns + to_column)[kept]))
    return np.concatenate([src for src, _ in ends]), np.concatenate([dst for _, dst in ends])


def erdos_renyi(vertices: int, edges: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Edges whose two ends are drawn independently and uniformly; duplicates and self-loops stay."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, vertices, edges), rng.integers(0, vertices, edges)


def weights_for(n_edges: int, seed: int) -> np.ndarray:
    """Integer weights 1..255, drawn uniformly by a seed of their own, so that edges do not depend on them."""
    return np.random.default_rng([seed, 1]).integers(1, 256, n_edges, dtype=np.int32)


def write(path: Path, src: np.ndarray, dst: np.ndarray, weight: np.ndarray | None = None) -> None:
    """Write an edge list as Parquet with columns ``src, dst[, weight]``."""
    import pyarrow
    import pyarrow.parquet

    columns = {"src": src, "dst": dst} | ({} if weight is None else {"weight": weight})
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="zstd")


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--seed", type=int, default=1)
    shared.add_argument("--weights", action="store_true", help="add integer weights 1..255 as column 'weight'")
    shared.add_argument("--output", type=Path, required=True, help="the Parquet file to write")
    parser = argparse.ArgumentParser(description="Generate an edge list as Parquet, the same one for the same seed.")
    kinds = parser.add_subparsers(dest="kind", required=True)
    power_law = kinds.add_parser("rmat", parents=[shared], help="skewed degrees, as of a social network")
    power_law.add_argument("--scale", type=int, default=16, help="2**SCALE possible vertices")
    power_law.add_argument("--edge-factor", type=int, default=16, help="edges per possible vertex")
    road = kinds.add_parser("lattice", parents=[shared], help="small degrees and long paths, as of a road network")
    road.add_argument("--rows", type=int, default=300)
    road.add_argument("--columns", type=int, default=300)
    road.add_argument("--drop", type=float, default=0.1, help="share of the streets left out")
    uniform = kinds.add_parser("erdos-renyi", parents=[shared], help="edges drawn uniformly")
    uniform.add_argument("--vertices", type=int, default=100_000)
    uniform.add_argument("--edges", type=int, default=800_000)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.kind == "rmat":
        src, dst = rmat(options.scale, options.edge_factor, options.seed)
    elif options.kind == "lattice":
        src, dst = lattice(options.rows, options.columns, options.drop, options.seed)
    else:
        src, dst = erdos_renyi(options.vertices, options.edges, options.seed)
    write(options.output, src, dst, weights_for(src.size, options.seed) if options.weights else None)
    print(f"{options.output}: {src.size:,} rows")


if __name__ == "__main__":
    main()
