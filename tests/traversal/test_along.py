"""Sums of columns along the paths of tables and of nearest vertices, compared with sums over the
canonical paths of a search in plain Python.
"""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import (
    InputError,
    bfs_many,
    bfs_pairs,
    graph_from_edges,
    paths,
    sssp_many,
    sssp_pairs,
)
from kepler_traverse.errors import CertificateError, PrecisionError
from kepler_traverse.hierarchy import canonical, column_sums
from kepler_traverse.kinds import along as along_module
from kepler_traverse.kinds.question import Question, Targets, check_options
from kepler_traverse.kinds.records import records_of_group
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from kepler_traverse.sssp import REGISTRY as SSSP
from tests.support.devices import FIRST, frames_on_pandas, on_a_device, running
from tests.support.oracle import canonical_search, walk_back


class Case:
    """A graph with many ties, columns of its rows, and the sums of a plain search."""

    def __init__(self, seed, directed, *, closed=(), hops=False, reverse=False):
        rng = np.random.default_rng(seed)
        size = 80
        self.table = pd.DataFrame(
            {
                "src": rng.integers(0, 26, size) * 3,
                "dst": rng.integers(0, 26, size) * 3,
                "weight": rng.integers(1, 4, size),
                "metres": rng.integers(-5, 2**40, size),
                "toll": rng.random(size) / 7 * 10.0 ** rng.integers(-9, 9, size),
            }
        )
        self.along = self.table[["metres", "toll"]]
        self.directed = directed
        self.ids = sorted({*self.table.src, *self.table.dst})
        self.closed = [self.ids[i] for i in closed]
        self.hops = hops
        self.reverse = reverse
        self.rows = {}
        for row, (u, v, weight) in enumerate(
            zip(self.table.src, self.table.dst, self.table.weight, strict=True)
        ):
            for ends in [(u, v)] if directed else [(u, v), (v, u)]:
                ends = ends[::-1] if reverse else ends
                # of parallel rows the cheapest is the edge, also for hops
                if u != v and weight < self.rows.get(ends, (np.inf, 0))[0]:
                    self.rows[ends] = (weight, row)
        edges = {ends: 1 if hops else weight for ends, (weight, _) in self.rows.items()}
        self.found = {s: canonical_search(edges, s, self.closed) for s in self.ids}

    def graph(self):
        options = {"closed": self.closed} if self.closed else {}
        return graph_from_edges(
            self.table, weight="weight", directed=self.directed, edge_ids=True, **options
        )

    def sums(self, source, target):
        """Distance, metres and toll; None if there is no path."""
        distance, before = self.found[source]
        if target not in distance:
            return None
        path = walk_back(before, target)
        metres, toll = 0, 0.0
        for ends in pairwise(path):
            row = self.rows[ends][1]
            metres += int(self.table.metres[row])
            toll += float(self.table.toll[row])
        return distance[target], metres, toll


CASES = {
    "directed": Case(1, True),
    "undirected": Case(2, False),
    "closed": Case(3, True, closed=(1, 4, 9, 13)),
    "undirected and closed": Case(4, False, closed=(0, 5, 6, 20)),
    "hops": Case(5, True, hops=True),
    "in": Case(6, True, reverse=True),
    "in and closed": Case(7, True, closed=(2, 5, 8), reverse=True),
}
EACH = pytest.mark.parametrize("name", list(CASES))


def functions_of(case):
    options = {"direction": "in"} if case.reverse else {}
    return (bfs_many, bfs_pairs, options) if case.hops else (sssp_many, sssp_pairs, options)


def triple(row):
    """The three numbers of a row of a frame, None if they are null; all three are or none is."""
    values = (row.distance, row.metres, row.toll)
    missing = [pd.isna(value) for value in values]
    assert len(set(missing)) == 1
    return None if missing[0] else values


@EACH
@pytest.mark.parametrize("engine", ["search", "hierarchy"])
def test_sums_of_tables_are_those_of_the_search(name, engine):
    case = CASES[name]
    graph = case.graph()
    many, of_pairs, options = functions_of(case)
    if engine == "hierarchy":
        graph.hierarchy("hops" if case.hops else "weights")
    origins = case.ids[::2] * 2
    destinations = (case.ids[1:] + case.ids)[: len(origins)]
    frame = of_pairs(graph, origins, destinations, along=case.along, **options)
    expected = [case.sums(*ends) for ends in zip(origins, destinations, strict=True)]
    assert list(map(triple, frame.itertuples())) == expected
    assert frame.drop(columns=["metres", "toll"]).equals(
        of_pairs(graph, origins, destinations, **options)
    )
    one = of_pairs(graph, [case.ids[3]], [case.ids[7]], along=case.along, **options)
    assert triple(one.iloc[0]) == case.sums(case.ids[3], case.ids[7])
    sources = [case.ids[i] for i in (5, 0, 9, 5)]
    targets = [case.ids[i] for i in (7, 5, 12, 0)]
    frame = many(graph, sources, result="targets", targets=targets, along=case.along, **options)
    assert list(map(triple, frame.itertuples())) == [
        case.sums(s, t) for s in sources for t in targets
    ]
    for chosen in (targets, None):
        made = many(graph, sources, result="matrix", targets=chosen, along=case.along, **options)
        plain = many(graph, sources, result="matrix", targets=chosen, **options)
        np.testing.assert_array_equal(made["distance"], plain)
        for i, s in enumerate(sources):
            for j, t in enumerate(targets if chosen else case.ids):
                _, metres, toll = case.sums(s, t) or (0, 0, 0.0)
                assert (made["metres"][i, j], made["toll"][i, j]) == (metres, toll)


def adding_up(monkeypatch):
    """Let hierarchies add up, however few the sources are; return a list of what they have done."""
    monkeypatch.setattr(along_module, "_MIN_SOURCES_TO_BUILD", 1)
    done = []
    for function in ("_part_above", "sum_entries"):
        made = getattr(column_sums, function)

        def counted(*arguments, made=made, function=function):
            done.append(function)
            return made(*arguments)

        monkeypatch.setattr(column_sums, function, counted)
    return done


@EACH
def test_sums_over_a_hierarchy_are_those_of_the_search(name, monkeypatch):
    """Of floats these are multiples of a power of two, whose sums have no order."""
    case = CASES[name]
    graph = case.graph()
    many, of_pairs, options = functions_of(case)
    graph.hierarchy("hops" if case.hops else "weights")
    quarters = case.table.metres % 97 * 0.25 - 3
    along = {"metres": case.table.metres, "toll": quarters}
    matrix = {"result": "matrix", **options}
    walked = many(graph, case.ids, along=along, **matrix)
    done = adding_up(monkeypatch)
    for targets in (case.ids[::-1], None):
        made = many(graph, case.ids, targets=targets, along=along, **matrix)
        order = slice(None, None, -1 if targets else 1)
        for column, values in walked.items():
            np.testing.assert_array_equal(made[column][:, order], values)
    assert set(done) == {"_part_above", "sum_entries"}
    ends = case.ids[::2], case.ids[1::2]
    frame = of_pairs(graph, *ends, along={"metres": case.table.metres}, **options)
    for row, target in zip(frame.itertuples(), ends[1], strict=True):
        expected = case.sums(row.source, target)
        metres = None if pd.isna(row.metres) else (row.distance, row.metres)
        assert metres == (None if expected is None else expected[:2])


def test_a_lattice_of_ties_is_added_up_along_canonical_paths(monkeypatch):
    side = 23
    at = np.arange(side * side).reshape(side, side)
    src = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    dst = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    mixed = np.random.default_rng(2).permutation(side * side)
    table = pd.DataFrame({"src": mixed[src], "dst": mixed[dst], "weight": 1 + (src % 7 == 0)})
    graph = graph_from_edges(table, weight="weight", directed=False, edge_ids=True)
    asked = {"result": "targets", "targets": list(range(3, side * side, 11))}
    along = {"metres": 2 ** (np.arange(src.size) % 40)}
    sources = list(range(20))
    walked = sssp_many(graph, sources, along=along, **asked)
    graph.hierarchy()
    done = adding_up(monkeypatch)
    assert sssp_many(graph, sources, along=along, **asked).equals(walked)
    assert done
    asked["along"] = along
    swept = asked | {"strategy": "hierarchy_sweep"}
    assert sssp_many(graph, sources, **swept).equals(walked)
    limits = [12, 30] * 10
    for options in (asked, swept):
        for cutoff in (12, limits):
            limited = sssp_many(graph, sources, cutoff=cutoff, **options)
            is_near = walked.distance <= np.repeat(np.broadcast_to(cutoff, 20), len(walked) // 20)
            assert limited[is_near].equals(walked[is_near])
            assert limited[~is_near][["distance", "metres"]].isna().all(axis=None)


def test_where_ties_would_make_a_hierarchy_large_paths_are_walked(monkeypatch):
    side = 24
    at = np.arange(side * side).reshape(side, side)
    src = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    dst = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    table = pd.DataFrame({"src": src, "dst": dst, "metres": src % 9})
    graph = graph_from_edges(table, directed=False, edge_ids=True)
    asked = {"result": "targets", "targets": [5, 70], "along": table[["metres"]]}
    walked = bfs_many(graph, [0, 9], **asked)
    graph.hierarchy("hops")
    monkeypatch.setattr(canonical, "_FEW_PAIRS", 1)
    done = adding_up(monkeypatch)
    assert bfs_many(graph, [0, 9], **asked).equals(walked)
    assert not done


def test_what_pruned_labels_leave_adds_nothing_up(monkeypatch):
    """Where vertices have many edges, contraction would never end."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.integers(0, 300, (6000, 2)), columns=["src", "dst"])
    table = table.assign(metres=rng.integers(0, 9, 6000))
    graph = graph_from_edges(table, directed=False, edge_ids=True)
    asked = {"result": "targets", "targets": [5, 70], "along": table[["metres"]]}
    walked = bfs_many(graph, [0, 9], **asked)
    graph.labels("hops")
    monkeypatch.setattr(canonical, "_FEW_PAIRS", 1)
    done = adding_up(monkeypatch)
    assert bfs_many(graph, [0, 9], **asked).equals(walked)
    assert not done


def test_columns_that_change_between_calls_are_added_up_anew():
    case = CASES["directed"]
    graph = case.graph()
    along = {"metres": case.table.metres.to_numpy(copy=True)}
    ask = {"result": "matrix", "along": along}
    first = sssp_many(graph, case.ids, **ask)["metres"]
    along["metres"] += 0
    np.testing.assert_array_equal(sssp_many(graph, case.ids, **ask)["metres"], first)
    along["metres"] *= 2
    np.testing.assert_array_equal(sssp_many(graph, case.ids, **ask)["metres"], 2 * first)


def test_what_has_an_order_of_addition_or_no_length_is_walked(monkeypatch):
    case = CASES["directed"]
    graph = case.graph()
    graph.hierarchy()
    done = adding_up(monkeypatch)
    sssp_pairs(graph, case.ids, case.ids, along=case.along)  # tolls are rounded when they add up
    table = case.table.assign(weight=case.table.weight % 2)
    flat = graph_from_edges(table, weight="weight", edge_ids=True)
    flat.hierarchy()
    sssp_pairs(flat, case.ids, case.ids, along=table[["metres"]])
    assert not done


@EACH
def test_sums_to_nearest_vertices_are_those_of_the_search(name):
    case = CASES[name]
    graph = case.graph()
    many, _, options = functions_of(case)
    sources = case.ids[2:16:3]
    columns = {"along": case.along, **options}
    for frame in (
        many(graph, sources, result="nearest", **columns),
        many(graph, sources, result="nearest", k=2, **columns),
        many(graph, sources, result="nearest", k=2, groups=[1, 2, 1, 2, 1], **columns),
    ):
        assert len(frame) > 20
        for row in frame.itertuples():
            assert triple(row) == case.sums(row.source, row.vertex)
    targets = case.ids[1:20:4]
    frame = many(graph, sources, result="nearest", k=2, targets=targets, **columns)
    plain = many(graph, sources, result="nearest", k=2, targets=targets, **options)
    assert frame.drop(columns=["metres", "toll"]).equals(plain)
    for row in frame.itertuples():
        assert triple(row) == case.sums(row.source, row.target)


def test_sums_are_those_of_paths_over_edges_of_length_zero():
    rng = np.random.default_rng(8)
    table = pd.DataFrame(
        {
            "src": rng.integers(0, 20, 90),
            "dst": rng.integers(0, 20, 90),
            "w": rng.integers(0, 3, 90),
        }
    )
    graph = graph_from_edges(table, weight="w", edge_ids=True)
    along = {"metres": np.arange(90), "cents": rng.random(90)}
    ends = [(s, t) for s in range(0, 20, 3) for t in range(20)]
    ends = [each for each in ends if set(each) <= set(graph.ids.tolist())]
    frame = sssp_pairs(graph, ends, along=along)
    last = paths(graph, ends, along=along).groupby("pair").last()
    reached = frame[frame.distance.notna()]
    assert reached.metres.tolist() == last.metres.tolist()
    assert reached.cents.tolist() == last.cents.tolist()
    nearest = sssp_many(graph, [0, 7, 11], result="nearest", along=along)
    pairs = [*zip(nearest.source, nearest.vertex, strict=True)]
    assert (
        nearest.metres.tolist()
        == paths(graph, pairs, along=along).groupby("pair").metres.last().tolist()
    )


def test_a_limit_leaves_sums_out():
    case = CASES["directed"]
    frame = sssp_pairs(
        case.graph(), [case.ids[0]] * len(case.ids), case.ids, cutoff=4, along=case.along
    )
    for row in frame.itertuples():
        expected = case.sums(row.source, row.target)
        assert triple(row) == (None if expected is None or expected[0] > 4 else expected)


def test_streams_and_empty_tables():
    case = CASES["undirected"]
    graph = case.graph()
    options = {"result": "targets", "targets": case.ids[:5], "along": case.along}
    whole = sssp_many(graph, case.ids, **options)
    assert pd.concat(sssp_many(graph, case.ids, stream=True, **options), ignore_index=True).equals(
        whole
    )
    empty = sssp_many(graph, [], **options)
    assert empty.dtypes.equals(whole.dtypes)
    empty = sssp_pairs(graph, [], [], along=case.along)
    assert list(empty.columns) == ["source", "target", "distance", "metres", "toll"]


@pytest.mark.parametrize(
    ("along", "message"),
    [
        ({"metres": [1, 2]}, r"along\['metres'\] has 2 values, not 80"),
        ({"distance": range(80)}, r"along\['distance'\]: the result has a column of this name"),
        ({"metres": ["far"] * 80}, r"along\['metres'\] must hold numbers"),
        ([1, 2], "along must be a table"),
        ({"metres": [np.nan] * 80}, "cannot be summed"),
    ],
)
def test_wrong_columns_are_refused(along, message):
    graph = CASES["directed"].graph()
    with pytest.raises(InputError, match=message):
        sssp_pairs(graph, [0], [3], along=along)
    with pytest.raises(InputError, match=message):
        sssp_many(graph, [0], result="nearest", along=along)


def test_what_takes_no_sums_says_so():
    case = CASES["directed"]
    with pytest.raises(InputError, match=r"along is for result .*not distances"):
        sssp_many(case.graph(), [0], along=case.along)
    graph = graph_from_edges(case.table, weight="weight")
    with pytest.raises(InputError, match="build it with edge_ids=True"):
        sssp_pairs(graph, [0], [3], along=case.along)
    huge = {"metres": np.full(80, 2**62)}
    with pytest.raises(PrecisionError, match="may exceed int64"):
        sssp_many(case.graph(), case.ids, result="matrix", along=huge)
    with pytest.raises(PrecisionError, match="exceeds float64"):
        sssp_many(case.graph(), case.ids, result="matrix", along={"metres": np.full(80, 1e308)})


def test_the_certificate_sees_a_wrong_sum(monkeypatch):
    """A fault that is planted: the column that is summed is not the one that is checked."""
    case = CASES["directed"]
    right = along_module.sum_to_targets

    def wrong(source, targets, limit, stamp, walks, columns, tree):
        found = right(source, targets, limit, stamp, walks, columns, tree)
        tree.integers[tree.known[tree.n_known[0] - 1], 0] += 1
        return found

    monkeypatch.setattr(along_module, "sum_to_targets", wrong)
    with pytest.raises(CertificateError, match="the sums along the path to vertex"):
        sssp_pairs(case.graph(), [case.ids[0]] * 9, case.ids[:9], along=case.along)


def test_the_certificate_sees_a_wrong_sum_of_a_hierarchy(monkeypatch):
    case = CASES["directed"]
    graph = case.graph()
    graph.hierarchy()
    adding_up(monkeypatch)
    right = column_sums.SumSweeps.at_targets

    def wrong(self, sources, lists):
        distance, totals = right(self, sources, lists)
        return distance, totals + 1

    asked = Question.of(
        RESULT_KINDS["targets"],
        "sssp",
        certify="all",
        limit=None,
        limits=None,
        options=check_options(
            RESULT_KINDS["targets"], graph, "sssp", {"along": case.table[["metres"]]}
        ),
        targets=Targets.of(graph, case.ids),
    )
    plan = SSSP.plan_multi_source(graph, n_sources=3, **asked.of_plan())
    making = asked.asked(graph, plan.query)
    for is_wrong in (False, True):
        if is_wrong:
            monkeypatch.setattr(column_sums.SumSweeps, "at_targets", wrong)
        group = plan.run([0, 4, 7])
        if not is_wrong:
            records_of_group(making, group)
            continue
        with pytest.raises(CertificateError, match="the sums along the path to vertex"):
            records_of_group(making, group)


@on_a_device
@pytest.mark.parametrize("name", ["directed", "undirected and closed", "in"])
def test_sums_on_a_gpu_are_those_of_a_cpu(name, monkeypatch):
    case = CASES[name]
    many, of_pairs, options = functions_of(case)
    graph = case.graph()
    sources = [case.ids[i] for i in (5, 0, 9)]
    columns = {"along": case.along, **options}
    asked = {"result": "targets", "targets": case.ids[::3], **columns}
    expected = many(graph, sources, **asked)
    nearest = many(graph, sources, result="nearest", **columns)
    pairs = of_pairs(graph, sources, case.ids[3:6], **columns)
    with running(FIRST), frames_on_pandas():
        there = graph.to("cuda")
        assert many(there, sources, **asked).equals(expected)
        assert many(there, sources, result="nearest", **columns).equals(nearest)
        assert of_pairs(there, sources, case.ids[3:6], **columns).equals(pairs)
        graph.hierarchy()
        done = adding_up(monkeypatch)
        columns["along"] = case.along[["metres"]]
        found = of_pairs(graph.to("cuda"), sources, case.ids[3:6], **columns)
        assert found.equals(pairs.drop(columns="toll"))
        assert done


def test_negative_weights_are_refused_where_distances_do_not_order_the_paths():
    table = pd.DataFrame({"src": [1, 1, 2, 3], "dst": [2, 3, 4, 4], "metres": [8, 3, 4, 9]})
    graph = graph_from_edges(table.assign(weight=[6, -1, 3, 9]), weight="weight", edge_ids=True)
    along = table[["metres"]]
    for call in (
        lambda: sssp_pairs(graph, [1], [3], along=along),
        *(
            lambda options=options: sssp_many(graph, [1], along=along, **options)
            for options in (
                {"result": "targets", "targets": [3]},
                {"result": "matrix", "targets": [3]},
                {"result": "nearest", "k": 1},
                {"result": "nearest", "k": 1, "targets": [3]},
            )
        ),
    ):
        with pytest.raises(InputError, match="needs weights of 0 or more"):
            call()
    # hops and one search from all sources have predecessors of their own
    assert bfs_pairs(graph, [1], [3], along=along).metres.tolist() == [3]
    nearest = sssp_many(graph, [1], result="nearest", along=along)
    assert nearest.metres.tolist() == [0, 8, 3, 12]
    route = paths(graph, ([1], [4]), along=along)
    assert route.metres.tolist() == [0, 3, 12]
