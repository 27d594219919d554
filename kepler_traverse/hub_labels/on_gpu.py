"""Hub labels in the memory of a GPU, and the distances that they answer there; see label_pairs.cu.

A pair reads its two labels once, 8 bytes per row, or 12: about 1.5 kB on a road network.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import numpy as np

from ..cuda import cp
from ..cuda.compiler import kernel
from ..cuda.interleaved import as_wide_as
from ..cuda.kernel_spec import WARP, make_entries
from ..cuda.launch import launch

BLOCK = 256  # threads per thread block
_FILE = Path(__file__).parent / "kernels" / "label_pairs.cu"
_PAIRS = make_entries(_FILE, BLOCK, item_threads=WARP)("label_pairs_warp")  # a warp per pair
ENTRIES = (_PAIRS,)


class LabelsOnGpu:
    """The arrays of ``HubLabels`` on the current GPU.

    ``_arrays`` has them by the names that kernels take: ``rank``, the rank of each vertex;
    ``offsets``, ``hubs`` and ``distances`` of the outward labels, which have the distances from
    each vertex to its hubs; and the same with ``_in`` of the inward labels, from the hubs.
    ``_dtype`` is the type of distances, int32 or int64, and ``_unreached`` what stands for no path.
    """

    def __init__(self, labels: Any):
        """Copy the arrays of ``labels``, a ``HubLabels``, to the current GPU."""
        self._dtype = labels.dtype
        self._arrays: dict[str, Any] = {"rank": cp.asarray(labels.rank)}
        for suffix, lists in (("", labels.outward), ("_in", labels.inward)):
            for name, array in lists._asdict().items():
                if suffix and labels.is_symmetric:  # the arrays of both directions are the same
                    copy = self._arrays[name]
                else:
                    copy = cp.asarray(np.ascontiguousarray(array))
                self._arrays[f"{name}{suffix}"] = copy
        self._unreached = np.int64(labels.unreached)

    def between(self, sources: Any, targets: Any) -> Any:
        """Return the distance of each pair of vertex numbers in units, an int64 array of CuPy of
        shape (n_pairs,); ``_unreached`` where there is no path.

        ``sources`` and ``targets`` are int64 arrays of CuPy of shape (n_pairs,), whose values are
        not checked.
        """
        sums = cp.empty(sources.size, np.int64)
        args = {
            **self._arrays,
            "sources": sources,
            "targets": targets,
            "n_pairs": np.int64(sources.size),
            "unreached": self._unreached,
            "sums": sums,
        }
        # Kernels are compiled for types of vertex numbers and of weights, which are floats. Here
        # the float type stands for integers of its width.
        launch(kernel(_PAIRS, np.int32, as_wide_as(self._dtype)), sources.size, args)
        return sums


# by labels, as long as these exist: their copy on each GPU, by the number of the device
_COPIES: weakref.WeakKeyDictionary[Any, dict[int, LabelsOnGpu]] = weakref.WeakKeyDictionary()


def on_gpu(labels: Any) -> LabelsOnGpu:
    """Return the copy of ``labels``, a ``HubLabels``, on the current GPU. The first call on a GPU
    makes it; it is kept as long as ``labels`` exists.
    """
    copies = _COPIES.setdefault(labels, {})
    device = cp.cuda.runtime.getDevice()
    if device not in copies:
        copies[device] = LabelsOnGpu(labels)
    return copies[device]
