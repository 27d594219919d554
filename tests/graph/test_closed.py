"""Closed vertices: paths begin and end there, and none leads through. Beside a search in plain
Python.
"""

import itertools
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from kepler_traverse import (
    InputError,
    NegativeCycleError,
    StrategyError,
    UnknownVertexError,
    bfs,
    bfs_many,
    bfs_pairs,
    certify,
    convert,
    graph_from_edges,
    load_graph,
    paths,
    read_graph,
    save_graph,
    sssp,
    sssp_many,
    sssp_pairs,
    strategies,
    with_weights,
)
from kepler_traverse.extremes import extremes, top_closeness
from kepler_traverse.interop.cugraph_frames import as_cugraph
from kepler_traverse.search.results import Traversal
from pipelines import run_job, verify
from pipelines.batch_sources import main
from pipelines.verification.part_checks import move_to_path_ends
from tests.support import tiers
from tests.support.jobs import manifest_of
from tests.support.oracle import canonical_search, walk_back

INF = float("inf")


class Case:
    """A random graph with closed vertices, and what the plain search finds in it."""

    def __init__(self, seed, directed, names):
        rng = np.random.default_rng(seed)
        n = 24
        size = 70
        table = pd.DataFrame(
            {
                "src": rng.integers(0, n, size),
                "dst": rng.integers(0, n, size),
                "weight": rng.integers(1, 6, size),
            }
        )
        spelled = np.array([f"v{i:02d}" for i in range(n)]) if names else 3 * np.arange(n) + 1
        self.table = table.assign(src=spelled[table.src], dst=spelled[table.dst])
        self.directed = directed
        self.ids = sorted(set(self.table.src) | set(self.table.dst))
        self.closed = sorted(rng.choice(self.ids, 7, replace=False).tolist())
        self.edges = self.cheapest(self.table.weight)
        self.distances = {s: canonical_search(self.edges, s, self.closed)[0] for s in self.ids}
        self.found = {
            source: canonical_search(self.edges, source, self.closed) for source in self.ids
        }

    def cheapest(self, weights):
        edges = {}
        for u, v, weight in zip(self.table.src, self.table.dst, weights, strict=True):
            for ends in [(u, v)] if self.directed else [(u, v), (v, u)]:
                if u != v:
                    edges[ends] = min(weight, edges.get(ends, INF))
        return edges

    def graph(self, **options):
        return graph_from_edges(
            self.table, directed=self.directed, closed=self.closed, edge_ids=True, **options
        )


CASES = [
    Case(seed, directed, names)
    for seed, (directed, names) in enumerate(
        [(True, False), (False, False), (True, True), (False, True)]
    )
]
STRATEGIES = strategies().query("algorithm == 'sssp' and device == 'cpu'")["name"].unique().tolist()
EACH = pytest.mark.parametrize("case", CASES, ids=["in", "un", "is", "us"])


def distances_of(frame, *keys):
    values = frame["distance"].tolist()
    return dict(zip(zip(*(frame[key] for key in keys), strict=True), values, strict=True))


@EACH
def test_distances_and_predecessors_are_those_of_the_search(case):
    graph = case.graph()
    expected = {(s, v): d for s, (distance, _) in case.found.items() for v, d in distance.items()}
    assert graph.report.isolated_vertices == 0
    refused = []
    for strategy in ["auto", *STRATEGIES]:
        try:
            frame = sssp_many(graph, "all", strategy=strategy)
        except InputError as error:
            refused.append(f"{strategy}: {error}")
            continue
        assert distances_of(frame, "source", "vertex") == expected
        assert frame[["source", "vertex"]].equals(
            frame[["source", "vertex"]].sort_values(["source", "vertex"], ignore_index=True)
        )
    reasons = ("hierarchy", "labels", "cycle")
    assert all(any(reason in each for reason in reasons) for each in refused)
    frame = sssp_many(graph, "all", result="predecessors")
    for row in frame.itertuples():
        assert row.predecessor == case.found[row.source][1][row.vertex]
    certify(graph, frame).require()
    source = case.closed[0]
    one = sssp(graph, source)
    assert distances_of(one, "vertex") == {(v,): d for v, d in case.found[source][0].items()}
    certify(graph, one).require()
    wrong = one.assign(distance=one.distance + (one.index == len(one) - 1))
    assert certify(graph, wrong).failures
    nulls = sssp(graph, source, unreached="null")
    assert nulls.vertex.tolist() == case.ids


@EACH
def test_tables_of_pairs_are_those_of_the_search(case):
    graph = case.graph()
    distance = {(s, t): case.found[s][0].get(t) for s in case.ids for t in case.ids}
    origins = [s for s in case.ids for _ in case.ids]
    destinations = case.ids * len(case.ids)
    for engine in ("search", "hierarchy", "labels"):
        if engine == "hierarchy":
            graph.hierarchy()
        if engine == "labels":
            graph.labels()
        pairs = sssp_pairs(graph, origins, destinations)
        assert [None if pd.isna(d) else d for d in pairs.distance] == list(distance.values())
        targets = case.ids[::2]
        table = sssp_many(graph, "all", result="targets", targets=targets)
        for row in table.itertuples():
            expected = distance[row.source, row.target]
            assert pd.isna(row.distance) if expected is None else row.distance == expected
        matrix = sssp_many(graph, case.ids, result="matrix", targets=targets)
        whole = sssp_many(graph, case.ids, result="matrix")
        for i, s in enumerate(case.ids):
            expected = [INF if distance[s, t] is None else distance[s, t] for t in case.ids]
            assert whole[i].tolist() == expected
            assert matrix[i].tolist() == expected[::2]
        one = sssp_pairs(graph, [case.closed[0]] * 2, [case.closed[0], case.closed[1]])
        assert one.distance[0] == 0


@EACH
def test_paths_and_flows_lead_through_no_closed_vertex(case):
    graph = case.graph()
    rng = np.random.default_rng(1)
    origins = rng.choice(case.ids, 40).tolist()
    destinations = rng.choice(case.ids, 40).tolist()
    volumes = rng.integers(1, 9, 40)
    found = [
        (i, walk_back(case.found[s][1], t))
        for i, (s, t) in enumerate(zip(origins, destinations, strict=True))
        if t in case.found[s][1]
    ]
    made = paths(graph, (origins, destinations), edges=True)
    assert [(i, rows.vertex.tolist()) for i, rows in made.groupby("pair")] == found
    rows = made[made.edge.notna()]
    before = made.vertex.shift()[rows.index]
    for edge, u, v in zip(rows.edge, before, rows.vertex, strict=True):
        listed = case.table.iloc[edge]
        assert {listed.src, listed.dst} == {u, v}
        assert listed.weight == case.edges[u, v]
    carried, passed = {}, {}
    for i, path in found:
        for step in pairwise(path):
            carried[step] = carried.get(step, 0) + volumes[i]
        for v in path:
            passed[v] = passed.get(v, 0) + volumes[i]
    flows = sssp_pairs(graph, origins, destinations, result="flows", volumes=volumes)
    assert dict(zip(zip(flows.src, flows.dst, strict=True), flows.volume, strict=True)) == carried
    flows = sssp_pairs(graph, origins, destinations, result="flows", volumes=volumes, of="vertices")
    assert dict(zip(flows.vertex, flows.volume, strict=True)) == passed
    every = sssp_many(graph, case.ids, result="flows", targets=case.ids)
    carried = {}
    for s in case.ids:
        for t in case.found[s][1]:
            path = walk_back(case.found[s][1], t)
            for step in pairwise(path):
                carried[step] = carried.get(step, 0) + 1
    assert dict(zip(zip(every.src, every.dst, strict=True), every.volume, strict=True)) == carried
    assert (every.edge >= 0).all()


@EACH
@pytest.mark.parametrize("targets", ["all by default", "all by name"])
def test_flows_to_all_vertices_count_a_closed_one_once(case, targets):
    graph = case.graph()
    weights = np.arange(1, len(case.ids) + 1)
    options = {"source_weights": weights, "target_weights": weights[::-1]}
    if targets == "all by name":
        options["targets"] = case.ids
    passed, lost = {}, [0, 0]
    for s, leaving in zip(case.ids, weights.tolist(), strict=True):
        for t, arriving in zip(case.ids, weights[::-1].tolist(), strict=True):
            volume = leaving * arriving
            if t not in case.found[s][1]:
                lost = [lost[0] + 1, lost[1] + volume]
                continue
            for v in walk_back(case.found[s][1], t):
                passed[v] = passed.get(v, 0) + volume
    flows = sssp_many(graph, case.ids, result="flows", of="vertices", **options)
    assert dict(zip(flows.vertex, flows.volume, strict=True)) == passed
    assert list(flows.attrs["kepler_traverse.lost"].values()) == lost
    edges = sssp_many(graph, case.ids, result="flows", **options)
    assert list(edges.attrs["kepler_traverse.lost"].values()) == lost


@EACH
@pytest.mark.parametrize("with_hierarchy", [False, True])
def test_results_per_source(case, with_hierarchy):
    graph = case.graph()
    if with_hierarchy:
        graph.hierarchy()
    found = case.distances
    cutoffs = [2, 5]
    within = sssp_many(graph, "all", result="within", cutoffs=cutoffs)
    values = pd.DataFrame({"vertex": case.ids, "jobs": np.arange(len(case.ids)) + 1})
    sums = sssp_many(graph, "all", result="opportunities", cutoffs=cutoffs, values=values)
    jobs = dict(zip(values.vertex, values.jobs, strict=True))
    for count, total in zip(within.itertuples(), sums.itertuples(), strict=True):
        near = [v for v, d in found[count.source].items() if d <= count.cutoff]
        assert count.vertices == len(near)
        assert total.jobs == sum(jobs[v] for v in near)
    bands = sssp_many(graph, "all", result="isochrones", cutoffs=cutoffs)
    assert len(bands) == within[within.cutoff == 5].vertices.sum()
    for row in bands.itertuples():
        assert row.band == (2 if found[row.source][row.vertex] <= 2 else 5)
    summary = sssp_many(graph, "all", result="summary").set_index("source")
    for s, distance in found.items():
        row = summary.loc[s]
        others = len(distance) - 1
        total = sum(distance.values())
        assert (row.reached, row["sum"]) == (len(distance), total)
        closeness = others / total * (others / (len(case.ids) - 1)) if total else 0
        assert row.closeness == pytest.approx(closeness)
        assert row.harmonic == pytest.approx(sum(1 / d for d in distance.values() if d))
    back = sssp_many(graph, "all", result="summary", direction="in").set_index("source")
    for t in case.ids:
        reaching = [d[t] for d in found.values() if t in d]
        assert (back.loc[t].reached, back.loc[t]["sum"]) == (len(reaching), sum(reaching))


@EACH
def test_nearest_sources_and_targets_are_those_of_the_search(case):
    graph = case.graph()
    found = case.distances
    chosen = sorted([*case.closed[:3], *case.ids[:4]])
    chosen = sorted(set(chosen))
    nearest = sssp_many(graph, chosen, result="nearest").set_index("vertex")
    ranked = sssp_many(graph, chosen, result="nearest", k=3)
    by_vertex = dict(list(ranked.groupby("vertex")))
    for v in case.ids:
        near = sorted((found[s][v], s) for s in chosen if v in found[s])
        if not near:
            assert v not in nearest.index
            assert v not in by_vertex
            continue
        assert nearest.loc[v].distance == near[0][0]
        assert found[nearest.loc[v].source][v] == near[0][0]
        rows = by_vertex[v]
        assert list(zip(rows.distance, rows.source, strict=True)) == near[:3]
    targets = sssp_many(graph, "all", result="nearest", k=2, targets=chosen)
    by_source = dict(list(targets.groupby("source")))
    for s in case.ids:
        near = sorted((found[s][t], t) for t in chosen if t in found[s])[:2]
        rows = by_source.get(s)
        assert near == ([] if rows is None else list(zip(rows.distance, rows.target, strict=True)))


@EACH
def test_other_weights_and_stored_graphs(case, tmp_path):
    graph = case.graph()
    weights = np.random.default_rng(5).integers(1, 9, len(case.table))
    changed = with_weights(graph, weights)
    built = graph_from_edges(
        case.table.assign(weight=weights), directed=case.directed, closed=case.closed, edge_ids=True
    )
    assert changed.fingerprint == built.fingerprint
    assert changed.edge_rows.tolist() == built.edge_rows.tolist()
    per_edge = with_weights(graph, built.weights.astype(int), per="edge")
    assert per_edge.fingerprint == built.fingerprint
    save_graph(graph, tmp_path / "graph")
    stored = load_graph(tmp_path / "graph")
    assert stored.fingerprint == graph.fingerprint
    assert sssp(stored, case.closed[0]).equals(sssp(graph, case.closed[0]))
    save_graph(graph.reverse, tmp_path / "reverse")
    reverse = load_graph(tmp_path / "reverse")
    assert reverse.fingerprint == graph.reverse.fingerprint
    assert sssp(reverse, case.closed[0]).equals(sssp(graph.reverse, case.closed[0]))
    assert graph.fingerprint != graph_from_edges(case.table, directed=case.directed).fingerprint


@pytest.mark.parametrize(
    "numbers", [[[1, 2], [3, 4]], [[1], [1]], [[1, 0], [2, 1]], [[0, 3], [1, 2]], [[3], [4]]]
)
def test_a_graph_takes_only_adjacent_numbers_for_a_closed_vertex(numbers):
    """Not apart, not equal, not shared or descending, not in both orders, not beyond the last."""
    table = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 3], "weight": [1, 1, 1]})
    graph = graph_from_edges(table)
    with pytest.raises(InputError, match="closed must be an array as read_graph makes it"):
        replace(graph, closed=np.array(numbers))


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_an_empty_list_closes_nothing(directed, weighted):
    table = pd.DataFrame({"src": [1, 1, 2, 9], "dst": [2, 3, 3, 9], "weight": [4, 1, 2, 5]})
    given = {"directed": directed, "weighted": weighted}
    graph = graph_from_edges(table, closed=[], **given)
    plain = graph_from_edges(table, **given)
    assert graph.fingerprint == plain.fingerprint
    assert graph.closed is None
    assert graph.directed == directed
    search_many, search_pairs = (sssp_many, sssp_pairs) if weighted else (bfs_many, bfs_pairs)
    targets = search_many(graph, [1, 2], result="targets", targets=[3, 9])
    assert targets.equals(search_many(plain, [1, 2], result="targets", targets=[3, 9]))
    assert search_pairs(graph, [(1, 3), (9, 9)]).equals(search_pairs(plain, [(1, 3), (9, 9)]))


def test_files_and_refusals(tmp_path):
    table = pd.DataFrame({"src": [1, 1, 2, 9], "dst": [2, 1, 3, 9], "weight": [4, 1, 2, -1]})
    table.to_csv(tmp_path / "edges.csv", index=False)
    (tmp_path / "closed.txt").write_text("2\n9\n")
    graph = read_graph(tmp_path / "edges.csv", closed=tmp_path / "closed.txt", device="cpu")
    assert graph.fingerprint == graph_from_edges(table, closed=[2, 9]).fingerprint
    assert graph.report.self_loops == 2
    assert graph.report.isolated_vertices == 1
    assert sssp(graph, 1).vertex.tolist() == [1, 2]
    assert sssp(graph, 9).vertex.tolist() == [9]  # the loop is on no path
    assert graph_from_edges(table, closed=[]).n_vertices == 4
    with pytest.raises(UnknownVertexError, match=r"1 closed id is not in the graph: 7"):
        graph_from_edges(table, closed=[7])
    with pytest.raises(InputError, match="closed needs weights"):
        graph_from_edges(table, weighted=False, closed=[2])
    with pytest.raises(InputError, match=r"1 closed vertex.*sssp on edges of weight 1"):
        bfs(graph_from_edges(table[:3], closed=[2]), 1)
    with pytest.raises(InputError, match="2 closed vertices"):
        bfs_many(graph, [1], result="summary")
    with pytest.raises(InputError, match=r"betweenness.*closed"):
        sssp_many(graph, "all", result="betweenness")
    with pytest.raises(InputError, match=r"reachable.*closed"):
        sssp_many(graph, "all", result="reachable")
    with pytest.raises(InputError, match=r"hops.*closed"):
        graph.hierarchy("hops")


def test_what_cannot_respect_closed_vertices_refuses_them(tmp_path):
    table = {"src": [1, 2, 3], "dst": [2, 3, 1], "weight": [4, 1, 2]}
    graph = graph_from_edges(table, closed=[2])
    frame = sssp(graph, 1)
    for call in (
        lambda: convert.to_scipy(graph),
        lambda: convert.to_arrow(graph),
        lambda: convert.to_networkx(graph),
        lambda: extremes(graph, algorithm="sssp"),
        lambda: top_closeness(graph, 1, algorithm="sssp"),
        lambda: run_job(graph, result="labels", sources="all", output=tmp_path / "labels"),
        lambda: as_cugraph(frame, graph),
    ):
        with pytest.raises(InputError, match="closed vert"):
            call()
    assert not (tmp_path / "labels").exists()


def test_paths_of_frames_have_the_rows_of_their_edges():
    table = {"src": [1, 2, 1], "dst": [2, 3, 3], "weight": [4, 1, 9]}
    graph = graph_from_edges(table, closed=[2, 3], edge_ids=True)
    for source, target, rows in ((1, 3, [2]), (1, 2, [0]), (2, 3, [1])):
        made = paths(sssp(graph, source), [target], graph=graph, edges=True)
        assert made.edge.dropna().tolist() == rows


@pytest.mark.parametrize("result", ["distances", "predecessors"])
@pytest.mark.parametrize("case", CASES)
def test_verify_knows_the_rows_of_closed_vertices(case, result, tmp_path, capsys):
    # one source and several have writers of their own
    edges = tmp_path / "edges.parquet"
    case.table.to_parquet(edges)
    closed = tmp_path / "closed.txt"
    closed.write_text("".join(f"{vertex}\n" for vertex in case.closed))
    sources = [case.closed[0], next(each for each in case.ids if each not in case.closed)]
    options = ["--algorithm", "sssp", "--result", result, "--device", "cpu", "--no-report"]
    if not case.directed:
        options.append("--undirected")
    checksums = {}
    for chosen in ([sources[0]], [sources[1]], sources):
        out = tmp_path / f"out-{len(checksums)}"
        words = [*options, "--sources", ",".join(map(str, chosen)), "--closed", str(closed)]
        assert main([str(edges), *words, "--output", str(out)]) == 0
        assert verify.main([str(out), str(edges)]) == 0, capsys.readouterr().out
        checksums[tuple(chosen)] = [each["checksum"] for each in manifest_of(out)["parts"]]
    assert [checksums[(each,)][0] for each in sources] == checksums[tuple(sources)]


@pytest.mark.parametrize("result", ["distances", "flows"])
def test_verify_knows_that_each_vertex_is_one_of_all_sources(result, tmp_path, capsys):
    (case, *_) = CASES
    edges = tmp_path / "edges.parquet"
    case.table.to_parquet(edges)
    closed = tmp_path / "closed.txt"
    closed.write_text("".join(f"{vertex}\n" for vertex in case.closed))
    out = tmp_path / "out"
    options = {"algorithm": "sssp", "result": result, "device": "cpu", "report": False}
    run_job(edges, output=out, closed=str(closed), sources="all", **options)
    assert verify.main([str(out), str(edges)]) == 0, capsys.readouterr().out
    if result == "flows":
        loads = pq.read_table(out / "_loads.pq").drop_columns(["edge"]).to_pydict()
        expected = sssp_many(case.graph(), "all", result="flows").drop(columns="edge")
        assert loads == expected.to_dict("list")


@pytest.mark.parametrize(("source", "own"), [(0, 7), (1, 0)])
def test_verify_keeps_what_a_source_says_of_itself(source, own):
    graph = graph_from_edges({"src": [1, 2, 3], "dst": [2, 3, 1], "weight": [4, 1, 2]}, closed=[2])
    unreached = 99
    distance = np.array([7, 4, unreached, 5])  # as rows say it: of ids 1, 2 and 3
    traversal = Traversal(
        algorithm="sssp",
        source=source,
        distance=distance,
        predecessor=None,
        limit=None,
        strategy="",
        rounds=0,
    )
    move_to_path_ends(graph, traversal, unreached)
    assert distance.tolist() == [7, 0 if source == 1 else unreached, 4, 5]
    assert distance[source] == own


def shortest(edges, closed, source):
    """Return the distances from a source, or None if it reaches a negative cycle: also one that ends
    at the source itself, which is closed.
    """
    distance = {source: 0}
    for _ in range(len(edges) + 2):
        known = dict(distance)
        for (u, v), weight in edges.items():
            if u in known and (u == source or u not in closed):
                at = 0 if u in closed else known[u]
                distance[v] = min(at + weight, distance.get(v, INF))
        if distance[source] < 0:
            return None
        if distance == known:
            return distance
    return None


ASKED = {
    "distances": {},
    "predecessors": {},
    "targets": {"targets": "all"},
    "summary": {},
    "within": {"cutoffs": [0]},
    "isochrones": {"cutoffs": [3]},
    "matrix": {},
    "nearest": {},
    "k_nearest": {"result": "nearest", "k": 2},
    "nearest_targets": {"result": "nearest", "k": 1, "targets": "all"},
}


def answer_of(graph, sources, kind, strategy="auto"):
    ids = sorted(set(graph.ids.tolist()))
    options = {"result": kind} | ASKED[kind]
    if options.get("targets") == "all":
        options["targets"] = ids
    try:
        return sssp_many(graph, sources, strategy=strategy, **options)
    except NegativeCycleError:
        return None


def random_negative(seed):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(rng.integers(0, 7, (14, 2)), columns=["src", "dst"])
    rows = rows[rows.src != rows.dst].assign(weight=lambda t: rng.integers(-2, 6, len(t)))
    rows = rows.groupby(["src", "dst"], as_index=False).min()
    edges = {(u, v): w for u, v, w in rows.itertuples(index=False)}
    closed = rng.choice(sorted(set(rows.src) | set(rows.dst)), 3, replace=False).tolist()
    return rows, edges, closed


@pytest.mark.parametrize("weights", ["int64", "float64", "beyond 2^53"])
def test_a_negative_cycle_through_a_closed_vertex_is_an_error_from_that_vertex_alone(weights):
    refused = 0
    turns = itertools.count()
    for seed in range(20):
        rows, edges, closed = random_negative(seed)
        factor = 2**52 if weights == "beyond 2^53" else 1
        kind = "float64" if weights == "float64" else "int64"
        table = rows.assign(weight=(rows.weight * factor).astype(kind))
        graph = graph_from_edges(table, closed=closed)
        for source in sorted(set(graph.ids.tolist())):
            distance = shortest(edges, closed, source)
            refused += distance is None and source in closed
            # An error, which few sources have, is one for every kind and strategy.
            every = 1 if tiers.ALL or distance is None else 4
            turn = next(turns)
            for asked in list(ASKED)[turn % every :: every]:
                assert (answer_of(graph, [source], asked) is None) == (distance is None), asked
            for strategy in STRATEGIES[turn % every :: every]:
                try:
                    found = answer_of(graph, [source], "distances", strategy)
                except StrategyError:
                    continue
                assert (found is None) == (distance is None)
                if distance is not None:
                    expected = {(v,): factor * d for v, d in sorted(distance.items())}
                    assert distances_of(found, "vertex") == expected
            if distance is None:
                with pytest.raises(NegativeCycleError):
                    sssp_pairs(graph, [source, source], [source, closed[0]])
    assert refused > 3


def test_the_cycle_through_a_closed_vertex_is_named():
    table = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 1], "weight": [1, 1, -5]})
    graph = graph_from_edges(table, closed=[1])
    with pytest.raises(NegativeCycleError, match="3 vertices and weight -3: 1 -> 2 -> 3 -> 1"):
        sssp(graph, 1)
    with pytest.raises(NegativeCycleError, match="1 -> 2 -> 3 -> 1"):
        sssp_many(graph, [2, 1], result="nearest")
    assert sssp(graph, 2)["distance"].tolist() == [-4, 0, 1]
