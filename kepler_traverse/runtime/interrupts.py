"""What a call leaves in memory after Ctrl-C: nothing."""

from __future__ import annotations

import traceback

from .. import cuda


def forget_interrupted(interrupt: BaseException, device: str) -> None:
    """Release the arrays of a call that ``interrupt``, such as KeyboardInterrupt, has ended.

    Python shells and notebooks keep the last exception, and with it the local variables of every
    function that it has left. Without this they would keep the arrays of the call until the next
    error. ``device`` is "cpu" or "cuda", where the arrays are.
    """
    traceback.clear_frames(interrupt.__traceback__)  # except those of functions that still run
    if device == "cuda":
        # Wait first: kernels that were launched may still use the arrays.
        cuda.cp.cuda.get_current_stream().synchronize()
        cuda.cp.get_default_memory_pool().free_all_blocks()
