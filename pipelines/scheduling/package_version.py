"""The version of this package, by which the driver and the workers of an existing cluster recognize
each other.
"""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import kepler_traverse

_SOURCES = (".py", ".cu", ".cuh")


@functools.cache
def version_here() -> str:
    """Return the version of this package as text, with a digest of its sources, since the number
    alone does not distinguish two checkouts.

    It is computed once per process, about when the process imports the sources.
    """
    library = Path(kepler_traverse.__file__).parent
    job = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for folder in (library, job):
        for path in sorted(path for path in folder.rglob("*") if path.suffix in _SOURCES):
            # An installation has the job inside the library, where it is not counted twice.
            if folder == library and library / "pipelines" in path.parents:
                continue
            name = path.relative_to(folder).as_posix().encode()
            digest.update(name + b"\0" + path.read_bytes() + b"\0")
    return f"{kepler_traverse.__version__}, sources {digest.hexdigest()[:12]}"
