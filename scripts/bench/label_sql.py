"""Time the queries of docs/labels.md in DuckDB: ``python -m scripts.bench.label_sql LABELS [--pairs 100000] [--calls 100]``.

LABELS is the output of ``kepler-traverse run --result labels`` of an undirected graph. Distances are compared with those of
the labels before a time is printed. Times are milliseconds of a warm query, with the Parquet files as the only tables.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipelines.output.label_reader import read_labels

PAGE = Path(__file__).parents[2] / "docs" / "labels.md"


def measure(folder: str, n_pairs: int, n_calls: int) -> dict[str, Any]:
    """Return the times of single pairs, and of a table of pairs."""
    import duckdb

    queries = dict(re.findall(r"```sql\n-- ([\w ]+)\n(.*?)```", PAGE.read_text(), re.S))
    read = read_labels(folder)
    numbers = np.random.default_rng(0).integers(0, read.labels.n_vertices, (2, n_pairs))
    sums = read.labels.between(*numbers)
    expected = [None if each == read.labels.unreached else each for each in sums.tolist()]
    sources, targets = (np.asarray(read.ids)[each].tolist() for each in numbers)
    database = duckdb.connect()
    database.execute("SET parquet_metadata_cache = true; SET enable_progress_bar = false")
    database.execute(re.sub("'labels(_in)?/", f"'{folder}/", queries["views"]))
    one = re.sub(r":(\w+)", r"$\1", queries["one pair"])
    times = []
    for i in range(n_calls):
        began = time.perf_counter()
        found = database.execute(one, {"s": sources[i], "t": targets[i]}).fetchall()
        times.append(1e3 * (time.perf_counter() - began))
        assert found == [(expected[i],)]
    pairs = pd.DataFrame({"pair": range(n_pairs), "source": sources, "target": targets})
    database.register("pairs", pairs)
    began = time.perf_counter()
    rows = database.execute(queries["a table of pairs"]).fetchall()
    joined = time.perf_counter() - began
    assert [distance for _, distance in rows] == expected
    return {
        "one pair, best, ms": round(min(times), 2),
        "one pair, median, ms": round(statistics.median(times), 2),
        "pairs of the table": n_pairs,
        "table of pairs, ms": round(1e3 * joined),
        "DuckDB": duckdb.__version__,
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("labels")
    command.add_argument("--pairs", type=int, default=100_000)
    command.add_argument("--calls", type=int, default=100)
    given = command.parse_args()
    print(json.dumps(measure(given.labels, given.pairs, given.calls), indent=1))
