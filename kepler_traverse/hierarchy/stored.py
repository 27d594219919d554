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
FOLDERS = {"weights": FOLDER, "hops": "hierarchy_of_hops"}  # within that of the graph, by metric
_FORMAT = 2  # version of the files; others are refused
META = "meta.json"
_MAX_META_BYTES = 2**16  # a larger ``meta.json`` is not read


def save_hierarchy(
    hierarchy: Hierarchy, folder: Path, fingerprint: str, metric: str = "weights"
) -> None:
    """Write a hierarchy into a folder of its own within ``folder``, that of a stored graph.

    The folder appears complete or not at all. If it exists already, its hierarchy is kept, and
    nothing is written. ``fingerprint`` is that of the graph, by which ``load_hierarchy`` knows that
    both belong together. ``metric`` is "weights" or "hops".
    """
    facts = {
        "format": _FORMAT,
        "graph": fingerprint,
        "metric": metric,
        "files": {},  # ``write_arrays`` puts the digests there
        "is_symmetric": hierarchy.is_symmetric,
        "unit": hierarchy.unit,
        "levels": hierarchy.levels,
        "shortcuts": hierarchy.shortcuts,
    }
    write_arrays(folder / FOLDERS[metric], _arrays(hierarchy), facts)


def write_arrays(folder: Path, arrays: dict[str, np.ndarray], facts: dict[str, Any]) -> None:
    """Write arrays, a file for each name, and facts about them into a new folder, for ``read_meta``
    and ``read_arrays``.

    The folder appears complete or not at all. If there is one with facts already, it is kept.
    ``facts`` become ``meta.json``, with the SHA-256 of each file under the key ``files``.
    """
    with partial_folder(folder) as partial:
        for name, array in arrays.items():
            np.save(partial / f"{name}.npy", array, allow_pickle=False)
        digests = compute_digests(partial, sorted(f"{name}.npy" for name in arrays))
        # ``sealed`` adds a checksum of the facts, by which ``read_sealed`` knows a damaged file.
        (partial / META).write_bytes(sealed(facts | {"files": digests}))
        deny_others(partial)  # no other user may write to the folder and its files
        try:
            partial.rename(folder)
        except OSError:
            # The folder exists if another process was faster, which is no error: both have the same
            # arrays. Any other reason is an error.
            if not (folder / META).is_file():
                raise
            shutil.rmtree(partial)


def has_hierarchy(folder: Path, metric: str = "weights") -> bool:
    """Return whether the folder of a stored graph has a hierarchy by a metric, "weights" or "hops".
    Its files are not checked.
    """
    return (Path(folder) / FOLDERS[metric] / META).is_file()


def load_hierarchy(
    folder: Path, n_vertices: int, fingerprint: str, metric: str = "weights"
) -> Hierarchy:
    """Read the hierarchy of a stored graph from its folder. ValueError if it is damaged, or that of
    another graph.

    ``n_vertices`` and ``fingerprint`` are those of the graph; ``metric`` is "weights" or "hops".
    Arrays are copy-on-write mappings of the files, so that they take memory only when they are
    read.
    """
    hierarchy_folder = folder / FOLDERS[metric]
    # ValueError if one of these facts differs; its message is the text and the name of the fact.
    meta = read_meta(
        hierarchy_folder,
        {"format": _FORMAT, "graph": fingerprint, "metric": metric},
        "its hierarchy is that of another",
    )
    order = read_arrays(hierarchy_folder, meta, ["order"])["order"]
    upward = _read_edges(hierarchy_folder, meta, "upward")
    if meta["is_symmetric"]:
        downward = upward
    else:
        downward = _read_edges(hierarchy_folder, meta, "downward")

    # Kernels do not check their indices, and their sums must not overflow. ``inverse_order``
    # returns None unless ``order`` has each vertex once.
    position = inverse_order(order, n_vertices)
    if (
        position is None
        or _is_no_hierarchy(upward, n_vertices)
        or _is_no_hierarchy(downward, n_vertices)
    ):
        raise ValueError("its hierarchy is none")
    # A shortest path leads upward and then downward, so it is at most the sum of both maxima.
    # ``longest_upward`` is the largest sum of a path in one direction, cut at ``MAX_SUM``.
    longest = sum(int(longest_upward(*edges, MAX_SUM)) for edges in (upward, downward))
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


def _read_edges(folder: Path, meta: dict[str, Any], direction: str) -> Edges:
    """Return the edges of a direction, "upward" or "downward", from the files in ``folder``.

    ``meta`` has the digests of the files, which are compared. Whether the edges form a hierarchy is
    not checked.
    """
    arrays = read_arrays(folder, meta, [f"{direction}_{part}" for part in Edges._fields])
    return Edges(*arrays.values())


def _arrays(hierarchy: Hierarchy) -> dict[str, np.ndarray]:
    """Return the arrays of a hierarchy that are stored, by the names of their files. Undirected
    hierarchies have no arrays downward, since these are the same as those upward.
    """
    directions = {"upward": hierarchy.upward}
    if not hierarchy.is_symmetric:
        directions["downward"] = hierarchy.downward
    arrays = {"order": hierarchy.order}
    for direction, edges in directions.items():
        arrays |= {f"{direction}_{part}": array for part, array in edges._asdict().items()}
    return arrays


def read_meta(folder: Path, expected: dict[str, Any], refusal: str) -> dict[str, Any]:
    """Return the facts in ``meta.json`` of a folder of arrays, a dictionary.

    ValueError if the file is damaged, or if a fact differs from that of the same name in
    ``expected``, which has the key "format" at least. For such a fact the message is ``refusal``
    and the name of the fact.
    """
    # The format first, so that a file of another version is refused as such, and not as damaged.
    meta, is_whole = read_sealed(folder / META, _MAX_META_BYTES)
    if not isinstance(meta, dict) or meta.get("format") != expected["format"]:
        raise ValueError(f"{refusal} version")
    if not is_whole:
        raise ValueError(f"{folder.name}/{META} differs from its checksum")
    for name, value in expected.items():
        if meta[name] != value:
            raise ValueError(f"{refusal} {name}")
    return meta


def read_arrays(folder: Path, meta: dict[str, Any], names: list[str]) -> dict[str, np.ndarray]:
    """Return the named arrays of a folder, mapped copy-on-write. ValueError if a file differs from
    its SHA-256 in ``meta``, the facts that ``read_meta`` returned.
    """
    files = {f"{name}.npy": meta["files"][f"{name}.npy"] for name in names}
    fault = differing_file(folder, files)  # a text about the first such file; empty without one
    if fault:
        raise ValueError(f"{folder.name}/{fault}")
    return {name: open_array(folder / f"{name}.npy") for name in names}


def open_array(path: Path) -> np.ndarray:
    """Return the array of a .npy file, mapped copy-on-write, as a plain array. ValueError if the
    path is no regular file.

    Numba compiles functions once more for read-only arrays, and for subclasses such as
    ``numpy.memmap``.
    """
    refuse_irregular(path)
    return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))


def inverse_order(order: np.ndarray, n_vertices: int) -> np.ndarray | None:
    """Return the position of each vertex in ``order``, int32 of shape (n_vertices,); None unless
    ``order`` is an int32 array with each vertex exactly once.
    """
    if order.dtype != np.int32 or order.shape != (n_vertices,):
        return None
    if n_vertices and (order.min() < 0 or order.max() >= n_vertices):
        return None
    position = np.full(n_vertices, -1, np.int32)
    position[order] = np.arange(n_vertices, dtype=np.int32)
    if (position < 0).any():  # a vertex is missing, so another one is twice in the order
        return None
    return position


def _is_no_hierarchy(edges: Edges, n_vertices: int) -> bool:
    """Return whether the edges of one direction cannot be those of a hierarchy: wrong types, shapes
    or offsets, a head that is not above its row, or a negative weight.
    """
    # The types that offsets, heads and weights may have.
    dtypes = Edges([np.int64], [np.int32], [np.int32, np.int64])  # type: ignore[arg-type]
    for array, allowed in zip(edges, dtypes, strict=True):
        if array.ndim != 1 or array.dtype not in allowed:
            return True
    if edges.offsets.size != n_vertices + 1 or edges.heads.size != edges.weights.size:
        return True
    # Offsets ascend from 0 to the number of edges.
    if (
        edges.offsets[0] != 0
        or edges.offsets[-1] != edges.heads.size
        or bool((np.diff(edges.offsets) < 0).any())
    ):
        return True
    return not bool(_leads_upward(*edges))


@njit(cache=True, nogil=True)
def _leads_upward(offsets, heads, weights):
    """Return whether each edge in the row of a position p has its head above p (a smaller number,
    at least 0), and no weight is negative.
    """
    for p in range(offsets.size - 1):
        for e in range(offsets[p], offsets[p + 1]):
            if not 0 <= heads[e] < p or weights[e] < 0:
                return False
    return True
