"""The check of a machine with GPUs, with processes that stand in for its stages: outcomes, records, and what is missing."""

import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from scripts import reports
from scripts.bench import gpus
from scripts.ci import gpu, groups
from scripts.evidence.__main__ import gpu_check_of
from scripts.measure import harness
from scripts.measure.log import Log
from scripts.measure.work import Inputs
from tests.conftest import HAS_GPU
from tests.support import tiers
from tests.support.devices import FIRST, on_a_device, running
from tests.support.graphs import build, lattice
from tests.support.processes import ran

ROOT = Path(__file__).parents[2]
H200 = {"cpu": "a CPU", "cores": 4, "memory_gib": 8, "gpu": "NVIDIA H200", "driver": "1"}


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with two GPUs, as far as the check looks."""
    monkeypatch.setattr(gpu, "count_gpus", lambda: (2, ""))
    monkeypatch.setattr(gpu, "machine", lambda: H200)
    monkeypatch.setattr(gpu, "OUT", tmp_path / "gpu")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def stage(name, code, seconds=60.0, **others):
    """A stage of one process that runs this code, and passes if it ends with 0."""
    command = [sys.executable, "-c", code]
    job = gpu.Job(
        name,
        "one",
        command,
        lambda status, _: (gpu.FAILED if status else gpu.PASSED, ""),
        seconds=seconds,
        **others,
    )
    return lambda _options: iter([job])


def outcomes(tmp_path):
    record = json.loads((tmp_path / "gpu.json").read_text())
    return {row["stage"]: (row["verdict"], row["detail"]) for row in record["rows"]}, record


@pytest.mark.usefixtures("machine")
def test_all_stages_run_after_one_that_fails_one_that_hangs_and_one_that_lacks_a_module(
    monkeypatch, tmp_path, capfd
):
    jobs = {
        "tests": stage("tests", "print('what went wrong'); raise SystemExit(1)"),
        "parity": stage("parity", "", needs=("no_such_module",)),
        "multi": stage(
            "multi",
            "import os; raise SystemExit('CUDA_VISIBLE_DEVICES' in os.environ)",
            all_gpus=True,
        ),
        "groups": stage("groups", ""),
        "sanitize": stage("sanitize", "import time; time.sleep(60)", seconds=0.5),
        "speed": stage(
            "speed", "import os; raise SystemExit(os.environ['CUDA_VISIBLE_DEVICES'] != '0')"
        ),
    }
    monkeypatch.setattr(gpu, "JOBS", jobs)
    assert gpu.main([]) == 1
    found, record = outcomes(tmp_path)
    assert found == {
        "tests": (gpu.FAILED, ""),
        "parity": (gpu.NOT_RUN, "missing: no_such_module"),
        "multi": (gpu.PASSED, ""),
        "groups": (gpu.PASSED, ""),
        "sanitize": (gpu.FAILED, "stopped after 0 s"),
        "speed": (gpu.PASSED, ""),
    }
    assert (record["passed"], record["machine"]) == (False, H200)
    counts = gpu_check_of(record)["figures"]["stages"]
    assert counts["groups"] == {"passed": 1, "failed": 0, "not run": 0}
    assert counts["sanitize"] == {"passed": 0, "failed": 1, "not run": 0}
    assert counts["parity"] == {"passed": 0, "failed": 0, "not run": 1}
    some = [row for row in record["rows"] if row["stage"] != "groups"]
    with pytest.raises(SystemExit, match="groups"):
        gpu_check_of(record | {"rows": some})
    assert "what went wrong" in capfd.readouterr().out
    assert gpu.main(["multi", "speed"]) == 0
    assert list(outcomes(tmp_path)[0]) == ["multi", "speed"]
    assert gpu.main(["parity"]) == 1, "nothing ran"
    assert gpu.main(["speed", "--seconds", "0"]) == 1
    assert outcomes(tmp_path)[0] == {"speed": (gpu.FAILED, "no time was left")}


def rows_of(milliseconds, on="NVIDIA H200"):
    return [
        {"graph": graph, "work": "bfs, one source", "peer": peer, "size": 1, "median": ms / 1e3}
        | {"run": {"machine": {"gpu": on}}}
        for graph, times in milliseconds.items()
        for peer, ms in zip(("kepler", "cuGraph"), times, strict=False)
    ]


def test_speed_fails_only_beyond_the_tolerance_and_on_the_recorded_kind_of_gpu(
    monkeypatch, tmp_path
):
    before = gpu.works_of(
        rows_of({"road": (2.0, 9.0), "web": (8.0, 9.0)})
        + rows_of({"mesh": (1.0, 9.0)}, on="NVIDIA H100")
    )
    monkeypatch.setattr(gpu, "recorded", lambda: before)
    now = rows_of({"road": (2.4, 9.0), "web": (11.0,), "mesh": (5.0, 9.0), "new": (1.0, 1.0)})
    works = list(gpu.compared(gpu.works_of(now), before))
    assert [work["verdict"] for work in works] == [
        gpu.PASSED,
        gpu.FAILED,
        "information",
        "no record",
    ]
    assert [work["ratio"] for work in works] == [1.2, 1.375, 5.0, None]
    assert [work["cugraph_ms"] for work in works] == [9.0, None, 9.0, 1.0]
    about = {"date": "", "commit": "", "command": "", "machine": H200, "versions": {}}
    lines = [{"kind": "run"} | about]
    lines += [row | {"kind": "time", "suite": "gpu", "device": "cuda"} for row in now]
    (tmp_path / "speed.jsonl").write_text("\n".join(map(json.dumps, lines)))
    collected: list = []
    assert gpu.judge_speed("speed.jsonl", collected, 0, tmp_path)[0] == gpu.FAILED
    assert [work["work"] for work in collected] == [
        f"{name}, bfs, one source" for name in ("road", "web", "mesh", "new")
    ]


def test_recorded_works_have_medians_many_sources_and_hierarchies():
    works = set(gpu.recorded())
    expected = {
        "R-MAT 20, bfs, one source",
        "R-MAT 20, sssp, 1,024 sources, each",
        f"{gpu.HIERARCHY}, interleaved distances, each",
    }
    assert expected <= works


def test_tests_are_shared_sampled_and_judged_by_their_report(tmp_path, monkeypatch):
    text = "import pytest\n@pytest.mark.gpu\n@pytest.mark.parametrize('i', range(10))\ndef test_it(i):\n    assert i != 7\n"
    (tmp_path / "test_some.py").write_text(text)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nmarkers = gpu\ntimeout = 9\nfaulthandler_exit_on_timeout = true\naddopts = --strict-config"
    )
    monkeypatch.setattr(gpu, "OUT", tmp_path)
    found = []
    for part, parts, every in ((0, 2, 1), (1, 2, 2)):
        command = gpu.pytest_command("report", str(tmp_path), part=part, parts=parts, every=every)
        done = ran(command)
        found.append(gpu.judge_tests("report", done.returncode, tmp_path))
    assert found == [
        (gpu.PASSED, "5 passed, 0 failed, 0 skipped"),
        (gpu.FAILED, "2 passed, 1 failed, 0 skipped"),  # the tests 5, 7 and 9
    ]


@pytest.mark.parametrize(
    ("key", "field"),
    [("parity", "equal"), ("parity", "certified"), ("gpu_bits", "equal_predecessors")],
)
def test_parity_fails_if_one_result_differs(tmp_path, key, field):
    (job,) = (job for job in gpu.jobs_of_parity(gpu.parse([])) if job.name == key)
    record = json.loads((ROOT / "docs" / "guarantees.json").read_text())
    path = tmp_path / f"{key}.json"
    path.write_text(json.dumps(record))
    verdict, said = job.judge(0, tmp_path)
    assert (verdict, "equal" in said) == (gpu.PASSED, True)
    figures = record[key]["figures"]
    figures.get("rows", {"all": figures})["bfs" if "rows" in figures else "all"][field] -= 1
    path.write_text(json.dumps(record))
    assert job.judge(0, tmp_path)[0] == gpu.FAILED
    assert job.judge(1, tmp_path)[0] == gpu.FAILED


@pytest.mark.parametrize(
    ("errors", "missing"),
    [
        (["E   ModuleNotFoundError: No module named 'dask'"], ["dask"]),
        (["E   ModuleNotFoundError: No module named 'pipelines.run'"], []),
        (["E   ModuleNotFoundError: No module named 'dask'", "E   assert 1 == 2"], []),
        ([], []),
    ],
)
def test_modules_missing_excuses_tests_for_other_projects_only(errors, missing):
    cases = [reports.Case("", "", reports.FAILED, text=error) for error in errors]
    assert gpu.modules_missing(cases) == missing


def test_every_stage_makes_commands_of_files_and_modules_that_exist():
    options = gpu.parse([])
    jobs = [job for name in gpu.STAGES for job in gpu.JOBS[name](options)]
    assert len({(job.stage, job.name) for job in jobs}) == len(jobs)
    assert {job.stage for job in jobs} == set(gpu.STAGES)
    words = [word for job in jobs for word in job.command if word.startswith("tests/")]
    assert words
    assert [word for word in words if not (ROOT / word).exists()] == []
    assert {Path(word).name for word in words} >= {
        *gpu.PARTS,
        "test_parity_with_cugraph.py",
        "test_k_nearest.py",
    }


@pytest.mark.skipif(HAS_GPU, reason="this machine has a GPU")
@pytest.mark.parametrize(
    "command",
    [["bash", "scripts/check.sh", "--gpu"], [sys.executable, "-S", "-m", "scripts.ci.gpu"]],
    ids=["check.sh", "Python alone"],
)
def test_a_machine_without_a_gpu_is_told_so_in_one_sentence(command):
    done = ran(command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("There is no GPU to check: ")
    assert done.stderr.count("\n") == 1


def edges_file(folder, n=60):
    path = folder / "edges.parquet"
    rng = np.random.default_rng(4)
    parquet.write_table(
        pa.table({"src": rng.integers(0, n, 150), "dst": rng.integers(0, n, 150)}), path
    )
    return path


@pytest.mark.parametrize(("part", "size"), [("hops", 8), ("weights", 8), ("jobs", 4)])
def test_groups_of_a_plan_give_what_single_searches_give(tmp_path, capsys, part, size):
    few = list(groups.KINDS) if tiers.ALL else ["predecessors", "betweenness of edges", "pairs"]
    words = [
        str(edges_file(tmp_path)),
        "--part",
        part,
        "--device",
        "cpu",
        "--sources",
        str(size),
        "--kinds",
        *few,
    ]
    assert groups.main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 3
    assert all(": equal, " in line for line in lines)


@on_a_device
def test_groups_of_a_gpu_give_those_of_a_cpu(monkeypatch):
    monkeypatch.setitem(sys.modules, "cudf", None)  # what was there comes back afterwards
    del sys.modules["cudf"]
    names = list(groups.KINDS) if tiers.ALL else ["distances at targets", "summary", "pairs"]
    with running(FIRST):
        graph = build(lattice(8, 20), directed=False, edge_ids=True)
        found = list(groups.compare_kinds(graph, "bfs", "cuda", 40, names))
    # costs of the start are weights, and are not asked for beside hops
    of_hops = [name for name in names if "start_costs" not in groups.KINDS[name][1]]
    expected = [(f"bfs, {name}", True) for name in of_hops]
    assert [(name, is_same) for name, is_same, _ in found] == expected, found


def test_a_result_that_differs_fails_the_stage(monkeypatch, tmp_path, capsys):
    answer = groups.Case.answer

    def wrong(self, graph, strategy="auto"):
        found = answer(self, graph, strategy)
        return found | {"distance": "another"} if strategy == "auto" else found

    monkeypatch.setattr(groups.Case, "answer", wrong)
    words = ["--part", "hops", "--device", "cpu", "--sources", "4", "--kinds", "predecessors"]
    assert groups.main([str(edges_file(tmp_path)), *words]) == 1
    (tmp_path / "groups-a-graph-hops.log").write_text(capsys.readouterr().out)
    verdict, detail = gpu.judge_groups("a graph hops", 1, tmp_path)
    assert verdict == gpu.FAILED
    assert "0 results equal, 1 differ: edges, bfs, predecessors: DIFFERS" in detail
    (tmp_path / "groups-another.log").touch()
    assert gpu.judge_groups("another", 0, tmp_path) == (
        gpu.FAILED,
        "0 results equal, 0 differ, ended with 0",
    )


def measured_scale(monkeypatch, tmp_path, took, workers=2, store="no_such_module"):
    """Measure the suite of the stage ``scale`` with jobs that take what ``took`` says; return the verdict on it."""
    roads = pa.table({"src": np.arange(2_000), "dst": np.arange(2_000) + 1})
    parquet.write_table(roads, tmp_path / f"{gpus.ROADS}.parquet")
    monkeypatch.setattr(gpus, "RMAT_SCALE", 6)
    monkeypatch.setattr(gpus, "STORE_MODULES", (store,))
    monkeypatch.setattr(gpus, "count_workers", lambda _device: workers)

    def job(_self, graph, words, workers=0, is_cold=False, to_store=False):
        assert not to_store or "distances" in words
        return manifest_of(took(graph, words, workers, is_cold))

    monkeypatch.setattr(gpus.Folder, "job", job)
    gpus.folder_of.cache_clear()
    inputs = Inputs(graphs=tmp_path)
    with Log(tmp_path / "scale.jsonl", harness.KEY) as log:
        log.write("run", **dict.fromkeys(("date", "commit", "command"), ""))
        for work in gpus.works(inputs):
            harness.measure("gpus", work, inputs, log)
    return gpu.judge_scale(0, tmp_path)


def manifest_of(seconds):
    return {
        "digest": "the same",
        "parts": [1],
        "to_first": seconds,
        "searching": seconds,
        "whole": seconds,
        "waits": {},
        "seconds": {"traverse": seconds},
    }


@pytest.mark.parametrize("gain", [1.95, 1.85, 1.65])
def test_scale_passes_if_starts_parts_and_gpus_meet_their_targets(monkeypatch, tmp_path, gain):
    """A job of a minute has a target of its own."""

    def took(_graph, words, workers=0, is_cold=False):
        if str(gpus.STARTED) in words:
            return 5.9 if is_cold else 3.9
        if "distances" in words:
            return 4.0
        is_long = str(gpus.LONG_RESULTS[0].sources) in words
        one = 60.0 if is_long else 4.0
        return one / gain if workers else one

    has_store = gain == 1.85
    store = "json" if has_store else "no_such_module"
    verdict, said = measured_scale(monkeypatch, tmp_path, took, store=store)
    n_results = len(gpus.RESULTS + gpus.LONG_RESULTS)
    n_starts_and_parts = 2 + (16 if has_store else 8)
    n_whole = 1
    n_met = n_starts_and_parts + (n_results if gain > 1.9 else 0) + (n_whole if gain > 1.7 else 0)
    assert verdict == (gpu.PASSED if gain > 1.9 else gpu.FAILED)
    assert said.startswith(f"{n_met} of {n_results + n_starts_and_parts + n_whole} figures meet")


def test_scale_on_one_gpu_fails_if_a_size_of_parts_costs_more(monkeypatch, tmp_path):
    def took(_graph, words, workers=0, is_cold=False):  # noqa: ARG001
        return 9.0 if "--batch-size 32" in words else 4.5

    verdict, said = measured_scale(monkeypatch, tmp_path, took, workers=1)
    assert (verdict, said.count("--batch-size 32")) == (gpu.FAILED, 2)
    assert said.startswith("2 of 4 figures")
    (tmp_path / "scale.jsonl").unlink()
    assert gpu.judge_scale(0, tmp_path)[0] == gpu.FAILED


def test_jobs_of_scale_read_their_tables_and_leave_their_times(monkeypatch, tmp_path):
    monkeypatch.setattr(gpus, "RMAT_SCALE", 6)
    src, dst = np.array(lattice(6, 6)).T
    parquet.write_table(pa.table({"src": src, "dst": dst}), tmp_path / f"{gpus.ROADS}.parquet")
    called = []

    def run_command(command, **_options):
        called.append(list(map(str, command)))
        output = Path(called[-1][called[-1].index("--output") + 1])
        output.mkdir()
        times = [("one", 0, 2), ("another", 1, 1.5), ("one", 2, 2.25), ("another", 1.5, 3)]
        parts = [
            {"worker": worker, "started": 1e10 + started, "ended": 1e10 + ended}
            for worker, started, ended in times
        ]
        (output / "_manifest.json").write_text(json.dumps({"parts": parts}))

    monkeypatch.setattr(gpus, "run_command", run_command)
    folder = gpus.Folder(Inputs(graphs=tmp_path))
    for kind, graph, _, words in gpus.RESULTS:
        made = folder.job(graph, gpus.asked(kind, 4, words), workers=2)
        assert (made["searching"], made["to_first"] > 0) == (3, True)
        assert made["waits"] == {"skew": 1, "tail": 0.75}
    files = [word for words in called for word in words if word.endswith((".parquet", ".txt"))]
    assert len(set(files)) == 4
    assert all(Path(file).exists() for file in files)
    assert all(words[-2:] == ["--workers", "2"] for words in called)
