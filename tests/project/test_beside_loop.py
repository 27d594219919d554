"""The measurement of the job beside a loop over cuGraph compares what it should, and finds differences."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from kepler_traverse import bfs_many, graph_from_edges
from scripts.bench.cugraph_loop import summary_of
from scripts.bench.loop import EXACT, ROUNDED, differences

NAMES = (*EXACT, *ROUNDED)


@pytest.fixture(scope="module")
def graph():
    src, dst = np.random.default_rng(2).integers(0, 400, (2, 700))
    return graph_from_edges(src, dst)


@pytest.fixture(scope="module")
def summary(graph):
    return pa.Table.from_pandas(
        bfs_many(graph, graph.ids[:32], result="summary"), preserve_index=False
    )


def test_a_loop_computes_the_summary_of_the_library(graph, summary):
    rows = []
    for source in summary["source"].to_pylist():
        distance = np.full(graph.n_vertices, 2**31 - 1, np.int32)
        found = bfs_many(graph, [source])
        distance[np.searchsorted(graph.ids, found["vertex"])] = found["distance"]
        rows.append({"source": source} | summary_of(pd.Series(distance), graph.n_vertices))
    assert differences(summary, pa.Table.from_pylist(rows[::-1])) == ""


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_value_is_named(summary, name):
    values = summary[name].to_numpy().copy()
    values[5] = values[5] * (1 + 1e-9) if name in ROUNDED else values[5] + 1
    wrong = summary.set_column(summary.column_names.index(name), name, pa.array(values))
    assert f"{name} is " in differences(summary, wrong)


def test_a_missing_row_is_named(summary):
    assert "have 32 and 31 rows" in differences(summary, summary.slice(1))
