"""Edges traversed and histograms of distances: counted in plain Python, and the same however they are added up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import graph_from_edges, plan_bfs_many, plan_sssp_many
from pipelines.monitoring import run_plots
from pipelines.output.part_stats import (
    MAX_BINS,
    GroupStats,
    PartStats,
    count_edges,
    histogram_of_levels,
    histogram_of_rows,
    make_histogram,
    sum_histograms,
)
from tests.support import oracle

RNG = np.random.default_rng(8)
SRC, DST = RNG.integers(0, 60, (2, 150))
WEIGHT = RNG.integers(1, 900, 150) / 4
ROWS = list(zip(SRC.tolist(), DST.tolist(), WEIGHT.tolist(), strict=True))


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_edges_and_distances_are_counted_as_in_plain_python(algorithm):
    graph, neighbors = graph_from_edges(SRC, DST, WEIGHT), oracle.edges_of(ROWS)
    plan = (plan_bfs_many if algorithm == "bfs" else plan_sssp_many)(graph, n_sources=20)
    search = oracle.bfs if algorithm == "bfs" else oracle.dijkstra
    tally, edges, distances = PartStats(), 0, []
    for source in graph.ids[:20].tolist():
        reached = search(neighbors, source)
        edges += sum(len(neighbors.get(v, {})) for v in reached)
        distances += reached.values()
    for group in plan.iter_groups(np.arange(20)):
        stats = GroupStats()
        stats.add_group(graph, plan.query, group)
        assert stats.edges == [count_edges(graph, traversal) for traversal in group]
        assert sum_histograms(*stats.histograms) == sum_histograms(
            *(make_histogram(traversal) for traversal in group)
        )
        histograms = [[make_histogram(traversal)] for traversal in group]
        for source, *counts in zip(
            group.sources.tolist(), stats.edges, group.rounds, histograms, strict=True
        ):
            tally.add([source], source / 8, *counts)
    found = tally.summary()
    assert found["edges"] == edges
    assert found["rounds"] > 0
    assert found["slowest"] == (19, 19 / 8)
    bins = found["distances"]
    expected = np.bincount(
        np.floor(np.array(distances) / bins["width"]).astype(int) - bins["first"]
    )
    assert bins["counts"] == expected.tolist()
    assert len(bins["counts"]) <= MAX_BINS
    assert bins["width"] >= 1


@pytest.mark.parametrize("weights", [np.float32, np.float64])
def test_statistics_count_written_and_reached_vertices(weights):
    graph = graph_from_edges(SRC, DST, WEIGHT.astype(weights))
    plan = plan_sssp_many(graph, n_sources=2, targets=graph.ids[::3])
    group, stats = plan.run([5, 7]), GroupStats()
    stats.add_group(graph, plan.query, group)
    for traversal, edges, histogram in zip(group, stats.edges, stats.histograms, strict=True):
        written = np.isfinite(traversal.distance[::3]).sum()
        assert edges == graph.derived.degrees[traversal.reached].sum()
        assert sum(histogram["counts"]) == written < np.isfinite(traversal.distance).sum()


class Distances:
    def __init__(self, values, algorithm="sssp"):
        self.distance, self.algorithm = np.array(values), algorithm
        self.reached = self.distance >= 0 if algorithm == "bfs" else np.isfinite(self.distance)


@given(st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1), min_size=1, max_size=5))
def test_histograms_add_up_in_any_order(lists):
    one = other = None
    for values in lists:
        one = sum_histograms(one, make_histogram(Distances(values)))
    for values in lists[::-1]:
        other = sum_histograms(make_histogram(Distances(values)), other)
    assert sum(one["counts"]) == sum(map(len, lists)) == sum(other["counts"])
    for found in (one, other):
        assert len(found["counts"]) <= MAX_BINS
        for values in lists:
            at = np.floor(np.array(values) / found["width"]) - found["first"]
            assert all(found["counts"][int(i)] > 0 for i in at)


def test_histogram_is_none_if_nothing_is_reached():
    assert make_histogram(Distances([np.inf, np.inf])) is None
    assert make_histogram(Distances([-1, -1], "bfs")) is None
    assert sum_histograms(None, None) is None


@pytest.mark.parametrize(
    "distances",
    [[0.0, 5e-324], [-1.7e308, 1.7e308], [1e300, 1.0000000000000002e300], [1e300], [7.0]],
)
def test_distances_at_the_ends_of_their_type_have_a_histogram(distances):
    of_rows = histogram_of_rows("sssp", np.array(distances), np.array([len(distances)]))
    for found in (make_histogram(Distances(distances)), of_rows):
        assert sum(found["counts"]) == len(distances)
        assert run_plots.plot_histogram(found, "sssp").x[1] >= distances[-1]


def test_levels_beyond_the_bins_are_counted_as_distances_are():
    counts = np.arange(1, 2 * MAX_BINS)
    hops = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
    assert histogram_of_levels(counts[None], np.array([counts.size - 1])) == histogram_of_rows(
        "bfs", hops, np.array([hops.size])
    )
