"""Write the distances from every vertex to a Parquet file, in the memory of one group of sources.

    python -m examples.stream_distances edges.parquet distances.parquet --undirected

The job (``kepler-traverse run``, or ``kepler_traverse.pipelines.run_job``) also certifies its results, and can
be resumed.
"""

from __future__ import annotations

import argparse
import sys

import pyarrow.parquet as pq

from kepler_traverse import Graph, KeplerError, bfs_many, read_graph, sssp_many


def write_distances(graph: Graph, path: str, progress: bool = True) -> int:
    """Search from every vertex, write ``source, vertex, distance``, and return the number of rows."""
    many = bfs_many if graph.weights is None else sssp_many
    reader = many(graph, "all", stream="arrow", progress=progress)
    n_rows = 0
    with pq.ParquetWriter(path, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)
            n_rows += batch.num_rows
    return n_rows


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("edges")
    parser.add_argument("output")
    parser.add_argument("--undirected", action="store_true")
    given = parser.parse_args(argv)
    try:
        n_rows = write_distances(
            read_graph(given.edges, directed=not given.undirected), given.output
        )
    except KeplerError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    sys.stderr.write(f"{n_rows:,} rows\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
