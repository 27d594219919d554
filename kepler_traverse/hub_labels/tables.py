"""Hub labels as Parquet tables that any engine joins: ``labels_out.parquet`` with the distance from
each vertex to its hubs, and ``labels_in.parquet`` with those to each vertex from its hubs.

Columns are ``vertex, hub, distance``, sorted by (vertex, hub). A row group has few enough rows that
a reader which looks for one vertex reads little, and many enough that the footer stays short.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._arrays import make_offsets, positions_in_groups, pyarrow
from ..errors import InputError, several
from .arrays import HubLabels, LabelLists
from .stored import LABEL_FOLDERS

TABLES = {"outward": "labels_out.parquet", "inward": "labels_in.parquet"}  # by direction
COLUMNS = ("vertex", "hub", "distance")
ROWS_PER_GROUP = 122_880
_GROUPS_AT_A_TIME = 16
FACTS = b"kepler_traverse.labels"  # the key of what the metadata say of a table
_FORMAT = 1
_KINDS_OF_FACTS: dict[str, tuple[type, ...]] = {
    "format": (int,),
    "graph": (str,),
    "metric": (str,),
    "direction": (str,),
    "unit": (float, int),
    "directed": (bool,),
    "vertices": (int,),
}


class LabelTables(NamedTuple):
    """Labels that were read from tables, and what is said of them."""

    labels: HubLabels  # hubs are vertex numbers
    ids: Any  # the id of each vertex number, ascending: an integer array, or pyarrow strings
    facts: dict[str, Any]


def write_labels(graph: Any, folder: str | os.PathLike[str], metric: str = "weights") -> list[Path]:
    """Write the labels of a graph as two tables into a folder, which is made if it is not there.

    Parameters
    ----------
    graph : Graph
        Its labels are built if it has none.
    folder : path
        ``labels_out.parquet`` and ``labels_in.parquet`` must not be there.
    metric : {"weights", "hops"}

    Returns
    -------
    list of Path
        Both tables. Those of an undirected graph have the same rows.
    """
    if graph.closed is not None:
        raise InputError(
            "tables of labels have one row per id and hub, and a closed vertex has two numbers of one "
            "id; build the graph without closed vertices"
        )
    labels = graph.labels(metric)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    paths = [place / name for name in TABLES.values()]
    for path in paths:
        if os.path.lexists(path):
            raise InputError(f"{path} exists; name a new folder, or remove it")
    for direction, path in zip(TABLES, paths, strict=True):
        partial = path.with_name(f".{path.name}.tmp")
        try:
            _write(partial, graph, labels, direction)
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
    return paths


def _write(path: Path, graph: Any, labels: HubLabels, direction: str) -> None:
    parquet = pyarrow.parquet
    facts = {
        "format": _FORMAT,
        "graph": graph.fingerprint,
        "metric": labels.metric,
        "direction": direction,
        "unit": labels.unit,
        "directed": graph.directed,
        "vertices": graph.n_vertices,
    }
    ids = graph.ids_at(np.arange(0)) if not graph.has_string_ids else graph.ids
    id_type = ids.type if graph.has_string_ids else pyarrow.from_numpy_dtype(ids.dtype)
    of_ids = "DELTA_BYTE_ARRAY" if graph.has_string_ids else "DELTA_BINARY_PACKED"
    if labels.unit == 1:
        distance_type = pyarrow.int64()
        of_distances = "DELTA_BINARY_PACKED"
    else:
        distance_type = pyarrow.float64()
        of_distances = "BYTE_STREAM_SPLIT"
    schema = pyarrow.schema(
        [("vertex", id_type), ("hub", id_type), ("distance", distance_type)],
        metadata={FACTS: json.dumps(facts)},
    )
    options = {
        "compression": "zstd",
        "use_dictionary": False,
        "column_encoding": {"vertex": of_ids, "hub": of_ids, "distance": of_distances},
        "write_page_index": True,
        "sorting_columns": [parquet.SortingColumn(0), parquet.SortingColumn(1)],
    }
    with parquet.ParquetWriter(str(path), schema, **options) as writer:
        for vertices, hubs, distances in iter_rows(labels, direction):
            numbers = distances.astype(np.int64)
            columns = [
                graph.ids_at(vertices),
                graph.ids_at(hubs),
                numbers if labels.unit == 1 else numbers * labels.unit,
            ]
            arrays = [
                pyarrow.array(column, type=each.type)
                for column, each in zip(columns, schema, strict=True)
            ]
            writer.write_table(pyarrow.table(arrays, schema=schema), row_group_size=ROWS_PER_GROUP)


def iter_rows(
    labels: HubLabels, direction: str
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield rows sorted by (vertex, hub), whole row groups at a time: vertex numbers, and distances
    in units.
    """
    lists: LabelLists = getattr(labels, direction)
    sizes = np.diff(lists.offsets)[labels.rank]
    ends = np.cumsum(sizes)
    step = ROWS_PER_GROUP * _GROUPS_AT_A_TIME
    left: list[np.ndarray] = [np.empty(0, kind) for kind in (np.int32, np.int32, labels.dtype)]
    first = 0
    while first < labels.n_vertices:
        before = int(ends[first] - sizes[first])
        last = max(first + 1, int(np.searchsorted(ends, before + step, side="right")))
        some = _rows_between(labels, lists, first, last)
        rows = [np.concatenate(both) for both in zip(left, some, strict=True)]
        whole = rows[0].size - rows[0].size % ROWS_PER_GROUP
        if whole:
            yield rows[0][:whole], rows[1][:whole], rows[2][:whole]
        left = [column[whole:] for column in rows]
        first = last
    yield left[0], left[1], left[2]


def _rows_between(
    labels: HubLabels, lists: LabelLists, first: int, last: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the rows of the vertices from ``first`` to ``last``."""
    ranks = labels.rank[first:last]
    sizes = np.diff(lists.offsets)[ranks]
    at = np.repeat(lists.offsets[ranks], sizes) + positions_in_groups(sizes)
    vertices = np.repeat(np.arange(first, last, dtype=np.int32), sizes)
    hubs = labels.order[lists.hubs[at]]
    order = np.argsort(vertices.astype(np.int64) * labels.n_vertices + hubs)
    return vertices, hubs[order], lists.distances[at[order]]


def read_labels(folder: str | os.PathLike[str]) -> LabelTables:
    """Read the tables of ``write_labels``.

    Raises InputError: there are none, or they do not hold labels of one graph. What they say is not
    proved by that: ``certify`` does it.
    """
    place = Path(folder)
    tables = {}
    facts = {}
    for direction, name in TABLES.items():
        tables[direction], facts[direction] = _read(place / name, direction)
    both = list(facts.values())
    for key in ("graph", "metric", "unit", "vertices"):
        if both[0][key] != both[1][key]:
            raise InputError(f"{place}: its two tables are of different labels ({key} differs)")
    ids = _distinct_ids(tables["outward"])
    if not _are_ascending(ids):
        raise InputError(
            f"{place}: a row of a table is not after the one before, by vertex and hub"
        )
    n = len(ids)
    if n != both[0]["vertices"]:
        raise InputError(
            f"{place}: its tables have rows of {n:,} vertices, of {both[0]['vertices']:,}"
        )
    unit = float(both[0]["unit"])
    outward, inward = (_lists(place, table, ids, unit) for table in tables.values())
    if not both[0]["directed"]:
        if not all(map(np.array_equal, outward, inward)):
            raise InputError(
                f"{place}: its two tables differ, and those of an undirected graph do not"
            )
        inward = outward
    numbers = np.arange(n, dtype=np.int32)
    labels = HubLabels(
        order=numbers,
        rank=numbers,
        outward=outward,
        inward=inward,
        unit=unit,
        metric=both[0]["metric"],
    )
    return LabelTables(labels, ids, both[0])


def _read(path: Path, direction: str) -> tuple[Any, dict[str, Any]]:
    parquet = pyarrow.parquet
    try:
        table = parquet.read_table(str(path), partitioning=None)
    except MemoryError:
        raise
    except Exception as error:  # whatever PyArrow makes of what is there
        raise InputError(f"{path}: it cannot be read as a table of labels: {error}") from None
    given = (table.schema.metadata or {}).get(FACTS)
    facts = _read_facts(given)
    if facts is None or tuple(table.column_names) != COLUMNS:
        raise InputError(f"{path}: it is no table of labels; write_labels makes them")
    if facts["format"] != _FORMAT or facts["direction"] != direction:
        raise InputError(f"{path}: it is a table of labels of another version or direction")
    for name in COLUMNS:
        n_nulls = table.column(name).null_count
        if n_nulls:
            raise InputError(f"{path}: its column {name} holds {several(n_nulls, 'null')}")
    return table.combine_chunks(), facts


def _read_facts(given: bytes | None) -> dict[str, Any] | None:
    """Return what the metadata say of a table of labels; None if they do not say it."""
    try:
        facts = json.loads(given or b"")
    except ValueError:
        return None
    if not isinstance(facts, dict) or any(
        type(facts.get(name)) not in kinds for name, kinds in _KINDS_OF_FACTS.items()
    ):
        return None
    # Multiples of a power of two are exact.
    is_power_of_two = facts["unit"] > 0 and math.frexp(facts["unit"])[0] == 0.5
    if not is_power_of_two or facts["vertices"] < 0 or facts["metric"] not in LABEL_FOLDERS:
        return None
    return facts


def _distinct_ids(table: Any) -> Any:
    """Return the ids of the vertices, which each label has a row of, in the order of the table."""
    column = table.column("vertex")
    if pyarrow.types.is_integer(column.type):
        ids = column.to_numpy()
        is_first = np.ones(ids.size, bool)
        is_first[1:] = ids[1:] != ids[:-1]
        return ids[is_first]
    return column.unique()


def _are_ascending(ids: Any) -> bool:
    if isinstance(ids, np.ndarray):
        return bool((ids[1:] > ids[:-1]).all())
    return len(ids) < 2 or bool(
        pyarrow.compute.all(pyarrow.compute.less(ids[:-1], ids[1:])).as_py()
    )


def numbers_of_ids(where: Any, column: Any, ids: Any) -> np.ndarray:
    """Return the position of each id of an Arrow column among ascending ids.

    Raises InputError: an id is of another type, or has no label; ``where`` says where it stands.
    """
    has_integers = isinstance(ids, np.ndarray)
    kind = pyarrow.from_numpy_dtype(ids.dtype) if has_integers else ids.type
    if pyarrow.types.is_integer(column.type) != has_integers:
        raise InputError(f"{where}: ids are {column.type}, and those of the labels are {kind}")
    try:
        column = column.cast(kind)
    except pyarrow.ArrowInvalid:
        raise InputError(f"{where}: an id is beyond {kind}, and has no label") from None
    if not len(ids):
        is_known = np.zeros(len(column), bool)
        at = np.zeros(len(column), np.int64)
    elif has_integers:
        values = np.asarray(column)
        at = np.minimum(np.searchsorted(ids, values), ids.size - 1)
        is_known = ids[at] == values
    else:
        found = pyarrow.compute.index_in(column, value_set=ids)
        is_known = np.asarray(found.is_valid())
        at = np.asarray(found.fill_null(0))
    if not is_known.all():
        row = int(is_known.argmin())
        shown = str(column[row].as_py())[:100]
        raise InputError(f"{where}: row {row} has {shown!r}, which has no label")
    return np.asarray(at, np.int32)


def _lists(place: Path, table: Any, ids: Any, unit: float) -> LabelLists:
    vertices = numbers_of_ids(place, table.column("vertex"), ids)
    hubs = numbers_of_ids(place, table.column("hub"), ids)
    distances = table.column("distance").to_numpy()
    if distances.dtype.kind not in "iuf":
        raise InputError(f"{place}: distances of a table are no numbers")
    if unit != 1:
        distances = distances / unit
    keys = vertices.astype(np.int64) * len(ids) + hubs
    if bool((np.diff(keys) <= 0).any()):
        row = int((np.diff(keys) <= 0).argmax()) + 1
        raise InputError(
            f"{place}: row {row} of a table is not after the one before, by vertex and hub"
        )
    if not bool(((distances >= 0) & (distances < 2**61)).all()):  # NaN is neither
        raise InputError(f"{place}: a distance is negative, or 2^61 or more")
    if bool((np.trunc(distances) != distances).any()):
        raise InputError(f"{place}: a distance is no multiple of the unit {unit:g}")
    kind: Any = np.int64
    if distances.max(initial=0) < 2**29:
        kind = np.int32
    sizes = np.bincount(vertices, minlength=len(ids))
    return LabelLists(make_offsets(sizes), hubs, distances.astype(kind))


def ranked_as(labels: HubLabels, order: np.ndarray, dtype: np.dtype) -> HubLabels:
    """Return labels of which hubs are vertex numbers with other ranks and another type of
    distances, as ``certify`` needs them: ``order`` is the vertex of each rank.
    """
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size, dtype=np.int32)
    outward = _ranked(labels.outward, order, rank, dtype)
    inward = outward
    if not labels.is_symmetric:
        inward = _ranked(labels.inward, order, rank, dtype)
    return HubLabels(
        order=order,
        rank=rank,
        outward=outward,
        inward=inward,
        unit=labels.unit,
        metric=labels.metric,
    )


def _ranked(lists: LabelLists, order: np.ndarray, rank: np.ndarray, dtype: np.dtype) -> LabelLists:
    sizes = np.diff(lists.offsets)
    tails = np.repeat(rank, sizes).astype(np.int64)
    by_rank = np.argsort(tails * order.size + rank[lists.hubs])
    offsets = make_offsets(sizes[order])
    return LabelLists(offsets, rank[lists.hubs[by_rank]], lists.distances[by_rank].astype(dtype))
