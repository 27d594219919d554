"""``kepler_traverse.csgraph`` compared with ``scipy.sparse.csgraph`` on the CPU; results are compared before times.

python -m scripts.bench.csgraph --graphs FOLDER --output docs/benchmarks/csgraph.json [--only NAME ...] [--repeats N]

FOLDER holds Parquet files with columns src and dst (GRAPHS lists which). Both libraries get the same CSR matrix with float64
weights 1 to 255 and make the same call, in one process, one after the other; the matrix is read anew in each call. A time is
the least of the repeats. The first call, which compiles or loads compiled code, is not among them.
``python -m scripts.docs.measured_tables`` renders the record into docs/from/scipy.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from kepler_traverse import csgraph
from scripts.bench.environment import about, least
from scripts.pages import read_record, write_record

# name: (file, directed)
GRAPHS = {
    "USA-road-NY": ("USA-road-NY-topology.parquet", False),
    "luxembourg_osm": ("luxembourg_osm.parquet", False),
    "soc-Slashdot0902": ("soc-Slashdot0902.parquet", True),
    "dblp-2010": ("dblp-2010.parquet", False),
}
SOURCES = (1, 32, 256)
LONG = 256  # sources from which on one call is timed, since the calls take seconds
MAX_BYTES = 1 << 30  # of a matrix of distances, of which there are two at a time


def matrix_of(path: Path, directed: bool) -> Any:
    """Return the matrix of an edge list, in both directions if undirected, so that both libraries search the same edges."""
    import pandas
    import scipy.sparse

    from pipelines.comparison import hashed_weights

    frame = pandas.read_parquet(path, columns=["src", "dst"])
    ends = np.concatenate([frame["src"].to_numpy(), frame["dst"].to_numpy()])
    ids, numbers = np.unique(ends, return_inverse=True)
    src, dst = np.split(numbers, 2)
    weight = hashed_weights(src, dst, directed).astype(np.float64)
    if not directed:
        src, dst, weight = (
            np.concatenate([src, dst]),
            np.concatenate([dst, src]),
            np.tile(weight, 2),
        )
    _, first = np.unique(src * ids.size + dst, return_index=True)
    return scipy.sparse.csr_array(
        (weight[first], (src[first], dst[first])), shape=(ids.size, ids.size)
    )


def calls(n_sources: int) -> dict[str, dict[str, Any]]:
    """The calls that are timed with a number of sources: function and arguments by title."""
    found: dict[str, dict[str, Any]] = {
        "dijkstra": {"name": "dijkstra"},
        "dijkstra, return_predecessors=True": {"name": "dijkstra", "return_predecessors": True},
        "dijkstra, unweighted=True": {"name": "dijkstra", "unweighted": True},
    }
    if n_sources == 1:
        found["breadth_first_order"] = {"name": "breadth_first_order"}
    else:
        found["dijkstra, min_only=True"] = {"name": "dijkstra", "min_only": True}
    return found


def agree(ours: Any, theirs: Any, name: str) -> bool:
    """Whether two results are equal; of predecessors of ``dijkstra``, which SciPy leaves open, whether they are there."""
    if not isinstance(ours, tuple):
        return ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    if name == "breadth_first_order":
        return all(map(np.array_equal, ours, theirs))
    return np.array_equal(ours[0], theirs[0]) and np.array_equal(
        ours[1] == -9999, theirs[1] == -9999
    )


def measure(
    graph: str, matrix: Any, sources: np.ndarray, title: str, call: dict[str, Any], repeats: int
) -> dict[str, Any]:
    """Time one call of both libraries. A result that differs ends the program."""
    import scipy.sparse.csgraph

    named = dict(call)
    name = named.pop("name")
    indices = int(sources[0]) if sources.size == 1 else sources
    arguments = (matrix, indices) if name == "breadth_first_order" else (matrix, True, indices)
    getattr(csgraph, name)(*arguments, **named)
    repeats = repeats if sources.size < LONG else 1
    seconds, ours = least(lambda: getattr(csgraph, name)(*arguments, **named), repeats)
    scipy_seconds, theirs = least(
        lambda: getattr(scipy.sparse.csgraph, name)(*arguments, **named), repeats
    )
    if not agree(ours, theirs, name):
        raise SystemExit(f"{graph}, {title}, {sources.size} sources: the results differ")
    return {
        "graph": graph,
        "vertices": matrix.shape[0],
        "edges": int(matrix.nnz),
        "call": title,
        "sources": int(sources.size),
        "seconds": float(f"{seconds:.3g}"),
        "scipy_seconds": float(f"{scipy_seconds:.3g}"),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description="Compare kepler_traverse.csgraph with scipy.sparse.csgraph."
    )
    parser.add_argument("--graphs", type=Path, required=True)
    parser.add_argument(
        "--output", type=Path, required=True, help="existing measurements of other graphs are kept"
    )
    parser.add_argument("--only", nargs="+", choices=list(GRAPHS), default=list(GRAPHS))
    parser.add_argument("--sources", nargs="+", type=int, default=list(SOURCES))
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args(arguments)
    rows = []
    for graph in options.only:
        file, directed = GRAPHS[graph]
        matrix = matrix_of(options.graphs / file, directed)
        candidates = np.flatnonzero(np.diff(matrix.indptr))
        order = np.random.default_rng(1).permutation(candidates)
        for count in options.sources:
            if count * matrix.shape[0] * 8 > MAX_BYTES:
                continue
            for title, call in calls(count).items():
                rows.append(measure(graph, matrix, order[:count], title, call, options.repeats))
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    before = read_record(options.output)["rows"] if options.output.exists() else []
    kept = [
        row
        for row in before
        if (row["graph"], row["sources"]) not in {(r["graph"], r["sources"]) for r in rows}
    ]
    rows = sorted(kept + rows, key=lambda row: (list(GRAPHS).index(row["graph"]), row["sources"]))
    write_record(options.output, about(("scipy", "numpy", "numba")) | {"rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
