"""Labels are written as tables that SQL joins, by the queries of the page, and are read back."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse.csgraph import dijkstra

from kepler_traverse import certify, convert, graph_from_edges
from kepler_traverse.certificate.of_labels import labels_of_tables
from kepler_traverse.errors import InputError, OutputError
from kepler_traverse.hub_labels import tables as tables_module
from kepler_traverse.hub_labels.tables import (
    FACTS,
    TABLES,
    numbers_of_ids,
    read_labels,
    write_labels,
)
from tests.support.graphs import build, lattice, weights_for

PAGE = Path(__file__).parents[2] / "docs" / "labels.md"
QUERIES = dict(re.findall(r"```(?:sql|py)\n(?:--|#) ([\w ]+)\n(.*?)```", PAGE.read_text(), re.S))
GRID = lattice(12, 12)
APART = [*GRID, (200, 201), (201, 202)]


def town(directed=True, ids="integers"):
    """A graph with two components, whose ids are far apart or strings."""
    ends = np.array(APART) * 7 - 100
    if ids == "strings":
        ends = np.array([[f"n{a}", f"n{b}"] for a, b in ends], object)
    weights = np.array(weights_for(APART, 3))
    return graph_from_edges(ends[:, 0].copy(), ends[:, 1].copy(), weights, directed=directed)


class Engine:
    """An engine with the tables of labels and those that are asked about."""

    def __init__(self, name, folder, given):
        self.name = name
        frames = {
            path.stem: pq.read_table(path).to_pandas() for path in Path(folder).glob("labels_*")
        }
        if name == "sqlite":
            self._connection = sqlite3.connect(":memory:")
            for table, frame in (frames | given).items():
                frame.to_sql(table, self._connection, index=False)
        else:
            self._connection = pytest.importorskip("duckdb").connect()
            for path in Path(folder).glob("labels_*"):
                self._connection.execute(f"CREATE VIEW {path.stem} AS FROM '{path}'")
            for table, frame in given.items():
                self._connection.register(table, frame)

    def ask(self, query, **values):
        text = QUERIES[query]
        if self.name == "duckdb":
            text = re.sub(r":(\w+)", r"$\1", text)
        return self._connection.execute(text, values).fetchall()


@pytest.fixture(params=["sqlite", "duckdb"])
def asked(request, tmp_path):
    graph = town()
    write_labels(graph, tmp_path / "labels")
    rng = np.random.default_rng(2)
    ids = np.asarray(graph.ids)
    given = {
        "pairs": pd.DataFrame(
            {"pair": range(300), "source": rng.choice(ids, 300), "target": rng.choice(ids, 300)}
        ),
        "homes": pd.DataFrame({"source": rng.choice(ids, 20, replace=False)}),
        "places": pd.DataFrame({"target": rng.choice(ids, 9, replace=False)}),
    }
    distances = pd.DataFrame(dijkstra(convert.to_scipy(graph)), index=ids, columns=ids)
    return Engine(request.param, tmp_path / "labels", given), given, distances


def test_the_page_has_the_queries():
    assert set(QUERIES) == {
        "one pair",
        "a table of pairs",
        "k nearest",
        "within a cutoff",
        "polars",
    }


def test_one_pair_is_answered(asked):
    engine, given, distances = asked
    missing = 0
    for source, target in given["pairs"][["source", "target"]].values[:60].tolist():
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


def test_polars_joins_a_table_of_pairs(tmp_path):
    polars = pytest.importorskip("polars")
    graph = town()
    write_labels(graph, tmp_path)
    ids = np.asarray(graph.ids)
    frames = {name[:-8]: polars.read_parquet(tmp_path / name) for name in TABLES.values()}
    pairs = polars.DataFrame({"pair": range(ids.size), "source": ids, "target": np.roll(ids, 40)})
    scope = {"pl": polars, "pairs": pairs, **frames}
    exec(QUERIES["polars"], scope)
    distances = dijkstra(convert.to_scipy(graph))
    expected = distances[np.arange(ids.size), np.roll(np.arange(ids.size), 40)]
    found = [np.inf if each is None else each for each in scope["answer"]["distance"].to_list()]
    assert found == expected.tolist()


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("ids", ["integers", "strings"])
@pytest.mark.parametrize("metric", ["weights", "hops"])
def test_tables_are_read_back_and_certified(directed, ids, metric, tmp_path, monkeypatch):
    monkeypatch.setattr(tables_module, "ROWS_PER_GROUP", 100)
    graph = town(directed, ids)
    paths = write_labels(graph, tmp_path / "labels", metric)
    assert [path.name for path in paths] == ["labels_out.parquet", "labels_in.parquet"]
    tables = read_labels(tmp_path / "labels")
    assert list(tables.ids) == list(graph.ids)
    everything = np.arange(graph.n_vertices)
    pairs = np.repeat(everything, everything.size), np.tile(everything, everything.size)
    labels = graph.labels(metric)
    found = tables.labels.between(*pairs)
    expected = labels.between(*pairs)
    assert np.array_equal(
        np.where(found == tables.labels.unreached, -1, found),
        np.where(expected == labels.unreached, -1, expected),
    )
    certify(graph, labels_of_tables(graph, tmp_path / "labels")).require()


def test_tables_have_the_layout_of_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(tables_module, "ROWS_PER_GROUP", 100)
    monkeypatch.setattr(tables_module, "_GROUPS_AT_A_TIME", 2)
    graph = town()
    for path in write_labels(graph, tmp_path):
        file = pq.ParquetFile(path)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        assert [group.num_rows for group in groups[:-1]] == [100] * (len(groups) - 1)
        column = groups[0].column(0)
        assert column.compression == "ZSTD"
        assert column.has_offset_index
        assert "DELTA_BINARY_PACKED" in column.encodings
        assert [each.column_index for each in groups[0].sorting_columns] == [0, 1]
        frame = file.read().to_pandas()
        assert frame.equals(frame.sort_values(["vertex", "hub"], ignore_index=True))
    with pytest.raises(InputError, match=r"labels_out\.parquet exists; name a new folder"):
        write_labels(graph, tmp_path)


def test_float_distances_are_floats(tmp_path):
    graph = build(GRID, np.array(weights_for(GRID, 1)) / 4, weight_type="float32")
    write_labels(graph, tmp_path)
    frame = pq.read_table(tmp_path / "labels_out.parquet").to_pandas()
    distances = dijkstra(convert.to_scipy(graph))
    assert frame["distance"].dtype == np.float64
    assert np.array_equal(distances[frame["vertex"], frame["hub"]], frame["distance"])
    certify(graph, labels_of_tables(graph, tmp_path)).require()


def changed(path, change):
    table = pq.read_table(path)
    frame = change(table.to_pandas())
    pq.write_table(
        pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(
            table.schema.metadata
        ),
        path,
    )


def off_by_one(frame):
    row = int((frame["vertex"] != frame["hub"]).to_numpy().argmax())
    frame.loc[row, "distance"] += 1
    return frame


def without_a_hub(frame):
    return frame.drop(index=int((frame["vertex"] != frame["hub"]).to_numpy().argmax()))


@pytest.mark.parametrize("change", [off_by_one, without_a_hub])
@pytest.mark.parametrize("name", list(TABLES.values()))
def test_faults_of_tables_are_found(change, name, tmp_path):
    graph = town()
    write_labels(graph, tmp_path)
    changed(tmp_path / name, change)
    assert not certify(graph, labels_of_tables(graph, tmp_path)).valid


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.iloc[::-1], "is not after the one before"),
        (lambda frame: frame.assign(hub=frame["hub"] + 1), "which has no label"),
        (lambda frame: frame.assign(distance=-1), "a distance is negative"),
        (lambda frame: pd.concat([frame.iloc[:2], frame]), "is not after the one before"),
        (lambda frame: frame.rename(columns={"hub": "a"}), "it is no table of labels"),
        (lambda frame: frame[frame["vertex"] > 0], "its tables have rows of"),
        (lambda frame: frame.assign(distance=frame["distance"] + 0.5), "no multiple of the unit"),
        (
            lambda frame: frame.assign(
                distance=frame["distance"].astype("Int64").replace(0, pd.NA)
            ),
            "distance holds",
        ),
        (
            lambda frame: frame.assign(hub=frame["hub"].astype("Int64").mask(frame.index == 1)),
            "hub holds",
        ),
        (lambda frame: frame.assign(distance=frame["distance"].astype(str)), "no numbers"),
    ],
)
def test_tables_that_hold_no_labels_are_refused(change, message, tmp_path):
    write_labels(town(), tmp_path)
    for name in TABLES.values():
        changed(tmp_path / name, change)
    with pytest.raises(InputError, match=message):
        read_labels(tmp_path)


@pytest.mark.parametrize(
    "facts",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        {"unit": 0},
        {"unit": "1"},
        {"unit": 0.3},
        {"vertices": -1},
        {"metric": "a"},
    ],
    ids=str,
)
def test_metadata_that_say_nothing_of_labels_are_refused(facts, tmp_path):
    write_labels(town(), tmp_path)
    for name in TABLES.values():
        table = pq.read_table(tmp_path / name)
        said = facts
        if isinstance(facts, dict):
            said = json.dumps(json.loads(table.schema.metadata[FACTS]) | facts).encode()
        pq.write_table(table.replace_schema_metadata({FACTS: said}), tmp_path / name)
    with pytest.raises(InputError, match="it is no table of labels"):
        read_labels(tmp_path)


def test_an_id_has_no_label_where_no_vertex_has_one():
    with pytest.raises(InputError, match="row 0 has '7', which has no label"):
        numbers_of_ids("pairs", pa.array([7]), np.empty(0, np.int64))


def test_tables_of_other_graphs_are_refused(tmp_path):
    write_labels(town(), tmp_path / "a")
    write_labels(build(GRID, weights_for(GRID, 1)), tmp_path / "b")
    with pytest.raises(InputError, match="those of another graph, or of other weights"):
        labels_of_tables(town(directed=False), tmp_path / "a")
    (tmp_path / "b" / "labels_in.parquet").replace(tmp_path / "a" / "labels_in.parquet")
    with pytest.raises(InputError, match="its two tables are of different labels"):
        read_labels(tmp_path / "a")


@pytest.mark.parametrize("below", ["file", "file/folder"])
def test_a_folder_that_cannot_be_made_is_named(below, tmp_path):
    (tmp_path / "file").write_text("")
    graph = graph_from_edges([0], [1], [2])
    with pytest.raises(OutputError, match=r"file.*tables of labels cannot be written"):
        write_labels(graph, tmp_path / below)


def test_a_folder_without_tables_is_named(tmp_path):
    with pytest.raises(InputError, match="no such file; write_labels makes it"):
        read_labels(tmp_path)
