"""What can be run: the rows of both catalogues as a frame."""

from __future__ import annotations

from . import frames
from .bfs.catalogue import STRATEGIES as BFS
from .sssp.catalogue import STRATEGIES as SSSP


def strategies():
    """Return the catalogue: one row for each strategy.

    Returns
    -------
    pandas.DataFrame
        Columns ``algorithm, name, device, default, needs, paper, teaches``; ``name`` is what ``strategy=`` takes.

    Examples
    --------
    >>> strategies().query("algorithm == 'bfs' and device == 'cpu'")["name"].tolist()
    ['switch', 'queue']
    """
    return frames.host_frame(
        [
            {
                "algorithm": algorithm,
                "name": row.name,
                "device": row.device,
                "default": row.default,
                "needs": ", ".join(sorted(row.needs)),
                "paper": row.paper,
                "teaches": row.teaches,
            }
            for algorithm, rows in (("bfs", BFS), ("sssp", SSSP))
            for row in rows
        ]
    )
