"""The main job end to end: results compared with plain Python, one digest for any batches, resuming, complete files only."""

import json
import pickle
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, plan_sssp
from kepler_traverse.graph.build import graph_from_numbers
from kepler_traverse.search.results import checksum
from pipelines.batch_sources import main
from pipelines.output.layout import Layout
from pipelines.output.part_file import Answer, checked_part, write_part
from pipelines.output.store import Store
from tests.support import oracle
from tests.support.jobs import call, manifest_of, parts_of, refused, summary_of, write_edges
from tests.support.plans import table_of

N_SOURCES = 15


# Rows (src, dst, weight) with gaps between ids, negative ids, parallel edges, self-loops and several components.
RNG = np.random.default_rng(11)
ENDS = RNG.integers(-40, 100, (450, 2)) * 7
ROWS = [(int(u), int(v), int(w)) for (u, v), w in zip(ENDS, RNG.integers(0, 9, 450), strict=True)]


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    return write_edges(tmp_path_factory.mktemp("edges") / "edges.parquet", *zip(*ROWS, strict=True))


@pytest.fixture(scope="module")
def options(edges):
    return [
        edges,
        "--random-sources",
        N_SOURCES,
        "--seed",
        3,
        "--device",
        "cpu",
        "--no-report",
        "--json",
    ]


@pytest.fixture(scope="module")
def undisturbed(options, tmp_path_factory):
    """A finished run in batches of four sources by one worker; tests copy it before they touch it."""
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    assert (
        main(
            [
                str(word)
                for word in [*options, "--output", folder, "--workers", 1, "--batch-size", 4]
            ]
        )
        == 0
    )
    return folder


def rows_of(folder, *columns):
    return [tuple(row.values()) for row in pq.read_table(folder, columns=list(columns)).to_pylist()]


def test_hops_are_those_of_plain_python(undisturbed):
    neighbors = oracle.edges_of(ROWS)
    sources = [source for part in manifest_of(undisturbed)["parts"] for source in part["sources"]]
    assert len(set(sources)) == N_SOURCES
    expected = [(s, v, d) for s in sources for v, d in sorted(oracle.bfs(neighbors, s).items())]
    assert rows_of(undisturbed, "source", "vertex", "distance") == expected


def test_a_finished_folder_holds_parts_manifest_and_mark_and_nothing_else(undisturbed):
    names = sorted(path.name for path in undisturbed.iterdir())
    assert names == ["_SUCCESS", "_manifest.json", *(f"part-{i:06d}.parquet" for i in range(4))]
    manifest = manifest_of(undisturbed)
    assert manifest["status"] == "done"
    assert manifest["settings"]["batch_size"] == 4
    for part in manifest["parts"]:
        assert part["rows"] == pq.read_metadata(undisturbed / part["file"]).num_rows
    assert pq.read_schema(undisturbed / "part-000000.parquet").names == [
        "source",
        "vertex",
        "distance",
    ]


def test_weighted_distances_between_strings_are_those_of_plain_python(tmp_path, capsys):
    names = [(f"v{u}", f"é{v}" if v % 2 else f"v{v}", w) for u, v, w in ROWS]
    columns = dict(zip(("from", "to", "cost"), zip(*names, strict=True), strict=True))
    pa.csv.write_csv(pa.table(columns), tmp_path / "edges.csv")
    sources = [names[0][0], names[8][1], names[0][0]]
    words = "--algorithm sssp --undirected --result predecessors --columns weight=cost --device cpu --workers 1 --json --sources"  # noqa: E501
    argv = [tmp_path / "edges.csv", *words.split(), ",".join(sources), "--output", tmp_path / "out"]
    summary = summary_of(capsys, *argv)
    assert (summary["sources"], summary["duplicate_sources"]) == (2, 1)
    neighbors = oracle.edges_of(names, directed=False)
    rows = rows_of(tmp_path / "out", "source", "vertex", "distance", "predecessor")
    for source in dict.fromkeys(sources):
        expected = oracle.dijkstra(neighbors, source)
        assert {v: d for s, v, d, _ in rows if s == source} == expected
        for v, p in ((v, p) for s, v, _, p in rows if s == source and v != source):
            assert expected[v] == expected[p] + neighbors[p][v]


@pytest.mark.parametrize("batch_size", [1, N_SOURCES])
def test_the_digest_does_not_depend_on_batches(options, undisturbed, tmp_path, capsys, batch_size):
    summary = summary_of(
        capsys, *options, "--output", tmp_path / "out", "--workers", 1, "--batch-size", batch_size
    )
    assert summary["batches"] == -(-N_SOURCES // batch_size)
    assert summary["digest"] == manifest_of(undisturbed)["digest"]


def test_the_same_run_writes_the_same_bytes_with_more_workers_and_another_strategy(
    options, undisturbed, tmp_path, capsys
):
    more = ["--workers", 2, "--batch-size", 4, "--strategy", "queue"]
    assert call(capsys, *options, "--output", tmp_path / "out", *more)[0] == 0
    assert parts_of(tmp_path / "out") == parts_of(undisturbed)


def damage(folder):
    """Turn a finished run into an interrupted one, with every kind of damage to a part file."""
    manifest = manifest_of(folder)
    (folder / "part-000000.parquet").unlink()
    truncated = folder / "part-000001.parquet"
    truncated.write_bytes(truncated.read_bytes()[:-20])
    changed = folder / "part-000002.parquet"
    middle = bytearray(changed.read_bytes())
    middle[len(middle) // 2] ^= 1
    changed.write_bytes(bytes(middle))
    # The manifest of a killed run is older than its files: here it lists only one part file.
    manifest |= {"status": "running", "parts": manifest["parts"][2:3], "digest": None}
    (folder / "_manifest.json").write_text(json.dumps(manifest))
    (folder / "_SUCCESS").unlink()
    (folder / ".part-000000.1234.tmp").write_bytes(b"half a file")


def test_resuming_computes_only_what_is_missing_or_damaged(options, undisturbed, tmp_path, capsys):
    folder = shutil.copytree(undisturbed, tmp_path / "out")
    damage(folder)
    # Without --batch-size: the parts keep the sizes that they have.
    summary = summary_of(capsys, *options, "--output", folder, "--workers", 1, "--resume")
    assert (summary["computed"], summary["kept"]) == (3, 1)
    assert summary["digest"] == manifest_of(undisturbed)["digest"]
    assert parts_of(folder) == parts_of(undisturbed)
    assert not list(folder.glob(".*"))


def test_resuming_a_finished_run_changes_nothing(options, undisturbed, tmp_path, capsys):
    folder = shutil.copytree(undisturbed, tmp_path / "out")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    summary = summary_of(capsys, *options, "--output", folder, "--resume")
    assert (summary["computed"], summary["kept"]) == (0, 4)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (["--result", "predecessors"], 'result was "distances" and is "predecessors"'),
        (["--max-depth", 3], "limit was null and is 3"),
        (["--batch-size", 5], "batch_size was 4 and is 5"),
        (["--certify", "none"], 'certify was "all" and is "none"'),
        (["--undirected"], "graph was"),
    ],
)
def test_resuming_with_other_settings_is_refused(options, undisturbed, capsys, change, named):
    before = {path.name: path.read_bytes() for path in undisturbed.iterdir()}
    assert named in refused(capsys, *options, "--output", undisturbed, "--resume", *change)
    assert {path.name: path.read_bytes() for path in undisturbed.iterdir()} == before


def test_limit_and_targets_cut_the_rows(edges, tmp_path, capsys):
    source, targets = ROWS[0][0], sorted({v for _, v, _ in ROWS})[::5]
    (tmp_path / "targets.txt").write_text("# only these\n" + "\n".join(map(str, targets)))
    digests = set()
    for strategy in ("switch", "queue"):
        words = f"--sources {source} --max-depth 2 --device cpu --workers 1 --strategy {strategy} --json --targets"
        argv = [edges, *words.split(), tmp_path / "targets.txt", "--output", tmp_path / strategy]
        digests.add(summary_of(capsys, *argv)["digest"])
    expected = {
        v: d
        for v, d in oracle.bfs(oracle.edges_of(ROWS), source).items()
        if v in targets and d <= 2
    }
    assert dict(rows_of(tmp_path / "queue", "vertex", "distance")) == expected
    assert len(digests) == 1


def test_a_batch_that_fails_leaves_the_others_and_exit_code_three(tmp_path, capsys):
    rows = {"src": [0, 1, 2], "dst": [1, 2, 3], "weight": np.array([3e38, 3e38, 1.0], np.float32)}
    pq.write_table(pa.table(rows), tmp_path / "edges.parquet")
    words = (
        "--algorithm sssp --sources 0,1,2,3 --device cpu --workers 1 --batch-size 1 --json --output"
    )
    argv = [tmp_path / "edges.parquet", *words.split(), tmp_path / "out"]
    code, out, err = call(capsys, *argv)
    summary = json.loads(out)
    assert code == 3
    assert [failed["sources"] for failed in summary["failed"]] == [[0]]
    assert "batch 0 failed: PrecisionError: source 0: " in err
    assert (summary["status"], summary["kept"], summary["computed"]) == ("failed", 0, 3)
    assert not (tmp_path / "out" / "_SUCCESS").exists()
    code, out, _ = call(capsys, *argv, "--resume")
    summary = json.loads(out)
    assert (code, summary["kept"], summary["computed"], len(summary["failed"])) == (3, 3, 0, 1)


def test_a_negative_cycle_ends_the_job_with_exit_code_four_and_is_named(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("src,dst,weight\n10,20,1\n20,30,-5\n30,10,2\n40,10,1\n")
    words = "--algorithm sssp --sources 40 --device cpu --output"
    code, out, err = call(capsys, tmp_path / "edges.csv", *words.split(), tmp_path / "out")
    assert (code, out) == (4, "")
    error = err.splitlines()[-1]
    assert error.startswith("error: negative cycle of 3 vertices and weight -2")
    assert any(cycle in error for cycle in ("10 -> 20 -> 30", "20 -> 30 -> 10", "30 -> 10 -> 20"))


def test_the_plan_is_shown_without_touching_the_disk(options, tmp_path, capsys):
    plan = summary_of(capsys, *options, "--output", tmp_path / "out", "--plan", "--workers", 2)
    assert f"; {plan['strategy']}, " in plan["why"]
    assert f"sources: {plan['strategy']} " in plan["why"], "the first of those estimated is taken"
    assert plan["sources"] == N_SOURCES
    assert plan["batch_size"] * plan["n_batches"] >= N_SOURCES
    assert (
        sum(size for name, size in plan["memory"].items() if name != "total")
        == plan["memory"]["total"]
    )
    assert not (tmp_path / "out").exists()
    code, text, _ = call(capsys, *options[:-1], "--plan")
    assert code == 0
    assert f"{plan['strategy']} for bfs on cpu" in text


def test_the_summary_for_people_names_the_folder(undisturbed, options, capsys):
    code, text, _ = call(capsys, *options[:-1], "--output", undisturbed, "--resume")
    assert code == 0
    assert f"results: {undisturbed} (4 parts" in text
    assert "computed before" in text
    assert "strategy: " not in text
    _, text, err = call(capsys, *options[:-1], "--output", undisturbed, "--resume", "-v")
    assert re.search("^strategy: .* was chosen by estimates", text, re.M)
    assert "bfs from 15 sources: <Graph: " in err


@pytest.mark.parametrize("rows_per_group", [1, 4, 10, 1000])
@pytest.mark.parametrize("ids", ["integers", "strings"])
def test_a_part_without_a_manifest_is_checked_by_its_rows(
    tmp_path, monkeypatch, rows_per_group, ids
):
    monkeypatch.setattr("pipelines.output.row_groups.GROUP_BYTES", 40 * rows_per_group)
    if ids == "integers":
        graph = graph_from_edges(np.array([5, 7, 9]), np.array([7, 9, 11]), np.array([1, 2, 3]))
        sources = [7, 11, 5]
    else:
        ends = np.arange(3, dtype=np.int32), np.arange(1, 4, dtype=np.int32)
        graph = graph_from_numbers(*ends, np.array([1, 2, 3]), ids=pa.array(["a", "b", "c", "d"]))
        sources = ["b", "d", "a"]
    plan = plan_sssp(graph, predecessors=False)
    runs = [plan(source).copy() for source in sources]
    answers = [
        Answer.of_one(s, table_of(graph, run, plan.query), checksum(run, graph.returns_integers))
        for s, run in zip(sources, runs, strict=True)
    ]
    written = write_part(Store(tmp_path), 0, Layout(run="run"), answers)
    assert pq.read_table(tmp_path / "part-000000.parquet").num_rows == written["rows"] == 3 + 1 + 4

    def check(run="run", sources=sources):
        return checked_part(tmp_path, 0, Layout(run=run), sources, graph, None)

    assert check() == written
    assert check(run="another") is None
    assert check(sources=sources[::-1]) is None
    # A complete file with rows other than those computed.
    rows = [row for answer in answers for row in answer.by_source()]
    wrong = [
        Answer.of_one(s, table if s != sources[0] else table.slice(1), total)
        for s, table, total in rows
    ]
    write_part(Store(tmp_path), 0, Layout(run="run"), wrong)
    assert check() is None


def test_outcome_of_a_batch_is_below_a_kilobyte(tmp_path):
    table = pa.table({"source": [1, 1], "vertex": [1, 2], "distance": pa.array([0, 1], pa.int32())})
    summary = write_part(
        Store(tmp_path),
        7,
        Layout(run="f" * 64),
        [Answer.of_one(i, table, 2**64 - 1) for i in range(500)],
    )
    assert len(pickle.dumps(summary)) < 1024
    assert (summary["file"], summary["rows"]) == ("part-000007.parquet", 1000)
