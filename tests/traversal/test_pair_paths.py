"""Paths of pairs: those along the canonical predecessors, with the rows of their edges and sums of other columns."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import bfs, bfs_many, graph_from_edges, paths, sssp, sssp_many, sssp_pairs
from kepler_traverse.errors import InputError, PrecisionError, UnknownVertexError
from kepler_traverse.kinds.pairs import pair_table
from kepler_traverse.kinds.paths import rows_of_edges, sums_along, walk_back
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.sssp import REGISTRY
from tests.support import tiers
from tests.support.devices import MODES, host, on_a_device, running
from tests.support.graphs import NAMED, build, edge_rows, lattice, rmat, weights_for


def some_pairs(graph, count, seed=1):
    ids, rng = np.asarray(graph.ids), np.random.default_rng(seed)
    origins = rng.choice(rng.choice(ids, min(ids.size, 7)), count)
    return origins, rng.choice(ids, count)


def expected_paths(graph, search, origins, destinations):
    """The vertices of each pair's path, by single searches and the paths of their frames."""
    rows = []
    for pair, (origin, destination) in enumerate(zip(origins, destinations, strict=True)):
        found = paths(search(graph, origin), [destination], graph=graph)
        rows += [
            (pair, position, vertex)
            for position, vertex in zip(found["position"], found["vertex"], strict=True)
        ]
    return rows


@pytest.mark.parametrize(
    ("name", "directed", "algorithm"),
    tiers.pairs(
        ["lattice", "power law", "two components", "star of 33"], [True, False], ["bfs", "sssp"]
    ),
)
def test_paths_of_pairs_are_those_of_single_searches(name, directed, algorithm):
    rows = [row[:2] for row in NAMED[name]]
    graph = build(rows, weights_for(rows, 3), directed=directed)
    origins, destinations = some_pairs(graph, 12)
    found = paths(graph, (origins, destinations), algorithm=algorithm)
    assert list(found.columns) == ["pair", "position", "vertex"]
    search = bfs if algorithm == "bfs" else sssp
    assert list(found.itertuples(index=False, name=None)) == expected_paths(
        graph, search, origins, destinations
    )


@pytest.mark.parametrize(
    "strategy", ["near_far_per_thread", "one_at_a_time", "frontier", "dijkstra_int64"]
)
def test_every_strategy_gives_the_same_paths(strategy):
    rows = [row[:2] for row in NAMED["power law"]]
    graph = build(rows, weights_for(rows, 3))
    pairs = some_pairs(graph, 40)
    assert paths(graph, pairs, strategy=strategy).equals(paths(graph, pairs))


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_searches_that_end_at_the_targets_give_the_same_paths(algorithm):
    rows = [row[:2] for row in NAMED["power law"]]
    # sums are rounded
    graph = build(
        rows, np.random.default_rng(7).random(len(rows)).astype(np.float32), directed=True
    )
    pairs, whole = (
        some_pairs(graph, 40),
        {"bfs": "source_per_thread", "sssp": "near_far_per_thread"}[algorithm],
    )
    short, whole = (
        paths(graph, pairs, algorithm=algorithm, strategy=name) for name in ("short_search", whole)
    )
    assert short.equals(whole)


def table_with_columns(rows, seed=2):
    rng, ends = np.random.default_rng(seed), np.array(rows)
    more = {"metres": rng.integers(1, 900, len(rows)), "toll": rng.random(len(rows))}
    return pd.DataFrame(
        {"src": ends[:, 0], "dst": ends[:, 1], "weight": rng.integers(1, 9, len(rows)), **more}
    )


def check_sums(frame, edges, graph, origins, destinations):
    """Each row's edge joins its vertex to the one before it, and the sums are those of these edges."""
    ends, ids = edges[["src", "dst"]].to_numpy(), frame["vertex"].tolist()
    totals = {}
    for i, (pair, position, edge) in enumerate(
        zip(frame["pair"], frame["position"], frame["edge"], strict=True)
    ):
        if position == 0:
            assert edge is pd.NA
            metres, toll, weight = 0, 0.0, 0
        else:
            assert {ids[i - 1], ids[i]} == set(ends[edge]) or ids[i - 1] == ids[i]
            metres, toll = metres + edges["metres"][edge], toll + edges["toll"][edge]
            weight += edges["weight"][edge]
        assert frame["metres"][i] == metres
        assert frame["toll"][i] == toll  # added in the same order, so equal to the last bit
        totals[pair] = weight
    distance = sssp_pairs(graph, origins, destinations)["distance"]
    assert totals == {
        pair: total for pair, total in enumerate(distance.tolist()) if total is not pd.NA
    }


@pytest.mark.parametrize("directed", [True, False])
def test_sums_along_are_those_of_the_edges_of_the_paths(directed):
    edges = table_with_columns(rmat(6, 4, seed=3))
    graph = graph_from_edges(edges, weight="weight", directed=directed, edge_ids=True)
    origins, destinations = some_pairs(graph, 60)
    for along in (
        edges[["metres", "toll"]],
        {"metres": edges["metres"], "toll": edges["toll"].tolist()},
    ):
        frame = paths(graph, (origins, destinations), edges=True, along=along)
        assert list(frame.columns) == ["pair", "position", "vertex", "edge", "metres", "toll"]
        check_sums(frame, edges, graph, origins, destinations)
    arrow = pa.Table.from_pandas(edges[["metres", "toll"]], preserve_index=False)
    assert paths(graph, (origins, destinations), edges=True, along=arrow).equals(frame)
    without = paths(graph, (origins, destinations), along=arrow)
    assert without.equals(frame.drop(columns="edge"))


@given(edge_rows(), st.data())
def test_paths_of_any_graph_are_those_of_single_searches(rows, data):
    graph = build(rows, weights_for(rows, len(rows)))
    ids = np.asarray(graph.ids).tolist()
    asked = data.draw(
        st.lists(st.tuples(st.sampled_from(ids), st.sampled_from(ids)), min_size=1, max_size=8)
    )
    origins, destinations = map(list, zip(*asked, strict=True))
    found = paths(graph, (origins, destinations))
    assert list(found.itertuples(index=False, name=None)) == expected_paths(
        graph, sssp, origins, destinations
    )


@pytest.mark.parametrize("mode", MODES)
@on_a_device
def test_paths_on_a_gpu_are_those_on_a_cpu(mode):
    edges = table_with_columns(lattice(6, 9))
    graph = graph_from_edges(edges, weight="weight", directed=False, edge_ids=True)
    table = pair_table(*(graph.to_numbers(ids) for ids in some_pairs(graph, 30)))

    def routes(graph):
        plan = REGISTRY.plan_multi_source(
            graph, n_sources=table.sources.size, result="paths", strategy="auto"
        )
        (group,) = plan.iter_groups(table.sources, table.lists)
        found = walk_back(group, table.lists, None)
        return (
            found.sizes.tolist(),
            host(found.vertices).tolist(),
            rows_of_edges(graph, found)[0].tolist(),
        )

    expected = routes(graph)
    with running(MODES[mode]):
        assert routes(graph.to("cuda")) == expected


@pytest.mark.gpu
def test_frames_of_paths_on_a_gpu_equal_those_on_a_cpu():
    edges = table_with_columns(rmat(8, 4, seed=3))
    graph = graph_from_edges(edges, weight="weight", edge_ids=True)
    pairs, along = some_pairs(graph, 100), edges[["metres", "toll"]]
    found = paths(graph.to("cuda"), pairs, edges=True, along=along).to_pandas()
    expected = paths(graph, pairs, edges=True, along=along)
    for name in expected:
        assert found[name].fillna(-1).tolist() == expected[name].fillna(-1).tolist()


def test_pairs_are_taken_from_a_table_with_known_names():
    graph = graph_from_edges(pa.table({"src": ["a", "b"], "dst": ["b", "c"], "weight": [1, 2]}))
    expected = ["a", "b", "c", "b"]
    for pairs in (
        {"origin": ["a", "b"], "destination": ["c", "b"], "persons": [1, 2]},
        pd.DataFrame({"source": ["a", "b"], "target": ["c", "b"]}),
        pa.table({"from": ["a", "b"], "to": ["c", "b"]}),
        (["a", "b"], ["c", "b"]),
    ):
        assert paths(graph, pairs)["vertex"].tolist() == expected
    with pytest.raises(InputError, match="not sure which columns"):
        paths(graph, {"x": ["a"], "y": ["c"]})
    with pytest.raises(InputError, match="pairs must be"):
        paths(graph, 3)


def test_a_pair_without_a_path_has_no_row():
    graph = build([(0, 1), (1, 2)], [1, 1])
    frame = paths(graph, ([2, 0, 1], [0, 0, 2]))
    assert frame[["pair", "vertex"]].to_numpy().tolist() == [[1, 0], [2, 1], [2, 2]]
    assert len(paths(graph, ([2], [0]))) == 0
    assert len(paths(graph, ([], []))) == 0


def test_paths_of_pairs_that_cannot_be_given_are_refused():
    rows = [(0, 1), (1, 2)]
    graph = build(rows, [1, 1])
    with pytest.raises(InputError, match="edge_ids=True"):
        paths(graph, ([0], [2]), along={"metres": [1, 2]})
    edges = pd.DataFrame({"src": [0, 1], "dst": [1, 2], "weight": [1, 1]})
    known = graph_from_edges(edges, edge_ids=True)
    with pytest.raises(InputError, match="has 3 values, not 2: give one per row of the edge list"):
        paths(known, ([0], [2]), along={"metres": [1, 2, 3]})
    with pytest.raises(InputError, match="row 1: nan cannot be summed"):
        paths(known, ([0], [2]), along={"metres": [1.0, float("nan")]})
    with pytest.raises(PrecisionError, match="exceeds float64"):
        paths(known, ([0], [2]), along={"metres": [1.5e308, 1.5e308]})
    with pytest.raises(InputError, match="rename it"):
        paths(known, ([0], [2]), along={"vertex": [1, 2]})
    with pytest.raises(InputError, match="along must be a table"):
        paths(known, ([0], [2]), along=["metres"])
    with pytest.raises(PrecisionError, match="may exceed int64"):
        paths(known, ([0], [2]), along={"metres": [2**62, 2**62]})
    with pytest.raises(UnknownVertexError, match="destinations, row 1"):
        paths(known, ([0, 1], [2, 77]))
    with pytest.raises(InputError, match="for pairs"):
        paths(sssp(graph, 0), [2], along={"metres": [1, 2]})
    with pytest.raises(InputError, match="paths\\(graph, pairs\\)"):
        sssp_many(graph, [0], result="paths")
    with pytest.raises(InputError, match="graph= is for"):
        paths(graph, ([0], [2]), graph=graph)
    assert bfs_many(graph, [0], result="summary")["reached"].tolist() == [3]


@pytest.mark.parametrize("kind", [np.int64, np.float64])
@pytest.mark.parametrize("n_long", [0, 1, 3, 40])
def test_sums_along_paths_are_added_in_the_order_of_each_path(n_long, kind):
    """Also along a few paths that are much longer than the others, and along those of one vertex."""
    random = np.random.default_rng(n_long)
    sizes = np.concatenate([random.integers(0, 4, 30), random.integers(150, 200, n_long)])
    random.shuffle(sizes)
    values = (random.random(int(sizes.sum())) * 1000).astype(kind)
    expected = [
        sum
        for path in np.split(values, np.cumsum(sizes)[:-1])
        for sum in itertools.accumulate(path.tolist())
    ]
    assert sums_along(values, sizes).tolist() == expected


def test_a_path_of_many_steps_is_walked_from_pairs_and_from_a_frame():
    n = 30_000
    order = np.random.default_rng(0).permutation(n)
    graph = graph_from_edges(order[:-1], order[1:], np.ones(n - 1, np.int64), edge_ids=True)
    start, end = int(order[0]), int(order[-1])
    found = paths(graph, ([start], [end]), along={"step": np.arange(n - 1)}, edges=True)
    assert found["vertex"].tolist() == order.tolist()
    assert found["step"].tolist() == np.cumsum([0, *range(n - 1)]).tolist()
    for frame in (sssp(graph, start), sssp_many(graph, [start], result="predecessors")):
        walked = paths(frame, [end])
        assert walked["vertex"].tolist() == order.tolist()
        assert walked["position"].tolist() == list(range(n))


TOLLS = {"toll": np.array([1, 1])}
WALKING = {
    "flows": lambda graph: sssp_pairs(graph, ["a"], ["c"], result="flows", volumes=[1.0]),
    "matrix": lambda graph: sssp_many(graph, ["a", "b"], result="matrix", along=TOLLS),
    "pairs": lambda graph: sssp_pairs(graph, ["a"], ["c"], along=TOLLS),
}


@pytest.mark.parametrize("walk", WALKING.values(), ids=WALKING)
def test_a_distance_that_is_the_length_of_no_path_is_refused(monkeypatch, walk):
    """A fault that is planted: each search adds a half to the distance of c."""
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"], "weight": [1.0, 2.0]})
    graph = graph_from_edges(edges, edge_ids=True)
    run = MultiSourcePlan._run

    def search_wrongly(self, *args, **options):
        group = run(self, *args, **options)
        group.distance[..., graph.n_vertices - 1] += 0.5
        return group

    monkeypatch.setattr(MultiSourcePlan, "_run", search_wrongly)
    with pytest.raises(PrecisionError, match="no path explains the distance of vertex 'c'"):
        walk(graph)
