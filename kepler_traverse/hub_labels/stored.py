"""Hub labels on disk, in a folder of its own beside the hierarchy within that of a stored graph.

``meta.json`` has a SHA-256 of each file and of itself, and the fingerprint of the graph. Loading
also checks that the arrays form labels: kernels do not check their indices.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ..cpu.compiled import njit
from ..hierarchy.stored import META, inverse_order, read_arrays, read_meta
from ..hierarchy.sweep import UNREACHED
from ..runtime.regular_files import (
    compute_digests,
    deny_others,
    partial_folder,
    sealed,
)
from .arrays import HubLabels, LabelLists

LABEL_FOLDERS = {"weights": "hub_labels", "hops": "hub_labels_of_hops"}  # by metric
_FORMAT = 1


def save_labels(labels: HubLabels, folder: Path, fingerprint: str) -> None:
    """Write labels into the folder of a stored graph; they appear complete or not at all, and none
    are replaced.

    The fingerprint is that of the graph.
    """
    final = folder / LABEL_FOLDERS[labels.metric]
    with partial_folder(final) as partial:
        arrays = {"order": labels.order}
        for direction, lists in labels.directions.items():
            arrays |= {f"{direction}_{part}": array for part, array in lists._asdict().items()}
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array, allow_pickle=False)
        meta = {
            "format": _FORMAT,
            "graph": fingerprint,
            "metric": labels.metric,
            "files": compute_digests(partial, sorted(f"{name}.npy" for name in arrays)),
            "is_symmetric": labels.is_symmetric,
            "unit": labels.unit,
        }
        (partial / META).write_bytes(sealed(meta))
        deny_others(partial)
        try:
            partial.rename(final)
        except OSError:
            if not has_labels(folder, labels.metric):
                raise
            shutil.rmtree(partial)  # another process was faster: all make the same ones


def has_labels(folder: Path, metric: str) -> bool:
    """Whether a stored graph has labels."""
    return (Path(folder) / LABEL_FOLDERS[metric] / META).is_file()


def load_labels(folder: Path, n_vertices: int, fingerprint: str, metric: str) -> HubLabels:
    """Read the labels of a stored graph; ValueError if they are damaged, or those of another graph.

    Their arrays are copy-on-write mappings of the files.
    """
    place = folder / LABEL_FOLDERS[metric]
    meta = read_meta(
        place,
        {"format": _FORMAT, "graph": fingerprint, "metric": metric},
        "its labels are those of another",
    )
    directions = ("outward",) if meta["is_symmetric"] else ("outward", "inward")
    parts = LabelLists._fields
    arrays = read_arrays(
        place,
        meta,
        ["order", *(f"{direction}_{part}" for direction in directions for part in parts)],
    )
    lists = [
        LabelLists(*(arrays[f"{direction}_{part}"] for part in LabelLists._fields))
        for direction in directions
    ]
    rank = inverse_order(arrays["order"], n_vertices)
    if rank is None or any(are_no_labels(each, n_vertices) for each in lists):
        raise ValueError("its labels are none")
    longest = sum(int(each.distances.max(initial=0)) for each in (lists[0], lists[-1]))
    if longest >= int(UNREACHED[lists[0].distances.dtype]):
        raise ValueError("sums of its labels are too large")
    return HubLabels(
        order=arrays["order"],
        rank=rank,
        outward=lists[0],
        inward=lists[-1],
        unit=float(meta["unit"]),
        metric=metric,
    )


def are_no_labels(lists: LabelLists, n_vertices: int) -> bool:
    """Whether arrays form no label lists: hubs ascend within a label, and its own is the last."""
    kinds: list[Any] = [(np.int64,), (np.int32,), (np.int32, np.int64)]
    if any(
        array.ndim != 1 or array.dtype not in kind for array, kind in zip(lists, kinds, strict=True)
    ):
        return True
    offsets, hubs, distances = lists
    if offsets.size != n_vertices + 1 or hubs.size != distances.size:
        return True
    if offsets[0] != 0 or offsets[-1] != hubs.size or bool((np.diff(offsets) < 1).any()):
        return True
    return not bool(_are_ascending(*lists))


@njit(cache=True, nogil=True)
def _are_ascending(offsets, hubs, distances):
    for v in range(offsets.size - 1):
        last = offsets[v + 1] - 1
        if hubs[last] != v or hubs[offsets[v]] < 0 or distances[last] != 0:
            return False
        for i in range(offsets[v], last):
            if hubs[i] >= hubs[i + 1] or distances[i] < 0:
                return False
    return True
