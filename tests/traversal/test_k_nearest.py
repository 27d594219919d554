"""The k nearest sources of each vertex: equal to sorting the distances from all sources, on either device."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from kepler_traverse import bfs_many, graph_from_edges, plan_bfs_many, plan_sssp_many, sssp_many
from kepler_traverse._arrays import MAX_INTEGER
from kepler_traverse.auto.survey import outline
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.certificate import certify_group
from kepler_traverse.cpu.edges import Edges
from kepler_traverse.errors import (
    CertificateError,
    InputError,
    NegativeCycleError,
    StrategyError,
    UnknownVertexError,
)
from kepler_traverse.kinds import k_nearest
from kepler_traverse.kinds import k_nearest_cpu as on_cpu
from kepler_traverse.kinds import k_nearest_gpu as on_gpu
from kepler_traverse.multi_source import entry_points, together
from kepler_traverse.multi_source.workload import Workload
from kepler_traverse.search.frames import arrow_table
from kepler_traverse.search.plan import make_query
from kepler_traverse.search.query import Nearest
from kepler_traverse.sssp import REGISTRY as SSSP
from tests.support import tiers
from tests.support.devices import host, on_a_device, orders, running
from tests.support.graphs import NAMED, build, path, weights_for

MODES = orders(in_turn={"block": 64})
STRESS = orders(in_turn={"block": 32}, stress={"stress": True, "seed": 5, "block": 64})


SPARSE = {"result": "nearest_targets", "forms": ("sparse",), "output": "all"}


def expected(many, graph, sources, k, **limit):
    """By a sort of all distances."""
    rows = many(graph, sorted(set(sources)), result="distances", **limit)
    rows = (
        rows.sort_values(["vertex", "distance", "source"])
        .groupby("vertex")
        .head(k)
        .reset_index(drop=True)
    )
    rows.insert(1, "rank", rows.groupby("vertex").cumcount() + 1)
    return rows[["vertex", "rank", "source", "distance"]]


@st.composite
def networks(draw):
    n = draw(st.integers(1, 12))
    ends = st.integers(0, n - 1)
    kinds = [
        st.integers(0, 3),
        st.sampled_from([0.0, 0.1, 0.2, 1e-45, 1e30]),
        st.integers(2**53, 2**54),
    ]
    kinds += [st.sampled_from([0.0, 0.25, 0.75, 2.0**48])]
    elements = draw(st.sampled_from(kinds))
    edges = draw(st.lists(st.tuples(ends, ends, elements), min_size=1, max_size=40))
    src, dst, weight = map(np.array, zip(*edges, strict=True))
    graph = graph_from_edges(src, dst, weight, vertices=np.arange(n), directed=draw(st.booleans()))
    return graph, draw(st.lists(ends, min_size=1, max_size=8)), draw(st.integers(1, 5))


@example((build(path(3), [0.1, 0.2, 0.3]), [3], 1), None, [0])
@example((build(path(3), [0.5, 0.5, 2.0**52]), [3], 1), None, [0])
@given(
    networks(), st.sampled_from([None, 0, 2]), st.lists(st.integers(0, 1), min_size=8, max_size=8)
)
def test_the_nearest_targets_are_those_of_whole_searches_from_either_side(network, limit, groups):
    """Also where targets are as far as the last one, in two groups, and where sums of floats are exact or rounded."""
    graph, targets, k = network
    for many, name in ((bfs_many, "max_depth"), (sssp_many, "cutoff")):
        options = {"k": k, "targets": targets, "groups": groups[: len(targets)], name: limit}
        found = {
            strategy: many(graph, "all", result="nearest", strategy=strategy, **options)
            for strategy in ("one_at_a_time", "short_search", "from_targets", "auto")
            if strategy != "short_search" or graph.weights.dtype.kind == "f"
        }
        for frame in found.values():
            pd.testing.assert_frame_equal(frame, found["one_at_a_time"], check_exact=True)


@st.composite
def networks_with_negative_weights(draw):
    n = draw(st.integers(2, 8))
    ends = st.integers(0, n - 1)
    weight = draw(
        st.sampled_from(
            [st.integers(-2, 8), st.sampled_from([-0.2, 0.1, 0.3, 0.7]), st.integers(-1, 2**53)]
        )
    )
    src, dst, weights = zip(
        *draw(st.lists(st.tuples(ends, ends, weight), min_size=1, max_size=16)), strict=True
    )
    graph = graph_from_edges(src, dst, weights, vertices=range(n))
    some = st.lists(ends, min_size=1, max_size=4, unique=True)
    return graph, draw(some), draw(some)


def searched(*arguments, **options):
    try:
        return sssp_many(*arguments, **options)
    except NegativeCycleError:
        return NegativeCycleError


# A cycle that no source reaches, and one that reaches no target.
@example((graph_from_edges([0, 2, 3, 2], [1, 3, 2, 1], [5, -2, 1, 1]), [0], [1]), None)
@example((graph_from_edges([0, 2, 3, 0], [1, 3, 2, 2], [5, -2, 1, 1]), [0], [1]), None)
@given(networks_with_negative_weights(), st.sampled_from([None, 0, 2.5]))
def test_with_negative_weights_the_nearest_targets_are_those_of_searches_from_the_sources(
    network, limit
):
    graph, sources, targets = network
    rows = searched(graph, sources, result="targets", targets=targets, cutoff=limit)
    for strategy in ("auto", "one_at_a_time"):
        found = searched(
            graph, sources, result="nearest", k=9, targets=targets, cutoff=limit, strategy=strategy
        )
        if rows is NegativeCycleError or found is NegativeCycleError:
            assert rows is found
            continue
        near = rows[rows["distance"].notna()].sort_values(["distance", "target"])
        expected = [near[near["source"] == source] for source in sources]
        assert found["target"].tolist() == [target for own in expected for target in own["target"]]
        assert found["distance"].tolist() == [
            distance for own in expected for distance in own["distance"]
        ]
    if graph.has_negative_weights:
        with pytest.raises(StrategyError, match="negative weights"):
            sssp_many(graph, sources, result="nearest", targets=targets, strategy="from_targets")


@pytest.mark.parametrize("registry", [BFS, SSSP])
def test_a_search_for_the_nearest_targets_ends_at_them_and_is_certified(registry):
    n = 3000
    graph = graph_from_edges(np.arange(n - 1), np.arange(1, n), np.full(n - 1, 0.5), directed=False)
    ends = np.arange(0, n, 5)

    plan = registry.plan_multi_source(
        graph, n_sources=50, targets=ends, nearest=Nearest(2, [ends]), **SPARSE
    )
    sources = np.array([102, 103, 2000])
    assert {"from_targets", "short_search"} <= set(
        plan.why.partition("estimated for 50 sources: ")[2].replace(",", "").split()
    )
    assert plan.strategy.name == "short_search"
    found = plan.run(sources)
    assert found.distance.sizes.max() < 20
    certify_group(graph, found)
    found.distance.distance[1] += 1
    with pytest.raises(CertificateError):
        certify_group(graph, found)


@pytest.mark.parametrize("limit", [None, 40])
@pytest.mark.parametrize("registry", [BFS, SSSP])
def test_searches_that_do_not_end_at_the_nearest_targets_are_estimated_with_all_that_they_reach(
    registry, limit
):
    n = 30_000
    graph = graph_from_edges(np.arange(n - 1), np.arange(1, n), np.full(n - 1, 1.0), directed=False)
    ends = np.arange(0, n, 5)

    def estimates(targets, nearest, shape):
        options = {"limit": limit, "targets": targets, "nearest": nearest, "shape": shape, **SPARSE}
        plan = registry.plan_multi_source(graph, n_sources=100, **options)
        return plan.shape, {each.name: each.seconds for each in plan.ranked(100)}

    whole, far = estimates(None, None, outline(graph))
    short, near = estimates(ends, Nearest(1, [ends]), None)
    assert 1 < short.reach * n < 10 < 60 < whole.reach * n
    assert near["short_search"] < 0.5 * far["short_search"]
    assert near["from_targets"] > 0
    others = set(far) - {"short_search"}
    assert {name: near[name] for name in others} == {name: far[name] for name in others}
    assert estimates(ends, Nearest(1, [ends]), short) == (short, near)


@given(networks(), st.sampled_from([None, 0, 2]))
def test_k_nearest_equals_a_sort_of_all_distances(network, limit):
    graph, sources, k = network
    for many, name in ((bfs_many, "max_depth"), (sssp_many, "cutoff")):
        limits = {} if limit is None else {name: limit}
        for strategy in ("auto", "short_search") if graph.weights.dtype.kind == "f" else ("auto",):
            found = many(graph, sources, result="nearest", k=k, strategy=strategy, **limits)
            pd.testing.assert_frame_equal(
                found, expected(many, graph, sources, k, **limits), check_exact=True
            )


@on_a_device
@pytest.mark.parametrize(
    ("name", "kind"),
    tiers.by_turns(["two components", "lattice", "in-star"], ["integers", "floats"]),
)
def test_a_gpu_returns_the_same(name, kind):
    edges = [row[:2] for row in NAMED[name]]
    graph = build(edges, weights_for(edges, 4, kind), directed=False)
    sources = graph.ids[:: max(1, graph.n_vertices // 6)].tolist()
    numbers = graph.to_numbers(sources)

    def found(graph, algorithm, planned):
        def plan_for(n_sources, forms):  # noqa: ARG001
            return planned(graph, n_sources=n_sources, strategy="one_at_a_time")

        query = make_query(graph, algorithm, predecessors=False, limit=None)
        work = Workload(graph, algorithm, query, numbers.size)
        search = together.KNearestSearch(work, 3, plan_for)
        return arrow_table(search.find(numbers)[0])

    for many, algorithm, planned in (
        (bfs_many, "bfs", plan_bfs_many),
        (sssp_many, "sssp", plan_sssp_many),
    ):
        on_host = many(graph, sources, result="nearest", k=3)
        with running(next(iter(MODES.values()))):
            there = found(graph.to("cuda"), algorithm, planned).to_pandas()
            pd.testing.assert_frame_equal(there, on_host, check_exact=True)


@on_a_device
@pytest.mark.parametrize("mode", STRESS)
@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize(("directed", "limit"), [(True, None), (False, None), (False, 6)])
def test_k_nearest_by_one_search_is_alike_on_gpu_and_cpu(directed, limit, k, mode):
    edges = [row[:2] for row in NAMED["power law"]][:500]
    # many ties, and edges of length 0
    weights = np.random.default_rng(k).integers(0, 4, len(edges))
    graph = build(edges, weights, directed=directed)
    sources = np.arange(0, graph.n_vertices, max(1, graph.n_vertices // 9))
    most = MAX_INTEGER if limit is None else limit
    with running(STRESS[mode]):
        there = graph.to("cuda")
        for hops in (True, False):
            on_host = np.zeros(0, np.int64) if hops else graph.weights.astype(np.int64)
            on_gpu_weights = None if hops else there.reverse.weights.astype(np.int64)
            expected = on_cpu.k_nearest(
                Edges(graph.offsets, graph.targets, on_host), sources, k, most
            )
            distance, owner = map(host, on_gpu.k_nearest(there, on_gpu_weights, sources, k, most))
            np.testing.assert_array_equal(owner, expected[1])
            np.testing.assert_array_equal(np.where(owner < 0, -1, distance), expected[0])


@on_a_device
def test_a_gpu_without_memory_for_labels_searches_from_each_source(monkeypatch):
    graph = build([(0, 1), (1, 2)], [1, 1])
    with running(next(iter(MODES.values()))):
        there = graph.to("cuda")
        assert k_nearest.takes_one_search(there, False, 2)
        monkeypatch.setattr(k_nearest, "available_memory", lambda _: 100)
        assert not k_nearest.takes_one_search(there, False, 2)


def test_k_nearest_by_one_search_is_that_by_one_per_source(monkeypatch):
    edges = NAMED["power law"]
    graph = build(edges, weights_for(edges, 4), directed=False)
    sources = graph.ids[::20].tolist()
    one = sssp_many(graph, sources, result="nearest", k=4)
    monkeypatch.setattr(together, "takes_one_search", lambda *_: False)
    pd.testing.assert_frame_equal(
        sssp_many(graph, sources, result="nearest", k=4), one, check_exact=True
    )


def test_k_nearest_by_one_search_makes_no_plan_and_checks_the_strategy(monkeypatch):
    graph = build([(0, 1)], [1])
    with pytest.raises(StrategyError, match="'fast'"):
        bfs_many(graph, [0], result="nearest", k=1, strategy="fast")
    with pytest.raises(InputError, match="no knobs"):
        bfs_many(graph, [0], result="nearest", k=1, strategy="switch", knobs={"alpha": "much"})
    monkeypatch.setattr(entry_points, "MultiSourcePlan", None)
    for many in (bfs_many, sssp_many):
        assert many(graph, [0, 1], result="nearest", k=1)["source"].tolist() == [0, 1]


@pytest.mark.parametrize("one_search", [True, False])
@pytest.mark.parametrize(("groups", "total"), [(None, 3), (["a", "b", "b", "a", "b"], 5)])
def test_progress_counts_each_search(monkeypatch, one_search, groups, total):
    """Three sources, of which two are in both groups."""
    if not one_search:
        monkeypatch.setattr(together, "takes_one_search", lambda *_: False)
    graph = build([(v, v + 1) for v in range(6)], [1] * 6, directed=False)
    seen = []
    options = {
        "k": 2,
        "groups": groups,
        "progress": lambda done, total, _: seen.append((done, total)),
    }
    bfs_many(graph, [0, 0, 3, 3, 6], result="nearest", **options)
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_a_wider_type_of_a_later_group_changes_no_label():
    graph = build([(0, 1), (1, 2), (2, 3)], [1, 2**24, 2**30])
    found = sssp_many(graph, [0, 1, 2], result="nearest", k=2, strategy="one_at_a_time")
    pd.testing.assert_frame_equal(found, expected(sssp_many, graph, [0, 1, 2], 2), check_exact=True)


def test_float_sums_that_round_to_the_same_are_ties_of_the_sources():
    """From 1 the distance of 2 is smaller, and that of 3 equal: one search would drop the label of 0 at 2."""
    graph = graph_from_edges(
        np.array([0, 1, 2]),
        np.array([2, 2, 3]),
        np.array([1 + 2**-23, 1, 2**25], np.float32),
        weight_type="float32",
    )
    found = sssp_many(graph, [0, 1], result="nearest", k=1).set_index("vertex")["source"]
    assert (found[2], found[3]) == (1, 0)


def test_groups_have_their_own_nearest_sources():
    graph = build([(v, v + 1) for v in range(6)], [1] * 6, directed=False)
    found = bfs_many(graph, [0, 6, 3], result="nearest", k=1, groups=["school", "school", "clinic"])
    assert list(found.columns) == ["group", "vertex", "rank", "source", "distance"]
    school = found[found["group"] == "school"]
    assert found["group"].tolist() == ["clinic"] * 7 + ["school"] * 7
    assert school["source"].tolist() == [0, 0, 0, 0, 6, 6, 6]
    assert found[found["group"] == "clinic"]["distance"].tolist() == [3, 2, 1, 0, 1, 2, 3]


def test_labels_behind_a_new_one_keep_their_order(monkeypatch):
    monkeypatch.setattr(together, "takes_one_search", lambda *_: False)
    graph = build([(0, 9), (1, 9), (2, 9)], [5, 5, 3])
    found = sssp_many(graph, [0, 1, 2], result="nearest", k=2).set_index("vertex").loc[9]
    assert found["source"].tolist() == [2, 0]


def test_a_heap_that_grows_loses_no_label():
    n = 3000
    # the hub pushes them all
    graph = graph_from_edges(np.zeros(n - 1, np.int64), np.arange(1, n), directed=False)
    edges = Edges(graph.offsets, graph.targets, np.zeros(0, np.int64))
    distance, owner = on_cpu.k_nearest(edges, np.array([1, 2, 5]), 2, 2**40)
    assert distance[0].tolist() == [1, 1]
    assert owner[0].tolist() == [0, 1]
    assert (distance[6:] == 2).all()


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("many", [bfs_many, sssp_many])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_nearest_targets_of_a_source_equal_a_sort_of_its_distances(
    device, many, directed, grouped
):
    rows = NAMED["power law"]
    graph = build(rows, weights_for(rows, 3), directed)
    rng = np.random.default_rng(5)
    sources, targets = rng.choice(graph.ids, 12), rng.choice(graph.ids, 9, replace=False)
    sources[7] = sources[2]
    kinds = ["ab"[i % 2] for i in range(targets.size)]
    options = {"groups": kinds} if grouped else {}
    limit = {"max_depth": 3} if many is bfs_many else {"cutoff": 40}
    found = many(
        graph.to(device), sources, result="nearest", k=2, targets=targets, **options, **limit
    )
    found = getattr(found, "to_pandas", lambda: found)()  # cuDF has it
    parts = many(
        graph, sources, result="nearest", k=2, targets=targets, stream=True, **options, **limit
    )
    if device == "cpu":
        pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), found)
    matrix = many(graph, sources, result="matrix", targets=targets, **limit).astype(float)
    matrix[(matrix < 0) | ~np.isfinite(matrix)] = np.inf
    expected = []
    for source, distances in zip(sources.tolist(), matrix, strict=True):
        for kind in sorted(set(kinds)) if grouped else [None]:
            own = [
                i
                for i in range(targets.size)
                if kind in (None, kinds[i]) and np.isfinite(distances[i])
            ]
            for rank, i in enumerate(sorted(own, key=lambda i: (distances[i], targets[i]))[:2], 1):
                expected.append(
                    (source, *([kind] if grouped else []), rank, int(targets[i]), distances[i])
                )
    assert found.columns.tolist() == [
        "source",
        *(["group"] if grouped else []),
        "rank",
        "target",
        "distance",
    ]
    assert list(found.astype({"distance": float}).itertuples(index=False, name=None)) == expected
    assert len(expected) > 10
    with pytest.raises(UnknownVertexError, match="target"):
        many(graph, sources, result="nearest", k=1, targets=[10**9])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be 1 or more"),
        ({"k": 1.5}, "k must be a whole number"),
        ({"groups": [1]}, "or give k with result nearest"),
        ({"k": 1, "groups": [1, 2]}, "groups has 2 values, not 1"),
        ({"k": 1, "groups": [None]}, "groups"),
        (
            {"k": 1, "result": "summary"},
            "k is for result k_nearest or nearest_targets, not summary",
        ),
        ({"k": 0, "targets": [1]}, "k must be 1 or more"),
        ({"targets": []}, "needs at least one target"),
        ({"result": "k_nearest", "targets": [1]}, "needs k"),
        ({"result": "k_nearest"}, "needs k"),
        ({"k": 1, "stream": True}, "leave stream out"),
        ({"k": 1, "stream": True, "result": "k_nearest"}, "leave stream out"),
        ({"k": 1, "sources": {0, 1}, "groups": ["a", "b"]}, "sources must be a list"),
        ({"k": 1, "sources": []}, "needs at least one source"),
    ],
)
def test_wrong_options_are_refused(options, message):
    graph = build([(0, 1)], [1])
    with pytest.raises(InputError, match=message):
        bfs_many(graph, **{"sources": [0], "result": "nearest", **options})


def test_distances_equal_those_of_pandana():
    pandana = pytest.importorskip("pandana")
    rng = np.random.default_rng(6)
    n, radius = 60, 25.0
    src, dst = rng.integers(0, n, (2, 150))
    weight = rng.integers(1, 10, 150)
    x, y = pd.Series(rng.random(n)), pd.Series(rng.random(n))
    lengths = pd.DataFrame({"w": weight.astype(float)})
    network = pandana.Network(x, y, pd.Series(src), pd.Series(dst), lengths, twoway=True)
    network.precompute(radius + 1)
    shops = rng.choice(n, 9, replace=False)
    network.set_pois("shops", radius, 3, x.loc[shops], y.loc[shops])
    theirs = network.nearest_pois(radius, "shops", num_pois=3)
    graph = graph_from_edges(src, dst, weight, directed=False, vertices=np.arange(n))
    found = sssp_many(graph, shops, result="nearest", k=3, cutoff=radius)
    ours = (
        found.pivot(index="vertex", columns="rank", values="distance")
        .reindex(np.arange(n))
        .fillna(radius)
    )
    np.testing.assert_array_equal(ours, theirs.loc[np.arange(n)])


@given(networks(), st.sampled_from([None, 3]), st.data())
def test_a_wrong_label_is_no_answer(network, limit, data):
    graph, sources, k = network
    assume(k_nearest.takes_one_search(graph, False, k))
    numbers = np.unique(sources)
    distance, owner = k_nearest.search_labels(graph, "sssp", numbers, k, limit)
    k_nearest.certify_labels(graph, "sssp", numbers, limit, distance, owner)
    v, j = data.draw(st.sampled_from(np.argwhere(owner >= 0).tolist()))
    wrong_distance, wrong_owner = distance.copy(), owner.copy()
    kind = data.draw(st.sampled_from(["nearer", "farther", "other source", "lost"]))
    if kind == "other source":
        wrong_owner[v, j] = data.draw(
            st.integers(0, numbers.size).filter(lambda other: other != owner[v, j])
        )
    elif kind == "lost":
        wrong_distance[v, j:], wrong_owner[v, j:] = -1, -1
    else:
        wrong_distance[v, j] += -1 if kind == "nearer" else 1
    with pytest.raises(CertificateError, match="nearest sources of vertex"):
        k_nearest.certify_labels(graph, "sssp", numbers, limit, wrong_distance, wrong_owner)


def test_labels_that_only_explain_each_other_are_no_answer():
    # 0 -5-> 1, and 1, 2 joined by edges of weight 0: labels of 3 at both agree, but no path has this length.
    graph = build([(0, 1), (1, 2), (2, 1)], [5, 0, 0])
    numbers = np.array([0])
    distance, owner = k_nearest.search_labels(graph, "sssp", numbers, 1, None)
    distance[1:] = 3
    with pytest.raises(CertificateError):
        k_nearest.certify_labels(graph, "sssp", numbers, None, distance, owner)
