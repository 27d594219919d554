"""``--result matrix``: the matrix of the library in Arrow files; it has the digest of the distances and is verified."""

import hashlib
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from kepler_traverse._arrays import to_host
from pipelines.output import matrix_file
from pipelines.output.matrix_file import (
    UNREACHED_KEY,
    VERTICES,
    MatrixWriter,
    make_list,
    to_array,
    unreached_in_file,
)
from pipelines.output.part_reader import open_part
from scripts.docs.run_examples import blocks_of
from tests.support import tiers
from tests.support.clusters import threads_of_this_process
from tests.support.jobs import (
    Runs,
    by_library,
    forget_parts,
    manifest_of,
    parts_of,
    proven,
    seal,
    summary_of,
    write_edges,
)

N_SOURCES = 9
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
CASES = {
    "hops": [],
    "hops, to a limit": ["--max-depth", 3],
    "integers": ["--algorithm", "sssp", "--columns", "weight=weight"],
    "integers, to a limit": ["--algorithm", "sssp", "--columns", "weight=weight", "--cutoff", 9],
    "negative integers": ["--algorithm", "sssp", "--columns", "weight=toll"],
    "floats": ["--algorithm", "sssp", "--columns", "weight=length"],
    "large integers": ["--algorithm", "sssp", "--columns", "weight=meters"],
}
TYPES = {"floats": np.float64, "negative integers": np.int64, "large integers": np.int32}


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    rng = np.random.default_rng(7)
    # no cycles but loops, so that tolls may be negative
    src, dst = np.sort(rng.integers(0, 45, (2, 100)), axis=0) * 7
    keep = src < dst
    src, dst = np.append(src[keep], 322), np.append(dst[keep], 322)
    weight = rng.integers(0, 9, src.size)
    more = {
        "toll": np.where(src == dst, 1, weight - 3),
        "length": weight / 7,
        "meters": weight * 30_000,
    }
    return write_edges(tmp_path_factory.mktemp("edges") / "edges.parquet", src, dst, weight, **more)


@pytest.fixture(scope="module")
def scheduler():
    with threads_of_this_process(n_workers=1) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def job(edges, scheduler, tmp_path_factory):
    """Runs a case once for each way, and returns its folder; ``command`` is the command line that it ran."""

    def command(folder, case, *more, result="matrix", batch_size=4, device="cpu"):
        words = [
            edges,
            "--random-sources",
            N_SOURCES,
            "--seed",
            3,
            "--device",
            device,
            "--no-report",
            "--json",
        ]
        words += [
            *CASES[case],
            "--result",
            result,
            "--batch-size",
            batch_size,
            "--output",
            folder,
            *more,
        ]
        words += ["--scheduler-address", scheduler] if device == "cpu" and batch_size == 99 else []
        return [str(word) for word in words]

    return Runs(tmp_path_factory.mktemp("runs"), command)


def written(folder):
    """The sources and the matrix."""
    tables = [
        pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        for path in sorted(folder.glob("part-*.arrow"))
    ]
    table = pa.concat_tables(tables)
    return table["source"].to_pylist(), to_array(table["distance"]), table.schema.metadata


def answer(edges, case, sources):
    """The library's matrix, made of its frame of distances."""
    graph, frame = by_library(edges, CASES[case], sources)
    expected = np.full((len(sources), graph.n_vertices), np.inf)
    rows = {source: i for i, source in enumerate(sources)}
    expected[frame["source"].map(rows), graph.to_numbers(frame["vertex"])] = frame["distance"]
    return graph, expected


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES)
def test_the_lists_are_the_librarys_distances_and_are_proven_right_again(
    case, device, edges, job, capsys
):
    folder = job(case, device=device)
    sources, matrix, metadata = written(folder)
    graph, expected = answer(edges, case, sources)
    assert sources == [
        source for part in manifest_of(folder)["parts"] for source in part["sources"]
    ]
    assert matrix.dtype == TYPES.get(case, np.int16)
    stated = metadata[UNREACHED_KEY].decode()
    reached = matrix != (np.inf if stated == "inf" else int(stated))
    assert not reached.all()
    assert np.array_equal(np.where(reached, matrix, np.inf), expected)
    assert pq.read_table(folder / VERTICES)["vertex"].to_pylist() == to_host(graph.ids).tolist()
    # files that begin with "_" are passed over
    dataset = pyarrow.dataset.dataset(str(folder), format="arrow")
    assert dataset.count_rows() == N_SOURCES
    code, found = proven(folder, edges, capsys)
    assert (code, found["faults"], found["proven"]) == (0, [], {"traversed again": N_SOURCES})


@pytest.mark.parametrize("case", tiers.few(CASES, 3))
def test_the_digest_is_that_of_the_distances_whatever_the_batches(case, job):
    digest = manifest_of(job(case))["digest"]
    assert manifest_of(job(case, result="distances", batch_size=99))["digest"] == digest
    assert manifest_of(job(case, batch_size=99))["digest"] == digest
    assert manifest_of(job(case, "--certify", "none"))["digest"] == digest


@pytest.mark.parametrize("case", tiers.few(CASES, 2))
def test_parts_that_the_manifest_does_not_know_are_kept_if_they_are_right(
    case, job, tmp_path, capsys
):
    folder = shutil.copytree(job(case), tmp_path / "out")
    before = parts_of(folder)
    forget_parts(folder)
    (folder / VERTICES).unlink()
    first = folder / "part-000000.arrow"
    first.write_bytes(first.read_bytes()[:-1])
    summary = summary_of(capsys, *job.command(folder, case, "--resume"))
    assert (summary["computed"], summary["kept"], summary["digest"]) == (
        1,
        2,
        manifest_of(job(case))["digest"],
    )
    assert parts_of(folder) == before
    assert (folder / VERTICES).exists()


def test_the_reader_of_the_page_reads_a_job(job, tmp_path, monkeypatch):
    (block,) = [
        block
        for _, block in blocks_of(Path("docs/results/matrix.md").read_text())
        if "out/matrix" in block
    ]
    shutil.copytree(job("hops"), tmp_path / "out" / "matrix")
    monkeypatch.chdir(tmp_path)
    found = {}
    exec(block, found)
    sources, matrix, _ = written(tmp_path / "out" / "matrix")
    assert found["sources"].tolist() == sources
    assert np.array_equal(found["matrix"], matrix)
    assert (
        found["vertices"].tolist()
        == pq.read_table(tmp_path / "out" / "matrix" / VERTICES)["vertex"].to_pylist()
    )


def forge(folder, change):
    """Change the first part, with hashes that agree."""
    manifest = manifest_of(folder)
    entry = manifest["parts"][0]
    path = folder / entry["file"]
    with open_part(path) as file:
        metadata, table = file.metadata, change(pa.concat_tables(file.tables()).combine_chunks())
    with pa.ipc.new_file(str(path), table.schema) as writer:
        for batch in table.to_batches():
            writer.write_batch(batch, custom_metadata=metadata)
    entry |= {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
    seal(folder, manifest)


def one_more(table):
    matrix = to_array(table["distance"]).copy()
    matrix[1, 5] += 1
    lists = pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])
    return table.set_column(1, "distance", lists)


def another_mark(table):
    return table.replace_schema_metadata(table.schema.metadata | {UNREACHED_KEY: b"-2"})


def no_mark(table):
    return table.replace_schema_metadata(
        {k: v for k, v in table.schema.metadata.items() if k != UNREACHED_KEY}
    )


def a_null(table):
    values = to_array(table["distance"])
    lists = pa.FixedSizeListArray.from_arrays(
        pa.array(values.ravel(), mask=values.ravel() == 1), values.shape[1]
    )
    return table.set_column(1, "distance", lists)


def a_column_less(table):
    values = to_array(table["distance"])[:, 1:]
    return table.set_column(
        1, "distance", pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
    )


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (one_more, "wrong result"),
        (another_mark, "wrong result"),
        (no_mark, "damaged part"),
        (a_null, "damaged part"),
        (a_column_less, "columns"),
    ],
)
def test_lists_that_are_wrong_are_found(change, kind, edges, job, tmp_path, capsys):
    folder = shutil.copytree(job("hops"), tmp_path / "out")
    forge(folder, change)
    code, found = proven(folder, edges, capsys)
    assert code == 5
    assert kind in {fault["kind"] for fault in found["faults"]}
    assert {fault["file"] for fault in found["faults"]} == {"part-000000.arrow"}


@pytest.mark.parametrize("change", ["lost", "damaged", "exchanged"])
def test_a_wrong_file_of_vertices_is_found(change, edges, job, tmp_path, capsys):
    folder = shutil.copytree(job("hops"), tmp_path / "out")
    ids = pq.read_table(folder / VERTICES)["vertex"].to_pylist()
    if change == "exchanged":
        pq.write_table(pa.table({"vertex": ids[::-1]}), folder / VERTICES)
    elif change == "damaged":
        (folder / VERTICES).write_bytes(b"PAR1")
    else:
        (folder / VERTICES).unlink()
    code, found = proven(folder, edges, capsys)
    assert (code, [(fault["kind"], fault["file"]) for fault in found["faults"]]) == (
        5,
        [("table", VERTICES)],
    )


def test_a_part_with_a_larger_number_in_a_later_batch_is_written_again_in_a_wider_type(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(matrix_file, "ROWS_PER_PART", 6)  # two lists of three per batch
    values = [[0, 1, -1], [2, 0, 3], [0, 4, 5], [40_000, 0, -1], [7, 8, 0]]
    writer = MatrixWriter(tmp_path / ".part-000000.a.tmp", {"what": "lists"})
    for source, distance in enumerate(values):
        array = np.array(distance, np.int32)
        writer.write(pa.table({"source": [source], "distance": make_list(array, array >= 0, -1)}))
    writer.close({b"a": "note"})
    assert [path.name for path in tmp_path.iterdir()] == [".part-000000.a.tmp"]
    (tmp_path / ".part-000000.a.tmp").rename(tmp_path / "part.arrow")
    with open_part(tmp_path / "part.arrow") as file:
        table = pa.concat_tables(file.tables())
        assert (file.metadata, file.group_rows) == ({b"a": b"note"}, [2, 2, 1, 0])
    assert table["source"].to_pylist() == [0, 1, 2, 3, 4]
    assert to_array(table["distance"]).tolist() == values
    assert table.schema.field("distance").type.value_type == pa.int32()
    assert table.schema.metadata == {b"what": b"lists"}


@pytest.mark.parametrize(
    ("distance", "how", "kind", "expected"),
    [
        (np.array([0, -1, 32767], np.int32), (True, False, False), "int16", [0, -1, 32767]),
        (np.array([0, -1, 32768], np.int32), (True, False, False), "int32", [0, -1, 32768]),
        (np.array([0, np.inf, 9], np.float32), (False, True, False), "int16", [0, -1, 9]),
        (np.array([0, np.inf, 2**40], np.float64), (False, True, False), "int64", [0, -1, 2**40]),
        (np.array([0, 2**63 - 1, 5]), (False, True, False), "int16", [0, -1, 5]),
        (np.array([0, np.inf, -5], np.float32), (False, True, True), "int64", [0, 2**63 - 1, -5]),
        (
            np.array([0, np.inf, 0.5], np.float32),
            (False, False, False),
            "float32",
            [0, np.inf, 0.5],
        ),
    ],
)
def test_a_list_has_the_narrowest_type_that_holds_it(distance, how, kind, expected):
    reached = np.array([True, False, True])
    found = make_list(distance, reached, unreached_in_file(*how))
    assert found.type.value_type == pa.from_numpy_dtype(np.dtype(kind))
    assert found.to_pylist() == [expected]
