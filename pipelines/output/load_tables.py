"""Tables of loads: ``_cells.pq``, what the cells of the parts are, and ``_loads.pq``, the sums of
the parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kepler_traverse.cpu.exact_sums import ExactSums
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.loads import (
    EXTRA,
    LOST,
    LOST_PAIRS,
    columns_of_cells,
    count_cells,
    values_at,
)
from kepler_traverse.kinds.result_kinds import ResultKind
from kepler_traverse.runtime.regular_files import open_regular
from kepler_traverse.search.frames import arrow_table
from kepler_traverse.search.query import PairTable

from .manifest_types import Facts
from .part_reader import open_part
from .schemas import OUTPUT_SCHEMAS

CELLS = "_cells.pq"
LOADS = "_loads.pq"
# Metadata of the loads, which the manifest has, too: what pairs without a path would carry, of how
# many sources an estimate is made and what bounds its error, and the busiest rows.
LOAD_FACTS = {name: f"kepler_traverse.{name}".encode() for name in ("lost", "estimate", "busiest")}
_BUSIEST = 10
OF_GRAPH = b"kepler_traverse.graph"  # metadata of the cells: what the scale of loads follows from


def describe_result(result: str) -> str:
    """Return a line for people on what the files of a result have.

    Of loads it describes the merged table, and not the rows of the parts.
    """
    kind = OUTPUT_SCHEMAS[result]
    text = kind.means
    if kind.adds_up:
        text = (
            f"{LOADS} has what each edge, vertex or pair carries, parts and {CELLS} how it is "
            "made up"
        )
    return f"{result}: {text}"


def cells_table(graph: Graph, of: str, pairs: PairTable | None = None) -> pa.Table:
    """Return a table with a row per cell, in the order of their numbers.

    A cell is what has a load: an edge, a vertex or a pair, as ``of`` says ("edges", "vertices" or
    "pairs"). ``pairs`` is needed for pairs alone. The table's metadata have the size of the graph,
    from which the scale of loads follows.
    """
    columns = columns_of_cells(graph, of, np.arange(count_cells(graph, of, pairs)), pairs)
    facts = {"n_vertices": graph.n_vertices, "directed": graph.directed}
    return arrow_table(columns).replace_schema_metadata({OF_GRAPH: json.dumps(facts)})


def merge_loads(kind: ResultKind, options: Any, parts: Sequence[Path]) -> Iterable[pa.Table]:
    """Return the sums of all parts in one table, with a row per cell whose sum is not 0.

    Sums of flows are loads as they are. They also have two places behind those of the cells
    (``EXTRA``): what pairs without a path would carry (``LOST``), and the number of these pairs
    (``LOST_PAIRS``). Sums of betweenness are scaled, and no pair is lost there: a pair without a
    path adds nothing to it.

    Parameters
    ----------
    kind : ResultKind
        Kind of the result. ``load`` is the name of the column. ``scaled`` returns the factors of
        the sums and the bound of an estimate's error; it is None where loads are not scaled.
    options : KindOptions
        The options of the kind.
    parts : sequence of Path
        Part files of the run, at least one, in the folder with ``_cells.pq``.

    Returns
    -------
    list of one pyarrow.Table
        A list, since makers of other tables yield several, which follow each other in one file.
        The metadata of the table have what ``read_facts`` returns.

    Raises
    ------
    ValueError
        A part has a cell that ``_cells.pq`` lacks, or sums in another unit.
    """
    with open_regular(parts[0].parent / CELLS) as file:
        cells = pq.read_table(file, page_checksum_verification=True)
    n_cells = len(cells)
    sums = _sum_parts(kind, parts, n_cells + EXTRA)
    rows = sums.nonzero()
    rows = rows[rows < n_cells]  # without the sums of lost pairs, which come after the cells
    values = values_at(sums, rows, kind.load)

    # What the table says of itself: the lost pairs of flows, or the error of an estimate.
    facts = {}
    if kind.scaled is None:  # flows
        lost = values_at(sums, np.array([n_cells + LOST]), kind.load)[0].item()
        facts["lost"] = {"pairs": int(sums.low[n_cells + LOST_PAIRS]), kind.load: lost}
    else:
        # size and direction of the graph, by the names of the last two arguments of ``scaled``
        of_graph = json.loads((cells.schema.metadata or {})[OF_GRAPH])
        scales, facts = kind.scaled(options, rows, n_cells, **of_graph)
        values = values * scales

    loads = cells.take(pa.array(rows)).append_column(kind.load, pa.array(values))
    busiest = np.argsort(-values, kind="stable")[:_BUSIEST]  # of equal loads the first rows
    facts["busiest"] = loads.take(pa.array(busiest)).to_pylist()
    metadata = {LOAD_FACTS[name]: json.dumps(fact, default=str) for name, fact in facts.items()}
    return [loads.replace_schema_metadata(metadata)]


def _sum_parts(kind: ResultKind, parts: Sequence[Path], n_cells: int) -> ExactSums:
    """Return the sum of each cell over all parts, in the unit (a power of two) of the first part
    that has rows; sums of 0 if none has.

    ``n_cells`` counts the extra cells for lost pairs, too. Raises ValueError: a part has another
    unit, or a cell number that is too large.
    """
    sums: ExactSums | None = None
    for part in parts:
        with open_part(part) as file:
            for table in file.tables():
                # Of each row the number of the cell, the halves of its sum, and the power of two
                # that the sum is in.
                cell, low, high, exponent = (table[name].to_numpy() for name in kind.columns)
                if cell.size == 0:  # it has no exponent to compare
                    continue
                sums = sums or ExactSums(n_cells, int(exponent[0]))
                is_of_run = cell.min() >= 0 and cell.max() < n_cells
                if not is_of_run or (exponent != sums.exponent).any():
                    raise ValueError(
                        f"{part.name} has cells or units that are not those of this run"
                    )
                sums.add_at(cell, low.view(np.uint64), high)
    return sums or ExactSums(n_cells)


def read_facts(schema: pa.Schema) -> Facts:
    """Return what the metadata of a table of loads say, for the manifest; an empty dict for another
    table.
    """
    metadata = schema.metadata or {}
    return {name: json.loads(metadata[key]) for name, key in LOAD_FACTS.items() if key in metadata}  # type: ignore[return-value]
