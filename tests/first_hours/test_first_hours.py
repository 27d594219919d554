"""The first hour of nine users, as scripts: each begins with the wheel in a fresh environment and its own data.

A right answer is one that SciPy, NetworkX or plain Python has, too. ``pytest --all tests/first_hours`` prints the
seconds to it, and writes them to docs/testing.md with ``KEPLER_RECORD=1``.
"""

from __future__ import annotations

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
    """A file of Cytoscape as it comes, without a header: how far each gene is from two others."""
    (user.here / "interactions.sif").write_text("TP53 pp MDM2 ATM\nMDM2 pp UBE3A\nX pp Y\nALONE\n")
    user.command(
        "run", "interactions.sif", "--undirected", "--sources", "ATM,MDM2", "--output", "out",
        "--device", "cpu",
    )  # fmt: skip
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


def test_a_data_engineer_with_twenty_compressed_files_and_own_names(user, answered):
    """Twenty ``.csv.gz`` with text ids and own names: the error names them, and the same command then runs."""
    streets = lattice(30)
    streets = streets.rename(columns={"from": "node_from", "to": "node_to", "minutes": "km"})
    for end in ("node_from", "node_to"):
        streets[end] = "N" + streets[end].astype(str).str.zfill(4)
    streets.insert(0, "link_id", range(len(streets)))
    (user.here / "links").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(streets)), 20)):
        streets.iloc[rows].to_csv(user.here / "links" / f"part-{number:02}.csv.gz", index=False)
    asked = ["run", "links", "--undirected", "--algorithm", "sssp", "--sources", "N0000,N0899"]
    asked += ["--output", "out", "--device", "cpu"]
    refused = user.run("kepler-traverse", *asked)
    assert refused.returncode == 2
    assert "'link_id', 'node_from', 'node_to', 'km'" in refused.stderr
    assert not (user.here / "out").exists()
    said = user.command(*asked, "--columns", "src=node_from,dst=node_to,weight=km")
    assert "not used: 'link_id'" in said
    frame = pd.read_parquet(user.here / "out").set_index(["source", "vertex"])["distance"]
    expected = oracle(lattice(30), streets["km"].to_numpy(), [0, 899])
    for source, row in zip(("N0000", "N0899"), expected, strict=True):
        assert len(frame[source]) == 900
        assert frame[source].sort_index().to_numpy() == pytest.approx(row, rel=1e-6)
    answered()


def test_a_planner_with_a_table_of_trips(user, answered):
    """Trips whose columns have own names: the table comes back with its distances, and what streets carry."""
    streets = lattice(30)
    streets.to_csv(user.here / "streets.csv", index=False)
    draw = np.random.default_rng(7)
    trips = pd.DataFrame({"home": draw.integers(0, 900, 200), "work": draw.integers(0, 900, 200)})
    trips["people"] = draw.integers(1, 9, 200)
    trips.to_csv(user.here / "trips.csv", index=False)
    asked = ["run", "streets.csv", "--undirected", "--algorithm", "sssp", "--pairs", "trips.csv"]
    columns = "src=from,dst=to,weight=minutes"
    refused = user.run("kepler-traverse", *asked, "--columns", columns, "--output", "out")
    assert refused.returncode == 2
    advice = "origin=NAME,destination=NAME"
    assert advice in refused.stderr
    columns += "," + advice.replace("NAME", "home", 1).replace("NAME", "work", 1)
    user.command(*asked, "--columns", columns, "--output", "out")
    found = pd.read_parquet(user.here / "out" / "_pairs.pq")
    assert found[trips.columns.tolist()].equals(trips)
    distances = oracle(streets, streets["minutes"].to_numpy(), list(range(900)))
    expected = distances[trips["home"], trips["work"]]
    assert found["distance"].to_numpy() == pytest.approx(expected, rel=1e-6)
    answered()
    columns += ",volume=people"
    user.command(*asked, "--columns", columns, "--result", "flows", "--output", "flows")
    loads = pd.read_parquet(user.here / "flows" / "_loads.pq")
    # what is carried, times the minutes of its street, is what all riders drive
    ends = streets.set_index(["from", "to"])["minutes"]
    pairs = zip(loads[["src", "dst"]].min(axis=1), loads[["src", "dst"]].max(axis=1), strict=True)
    minutes = np.array([ends[pair] for pair in pairs])
    driven = (trips["people"] * expected).sum()
    assert (loads["volume"] * minutes).sum() == pytest.approx(driven, rel=1e-6)
