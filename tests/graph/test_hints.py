"""What an edge list holds that may have been meant otherwise is said once, and kept in the report."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from kepler_traverse import graph_from_edges, load_graph, read_graph, save_graph
from kepler_traverse.errors import EdgeListError, EdgeListWarning
from pipelines import batch_sources, extremes
from tests.support.jobs import manifest_of

ROADS = {"from": [1, 2, 3], "to": [2, 3, 4], "minutes": [1, 5, 2]}
HINTED = {
    "oneway": ({"oneway": ["no", "yes", "no"]}, "'oneway' is not used.*oneway='oneway'"),
    "one way, in other words": ({"One_Way": [0, 1, 0]}, "'One_Way' is not used"),
    "direction of travel": ({"DIR_TRAVEL": ["B", "F", "T"]}, "'DIR_TRAVEL' is not used"),
    "bidirectional": ({"bidirectional": [True, False, True]}, "'bidirectional' is not used"),
    "reverse cost": ({"reverse_cost": [3, 4, 5]}, "'reverse_cost' is not used"),
    "time back": ({"time_ba": [3, 4, 5]}, "'time_ba' is not used"),
    "rcost": ({"rcost": [3, 4, 5]}, "'rcost' is not used"),
    "closed": ({"closed": [False, True, False]}, "'closed' is not used.*where"),
    "is closed": ({"is_closed": [0, 1, 0]}, "'is_closed' is not used"),
}


@pytest.mark.parametrize("name", HINTED)
def test_an_unused_column_that_would_change_the_answer_is_said(tmp_path, name):
    more, says = HINTED[name]
    table = {**ROADS, **more}
    with pytest.warns(EdgeListWarning, match=says) as caught:
        graph = graph_from_edges(pd.DataFrame(table))
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the caller's line
    assert [str(each.message) for each in caught] == list(graph.report.hints)
    pd.DataFrame(table).to_csv(tmp_path / "e.csv", index=False)
    with pytest.warns(EdgeListWarning, match=says.partition(".*")[0]) as caught:
        read_graph(tmp_path / "e.csv")
    assert caught[0].filename == __file__
    save_graph(graph, tmp_path / "g")
    assert load_graph(tmp_path / "g").report.hints == graph.report.hints


SILENT = {
    "a column that is used": ({"oneway": ["no", "yes", "no"]}, {"oneway": "oneway"}),
    "a column of a filter": ({"closed": [False, True, False]}, {"where": "not closed"}),
    "an undirected graph": ({"oneway": ["no", "yes", "no"]}, {"directed": False}),
    "columns that mean nothing here": ({"name": ["a", "b", "c"], "lanes": [1, 2, 3]}, {}),
    "a positive cost": ({"cost": [1, 2, 3]}, {"weight": "cost"}),
}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_said_without_reason(name):
    more, options = SILENT[name]
    table = pd.DataFrame({**ROADS, **more})
    assert graph_from_edges(table, **options).report.hints == ()


def test_a_network_that_lists_both_directions_needs_no_column_of_directions():
    """As OSMnx has it: two-way streets are two rows, and oneway says which are not."""
    table = pd.DataFrame(
        {
            "u": [1, 2, 2, 3],
            "v": [2, 1, 3, 4],
            "length": [5.0, 5.0, 2.0, 1.0],
            "oneway": [False, False, True, True],
        }
    )
    assert graph_from_edges(table).report.hints == ()


@pytest.mark.parametrize(
    ("costs", "is_said"),
    [
        ([1, -1, 2], True),
        ([1.5, -1.0, 2.0], True),
        ([1, -1, -2], False),
        ([-1, -1, -1], False),
        ([1, 2, 3], False),
    ],
)
def test_a_cost_of_minus_one_may_mean_closed(costs, is_said):
    table = pd.DataFrame({**{name: ROADS[name] for name in ("from", "to")}, "cost": costs})
    if is_said:
        with pytest.warns(EdgeListWarning, match="each negative weight is -1.*`cost` != -1"):
            graph = graph_from_edges(table)
        assert graph_from_edges(table, where="`cost` != -1").report.filtered_rows == 1
    else:
        graph = graph_from_edges(table)
    assert bool(graph.report.hints) == is_said


def test_an_end_with_one_value_is_said(tmp_path):
    """A file of interactions without a header: its second column is the kind of an edge."""
    path = tmp_path / "genes.sif"
    path.write_text("A\tpp\tB\nB\tpp\tC\nC\tpp\tA\n")
    with pytest.warns(
        EdgeListWarning, match="column '1' has one value in all rows: is it the dst of an edge"
    ):
        read_graph(path, format="csv", header="no", weighted=False)
    graph = read_graph(path, format="csv", header="no", src_column="0", dst_column="2")
    assert graph.n_edges == 3
    with pytest.warns(EdgeListWarning, match="column 'kind' has one value"):
        graph_from_edges(
            pd.DataFrame({"kind": [7, 7, 7], "a": [4, 5, 6], "b": [1, 2, 3]}), src="kind", dst="b"
        )


STARS = {
    "arrays": lambda hub, leaves: (hub, leaves),
    "arrays and weights": lambda hub, leaves: (hub, leaves, [1.5] * len(hub)),
    "a table": lambda hub, leaves: ({"src": hub, "dst": leaves},),
    "a table with a weight": lambda hub, leaves: (
        pd.DataFrame({"from": hub, "to": leaves, "minutes": [1] * len(hub)}),
    ),
    "a table with more": lambda hub, leaves: (
        pd.DataFrame({"source": hub, "target": leaves, "weight": 1, "name": "x"}),
    ),
    "a matrix": lambda hub, leaves: (
        scipy.sparse.coo_array((np.ones(len(hub)), (hub, leaves)), shape=(9, 9)),
    ),
}


@pytest.mark.parametrize("n_leaves", [2, 3, 8])
@pytest.mark.parametrize("form", STARS)
def test_a_star_is_a_graph_like_any_other(form, n_leaves):
    hub, leaves = [0] * n_leaves, list(range(1, n_leaves + 1))
    for ends in ((hub, leaves), (leaves, hub)):
        assert graph_from_edges(*STARS[form](*ends)).report.hints == ()


@pytest.mark.parametrize("text", ["0,1\n0,2\n0,3\n", "0,1,5\n0,2,5\n0,3,5\n", "1 0\n2 0\n3 0\n"])
def test_a_star_without_a_header_is_one_too(tmp_path, text):
    path = tmp_path / ("star.csv" if "," in text else "star.txt")
    path.write_text(text)
    assert read_graph(path, header="no").report.hints == ()


def test_what_is_said_of_an_end_is_true_of_its_column():
    """A self-loop is dropped, and a row that leads back has its ends in the other order."""
    table = pd.DataFrame({"a": [1, 1, 2], "b": [2, 3, 2], "kind": ["x", "y", "z"]})
    assert graph_from_edges(table, src="a", dst="b").report.hints == ()
    table = pd.DataFrame({"a": [1, 2, 3], "b": [2, 1, 1], "c": "z", "way": [1, -1, -1]})
    assert graph_from_edges(table, src="a", dst="b", oneway="way").report.hints == ()


def test_the_job_says_it_in_one_line_and_its_report_keeps_it(tmp_path, capsys):
    pd.DataFrame({**ROADS, "oneway": ["no", "yes", "no"]}).to_csv(tmp_path / "e.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        code = batch_sources.main(
            [
                str(tmp_path / "e.csv"),
                "--sources",
                "1",
                "--output",
                str(tmp_path / "o"),
                "--algorithm",
                "sssp",
                "--device",
                "cpu",
            ]
        )
    assert code == 0
    said = capsys.readouterr().err
    assert said.count("'oneway' is not used") == 1
    assert "--columns oneway=oneway" in said
    (hint,) = manifest_of(tmp_path / "o")["graph"]["built"]["hints"]
    assert "'oneway' is not used" in hint
    assert "is not used, and no row" in (tmp_path / "o" / "_report.html").read_text()


def test_other_programs_say_it_in_one_line(tmp_path, capsys):
    pd.DataFrame({**ROADS, "oneway": ["no", "yes", "no"]}).to_csv(tmp_path / "e.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            extremes.main(
                [
                    str(tmp_path / "e.csv"),
                    "--result",
                    "top-closeness",
                    "--k",
                    "2",
                    "--device",
                    "cpu",
                ]
            )
            == 0
        )
    assert capsys.readouterr().err.count("'oneway' is not used") == 1


ONEWAY = {
    "Geofabrik": (["B", "F", "T"], [0, 1, -1]),
    "words": (["both", "forward", "backward"], [0, 1, -1]),
    "mixed words": (["No", "YES", "-1"], [0, 1, -1]),
    "navigation maps": (["no", "FT", "TF"], [0, 1, -1]),
    "numbers": ([0, 1, -1], [0, 1, -1]),
}


@pytest.mark.parametrize("form", ["memory", "one file", "a file per row"])
@pytest.mark.parametrize("name", ONEWAY)
def test_directions_in_all_usual_forms(tmp_path, name, form):
    values, directions = ONEWAY[name]
    table = pd.DataFrame({**ROADS, "way": values})
    both = [(u, v, w, d) for u, v, w, d in zip(*ROADS.values(), directions, strict=True)]
    rows = [(u, v, w) for u, v, w, d in both if d >= 0] + [
        (v, u, w) for u, v, w, d in both if d <= 0
    ]
    expected = graph_from_edges(*np.array(rows).T)
    if form == "memory":
        graph = graph_from_edges(table, oneway="way")
        assert graph_from_edges(*ROADS.values(), oneway=values).fingerprint == expected.fingerprint
    else:
        size = 1 if form == "a file per row" else 3
        for at in range(0, 3, size):
            table.iloc[at : at + size].to_csv(tmp_path / f"{at}.csv", index=False)
        graph = read_graph(tmp_path, oneway_column="way")
    assert graph.fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    "values", [["F", "T", "F"], ["T", "T", "T"], ["f", "t", "b"], ["B", "x", "F"], ["N", "F", "B"]]
)
def test_letters_that_could_be_false_and_true_are_refused(values):
    with pytest.raises(EdgeListError, match=r"no direction|F or T and no B"):
        graph_from_edges(pd.DataFrame({**ROADS, "way": values}), oneway="way")
    with pytest.raises(EdgeListError, match=r"no direction|F or T and no B"):
        graph_from_edges(*ROADS.values(), oneway=values)
