"""Graphs, plans and results as text and HTML."""

import html.parser

import numpy as np
import pytest

from kepler_traverse import (
    graph_from_edges,
    plan_bfs,
    plan_bfs_many,
    plan_sssp,
    plan_sssp_many,
    strategies,
)
from tests.support.graphs import NAMED, build, weights_for

ROWS = NAMED["power law"]
GRAPH = build(ROWS, weights_for(ROWS, seed=3))


class Cells(html.parser.HTMLParser):
    """The texts of an HTML table; other tags than those of a table are refused."""

    def __init__(self, text):
        super().__init__()
        self.texts = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        assert tag in ("table", "caption", "tbody", "tr", "th", "td")
        assert all(name == "style" and value == "text-align: left" for name, value in attrs)

    def handle_data(self, data):
        self.texts.append(data)


def rows_of(text):
    caption, *cells = Cells(text).texts
    return caption, dict(zip(cells[::2], cells[1::2], strict=True))


def test_the_table_of_a_graph_says_what_it_holds():
    graph = graph_from_edges(
        {"start": [1, 2, 3, 3], "end": [2, 3, 3, 2], "length": [7, 8, 9, 10]},
        src="start", dst="end", weight="length", directed=False,
    )  # fmt: skip
    caption, rows = rows_of(graph._repr_html_())
    assert caption == "Graph"
    assert rows["vertices"] == "3"
    assert rows["edges"] == "4 stored, each edge in both directions"
    assert rows["direction"] == "undirected"
    assert rows["weights"] == "integers as float32, 16 bytes"
    assert rows["ids"] == "int64: 1, 2, 3"
    assert rows["memory"].endswith(" on cpu")
    assert rows["columns"] == "start, end, length"
    assert rows["dropped"] == "1 self-loops, 2 parallel edges"


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", "a&b", "\x1b[31mred", "\u202ereversed", '"quoted"']
)
def test_ids_and_columns_of_a_graph_are_escaped(name):
    text = graph_from_edges(
        {name: ["x", name], "to": [name, "y"]}, src=name, dst="to"
    )._repr_html_()
    _, rows = rows_of(text)
    assert not set("\x1b\u202e") & set(text)
    shown = name.replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")
    assert shown in rows["ids"]
    assert rows["columns"] == f"{shown}, to"


def test_long_ids_and_many_of_them_are_shortened():
    _, rows = rows_of(graph_from_edges(["a" * 1000, "b", "c"], ["b", "c", "d"])._repr_html_())
    assert rows["ids"] == f"strings: {'a' * 60}..., b, c, ..."


@pytest.mark.parametrize("weighted", [False, True])
def test_results_show_types_and_no_arrays(weighted):
    plan = (plan_sssp if weighted else plan_bfs)(GRAPH)
    result = plan(3)
    kind = "float32" if weighted else "int32"
    assert repr(result).startswith(
        f"<Traversal: algorithm {plan.algorithm}, source number {result.source}, "
        f"distance {kind} of shape ({GRAPH.n_vertices},) on cpu, predecessor int32, "
    )
    caption, rows = rows_of(result._repr_html_())
    assert (caption, rows["strategy"]) == ("Traversal", plan.strategy.name)
    many = (plan_sssp_many if weighted else plan_bfs_many)(GRAPH, n_sources=2).run([0, 1])
    assert f"sources 2, distance {many.distance.dtype} of shape (2, {GRAPH.n_vertices})" in repr(
        many
    )
    assert rows_of(many._repr_html_())[1]["predecessor"] == "no"


def test_a_plan_explains_strategy_reason_alternatives_and_memory():
    plan = plan_sssp_many(GRAPH, n_sources=300, cutoff=50)
    text = plan.explain()
    first, strategy, memory, why, *others = text.splitlines()
    assert first == f"sssp from 300 sources, up to distance 50, on {GRAPH!r}"
    assert strategy == f"strategy: {plan.strategy.name}: {plan.strategy.rationale}"
    assert memory.startswith("memory: ")
    assert f" per group of {plan.group:,}, in addition to the graph (" in memory
    ranked = plan.ranked(300)
    assert why == f"why: the fastest of {len(ranked)} that fit, by estimate"
    assert f"sums: {plan.sums.dtype}" in others
    table = others[others.index("") + 1 :]
    assert table[0].split() == [
        "strategy",
        "estimated",
        "sources",
        "per",
        "group",
        "memory",
        "per",
        "group",
    ]
    for candidate, line in zip(ranked, table[1:], strict=False):
        marks = line[:2].strip()
        assert marks == ("*" if candidate.name == plan.strategy.name else "")
        assert line[2:].split()[:4] == [
            candidate.name,
            f"{candidate.seconds:.3g}",
            "s",
            f"{candidate.group:,}",
        ]


def test_an_explanation_lists_what_does_not_fit_and_what_was_measured():
    plan = plan_bfs_many(GRAPH, n_sources=600)
    list(plan.iter_groups(np.arange(600)))
    text = plan.explain()
    assert all(f"measured: {line}" in text.splitlines() for line in plan.measurements())
    assert "and by the measured time of earlier groups" in text
    needed = {each.name: each.nbytes for each in plan.ranked(600)}
    largest = max(needed, key=needed.get)
    small = plan_bfs_many(GRAPH, n_sources=600, memory=min(needed.values()))
    if largest not in {each.name for each in small.ranked(600)}:
        assert f"left out: {largest}: strategy {largest!r} needs " in small.explain()


def test_an_explanation_says_why_strategies_cannot_take_negative_weights():
    graph = graph_from_edges([0, 1, 2, 3], [1, 2, 3, 0], [1.0, -0.5, 2.0, 3.0])
    text = plan_sssp_many(graph, n_sources=50).explain()
    assert "left out: near_far_per_thread: cannot take negative weights" in text
    assert "why: no other strategy fits" in text
    assert "left out: near_far: cannot take negative weights" in plan_sssp(graph).explain()


@pytest.mark.parametrize("strategy", ["bit_parallel", "source_per_thread"])
def test_an_explanation_says_that_the_caller_has_named_the_strategy(strategy):
    text = plan_bfs_many(GRAPH, n_sources=50, strategy=strategy).explain()
    assert "why: strategy= names it" in text
    assert f"* {strategy}" in text


def test_plans_of_one_source_explain_themselves():
    assert "why: one source has no group" in plan_bfs_many(GRAPH, n_sources=1).explain()
    plan = plan_bfs(GRAPH)
    text = plan.explain()
    assert text.splitlines()[0] == f"bfs from one source, on {GRAPH!r}"
    assert "why: the first of the defaults that fits the graph" in text
    names = set(strategies()["name"])
    (alternatives,) = [line for line in text.splitlines() if line.startswith("alternatives")]
    assert set(alternatives.partition(": ")[2].split(", ")) <= names - {plan.strategy.name}
    assert "why: strategy= names it" in plan_bfs(GRAPH, strategy="queue").explain()
    assert (
        repr(plan)
        == f"<Plan: bfs, {plan.strategy.name}, {repr(plan).split(', ')[2]}, on {GRAPH!r}>"
    )
    assert repr(plan_bfs_many(GRAPH, n_sources=9)).startswith("<MultiSourcePlan: bfs, ")


def test_the_library_logs_what_it_does_and_prints_nothing(caplog, capfd):
    with caplog.at_level("DEBUG", "kepler_traverse"):
        graph = graph_from_edges(np.array([0, 1]), np.array([1, 2]))
        plan = plan_bfs_many(graph, n_sources=2)
        list(plan.iter_groups([0, 1]))
    records = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == "kepler_traverse"
    ]
    assert ("INFO", f"built {graph!r}") in records
    assert ("INFO", f"bfs from 2 sources: {plan.why.partition('; measured')[0]}") in records
    assert [
        level
        for level, text in records
        if f"{plan.strategy.name}: searched from 2 sources in" in text
    ] == ["DEBUG"]
    assert capfd.readouterr() == ("", "")
