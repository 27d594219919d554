"""Loads in a job: the sums of the parts are those of the library, for any batches; faults in each file are found."""

import hashlib
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import bfs_many, read_graph, sssp_many, sssp_pairs
from pipelines import run_job, verify
from pipelines.output.load_tables import CELLS, LOAD_FACTS, LOADS

N = 50


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("flows"), np.random.default_rng(3)
    src, dst = rng.integers(0, N, (2, 90))
    names = np.array([f"v{i:02d}" for i in range(N)])
    edges = pd.DataFrame({"src": names[src], "dst": names[dst], "weight": rng.integers(0, 5, 90)})
    ids = np.unique(edges[["src", "dst"]])
    trips = pd.DataFrame({"origin": rng.choice(ids, 80), "destination": rng.choice(ids, 80), "riders": rng.random(80)})
    edges.to_parquet(folder / "edges.parquet", index=False)
    trips.to_csv(folder / "trips.csv", index=False)
    return folder, trips


def flows(files, output, **options):
    given = {"algorithm": "sssp", "pairs": str(files[0] / "trips.csv"), "columns": {"volume": "riders"}, "device": "cpu"}
    given |= {"result": "flows", "report": False}
    return run_job(str(files[0] / "edges.parquet"), output=str(output), **(given | options))


def test_flows_of_a_job_are_those_of_the_library_for_any_batches_and_a_resumed_run(files, tmp_path):
    folder, trips = files
    graph = read_graph(folder / "edges.parquet", device="cpu", edge_ids=True)
    right = sssp_pairs(graph, trips["origin"], trips["destination"], result="flows", volumes=trips["riders"])
    digests = set()
    for size in (1, 7, 64):
        output = tmp_path / str(size)
        digests.add(flows(files, output, batch_size=size).digest)
        found = pq.read_table(output / LOADS)
        pd.testing.assert_frame_equal(found.to_pandas(), right, check_exact=True)
        assert json.loads(found.schema.metadata[LOAD_FACTS["lost"]]) == right.attrs["kepler_traverse.lost"]
    assert len(digests) == 1
    (tmp_path / "7" / "part-000001.parquet").unlink()
    before = (tmp_path / "7" / LOADS).read_bytes()
    assert flows(files, tmp_path / "7", batch_size=7, resume=True).digest in digests
    assert (tmp_path / "7" / LOADS).read_bytes() == before


def test_pairs_without_a_path_are_in_the_manifest_the_report_and_on_the_terminal(files, tmp_path, capsys):
    folder, trips = files
    graph = read_graph(folder / "edges.parquet", device="cpu", edge_ids=True)
    given = trips["origin"], trips["destination"]
    lost = sssp_pairs(graph, *given, result="flows", volumes=trips["riders"]).attrs["kepler_traverse.lost"]
    assert lost["pairs"] > 0
    flows(files, tmp_path / "out", report=True)
    assert f"{lost['pairs']} pairs have no path, and their volume of {lost['volume']:,} is" in "".join(capsys.readouterr())
    page = (tmp_path / "out" / "_report.html").read_text()
    assert f"{lost['volume']:,}" in page
    assert "pairs without a path" in page
    path = tmp_path / "out" / "_manifest.json"
    manifest = json.loads(path.read_text())
    entry = next(each for each in manifest["tables"] if each["file"] == LOADS)
    assert entry["lost"] == lost
    rows = pd.read_parquet(tmp_path / "out" / LOADS).sort_values("volume", ascending=False, kind="stable")[:10]
    assert entry["busiest"] == rows.to_dict("records")
    assert all(f"{row['volume']:,}" in page for row in entry["busiest"])
    edges = [str(folder / "edges.parquet")]
    assert not verify.prove_output(tmp_path / "out", edges, "cpu").faults
    entry["lost"]["pairs"] += 1
    path.write_text(json.dumps(manifest))
    (tmp_path / "out" / "_SUCCESS").write_text(hashlib.sha256(path.read_bytes()).hexdigest())
    faults = verify.prove_output(tmp_path / "out", edges, "cpu").faults
    assert LOADS in {fault.file for fault in faults}, faults


def test_flows_of_sources_and_weighted_targets(files, tmp_path):
    folder, trips = files
    targets = trips["destination"].drop_duplicates()[:6]
    table = pd.DataFrame({"target": targets, "jobs": np.arange(6)})
    table.to_csv(tmp_path / "targets.csv", index=False)
    options = {"pairs": None, "all_sources": True, "targets": tmp_path / "targets.csv", "of": "vertices"}
    flows(files, tmp_path / "out", **options, algorithm="bfs", columns={"target_weight": "jobs", "target": "target"})
    graph = read_graph(folder / "edges.parquet", device="cpu", weighted=False)
    right = bfs_many(graph, "all", targets=targets, target_weights=table["jobs"], of="vertices", result="flows")
    pd.testing.assert_frame_equal(pq.read_table(tmp_path / "out" / LOADS).to_pandas(), right)


@pytest.mark.parametrize(("of", "normalized"), [("vertices", True), ("edges", False)])
def test_betweenness_of_a_job_is_that_of_the_library_for_any_batches(of, normalized, files, tmp_path):
    edges = pd.read_parquet(files[0] / "edges.parquet")
    edges["weight"] += 1
    edges.to_parquet(tmp_path / "edges.parquet", index=False)
    graph = read_graph(tmp_path / "edges.parquet", device="cpu", edge_ids=True, directed=False)
    right = sssp_many(graph, "all", result="betweenness", of=of, normalized=normalized)
    right = right[right["betweenness"] > 0].reset_index(drop=True)
    options = {"algorithm": "sssp", "result": "betweenness", "all_sources": True, "directed": False, "device": "cpu"}
    options |= {"of": of, "normalized": normalized, "report": False}
    digests = set()
    for size in (7, 64):
        done = run_job(str(tmp_path / "edges.parquet"), output=str(tmp_path / str(size)), batch_size=size, **options)
        digests.add(done.digest)
        pd.testing.assert_frame_equal(pq.read_table(tmp_path / str(size) / LOADS).to_pandas(), right, check_exact=True)
    assert len(digests) == 1
    assert not verify.prove_output(tmp_path / "7", [str(tmp_path / "edges.parquet")], "cpu").faults


def one_more(table, name):
    """The table, in which the first value of a column is one more."""
    values = table[name].to_pylist()
    return table.set_column(table.column_names.index(name), name, pa.array([values[0] + 1, *values[1:]], table[name].type))


@pytest.mark.parametrize(("file", "column"), [(LOADS, "volume"), (CELLS, "edge"), ("part-000000.parquet", "high")])
def test_verify_finds_what_was_changed(file, column, files, tmp_path):
    flows(files, tmp_path / "out", batch_size=20)
    edges = [str(files[0] / "edges.parquet")]
    assert not verify.prove_output(tmp_path / "out", edges, "cpu").faults
    path = tmp_path / "out" / file
    table = pq.read_table(path)
    pq.write_table(one_more(table, column).replace_schema_metadata(table.schema.metadata), path)
    assert file in {fault.file for fault in verify.prove_output(tmp_path / "out", edges, "cpu").faults}


@pytest.mark.parametrize("of", ["edges", "vertices"])
def test_loads_without_a_row_are_verified(of, tmp_path):
    pd.DataFrame({"src": [1], "dst": [1]}).to_csv(tmp_path / "edges.csv", index=False)
    given = {"all_sources": True, "result": "betweenness", "of": of, "device": "cpu", "report": False}
    run_job(str(tmp_path / "edges.csv"), output=str(tmp_path / "out"), **given)
    assert len(pq.ParquetFile(tmp_path / "out" / LOADS).read()) == 0
    assert verify.main([str(tmp_path / "out"), str(tmp_path / "edges.csv"), "--device", "cpu"]) == 0
