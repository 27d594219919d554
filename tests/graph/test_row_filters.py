"""Which rows of an edge list are edges: filters, directions, and vertices to keep; against pandas and NetworkX."""

from __future__ import annotations

import datetime
import itertools
import random

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, read_graph, with_weights
from kepler_traverse._arrays import get_device, to_host
from kepler_traverse.errors import EdgeListError, InputError, UnknownVertexError
from kepler_traverse.formats.files import DataFile
from kepler_traverse.formats.selection import DIRECTIONS
from kepler_traverse.formats.where import MAX_DEPTH, MAX_LENGTH, row_filter
from tests.support import tiers
from tests.support.devices import each_namespace
from tests.support.edge_files import need

xp = each_namespace("cpu", "host", "gpu")
# The roads have a column of directions, which most of these tests do not use.
pytestmark = pytest.mark.filterwarnings("ignore::kepler_traverse.errors.EdgeListWarning")
FILE = DataFile.named("roads")

ROADS = pd.DataFrame(
    {
        "src": [1, 2, 3, 1, 4, 2, 5],
        "dst": [2, 3, 4, 4, 1, 3, 5],
        "weight": [5, 2, 3, 10, 1, 1, 7],
        "highway": ["primary", "motorway", None, "it's", "motorway", "primary", "path"],
        "lanes": [1, 2, None, 4, 5, 2, 1],
        "toll": [True, False, None, True, False, True, False],
        "max speed": [50.5, 120, 30, None, 80, 30, 10],
        "oneway": ["yes", "no", "-1", "Yes", "FALSE", "reverse", "0"],
    }
)
# The same condition for us and for pandas, whose comparisons with missing values are false or, for !=, true.
CONDITIONS = {
    "highway == 'motorway'": lambda t: t.highway == "motorway",
    "highway != 'motorway'": lambda t: (t.highway != "motorway") & t.highway.notna(),
    "not highway = 'motorway'": lambda t: (t.highway != "motorway") & t.highway.notna(),
    'highway <> "it\'s" and lanes>=2': lambda t: (
        (t.highway != "it's") & t.highway.notna() & (t.lanes >= 2)
    ),
    "highway == 'it''s'": lambda t: t.highway == "it's",
    "highway IN ('path', 'primary')": lambda t: t.highway.isin(["path", "primary"]),
    "highway not in ['path','primary']": lambda t: (
        ~t.highway.isin(["path", "primary"]) & t.highway.notna()
    ),
    "lanes is null or highway is null": lambda t: t.lanes.isna() | t.highway.isna(),
    "lanes is not null": lambda t: t.lanes.notna(),
    "3 < lanes": lambda t: t.lanes > 3,
    "lanes > 1.5 and lanes < +4.5e0": lambda t: (t.lanes > 1.5) & (t.lanes < 4.5),
    "lanes in (1, 2.0, 2.5)": lambda t: t.lanes.isin([1, 2]),
    "lanes == 2.5": lambda t: t.lanes == 2.5,
    "toll": lambda t: t.toll == True,  # noqa: E712
    "not toll": lambda t: t.toll == False,  # noqa: E712
    "toll == true or lanes != 2": lambda t: (t.toll == True) | ((t.lanes != 2) & t.lanes.notna()),  # noqa: E712
    "`max speed` <= 50.5": lambda t: t["max speed"] <= 50.5,
    "(src < dst) and not (weight > 4 or `max speed` < lanes)": lambda t: (
        (t.src < t.dst) & (t.weight <= 4) & (t["max speed"] >= t.lanes)
    ),
    "src in (1,2,3,4,5,6,7,8,9,10,11) and weight != 1": lambda t: t.weight != 1,
    "weight < 99999999999999999999999": lambda t: t.weight < 100,
    "weight > -1 and weight != -99999999999999999999999": lambda t: t.weight > -1,
}


def as_csv(path, delimiter=","):
    ROADS.astype({"lanes": "Int64"}).to_csv(path, index=False, sep=delimiter)
    return path


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The roads in memory and in files."""
    folder = tmp_path_factory.mktemp("roads")
    table = pa.Table.from_pandas(ROADS, preserve_index=False)
    pq.write_table(table, folder / "roads.parquet", row_group_size=3)
    pyarrow.feather.write_feather(table, folder / "roads.arrow", chunksize=2)
    (folder / "parts").mkdir()
    for part, rows in enumerate((slice(0, 3), slice(3, 4), slice(4, 7))):
        pq.write_table(
            table.slice(rows.start, rows.stop - rows.start), folder / "parts" / f"{part}.parquet"
        )
    return {
        "pandas": ROADS,
        "categories": ROADS.astype({"highway": "category"}),
        "arrow table": table,
        "stream": table,
        "mapping": {name: table[name].to_pylist() for name in table.column_names},
        "parquet": folder / "roads.parquet",
        "several files": folder / "parts",
        "feather": folder / "roads.arrow",
        "csv": as_csv(folder / "roads.csv"),
        "tsv": as_csv(folder / "roads.tsv", "\t"),
    }


def polars_frame():
    frame = need("polars").from_pandas(ROADS)
    return frame.with_columns(frame["highway"].cast(need("polars").Categorical))


def with_geometry():
    return need("geopandas").GeoDataFrame(
        ROADS, geometry=[need("shapely").Point(0, row) for row in range(len(ROADS))]
    )


def pyg_data():
    torch, data = need("torch"), need("torch_geometric.data")
    columns = {name: torch.tensor(ROADS[name].to_numpy()) for name in ("weight", "max speed")}
    ways = torch.tensor([DIRECTIONS[way.lower()] for way in ROADS.oneway])
    points = torch.zeros(len(ROADS), 2)
    index = torch.tensor(ROADS[["src", "dst"]].to_numpy().T)
    return data.Data(
        edge_index=index,
        edge_weight=columns["weight"],
        edge_speed=columns["max speed"],
        edge_oneway=ways,
        edge_points=points,
    )


# Tables of each library, which are made when they are needed.
MADE = {
    "levels of an index": lambda: ROADS.set_index(["src", "highway", "dst"]),
    "nullable pandas": lambda: ROADS.convert_dtypes(),
    "pandas backed by pyarrow": lambda: ROADS.convert_dtypes(dtype_backend="pyarrow"),
    "a column that Arrow lacks": lambda: ROADS.assign(what=object()),
    "dask": lambda: need("dask.dataframe").from_pandas(
        ROADS.astype({"toll": "boolean"}), npartitions=3
    ),
    "dask with categories": lambda: need("dask.dataframe").from_pandas(
        ROADS.astype({"highway": "category", "toll": "boolean"}).set_index("src"),
        npartitions=2,
        sort=False,
    ),
    "mapping of all kinds": lambda: {
        **{name: ROADS[name] for name in ROADS.columns},
        "src": ROADS.src.to_numpy(),
        "dst": pa.array(ROADS.dst),
        "weight": need("dask.dataframe").from_pandas(ROADS.weight, npartitions=2),
    },
    "polars": polars_frame,
    "polars lazy": lambda: polars_frame().lazy(),
    "geopandas": with_geometry,
    "duckdb": lambda: need("duckdb").from_arrow(pa.Table.from_pandas(ROADS, preserve_index=False)),
}
KINDS = (
    *("pandas", "categories", "arrow table", "stream", "mapping"),
    *("parquet", "several files", "feather", "csv", "tsv"),
    *MADE,
)


def given(sources, kind):
    if kind in MADE:
        return MADE[kind]()
    return sources[kind].to_reader(2) if kind == "stream" else sources[kind]


def oracle(rows, **options):
    return graph_from_edges(rows[["src", "dst", "weight"]], **options)


@pytest.mark.parametrize(
    ("where", "kind"), tiers.few(itertools.product(CONDITIONS, KINDS), 2 * len(CONDITIONS) + 1)
)
def test_where_reads_the_rows_that_pandas_keeps(sources, kind, where):
    kept = CONDITIONS[where](ROADS).fillna(False).to_numpy().astype(bool)
    graph_of = read_graph if kind != "pandas" else graph_from_edges
    options = {"device": "cpu"} if graph_of is read_graph else {}
    if not kept.any():
        with pytest.raises(EdgeListError, match="where is true for none of the 7 rows"):
            graph_of(given(sources, kind), where=where, **options)
        return
    graph = graph_of(given(sources, kind), where=where, edge_ids=True, **options)
    expected = oracle(ROADS[kept], edge_ids=True)
    assert graph.fingerprint == expected.fingerprint
    np.testing.assert_array_equal(graph.edge_rows, np.flatnonzero(kept)[expected.edge_rows])
    assert (graph.report.rows, graph.report.filtered_rows, graph.report.where) == (
        7,
        7 - kept.sum(),
        where,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_where_takes_expressions_of_pyarrow(sources, kind):
    where = (pc.field("lanes") >= 2) & (pc.field("weight") < 10)
    graph = read_graph(given(sources, kind), where=where, device="cpu")
    assert graph.fingerprint == oracle(ROADS[(ROADS.lanes >= 2) & (ROADS.weight < 10)]).fingerprint
    assert graph.report.where == str(where)
    with pytest.raises(EdgeListError, match=r"cannot be evaluated|gives"):
        read_graph(given(sources, kind), where=pc.field("nothing") > 1, device="cpu")
    with pytest.raises(EdgeListError, match=r"must be true or false|cannot be evaluated"):
        read_graph(given(sources, kind), where=pc.field("lanes") + 1, device="cpu")


VALUES = {
    "i": (-2, 0, 1, 3, None),
    "f": (-0.5, 0.0, -0.0, 2.0, 3.0, None),
    "s": ("a", "b", "", None),
    "b": (True, False, None),
}


def kleene(one, two, either):
    """Three-valued and (either=False) or or (either=True)."""
    if one is either or two is either:
        return either
    return None if one is None or two is None else not either


def some_condition(rng, depth=0):
    """Return a random condition as text, and a function of a row that gives True, False or None."""
    roll = rng.random()
    if depth < 3 and roll < 0.5:
        one, first = some_condition(rng, depth + 1)
        two, second = some_condition(rng, depth + 1)
        word = rng.choice(["and", "or", "OR"])
        return f"({one}) {word} ({two})", lambda row: kleene(first(row), second(row), word != "and")
    if depth < 3 and roll < 0.65:
        one, first = some_condition(rng, depth + 1)
        return f"not ({one})", lambda row: None if first(row) is None else not first(row)
    column = rng.choice("ifsb")
    values = [*VALUES["i"], *VALUES["f"]] if column in "if" else VALUES[column]
    values = [value for value in values if value is not None]
    if roll < 0.75:
        return f"{column} is null", lambda row: row[column] is None
    shown = str.lower if column == "b" else str
    quoted = {
        value: repr(value) if isinstance(value, str) else shown(str(value)) for value in values
    }
    if roll < 0.85:
        some = rng.sample(values, rng.randint(1, 2))
        text = f"{column} in ({', '.join(quoted[value] for value in some)})"
        return text, lambda row: None if row[column] is None else row[column] in some
    value = rng.choice(values)
    sign = rng.choice(["==", "!="] if column == "b" else ["==", "!=", "<", "<=", ">", ">="])
    compare = {
        "==": lambda x: x == value,
        "!=": lambda x: x != value,
        "<": lambda x: x < value,
        "<=": lambda x: x <= value,
        ">": lambda x: x > value,
        ">=": lambda x: x >= value,
    }[sign]
    return (
        f"{column} {sign} {quoted[value]}",
        lambda row: None if row[column] is None else compare(row[column]),
    )


def test_conditions_follow_three_valued_logic():
    rows = [
        dict(zip("ifsb", values, strict=True)) for values in itertools.product(*VALUES.values())
    ]
    types = pa.schema(
        [("i", pa.int16()), ("f", pa.float32()), ("s", pa.string()), ("b", pa.bool_())]
    )
    table = pa.Table.from_pylist(rows, types)
    for seed in range(150):
        text, holds = some_condition(random.Random(seed))
        expected = [i for i, row in enumerate(rows) if holds(row) is True]
        assert row_filter(text).find_rows(table, FILE).tolist() == expected, text


def test_integers_are_compared_exactly():
    table = pa.table(
        {
            "x": pa.array([2**53, 2**53 + 1, None], pa.int64()),
            "u": pa.array([2**64 - 1, 0, 1], pa.uint64()),
        }
    )
    assert row_filter(f"x == {2**53 + 1}").find_rows(table, FILE).tolist() == [1]
    assert row_filter(f"u == {2**64 - 1} or u < 0.5").find_rows(table, FILE).tolist() == [0, 1]
    assert row_filter(f"u in ({2**64 - 1}, -1, 7)").find_rows(table, FILE).tolist() == [0]
    with pytest.raises(EdgeListError, match="float64 does not hold"):
        row_filter(f"f > {2**53 + 1}").find_rows(pa.table({"f": [1.0]}), FILE)


def test_dates_and_times_are_compared_with_text():
    days = [datetime.date(2026, 1, day) for day in (1, 15, 31)]
    table = pa.table({"day": days, "at": pa.array(days, pa.date32()).cast(pa.timestamp("ns"))})
    assert row_filter("day >= '2026-01-15'").find_rows(table, FILE).tolist() == [1, 2]
    assert row_filter("at in ('2026-01-15 00:00:00') or day == '2026-01-01'").find_rows(
        table, FILE
    ).tolist() == [0, 1]
    with pytest.raises(EdgeListError, match=r"column 'day' is date32.* and 'soon' is none"):
        row_filter("day > 'soon'").find_rows(table, FILE)


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("", "where is empty"),
        ("  ", "where is empty"),
        ("highway = 'motorway", r"character 11: .* a quote is left open"),
        ("lanes >", r"character 8: a value is missing.*before the end"),
        ("lanes in 3", r"character 10: 'in' needs a list"),
        ("lanes in ()", r"character 11: a value is missing"),
        ("lanes in (1, 'a')", r"character 17: the list mixes"),
        ("lanes > 1 and", r"character 14: the name of a column is missing"),
        ("(lanes > 1", r"character 11: '\)' is missing"),
        ("lanes > 1 lanes", r"character 11: 'and' or 'or' is missing"),
        ("lanes > 1 & src > 2", r"character 11: '&' is not understood; write and, or, not"),
        ("lanes == null", r"character 10: nothing is equal to null"),
        ("lanes is 3", r"character 10: 'null' is missing"),
        ("lanes not 3", r"character 11: 'in' is missing"),
        ("'a'", r"character 1: .* is no column"),
        ("1 == 1", r"character 6: the name of a column is missing"),
        ("lanes == 1e999", r"character 10: the number is too large"),
        ("lanes == " + "9" * 500, r"character 10: the number is too large"),
        ("lanes == 2x", r"character 10: '2' is not understood"),
        ("__import__('os')", r"character 11: 'and' or 'or' is missing"),
        ("lanes == 1; src", r"character 11: ';' is not understood"),
        ("(" * (MAX_DEPTH + 1) + "toll" + ")" * (MAX_DEPTH + 1), f"more than {MAX_DEPTH} levels"),
        ("not " * (MAX_DEPTH + 1) + "toll", f"more than {MAX_DEPTH} levels"),
        ("toll or " * (MAX_LENGTH // 8) + "toll", f"{MAX_LENGTH} are the most"),
        (3, "must be text or an expression of pyarrow, not a value of type int"),
        ("nothing == 1", "no column 'nothing', which where names; it has columns 'src'"),
        ("highway == motorway", "no column 'motorway', which where names"),
        ("highway > 3", "column 'highway' is .*string and is compared with 3"),
        ("lanes == 'two'", "column 'lanes' is .* and is compared with 'two'"),
        ("highway", "column 'highway' is .*string and no condition"),
        ("toll < true", "column 'toll' is bool, which < does not order"),
        (
            "highway == lanes",
            "column 'highway' is .* and column 'lanes' is .*; they cannot be compared",
        ),
    ],
)
def test_faults_of_a_condition_are_named(where, message):
    with pytest.raises(InputError, match=message):
        graph_from_edges(ROADS, where=where)


def test_a_long_chain_of_conditions_is_evaluated():
    graph = graph_from_edges(ROADS, where="toll or " * (MAX_LENGTH // 8 - 1) + "toll")
    assert graph.fingerprint == oracle(ROADS[ROADS.toll == True]).fingerprint  # noqa: E712


def test_a_filter_may_leave_out_rows_of_a_mapping_that_are_no_edges():
    table = {"src": [1, None, 3], "dst": pd.Series([2, 3, 4]), "weight": np.array([1, 2, np.nan])}
    assert graph_from_edges(table, where="src is not null and dst < 4").n_edges == 1
    with pytest.raises(EdgeListError, match="row 2: weight column 'weight' has 1 missing value"):
        graph_from_edges(table, where="src is not null")


def test_a_filter_may_leave_out_rows_that_are_no_edges(tmp_path):
    table = pd.DataFrame({"src": [1, None, 3], "dst": [2, 3, 4], "weight": [1.0, 2.0, np.nan]})
    for given in (table, table.to_csv(tmp_path / "e.csv", index=False) or tmp_path / "e.csv"):
        where = "src is not null and weight is not null"
        if given is table:
            given = table.astype({"src": "Int64"})
            assert read_graph(given, where=where, device="cpu").n_edges == 1
    (tmp_path / "e.csv").write_text("src,dst,weight\n1,2,1\n,3,2\n3,4,\n")
    assert read_graph(tmp_path / "e.csv", where=where, device="cpu").n_edges == 1
    with pytest.raises(
        EdgeListError, match=r"e.csv, row 2: weight column 'weight' has 1 missing value"
    ):
        read_graph(tmp_path / "e.csv", where="src is not null", device="cpu")


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas"])
def test_errors_name_rows_as_they_were_before_the_filter(tmp_path, kind):
    table = pd.DataFrame(
        {"src": [1, 2, 3], "dst": [2, 3, 4], "weight": [1.5, np.inf, np.inf], "use": [1, 0, 1]}
    )
    path = tmp_path / f"e.{kind}"
    if kind == "csv":
        path.write_text("src,dst,weight,use\n1,2,1.5,1\n2,3,inf,0\n3,4,1e999,1\n")
    elif kind == "parquet":
        table.to_parquet(path)
    with pytest.raises(
        EdgeListError, match=r"row 2.*weight.* (is inf|has 'inf'|has '1e999'|infinite)"
    ) as raised:
        read_graph(table if kind == "pandas" else path, where="use == 1", device="cpu")
    assert raised.value.row == 2


def test_text_that_is_no_number_is_named_with_its_row(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("src,dst,lanes\n1,2,1\n2,3,2;3\n3,1,\n")
    with pytest.raises(
        EdgeListError,
        match=r"e.csv, row 1: where column 'lanes' has '2;3', and where compares it with numbers",
    ):
        read_graph(path, where="lanes > 1", device="cpu")
    assert read_graph(path, where="lanes == '2;3'", device="cpu").n_edges == 1
    assert read_graph(path, where="lanes is null", device="cpu").n_edges == 1


def test_columns_without_names_and_folders_can_be_filtered(tmp_path):
    path = tmp_path / "e.txt"
    path.write_text("# no names\n1 2 5 a\n2 3 6 b\n")
    assert read_graph(path, where="`3` == 'b'", device="cpu").ids.tolist() == [2, 3]
    (tmp_path / "day=1").mkdir()
    (tmp_path / "day=2").mkdir()
    for day in (1, 2):
        pq.write_table(
            pa.table({"src": [day], "dst": [day + 1]}), tmp_path / f"day={day}" / "e.parquet"
        )
    graph = read_graph(tmp_path, where="day == 2", device="cpu", format="parquet", edge_ids=True)
    assert (graph.ids.tolist(), graph.edge_rows.tolist()) == ([2, 3], [1])


@pytest.mark.parametrize("name", ["e.mtx", "e.gr"])
def test_formats_without_columns_take_no_filter(tmp_path, name):
    text = (
        "p sp 3 1\na 1 2 5\n"
        if name == "e.gr"
        else "%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 2 5\n"
    )
    (tmp_path / name).write_text(text)
    for option in ({"where": "weight > 1"}, {"oneway_column": "oneway"}):
        with pytest.raises(
            InputError, match=r"have no column names; leave (where|oneway_column) out"
        ):
            read_graph(tmp_path / name, device="cpu", **option)
    assert read_graph(tmp_path / name, device="cpu", only_vertices=[1, 3]).ids.tolist() == [1, 3]


def test_columns_in_memory_take_no_filter_by_name():
    with pytest.raises(InputError, match="where is for tables and files"):
        graph_from_edges([1], [2], where="src == 1")
    with pytest.raises(InputError, match="there is no table; give the column itself"):
        graph_from_edges([1], [2], oneway="oneway")
    with pytest.raises(InputError, match="has no columns with names; leave where out"):
        graph_from_edges([(1, 2)], where="src == 1")


def test_tables_without_names_take_no_filter_and_no_column_by_name():
    import scipy.sparse

    index = np.array([[1, 2], [2, 3]])
    matrix = scipy.sparse.coo_array(np.ones((2, 2)))
    for table in ([(1, 2), (2, 3)], ((1, 2), (2, 3)), index, matrix):
        with pytest.raises(InputError, match=r"has no columns with names; leave where out"):
            graph_from_edges(table, where="src == 1")
        with pytest.raises(InputError, match=r"has no columns with names; leave oneway out"):
            graph_from_edges(table, oneway="oneway")
    with pytest.raises(InputError, match="oneway must be the name of a column of the table, not"):
        graph_from_edges(matrix, oneway=[1, 0, 1, 1])
    for columns in ((index, {"weight": [1, 2]}), (([1, 2], [2, 3]), {})):
        with pytest.raises(InputError, match="where is for tables and files"):
            graph_from_edges(columns[0], where="src == 1", **columns[1])


def test_edges_of_pyg_are_filtered_by_their_attributes():
    where, kept = "edge_speed < 100 and src != 4", (ROADS["max speed"] < 100) & (ROADS.src != 4)
    graph = graph_from_edges(pyg_data(), where=where, oneway="edge_oneway", edge_ids=True)
    assert (
        graph.fingerprint == oracle(listed_both_ways(ROADS[kept], ROADS.oneway[kept])).fingerprint
    )
    assert set(graph.edge_rows.tolist()) <= set(np.flatnonzero(kept))
    expression = (pc.field("edge_speed") < 100) & (pc.field("src") != 4)
    assert (
        graph_from_edges(pyg_data(), where=expression).fingerprint
        == oracle(ROADS[kept]).fingerprint
    )
    with pytest.raises(EdgeListError, match="edge_points cannot be read as a column"):
        graph_from_edges(pyg_data(), where="edge_points > 1")


@pytest.mark.parametrize(
    "kind", ["strings", "categories", "polars", "polars categories", "mapping", "dask", "numpy"]
)
def test_rows_of_string_ids_are_filtered(kind):
    rows = ROADS.assign(src="v" + ROADS.src.astype(str), dst="v" + ROADS.dst.astype(str))
    where = "highway != 'motorway' and src != 'v5'"
    kept = (ROADS.highway != "motorway") & ROADS.highway.notna() & (ROADS.src != 5)
    table = {
        "strings": lambda: rows,
        "categories": lambda: rows.astype({"src": "category", "dst": "category"}),
        "polars": lambda: need("polars").from_pandas(rows),
        "polars categories": lambda: need("polars").from_pandas(
            rows.astype({"src": "category", "dst": "category"})
        ),
        "mapping": lambda: {
            name: rows[name].tolist() for name in ("src", "dst", "weight", "highway", "oneway")
        },
        "dask": lambda: need("dask.dataframe").from_pandas(rows, npartitions=2),
        "numpy": lambda: {
            name: rows[name].to_numpy() for name in ("src", "dst", "weight", "highway", "oneway")
        },
    }[kind]()
    graph = graph_from_edges(table, where=where, oneway="oneway", edge_ids=True)
    assert graph.fingerprint == oracle(listed_both_ways(rows[kept], rows.oneway[kept])).fingerprint
    assert set(graph.edge_rows.tolist()) <= set(np.flatnonzero(kept))


@pytest.mark.gpu
@pytest.mark.parametrize("ids", ["integers", "strings", "dask"])
def test_frames_of_cudf_are_filtered(ids):
    cudf = need("cudf")
    rows = ROADS.drop(columns="lanes")
    if ids == "strings":
        rows = rows.assign(src="v" + rows.src.astype(str), dst="v" + rows.dst.astype(str))
    table = cudf.DataFrame.from_arrow(pa.Table.from_pandas(rows, preserve_index=False))
    table = need("dask_cudf").from_cudf(table, npartitions=2) if ids == "dask" else table
    where = "highway != 'motorway'"
    graph = graph_from_edges(table, where=where, oneway="oneway", edge_ids=True)
    expected = graph_from_edges(rows, where=where, oneway="oneway", edge_ids=True)
    assert (graph.device, graph.fingerprint) == (
        "cpu" if ids == "strings" else "cuda",
        expected.fingerprint,
    )
    np.testing.assert_array_equal(to_host(graph.edge_rows), expected.edge_rows)
    with pytest.raises(EdgeListError, match="where is true for none of the 7 rows"):
        graph_from_edges(table, where="highway == 'none'")


def test_columns_in_gpu_memory_are_filtered_there(xp):
    columns = {
        name: xp.asarray(ROADS[name].to_numpy()) for name in ("src", "dst", "weight", "max speed")
    }
    columns["highway"] = ROADS.highway.tolist()
    where, kept = "highway != 'motorway' and `max speed` < 60", [0, 5, 6]
    graph = graph_from_edges(columns, where=where, edge_ids=True)
    assert graph.device == get_device(columns["src"])
    assert graph.fingerprint == oracle(ROADS.iloc[kept]).fingerprint
    assert set(to_host(graph.edge_rows).tolist()) <= set(kept)


# Directions

WAYS = {
    "yes": (1,),
    "no": (1, -1),
    "-1": (-1,),
    "Yes": (1,),
    "FALSE": (1, -1),
    "reverse": (-1,),
    "0": (1, -1),
}


def listed_both_ways(rows, ways):
    """The same edges as a table of one-way edges."""
    found = []
    for row, way in zip(rows.itertuples(), ways, strict=True):
        found += [(row.src, row.dst, row.weight)] if 1 in WAYS[way] else []
        found += [(row.dst, row.src, row.weight)] if -1 in WAYS[way] else []
    return pd.DataFrame(found, columns=["src", "dst", "weight"])


@pytest.mark.parametrize("kind", KINDS)
def test_oneway_is_the_table_with_both_directions_listed(sources, kind):
    graph = read_graph(given(sources, kind), oneway_column="oneway", device="cpu")
    assert graph.fingerprint == oracle(listed_both_ways(ROADS, ROADS.oneway)).fingerprint
    assert (graph.report.rows, graph.report.self_loops, graph.report.oneway_column) == (
        7,
        1,
        "oneway",
    )
    where = "highway != 'motorway'"
    rows = ROADS[(ROADS.highway != "motorway") & ROADS.highway.notna()]
    graph = read_graph(given(sources, kind), oneway_column="oneway", where=where, device="cpu")
    assert graph.fingerprint == oracle(listed_both_ways(rows, rows.oneway)).fingerprint


@pytest.mark.parametrize(
    "column",
    [
        [True, False, True],
        [1, 0, 1],
        [1.0, 0.0, 1.0],
        ["yes", "no", "TRUE"],
        np.array([1, 0, 1], np.uint8),
        np.array([1, 0, 1], np.float16),
        pd.Series(["yes", "no", "yes"], dtype="category"),
        pa.array(["1", "0", "true"]),
    ],
    ids=["booleans", "integers", "floats", "text", "uint8", "float16", "categories", "arrow"],
)
def test_oneway_takes_columns_of_any_kind(column):
    expected = graph_from_edges([1, 2, 3, 3], [2, 3, 2, 1]).fingerprint
    src, dst = [1, 3, 3], [2, 2, 1]
    assert graph_from_edges(src, dst, oneway=column).fingerprint == expected
    assert (
        graph_from_edges({"src": src, "dst": dst, "o": column}, oneway="o").fingerprint == expected
    )
    pairs = list(zip(src, dst, strict=True))
    for edges in (pairs, np.array([src, dst])):
        assert graph_from_edges(edges, oneway=column).fingerprint == expected
    assert graph_from_edges((src, dst), oneway=column).fingerprint == expected
    names = [["a", "c", "c"], ["b", "b", "a"]]
    strings = graph_from_edges(*names, oneway=column)
    assert (
        strings.fingerprint
        == graph_from_edges(["a", "b", "c", "c"], ["b", "c", "b", "a"]).fingerprint
    )


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            [1, 2, 0],
            "row 1: oneway column 'oneway' has 2, which is no direction; give yes, true, 1, forward",
        ),
        (np.array([1, 2, 0], np.uint8), "row 1: .* has 2"),
        ([1, 0.5, 0], "row 1: .* has 0.5"),
        (["yes", "no", "reversible"], "row 2: .* has 'reversible', which is no direction"),
        (["yes", "", "no"], "row 1: .* has ''"),
        ([True, None, False], "row 1: .* has no value; give each row one of"),
        ([[True], [False], []], "has type list"),
        ([1, 0], "oneway has 2 rows, and the edge list has 3"),
        ([1, "no", True], "cannot be read as a column of one type"),
    ],
)
def test_oneway_refuses_other_values_with_their_row(column, message):
    with pytest.raises(EdgeListError, match=message):
        graph_from_edges([1, 2, 3], [2, 3, 1], oneway=column)


def test_oneway_contradicts_undirected_and_other_roles():
    with pytest.raises(
        InputError, match=r"oneway says which rows .* and directed=False says that all are"
    ):
        graph_from_edges(ROADS, oneway="oneway", directed=np.False_)
    with pytest.raises(InputError, match="oneway_column says which rows"):
        read_graph(ROADS, oneway_column="oneway", directed=False, device="cpu")
    with pytest.raises(InputError, match=r"must differ|is an end or the weight"):
        read_graph(ROADS, oneway_column="weight", device="cpu")
    with pytest.raises(EdgeListError, match="no column 'way', which oneway names"):
        graph_from_edges(ROADS, oneway="way")


# Vertices to keep


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("oneway", [False, True])
def test_only_vertices_is_the_subgraph_of_networkx(xp, directed, oneway):
    rng = np.random.default_rng(3)
    src, dst, weight = (
        rng.integers(0, 30, 200) * 5,
        rng.integers(0, 30, 200) * 5,
        rng.integers(1, 99, 200),
    )
    ways = rng.choice(np.array([-1, 0, 1], np.int8), 200) if oneway and directed else None
    whole = nx.DiGraph() if directed else nx.Graph()
    best: dict = {}
    for row, (u, v, w) in enumerate(zip(src.tolist(), dst.tolist(), weight.tolist(), strict=True)):
        forth, back = (True, False) if ways is None else (ways[row] >= 0, ways[row] <= 0)
        for edge in [(u, v)] * int(forth) + [(v, u)] * int(back):
            key = edge if directed else tuple(sorted(edge))
            best[key] = min(w, best.get(key, w))
    whole.add_nodes_from({*src.tolist(), *dst.tolist()})
    whole.add_weighted_edges_from((u, v, w) for (u, v), w in best.items() if u != v)
    chosen = sorted(set(rng.choice(src, 14).tolist()))
    part = whole.subgraph(chosen)
    columns = [xp.asarray(column) for column in (src, dst, weight)]
    graph = graph_from_edges(
        *columns,
        directed=directed,
        only_vertices=chosen,
        edge_ids=True,
        oneway=None if ways is None else xp.asarray(ways),
    )
    assert to_host(graph.ids).tolist() == chosen
    starts = np.repeat(np.arange(graph.n_vertices), np.diff(to_host(graph.offsets)))
    ids = to_host(graph.ids)
    edges = zip(
        ids[starts].tolist(),
        ids[to_host(graph.targets)].tolist(),
        to_host(graph.weights).tolist(),
        strict=True,
    )
    stored = {(u, v): w for u, v, w in edges}
    expected = {(u, v): w for u, v, w in part.edges(data="weight")}
    assert stored == expected | ({} if directed else {(v, u): w for (u, v), w in expected.items()})
    assert graph.report.filtered_rows == 200 - sum(np.isin(src, chosen) & np.isin(dst, chosen))
    rows = to_host(graph.edge_rows)
    np.testing.assert_array_equal(weight[rows], to_host(graph.weights))
    new = xp.asarray(rng.random(200))
    rebuilt = graph_from_edges(
        *columns[:2],
        new,
        directed=directed,
        only_vertices=chosen,
        oneway=None if ways is None else xp.asarray(ways),
    )
    assert with_weights(graph, new).fingerprint == rebuilt.fingerprint


def test_weights_of_rows_that_a_filter_left_out_do_not_matter():
    graph = graph_from_edges(ROADS, where="highway != 'motorway'", edge_ids=True)
    new = np.array([1, np.nan, np.inf, 2, np.nan, 3, 4])
    rows = ROADS.assign(weight=new)[(ROADS.highway != "motorway") & ROADS.highway.notna()]
    assert with_weights(graph, new).fingerprint == oracle(rows).fingerprint
    closed, infinite = (
        with_weights(graph, np.array([1, 1, 1, 1, 1, none, 1])) for none in (np.nan, np.inf)
    )
    assert closed.fingerprint == infinite.fingerprint
    assert closed.n_edges < graph.n_edges
    with pytest.raises(EdgeListError, match="4 weights for 7 rows of the edge list"):
        with_weights(graph, [1, 2, 3, 4])


def test_only_vertices_of_strings_and_files(tmp_path):
    table = pa.table({"src": ["a", "b", "c"], "dst": ["b", "c", "a"]})
    expected = graph_from_edges(["a"], ["b"]).fingerprint
    assert graph_from_edges(table, only_vertices=["b", "a", "b"]).fingerprint == expected
    (tmp_path / "ids.txt").write_text("b\na\n")
    assert (
        read_graph(table, only_vertices=tmp_path / "ids.txt", device="cpu").fingerprint == expected
    )
    assert graph_from_edges(table, only_vertices=["a", "d"], vertices=["d"]).ids.to_pylist() == [
        "a",
        "d",
    ]


def test_unknown_and_no_vertices_to_keep_are_refused():
    with pytest.raises(
        UnknownVertexError, match=r"2 only_vertices ids are not in the graph: 77, 88"
    ):
        graph_from_edges(ROADS, only_vertices=[1, 77, 88])
    with pytest.raises(UnknownVertexError, match="not in the graph: 2"):
        graph_from_edges(ROADS, where="src == 4", only_vertices=[1, 2])
    with pytest.raises(UnknownVertexError, match="must be a list of ids"):
        graph_from_edges(ROADS, only_vertices="1")
    with pytest.raises(UnknownVertexError, match="the ids of this graph are integers"):
        graph_from_edges(ROADS, only_vertices=["1"])
    with pytest.raises(InputError, match="only_vertices is empty"):
        graph_from_edges(ROADS, only_vertices=[])
    assert graph_from_edges(ROADS, only_vertices=[1, 3]).n_edges == 0


def test_columns_of_a_mapping_that_do_not_fit_are_refused():
    with pytest.raises(
        EdgeListError,
        match="columns must be one-dimensional and of one length: src has 2, dst has 2, k has 1",
    ):
        graph_from_edges({"src": [1, 2], "dst": [2, 3], "k": [1]}, where="k == 1")
    with pytest.raises(EdgeListError, match="a column of type list"):
        graph_from_edges({"src": [1, 2], "dst": [2, 3], "k": [[1], [2]]}, where="k == 1")
