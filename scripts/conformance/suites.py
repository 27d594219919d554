"""What scripts/conformance.sh runs, one suite after the other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GPU_SKIPS = ("no GPU with CuPy", "cupy", "cudf", "cugraph")
SCIPY_TESTS = tuple(
    f"scipy.sparse.csgraph.tests.{name}" for name in ("test_shortest_path", "test_traversal")
)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A run of pytest whose results are counted."""

    name: str
    title: str  # what the tests are and how they call this library
    # Arguments of Python; with ``is_script`` a shell script of this repository and its arguments. What it runs by pytest is
    # counted by the report that ``PYTEST_ADDOPTS`` asks for.
    command: tuple[str, ...]
    # The file or folder that has the tests or runs them. A suite without it has not run.
    needs: str
    packages: tuple[str, ...]  # distributions whose versions are recorded
    # whether the tests are this library's: then a skip is a failure, except where a GPU is missing
    is_own: bool = False
    is_script: bool = False
    # Arguments that select the part that check.sh --all runs; none if check.sh --all runs all of it, or leaves it out.
    part: tuple[str, ...] = ()
    in_check: bool = False  # whether check.sh --all runs it, or its part

    @property
    def is_here(self) -> bool:
        return (ROOT / self.needs).exists()

    def allows_skip(self, reason: str) -> bool:
        return not self.is_own or any(text in reason for text in GPU_SKIPS)


def _own_tests(*paths: str) -> tuple[str, ...]:
    return ("-m", "pytest", "-q", *paths)


SUITES = (
    Suite(
        name="scipy",
        title="SciPy's tests of `csgraph`: `dijkstra`, `shortest_path`, `johnson`, `bellman_ford` and `breadth_first_tree` "
        "are this library's",
        # Neither the options nor the warnings of this project: the suite has its own.
        command=(
            *(
                "-m",
                "pytest",
                "-q",
                "-o",
                "addopts=",
                "-o",
                "filterwarnings=",
                "-p",
                "no:cacheprovider",
            ),
            *("-p", "scripts.conformance.replace_csgraph", "--pyargs", *SCIPY_TESTS),
        ),
        needs="scripts/conformance/replace_csgraph.py",
        packages=("scipy", "numpy"),
        in_check=True,
    ),
    Suite(
        name="networkx",
        title="NetworkX's test suite with the backend `kepler`",
        command=("scripts/conformance/networkx.sh",),
        needs="scripts/conformance/networkx.sh",
        packages=("networkx", "nx-parallel"),
        is_script=True,
        part=("--part",),
        in_check=True,
    ),
    Suite(
        name="pandana",
        title="pandana's tests, with networks of `kepler_traverse.pandana`",
        command=("scripts/conformance/pandana.sh",),
        needs="scripts/conformance/pandana.sh",
        packages=("pandana", "pandas", "tables"),
        is_script=True,
    ),
    Suite(
        name="csgraph",
        title="`kepler_traverse.csgraph` compared with SciPy on generated matrices",
        command=_own_tests("tests/csgraph"),
        needs="tests/csgraph",
        packages=("scipy", "hypothesis"),
        is_own=True,
    ),
    Suite(
        name="tables",
        title="graphs of tables of other libraries",
        command=_own_tests(
            *("tests/graph/test_tables.py", "tests/graph/test_row_filters.py"),
            *("tests/job/test_row_groups.py", "tests/job/test_table_formats.py"),
        ),
        needs="tests/graph/test_tables.py",
        packages=(
            "pandas",
            "polars",
            "pyarrow",
            "duckdb",
            "geopandas",
            "osmnx",
            "dask",
            "networkx",
            "igraph",
            "torch",
        ),
        is_own=True,
    ),
    Suite(
        name="torch",
        title="tensors, and the transform for PyTorch Geometric",
        command=_own_tests("tests/torch"),
        needs="tests/torch",
        packages=("torch", "torch_geometric"),
        is_own=True,
    ),
    Suite(
        name="examples",
        title="examples of the pages [from other libraries](../README.md#documentation)",
        command=_own_tests("tests/project/test_from_pages.py"),
        needs="tests/project/test_from_pages.py",
        packages=("networkx", "scipy", "igraph", "osmnx", "torch_geometric"),
        is_own=True,
    ),
)
