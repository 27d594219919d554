"""Forms in which packages return edges, times in filters, and texts whose advice works when it is followed."""

from __future__ import annotations

import datetime
import io

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, read_graph, with_weights
from kepler_traverse.errors import EdgeListError, InputError
from tests.support.edge_files import EXPECTED, ROWS


class EdgeListOfOthers:
    """As rustworkx returns edges: a sequence of tuples in a class of its own, which is no ``collections.abc.Sequence``."""

    def __init__(self, rows):
        self._rows = rows

    def __len__(self):
        return len(self._rows)

    def __getitem__(self, at):
        return self._rows[at]

    def __iter__(self):
        return iter(self._rows)


FORMS = {
    "a sequence of another package": lambda: EdgeListOfOthers(ROWS),
    "zip": lambda: zip(*map(list, zip(*ROWS, strict=True)), strict=True),
    "a generator": lambda: (row for row in ROWS),
    "a generator of lists": lambda: (list(row) for row in ROWS),
    "an iterator": lambda: iter(ROWS),
    "map": lambda: map(tuple, ROWS),
    "rows of pandas": lambda: pd.DataFrame(ROWS).itertuples(index=False),
    "a structured array": lambda: np.array(ROWS, [("src", "i8"), ("dst", "i4"), ("weight", "i8")]),
    "a record array": lambda: np.array(ROWS, [("from", "i8"), ("to", "i8"), ("cost", "i8")]).view(
        np.recarray
    ),
    "values of a dict": lambda: dict(enumerate(ROWS)).values(),
    "edges of NetworkX": lambda: nx.MultiDiGraph(
        [(u, v, {"weight": w}) for u, v, w in ROWS],
    ).edges(data="weight"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [graph_from_edges, read_graph])
def test_rows_in_each_form_are_as_their_list(form, make):
    assert make(FORMS[form]()).fingerprint == EXPECTED.fingerprint


def test_a_set_of_edges_and_items_of_a_dict():
    expected = graph_from_edges([1, 2], [2, 3])
    assert graph_from_edges({(1, 2), (2, 3)}).fingerprint == expected.fingerprint
    assert graph_from_edges({1: 2, 2: 3}.items()).fingerprint == expected.fingerprint


@pytest.mark.parametrize(
    "graph", [nx.path_graph(3), nx.grid_2d_graph(2, 2)], ids=["integers", "pairs as nodes"]
)
def test_a_graph_is_no_list_of_its_nodes(graph):
    with pytest.raises(EdgeListError, match=r"convert\.from_networkx"):
        graph_from_edges(graph)


def test_an_open_file_is_named(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("src,dst\n1,2\n")
    with (
        open(path) as file,
        pytest.raises(InputError, match=r"an open file; give its path, '.*e\.csv'"),
    ):
        read_graph(file)
    with open(path, "rb") as file, pytest.raises(InputError, match="an open file; give its path"):
        read_graph(file)
    with pytest.raises(InputError, match="an open file"):
        read_graph(io.StringIO("src,dst\n1,2\n"))


TIMES = pa.table(
    {
        "src": [1, 2, 3, 4],
        "dst": [2, 3, 4, 5],
        "departs": [
            datetime.time(6, 30),
            datetime.time(7, 0),
            datetime.time(23, 59, 59, 500_000),
            None,
        ],
        "clock": pa.array([23400, 25200, 86399, None], pa.time32("s")),
        "takes": pa.array([60_000, 90_500, 86_400_000, None], pa.duration("ms")),
        "interval": pa.array(
            [
                pa.MonthDayNano(each)
                for each in ([0, 0, 60 * 10**9], [0, 0, 90_500_000_000], [0, 1, 0])
            ]
            + [None],
            pa.month_day_nano_interval(),
        ),
        "when": pa.array([0, 172_800, 10**9, None], pa.timestamp("s", "UTC")),
        "local": pa.array([0, 172_800, 10**9, None], pa.timestamp("s")),
        "day": pa.array([0, 2, 11_000, None], pa.date32()),
    }
)
CONDITIONS = {
    "departs >= '07:00:00'": [2, 3],
    "departs >= '07:00'": [2, 3],
    "departs == '23:59:59.5'": [3],
    "departs < '6:30:00.000001'": [1],
    "departs in ('06:30', '07:00')": [1, 2],
    "clock < '07:00:00'": [1],
    "clock <= '06:59:59.5'": [1],
    "clock == '06:30:00.5'": [],
    "clock != '06:30:00.5'": [1, 2, 3],
    "departs is null": [4],
    "takes <= '00:01:30.5'": [1, 2],
    "takes <= 90.5": [1, 2],
    "takes < 90.4999": [1],
    "takes == 60": [1],
    "takes >= '1 day 00:00:00'": [3],
    "takes in (60, 86400)": [1, 3],
    "takes > -1": [1, 2, 3],
    "interval <= '00:01:30.5'": [1, 2],
    "interval == 86400": [3],
    "interval is null": [4],
    "when >= '1970-01-03 00:00:00Z'": [2, 3],
    "when >= '1970-01-03T01:00:00+01:00'": [2, 3],
    "when > '1970-01-03 00:00:00Z'": [3],
    "local >= '1970-01-03'": [2, 3],
    "day >= '1970-01-03'": [2, 3],
    "takes == takes": [1, 2, 3],
    "departs > departs": [],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_filters_of_dates_times_and_durations(condition, tmp_path):
    graph = graph_from_edges(TIMES, where=condition, vertices=[1], weighted=False, edge_ids=True)
    assert (graph.edge_rows + 1).tolist() == CONDITIONS[condition]
    if "interval" not in condition:
        pq.write_table(TIMES.drop_columns(["interval"]), tmp_path / "t.parquet")
        same = read_graph(
            tmp_path / "t.parquet",
            where=condition,
            vertices=[1],
            weighted=False,
            edge_ids=True,
            device="cpu",
        )
        np.testing.assert_array_equal(same.edge_rows, graph.edge_rows)


WRONG = {
    "departs >= 'seven'": "'seven' is none; write it as '07:30' or '07:30:00.5'",
    "departs >= 7": "is compared with 7",
    "takes > '10'": "'10' is none; write it as a number of seconds, or as '1 day 07:30:00'",
    "when >= '1970-01-03'": "its times have a zone, so write it as '2026-01-31 07:30:00Z'",
    "local >= '1970-01-03 00:00:00Z'": "is none; write it as '2026-01-31 07:30:00'",
    "day >= 'x" + "y" * 200 + "'": "is none; write it as '2026-01-31'",
}


@pytest.mark.parametrize("condition", WRONG)
def test_a_time_that_is_none_is_refused_with_one_that_is(condition):
    with pytest.raises(EdgeListError) as caught:
        graph_from_edges(TIMES, where=condition)
    message = str(caught.value)
    assert WRONG[condition] in message
    assert len(message) < 250
    assert message.count("(") == message.count(")")
    advised = (
        message.rpartition("write it as ")[2].split(" or ")[0].split(", or as ")[0]
        if "write it" in message
        else ""
    )
    if advised.startswith("'"):
        graph_from_edges(
            TIMES, where=f"{condition.split()[0]} >= {advised}", vertices=[1], weighted=False
        )


def test_weights_of_text_are_no_ids():
    for call in (
        lambda: graph_from_edges([0], [1], ["x"]),
        lambda: graph_from_edges({"src": [0], "dst": [1], "weight": ["x"]}),
        lambda: graph_from_edges([(0, 1, "x")]),
        lambda: with_weights(graph_from_edges([0], [1], edge_ids=True), ["x"]),
    ):
        with pytest.raises(
            InputError, match="weight must hold numbers, not strings; convert them to numbers"
        ) as caught:
            call()
        assert "ids" not in str(caught.value)


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
def test_of_files_with_integers_and_one_with_text_that_one_is_named(tmp_path, order):
    kinds = [np.array([1], np.int32), np.array([1], np.int64), np.array(["a"])]
    for name, which in zip("abc", order, strict=True):
        pq.write_table(
            pa.table({"src": kinds[which], "dst": kinds[which]}), tmp_path / f"{name}.parquet"
        )
    text = "abc"[order.index(2)]
    with pytest.raises(
        EdgeListError, match=rf"{text}\.parquet.*string|string in .*{text}\.parquet"
    ):
        read_graph(tmp_path)


def test_integers_as_names_of_columns_are_given_as_text():
    frame = pd.DataFrame([(1, 2)])
    with pytest.raises(InputError, match=r"as text: give src='0'"):
        graph_from_edges(frame, src=0, dst=1)
    assert graph_from_edges(frame, src="0", dst="1").n_edges == 1


def test_the_largest_integer_is_not_called_beyond_int64():
    for weight in (2**63 - 1, -(2**63 - 1)):
        with pytest.raises(EdgeListError, match=r"is beyond 2\^63 - 2, the largest distance"):
            graph_from_edges([0], [1], [weight])
    assert graph_from_edges([0], [1], [2**63 - 2]).weights.tolist() == [2**63 - 2]


def test_ids_with_a_point_are_not_advised_to_become_text(tmp_path):
    """As pandas writes a column of integers with a gap; as text, 456.0 and 456 would be two vertices."""
    path = tmp_path / "e.csv"
    for rows in ("1,2\n2,123.0\n456,3\n", "1.0,2\n2,3\n"):
        path.write_text(f"src,dst\n{rows}")
        with pytest.raises(EdgeListError, match="write ids without a point") as caught:
            read_graph(path)
        assert "id_type" not in str(caught.value)


def test_an_empty_parquet_file_of_ids_has_no_lines(tmp_path):
    pq.write_table(pa.table({"vertex": pa.array([], pa.int64())}), tmp_path / "v.parquet")
    (tmp_path / "v.txt").write_text("\n")
    (tmp_path / "e.csv").write_text("src,dst\n1,2\n")
    for name, says in (
        ("v.parquet", "a vertex id in each row"),
        ("v.txt", "one vertex id per line"),
    ):
        with pytest.raises(InputError, match=f"is empty; give {says}"):
            read_graph(tmp_path / "e.csv", vertices=tmp_path / name)
