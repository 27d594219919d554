"""OMX, Open Matrix: tables of zones by zones in HDF5, as openmatrix 0.3 writes and reads them.

The root has the attributes ``OMX_VERSION`` and ``SHAPE``. The group ``data`` has one dataset per
matrix, chunked, since openmatrix lists no others. The group ``lookup`` has arrays of zone ids by
position.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._arrays import FLOAT64_EXACT
from ..errors import CapacityError, InputError, KeplerError, how_to_install, listed, one_line
from ..runtime.display import in_units
from ..runtime.memory import available_memory
from ..runtime.regular_files import open_regular, written_whole

_VERSION = b"0.2"  # of the format OMX
_CHUNK = 256  # rows and columns of a chunk, at most
_MAX_LOOKUP = 2**32  # zone ids below it are written as uint32


def _h5py() -> Any:
    """Return the module h5py; InputError if it is not installed."""
    try:
        import h5py
    except ImportError:
        raise InputError("OMX files need h5py: " + how_to_install("omx")) from None
    return h5py


def check_names(names: Iterable[Any]) -> None:
    """Raise InputError for a name that a matrix or a lookup cannot have in HDF5: what is no text,
    empty, "." or with a slash or NUL in it.
    """
    for name in names:
        if not isinstance(name, str) or name in ("", ".") or "/" in name or "\0" in name:
            raise InputError(
                f"{name!r} cannot be the name of a matrix or a lookup; rename the column"
            )


def write_matrices(
    path: Any, matrices: Mapping[str, np.ndarray], zones: np.ndarray, lookup: str
) -> None:
    """Write square matrices, float64 of shape (n, n), and the ids of their zones to an OMX file.

    ``matrices`` are by name, with NaN for a cell without a value. ``zones`` has the n ids, which
    become the lookup that is called ``lookup``. Raises InputError without h5py, OutputError if the
    file cannot be written.
    """
    h5py = _h5py()
    n = zones.size
    # In memory first: HDF5 prints errors of a disk, and raises errors of closing a file where
    # nothing catches them.
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
            dataset.attrs["NA"] = np.nan  # how cells without a value are marked
        file.create_group("lookup").create_dataset(lookup, data=_lookup_values(zones))
    with written_whole(Path(path)) as partial:  # takes the place of ``path`` at the end
        partial.write_bytes(content.getbuffer())


def _lookup_values(zones: np.ndarray) -> np.ndarray:
    """Return zone ids as openmatrix has them: uint32 where all fit, else text as bytes."""
    if zones.dtype.kind in "iu" and zones.size and zones.min() >= 0 and zones.max() < _MAX_LOOKUP:
        return zones.astype(np.uint32)
    return np.array([str(zone).encode() for zone in zones.tolist()])


@contextmanager
def _opened(path: Any) -> Iterator[Any]:
    """Yield an OMX file, opened for reading as a ``h5py.File``.

    Raises InputError, also for errors of the block: the file cannot be read, or is damaged,
    whatever HDF5 says of it.
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
        # Only an error of the system has the name of a file; others are of HDF5.
        reason = error.strerror if error.filename else one_line(error)
        raise InputError(f"{path}: it cannot be read as OMX: {reason}") from None
    except (KeyError, RuntimeError, ValueError, TypeError, MemoryError) as error:
        raise InputError(
            f"{path}: it cannot be read as OMX, and may be damaged: {one_line(error)}"
        ) from None


def read_matrices(
    path: Any, names: list[str] | None, lookup: str | None
) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Return matrices by name, float64 of one shape, and the ids of their rows and of their
    columns.

    ``names`` are the names of the matrices, None for all matrices of the file. ``lookup`` is the
    name of the lookup that holds the ids, which are then those of rows and of columns. None: the
    only lookup of the file, or, if the file has none, the ids are positions from 1. InputError for
    a name that is not there, or if ``lookup`` is None and the file has several.
    """
    with _opened(path) as file:
        known = list(file["data"])
        chosen = known if names is None else names
        for name in chosen:
            if name not in known:
                raise InputError(f"{path}: no matrix {name!r}; it has {listed(known)}")
        if not chosen:
            raise InputError(f"{path}: it has no matrix")
        datasets = {name: file["data"][name] for name in chosen}
        shape = _common_shape(path, datasets)
        require_memory(path, shape[0] * shape[1], len(chosen))
        matrices = {name: _as_floats(path, name, values) for name, values in datasets.items()}
        lookups = _read_lookups(path, file)

    # The ids: of a lookup, they are those of rows and columns.
    if lookup is None and len(lookups) > 1:
        raise InputError(f"{path}: it has the lookups {listed(lookups)}; name one by lookup=")
    if lookup is not None and lookup not in lookups:
        raise InputError(f"{path}: no lookup {lookup!r}; it has {listed(lookups)}")
    if not lookups:
        rows, columns = (np.arange(1, size + 1) for size in shape)
        return matrices, rows, columns
    chosen_lookup = lookup or next(iter(lookups))
    ids = _ids(f"{path}: the lookup {chosen_lookup!r}", lookups[chosen_lookup])
    for size in shape:
        if ids.size != size:
            raise InputError(
                f"{path}: the lookup has {ids.size} ids, and the matrices have the shape {shape}"
            )
    return matrices, ids, ids


def _read_lookups(path: Any, file: Any) -> dict[str, np.ndarray]:
    """Return the arrays of one dimension in the group ``lookup`` of a file, by name; {} if it has
    no such group.
    """
    group = file.get("lookup")
    if not hasattr(group, "keys"):  # no group
        return {}
    lookups = {}
    for name in group:
        values = group[name]
        if len(getattr(values, "shape", None) or ()) == 1:
            require_memory(path, values.size, n_matrices=1)
            lookups[name] = np.asarray(values)
    return lookups


def require_memory(path: Any, n_cells: int, n_matrices: int) -> None:
    """Raise CapacityError if ``n_matrices`` matrices of ``n_cells`` cells each, as float64, take
    more memory than there is. ``path`` is the file that the error names.
    """
    needed = 8 * n_cells * n_matrices
    available = available_memory("cpu")
    if needed > available:
        raise CapacityError(
            f"{path}: its matrices take {in_units(needed)} of memory, and {in_units(available)} are left; "
            "name fewer matrices, or take fewer zones"
        )


def _common_shape(path: Any, datasets: Mapping[str, Any]) -> tuple[int, int]:
    """Return the numbers of rows and of columns that all matrices have. ``datasets`` has the
    dataset of HDF5 of each matrix by name, at least one. InputError if a dataset is no matrix of
    numbers, or has another shape than the first.
    """
    first = next(iter(datasets))
    for name, dataset in datasets.items():
        if len(getattr(dataset, "shape", None) or ()) != 2 or dataset.dtype.kind not in "iuf":
            raise InputError(f"{path}: {name!r} is no matrix of numbers; name others by matrices=")
        if dataset.shape != datasets[first].shape:
            raise InputError(
                f"{path}: {name!r} has the shape {dataset.shape}, and {first!r} has "
                f"{datasets[first].shape}; name matrices of one shape by matrices="
            )
    rows, columns = datasets[first].shape
    return rows, columns


def _as_floats(path: Any, name: str, dataset: Any) -> np.ndarray:
    """Return a matrix as float64, with NaN in cells without a value: those that hold the number
    that its attribute ``NA`` has. ``path`` and ``name`` are for errors.
    """
    values = exact_floats(f"{path}: {name!r}", np.asarray(dataset))
    # The attribute may be anything: only one number is a mark.
    missing = dataset.attrs.get("NA")
    if np.size(missing) == 1 and np.asarray(missing).dtype.kind in "iuf":
        return np.where(values == float(np.ravel(missing)[0]), np.nan, values)
    return values


def exact_floats(what: str, values: np.ndarray) -> np.ndarray:
    """Return numbers as float64; InputError, which calls them ``what``, for an integer that float64
    may not hold exactly: beyond 2^53.
    """
    if values.dtype.kind in "iu" and values.size:
        # the largest absolute value: of the largest number, or of the smallest if it is negative
        largest = max(int(values.max()), -int(values.min()))
        if largest > FLOAT64_EXACT:
            raise InputError(f"{what} holds {largest}, which float64 cannot hold; scale it down")
    return values.astype(np.float64, copy=False)


def _ids(what: str, values: np.ndarray) -> np.ndarray:
    """Return the ids in the values of a lookup, an array of their shape: int64 if that holds all
    integers, else the integers in the unsigned type that they have; texts as objects.

    InputError, which calls the lookup ``what``, if an id is there twice.
    """
    if values.dtype.kind in "iu":
        ids = values
        if not values.size or int(values.max()) <= np.iinfo(np.int64).max:
            ids = values.astype(np.int64)
    else:
        ids = np.array([_text(what, value) for value in values.tolist()], dtype=object)
    distinct, counts = np.unique(ids, return_counts=True)
    if distinct.size < ids.size:
        twice = distinct.tolist()[counts.argmax()]
        raise InputError(f"{what} has {twice!r} twice, and names no zones; name another by lookup=")
    return ids


def _text(what: str, value: Any) -> str:
    """Return an id of a lookup that holds text, as ``str``; InputError if it is no text. ``what``
    is what the error calls the lookup.
    """
    try:
        if isinstance(value, bytes):
            return value.decode()
    except UnicodeDecodeError:
        raise InputError(f"{what} holds {value[:40]!r}, which is no UTF-8 text") from None
    if isinstance(value, str):
        return value
    raise InputError(f"{what} holds {value!r}; ids are integers or strings")
