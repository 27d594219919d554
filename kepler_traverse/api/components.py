"""The strongly connected components of a graph, as a frame."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import arguments
from ..cpu.components import ranked_components
from ..graph import Graph
from ..graph.closed import refuse_closed
from ..search.frames import Column, columns_on_device, frame_from


def components(graph: Graph) -> Any:
    """Return the strongly connected components: of any two vertices of one, each is reached from
    the other.

    Of an undirected graph they are the connected components.

    Parameters
    ----------
    graph : Graph

    Returns
    -------
    pandas.DataFrame or cudf.DataFrame
        Columns ``vertex, component``, both int64 or the ids, ordered by vertex. Components are
        numbered by their size: 0 is the largest, and of equally large ones that with the smaller
        vertex comes first.

    Raises
    ------
    InputError
        The graph has closed vertices.

    Notes
    -----
    By Pearce's variant of Tarjan's algorithm [1]_, in linear time on one thread of the CPU.

    .. [1] D. J. Pearce, "A space-efficient algorithm for finding strongly connected components",
       Information Processing Letters 116 (2016).

    Examples
    --------
    >>> components(graph_from_edges([1, 2, 3, 4], [2, 1, 4, 5]))["component"].tolist()
    [0, 0, 1, 2, 3]
    """
    arguments.instance("graph", graph, Graph, "read_graph and graph_from_edges make one")
    refuse_closed(graph, "a path leads through each vertex of a component")
    host = graph.derived.on_host  # components are found on the CPU
    numbers = np.arange(host.n_vertices)
    columns = {
        "vertex": Column.of_vertices(graph, numbers),
        "component": Column(ranked_components(host.offsets, host.targets)),
    }
    return frame_from(columns_on_device(columns, graph), graph.device)
