"""The job in a checkout, whose code is in the folder ``pipelines/`` beside this package.

A wheel has that code here instead (``setup.py``), so that each module has the same name in both.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[2] / "pipelines"
_spec = spec_from_file_location(
    __name__, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)]
)
# A path that ends with .py has both.
assert _spec is not None
assert _spec.loader is not None
# What is imported under this name from now on, in place of this file.
_package = module_from_spec(_spec)
sys.modules[__name__] = _package
_spec.loader.exec_module(_package)
