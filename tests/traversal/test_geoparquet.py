"""GeoParquet files of points: metadata, well-known binary, refusals, and the reading by GeoPandas where it is there."""

from __future__ import annotations

import json
import struct
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, paths, sssp_many, write_geoparquet
from kepler_traverse.errors import InputError, UnknownVertexError

GRAPH = graph_from_edges(
    np.array([10, 20]), np.array([20, 30]), np.array([300, 400]), edge_ids=True
)
VERTICES = pd.DataFrame(
    {"vertex": [30, 20, 10, 99], "x": [13.5, 13.25, 13.0, 0], "y": [52.0, 52.5, 52.25, 0]}
)


def bands():
    return sssp_many(GRAPH, [10], result="isochrones", cutoffs=[300, 900])


def test_a_file_has_the_points_of_its_rows_and_their_metadata(tmp_path):
    write_geoparquet(bands(), tmp_path / "bands.parquet", VERTICES)
    table = pq.read_table(tmp_path / "bands.parquet")
    assert table.column_names == ["source", "vertex", "band", "geometry"]
    assert table["band"].to_pylist() == [300, 300, 900]
    points = [struct.unpack("<BIdd", value) for value in table["geometry"].to_pylist()]
    assert points == [(1, 1, 13.0, 52.25), (1, 1, 13.25, 52.5), (1, 1, 13.5, 52.0)]
    geo = json.loads(table.schema.metadata[b"geo"])
    column = {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [13.0, 52.0, 13.5, 52.5]}
    assert geo == {
        "version": "1.1.0",
        "primary_column": "geometry",
        "columns": {"geometry": column},
    }


@pytest.mark.parametrize("vertices", [pa.Table.from_pandas(VERTICES), VERTICES.to_dict("list")])
def test_tables_of_other_libraries_are_taken(vertices, tmp_path):
    write_geoparquet(pa.Table.from_pandas(bands()), tmp_path / "a.parquet", vertices, crs=None)
    write_geoparquet(
        bands().iloc[:0], tmp_path / "b.parquet", vertices, crs={"type": "GeographicCRS"}
    )
    found = [
        json.loads(pq.read_schema(tmp_path / name).metadata[b"geo"])
        for name in ("a.parquet", "b.parquet")
    ]
    assert found[0]["columns"]["geometry"]["crs"] is None
    assert found[1]["columns"]["geometry"]["crs"] == {"type": "GeographicCRS"}
    assert "bbox" not in found[1]["columns"]["geometry"]


def test_geopandas_reads_it(tmp_path):
    geopandas = pytest.importorskip("geopandas")
    write_geoparquet(bands(), tmp_path / "bands.parquet", VERTICES)
    frame = geopandas.read_parquet(tmp_path / "bands.parquet")
    assert frame.geometry.x.tolist() == [13.0, 13.25, 13.5]
    assert frame.crs.to_epsg() in (4326, None)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            {"vertices": VERTICES[["vertex", "x"]]},
            InputError,
            "vertices has no column 'y'; it has 'vertex', 'x'",
        ),
        (
            {"vertices": VERTICES[1:]},
            UnknownVertexError,
            "vertices lacks 1 vertices of frame, the first 30",
        ),
        ({"vertices": pd.concat([VERTICES, VERTICES])}, InputError, "has vertex .* twice"),
        (
            {"vertices": VERTICES.replace(13.5, np.inf)},
            InputError,
            r"vertices\['x'\] is inf at vertex 30",
        ),
        (
            {"vertices": VERTICES.assign(vertex=list("abcd"))},
            (InputError, UnknownVertexError),
            "vertices",
        ),
        ({"crs": "EPSG:25833"}, InputError, "crs must be 'OGC:CRS84'"),
        ({"crs": {"a": {1}}}, InputError, "crs must be a mapping in PROJJSON"),
        ({"x": 5}, InputError, "x must be the name of a column"),
        (
            {"vertices": {"vertex": [1, "a"], "x": [1, 2], "y": [1, 2]}},
            InputError,
            "vertices cannot be converted",
        ),
        ({"frame": 5}, InputError, "frame must be a data frame"),
        ({"frame": pd.DataFrame({"a": [1]})}, InputError, "frame has no column 'vertex'"),
        (
            {"frame": pd.DataFrame({"vertex": [10], "geometry": [1]})},
            InputError,
            "has a column 'geometry' already",
        ),
    ],
)
def test_wrong_arguments_are_refused(change, error, message, tmp_path):
    options = {"frame": bands(), "vertices": VERTICES} | change
    with pytest.raises(error, match=message):
        write_geoparquet(options.pop("frame"), tmp_path / "a.parquet", **options)
    assert not (tmp_path / "a.parquet").exists()


@pytest.mark.parametrize(
    ("path", "message"),
    [(each, "path") for each in (5, None, "", "a\0b", b"bytes")]
    + [
        (
            "no/such/folder/a.parquet",
            "^no/such/folder/a.parquet: it cannot be written: No such file or directory; make its folder first$",
        )
    ],
)
def test_wrong_paths_are_refused(path, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=message):
        write_geoparquet(bands(), path, VERTICES)


def town():
    """A grid of streets with coordinates, and bands of travel time from two sources."""
    n = 12
    at = np.arange(n * n).reshape(n, n)
    src = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    dst = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    graph = graph_from_edges(src, dst, np.full(src.size, 100), directed=False)
    places = pd.DataFrame(
        {"vertex": at.ravel(), "x": at.ravel() % n * 1.0, "y": at.ravel() // n * 1.0}
    )
    return sssp_many(graph, [0, 77], result="isochrones", cutoffs=[0, 100, 300, 500]), places


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_hulls_hold_the_vertices_within_each_cutoff(ratio, tmp_path):
    shapely = pytest.importorskip("shapely")
    frame, places = town()
    write_geoparquet(frame, tmp_path / "hulls.parquet", places, hulls=True, ratio=ratio)
    table = pq.read_table(tmp_path / "hulls.parquet")
    assert table.column_names == ["source", "band", "vertices", "geometry"]
    assert table["source"].to_pylist() == [0] * 4 + [77] * 4
    assert table["band"].to_pylist() == [0, 100, 300, 500] * 2
    where = places.set_index("vertex")
    for source, band, count, wkb in zip(*table.to_pydict().values(), strict=True):
        hull, within = (
            shapely.from_wkb(wkb),
            frame[(frame["source"] == source) & (frame["band"] <= band)]["vertex"],
        )
        points = shapely.points(where.loc[within].to_numpy())
        assert count == len(points)
        assert shapely.covers(hull, points).all()
        convex = shapely.convex_hull(shapely.union_all(points))
        assert hull.equals(convex) if ratio == 1 or count < 3 else convex.covers(hull)
    geo = json.loads(table.schema.metadata[b"geo"])["columns"]["geometry"]
    assert geo["bbox"] == [0.0, 0.0, 10.0, 11.0]
    assert {shapely.from_wkb(wkb).geom_type for wkb in table["geometry"].to_pylist()} <= set(
        geo["geometry_types"]
    )


def test_hulls_of_no_rows_are_a_table_without_rows(tmp_path):
    pytest.importorskip("shapely")
    frame, places = town()
    write_geoparquet(frame.iloc[:0], tmp_path / "hulls.parquet", places, hulls=True)
    assert pq.read_table(tmp_path / "hulls.parquet").num_rows == 0


@pytest.mark.parametrize("ratio", [-0.1, 1.5, float("nan"), "a", None])
def test_wrong_ratios_are_refused(ratio, tmp_path):
    with pytest.raises(InputError, match="ratio"):
        write_geoparquet(bands(), tmp_path / "a.parquet", VERTICES, hulls=True, ratio=ratio)


def test_hulls_need_bands_and_shapely(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="frame has no column 'band'"):
        write_geoparquet(bands().drop(columns="band"), tmp_path / "a.parquet", VERTICES, hulls=True)
    monkeypatch.setitem(sys.modules, "shapely", None)  # an import then fails
    with pytest.raises(InputError, match=r"pip install .*\[geo\]"):
        write_geoparquet(bands(), tmp_path / "a.parquet", VERTICES, hulls=True)
    assert not (tmp_path / "a.parquet").exists()


def test_paths_become_lines(tmp_path):
    shapely = pytest.importorskip("shapely")
    found = paths(GRAPH, ([10, 20, 30], [30, 20, 10]), along={"toll": [1, 2]})
    write_geoparquet(found, tmp_path / "lines.parquet", VERTICES.assign(shape=[object()] * 4))
    table = pq.read_table(tmp_path / "lines.parquet")
    assert table.drop_columns("geometry").to_pydict() == {
        "pair": [0, 1],
        "toll": [3, 0],
        "vertices": [3, 1],
    }
    assert [shapely.from_wkb(line).wkt for line in table["geometry"].to_pylist()] == [
        "LINESTRING (13 52.25, 13.25 52.5, 13.5 52)",
        "POINT (13.25 52.5)",
    ]
    with pytest.raises(InputError, match="another order of rows"):
        write_geoparquet(found[::-1], tmp_path / "lines.parquet", VERTICES)


def test_a_table_whose_ids_are_in_no_known_column_is_refused_with_the_remedy(tmp_path):
    for name, remedy in (
        ("osmid", r"vertices.rename\(columns={'osmid': 'vertex'}\)"),
        ("place", r"rename_axis\('vertex'\).reset_index\(\)"),
    ):
        with pytest.raises(InputError, match=remedy):
            write_geoparquet(
                bands(), tmp_path / "f.parquet", VERTICES.rename(columns={"vertex": name})
            )
