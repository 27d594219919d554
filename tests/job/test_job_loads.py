"""Loads in a job: the sums of the parts are those of the library, for any batches; faults in each file are found."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import InputError, bfs_many, read_graph, sssp_many, sssp_pairs
from kepler_traverse.kinds import betweenness
from pipelines import batch_sources, run_job, verify
from pipelines.output.load_tables import CELLS, LOAD_FACTS, LOADS
from pipelines.run import prepare
from tests.support.jobs import call, manifest_of, refused, seal, summary_of

N = 50


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flows")
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, N, (2, 90))
    names = np.array([f"v{i:02d}" for i in range(N)])
    edges = pd.DataFrame({"src": names[src], "dst": names[dst], "weight": rng.integers(0, 5, 90)})
    ids = np.unique(edges[["src", "dst"]])
    trips = pd.DataFrame(
        {
            "origin": rng.choice(ids, 80),
            "destination": rng.choice(ids, 80),
            "riders": rng.random(80),
        }
    )
    edges.to_parquet(folder / "edges.parquet", index=False)
    trips.to_csv(folder / "trips.csv", index=False)
    return folder, trips


def flows(files, output, **options):
    given = {
        "algorithm": "sssp",
        "pairs": str(files[0] / "trips.csv"),
        "columns": {"volume": "riders"},
        "device": "cpu",
    }
    given |= {"result": "flows", "report": False}
    return run_job(str(files[0] / "edges.parquet"), output=str(output), **(given | options))


def test_flows_of_a_job_are_those_of_the_library_for_any_batches_and_a_resumed_run(files, tmp_path):
    folder, trips = files
    graph = read_graph(folder / "edges.parquet", device="cpu", edge_ids=True)
    right = sssp_pairs(
        graph, trips["origin"], trips["destination"], result="flows", volumes=trips["riders"]
    )
    digests = set()
    for size in (1, 7, 64):
        output = tmp_path / str(size)
        digests.add(flows(files, output, batch_size=size).digest)
        found = pq.read_table(output / LOADS)
        pd.testing.assert_frame_equal(found.to_pandas(), right, check_exact=True)
        assert (
            json.loads(found.schema.metadata[LOAD_FACTS["lost"]])
            == right.attrs["kepler_traverse.lost"]
        )
    assert len(digests) == 1
    (tmp_path / "7" / "part-000001.parquet").unlink()
    before = (tmp_path / "7" / LOADS).read_bytes()
    assert flows(files, tmp_path / "7", batch_size=7, resume=True).digest in digests
    assert (tmp_path / "7" / LOADS).read_bytes() == before


@pytest.mark.parametrize("of", ["edges", "pairs"])
def test_a_job_selects_the_flows_through_edges_and_lists_their_pairs_for_any_batches(
    of, files, tmp_path
):
    folder, trips = files
    graph = read_graph(folder / "edges.parquet", device="cpu", edge_ids=True)
    every = sssp_pairs(
        graph, trips["origin"], trips["destination"], result="flows", volumes=trips["riders"]
    )
    bridges = every.nlargest(4, "volume")
    options = {"result": "flows", "volumes": trips["riders"], "of": of}
    right = sssp_pairs(
        graph, trips["origin"], trips["destination"], **options, through=bridges["edge"]
    )
    assert 3 < len(right) < len(every)
    bridges.to_csv(tmp_path / "ends.csv", index=False)
    bridges[["edge"]].to_parquet(tmp_path / "rows.parquet")
    digests = set()
    questions = set()
    edges = [str(folder / "edges.parquet")]
    for size, workers, file in ((7, 1 + (of == "pairs"), "ends.csv"), (64, 1, "rows.parquet")):
        output = tmp_path / str(size)
        digests.add(
            flows(
                files, output, batch_size=size, workers=workers, of=of, through=str(tmp_path / file)
            ).digest
        )
        found = pq.read_table(output / LOADS)
        pd.testing.assert_frame_equal(found.to_pandas(), right, check_exact=True)
        assert (
            json.loads(found.schema.metadata[LOAD_FACTS["lost"]])
            == right.attrs["kepler_traverse.lost"]
        )
        questions.add(manifest_of(output)["identity"]["reduction"])
        assert not verify.prove_output(output, edges, "cpu").faults
    assert len(digests) == len(questions) == 1
    (tmp_path / "ends.csv").unlink()
    with pytest.raises(
        InputError,
        match=r"ends\.csv: .* No such file or directory; give that of the run by --through",
    ):
        verify.prove_output(tmp_path / "7", edges, "cpu")
    bridges[:3].to_csv(tmp_path / "moved.csv", index=False)
    with pytest.raises(InputError, match=r"the edges of --through, or .* are not those of the run"):
        verify.prove_output(tmp_path / "7", edges, "cpu", through=str(tmp_path / "moved.csv"))
    bridges.to_csv(tmp_path / "moved.csv", index=False)
    moved = {"through": str(tmp_path / "moved.csv")}
    assert not verify.prove_output(tmp_path / "7", edges, "cpu", **moved).faults
    path = tmp_path / "7" / "part-000001.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)
    assert path.name in {
        fault.file for fault in verify.prove_output(tmp_path / "7", edges, "cpu", **moved).faults
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("src,dst\n", "the table of edges has no row"),
        ("src,dst\nv00,v00\nv00,none\n", "column dst, row 1: .* not in the graph: 'none'"),
        ("src,dst\nv00,v00\nv00,v00\nv01,v00\n", "row 2: there is no edge from 'v01' to 'v00'"),
        (
            "edge\n89\n90\n",
            "column 'edge', row 1: the edge list has no row 90; its rows are 0 to 89",
        ),
        (
            "edge\nx\n",
            "column 'edge', row 0: 'x' is kept as text; rows of the edge list are numbers",
        ),
        (
            "a,b\n1,2\n",
            "it is not sure which columns hold the edges; the table has columns 'a', 'b'; call them src and dst",
        ),
    ],
)
def test_a_table_of_edges_with_a_fault_is_refused_with_its_file_and_row(
    text, message, files, tmp_path
):
    (tmp_path / "through.csv").write_text(text)
    with pytest.raises(InputError, match=rf"through\.csv[:,] {message}"):
        flows(files, tmp_path / "out", through=str(tmp_path / "through.csv"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"of": "pairs", "pairs": None, "all_sources": True}, "of='pairs' lists the rows of a table of pairs; give pairs"),
        ({"of": "pairs", "pairs": None, "all_sources": True, "result": "betweenness"},
         "of='pairs' is for result='flows', not"),
        ({"of": "pairs", "geometry": "shapes"}, "geometry shapes draws edges or vertices, and of pairs lists pairs"),
    ],
)  # fmt: skip
def test_a_list_of_pairs_is_refused_where_there_is_none(options, message, files, tmp_path):
    ids = np.unique(pd.read_parquet(files[0] / "edges.parquet")[["src", "dst"]])
    pd.DataFrame({"vertex": ids, "x": 0.0, "y": 0.0}).to_csv(tmp_path / "places.csv", index=False)
    options |= {"vertices": str(tmp_path / "places.csv")} if "geometry" in options else {}
    with pytest.raises(InputError, match=message):
        flows(
            files,
            tmp_path / "out",
            **{"columns": None} | options if "pairs" in options else options,
        )


def test_pairs_without_a_path_are_in_the_manifest_the_report_and_on_the_terminal(
    files, tmp_path, capsys
):
    folder, trips = files
    graph = read_graph(folder / "edges.parquet", device="cpu", edge_ids=True)
    given = trips["origin"], trips["destination"]
    lost = sssp_pairs(graph, *given, result="flows", volumes=trips["riders"]).attrs[
        "kepler_traverse.lost"
    ]
    assert lost["pairs"] > 0
    flows(files, tmp_path / "out", report=True)
    assert f"{lost['pairs']} pairs without a path: a volume of {lost['volume']:,} is" in "".join(
        capsys.readouterr()
    )
    page = (tmp_path / "out" / "_report.html").read_text()
    assert f"{lost['volume']:,}" in page
    assert "pairs without a path" in page
    assert f"{LOADS} has what each edge" in page
    assert "2^64" not in page
    manifest = manifest_of(tmp_path / "out")
    entry = next(each for each in manifest["tables"] if each["file"] == LOADS)
    assert entry["lost"] == lost
    rows = pd.read_parquet(tmp_path / "out" / LOADS).sort_values(
        "volume", ascending=False, kind="stable"
    )[:10]
    assert entry["busiest"] == rows.to_dict("records")
    assert all(f"{row['volume']:,}" in page for row in entry["busiest"])
    edges = [str(folder / "edges.parquet")]
    assert not verify.prove_output(tmp_path / "out", edges, "cpu").faults
    entry["lost"]["pairs"] += 1
    seal(tmp_path / "out", manifest)
    faults = verify.prove_output(tmp_path / "out", edges, "cpu").faults
    assert LOADS in {fault.file for fault in faults}, faults


def test_flows_of_sources_and_weighted_targets(files, tmp_path):
    folder, trips = files
    targets = trips["destination"].drop_duplicates()[:6]
    table = pd.DataFrame({"target": targets, "jobs": np.arange(6)})
    table.to_csv(tmp_path / "targets.csv", index=False)
    options = {
        "pairs": None,
        "all_sources": True,
        "targets": tmp_path / "targets.csv",
        "of": "vertices",
    }
    flows(
        files,
        tmp_path / "out",
        **options,
        algorithm="bfs",
        columns={"target_weight": "jobs", "target": "target"},
    )
    graph = read_graph(folder / "edges.parquet", device="cpu", weighted=False)
    right = bfs_many(
        graph, "all", targets=targets, target_weights=table["jobs"], of="vertices", result="flows"
    )
    pd.testing.assert_frame_equal(pq.read_table(tmp_path / "out" / LOADS).to_pandas(), right)


def test_columns_of_volumes_and_weights_are_found_by_their_names(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n")
    (tmp_path / "trips.csv").write_text("origin,destination,volume\n1,3,5\n2,3,7\n")
    (tmp_path / "s.csv").write_text("source,source_weight\n1,5\n2,7\n")
    (tmp_path / "t.csv").write_text("target,weight\n3,10\n")
    for given, loads in (
        ("--pairs trips.csv", [5, 12]),
        ("--sources s.csv --targets t.csv", [50, 120]),
    ):
        words = [
            str(tmp_path / word) if word.endswith(".csv") else word
            for word in ["edges.csv", *given.split()]
        ]
        output = tmp_path / str(loads[0])
        code, out, _ = call(
            capsys,
            *words,
            "--result",
            "flows",
            "--device",
            "cpu",
            "--no-report",
            "--output",
            output,
        )
        assert (code, pq.read_table(output / LOADS)["volume"].to_pylist()) == (0, loads)
        assert f"flows: {LOADS} has what each edge, vertex or pair carries" in out


@pytest.mark.parametrize(
    ("words", "table", "said"),
    [
        (
            "flows --pairs",
            "origin,destination,volume\n1,3,9223372036854775807\n1,2,1\n",
            "sum of all volumes exceeds int64",
        ),
        (
            "flows --pairs",
            "origin,destination,volume\n1,3,1e308\n1,2,1e308\n",
            "sum of all volumes exceeds float64",
        ),
        (
            "flows --pairs",
            "origin,destination,volume\n1,3,2026-01-01\n",
            "has type date32[day]; weights and",
        ),
        (
            "flows --pairs",
            "origin,destination,volume\n1,3,1\n1,3,007\n",
            "'volume', row 1: '007' is kept as text",
        ),
        (
            "flows --pairs",
            "origin,destination,volume\n1,3,1\n1,3,9223372036854775808\n",
            "row 1: '9223372036854775808' is",
        ),
        ("flows --all-sources --targets", "target,weight\n3,1\n3,2\n", "a target has several rows"),
        (
            "flows --decay slow --pairs",
            "origin,destination\n1,3\n",
            "--decay slow must be exponential:RATE",
        ),
        (
            "betweenness --of edges --endpoints --sources",
            "source\n1\n",
            "--endpoints is for vertices",
        ),
    ],
)
def test_wrong_volumes_weights_and_options_end_a_job_before_it_writes(
    words, table, said, tmp_path, capsys
):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n")
    (tmp_path / "given.csv").write_text(table)
    given = [
        *words.split(),
        tmp_path / "given.csv",
        "--device",
        "cpu",
        "--output",
        tmp_path / "out",
    ]
    assert said in refused(capsys, tmp_path / "edges.csv", "--result", *given)
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def streets(files, tmp_path_factory):
    """A file of edges with weights above 0, and a function that runs a job on it."""
    edges = pd.read_parquet(files[0] / "edges.parquet")
    edges["weight"] += 1
    path = str(tmp_path_factory.mktemp("streets") / "edges.parquet")
    edges.to_parquet(path, index=False)
    given = {
        "algorithm": "sssp",
        "result": "betweenness",
        "directed": False,
        "device": "cpu",
        "report": False,
    }
    return path, lambda output, **options: run_job(path, output=str(output), **given | options)


@pytest.mark.parametrize(
    "options",
    [
        {"of": "vertices", "normalized": True},
        {"of": "edges", "normalized": False},
        {"samples": 12},
        {"samples": 12, "seed": 3, "delta": 0.3, "normalized": False},
        {"epsilon": 0.4, "delta": 0.2, "seed": 7, "of": "edges"},
        {"samples": 30, "endpoints": True},
    ],
)
def test_betweenness_of_a_job_is_that_of_the_library_for_any_batches(options, streets, tmp_path):
    path, run = streets
    graph = read_graph(path, device="cpu", edge_ids=True, directed=False)
    right = sssp_many(graph, "all", result="betweenness", **options)
    estimate = right.attrs.get("kepler_traverse.estimate")
    assert (estimate is None) == (options.keys() <= {"of", "normalized"})
    right = right[right["betweenness"] > 0].reset_index(drop=True)
    digests = set()
    for size in (5, 64):
        done = run(tmp_path / str(size), batch_size=size, all_sources=True, **options)
        digests.add(done.digest)
        assert done.n_sources == (graph.n_vertices if estimate is None else estimate["sources"])
        assert [
            each.get("estimate") for each in done.manifest["tables"] if each["file"] == LOADS
        ] == [estimate]
        found = pq.read_table(tmp_path / str(size) / LOADS).to_pandas()
        pd.testing.assert_frame_equal(found, right, check_exact=True)
    (tmp_path / "5" / "part-000001.parquet").unlink()
    digests.add(run(tmp_path / "5", batch_size=5, all_sources=True, resume=True, **options).digest)
    assert len(digests) == 1
    assert not verify.prove_output(tmp_path / "5", [path], "cpu").faults


def test_a_larger_sample_keeps_the_parts_of_a_smaller_one(streets, tmp_path):
    path, run = streets
    out = tmp_path / "out"
    right = run(tmp_path / "right", samples=31, batch_size=4)
    for k, computed in ((14, 4), (31, 5)):  # the fourth part has two sources first, and then four
        done = run(out, samples=k, batch_size=4, resume=k > 14)
        assert (done.computed, done.n_sources) == (computed, k)
        assert not verify.prove_output(out, [path], "cpu").faults
    assert (done.digest, done.manifest["tables"]) == (right.digest, right.manifest["tables"])
    assert [part["sha256"] for part in done.manifest["parts"]] == [
        part["sha256"] for part in right.manifest["parts"]
    ]
    assert run(out, epsilon=0.15, batch_size=4, resume=True).n_sources > 31


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 13}, "this sample does not begin with that of the run"),
        ({"samples": 20, "seed": 2}, "seed was 1 and is 2"),
        ({"samples": 14, "of": "edges"}, r'reduction was "\w+\.\.\. and is "\w+\.\.\.$'),
        ({"all_sources": True}, "seed was 1 and is null"),
    ],
)
def test_another_sample_does_not_finish_a_run(options, message, streets, tmp_path):
    streets[1](tmp_path / "out", samples=14)
    with pytest.raises(InputError, match=message):
        streets[1](tmp_path / "out", **options, resume=True)


def test_a_sample_that_is_drawn_otherwise_does_not_extend_a_run(tmp_path):
    """Python draws up to 85 of 1,000 numbers in one way, and more of them in another."""
    pd.DataFrame({"src": range(999), "dst": range(1, 1000)}).to_parquet(tmp_path / "path.parquet")
    given = {
        "output": str(tmp_path / "out"),
        "result": "betweenness",
        "max_depth": 2,
        "device": "cpu",
        "report": False,
    }
    run_job(str(tmp_path / "path.parquet"), samples=80, **given)
    with pytest.raises(InputError, match="this sample does not begin with that of the run"):
        run_job(str(tmp_path / "path.parquet"), samples=90, resume=True, **given)


def test_a_sample_says_its_bound(streets, tmp_path, capsys):
    path, _ = streets
    out = tmp_path / "out"
    words = [
        path,
        "--undirected",
        "--result",
        "betweenness",
        "--samples",
        "20",
        "--device",
        "cpu",
        "--output",
        str(out),
    ]
    assert batch_sources.main([*words, "--plan"]) == 0
    said = "of 20 sources: with probability 0.9 no normalized value is off by more than 0."
    assert said in capsys.readouterr().out
    assert batch_sources.main(words) == 0
    assert f"estimate: {said}" in capsys.readouterr().out
    assert said in (out / "_report.html").read_text()


def test_a_bound_that_needs_all_sources_is_exact_and_said(streets, tmp_path, capsys):
    path, run = streets
    exact = run(tmp_path / "exact", all_sources=True)
    found = run(tmp_path / "found", epsilon=0.01)
    assert "epsilon=0.01 needs all" in capsys.readouterr().err
    assert (found.digest, found.n_sources) == (exact.digest, exact.n_sources)
    assert pq.read_table(tmp_path / "found" / LOADS).equals(
        pq.read_table(tmp_path / "exact" / LOADS)
    )
    assert not any("estimate" in table for table in found.manifest["tables"])
    assert not verify.prove_output(tmp_path / "found", [path], "cpu").faults


@pytest.mark.parametrize(
    "fault", ["no scale", "scale of all sources", "other sources", "other estimate"]
)
def test_verify_finds_a_fault_of_a_sample(fault, streets, tmp_path, monkeypatch):
    path, run = streets
    scaled = betweenness.scaled
    chosen = prepare.choose_sources

    def wrong(options, cells, *args, **graph):
        scales, facts = scaled(options, cells, *args, **graph)
        if fault == "no scale":
            scales = 1.0
        elif fault == "scale of all sources":
            scales = betweenness.find_scales(options, None, **graph, cells=cells)
        elif fault == "other estimate":
            facts["estimate"]["epsilon"] /= 2
        return scales, facts

    monkeypatch.setattr(betweenness, "scaled", wrong)
    if fault == "other sources":
        monkeypatch.setattr(
            prepare, "choose_sources", lambda *args: chosen(*args[:3], np.arange(12))
        )
    run(tmp_path / "out", samples=12)
    monkeypatch.undo()
    faults = verify.prove_output(tmp_path / "out", [path], "cpu").faults
    assert {each.file for each in faults} == {
        "_manifest.json" if fault == "other sources" else LOADS
    }, faults


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 99}, r"^samples must be from 2 to the number of vertices, \d+, not 99"),
        (
            {"samples": 9, "epsilon": 0.1},
            "^samples and epsilon both say how many sources are searched",
        ),
        ({"epsilon": 1.5}, "^epsilon must be a number between 0 and 1, not 1.5"),
        ({"delta": 0.5, "all_sources": True}, "^delta is the probability that epsilon fails"),
        (
            {"samples": 9, "sources": ["v01"]},
            "^samples chooses among all vertices; give sources='all', or leave samples out",
        ),
    ],
)
def test_a_wrong_sample_is_refused(options, message, streets, tmp_path):
    with pytest.raises(InputError, match=message):
        streets[1](tmp_path / "out", **options)


def one_more(table, name):
    """The table, in which the first value of a column is one more."""
    values = table[name].to_pylist()
    return table.set_column(
        table.column_names.index(name),
        name,
        pa.array([values[0] + 1, *values[1:]], table[name].type),
    )


@pytest.mark.parametrize(
    ("file", "column"), [(LOADS, "volume"), (CELLS, "edge"), ("part-000000.parquet", "high")]
)
def test_verify_finds_what_was_changed(file, column, files, tmp_path):
    flows(files, tmp_path / "out", batch_size=20)
    edges = [str(files[0] / "edges.parquet")]
    assert not verify.prove_output(tmp_path / "out", edges, "cpu").faults
    path = tmp_path / "out" / file
    table = pq.read_table(path)
    pq.write_table(one_more(table, column).replace_schema_metadata(table.schema.metadata), path)
    assert file in {
        fault.file for fault in verify.prove_output(tmp_path / "out", edges, "cpu").faults
    }


def test_verify_finds_another_graph_in_the_metadata_of_the_cells(streets, tmp_path):
    path, run = streets
    run(tmp_path / "out", all_sources=True)
    table = pq.read_table(tmp_path / "out" / CELLS)
    metadata = {
        key: value.replace(b"false", b"true") for key, value in table.schema.metadata.items()
    }
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "out" / CELLS)
    faults = {
        each.file: each.message
        for each in verify.prove_output(tmp_path / "out", [path], "cpu").faults
    }
    assert "it is not the given table" in faults[CELLS]


@pytest.mark.parametrize("of", ["edges", "vertices"])
def test_the_plan_counts_the_rows_of_each_part(of, streets, tmp_path, capsys):
    path, run = streets
    words = f"--undirected --result betweenness --of {of} --all-sources --device cpu --plan --json --batch-size 9"
    planned = summary_of(capsys, path, *words.split())["output_bytes"]
    run(tmp_path / "out", algorithm="bfs", of=of, all_sources=True, batch_size=9)
    written = sum(pq.read_table(part).nbytes for part in (tmp_path / "out").glob("part-*"))
    assert written <= planned <= 4 * written


@pytest.mark.parametrize("of", ["edges", "vertices"])
def test_loads_without_a_row_are_verified(of, tmp_path):
    pd.DataFrame({"src": [1], "dst": [1]}).to_csv(tmp_path / "edges.csv", index=False)
    given = {
        "all_sources": True,
        "result": "betweenness",
        "of": of,
        "device": "cpu",
        "report": False,
    }
    run_job(str(tmp_path / "edges.csv"), output=str(tmp_path / "out"), **given)
    assert len(pq.ParquetFile(tmp_path / "out" / LOADS).read()) == 0
    assert verify.main([str(tmp_path / "out"), str(tmp_path / "edges.csv"), "--device", "cpu"]) == 0
