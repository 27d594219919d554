"""Compare two devices by groups of many sources: ``python -m scripts.ci.groups GRAPH --part PART``.

GRAPH is a Parquet file of edges in the folder of KEPLER_DATA. PART is hops or weights: each result kind from many sources,
with target lists of uneven length; forward: the same by weights, over the edges that lead to a larger number alone, so that
there is no cycle; or jobs: their digests without a certificate and with all of them. Each result of a GPU is compared with
that of the CPU bit by bit, by checksums of its columns; without cuDF, frames are those of pandas. It prints a line per
comparison, and ends with 1 if some differ.

With ``--device cpu`` the CPU is compared with itself: plans that change their strategy and the size of their groups at
random, with searches from one source after another.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import parquet

import kepler_traverse as kt
from kepler_traverse import Graph, graph_from_edges, read_graph
from kepler_traverse.auto.choice import Choice
from kepler_traverse.errors import EdgeListWarning
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from pipelines import run_job
from scripts.papers.graphs import hashed
from scripts.storm.library import to_host, use_pandas_without_cudf

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("KEPLER_DATA", ROOT.parent / "shared" / "data"))
SOURCES = 2500
PAIRS = 6000
LONGEST = 40  # targets of one source at most
SEED = 11
PARTS = ("hops", "weights", "forward", "jobs")
LIMITS = {"bfs": "max_depth", "sssp": "cutoff"}
# By kind, with options, and the limit of hops and of weights; None for none. Rows per vertex are asked for at targets.
KINDS: dict[str, tuple[str, dict, tuple[Any, Any]]] = {
    "distances at targets": ("distances", {"targets": 500}, (None, 120)),
    "predecessors at targets": ("predecessors", {"targets": 500}, (None, 120)),
    "predecessors": ("predecessors", {}, (2, 60)),
    "matrix": ("matrix", {"targets": 500}, (None, 120)),
    "summary": ("summary", {}, (None, 120)),
    "levels": ("levels", {}, (None, None)),
    "targets": ("targets", {"targets": 500}, (None, 120)),
    "reachable": ("reachable", {}, (3, 100)),
    "nearest targets": ("nearest_targets", {"targets": 500, "k": 3}, (None, 120)),
    "opportunities": ("opportunities", {"cutoffs": (2, 90), "values": True}, (None, None)),
    "within": ("within", {"cutoffs": (3, 120)}, (None, None)),
    "streets": ("streets", {"cutoffs": (2, 60), "along": True}, (None, None)),
    "isochrones": ("isochrones", {"cutoffs": (2, 60)}, (None, None)),
    "nearest": ("nearest", {}, (3, 120)),
    "nearest with start costs": ("nearest", {"start_costs": True}, (None, 120)),
    "flows": ("flows", {"targets": 500}, (None, 120)),
    "betweenness": ("betweenness", {}, (4, 120)),
    "betweenness of edges": ("betweenness", {"of": "edges", "targets": 500}, (4, 120)),
    "pairs": ("pairs", {}, (None, None)),
    "flows of pairs": ("flows", {"pairs": True}, (None, 120)),
    "paths": ("paths", {}, (None, None)),
}
# What a CPU is compared with: one search from all sources has no other way than its own strategies.
PLAIN = {"bfs": "one_at_a_time", "sssp": "one_at_a_time"}
PLAIN_OF_NEAREST = {"bfs": "queue", "sssp": "frontier"}


def checksum(values: np.ndarray) -> str:
    """Return the type, the shape and a checksum of an array."""
    values = np.ascontiguousarray(values)
    digest = hashlib.sha256(values.reshape(-1).view(np.uint8).data).hexdigest()[:12]
    return f"{values.dtype} {values.shape} {digest}"


def checksums(found: Any) -> dict[str, str]:
    """Return the checksums of the columns of a frame, and of which values are missing; or that of an array."""
    if hasattr(found, "to_arrow"):
        table = found.to_arrow()
    elif hasattr(found, "columns"):
        table = pa.Table.from_pandas(found, preserve_index=False)
    else:
        return {"array": checksum(to_host(found))}
    sums = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        sums[name] = checksum(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
        sums[f"{name} is missing"] = checksum(column.is_null().to_numpy(zero_copy_only=False))
    return sums


def pairs_of(graph: Graph, n_sources: int) -> tuple[np.ndarray, np.ndarray]:
    """Return origins and destinations: as many for a source as a power law says, and none for some."""
    rng = np.random.default_rng(SEED)
    sizes = np.minimum(rng.pareto(1.0, n_sources).astype(np.int64), LONGEST)
    origins = np.repeat(rng.integers(0, graph.n_vertices, n_sources), sizes)
    return origins, rng.integers(0, graph.n_vertices, origins.size)


class Case:
    """What is asked of a graph on each device."""

    def __init__(self, name: str, algorithm: str, n_sources: int, graph: Graph):
        self.result, given, limits = KINDS[name]
        self.algorithm = algorithm
        place = int(algorithm == "sssp")
        rng = np.random.default_rng(SEED)
        n = graph.n_vertices
        self.options = {key: value for key, value in given.items() if key != "pairs"}
        if limits[place] is not None:
            self.options[LIMITS[algorithm]] = limits[place]
        numbers = np.unique(rng.integers(0, n, n_sources))
        self.sources = graph.ids_at(numbers)
        if "targets" in given:
            drawn = rng.integers(0, n, min(given["targets"], n // 2))
            self.options["targets"] = graph.ids_at(np.unique(drawn))
        if "cutoffs" in given:
            self.options["cutoffs"] = [given["cutoffs"][place]]
        if "values" in given:
            self.options["values"] = {"places": np.arange(n) % 9, "area": np.arange(n) / 7}
        if "along" in given:
            n_rows = graph.report.rows
            self.options["along"] = {"metres": np.arange(n_rows) % 11, "area": rng.random(n_rows)}
        if "start_costs" in given:
            self.options["start_costs"] = np.arange(numbers.size) % 50
        self.pairs = None
        if RESULT_KINDS[self.result].needs_pairs or "pairs" in given:
            self.pairs = tuple(map(graph.ids_at, pairs_of(graph, numbers.size)))

    def answer(self, graph: Graph, strategy: str = "auto") -> dict[str, str]:
        """Return the checksums of the result."""
        if self.result == "paths":
            found = kt.paths(graph, self.pairs, algorithm=self.algorithm, strategy=strategy)
            return checksums(found)
        way = "many" if self.pairs is None else "pairs"
        asked = [self.sources] if self.pairs is None else self.pairs
        search = getattr(kt, f"{self.algorithm}_{way}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdgeListWarning)  # streets that are parallel edges
            found = search(graph, *asked, result=self.result, strategy=strategy, **self.options)
        return checksums(found)


def choose_at_random(self: Choice, _current: str, left: int) -> tuple[str, int]:
    """Choose any strategy and any size for the next group, in place of ``Choice.next``."""
    draw = random.Random(left)
    name = draw.choice(sorted(self._groups))
    return name, draw.randint(1, min(self._groups[name], left))


def read(path: Path, part: str) -> Graph:
    """Return the graph of a part: its weights are a hash of the ends of each edge."""
    if part == "forward":
        table = parquet.read_table(path, columns=["src", "dst"])
        graph = graph_from_edges(table.filter(pc.less(table["src"], table["dst"])), edge_ids=True)
    else:
        graph = read_graph(path, directed=False, device="cpu", edge_ids=True)
    if part == "hops":
        return graph
    return replace(graph, weights=hashed(graph, np))


def compare_kinds(
    graph: Graph, algorithm: str, device: str, n_sources: int, names: list[str]
) -> Iterator[tuple[str, bool, str]]:
    """Yield the name of each kind, whether both devices give the same, and the seconds that they took."""
    there = graph.to(device)
    is_cpu = device == "cpu"
    if not is_cpu:
        use_pandas_without_cudf()
    for name in names:
        result, options, _ = KINDS[name]
        needs_weights = "start_costs" in options
        if algorithm not in RESULT_KINDS[result].algorithms or (
            needs_weights and algorithm == "bfs"
        ):
            continue
        case = Case(name, algorithm, n_sources, graph)
        began = time.perf_counter()
        with ExitStack() as stack:
            if is_cpu:
                stack.enter_context(mock.patch.object(Choice, "next", choose_at_random))
            found = case.answer(there)
        ended = time.perf_counter()
        plain = PLAIN_OF_NEAREST if case.result == "nearest" else PLAIN
        expected = case.answer(graph, plain[algorithm] if is_cpu else "auto")
        differing = [column for column, value in expected.items() if found.get(column) != value]
        said = f"{ended - began:.1f} s and {time.perf_counter() - ended:.1f} s"
        if differing:
            said += f"; {differing[0]}: {found.get(differing[0])}, not {expected[differing[0]]}"
        yield f"{algorithm}, {name}", not differing and found.keys() == expected.keys(), said


def compare_jobs(path: Path, device: str, n_sources: int) -> Iterator[tuple[str, bool, str]]:
    """Yield the same of jobs: on the CPU with all certificates, and on the device without any and with all."""
    graph = read_graph(path, directed=False, device="cpu")
    rng = np.random.default_rng(SEED)
    some = {"sources": graph.ids[np.unique(rng.integers(0, graph.n_vertices, n_sources))]}
    ends = rng.integers(0, graph.n_vertices, (2, min(PAIRS, 3 * n_sources)))
    asked = {
        "pairs": {},
        "summary": {**some, "result": "summary"},
        "distances": {**some, "result": "distances", "max_depth": 2},
        "betweenness": {**some, "result": "betweenness", "max_depth": 4},
    }
    shown = {"report": False, "directed": False, "algorithm": "bfs"}
    for name, options in asked.items():
        digests = {}
        began = time.perf_counter()
        for where, certify in (("cpu", "all"), ("cpu", "none"), (device, "none"), (device, "all")):
            with tempfile.TemporaryDirectory() as place:
                folder = Path(place)
                if name == "pairs":
                    table = dict(zip(("origin", "destination"), graph.ids[ends], strict=True))
                    parquet.write_table(pa.table(table), folder / "pairs.parquet")
                    options = {"pairs": str(folder / "pairs.parquet")}
                given = shown | options | {"device": where, "certify": certify}
                done = run_job(str(path), output=folder / "out", **given)
            sums = [part["checksum"] for part in done.manifest["parts"]]
            digests[where, certify] = done.digest or str(sums)
        is_same = len(set(digests.values())) == 1
        said = f"{time.perf_counter() - began:.1f} s"
        yield f"job of {name}", is_same, said if is_same else f"{said}; {digests}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m scripts.ci.groups", description=__doc__.splitlines()[0]
    )
    parser.add_argument("graph", help="a file of KEPLER_DATA, without its ending, or a path")
    parser.add_argument("--part", choices=PARTS, required=True)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--sources", type=int, default=SOURCES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    options = parser.parse_args(arguments)
    path = Path(options.graph)
    if path.suffix != ".parquet":
        path = DATA / f"{options.graph}.parquet"
    if options.part == "jobs":
        found = compare_jobs(path, options.device, options.sources)
    else:
        graph = read(path, options.part)
        algorithm = "bfs" if options.part == "hops" else "sssp"
        found = compare_kinds(graph, algorithm, options.device, options.sources, options.kinds)
    is_wrong = False
    for name, is_same, said in found:
        is_wrong |= not is_same
        verdict = "equal" if is_same else "DIFFERS"
        print(f"{path.stem}, {name}: {verdict}, {said}", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
