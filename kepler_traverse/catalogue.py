"""What can be run: the rows of both catalogues as a frame."""

from __future__ import annotations

from dataclasses import fields

from . import frames
from .bfs.catalogue import STRATEGIES as BFS
from .sssp.catalogue import STRATEGIES as SSSP


def strategies():
    """Return the catalogue: one row for each strategy.

    Returns
    -------
    pandas.DataFrame
        Columns ``algorithm, name, device, default, needs, knobs, paper, teaches``; ``name`` is what ``strategy=`` takes,
        ``knobs`` the names that ``knobs=`` takes with it.

    Examples
    --------
    >>> strategies().query("algorithm == 'bfs' and device == 'cpu'")["name"].tolist()
    ['switch', 'queue']
    >>> strategies().set_index("name")["knobs"]["h_bf"].split(", ")[:3]
    ['edge_classes', 'duplicates', 'cache_modifiers']
    """
    return frames.host_frame(
        [
            {
                "algorithm": algorithm,
                "name": row.name,
                "device": row.device,
                "default": row.default,
                "needs": ", ".join(sorted(row.needs)),
                "knobs": ", ".join(field.name for field in fields(row.knobs)) if row.knobs else "",
                "paper": row.paper,
                "teaches": row.teaches,
            }
            for algorithm, rows in (("bfs", BFS), ("sssp", SSSP))
            for row in rows
        ]
    )
