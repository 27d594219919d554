"""Every option of every program with wrong values, and in pairs: exit code 0, or 2 with one line that names it.

Nothing here starts a cluster. What is given to one has been read, looked up and planned by then.
"""

import itertools
import json
import os
import random
import tomllib

import pytest

from kepler_traverse.runtime import object_stores
from pipelines import batch_sources, compare, verify
from pipelines.cli.options import OPTIONS, TLS
from pipelines.run import engine
from tests.job.test_idle_options import EDGES, VALUES
from tests.support import tiers

WRONG = [
    "", "\x20", "\t", "0", "-0", "1", "-1", "+1", "007", "3.5", "-3.5", ".5", "1e3", "1e400", "-1e400", "nan", "-nan",
    "inf", "-inf", "99999999999999999999", "9" * 400, "1" + "0" * 5000, "1_0", "0x10", "\u0663", "\uff11", "1\u0660",
    "1\x20", "1\n", "1,2", "1,,2", ",", "true", "None", "auto", "[]", "{}", "'", '"', "%s", "*", "=", "-", "-x", "---",
    "a,b", "\x1b[31mred", "\x07", "\x00", "\n", "\u202eabc", "d\u00e9j\u00e0", "\U0001f600", "\udcff", "s3://bucket/x",
    "file:///etc/passwd", "http://[::1", "tcp://", "tcp://a:b", "/dev/null", "/", ".", "..", "~", "x" * 5000,
    "no such file", "40 GiB", "1e9GB", "-1GB", "7XB", "127.0.0.1:1", ":1",
]  # fmt: skip
OF_A_FILE = [
    "0", "-1", "1.5", "nan", "-inf", "true", '""', '"a"', '"\\u0000"', '"\\u001b[31m"', "[]", "[1]", '["a"]', "[[1]]",
    "[true]", "[1.5]", "{}", "{a = 1}", "2026-11-22", "9223372036854775808", "1" + "0" * 400, '"s3://bucket/x"',
    '"auto"', '"sssp"',
]  # fmt: skip


def wrong_for(flag):
    """Without --all some wrong values, others for each flag."""
    at = len(flag) % len(WRONG)
    return tiers.few([*WRONG[at:], *WRONG[:at]], 14)


FLAGS = {option.flag: option for option in OPTIONS}
FOLDERS = ("output", "graph_cache")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("fuzz")
    (path / "edges.csv").write_text(EDGES)
    (path / "ids.txt").write_text("3\n4\n")
    (path / "scheduler.json").write_text("{}")
    (path / "empty.pem").write_text("")
    return path


@pytest.fixture(scope="module")
def written(folder):
    """The output of a run."""
    output = folder / "written"
    words = [
        folder / "edges.csv",
        "--sources",
        "1,2",
        "--device",
        "cpu",
        "--no-report",
        "--output",
        output,
    ]
    assert batch_sources.main([str(word) for word in words]) == 0
    return output


class NoClient:
    """No server responds."""

    def __init__(self, *_, **__):
        raise OSError("nobody answers")


@pytest.fixture(autouse=True)
def no_cluster(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SCHEDULER_FILE", raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setattr(object_stores, "_PATIENCE", 0.0)
    monkeypatch.setattr("pipelines.scheduling.cluster.Client", NoClient)
    monkeypatch.setattr(
        engine.KeplerEngine, "answer", lambda self, run: self.make_work(run) and run.finish({})
    )


def call(capsys, program, argv):
    """Run a program; its exit code and the lines on stderr."""
    capsys.readouterr()
    code = program(argv)
    captured = capsys.readouterr()
    shown = (argv, code, captured.err[-600:])
    assert code in (0, 2), shown
    assert "Traceback" not in captured.err, shown
    assert "unexpected " not in captured.err.replace("error: unexpected argument", ""), shown
    errors = [line for line in captured.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == (code == 2), shown
    if code == 2:
        assert captured.err.splitlines()[-1] == errors[0], shown
        assert captured.out == "", shown
        assert len(errors[0]) < 8000, shown
        return errors[0]
    return None


def names(error, flag, value):
    """Whether a message says what it is about: the option, or the value as it was given."""
    key = flag[2:].replace("-", "_")
    role = key.removesuffix("_file").replace("_", " ").rstrip("s")
    shown = (
        flag,
        key,
        role,
        repr(value)[1:-1][:60] or "''",
        value.strip()[:60],
        os.path.abspath(value.replace("\0", "")),
    )
    return any(text and text in error for text in shown)


def forms(flag, value):
    return ([flag, value], [f"{flag}={value}"])


def base_of(folder, key=None):
    words = (
        [str(folder / "edges.csv"), "--device", "cpu"]
        if key != "device"
        else [str(folder / "edges.csv")]
    )
    if key not in ("sources", "random_sources", "all_sources"):
        words += ["--random-sources", "2"] if key == "seed" else ["--sources", "1"]
    if key in ("cutoff", "weight_type"):
        words += ["--algorithm", "sssp"]
    return words + ([] if key in ("output", "plan") else ["--plan"])


@pytest.mark.parametrize("flag", FLAGS)
def test_a_wrong_value_of_an_option_of_the_job_is_named(flag, folder, capsys):
    option = FLAGS[flag]
    refused = 0
    for i, value in enumerate(wrong_for(flag)):
        words = [f"{flag}={value}"] if option.kind == "switch" else forms(flag, value)[i % 2]
        error = call(capsys, batch_sources.main, [*base_of(folder, option.key), *words])
        refused += error is not None
        if error is not None and value not in ("-", "---", "-x", "--"):
            assert names(error, flag, value), (flag, value, error)
    assert refused > 5 or option.key in (*FOLDERS, "strategy", "delimiter"), (
        "the values are wrong ones"
    )


KEYS = [*(option.key for option in OPTIONS), "edges", "knobs", "no_such_key"]


@pytest.mark.parametrize("key", KEYS)
def test_a_wrong_value_in_a_settings_file_is_named(key, folder, tmp_path, capsys):
    """Without ``--all`` with a third of the values, by turns: of three options of one kind each value is tried."""
    path = tmp_path / "run.toml"
    for value in OF_A_FILE if tiers.ALL else OF_A_FILE[KEYS.index(key) % 3 :: 3]:
        path.write_text(f"{key} = {value}\n", encoding="utf-8")
        words = [
            word
            for word in base_of(folder, key)
            if key != "edges" or not word.endswith("edges.csv")
        ]
        error = call(capsys, batch_sources.main, [*words, "--config", str(path)])
        if error is not None:
            plain = tomllib.loads(f"value = {value}")["value"]
            plain = str(plain[0] if isinstance(plain, list) and plain else plain)
            assert key in error.lower() or names(error, f"--{key}".replace("_", "-"), plain), (
                key,
                value,
                error,
            )


def test_pairs_of_options_of_the_job_work_or_are_refused(folder, tmp_path, capsys):
    more = {"output": str(tmp_path / "out"), "graph_cache": str(tmp_path / "cache"), "resume": None, "report": "--no-report",
            "plan": None, "json": None, "verbose": None, "debug": None, "device": "cpu", "hierarchy": "yes",
            "geometry": "points", "largest_component": None, "keep_columns": "kind", "build_memory": "1GB"}  # fmt: skip
    values = VALUES | more | dict.fromkeys(TLS, str(folder / "empty.pem"))
    words = {}
    for key, value in values.items():
        flag = "--" + key.replace("_", "-")
        words[key] = (
            [value]
            if value and value.startswith("--")
            else [flag]
            if value is None
            else [flag, value]
        )
        words[key] = [word.replace("{folder}", str(folder)) for word in words[key]]
    pairs = list(itertools.combinations(words, 2))
    codes = []
    for one, other in tiers.few(pairs, 450):
        argv = [str(folder / "edges.csv"), *words[one], *words[other]]
        if not {one, other} & {"sources", "random_sources", "all_sources"}:
            argv += ["--sources", "1"]
        if "output" not in (one, other) and "plan" not in (one, other):
            argv += ["--plan"]
        if "debug" in (one, other):  # unexpected errors, whose traceback is shown
            argv.remove("--debug")
        codes.append(call(capsys, batch_sources.main, argv) is None)
    assert len(pairs) == len(OPTIONS) * (len(OPTIONS) - 1) // 2
    assert 0.15 < sum(codes) / len(codes) < 0.9, "some go together, and some do not"


def test_command_lines_of_many_options_at_random_end_as_they_should(folder, tmp_path, capsys):
    choose = random.Random(18)
    flags = [flag for flag in FLAGS if flag not in ("--debug", "--plan")]
    for _ in range(300):
        argv = [str(folder / "edges.csv"), "--plan"]
        for flag in choose.sample(flags, choose.randrange(1, 6)):
            value = choose.choice([choose.choice(WRONG), VALUES.get(FLAGS[flag].key) or "1"])
            argv += (
                [flag]
                if FLAGS[flag].kind == "switch"
                else [flag, value.replace("{folder}", str(folder))]
            )
        choose.shuffle(argv)
        call(capsys, batch_sources.main, argv)
    assert not {path.name for path in tmp_path.iterdir()} - {"run.toml"}


VERIFY = ["--device", "--targets"]


@pytest.mark.parametrize("flag", [*VERIFY, "--json", "--no-such", "DIR", "EDGES"])
def test_a_wrong_value_of_an_option_of_verify_is_named(flag, folder, written, capsys):
    for i, value in enumerate(wrong_for(flag)):
        if value == "/" and flag == "EDGES":
            continue  # the whole file system would be searched for edge lists
        place = {"DIR": [value, str(folder / "edges.csv")], "EDGES": [str(written), value]}
        words = forms(flag, value)[i % 2] if flag in VERIFY else [f"{flag}={value}"]
        argv = place.get(flag, [str(written), str(folder / "edges.csv"), *words])
        if value.startswith("-") and flag in place:
            argv.insert(0, "--")
        error = call(capsys, verify.main, argv)
        if error is not None and value not in ("-", "---", "-x") and flag not in place:
            assert names(error, flag, value), (flag, value, error)


@pytest.fixture
def quick(monkeypatch):
    """Compare without searches: the plan is made, and the baseline is not called."""
    from pipelines.comparison import our_plan

    def plan_only(graph, algorithm, strategy, sources):  # noqa: ARG001
        our_plan(graph, algorithm, strategy)
        times = {"median": 1.0, "total": 1.0}
        return {"algorithm": algorithm, "strategy": strategy, "peer": "", "peer_way": "", "equal": True, "certified": 1,
                "ours_ms": times, "peer_ms": times, "ratio": 1.0}  # fmt: skip

    monkeypatch.setattr(compare, "_compare_one", plan_only)
    monkeypatch.setattr("pipelines.comparison.peak_memory", lambda *_: {})


COMPARE = [flag for flag in FLAGS if FLAGS[flag].key in compare._OPTIONS] + [
    "--algorithm",
    "--random-sources",
    "--hash-weights",
]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("flag", COMPARE)
def test_a_wrong_value_of_an_option_of_compare_is_named(flag, folder, capsys):
    is_switch = flag == "--hash-weights" or (flag in FLAGS and FLAGS[flag].kind == "switch")
    few = [] if flag == "--random-sources" else ["--random-sources", "1"]
    for i, value in enumerate(wrong_for(flag)):
        words = [f"{flag}={value}"] if is_switch else forms(flag, value)[i % 2]
        error = call(capsys, compare.main, [str(folder / "edges.csv"), *few, *words])
        if error is not None and value not in ("-", "---", "-x"):
            assert names(error, flag, value), (flag, value, error)


@pytest.mark.usefixtures("quick")
def test_pairs_of_options_of_compare_work_or_are_refused(folder, capsys):
    values = {**VALUES, "random_sources": "1", "json": None, "device": "cpu"}
    for one, other in itertools.combinations([flag for flag in COMPARE if flag != "--debug"], 2):
        argv = [str(folder / "edges.csv")]
        for flag in (one, other):
            value = values.get(flag[2:].replace("-", "_"))
            argv += (
                [value]
                if value and value.startswith("--")
                else [flag]
                if value is None
                else [flag, value]
            )
        if "--random-sources" not in argv:
            argv += ["--random-sources", "1"]
        call(capsys, compare.main, argv)


@pytest.mark.parametrize("program", [batch_sources.main, verify.main, compare.main])
def test_every_program_says_what_it_takes(program, capsys):
    for argv in (["--help"], ["-h"], ["edges.csv", "--help"]):
        assert program(argv) == 0
        captured = capsys.readouterr()
        assert captured.out.startswith("usage: python -m pipelines.")
        assert captured.err == ""


def test_the_plan_is_json_for_every_result(folder, capsys):
    results = next(option.choices for option in OPTIONS if option.key == "result")
    (folder / "attributes.csv").write_text("vertex,jobs\n1,5\n")
    cutoffs = ["--cutoffs", "1,2"]
    needed = {
        "targets": ["--targets", "2"],
        "k_nearest": ["--nearest-k", "2"],
        "nearest_targets": ["--nearest-k", "2", "--targets", "1"],
        "opportunities": [
            *cutoffs,
            "--values",
            "jobs",
            "--vertices",
            str(folder / "attributes.csv"),
        ],
        "within": cutoffs,
        "streets": [*cutoffs, "--along", "weight"],
        "isochrones": cutoffs,
    }
    (folder / "trips.csv").write_text("origin,destination\n1,2\n")
    of_pairs = [*base_of(folder, "sources"), "--pairs", str(folder / "trips.csv")]
    for result in results:
        more = needed.get(result, [])
        base = (
            of_pairs
            if result in ("pairs", "paths")
            else base_of(folder, "sources" if result == "extremes" else None)
        )
        assert batch_sources.main([*base, "--result", result, "--json", *more]) == 0
        assert json.loads(capsys.readouterr().out)["result"] == result
