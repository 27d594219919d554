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
_MAX_NARROW = 2**29  # distances below have sums of 32 bits
_MAX = 2**61
_SAME = ("graph", "algorithm")  # of the identities of two runs that belong together


class ReadLabels(NamedTuple):
    """Labels of one run or of two, whose hubs are vertex numbers."""

    labels: HubLabels
    ids: Any  # the id of each vertex number, ascending: an integer array, or pyarrow strings
    facts: dict[str, Any]
    is_integer: bool  # whether distances are integers in the files


class _Rows(NamedTuple):
    """The labels of one direction, as they are in files."""

    offsets: np.ndarray
    hubs: np.ndarray
    distances: np.ndarray


def read_labels(folder: str | os.PathLike[str], inward: str | None = None) -> ReadLabels:
    """Read the labels of a run, and for a directed graph those of a second run with ``--direction
    in``.

    Raises InputError: a folder holds no finished run of labels of all vertices, a part is not as it
    was written, or the two do not belong together.
    """
    store = open_store(folder)
    manifest = _manifest(store, "out")
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
    ids = _ids(store, manifest)
    rows = [_rows(store, manifest, ids)]
    if inward is not None:
        other = open_store(inward)
        second = _manifest(other, "in")
        for key in _SAME:
            if dict(second["identity"])[key] != dict(manifest["identity"])[key]:
                raise InputError(f"{other}: its labels are not those of {store} ({key} differs)")
        rows.append(_rows(other, second, ids))
    is_integer = all(each.distances.dtype.kind == "i" for each in rows)
    unit = 1.0
    if not is_integer:
        unit = min(_unit_of(each.distances) for each in rows)
    places = [str(store), str(inward)]
    lists = [_lists(place, each, unit) for place, each in zip(places, rows, strict=False)]
    if len({each.distances.dtype for each in lists}) > 1:
        lists = [each._replace(distances=each.distances.astype(np.int64)) for each in lists]
    numbers = np.arange(len(ids), dtype=np.int32)
    metric = ALGORITHMS[manifest["algorithm"]].metric
    labels = HubLabels(
        order=numbers,
        rank=numbers,
        outward=lists[0],
        inward=lists[-1],
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


def _manifest(store: Store, direction: str) -> Manifest:
    """Return the manifest of a finished run of labels in one direction."""
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
    said = manifest["identity"].get("direction", "out")
    if said != direction and manifest["graph"]["directed"]:
        raise InputError(f"{store}: its labels have --direction {said}, not {direction}")
    n_vertices = manifest["graph"]["vertices"]
    if manifest["sources"] != n_vertices:
        raise InputError(
            f"{store}: it has labels of {several(manifest['sources'], 'vertex')} of "
            f"{n_vertices:,}; write those of all, without --sources"
        )
    return manifest


def _ids(store: Store, manifest: Manifest) -> Any:
    """Return the ids of all vertices."""
    listed = [source for part in manifest["parts"] for source in part["sources"]]
    if isinstance(listed[0], str):
        ids: Any = pa.array(listed)
        is_ascending = all(str(a).encode() < str(b).encode() for a, b in pairwise(listed))
    else:
        ids = np.array(listed)
        is_ascending = bool((ids[1:] > ids[:-1]).all())
    if not is_ascending:
        raise InputError(f"{store}: its sources do not ascend; write its labels without --sources")
    return ids


def _rows(store: Store, manifest: Manifest, ids: Any) -> _Rows:
    """Read the parts of a run, one after the other."""
    sizes = []
    hubs = []
    distances = []
    first = 0
    for entry in manifest["parts"]:
        where = f"{store}/{entry['file']}"
        if not is_whole(store, entry):
            raise InputError(f"{where}: it is not as its run has written it; repair it by --resume")
        own = ids[first : first + len(entry["sources"])]
        first += len(own)
        counts = np.zeros(len(own), np.int64)
        last = -1
        with store.local([entry["file"]]) as here, open_part(here / entry["file"]) as part:
            for table in part.tables():
                vertices = numbers_of_ids(where, table["source"].combine_chunks(), own)
                heads = numbers_of_ids(where, table["hub"].combine_chunks(), ids)
                keys = vertices.astype(np.int64) * len(ids) + heads
                if bool((np.diff(keys, prepend=last) <= 0).any()):
                    raise InputError(f"{where}: its rows do not ascend by source and hub")
                last = keys[-1]
                counts += np.bincount(vertices, minlength=len(own))
                hubs.append(heads)
                distances.append(_checked_distances(where, table["distance"]))
        sizes.append(counts)
    return _Rows(
        make_offsets(np.concatenate(sizes)), np.concatenate(hubs), np.concatenate(distances)
    )


def _checked_distances(where: str, column: Any) -> np.ndarray:
    """Return distances that are integers below 2^61, of 32 bits if they are small, or floats."""
    distances = column.to_numpy()
    if column.null_count or distances.dtype.kind not in "if":
        raise InputError(f"{where}: a distance is no number")
    if not bool(((distances >= 0) & (distances < _MAX)).all()):  # NaN is neither
        raise InputError(f"{where}: a distance is negative, or 2^61 or more")
    if distances.dtype.kind == "f":
        return distances.astype(np.float64)
    return _narrowed(distances)


def _narrowed(distances: np.ndarray) -> np.ndarray:
    """Return integers in 32 bits if sums of two fit."""
    if distances.max(initial=0) < _MAX_NARROW:
        return distances.astype(np.int32)
    return distances.astype(np.int64)


def _unit_of(distances: np.ndarray) -> float:
    """Return the largest power of two that floats are multiples of; 1 if all are 0."""
    fraction, exponent = np.frexp(distances[distances > 0])
    if not fraction.size:
        return 1.0
    whole = (fraction * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # bits that are 0
    return float(2.0 ** int((exponent - 53 + lowest).min()))


def _positions(values: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Return the positions of integers among ascending ids, any position for those that are none."""
    first = int(ids[0])
    if int(ids[-1]) - first == ids.size - 1:  # without gaps they need no search
        return np.clip(values.astype(np.int64) - first, 0, ids.size - 1)
    return np.minimum(np.searchsorted(ids, values), ids.size - 1)


def _lists(place: str, rows: _Rows, unit: float) -> LabelLists:
    """Return labels with distances as multiples of a unit."""
    distances = rows.distances
    if distances.dtype.kind == "f":
        distances = distances / unit
        if not bool((distances < _MAX).all()):
            raise InputError(f"{place}: its distances differ too much to be added exactly")
        distances = _narrowed(distances)
    return LabelLists(rows.offsets, rows.hubs, distances)


def numbers_of_ids(where: Any, column: Any, ids: Any) -> np.ndarray:
    """Return the position of each id of an Arrow column among ascending ids.

    Raises InputError: an id is of another type, or has no label; ``where`` says where it stands.
    """
    column = plain_column(pa.chunked_array([column])).combine_chunks()
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
    if not len(ids):
        is_known = np.zeros(len(column), bool)
        at = np.zeros(len(column), np.int64)
    elif has_integers:
        values = np.asarray(column)
        at = _positions(values, ids)
        is_known = ids[at] == values
    else:
        found = pc.index_in(column, value_set=ids)
        is_known = np.asarray(found.is_valid())
        at = np.asarray(found.fill_null(0))
    if not is_known.all():
        row = int(is_known.argmin())
        shown = str(column[row].as_py())[:100]
        raise InputError(f"{where}: row {row} has {shown!r}, which has no label")
    return np.asarray(at, np.int32)
