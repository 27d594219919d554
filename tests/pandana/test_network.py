"""``kepler_traverse.pandana.Network`` compared with what follows from all distances, which NetworkX computes.

pandana's own tests run as a suite of docs/conformance.md.
"""

import math
import re
import sys
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import InputError, UnknownVertexError
from kepler_traverse.cpu.nearest_point import nearest_points
from kepler_traverse.errors import PrecisionError
from kepler_traverse.pandana import Network, network

NAMES = np.array([f"n{i}" for i in np.random.default_rng(0).permutation(14)])
UNITS = {
    "whole": (1, 1),
    "thousandths": (1, 1000),
    "floats": (math.pi, 1),
}  # the step of weights, and what they are divided by


def case(seed, unit, twoway):
    """Return a random generator, coordinates by name, edges of which some are parallel, and all distances."""
    random = np.random.default_rng(seed)
    x, y = (pd.Series(random.random(NAMES.size), NAMES) for _ in "xy")
    src, dst = (random.choice(NAMES, 20) for _ in "xy")
    step, divisor = UNITS[unit]
    weight = random.integers(0, 9, 20) * step
    graph = nx.DiGraph()
    graph.add_nodes_from(NAMES)
    for u, v, w in [
        *zip(src, dst, weight, strict=True),
        *(zip(dst, src, weight, strict=True) if twoway else ()),
    ]:
        graph.add_edge(u, v, w=min(w, graph.edges[u, v]["w"]) if graph.has_edge(u, v) else w)
    found = dict(nx.all_pairs_dijkstra_path_length(graph, weight="w"))
    edges = pd.DataFrame(
        {"from": src, "to": dst, "w": weight / divisor if divisor > 1 else weight, "other": 1}
    )
    distances = np.array([[found[u].get(v, np.inf) for v in NAMES] for u in NAMES], float) / divisor
    return random, x, y, edges, distances


def aggregated(values, distances, limit, kind, decay):
    """Aggregate the values at distances as pandana says."""
    values, distances = values[distances <= limit], distances[distances <= limit]
    if kind in network._QUANTILES:
        ascending = np.sort(values)
        return (
            ascending[min(int(values.size * network._QUANTILES[kind]), values.size - 1)]
            if values.size
            else -1
        )
    if kind == "count" or not values.size:
        return values.size
    weight = {"flat": 1.0, "linear": 1 - distances / limit, "exp": np.exp(-distances / limit)}[
        decay
    ]
    return {
        "sum": np.sum(values * weight),
        "mean": np.mean(values * weight),
        "std": np.std(values),
    }[kind]


def test_quantiles_of_many_values_are_those_of_their_ascending_order():
    """More than a thread has memory for at first; the last node has none, and reaches none."""
    nodes = pd.Series(range(5), dtype=float)
    net = Network(
        nodes, nodes, pd.Series([0, 1, 2]), pd.Series([1, 2, 3]), pd.DataFrame({"w": [1.0] * 3})
    )
    values = np.random.default_rng(3).normal(size=3000)
    places = np.arange(values.size) % 4
    net.set(pd.Series(places), pd.Series(values), "v")
    for kind in ("min", "25pct", "median", "75pct", "max"):
        found = net.aggregate(1, kind, name="v")
        near = [values[abs(places - node) <= 1] for node in range(4)]
        expected = [aggregated(each, np.zeros(each.size), 1, kind, "flat") for each in near]
        assert found.tolist() == [*expected, -1]


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 2**32), unit=st.sampled_from(list(UNITS)), twoway=st.booleans())
def test_results_follow_from_all_distances(seed, unit, twoway):
    random, x, y, edges, distances = case(seed, unit, twoway)
    net = Network(x, y, edges["from"], edges["to"], edges[["w", "other"]], twoway=twoway)
    step, divisor = UNITS[unit]
    limit = float(random.integers(1, 20) * step / divisor)
    places, values = random.integers(0, NAMES.size, 12), random.normal(size=12)
    net.set(pd.Series(NAMES[places]), pd.Series(values), "v")
    for kind in (name.decode() for name in net.aggregations):
        for decay in net.decays if kind in ("sum", "mean") else (b"flat",):
            found = net.aggregate(limit, kind.upper(), decay.decode(), "w", "v")
            expected = [
                aggregated(values, row[places], limit, kind, decay.decode()) for row in distances
            ]
            np.testing.assert_allclose(
                found.loc[NAMES], expected, rtol=1e-9, atol=1e-9, err_msg=f"{kind} {decay}"
            )
    net.set_pois(
        "points",
        x_col=pd.Series(x.to_numpy()[places], list("abcdefghijkl")),
        y_col=pd.Series(y.to_numpy()[places], list("abcdefghijkl")),
    )
    found = net.nearest_pois(
        limit, "points", 4, max_distance=-1, imp_name="w", include_poi_ids=True
    )
    for row, of_row in zip(distances, found.to_numpy(), strict=True):
        ranked = sorted(
            (row[node], node, "abcdefghijkl"[i])
            for i, node in enumerate(places)
            if row[node] <= limit
        )[:4]
        fill = 4 - len(ranked)
        np.testing.assert_allclose(
            of_row[:4].astype(float), [each[0] for each in ranked] + [-1] * fill, rtol=1e-12
        )
        assert [None if pd.isna(label) else label for label in of_row[4:]] == [
            each[2] for each in ranked
        ] + [None] * fill
    within = net.nodes_in_range(NAMES[[3, 5, 3]], limit, "w")
    ends = [
        (NAMES[i], NAMES[j], distances[i, j])
        for i in (3, 5)
        for j in np.flatnonzero(distances[i] <= limit)
    ]
    assert sorted(within.itertuples(index=False, name=None)) == sorted(ends)
    assert (
        net.low_connectivity_nodes(limit, 3, "w").tolist()
        == NAMES[(distances <= limit).sum(axis=1) < 3].tolist()
    )


@pytest.mark.parametrize("unit", list(UNITS))
@pytest.mark.filterwarnings("ignore:.* have no path:UserWarning")
def test_lengths_and_paths_of_pairs(unit, monkeypatch):
    # the second call has a hierarchy, if sums of the impedances are exact
    monkeypatch.setattr(network, "_MANY_ORIGINS", 20)
    _, x, y, edges, distances = case(7, unit, True)
    net = Network(x, y, edges["from"], edges["to"], edges[["w"]])
    origins, ends = np.repeat(NAMES, NAMES.size), np.tile(NAMES, NAMES.size)
    expected = np.where(np.isinf(distances), 4294967.295, distances).ravel()
    for _ in range(2):
        np.testing.assert_allclose(net.shortest_path_lengths(origins, ends), expected, rtol=1e-12)
    assert (net._impedances["w"].graph.derived.known_hierarchy("weights") is None) == (
        unit == "floats"
    )
    least = (
        edges["w"]
        .groupby([frozenset(pair) for pair in zip(edges["from"], edges["to"], strict=True)])
        .min()
    )
    for origin, end, length, path in zip(
        origins, ends, expected, net.shortest_paths(origins, ends), strict=True
    ):
        if length == 4294967.295:
            assert path.size == 0
            continue
        assert (path[0], path[-1]) == (origin, end)
        assert math.isclose(
            sum(least[frozenset(step)] for step in pairwise(path)), length, rel_tol=1e-12
        )


def test_the_decimals_of_a_limit_are_those_that_are_written():
    x = pd.Series([0.0, 1.0, 2.0])
    # 1.001 * 1000 is 1000.9999999999999
    for impedance, limit in (1.001, 1.001), (0.289, 0.289), (0.1, 0.1):
        net = Network(
            x, x, pd.Series([0, 1]), pd.Series([1, 2]), pd.DataFrame({"w": [impedance] * 2})
        )
        assert net.nodes_in_range([0], limit)["destination"].tolist() == [0, 1]
        assert net.shortest_path_length(0, 2) == round(2 * impedance, 3)


@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", "Float32", "int8", "uint16", "Int64"]
)
def test_impedances_of_each_type_are_added_up_as_the_numbers_that_they_are(kind):
    n = 400
    weight = (
        pd.Series(np.full(n - 1, 12.3456)).astype(kind if "loat" in kind else "int64").astype(kind)
    )
    nodes = np.arange(n)
    at = pd.Series(nodes / n, nodes)
    net = Network(at, at, pd.Series(nodes[:-1]), pd.Series(nodes[1:]), pd.DataFrame({"w": weight}))
    lengths = np.append(0.0, np.cumsum(weight.to_numpy("float64")))
    end = lengths[-1]
    net.set(pd.Series([0]), pd.Series([1.0]), name="v")
    net.set_pois("p", x_col=at[:1], y_col=at[:1])

    assert net.shortest_path_length(0, n - 1) == end
    assert net.shortest_path_lengths([0] * n, nodes) == lengths.tolist()
    for limit, n_within in ((end, n), (math.nextafter(end, 0), n - 1)):
        assert net.aggregate(limit, "count", "flat", name="v").sum() == n_within
        assert net.aggregate(limit, "max", name="v").tolist() == [1.0] * n_within + [-1.0] * (
            n - n_within
        )
        assert len(net.nodes_in_range([0], limit)) == n_within
        assert net.nearest_pois(limit, "p")[1].tolist() == lengths[:n_within].tolist() + [limit] * (
            n - n_within
        )
        assert net.low_connectivity_nodes(limit, n).size == 2 * (n - n_within)


@settings(max_examples=20, deadline=None)
@given(
    points=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1),
    seed=st.integers(0, 99),
)
def test_the_nearest_point_is_the_first_of_the_nearest(points, seed):
    x, y = np.array(points, float).T
    of_x, of_y = np.random.default_rng(seed).integers(-2, 7, (2, 9)) / 2
    squares = (x - of_x[:, None]) ** 2 + (y - of_y[:, None]) ** 2
    numbers, distances = nearest_points(x, y, of_x, of_y)
    assert numbers.tolist() == squares.argmin(axis=1).tolist()
    np.testing.assert_allclose(distances, np.sqrt(squares.min(axis=1)))


def net_of(**changes):
    at = pd.Series([0.0, 1.0, 2.0], index=["a", "b", "c"])
    given = {
        **{
            "node_x": at,
            "node_y": at,
            "edge_from": pd.Series(["a", "b"]),
            "edge_to": pd.Series(["b", "c"]),
        },
        "edge_weights": pd.DataFrame({"time": [1, 2], "metres": [0.5, 2.5]}),
    }
    return Network(**given | changes)


def drawn(**options):
    return net_of().plot(pd.Series([1.0, 2.0, 3.0], list("abc")), **options)


def numbered(index=(7, 8, 9)):
    at = pd.Series([0.0, 1.0, 2.0], index=index)
    return Network(at, at, pd.Series([7, 8]), pd.Series([8, 9]), pd.DataFrame({"w": [1, 2]}))


def of_jobs(value):
    """A network with a variable that is nowhere near as large at other nodes."""
    net = numbered()
    net.set(pd.Series([8, 9]), pd.Series([value, 1.0]), name="jobs")
    return net


WRONG = [
    (
        lambda: net_of(edge_to=pd.Series(["b", "z"])),
        UnknownVertexError,
        "edge_to, row 1: 'z' is no node",
    ),
    (
        lambda: net_of(node_x=pd.Series(0.0, list("aab")), node_y=pd.Series(0.0, list("aab"))),
        InputError,
        "node 'a' occurs twice",
    ),
    (lambda: net_of(edge_from=pd.Series(["a"])), InputError, "have 1, 2 and 2 rows"),
    (
        lambda: net_of(edge_weights=pd.DataFrame({"w": [1, 2]}, index=[0, 0])),
        InputError,
        "indexes gives 3",
    ),
    (lambda: net_of(edge_weights=pd.DataFrame({"w": [1, -2]})), InputError, "['w'], row 1 is -2"),
    (
        lambda: net_of(edge_weights=pd.DataFrame({"w": [1, np.nan]})),
        InputError,
        "['w'], row 1 is nan",
    ),
    (
        lambda: net_of(edge_weights=pd.DataFrame({"w": ["1", "2"]})),
        InputError,
        "['w'] must be numbers",
    ),
    (
        lambda: net_of().shortest_path("a", "c"),
        InputError,
        "imp_name must be one of ['time', 'metres'], not None",
    ),
    (
        lambda: net_of().shortest_path("a", "z", "time"),
        UnknownVertexError,
        "node_b: 'z' is no node",
    ),
    (
        lambda: net_of().shortest_path_length("z", "a", "time"),
        UnknownVertexError,
        "node_a: 'z' is no node",
    ),
    (
        lambda: net_of().shortest_paths(["a", "b"], ["c", "z"], "time"),
        UnknownVertexError,
        "nodes_b, row 1: 'z' is no",
    ),
    (
        lambda: numbered().nodes_in_range([8, 99], 1),
        UnknownVertexError,
        "nodes, row 1: 99 is no node",
    ),
    (lambda: numbered(index=[7, 7, 9]), InputError, "node 7 occurs twice"),
    (
        lambda: of_jobs(math.inf).aggregate(1, name="jobs"),
        InputError,
        "variable 'jobs', node 8: inf cannot be added up",
    ),
    (
        lambda: of_jobs(1e200).aggregate(1, "std", name="jobs"),
        InputError,
        "variable 'jobs', node 8: inf cannot be",
    ),
    (
        lambda: of_jobs(1e308).aggregate(1, name="jobs"),
        PrecisionError,
        "variable 'jobs': sums of its values exceed",
    ),
    (
        lambda: net_of().shortest_path_lengths(["a"], ["b", "c"], "time"),
        InputError,
        "1 origins and 2 destinations",
    ),
    (lambda: net_of().nodes_in_range(["z"], 1, "time"), UnknownVertexError, "nodes, row 0: 'z'"),
    (lambda: net_of().aggregate(1, imp_name="time"), InputError, "variable 'tmp' is not known"),
    (lambda: net_of().aggregate(1, "mode", imp_name="time"), InputError, "type='mode' is none of"),
    (
        lambda: net_of().aggregate(1, decay="square", imp_name="time"),
        InputError,
        "decay='square' is none of",
    ),
    (
        lambda: net_of().nearest_pois(1, "schools", imp_name="time"),
        InputError,
        "category 'schools' is not known",
    ),
    (lambda: net_of().get_node_ids([np.nan], [0.0]), InputError, "x_col holds nan"),
    (lambda: net_of().precompute(-1), InputError, "distance must be 0 or more"),
    (lambda: net_of().init_pois(1, 2000, 10), InputError, "init_pois() is deprecated"),
    (
        lambda: net_of().set_pois("schools", pd.Series([0.0]), pd.Series([0.0])),
        InputError,
        "x_col and y_col must be given by name",
    ),
    (
        lambda: Network.from_hdf5("net.h5", migrate_legacy=True),
        InputError,
        "migrate_legacy is not here",
    ),
    (lambda: drawn(plot_type="hexbin"), InputError, "plot() draws streets"),
]


@pytest.mark.parametrize(("call", "kind", "says"), WRONG, ids=[says for *_, says in WRONG])
def test_wrong_calls_say_what_is_wrong(call, kind, says):
    with pytest.raises(kind, match=re.escape(says)):
        call()


def test_a_variable_is_set_without_the_rows_that_are_nowhere():
    net = net_of()
    with pytest.warns(UserWarning, match="2 rows of 'tmp' have no value or no node"):
        net.set(pd.Series(["a", "z", "b"]), pd.Series([1, 2, None]))
    assert net.aggregate(1, "count", imp_name="time").tolist() == [1, 1, 0]
    with pytest.raises(InputError, match="decay='linear' needs a finite distance above 0"):
        net.aggregate(0, imp_name="time")
    net.set(pd.Series(["z"])[:0])
    assert net.aggregate(1, "max", imp_name="time").tolist() == [-1, -1, -1]


def test_without_pytables_hdf5_files_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tables", None)
    for call in (net_of().save_hdf5, Network.from_hdf5):
        with pytest.raises(InputError, match="pip install tables"):
            call(tmp_path / "net.h5")


def test_a_picture_shows_the_part_that_is_asked_for():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    figure, axes = drawn(bbox=(0.0, 0.5, 1.0, 1.5))
    assert (axes.get_xlim(), axes.get_ylim()) == ((0.5, 1.5), (0.0, 1.0))
    pyplot.close(figure)
