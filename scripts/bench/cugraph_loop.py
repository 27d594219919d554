"""A program of a cuGraph user: read with cuDF, search from one source after the other, write each frame as Parquet.

python -m scripts.bench.cugraph_loop edges.parquet OUT --sources-file FILE [--undirected]

The baseline of ``python -m pipelines.batch_sources edges.parquet --output OUT --sources-file FILE --algorithm bfs``. The
file has columns src and dst; needs a GPU, cuDF and cuGraph. OUT must not exist.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("edges", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--sources-file", type=Path, required=True, help="an id a line")
    parser.add_argument("--undirected", action="store_true")
    options = parser.parse_args(arguments)
    import cudf
    import cugraph

    sources = [int(line) for line in options.sources_file.read_text(encoding="utf-8").split()]
    options.output.mkdir()
    started = time.perf_counter()
    graph = cugraph.Graph(directed=not options.undirected)
    graph.from_cudf_edgelist(cudf.read_parquet(options.edges), source="src", destination="dst")
    built = time.perf_counter()
    for number, source in enumerate(sources):
        frame = cugraph.bfs(graph, source)
        frame["source"] = source
        frame[["source", "vertex", "distance"]].to_parquet(options.output / f"{number}.parquet")
    seconds = time.perf_counter() - built
    each = 1e3 * seconds / len(sources)
    print(f"read and built in {built - started:.2f} s; {len(sources)} sources in {seconds:.2f} s, {each:.1f} ms per source")
    return 0


if __name__ == "__main__":
    sys.exit(main())
