"""What the papers say: titles, graphs and tables, typed from their texts (said.toml)."""

from __future__ import annotations

from typing import NamedTuple

from scripts.pages import listed

_SAID = listed(__file__)


class Paper(NamedTuple):
    """A paper, and the machine on which it measured."""

    title: str
    authors: str
    where: str
    machine: str
    what: str


class Original(NamedTuple):
    """A graph of a paper, in the numbers of its table: millions of vertices and edges."""

    vertices: float
    edges: float
    mean: float | None = None
    deviation: float | None = None
    largest: int | None = None
    diameter: int | None = None


PAPERS = {name: Paper(**about) for name, about in _SAID["papers"].items()}
ORIGINALS = {name: Original(**about) for name, about in _SAID["originals"].items()}
BFS_4K_TABLE_2: dict[str, list[float]] = _SAID["bfs_4k_table_2"]
H_BF_TABLE_2: dict[str, list[float]] = _SAID["h_bf_table_2"]
H_BF_MTEPS: dict[str, float] = _SAID["h_bf_mteps"]
H_BF_TABLE_3: dict[str, list[float]] = _SAID["h_bf_table_3"]
UIUC: dict[str, list[float]] = _SAID["uiuc"]
SEVILMIS_1: dict[str, list[list[float]]] = _SAID["sevilmis_1"]
SEVILMIS_23: dict[str, list[float]] = _SAID["sevilmis_23"]
