"""``--geometry``: GeoParquet files of isochrones and loads, for any batches, resumed, verified, refused."""

import json
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph, sssp_many, write_geoparquet
from pipelines import verify
from pipelines.batch_sources import main
from pipelines.run import geometry
from tests.support.jobs import call, write_edges

N = 9
CUTOFFS = [2, 5, 9]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with a grid of streets, and the coordinates of its vertices, of which one has no edge."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(3)
    at = np.arange(N * N).reshape(N, N)
    src = np.concatenate([at[:, :-1].ravel(), at[:-1].ravel()])
    dst = np.concatenate([at[:, 1:].ravel(), at[1:].ravel()])
    name = np.vectorize("v{:03d}".format)
    write_edges(folder / "edges.parquet", name(src), name(dst), rng.integers(1, 4, src.size))
    ids = np.append(at.ravel(), 900)[::-1]
    places = pd.DataFrame({"vertex": name(ids), "x": 6 + ids % N / 100, "y": 49.5 + ids // N / 100})
    places.to_parquet(folder / "places.parquet")
    places.to_csv(folder / "places.csv", index=False)
    return folder


def run(data, folder, kind, *more, code=0, places="places.parquet", cutoffs=True):
    words = [
        data / "edges.parquet",
        "--undirected",
        "--algorithm",
        "sssp",
        "--sources",
        "v000,v044,v080,v900",
    ]
    words += ["--vertices", data / places]
    words += ["--result", "isochrones", "--cutoffs", ",".join(map(str, CUTOFFS))] if cutoffs else []
    words += ["--geometry", kind, "--device", "cpu", "--no-report", "--output", folder, *more]
    assert main([str(word) for word in words]) == code
    return folder


def by_library(data, path, **options):
    """The same file, written by the library."""
    places = pd.read_parquet(data / "places.parquet")
    graph = read_graph(
        data / "edges.parquet", device="cpu", directed=False, vertices=places["vertex"].tolist()
    )
    bands = sssp_many(graph, ["v000", "v044", "v080", "v900"], result="isochrones", cutoffs=CUTOFFS)
    write_geoparquet(bands, path, places, **options)
    return pq.read_table(path)


@pytest.mark.parametrize("kind", ["points", "hulls"])
def test_the_file_is_that_of_the_library_for_any_batches(kind, data, tmp_path, monkeypatch, capsys):
    if kind == "hulls":
        pytest.importorskip("shapely")
    monkeypatch.setattr(geometry, "ROWS_PER_GROUP", 16)
    folder = run(data, tmp_path / "out", kind, "--batch-size", 1)
    path = folder / f"_{kind}.pq"
    found, expected = (
        pq.read_table(path),
        by_library(data, tmp_path / "own.parquet", hulls=kind == "hulls"),
    )
    assert found.column_names == expected.column_names
    for name in found.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist()
    geo = json.loads(found.schema.metadata[b"geo"])
    expected_geo = json.loads(expected.schema.metadata[b"geo"])
    if kind == "points":  # written as a stream, before the bounds are known
        del expected_geo["columns"]["geometry"]["bbox"]
        assert pq.ParquetFile(path).num_row_groups == -(-found.num_rows // 16)
    assert geo == expected_geo
    other = run(data, tmp_path / "other", kind, "--batch-size", 3, places="places.csv")
    assert (other / path.name).read_bytes() == path.read_bytes()
    whole = path.read_bytes()
    path.unlink()
    run(data, folder, kind, "--batch-size", 1, "--resume")
    assert path.read_bytes() == whole
    words = [folder, data / "edges.parquet", "--device", "cpu"]
    assert call(capsys, *words, program=verify.main)[0] == 0
    table = found.set_column(
        2, found.column_names[2], found[2].take(pa.array(range(found.num_rows)[::-1]))
    )
    pq.write_table(table, path)
    for said in (f"table: {path.name}", "the file is not there"):
        code, out, _ = call(capsys, *words, program=verify.main)
        assert (code, said in out) == (5, True)
        path.unlink(missing_ok=True)


def test_coordinates_beyond_degrees_have_no_reference_system(data, tmp_path):
    places = pd.read_parquet(data / "places.parquet")
    places.assign(x=places["x"] * 1e5).to_parquet(tmp_path / "metres.parquet")
    folder = run(data, tmp_path / "out", "points", places=tmp_path / "metres.parquet")
    column = json.loads(pq.read_schema(folder / "_points.pq").metadata[b"geo"])["columns"][
        "geometry"
    ]
    assert column["crs"] is None


def test_hulls_of_another_geos_are_not_called_wrong(data, tmp_path, capsys):
    pytest.importorskip("shapely")
    folder = run(data, tmp_path / "out", "hulls")
    table = pq.read_table(folder / "_hulls.pq")
    table = table.replace_schema_metadata(table.schema.metadata | {b"geos": b"3.0.0"})
    pq.write_table(table, folder / "_hulls.pq")
    code, out, _ = call(
        capsys, folder, data / "edges.parquet", "--device", "cpu", program=verify.main
    )
    assert (code, "it was made with GEOS 3.0.0, and can be checked with that alone" in out) == (
        5,
        True,
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: p.drop(columns="y"), "no column of attributes 'y'"),
        (lambda p: p.assign(x="east"), "x"),
        (
            lambda p: p.assign(y=np.where(p["vertex"] == "v044", np.inf, p["y"])),
            "vertices['y'] is inf at vertex 'v044'",
        ),
        (
            lambda p: pd.concat([p, p[p["vertex"] == "v007"]]),
            "places.parquet: vertices has vertex 'v007' twice",
        ),
        (
            lambda p: p[p["vertex"] != "v007"],
            "vertices lacks 1 vertices of the graph, the first 'v007'",
        ),
    ],
)
def test_vertices_without_coordinates_are_refused_before_the_searches(
    change, said, data, tmp_path, capsys
):
    change(pd.read_parquet(data / "places.parquet")).to_parquet(tmp_path / "places.parquet")
    run(data, tmp_path / "out", "points", code=2, places=tmp_path / "places.parquet")
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("of", "kind"), [("edges", "LineString"), ("vertices", "Point")])
def test_loads_have_shapes_and_the_file_of_the_library_has_them_too(of, kind, data, tmp_path):
    folder = run(
        data, tmp_path / "out", "shapes", "--result", "betweenness", "--of", of, cutoffs=False
    )
    loads = pq.read_table(folder / "_loads.pq")
    column = json.loads(loads.schema.metadata[b"geo"])["columns"]["geometry"]
    assert column["geometry_types"] == [kind]
    places = pd.read_parquet(data / "places.parquet").set_index("vertex")
    for row in loads.to_pylist()[:50]:
        ends = np.frombuffer(row["geometry"][9 if of == "edges" else 5 :], "<f8").reshape(-1, 2)
        ids = [row["src"], row["dst"]] if of == "edges" else [row["vertex"]]
        assert ends.tolist() == places.loc[ids, ["x", "y"]].to_numpy().tolist()
    write_geoparquet(loads.drop_columns("geometry"), tmp_path / "own.parquet", places.reset_index())
    assert pq.read_table(tmp_path / "own.parquet")["geometry"].equals(loads["geometry"])
    assert not verify.prove_output(folder, [str(data / "edges.parquet")], "cpu").faults


def test_shapes_of_isochrones_and_points_of_loads_are_refused(data, tmp_path, capsys):
    run(data, tmp_path / "out", "shapes", code=2)
    assert "--geometry shapes: --result isochrones takes points or hulls" in capsys.readouterr().err
    run(data, tmp_path / "out", "hulls", "--result", "betweenness", code=2, cutoffs=False)
    assert "--geometry hulls: --result betweenness takes shapes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_hulls_without_shapely_are_refused_before_the_searches(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shapely", None)
    run(data, tmp_path / "out", "hulls", code=2)
    assert "[geo]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
