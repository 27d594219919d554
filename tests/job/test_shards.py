"""Shards: processes that share a run without a scheduler, the log that they commit to, and ``finish``."""

import json
import os
import shutil
import signal
import threading

import numpy as np
import pandas as pd
import pytest

from kepler_traverse.errors import OutputError
from pipelines import batch_sources, finish
from pipelines.cli.options import UsageError
from pipelines.cli.shards import parse_shard
from pipelines.output import commits
from pipelines.output.commits import COMMITS, CommitLog, with_commits
from pipelines.output.run_folder import LOCK, MANIFEST, read_manifest
from pipelines.output.shard import Shard
from pipelines.output.store import Store
from pipelines.run import finishing
from pipelines.verify import prove_output
from pipelines.worker.traversal_worker import TraversalWorker
from tests.support.forks import forked
from tests.support.jobs import manifest_of
from tests.support.processes import at_once, session_of, wait_until
from tests.support.processes import finish as ended

ENTRIES = {"parts": [], "failed": [], "retried": []}
KINDS = {
    "none": [],
    "distances": ["--random-sources", "11"],
    "pairs": ["--pairs", "{folder}/trips.csv"],
    "flows": ["--pairs", "{folder}/trips.csv", "--result", "flows"],
    "a sample": ["--result", "betweenness", "--samples", "11"],
    "matrix": ["--random-sources", "11", "--result", "matrix"],
    "summary": [
        "--sources",
        "{folder}/stops.csv",
        "--columns",
        "source=stop",
        "--result",
        "summary",
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("shards")
    rng = np.random.default_rng(7)
    src, dst = rng.integers(0, 300, (2, 1200))
    pd.DataFrame({"src": src, "dst": dst, "weight": rng.integers(1, 50, src.size)}).to_parquet(
        path / "edges.parquet"
    )
    pd.DataFrame({"origin": src[:13], "destination": dst[13:26]}).to_csv(
        path / "trips.csv", index=False
    )
    pd.DataFrame({"stop": src[:12], "note": "x"}).to_csv(path / "stops.csv", index=False)
    return path


def argv(folder, out, *more, kind="distances", size="2"):
    words = [
        folder / "edges.parquet",
        "--algorithm",
        "sssp",
        "--device",
        "cpu",
        "--output",
        out,
        "--batch-size",
        size,
    ]
    return [str(word).format(folder=folder) for word in [*words, *KINDS[kind], *more]]


def run(*args, **more):
    return batch_sources.main(argv(*args, **more))


def shards(folder, out, *more, count=3, **options):
    return [
        run(folder, out, *more, "--shard", f"{index}/{count}", **options) for index in range(count)
    ]


@pytest.fixture(scope="module")
def alone(folder, tmp_path_factory):
    """One process's folder, by kind."""
    known = {}

    def made(kind="distances"):
        if kind not in known:
            known[kind] = tmp_path_factory.mktemp("alone") / kind
            assert run(folder, known[kind], kind=kind) == 0
        return known[kind]

    return made


def files(path):
    """The bytes of all files but those with times."""
    return {
        each.name: each.read_bytes()
        for each in path.iterdir()
        if each.is_file() and each.name not in (MANIFEST, "_SUCCESS", "_report.html")
    }


@pytest.fixture(scope="module")
def computed(folder, tmp_path_factory):
    """A run of which all three shards have ended."""
    path = tmp_path_factory.mktemp("computed") / "out"
    assert shards(folder, path) == [0, 0, 0]
    return path


@pytest.fixture
def out(computed, tmp_path):
    return shutil.copytree(computed, tmp_path / "out")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
def test_shards_write_the_files_of_one_process(folder, alone, tmp_path, capsys, kind):
    out = tmp_path / "out"
    expected = alone(kind)
    assert shards(folder, out, kind=kind) == [0, 0, 0]
    assert not (out / "_SUCCESS").exists()
    capsys.readouterr()
    assert finish.main([str(out), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["digest"], facts["was_finished"]) == (manifest_of(expected)["digest"], False)
    assert files(out) == files(expected)
    assert sorted(os.listdir(out)) == sorted(os.listdir(expected))
    assert prove_output(out, [str(folder / "edges.parquet")], "cpu").as_dict()["valid"]
    assert finish.main([str(out)]) == 0
    assert "was finished before" in capsys.readouterr().out
    before = (out / MANIFEST).read_bytes()
    assert shards(folder, out, kind=kind) == [0, 0, 0]  # an array that was submitted twice
    assert ((out / MANIFEST).read_bytes(), sorted(os.listdir(out))) == (
        before,
        sorted(os.listdir(expected)),
    )


def test_a_shard_says_what_it_has_computed(folder, tmp_path, capsys):
    assert run(folder, tmp_path / "out", "--shard", "1/3", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["shard"], facts["sources"], facts["computed"], facts["digest"]) == (
        "1/3",
        4,
        2,
        None,
    )
    assert manifest_of(tmp_path / "out")["settings"]["shard"] is None


def test_batches_of_shards_do_not_depend_on_the_machine(folder, tmp_path, monkeypatch):
    sizes = set()
    for cores in (1, 16):
        for module in (
            "pipelines.run.prepare",
            "pipelines.run.sizing",
            "pipelines.worker.host_limits",
        ):
            monkeypatch.setattr(f"{module}.CPU_COUNT", cores)
        assert run(folder, tmp_path / str(cores), "--shard", "0/2", size="auto") == 0
        sizes.add(manifest_of(tmp_path / str(cores))["identity"]["batch_size"])
    assert sizes == {2}  # 11 sources, at least three batches for each of two shards
    # Another number of shards takes the batches of the run that is there.
    assert shards(folder, tmp_path / "16", count=3, size="auto") == [0, 0, 0]
    assert finish.main([str(tmp_path / "16")]) == 0


def test_a_run_that_lacks_parts_is_not_finished(folder, tmp_path, capsys):
    out = tmp_path / "out"
    assert finish.main([str(out)]) == 2
    assert (
        f"holds no {MANIFEST}, so there is no run to finish; correct its name\n"
        in capsys.readouterr().err
    )
    assert run(folder, out, "--shard", "0/3") == 0
    assert finish.main([str(out)]) == 3
    assert (
        "4 parts are missing (part-000001.parquet, part-000002.parquet," in capsys.readouterr().err
    )
    assert manifest_of(out)["status"] == "running"
    faults = prove_output(out, [str(folder / "edges.parquet")], "cpu").as_dict()["faults"]
    assert [fault["message"] for fault in faults] == [
        "the run is not complete: 4 of 11 sources are computed"
    ]
    # one process computes what is missing, and completes the run
    assert run(folder, out, "--resume") == 0
    assert prove_output(out, [str(folder / "edges.parquet")], "cpu").as_dict()["valid"]


@pytest.mark.parametrize("harm", ["truncated", "changed", "deleted", "not recorded"])
def test_a_part_that_is_not_whole_is_computed_again(folder, alone, out, capsys, harm):
    part = out / "part-000001.parquet"
    data = part.read_bytes()
    if harm == "truncated":
        part.write_bytes(data[:-9])
    elif harm == "changed":
        part.write_bytes(data[:99] + bytes([data[99] ^ 1]) + data[100:])
    elif harm == "deleted":
        part.unlink()
    else:  # a shard that was killed between the part and its commit
        for name in os.listdir(out / COMMITS):
            commit = json.loads((out / COMMITS / name).read_text())
            commit["parts"] = [entry for entry in commit["parts"] if entry["file"] != part.name]
            (out / COMMITS / name).write_text(json.dumps(commit))
    assert finish.main([str(out)]) == 3
    assert part.name in capsys.readouterr().err
    assert shards(folder, out) == [0, 0, 0]
    assert finish.main([str(out)]) == 0
    assert files(out) == files(alone())


@pytest.mark.parametrize(
    ("more", "options", "says"),
    [
        (["--cutoff", "30"], {}, "limit was null and is 30"),
        ([], {"size": "3"}, "batch_size was 2 and is 3"),
        (["--undirected"], {}, "graph was "),
    ],
)
def test_a_shard_with_other_settings_is_refused(folder, out, capsys, more, options, says):
    before = sorted(os.listdir(out))
    assert run(folder, out, *more, "--shard", "1/3", **options) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert says in error
    assert "--shard needs the settings of the process that began the run" in error
    assert sorted(os.listdir(out)) == before


def test_a_shard_of_another_version_is_refused(folder, out, capsys):
    manifest = manifest_of(out)
    manifest["versions"]["pyarrow"] = "1.0"
    (out / MANIFEST).write_text(json.dumps(manifest))
    assert run(folder, out, "--shard", "1/3") == 2
    assert "pyarrow was 1.0 and is " in capsys.readouterr().err


def test_of_two_runs_that_begin_at_once_one_is_refused(folder, tmp_path, monkeypatch, capsys):
    """Both find no folder; the other one is first."""
    put_new = Store.put_new

    def slow(self, name, data):
        if name == MANIFEST:
            monkeypatch.setattr(Store, "put_new", put_new)
            assert run(folder, tmp_path / "out", "--shard", "0/3", "--cutoff", "9") == 0
        return put_new(self, name, data)

    monkeypatch.setattr(Store, "put_new", slow)
    assert run(folder, tmp_path / "out", "--shard", "1/3") == 2
    assert "limit was 9.0 and is null" in capsys.readouterr().err


def test_sources_that_failed_are_tried_by_the_next_attempt(
    folder, alone, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "out"
    answer = TraversalWorker.answer

    def failing(self, batches, *more):
        outcomes = answer(self, batches, *more)
        for outcome in outcomes:
            if outcome["part"] == 1:
                outcome["summary"], outcome["failed"] = (
                    None,
                    [(batches[0][1][0], "MemoryError: planted")],
                )
        return outcomes

    with monkeypatch.context() as patch:
        patch.setattr(TraversalWorker, "answer", failing)
        assert shards(folder, out) == [0, 3, 0]
    (out / "part-000001.parquet").unlink(missing_ok=True)
    capsys.readouterr()
    assert finish.main([str(out)]) == 3
    assert "1 source failed: MemoryError: planted" in capsys.readouterr().err
    assert run(folder, out, "--shard", "1/3") == 0
    assert finish.main([str(out)]) == 0
    assert manifest_of(out)["failed"] == []
    assert files(out) == files(alone())


# Two calls of finish at once, and a late shard


@pytest.mark.parametrize("moment", ["_put_tables", "CommitLog.close", "OutputFolder.complete"])
def test_finish_while_another_call_completes_the_run(out, alone, monkeypatch, moment):
    owner = {
        "_put_tables": finishing,
        "CommitLog.close": CommitLog,
        "OutputFolder.complete": finishing.OutputFolder,
    }[moment]
    name = moment.rpartition(".")[2]
    real = getattr(owner, name)
    inner = []

    def interposed(*args):
        monkeypatch.setattr(owner, name, real)
        inner.append((finishing.finish_run(Store(out)), (out / MANIFEST).read_bytes()))
        return real(*args)

    monkeypatch.setattr(owner, name, interposed)
    outer, *were_finished = finishing.finish_run(Store(out))
    ((first, was_finished), text), *more = inner
    assert not more
    assert sorted([was_finished, *were_finished]) == [False, True]
    assert first["digest"] == outer["digest"] == manifest_of(alone())["digest"]
    assert (out / MANIFEST).read_bytes() == text, "both write the same"
    assert finishing.finish_run(Store(out))[1]
    assert files(out) == files(alone())


@pytest.mark.parametrize("moment", ["OutputFolder.complete", "OutputFolder.put"])
def test_a_finish_that_was_killed_is_finished_by_the_next(out, alone, monkeypatch, moment):
    def killed(self, name="", data=b""):
        if name != MANIFEST:  # before anything is written, or between the manifest and its mark
            raise KeyboardInterrupt
        put(self, name, data)

    put = finishing.OutputFolder.put
    with monkeypatch.context() as patch:
        patch.setattr(finishing.OutputFolder, moment.rpartition(".")[2], killed)
        assert finish.main([str(out)]) == 130
    assert not (out / "_SUCCESS").exists()
    assert finish.main([str(out)]) == 0
    assert files(out) == files(alone())
    assert sorted(os.listdir(out)) == sorted(os.listdir(alone()))


def test_finish_reads_a_run_that_another_call_completes_meanwhile(out, monkeypatch):
    real = CommitLog.read

    def read(log):
        monkeypatch.setattr(CommitLog, "read", real)
        assert not finishing.finish_run(Store(out))[1]
        return real(log)

    monkeypatch.setattr(CommitLog, "read", read)
    assert finishing.finish_run(Store(out))[1]


def test_many_calls_of_finish_at_once_agree(computed, tmp_path):
    for turn in range(5):
        out = shutil.copytree(computed, tmp_path / str(turn))
        start = threading.Barrier(4)
        found = []

        def one(out=out, start=start, found=found):
            start.wait()
            found.append(finishing.finish_run(Store(out))[0]["digest"])

        at_once(*[one] * 4)
        assert len(found) == 4
        assert len(set(found)) == 1
        assert finishing.finish_run(Store(out))[1]


def test_a_commit_that_comes_while_finish_checks_is_counted(out, monkeypatch):
    late = {**ENTRIES, "retried": [{"file": "part-000001.parquet", "why": "planted"}]}
    real = finishing._put_tables

    def slow(*args):
        monkeypatch.setattr(finishing, "_put_tables", real)
        assert CommitLog(Store(out)).append(late)
        real(*args)

    monkeypatch.setattr(finishing, "_put_tables", slow)
    manifest, was_finished = finishing.finish_run(Store(out))
    assert (manifest["retried"], was_finished) == (late["retried"], False)


def test_finish_leaves_a_run_with_a_lock_to_resume(out, capsys):
    (out / LOCK).touch()
    assert finish.main([str(out)]) == 2
    assert "finish it with --resume" in capsys.readouterr().err


# The log


def entry(number):
    return {**ENTRIES, "retried": [{"file": "part-000000.parquet", "why": str(number)}]}


def numbers_in(log):
    return [int(each["why"]) for commit in log.read() for each in commit["retried"]]


def test_writers_of_one_log_lose_nothing_and_readers_see_whole_commits(tmp_path, monkeypatch):
    monkeypatch.setattr(commits, "_BLOCK", 8)
    done = threading.Event()
    seen = []

    def write(writer):
        log = CommitLog(Store(tmp_path))
        for number in range(20):
            assert log.append(entry(100 * writer + number))

    def read():
        while not done.is_set():
            seen.append(len(numbers_in(CommitLog(Store(tmp_path)))))

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
    reader = threading.Thread(target=read)
    for thread in [reader, *threads]:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    reader.join()
    log = CommitLog(Store(tmp_path))
    numbers = numbers_in(log)
    assert sorted(numbers) == [100 * writer + number for writer in range(6) for number in range(20)]
    assert all(
        sorted(own) == own
        for own in ([n for n in numbers if n // 100 == writer] for writer in range(6))
    )
    assert sorted(seen) == seen
    assert log.close([], {})
    assert not CommitLog(Store(tmp_path)).append(entry(1))
    assert not log.append(entry(1))
    assert (len(log.read()), log.is_closed) == (120 // 8 + 1, True)


def test_a_block_that_its_writer_did_not_write_is_read_as_its_commits(tmp_path, monkeypatch):
    monkeypatch.setattr(commits, "_BLOCK", 4)
    log = CommitLog(Store(tmp_path))
    for number in range(14):
        added = entry(number) | {"seconds": {"traverse": 0.1 * number}}
        assert log.append(
            added
            | {
                "failed": [
                    {"file": "part-000000.parquet", "sources": [number % 3], "error": str(number)}
                ]
            }
        )
    blocks = sorted(name for name in os.listdir(tmp_path / COMMITS) if "-" in name)
    assert blocks == ["00000000-00000003.json", "00000004-00000007.json", "00000008-00000011.json"]
    run = {"parts": [], "failed": [], "retried": [], "seconds": {}, "tables": []}
    expected = with_commits(run, log.read())
    numbers = numbers_in(log)
    assert len(log.read()) == 3 + 2
    assert [failure["error"] for failure in expected["failed"]] == ["12", "13", "11"]
    for name in blocks[1::-1]:
        (tmp_path / COMMITS / name).unlink()
        assert (with_commits(run, log.read()), numbers_in(log)) == (expected, numbers)
    assert numbers == list(range(14))


@pytest.mark.parametrize("harm", ["half", "gap", "link", "key"])
def test_a_damaged_log_is_refused_by_name(folder, out, capsys, harm):
    first = out / COMMITS / "00000000.json"
    if harm == "half":
        first.write_bytes(first.read_bytes()[:-30])
    elif harm == "gap":
        first.unlink()
    elif harm == "link":
        (out / COMMITS).rename(out.with_name("elsewhere"))
        (out / COMMITS).symlink_to(out.with_name("elsewhere"))
    else:
        first.write_text(json.dumps({**json.loads(first.read_text()), "parts": [{"file": "../x"}]}))
    for call in (finish.main, lambda words: run(folder, words[0], "--shard", "0/3")):
        assert call([str(out)]) == 2
        assert str(out) in capsys.readouterr().err
    with pytest.raises((ValueError, OutputError)):
        read_manifest(Store(out))


def test_a_link_whose_answer_was_lost_counts_as_made(tmp_path, monkeypatch):
    real = os.link

    def twice(*args, **more):
        real(*args, **more)
        real(*args, **more)

    monkeypatch.setattr(os, "link", twice)
    assert Store(tmp_path).put_new("a", b"1")
    assert not Store(tmp_path).put_new("a", b"2")
    assert ((tmp_path / "a").read_bytes(), os.listdir(tmp_path)) == (b"1", ["a"])


# Which shard a process is

SLURM = {
    "SLURM_ARRAY_TASK_ID": "7",
    "SLURM_ARRAY_TASK_COUNT": "4",
    "SLURM_ARRAY_TASK_MIN": "5",
    "SLURM_ARRAY_TASK_MAX": "8",
}


@pytest.mark.parametrize(
    ("text", "environment", "expected"),
    [
        ("0/8", {}, Shard(0, 8)),
        ("7/8", SLURM, Shard(7, 8)),
        ("auto", SLURM, Shard(2, 4)),
        ("auto", SLURM | {"SLURM_ARRAY_TASK_MAX": "11", "SLURM_ARRAY_TASK_STEP": "2"}, Shard(1, 4)),
        ("auto/8", SLURM, Shard(7, 8)),
        ("auto/8", {"JOB_COMPLETION_INDEX": "0"}, Shard(0, 8)),
        ("8/8", {}, "there is no shard 8 of 8"),
        ("0/0", {}, "there is no shard 0 of 0"),
        ("-1/8", {}, "it is I/N"),
        ("3", {}, "it is I/N"),
        ("auto", {}, "neither SLURM_ARRAY_TASK_ID nor JOB_COMPLETION_INDEX"),
        ("auto", {"JOB_COMPLETION_INDEX": "0"}, "give --shard auto/N"),
        # as of --array=5,7,8,9
        ("auto", SLURM | {"SLURM_ARRAY_TASK_MAX": "9"}, "not evenly numbered"),
        ("auto/6", SLURM, "there is no shard 7 of 6"),
    ],
)
def test_a_shard_is_named_or_comes_from_the_environment(text, environment, expected):
    if isinstance(expected, Shard):
        assert parse_shard(text, environment) == expected
        return
    with pytest.raises(UsageError, match=expected):
        parse_shard(text, environment)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--scheduler-address", "tcp://127.0.0.1:1"], "both give out the batches"),
        (["--result", "nearest"], "one search computes all of --result nearest"),
    ],
)
def test_shards_are_refused_where_they_have_no_effect(folder, tmp_path, capsys, more, says):
    words = [
        str(folder / "edges.parquet"),
        "--sources",
        "1,2",
        "--output",
        str(tmp_path / "out"),
        "--shard",
        "0/2",
    ]
    assert batch_sources.main([*words, *more]) == 2
    assert says in capsys.readouterr().err


# Processes that are killed

HANGS = """
import os, sys, time
from pipelines.worker import traversal_worker
write = traversal_worker.write_part
def slow(store, number, *more):
    if number == 6 and not os.path.exists(sys.argv[-1] + ".hangs"):
        open(sys.argv[-1] + ".hangs", "w").close()
        time.sleep(3600)
    return write(store, number, *more)
traversal_worker.write_part = slow
from pipelines import batch_sources
sys.exit(batch_sources.program())
"""


@pytest.mark.parametrize("how", [pytest.param("SIGTERM", marks=pytest.mark.exhaustive), "SIGKILL"])
def test_a_shard_that_is_killed_is_run_again(folder, alone, tmp_path, capsys, how):
    out = tmp_path / "out"
    words = argv(folder, out, "--notice", "0.5", "--shard", "0/2", size="1")
    words.append(words.pop(words.index(str(out))))  # behind its flag, which is the last but one
    words.insert(-1, words.pop(words.index("--output")))
    with forked(HANGS, *words) as job:
        wait_until(out.with_suffix(".hangs").exists, job)
        if how == "SIGTERM":  # as from a batch system: to every process
            os.killpg(job.pid, signal.SIGTERM)
            code, _, err = ended(job)  # the part that hangs would take an hour
            assert (code, "interrupted: " in err) == (130, True), err
        else:
            os.killpg(job.pid, signal.SIGKILL)
            wait_until(lambda: not session_of(job))
    done = sorted(path.name for path in out.glob("part-*"))
    assert done == [f"part-{number:06d}.parquet" for number in (0, 2, 4)]
    assert finish.main([str(out)]) == 3
    capsys.readouterr()
    assert run(folder, out, "--shard", "0/2", "--json", size="1") == 0
    assert json.loads(capsys.readouterr().out)["kept"] == len(done), "nothing is computed twice"
    assert run(folder, out, "--shard", "1/2", size="1") == 0
    assert finish.main([str(out)]) == 0
    assert manifest_of(out)["digest"] == manifest_of(alone())["digest"]
    assert not [path.name for path in out.iterdir() if path.name.endswith(".tmp")]


@pytest.mark.exhaustive
def test_shards_with_worker_processes_write_the_same(folder, alone, tmp_path):
    assert shards(folder, tmp_path / "out", "--workers", "2") == [0, 0, 0]
    assert finish.main([str(tmp_path / "out")]) == 0
    assert files(tmp_path / "out") == files(alone())
    assert sorted(os.listdir(tmp_path / "out")) == sorted(os.listdir(alone()))
