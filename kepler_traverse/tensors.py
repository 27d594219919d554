"""Arrays of results as torch tensors that share their memory."""

from __future__ import annotations

from typing import Any

from . import arguments
from ._arrays import Array
from .errors import InputError, one_line


def to_torch(array: Array) -> Any:
    """Return an array of a result as a torch tensor on the same device, without a copy.

    Parameters
    ----------
    array : NumPy or CuPy array
        Any array that the library returns: that of ``result="matrix"`` or ``"reachable"``, or a
        field of a ``Traversal``.

    Returns
    -------
    torch.Tensor
        Of the array's shape and type. It shares the memory of the array and keeps it alive, so that
        a change of one is a change of the other. The array of a result belongs to its caller alone.
        Those of a ``Traversal`` that a plan returned belong to the plan, which overwrites them in
        its next run; ``Traversal.copy`` returns arrays that stay.

    Raises
    ------
    InputError
        Not an array; a read-only array, as those that are views of a mapped file, because torch has
        no read-only tensors; or an array that torch has no type or layout for.
    """
    if not hasattr(array, "__dlpack__") or not hasattr(array, "ndim"):
        raise InputError(
            f"array must be one of NumPy or CuPy, as result='matrix' returns it, not {arguments.describe(array)}; "
            "of a frame give one column, as frame['distance'].to_numpy(copy=True)"
        )
    if not getattr(getattr(array, "flags", None), "writeable", True):
        raise InputError(
            "array is read-only, and a tensor that shares its memory "
            "would not be; give array.copy()"
        )
    import torch

    try:
        return torch.from_dlpack(array)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(
            f"array of {array.dtype} cannot be a torch tensor without a copy: {one_line(error)}"
        ) from error
