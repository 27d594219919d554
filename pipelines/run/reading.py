"""Reading an edge list in a program, whose terminal shows what may have been meant otherwise as one
line each.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kepler_traverse.errors import EdgeListWarning
from kepler_traverse.graph import Graph
from kepler_traverse.graph.read import read_graph

from ..cli.terminal import say


@contextmanager
def without_warnings() -> Iterator[None]:
    """Let the library warn of nothing in an edge list: the report of the graph has it, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdgeListWarning)
        yield


def read_and_say(paths: Any, **options: Any) -> Graph:
    """Return the graph of an edge list, as ``read_graph``, and say the hints of its report."""
    with without_warnings():
        graph = read_graph(paths, **options)
    for hint in graph.report.hints:
        say(hint)
    return graph
