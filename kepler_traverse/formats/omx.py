"""OMX, Open Matrix: tables of zones by zones in HDF5, as openmatrix 0.3 writes and reads them.

The root has the attributes ``OMX_VERSION`` and ``SHAPE``. The group ``data`` has one dataset per
matrix, chunked, since openmatrix lists no others. The group ``lookup`` has arrays of zone ids by
position.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CapacityError, InputError, KeplerError, how_to_install, listed, one_line
from ..runtime.display import in_units
from ..runtime.memory import available_memory
from ..runtime.regular_files import open_regular, written_whole

_VERSION = b"0.2"
_CHUNK = 256  # rows and columns of a chunk, at most
_MAX_LOOKUP = 2**32
_MAX_WHOLE = 2.0**53


def _h5py() -> Any:
    try:
        import h5py
    except ImportError:
        raise InputError("OMX files need h5py: " + how_to_install("omx")) from None
    return h5py


def check_names(names: Iterable[Any]) -> None:
    """Raise InputError for what HDF5 cannot call a matrix or a lookup."""
    for name in names:
        if not isinstance(name, str) or name in ("", ".") or "/" in name or "\0" in name:
            raise InputError(
                f"{name!r} cannot be the name of a matrix or a lookup; rename the column"
            )


def write_matrices(
    path: Any, matrices: Mapping[str, np.ndarray], zones: np.ndarray, lookup: str
) -> None:
    """Write square matrices, float64 of shape (n, n), and the ids of their zones."""
    h5py = _h5py()
    n = zones.size
    # HDF5 prints errors of a disk, and raises those of closing where nothing catches them.
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        file.attrs["OMX_VERSION"] = np.bytes_(_VERSION)
        file.attrs["SHAPE"] = np.array([n, n], np.int32)
        data = file.create_group("data")
        chunk = min(_CHUNK, n)
        for name, values in matrices.items():
            dataset = data.create_dataset(
                name,
                data=values,
                chunks=(chunk, chunk),
                compression="gzip",
                compression_opts=1,
                shuffle=True,
            )
            dataset.attrs["NA"] = np.nan
        file.create_group("lookup").create_dataset(lookup, data=_lookup_values(zones))
    with written_whole(Path(path)) as partial:
        partial.write_bytes(content.getbuffer())


def _lookup_values(zones: np.ndarray) -> np.ndarray:
    """Return ids as openmatrix has them: uint32 where they fit, else text."""
    if zones.dtype.kind in "iu" and zones.size and zones.min() >= 0 and zones.max() < _MAX_LOOKUP:
        return zones.astype(np.uint32)
    return np.array([str(zone).encode() for zone in zones.tolist()])


@contextmanager
def _opened(path: Any) -> Iterator[Any]:
    """Yield an OMX file.

    Raises InputError: it cannot be read, or is damaged, whatever HDF5 says of it.
    """
    h5py = _h5py()
    try:
        with open_regular(path, follow=True) as content, h5py.File(content, "r") as file:
            if not hasattr(file.get("data"), "keys"):
                raise InputError(f"{path}: it has no group 'data'; is it an OMX file?")
            yield file
    except KeplerError:
        raise
    except OSError as error:
        reason = error.strerror if error.filename else one_line(error)
        raise InputError(f"{path}: it cannot be read as OMX: {reason}") from None
    except (KeyError, RuntimeError, ValueError, TypeError, MemoryError) as error:
        raise InputError(
            f"{path}: it cannot be read as OMX, and may be damaged: {one_line(error)}"
        ) from None


def read_matrices(
    path: Any, names: list[str] | None, lookup: str | None
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return matrices as float64, and the ids of rows and columns.

    ``names``: all if None. ``lookup``: the only one if None; positions from 1 if there is none.
    InputError for a name that is not there, or a choice that is not sure.
    """
    with _opened(path) as file:
        there = list(file["data"])
        chosen = there if names is None else names
        for name in chosen:
            if name not in there:
                raise InputError(f"{path}: no matrix {name!r}; it has {listed(there)}")
        if not chosen:
            raise InputError(f"{path}: it has no matrix")
        matrices = {}
        for name in chosen:
            dataset = file["data"][name]
            if len(getattr(dataset, "shape", None) or ()) != 2 or dataset.dtype.kind not in "iuf":
                raise InputError(
                    f"{path}: {name!r} is no matrix of numbers; name others by matrices="
                )
            _require_memory(path, dataset)
            values = np.asarray(dataset)
            numbers = values.astype(np.float64)
            if values.dtype.kind in "iu" and (np.abs(numbers) > _MAX_WHOLE).any():
                raise InputError(f"{path}: {name!r} has integers beyond 2^53, which floats lack")
            values = numbers
            missing = dataset.attrs.get("NA")
            if np.size(missing) == 1 and np.asarray(missing).dtype.kind in "iuf":
                values = np.where(values == float(np.ravel(missing)[0]), np.nan, values)
            matrices[name] = values
            if values.shape != matrices[chosen[0]].shape:
                raise InputError(
                    f"{path}: {name!r} has the shape {values.shape}, and {chosen[0]!r} has "
                    f"{matrices[chosen[0]].shape}; name matrices of one shape by matrices="
                )
        shape = matrices[chosen[0]].shape
        lookups = _lookups(path, file)
    if lookup is None and len(lookups) > 1:
        raise InputError(f"{path}: it has the lookups {listed(lookups)}; name one by lookup=")
    if lookup is not None and lookup not in lookups:
        raise InputError(f"{path}: no lookup {lookup!r}; it has {listed(lookups)}")
    if not lookups:
        rows, columns = (np.arange(1, size + 1) for size in shape)
        return matrices, rows, columns
    name = lookup or next(iter(lookups))
    ids = _ids(f"{path}: the lookup {name!r}", lookups[name])
    for size in shape:
        if ids.size != size:
            raise InputError(
                f"{path}: the lookup has {ids.size} ids, and the matrices have the shape {shape}"
            )
    return matrices, ids, ids


def _lookups(path: Any, file: Any) -> dict[str, np.ndarray]:
    """Return the lookups by name."""
    group = file.get("lookup")
    lookups = {}
    for name in group if hasattr(group, "keys") else ():
        values = group[name]
        if len(getattr(values, "shape", None) or ()) == 1:
            _require_memory(path, values)
            lookups[name] = np.asarray(values)
    return lookups


def _require_memory(path: Any, dataset: Any) -> None:
    """Raise CapacityError for an array that does not fit: one that holds nothing takes no disk."""
    nbytes = 8 * math.prod(dataset.shape)
    left = available_memory("cpu")
    if nbytes > left:
        raise CapacityError(
            f"{path}: {dataset.name} has the shape {dataset.shape} and takes {in_units(nbytes)}, and "
            f"{in_units(left)} of memory are left"
        )


def _ids(name: str, values: np.ndarray) -> np.ndarray:
    """Return the ids of zones; InputError if they are none, or one is given twice."""
    if values.dtype.kind in "iu":
        is_beyond = values.size and int(values.max()) > np.iinfo(np.int64).max
        ids = values if is_beyond else values.astype(np.int64)
    elif values.dtype.kind in "SO":
        try:
            ids = np.array([each.decode() for each in values.tolist()], dtype=object)
        except (AttributeError, UnicodeDecodeError):
            raise InputError(f"{name} holds what is no text of UTF-8; ids are texts") from None
    else:
        raise InputError(f"{name} holds {values.dtype}; ids are integers or texts")
    distinct, counts = np.unique(ids, return_counts=True)
    if distinct.size < ids.size:
        raise InputError(
            f"{name} has the id {distinct[counts > 1].tolist()[0]!r} twice; mend the file"
        )
    return ids
