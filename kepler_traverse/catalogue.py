"""What can be run: the rows of both catalogues as a frame."""

from __future__ import annotations

from dataclasses import fields

from . import frames
from .bfs.catalogue import MANY as BFS_MANY
from .bfs.catalogue import STRATEGIES as BFS
from .sssp.catalogue import MANY as SSSP_MANY
from .sssp.catalogue import STRATEGIES as SSSP


def strategies():
    """Return the catalogue: one row for each strategy.

    Returns
    -------
    pandas.DataFrame
        Columns ``algorithm, sources, name, device, default, needs, knobs, paper, teaches``; ``name`` is what ``strategy=``
        takes, ``knobs`` the names that ``knobs=`` takes with it. ``sources`` is "one" or "many"; functions for many sources
        take names of either.

    Examples
    --------
    >>> strategies().query("algorithm == 'bfs' and device == 'cpu' and default")["name"].tolist()
    ['switch', 'many_bits', 'many_queues']
    >>> strategies().set_index("name")["knobs"]["h_bf"].split(", ")[:3]
    ['edge_classes', 'duplicates', 'cache_modifiers']
    """
    return frames.host_frame(
        [
            {
                "algorithm": algorithm,
                "sources": sources,
                "name": row.name,
                "device": row.device,
                "default": row.default,
                "needs": ", ".join(sorted(row.needs)),
                "knobs": ", ".join(field.name for field in fields(row.knobs)) if row.knobs else "",
                "paper": row.paper,
                "teaches": row.teaches,
            }
            for algorithm, sources, rows in (
                ("bfs", "one", BFS),
                ("bfs", "many", BFS_MANY),
                ("sssp", "one", SSSP),
                ("sssp", "many", SSSP_MANY),
            )
            for row in rows
        ]
    )
