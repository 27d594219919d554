"""``--along`` of a job: the sums of the library, for any batches and after a resume, verified."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph, sssp_many, sssp_pairs
from kepler_traverse.errors import EdgeListWarning
from pipelines import verify
from pipelines.batch_sources import main
from tests.support.jobs import call, manifest_of, parts_of

SOURCES = [3, 21, 12, 30]
TARGETS = [0, 9, 27, 3]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edges")
    rng = np.random.default_rng(5)
    size = 120
    pd.DataFrame(
        {
            "src": rng.integers(0, 12, size) * 3,
            "dst": rng.integers(0, 12, size) * 3,
            "minutes": rng.integers(1, 5, size),
            "metres": rng.integers(0, 10**6, size),
            "toll": rng.random(size),
        }
    ).to_parquet(folder / "edges.parquet")
    pd.DataFrame({"source": SOURCES}).to_csv(folder / "sources.csv", index=False)
    pd.DataFrame({"target": TARGETS}).to_csv(folder / "targets.csv", index=False)
    pd.DataFrame({"origin": SOURCES * 2, "destination": TARGETS + TARGETS[::-1]}).to_csv(
        folder / "pairs.csv", index=False
    )
    return folder


KINDS = {
    "pairs": ["--result", "pairs", "--pairs", "pairs.csv"],
    "targets": ["--result", "targets", "--sources", "sources.csv", "--targets", "targets.csv"],
    "streets": ["--result", "streets", "--sources", "sources.csv", "--cutoffs", "2,5"],
    "nearest": ["--result", "nearest", "--sources", "sources.csv"],
    "k nearest": ["--result", "nearest", "--sources", "sources.csv", "--nearest-k", "2"],
    "nearest targets": [
        "--result",
        "nearest",
        "--sources",
        "sources.csv",
        "--targets",
        "targets.csv",
        "--nearest-k",
        "2",
    ],
}


def run(folder, output, kind, *more):
    words = ["--algorithm", "sssp", "--columns", "weight=minutes", "--along", "metres,toll"]
    words += [str(folder / word) if word.endswith(".csv") else word for word in KINDS[kind]]
    words += ["--workers", "1", "--device", "cpu", "--output", str(output), *more]
    assert main([str(folder / "edges.parquet"), *words]) == 0
    return output


def expected_of(folder, kind):
    table = pd.read_parquet(folder / "edges.parquet")
    graph = read_graph(
        folder / "edges.parquet", weight_column="minutes", device="cpu", edge_ids=True
    )
    options = {"along": table[["metres", "toll"]]}
    if kind == "pairs":
        pairs = pd.read_csv(folder / "pairs.csv")
        return sssp_pairs(graph, pairs.origin, pairs.destination, **options)
    if kind in ("targets", "nearest targets"):
        options["targets"] = TARGETS
    if kind in ("k nearest", "nearest targets"):
        options["k"] = 2
    if kind == "streets":
        options["cutoffs"] = [2, 5]
        with pytest.warns(EdgeListWarning, match="parallel edges"):
            return sssp_many(graph, SOURCES, result=kind, **options)
    result = kind if kind == "targets" else "nearest"
    return sssp_many(graph, SOURCES, result=result, **options)


@pytest.mark.parametrize("kind", list(KINDS))
def test_sums_are_those_of_the_library(kind, folder, tmp_path):
    is_one_search = kind in ("nearest", "k nearest")
    made = run(folder, tmp_path / "out", kind, *([] if is_one_search else ["--batch-size", "1"]))
    rows = pd.concat(map(pd.read_parquet, sorted(made.glob("part-*.parquet"))))
    expected = expected_of(folder, kind)
    every = ("pair", "source", "cutoff", "vertex", "rank", "target")
    keys = [name for name in every if name in rows]
    known = [name for name in keys if name in expected]
    rows = rows.sort_values(keys if kind == "pairs" else known, ignore_index=True)
    if kind != "pairs":
        expected = expected.sort_values(known, ignore_index=True)
    assert rows[expected.columns].astype(float).equals(expected.astype(float))
    other = run(folder, tmp_path / "other", kind, "--certify", "none")
    assert manifest_of(other)["digest"] == manifest_of(made)["digest"]
    edges = str(folder / "edges.parquet")
    assert verify.main([str(made), edges, "--device", "cpu"]) == 0
    if kind == "pairs":
        answered = pd.read_parquet(made / "_pairs.pq")
        assert answered.metres.astype(float).equals(expected.metres.astype(float))
    if kind in ("targets", "streets"):
        (made / "part-000001.parquet").unlink()
        run(folder, made, kind, "--batch-size", "1", "--resume")
        whole = run(folder, tmp_path / "whole", kind, "--batch-size", "1")
        assert parts_of(made) == parts_of(whole)


def test_a_wrong_sum_is_found(folder, tmp_path, capsys):
    made = run(folder, tmp_path / "out", "targets")
    part = made / "part-000000.parquet"
    table = pq.read_table(part)
    footer = pq.read_metadata(part).metadata[b"kepler_traverse"]
    at = table.schema.get_field_index("metres")
    sums = table["metres"].to_pandas().copy()
    sums.iloc[-1] += 1
    with pq.ParquetWriter(part, table.schema) as writer:
        column = pd.Series(sums)
        changed = table.set_column(at, table.schema.field(at), [column.to_numpy(np.int64)])
        writer.write_table(changed)
        writer.add_key_value_metadata({"kepler_traverse": footer})
    code, out, _ = call(
        capsys, made, folder / "edges.parquet", "--device", "cpu", program=verify.main
    )
    assert code == 5
    assert "metres" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--result", "matrix", "--sources", "sources.csv"], "--along is for --result"),
        (["--result", "distances", "--sources", "sources.csv"], "--along is for --result"),
        (["--result", "nearest", "--sources", "sources.csv", "--along", "none"], "none"),
        (["--result", "nearest", "--sources", "sources.csv", "--along", "source"], "source"),
        (
            ["--result", "nearest", "--sources", "sources.csv", "--along", "src"],
            "column 'src' is src and cannot be added up, too",
        ),
    ],
)
def test_what_cannot_be_summed_is_refused(words, said, folder, tmp_path, capsys):
    words = [str(folder / word) if word.endswith(".csv") else word for word in words]
    more = [] if "--along" in words else ["--along", "metres"]
    fixed = ["--algorithm", "sssp", "--columns", "weight=minutes", "--output", str(tmp_path / "o")]
    assert main([str(folder / "edges.parquet"), *fixed, *words, *more]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "o").exists()


def test_negative_weights_are_refused_with_a_result_that_takes_them(tmp_path, capsys):
    table = pd.DataFrame({"src": [0, 3], "dst": [3, 9], "weight": [2, -1], "toll": [5, 7]})
    table.to_parquet(tmp_path / "edges.parquet")
    pd.DataFrame({"origin": [0], "destination": [9]}).to_csv(tmp_path / "pairs.csv", index=False)
    words = [str(tmp_path / "edges.parquet"), "--algorithm", "sssp", "--along", "toll"]
    words += ["--pairs", str(tmp_path / "pairs.csv"), "--workers", "1", "--device", "cpu"]
    words += ["--output", str(tmp_path / "out")]
    assert main(words) == 2
    assert "take the sums of --result paths" in capsys.readouterr().err
    assert main([*words, "--result", "paths"]) == 0
