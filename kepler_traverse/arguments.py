"""Checks of public arguments: a wrong type or value ends here, in an error that names the argument.

Each function takes the name of an argument (``name``, for errors) and its value, and returns the
value in the form that the library works with. Where no other error is named, it raises InputError
for a value that does not fit. No value is guessed: what is not exactly what the argument means is
refused.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any

import numpy as np

from . import cuda
from ._arrays import FLOAT64_EXACT, MAX_INTEGER, Array, extent, get_device, pyarrow, to_host
from .errors import (
    DeviceError,
    EdgeListError,
    InputError,
    KeplerError,
    UnknownVertexError,
    one_line,
    option_text,
    several,
)

_SHORT = reprlib.Repr()  # writes values for errors, in at most 60 characters
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 60
_BOOLS = (bool, np.bool_)
# names of arguments that hold vertex ids, which may be strings
_NAMES_OF_IDS = (
    "src",
    "dst",
    "vertices",
    "only_vertices",
    "closed",
    "sources",
    "targets",
    "origins",
    "destinations",
)
_FLOATS = (np.float16, np.float32, np.float64)
_TEXTS = (str, bytes, bytearray)
_OWN_TYPES = {int, float, str, bool, type(None)}  # Python's own types of scalars
_ENDS_AND_WEIGHTS = ("src", "dst", "weight", "reverse_weight")  # columns of an edge list
_STRINGS = "strings; convert them to numbers"
_STRINGS_OF_IDS = f"{_STRINGS}, or all ids of the graph to strings"
# names of the types of pandas whose columns are in Arrow's memory
_PANDAS_TYPES_OF_ARROW = ("ArrowDtype", "StringDtype")
# the arrays of SciPy's sparse matrices, by format
_PARTS_OF_SPARSE = {
    "csr": ("indptr", "indices", "data"),
    "csc": ("indptr", "indices", "data"),
    "bsr": ("indptr", "indices", "data"),
    "coo": ("row", "col", "data"),
    "dia": ("offsets", "data"),
}
_DIMENSIONS_OF_DATA = {"bsr": 3, "dia": 2}  # of the array ``data``, by format; 1 in all others
_COLUMN = "an array, a list, a range, a Series or a pyarrow array of numbers"


def describe(value: Any) -> str:
    """Return text that shows a value in an error message: short, on one line, without control
    characters. Of values other than scalars and short lists only the type is shown.
    """
    # ``item`` of a time or a time span would lose the unit.
    if isinstance(value, np.generic) and value.dtype.kind not in "mM":
        value = value.item()
    if value is None or isinstance(value, (*_TEXTS, *_BOOLS, int, float, np.number)):
        try:
            return _SHORT.repr(value)
        except ValueError:  # Python writes no integer of more than 4,300 digits
            number: Any = value
            return f"an integer of {number.bit_length()} bits"
    if isinstance(value, (list, tuple)) and len(value) <= 3:
        return "[" + ", ".join(map(describe, value)) + "]"
    return f"a value of type {type(value).__name__}"


def instance(name: str, value: Any, kind: type, how: str) -> None:
    """Raise InputError unless a value is of type ``kind``; ``how`` ends the error, and says which
    functions make such a value. ``name`` is what the error calls the argument, as in all functions
    below.
    """
    if not isinstance(value, kind):
        raise InputError(f"{name} must be a {kind.__name__}, not {describe(value)}; {how}")


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer of Python or NumPy. Neither bool, which Python counts as
    an integer, nor a time span, which NumPy does, is one.
    """
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def plain(value: Any) -> Any:
    """Return a scalar of Arrow, an integer of NumPy, or a value of a class derived from ``str`` or
    ``int`` as Python's own ``str`` or ``int``.

    ``np.str_`` and members of ``StrEnum`` and ``IntEnum`` become what they are equal to. Other
    values stay as they are, bool and floats of NumPy among them.
    """
    if hasattr(value, "as_py"):
        value = value.as_py()
    # By the methods of the base class: a derived class may define others.
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.generic) and is_integer(value):
        return value.item()
    if isinstance(value, int) and not isinstance(value, bool):
        return int.__int__(value)
    return value


def plain_list(values: Iterable[Any]) -> list[Any]:
    """Return a list of scalars, in which those of Arrow, integers of NumPy, and values of classes
    derived from ``str`` or ``int`` are Python's own ``str`` and ``int``.
    """
    scalars = list(values)
    if set(map(type, scalars)) <= _OWN_TYPES:  # the usual case, without a call per value
        return scalars
    return [plain(value) for value in scalars]


def is_flag(value: Any) -> bool:
    """Return whether a value is True or False, of Python or of NumPy."""
    return isinstance(value, _BOOLS)


def flag(name: str, value: Any) -> bool:
    """Return a value that is True or False as Python's own. 0, 1, None and words such as "no" are
    refused with InputError, which calls the argument ``name``.
    """
    if not is_flag(value):
        raise InputError(f"{name} must be True or False, not {describe(value)}")
    return bool(value)


def text(
    name: str, value: Any, what: str = "a string", error: type[KeplerError] = InputError
) -> str:
    """Return a value that is a string, and raise ``error`` for any other: its text calls the
    argument ``name``, and says by ``what`` what it must be.
    """
    if not isinstance(value, str):
        raise error(f"{name} must be {what}, not {describe(value)}")
    return value


def names(name: str, value: Any) -> list[str]:
    """Return a list of names: of one string, or of a list or tuple of strings. InputError for any
    other value, which the error calls ``name``.
    """
    entries = [value] if isinstance(value, str) else value
    is_list = isinstance(entries, (list, tuple))
    if not is_list or not all(isinstance(entry, str) for entry in entries):
        raise InputError(f"{name} must be a name or a list of names, not {describe(value)}")
    return list(entries)


def is_encodable(value: str) -> bool:
    """Return whether the string ``value`` can be encoded in UTF-8. Strings of Python can also hold
    halves of characters (surrogates), which cannot.
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def choice(
    name: str, value: Any, choices: Collection[str], error: type[KeplerError] = InputError
) -> str:
    """Return a value that is one of the names in ``choices``; raise ``error`` for any other."""
    if not isinstance(value, str) or value not in choices:
        raise error(f"{name}={describe(value)} is none of {', '.join(map(repr, choices))}")
    return value


def device(value: Any, known: Collection[str] = ("cpu", "cuda")) -> str:
    """Return a value that is the name of a device in ``known``; DeviceError for any other.

    For a name such as "cuda:1", the error says how to choose a card.
    """
    if isinstance(value, str) and value.startswith("cuda:"):
        card = value.partition(":")[2][:20]
        raise DeviceError(
            f"{option_text('device', 'cuda')} is the first card that the process sees, and {describe(value)} names one; set "
            f"CUDA_VISIBLE_DEVICES={card} in the environment before the process starts"
        )
    if not isinstance(value, str) or value not in known:
        raise DeviceError(
            f"{option_text('device')}={describe(value)} is none of {', '.join(map(repr, known))}"
        )
    return value


def whole(name: str, value: Any, least: int | None = 0) -> int:
    """Return an integer that is at least ``least`` (None: any) as Python's own; bool and float are
    refused with InputError, which calls the argument ``name``.
    """
    value = plain(value)
    if not is_integer(value):
        raise InputError(f"{name} must be a whole number, not {describe(value)}")
    if least is not None and value < least:
        raise InputError(f"{name} must be {least} or more, not {describe(value)}")
    return int(value)


def real(name: str, value: Any) -> None:
    """Raise InputError unless a value is an integer or a float; bool is refused. ``name`` is what
    the error calls the argument.
    """
    if not _is_number(value):
        raise InputError(f"{name} must be a number, not {describe(value)}")


def _is_number(value: Any) -> bool:
    """Return whether a value is an integer or a float of Python or NumPy, and no bool."""
    return is_integer(value) or isinstance(value, (float, np.floating))


def limit(name: str, value: Any) -> int | float:
    """Return a number of 0 or more, infinity included, as Python's own: an integer stays an
    integer, and a float becomes the equal float64.

    InputError, which calls the argument ``name``, for any other value, for an integer that float64
    cannot approximate, and for a float that float64 does not hold exactly.
    """
    value = plain(value)
    real(name, value)
    if not value >= 0:  # written so that NaN is refused, too
        raise InputError(f"{name} must be 0 or more, not {describe(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise InputError(
            f"{name} is beyond every distance ({describe(value)}); leave it out for no limit"
        ) from None
    if is_integer(value):
        return int(value)
    if number != value:
        raise InputError(
            f"{name} must be a float64, which {describe(value)} of "
            f"type {type(value).__name__} is not"
        )
    return number + 0.0  # -0.0 becomes 0.0: limits are compared by their bits on a GPU


def limits(name: str, value: Any, n_sources: int) -> list[int | float] | None:
    """Return a sequence of limits, one per source, as a list; None if ``value`` is no sequence of
    one dimension, such as one number for all sources.

    InputError, which calls the argument ``name``, if there are not ``n_sources`` limits, or one is
    no number of 0 or more.
    """
    if (
        not hasattr(value, "__len__")
        or isinstance(value, (*_TEXTS, Mapping))
        or getattr(value, "ndim", 1) != 1
    ):
        return None
    if isinstance(value, (list, tuple)):
        entries = list(map(plain, value))
    else:
        entries = to_host(as_array(name, value)).tolist()
    for row, entry in enumerate(entries):
        if not _is_number(entry):
            raise InputError(f"{name} must hold numbers, not {describe(entry)} (row {row})")
    size(name, entries, n_sources, "one per source, or one number for all")
    return [limit(name, entry) for entry in entries]


def list_paths(name: str, value: Any) -> list[str | PathLike[str]]:
    """Return a list of paths, of one path or of any iterable of paths. EdgeListError if it is
    empty, InputError for other values. ``name`` is what errors call the argument.
    """
    if isinstance(value, (str, PathLike)):
        value = [value]
    refuse_open_file(name, value)
    # Iterating over bytes, a mapping or a table would give numbers or names of columns.
    paths = None
    if not isinstance(value, (bytes, bytearray, Mapping)) and not hasattr(value, "columns"):
        with suppress(TypeError):  # it cannot be iterated
            paths = list(value)
    if paths is None:
        raise InputError(f"{name} must be a path or a list of paths, not {describe(value)}")
    if not paths:
        raise EdgeListError(
            f"{name} is empty: no edge list was given; name at least one file, folder or pattern"
        )
    for path in paths:
        refuse_open_file(name, path)
        if not is_path(path):
            raise InputError(f"{name} must hold paths, not {describe(path)}")
    return paths


def is_path(value: Any) -> bool:
    """Return whether a value can name a file: a string or a path object whose text is not empty,
    has no null character, and can be encoded for the file system.
    """
    if not isinstance(value, (str, PathLike)):
        return False
    try:
        encoded = os.fsencode(value)
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return bool(encoded) and b"\0" not in encoded


def refuse_open_file(name: str, value: Any) -> None:
    """Raise InputError, which calls the argument ``name``, if a value is an open file. As an
    iterable its lines would be taken for paths or ids.
    """
    if hasattr(value, "read") and not isinstance(value, PathLike):
        path = getattr(value, "name", None)
        if isinstance(path, str):
            advice = f"give its path, {path!r}"
        else:
            advice = "give the path of a file, or a table of its rows"
        raise InputError(f"{name} is an open file; {advice}")


def ids(name: str, value: Any) -> list[Any] | np.ndarray:
    """Return the vertex ids in any iterable: integers of an array as an integer array of shape
    (k,), all others as a list.

    Whether they are ids of the graph, and of the type of its ids, is checked by
    ``Graph.to_numbers``. UnknownVertexError for one id in place of a list, a mapping, a frame,
    missing or masked values, or an array of other things than integers and strings. ``name`` is
    what errors call the argument.
    """
    if isinstance(value, _TEXTS):
        raise UnknownVertexError(
            f"{name} must be a list of ids, not one string: give [{describe(value)}]"
        )
    if is_dask(value) and getattr(value, "ndim", 1) == 1:  # a column, which is not computed yet
        value = value.compute()
    if isinstance(value, Mapping) or hasattr(value, "columns"):
        raise UnknownVertexError(
            f"{name} must be a list of ids, not {describe(value)}: "
            "give one column of it, or its keys"
        )
    value = arrow(name, value)
    if hasattr(value, "to_pylist"):
        # A list of a million integers would take longer than searching for them.
        if pyarrow.types.is_integer(value.type) and not value.null_count:
            return value.to_numpy()
        return value.to_pylist()
    if hasattr(value, "dtype"):
        return _array_of_ids(name, value)
    try:
        return plain_list(value)
    except TypeError:
        if value is None:
            advice = ""
        else:
            advice = f": give [{describe(value)}]"
        raise UnknownVertexError(
            f"{name} must be a list of ids, not {describe(value)}{advice}"
        ) from None


def is_one_id(value: Any) -> bool:
    """Return whether a value is one vertex id, an integer or a string, and no list of ids."""
    value = plain(value)
    return isinstance(value, str) or is_integer(value)


def _array_of_ids(name: str, value: Any) -> list[Any] | np.ndarray:
    """Return the ids in an array or a Series: integers as an array of shape (k,), all others as a
    list.

    UnknownVertexError, which calls the argument ``name``, for missing or masked values, several
    dimensions, and a type that is neither integer nor string.
    """
    _refuse_missing(name, value)
    array = _without_mask(name, value, UnknownVertexError)
    if get_device(array) == "cuda":
        array = _array_on_gpu(name, array).get()
    else:
        array = np.asarray(array)
    if array.ndim != 1:
        raise UnknownVertexError(
            f"{name} must be a list of ids, not an array of {array.ndim} dimensions"
        )
    if array.dtype.kind in "iu":
        return array
    # Objects and strings; and an empty array, whose type says nothing.
    if array.dtype.kind in "OUT" or not array.size:
        return ids(name, array.tolist())
    raise UnknownVertexError(f"{name} must hold integers or strings, not {array.dtype}")


def _refuse_missing(name: str, value: Any) -> None:
    """Raise UnknownVertexError for a Series of a type of pandas with missing values. As an array of
    NumPy its ids would become floats or objects. Other values pass. ``name`` is what the error
    calls the argument.
    """
    if not hasattr(value, "isna") or isinstance(value.dtype, np.dtype):
        return
    missing = np.flatnonzero(np.asarray(value.isna()))
    if missing.size:
        n_missing = several(missing.size, "value")
        raise UnknownVertexError(
            f"{name}: {n_missing} of {value.dtype} missing, the first at "
            f"row {missing[0]}; drop these rows"
        )


def vertex_number(value: Any, n_vertices: int) -> int:
    """Return a value that is a vertex number, from 0 to ``n_vertices`` - 1, as Python's own
    integer; UnknownVertexError for any other.
    """
    if is_integer(value) and 0 <= value < n_vertices:
        return int(value)
    raise UnknownVertexError(
        f"number {describe(value)} is no vertex number: those of this graph "
        f"are whole numbers from 0 to {n_vertices - 1}"
    )


def vertex_numbers(value: Any, n_vertices: int, name: str = "numbers") -> np.ndarray:
    """Return vertex numbers in any iterable, from 0 to ``n_vertices`` - 1, as an integer array of
    shape (k,); UnknownVertexError for other values. ``name`` is what errors call the argument.
    """
    numbers = ids(name, value)
    if isinstance(numbers, list):
        numbers = np.array([vertex_number(number, n_vertices) for number in numbers], np.int64)
    elif numbers.size and (numbers.min() < 0 or numbers.max() >= n_vertices):
        wrong = numbers[(numbers < 0) | (numbers >= n_vertices)]
        vertex_number(wrong[0], n_vertices)  # raises the error
    return numbers


def arrow(name: str, value: Any) -> Any:
    """Return a column of Arrow as a checked array of pyarrow, and any other value as it is.

    A column of Arrow is one of pyarrow, one of a library that converts to it (``to_arrow``), or one
    that has Arrow's interface for C and no other. A Series of pandas in Arrow's memory is checked,
    and returned as it is.

    pyarrow trusts offsets, indices and text of a column, and would read beyond its buffers where
    they are wrong. So they are validated here. EdgeListError or InputError, which call the column
    ``name``, if it is damaged.
    """
    converts = hasattr(value, "to_arrow")
    # A column of cuDF has these types of pandas, too, but converts by itself and only so.
    is_pandas = not converts and type(getattr(value, "dtype", 0)).__name__ in _PANDAS_TYPES_OF_ARROW
    speaks_c = hasattr(value, "__arrow_c_array__") or hasattr(value, "__arrow_c_stream__")
    speaks_only_c = speaks_c and not hasattr(value, "dtype")
    is_table = hasattr(value, "columns")
    if is_table or not (converts or is_pandas or speaks_only_c):
        return value

    # Strings of pandas may also be stored as Python objects, which need no check.
    if is_pandas and getattr(value.dtype, "storage", "pyarrow") != "pyarrow":
        return value
    try:
        if is_pandas:
            column = pyarrow.array(getattr(value, "array", value))
        else:
            column = _to_pyarrow(value)
        column.validate(full=True)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        raise _column_error(
            name, f"is no valid column of Arrow ({one_line(error)}); make it again from the data"
        ) from None
    if not is_pandas:
        return column
    if pyarrow.types.is_run_end_encoded(column.type):
        raise _column_error(
            name, "is run-end encoded, which pandas cannot read; give pyarrow.array of it"
        )
    return value


def _to_pyarrow(value: Any) -> Any:
    """Return the column ``value`` as an array of pyarrow, of one chunk or of several: by its own
    method ``to_arrow`` if it has one, else by Arrow's interface for C.
    """
    if hasattr(value, "to_arrow"):
        value = value.to_arrow()
    if isinstance(value, (pyarrow.Array, pyarrow.ChunkedArray)):
        return value
    if hasattr(value, "__arrow_c_array__"):
        return pyarrow.array(value)
    return pyarrow.chunked_array(value)


def sparse(name: str, matrix: Any) -> None:
    """Raise InputError for a sparse matrix of SciPy whose arrays do not fit together: they are no
    arrays of integers and data, differ in length, or lead out of the matrix.

    SciPy's compiled code does not check them, and would read or write outside of its arrays.
    Formats without such arrays pass. ``name`` is what errors call the matrix.
    """
    if matrix.format == "lil":
        _check_lists_of_rows(name, matrix)
        matrix = matrix.tocsr()
    parts = _PARTS_OF_SPARSE.get(matrix.format)
    if parts is None or len(matrix.shape) != 2:
        return
    arrays: dict[str, Any] = {part: getattr(matrix, part, None) for part in parts}
    for part, array in arrays.items():
        _check_part(name, matrix.format, part, array)
    if matrix.format == "dia":
        if len(arrays["offsets"]) != len(arrays["data"]):
            raise _damaged(name, "there are not as many offsets as diagonals")
    elif matrix.format == "coo":
        _check_positions(name, arrays, "row", matrix.shape[0])
        _check_positions(name, arrays, "col", matrix.shape[1])
    else:
        _check_compressed(name, arrays, *_compressed_shape(matrix))


def _damaged(name: str, problem: str) -> InputError:
    """Return the error for the sparse matrix ``name`` whose arrays do not fit together; ``problem``
    says what is wrong with them.
    """
    return InputError(f"{name}: {problem}; make the matrix again from the data")


def _check_lists_of_rows(name: str, matrix: Any) -> None:
    """Raise InputError for a matrix in the format "lil" whose lists do not fit together: there is a
    list of column numbers and one of data per row, and both must have the same length. ``name`` is
    what the error calls the matrix.
    """
    lengths = list(map(len, matrix.rows))
    if len(matrix.rows) != matrix.shape[0] or lengths != list(map(len, matrix.data)):
        raise _damaged(name, "its rows, or the indices of a row, are not as many as those of data")


def _check_part(name: str, form: str, part: str, array: Any) -> None:
    """Raise InputError unless an array of a sparse matrix has the right number of dimensions, and,
    other than ``data``, integers.

    ``form`` is the format of the matrix, as "csr", and ``part`` the name of the array, as "indptr".
    """
    is_array = isinstance(array, np.ndarray) or (array is not None and get_device(array) == "cuda")
    if part == "data":
        what = "numbers"
        is_fitting = is_array and array.ndim == _DIMENSIONS_OF_DATA.get(form, 1)
    else:
        what = "integers"
        is_fitting = is_array and array.ndim == 1 and array.dtype.kind in "iu"
    if not is_fitting:
        raise _damaged(name, f"{part} is no array of {what}")


def _compressed_shape(matrix: Any) -> tuple[int, int]:
    """Return the two numbers that bound the arrays of a matrix in compressed rows: the number of
    rows, and the number of places in a row.

    These are columns and their places for the format "csc", and rows and columns of blocks for
    "bsr".
    """
    n_rows, n_columns = matrix.shape
    if matrix.format == "bsr":
        height, width = matrix.blocksize
        return n_rows // height, n_columns // width
    if matrix.format == "csc":
        return n_columns, n_rows
    return n_rows, n_columns


def _check_compressed(name: str, arrays: Mapping[str, Any], n_rows: int, n_places: int) -> None:
    """Raise InputError if offsets (``indptr``) do not divide the data into ``n_rows`` rows, or if
    an index is not from 0 to ``n_places`` - 1. ``arrays`` are those of the matrix, by name.
    """
    offsets = arrays["indptr"]
    n_entries = len(arrays["data"])
    if (
        offsets.size != n_rows + 1
        or offsets[0] != 0
        or (offsets[1:] < offsets[:-1]).any()
        or offsets[-1] != n_entries
    ):
        raise _damaged(
            name,
            f"indptr must have {n_rows + 1} numbers that never fall, "
            f"from 0 to the {n_entries} of data",
        )
    _check_positions(name, arrays, "indices", n_places)


def _check_positions(name: str, arrays: Mapping[str, Any], part: str, bound: int) -> None:
    """Raise InputError if an array of positions, ``arrays[part]``, is not as long as the data, or
    if a position is not from 0 to ``bound`` - 1.
    """
    positions = arrays[part]
    n_entries = len(arrays["data"])
    if positions.size != n_entries:
        raise _damaged(name, f"{part} has {positions.size} elements, and data {n_entries}")
    if not positions.size:
        return
    low, high = extent(positions)
    if low < 0:
        raise _damaged(name, f"{part} holds {low}, outside of 0 to {bound - 1}")
    if high >= bound:
        raise _damaged(name, f"{part} holds {high}, outside of 0 to {bound - 1}")


def as_array(name: str, value: Any) -> Array:
    """Return a column of numbers as an array of shape (n_rows,), of NumPy, or of CuPy if it is in
    GPU memory.

    Every number stays exactly what it was: integers stay integers, and a list of floats and
    integers becomes float64 only if that holds each integer. EdgeListError (for columns of edges)
    or InputError if ``value`` is no column, or has nulls, masked rows, or other things than
    numbers. ``name`` is the name of the column, which decides between both, for errors.
    """
    is_frame = hasattr(value, "columns") and getattr(value, "ndim", 2) > 1
    if value is None or isinstance(value, (*_TEXTS, Mapping, *_BOOLS)) or is_frame:
        raise _column_error(name, f"must be {_COLUMN}, not {describe(value)}")
    # Read it by where it is.
    if get_device(value) == "cuda":
        array = _array_on_gpu(name, value)
    elif is_dask(value):
        array = _array_on_host(name, value.compute())
    elif isinstance(value, (list, tuple)) or (
        isinstance(value, Sequence) and not isinstance(value, memoryview)
    ):
        array = _exact_array(name, value)
    else:
        array = _array_on_host(name, value)

    if array.ndim != 1:
        raise _column_error(name, f"must be one-dimensional, not of shape {array.shape}")
    if array.dtype.kind == "O":
        array = _exact_array(name, array.tolist())

    if array.dtype.kind in "UST":
        raise _column_error(name, f"must hold numbers, not {_describe_strings(name)}")
    if array.dtype.kind not in "iuf":
        if name == "weight":
            what = "weights must be numbers"
        elif name in (*_ENDS_AND_WEIGHTS, "vertices"):
            what = "vertex ids must be integers"
        else:
            what = "its values must be numbers"
        raise _column_error(name, f": {what}, not {array.dtype}")
    # Compiled code needs the byte order of this machine.
    if array.dtype.isnative:
        return array
    return array.astype(array.dtype.newbyteorder("="))


def _describe_strings(name: str) -> str:
    """Return the end of an error about strings in the column ``name``, which must hold numbers:
    what to do about them. Only ids may be strings as well.
    """
    if name in _NAMES_OF_IDS:
        return _STRINGS_OF_IDS
    return _STRINGS


def size(name: str, values: Any, n: int, per: str) -> Any:
    """Return values as they are; InputError unless there are ``n`` of them. The error calls them
    ``name``, and ``per`` says in it what to give, as "one per row".
    """
    if len(values) != n:
        raise InputError(f"{name} has {several(len(values), 'value')}, not {n}: give {per}")
    return values


def numbers(
    name: str,
    value: Any,
    is_right: Callable[[np.ndarray], np.ndarray] | None = None,
    how: str = "is not finite; give finite numbers",
    at: Callable[[int], str] = "row {}".format,
) -> np.ndarray:
    """Return the column ``value`` of finite numbers as an int64 or float64 array in host memory.
    Errors call it ``name``.

    ``is_right`` takes the array and returns a bool array: True for an allowed number. None allows
    all finite ones. ``how`` is what the error says after the first wrong number, and ``at(row)``
    says where that is.

    Raises InputError: a number is wrong, or beyond int64.
    """
    values = to_host(as_array(name, value))
    is_allowed = np.isfinite(values)
    if is_right is not None:
        is_allowed &= is_right(values)
    wrong = np.flatnonzero(~is_allowed)
    if wrong.size:
        raise InputError(f"{name}, {at(wrong[0])}: {values[wrong[0]]} {how}")
    if values.dtype.kind == "u" and values.size and int(values.max()) > MAX_INTEGER:
        raise InputError(f"{name} holds {int(values.max())}, which is beyond int64; scale it down")
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)


def is_dask(value: Any) -> bool:
    """Return whether a value is a frame or a column of Dask, which must be computed before it is
    read.
    """
    return hasattr(type(value), "npartitions") and hasattr(type(value), "compute")


def columns(name: str, table: Any) -> dict[Any, Any] | None:
    """Return the columns of a table by name; None if ``table`` is no table. The index of a data
    frame is not among them.

    A table is a mapping, a data frame of any library, a table of Arrow or an object that converts
    to one, or a structured array.

    Raises InputError: two columns have the same name, or the table cannot be read.
    """
    if isinstance(table, Mapping):
        return dict(table)
    if isinstance(table, np.ndarray):
        if table.dtype.names is None:
            return None
        return {column: table[column] for column in table.dtype.names}
    if is_dask(table):
        table = table.compute()
    table = _as_arrow_table(name, table)
    # A table of Arrow has its names in ``column_names``: its ``columns`` are values.
    names = getattr(table, "column_names", None)
    if names is None:
        names = getattr(table, "columns", None)
    if names is None:
        return None
    names = list(names)
    if len(set(names)) < len(names):
        raise InputError(f"{name}: two columns have the same name; rename one")
    return {column: table[column] for column in names}


def _as_arrow_table(name: str, table: Any) -> Any:
    """Return a table from which columns can be taken by name: ``table`` itself if it is such a one,
    else a table of Arrow with its content, as for a relation of DuckDB.

    InputError if the conversion fails.
    """
    if hasattr(table, "iloc") or hasattr(table, "column_names") or hasattr(table, "dtype"):
        return table
    if hasattr(type(table), "lazy") and hasattr(type(table), "collect_schema"):  # of polars
        # A lazy frame is computed; any other one has columns already.
        if hasattr(type(table), "collect"):
            return table.collect()
        return table
    try:
        if hasattr(table, "__arrow_c_stream__") and not hasattr(table, "to_pylist"):
            return pyarrow.table(table)
        if hasattr(table, "__dataframe__"):
            return pyarrow.interchange.from_dataframe(table)
    except Exception as error:  # any error of the library that the table is of
        raise InputError(f"{name} cannot be read as a table ({one_line(error)})") from None
    return table


def _column_error(name: str, problem: str) -> InputError:
    """Return the error for a column: an EdgeListError if it is a column of edges, else an
    InputError. Its text is the name and ``problem``.
    """
    message = f"{name} {problem}"
    if problem.startswith(":"):
        message = f"{name}{problem}"
    if name in _ENDS_AND_WEIGHTS:
        return EdgeListError(message, column=name)
    return InputError(message)


def _without_mask(name: str, value: Any, error: type[InputError]) -> Any:
    """Return the data of a masked array of NumPy, and any other value as it is. ``error`` is raised
    if a row is masked, and calls the argument ``name``.
    """
    if not isinstance(value, np.ma.MaskedArray):
        return value
    masked = np.flatnonzero(np.ma.getmaskarray(value))
    if masked.size:
        raise error(
            f"{name} is masked at row {masked[0]} ({masked.size} such rows): drop those rows"
        )
    return value.data


def _array_on_gpu(name: str, value: Any) -> Array:
    """Return a CuPy array of ``value``, which is anything in GPU memory, such as a Series of cuDF
    or a tensor. EdgeListError or InputError, which call it ``name``, if it has nulls.
    """
    cuda.require()
    if getattr(value, "null_count", 0):
        raise _column_error(name, f"holds {value.null_count} nulls: drop those rows")
    return cuda.cp.asarray(value)


def _array_on_host(name: str, value: Any) -> np.ndarray:
    """Return a NumPy array of ``value``: an array, a Series, an array of pyarrow, or an object with
    an interface for arrays or memory. EdgeListError or InputError, which call it ``name``, if it
    has nulls or masked rows, or cannot be read.
    """
    value = _without_mask(name, value, EdgeListError if name in _ENDS_AND_WEIGHTS else InputError)
    value = arrow(name, value)
    if hasattr(value, "to_pylist") and hasattr(value, "null_count"):
        if value.null_count:
            raise _column_error(name, f"holds {value.null_count} nulls: drop those rows")
        return value.to_numpy(zero_copy_only=False)
    # A float column of NumPy's own type has NaN, which is refused with its row; other types have
    # nulls.
    if (
        hasattr(value, "isna")
        and not isinstance(value.dtype, np.dtype)
        and bool(value.isna().any())
    ):
        raise _column_error(name, f"holds {int(value.isna().sum())} nulls: drop those rows")

    # By an interface for arrays if there is one, else by that for memory.
    if not any(hasattr(value, way) for way in ("__array__", "__array_interface__", "__buffer__")):
        try:
            value = memoryview(value)  # array.array, before Python 3.12
        except TypeError:
            raise _column_error(name, f"must be {_COLUMN}, not {describe(value)}") from None
    try:
        return to_host(value)
    except Exception as error:
        raise _column_error(name, f"cannot be read as an array: {error}") from None


def _exact_array(name: str, values: Sequence[Any]) -> np.ndarray:
    """Return the first of an int64, uint64 or float64 array that holds exactly the numbers of a
    sequence. EdgeListError or InputError, which call it ``name``, if none does, or if something is
    no number.
    """
    # A range needs no list of its numbers.
    if (
        isinstance(values, range)
        and len(values)
        and -(2**63) <= min(values[0], values[-1]) <= max(values[0], values[-1]) < 2**63
    ):
        return np.arange(values.start, values.stop, values.step, dtype=np.int64)

    # Convert scalars of other types to Python's own integers and floats.
    types = set(map(type, values))
    if not types <= {int, float}:
        values = [value.item() if isinstance(value, _FLOATS) else plain(value) for value in values]
        for row, value in enumerate(values):
            if type(value) not in (int, float):
                what = _describe_strings(name) if isinstance(value, str) else describe(value)
                raise _column_error(name, f"must hold numbers, not {what} (row {row})")
        types = set(map(type, values))

    # Integers alone: the first type that holds all.
    if float not in types:
        for kind in (np.int64, np.uint64):
            try:
                return np.array(values, kind)
            except OverflowError:
                continue
        raise _column_error(name, "holds integers that neither int64 nor uint64 holds")
    # Floats, and perhaps integers, which float64 must hold exactly.
    if int in types:
        for row, value in enumerate(values):
            if type(value) is int and abs(value) > FLOAT64_EXACT:
                problem = f"mixes floats with {describe(value)} (row {row})"
                raise _column_error(name, f"{problem}, which float64 cannot hold exactly")
    return np.array(values, np.float64)
