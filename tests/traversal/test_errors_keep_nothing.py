"""An error that has been handled keeps no frame of its callers alive, and with it no array of theirs.

A frame that names the error, which the traceback of the error holds, is a circle. Python frees it at some later collection
of garbage, and loses an interrupt that comes while it then calls back for a weak reference.
"""

import gc
import weakref

import numpy as np
import pandas as pd
import pytest

import kepler_traverse
from kepler_traverse import bfs_many, graph_from_edges, read_graph, sssp_many, sssp_pairs
from kepler_traverse.cpu import threads

GRAPH = graph_from_edges([0, 1, 2], [1, 2, 3], [1, 2, 3])
CYCLE = graph_from_edges([0, 1, 2], [1, 2, 0], [1, -2, 0])


class Marker:
    pass


def refuse(thread):
    raise ValueError(thread)


def interrupt(thread):
    if thread == 0:
        raise KeyboardInterrupt


def read_parts_without_rows(folder):
    for name in "ab":
        (folder / f"{name}.csv").write_text("src,dst\n")
    read_graph(folder)


def interrupt_a_search():
    def stop(*_):
        raise KeyboardInterrupt

    sssp_many(GRAPH, [0, 1], progress=stop)


CALLS = {
    "an error of each thread": lambda _: threads.on_each(refuse, 2),
    "an interrupt of the calling thread": lambda _: threads.on_each(interrupt, 2),
    "an unknown source": lambda _: bfs_many(GRAPH, [9]),
    "a negative cycle": lambda _: sssp_many(CYCLE, [0]),
    "no memory for any strategy": lambda _: bfs_many(GRAPH, np.zeros(100, int), memory=1),
    "an interrupt in a report of progress": lambda _: interrupt_a_search(),
    "pairs that differ in length": lambda _: sssp_pairs(GRAPH, ([0], [1, 2])),
    "parts without rows": read_parts_without_rows,
    "an unknown strategy": lambda _: bfs_many(GRAPH, [0], strategy="none"),
    "a table without ids": lambda _: graph_from_edges(pd.DataFrame({"a": [1]})),
}


@pytest.fixture
def no_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection")
@pytest.mark.parametrize("name", CALLS)
def test_an_error_that_was_handled_keeps_no_frame_of_its_callers(name, tmp_path):
    def call():
        mine = Marker()
        with pytest.raises((kepler_traverse.KeplerError, ValueError, KeyboardInterrupt)):
            CALLS[name](tmp_path)
        return weakref.ref(mine)

    assert call()() is None
