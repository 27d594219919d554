"""Flows are those of a loop over the paths in Python integers, whatever searches, groups and threads they come from."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import get_num_threads, set_num_threads

from kepler_traverse import bfs_many, bfs_pairs, graph_from_edges, paths, sssp_many, sssp_pairs
from kepler_traverse.cpu.exact_sums import ExactSums, find_exponent, split
from kepler_traverse.errors import CertificateError, InputError, PrecisionError, UnknownVertexError
from kepler_traverse.kinds import flows as flows_module
from kepler_traverse.kinds.conservation import require_listed
from kepler_traverse.kinds.loads import CELLS
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from kepler_traverse.sssp.registry import MULTI_SOURCE
from tests.support import tiers

LOST = "kepler_traverse.lost"


@st.composite
def networks(draw):
    """A graph with ties, zero weights, parallel edges, loops and several components, and pairs with volumes."""
    n, m = draw(st.integers(2, 12)), draw(st.integers(1, 40))
    vertex = st.integers(0, n - 1)
    src, dst = (draw(st.lists(vertex, min_size=m, max_size=m)) for _ in range(2))
    weight = draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))
    edges = pd.DataFrame(
        {"src": np.array(src) * 3 - 5, "dst": np.array(dst) * 3 - 5, "weight": weight}
    )
    edges["weight"] = edges["weight"] / draw(st.sampled_from([1, 4]))
    graph = graph_from_edges(edges, directed=draw(st.booleans()), edge_ids=True)
    ids, k = np.asarray(graph.ids), draw(st.integers(1, 15))
    place = st.integers(0, ids.size - 1)
    origins, destinations = (ids[draw(st.lists(place, min_size=k, max_size=k))] for _ in range(2))
    return (
        edges,
        graph,
        origins,
        destinations,
        draw(st.lists(st.integers(0, 9), min_size=k, max_size=k)),
    )


def expected(graph, origins, destinations, volumes, algorithm, counts):
    """Loads of edges, of vertices and of pairs, and the pairs without a path, by a loop over the ``paths`` that count."""
    loads = {"edges": Counter(), "vertices": Counter(), "pairs": Counter()}
    found = paths(graph, (origins, destinations), edges=True, algorithm=algorithm)
    for pair, rows in found.groupby("pair"):
        way = rows["vertex"].tolist()
        steps = list(zip(way, way[1:], rows["edge"].tolist()[1:], strict=False))
        if not counts(steps):
            continue
        loads["vertices"].update(dict.fromkeys(way, volumes[pair]))
        loads["pairs"][pair, way[0], way[-1]] += volumes[pair]
        for u, v, row in steps:
            loads["edges"][(u, v, row) if graph.directed else (min(u, v), max(u, v), row)] += (
                volumes[pair]
            )
    lost = sorted(set(range(len(volumes))) - set(found["pair"]))
    lost = {"pairs": len(lost), "volume": sum(volumes[pair] for pair in lost)}
    return {
        of: {key: value for key, value in each.items() if value} for of, each in loads.items()
    }, lost


def as_loads(frame):
    *keys, volume = (frame[name].tolist() for name in frame)
    return dict(zip(keys[0] if len(keys) == 1 else zip(*keys, strict=True), volume, strict=True))


@pytest.mark.parametrize("chosen", ["all", "rows", "ends"])
@given(networks(), st.sampled_from(["bfs", "sssp"]), st.sampled_from(CELLS), st.data())
@settings(max_examples=tiers.examples(200), deadline=None)
def test_flows_of_pairs_are_those_of_a_loop_over_paths(chosen, network, algorithm, of, data):
    """Of all pairs, and of those whose paths use one of some edges, which are named by their rows or by their ends."""
    search = bfs_pairs if algorithm == "bfs" else sssp_pairs
    edges, graph, origins, destinations, volumes = network
    rows = data.draw(st.lists(st.integers(0, len(edges) - 1), min_size=1, max_size=4))
    ends = edges.loc[rows, ["src", "dst"]]
    named = {*ends.itertuples(index=False, name=None)}
    named |= set() if graph.directed else {(v, u) for u, v in named}
    choices = {
        "all": (None, lambda _: True),
        "rows": (rows, lambda steps: any(row in rows for _, _, row in steps)),
        "ends": (ends, lambda steps: any((u, v) in named for u, v, _ in steps)),
    }
    through, counts = choices[chosen]
    loads, lost = expected(*network[1:], algorithm, counts)
    found = search(
        graph, origins, destinations, result="flows", volumes=volumes, of=of, through=through
    )
    assert as_loads(found) == loads[of]
    assert found.attrs[LOST] == lost
    assert found["volume"].dtype == np.int64


@given(networks(), st.integers(0, 6), st.booleans())
@settings(max_examples=tiers.examples(80), deadline=None)
def test_flows_of_sources_and_targets_are_those_of_their_pairs(network, limit, goes_through):
    _, graph, origins, destinations, volumes = network
    sources, targets = np.unique(origins), np.unique(destinations)
    people, jobs = np.arange(sources.size) + 1, np.array(volumes[: targets.size])
    pairs = (
        np.repeat(sources, targets.size),
        np.tile(targets, sources.size),
        np.outer(people, jobs).ravel(),
    )
    options = {
        "result": "flows",
        "source_weights": people,
        "target_weights": jobs,
        "targets": targets,
        "cutoff": limit,
    }
    through = {"through": [0]} if goes_through else {}
    found = sssp_many(graph, sources, **options, **through)
    same = sssp_pairs(graph, *pairs[:2], volumes=pairs[2], result="flows", cutoff=limit, **through)
    pd.testing.assert_frame_equal(found, same)
    assert found.attrs[LOST] == same.attrs[LOST]
    every = np.unique(np.asarray(graph.ids))
    pd.testing.assert_frame_equal(
        bfs_many(graph, sources, result="flows"),
        bfs_many(graph, sources, targets=every, result="flows"),
    )


def grid(side, weight):
    row, column = np.divmod(np.arange(side * side), side)
    src = np.concatenate([np.flatnonzero(column < side - 1), np.flatnonzero(row < side - 1)])
    dst = src + np.repeat([1, side], src.size // 2)
    return graph_from_edges(src, dst, weight(src.size), directed=False, edge_ids=True)


@pytest.mark.parametrize("goes_through", [False, True])
def test_flows_have_equal_bits_for_any_strategy_group_order_and_number_of_threads(goes_through):
    rng = np.random.default_rng(5)
    graph = grid(15, lambda m: rng.integers(0, 4, m))
    origins, destinations = rng.integers(0, 225, (2, 400))
    volumes = rng.random(400) * 10.0 ** rng.integers(-8, 8, 400)

    def flows(order, **options):
        given = origins[order], destinations[order]
        options |= {"through": rng.permutation(100)} if goes_through else {}
        return sssp_pairs(
            graph,
            *given,
            volumes=volumes[order],
            result="flows",
            decay="exponential:0.1",
            **options,
        )

    first = flows(np.arange(400))
    names = [
        each.name
        for each in MULTI_SOURCE
        if each.device == "cpu" and each.unsupported_reason(graph) is None
    ]
    for name in [*names, "near_far"]:
        pd.testing.assert_frame_equal(
            flows(rng.permutation(400), strategy=name), first, check_exact=True
        )
    threads = get_num_threads()
    try:
        set_num_threads(1)
        pd.testing.assert_frame_equal(flows(rng.permutation(400)), first, check_exact=True)
    finally:
        set_num_threads(threads)
    graph.hierarchy()
    for options in ({}, {"strategy": "hierarchy_sweep"}, {"memory": 2**20}):
        pd.testing.assert_frame_equal(
            flows(rng.permutation(400), **options), first, check_exact=True
        )


def test_volumes_are_rounded_to_a_multiple_of_a_tiny_part_of_their_sum():
    graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]))
    found = bfs_pairs(graph, [0, 0, 1], [2, 1, 2], result="flows", volumes=[0.1, 1e-9, 1e18])
    assert found["volume"].tolist() == [
        float(Fraction(0.1) + Fraction(1e-9)),
        float(Fraction(0.1) + 10**18),
    ]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"volumes": [1, -1]}, InputError, "volumes, row 1: -1 cannot be a volume"),
        ({"volumes": [1, np.nan]}, InputError, "row 1: nan"),
        ({"volumes": [1]}, InputError, "volumes has 1 value, not 2: give one per pair"),
        ({"volumes": [2**62, 2**62]}, PrecisionError, "the sum of all volumes exceeds int64"),
        ({"volumes": [1e308, 1e308]}, PrecisionError, "the sum of all volumes exceeds float64"),
        (
            {"volumes": np.array([0, 1], "M8[s]")},
            InputError,
            r"volumes: its values must be numbers, not datetime64\[s\]",
        ),
        ({"source_weights": [1, 2]}, InputError, "source_weights is for sources and targets"),
        ({"target_weights": [1, 2]}, InputError, "target_weights is for sources and targets"),
        ({"of": "arcs"}, InputError, "of='arcs' is none of"),
        ({"k": 3}, InputError, "k is for result"),
        ({"through": []}, InputError, "through names no edge"),
        (
            {"through": [0, 2]},
            InputError,
            "through, row 1: the edge list has no row 2; its rows are 0 to 1",
        ),
        ({"through": [-1]}, InputError, "no row -1"),
        ({"through": [0.0]}, InputError, "through holds float64"),
        ({"through": ([1, 1], [2, 0])}, InputError, "through, row 1: there is no edge from 1 to 0"),
        (
            {"through": ([1], [7])},
            UnknownVertexError,
            "dst of through, row 0: .* not in the graph: 7",
        ),
        (
            {"through": {"begin": [1]}},
            InputError,
            "not sure which columns hold the edges of through",
        ),
        ({"through": 1}, InputError, "through must be an array"),
        (
            {"through": (1, 2)},
            InputError,
            r"through is \[1, 2\]; give a list of rows of the edge list, or the ends",
        ),
        ({"through": [[1, 2], [0, 1]]}, InputError, "2 lists could be pairs or columns"),
        ({"through": [(1, 2, 3)]}, InputError, r"row 0 is \[1, 2, 3\]; each must be \(src, dst\)"),
        ({"paths": 3}, TypeError, "unexpected keyword argument 'paths'"),
    ],
)
def test_wrong_options_are_refused(options, error, message):
    graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]), edge_ids=True)
    with pytest.raises(error, match=message):
        bfs_pairs(graph, [0, 0], [2, 2], result="flows", **options)


def test_sources_and_targets_that_are_given_twice_and_negative_weights_are_refused():
    graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]), np.array([1, -1]))
    with pytest.raises(InputError, match="source 1 is given twice"):
        bfs_many(graph, [0, 1, 1], result="flows")
    with pytest.raises(InputError, match="volumes are those of pairs"):
        bfs_many(graph, [0], targets=[2], result="flows", volumes=[5])
    with pytest.raises(
        InputError, match="through: the graph does not know its rows; build it with edge_ids=True"
    ):
        bfs_many(graph, [0], result="flows", through=[0])
    with pytest.raises(InputError, match="of='pairs' lists the rows of a table of pairs"):
        bfs_many(graph, [0], result="flows", of="pairs")
    roads = pd.DataFrame({"src": [0, 1], "dst": [1, 2], "kind": ["a", "b"]})
    some = graph_from_edges(roads, where="kind == 'a'", edge_ids=True)
    with pytest.raises(
        InputError, match="through, row 1: row 1 of the edge list is left out by a filter"
    ):
        bfs_many(some, [0], result="flows", through=[0, 1])
    with pytest.raises(InputError, match="target_weights has 2 values, not 3: give one per vertex"):
        bfs_many(graph, [0], result="flows", target_weights=[1, 2])
    with pytest.raises(InputError, match="a target is given twice"):
        bfs_many(graph, [0], targets=[2, 2], result="flows")
    with pytest.raises(InputError, match="the graph has negative ones"):
        sssp_many(graph, [0], result="flows")
    with pytest.raises(InputError, match="is added up over all sources; leave stream out"):
        bfs_many(graph, [0], result="flows", stream=True)


@given(st.lists(st.integers(-(2**120), 2**120), max_size=20), st.integers(-90, 60))
def test_exact_sums_are_those_of_python_integers(terms, exponent):
    sums, more = ExactSums(2, exponent), ExactSums(2, exponent)
    for i, term in enumerate(terms):
        low = np.uint64(term & (2**64 - 1))
        high = np.int64(term >> 64)
        (sums, more)[i % 2].add_at(np.array([1]), np.array([low]), np.array([high]))
    sums.merge(more)
    assert sums.total() == sum(terms)
    assert sums.floats(np.arange(2)).tolist() == [0.0, float(sum(terms) * Fraction(2) ** exponent)]


@given(st.floats(-1e30, 1e30), st.integers(-20, 60))
def test_a_float_is_split_into_the_nearest_integer_of_its_unit(value, exponent):
    exponent = max(exponent, find_exponent(1e30))
    low, high = split(value, exponent)
    assert (int(high) << 64) + int(low) == round(Fraction(value) / Fraction(2) ** exponent)


@pytest.mark.parametrize(
    ("of", "through"), [("edges", None), ("vertices", None), ("vertices", [0])]
)
def test_the_plan_of_memory_covers_what_flows_and_their_certificate_hold(of, through, monkeypatch):
    graph, made = grid(60, lambda m: np.arange(m) % 3 + 1), []
    monkeypatch.setattr(flows_module.threads, "count", lambda: 1)
    begin = flows_module.Flows.__init__

    def noted(self, *args, **options):
        made.append(self)
        begin(self, *args, **options)

    monkeypatch.setattr(flows_module.Flows, "__init__", noted)
    sssp_many(graph, "all", result="flows", of=of, targets=[0, 7], through=through)
    each = [
        one
        for flows in made
        for one in (*flows._sums, *(scratch for _, scratch in flows._scratch))
        if one is not None
    ]
    held = sum(
        array.nbytes
        for one in each
        for array in ((one.low, one.high) if isinstance(one, ExactSums) else sum(one, ()))
    )
    planned = RESULT_KINDS["flows"].bytes_of_loads(graph, 1, made[0].asked)
    assert planned / 2 < held <= planned


@pytest.mark.parametrize("of", ["edges", "vertices"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_the_certificate_finds_each_load_that_is_off_or_missing_or_on_a_wrong_edge(
    of, dtype, monkeypatch
):
    graph = grid(5, lambda m: np.arange(m) % 3 + 1)
    add_up, faults = flows_module.carry, []

    def wrong(*args):
        found, (cells_are, (low, high)) = add_up(*args), args[5:7]
        if cells_are == CELLS.index(of) and fault is not None:
            cells = np.flatnonzero(low | high.view(np.uint64))
            cell, amount = cells[fault[0] % cells.size], fault[1]
            faults.append(cells.size)
            if amount == "moved":
                other = np.setdiff1d(np.arange(low.size - 2), cells)[0]
                low[other], high[other], low[cell], high[cell] = low[cell], high[cell], 0, 0
            else:
                low[cell] += np.uint64(amount)
        return found

    monkeypatch.setattr(flows_module, "carry", wrong)
    search = {"result": "flows", "of": of, "volumes": np.array([3, 4, 5], dtype)}
    fault = None
    sssp_pairs(graph, [0, 0, 0], [24, 12, 20], **search)
    for cell in range(12):
        for amount in (1, 2**63, "moved"):
            fault = cell, amount
            with pytest.raises(CertificateError, match="flows from source 0 are wrong"):
                sssp_pairs(graph, [0, 0, 0], [24, 12, 20], **search)
    assert min(faults) > 8


@pytest.mark.parametrize("of", CELLS)
def test_the_certificate_finds_each_pair_that_is_selected_wrongly_or_missed(of, monkeypatch):
    """The walks are given other edges than those that are named, so that each flow that they add is conserved."""
    graph = grid(5, lambda m: np.arange(m) % 3 + 1)
    add_up, n_faults = flows_module.carry, 0
    origins, destinations = [0, 0, 0, 0], [24, 12, 20, 0]
    search = {"result": "flows", "of": of, "volumes": [3, 4, 5, 6]}
    steps = paths(graph, (origins, destinations), edges=True).dropna()
    uses = {row: {*steps["pair"][steps["edge"] == row]} for row in range(graph.report.rows)}

    def with_others(*args):
        if not args[4].size:
            return add_up(*args)
        named = np.zeros_like(args[4])
        named[flows_module.through_rows(graph, np.array([other]), "").cells] = 1
        return add_up(*args[:4], named, *args[5:])

    monkeypatch.setattr(flows_module, "carry", with_others)
    for row in tiers.few(list(uses)[::13], 2):
        for other in uses:
            if uses[other] == uses[row]:
                sssp_pairs(graph, origins, destinations, through=[row], **search)
                continue
            n_faults += 1
            with pytest.raises(CertificateError, match="flows from source 0 are wrong"):
                sssp_pairs(graph, origins, destinations, through=[row], **search)
    assert n_faults > 20


@pytest.mark.parametrize(
    ("listed", "carried"),
    [
        ([0, 1], [3, 4]),
        ([0, 1, 2, 3], [3, 4, 5, 6]),
        ([0, 1, 2], [3, 4, 6]),
        ([0, 1, 3], [3, 4, 5]),
    ],
)
def test_the_certificate_finds_a_list_of_pairs_that_is_not_that_of_the_flows(listed, carried):
    graph, taken = grid(2, np.ones), (np.array([5, 3, 4, 0], np.uint64), np.zeros(4, np.int64))
    rows = np.array([2, 0, 1, 3])
    found = np.array([0, 1, 2]), (np.array([3, 4, 5], np.uint64), np.zeros(3, np.int64))
    require_listed(graph, 0, rows, taken, *found)
    wrong = np.array(listed), (np.array(carried, np.uint64), np.zeros(len(listed), np.int64))
    with pytest.raises(CertificateError, match="is missing, or is listed wrongly"):
        require_listed(graph, 0, rows, taken, *wrong)
