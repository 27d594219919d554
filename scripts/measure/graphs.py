"""The graphs that suites measure: files of the folder of graphs, and generated ones. The papers have a list of their own."""

from __future__ import annotations

from dataclasses import dataclass


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
    arguments: tuple = ()
    directed: bool = False
    max_potential: int = 0
    keeps_loops: bool = False
    centered: bool = False
    n_sources: int = 0

    @property
    def origin(self) -> str:
        made = self.file or f"{self.generator}{self.arguments}"
        made += ", a self-loop per vertex" if self.keeps_loops else ""
        return made + (
            f", weights w + h[u] - h[v], h to {self.max_potential}" if self.max_potential else ""
        )


GRAPHS = {
    graph.name: graph
    for graph in (
        GraphSource("USA-road-NE", file="USA-road-NE-topology"),
        GraphSource("USA-road-NY", file="USA-road-d.NY"),
        GraphSource("lattice 1500", generator="lattice", arguments=(1500, 1500, 0.1)),
        GraphSource("R-MAT 20", generator="rmat", arguments=(20, 16)),
        GraphSource("R-MAT 22", generator="rmat", arguments=(22, 16)),
        GraphSource("uniform 2M", generator="erdos_renyi", arguments=(2_000_000, 64_000_000)),
        GraphSource("R-MAT 24", generator="rmat", arguments=(24, 16)),
        GraphSource("lattice 4000", generator="lattice", arguments=(4000, 4000, 0.1)),
        GraphSource("cnr-2000", file="cnr-2000", directed=True),
        GraphSource("soc-Slashdot0902", file="soc-Slashdot0902", directed=True),
        GraphSource("dblp-2010", file="dblp-2010"),
    )
}


def chosen(*names: str) -> dict[str, GraphSource]:
    """Return some of the graphs by their names."""
    return {name: GRAPHS[name] for name in names}
