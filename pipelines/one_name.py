"""One name for each module of the job: ``kepler_traverse.pipelines`` and what is below it.

``pipelines`` is a second name of the same modules, so that ``python -m pipelines.batch_sources``
works. Were they loaded under both names, then each class would exist twice. Where another project's
package has the name ``pipelines``, that package is imported, and nothing here is used.
"""

from __future__ import annotations

import sys
from importlib import import_module, util
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

PACKAGE = "kepler_traverse.pipelines"
ALIAS = "pipelines"


class _Alias(MetaPathFinder, InspectLoader):
    """Finds ``pipelines.x`` and loads ``kepler_traverse.pipelines.x`` in its place."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return how to load ``pipelines.x``; None for other names, and if there is no such module.

        ``path`` and ``target``, which Python passes, are ignored: the full name says which module.
        """
        if not fullname.startswith(f"{ALIAS}."):
            return None
        spec = util.find_spec(_name_in_package(fullname))
        if spec is None:
            return None
        is_package = spec.submodule_search_locations is not None
        return ModuleSpec(fullname, self, origin=spec.origin, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        """Import the module under its name in the package, and enter it for the alias, too.

        Python has made an empty module for the alias. After this its import returns what is in
        ``sys.modules`` instead.
        """
        sys.modules[module.__name__] = import_module(_name_in_package(module.__name__))

    def get_code(self, fullname: str) -> CodeType:
        """Return what ``python -m pipelines.x`` runs."""
        name = _name_in_package(fullname)
        program = f"runpy.run_module({name!r}, run_name='__main__', alter_sys=True)"
        return compile(f"import runpy; {program}", fullname, "exec")

    def get_source(self, fullname: str) -> None:
        """Return None, whatever the name: an alias has no source."""


def _name_in_package(alias: str) -> str:
    """Return ``kepler_traverse.pipelines.x`` for ``pipelines.x``."""
    return PACKAGE + alias.removeprefix(ALIAS)


def name_also_pipelines() -> None:
    """Make ``pipelines`` a second name of ``kepler_traverse.pipelines``, with all modules below."""
    sys.meta_path.insert(0, _Alias())
    sys.modules[ALIAS] = sys.modules[PACKAGE]
