"""The example that plots frontier sizes and the time per level."""

import numpy as np
import pytest

from examples import levels as example
from kepler_traverse import graph_from_edges, plan_bfs
from kepler_traverse.cuda.kernel_trace import Iteration
from scripts import make_graphs
from tests.support.devices import on_a_device, orders, running

LATTICE = make_graphs.lattice(12, 15, 0.1, 1)


@pytest.fixture
def graph():
    return graph_from_edges(*LATTICE, directed=False)


def covered(spans):
    return [level for first, n, _ in spans for level in range(first, first + n)]


def test_the_example_draws_any_strategies_of_a_graph_in_one_page(tmp_path, capsys):
    make_graphs.write(tmp_path / "edges.parquet", *LATTICE)
    page = tmp_path / "levels.html"
    flags = [
        "--undirected",
        "--device",
        "cpu",
        "--source",
        "3",
        "--repeats",
        "2",
        "--output",
        str(page),
    ]
    assert (
        example.main([str(tmp_path / "edges.parquet"), "--strategies", "switch", "queue", *flags])
        == 0
    )
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in printed] == ["switch", "queue", str(page)]
    text = page.read_text()
    assert "vertices of the frontier" in text
    assert "queue (" in text
    assert "<script src" not in text  # all that it needs is in it
    assert "<link" not in text


def test_frontier_sizes_are_the_vertices_at_each_number_of_hops(graph):
    sizes = example.frontier_sizes(graph, 3)
    assert sizes.tolist() == np.bincount(plan_bfs(graph).run(3).distance).tolist()


@pytest.mark.parametrize("strategy", ["switch", "queue"])
def test_steps_and_depths_cover_every_level_once(graph, strategy):
    n_levels = example.frontier_sizes(graph, 3).size - 1
    by_depth = example.by_depth(graph, strategy, 3, n_levels, 1)
    assert covered(by_depth) == list(range(n_levels))
    assert covered(example.by_step(graph, strategy, 3))[:n_levels] == list(range(n_levels))


def test_the_finest_way_is_taken(graph, monkeypatch):
    n_levels = example.frontier_sizes(graph, 3).size - 1
    fine = [example.Span(level, 1, 1.0) for level in range(n_levels)]
    monkeypatch.setattr(example, "by_step", lambda *_: fine)
    assert example.time_levels(graph, "queue", 3, n_levels, 3) == ("step", fine)
    monkeypatch.setattr(example, "by_step", lambda *_: [example.Span(0, n_levels, 1.0)])
    assert example.time_levels(graph, "queue", 3, n_levels, 1)[0] == "depth"


def test_iterations_of_a_trace_are_summed_by_level():
    found = [
        (0, "cluster level", 0),
        (400, "draw bitmaps", 2),
        (500, "pull", 2),
        (900, "last pass", 3),
        (990, "end", 3),
    ]
    iterations = [Iteration(at, what, level, 0, 0) for at, what, level in found]
    assert example.spans_of(iterations) == [
        (0, 2, pytest.approx(4e-7)),
        (2, 1, pytest.approx(5e-7)),
    ]


@on_a_device
@pytest.mark.parametrize("settings", orders(in_turn={"block": 64}).values())
def test_a_search_of_one_launch_is_timed_by_its_trace(settings):
    with running(settings):
        path = graph_from_edges(np.arange(6), np.arange(1, 7)).to("cuda")
        spans = example.by_trace(path, "persistent", 0)
    assert covered(spans)[0] == 0
    assert len(covered(spans)) >= 6


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--source", "nowhere"], "source 'nowhere' is not a vertex"),
        (["--strategies", "quick"], "no strategy 'quick'"),
    ],
)
def test_a_mistake_is_one_sentence_and_no_page(flags, message, tmp_path, capsys):
    make_graphs.write(tmp_path / "edges.parquet", *LATTICE)
    page = tmp_path / "levels.html"
    assert (
        example.main(
            [str(tmp_path / "edges.parquet"), "--device", "cpu", "--output", str(page), *flags]
        )
        == 2
    )
    assert message in capsys.readouterr().err
    assert not page.exists()
