"""Columns are selected by known names, by flags, or by position in a text without names; the report lists them."""

from __future__ import annotations

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import graph_from_edges
from kepler_traverse.errors import EdgeListWarning, InputError
from kepler_traverse.formats.column_names import end_pairs, is_weight_name
from kepler_traverse.graph.storage import load_graph, write_graph
from tests.support import tiers
from tests.support.edge_files import BINARIES, read, refusal, write

EDGES = {
    "u": [10, 20, 30],
    "v": [20, 30, 10],
    "key": [0, 0, 0],
    "osmid": [7, 8, 9],
    "length": [1.5, 2.5, 4.0],
}


def edges_of(graph):
    """Edges with their weights, by the ids."""
    src = np.repeat(graph.ids, graph.derived.degrees).tolist()
    weights = [None] * graph.n_edges if graph.weights is None else graph.weights.tolist()
    return sorted(zip(src, graph.ids[graph.targets].tolist(), weights, strict=True))


def parquet(folder, columns):
    pq.write_table(pa.table(columns), folder / "edges.parquet")
    return folder / "edges.parquet"


def arrow(folder, columns):
    table = pa.table(columns)
    with pa.ipc.new_file(str(folder / "edges.arrow"), table.schema) as writer:
        writer.write_table(table)
    return folder / "edges.arrow"


def csv(folder, columns):
    rows = [columns, *zip(*columns.values(), strict=True)]
    return write(folder / "edges.csv", "".join(",".join(map(str, row)) + "\n" for row in rows))


def snap(folder, columns):
    rows = [columns, *zip(*columns.values(), strict=True)]
    return write(folder / "edges.txt", "".join(" ".join(map(str, row)) + "\n" for row in rows))


NAMED = {
    "parquet": (parquet, {}),
    "arrow": (arrow, {}),
    "csv": (csv, {}),
    "snap": (snap, {"header": "yes"}),
}


@pytest.fixture(params=NAMED)
def named(request, tmp_path):
    """Write a table with names in some format, and read it or see it refused."""
    write_file, options = NAMED[request.param]

    def do(columns, refused=False, **more):
        return (refusal if refused else read)(write_file(tmp_path, columns), **options, **more)

    return do


# --- by name -------------------------------------------------------------------------------------------------------------


def test_a_table_of_streets_has_its_length_for_the_weight_and_not_its_third_column(named):
    graph = named(EDGES)
    assert edges_of(graph) == [(10, 20, 1.5), (20, 30, 2.5), (30, 10, 4.0)]
    report = graph.report
    assert (report.src_column, report.dst_column, report.weight_column) == ("u", "v", "length")
    assert (report.unused_columns, report.unused_numbers) == (("key", "osmid"), ("key", "osmid"))


@pytest.mark.parametrize(
    "names", [("dst", "source"), ("weight", "dst"), ("a", "b"), ("head", "tail"), ("uid", "vid")]
)
def test_columns_without_a_known_pair_of_names_are_refused_and_not_taken_by_position(named, names):
    message = named({names[0]: [1, 2], names[1]: [2, 3]}, refused=True)
    assert "no two columns are known by their names as the ends of an edge" in message
    assert (
        f"it has columns {names[0]!r}, {names[1]!r}; name them with src_column and dst_column"
        in message
    )


@pytest.mark.parametrize(
    "names",
    [
        *(
            "src,dst",
            "Source,TARGET",
            "source_id,target_id",
            "FromNodeId,ToNodeId",
            "from node,to node",
            "from_id,to_id",
        ),
        *(
            "u,V",
            "i,j",
            "origin,destination",
            "Origin ID,Dest ID",
            "start,end",
            ":START_ID,:END_ID",
            "a_node,b_node",
        ),
        "node1,node2",
    ],
)
def test_known_pairs_of_names_are_the_ends_wherever_they_stand(names):
    start, end = names.split(",")
    assert end_pairs(["key", end, "x", start, "weight"]) == [(start, end)]


@pytest.mark.parametrize(
    "names", ["dst,source", "head,tail", "uid,vid", "start,to", "grid,target", "row,column"]
)
def test_unknown_pairs_of_names_are_not_endpoints(names):
    assert end_pairs(names.split(",")) == []


@pytest.mark.parametrize(
    "name",
    ["weight", "W", "Length", "length_m", "cost", "travel_time", "Time (min)", "distance km"],
)
def test_known_names_of_weights(name):
    assert is_weight_name(name)


@pytest.mark.parametrize(
    "name",
    ["key", "osmid", "when", "timestamp", "speed_kph", "lanes", "id", "capacity", "weightless"],
)
def test_unknown_names_are_not_weights(name):
    assert not is_weight_name(name)


def test_missing_weight_is_an_error_that_lists_the_numeric_columns(named):
    columns = {"src": [1, 2], "dst": [2, 3], "toll": [5, 6], "name": ["a", "b"]}
    message = named(columns, refused=True, weighted=True)
    assert (
        "it has columns 'src', 'dst', 'toll', 'name'; column 'toll' holds numbers; name one with weight_column"
        in message
    )
    assert edges_of(named(columns, weight_column="toll")) == [(1, 2, 5.0), (2, 3, 6.0)]
    assert named(columns).weights is None


def test_likely_weight_columns_are_refused_unless_one_is_named(named):
    columns = {"src": [1], "dst": [2], "length": [5], "minutes": [6]}
    assert "the weight could be 'length' or 'minutes'; name one with weight_column" in named(
        columns, refused=True
    )
    assert edges_of(named(columns, weight_column="minutes")) == [(1, 2, 6.0)]
    graph = named(columns, weighted=False)
    assert (graph.weights, graph.report.unused_numbers) == (None, ("length", "minutes"))


def test_a_date_does_not_stand_against_a_number(tmp_path):
    columns = {"src": [1], "dst": [2], "time": pa.array([0], pa.timestamp("s"))}
    with pytest.warns(EdgeListWarning, match="column 'time' holds dates or times of day"):
        assert read(parquet(tmp_path, columns)).weights is None
    assert read(parquet(tmp_path, columns), weighted=False).weights is None
    assert read(parquet(tmp_path, columns | {"length": [5]})).report.weight_column == "length"


def test_a_text_stands_against_a_number(tmp_path):
    columns = {"src": [1], "dst": [2], "weight": ["5"], "length": [5]}
    assert "could be 'weight' or 'length'" in refusal(parquet(tmp_path, columns))


@pytest.mark.parametrize(
    ("columns", "options", "says"),
    [
        ({"src": [1], "dst": [2], "SRC": [3]}, {}, "could be 'src' and 'dst' or 'SRC' and 'dst'"),
        (
            {"src": [1], "dst": [2], "from": [3], "to": [4]},
            {},
            "could be 'src' and 'dst' or 'from' and 'to'",
        ),
        ({"src": [1], "dst": [2], "Cost": [3], "cost": [4]}, {}, "could be 'Cost' or 'cost'"),
        (
            {"src": [1], "dst": [2]},
            {"weight_column": "src"},
            "'src' is src and cannot be the weight, too",
        ),
        (
            {"src": [1], "dst": [2]},
            {"src_column": "src", "dst_column": "Dst"},
            "no column 'Dst', which dst_column names",
        ),
    ],
)
def test_columns_that_could_be_meant_in_two_ways_are_refused(named, columns, options, says):
    assert says in named(columns, refused=True, **options)


def test_flags_decide_between_two_pairs(named):
    columns = {"src": [1], "dst": [2], "from": [3], "to": [4]}
    assert edges_of(named(columns, src_column="from", dst_column="to")) == [(3, 4, None)]


def test_messages_shorten_long_and_many_names(named):
    columns = {f"{at}{'x' * 500}": [1] for at in range(50)}
    assert ", ...; name them with" in named(columns, refused=True)  # which is no longer than 600


# --- by position ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"), [("e.csv", "1,2,5,9\n2,3,6,9\n"), ("e.txt", "1 2 5 9\n2 3 6 9\n")]
)
def test_columns_without_names_go_by_position_and_the_report_says_so(tmp_path, name, text):
    graph = read(write(tmp_path / name, text))
    assert edges_of(graph) == [(1, 2, 5.0), (2, 3, 6.0)]
    assert (graph.report.src_column, graph.report.weight_column, graph.report.unused_columns) == (
        "0",
        "2",
        ("3",),
    )


def test_positions_that_are_named_do_not_make_a_header_of_the_first_edge(tmp_path):
    path = write(tmp_path / "e.csv", "a,0,1\nb,1,2\n")
    graph = read(path, src_column="1", dst_column="2", header="no")
    assert edges_of(graph) == [(0, 1, None), (1, 2, None)]
    assert "may be a header or an edge" in refusal(
        write(tmp_path / "e.csv", "a,b,0,1\nb,c,1,x\n"), src_column="2", dst_column="3"
    )


# --- several files and Hive partitions -----------------------------------------------------------------------------------


def test_weights_of_later_files_are_not_dropped(tmp_path):
    pq.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"src": [2], "dst": [3], "weight": [4]}), tmp_path / "b.parquet")
    message = refusal(tmp_path)
    assert (
        f"{tmp_path / 'b.parquet'}: the edges are in 'src' and 'dst' with the weight 'weight' here"
        in message
    )
    assert f"'src' and 'dst' without a weight in {tmp_path / 'a.parquet'}" in message
    assert read(tmp_path, weighted=False).n_edges == 2


@pytest.mark.parametrize("second", ["from,to,weight\n2,3,4\n", "src,dst,cost\n2,3,4\n", "2,3,4\n"])
def test_files_with_their_edges_in_other_columns_are_refused_by_name(tmp_path, second):
    write(tmp_path / "a.csv", "src,dst,weight\n1,2,3\n")
    write(tmp_path / "b.csv", second)
    assert f"{tmp_path / 'b.csv'}: the edges are in " in refusal(tmp_path)


def test_columns_unused_in_any_file_are_reported(tmp_path):
    write(tmp_path / "a.csv", "src,dst,x\n1,2,3\n")
    write(tmp_path / "b.csv", "src,dst,y\n1,2,word\n")
    report = read(tmp_path).report
    assert (report.unused_columns, report.unused_numbers) == (("x", "y"), ("x",))


ROWS = {"src": [1, 1, 2, 3], "dst": [2, 3, 3, 4], "weight": [5, 9, 1, 7]}
TRUE_EDGES = [(1, 2, 5.0), (1, 3, 9.0), (2, 3, 1.0), (3, 4, 7.0)]


def partitioned(folder, by, ending=".parquet", rows=ROWS):
    """The rows in folders ``by=value``, without the columns that the folders hold."""
    names = [name for name in rows if name not in by]
    for at in range(len(rows["src"])):
        part = folder.joinpath(*(f"{name}={rows[name][at]}" for name in by))
        part.mkdir(parents=True, exist_ok=True)
        columns = {name: [rows[name][at]] for name in names}
        if ending == ".parquet":
            pq.write_table(pa.table(columns), part / f"{at}.parquet")
        else:
            write(
                part / f"{at}.csv",
                ",".join(names) + "\n" + ",".join(str(columns[name][0]) for name in names) + "\n",
            )
    return folder


@pytest.mark.parametrize(
    ("by", "ending"),
    [
        *((by, ending) for by in (["src"], ["dst"], ["weight"]) for ending in (".parquet", ".csv")),
        (["dst", "src"], ".parquet"),  # a text of the one column that is left has no delimiter
        (["src", "weight"], ".parquet"),
    ],
)
def test_partition_columns_are_columns_like_others(tmp_path, by, ending):
    folder = partitioned(tmp_path / "hive", by, ending)
    assert edges_of(read(folder)) == TRUE_EDGES
    assert edges_of(read(sorted(folder.rglob(f"*{ending}")))) == TRUE_EDGES
    assert edges_of(read(str(folder / "*" / "**" / f"*{ending}"))) == TRUE_EDGES


def test_names_of_partitions_tell_a_header_of_words(tmp_path):
    rows = {"src": ["a", "b"], "dst": ["b", "c"], "name": ["x", "y"]}
    assert read(partitioned(tmp_path, ["src"], ".csv", rows)).ids.to_pylist() == ["a", "b", "c"]


def test_a_column_of_a_partition_that_is_not_used_is_named(tmp_path):
    rows = ROWS | {"day": [1, 2, 1, 2]}
    report = read(partitioned(tmp_path, ["day"], rows=rows)).report
    assert (report.unused_columns, report.unused_numbers) == (("day",), ("day",))


def test_a_partition_column_has_one_type_in_all_folders(tmp_path):
    rows = {"src": ["1", "b"], "dst": ["b", "c"], "weight": [1, 2]}
    graph = read(partitioned(tmp_path / "a", ["src"], rows=rows))
    assert graph.ids.to_pylist() == ["1", "b", "c"]
    rows = {"src": ["007", "8"], "dst": ["b", "c"], "weight": [1, 2]}
    assert read(partitioned(tmp_path / "b", ["src"], rows=rows)).ids.to_pylist() == [
        "007",
        "8",
        "b",
        "c",
    ]
    assert edges_of(read(partitioned(tmp_path / "c", ["src"]), id_type="int32"))[0] == (1, 2, 5.0)


def test_a_value_that_a_partition_lacks_is_a_missing_end(tmp_path):
    rows = {"src": [1, "__HIVE_DEFAULT_PARTITION__"], "dst": [2, 3], "weight": [1, 2]}
    assert "src column 'src'" in refusal(partitioned(tmp_path, ["src"], rows=rows))


def test_a_column_that_is_in_a_file_and_in_its_folder_is_refused(tmp_path):
    (tmp_path / "src=1").mkdir()
    pq.write_table(pa.table({"src": [1], "dst": [2]}), tmp_path / "src=1" / "a.parquet")
    assert "column 'src' occurs 2 times" in refusal(tmp_path)


def test_a_partition_without_a_value_is_a_missing_end(tmp_path):
    (tmp_path / "src=").mkdir()
    pq.write_table(pa.table({"dst": [2]}), tmp_path / "src=" / "a.parquet")
    assert "src column 'src'" in refusal(tmp_path)


# --- any names -----------------------------------------------------------------------------------------------------------

PAIRS = ["src dst", "source target", "source destination", "from to", "u v", "origin destination"]
VOCABULARY = [
    *dict.fromkeys(" ".join(PAIRS).split()),
    "SRC",
    "Weight",
    "weight",
    "length",
    "minutes",
    "key",
    "osmid",
    "x",
]


def chosen(names):
    """Return ends and weight among names, or None: the same rule, implemented independently."""
    starts = [(a, b) for a in names for b in names if f"{a} {b}".lower() in PAIRS]
    if len(starts) != 1:
        return None
    weights = [name for name in names if name.lower() in ("weight", "length", "minutes")]
    return None if len(weights) > 1 else (*starts[0], *weights)


@settings(max_examples=tiers.examples(80))
@given(
    names=st.lists(st.sampled_from(VOCABULARY), min_size=2, max_size=6, unique=True), data=st.data()
)
def test_column_names_give_the_same_columns_in_every_format_or_are_refused(
    tmp_path_factory, names, data
):
    folder = tmp_path_factory.mktemp("names")
    values = {name: [100 * at + 1, 100 * at + 2] for at, name in enumerate(names)}
    expected = chosen(names)
    kind = data.draw(st.sampled_from(sorted(NAMED)))
    write_file, options = NAMED[kind]
    path = write_file(folder, values)
    if expected is None:
        assert str(path) in refusal(path, **options)
        return
    graph = read(path, **options)
    columns = [values[name] for name in expected]
    assert edges_of(graph) == [
        (*row, *[None] * (3 - len(row))) for row in zip(*columns, strict=True)
    ]
    assert set(graph.report.unused_columns) == set(names) - set(expected)


@settings(max_examples=tiers.examples(60))
@given(
    rows=st.lists(st.tuples(*[st.integers(0, 10**6)] * 3), min_size=1, max_size=8),
    delimiter=st.sampled_from(",;\t|"),
    header=st.sampled_from(
        ["src{d}dst{d}weight\n", "dst{d} weight{d}src\n", "u{d}v{d}length\n", ""]
    ),
    blank=st.sampled_from(["", " "]),
    ending=st.sampled_from([".csv", ".tsv", ".psv", ".csv.gz"]),
)
def test_delimiters_and_headers_give_the_edges_of_the_file(
    tmp_path_factory, rows, delimiter, header, blank, ending
):
    names = (
        header.replace("{d}", ",").replace(" ", "").strip().split(",")
        if header
        else ["src", "dst", "weight"]
    )
    order = [{"u": 0, "v": 1, "length": 2, "src": 0, "dst": 1, "weight": 2}[name] for name in names]
    text = header.replace("{d}", delimiter) + "".join(
        (delimiter + blank).join(str(row[at]) for at in order) + "\n" for row in rows
    )
    data = gzip.compress(text.encode()) if ending.endswith(".gz") else text
    graph = read(write(tmp_path_factory.mktemp("text") / f"e{ending}", data), weight_type="float64")
    expected = graph_from_edges(*np.array(rows, np.int64).T, weight_type="float64")
    assert graph.fingerprint == expected.fingerprint


# --- delimiters and headers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("e.csv", "src;dst;weight\n1;2;5\n2;3;6\n"),
        ("e.csv", "src\tdst\tweight\n1\t2\t5\n2\t3\t6\n"),
        ("e.tsv", "src,dst,weight\n1,2,5\n2,3,6\n"),
        ("e.csv", "src, dst, weight\n1, 2, 5\n2, 3, 6\n"),
        ("e.csv", "1;2;5\n2;3;6\n"),
        ("e.csv", '1,2,5,"a;b"\n2,3,6,"c;d"\n'),
        ("e.csv", "u,v,minutes\n1,2,5\n2,3,6\n"),
        ("e.csv", "i|j|cost|note\n1|2|5|a\n2|3|6|b\n"),
    ],
)
def test_delimiters_and_headers_are_found_where_they_are_sure(tmp_path, name, text):
    assert edges_of(read(write(tmp_path / name, text))) == [(1, 2, 5.0), (2, 3, 6.0)]


def test_a_decimal_comma_is_no_delimiter(tmp_path):
    message = refusal(write(tmp_path / "e.csv", "1;2;1,5\n2;3;2,5\n"))
    assert (
        "row 0: weight column '2' has '1,5', which is not a number; write decimals with a point"
        in message
    )


def test_blanks_that_follow_every_delimiter_do_not_belong_to_ids(tmp_path):
    graph = read(write(tmp_path / "e.csv", "from, to\nMain St, Oak Av\nOak Av, Elm\n"))
    assert graph.ids.to_pylist() == ["Elm", "Main St", "Oak Av"]
    declared = read(
        write(tmp_path / "e.csv", "from, to\nMain St, Oak Av\nOak Av, Elm\n"), id_type="string"
    )
    assert declared.ids.to_pylist() == [" Elm", " Oak Av", "Main St", "Oak Av"]


def test_a_third_column_of_numbers_below_a_word_makes_a_header(tmp_path):
    path = write(tmp_path / "e.csv", "place,other place,toll\nHome,Work,5\nWork,School,7\n")
    assert "it has columns 'place', 'other place', 'toll'; name them with" in refusal(path)
    graph = read(path, src_column="place", dst_column="other place", weight_column="toll")
    assert graph.ids.to_pylist() == ["Home", "School", "Work"]


def test_the_first_line_of_snap_text_is_a_header_on_request(tmp_path):
    path = write(tmp_path / "e.txt", "# c\nfrom to minutes\na b 5\nb c 6\n")
    assert "looks like a header" in refusal(path)
    assert read(path, header="yes").report.weight_column == "minutes"
    assert read(write(tmp_path / "e.txt", "from to\na b\n"), header="no").ids.to_pylist() == [
        "a",
        "b",
        "from",
        "to",
    ]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_mark_before_a_comment_does_not_make_an_edge_of_it(tmp_path, mark):
    assert edges_of(read(write(tmp_path / "e.txt", mark + b"# c\n1 2\n"))) == [(1, 2, None)]
    matrix = b"%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n"
    assert edges_of(read(write(tmp_path / "e.mtx", mark + matrix))) == [(1, 2, None)]
    assert edges_of(read(write(tmp_path / "e.gr", mark + b"c c\np sp 2 1\na 1 2 3\n"))) == [
        (1, 2, 3.0)
    ]


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *(
            (name, {"delimiter": ";"})
            for name in ("plain.parquet", "file.arrow", "e.gr", "e.mtx", "e.txt")
        ),
        *((name, {"header": "yes"}) for name in ("plain.parquet", "file.arrow", "e.gr", "e.mtx")),
    ],
)
def test_options_that_a_format_does_not_have_are_refused_and_not_ignored(tmp_path, name, options):
    if name in BINARIES:
        BINARIES[name](str(tmp_path / name))
    else:
        write(tmp_path / name, "1 2\n")
    with pytest.raises(InputError, match=rf"{next(iter(options))} is not for format"):
        read(tmp_path / name, **options)


# --- the report ----------------------------------------------------------------------------------------------------------


def test_graph_report_has_the_seconds_of_reading_which_a_stored_graph_has_not(tmp_path, named):
    graph = named(EDGES)
    assert list(graph.report.seconds) == ["read", "build"]
    assert min(graph.report.seconds.values()) >= 0
    assert "seconds" not in graph.report.facts()
    write_graph(graph, tmp_path / "graph")
    loaded = load_graph(tmp_path / "graph", verify=False)
    assert (loaded.report, loaded.report.seconds) == (graph.report, {})  # seconds are not compared


def test_a_graph_of_arrays_has_no_columns():
    assert graph_from_edges(np.array([1]), np.array([2])).report.src_column == ""


# --- arguments -----------------------------------------------------------------------------------------------------------
