"""``--engine cugraph-mg``: a search on all GPUs gives the output of this library's engine, or an error with the reason.

Without RAPIDS a stand-in on pandas takes its place; the tests marked ``gpu`` take cuGraph and all GPUs that there are.
"""

import importlib.util
import time
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

from kepler_traverse import cuda, graph_from_edges, plan_sssp, read_graph
from kepler_traverse.certificate import certify_many
from kepler_traverse.errors import CapacityError, PrecisionError
from kepler_traverse.kinds.constraints import violations
from pipelines.batch_sources import main
from pipelines.cli.command_line import parse_flags
from pipelines.cli.constraints import MG_ROWS
from pipelines.cli.options import UsageError
from pipelines.cli.settings import read_settings
from pipelines.multi_gpu import rapids as multi_gpu_rapids
from pipelines.multi_gpu.edge_partition import EdgeArrays
from pipelines.multi_gpu.partitioned_graph import Edges
from pipelines.output.schemas import OUTPUT_SCHEMAS
from pipelines.run.driver import suggesting_mg
from pipelines.run.memory_plan import Load, Machine, size_up
from pipelines.verify import prove_output
from tests.support import fake_rapids, tiers
from tests.support.jobs import manifest_of

SOURCES = "7,-14,21,0,70,9999"  # the last one has a self-loop and nothing else


def some_edges(seed=11, rows=420):
    """Rows with gaps between ids, negative ids, parallel edges, self-loops, edges of length zero, several components."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(-40, 100, (rows, 2)) * 7
    ends[:3] = [[-14, -14], [9999, 9999], [0, 0]]
    ends[3:9, 0], ends[3:9, 1] = [-14, 7, 21, 0, 70, -14], [7, 21, 0, 70, -14, 7]
    return ends[:, 0], ends[:, 1], rng.integers(0, 6, rows)


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "edges.parquet"
    pq.write_table(pa.table(dict(zip(("src", "dst", "weight"), some_edges(), strict=True))), path)
    return path


@pytest.fixture
def rapids(monkeypatch):
    return fake_rapids.install(monkeypatch)


def run(edges, folder, *words):
    words = ["--engine", "cugraph-mg", "--no-report", "--output", folder, *words]
    return main([str(word) for word in (edges, *words)])


def proven(folder, edges):
    return prove_output(folder, [str(edges)], "cpu").as_dict()


@pytest.mark.parametrize(
    "words",
    tiers.few(
        [
            ("--sources", SOURCES, "--batch-size", 4),
            ("--undirected", "--random-sources", 9, "--result", "summary"),
            ("--undirected", "--sources", SOURCES, "--max-depth", 0, "--result", "levels"),
            (
                "--sources",
                SOURCES,
                "--targets",
                "0,9999,7",
                "--result",
                "targets",
                "--certify",
                "sample",
            ),
            (
                "--algorithm",
                "sssp",
                "--undirected",
                "--sources",
                SOURCES,
                "--weight-type",
                "float64",
            ),
            ("--algorithm", "sssp", "--sources", SOURCES, "--cutoff", 4),
            ("--algorithm", "sssp", "--sources", SOURCES, "--cutoff", 0, "--result", "reachable"),
            ("--algorithm", "sssp", "--sources", SOURCES, "--targets", "0,9999,7"),
        ],
        4,
    ),
    ids=lambda words: " ".join(map(str, words)),
)
@pytest.mark.usefixtures("rapids")
def test_an_output_is_proven_right_from_files_alone(edges, tmp_path, words):
    assert run(edges, tmp_path / "out", *words) == 0
    found = proven(tmp_path / "out", edges)
    assert found["valid"], found["faults"]
    assert found["sources"] == manifest_of(tmp_path / "out")["sources"]


def test_parts_manifest_and_digest_are_those_of_the_other_engine(edges, tmp_path, rapids):
    words = ["--algorithm", "sssp", "--undirected", "--random-sources", 7, "--batch-size", 3]
    assert run(edges, tmp_path / "mg", *words) == 0
    own = [
        edges,
        *words,
        "--output",
        tmp_path / "own",
        "--device",
        "cpu",
        "--engine",
        "kepler",
        "--workers",
        1,
    ]
    assert main([str(word) for word in own]) == 0
    mg = manifest_of(tmp_path / "mg")
    own = manifest_of(tmp_path / "own")
    for key in (
        "digest",
        "identity",
        "fingerprint",
        "graph",
        "sources",
        "batches",
        "means",
        "status",
    ):
        assert mg[key] == own[key], key
    assert [part["sha256"] for part in mg["parts"]] == [part["sha256"] for part in own["parts"]]
    assert set(mg) == set(own)
    assert set(mg["parts"][0]) == set(own["parts"][0])
    assert (mg["device"], mg["strategy"], mg["workers"]) == ("cuda", "cugraph-mg", 2)
    assert rapids.calls == [True, "destroyed"]


# Words of each result that the engine writes. With the options of a kind, its questions are those of the other engine.
WORDS = {
    "distances": ("--sort", "distance", "--targets", "0,9999,7"),
    "summary": (),
    "levels": (),
    "targets": ("--targets", "0,9999,7"),
    "reachable": (),
    "nearest_targets": ("--nearest-k", 2, "--columns", "target=id,group=what", "--targets"),
}


def test_each_result_that_is_not_refused_has_words():
    given = replace(settings(), engine="cugraph-mg")
    taken = {
        name for name in OUTPUT_SCHEMAS if not any(violations(replace(given, result=name), MG_ROWS))
    }
    assert taken == set(WORDS)


@pytest.mark.parametrize(
    ("result", "algorithm"),
    [each for each in tiers.by_turns(WORDS, ("bfs", "sssp")) if each != ("levels", "sssp")],
)
@pytest.mark.usefixtures("rapids")
def test_each_result_is_that_of_the_other_engine(edges, tmp_path, result, algorithm):
    words = ["--algorithm", algorithm, "--sources", SOURCES, "--batch-size", 4, "--result", result]
    words += WORDS[result]
    if result == "nearest_targets":
        targets = {"id": [0, 9999, 7, -14], "what": ["b", "a", "b", "b"]}
        pq.write_table(pa.table(targets), tmp_path / "targets.parquet")
        words.append(tmp_path / "targets.parquet")
    assert run(edges, tmp_path / "mg", *words) == 0
    own = ["--engine", "kepler", "--device", "cpu", "--workers", 1, "--no-report"]
    own += ["--output", tmp_path / "own"]
    assert main([str(word) for word in (edges, *words, *own)]) == 0
    mg, own = (manifest_of(tmp_path / name) for name in ("mg", "own"))
    for key in ("digest", "identity", "means", "batches"):
        assert mg[key] == own[key], key
    assert [part["sha256"] for part in mg["parts"]] == [part["sha256"] for part in own["parts"]]
    assert proven(tmp_path / "mg", edges)["valid"]


def test_wrong_distance_fails_its_source_alone_and_resuming_repairs_it(
    edges, tmp_path, rapids, monkeypatch, capsys
):
    def wrong_from_7(graph, source, cutoff=None):
        found = fake_rapids.sssp(graph, source, cutoff)
        frame = found.pieces[0].compute()
        if wrong_from_7.source is None:
            wrong_from_7.source = source
        if source == wrong_from_7.source:
            frame.loc[frame.index[frame["distance"] > 0][0], "distance"] += 1
        return fake_rapids.Frames([fake_rapids.dask.delayed(frame), *found.pieces[1:]])

    wrong_from_7.source = None
    words = ["--algorithm", "sssp", "--sources", SOURCES, "--batch-size", 2]
    monkeypatch.setattr(rapids.dask, "sssp", wrong_from_7)
    assert run(edges, tmp_path / "out", *words) == 3
    (failure,) = manifest_of(tmp_path / "out")["failed"]
    assert failure["sources"] == [7]
    assert "CertificateError: source 7: the result is wrong: C3: " in failure["error"]
    monkeypatch.setattr(rapids.dask, "sssp", fake_rapids.sssp)
    assert run(edges, tmp_path / "out", *words, "--resume") == 0
    assert "(2 batches computed before)" in capsys.readouterr().out
    assert proven(tmp_path / "out", edges)["valid"]


def test_a_lost_worker_ends_the_run_and_resuming_finishes_it(
    edges, tmp_path, rapids, monkeypatch, capsys
):
    def losing(graph, start, depth_limit=None, check_start=True):
        client = fake_rapids.default_client()
        if losing.left:
            losing.left -= 1
            return fake_rapids.bfs(graph, start, depth_limit, check_start=check_start)
        client.retire_workers([sorted(client.nthreads())[0]])
        time.sleep(30)

    losing.left = 3
    monkeypatch.setattr(multi_gpu_rapids, "_TICK", 0.05)
    monkeypatch.setattr(rapids.dask, "bfs", losing)
    assert run(edges, tmp_path / "out", "--sources", SOURCES, "--batch-size", 2) == 1
    assert "a worker is lost; run again with --resume" in capsys.readouterr().err
    assert manifest_of(tmp_path / "out")["status"] == "failed"
    assert rapids.calls == [True], (
        "the collective was waited for, which the lost worker will never join"
    )
    monkeypatch.setattr(rapids.dask, "bfs", fake_rapids.bfs)
    assert run(edges, tmp_path / "out", "--sources", SOURCES, "--batch-size", 2, "--resume") == 0
    assert proven(tmp_path / "out", edges)["valid"]


BAD = {
    "a null id": ({"src": pa.array([0, None, 2])}, "src column 'src': 1 value is missing"),
    "NaN": ({"weight": [1.0, np.nan, 2.0]}, "weight column 'weight': 1 value is missing or NaN"),
    "an infinite weight": ({"weight": [1.0, np.inf, 2.0]}, "weight inf (infinite; 1 such rows in one block)"),
    "a negative weight": ({"weight": [1.0, -2.0, 2.0]},
        "weight -2 (negative; 1 such rows in one block): cuGraph takes none"),
    "a negative integer": ({"weight": [1, -2, 2]}, "weight -2 (negative"),
    "a subnormal weight": ({"weight": pa.array([1, 1e-40, 2], pa.float32())}, "(tiny; 1 such rows"),
    "a large integer": ({"weight": [1, 2**60, 2]}, "integer weight 1152921504606846976 is beyond 2^53"),
    "strings": ({"src": ["a", "b", "c"]}, "src column 'src' has type string; --engine cugraph-mg accepts only integer ids"),
    "no weights": ({"weight": None}, "no weight column"),
    "no rows": ({"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64()), "weight": pa.array([], pa.int64())}, ""),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
@pytest.mark.usefixtures("rapids")
def test_bad_input_is_one_error_before_anything_is_written(tmp_path, what, capsys):
    columns, message = BAD[what]
    table = {"src": [0, 1, 2], "dst": [1, 2, 0], "weight": [1, 2, 3]} | columns
    path = tmp_path / "bad.parquet"
    pq.write_table(
        pa.table({name: values for name, values in table.items() if values is not None}), path
    )
    assert run(path, tmp_path / "out", "--algorithm", "sssp", "--sources", 0) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith(f"error: {path}")
    assert message in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--result", "predecessors"), "it writes no predecessors; take --result distances"),
        (("--result", "nearest"), "it writes no nearest"),
        (("--device", "cpu"), "it runs on GPUs"),
        (
            ("--result", "targets", "--targets", "2", "--along", "metres"),
            "it adds up no other columns than the weights",
        ),
        (("--strategy", "push"), "it has no strategies"),
        (("--graph-cache", "x"), "its graph is partitioned and is not cached"),
        (("--format", "csv"), "it reads Parquet files"),
        (("--id-type", "string"), "it takes integer ids as they are stored"),
    ],
)
def test_unsupported_settings_are_refused_before_anything_starts(words, message):
    flags, _ = parse_flags(
        ["edges.parquet", "--engine", "cugraph-mg", "--sources", "1", "--output", "out", *words]
    )
    with pytest.raises(UsageError, match=f"--engine cugraph-mg: {message}"):
        read_settings(flags)


@pytest.mark.skipif(importlib.util.find_spec("cugraph") is not None, reason="cuGraph is installed")
def test_missing_cugraph_is_an_error_that_says_what_to_install(edges, tmp_path, capsys):
    assert run(edges, tmp_path / "out", "--sources", 0) == 2
    error = capsys.readouterr().err
    assert "--engine cugraph-mg needs cuGraph with Dask, and cu" in error
    assert "[mg]" in error


@pytest.mark.usefixtures("rapids")
def test_a_text_file_is_refused(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n")
    assert run(tmp_path / "edges.csv", tmp_path / "out", "--sources", 1) == 2
    assert (
        "edges.csv: --engine cugraph-mg reads Parquet files; convert the edge list"
        in capsys.readouterr().err
    )


@pytest.mark.usefixtures("rapids")
def test_weights_of_zero_alone_do_not_hang(tmp_path):
    path = tmp_path / "zeros.parquet"
    pq.write_table(
        pa.table({"src": [0, 1, 2, 5], "dst": [1, 2, 0, 6], "weight": [0, 0, 0, 0]}), path
    )
    assert run(path, tmp_path / "out", "--algorithm", "sssp", "--all-sources") == 0
    assert proven(tmp_path / "out", path)["valid"]


@pytest.mark.usefixtures("rapids")
def test_a_plan_says_how_the_graph_is_spread_and_writes_nothing(edges, tmp_path, capsys):
    assert run(edges, tmp_path / "out", "--sources", SOURCES, "--plan") == 0
    printed = capsys.readouterr().out
    assert "cugraph-mg for bfs on cuda" in printed
    assert "in parts on 2 workers" in printed
    assert not (tmp_path / "out").exists()


def settings(**others):
    flags = {"edges": ["e.parquet"], "random_sources": 1, "output": "out"}
    return read_settings(flags | others)


TOO_LARGE = Load(
    n_vertices=2**20, n_sources=8, graph_bytes=2**30, reverse_bytes=2**30, state_bytes=2**28, row_bytes=20,
    rows_per_source=2**20, most_rows=2**20, certified=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("others", "is_suggesting_mg"),
    [
        ({"algorithm": "sssp"}, True),
        ({"algorithm": "bfs"}, False),
        ({"algorithm": "sssp", "engine": "kepler"}, False),
        ({"algorithm": "sssp", "result": "predecessors"}, False),
        ({"algorithm": "sssp", "device": "cpu"}, False),
    ],
)
def test_a_plan_that_does_not_fit_proposes_the_engine_where_it_can_help(
    monkeypatch, others, is_suggesting_mg
):
    monkeypatch.setattr(cuda, "available", lambda: True)
    with (
        pytest.raises(
            CapacityError, match=r"this run needs .* GiB of memory on each GPU"
        ) as caught,
        suggesting_mg(settings(**others)),
    ):
        size_up(TOO_LARGE, Machine(device="cuda", cores=4, n_gpus=2, available=2**30))
    assert ("or take --engine cugraph-mg" in str(caught.value)) is is_suggesting_mg


def test_memory_that_runs_out_while_the_graph_is_read_proposes_it_too(monkeypatch):
    monkeypatch.setattr(cuda, "available", lambda: True)
    with (
        pytest.raises(
            CapacityError,
            match=r"does not fit the memory of a GPU \(no room\); or take --engine cugraph-mg",
        ),
        suggesting_mg(settings()),
    ):
        raise MemoryError("no room")


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("1.5GiB", 3 * 2**29), ("20 MB", 20_000_000)]
)
def test_a_size_may_have_a_unit(text, size):
    assert parse_flags(["e", "--gpu-memory", text])[0]["gpu_memory"] == size


@pytest.mark.parametrize("text", ["", "much", "1 mile", "-3"])
def test_invalid_memory_sizes_are_refused(text):
    with pytest.raises(UsageError, match=r"is not a size|expected one argument"):
        parse_flags(["e", "--gpu-memory", text])


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def parted(client, src, dst, weight, weight_type="auto"):
    """Return the same edges as a whole graph, and in partitions."""
    shares = [EdgeArrays(*(column[i::3] for column in (src, dst, weight))) for i in range(3)]
    kinds = {"src": src.dtype, "dst": dst.dtype, "weight": weight.dtype}
    graph = Edges(client, client.scatter(shares), True).build(kinds, True, weight_type, "edges")
    return graph_from_edges(src, dst, weight, weight_type=weight_type), graph


@pytest.mark.parametrize("limit", [None, 7])
def test_every_seeded_fault_is_rejected_as_the_other_certificate_rejects_it(client, limit):
    whole, graph = parted(client, *some_edges())
    assert graph.fingerprint == whole.fingerprint
    source = int(whole.to_numbers([-14])[0])
    right = plan_sssp(whole, predecessors=False, cutoff=limit).run(source).distance.copy()
    assert graph.edges.certify(source, right, limit).valid
    rng = np.random.default_rng(3)
    for fault in range(6):
        wrong = right.copy()
        at = rng.integers(wrong.size)
        wrong[at] = rng.choice(
            [wrong[at] + 1, wrong[at] - 1, np.inf, 0, np.nan, -0.0, np.float32(2.5)]
        )
        if np.array_equal(wrong.view(np.int32), right.view(np.int32)):
            continue
        expected = certify_many(whole, np.array([source]), wrong[None], limit)
        found = graph.edges.certify(source, wrong, limit)
        assert found.valid == expected.valid is False, (fault, found, expected)


def test_certificate_rejects_a_cycle_of_zero_weights(client):
    # An edge 0 to 1 of weight 9, and a cycle 1, 2, 3 of zeros: distances of 4 explain each other, but are too small.
    src = np.array([0, 1, 2, 3])
    dst = np.array([1, 2, 3, 1])
    weight = np.array([9, 0, 0, 0])
    _, graph = parted(client, src, dst, weight)
    assert graph.edges.certify(0, np.array([0, 9, 9, 9], np.float32), None).valid
    found = graph.edges.certify(0, np.array([0, 4, 4, 4], np.float32), None)
    assert found.failures["C4"].startswith(
        "3 distances are explained by no edge, or only by each other"
    )


def test_a_distance_beyond_its_type_is_named(client):
    _, graph = parted(
        client, np.array([0, 1]), np.array([1, 2]), np.array([3e38, 3e38], np.float32)
    )
    with pytest.raises(PrecisionError, match="exceeds the largest float32"):
        graph.edges.certify(0, np.array([0, 3e38, np.inf], np.float32), None)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "words",
    [
        ("--result", "distances"),
        ("--undirected", "--max-depth", "3"),
        ("--algorithm", "sssp"),
        ("--algorithm", "sssp", "--undirected", "--cutoff", "9"),
    ],
    ids=" ".join,
)
def test_cugraph_on_all_gpus_gives_the_digest_of_the_cpu(tmp_path, words):
    pytest.importorskip("cugraph.dask")
    rng = np.random.default_rng(5)
    src = (rng.zipf(1.4, 40_000) % 5_000).astype(np.int64) * 3 - 900
    dst = rng.integers(0, 5_000, 40_000) * 3 - 900
    path = tmp_path / "edges.parquet"
    table = pa.table({"src": src, "dst": dst, "weight": rng.integers(0, 50, src.size)})
    pq.write_table(table, path, row_group_size=9_000)
    assert run(path, tmp_path / "out", "--random-sources", 6, *words) == 0
    found = prove_output(tmp_path / "out", [str(path)], "cpu").as_dict()
    assert found["valid"], found["faults"]
    manifest = manifest_of(tmp_path / "out")
    graph = read_graph(
        path, device="cpu", directed="--undirected" not in words, weighted="sssp" in words
    )
    assert manifest["graph"]["fingerprint"] == graph.fingerprint
