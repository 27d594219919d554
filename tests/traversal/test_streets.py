"""Sums over the streets within reach, against hops over streets that are cut into pieces of length 1."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import InputError, bfs_many, graph_from_edges, sssp_many
from kepler_traverse.errors import EdgeListWarning
from kepler_traverse.kinds.question import Question
from kepler_traverse.kinds.records import records_of_group
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from kepler_traverse.sssp import REGISTRY
from pipelines.batch_sources import main
from tests.support import oracle
from tests.support.graphs import edge_rows

CUTOFFS = [0, 3, 4, 11]


@st.composite
def tables(draw):
    rows = draw(edge_rows(max_vertices=9, max_rows=20))
    sizes = {"min_size": len(rows), "max_size": len(rows)}
    return pd.DataFrame(
        {
            "src": [u for u, _ in rows],
            "dst": [v for _, v in rows],
            "weight": draw(st.lists(st.integers(0, 6), **sizes)),
            "metres": draw(st.lists(st.integers(0, 60), **sizes)),
            "shops": draw(st.lists(st.sampled_from([0.0, 0.5, 3.0]), **sizes)),
        }
    )


def kept_rows(table, directed):
    """Return the rows that are edges: of parallel ones the first of the cheapest, and no loop."""
    kept = {}
    for row in table.sort_values("weight", kind="stable").itertuples():
        ends = (row.src, row.dst) if directed else tuple(sorted((row.src, row.dst)))
        if row.src != row.dst:
            kept.setdefault(ends, row)
    return list(kept.values())


def expected(table, source, cutoff, *, directed, against=False):
    """Return the sums of metres and shops over pieces of length 1 of which an end is nearer than
    the cutoff, and over streets without a length of which an end is within it.
    """
    hops = []
    pieces = []
    rows = kept_rows(table, directed)
    for row in rows:
        inner = [-1000 * (row.Index + 1) - i for i in range(1, row.weight)]
        stops = [row.src, *inner, row.dst]
        if row.weight == 0:
            stops = [row.src, row.dst]
        steps = list(pairwise(stops))
        pieces.append((row, steps))
        length = min(row.weight, 1)
        hops += [(v, u, length) if against else (u, v, length) for u, v in steps]
    neighbors = {source: {}} | oracle.edges_of(hops, directed)
    distance = oracle.dijkstra(neighbors, source, np.float64)
    totals = np.zeros(2)
    for row, steps in pieces:
        length = min(row.weight, 1)
        for u, v in steps:
            entered = [u, v] if not directed else [v if against else u]
            if min(distance.get(end, np.inf) for end in entered) + length <= cutoff:
                totals += np.array([row.metres, row.shops]) / len(steps)
    return totals


@pytest.mark.filterwarnings("ignore:result='streets' adds up no part")
@pytest.mark.parametrize("direction", ["out", "in"])
@pytest.mark.parametrize("directed", [True, False])
def test_sums_are_those_of_streets_in_pieces(directed, direction):
    @given(tables())
    def check(table):
        graph = graph_from_edges(table, weight="weight", directed=directed, edge_ids=True)
        sources = sorted({*table.src, *table.dst})
        found = sssp_many(
            graph,
            sources,
            result="streets",
            cutoffs=CUTOFFS,
            along=table[["metres", "shops"]],
            direction=direction,
        )
        assert list(found.columns) == ["source", "cutoff", "metres", "shops"]
        assert found["source"].tolist() == np.repeat(sources, len(CUTOFFS)).tolist()
        for row in found.itertuples():
            against = direction == "in"
            own = expected(table, row.source, row.cutoff, directed=directed, against=against)
            assert [row.metres, row.shops] == pytest.approx(own, rel=1e-12)

    check()


def test_a_street_of_two_directions_in_one_row_counts_once():
    table = pd.DataFrame({"src": [1], "dst": [2], "there": [4.0], "back": [8.0], "metres": [80]})
    graph = graph_from_edges(table, weight="there", reverse_weight="back", edge_ids=True)
    found = sssp_many(graph, [1, 2], result="streets", cutoffs=[3, 4, 6], along=table[["metres"]])
    assert found["metres"].tolist() == [60.0, 80.0, 80.0, 30.0, 40.0, 60.0]


def test_hops_cut_no_street():
    table = pd.DataFrame({"src": [1, 2, 3], "dst": [2, 3, 4], "metres": [10, 20, 40]})
    graph = graph_from_edges(table, directed=False, edge_ids=True)
    found = bfs_many(graph, [1, 3], result="streets", cutoffs=[0, 1, 2], along=table[["metres"]])
    assert found["metres"].tolist() == [0, 10, 30, 0, 60, 70]


def test_edges_that_count_nothing_are_said_once(tmp_path, capsys):
    rows = [(1, 2, 3, 40), (1, 2, 5, 60), (2, 1, 3, 40), (2, 2, 1, 9), (2, 3, 1, 20)]
    table = pd.DataFrame(rows, columns=["src", "dst", "weight", "width"])
    graph = graph_from_edges(table, weight="weight", directed=False, edge_ids=True)
    text = "adds up no part of 4 parallel edges and 1 self-loop, which the graph does not have"
    asked = {"result": "streets", "cutoffs": [9], "along": table[["width"]]}
    with pytest.warns(EdgeListWarning, match=text) as warned:
        assert sssp_many(graph, [1], **asked)["width"].tolist() == [60.0]
    assert [each.filename for each in warned] == [__file__]
    plain = graph_from_edges(table[::4], weight="weight", directed=False, edge_ids=True)
    assert sssp_many(plain, [1], **asked | {"along": table[["width"]][::4]})["width"].tolist() == [
        60
    ]

    table.to_parquet(tmp_path / "rows.parquet")
    words = [
        str(tmp_path / "rows.parquet"),
        "--undirected",
        "--algorithm",
        "sssp",
        "--result",
        "streets",
    ]
    words += ["--sources", "1", "--cutoffs", "9", "--along", "width", "--device", "cpu"]
    assert main([*words, "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err.count(text) == 1


def test_every_form_of_distances_and_any_group_gives_the_same_bits():
    rng = np.random.default_rng(3)
    n = 300
    table = pd.DataFrame(
        {
            "src": np.arange(n - 1),
            "dst": np.arange(1, n) - rng.integers(1, 5, n - 1).clip(max=np.arange(1, n)),
            "weight": rng.random(n - 1).astype(np.float32),
            "metres": rng.random(n - 1),
        }
    )
    graph = graph_from_edges(table, weight="weight", directed=False, edge_ids=True)
    kind = RESULT_KINDS["streets"]
    asked = {"cutoffs": [0.5, 1.25], "along": table[["metres"]]}
    options = kind.options_class(**asked).checked(kind, graph, "sssp")
    question = Question.of(kind, "sssp", limit=None, limits=None, options=options)
    with pytest.warns(EdgeListWarning, match="74 self-loops"):
        frame = sssp_many(graph, "all", result="streets", **asked)
    for strategy in ("short_search", "near_far_per_thread", "near_far"):
        plan = REGISTRY.plan_multi_source(
            graph, n_sources=n, strategy=strategy, **question.of_plan()
        )
        sums = [
            records_of_group(question.asked(graph, plan.query), group).values["along metres"]
            for group in plan.iter_groups(np.arange(graph.n_vertices))
        ]
        assert np.concatenate(sums).tobytes() == frame["metres"].to_numpy().tobytes()


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        ({}, {"along": None}, r"needs along, the columns of the edge list to add up"),
        ({}, {"cutoffs": None}, r"needs cutoffs, "),
        ({"edge_ids": False}, {}, "the graph does not know its rows"),
        ({"closed": [2]}, {}, "closed vertex, through which no path leads"),
        ({"weight": "cost"}, {}, "weights of 0 or more"),
        ({}, {"along": {"cutoff": [1, 2]}}, "has a column of this name"),
        ({}, {"along": {"metres": [1e308, 1e308]}}, "exceeds float64"),
        ({}, {"along": {"metres": [1, np.nan]}}, r"along\['metres'\]"),
    ],
)
def test_wrong_options_are_refused(graph, options, message):
    table = pd.DataFrame({"src": [1, 2], "dst": [2, 3], "weight": [1, 2], "cost": [1, -2]})
    graph = {"weight": "weight", "edge_ids": True} | graph
    options = {"cutoffs": [1], "along": {"metres": [10, 20]}} | options
    given = {name: value for name, value in options.items() if value is not None}
    with pytest.raises(InputError, match=message):
        sssp_many(graph_from_edges(table, **graph), [1], result="streets", **given)
