"""Any table is a graph: edges in memory of every kind give one graph, or one error of ours that says what to do."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from kepler_traverse import (
    bfs,
    convert,
    csgraph,
    graph_from_edges,
    load_graph,
    read_graph,
    save_graph,
    sssp,
)
from kepler_traverse.errors import DeviceError, EdgeListError, InputError
from kepler_traverse.formats.tables import is_table, read_table
from tests.support.edge_files import need
from tests.support.graphs import edge_rows, weighted_rows

SRC = [0, 1, 2, 3, 4, 5, 6, 0, 2, 5]
DST = [1, 2, 3, 4, 5, 6, 0, 3, 6, 1]
WEIGHT = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
N = 7
EXPECTED = graph_from_edges(np.array(SRC), np.array(DST), np.array(WEIGHT))
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")


def arrays():
    return np.array(SRC), np.array(DST), np.array(WEIGHT)


def frame():
    return pd.DataFrame({"name": ["x"] * len(SRC), "src": SRC, "dst": DST, "weight": WEIGHT})


def table():
    return pa.table({"src": SRC, "dst": DST, "weight": WEIGHT, "more": ["x"] * len(SRC)})


class ArrowStream:
    """An object with nothing but the Arrow stream interface."""

    def __init__(self, held):
        self.held = held

    def __arrow_c_stream__(self, requested_schema=None):
        return self.held.__arrow_c_stream__(requested_schema)


class ArrowArray:
    """An object with nothing but the Arrow array interface, which hands out one record batch."""

    def __init__(self, held):
        self.held = held

    def __arrow_c_array__(self, requested_schema=None):
        return self.held.__arrow_c_array__(requested_schema)


class Interchange:
    """An object with nothing but the data frame interchange protocol."""

    def __init__(self, held):
        self.held = held

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self.held.__dataframe__(nan_as_null, allow_copy)


def matrix(kind="coo", family="matrix", weight=WEIGHT):
    make = scipy.sparse.coo_matrix if family == "matrix" else scipy.sparse.coo_array
    found = make((np.array(weight), (SRC, DST)), shape=(N, N))
    return found.tobsr(blocksize=(1, 1)) if kind == "bsr" else found.asformat(kind)


def multi_graph():
    """A street network as OSMnx has it, with parallel edges."""
    networkx = pytest.importorskip("networkx")
    streets = networkx.MultiDiGraph(crs="epsg:4326")
    for node in range(N):
        streets.add_node(node, x=8.0 + node, y=48.0)
    for u, v, w in zip(SRC, DST, WEIGHT, strict=True):
        streets.add_edge(u, v, osmid=u * 10 + v, length=w)
    streets.add_edge(SRC[0], DST[0], osmid=1, length=WEIGHT[0] + 7)
    return streets


def polars_frame():
    return need("polars").DataFrame(
        {"src": SRC, "dst": DST, "weight": WEIGHT, "more": ["x"] * len(SRC)}
    )


def data_of_pyg(**more):
    torch, data = need("torch"), need("torch_geometric.data")
    return data.Data(edge_index=torch.tensor([SRC, DST]), num_nodes=N, **more)


def duckdb_relation():
    duckdb = need("duckdb")
    edges = table()
    return duckdb.from_arrow(edges)


def of_dask(pandas_frame):
    return need("dask.dataframe").from_pandas(pandas_frame, npartitions=3)


def of_geopandas():
    geopandas, shapely = need("geopandas"), need("shapely")
    lines = [shapely.LineString([(u, 0), (v, 1)]) for u, v in zip(SRC, DST, strict=True)]
    columns = {"u": SRC, "v": DST, "key": 0, "length": WEIGHT, "oneway": True}
    return geopandas.GeoDataFrame(columns, geometry=lines, crs="epsg:4326")


def of_igraph():
    igraph = pytest.importorskip("igraph")
    made = igraph.Graph(n=N, edges=list(zip(SRC, DST, strict=True)), directed=True)
    made.es["cost"] = WEIGHT
    return made


def torch_columns():
    torch = need("torch")
    return [torch.tensor(column) for column in (SRC, DST, WEIGHT)]


KINDS = {
    "pandas": lambda: graph_from_edges(frame()),
    "pandas with nullable types": lambda: graph_from_edges(frame().convert_dtypes()),
    "pandas backed by pyarrow": lambda: graph_from_edges(
        frame().convert_dtypes(dtype_backend="pyarrow")
    ),
    "pandas of categories": lambda: graph_from_edges(
        frame().astype({"src": "category", "dst": "category"})
    ),
    "pandas with the ends in the index": lambda: graph_from_edges(
        frame().set_index(["src", "dst"])
    ),
    "pandas by other names": lambda: graph_from_edges(
        frame().rename(columns={"src": "x", "dst": "y", "weight": "z"}),
        src="x",
        dst="y",
        weight="z",
    ),
    "pandas by names after it": lambda: graph_from_edges(frame(), "src", "dst", "weight"),
    "pandas with columns that are numbers": lambda: graph_from_edges(
        pd.DataFrame(np.array([SRC, DST, WEIGHT]).T), src="0", dst="1", weight="2"
    ),
    "pandas with a column that Arrow lacks": lambda: graph_from_edges(
        frame().assign(when=pd.period_range("2026", periods=len(SRC), freq="D"), what=object())
    ),
    "pyarrow table": lambda: graph_from_edges(table()),
    "pyarrow table of several chunks": lambda: graph_from_edges(
        pa.concat_tables([table()[:3], table()[3:]])
    ),
    "pyarrow table of dictionaries": lambda: graph_from_edges(
        pa.table(
            [column.dictionary_encode() for column in table().columns], names=table().column_names
        )
    ),
    "record batch": lambda: graph_from_edges(table().to_batches()[0]),
    "record batch reader": lambda: graph_from_edges(table().to_reader(max_chunksize=3)),
    "Arrow stream": lambda: graph_from_edges(ArrowStream(table())),
    "Arrow array": lambda: graph_from_edges(ArrowArray(table().to_batches()[0])),
    "interchange protocol": lambda: graph_from_edges(Interchange(table())),
    "mapping of lists": lambda: graph_from_edges({"from": SRC, "to": DST, "cost": WEIGHT}),
    "mapping of all kinds": lambda: graph_from_edges(
        {"u": pa.array(SRC), "v": pd.Series(DST), "w": tuple(WEIGHT)}
    ),
    "numpy arrays": lambda: graph_from_edges(*arrays()),
    "numpy arrays by name": lambda: graph_from_edges(
        src=arrays()[0], dst=arrays()[1], weight=arrays()[2]
    ),
    "lists": lambda: graph_from_edges(SRC, DST, WEIGHT),
    "tuple of lists": lambda: graph_from_edges((SRC, DST, WEIGHT)),
    "tuple of arrays": lambda: graph_from_edges(arrays()),
    "list of tuples": lambda: graph_from_edges(list(zip(SRC, DST, WEIGHT, strict=True))),
    "tuple of tuples": lambda: graph_from_edges(tuple(zip(SRC, DST, WEIGHT, strict=True))),
    "list of lists": lambda: graph_from_edges(
        [list(row) for row in zip(SRC, DST, WEIGHT, strict=True)]
    ),
    "edge_index of numpy": lambda: graph_from_edges(np.array([SRC, DST]), weight=WEIGHT),
    "read_graph of a table": lambda: read_graph(frame(), device="cpu"),
    "read_graph of arrays": lambda: read_graph(
        {"src": SRC, "dst": DST, "weight": WEIGHT}, device="cpu"
    ),
    "Dask frame": lambda: graph_from_edges(of_dask(frame())),
    "Dask frame with an end in the index": lambda: graph_from_edges(
        of_dask(frame().set_index("src"))
    ),
    "Dask Series": lambda: graph_from_edges(
        *(of_dask(frame())[name] for name in ("src", "dst", "weight"))
    ),
    "NetworkX": lambda: convert.from_networkx(multi_graph(), weight="length"),
    "igraph": lambda: convert.from_igraph(of_igraph(), weight="cost"),
    "polars": lambda: graph_from_edges(polars_frame()),
    "polars lazy": lambda: graph_from_edges(polars_frame().lazy()),
    "polars Series": lambda: graph_from_edges(
        *(polars_frame()[name] for name in ("src", "dst", "weight"))
    ),
    "DuckDB": lambda: graph_from_edges(duckdb_relation()),
    "torch": lambda: graph_from_edges(*torch_columns()),
    "edge_index of torch": lambda: graph_from_edges(
        need("torch").tensor([SRC, DST]), weight=torch_columns()[2]
    ),
    "PyG with edge_weight": lambda: graph_from_edges(data_of_pyg(edge_weight=torch_columns()[2])),
    "PyG with edge_attr": lambda: graph_from_edges(
        data_of_pyg(edge_attr=torch_columns()[2]), weight="edge_attr"
    ),
    "GeoPandas": lambda: graph_from_edges(of_geopandas()),
    "GeoPandas with u, v, key in the index": lambda: graph_from_edges(
        of_geopandas().set_index(["u", "v", "key"])
    ),
    "OSMnx edges": lambda: graph_from_edges(
        need("osmnx").graph_to_gdfs(multi_graph(), nodes=False, fill_edge_geometry=True)
    ),
    **{
        f"scipy {kind} {family}": lambda kind=kind, family=family: graph_from_edges(
            matrix(kind, family)
        )
        for kind in FORMATS
        for family in ("matrix", "array")
    },
}


@pytest.mark.parametrize("kind", KINDS)
def test_edges_of_every_kind_give_one_graph(kind):
    graph = KINDS[kind]()
    assert graph.device == "cpu"
    assert graph.fingerprint == EXPECTED.fingerprint
    assert sssp(graph, 0).equals(sssp(EXPECTED, 0))


@pytest.mark.parametrize("directed", [True, False])
def test_the_rules_of_the_builder_hold_for_tables(directed):
    edges = {"u": [1, 1, 2, 2], "v": [2, 2, 1, 2], "cost": [5, 3, 4, 1], "other": [0, 0, 0, 0]}
    graph = graph_from_edges(
        pd.DataFrame(edges), directed=directed, vertices=[9], weight_type="float64"
    )
    assert graph.report.rows == 4
    assert graph.report.self_loops == 1
    assert graph.report.isolated_vertices == 1
    assert (graph.report.src_column, graph.report.dst_column, graph.report.weight_column) == (
        "u",
        "v",
        "cost",
    )
    assert graph.report.unused_columns == ("other",)
    assert graph.ids.tolist() == [1, 2, 9]
    assert graph.weights.tolist() == ([3.0, 4.0] if directed else [3.0, 3.0])
    assert graph.distance_dtype == np.float64


@pytest.mark.parametrize(
    "make", [frame, table, polars_frame, duckdb_relation, lambda: of_dask(frame())]
)
def test_unused_columns_of_a_table_are_reported_and_weights_can_be_left_out(make):
    graph = graph_from_edges(make(), weighted=False)
    assert graph.weights is None
    assert "weight" in graph.report.unused_columns
    assert graph.n_edges == EXPECTED.n_edges


# --- sparse matrices


@pytest.mark.parametrize("family", ["matrix", "array"])
@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "csr", "dok", "lil"])
def test_an_explicit_zero_is_an_edge(kind, family):
    zeros = [0, *WEIGHT[1:]]
    graph = graph_from_edges(matrix(kind, family, zeros))
    assert graph.fingerprint == graph_from_edges(SRC, DST, zeros).fingerprint
    assert sssp(graph, 0)["distance"].tolist()[1] == 0


def test_a_zero_in_dia_is_no_edge_as_in_scipy():
    band = scipy.sparse.dia_matrix(np.diag([2, 0, 3], 1))
    assert graph_from_edges(band).n_edges == 2
    assert graph_from_edges(band.tocsr()).n_edges == 2


def test_zeros_in_blocks_of_bsr_are_refused_because_they_may_be_no_edges():
    blocks = scipy.sparse.bsr_array(matrix("csr", "array"), blocksize=(7, 7))
    with pytest.raises(EdgeListError, match=r"zeros in its blocks.*tocsr\(\).*eliminate_zeros\(\)"):
        graph_from_edges(blocks)
    full = scipy.sparse.bsr_array(np.arange(1, 17).reshape(4, 4), blocksize=(2, 2))
    assert graph_from_edges(full).fingerprint == graph_from_edges(full.tocsr()).fingerprint


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_entries_that_are_stored_twice_are_neither_added_nor_lost_in_silence(kind):
    if kind == "coo":
        twice = scipy.sparse.coo_array(([1, 2, 3], ([0, 0, 1], [1, 1, 2])), shape=(3, 3))
    else:
        make = scipy.sparse.csr_array if kind == "csr" else scipy.sparse.csc_array
        twice = make(([1, 2, 3], [1, 1, 2], [0, 2, 3, 3]), shape=(3, 3))
    form = "give its row, col" if kind == "coo" else r"data of its tocoo\(\)"
    with pytest.raises(EdgeListError, match=rf"more than once: call sum_duplicates\(\).*{form}"):
        graph_from_edges(twice)
    assert graph_from_edges(twice, weighted=False).n_edges == 2
    entries = twice if kind == "coo" else twice.tocoo()
    assert graph_from_edges(entries.row, entries.col, entries.data).weights.tolist() == [1, 3]
    twice.sum_duplicates()
    assert graph_from_edges(twice).weights.tolist() == [3, 3]


def test_unsorted_indices_of_a_matrix_are_no_duplicates():
    unsorted = scipy.sparse.csr_array(([1, 2, 3], [2, 1, 0], [0, 2, 3, 3]), shape=(3, 3))
    assert graph_from_edges(unsorted).targets.tolist() == [1, 2, 0]
    assert unsorted.indices.tolist() == [2, 1, 0]


def test_a_matrix_has_vertices_without_edges_and_boolean_entries_no_weight():
    few = scipy.sparse.coo_matrix(([True], ([1], [3])), shape=(6, 6))
    graph = graph_from_edges(few, directed=False)
    assert graph.ids.tolist() == list(range(6))
    assert graph.weights is None
    assert graph.report.isolated_vertices == 4
    assert graph_from_edges(few, vertices=[10]).n_vertices == 7
    assert graph_from_edges(scipy.sparse.csr_array((3, 3), dtype=np.int64)).n_edges == 0


def set_at(part, at, value):
    def damage(broken):
        getattr(broken, part)[at] = value

    return damage


def cut(part):
    return lambda broken: setattr(broken, part, getattr(broken, part)[:-1])


# Native code reads beyond its arrays, or never ends, if it gets one of these.
DAMAGE = {
    "csr bsr indptr far out": set_at("indptr", 1, 10**6),
    "csc indptr falls": set_at("indptr", 1, -5),
    "csr indptr begins late": set_at("indptr", 0, 1),
    "csr indptr cut": cut("indptr"),
    "csc indptr of lists": lambda broken: setattr(broken, "indptr", broken.indptr.tolist()),
    "csr csc bsr indices far out": set_at("indices", 0, 10**6),
    "csr csc bsr indices below 0": set_at("indices", 3, -1),
    "csr bsr indices cut": cut("indices"),
    "csr csc bsr data cut": cut("data"),
    "csr indices of floats": lambda broken: setattr(broken, "indices", broken.indices + 0.5),
    "coo row far out": lambda broken: setattr(broken, "row", broken.row + 10**6),
    "coo col below 0": lambda broken: setattr(broken, "col", broken.col - 9),
    "coo data cut": cut("data"),
    "lil rows far out": lambda broken: broken.rows[0].__setitem__(0, 10**6),
    "lil more rows than the shape": lambda broken: (
        setattr(broken, "rows", np.r_[broken.rows, broken.rows]),
        setattr(broken, "data", np.r_[broken.data, broken.data]),
    ),
    "lil data cut": lambda broken: broken.data[0].pop(),
    "lil rows cut": lambda broken: broken.rows[0].pop(),
    "dia offsets cut": cut("offsets"),
}


@pytest.mark.parametrize(
    ("kind", "damage"),
    [(kind, what) for what in DAMAGE for kind in what.split() if kind in FORMATS],
)
def test_a_matrix_whose_arrays_do_not_fit_together_is_refused_by_every_door(kind, damage):
    for family in ("matrix", "array"):
        for door in (
            graph_from_edges,
            csgraph.from_matrix,
            lambda broken: csgraph.dijkstra(broken, directed=False, indices=0),
            lambda broken: csgraph.shortest_path(broken, "FW"),
            lambda broken: csgraph.breadth_first_tree(broken, 0),
        ):
            broken = matrix(kind, family)
            DAMAGE[damage](broken)
            with pytest.raises(InputError, match=r"make the matrix again"):
                door(broken)


BAD_MATRICES = {
    "not square": (lambda: scipy.sparse.coo_matrix((3, 4)), {}, r"must be square.*\(3, 4\)"),
    "one dimension": (
        lambda: scipy.sparse.coo_array(([1], ([2],)), shape=(4,)),
        {},
        r"must be square",
    ),
    "names": (matrix, {"src": "row", "dst": "col"}, "leave src out"),
    "complex": (
        lambda: matrix(weight=[1j] * len(SRC)),
        {},
        "weights must be numbers, not complex128",
    ),
    "NaN": (lambda: matrix(weight=[np.nan, *WEIGHT[1:]]), {}, "row 0.*NaN"),
    "booleans as weights": (
        lambda: matrix(weight=[True] * len(SRC)),
        {"weighted": True},
        "weights must be numbers, not bool",
    ),
    "a shape beyond memory": (
        lambda: scipy.sparse.coo_matrix(([1], ([0], [1])), shape=(2**45, 2**45)),
        {},
        "35184372088832 vertices.*give its edges as src, dst and weight",
    ),
}


@pytest.mark.parametrize("what", BAD_MATRICES)
def test_a_matrix_that_is_no_graph_is_refused(what):
    make, options, says = BAD_MATRICES[what]
    with pytest.raises(InputError, match=says):
        graph_from_edges(make(), **options)


def test_a_matrix_read_by_read_graph_takes_no_type_of_ids():
    with pytest.raises(InputError, match="leave id_type out"):
        read_graph(matrix(), id_type="string", device="cpu")


# --- ids and weights

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


@pytest.mark.parametrize("dst_type", INTEGERS)
@pytest.mark.parametrize("src_type", INTEGERS)
def test_integer_ids_of_any_two_widths_are_one_graph(src_type, dst_type):
    src, dst, weight = arrays()
    columns = {"src": src.astype(src_type), "dst": dst.astype(dst_type), "weight": weight}
    of_arrays, of_frame, of_arrow = (
        graph_from_edges(*columns.values()),
        graph_from_edges(pd.DataFrame(columns)),
        graph_from_edges(pa.table(columns)),
    )
    assert of_arrays.fingerprint == of_frame.fingerprint == of_arrow.fingerprint
    assert of_arrays.ids.tolist() == list(range(N))
    assert np.array_equal(of_arrays.targets, EXPECTED.targets)


IDS = st.integers(-(2**63), 2**64 - 1)
SIGNED, UNSIGNED = st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**64 - 1)


@given(
    st.one_of(
        *(st.lists(st.tuples(ids, ids), min_size=4, max_size=12) for ids in (SIGNED, UNSIGNED, IDS))
    )
)
def test_ids_of_64_bits_are_exact_or_refused(rows):
    src, dst = ([row[i] for row in rows] for i in (0, 1))
    known = {*src, *dst}
    makers = [
        lambda: graph_from_edges(src, dst),
        lambda: graph_from_edges(rows),
        lambda: graph_from_edges({"u": src, "v": dst}),
    ]
    if min(known) < 0 and max(known) >= 2**63:
        for make in makers:
            with pytest.raises(
                EdgeListError, match=r"no integer type holds both|neither int64 nor uint64"
            ):
                make()
        return
    for make in makers:
        graph = make()
        assert graph.ids.tolist() == sorted(known)
        found = zip(
            np.repeat(graph.ids, graph.derived.degrees).tolist(),
            graph.ids[graph.targets].tolist(),
            strict=True,
        )
        assert set(found) == {(u, v) for u, v in rows if u != v}


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(st.lists(st.tuples(WORDS, WORDS), min_size=4, max_size=12))
def test_string_ids_of_every_kind_are_one_graph(rows):
    columns = {"src": [row[0] for row in rows], "dst": [row[1] for row in rows]}
    graphs = [
        graph_from_edges(columns),
        graph_from_edges(rows),
        graph_from_edges(*columns.values()),
        graph_from_edges(pa.table(columns)),
        graph_from_edges(pd.DataFrame(columns)),
        graph_from_edges(pd.DataFrame(columns, dtype=object)),
        graph_from_edges(pd.DataFrame(columns).astype("category")),
        graph_from_edges(*(pd.Series(column).astype("category") for column in columns.values())),
        graph_from_edges(*(np.array(column, object) for column in columns.values())),
        graph_from_edges(
            *(np.array(column, np.dtypes.StringDType()) for column in columns.values())
        ),
        graph_from_edges(*(pa.array(column, pa.string_view()) for column in columns.values())),
        graph_from_edges(*(pa.array(column).dictionary_encode() for column in columns.values())),
    ]
    assert len({graph.fingerprint for graph in graphs}) == 1
    assert graphs[0].ids.to_pylist() == sorted({*columns["src"], *columns["dst"]}, key=str.encode)


@pytest.mark.parametrize("package", ["polars", "duckdb"])
def test_string_ids_of_other_libraries_are_the_same(package):
    library = need(package)
    names = pa.table({"src": ["a", "é", ""], "dst": ["b", "a", "é"]})
    expected = graph_from_edges(names).fingerprint
    if package == "duckdb":
        assert graph_from_edges(library.from_arrow(names)).fingerprint == expected
        return
    edges = library.from_arrow(names)
    for kind in (library.String, library.Categorical):
        typed = edges.with_columns(library.all().cast(kind))
        assert graph_from_edges(typed).fingerprint == expected
        assert graph_from_edges(typed["src"], typed["dst"]).fingerprint == expected


def test_numpy_strings_are_ids_and_isolated_vertices_too():
    graph = graph_from_edges(np.array(["b", "a"]), np.array(["a", "c"]), [1.5, 2.5], vertices=["z"])
    assert graph.ids.to_pylist() == ["a", "b", "c", "z"]
    assert bfs(graph, "b")["distance"].tolist() == [1, 0, 2]


@pytest.mark.parametrize("id_type", ["string", "int32", "uint8"])
def test_read_graph_takes_a_type_of_ids_for_tables_too(id_type):
    for edges in (
        frame(),
        {"src": SRC, "dst": DST, "weight": WEIGHT},
        list(zip(SRC, DST, WEIGHT, strict=True)),
    ):
        graph = read_graph(edges, id_type=id_type, device="cpu")
        assert (graph.ids.type == "string") if id_type == "string" else (graph.ids.dtype == id_type)
        assert (
            [str(i) for i in graph.ids.to_pylist()] == list(map(str, range(N)))
            if id_type == "string"
            else True
        )
    with pytest.raises(EdgeListError, match="does not fit id_type='int8'"):
        read_graph({"src": [1, 2], "dst": [2, 300]}, id_type="int8", device="cpu")


def test_distances_of_float_weights_are_of_their_type():
    for kind in (np.float32, np.float64):
        weights = np.array(WEIGHT, kind) / 3
        graphs = [
            graph_from_edges(SRC, DST, weights),
            graph_from_edges(pd.DataFrame({"u": SRC, "v": DST, "w": weights})),
        ]
        assert {graph.distance_dtype for graph in graphs} == {np.dtype(kind)}
        assert len({graph.fingerprint for graph in graphs}) == 1


# --- errors


def columns_with(**other):
    return {"src": SRC[:3], "dst": DST[:3], "weight": WEIGHT[:3]} | other


BAD_FRAMES = {
    "null ids": (
        columns_with(src=pd.array([1, None, 2], "Int64")),
        {},
        "row 1: src column 'src' has 1 missing value",
    ),
    "null strings": (
        columns_with(src=["a", None, "b"], dst=["a", "b", "c"]),
        {},
        "row 1: src column 'src' has 1 missing",
    ),
    "ids that are floats": (
        columns_with(dst=[1.0, 2.0, np.nan]),
        {},
        "dst column 'dst' has type double; vertex ids must be",
    ),
    "ids that are dates": (
        columns_with(dst=pd.date_range("2026", periods=3)),
        {},
        "dst column 'dst' has type timestamp",
    ),
    "ids of mixed kinds": (
        columns_with(src=[1, "a", 2]),
        {},
        "src column 'src' holds values of several kinds",
    ),
    "ids that no type holds": (
        columns_with(src=[2**70, 1, 2]),
        {},
        "src column 'src' holds values of several kinds, or",
    ),
    "integers and strings": (
        columns_with(dst=["a", "b", "c"]),
        {},
        r"one end is an integer.*\.astype\(str\), takes both",
    ),
    "NaN weights": (
        columns_with(weight=[1, np.nan, 2]),
        {},
        "row 1: weight column 'weight' has 1 missing value",
    ),
    "infinite weights": (
        columns_with(weight=[1, 2, np.inf]),
        {},
        "row 2, column 'weight': the weight is inf",
    ),
    "strings as weights": (
        columns_with(weight=["1", "2", "3"]),
        {},
        "weight column 'weight' has type .*string; weights must",
    ),
    "booleans as weights": (
        columns_with(weight=[True, False, True]),
        {},
        "has type bool; weights must be",
    ),
    "a wrong name": (
        columns_with(),
        {"src": "a", "dst": "dst"},
        "no column 'a', which src names; it has columns 'src'",
    ),
    "one name alone": (columns_with(), {"src": "src"}, "src and dst go together"),
    "a name twice": (columns_with(), {"src": "src", "dst": "src"}, "must differ"),
    "no known names": (
        {"a": [1], "b": [2]},
        {},
        "known by their names.*name them with src and dst",
    ),
    "two weights": (
        columns_with(cost=WEIGHT[:3]),
        {},
        "the weight could be 'weight' or 'cost'; name one with weight.*weighted=F",
    ),
    "no weight": (
        {"src": SRC, "dst": DST},
        {"weighted": True},
        "no weight column is known by its name.*name one with weight",
    ),
    "one column": ({"a": [1]}, {}, "an edge needs two columns"),
    "no rows": (
        {"src": [], "dst": []},
        {},
        r"no edges \(0 rows\); for a graph without edges give its vertices",
    ),
    "a column as a name": (
        columns_with(),
        {"src": "src", "dst": "dst", "weight": WEIGHT[:3]},
        "weight must be the name of a col",
    ),
}


@pytest.mark.parametrize("what", BAD_FRAMES)
def test_a_bad_frame_is_refused_with_the_column_and_what_to_do(what):
    columns, options, says = BAD_FRAMES[what]
    with pytest.raises(InputError, match=says):
        graph_from_edges(pd.DataFrame(columns), **options)


@pytest.mark.parametrize(
    "what",
    [what for what, (columns, _, _) in BAD_FRAMES.items() if what != "ids that no type holds"],
)
def test_a_bad_arrow_table_and_mapping_are_refused_too(what):
    columns, options, _ = BAD_FRAMES[what]
    with pytest.raises(InputError):
        graph_from_edges(dict(columns), **options)
    try:
        arrow = pa.table({name: pa.array(column) for name, column in columns.items()})
    except (pa.ArrowException, TypeError):
        return  # Arrow has no such column
    with pytest.raises(InputError):
        graph_from_edges(arrow, **options)


BAD_CALLS = {
    "nothing": ((), {}, "src is missing: give a table, or src and dst"),
    "one column": (([1, 2],), {}, "dst is missing"),
    "a path": (("edges.parquet",), {}, "read_graph reads files"),
    "four columns": (([1], [2], [3], [4]), {}, "not 4 columns"),
    "a column twice": (([1], [2]), {"src": [1]}, "src is given twice, by position and by name"),
    "lengths": (([1, 2, 3], [2, 3]), {}, "src has 3, dst has 2 rows"),
    "lengths of weights": (([1, 2], [2, 3], [1]), {}, "weight has 1 rows"),
    "lengths of strings": ((["a", "b"], ["b"]), {}, "src has 2, dst has 1 rows"),
    "null strings": ((["a", None], ["b", "c"]), {}, "src holds 1 nulls: drop those rows"),
    "null integers": ((pa.array([1, None]), [1, 2]), {}, "src holds 1 nulls: drop those rows"),
    "masked": ((np.ma.array([1, 2], mask=[False, True]), [1, 2]), {}, "src is masked at row 1"),
    "mixed ids": (
        ([1, "a"], [2, 3]),
        {},
        "src holds strings and other values.*convert all ids to strings",
    ),
    "half a character": (
        (["a", "\ud800"], ["b", "c"]),
        {},
        "src holds strings that are not valid Unicode text",
    ),
    "one end is text": ((["a", "b"], [1, 2]), {}, "one end is an integer, the other a string"),
    "strings as weights": (
        ([1], [2], ["3"]),
        {},
        "weight must hold numbers, not strings; convert them",
    ),
    "float ids": (([1.5], [2]), {}, "src: vertex ids must be integers, not float64"),
    "boolean ids": ((np.array([True]), [2]), {}, "src: vertex ids must be integers, not bool"),
    "NaN": (([1, 2], [2, 3], [1.0, np.nan]), {}, "weight of row 1 is NaN"),
    "vertices of another kind": (
        ([1], [2]),
        {"vertices": ["a"]},
        "vertices must hold numbers, not strings",
    ),
    "vertices that are numbers": (
        (["a"], ["b"]),
        {"vertices": [1]},
        "vertices must be strings like the ids",
    ),
    "weights without": (([1], [2]), {"weighted": True}, "weighted=True requires weights"),
    "weights and none": (([1], [2], [3]), {"weighted": False}, "contradict each other"),
    "directed": (([1], [2]), {"directed": None}, "directed must be True or False, not None"),
    "weighted": (([1], [2]), {"weighted": 1}, "weighted must be True or False, not 1"),
    "two lists": (([[1, 2], [2, 3]],), {}, "could be edges or columns: give edges as tuples"),
    "ragged pairs": (
        ([(1, 2), (2, 3, 4)],),
        {},
        r"row 1 is \[2, 3, 4\]; each must be \(src, dst\)",
    ),
    "pairs of four": (([(1, 2, 3, 4)],), {}, "row 0 is a value of type tuple; each must be"),
    "pairs and scalars": (([(1, 2), 3],), {}, "row 1 is 3; each must be"),
    "a transposed edge_index": (
        (np.zeros((5, 2), int),),
        {},
        r"shape \(5, 2\) is no edge_index.*give its transpose",
    ),
    "a matrix of numbers": (
        (np.zeros((5, 5)),),
        {},
        r"shape \(5, 5\) is no edge_index.*give src and dst",
    ),
    "edge_index of floats": (
        (np.zeros((2, 5)),),
        {},
        "src: vertex ids must be integers, not float64",
    ),
    "edge_index without edges": ((np.zeros((2, 0), int),), {}, r"no edges \(0 rows\)"),
    "edge_index by names": (
        (np.zeros((2, 5), int),),
        {"src": "a", "dst": "b"},
        "has no columns with names; leave src out",
    ),
    "pairs by names": (([(1, 2)],), {"weight": "a"}, "has no columns with names; leave weight out"),
    "a mapping of numbers": (({1: [1], 2: [2]},), {}, "names of columns must be strings, not 1"),
    "a mapping of unequal columns": (({"u": [1, 2], "v": [1]},), {}, "src has 2, dst has 1 rows"),
    "an object": ((object(),), {}, "dst is missing"),
    "a name without a table": (
        (object(),),
        {"src": "a", "dst": "b"},
        "is no table of edges; give a data frame of pandas",
    ),
    "a generator": (((i for i in SRC), (i for i in DST)), {}, "src must be an array, a list"),
}


@pytest.mark.parametrize("what", BAD_CALLS)
def test_a_wrong_call_is_refused_by_the_name_of_the_argument(what):
    positional, named, says = BAD_CALLS[what]
    with pytest.raises(InputError, match=says):
        graph_from_edges(*positional, **named)


def test_a_reader_is_read_once_and_the_error_says_so():
    reader = table().to_reader()
    assert graph_from_edges(reader).fingerprint == EXPECTED.fingerprint
    with pytest.raises(EdgeListError, match="a reader can be read once: make a new one"):
        graph_from_edges(reader)


def test_a_stream_that_fails_is_an_error_of_ours():
    def batches():
        yield table().to_batches()[0]
        raise OSError("the connection broke")

    with pytest.raises(
        EdgeListError,
        match=r"pyarrow RecordBatchReader cannot be read as a table \(OSError: the connection broke",
    ):
        graph_from_edges(pa.RecordBatchReader.from_batches(table().schema, batches()))


def test_empty_columns_with_vertices_are_a_graph_without_edges():
    graph = graph_from_edges([], [], vertices=[4, 9])
    assert (graph.n_vertices, graph.n_edges) == (2, 0)


def test_a_level_of_the_index_and_a_column_of_one_name_are_refused():
    with pytest.raises(EdgeListError, match="column 'src' occurs 2 times; rename all but one"):
        graph_from_edges(frame().set_index("src", drop=False))


def test_options_of_files_are_refused_for_tables():
    for option in ({"format": "csv"}, {"header": "yes"}, {"delimiter": ","}):
        with pytest.raises(InputError, match=f"{next(iter(option))} is for files; leave it out"):
            read_graph(frame(), device="cpu", **option)


def test_is_table_does_not_compute_a_lazy_frame():
    polars = need("polars")
    lazy = polars.LazyFrame({"src": [1], "dst": [2]}).map_batches(lambda _: pytest.fail("computed"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert is_table(lazy)
    assert not is_table(polars.Series([1]))
    for column in (
        pd.Series([1]),
        pa.array([1]),
        pa.chunked_array([[1]]),
        np.zeros(3),
        [1, 2],
        "a",
        None,
        range(3),
        5,
    ):
        assert not is_table(column)


def test_a_lazy_frame_computes_the_columns_of_the_edges_alone():
    polars = need("polars")
    lazy = polars.LazyFrame({"src": SRC, "dst": DST, "weight": WEIGHT, "more": SRC})
    lazy = lazy.with_columns(
        polars.col("more").map_batches(lambda _: pytest.fail("computed"), return_dtype=polars.Int64)
    )
    assert graph_from_edges(lazy).fingerprint == EXPECTED.fingerprint


def test_data_of_pyg_with_wrong_parts_is_refused():
    torch = need("torch")
    with pytest.raises(EdgeListError, match="weight must be one-dimensional"):
        graph_from_edges(data_of_pyg(edge_attr=torch.ones(len(SRC), 3)), weight="edge_attr")
    with pytest.raises(EdgeListError, match="no column 'cost', which weight names"):
        graph_from_edges(data_of_pyg(), weight="cost")
    beyond = data_of_pyg()
    beyond.num_nodes = 3
    with pytest.raises(EdgeListError, match=r"has 3 vertices, from 0 on, but .* holds 6"):
        graph_from_edges(beyond)


def test_data_of_pyg_keeps_nodes_without_edges_where_it_states_their_number():
    torch, data = need("torch"), need("torch_geometric.data")
    edge_index = torch.tensor([[0, 2], [2, 4]])
    assert graph_from_edges(data.Data(edge_index=edge_index, num_nodes=8)).n_vertices == 8
    assert graph_from_edges(data.Data(edge_index=edge_index, x=torch.ones(6, 1))).n_vertices == 6
    assert graph_from_edges(data.Data(edge_index=edge_index)).ids.tolist() == [0, 2, 4]


def test_tensors_that_are_no_arrays_are_refused_by_the_name_of_the_argument():
    torch = need("torch")
    ends = torch.tensor([0, 1])
    with pytest.raises(EdgeListError, match="weight is a tensor that is no array of numbers"):
        graph_from_edges(ends, ends + 1, torch.tensor([1.0, 2.0]).to_sparse())
    with pytest.raises(EdgeListError, match="weight is a tensor that is no array of numbers"):
        graph_from_edges(ends, ends + 1, torch.tensor([1.0, 2.0]).bfloat16())
    trained = torch.tensor([1.0, 2.0], requires_grad=True)
    assert graph_from_edges(ends, ends + 1, trained).weights.tolist() == [1.0, 2.0]


# --- what is not copied


def address(array):
    return np.asarray(array).__array_interface__["data"][0]


def test_columns_of_tables_are_not_copied():
    from kepler_traverse.formats import ReadOptions

    pandas_frame = frame()
    arrow = table()
    for held, src in (
        (pandas_frame, address(pandas_frame["src"].to_numpy())),
        (arrow, address(arrow["src"].chunk(0).to_numpy())),
        (ArrowStream(arrow), address(arrow["src"].chunk(0).to_numpy())),
    ):
        read = read_table(held, ReadOptions()).table["src"]
        assert address(read.chunk(0).to_numpy()) == src
    index = np.array([SRC, DST])
    assert address(read_table(index, ReadOptions()).table["dst"]) == address(index[1])


def test_a_graph_does_not_share_memory_that_its_maker_may_change():
    weights = np.array(WEIGHT, np.float64)
    src, dst = np.array(SRC, np.int32), np.array(DST, np.int32)
    graph = graph_from_edges(src, dst, weights)
    before = graph.targets.copy(), graph.weights.copy(), graph.ids.copy()
    src[:], dst[:], weights[:] = 0, 0, 0
    assert all(map(np.array_equal, before, (graph.targets, graph.weights, graph.ids)))


# --- other graph libraries, and back


@given(weighted_rows(st.integers(-3, 5)), st.booleans())
def test_networkx_and_back_is_the_same_graph(edges, directed):
    rows, weights = edges
    graph = graph_from_edges(*np.array(rows).T, weights, directed=directed)
    there = convert.to_networkx(graph, weight="cost")
    assert there.is_directed() == directed
    assert sorted(there.nodes) == graph.ids.tolist()
    assert convert.from_networkx(there, weight="cost").fingerprint == graph.fingerprint
    table = convert.to_arrow(graph)
    if table.num_rows:
        assert (
            graph_from_edges(table, directed=directed, vertices=graph.ids).fingerprint
            == graph.fingerprint
        )


@given(edge_rows(), st.booleans())
def test_an_unweighted_graph_survives_each_way(rows, directed):
    graph = graph_from_edges(*np.array(rows).T, directed=directed, vertices=range(24))
    assert convert.from_networkx(convert.to_networkx(graph)).fingerprint == graph.fingerprint
    assert (
        graph_from_edges(convert.to_scipy(graph), directed=directed, weighted=False).fingerprint
        == graph.fingerprint
    )
    if graph.n_edges:
        assert (
            graph_from_edges(
                convert.to_arrow(graph), directed=directed, vertices=graph.ids
            ).fingerprint
            == graph.fingerprint
        )


@given(weighted_rows(st.integers(-3, 5)), st.booleans())
def test_scipy_and_back_is_the_same_graph(edges, directed):
    rows, weights = edges
    graph = graph_from_edges(*np.array(rows).T, weights, directed=directed, vertices=range(24))
    there = convert.to_scipy(graph)
    assert there.shape == (24, 24)
    assert graph_from_edges(there, directed=directed).fingerprint == graph.fingerprint


def test_the_matrix_of_a_graph_is_a_copy():
    there = convert.to_scipy(EXPECTED)
    there.data[:], there.indices[:] = 0, 0
    assert convert.from_networkx(multi_graph(), weight="length").fingerprint == EXPECTED.fingerprint
    assert EXPECTED.targets.tolist() == graph_from_edges(SRC, DST, WEIGHT).targets.tolist()


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("directed", [True, False])
def test_string_nodes_go_to_networkx_and_back(directed, weight):
    networkx = pytest.importorskip("networkx")
    there = (networkx.DiGraph if directed else networkx.Graph)()
    there.add_weighted_edges_from([("é", "a", 0.5), ("a", "b", 1.5), ("b", "é", 2.5)], weight="w")
    there.add_node("alone")
    graph = convert.from_networkx(there, weight=weight)
    assert graph.ids.to_pylist() == ["a", "alone", "b", "é"]
    assert graph.report.isolated_vertices == 1
    again = convert.to_networkx(graph, weight="w")
    assert (
        networkx.utils.graphs_equal(again, there if weight else type(there)(there.edges))
        or not weight
    )
    if weight:
        lengths = networkx.single_source_dijkstra_path_length(there, "é", weight="w")
        assert dict(sssp(graph, "é")[["vertex", "distance"]].itertuples(index=False)) == lengths


def test_a_negative_self_loop_is_kept_by_each_way():
    graph = graph_from_edges([0, 1, 1], [1, 1, 0], [2, -1, 0])
    assert graph.negative_loops == {1: -1}
    assert (
        convert.from_networkx(convert.to_networkx(graph), weight="weight").fingerprint
        == graph.fingerprint
    )
    assert graph_from_edges(convert.to_scipy(graph)).fingerprint == graph.fingerprint
    assert graph_from_edges(convert.to_arrow(graph)).fingerprint == graph.fingerprint


BAD_NODES = {
    "floats": ([(0.5, 1)], "node 0.5 can be no vertex id.*convert_node_labels_to_integers"),
    "tuples": ([((0, 1), (1, 1))], r"node \[0, 1\] can be no vertex id"),
    "mixed": ([("a", 1)], "node 1 can be no vertex id"),
    "booleans": ([(True, 2)], "node True can be no vertex id"),
    "half a character": ([("\ud800", "a")], "not valid Unicode text"),
    "beyond 64 bits": ([(2**70, 1)], "vertices holds integers that neither int64 nor uint64 holds"),
}


@pytest.mark.parametrize("what", BAD_NODES)
def test_nodes_of_networkx_that_can_be_no_ids_are_refused(what):
    networkx = pytest.importorskip("networkx")
    edges, says = BAD_NODES[what]
    with pytest.raises(InputError, match=says):
        convert.from_networkx(networkx.Graph(edges))
    with pytest.raises(EdgeListError, match=r"convert\.from_networkx takes a graph"):
        graph_from_edges(networkx.Graph(edges))


def test_weights_of_networkx_that_are_missing_or_no_numbers_are_refused():
    networkx = pytest.importorskip("networkx")
    there = networkx.Graph()
    there.add_edge("a", "b", length=1)
    there.add_edge("b", "c", length="2", time=3)
    with pytest.raises(
        InputError, match=r"edge \('a', 'b'\) has no attribute 'time'; give it one, or another name"
    ):
        convert.from_networkx(there, weight="time")
    with pytest.raises(InputError, match="weight must hold numbers, not strings"):
        convert.from_networkx(there, weight="length")
    with pytest.raises(InputError, match="weight must be the name of an edge attribute"):
        convert.from_networkx(there, weight=3)
    with pytest.raises(InputError, match="graph must be a graph of NetworkX, not 5"):
        convert.from_networkx(5)


def test_a_graph_of_networkx_without_edges_or_nodes_is_one_of_ours():
    networkx = pytest.importorskip("networkx")
    assert convert.from_networkx(networkx.empty_graph(3)).n_vertices == 3
    assert convert.from_networkx(networkx.DiGraph()).n_vertices == 0


@pytest.mark.parametrize("directed", [True, False])
def test_igraph_attributes_are_weights_and_ids(directed):
    igraph = pytest.importorskip("igraph")
    there = igraph.Graph(n=4, edges=[(2, 1), (1, 0), (0, 2)], directed=directed)
    there.es["length"] = [1.5, 2.5, 3.5]
    there.vs["name"] = ["c", "b", "a", "alone"]
    there.vs["number"] = [30, 20, 10, 40]
    graph = convert.from_igraph(there, weight="length", ids="name")
    columns = {"src": ["a", "b", "c"], "dst": ["b", "c", "a"], "weight": [1.5, 2.5, 3.5]}
    assert (
        graph.fingerprint
        == graph_from_edges(columns, directed=directed, vertices=["alone"]).fingerprint
    )
    assert convert.from_igraph(there, ids="number").ids.tolist() == [10, 20, 30, 40]
    expected = there.distances(source=2, weights="length")[0]
    numbers = graph.to_numbers(there.vs["name"])
    found = sssp(graph, "a", unreached="null")["distance"].to_numpy(dtype=float, na_value=np.inf)
    assert found[numbers].tolist() == expected


def test_igraph_attributes_that_are_missing_are_refused_by_name():
    igraph = pytest.importorskip("igraph")
    there = igraph.Graph(n=3, edges=[(0, 1), (1, 2)])
    there.vs["name"] = ["a", "a", "b"]
    there.vs["float"] = [0.5, 1.0, 2.0]
    there.vs["some"] = ["a", None, "b"]
    there.es["cost"] = [1, None]
    for options, says in (
        ({"weight": "length"}, "weight='length' is none of the attributes 'cost'"),
        ({"ids": "id"}, "ids='id' is none of the attributes 'name', 'float', 'some'"),
        ({"ids": "name"}, "attribute 'name' gives 'a' to several vertices; ids must differ"),
        ({"ids": "float"}, "attribute 'float' holds 0.5; ids must be integers or strings"),
        ({"ids": "some"}, "attribute 'some' holds None"),
        ({"weight": "cost"}, r"weight must hold numbers, not None \(row 1\)"),
        ({"ids": 3}, "ids must be the name of an attribute"),
    ):
        with pytest.raises(InputError, match=says):
            convert.from_igraph(there, **options)
    with pytest.raises(InputError, match="graph must be a graph of igraph"):
        convert.from_igraph(EXPECTED)


# --- folders


def test_a_graph_is_saved_and_loaded(tmp_path):
    graph = graph_from_edges(
        {"src": ["a", "b"], "dst": ["b", "c"], "w": [0.5, 1.5]}, directed=False
    )
    save_graph(graph, tmp_path / "graph")
    assert load_graph(tmp_path / "graph").fingerprint == graph.fingerprint
    save_graph(EXPECTED, str(tmp_path / "graph"))  # replaces it
    assert load_graph(str(tmp_path / "graph")).fingerprint == EXPECTED.fingerprint


def test_a_folder_of_somebody_else_is_not_replaced(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    save_graph(EXPECTED, tmp_path / "graph")
    (tmp_path / "graph" / "notes.txt").write_text("mine")
    save_graph(EXPECTED, tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    for name in ("empty", "file", "graph", "link"):
        with pytest.raises(
            InputError, match=f"{name} exists and is no stored graph; name a new folder"
        ):
            save_graph(EXPECTED, tmp_path / name)
    assert (tmp_path / "graph" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "link").is_symlink()


def test_a_folder_that_cannot_be_written_is_an_error_of_ours(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="the graph cannot be written"):
        save_graph(EXPECTED, tmp_path / "file" / "graph")
    with pytest.raises(InputError, match="folder must hold paths, not 5"):
        save_graph(EXPECTED, 5)


def test_damaged_foreign_and_missing_folders_are_not_loaded(tmp_path):
    save_graph(EXPECTED, tmp_path / "graph")
    targets = tmp_path / "graph" / "targets.npy"
    targets.write_bytes(targets.read_bytes()[:-1] + b"\1")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "meta.json").write_text("{}")
    for name, says in (
        ("graph", "damaged"),
        ("foreign", "names no format"),
        ("missing", "no stored graph is here"),
    ):
        with pytest.raises(InputError, match=says):
            load_graph(tmp_path / name)
    with pytest.raises(InputError, match="folder must hold paths, not None"):
        load_graph(None)
    with pytest.raises(DeviceError, match="device='gpu' is none of"):
        load_graph(tmp_path / "graph", device="gpu")


def test_a_folder_that_others_can_write_is_not_loaded(tmp_path):
    save_graph(EXPECTED, tmp_path / "graph")
    (tmp_path / "graph").chmod(0o777)
    with pytest.raises(InputError, match="others can write to it"):
        load_graph(tmp_path / "graph")


# --- a GPU


def cudf_frame(**more):
    return need("cudf").DataFrame({"src": SRC, "dst": DST, "weight": WEIGHT, **more})


def cupy_columns():
    cupy = need("cupy")
    return [cupy.asarray(column) for column in arrays()]


def cugraph_of(directed=True, **columns):
    cugraph = need("cugraph")
    there = cugraph.Graph(directed=directed)
    there.from_cudf_edgelist(
        cudf_frame(**columns), source="src", destination="dst", edge_attr="weight"
    )
    return there


def cupy_matrix(kind):
    cupyx = need("cupyx.scipy.sparse")
    src, dst, weight = cupy_columns()
    return cupyx.coo_matrix((weight.astype("float64"), (src, dst)), shape=(N, N)).asformat(kind)


GPU_KINDS = {
    "cuDF": lambda: graph_from_edges(cudf_frame()),
    "cuDF with the ends in the index": lambda: graph_from_edges(
        cudf_frame().set_index(["src", "dst"])
    ),
    "cuDF with a column of strings": lambda: graph_from_edges(cudf_frame(more=["x"] * len(SRC))),
    "cuDF Series": lambda: graph_from_edges(
        *(cudf_frame()[name] for name in ("src", "dst", "weight"))
    ),
    "CuPy": lambda: graph_from_edges(*cupy_columns()),
    "mapping of CuPy arrays": lambda: graph_from_edges(
        dict(zip(("u", "v", "w"), cupy_columns(), strict=True))
    ),
    "edge_index of CuPy": lambda: graph_from_edges(
        need("cupy").asarray([SRC, DST]), weight=cupy_columns()[2]
    ),
    "torch": lambda: graph_from_edges(*(column.cuda() for column in torch_columns())),
    "PyG": lambda: graph_from_edges(data_of_pyg(edge_weight=torch_columns()[2]).to("cuda")),
    "dask_cudf": lambda: graph_from_edges(need("dask_cudf").from_cudf(cudf_frame(), npartitions=3)),
    "cuGraph": lambda: convert.from_cugraph(cugraph_of()),
    "read_graph of pandas": lambda: read_graph(frame(), device="cuda"),
    "read_graph of arrays": lambda: read_graph(
        {"src": SRC, "dst": DST, "weight": WEIGHT}, device="cuda"
    ),
}


@pytest.mark.gpu
@pytest.mark.parametrize("kind", GPU_KINDS)
def test_edges_in_gpu_memory_give_the_same_graph_there(kind):
    graph = GPU_KINDS[kind]()
    assert graph.device == "cuda"
    assert graph.fingerprint == EXPECTED.fingerprint
    assert graph.to("cpu").ids.tolist() == list(range(N))


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_a_sparse_matrix_in_gpu_memory_gives_the_same_graph(kind):
    graph = graph_from_edges(cupy_matrix(kind))
    assert graph.device == "cuda"
    assert graph.fingerprint == graph_from_edges(SRC, DST, np.array(WEIGHT, float)).fingerprint


@pytest.mark.gpu
def test_tensors_in_gpu_memory_are_taken_without_a_copy():
    from kepler_traverse.formats.tables import as_column

    torch = need("torch")
    tensor = torch.arange(1000, device="cuda")
    column = as_column("src", tensor)
    assert column.data.ptr == tensor.data_ptr()
    index = torch.zeros((2, 1000), dtype=torch.int64, device="cuda")
    assert as_column("dst", index[1]).data.ptr == index[1].data_ptr()


@pytest.mark.gpu
def test_columns_of_cupy_are_taken_without_a_copy():
    from kepler_traverse.formats.tables import as_column

    src, *_ = cupy_columns()
    assert as_column("src", src).data.ptr == src.data.ptr


@pytest.mark.gpu
def test_string_ids_in_gpu_memory_give_the_graph_of_the_host():
    cudf = need("cudf")
    columns = {"src": ["a", "é", ""], "dst": ["b", "a", "é"]}
    expected = graph_from_edges(columns)
    for graph in (
        graph_from_edges(cudf.DataFrame(columns)),
        graph_from_edges(*(cudf.Series(column) for column in columns.values())),
    ):
        assert graph.device == "cpu"
        assert graph.fingerprint == expected.fingerprint


def test_a_column_that_converts_to_arrow_alone_may_have_a_type_of_pandas():
    class OfCudf:
        """A column of strings as cuDF has it: its type is pandas', and pyarrow may not read it by itself."""

        dtype = pd.StringDtype()

        def __init__(self, values):
            self._values = values

        def __len__(self):
            return len(self._values)

        def __arrow_array__(self, type=None):
            raise TypeError(
                "Implicit conversion to a host PyArrow object via __arrow_array__ is not allowed."
            )

        def to_arrow(self):
            return pa.array(self._values)

    columns = ["a", "é", ""], ["b", "a", "é"]
    assert (
        graph_from_edges(*map(OfCudf, columns)).fingerprint
        == graph_from_edges(*columns).fingerprint
    )


@pytest.mark.gpu
def test_an_undirected_graph_of_cugraph_is_the_same():
    # cuGraph returns float64 weights here
    expected = graph_from_edges(SRC, DST, np.array(WEIGHT, float), directed=False)
    assert convert.from_cugraph(cugraph_of(directed=False)).fingerprint == expected.fingerprint


@pytest.mark.gpu
def test_bad_columns_in_gpu_memory_are_refused_by_name():
    cudf, cupy = need("cudf"), need("cupy")
    with pytest.raises(EdgeListError, match="row 1: src column 'src' has 1 missing value"):
        graph_from_edges(cudf.DataFrame({"src": [1, None], "dst": [2, 3]}))
    with pytest.raises(EdgeListError, match="src holds 1 nulls: drop those rows"):
        graph_from_edges(cudf.Series([1, None]), cudf.Series([2, 3]))
    with pytest.raises(
        EdgeListError, match="dst column 'dst' has type double; vertex ids must be integers"
    ):
        graph_from_edges(cudf.DataFrame({"src": [1, 2], "dst": [2.0, 3.0]}))
    with pytest.raises(EdgeListError, match="'src' is a level of the index and a column, too"):
        graph_from_edges(cudf_frame().set_index("src", drop=False))
    with pytest.raises(DeviceError, match="src is on cuda, dst is on cpu"):
        graph_from_edges(cupy.array([1, 2]), [2, 3])


@pytest.mark.parametrize(
    ("columns", "found"),
    [(["a", "weights"], "weights"), (["a", "cost"], "cost"), (["a", "b"], None)],
)
def test_the_weights_of_a_graph_of_cugraph_are_found_by_name_only(columns, found):
    edges = pd.DataFrame(
        {"src": [0, 1], "dst": [1, 2]}
        | {name: [5, 7] if name == found else [1, 2] for name in columns}
    )
    there = SimpleNamespace(
        view_edge_list=lambda: edges,
        is_directed=lambda: True,
        is_weighted=lambda: True,
        nodes=lambda: pd.Series([0, 1, 2]),
        source_columns="src",
        destination_columns="dst",
        weight_column="cost",
    )
    if found is None:
        with pytest.raises(InputError, match="in none of its columns src, dst, a, b"):
            convert.from_cugraph(there)
    else:
        assert convert.from_cugraph(there).weights.tolist() == [5, 7]
