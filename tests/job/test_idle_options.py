"""Every option has an effect, or is refused by name.

Every option is added to every one of many command lines. What a run would do is then compared with and without it: the
graph, the sources, the plan, its sizes, and what the cluster, the window and the workers are given.
"""

import contextlib
from dataclasses import asdict
from types import SimpleNamespace

import pytest

from kepler_traverse.errors import InputError
from pipelines.cli.command_line import parse_flags
from pipelines.cli.options import COLUMN_ROLES, OPTIONS, SOURCE_CHOICES, TLS, UsageError
from pipelines.cli.settings import read_settings
from pipelines.cli.shards import parse_shard
from pipelines.monitoring import console
from pipelines.output.store import Store
from pipelines.run import driver, engine, prepare, sizing
from pipelines.run.batch_run import BatchRun
from pipelines.run.question import make_identity
from pipelines.scheduling import cluster, existing_cluster
from pipelines.scheduling.existing_cluster import WorkerMemory
from tests.support import tiers

EDGES = (
    "src,dst,weight,a,b,c\n1,2,3,2,1,2.5\n2,3,1,3,2,1.5\n3,1,9,1,3,1\n3,4,2,4,3,1\n4,1,1,4,1,7\n"
)

# Values other than the default that these edges can be read and searched with, or are refused with.
VALUES = {
    "algorithm": "sssp", "engine": "cugraph-mg", "strategy": "one_at_a_time", "max_depth": "1", "cutoff": "2",
    "result": "summary", "targets": "2,3", "sources": "2,3", "random_sources": "2", "all_sources": None,
    "pairs": "{folder}/trips.csv", "seed": "5", "directed": "--undirected", "format": "snap", "header": "no",
    "delimiter": ";", "id_type": "string", "weight_type": "float64", "batch_size": "3", "part_size": "1",
    "partition_by": "kind", "workers": "5", "gpu_memory": "7GB", "scheduler_address": "tcp://127.0.0.1:1",
    "scheduler_file": "{folder}/scheduler.json", "worker_timeout": "7", "batch_deadline": "7",
    "dashboard_address": "127.0.0.1:8787", "certify": "none", "direction": "in", "vertices": "{folder}/more.txt",
    "where": "b != 3", "only_vertices": "{folder}/some.txt", "cutoffs": "1,3", "values": "b", "decay": "linear:2",
    "of": "vertices", "through": "{folder}/two.csv", "endpoints": None, "normalized": "--no-normalized", "samples": "3",
    "epsilon": "0.95", "delta": "0.3", "nearest_k": "2", "along": "b,c", "unconnected": "largest", "unreached": "null",
    "sort": "distance", "columns": "src=a,dst=b", "shard": "1/2", "notice": "7", "price_requests": "0.005",
    "price_gb": "0.02", "closed": "{folder}/some.txt",
}  # fmt: skip
COLUMNS = {
    **{"src": "a,dst=b", "dst": "b,src=a", "weight": "c", "oneway": "c"},
    **{"reverse_weight": "b,weight=c"},
    **{"source": "stop", "limit": "kind", "group": "kind", "source_weight": "kind"},
    "start_cost": "kind",
    **{
        "target": "stop",
        "origin": "a,destination=b",
        "destination": "b,origin=a",
        "volume": "a",
        "target_weight": "kind",
    },
}
# What they do is seen at the end of a run, or on the terminal, or with a GPU alone; other tests look there.
AT_THE_END = {
    "output",
    "graph_cache",
    "hierarchy",
    "resume",
    "report",
    "plan",
    "json",
    "verbose",
    "debug",
    "device",
    *TLS,
}
AT_THE_END |= {"geometry", "keep_columns", "build_memory"}
AT_THE_END.add("largest_component")  # these edges have one component
# Options and their values; each role of a column is one.
WORDS = {f"--{key}".replace("_", "-"): value for key, value in VALUES.items()}
WORDS |= {f"--columns {role}": f"{role}={value}" for role, value in COLUMNS.items()}
WORDS |= {"--sources FILE": "{folder}/ids.txt", "--targets FILE": "{folder}/ids.txt"}

BASES = {
    **{
        f"bfs {result}": ["--result", result]
        for result in ("distances", "predecessors", "summary", "levels", "reachable")
    },
    **{
        f"sssp {result}": ["--algorithm", "sssp", "--result", result]
        for result in ("distances", "summary", "nearest")
    },
    "bfs nearest": ["--result", "nearest"],
    "flows": ["--result", "flows"],
    "betweenness of a sample": [
        "--result",
        "betweenness",
        "--all-sources",
        "--samples",
        "3",
        "--of",
        "vertices",
    ],
    "opportunities": [
        *(
            "--result",
            "opportunities",
            "--cutoffs",
            "1,2",
            "--values",
            "a",
            "--vertices",
            "{folder}/table.csv",
        )
    ],
    "opportunities of a table": [
        *(
            "--result",
            "opportunities",
            "--cutoffs",
            "1,2",
            "--values",
            "a",
            "--vertices",
            "{folder}/table.csv",
        ),
        *("--sources", "{folder}/weights.csv", "--columns", "source=stop"),
    ],
    "within": ["--algorithm", "sssp", "--result", "within", "--cutoffs", "1,2"],
    "isochrones": ["--result", "isochrones", "--cutoffs", "1,2"],
    "paths": ["--pairs", "{folder}/trips.csv", "--result", "paths"],
    "extremes": ["--result", "extremes"],
    "sssp targets": ["--algorithm", "sssp", "--result", "targets", "--targets", "1,4"],
    "limits of a table": ["--sources", "{folder}/limits.csv", "--columns", "source=stop"],
    "nearest of tables": [
        *(
            "--result",
            "nearest",
            "--nearest-k",
            "1",
            "--sources",
            "{folder}/stops.csv",
            "--columns",
            "source=stop",
        )
    ],
    "a cluster that exists": ["--scheduler-address", "tcp://127.0.0.1:2"],
    "nearest on a cluster that exists": [
        "--scheduler-address",
        "tcp://127.0.0.1:2",
        "--result",
        "nearest",
    ],
    "sources drawn": ["--random-sources", "3"],
    "all sources": ["--all-sources"],
    "sources of a file": ["--sources", "{folder}/two.txt"],
    "on the CPU": ["--device", "cpu"],
    "cugraph-mg": ["--engine", "cugraph-mg"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("idle")
    (path / "edges.csv").write_text(EDGES)
    (path / "ids.txt").write_text("3\n4\n")
    (path / "more.txt").write_text("99\n")
    (path / "some.txt").write_text("1\n2\n3\n")
    (path / "table.csv").write_text("vertex,a,b\n1,2,3\n9,8,7\n")
    (path / "two.txt").write_text("1\n2\n")
    (path / "two.csv").write_text("src,dst\n1,2\n3,4\n")
    (path / "weights.csv").write_text("stop,kind\n1,2\n2,3\n")
    (path / "limits.csv").write_text("stop,kind\n1,1\n2,0\n3,1\n")
    (path / "stops.csv").write_text("stop,kind\n1,a\n2,b\n3,a\n")
    (path / "trips.csv").write_text("origin,destination,a,b\n1,3,4,1\n2,4,3,3\n")
    (path / "scheduler.json").write_text("{}")
    return path


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch):
    """Replace the start of clusters by a record of the call; no GPU is present."""
    monkeypatch.delenv("SCHEDULER_FILE", raising=False)
    monkeypatch.setattr(prepare, "CPU_COUNT", 4)
    monkeypatch.setattr(sizing, "CPU_COUNT", 4)
    memory = WorkerMemory(host="a", limit=0, usable=0, available=2**40)
    monkeypatch.setattr(existing_cluster, "survey", lambda *_: dict.fromkeys("abc", memory))
    monkeypatch.setattr(engine, "version_here", lambda: "")


class Client:
    """Takes notes of how it is made, and has workers."""

    made: list

    def __init__(self, *_, **more):
        self.made.append(("client", {key: str(value) for key, value in more.items()}))

    def submit(self, *_, **__):
        return None

    def nthreads(self):
        return {"a": 1}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def what_a_run_does(argv, folder, monkeypatch):
    """Everything that the settings decide before a worker begins."""
    settings = read_settings(*parse_flags(argv))
    if settings.engine == "cugraph-mg":  # decided by the settings alone, on a machine without GPUs
        return asdict(settings)
    kepler = engine.KeplerEngine(settings)
    prepared = kepler.prepare(None)
    prepared.sizing = sizing = kepler.size(prepared, settings.batch_size)
    identity = make_identity(
        prepared.request, prepared.graph.fingerprint, prepared.names, sizing.batch_size
    )
    prepared.choice = kepler.choose(prepared)
    manifest = driver._new_manifest(settings, prepared)
    result_folder = SimpleNamespace(
        path=folder, graph=folder, store=Store(folder), manifest=manifest
    )
    the_job = BatchRun(settings, prepared, result_folder, "", parse_shard(settings.shard, {}))
    window = kepler.make_window(the_job, None)
    made = []
    monkeypatch.setattr(Client, "made", made, raising=False)
    monkeypatch.setattr(cluster, "Client", Client)
    monkeypatch.setattr(
        cluster, "_cluster", lambda *how: made.append(how) or contextlib.nullcontext()
    )
    with cluster.cluster_for(settings, "cpu", sizing.workers):
        pass
    graph = prepared.graph
    request = asdict(prepared.request) | {"memory": None}  # free memory changes from call to call
    request["options"] = prepared.request.options  # they compare their digests
    request["kind"] = prepared.request.kind.name
    request["pairs"] = None  # arrays; the identity has their digest
    request["targets"] = None
    return [
        graph.fingerprint, graph.has_string_ids, None if graph.weights is None else str(graph.weights.dtype),
        request, prepared.numbers.tolist(), prepared.plan.strategy.name, identity,
        sizing.workers, sizing.threads, sizing.batch_size, sizing.per_part,
        window._deadline, window._notice_seconds, window._monitor._patience, made,
        sorted(the_job.batches), console.estimate_of_plan(prepared),
        prepared.layout(sizing.batch_size).partitions,
    ]  # fmt: skip


def outcome(argv, folder, monkeypatch):
    try:
        return what_a_run_does(argv, folder, monkeypatch)
    except (UsageError, InputError) as error:
        return str(error)


def test_every_option_has_a_value_here():
    assert {option.key for option in OPTIONS} == set(VALUES) | AT_THE_END
    assert COLUMNS.keys() == COLUMN_ROLES.keys()


@pytest.mark.parametrize("base", tiers.few(BASES, 10))
def test_every_option_has_an_effect_or_is_refused(base, folder, monkeypatch):
    argv = [
        str(folder / "edges.csv"),
        "--output",
        str(folder / "out"),
        *(word.format(folder=folder) for word in BASES[base]),
    ]
    if (
        not any(f"--{key}".replace("_", "-") in argv for key in SOURCE_CHOICES)
        and base != "extremes"
    ):
        argv += ["--sources", "1,2"]
    without = outcome(argv, folder, monkeypatch)
    assert not isinstance(without, str), without
    assert outcome(argv, folder, monkeypatch) == without, (
        "nothing but the option may make a difference"
    )
    checked = 0
    for name, value in WORDS.items():
        flag = value if value and value.startswith("--") else name.partition(" ")[0]
        if flag in argv and (flag != "--columns" or value.partition("=")[0] in " ".join(argv)):
            continue
        words = [flag] if value is None or flag == value else [flag, value.format(folder=folder)]
        with_it = outcome([*argv, *words], folder, monkeypatch)
        assert with_it != without, f"{' '.join(words)} has no effect, and nothing says so"
        checked += 1
    assert checked > len(VALUES) // 2
