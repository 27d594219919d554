"""An edge list as tables in memory and as files, in the forms in which users have them."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from scripts.storm.edges import FLOATS, EdgeList

NAMES = ("src", "dst", "weight")


def arrow_table(edges: EdgeList, more: dict[str, list] | None = None) -> pa.Table:
    """Return an edge list as an Arrow table, with further columns."""
    id_type = pa.string() if edges.has_text_ids else pa.int64()
    columns = {
        "src": pa.array([row[0] for row in edges.rows], id_type),
        "dst": pa.array([row[1] for row in edges.rows], id_type),
    }
    if edges.is_weighted:
        columns["weight"] = pa.array(
            [row[2] for row in edges.rows], pa.type_for_alias(edges.weights)
        )
    columns |= {name: pa.array(values) for name, values in (more or {}).items()}
    return pa.table(columns)


# In memory.


def _arrays(edges: EdgeList, _draw: Random) -> Any:
    table = arrow_table(edges)
    columns = [table[name].to_numpy() for name in table.column_names]
    return tuple(columns)


def _lists(edges: EdgeList, _draw: Random) -> Any:
    table = arrow_table(edges)
    if edges.weights == "float32":  # a list of floats is float64
        return tuple(table[name] for name in table.column_names)
    return tuple(table[name].to_pylist() for name in table.column_names)


def _frame(edges: EdgeList, draw: Random) -> Any:
    frame = arrow_table(edges).to_pandas()
    if draw.random() < 0.3:
        frame.index = draw.sample(range(10 * len(frame)), len(frame))
    return frame


def _mapping(edges: EdgeList, _draw: Random) -> Any:
    table = arrow_table(edges)
    return {name: table[name].to_numpy() for name in table.column_names}


def _chunks(edges: EdgeList, draw: Random) -> Any:
    table = arrow_table(edges)
    cut = draw.randrange(table.num_rows + 1)
    return pa.concat_tables([table[:cut], table[:0], table[cut:]])


def _tuples(edges: EdgeList, _draw: Random) -> Any:
    if edges.weights == "float32" or len(edges.rows) in (2, 3):  # which could be columns
        return arrow_table(edges)
    return [row if edges.is_weighted else row[:2] for row in edges.rows]


def _polars(edges: EdgeList, _draw: Random) -> Any:
    if find_spec("polars") is None:
        return arrow_table(edges)
    import polars

    return polars.from_arrow(arrow_table(edges))


IN_MEMORY: dict[str, Callable[[EdgeList, Random], Any]] = {
    "arrays": _arrays,
    "lists": _lists,
    "pandas": _frame,
    "mapping": _mapping,
    "Arrow in chunks": _chunks,
    "tuples": _tuples,
    "polars": _polars,
}


# Files.


@dataclass(frozen=True)
class Written:
    """Files of an edge list: what to read, and options of the reader by the names of the library."""

    path: Any
    options: dict


def _text(edges: EdgeList, delimiter: str, has_header: bool = True) -> str:
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    names = NAMES if edges.is_weighted else NAMES[:2]
    if has_header:
        writer.writerow(names)
    for row in edges.rows:
        cells = row if edges.is_weighted else row[:2]
        writer.writerow([repr(cell) if isinstance(cell, float) else cell for cell in cells])
    return out.getvalue()


def _text_options(edges: EdgeList) -> dict:
    options = {}
    if edges.has_text_ids:
        options["id_type"] = "string"
    if edges.weights in FLOATS:
        options["weight_type"] = edges.weights
    return options


def _csv(
    edges: EdgeList, folder: Path, _draw: Random, delimiter: str = ",", name: str = "edges.csv"
) -> Written:
    data = _text(edges, delimiter).encode()
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    options = _text_options(edges)
    if delimiter != ",":
        options["delimiter"] = delimiter
    return Written(folder / name, options)


def _parquet(edges: EdgeList, folder: Path, draw: Random) -> Written:
    size = draw.choice([1, 7, 1000])
    pq.write_table(arrow_table(edges), folder / "edges.parquet", row_group_size=size)
    return Written(folder / "edges.parquet", {})


def _cut_rows(edges: EdgeList, draw: Random) -> list[EdgeList]:
    """Return consecutive slices of an edge list, of which one is empty."""
    count = draw.randrange(2, 5)
    cuts = sorted(draw.choices(range(len(edges.rows) + 1), k=count - 1))
    slices = [edges.rows[begin:end] for begin, end in pairwise([0, *cuts, len(edges.rows)])]
    slices.insert(draw.randrange(len(slices) + 1), [])
    return [replace(edges, rows=rows, back=None) for rows in slices]


def _table_part(part: EdgeList, edges: EdgeList) -> pa.Table:
    whole = arrow_table(edges)
    if not part.rows:
        return whole[:0]
    return arrow_table(part).cast(whole.schema)


def _parts(
    edges: EdgeList, folder: Path, draw: Random, name: str = "parquet", is_list: bool = False
) -> Written:
    """Write slices of an edge list into a folder, which is read as a whole or as a list of files."""
    place = folder / "parts"
    place.mkdir()
    paths = []
    for number, part in enumerate(_cut_rows(edges, draw)):
        paths.append(place / f"part-{number:05d}.{name}")
        if name == "csv":
            paths[-1].write_text(_text(part, ","), encoding="utf-8")
        else:
            pq.write_table(_table_part(part, edges), paths[-1])
    return Written(paths if is_list else place, _text_options(edges) if name == "csv" else {})


def _feather(edges: EdgeList, folder: Path, _draw: Random) -> Written:
    pyarrow.feather.write_feather(arrow_table(edges), folder / "edges.feather")
    return Written(folder / "edges.feather", {})


def _snap(edges: EdgeList, folder: Path, draw: Random) -> Written:
    if edges.has_text_ids:
        return _csv(edges, folder, draw)
    (folder / "edges.txt").write_text("# a comment\n" + _text(edges, "\t", has_header=False))
    options = _text_options(edges)
    if begins_in_doubt(edges):
        options["header"] = "no"
    return Written(folder / "edges.txt", options)


def begins_in_doubt(edges: EdgeList) -> bool:
    """Say whether the first row, read as text, could be names or counts.

    These rows are a question to the user: three or more consecutive numbers, years, and counts of
    vertices and edges. Some of them are plainly an edge by the rows below.
    """
    first = edges.rows[0] if edges.is_weighted else edges.rows[0][:2]
    if not all(isinstance(cell, int) and cell >= 0 for cell in first):
        return False
    are_consecutive = list(first) == list(range(first[0], first[0] + len(first)))
    are_years = first[0] >= 1900 and first[-1] <= 2100 and list(first) == sorted(first)
    could_count = first[-1] in (len(edges.rows) - 1, (len(edges.rows) - 1) / 2)
    return (are_consecutive and len(first) > 2) or are_years or could_count


FILES: dict[str, Callable[[EdgeList, Path, Random], Written]] = {
    "CSV": _csv,
    "CSV, semicolons": partial(_csv, delimiter=";"),
    "CSV, gzip": partial(_csv, name="edges.csv.gz"),
    "Parquet": _parquet,
    "folder of Parquet": _parts,
    "list of Parquet": partial(_parts, is_list=True),
    "folder of CSV": partial(_parts, name="csv"),
    "Feather": _feather,
    "SNAP text": _snap,
}

# Ids as an argument.


IDS: dict[str, Callable[[list], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "Series": pd.Series,
    "Arrow": pa.array,
    "iterator": iter,
}
