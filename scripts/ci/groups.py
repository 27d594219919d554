"""Compare two devices by groups of many sources: ``python -m scripts.ci.groups GRAPH --part PART``.

GRAPH is a Parquet file of edges in the folder of KEPLER_DATA. PART is hops or weights: each result kind from many sources,
with target lists of uneven length; or jobs: their digests without a certificate and with all of them. Each result of a GPU
is compared with that of the CPU bit by bit, by checksums of its columns. It prints a line per comparison, and ends with 1 if
some differ.

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
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow
from pyarrow import parquet

from kepler_traverse import Graph, read_graph
from kepler_traverse._arrays import Array, namespace, to_host
from kepler_traverse.auto.choice import Choice
from kepler_traverse.bfs import REGISTRY as BFS
from kepler_traverse.kinds.pairs import pair_table
from kepler_traverse.kinds.question import Question, Targets, check_options
from kepler_traverse.kinds.records import joined, records_of_group
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from kepler_traverse.multi_source.outputs import ResultForm, loads_frame
from kepler_traverse.search.frames import Column, FrameKind
from kepler_traverse.sssp import REGISTRY as SSSP
from pipelines import run_job
from scripts.papers.graphs import hashed

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("KEPLER_DATA", ROOT.parent / "shared" / "data"))
SOURCES = 2500
PAIRS = 6000
LONGEST = 40  # targets of one source at most
SEED = 11
PARTS = ("hops", "weights", "jobs")
# By kind, with options, and the limit of hops and of weights; None for none. Rows per vertex are asked for at targets.
KINDS: dict[str, tuple[str, dict[str, Any], tuple[Any, Any]]] = {
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
    "isochrones": ("isochrones", {"cutoffs": (2, 60)}, (None, None)),
    "flows": ("flows", {"targets": 500}, (None, 120)),
    "betweenness": ("betweenness", {}, (4, 120)),
    "betweenness of edges": ("betweenness", {"of": "edges", "targets": 500}, (4, 120)),
    "pairs": ("pairs", {}, (None, None)),
    "flows of pairs": ("flows", {"pairs": True}, (None, 120)),
    "paths": ("paths", {}, (None, 120)),
}


def checksum(values: Array) -> str:
    """Return the type, the shape and a checksum of an array."""
    values = np.ascontiguousarray(to_host(values))
    return f"{values.dtype} {values.shape} {hashlib.sha256(values.reshape(-1).view(np.uint8).data).hexdigest()[:12]}"


def make_host_columns(columns: dict[str, Column]) -> dict[str, np.ndarray]:
    """Return columns as arrays in host memory, and which values are missing."""
    arrays = {}
    for name, column in columns.items():
        values = to_host(column.values)
        missing = np.zeros(len(values), bool) if column.is_null is None else to_host(column.is_null)
        arrays[name] = np.where(missing, values.dtype.type(0), values)
        arrays[f"{name} is missing"] = missing
    return arrays


def join_host_columns(frames: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([frame[name] for frame in frames]) for name in frames[0]}


# which need no library for frames of a GPU
HOST_FRAMES = FrameKind(make_host_columns, join_host_columns)


def pairs_of(graph: Graph, n_sources: int) -> tuple[np.ndarray, np.ndarray]:
    """Return origins and destinations: as many for a source as a power law says, and none for some."""
    rng = np.random.default_rng(SEED)
    sizes = np.minimum(rng.pareto(1.0, n_sources).astype(np.int64), LONGEST)
    origins = np.repeat(rng.integers(0, graph.n_vertices, n_sources), sizes)
    return origins, rng.integers(0, graph.n_vertices, origins.size)


class Case:
    """What is asked of a graph on each device."""

    def __init__(self, name: str, algorithm: str, n_sources: int, n_vertices: int):
        self.result, self._given, limits = KINDS[name]
        self.algorithm = algorithm
        place = int(algorithm == "sssp")
        self._limit = limits[place]
        rng = np.random.default_rng(SEED)
        self.sources = np.unique(rng.integers(0, n_vertices, n_sources))
        n_targets = min(self._given.get("targets", 0), n_vertices // 2)
        self.targets = np.unique(rng.integers(0, n_vertices, n_targets)) if n_targets else None
        self._options = {
            name: value for name, value in self._given.items() if name not in ("targets", "pairs")
        }
        if "cutoffs" in self._options:
            self._options["cutoffs"] = [self._options["cutoffs"][place]]
        if "values" in self._options:
            self._options["values"] = {
                "places": np.arange(n_vertices) % 9,
                "area": np.arange(n_vertices) / 7,
            }
        self.has_pairs = RESULT_KINDS[self.result].needs_pairs or "pairs" in self._given

    def answer(
        self, graph: Graph, strategy: str = "auto", memory: int | None = None
    ) -> dict[str, str]:
        """Return the checksums of the result."""
        kind = RESULT_KINDS[self.result]
        targets = self.targets
        registry = BFS if self.algorithm == "bfs" else SSSP
        table = pair_table(*pairs_of(graph, self.sources.size)) if self.has_pairs else None
        if self.result == "paths":
            options: Any = kind.options_class(edges=False)
        elif self.result == "pairs":
            options = kind.options_class()
        else:
            given = (
                {"sources": self.sources, "targets": targets} if table is None else {"pairs": table}
            )
            options = check_options(kind, graph, self.algorithm, self._options, **given)
        of_lists: dict[str, Any] = {}
        if table is not None:
            of_lists = {
                "has_target_lists": True,
                "targets_per_source": 3.0,
                "sample": table.sample(),
            }
        plan = registry.plan_multi_source(
            graph,
            n_sources=self.sources.size,
            result=self.result,
            strategy=strategy,
            limit=self._limit if options.limit is None else options.limit,
            targets=None
            if targets is None
            else graph.ids_at(namespace(graph.offsets).asarray(targets)),
            forms=kind.reads,
            memory=memory,
            **(of_lists or options.of_query(targets)),
        )
        question = Question(
            kind=kind,
            algorithm=self.algorithm,
            options=options,
            targets=None if targets is None else Targets(None, targets),
            pairs=table,
        )
        asked = question.asked(graph, plan.query)
        if table is None:
            form = ResultForm(plan, question, HOST_FRAMES)
            made = form.make(
                plan.iter_groups(self.sources), self.sources, np.arange(self.sources.size)
            )
        elif kind.make_loads is not None:
            made = loads_frame(
                kind.make_loads(asked), plan.iter_groups(table.sources, table.lists), HOST_FRAMES
            )
        else:
            records = joined(
                [
                    records_of_group(asked, group)
                    for group in plan.iter_groups(table.sources, table.lists)
                ]
            )
            order = np.argsort(to_host(records.values["pair"]), kind="stable")
            made = {name: to_host(values)[order] for name, values in records.values.items()}
        columns = made if isinstance(made, dict) else {"array": made}
        return {name: checksum(values) for name, values in columns.items()}


def choose_at_random(self: Choice, _current: str, left: int) -> tuple[str, int]:
    """Choose any strategy and any size for the next group, in place of ``Choice.next``."""
    draw = random.Random(left)
    name = draw.choice(sorted(self._groups))
    return name, draw.randint(1, min(self._groups[name], left))


def compare_kinds(
    graph: Graph, algorithm: str, device: str, n_sources: int, names: list[str]
) -> Iterator[tuple[str, bool, str]]:
    """Yield the name of each kind, whether both devices give the same, and the seconds that they took."""
    there = graph.to(device)
    reference = "one_at_a_time" if device == "cpu" else "auto"
    for name in names:
        if algorithm not in RESULT_KINDS[KINDS[name][0]].algorithms:
            continue
        case = Case(name, algorithm, n_sources, graph.n_vertices)
        began = time.perf_counter()
        with (
            mock.patch.object(Choice, "next", choose_at_random)
            if device == "cpu"
            else nullcontext()
        ):
            found = case.answer(there)
        ended = time.perf_counter()
        expected = case.answer(graph, reference)
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
    asked: dict[str, dict[str, Any]] = {
        "pairs": {},
        "summary": {**some, "result": "summary"},
        "distances": {**some, "result": "distances", "max_depth": 2},
        "betweenness": {**some, "result": "betweenness", "max_depth": 4},
    }
    for name, options in asked.items():
        digests = {}
        began = time.perf_counter()
        for where, certify in (("cpu", "all"), ("cpu", "none"), (device, "none"), (device, "all")):
            with tempfile.TemporaryDirectory() as folder:
                if name == "pairs":
                    table = {"origin": graph.ids[ends[0]], "destination": graph.ids[ends[1]]}
                    parquet.write_table(pyarrow.table(table), Path(folder) / "pairs.parquet")
                    options = {"pairs": str(Path(folder) / "pairs.parquet")}
                shown = {
                    "device": where,
                    "certify": certify,
                    "report": False,
                    "directed": False,
                    "algorithm": "bfs",
                }
                done = run_job(str(path), output=Path(folder) / "out", **shown, **options)
                digests[where, certify] = done.digest or str(
                    [part["checksum"] for part in done.manifest["parts"]]
                )
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
    path = (
        Path(options.graph)
        if options.graph.endswith(".parquet")
        else DATA / f"{options.graph}.parquet"
    )
    if options.part == "jobs":
        found = compare_jobs(path, options.device, options.sources)
    else:
        graph = read_graph(path, directed=False, device="cpu")
        algorithm = "bfs"
        if options.part == "weights":
            algorithm = "sssp"
            graph = replace(graph, weights=hashed(graph, np))
        found = compare_kinds(graph, algorithm, options.device, options.sources, options.kinds)
    is_wrong = False
    for name, is_same, said in found:
        is_wrong |= not is_same
        print(f"{path.stem}, {name}: {'equal' if is_same else 'DIFFERS'}, {said}", flush=True)
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
