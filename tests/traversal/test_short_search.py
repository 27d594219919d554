"""Searches that touch only what they reach: equal to whole searches, certified, and as long as their results."""

from __future__ import annotations

import threading
from itertools import count

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kepler_traverse.cuda.short_search as on_gpu
from kepler_traverse import bfs_many, bfs_pairs, graph_from_edges, paths, sssp_many, sssp_pairs
from kepler_traverse._arrays import make_offsets
from kepler_traverse.auto.survey import outline
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.certificate import certify_many
from kepler_traverse.cpu import short_search as cpu
from kepler_traverse.kinds.pairs import pair_table
from kepler_traverse.multi_source import together
from kepler_traverse.search import short_search
from kepler_traverse.search.query import Nearest, Query, SourceValues
from kepler_traverse.search.short_search import SOURCES
from kepler_traverse.search.sparse import Marks, SparseDistances
from kepler_traverse.sssp import REGISTRY as SSSP
from pipelines.cli.command_line import parse_flags
from pipelines.cli.settings import read_settings
from pipelines.job import run_job
from pipelines.output.part_stats import sum_histograms
from pipelines.run.prepare import prepare, with_threads
from tests.support import tiers
from tests.support.devices import host, on_a_device, orders, planned_by_outline, running

MANY = {
    "bfs": (bfs_many, "max_depth", "source_per_thread"),
    "sssp": (sssp_many, "cutoff", "near_far_per_thread"),
}
PAIRS = {"bfs": bfs_pairs, "sssp": sssp_pairs}
REGISTRIES = {"bfs": BFS, "sssp": SSSP}
MODES = orders(stress={"stress": True, "seed": 1})


def random_graph(seed: int, n: int, n_edges: int, fractions: bool = False):
    random = np.random.default_rng(seed)
    weights = random.integers(0, 9, n_edges) / (7 if fractions else 1)
    return graph_from_edges(
        random.integers(0, n, n_edges), random.integers(0, n, n_edges), weights, edge_ids=True
    )


def sparse(graph, algorithm: str, limit, sources=None) -> SparseDistances:
    plan = REGISTRIES[algorithm].plan_multi_source(
        graph,
        n_sources=graph.n_vertices,
        result="distances",
        strategy="short_search",
        limit=limit,
        forms=("sparse",),
    )
    return plan.run(np.arange(graph.n_vertices) if sources is None else sources).distance


def equal(one, other) -> None:
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    else:
        pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("fractions", [False, True])
@pytest.mark.parametrize("algorithm", MANY)
def test_all_kinds_of_results_are_those_of_whole_searches(algorithm, fractions):
    # several reduction blocks, of which some have one or two vertices
    graph = random_graph(3, 4000, 9000, fractions)
    many, limit_name, whole = MANY[algorithm]
    random = np.random.default_rng(4)
    sources = graph.ids[random.permutation(graph.n_vertices)[:40]].tolist()
    values = {
        "count": random.integers(-5, 50, graph.n_vertices),
        "share": random.random(graph.n_vertices) - 0.5,
    }
    asked = [
        {"result": name, limit_name: 3}
        for name in ("distances", "predecessors", "summary", "reachable", "matrix")
    ]
    asked += [
        {"result": name, limit_name: [i % 6 for i in range(40)]}
        for name in ("predecessors", "summary", "reachable")
    ]
    asked += [
        {"result": name, "targets": sources[:9]}
        for name in ("distances", "predecessors", "targets", "matrix")
    ]
    asked += [{"result": name, "cutoffs": [0, 2, 5]} for name in ("within", "isochrones")]
    asked += [
        {"result": "opportunities", "cutoffs": [1, 8], "values": values, "decay": decay}
        for decay in (None, "linear:7")
    ]
    asked += [{"result": "levels", limit_name: 4}] if algorithm == "bfs" else []
    for options in asked:
        equal(
            many(graph, sources, strategy="short_search", **options),
            many(graph, sources, strategy=whole, **options),
        )


@settings(max_examples=tiers.examples(80))
@given(
    st.integers(1, 12),
    st.lists(
        st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(0, 3)),
        min_size=1,
        max_size=40,
    ),
    st.sampled_from([None, 0, 1, 4]),
    st.randoms(use_true_random=False),
)
def test_certificate_is_that_of_all_distances(n, edges, limit, random):
    graph = graph_from_edges(
        *(
            np.array(column)
            for column in zip(*((u % n, v % n, w) for u, v, w in edges), strict=True)
        )
    )
    sources = np.arange(graph.n_vertices)
    for algorithm in MANY:
        found = sparse(graph, algorithm, limit)
        assert certify_many(graph, sources, found, limit).valid
        rows = found.rows()
        unreached = np.inf if algorithm == "sssp" else -1
        i, v = random.randrange(len(rows)), random.randrange(graph.n_vertices)
        planted = random.choice([each for each in (unreached, 0, 1, 2, 5, 9) if each != rows[i, v]])
        rows[i, v] = planted
        is_reached = rows != unreached
        # as searches make them
        row, vertex = (np.ascontiguousarray(axis, np.int32) for axis in np.nonzero(is_reached))
        wrong = SparseDistances(
            make_offsets(np.bincount(row, minlength=len(rows))),
            vertex,
            rows[is_reached],
            len(sources),
        )
        certificate = certify_many(graph, sources, wrong, limit)
        assert set(certificate.failures) & set(certify_many(graph, sources, rows, limit).failures)
        found, i = found.point_back(graph, sources), random.randrange(found.size)
        assert certify_many(graph, sources, found, limit).valid
        found.predecessor[i] = random.randrange(graph.n_vertices)
        source, v = int(found.rows_of_entries()[i]), int(found.vertices[i])
        distance, before = found.rows()[source], found.predecessor_rows()[source]
        lengths = graph.weights if algorithm == "sssp" else np.ones(graph.n_edges)
        tails = np.repeat(sources, np.diff(graph.offsets))
        tight = set(
            zip(
                tails[is_tight := distance[tails] + lengths == distance[graph.targets]],
                graph.targets[is_tight],
                strict=True,
            )
        )
        at, steps = v, 0
        while at != source and (before[at], at) in tight and steps <= n:
            at, steps = before[at], steps + 1
        assert certify_many(graph, sources, found, limit).valid == (at == before[source] == source)


@on_a_device
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("algorithm", MANY)
def test_searches_on_a_gpu_find_what_those_on_a_cpu_do(algorithm, mode, monkeypatch):
    """With tables of every size: those that are full, in shared and in global memory, and rows beyond the capacity."""
    monkeypatch.setattr(on_gpu, "IN_SHARED", (on_gpu.Tier(32, 7, True), on_gpu.Tier(32, 8, True)))
    monkeypatch.setattr(on_gpu, "_VERTICES", 0)
    graph = random_graph(8, 300, 725, fractions=True)
    random, reach = np.random.default_rng(9), {"bfs": 3, "sssp": 1.5}[algorithm]
    sources, nearest = (
        random.permutation(graph.n_vertices)[:12],
        [np.arange(0, 300, 20), np.arange(0, 300, 40)],
    )
    # where sums are rounded, the nearest targets are searched from these
    exact = random_graph(8, 300, 725)
    with running(MODES[mode]), planned_by_outline():
        graphs = [(each, each.to("cuda")) for each in (graph, exact)]
        for asked in (
            *({"limit": limit, "forms": ("sparse",)} for limit in (0, reach, None)),
            {"limit": reach, "result": "predecessors"},
            {"result": "predecessors", "targets": graph.ids[::150], "forms": ("sparse",)},
            {"limit": reach, "result": "targets", "targets": graph.ids[::7]},
            {"result": "targets", "targets": graph.ids[::9]},
            {"limit": reach, "result": "levels"},
            {
                "limit": 2 * reach,
                "limits": SourceValues(np.arange(300), np.arange(300) % 5 * reach / 2),
                "forms": ("sparse",),
            },
            {"targets": graph.ids[::25], "nearest": Nearest(2, nearest), "forms": ("sparse",)},
            {
                "limit": 4 * reach,
                "targets": graph.ids[::25],
                "nearest": Nearest(3, nearest[:1]),
                "forms": ("sparse",),
            },
            {
                "result": "pairs",
                "lists": pair_table(sources[::3], random.permutation(300)[:30]).lists,
            },
        ):
            lists = [asked.pop("lists")] if "lists" in asked else []
            starts = sources
            if lists:
                starts = sources[::3]
            elif asked.get("limit") is None or "nearest" in asked:
                starts = sources[::6]  # most of the graph is searched from each
            here, there = graphs["nearest" in asked]
            options = {"result": "distances", "n_sources": 12} | asked
            if algorithm == "sssp" and options["result"] == "levels":
                continue
            one, other = (
                REGISTRIES[algorithm]
                .plan_multi_source(each, strategy="short_search", **options)
                .run(starts, *lists)
                for each in (here, there)
            )
            ends = [np.inf if end is None else end for end in other.limits]
            for name in ("distance", "predecessor", "counts"):
                pair = [getattr(each, name) for each in (one, other)]
                if isinstance(pair[0], SparseDistances):
                    assert certify_many(there, starts, pair[1], other.limits).valid
                    pair = [each.within(ends).rows() for each in pair]
                assert (pair[0] is None) == (pair[1] is None)
                assert pair[0] is None or np.array_equal(pair[0], host(pair[1]))
            if "nearest" in asked:  # on a CPU all that are settled with the last one count, too
                assert all(
                    end <= (np.inf if limit is None else limit)
                    for end, limit in zip(ends, one.limits, strict=True)
                )
            else:
                assert one.limits == other.limits


@pytest.mark.parametrize("scale", [1, 0.3])
def test_searches_from_several_sources_at_once_take_weights_of_any_size(scale):
    """Some edges are as long as thousands of others, so that vertices wait beyond the last bucket, and some are 0."""
    random = np.random.default_rng(11)
    ends = random.integers(0, 1500, (2, 3000))
    graph = graph_from_edges(
        *ends,
        random.choice([0, 1, 2, 5000], 3000, p=[0.2, 0.4, 0.399, 0.001]) * scale,
        directed=False,
    )
    sources = {
        "near each other": np.arange(400),
        "far apart": random.permutation(graph.n_vertices)[:20],
    }
    for name, few in sources.items():
        expected = sssp_many(graph, graph.ids[few], result="matrix", strategy="near_far_per_thread")
        found = sparse(graph, "sssp", None, few)
        assert np.array_equal(found.rows(), expected), name
        assert certify_many(graph, few, found, None).valid
        order, n_near = cpu.near_each_other(
            graph.offsets, graph.targets, np.sort(few), *Marks(1500).arrays()[:2]
        )
        assert np.array_equal(np.sort(order), np.arange(few.size))
        assert (2 * n_near > few.size) == (name == "near each other")


@pytest.mark.parametrize("algorithm", MANY)
def test_a_sample_sees_how_far_searches_reach_and_what_they_walk(algorithm):
    graph = random_graph(7, 300, 700, fractions=True)
    query = Query(predecessors=False, limit=3)
    found = short_search.sample_reach(graph, outline(graph), query, algorithm == "bfs", 1 << 30)
    rows = MANY[algorithm][0](graph, "all", **{MANY[algorithm][1]: 3})
    reached = rows.groupby("source")["vertex"].agg(list)
    degrees = dict(zip(graph.ids.tolist(), np.diff(graph.offsets).tolist(), strict=True))
    walked = np.mean([sum(degrees[v] for v in vertices) for vertices in reached])
    # 64 of 300 sources
    assert found.reach * graph.n_vertices == pytest.approx(reached.map(len).mean(), rel=0.5)
    # some more than once, those at the limit not
    assert 0.3 * walked < found.walked * graph.n_edges < 3 * walked


def test_vertices_that_explain_only_each_other_break_a_certificate():
    graph = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 1]), np.array([5, 0, 0]))
    wrong = SparseDistances(
        np.array([0, 3]), np.array([0, 1, 2], np.int32), np.array([0, 4, 4], np.float32), 3
    )
    assert set(certify_many(graph, np.array([0]), wrong, 9).failures) == {"C5"}


def test_rows_that_are_no_rows_break_a_certificate():
    graph = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 1]), np.array([5, 0, 0]))
    for vertices, distance, rule in (
        ([1, 0, 2], [5, 0, 5], "C2"),
        ([0, 1, 1], [0, 5, 5], "C2"),
        ([0, 1, 7], [0, 5, 5], "C2"),
        ([0, 1, 2], [-0.0, 5, 5], "C2"),
        ([0, 1, 2], [0, 5, np.nan], "C2"),
        ([1, 2], [5, 5], "C1"),
        ([0, 1], [0, 5], "C3"),
    ):
        row = np.array(vertices, np.int32), np.array(distance, np.float32)
        wrong = SparseDistances(np.array([0, len(vertices)]), *row, 3)
        assert rule in certify_many(graph, np.array([0]), wrong, 9).failures


class Counted(np.ndarray):
    """An array that counts, in ``touches``, its elements that are read and written, and those of arrays made of it."""

    touches, lock = 0, threading.Lock()

    @classmethod
    def touch(cls, n_elements):
        with cls.lock:  # several threads count
            cls.touches += n_elements

    def __array_finalize__(self, _):
        Counted.touch(self.size if self.flags.owndata else 0)

    def __getitem__(self, i):
        found = super().__getitem__(i)
        Counted.touch(np.size(found))
        return found

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        Counted.touch(sum(each.size for each in inputs if isinstance(each, Counted)))
        if "out" in options:
            options["out"] = tuple(np.asarray(each) for each in options["out"])
        return getattr(ufunc, method)(*(np.asarray(each) for each in inputs), **options)

    def __array_function__(self, function, types, args, options):
        Counted.touch(sum(each.size for each in args if isinstance(each, Counted)))
        return super().__array_function__(function, types, args, options)

    def __setitem__(self, i, value):
        Counted.touch(np.size(super().__getitem__(i)))
        super().__setitem__(i, value)


@pytest.fixture(scope="module")
def circles():
    """Graphs of 10^4 and of 10^5 vertices, in circles of 50, so that the searches of samples end, too."""
    graphs = []
    for n in (10**4, 10**5):
        tails = np.arange(n)
        heads = tails + np.where(tails % 50 == 49, -49, 1)
        graphs.append(graph_from_edges(tails, heads, np.ones(n, np.int64), edge_ids=True))
    return graphs


@pytest.fixture
def counting(monkeypatch):
    """Return ``counted(graph)``: a copy whose arrays count what is touched, as do marks and all that NumPy makes.

    The functions that search, and compute of what is found, are not compiled. A group has four sources.
    """

    def making(make):
        def made(*args, **options):
            found = make(*args, **options)
            Counted.touch(found.size)
            return found

        return made

    def atomic_add(array, i, more):
        array[i] += more
        return array[i] - more

    def clear_line(lines, v, value, _):
        lines[v] = value

    def prefetch_line(*_):
        pass

    def lower_by_line(lines, v, u, weight, _):
        through = lines[u] + weight
        is_new = (
            (lines[u] != np.inf)
            & (through <= lines[0])
            & ((through < lines[v]) | (lines[v] == np.inf))
        )
        lines[v, is_new] = through[is_new]
        return through[is_new].min() if is_new.any() else np.float32(np.inf)

    for name, function in vars(cpu).items():
        if hasattr(function, "py_func") and name != "_mix_one":
            monkeypatch.setattr(cpu, name, function.py_func)
    for function in (atomic_add, prefetch_line, clear_line, lower_by_line):
        monkeypatch.setattr(cpu, function.__name__, function)
    for name in ("empty", "zeros", "ones", "full", "arange", "repeat", "tile", "bincount"):
        monkeypatch.setattr(np, name, making(getattr(np, name)))
    marks = Marks.arrays
    monkeypatch.setattr(
        Marks, "arrays", lambda self: tuple(each.view(Counted) for each in marks(self))
    )
    monkeypatch.setattr(short_search, "SOURCES", 4)
    monkeypatch.setattr(short_search, "SAMPLE", 4)

    def counted(graph):
        for each in (graph, graph.reverse):
            for name in ("offsets", "targets", "weights"):  # graphs refuse such arrays
                object.__setattr__(each, name, getattr(each, name).view(Counted))
        return graph

    with with_threads(1):
        yield counted


STARTS, ENDS = 2 * np.arange(12), np.array([40, 45])
ENDING = {  # searches that end early, by their results; "@" stands for the name of the limit
    **{name: {"@": 20} for name in ("distances", "predecessors", "summary", "reachable", "levels")},
    "distances within limits of their own": {"@": [20, 5, 0, 9] * 3},
    "distances to targets": {"targets": ENDS},
    "targets": {"targets": ENDS},
    "nearest of targets": {"targets": ENDS, "k": 2},
    "nearest": {"@": 20, "k": 2},
    "within": {"cutoffs": [3, 20]},
    "isochrones": {"cutoffs": [3, 20]},
    "opportunities": {"cutoffs": [3, 20], "decay": "linear:9"},
    "pairs": {},
    "paths": {},
}


def calls(algorithm: str, form: str, graph, folder=None):
    """Return ``call(sources)``, of the job with four sources in a part if there is a folder, else of the library."""
    limit, result, runs = MANY[algorithm][1], form.partition(" ")[0], count()

    def call(sources):
        options = {name.replace("@", limit): value for name, value in ENDING[form].items()}
        if isinstance(options.get(limit), list):
            options[limit] = options[limit][: len(sources)]
        options |= (
            {"values": {"jobs": np.arange(graph.n_vertices)}} if form == "opportunities" else {}
        )
        if folder is not None:
            options |= {"nearest_k": options.pop("k")} if "k" in options else {}
            options |= {
                "algorithm": algorithm,
                "result": result,
                "output": folder / f"{next(runs)}",
                "report": False,
            }
            if result in ("pairs", "paths"):
                options["pairs"] = folder / f"{next(runs)}.parquet"
                pd.DataFrame({"source": sources, "target": sources + 15}).to_parquet(
                    options["pairs"]
                )
            else:
                options["sources"] = sources
            run_job(graph, batch_size=4, strategy="short_search", **options)
        elif form == "paths":
            paths(graph, (sources, sources + 15), algorithm=algorithm, strategy="short_search")
        elif form == "pairs":
            PAIRS[algorithm](graph, sources, sources + 15, strategy="short_search")
        else:
            MANY[algorithm][0](graph, sources, result=result, strategy="short_search", **options)

    return call


def touched_by_two_groups(call) -> int:
    """Return what a call touches for 12 sources beyond what it touches for 4."""
    touches = []
    for n_sources in (4, 4, 12):  # the first makes what a graph computes once
        Counted.touches = 0
        call(STARTS[:n_sources])
        touches.append(Counted.touches)
    return touches[2] - touches[1]


FORMS = [
    (algorithm, form)
    for algorithm in MANY
    for form in ENDING
    if (algorithm, form) != ("sssp", "levels")
]
# there that is a bit per vertex of the graph
LIBRARYS = [each for each in FORMS if each[1] != "reachable"]
# The job takes limits per source and values of vertices from files; its k nearest sources are one part.
JOBS = [
    each
    for each in FORMS
    if each[1] not in ("distances within limits of their own", "opportunities", "nearest")
]


@pytest.mark.parametrize(("algorithm", "form"), LIBRARYS)
def test_equal_searches_in_graphs_of_any_size_touch_as_much(
    algorithm, form, circles, counting, monkeypatch
):
    monkeypatch.setattr(together, "takes_one_search", lambda *_: False)
    small, large = (
        touched_by_two_groups(calls(algorithm, form, counting(graph))) for graph in circles
    )
    assert small == large > 0


@pytest.mark.parametrize(("algorithm", "form"), tiers.few(JOBS, 5))
def test_parts_of_equal_searches_in_graphs_of_any_size_touch_as_much(
    algorithm, form, circles, counting, tmp_path
):
    folders = [tmp_path / "small", tmp_path / "large"]
    for folder in folders:
        folder.mkdir()
    pairs = zip(circles, folders, strict=True)
    small, large = (
        touched_by_two_groups(calls(algorithm, form, counting(graph), folder))
        for graph, folder in pairs
    )
    assert small == large > 0


def test_searches_for_pairs_end_at_their_targets():
    graph = random_graph(5, 3000, 9000)
    random = np.random.default_rng(6)
    pairs = random.choice(graph.ids, (2, 500))
    whole, short = (
        sssp_pairs(graph, *pairs, strategy=name) for name in ("near_far_per_thread", "short_search")
    )
    equal(short, whole)
    near = graph_from_edges(np.arange(20000), np.arange(1, 20001), np.ones(20000, np.int64))
    table = pair_table(np.arange(0, 19000, 10), np.arange(3, 19003, 10))
    plan = SSSP.plan_multi_source(
        near, n_sources=1900, result="pairs", strategy="auto", sample=table.sample()
    )
    assert plan.strategy.name == "short_search"
    assert "vertices that a search reaches: 4;" in plan.why


@pytest.mark.parametrize("algorithm", MANY)
def test_a_search_ends_at_the_limit_of_its_source(algorithm):
    graph = graph_from_edges(np.arange(100), np.arange(1, 101), np.ones(100, np.int64))
    sources, limits = np.array([3, 10, 40]), np.array([20, 1, 5])
    plan = REGISTRIES[algorithm].plan_multi_source(
        graph,
        n_sources=3,
        result="distances",
        strategy="short_search",
        limit=20,
        forms=("sparse",),
        limits=SourceValues(sources, limits),
    )
    found = plan.run(sources[::-1])
    assert found.limits == [5, 1, 20]
    assert found.distance.sizes.tolist() == [6, 2, 21]
    assert certify_many(graph, sources[::-1], found.distance, found.limits).valid
    assert not certify_many(graph, sources[::-1], found.distance, 20).valid


LIMITED = {
    "bfs": {
        "distances": {"max_depth": 2},
        "predecessors": {"max_depth": 2},
        "summary": {"max_depth": 2},
        "levels": {"max_depth": 3},
    },
    "sssp": {
        "distances": {"cutoff": 4},
        "predecessors": {"cutoff": 4},
        "summary": {"cutoff": 4},
        "isochrones": {"cutoffs": [1, 4]},
        "reachable": {"cutoff": 3},
    },
}
for name in LIMITED:
    LIMITED[name] |= {"targets": {}, "distances to targets": {}, "pairs": {}, "paths": {}}
LIMITED["bfs"]["within"] = LIMITED["sssp"]["within"] = {"cutoffs": [1, 2]}


def totals(parts):
    return sum(part["edges"] for part in parts), sum_histograms(
        *(part["distances"] for part in parts)
    )


def asked_of_job(graph, algorithm: str, result: str, folder) -> dict:
    options = {
        "algorithm": algorithm,
        "report": False,
        "batch_size": 10,
        **LIMITED[algorithm][result],
    }
    options["result"] = result.partition(" ")[0]
    if result in ("pairs", "paths"):
        options["pairs"] = folder / "pairs.parquet"
        pd.DataFrame({"source": graph.ids[:60].repeat(3), "target": graph.ids[-180:]}).to_parquet(
            options["pairs"]
        )
    else:
        options["sources"] = graph.ids[::7].tolist()
    if result.endswith("targets"):
        options["targets"] = graph.ids[[5, 3, 5, 250]].tolist()
    return options


def assert_written_alike(one, other) -> None:
    written = [
        {path.name: path.read_bytes() for path in each.path.glob("part-*")} for each in (one, other)
    ]
    assert written[0] == written[1]
    assert one.manifest["digest"] == other.manifest["digest"]


def limited(few: int) -> list:
    return tiers.few([(name, result) for name in LIMITED for result in LIMITED[name]], few)


@pytest.mark.parametrize(("algorithm", "result"), limited(8))
def test_the_job_writes_what_whole_searches_give(algorithm, result, tmp_path):
    graph = random_graph(7, 300, 700, fractions=True)
    options = asked_of_job(graph, algorithm, result, tmp_path)
    names = "short_search", MANY[algorithm][2]
    short, whole = (
        run_job(graph, output=tmp_path / name, strategy=name, **options) for name in names
    )
    assert_written_alike(short, whole)
    assert totals(short.manifest["parts"]) == totals(whole.manifest["parts"])


@on_a_device
@pytest.mark.parametrize(("algorithm", "result"), limited(2))
def test_the_job_on_a_gpu_writes_what_it_writes_on_a_cpu(algorithm, result, tmp_path):
    graph = random_graph(7, 300, 700, fractions=True)
    options = asked_of_job(graph, algorithm, result, tmp_path) | {"strategy": "short_search"}
    expected = run_job(graph, output=tmp_path / "cpu", **options)
    with running(next(iter(MODES.values()))):
        assert_written_alike(
            run_job(graph.to("cuda"), output=tmp_path / "cuda", **options), expected
        )


@pytest.mark.parametrize("n", [60, 256, 257, 5_000_000])  # one digit, one and a bit, and three
def test_rows_of_many_vertices_are_sorted(n):
    row = np.random.default_rng(n).permutation(n).astype(np.int32)[:3000]
    expected = np.sort(row)
    cpu._sort(row)
    assert np.array_equal(row, expected)


def test_a_group_of_a_job_holds_as_many_sources_as_their_reach_allows():
    n = 20_000  # whole searches from so many sources would be a part each 13,000
    graph = graph_from_edges(np.arange(n), np.arange(1, n + 1), np.ones(n))
    argv = [
        "edges",
        "--algorithm",
        "sssp",
        "--all-sources",
        "--cutoff",
        "3",
        "--result",
        "summary",
        "--output",
        "out",
    ]
    assert prepare(read_settings(*parse_flags(argv)), graph_in_memory=graph).plan.group == SOURCES
