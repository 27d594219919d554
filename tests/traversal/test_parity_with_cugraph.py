"""Differences between cuGraph's rules and ours: the results of both.

Graphs are made as ``cugraph.Graph`` makes them. Where the rules agree so do distances: ``python -m scripts.evidence measure
--only parity``.
"""

from __future__ import annotations

import numpy as np
import pytest

from kepler_traverse import cuda, graph_from_edges, plan_bfs, plan_sssp
from kepler_traverse._arrays import to_host
from pipelines.comparison import in_our_encoding

pytestmark = pytest.mark.gpu
UNREACHED = np.inf


@pytest.fixture
def cugraph():
    return pytest.importorskip("pylibcugraph")


def ours(rows, weights, directed=True):
    src, dst = np.array(rows, np.int32).T
    return graph_from_edges(
        *(cuda.cp.asarray(a.copy()) for a in (src, dst)),
        cuda.cp.asarray(weights, np.float32),
        directed=directed,
    )


def theirs(cugraph, rows, weights, *, symmetric=False):
    """A handle and cuGraph's own graph of an edge list."""
    handle = cugraph.ResourceHandle()
    src, dst = (cuda.cp.asarray(a.copy()) for a in np.array(rows, np.int32).T)
    graph = cugraph.SGGraph(
        handle,
        cugraph.GraphProperties(is_symmetric=symmetric, is_multigraph=False),
        src,
        dst,
        weight_array=cuda.cp.asarray(weights, np.float32),
        store_transposed=False,
        renumber=True,
        do_expensive_check=True,
        drop_multi_edges=True,
        symmetrize=symmetric,
    )
    return handle, graph


def distances_of(graph, algorithm, vertices, distances):
    """By vertex, in our encoding."""
    return to_host(in_our_encoding((vertices, distances), graph, algorithm)).tolist()


def their_sssp(cugraph, graph, handle, other, cutoff=np.inf):
    vertices, distances, _ = cugraph.sssp(handle, other, 0, cutoff, True, False)
    return distances_of(graph, "sssp", vertices, distances)


def our_sssp(graph, **options):
    return to_host(plan_sssp(graph, **options).run(0).distance).tolist()


PATH = [(0, 1), (1, 2), (2, 3)]


def test_their_cutoff_leaves_out_the_vertices_at_the_cutoff_itself_and_ours_keeps_them(cugraph):
    graph = ours(PATH, [1, 1, 1])
    assert their_sssp(cugraph, graph, *theirs(cugraph, PATH, [1, 1, 1]), cutoff=2.0) == [
        0,
        1,
        UNREACHED,
        UNREACHED,
    ]
    assert our_sssp(graph, cutoff=2.0) == [0, 1, 2, UNREACHED]


def test_a_depth_of_0_has_no_limit_there_and_is_the_source_alone_here(cugraph):
    graph = ours(PATH, [1, 1, 1])
    handle, other = theirs(cugraph, PATH, [1, 1, 1])
    distances, _, vertices = cugraph.bfs(
        handle, other, cuda.cp.zeros(1, np.int32), False, 0, True, False
    )
    assert distances_of(graph, "bfs", vertices, distances) == [0, 1, 2, 3]
    assert to_host(plan_bfs(graph, max_depth=0).run(0).distance).tolist() == [0, -1, -1, -1]


def test_parallel_edges_of_a_directed_graph_keep_the_cheapest_and_cugraph_any(cugraph):
    rows, weights = [(0, 1)] * 4, [7, 5, 3, 9]
    graph = ours(rows, weights)
    source, kept = their_sssp(cugraph, graph, *theirs(cugraph, rows, weights))
    assert source == 0
    assert kept in weights
    assert our_sssp(graph) == [0, 3]


def test_undirected_edges_keep_the_cheaper_direction_and_cugraph_the_average(cugraph):
    rows, weights = [(0, 1), (1, 0)], [1, 3]
    graph = ours(rows, weights, directed=False)
    assert their_sssp(cugraph, graph, *theirs(cugraph, rows, weights, symmetric=True)) == [0, 2]
    assert our_sssp(graph) == [0, 1]
