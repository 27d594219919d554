"""Columns of the edge list beside those of the edges: ``--along``."""

from __future__ import annotations

from typing import Any

import numpy as np

from kepler_traverse.errors import EdgeListError, InputError, options_spelled
from kepler_traverse.formats import read_edges
from kepler_traverse.formats.files import shown
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.paths import AlongPaths, columns_along
from kepler_traverse.kinds.result_kinds import RESULT_KINDS

from ..cli.options import Settings, flag_text, options_of_files

_INT64_END = 2**63


def read_along(graph: Graph, settings: Settings, names: list[str]) -> AlongPaths:
    """Return the columns of ``--along``. The edge list is read once per column.

    ``graph``: built from the edge list, with ``edge_rows``.

    Raises InputError: the edge list has no such column, or the column holds no finite numbers, or its name is that of
    another column of the result; or a sum of integers may exceed int64.
    """
    own = RESULT_KINDS["paths"].columns
    for name in names:
        if name in own:
            raise InputError(f"--along {shown(name)}: the result has a column of this name; rename it in the edge list")
        if names.count(name) > 1:
            raise InputError(f"--along names {shown(name)} twice")
    columns = columns_along(graph, {name: _column(settings, name) for name in names})
    for name, values in columns.items():
        # No path has more edges than the graph has vertices.
        if values.dtype.kind == "i" and values.size and _largest(values) * graph.n_vertices >= _INT64_END:
            raise InputError(f"--along {shown(name)}: the sum over a path may exceed int64; give the column as floats")
    return AlongPaths(columns)


def _column(settings: Settings, name: str) -> np.ndarray:
    """Return a column of the edge list with one number per row; 0 in the rows that ``--where`` leaves out."""

    def spelled(option: str, value: object = None) -> str:
        return "--along" if option == "weight_column" else flag_text(option, value)

    with options_spelled(spelled):
        options = options_of_files(settings, weighted=None, weight_column=name)
        try:
            read = read_edges(settings.edges, options, settings.format)
        except EdgeListError as error:  # which takes the column for that of the weights
            message = error.message.replace("weight column", "column").replace("every edge has a weight", "fill such values")
            raise InputError(f"--along {shown(name)}: {message}") from None
    table: Any = read.table
    values = table["weight"].to_numpy()
    if read.kept is None:
        return values
    every = np.zeros(read.n_rows, values.dtype)
    every[read.kept] = values
    return every


def _largest(values: np.ndarray) -> int:
    return max(int(values.max()), -int(values.min()))
