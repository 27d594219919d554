"""Bit-parallel BFS on a CPU: how vertices are split into chunks for threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.csgraph

from kepler_traverse import graph_from_edges, plan_bfs_many
from kepler_traverse.bfs.multi_source import bit_parallel_cpu


@pytest.mark.parametrize(
    "degrees", [[], [0], [5] * 3000, [0] * 9000, [20000, 0, 3, 9000], [1] * 500 + [3000] * 40]
)
def test_chunks_of_a_pull_cover_each_vertex_once_and_have_about_as_much_work(degrees):
    offsets = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    bounds = bit_parallel_cpu._chunk_bounds(offsets)
    assert (bounds[0], bounds[-1]) == (0, len(degrees))
    assert (np.diff(bounds) > 0).all()
    work = np.array(degrees, np.int64) + bit_parallel_cpu._VERTEX_WORK
    for begin, end in itertools.pairwise(bounds.tolist()):
        assert (
            end - begin == 1
            or work[begin:end].sum() <= bit_parallel_cpu._CHUNK_WORK + work[begin:end].max()
        )


@pytest.mark.parametrize("result", ["distances", "levels"])
@pytest.mark.parametrize("chunk_work", [1, 100, 10**6])
def test_distances_do_not_depend_on_the_chunks_of_a_pull(monkeypatch, result, chunk_work):
    monkeypatch.setattr(bit_parallel_cpu, "_CHUNK_WORK", chunk_work)
    monkeypatch.setattr(bit_parallel_cpu, "_CLEARED", 100)
    rng = np.random.default_rng(9)
    src, dst = rng.integers(0, 1500, (2, 4000))
    dst[:1200] = rng.integers(700, 704, 1200)  # vertices of high degree next to each other
    graph = graph_from_edges(src, dst, vertices=np.arange(1500))
    sources = rng.choice(1500, 300, replace=False)
    adjacency = scipy.sparse.csr_matrix((np.ones(src.size), (src, dst)), (1500, 1500))
    expected = scipy.sparse.csgraph.dijkstra(adjacency, unweighted=True, indices=sources)
    plan = plan_bfs_many(graph, n_sources=300, result=result, strategy="bit_parallel")
    for _ in range(2):  # the second time the state of the first one is cleared
        found = plan.run(sources)
        if result == "distances":
            np.testing.assert_array_equal(
                np.where(found.distance < 0, np.inf, found.distance), expected
            )
        else:
            levels = [
                np.bincount(row[np.isfinite(row)].astype(int), minlength=found.counts.shape[1])
                for row in expected
            ]
            np.testing.assert_array_equal(found.counts, levels)
