"""What children of the process that forks would each do first: imports, and Numba's tables of what it can compile.

Nothing here starts a thread, so that the process can fork.
"""

import kepler_traverse.pipelines.assignment
import kepler_traverse.pipelines.run.driver  # noqa: F401
import pandas  # noqa: F401
from numba.core.registry import cpu_target

cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
