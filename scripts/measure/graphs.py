"""The graphs that suites measure (graphs.toml): files of the folder of graphs, and generated ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scripts.pages import listed


@dataclass(frozen=True)
class GraphSource:
    """A graph: a file of the folder, or a generator with its arguments.

    Attributes
    ----------
    generator : str
        A function of scripts/papers/generators.py or scripts/make_graphs.py.
    max_potential : int
        Above 0, potentials up to this are added to the weights, so that some are negative and no cycle is. The weights are
        those of the file, if it has a column ``weight``, and else the hashed ones.
    keeps_loops : bool
        Whether each vertex gets a self-loop after the graph is built: building drops those of non-negative weight.
    centered : bool
        Whether searches begin at the vertex in the middle, as those of Luo, Wong, Hwu on grids.
    n_sources : int
        Sources of a search; 0: as many as the command line says.
    """

    name: str
    file: str = ""
    generator: str = ""
    arguments: Sequence[float] = ()
    directed: bool = False
    max_potential: int = 0
    keeps_loops: bool = False
    centered: bool = False
    n_sources: int = 0

    @property
    def origin(self) -> str:
        made = self.file or f"{self.generator}{tuple(self.arguments)}"
        if self.keeps_loops:
            made += ", a self-loop per vertex"
        if self.max_potential:
            made += f", weights w + h[u] - h[v], h to {self.max_potential}"
        return made


@dataclass(frozen=True)
class FileFormat:
    """What a file of the folder holds: columns of integers from 0, what a row is, and where the graph comes from."""

    columns: str
    row: str
    source: str


_LISTED = listed(__file__)
PAPERS = {name: GraphSource(name, **about) for name, about in _LISTED["papers"].items()}
GRAPHS = PAPERS | {name: GraphSource(name, **about) for name, about in _LISTED["suites"].items()}
FILES = {name: FileFormat(**about) for name, about in _LISTED["files"].items()}


def chosen(*names: str) -> dict[str, GraphSource]:
    """Return some of the graphs by their names."""
    return {name: GRAPHS[name] for name in names}
