"""A first line of numbers: names, counts of vertices and edges, or an edge. What is not certain is asked, in each format."""

from __future__ import annotations

import gzip

import numpy as np
import pandas as pd
import pytest

from kepler_traverse import graph_from_edges, read_graph
from kepler_traverse.errors import EdgeListError, InputError

FORMATS = {
    ".csv": ",",
    ".tsv": "\t",
    ".txt": " ",
    ".edges": "\t",
    ".csv.gz": ",",
    ".csv with ;": ";",
}


def write(folder, ending, lines):
    text = "".join(FORMATS[ending].join(map(str, line)) + "\n" for line in lines).encode()
    path = folder / f"edges{ending.partition(' ')[0]}"
    path.write_bytes(gzip.compress(text) if ending.endswith(".gz") else text)
    return path


FRAMES = {
    "two ends and a weight": [(5, 6, 1.5), (6, 0, 2.5), (7, 1, 9.0)],
    "integer weights": [(5, 6, 2), (6, 0, 3), (7, 1, 9)],
    "two ends": [(5, 6), (6, 7), (7, 8)],
    "four columns": [(5, 6, 1, 1), (6, 7, 2, 0)],
    "the vertices that the header would add": [(0, 1, 7), (1, 2, 7)],
}


def expected_graph(rows):
    return graph_from_edges(*np.array(rows, object).T[:3].tolist())


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("name", FRAMES)
def test_the_default_header_of_pandas_is_asked_about(tmp_path, ending, name):
    frame = pd.DataFrame(FRAMES[name])
    path = write(tmp_path, ending, [frame.columns, *frame.itertuples(index=False)])
    with pytest.raises(EdgeListError, match=r"edges.*header='yes'.*header='no'"):
        read_graph(path)
    with_header = read_graph(path, header="yes")
    assert with_header.fingerprint == expected_graph(FRAMES[name]).fingerprint
    assert read_graph(path, header="no").report.rows == len(frame) + 1


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(
    "names", [(2010, 2011), (2010, 2020), (1999, 2000, 2001), (1, 2, 3), (7, 8, 9)]
)
def test_other_numbers_that_could_be_names_are_asked_about(tmp_path, ending, names):
    rows = [(50, 60, 1.5), (60, 70, 2.5), (70, 50, 9.5), (70, 90, 1.5)]
    path = write(tmp_path, ending, [names, *(row[: len(names)] for row in rows)])
    with pytest.raises(EdgeListError, match="header='yes'"):
        read_graph(path)
    assert read_graph(path, header="yes").report.rows == len(rows)


@pytest.mark.parametrize("ending", [".csv", ".txt"])
@pytest.mark.parametrize("with_index", [False, True])
def test_pandas_writes_it_itself(tmp_path, ending, with_index):
    path = tmp_path / f"edges{ending}"
    pd.DataFrame([(5, 6, 1.5), (6, 0, 2.5), (7, 1, 9.0)]).to_csv(
        path, sep=FORMATS[ending], index=with_index
    )
    with pytest.raises(
        EdgeListError,
        match="header='yes'" if not (with_index and ending == ".txt") else "edges.txt",
    ):
        read_graph(path)


@pytest.mark.parametrize("rows", [[(0, 1)], [(0, 1), (1, 2), (2, 5)], [(1, 0), (0, 2), (0, 1)]])
@pytest.mark.parametrize("sep", [" ", "\t"])
@pytest.mark.parametrize("with_index", [False, True])
def test_the_default_header_over_the_edge_that_it_would_be(tmp_path, rows, sep, with_index):
    path = tmp_path / "edges.txt"
    pd.DataFrame(rows).to_csv(path, sep=sep, index=with_index)
    with pytest.raises(EdgeListError, match="the first line '0 1'"):
        read_graph(path)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("both_ways", [False, True])
def test_counts_of_vertices_and_edges_are_asked_about(tmp_path, ending, first, both_ways):
    edges = [
        (first, first + 1),
        (first + 1, first + 2),
        (first + 3, first),
        (first + 2, first + 4),
        (first, first + 4),
    ]
    rows = edges + [(v, u) for u, v in edges if both_ways]
    path = write(tmp_path, ending, [(5, len(edges)), *rows])
    with pytest.raises(
        EdgeListError, match=r"may be an edge, or count vertices and edges.*header='no'.*delete"
    ):
        read_graph(path)
    assert read_graph(path, header="no").report.rows == len(rows) + 1
    assert read_graph(write(tmp_path, ending, rows), header="no").report.rows == len(rows)


@pytest.mark.parametrize("ending", FORMATS)
def test_counts_beside_weights(tmp_path, ending):
    """``n n m`` of a matrix without its banner; and ``n m`` over lines of three values, which no option makes an edge."""
    rows = [(1, 2, 3), (2, 3, 5), (3, 1, 2), (4, 1, 1)]
    with pytest.raises(EdgeListError, match="count vertices and edges"):
        read_graph(write(tmp_path, ending, [(4, 4, 4), *rows]))
    with pytest.raises(EdgeListError, match="if it counts vertices and edges, delete it"):
        read_graph(write(tmp_path, ending, [(4, 4), *rows]))


PLAIN = {
    "a path": [(0, 1), (1, 2), (2, 3)],
    "a star": [(0, 1), (0, 2), (0, 3)],
    "both directions": [(0, 1), (1, 0), (1, 2), (2, 1)],
    "from one": [(1, 2), (1, 3), (2, 3), (3, 4)],
    "from one, with weights": [(1, 2, 3), (2, 3, 4), (3, 1, 5)],
    "large ids": [(2010, 2011), (2011, 2012), (5, 2010)],
    "neighbors far from others": [(17, 18), (40, 2), (5, 6)],
    "one line": [(0, 1)],
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("ending", [".txt", ".edges"])
def test_lists_that_plainly_begin_with_an_edge_are_read(tmp_path, ending, name):
    rows = PLAIN[name]
    graph = read_graph(write(tmp_path, ending, rows))
    assert graph.fingerprint == expected_graph(rows).fingerprint
    if rows[0] != (0, 1):
        assert read_graph(write(tmp_path, ".csv", rows)).fingerprint == graph.fingerprint


def test_an_edge_of_0_and_1_below_comments_is_one_whatever_follows(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("# FromNodeId\tToNodeId\n0 1\n500 600\n700 3\n")
    assert read_graph(path).report.rows == 3


def test_words_over_a_column_of_numbers_are_asked_about(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("4,1,minutes\n5,6,1\n6,7,2\n")
    with pytest.raises(EdgeListError, match="header='yes'"):
        read_graph(path, weighted=False)


@pytest.mark.parametrize("what", ["vertices", "only_vertices"])
def test_the_default_header_over_one_column_of_ids_is_asked_about(tmp_path, what):
    edges = tmp_path / "e.csv"
    edges.write_text("src,dst\n0,5\n5,6\n")
    pd.Series([5, 6]).to_csv(tmp_path / "ids.csv", index=False)
    with pytest.raises(
        InputError, match=r"ids\.csv: the first line .* is 0, which may be an id, or the header"
    ):
        read_graph(edges, **{what: tmp_path / "ids.csv"})
    (tmp_path / "ids.txt").write_text("0\n5\n6\n")
    assert read_graph(edges, **{what: tmp_path / "ids.txt"}).n_vertices == 3
