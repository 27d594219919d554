"""The table of ``--pairs``: one pair of origin and destination per row, with any other columns."""

from __future__ import annotations

import pyarrow as pa

from kepler_traverse.errors import InputError
from kepler_traverse.formats.column_names import end_pairs, listed
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.pairs import pair_table
from kepler_traverse.search.query import PairTable

from ..cli.options import Settings
from ..output.schemas import OUTPUT_SCHEMAS
from .given_table import named_columns, numbers_in_column, read_given_table

DISTANCE = "distance"  # the column that is added to the table


def read_pairs(graph: Graph, settings: Settings, path: str) -> PairTable:
    """Return the rows of ``--pairs`` as vertex numbers.

    Raises
    ------
    InputError
        The file cannot be read, it is not sure which columns hold the ids, or a column has the name of the one to add.
    UnknownVertexError
        A row holds no vertex of the graph; the message names the file, the column, the row and the id.
    """
    table, names = read_pair_table(settings)
    origins, destinations = (numbers_in_column(graph, path, table, name) for name in names)
    if not origins.size:
        raise InputError(f"{path}: the table of pairs has no row")
    return pair_table(origins, destinations)


def read_pair_table(settings: Settings) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the table of ``--pairs`` and its columns of origins and destinations; see ``read_given_table``."""
    path = str(settings.pairs)

    def choose(names: list[str]) -> tuple[str, ...]:
        if OUTPUT_SCHEMAS[settings.result].adds_to == "pairs" and DISTANCE in names:
            raise InputError(f"{path}: the table of pairs has a column {DISTANCE!r}, which the result adds; rename it")
        origin, destination = settings.column("origin"), settings.column("destination")
        if origin is not None and destination is not None:
            return named_columns(path, "pairs", names, (origin, destination))
        pairs = end_pairs(names)
        if len(pairs) != 1:
            how = "name them with --columns origin=NAME,destination=NAME"
            raise InputError(f"{path}: it is not sure which columns hold the pairs; the table has {listed(names)}; {how}")
        return pairs[0]

    return read_given_table(path, "pairs", choose)
