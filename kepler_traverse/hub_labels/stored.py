"""Hub labels on disk, in a folder of its own beside the hierarchy within that of a stored graph.

``meta.json`` has a SHA-256 of each file and of itself, and the fingerprint of the graph. Loading
also checks that the arrays form labels: kernels do not check their indices.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..cpu.compiled import njit
from ..hierarchy.stored import META, inverse_order, read_arrays, read_meta, write_arrays
from ..hierarchy.sweep import UNREACHED
from .arrays import HubLabels, LabelLists

LABEL_FOLDERS = {"weights": "hub_labels", "hops": "hub_labels_of_hops"}  # by metric
_FORMAT = 1  # version of the files; others are refused


def save_labels(labels: HubLabels, folder: Path, fingerprint: str) -> None:
    """Write labels into the folder of a stored graph; they appear complete or not at all. Labels of
    the same metric that are there already are not replaced.

    ``fingerprint`` is a checksum of the graph, by which ``load_labels`` knows that the labels
    belong to the graph.
    """
    arrays = {"order": labels.order}
    for direction, lists in labels.directions.items():
        arrays |= {f"{direction}_{part}": array for part, array in lists._asdict().items()}
    facts = {
        "format": _FORMAT,
        "graph": fingerprint,
        "metric": labels.metric,
        "files": {},  # ``write_arrays`` puts the digests there
        "is_symmetric": labels.is_symmetric,
        "unit": labels.unit,
    }
    write_arrays(folder / LABEL_FOLDERS[labels.metric], arrays, facts)


def has_labels(folder: Path, metric: str) -> bool:
    """Return whether the folder of a stored graph has labels of a metric, "weights" or "hops"."""
    return (Path(folder) / LABEL_FOLDERS[metric] / META).is_file()


def load_labels(folder: Path, n_vertices: int, fingerprint: str, metric: str) -> HubLabels:
    """Read the labels of a stored graph; ValueError if they are damaged, or those of another graph.

    ``n_vertices`` and ``fingerprint`` are those of the graph. ``metric`` is "weights" or "hops".
    The arrays of the labels are copy-on-write mappings of the files.
    """
    label_folder = folder / LABEL_FOLDERS[metric]
    # ValueError if one of these facts differs; its message is the text and the name of the fact.
    meta = read_meta(
        label_folder,
        {"format": _FORMAT, "graph": fingerprint, "metric": metric},
        "its labels are those of another",
    )
    order = read_arrays(label_folder, meta, ["order"])["order"]
    outward = _read_lists(label_folder, meta, "outward")
    if meta["is_symmetric"]:
        inward = outward
    else:
        inward = _read_lists(label_folder, meta, "inward")

    # Kernels do not check their indices, and their sums must not overflow. ``inverse_order``
    # returns None unless ``order`` has each vertex once.
    rank = inverse_order(order, n_vertices)
    if rank is None or are_no_labels(outward, n_vertices) or are_no_labels(inward, n_vertices):
        raise ValueError("its labels are none")
    # An answer is the sum of one distance of each direction.
    longest = sum(int(lists.distances.max(initial=0)) for lists in (outward, inward))
    if longest >= int(UNREACHED[outward.distances.dtype]):
        raise ValueError("sums of its labels are too large")
    return HubLabels(
        order=order,
        rank=rank,
        outward=outward,
        inward=inward,
        unit=float(meta["unit"]),
        metric=metric,
    )


def _read_lists(folder: Path, meta: dict[str, Any], direction: str) -> LabelLists:
    """Return the labels of a direction, "outward" or "inward", from the files of a folder.

    ``meta`` is the content of ``META`` there, with the digest of each file. Whether the arrays form
    labels is not checked.
    """
    arrays = read_arrays(folder, meta, [f"{direction}_{part}" for part in LabelLists._fields])
    return LabelLists(*arrays.values())


def are_no_labels(lists: LabelLists, n_vertices: int) -> bool:
    """Return whether arrays form no label lists of ``n_vertices`` labels.

    Arrays form labels if their types and lengths are right, each label has a row, its hubs are not
    negative and ascend, its last row is its own rank at distance 0, and no distance is negative.
    """
    # the types that offsets, hubs and distances may have
    dtypes: list[Any] = [(np.int64,), (np.int32,), (np.int32, np.int64)]
    for array, allowed in zip(lists, dtypes, strict=True):
        if array.ndim != 1 or array.dtype not in allowed:
            return True
    offsets, hubs, distances = lists
    if offsets.size != n_vertices + 1 or hubs.size != distances.size:
        return True
    if offsets[0] != 0 or offsets[-1] != hubs.size or bool((np.diff(offsets) < 1).any()):
        return True
    return not bool(_are_ascending(*lists))


@njit(cache=True, nogil=True)
def _are_ascending(offsets, hubs, distances):
    """Return whether hubs ascend from 0 or more within each label, end with its own rank at
    distance 0, and no distance is negative. Each label must have a row.
    """
    for v in range(offsets.size - 1):
        last = offsets[v + 1] - 1  # the last row of the label of v
        if hubs[last] != v or hubs[offsets[v]] < 0 or distances[last] != 0:
            return False
        for i in range(offsets[v], last):
            if hubs[i] >= hubs[i + 1] or distances[i] < 0:
                return False
    return True
