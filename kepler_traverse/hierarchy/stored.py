"""A hierarchy on disk, in a folder of its own within that of a stored graph: ``.npy`` files and
``meta.json``.

That of the weights and that of hops have a folder each.

``meta.json`` has a SHA-256 of each file and of itself, and the fingerprint of the graph, so a
hierarchy of another graph is refused as a damaged one is. Loading also checks that the arrays form
a hierarchy: kernels do not check their indices.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from ..cpu.compiled import njit
from ..runtime.regular_files import (
    compute_digests,
    deny_others,
    differing_file,
    partial_folder,
    read_sealed,
    refuse_irregular,
    sealed,
)
from .arrays import MAX_SUM, Edges, Hierarchy
from .sweep import UNREACHED, longest_upward

FOLDER = "hierarchy"
FOLDERS = {"weights": FOLDER, "hops": "hierarchy_of_hops"}  # by metric
_FORMAT = 2
META = "meta.json"
_MAX_META_BYTES = 2**16


def save_hierarchy(
    hierarchy: Hierarchy, folder: Path, fingerprint: str, metric: str = "weights"
) -> None:
    """Write a hierarchy into the folder of a stored graph; it appears complete or not at all, and
    none is replaced.

    The fingerprint is that of the graph, the metric "weights" or "hops".
    """
    final = folder / FOLDERS[metric]
    with partial_folder(final) as partial:
        arrays = _arrays(hierarchy)
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array, allow_pickle=False)
        meta = {
            "format": _FORMAT,
            "graph": fingerprint,
            "metric": metric,
            "files": compute_digests(partial, sorted(f"{name}.npy" for name in arrays)),
            "is_symmetric": hierarchy.is_symmetric,
            "unit": hierarchy.unit,
            "levels": hierarchy.levels,
            "shortcuts": hierarchy.shortcuts,
        }
        (partial / META).write_bytes(sealed(meta))
        deny_others(partial)
        try:
            partial.rename(final)
        except OSError:
            if not has_hierarchy(folder, metric):
                raise
            shutil.rmtree(partial)  # another process was faster: all make the same one


def has_hierarchy(folder: Path, metric: str = "weights") -> bool:
    """Whether a stored graph has a hierarchy."""
    return (Path(folder) / FOLDERS[metric] / META).is_file()


def load_hierarchy(
    folder: Path, n_vertices: int, fingerprint: str, metric: str = "weights"
) -> Hierarchy:
    """Read the hierarchy of a stored graph; ValueError if it is damaged, or that of another graph.

    Its arrays are copy-on-write mappings of the files.
    """
    place = folder / FOLDERS[metric]
    meta = read_meta(
        place,
        {"format": _FORMAT, "graph": fingerprint, "metric": metric},
        "its hierarchy is that of another",
    )
    directions = ("upward",) if meta["is_symmetric"] else ("upward", "downward")
    arrays = read_arrays(
        place,
        meta,
        ["order", *(f"{direction}_{part}" for direction in directions for part in Edges._fields)],
    )
    order = arrays["order"]
    edges = [
        Edges(*(arrays[f"{direction}_{part}"] for part in Edges._fields))
        for direction in directions
    ]
    position = inverse_order(order, n_vertices)
    if position is None or any(_is_no_hierarchy(each, n_vertices) for each in edges):
        raise ValueError("its hierarchy is none")
    upward = edges[0]
    downward = edges[-1]
    longest = sum(int(longest_upward(*each, MAX_SUM)) for each in (upward, downward))
    if longest >= int(UNREACHED[upward.weights.dtype]):
        raise ValueError("sums of its hierarchy are too large")
    return Hierarchy(
        order=order,
        position=position,
        upward=upward,
        downward=downward,
        unit=float(meta["unit"]),
        longest=longest,
        levels=int(meta["levels"]),
        shortcuts=int(meta["shortcuts"]),
    )


def _arrays(hierarchy: Hierarchy) -> dict[str, np.ndarray]:
    directions = {"upward": hierarchy.upward} | (
        {} if hierarchy.is_symmetric else {"downward": hierarchy.downward}
    )
    arrays = {"order": hierarchy.order}
    for direction, edges in directions.items():
        arrays |= {f"{direction}_{part}": array for part, array in edges._asdict().items()}
    return arrays


def read_meta(place: Path, expected: dict[str, Any], of_another: str) -> dict[str, Any]:
    """Read what a folder of arrays says of itself.

    ValueError, which begins with ``of_another``, if an expected value differs; or if the file is
    damaged.
    """
    meta, is_whole = read_sealed(place / META, _MAX_META_BYTES)
    if not isinstance(meta, dict) or meta.get("format") != expected["format"]:
        raise ValueError(f"{of_another} version")
    if not is_whole:
        raise ValueError(f"{place.name}/{META} differs from its checksum")
    for name, value in expected.items():
        if meta[name] != value:
            raise ValueError(f"{of_another} {name}")
    return meta


def read_arrays(place: Path, meta: dict[str, Any], names: list[str]) -> dict[str, np.ndarray]:
    """Map the named arrays of a folder; ValueError if a file differs from its digest in ``meta``."""
    files = {f"{name}.npy": meta["files"][f"{name}.npy"] for name in names}
    fault = differing_file(place, files)
    if fault:
        raise ValueError(f"{place.name}/{fault}")
    return {name: open_array(place / f"{name}.npy") for name in names}


def open_array(path: Path) -> np.ndarray:
    """Map a .npy file copy-on-write, as a plain array: Numba would compile again for read-only
    arrays and subclasses.
    """
    refuse_irregular(path)
    return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))


def inverse_order(order: np.ndarray, n_vertices: int) -> np.ndarray | None:
    """Return the position of each vertex, or None if the order does not have each vertex once."""
    if order.dtype != np.int32 or order.shape != (n_vertices,):
        return None
    if n_vertices and (order.min() < 0 or order.max() >= n_vertices):
        return None
    position = np.full(n_vertices, -1, np.int32)
    position[order] = np.arange(n_vertices, dtype=np.int32)
    if (position < 0).any():  # so another vertex is twice in the order
        return None
    return position


def _is_no_hierarchy(edges: Edges, n_vertices: int) -> bool:
    kinds = [(np.int64,), (np.int32,), (np.int32, np.int64)]
    if any(
        array.ndim != 1 or array.dtype not in kind for array, kind in zip(edges, kinds, strict=True)
    ):
        return True
    if edges.offsets.size != n_vertices + 1 or edges.heads.size != edges.weights.size:
        return True
    if (
        edges.offsets[0] != 0
        or edges.offsets[-1] != edges.heads.size
        or bool((np.diff(edges.offsets) < 0).any())
    ):
        return True
    return not bool(_leads_upward(*edges))


@njit(cache=True, nogil=True)
def _leads_upward(offsets, heads, weights):
    for p in range(offsets.size - 1):
        for e in range(offsets[p], offsets[p + 1]):
            if not 0 <= heads[e] < p or weights[e] < 0:
                return False
    return True
