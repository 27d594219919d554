"""The first hour of seven users, as scripts: each begins with the wheel in a fresh environment and its own data.

A right answer is one that SciPy, NetworkX or plain Python has, too. ``pytest --all tests/first_hours`` prints the
seconds to it.
"""

from __future__ import annotations

import csv
import json
import os
import time
import tomllib

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from scipy.sparse import csgraph

from kepler_traverse.errors import how_to_install
from tests.first_hours.conftest import succeed, unused_port
from tests.support import object_store
from tests.support.processes import ROOT, skip_without_repository

pytestmark = pytest.mark.exhaustive


def lattice(side: int, seed: int = 1) -> pd.DataFrame:
    """Streets of a town with ``side`` squared junctions, whose minutes have one decimal."""
    v = np.arange(side * side).reshape(side, side)
    src = np.concatenate([v[:, :-1].ravel(), v[:-1].ravel()])
    dst = np.concatenate([v[:, 1:].ravel(), v[1:].ravel()])
    minutes = np.random.default_rng(seed).integers(3, 60, src.size) / 10
    return pd.DataFrame({"from": src, "to": dst, "minutes": minutes})


def oracle(streets: pd.DataFrame, weight: np.ndarray, sources: list[int]) -> np.ndarray:
    """Distances of an undirected graph by SciPy."""
    n = int(max(streets["from"].max(), streets["to"].max())) + 1
    matrix = sparse.csr_matrix((weight, (streets["from"], streets["to"])), shape=(n, n))
    return csgraph.dijkstra(matrix, directed=False, indices=sources)


def test_a_planner_with_40_000_junctions(user, answered):
    """Minutes with one decimal: within ten minutes of three schools, and the nearest one; then a plan of the whole town."""
    streets = lattice(200)
    streets.to_csv(user.here / "streets.csv", index=False)
    schools = [5, 20_100, 39_999]
    code = f"""
import kepler_traverse as kt, numpy as np
minutes = kt.read_graph("streets.csv", src_column="from", dst_column="to", weight_column="minutes", directed=False)
graph, unit, error = kt.integer_weights(minutes)
assert error == 0 and unit == 0.1, (unit, error)
frame = kt.sssp_many(graph, {schools}, cutoff=10 / unit)
print(frame.groupby("source")["distance"].agg(["size", "sum"]).to_json(orient="index"))
nearest = kt.sssp_many(graph, {schools}, result="nearest")
print(int(nearest["distance"].sum()))
"""
    within, total = user.python(code).splitlines()
    distances = oracle(streets, np.rint(streets["minutes"] * 10), schools)
    for school, row in zip(schools, distances, strict=True):
        found = json.loads(within)[str(school)]
        assert found == {"size": int((row <= 100).sum()), "sum": int(row[row <= 100].sum())}
    assert int(total) == int(distances.min(axis=0).sum())
    answered()
    asked = ["--undirected", "--algorithm", "sssp", "--columns", "src=from,dst=to,weight=minutes"]
    said = user.command(
        "plan", "streets.csv", *asked, "--random-sources", 200, "--result", "summary"
    )
    (line,) = [line for line in said.splitlines() if line.startswith("expected")]
    assert "about" in line
    assert "writes" in line


def test_a_networkx_program(user, answered):
    """One environment variable, and an answer that is NetworkX's."""
    (user.here / "program.py").write_text("""
import networkx as nx
graph = nx.grid_2d_graph(40, 40)
found = nx.closeness_centrality(graph)
print(round(sum(found.values()), 9))
""")
    plain = user.run("python", "program.py", NETWORKX_BACKEND_PRIORITY="").stdout
    user.began = time.perf_counter()
    found = user.run("python", "program.py", NETWORKX_BACKEND_PRIORITY="kepler")
    assert found.returncode == 0, found.stderr
    assert found.stdout == plain
    answered()


def test_a_data_engineer_with_twenty_files_and_s3(user, answered, monkeypatch):
    """Twenty Parquet files, an output in an object store over plain http, and a shard that is run again."""
    object_store.skip_without_server()
    streets = lattice(60)
    (user.here / "edges").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(streets)), 20)):
        table = pa.Table.from_pandas(streets.iloc[rows], preserve_index=False)
        pq.write_table(table, user.here / "edges" / f"{number:02}.parquet")
    asked = ["run", "edges", "--undirected", "--random-sources", 12, "--device", "cpu"]
    asked += ["--columns", "src=from,dst=to", "--result", "summary", "--output", "s3://bucket/run"]
    keys = {f"AWS_{name}": value for name, value in object_store.KEYS.items()}
    with unused_port() as port:
        # plain http is refused at once, by the name of what allows it
        plain = keys | {"AWS_ALLOW_HTTP": "", "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
        refused = user.run("kepler-traverse", *asked, **plain)
    assert refused.returncode == 2
    assert "AWS_ALLOW_HTTP=true" in refused.stderr
    user.began = time.perf_counter()
    with object_store.served(monkeypatch) as server:
        there = keys | {"AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"]}
        user.command(*asked, **there)
        held = object_store.objects("run")
        assert "_SUCCESS" in {name.rpartition("/")[2] for name in held}, server
        for name, data in held.items():
            (user.here / name.rpartition("/")[2]).write_bytes(data)
    frame = pd.concat(map(pd.read_parquet, user.here.glob("part-*.parquet")))
    hops = oracle(streets, np.ones(len(streets)), frame["source"].tolist())
    assert frame["eccentricity"].tolist() == hops.max(axis=1).tolist()
    answered()


def test_a_biologist_with_an_interaction_file(user, answered):
    """Interactions of genes as text with a header of three columns: how far each gene is from a set of two.

    A SIF file has no header; as a table with one it is read today.
    """
    rows = [
        ("TP53", "pp", "MDM2"),
        ("MDM2", "pp", "UBE3A"),
        ("TP53", "pp", "ATM"),
        ("X", "pp", "Y"),
    ]
    with open(user.here / "interactions.tsv", "w", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(("geneA", "type", "geneB"))
        writer.writerows(rows)
    said = user.command(
        "run", "interactions.tsv", "--undirected", "--columns", "src=geneA,dst=geneB",
        "--sources", "ATM,MDM2", "--output", "out", "--device", "cpu",
    )  # fmt: skip
    assert "type" in said, "the column that is not used is named"
    frame = pd.concat(map(pd.read_parquet, (user.here / "out").glob("part-*.parquet")))
    # by its columns, whatever their names: the source, the gene, the distance
    found = {tuple(map(str, row[:2])): int(row[2]) for row in frame.itertuples(index=False)}
    assert found["ATM", "UBE3A"] == 3
    assert found["MDM2", "ATM"] == 2
    assert ("ATM", "X") not in found
    answered()


def test_a_contributor_makes_a_first_change(user, answered):
    """A clone, the steps of CONTRIBUTING, one test, and the plug-in as its page types it."""
    skip_without_repository()
    clone = user.folder / "clone"
    succeed(["git", "clone", "--quiet", "--no-hardlinks", ROOT, clone])
    user.began = time.perf_counter()
    steps = (clone / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert "python -m pytest tests/traversal/test_contract.py" in steps
    environment = user.environment | {"PYTHONPATH": str(clone)}
    succeed(
        [user.programs / "python", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
         "tests/traversal/test_contract.py", "-k", "switch-cpu"],
        cwd=clone, env=environment,
    )  # fmt: skip
    answered()
    plugin = clone / "examples" / "farthest_plugin.py"
    (user.here / "farthest_plugin.py").write_text(plugin.read_text(encoding="utf-8"))
    (user.here / "edges.csv").write_text("src,dst\nA,B\nB,C\n")
    said = user.command("run", "--help", "--result", "farthest", KEPLER_PLUGINS="farthest_plugin")
    assert "farthest" in said


def test_a_rapids_user_without_a_gpu(user, answered):
    """The device is refused with what is missing, ``doctor`` says what to type, and the CPU has the answer."""
    streets = lattice(30)
    streets.to_parquet(user.here / "edges.parquet")
    asked = ["run", "edges.parquet", "--undirected", "--columns", "src=from,dst=to"]
    asked += ["--sources", "0", "--result", "summary", "--output", "out"]
    refused = user.run("kepler-traverse", *asked, "--device", "cuda")
    assert refused.returncode == 2
    assert "Traceback" not in refused.stderr
    assert "device 'cuda'" in refused.stderr
    checked = user.run("kepler-traverse", "doctor")
    assert checked.returncode == 0, checked.stdout
    assert "Error" not in checked.stdout
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = [name for name in extras["optional-dependencies"] if f"Extra {name} " in checked.stdout]
    assert {"cloud", "geo", "plot", "osm", "networkx", "tables"} <= set(named)
    user.command(*asked)
    (part,) = (user.here / "out").glob("part-*.parquet")
    assert pd.read_parquet(part)["eccentricity"].tolist() == [58]
    answered()
    assert "checkout" in how_to_install("cuda13") or str(ROOT) in how_to_install("cuda13")


def test_a_user_of_csv_with_one_file(user, answered):
    """One file in, one file of text out, for R or a spreadsheet."""
    streets = lattice(20)
    streets.to_csv(user.here / "edges.csv", index=False)
    user.command(
        "run", "edges.csv", "--undirected", "--algorithm", "sssp", "--sources", "0,399",
        "--columns", "src=from,dst=to,weight=minutes", "--output", "out", "--device", "cpu",
    )  # fmt: skip
    user.python("""
import pyarrow.csv, pyarrow.dataset
pyarrow.csv.write_csv(pyarrow.dataset.dataset("out").to_table(), "distances.csv")
""")
    frame = pd.read_csv(user.here / "distances.csv")
    expected = oracle(streets, streets["minutes"].to_numpy(), [0, 399])
    found = frame.set_index(list(frame.columns[:2]))[frame.columns[2]]
    for row, source in zip(expected, (0, 399), strict=True):
        for vertex in (0, 7, 210, 399):
            assert found[source, vertex] == pytest.approx(row[vertex], rel=1e-6)
    answered()
