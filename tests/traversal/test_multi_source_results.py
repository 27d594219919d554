"""Results of traversals from many sources: matrix, targets, summary, levels, reachable, nearest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kepler_traverse import bfs_many, sssp_many
from kepler_traverse.errors import InputError, StrategyError, UnknownVertexError
from kepler_traverse.graph.build import graph_from_numbers
from kepler_traverse.search.results import Traversals
from tests.support.graphs import NAMED, build, weights_for


@pytest.fixture(scope="module")
def lattice():
    rows = NAMED["lattice"]
    return build([(u + 100, v + 100) for u, v in rows], weights_for(rows, 9), directed=False)


def test_a_matrix_has_a_row_for_each_source_as_often_as_it_is_given(lattice):
    matrix = bfs_many(lattice, [105, 100, 105], result="matrix")
    assert matrix.shape == (3, lattice.n_vertices)
    assert matrix.dtype == np.int8
    assert (matrix[0] == matrix[2]).all()
    assert matrix[1, :3].tolist() == [0, 1, 2]
    assert bfs_many(lattice, [105, 100], result="matrix", targets=[102, 100]).tolist() == [
        [3, 5],
        [2, 0],
    ]
    assert bfs_many(lattice, [], result="matrix").shape == (0, lattice.n_vertices)


def test_targets_are_pairs_in_the_order_given_with_nulls():
    graph = build([(1, 2), (2, 3), (8, 9)], [2.0, 4.0, 1.0])
    frame = sssp_many(graph, [2, 1], result="targets", targets=[9, 3])
    assert list(frame) == ["source", "target", "distance"]
    assert frame["source"].tolist() == [2, 2, 1, 1]
    assert frame["target"].tolist() == [9, 3, 9, 3]
    assert frame["distance"].isna().tolist() == [True, False, True, False]
    assert frame["distance"].dropna().tolist() == [4.0, 6.0]
    hops = bfs_many(graph, [1], result="targets", targets=[3, 2], max_depth=1)
    assert hops["distance"].isna().tolist() == [True, False]


@pytest.mark.parametrize("strategy", ["bit_parallel", "source_per_thread", "queue"])
def test_a_summary_is_made_of_the_distances(lattice, strategy):
    sources = [150, 100, 150, 1099]
    frame = bfs_many(lattice, sources, result="summary", strategy=strategy)
    n = lattice.n_vertices
    for i, source in enumerate(sources):
        hops = bfs_many(lattice, [source])["distance"].to_numpy()
        row = frame.iloc[i]
        assert row["source"] == source
        assert row["reached"] == hops.size
        assert row["eccentricity"] == hops.max()
        assert row["sum"] == hops.sum()
        assert row["mean"] == pytest.approx(hops.sum() / (hops.size - 1))
        assert row["closeness"] == pytest.approx((hops.size - 1) ** 2 / (hops.sum() * (n - 1)))
        assert row["harmonic"] == pytest.approx((1 / hops[hops > 0]).sum())
    assert frame.dtypes["reached"] == np.int64


def test_a_summary_of_weighted_distances(lattice):
    frame = sssp_many(lattice, [150, 100], result="summary", cutoff=60)
    for i, source in enumerate([150, 100]):
        distance = sssp_many(lattice, [source], cutoff=60)["distance"].to_numpy().astype(np.float64)
        assert frame["reached"][i] == distance.size
        assert frame["eccentricity"][i] == distance.max()
        assert frame["sum"][i] == pytest.approx(distance.sum())
        assert frame["harmonic"][i] == pytest.approx((1 / distance[distance > 0]).sum())


def test_a_vertex_alone_has_zeros_in_its_summary():
    row = bfs_many(build([(0, 0), (1, 2)]), [0], result="summary").iloc[0]
    assert row.tolist() == [0, 1, 0, 0, 0, 0, 0]


def test_levels_are_the_hop_plot(lattice):
    frame = bfs_many(lattice, [100, 130], result="levels")
    for source in (100, 130):
        hops = bfs_many(lattice, [source])["distance"].to_numpy()
        rows = frame[frame["source"] == source]
        assert rows["distance"].tolist() == list(range(hops.max() + 1))
        assert rows["vertices"].tolist() == np.bincount(hops).tolist()


@pytest.mark.parametrize("n", [1, 7, 8, 9, 300])
def test_the_bitmap_of_what_is_reachable(n):
    graph = build([(v, v + 1) for v in range(n)] + [(n + 5, n + 6)])
    bitmap = bfs_many(graph, [0, n + 5, 0], result="reachable")
    bits = np.unpackbits(bitmap, axis=1, bitorder="little")[:, : graph.n_vertices]
    assert bits[0].tolist() == [1] * (n + 1) + [0, 0]
    assert bits[1].tolist() == [0] * (n + 1) + [1, 1]
    assert (bitmap[0] == bitmap[2]).all()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("name", ["power law", "lattice", "two components", "in-star"])
def test_the_nearest_source_is_one_at_the_smallest_distance(name, directed):
    rows = [r[:2] for r in NAMED[name]]
    graph = build(rows, weights_for(rows, 4), directed=directed)
    sources = sorted({rows[0][0], rows[-1][1], rows[len(rows) // 2][0]})
    for many, limit in ((bfs_many, "max_depth"), (sssp_many, "cutoff")):
        matrix = many(graph, sources, result="matrix").astype(np.float64)
        matrix[matrix < 0] = np.inf
        least = matrix.min(axis=0)
        for most in (None, 2):
            frame = many(
                graph, sources, result="nearest", **({} if most is None else {limit: most})
            )
            reached = np.flatnonzero(least <= (np.inf if most is None else most))
            reached = reached[np.isfinite(least[reached])]
            assert frame["vertex"].tolist() == graph.ids[reached].tolist()
            assert frame["distance"].tolist() == least[reached].tolist()
            owner = np.searchsorted(sources, frame["source"])
            assert (matrix[owner, reached] == least[reached]).all()


@pytest.mark.parametrize("depth", [127, 128, 40000, 2**31, 10**300])
def test_a_limit_beyond_the_type_of_short_hops_limits_nothing(depth):
    graph = build([(v, v + 1) for v in range(40)])
    assert bfs_many(graph, [0], result="targets", targets=[40], max_depth=depth)[
        "distance"
    ].tolist() == [40]
    assert (
        bfs_many(graph, [0], result="reachable", max_depth=depth).sum()
        == bfs_many(graph, [0], result="reachable").sum()
    )
    assert len(bfs_many(graph, [0], max_depth=depth)) == 41


def test_string_ids_come_back_in_every_result():
    ends = np.array([0, 1], np.int32), np.array([1, 2], np.int32)
    graph = graph_from_numbers(*ends, np.array([2, 3]), ids=pa.array(["a", "b", "c"]))
    assert bfs_many(graph, ["b"], result="nearest")["vertex"].tolist() == ["b", "c"]
    assert bfs_many(graph, ["b"], result="summary")["source"].tolist() == ["b"]
    assert bfs_many(graph, ["a"], result="targets", targets=["c"]).iloc[0].tolist() == ["a", "c", 2]
    assert bfs_many(graph, ["a"], result="levels")["source"].tolist() == ["a", "a", "a"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"result": "distance"}, "none of 'distances'"),
        ({"result": "targets"}, "needs targets, the vertices"),
        ({"result": "summary", "targets": [1]}, "targets is for result distances"),
        ({"unreached": "zero"}, "none of 'omit'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(lattice, options, message):
    with pytest.raises(InputError, match=message):
        bfs_many(lattice, [100], **options)


def test_unsupported_results_are_refused(lattice):
    with pytest.raises(InputError, match="counts hops"):
        sssp_many(lattice, [100], result="levels")
    with pytest.raises(InputError, match="at least one source"):
        bfs_many(lattice, [], result="nearest")
    with pytest.raises(UnknownVertexError, match="not in the graph: 5"):
        bfs_many(lattice, [100, 5], result="summary")
    with pytest.raises(StrategyError, match="source_per_thread"):
        bfs_many(lattice, [100], strategy="near_far_per_thread")
    with pytest.raises(StrategyError, match="these fit: auto, switch"):
        bfs_many(lattice, [100], result="nearest", strategy="bit_parallel")
    with pytest.raises(StrategyError, match="has no knobs"):
        bfs_many(lattice, [100], strategy="bit_parallel", knobs={"k1": 4})


def test_traversals_with_targets_of_each_source_are_counted_from_the_end_too():
    traversals = Traversals(
        algorithm="bfs",
        sources=np.array([7, 8]),
        distance=np.array([0, 2, 4], np.int8),
        predecessor=None,
        limits=[None, None],
        strategy="source_per_thread",
        rounds=[1, 5],
        offsets=np.array([0, 1, 3]),
    )
    assert traversals[-1].distance.tolist() == traversals[1].distance.tolist() == [2, 4]
    assert traversals[-2].distance.tolist() == [0]
    with pytest.raises(IndexError):
        traversals[2]
