"""Whether rounding may have changed a distance, on a GPU. See kernels/exact.cu and
``kepler_traverse.search.exact``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .._arrays import Array
from . import cp
from .compiler import kernel
from .kernel_spec import Entry
from .launch import launch

_ANY_BEYOND = Entry("exact_any_beyond", Path(__file__).parent / "kernels" / "exact.cu", 256)
ENTRIES = (_ANY_BEYOND,)
_PER_THREAD = 16  # distances, so that few blocks are launched


def any_beyond(distance: Array, bound: int) -> bool:
    """Return whether any finite distance, of an array of any shape, has an absolute value of
    ``bound`` or more, so that rounding may have changed it.
    """
    values = cp.ascontiguousarray(distance).ravel()
    kind = distance.dtype
    is_beyond = cp.zeros(1, np.int32)
    args = (values, np.int64(values.size), kind.type(bound), is_beyond)
    launch(kernel(_ANY_BEYOND, np.int32, kind), -(-values.size // _PER_THREAD), args)
    return bool(is_beyond.get()[0])
