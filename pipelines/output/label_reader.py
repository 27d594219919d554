"""Read the hub labels that runs with ``--result labels`` have written, to answer pairs.

What is read are the labels that the runs wrote, by the SHA-256 of each part. That they are right is
what a run proves before it writes, and ``verify`` again.
"""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kepler_traverse._arrays import make_offsets
from kepler_traverse.errors import InputError, several
from kepler_traverse.formats.columns import plain_column
from kepler_traverse.hub_labels.arrays import HubLabels, LabelLists
from kepler_traverse.search.algorithms import ALGORITHMS

from .manifest_types import Manifest
from .part_reader import open_part
from .run_folder import is_whole, mark_fits, read_manifest
from .store import Store, open_store

_RESULT = "labels"
_NARROW_BELOW = 2**29  # distances below have sums of 32 bits
_DISTANCE_BELOW = 2**61  # distances below have sums of 64 bits
_COMMON_KEYS = (
    "graph",
    "algorithm",
)  # are equal in the identities of two runs that belong together


class ReadLabels(NamedTuple):
    """The labels that one run has written, or two runs, one per direction of a directed graph."""

    labels: HubLabels  # whose hubs are vertex numbers, so that ranks equal vertex numbers
    ids: Any  # the id of each vertex number, ascending: an integer array, or pyarrow strings
    facts: dict[str, Any]  # fingerprint and size of the graph, metric, unit and direction
    is_integer: bool  # whether distances are integers in the files


class _Rows(NamedTuple):
    """The labels of one direction, as they are in files: rows ascend by source and hub."""

    offsets: (
        np.ndarray
    )  # int64 array of shape (n_vertices + 1,): where the rows of each source begin
    hubs: np.ndarray  # int32 array of shape (rows,): vertex numbers
    distances: np.ndarray  # int32, int64 or float64 array of shape (rows,)


def read_labels(folder: str | os.PathLike[str], inward: str | None = None) -> ReadLabels:
    """Read the labels of a run, and for a directed graph those of a second run with ``--direction
    in``.

    Parameters
    ----------
    folder : str or path
        Output folder, or URL, of the run with the labels of distances from each vertex.
    inward : str, optional
        Output folder, or URL, of the run with the labels of distances to each vertex; only for a
        directed graph.

    Raises
    ------
    InputError
        A folder holds no finished run of labels of all vertices, a part is not as it was written,
        or the two do not belong together.
    """
    store = open_store(folder)
    manifest = _read_label_manifest(store, "out")
    directed = manifest["graph"]["directed"]
    if directed and inward is None:
        raise InputError(
            f"{store}: its graph is directed; write the labels of the other direction by "
            "--result labels --direction in, and give their folder by --inward"
        )
    if not directed and inward is not None:
        raise InputError(
            f"{store}: its graph is undirected, and its labels are those of both directions; "
            "leave --inward out"
        )
    ids = _read_ids(store, manifest)
    rows = [_read_rows(store, manifest, ids)]  # of one direction or of two
    if inward is not None:
        other = open_store(inward)
        second = _read_label_manifest(other, "in")
        for key in _COMMON_KEYS:
            if dict(second["identity"])[key] != dict(manifest["identity"])[key]:
                raise InputError(f"{other}: its labels are not those of {store} ({key} differs)")
        rows.append(_read_rows(other, second, ids))

    # Both directions have one unit and one type, so that their distances can be added.
    is_integer = all(direction.distances.dtype.kind == "i" for direction in rows)
    unit = 1.0
    if not is_integer:
        unit = min(_find_unit(direction.distances) for direction in rows)
    lists = [_in_units(str(store), rows[0], unit)]
    if inward is not None:
        lists.append(_in_units(inward, rows[1], unit))
    if len({labels.distances.dtype for labels in lists}) > 1:
        lists = [labels._replace(distances=labels.distances.astype(np.int64)) for labels in lists]

    # Hubs are vertex numbers in files, so ranks and vertex numbers are the same here.
    numbers = np.arange(len(ids), dtype=np.int32)
    metric = ALGORITHMS[manifest["algorithm"]].metric  # "hops" or "weights"
    labels = HubLabels(
        order=numbers,
        rank=numbers,
        outward=lists[0],
        inward=lists[-1],  # of an undirected graph the same list
        unit=unit,
        metric=metric,
    )
    facts = {
        "graph": manifest["graph"]["fingerprint"],
        "metric": metric,
        "unit": unit,
        "directed": directed,
        "vertices": len(ids),
    }
    return ReadLabels(labels, ids, facts, is_integer)


def _read_label_manifest(store: Store, direction: str) -> Manifest:
    """Read the manifest of a run of labels.

    Raises InputError: the run has not finished, or its result is not the labels of all vertices in
    ``direction``, "out" or "in". The direction of an undirected graph does not matter.
    """
    try:
        manifest = read_manifest(store)
    except (OSError, ValueError) as error:
        raise InputError(f"{store}: it holds no labels of a run: {error}") from None
    if manifest["result"] != _RESULT:
        raise InputError(
            f"{store}: it holds {manifest['result']}; write labels by --result {_RESULT}"
        )
    if manifest["status"] != "done" or not mark_fits(store):
        raise InputError(f"{store}: its run is not complete; finish it by --resume")
    stated = manifest["identity"].get("direction", "out")
    if stated != direction and manifest["graph"]["directed"]:
        raise InputError(f"{store}: its labels have --direction {stated}, not {direction}")
    # Any vertex may be in a pair, so that each needs a label.
    n_vertices = manifest["graph"]["vertices"]
    if manifest["sources"] != n_vertices:
        raise InputError(
            f"{store}: it has labels of {several(manifest['sources'], 'vertex')} of "
            f"{n_vertices:,}; write those of all, without --sources"
        )
    return manifest


def _read_ids(store: Store, manifest: Manifest) -> Any:
    """Return the ids of all vertices, which are the sources of the run; raise InputError unless
    they ascend as vertex numbers do.
    """
    sources = [source for part in manifest["parts"] for source in part["sources"]]
    if isinstance(sources[0], str):
        ids: Any = pa.array(sources)
        is_ascending = all(str(a).encode() < str(b).encode() for a, b in pairwise(sources))
    else:
        ids = np.array(sources)
        is_ascending = bool((ids[1:] > ids[:-1]).all())
    if not is_ascending:
        raise InputError(f"{store}: its sources do not ascend; write its labels without --sources")
    return ids


def _read_rows(store: Store, manifest: Manifest, ids: Any) -> _Rows:
    """Read the parts of a run, one after the other.

    ``ids``: of all vertices, ascending, which are the sources of the parts in this order. Raises
    InputError: a part is not as it was written, or its rows do not ascend by source and hub.
    """
    sizes = []
    hubs = []
    distances = []
    first = 0
    for entry in manifest["parts"]:
        where = f"{store}/{entry['file']}"  # begins messages
        if not is_whole(store, entry):
            raise InputError(f"{where}: it is not as its run has written it; repair it by --resume")
        sources = ids[first : first + len(entry["sources"])]
        first += len(sources)

        counts = np.zeros(len(sources), np.int64)  # rows per source
        # key of the row before the table, -1 before the first: keys ascend over all tables of a
        # part
        last_key = -1
        with store.local([entry["file"]]) as folder, open_part(folder / entry["file"]) as part:
            for table in part.tables():
                # Of each row: its source among those of the part, its hub, and one key of both.
                positions = numbers_of_ids(where, table["source"].combine_chunks(), sources)
                numbers = numbers_of_ids(where, table["hub"].combine_chunks(), ids)
                keys = positions.astype(np.int64) * len(ids) + numbers
                if bool((np.diff(keys, prepend=last_key) <= 0).any()):
                    raise InputError(f"{where}: its rows do not ascend by source and hub")
                last_key = keys[-1]
                counts += np.bincount(positions, minlength=len(sources))
                hubs.append(numbers)
                distances.append(_checked_distances(where, table["distance"]))
        sizes.append(counts)
    return _Rows(
        make_offsets(np.concatenate(sizes)), np.concatenate(hubs), np.concatenate(distances)
    )


def _checked_distances(where: str, column: Any) -> np.ndarray:
    """Return the distances of a column: int32 if they are small integers, else int64, or float64.

    ``where`` begins messages. Raises InputError: a distance is null, no number, negative, or 2^61
    or more.
    """
    distances = column.to_numpy()
    if column.null_count or distances.dtype.kind not in "if":
        raise InputError(f"{where}: a distance is no number")
    if not bool(((distances >= 0) & (distances < _DISTANCE_BELOW)).all()):  # NaN is neither
        raise InputError(f"{where}: a distance is negative, or 2^61 or more")
    if distances.dtype.kind == "f":
        return distances.astype(np.float64)
    return _narrow_integers(distances)


def _narrow_integers(distances: np.ndarray) -> np.ndarray:
    """Return integers as int32 if the sum of any two of them fits int32, else as int64."""
    if distances.max(initial=0) < _NARROW_BELOW:
        return distances.astype(np.int32)
    return distances.astype(np.int64)


def _find_unit(distances: np.ndarray) -> float:
    """Return the largest power of two of which all distances (floats) are multiples; 1 if all are
    0.

    In this unit they become integers, which are added exactly.
    """
    fraction, exponent = np.frexp(distances[distances > 0])
    if not fraction.size:
        return 1.0
    # A distance is its significand, an integer of 53 bits, times a power of two. Zeros at the end
    # of the significand make that power larger.
    significand = (fraction * 2.0**53).astype(np.int64)
    lowest_bit = significand & -significand
    # ``frexp`` makes 2^z, a lowest bit above z zeros, 0.5 times 2^(z + 1).
    n_zeros = np.frexp(lowest_bit.astype(np.float64))[1] - 1
    return float(2.0 ** int((exponent - 53 + n_zeros).min()))


def _positions(values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the positions of integers among ascending ids, of which there is one at least; for a
    value that is no id, any valid position, since the caller compares the id there with the value.
    """
    first = int(ids[0])
    if int(ids[-1]) - first == ids.size - 1:  # ids without gaps need no search
        return np.clip(values.astype(np.int64) - first, 0, ids.size - 1)
    return np.minimum(np.searchsorted(ids, values), ids.size - 1)


def _in_units(place: str, rows: _Rows, unit: float) -> LabelLists:
    """Return labels with distances as integer multiples of ``unit``.

    Integer distances stay as they are, since the unit is then 1. ``place``: the folder of the
    labels, for messages. Raises InputError: a multiple is 2^61 or more.
    """
    distances = rows.distances
    if distances.dtype.kind == "f":
        distances = distances / unit
        if not bool((distances < _DISTANCE_BELOW).all()):
            raise InputError(f"{place}: its distances differ too much to be added exactly")
        distances = _narrow_integers(distances)
    return LabelLists(rows.offsets, rows.hubs, distances)


def numbers_of_ids(where: Any, column: Any, ids: Any) -> np.ndarray:
    """Return the position of each id of an Arrow column among ascending ids, as int32.

    ``where`` begins messages: the file of the column. ``ids``: an integer array, or pyarrow
    strings. Raises InputError: an id is of another type, or is not among ``ids``.
    """
    column = plain_column(pa.chunked_array([column])).combine_chunks()

    # The column must hold integers if ``ids`` are integers, else text; it is cast to their type.
    has_integers = isinstance(ids, np.ndarray)
    if has_integers:
        kind = pa.from_numpy_dtype(ids.dtype)
        is_of_kind = pa.types.is_integer(column.type)
    else:
        kind = ids.type
        is_of_kind = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if not is_of_kind:
        raise InputError(f"{where}: ids are {column.type}, and those of the labels are {kind}")
    try:
        column = column.cast(kind)
    except pa.ArrowInvalid:
        raise InputError(f"{where}: an id is beyond {kind}, and has no label") from None

    # Whether each id is known, and its position; that of an unknown one may be any number.
    if not len(ids):
        is_known = np.zeros(len(column), bool)
        positions = np.zeros(len(column), np.int64)
    elif has_integers:
        values = np.asarray(column)
        positions = _positions(values, ids)
        is_known = ids[positions] == values
    else:
        indices = pc.index_in(column, value_set=ids)
        is_known = np.asarray(indices.is_valid())
        positions = np.asarray(indices.fill_null(0))
    if not is_known.all():
        row = int(is_known.argmin())
        shown = str(column[row].as_py())[:100]
        raise InputError(f"{where}: row {row} has {shown!r}, which has no label")
    return np.asarray(positions, np.int32)
