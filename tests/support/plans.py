"""Every strategy for one source, and the table of one traversal."""

import numpy as np
import pytest

from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
from kepler_traverse.search.frames import Column, arrow_table, make_columns
from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY

BFS, SSSP = (registry.with_plugins()[0] for registry in (BFS_REGISTRY, SSSP_REGISTRY))


def rows_of(catalogue, without=()):
    """Parametrize ``row`` by the strategies of a catalogue that have none of these needs; those of a GPU are marked."""
    return pytest.mark.parametrize(
        "row",
        [
            pytest.param(
                row,
                marks=pytest.mark.gpu if row.device == "cuda" else (),
                id=f"{row.name}-{row.device}",
            )
            for row in catalogue
            if row.needs.isdisjoint(without)
        ],
    )


def table_of(graph, result, query):
    """Return the records of one traversal as a table ``source, vertex, distance[, predecessor]``."""
    columns = make_columns(graph, result, query)
    source = Column.of_vertices(graph, np.full(len(columns["vertex"].values), result.source))
    return arrow_table({"source": source, **columns})


def place_of_edges(strategy):
    """Where a graph has the edges that a strategy takes, as ``Graph.to`` names it."""
    if strategy.edges == "host":
        return "host"
    return "device"
