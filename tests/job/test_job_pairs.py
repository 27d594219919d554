"""``--pairs``: one row per row given, in its order, whatever the batches; missing vertices, resume and verification."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import bfs_pairs, graph_from_edges, paths, read_graph, sssp_pairs
from kepler_traverse.errors import InputError
from kepler_traverse.multi_source.planning import MultiSourcePlan
from pipelines import run_job, verify
from pipelines.batch_sources import main
from pipelines.output.rows import HostRows
from pipelines.run.answered_tables import rows_by_pair
from tests.support import tiers
from tests.support.devices import on_a_device, running
from tests.support.jobs import call, manifest_of, parts_of, refused, write_edges

N = 60


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    rng = np.random.default_rng(7)
    name = np.vectorize("v{:03d}".format)
    src, dst = rng.integers(0, N, (2, 150))
    return write_edges(
        tmp_path_factory.mktemp("edges") / "edges.parquet",
        name(src),
        name(dst),
        rng.integers(1, 9, 150),
    )


@pytest.fixture(scope="module")
def trips(edges, tmp_path_factory):
    """Trips with duplicates, with another column, of string ids."""
    path = tmp_path_factory.mktemp("trips") / "trips.parquet"
    rng = np.random.default_rng(8)
    ids = np.asarray(read_graph(edges, device="cpu").ids)
    table = pd.DataFrame(
        {
            "from": rng.choice(ids[:9], 50),
            "to": rng.choice(ids, 50),
            "persons": rng.integers(1, 5, 50),
        }
    )
    table = pd.concat([table, table.iloc[:3]], ignore_index=True)
    table.to_parquet(path, index=False)
    return path


def run(edges, pairs, folder, *more, code=0):
    words = [edges, "--pairs", pairs, "--device", "cpu", "--no-report", "--output", folder, *more]
    assert main([str(word) for word in words]) == code
    return folder


@pytest.mark.parametrize("certify", ["all", "sample", "none"])
@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_pairs_has_a_row_per_row_given(algorithm, certify, edges, trips, tmp_path):
    folder = run(
        edges,
        trips,
        tmp_path / "out",
        "--algorithm",
        algorithm,
        "--certify",
        certify,
        "--batch-size",
        4,
    )
    given = pd.read_parquet(trips)
    graph = read_graph(edges, device="cpu")
    expected = (bfs_pairs if algorithm == "bfs" else sssp_pairs)(graph, given["from"], given["to"])[
        "distance"
    ]
    found = pd.read_parquet(folder / "_pairs.pq", dtype_backend="numpy_nullable")
    assert list(found.columns) == ["from", "to", "persons", "distance"]
    for name in given:
        assert found[name].tolist() == given[name].tolist()
    assert found["distance"].fillna(-1).tolist() == expected.fillna(-1).tolist()
    rows = pd.read_parquet(folder, dtype_backend="numpy_nullable").sort_values(
        "pair", ignore_index=True
    )
    assert list(rows.columns) == ["pair", "source", "target", "distance"]
    assert rows["pair"].tolist() == list(range(len(given)))
    assert rows["source"].tolist() == given["from"].tolist()
    assert rows["target"].tolist() == given["to"].tolist()
    assert rows["distance"].fillna(-1).tolist() == expected.fillna(-1).tolist()
    for size in (1, 100) if certify == "all" else ():
        other = run(
            edges, trips, tmp_path / str(size), "--algorithm", algorithm, "--batch-size", size
        )
        assert manifest_of(other)["digest"] == manifest_of(folder)["digest"]


@pytest.mark.parametrize("result", ["pairs", "paths"])
def test_pairs_and_paths_need_certified_distances(result, edges, trips, tmp_path, monkeypatch):
    search = MultiSourcePlan.run

    def too_near(plan, numbers, lists=None, **given):
        found = search(plan, numbers, lists, **given)
        # of the vertices reached, or of all
        distance = getattr(found.distance, "distance", found.distance)
        distance[distance == 2] = 1
        return found

    monkeypatch.setattr(MultiSourcePlan, "run", too_near)
    folder = run(edges, trips, tmp_path / "out", "--result", result, code=3)
    failed = manifest_of(folder)["failed"]
    assert sum(len(failure["sources"]) for failure in failed) >= 1
    assert all("CertificateError" in failure["error"] for failure in failed)
    assert not (folder / "_pairs.pq").exists()


def test_pairs_resume_to_the_same_files(edges, trips, tmp_path):
    whole, broken = (run(edges, trips, tmp_path / name, "--batch-size", 2) for name in "ab")
    for names in (["part-000001.parquet", "_pairs.pq"], ["_pairs.pq"]):
        for name in names:
            (broken / name).unlink()
        run(edges, trips, broken, "--batch-size", 2, "--resume")
        assert parts_of(broken) == parts_of(whole)
        assert pq.read_table(broken / "_pairs.pq").equals(pq.read_table(whole / "_pairs.pq"))


@pytest.mark.parametrize("package", ["pandas", "polars", "duckdb"])
def test_readers_of_a_folder_take_its_parts_alone(package, edges, trips, tmp_path):
    reader = pytest.importorskip(package)
    folder = run(edges, trips, tmp_path / "out", "--batch-size", 2)
    expected = sum(pq.read_metadata(path).num_rows for path in folder.glob("part-*.parquet"))
    assert sorted(folder.glob("*.parquet")) == sorted(folder.glob("part-*"))
    if package == "duckdb":
        found = reader.sql(f"from '{folder}/*.parquet'").df()
    else:
        found = reader.read_parquet(folder if package == "pandas" else folder / "*.parquet")
    assert (len(found), list(found.columns)) == (expected, ["pair", "source", "target", "distance"])


def test_resume_refuses_another_table(edges, trips, tmp_path, capsys):
    folder = run(edges, trips, tmp_path / "out")
    other = tmp_path / "other.parquet"
    pd.read_parquet(trips).iloc[::-1].to_parquet(other, index=False)
    run(edges, other, folder, "--resume", code=2)
    assert "pairs was" in capsys.readouterr().err


def test_verify_proves_pairs_and_finds_a_changed_answer(edges, trips, tmp_path, capsys):
    folder = run(edges, trips, tmp_path / "out", "--algorithm", "sssp")
    assert verify.main([str(folder), str(edges), "--device", "cpu"]) == 0
    table = pq.read_table(folder / "_pairs.pq")
    changed = table["distance"].to_pylist()
    changed[3] = 1 if changed[3] is None else changed[3] + 1
    pq.write_table(
        table.set_column(3, "distance", pa.array(changed, table["distance"].type)),
        folder / "_pairs.pq",
    )
    code, out, _ = call(capsys, folder, edges, "--device", "cpu", program=verify.main)
    assert (code, "table: _pairs.pq" in out) == (5, True)


def test_verify_takes_a_table_that_was_moved(edges, trips, tmp_path, capsys):
    here = tmp_path / "here.parquet"
    there = tmp_path / "there.parquet"
    here.write_bytes(trips.read_bytes())
    folder = run(edges, here, tmp_path / "out")
    here.rename(there)
    assert "--pairs" in refused(capsys, folder, edges, "--device", "cpu", program=verify.main)
    assert verify.main([str(folder), str(edges), "--device", "cpu", "--pairs", str(there)]) == 0


def test_pairs_in_csv_of_integer_ids(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst,weight\n1,2,3\n2,3,4\n")
    (tmp_path / "trips.csv").write_text("trip;a;b\nx; 1;3\ny;3;1\nz;2;3\n")
    more = ["--algorithm", "sssp", "--columns", "origin=a,destination=b"]
    folder = run(tmp_path / "edges.csv", tmp_path / "trips.csv", tmp_path / "out", *more)
    found = pq.read_table(folder / "_pairs.pq").to_pydict()
    assert found["trip"] == ["x", "y", "z"]
    assert found["distance"] == [7, None, 4]


@pytest.mark.parametrize(
    ("text", "more", "said"),
    [
        (
            "origin,destination\nv001,v999\n",
            [],
            "destination, row 0: 1 destination is not in the graph: 'v999'",
        ),
        ("origin,destination\nv001,v001\n,v001\n", [], "row 1"),
        (
            "origin,destination,distance\nv001,v001,3\n",
            [],
            "column 'distance', which the result adds",
        ),
        ("a,b\nv001,v001\n", [], "--columns origin=NAME"),
        ("origin,destination\n", [], "has no row"),
    ],
)
def test_pairs_that_cannot_be_answered_are_refused(text, more, said, edges, tmp_path, capsys):
    (tmp_path / "trips.csv").write_text(text)
    run(edges, tmp_path / "trips.csv", tmp_path / "out", *more, code=2)
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


# --- paths -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_result_paths_has_the_paths_and_edges_of_the_library(
    algorithm, edges, trips, tmp_path, capsys
):
    more = ["--algorithm", algorithm, "--result", "paths", "--batch-size", 4]
    folder = run(edges, trips, tmp_path / "out", *more)
    given = pd.read_parquet(trips)
    graph = read_graph(edges, device="cpu", edge_ids=True)
    expected = paths(graph, (given["from"], given["to"]), edges=True, algorithm=algorithm)
    found = pd.read_parquet(folder, dtype_backend="numpy_nullable").sort_values(
        ["pair", "position"], ignore_index=True
    )
    assert list(found.columns) == ["pair", "source", "position", "vertex", "edge"]
    for name in expected:
        assert found[name].fillna(-1).tolist() == expected[name].fillna(-1).tolist()
    assert found["source"].tolist() == given["from"].take(found["pair"]).tolist()
    assert not (folder / "_pairs.pq").exists()
    capsys.readouterr()
    assert verify.main([str(folder), str(edges), "--device", "cpu"]) == 0


@pytest.fixture(scope="module")
def tolls(edges, tmp_path_factory):
    """The edges in two files, with more columns; a null is in a row that a filter leaves out."""
    folder = tmp_path_factory.mktemp("tolls")
    table = pd.read_parquet(edges)
    rng = np.random.default_rng(9)
    table = pd.concat([table, table.iloc[:1].assign(weight=99)], ignore_index=True)
    table["metres"] = pd.Series(rng.integers(-5, 10**6, len(table)), dtype="Int64")
    table["toll"] = rng.random(len(table)).round(3)
    table.loc[len(table) - 1, "metres"] = None
    table.iloc[:70].to_parquet(folder / "a.parquet")
    table.iloc[70:].to_parquet(folder / "b.parquet")
    table.to_csv(folder / "all.csv", index=False)
    return folder


ALONG = [
    "--algorithm",
    "sssp",
    "--columns",
    "weight=weight",
    "--result",
    "paths",
    "--along",
    "metres,toll",
]
ALONG += ["--where", "weight < 50"]


def test_sums_along_paths_are_those_of_the_library(tolls, trips, tmp_path, capsys):
    files = [tolls / "a.parquet", tolls / "b.parquet"]
    folder = run(tolls, trips, tmp_path / "out", "--format", "parquet", "--batch-size", 4, *ALONG)
    given = pd.read_parquet(trips)
    table = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    graph = read_graph(
        files, device="cpu", edge_ids=True, weight_column="weight", where="weight < 50"
    )
    sums = {"metres": table["metres"].fillna(0).astype(int), "toll": table["toll"]}
    expected = paths(graph, (given["from"], given["to"]), edges=True, along=sums)
    found = pd.read_parquet(folder, dtype_backend="numpy_nullable").sort_values(
        ["pair", "position"], ignore_index=True
    )
    assert list(found.columns) == ["pair", "source", "position", "vertex", "edge", "metres", "toll"]
    for name in ("pair", "vertex", "metres", "toll"):
        assert found[name].tolist() == expected[name].tolist()
    # By hand: the rows of the edge list along each path, added in order.
    for _, own in found.groupby("pair"):
        metres = table["metres"].take(own["edge"].dropna()).tolist()
        assert own["metres"].tolist() == [0, *np.cumsum(metres, dtype=int).tolist()]
    for other in ("--batch-size 1", "--certify none"):
        again = run(tolls, trips, tmp_path / other, "--format", "parquet", *other.split(), *ALONG)
        assert manifest_of(again)["digest"] == manifest_of(folder)["digest"]
    text = run(tolls / "all.csv", trips, tmp_path / "csv", *ALONG)
    assert (
        pd.read_parquet(text).sort_values(["pair", "position"])["metres"].tolist()
        == found["metres"].tolist()
    )
    capsys.readouterr()
    assert verify.main([str(folder), *map(str, files), "--device", "cpu"]) == 0
    table.assign(toll=table["toll"] + 1).to_parquet(tmp_path / "other.parquet")
    assert verify.main([str(folder), str(tmp_path / "other.parquet"), "--device", "cpu"]) == 2
    assert "the columns of --along are not those of the run" in capsys.readouterr().err


def test_sums_along_paths_over_negative_weights_are_those_of_the_library(tmp_path, capsys):
    table = pd.DataFrame(
        {
            "src": [1, 1, 2, 3, 4],
            "dst": [2, 3, 4, 4, 5],
            "weight": [6, -1, 3, 9, -2],
            "metres": [8, 3, 4, 9, 5],
        }
    )
    table.to_parquet(tmp_path / "edges.parquet")
    trips = tmp_path / "trips.parquet"
    pd.DataFrame({"from": [1, 2, 1], "to": [5, 5, 3]}).to_parquet(trips)
    sums = ["--algorithm", "sssp", "--columns", "weight=weight", "--result", "paths"]
    sums += ["--along", "metres"]
    folder = run(tmp_path / "edges.parquet", trips, tmp_path / "out", *sums)
    graph = graph_from_edges(table, weight="weight", edge_ids=True)
    expected = paths(graph, ([1, 2, 1], [5, 5, 3]), along=table[["metres"]])
    found = pd.read_parquet(folder).sort_values(["pair", "position"])
    assert found["metres"].tolist() == expected["metres"].tolist()
    capsys.readouterr()
    assert verify.main([str(folder), str(tmp_path / "edges.parquet"), "--device", "cpu"]) == 0


def test_wrong_sums_along_paths_are_found(tolls, trips, tmp_path, capsys):
    folder = run(tolls / "all.csv", trips, tmp_path / "out", *ALONG)
    part = folder / "part-000000.parquet"
    table = pq.read_table(part)
    footer = pq.read_metadata(part).metadata[b"kepler_traverse"]
    sums = table["toll"].to_numpy().copy()
    sums[-1] += 0.125
    with pq.ParquetWriter(part, table.schema) as writer:
        writer.write_table(table.set_column(6, "toll", pa.array(sums)))
        writer.add_key_value_metadata({"kepler_traverse": footer})
    code, out, _ = call(capsys, folder, tolls / "all.csv", "--device", "cpu", program=verify.main)
    assert (code, "toll of row" in out) == (5, True)


def test_resume_writes_the_same_sums(tolls, trips, tmp_path, capsys):
    more = ["--batch-size", 2, *ALONG]
    whole, broken = (run(tolls / "all.csv", trips, tmp_path / name, *more) for name in "ab")
    (broken / "part-000001.parquet").unlink()
    run(tolls / "all.csv", trips, broken, *more, "--resume")
    assert parts_of(broken) == parts_of(whole)
    changed = [word.replace("metres,toll", "metres") for word in map(str, more)]
    run(tolls / "all.csv", trips, broken, *changed, "--resume", code=2)
    assert "along was" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("along", "more", "said"),
    [
        ("metres", [], "metres"),
        ("name", ["--where", "weight < 50"], "name"),
        ("edge", [], "--along 'edge': the result has a column of this name"),
        ("huge", [], "the sum over a path may exceed int64"),
        ("part", [], "row 3: column 'part' has 1 missing value"),
    ],
)
def test_columns_that_cannot_be_summed_are_refused(
    along, more, said, tolls, trips, tmp_path, capsys
):
    table = pd.read_csv(tolls / "all.csv").assign(name="x", huge=2**60, part=1.5, edge=1)
    table.loc[3, "part"] = np.nan
    table.to_parquet(tmp_path / "edges.parquet")
    run(
        tmp_path / "edges.parquet",
        trips,
        tmp_path / "out",
        "--result",
        "paths",
        "--along",
        along,
        *more,
        code=2,
    )
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_along_is_for_paths_of_files(edges, trips, tmp_path):
    with pytest.raises(InputError, match="edges are in memory"):
        run_job(
            pd.read_parquet(edges),
            output=tmp_path / "out",
            pairs=trips,
            result="paths",
            along=["weight"],
        )


def test_paths_of_a_graph_in_memory_need_its_rows(edges, trips, tmp_path):
    table = pd.read_parquet(edges)
    made = run_job(table, output=tmp_path / "table", pairs=trips, result="paths")
    known = graph_from_edges(table, edge_ids=True, weighted=False)
    assert (
        run_job(known, output=tmp_path / "graph", pairs=trips, result="paths").digest == made.digest
    )
    with pytest.raises(InputError, match="build it with edge_ids=True"):
        run_job(graph_from_edges(table), output=tmp_path / "none", pairs=trips, result="paths")
    assert not (tmp_path / "none").exists()


@on_a_device
def test_ids_of_a_graph_with_edge_rows_are_copied_from_a_gpu(edges):
    graph = read_graph(edges, device="cpu", edge_ids=True)
    with running({"block": 64}):
        there = HostRows(graph.to("cuda"))
        assert np.asarray(there.graph.ids).tolist() == np.asarray(graph.ids).tolist()
        assert there.graph.device == "cpu"


@pytest.mark.parametrize(
    ("rows", "says"), [([0, 2], "a row that the table of pairs does not have"), ([1, 1], "row 0")]
)
def test_parts_without_each_row_of_the_table_once_are_no_answer(tmp_path, rows, says):
    pq.write_table(pa.table({"pair": pa.array(rows, pa.int64())}), tmp_path / "part.parquet")
    with pytest.raises(ValueError, match=says):
        rows_by_pair([tmp_path / "part.parquet"])


CONTAINERS = {
    "a frame": pd.DataFrame,
    "a frame with levels": lambda columns: pd.DataFrame(columns).set_index(
        ["origin", "destination"]
    ),
    "Arrow": pa.table,
    "a mapping": dict,
    "two columns": lambda columns: (columns["origin"], columns["destination"]),
    "two series": lambda columns: tuple(map(pd.Series, list(columns.values())[:2])),
    "rows": lambda columns: list(zip(columns["origin"], columns["destination"], strict=True)),
    "a structured array": lambda columns: pd.DataFrame(columns).to_records(index=False),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "DuckDB": lambda columns: pytest.importorskip("duckdb").from_arrow(pa.table(columns)),
}


@pytest.mark.parametrize(
    ("name", "ids"), tiers.by_turns(CONTAINERS, [[1, 2, 3, 4], ["01", "1", "a", "b"]])
)
def test_pairs_in_memory_are_those_of_a_file(name, ids, tmp_path):
    columns = {
        "origin": [ids[0], ids[1], ids[0], ids[3]],
        "destination": [ids[3], ids[3], ids[1], ids[0]],
        "trips": [4, 3, 2, 1],
    }
    graph = graph_from_edges(ids[:-1], ids[1:], [5, 7, 9])
    pq.write_table(pa.table(columns), tmp_path / "pairs.parquet")
    options = {"algorithm": "sssp", "report": False}
    of_file = run_job(graph, output=tmp_path / "f", pairs=tmp_path / "pairs.parquet", **options)
    given = CONTAINERS[name](columns)
    done = run_job(graph, output=tmp_path / "m", pairs=given, **options)
    assert done.digest == of_file.digest
    found, wanted = (pq.read_table(tmp_path / each / "_pairs.pq") for each in "mf")
    names = [name for name in wanted.column_names if name in found.column_names]
    assert {"origin", "destination", "distance"} <= set(names)
    assert found.equals(wanted.select(names).cast(found.schema))


def test_an_output_of_pairs_in_memory_is_verified_with_a_file(tmp_path):
    from pipelines import finish, verify

    frame = pd.DataFrame({"origin": [1, 2, 3], "destination": [3, 3, 1]})
    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3]}), tmp_path / "e.parquet")
    frame.to_parquet(tmp_path / "p.parquet")
    options = {"pairs": frame, "batch_size": 1, "output": tmp_path / "o", "report": False}
    for shard in ("0/2", "1/2"):
        run_job(tmp_path / "e.parquet", shard=shard, **options)
    words = [str(tmp_path / "o"), "--pairs", str(tmp_path / "p.parquet")]
    assert finish.main(words) == 0
    words.insert(1, str(tmp_path / "e.parquet"))
    assert verify.main(words) == 0
    assert manifest_of(tmp_path / "o")["settings"]["pairs"] == "(pairs in memory)"


def test_a_table_in_memory_that_is_gone_is_asked_for(tmp_path, capsys):
    from pipelines import verify

    pq.write_table(pa.table({"src": [1, 2], "dst": [2, 3]}), tmp_path / "e.parquet")
    run_job(tmp_path / "e.parquet", pairs=([1], [3]), output=tmp_path / "o", report=False)
    assert verify.main([str(tmp_path / "o"), str(tmp_path / "e.parquet")]) == 2
    assert "give that by --pairs FILE" in capsys.readouterr().err


WRONG = {
    "a number": (5, "pairs must be"),
    "three columns": (([1], [2], [3]), "pairs"),
    "no known names": ({"a": [1], "b": [2]}, "not sure which columns"),
    "lengths": (([1, 2], [3]), "length"),
    "floats": (([1.5], [3]), "ids are integers or strings"),
    "a null": (({"origin": [1, None], "destination": [2, 3]}), "row 1"),
    "an unknown id": (([1, 9], [3, 3]), "row 1"),
    "a set": (({1}, {3}), "no order"),
}


def test_pairs_in_memory_beside_sources_are_refused(tmp_path):
    frame = pd.DataFrame({"origin": [1], "destination": [2]})
    with pytest.raises(InputError, match="more than once, by sources and pairs"):
        run_job(graph_from_edges([1], [2]), pairs=frame, sources=[1], output=tmp_path / "o")


@pytest.mark.parametrize("name", WRONG)
def test_wrong_pairs_in_memory_are_refused_before_a_folder_is_made(name, tmp_path):
    given, said = WRONG[name]
    graph = graph_from_edges([1, 2], [2, 3])
    with pytest.raises(InputError, match=said):
        run_job(graph, pairs=given, output=tmp_path / "o", report=False)
    assert not (tmp_path / "o" / "_manifest.json").exists()


@pytest.mark.parametrize("ids", [[1, 2, 3], ["01", "2", "x"]])
@pytest.mark.parametrize("way", ["CSV", "int32 or codes"])
def test_ids_in_answered_tables_have_the_type_of_the_graph(way, ids, tmp_path):
    frame = pd.DataFrame({"origin": ids[:2], "destination": ids[1:]})
    if way == "CSV":
        path = tmp_path / "p.csv"
        frame.to_csv(path, index=False)
    else:
        path = tmp_path / "p.parquet"
        frame.astype("category" if isinstance(ids[0], str) else "int32").to_parquet(path)
    graph = graph_from_edges(ids[:2], ids[1:])
    run_job(graph, output=tmp_path / "p", pairs=path, report=False)
    of_stops = {"result": "summary", "columns": {"source": "origin"}}
    run_job(graph, output=tmp_path / "s", sources=path, report=False, **of_stops)
    for out, names in {
        "p/_pairs.pq": ["origin", "destination"],
        "s/_sources.pq": ["origin"],
    }.items():
        written = pq.read_table(tmp_path / out)
        part = pq.read_schema(next((tmp_path / out).parent.glob("part-*")))
        for name in names:
            assert written.schema.field(name).type == part.field("source").type
            assert written[name].to_pylist() == frame[name].tolist()
