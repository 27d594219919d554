"""``--result labels``: parts that SQL joins by the queries of the page, proved, resumed and verified."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import convert, graph_from_edges
from kepler_traverse.errors import InputError
from kepler_traverse.hub_labels import estimate
from kepler_traverse.pipelines import run_job
from pipelines import finish
from pipelines.batch_sources import main
from pipelines.output.label_reader import numbers_of_ids, read_labels
from pipelines.run import prepare
from pipelines.worker import label_plan
from tests.support.graphs import build, lattice, rmat, weights_for
from tests.support.jobs import (
    call,
    forget_parts,
    manifest_of,
    parts_of,
    proven,
    refused,
    rows_of,
    seal,
    summary_of,
    write_edges,
)
from tests.support.sql_engines import Duckdb, Polars, Postgres, Spark, Sqlite, postgres_server

PAGE = Path(__file__).parents[2] / "docs" / "labels.md"
QUERIES = dict(re.findall(r"```(?:sql|py)\n(?:--|#) ([\w ]+)\n(.*?)```", PAGE.read_text(), re.S))
GRID = lattice(12, 12)
APART = [*GRID, (200, 201), (201, 202)]
NAMES = {"out": "labels", "in": "labels_in"}
QUIET = {"algorithm": "sssp", "result": "labels", "report": False}


def town(directed=True, ids="integers"):
    """A graph with two components, whose ids are far apart or strings."""
    ends = np.array(APART) * 7 - 100
    if ids == "strings":
        ends = np.array([[f"n{a}", f"n{b}"] for a, b in ends], object)
    weights = np.array(weights_for(APART, 3))
    return graph_from_edges(ends[:, 0].copy(), ends[:, 1].copy(), weights, directed=directed)


def write(graph, folder, directions=("out", "in"), **more):
    for direction in directions:
        run_job(graph, output=folder / NAMES[direction], direction=direction, **QUIET | more)
    return folder / NAMES["out"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labels")
    write(town(), folder, batch_size=60)
    return folder


def tables_of(written):
    """What the queries join: the labels, and what is asked about."""
    labels = {
        f"labels_{direction}": rows_of(written / place).rename(columns={"source": "vertex"})
        for direction, place in NAMES.items()
    }
    rng = np.random.default_rng(2)
    ids = np.asarray(town().ids)
    asked = {
        "pairs": pd.DataFrame(
            {"pair": range(300), "source": rng.choice(ids, 300), "target": rng.choice(ids, 300)}
        ),
        "homes": pd.DataFrame({"source": rng.choice(ids, 20, replace=False)}),
        "places": pd.DataFrame({"target": rng.choice(ids, 9, replace=False)}),
    }
    return labels, asked


@pytest.fixture(
    scope="module",
    params=[
        "sqlite",
        "duckdb",
        "polars",
        pytest.param("postgres", marks=pytest.mark.exhaustive),
        pytest.param("spark", marks=pytest.mark.exhaustive),
    ],
)
def asked(request, written, tmp_path_factory):
    labels, given = tables_of(written)
    graph = town()
    ids = np.asarray(graph.ids)
    distances = pd.DataFrame(dijkstra(convert.to_scipy(graph)), index=ids, columns=ids)
    with contextlib.ExitStack() as stack:
        if request.param == "sqlite":
            engine = Sqlite(labels | given)
        elif request.param == "duckdb":
            views = QUERIES["views"].replace("FROM 'labels", f"FROM '{written}/labels")
            engine = Duckdb(given, views)
        elif request.param == "polars":
            scope = {"pl": pytest.importorskip("polars")}
            exec(QUERIES["polars"].replace('parquet("labels', f'parquet("{written}/labels'), scope)
            engine = Polars(given | {name: scope[name] for name in labels})
        elif request.param == "postgres":
            engine = Postgres(labels | given, stack.enter_context(postgres_server()))
        else:
            engine = Spark(labels | given, tmp_path_factory.mktemp("spark"))
            stack.callback(engine.session.stop)
        yield (
            SimpleNamespace(
                ask=lambda query, **values: engine.ask(QUERIES[query].strip(), **values)
            ),
            given,
            distances,
        )


def test_the_page_has_the_queries():
    assert set(QUERIES) == {
        "views",
        "one pair",
        "a table of pairs",
        "k nearest",
        "within a cutoff",
        "polars",
    }


def test_one_pair_is_answered(asked):
    engine, given, distances = asked
    missing = 0
    for source, target in given["pairs"][["source", "target"]].values[:12].tolist():
        found = engine.ask("one pair", s=source, t=target)
        expected = distances.loc[source, target]
        missing += np.isinf(expected)
        assert found == [(None if np.isinf(expected) else expected,)]
    assert missing


def test_a_table_of_pairs_is_answered(asked):
    engine, given, distances = asked
    expected = [
        (pair, None if np.isinf(distances.loc[source, target]) else distances.loc[source, target])
        for pair, source, target in given["pairs"].values.tolist()
    ]
    assert engine.ask("a table of pairs") == expected


@pytest.mark.parametrize("k", [1, 3, 20])
def test_the_k_nearest(asked, k):
    engine, given, distances = asked
    expected = []
    for source in sorted(given["homes"]["source"].tolist()):
        reached = [(distances.loc[source, place], place) for place in given["places"]["target"]]
        nearest = sorted(each for each in reached if np.isfinite(each[0]))[:k]
        expected += [(source, place, far, i + 1) for i, (far, place) in enumerate(nearest)]
    assert engine.ask("k nearest", k=k) == expected


@pytest.mark.parametrize("cutoff", [0, 150, 10**9])
def test_all_within_a_cutoff(asked, cutoff):
    engine, given, distances = asked
    expected = [
        (source, target, distances.loc[source, target])
        for source in sorted(given["homes"]["source"].tolist())
        for target in sorted(given["places"]["target"].tolist())
        if distances.loc[source, target] <= cutoff
    ]
    assert engine.ask("within a cutoff", cutoff=cutoff) == expected


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("ids", ["integers", "strings"])
@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
def test_rows_are_distances_and_are_read_back(directed, ids, algorithm, tmp_path):
    graph = town(directed, ids)
    write(graph, tmp_path, ("out", "in") if directed else ("out",), algorithm=algorithm)
    distances = dijkstra(convert.to_scipy(graph), unweighted=algorithm == "bfs")
    for place in sorted(tmp_path.iterdir()):
        rows = rows_of(place)
        ends = [graph.to_numbers(rows[name].tolist()) for name in ("source", "hub")]
        of_rows = distances[tuple(ends if place.name == "labels" else ends[::-1])]
        assert np.array_equal(rows["distance"], of_rows)
        keys = ends[0] * graph.n_vertices + ends[1]
        assert (np.diff(keys) > 0).all()
    read = read_labels(tmp_path / "labels", str(tmp_path / "labels_in") if directed else None)
    assert list(read.ids) == list(graph.ids)
    everything = np.arange(graph.n_vertices)
    pairs = np.repeat(everything, everything.size), np.tile(everything, everything.size)
    found = read.labels.between(*pairs)
    expected = distances.ravel()
    assert np.array_equal(np.where(found == read.labels.unreached, np.inf, found), expected)


def test_float_distances_are_floats(tmp_path):
    graph = build(GRID, np.array(weights_for(GRID, 1)) / 4, weight_type="float32")
    write(graph, tmp_path)
    rows = rows_of(tmp_path / "labels")
    distances = dijkstra(convert.to_scipy(graph))
    assert rows["distance"].dtype.kind == "f"
    assert np.array_equal(distances[rows["source"], rows["hub"]], rows["distance"])
    read = read_labels(tmp_path / "labels", str(tmp_path / "labels_in"))
    assert read.facts["unit"] == 0.25
    assert not read.is_integer
    everything = np.arange(graph.n_vertices)
    sums = read.labels.between(everything, everything[::-1])
    assert np.array_equal(
        np.where(sums == read.labels.unreached, np.inf, sums * 0.25),
        distances[everything, everything[::-1]],
    )


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    rows = np.array(APART)
    path = tmp_path_factory.mktemp("edges") / "edges.parquet"
    return write_edges(path, rows[:, 0], rows[:, 1], np.array(weights_for(APART, 3)))


def command(edges, folder, *more):
    given = ["--algorithm", "sssp", "--result", "labels", "--output", folder, *more]
    return [str(word) for word in (edges, "--no-report", *given)]


def test_a_run_is_the_same_for_any_batches_and_is_verified(edges, tmp_path, capsys):
    whole = summary_of(capsys, *command(edges, tmp_path / "a", "--json"))
    parts = summary_of(capsys, *command(edges, tmp_path / "b", "--json", "--batch-size", 40))
    assert parts["digest"] == whole["digest"]
    assert len(parts_of(tmp_path / "b")) == 4
    code, found = proven(tmp_path / "b", edges, capsys)
    assert (code, found["faults"]) == (0, [])
    assert found["proven"] == {"equal to labels that are proved": whole["sources"]}


def test_labels_of_some_vertices_are_written(edges, tmp_path, capsys):
    summary_of(capsys, *command(edges, tmp_path / "some", "--json", "--sources", "3,77"))
    summary_of(capsys, *command(edges, tmp_path / "all", "--json"))
    rows = rows_of(tmp_path / "all")
    expected = rows[rows["source"].isin([3, 77])].reset_index(drop=True)
    assert rows_of(tmp_path / "some").equals(expected)
    with pytest.raises(InputError, match="labels of 2 vertices of 147; write those of all"):
        read_labels(tmp_path / "some", str(tmp_path / "some"))


@pytest.mark.parametrize("cache", [False, True])
def test_resume_computes_what_is_missing(cache, edges, tmp_path, capsys):
    more = ["--graph-cache", tmp_path / "cache"] if cache else []
    words = command(edges, tmp_path / "out", "--json", "--batch-size", 40, *more)
    before = summary_of(capsys, *words)
    files = parts_of(tmp_path / "out")
    forget_parts(tmp_path / "out")
    (tmp_path / "out" / "part-000002.parquet").unlink()
    after = summary_of(capsys, *words, "--resume")
    assert (after["computed"], after["kept"]) == (1, 3)
    assert after["digest"] == before["digest"]
    assert parts_of(tmp_path / "out") == files


def test_pairs_of_a_later_run_find_the_labels_in_the_cache(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        prepare, "proof_seconds", lambda *_: 0.0
    )  # a small graph is searched faster
    rows = np.array(lattice(30, 30))
    edges = write_edges(tmp_path / "edges.parquet", *rows.T, np.array(weights_for(rows, 3)))
    cache = ["--graph-cache", tmp_path / "cache"]
    assert main(command(edges, tmp_path / "labels", *cache)) == 0
    numbers = np.random.default_rng(5).integers(0, 900, (2, 90))
    frame = pd.DataFrame({"origin": numbers[0], "destination": numbers[1]})
    frame.to_parquet(tmp_path / "pairs.parquet")
    given = ["--algorithm", "sssp", "--pairs", tmp_path / "pairs.parquet", "--no-report", "--json"]
    asked = [edges, *given, "--output"]
    summary_of(capsys, *map(str, [*asked, tmp_path / "by_labels", *cache]))
    summary_of(capsys, *map(str, [*asked, tmp_path / "searched"]))
    assert manifest_of(tmp_path / "by_labels")["proved"] == "labels"
    assert "proved" not in manifest_of(tmp_path / "searched")
    assert rows_of(tmp_path / "by_labels").equals(rows_of(tmp_path / "searched"))
    code, found = proven(tmp_path / "by_labels", edges, capsys)
    assert (code, found["faults"]) == (0, [])


def test_shards_write_one_run(edges, tmp_path, capsys):
    for shard in ("0/2", "1/2"):
        assert main(command(edges, tmp_path / "out", "--batch-size", 40, "--shard", shard)) == 0
    assert call(capsys, tmp_path / "out", program=finish.main)[0] == 0
    assert manifest_of(tmp_path / "out")["status"] == "done"
    whole = summary_of(capsys, *command(edges, tmp_path / "whole", "--json"))
    assert manifest_of(tmp_path / "out")["digest"] == whole["digest"]


@pytest.mark.parametrize("table", ["delta", "iceberg"])
def test_parts_become_a_table(table, edges, tmp_path, capsys):
    reader = {"delta": "deltalake", "iceberg": "pyiceberg"}[table]
    pytest.importorskip(reader)
    folder = tmp_path / "out"
    assert main(command(edges, folder, "--batch-size", 40)) == 0
    assert call(capsys, folder, "--table", table, program=finish.main)[0] == 0
    code, found = proven(folder, edges, capsys)
    assert (code, found["faults"]) == (0, [])
    if table == "delta":
        import deltalake

        frame = deltalake.DeltaTable(str(folder)).to_pyarrow_table().to_pandas()
        frame = frame.sort_values(["source", "hub"], ignore_index=True)
        assert frame.equals(rows_of(folder))


def test_workers_of_a_cluster_write_the_same(edges, tmp_path, capsys):
    whole = summary_of(capsys, *command(edges, tmp_path / "a", "--json"))
    words = command(edges, tmp_path / "b", "--json", "--workers", 2, "--batch-size", 40)
    parts = summary_of(capsys, *words)
    assert parts["digest"] == whole["digest"]


def test_the_plan_says_sizes_and_seconds(edges, tmp_path, capsys):
    code, out, _ = call(capsys, *command(edges, tmp_path / "out", "--plan", "--json"))
    assert code == 0
    plan = json.loads(out)
    assert re.search(r"about \d+ hubs per vertex, [\d,]+ rows, ", plan["why"])
    assert set(plan["expected"]["steps"]) == {"read", "build", "plan", "labels", "finish"}
    assert plan["expected"]["output_bytes"] > 0
    assert plan["memory"]["total"] > 0
    assert not (tmp_path / "out").exists()
    assert "by an estimate" in call(capsys, *command(edges, tmp_path / "out", "--plan"))[1]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--cutoff", "5"], "labels has the distances to all hubs"),
        (["--hierarchy", "no"], "labels are made of a hierarchy"),
        (["--strategy", "near_far"], "labels searches nothing"),
        (["--device", "cuda"], "labels are made on the CPU"),
        (["--targets", "3"], "--targets is for"),
        (["--engine", "cugraph-mg"], "it writes no labels"),
    ],
)
def test_options_without_effect_are_refused(more, message, edges, tmp_path, capsys):
    assert message in refused(capsys, *command(edges, tmp_path / "out", *more))
    assert not (tmp_path / "out").exists()


def test_long_labels_are_refused_before_anything_is_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(estimate, "MAX_HUBS", 10)
    rows = np.array(rmat(12, 16, seed=5))
    path = write_edges(tmp_path / "edges.parquet", rows[:, 0], rows[:, 1])
    words = [path, "--result", "labels", "--output", tmp_path / "out"]
    assert "no labels: they would have about" in refused(capsys, *words)
    assert not (tmp_path / "out").exists()


def test_wrong_labels_are_not_written(edges, tmp_path, capsys, monkeypatch):
    def broken(graph, question):
        labels = proved(graph, question)
        labels.outward.distances[labels.outward.offsets[1]] += 1
        return proved(graph, question)

    proved = label_plan.prove_labels
    monkeypatch.setattr("pipelines.run.prepare.prove_labels", broken)
    code, _, err = call(capsys, *command(edges, tmp_path / "out"))
    assert code == 1
    assert "error" in err
    assert not (tmp_path / "out").exists()


def forge(folder, change):
    """Change the rows of a part, and adapt its hash in the manifest."""
    manifest = manifest_of(folder)
    entry = manifest["parts"][0]
    path = folder / entry["file"]
    table = pq.read_table(path)
    frame = change(table.to_pandas())
    schema = table.schema
    changed = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(changed.replace_schema_metadata(schema.metadata), path)
    data = path.read_bytes()
    entry |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    seal(folder, manifest)


def off_by_one(frame):
    row = int((frame["source"] != frame["hub"]).to_numpy().argmax())
    frame.loc[row, "distance"] += 1
    return frame


def without_a_hub(frame):
    return frame.drop(index=int((frame["source"] != frame["hub"]).to_numpy().argmax()))


def exchanged(frame):
    frame.loc[[2, 3], "distance"] = frame.loc[[3, 2], "distance"].to_numpy()
    return frame


@pytest.mark.parametrize("change", [off_by_one, without_a_hub, exchanged])
def test_verify_finds_planted_faults(change, written, tmp_path, capsys):
    ends = np.array(APART) * 7 - 100
    path = write_edges(
        tmp_path / "edges.parquet", ends[:, 0], ends[:, 1], np.array(weights_for(APART, 3))
    )
    folder = shutil.copytree(written / "labels", tmp_path / "out")
    forge(folder, change)
    code, found = proven(folder, path, capsys)
    assert code == 5
    assert {fault["file"] for fault in found["faults"]} == {"part-000000.parquet"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.iloc[::-1], "do not ascend by source and hub"),
        (lambda frame: frame.assign(hub=frame["hub"] + 1), "which has no label"),
        (lambda frame: frame.assign(distance=-1), "a distance is negative"),
        (lambda frame: pd.concat([frame.iloc[:2], frame]), "do not ascend by source and hub"),
        (lambda frame: frame.assign(distance=frame["distance"].astype(str)), "is no number"),
    ],
)
def test_parts_that_hold_no_labels_are_refused(change, message, written, tmp_path):
    folder = shutil.copytree(written / "labels", tmp_path / "out")
    forge(folder, change)
    with pytest.raises(InputError, match=message):
        read_labels(folder, str(written / "labels_in"))


def test_runs_that_do_not_belong_together_are_refused(written, tmp_path):
    out = str(written / "labels")
    inward = str(written / "labels_in")
    with pytest.raises(InputError, match="its graph is directed; write the labels"):
        read_labels(out)
    with pytest.raises(InputError, match="its labels have --direction in, not out"):
        read_labels(inward, inward)
    with pytest.raises(InputError, match="it holds no labels of a run"):
        read_labels(tmp_path)
    other = write(build(GRID, weights_for(GRID, 1)), tmp_path)
    with pytest.raises(InputError, match=r"are not those of .* \(graph differs\)"):
        read_labels(other, inward)
    near = write(town(directed=False), tmp_path / "near", ("out",))
    with pytest.raises(InputError, match="its graph is undirected"):
        read_labels(near, inward)
    damaged = Path(shutil.copytree(out, tmp_path / "damaged"))
    part = damaged / "part-000000.parquet"
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="it is not as its run has written it"):
        read_labels(damaged, inward)


def test_an_id_has_no_label_where_no_vertex_has_one():
    with pytest.raises(InputError, match="row 0 has '7', which has no label"):
        numbers_of_ids("pairs", pa.array([7]), np.empty(0, np.int64))


IDS_OF_LABELS = (np.array([1, 2]), pa.array(["1", "1.5", "2020-01-01", "true"]))


@pytest.mark.parametrize("ids", IDS_OF_LABELS, ids=["integers", "texts"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([1.0]),
        pa.array([True]),
        pa.array([18262], pa.date32()),
        pa.array([b"1"]),
        pa.array([["1"]]),
        pa.array([1.5]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
def test_ids_of_labels_are_not_cast(ids, column):
    with pytest.raises(InputError, match=r"pairs: ids are .*, and those of the labels are"):
        numbers_of_ids("pairs", column, ids)


@pytest.mark.parametrize("ids", IDS_OF_LABELS, ids=["integers", "texts"])
def test_ids_of_labels_may_be_categories_and_views(ids):
    plain = pa.array(ids)[:2]
    columns = [plain, plain.dictionary_encode()]
    if plain.type == pa.string():
        columns += [plain.cast(pa.string_view()), plain.cast(pa.large_string())]
    for column in columns:
        assert numbers_of_ids("pairs", column, ids).tolist() == [0, 1]
