"""Recorded behaviour: results, manifests, verification and messages are what they were.

Every result kind, in hops and by weights, on four small graphs: by the library on a CPU and on the host harness, by the job
in one process and with two workers, resumed and verified. Where two ways must agree there is one record for both.

``KEPLER_RECORD=1 python -m pytest tests/frozen`` writes ``recorded.json`` again. That is allowed only in a commit that
changes the behaviour on purpose and has a line in the changelog; its diff shows each change. A commit that moves or rewrites
code leaves the file as it is. ``earlier_output`` is an output folder of an earlier version and is never written again.
"""

import dataclasses
import hashlib
import itertools
import json
import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import kepler_traverse
from kepler_traverse import KeplerError, OutputError, graph_from_edges
from kepler_traverse.extremes import Extremes, extremes, top_closeness
from pipelines import run_job
from pipelines.batch_sources import main
from pipelines.cli.options import OPTIONS
from pipelines.output.part_reader import open_part
from pipelines.verify import prove_output
from tests.frozen.cases import CALLS, JOBS, WRONG_CALLS, WRONG_JOBS, attributes, cases, write
from tests.support import tiers
from tests.support.clusters import threads_of_this_process
from tests.support.devices import frames_on_pandas, host, on_a_device, running
from tests.support.processes import ROOT

HERE = Path(__file__).parent
RECORD, EARLIER = HERE / "recorded.json", HERE / "earlier_output"
RECORDING = bool(os.environ.get("KEPLER_RECORD"))
ALGORITHMS = ("bfs", "sssp")
LIMITS = {"bfs": "max_depth", "sssp": "cutoff"}
DEFAULTS = {option.key: option.default for option in OPTIONS}
# settings that the tests choose
SAME = ("edges", "output", "report", "device", "resume", "scheduler_address")
# What differs from run to run or from machine to machine; the manifest has it, and nothing here says what it is.
VOLATILE = (
    "choice",
    "device",
    "memory",
    "seconds",
    "settings",
    "strategy",
    "tables",
    "versions",
    "workers",
    "parts",
)


def as_recorded(section, found):
    """Compare with a section of the record, or write it."""
    if RECORDING:
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        RECORD.write_text(in_lines(record | {section: found}) + "\n", encoding="utf-8")
    record = json.loads(RECORD.read_text())[section]
    assert_equal(section, record, found)


def in_lines(value, depth=0):
    """JSON with a line per fact: dictionaries within the facts of a case are on its line."""
    if depth == 3 or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    lines = (
        f"{' ' * depth} {json.dumps(key, ensure_ascii=False)}: {in_lines(value[key], depth + 1)}"
        for key in sorted(value)
    )
    return "{\n" + ",\n".join(lines) + f"\n{' ' * depth}}}"


def as_called(found):
    """Compare with the record of the same calls, of which some may not be made."""
    record = json.loads(RECORD.read_text())["calls"]
    assert_equal(
        "calls",
        {name: {call: record[name][call] for call in calls} for name, calls in found.items()},
        found,
    )


def assert_equal(what, before, found):
    differing = list(differences(what, before, json.loads(json.dumps(found))))
    assert not differing, f"{len(differing)} differences from recorded.json:\n" + "\n".join(
        differing[:20]
    )


def differences(where, before, now):
    if isinstance(before, dict) and isinstance(now, dict):
        for key in before | now:
            yield from differences(f"{where} / {key}", before.get(key), now.get(key))
    elif before != now:
        yield f"{where}: was {before!r} and is {now!r}"


def values_of(column):
    """The values of a column of a frame or of a table as Python has them, with None for null."""
    values = column.astype(object).tolist() if isinstance(column, pd.Series) else column.to_pylist()
    return [None if value is pd.NA or value != value else value for value in values]


def hashed(values):
    return hashlib.sha256(json.dumps(values, default=bytes.hex).encode()).hexdigest()[:12]


def described_rows(names, kinds, columns):
    rows = list(zip(*columns, strict=True))
    shown = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    return f"{len(rows)} rows of {shown}" + (
        f": {rows[0]} ... {rows[-1]} #{hashed(rows)}" if rows else ""
    )


def described(found):
    """One line about a result; results with the same line are equal."""
    if isinstance(found, pd.DataFrame):
        kinds = [
            "text" if found[name].dtype.kind == "O" else str(found[name].dtype) for name in found
        ]
        return described_rows(found.columns, kinds, [values_of(found[name]) for name in found])
    if isinstance(found, pa.Table):
        return described_rows(
            found.column_names, found.schema.types, [values_of(column) for column in found.columns]
        )
    if isinstance(found, np.ndarray):
        return f"{found.dtype} of {found.shape} #{hashed(host(found).tolist())}"
    if isinstance(found, dict):
        return found
    if isinstance(found, Extremes):
        # in groups of any size
        names = [each.name for each in dataclasses.fields(found) if each.name != "searches"]
        return ", ".join(f"{name} {host(getattr(found, name))}" for name in names)
    return str(found)


def outcome(make, *given, **named):
    """Words about what a function returns or raises."""
    try:
        return described(make(*given, **named))
    except (KeplerError, TypeError) as error:
        return without_place(f"{type(error).__name__}: {error}")


def without_place(text):
    """A message without the places of files and checkout, and without what Python's argparse lists."""
    here = text.replace(f"{Path.cwd()}{os.sep}", "").replace(str(ROOT), "CHECKOUT")
    return re.sub(r" \(choose from .*?\)", "", here.strip())


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The folder of all files, and case and graph by name."""
    root = tmp_path_factory.mktemp("frozen")
    return SimpleNamespace(
        root=root, graphs={name: (case, write(case, root / name)) for name, case in cases().items()}
    )


def names_for(case, graph, algorithm):
    """What the texts of calls and jobs may name."""

    def limited(name):
        function = getattr(kepler_traverse, algorithm + name)
        return lambda *given, limit=None, **more: function(
            *given, **more, **in_words(algorithm, limit=limit)
        )

    weighs = algorithm == "sssp"
    origins, destinations = case.pairs
    return {
        **{
            "one": limited(""),
            "many": limited("_many"),
            "pairs": limited("_pairs"),
            "algorithm": algorithm,
            "Path": Path,
        },
        **{"extremes": extremes, "top_closeness": top_closeness},
        **{"paths": kepler_traverse.paths, "certify": kepler_traverse.certify},
        **{
            "g": graph,
            "s": case.sources,
            "t": case.targets,
            "o": origins,
            "d": destinations,
            "edges": case.edges,
        },
        **{"most": case.limit if weighs else 3, "limits": [2, 0, 5, 1]},
        **{
            "cuts": [1, int(case.limit), 40] if weighs else [0, 1, 3],
            "values": attributes(graph)[["vertex", "jobs", "area"]][1:],
        },
    }


def in_words(algorithm, limit=None, **options):
    """Options with the name that an algorithm has for its limit."""
    return options | ({} if limit is None else {LIMITS[algorithm]: limit})


def searched(data, names, change=lambda call: call, device="cpu"):
    """What the calls of ``CALLS`` return, by algorithm and graph; ``change`` returns the text to run, or None."""
    found = {}
    for name in names:
        case, graph = data.graphs[name]
        there = graph if device == "cpu" else graph.to(device)
        for algorithm in ALGORITHMS:
            scope = names_for(case, graph, algorithm) | {"g": there, "joined": joined}
            texts = {call: change(call) for call in CALLS}
            found[f"{algorithm} {name}"] = {
                call: outcome(eval, text, scope) for call, text in texts.items() if text is not None
            }
    return found


def joined(groups):
    """The groups of a stream as one result."""
    if isinstance(groups, pa.RecordBatchReader):
        return groups.read_all()
    groups = list(groups)
    return (
        np.concatenate(groups)
        if isinstance(groups[0], np.ndarray)
        else pd.concat(groups, ignore_index=True)
    )


def test_calls_return_what_is_recorded(data):
    as_recorded("calls", searched(data, data.graphs))


def test_streams_joined_are_the_calls(data):
    together = ("nearest", "flows", "betweenness")
    many = [
        call
        for call in CALLS
        if call.startswith("many(") and not any(name in call for name in together)
    ]
    streamed = [call for call in many if "[]" not in call]

    def frames(call):
        return f"joined({call[:-1]}, stream=True))" if call in streamed else None

    def batches(call):
        return f"joined({call[:-1]}, stream='arrow'))" if call in streamed else None

    # Each graph as frames or as record batches; with ``--all`` each as frames.
    as_called(searched(data, data.graphs if tiers.ALL else ["tolls", "islands"], frames))
    as_recorded("calls as record batches", searched(data, ["streets", "pages"], batches))


@on_a_device
def test_calls_on_a_gpu(data):
    with running({"block": 64}), frames_on_pandas():
        as_called(searched(data, data.graphs if tiers.ALL else ["streets"], device="cuda"))


def test_wrong_calls_are_refused(data):
    scope = vars(kepler_traverse) | {name: graph for name, (_, graph) in data.graphs.items()}
    scope |= {name: getattr(kepler_traverse, name) for name in kepler_traverse.__all__}
    scope |= {
        "extremes": extremes,
        "top_closeness": top_closeness,
        "ones": np.ones(data.graphs["streets"][1].n_vertices),
    }
    triangle = np.array([1, 2, 3]), np.array([2, 3, 1])
    scope |= {
        "bare": graph_from_edges(*triangle),
        "cycle": graph_from_edges(*triangle, np.array([1, 1, -3])),
    }
    as_recorded("wrong calls", {call: outcome(eval, call, scope) for call in WRONG_CALLS})


def jobs(data):
    """Each job with the folder of its graph and its options."""
    for line in JOBS:
        names, _, text = line.partition(": ")
        for name, algorithm in zip(names.split(), ALGORITHMS, strict=True):
            case, graph = data.graphs[name]
            scope = names_for(case, graph, algorithm) | {"in_words": in_words}
            options = {"batch_size": 2, "algorithm": algorithm, "directed": case.directed}
            options |= case.options if algorithm == "sssp" else {}
            yield (
                f"{algorithm} {name}: {text}",
                data.root / name,
                options | eval(f"in_words(algorithm, {text})", scope),
            )


def done(options, output, **more):
    return run_job(
        "edges.parquet", output=output, **{"device": "cpu", "report": False} | options | more
    )


def described_manifest(manifest):
    """What a manifest says, without what differs from run to run."""
    settings = {
        key: value for key, value in manifest["settings"].items() if value != DEFAULTS.get(key)
    }
    for key in SAME:
        settings.pop(key, None)
    parts = {
        part["file"]: f"{part['rows']} rows of {part['sources']} #{part['checksum']}"
        for part in manifest["parts"]
    }
    graph = manifest["graph"] | {
        "built": {key: value for key, value in manifest["graph"]["built"].items() if value}
    }
    kept = {key: value for key, value in manifest.items() if key not in VOLATILE}
    return kept | {"settings": settings, "parts": parts, "graph": graph}


def described_folder(folder):
    """What an output folder holds."""
    found = described_manifest(json.loads((folder / "_manifest.json").read_text()))
    parts = sorted(folder.glob("part-*"))
    names = [path.name for path in sorted(folder.iterdir()) if path not in parts]
    with open_part(parts[0]) as part:
        found["first part"] = described(
            pa.Table.from_batches(next(iter(part.tables(None))).to_batches())
        )
    tables = {
        name: described(pq.read_table(folder / name))
        for name in names
        if name.endswith((".pq", ".parquet"))
    }
    return found | tables | {"files": ", ".join(names)}


def described_job(options, *checks):
    """What a job writes, and what is found by each of ``checks(options, folder)``."""
    here = Path("here")
    try:
        done(options, here)
        found = described_folder(here)
        for check in checks:
            found |= check(options, here)
        return found
    finally:
        shutil.rmtree(here, ignore_errors=True)


def resumed(options, folder):
    """Compute one part again; the folder is then as it was."""
    before = described_folder(folder)
    sorted(folder.glob("part-*"))[-1].unlink()
    computed = done(options, folder, resume=True).computed
    return {
        "resumed": "\n".join(differences("", before, described_folder(folder))) or "the same",
        "computed again": computed,
    }


def verified(_, folder):
    return {"verified": str(prove_output(folder, ["edges.parquet"], "cpu").as_dict())}


def test_jobs_write_what_is_recorded(data, monkeypatch):
    """The first job of each kind, which is resumed and verified as well; with ``--all`` every job."""
    found, known = {}, set()
    for name, folder, options in jobs(data):
        kind = options["algorithm"], options.get("result", "pairs")
        if tiers.ALL or RECORDING or kind not in known:
            known.add(kind)
            monkeypatch.chdir(folder)  # paths in settings and messages are then those of no machine
            found[name] = outcome(described_job, options, resumed, verified)
    as_recorded("jobs", found) if RECORDING else as_far_as_found(found)


def as_far_as_found(found):
    """Compare what was found of some jobs with their records."""
    record = json.loads(RECORD.read_text())["jobs"]
    facts = {name: record[name] for name in found}
    for name, said in found.items():
        if isinstance(said, dict) and isinstance(facts[name], dict):
            facts[name] = {key: facts[name].get(key) for key in said}
    assert_equal("jobs", facts, found)


def test_jobs_of_two_workers(data, monkeypatch):
    with (
        threads_of_this_process(n_workers=2, memory_limit=0) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        as_in_one_process(data, monkeypatch, {"client": client})


@on_a_device
def test_jobs_on_a_gpu(data, monkeypatch):
    with running({"block": 64}):
        as_in_one_process(data, monkeypatch, {"device": "cuda"})


# Other tests run these kinds by two workers: test_worker_failures.py the first, test_result_kinds.py the others.
BY_TWO_WORKERS = ("predecessors", "summary", "levels", "targets", "reachable", "nearest")


def as_in_one_process(data, monkeypatch, more):
    """Compare a job of each kind, with more options, with its record; with ``--all`` every job."""
    record, by_kind, found = json.loads(RECORD.read_text())["jobs"], {}, {}
    for job in jobs(data):
        # On a GPU there is no hierarchy of hops.
        is_taken = (
            more.get("device") != "cuda"
            or "hierarchy" not in job[2]
            or not job[0].startswith("bfs")
        )
        if is_taken and not isinstance(record[job[0]], str):
            by_kind.setdefault(job[2].get("result", "pairs"), []).append(job)
    some = [each[place % len(each)] for place, each in enumerate(by_kind.values())]
    if "client" in more:
        some = [job for job in some if job[2].get("result") not in BY_TWO_WORKERS]
    for name, folder, options in itertools.chain(*by_kind.values()) if tiers.ALL else some:
        monkeypatch.chdir(folder)
        found[name] = outcome(described_job, options | more)
    as_far_as_found(found)


def command_of(options):
    """The flags of the command line that options of ``run_job`` are."""
    for key, value in options.items():
        value = (
            [f"{role}={name}" for role, name in value.items()] if isinstance(value, dict) else value
        )
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        yield (
            "--undirected"
            if key == "directed"
            else "--" + key.replace("_", "-") + ("" if value is True else f"={text}")
        )


def test_wrong_jobs_are_refused(data, monkeypatch, capsys):
    monkeypatch.chdir(data.root / "streets")
    found = {}
    for text in WRONG_JOBS:
        options = {"directed": False} | eval(f"dict({text})")
        found[text] = {"run_job": outcome(run_job, "edges.parquet", output="out", **options)}
        if "knobs" not in options:  # which are no flag
            capsys.readouterr()
            code = main(["edges.parquet", "--output=out", *command_of(options)])
            found[text]["command"] = without_place(f"{code}: {capsys.readouterr().err}")
        assert not Path("out").exists(), text
    as_recorded("wrong jobs", found)


@pytest.fixture(params=["islands", "pages"])
def earlier(data, monkeypatch, tmp_path, request):
    """A copy of an earlier output, its manifest, and the edge list and options of its run."""
    monkeypatch.chdir(data.root / request.param)
    folder = shutil.copytree(EARLIER / request.param, tmp_path / "out")
    manifest = json.loads((folder / "_manifest.json").read_text())
    settings = {
        key: value
        for key, value in manifest["settings"].items()
        if value != DEFAULTS.get(key, value)
    }
    return (
        folder,
        manifest,
        manifest["settings"]["edges"],
        settings | {"output": folder, "resume": True},
    )


def test_an_earlier_output_is_verified_and_resumed(earlier):
    folder, manifest, edges, options = earlier
    refusal = None
    try:
        found = prove_output(folder, edges, "cpu").as_dict()
        assert found["valid"], found
        (folder / manifest["parts"][0]["file"]).unlink()
        again = run_job(edges, **options)
        assert (again.computed, again.digest) == (1, manifest["digest"])
    except OutputError as error:
        refusal = str(error)
    assert refusal is None or re.search(r"\b(format 1|0\.1\.0)\b", refusal), (
        "the version of an output is named if it is refused"
    )


@pytest.mark.parametrize("step", [-1, 1])
def test_an_output_of_another_format_is_refused(step, earlier):
    folder, manifest, edges, options = earlier
    (folder / "_manifest.json").write_text(
        json.dumps(manifest | {"format": manifest["format"] + step})
    )
    refused = outcome(run_job, edges, **options), outcome(prove_output, folder, edges, "cpu")
    texts = [text.replace(str(folder), "out") for text in refused]
    as_recorded(
        "output of a later format" if step > 0 else "output of an earlier format",
        dict(zip(("run_job", "verify"), texts, strict=True)),
    )
