"""The strategies of both algorithms as a frame."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from .. import arguments, plugins
from ..bfs import REGISTRY as BFS
from ..search import frames
from ..search.strategy import BaseStrategy
from ..sssp import REGISTRY as SSSP


def strategies(published: bool = False) -> Any:
    """Return the strategies, one per record.

    Parameters
    ----------
    published : bool
        Also list the published systems that are reproduced here, for study and measurement.
        ``auto`` takes none of them.

    Returns
    -------
    pandas.DataFrame
        Columns ``algorithm, sources, name, device, default, needs, knobs, paper, teaches``.
        ``strategy=`` takes a ``name``, and ``knobs=`` the names in ``knobs``. ``sources`` is "one"
        or "many"; functions for many sources take names of either. ``teaches`` is the idea behind
        the strategy.

    Raises
    ------
    InputError
        A plug-in cannot be used, so that the list would lack its strategies.

    Examples
    --------
    >>> strategies().query("algorithm == 'bfs' and device == 'cpu' and default")["name"].tolist()
    ['switch', 'short_search', 'bit_parallel', 'source_per_thread', 'hierarchy_sweep']
    >>> strategies(published=True).set_index("name")["knobs"]["h_bf"].split(", ")[:3]
    ['edge_classes', 'duplicates', 'stream_frontier']
    """
    published = arguments.flag("published", published)
    plugins.refuse_failed()  # InputError if a plug-in cannot be used
    records = []
    for algorithm, registry in (("bfs", BFS), ("sssp", SSSP)):
        # ``with_plugins`` returns two lists: the strategies for one source, and those for many.
        for sources, known in zip(("one", "many"), registry.with_plugins(), strict=True):
            records += [
                _describe(algorithm, sources, strategy)
                for strategy in known
                if published or not strategy.published
            ]
    return frames.host_frame(records)


def _describe(algorithm: str, sources: str, strategy: BaseStrategy) -> dict[str, Any]:
    """Return the record of one strategy: the value of each column of ``strategies``.

    ``algorithm`` is "bfs" or "sssp", and ``sources`` is "one" or "many". ``strategy.knobs`` is a
    dataclass whose fields are the options of the strategy, or None if it has no options.
    """
    knobs = fields(strategy.knobs) if strategy.knobs else ()
    return {
        "algorithm": algorithm,
        "sources": sources,
        "name": strategy.name,
        "device": strategy.device,
        "default": strategy.default,
        "needs": ", ".join(sorted(strategy.needs)),
        "knobs": ", ".join(field.name for field in knobs),
        "paper": strategy.paper,
        "teaches": strategy.rationale,
    }
