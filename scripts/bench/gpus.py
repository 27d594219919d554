"""Jobs on several GPUs: when their workers search first, what they gain over one GPU, and what parts of other sizes cost.

Parts are written to a folder, and to an object store of this machine where moto and obstore are installed.

Each call is a job, a process of its own; the times are those of its manifest, and ``whole`` is that of the process. The
results of all jobs of a work are equal. A job on all GPUs runs twice, since the first one may compile, and the others once.
On a CPU there are two workers: that shows that all jobs run, and says nothing of GPUs.

Works are in the order of their value, for a machine that is there for some minutes. ``--work "one GPU"`` takes some of them.
"""

from __future__ import annotations

import atexit
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kepler_traverse import cuda
from pipelines.scheduling.gpu_pool import visible_gpus
from scripts.make_graphs import rmat
from scripts.measure.cells import by_work
from scripts.measure.environment import ROOT
from scripts.measure.harness import run_command
from scripts.measure.work import OURS, Baseline, Call, Inputs, Repeats, Timed, Work

PACKAGES = ("pyarrow", "cupy-cuda13x", "cupy-cuda12x", "distributed")
ROADS = "USA-road-NE-topology"
RMAT = "R-MAT 20"
RMAT_SCALE = 20
ONE = "one GPU"
TWO = "two GPUs"
SEED = 1
MAX_WORKERS = 4
N_TARGETS = 1000
STARTED = 256
PARTED = 512  # sources per GPU
# Targets: seconds from the command to the first search, times the default, and times one GPU: from the first search to the
# last, and of the whole process where one GPU takes a minute.
START_SECONDS = {"warm": 4.0, "cold": 6.0}
PARTS_RATIO = 1.1
GAINS = {2: 1.9, 4: 3.6}
WHOLE_GAINS = {2: 1.7, 4: 3.0}
MINUTE = 55.0
ONCE = Repeats(most=1, seconds=0.0)
SIZES = {OURS: "", "--batch-size 32": "--batch-size 32", "--part-size 256MB": "--part-size 256MB"}
STORE_MODULES = ("moto", "obstore")
STORE_KEYS = {
    "AWS_ACCESS_KEY_ID": "measurement",
    "AWS_SECRET_ACCESS_KEY": "measurement",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}
STORE_STARTS = 60.0  # seconds until it must answer
# Folders of compiled code, which are empty for a cold start.
COMPILED = ("CUPY_CACHE_DIR", "CUDA_CACHE_PATH", "NUMBA_CACHE_DIR")


class Result(NamedTuple):
    """A job that runs on all GPUs and on one."""

    name: str  # of the work: the kind of result, and a word more where a kind has two works
    graph: str
    sources: int  # drawn at random
    options: str = ""  # with the names of ``Folder.tables`` in braces

    @property
    def kind(self) -> str:
        return self.name.partition(",")[0]


# Those first that matter most. One GPU takes 6 seconds or more, as far as is known.
RESULTS = (
    Result("levels", ROADS, 30_000),
    Result("flows", ROADS, 20_000),
    Result("betweenness", ROADS, 12_000),
    Result("targets", ROADS, 80_000, "--targets {targets}"),
    Result("opportunities", ROADS, 150_000, "--vertices {values} --values jobs --cutoffs 100,400"),
    Result("nearest_targets", ROADS, 1_000_000, "--targets {targets} --nearest-k 5"),
    Result("summary", RMAT, 400_000),
)
# One GPU takes 20 seconds or more, and a minute for the first one. Each process searches its first group half a second or a
# second longer than the next ones, which is much of a shorter run.
LONG_RESULTS = (
    Result("summary, for long", ROADS, 480_000),
    Result("levels, for long", ROADS, 120_000),
    Result("betweenness, for long", ROADS, 24_000),
    Result(
        "opportunities, for long",
        ROADS,
        300_000,
        "--vertices {values} --values jobs --cutoffs 100,400",
    ),
)


class Store:
    """An object store of this machine, in a process that ends with this one."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, **silent)
        atexit.register(self._process.kill)
        self.environment = STORE_KEYS | {"AWS_ENDPOINT_URL": self.url}

    def empty(self) -> None:
        """Forget all objects, and make the bucket."""
        ends = time.monotonic() + STORE_STARTS
        while True:
            try:
                self._ask("/moto-api/reset", "POST")
                break
            except urllib.error.URLError:  # it does not answer yet
                if time.monotonic() > ends:
                    raise
                time.sleep(0.2)
        self._ask("/bucket", "PUT")

    def manifest(self) -> dict:
        import obstore

        store = obstore.store.from_url(
            "s3://bucket",
            region=STORE_KEYS["AWS_REGION"],
            access_key_id=STORE_KEYS["AWS_ACCESS_KEY_ID"],
            secret_access_key=STORE_KEYS["AWS_SECRET_ACCESS_KEY"],
            endpoint=self.url,
            client_options={"allow_http": True},
        )
        return json.loads(bytes(obstore.get(store, "run/_manifest.json").bytes()))

    def _ask(self, path: str, method: str) -> None:
        request = urllib.request.Request(self.url + path, method=method)
        with urllib.request.urlopen(request):
            pass


class Folder:
    """A folder with what jobs read and write."""

    def __init__(self, inputs: Inputs) -> None:
        self.path = Path(tempfile.mkdtemp())
        self.device = inputs.device
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)
        self.roads = inputs.file(ROADS).resolve()

    @cached_property
    def rmat(self) -> Path:
        """The file of an R-MAT graph."""
        file = self.path / "rmat.parquet"
        src, dst = rmat(RMAT_SCALE, 16, SEED)
        pq.write_table(pa.table({"src": src, "dst": dst}), file)
        return file

    @cached_property
    def store(self) -> Store:
        return Store()

    @cached_property
    def tables(self) -> dict[str, Path]:
        """The files of targets, and of an attribute of all vertices of the road network."""
        edges = pq.read_table(self.roads, columns=["src", "dst"])
        ids = np.unique(np.concatenate([column.to_numpy() for column in edges.columns]))
        random = np.random.default_rng(SEED)
        targets = self.path / "targets.txt"
        values = self.path / "values.parquet"
        chosen = random.choice(ids, min(N_TARGETS, ids.size), replace=False)
        targets.write_text("\n".join(map(str, np.sort(chosen).tolist())) + "\n")
        pq.write_table(pa.table({"vertex": ids, "jobs": random.integers(0, 100, ids.size)}), values)
        return {"targets": targets, "values": values}

    def job(
        self,
        graph: str,
        words: str,
        workers: int = 0,
        is_cold: bool = False,
        to_store: bool = False,
    ) -> dict:
        """Run a job; return its manifest, with the seconds to the first search, and from there to the last."""
        output: Path | str = self.path / "out"
        environment = dict(os.environ)
        shutil.rmtree(output, ignore_errors=True)
        if to_store:
            self.store.empty()
            environment |= self.store.environment
            output = "s3://bucket/run"
        edges = self.roads if graph == ROADS else self.rmat
        command = [sys.executable, "-m", "pipelines.batch_sources", edges, "--undirected"]
        command += ["--device", self.device, "--graph-cache", self.path / "cache", "--no-report"]
        command += ["--output", output, *words.format(**self.tables).split()]
        if workers:
            command += ["--workers", workers]
        else:  # or else a run that is long enough would take all GPUs
            first, *_ = visible_gpus(1)
            environment["CUDA_VISIBLE_DEVICES"] = first
        with tempfile.TemporaryDirectory() as empty:
            caches = {name: f"{empty}/{name}" for name in COMPILED} if is_cold else {}
            began = time.time()
            run_command(command, cwd=ROOT, env=environment | caches)
            whole = time.time() - began
        if to_store:
            manifest = self.store.manifest()
        else:
            manifest = json.loads((self.path / "out" / "_manifest.json").read_text())
        first, last, waits = waits_of(manifest["parts"])
        times = {"to_first": first - began, "searching": last - first, "whole": whole}
        return manifest | times | {"waits": waits}


def waits_of(parts: list[dict]) -> tuple[float, float, dict[str, float]]:
    """Return when the first search begins and the last one ends, and what workers wait in between: how long after
    the first search the last worker begins (``skew``), and how long before the end the first one has no more work
    (``tail``).
    """
    begins: dict[str, float] = {}
    ends: dict[str, float] = {}
    for part in parts:
        worker = part["worker"]
        begins[worker] = min(part["started"], begins.get(worker, part["started"]))
        ends[worker] = max(part["ended"], ends.get(worker, part["ended"]))
    first = min(begins.values())
    last = max(ends.values())
    waits = {"skew": max(begins.values()) - first, "tail": last - min(ends.values())}
    return first, last, waits


@lru_cache(1)
def folder_of(inputs: Inputs) -> Folder:
    return Folder(inputs)


def asked(result: str, sources: int, words: str = "") -> str:
    return f"--result {result} --random-sources {sources} --seed {SEED} {words}"


def starting(folder: Folder, workers: int, is_cold: bool) -> Call:
    """Prepare the start of workers; the first one compiles, and stores the graph."""

    def run() -> Timed:
        made = folder.job(ROADS, asked("summary", STARTED), workers, is_cold)
        return Timed(made.get("digest"), made["to_first"])

    return run


def with_parts(
    folder: Folder, graph: str, sources: int, size: str, workers: int, to_store: bool
) -> Call:
    def run() -> Timed:
        made = folder.job(graph, asked("distances", sources, size), workers, to_store=to_store)
        return Timed(made.get("digest"), made["seconds"]["traverse"], {"parts": len(made["parts"])})

    return run


def searching(folder: Folder, result: Result, workers: int) -> Call:
    asks = asked(result.kind, result.sources, result.options)

    def run() -> Timed:
        made = folder.job(result.graph, asks, workers)
        return Timed(
            made.get("digest"), made["searching"], {"whole": made["whole"], **made["waits"]}
        )

    return run


def count_workers(device: str) -> int:
    if device == "cpu":
        return 2
    if cuda.cp:
        return min(MAX_WORKERS, cuda.cp.cuda.runtime.getDeviceCount())
    return 1


def works(inputs: Inputs) -> Iterator[Work]:
    workers = count_workers(inputs.device)
    given = {"case": folder_of, "repeats": ONCE}
    if workers > 1:
        yield from results(RESULTS, workers, given)
        for name in START_SECONDS:
            peers = {OURS: partial(starting, workers=workers, is_cold=name == "cold")}
            yield Work(
                name=f"start of {workers} workers, {name}", graph=ROADS, peers=peers, **given
            )
        yield from results(LONG_RESULTS, workers, given)
    has_store = all(map(importlib.util.find_spec, STORE_MODULES))
    for to_store in [False, True] if has_store else [False]:
        yield from parts(0, ONE, to_store, given)
        if workers > 1:
            yield from parts(workers, f"{workers} GPUs", to_store, given)


def results(chosen: Iterable[Result], workers: int, given: dict) -> Iterator[Work]:
    """Yield the works that search on all GPUs and on one."""
    for result in chosen:
        on_all = partial(searching, result=result, workers=workers)
        peers = {
            OURS: Baseline(prepare=on_all, facts={"workers": workers}),
            ONE: partial(searching, result=result, workers=0),
        }
        if workers > 2:
            peers[TWO] = partial(searching, result=result, workers=2)
        yield Work(name=result.name, graph=result.graph, size=result.sources, peers=peers, **given)


def parts(workers: int, on: str, to_store: bool, given: dict) -> Iterator[Work]:
    """Yield the works that write parts of several sizes."""
    if to_store:
        on += ", to a store"
    sources = PARTED * max(1, workers)
    settings = {"workers": workers, "to_store": to_store, "sources": sources}
    for graph in (ROADS, RMAT):
        call = partial(with_parts, graph=graph, **settings)
        yield Work(
            name=f"distances of {sources:,} sources, {on}",
            graph=graph,
            size=sources,
            peers={name: partial(call, size=size) for name, size in SIZES.items()},
            **given,
        )


def judged(rows: Iterable[dict]) -> dict[str, bool]:
    """Return for each figure of a log whether it meets its target."""
    found = {}
    for of in by_work(rows):
        ours = of[OURS]
        name = f"{ours['graph']}, {ours['work']}"
        least = ours["least"]
        if ours["work"].startswith("start"):
            found[name] = least <= START_SECONDS[ours["work"].rpartition(" ")[2]]
        elif ONE in of:
            times = {ours["workers"]: least}
            if TWO in of:
                times[2] = of[TWO]["least"]
            for count, seconds in times.items():
                gain = of[ONE]["least"] / seconds
                found[f"{name}, {count} GPUs"] = gain >= GAINS.get(count, 0.95 * count)
            whole = of[ONE]["whole"]
            if ours["workers"] in WHOLE_GAINS and whole >= MINUTE:
                gain = whole / ours["whole"]
                found[f"{name}, whole job"] = gain >= WHOLE_GAINS[ours["workers"]]
        else:
            ratios = {peer: row["least"] / least for peer, row in of.items() if peer != OURS}
            found |= {f"{name}, {peer}": ratio <= PARTS_RATIO for peer, ratio in ratios.items()}
    return found
