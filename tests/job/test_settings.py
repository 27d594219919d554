"""Settings from flags and files: one table, checked in one place."""

import os
import re
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from kepler_traverse.multi_source.outputs import RESULTS
from pipelines.cli.command_line import parse_flags
from pipelines.cli.options import OPTIONS, Settings, UsageError
from pipelines.cli.settings import KNOWN_KEYS, read_settings
from pipelines.output.layout import Layout
from pipelines.output.schemas import OUTPUT_SCHEMAS, ResultName
from pipelines.run.question import make_question
from pipelines.worker import planning, plugin
from tests.support.plans import BFS, SSSP
from tests.support.processes import ran

CONF = Path(__file__).parents[2] / "conf"
ENOUGH = ["edges.csv", "--output", "out", "--sources", "1"]


TLS = ["--tls-ca-file", "no_ca.pem", "--tls-cert", "no_cert.pem", "--tls-key", "no_key.pem"]
H_BF = "algorithm = 'sssp'\nstrategy = 'h_bf'\n[knobs]\n"


def settings(*argv):
    return read_settings(*parse_flags(list(argv)))


def written(tmp_path, text):
    path = tmp_path / "run.toml"
    path.write_text(text)
    return str(path)


def test_the_shipped_file_holds_every_setting_with_its_default():
    text = (CONF / "batch_sources.toml").read_text()
    values = tomllib.loads(text)
    for option in OPTIONS:
        if option.default is None:
            assert re.search(rf"^# {option.key} = .+$", text, re.M), option.key
        else:
            assert values.pop(option.key) == option.default, option.key
    assert not values
    in_comments = re.sub(r"^# (?=\w+ = )", "", text, flags=re.M)
    assert set(tomllib.loads(in_comments)) == set(KNOWN_KEYS)


@pytest.mark.parametrize(
    "name", sorted(path.relative_to(CONF).as_posix() for path in CONF.rglob("*.toml"))
)
def test_every_shipped_file_loads(name):
    sources = ["--sources", "1"] if name == "batch_sources.toml" else []
    assert settings(
        "edges.csv", "--output", "out", "--config", str(CONF / name), *sources
    ).edges == ["edges.csv"]


def test_flags_win_over_the_file(tmp_path):
    path = written(
        tmp_path,
        'edges = ["a.csv"]\noutput = "out"\nbatch_size = 7\nworkers = 3\nreport = false\nall_sources = true\n',
    )
    merged = settings("--config", path, "--batch-size", "9", "--report", "--random-sources", "4")
    assert (merged.edges, merged.batch_size, merged.workers, merged.report) == (
        ["a.csv"],
        9,
        3,
        True,
    )
    assert (merged.random_sources, merged.all_sources) == (4, False)


WITH_KNOBS = sorted(
    path.relative_to(CONF).as_posix()
    for path in CONF.rglob("*.toml")
    if "[knobs]\n" in path.read_text()
)


def test_every_strategy_with_knobs_has_a_file():
    names = sorted(f"published/{row.name}.toml" for row in (*BFS, *SSSP) if row.knobs)
    assert names
    assert names == WITH_KNOBS


@pytest.mark.parametrize("name", WITH_KNOBS)
def test_the_file_of_a_published_system_holds_all_of_its_knobs_as_published(name):
    values = tomllib.loads((CONF / name).read_text())
    wanted = (values["strategy"], values["device"])
    (row,) = [
        row
        for row in (BFS if values["algorithm"] == "bfs" else SSSP)
        if (row.name, row.device) == wanted
    ]
    assert name == f"published/{row.name}.toml"
    assert list(values["knobs"]) == [field.name for field in fields(row.knobs)]
    assert row.knobs_from(values["knobs"]) == row.knobs()


def test_knobs_of_the_file_reach_the_plan_in_the_worker(monkeypatch, tmp_path):
    given = {}
    registry = SimpleNamespace(plan_multi_source=lambda _graph, **options: given.update(options))
    monkeypatch.setattr(planning, "SSSP", registry)
    chosen = settings(
        *ENOUGH, "--config", written(tmp_path, f"{H_BF}min_width = 8\nheavy = 'blocks'")
    )
    assert chosen.knobs == {"min_width": 8, "heavy": "blocks"}
    request = planning.Request.to_answer(make_question(chosen, chosen.kind.options_class()), chosen)
    graph = SimpleNamespace(device="cuda")
    work = plugin.Work(
        request=request, layout=Layout(), graph_folder=CONF, output=CONF, device="cuda", threads=1
    )
    planning.plan_for(graph, work.request)
    assert given["knobs"] == chosen.knobs
    assert given["strategy"] == "h_bf"


def test_a_misspelt_key_is_an_error_that_lists_the_known_ones(tmp_path):
    path = written(tmp_path, "batchsize = 7\n")
    with pytest.raises(UsageError) as caught:
        settings(*ENOUGH, "--config", path)
    message = str(caught.value)
    assert "unknown key 'batchsize'; did you mean 'batch_size'?" in message
    assert all(key in message for key in KNOWN_KEYS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('batch_size = "7"', "batch_size cannot be '7'"),
        ("workers = 0", "workers cannot be 0"),
        ("resume = 1", "resume cannot be 1"),
        ('certify = "some"', "certify cannot be 'some'"),
        ("cutoff = nan\nalgorithm = 'sssp'", "cutoff cannot be nan"),
        ("max_depth = -1", "max_depth cannot be -1"),
        ("result = 'all'", "result cannot be 'all'"),
        ("workers = ", "not a TOML file"),
        ("strategy = " + "[" * 5000, "nested too deeply"),
        ('columns.src = "a\\u0000b"', "run.toml: columns cannot be {'src': 'a\\x00b'}"),
        ('targets = ["a", "b\\u0000"]', "a text is empty or holds a null character"),
        ("knobs = 3", "knobs cannot be 3"),
        ("[knobs]", "knobs cannot be {}"),
        ("[knobs]\nk1 = 8", "[knobs] are those of one strategy, and strategy is 'auto'"),
        (f"{H_BF}width = 8", "[knobs]: strategy 'h_bf' has no knob 'width'; it has edge_classes"),
        (
            f"{H_BF}min_width = 3",
            "[knobs]: knob min_width of h_bf must be one of (1, 2, 4, 8, 16, 32), not 3",
        ),
        (f"{H_BF}counters = 1", "[knobs]: knob counters of h_bf must be true or false, not 1"),
        (
            "strategy = 'queue_warp'\n[knobs]\nk1 = 8",
            "[knobs]: strategy 'queue_warp' has no knobs; leave them out",
        ),
    ],
)
def test_a_wrong_value_in_a_file_is_an_error_that_names_it(tmp_path, text, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        settings(*ENOUGH, "--config", written(tmp_path, text))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([*ENOUGH, "--seed", "1", "--seed", "2"], "--seed is given twice"),
        ([*ENOUGH, "--directed", "--undirected"], "--undirected is given twice"),
        ([*ENOUGH, "--plan", "--no-plan"], "--no-plan is given twice"),
        ([*ENOUGH, "--frobnicate"], "unknown option --frobnicate; see python -m pipelines.batch_sources --help"),
        ([*ENOUGH, "--source", "2"], "unknown option --source; did you mean --sources?"),
        ([*ENOUGH, "--all"], "unknown option --all; did you mean --all-sources?"),
        ([*ENOUGH, "--colums=src=a"], "unknown option --colums; did you mean --columns"),
        ([*ENOUGH, "--columns", "src"], "argument --columns: 'src' is no ROLE=NAME, such as src=from_id"),
        ([*ENOUGH, "--columns", "from=a"], "argument --columns: 'from' is no role of a column; take src, dst, weight"),
        ([*ENOUGH, "--columns", "src=a,src=b"], "argument --columns: the role 'src' is given twice"),
        ([*ENOUGH, "--columns", "src=a", "--columns", "src=b"], "--columns is given twice"),
        ([*ENOUGH, "--batch_size", "4"], "unknown option --batch_size; did you mean --batch-size?"),
        ([*ENOUGH, "-sources", "4"], "unknown option -sources; did you mean --sources?"),
        (["edges.csv", "--plan", "more.csv", "--sources", "1"], "unexpected argument 'more.csv'"),
        ([*ENOUGH[:-2], "--sources", "-a,b"], "a value that begins with - is given as --sources=VALUE"),
        ([*ENOUGH[:-2], "--random-sources", "-3"], "--random-sources cannot be -3"),
        ([*ENOUGH, "--seed", "1_0"], "'1_0' is not a whole number"),
        ([*ENOUGH, "--workers", "\u0663"], "is neither a whole number nor 'auto'"),
        ([*ENOUGH, "--algorithm", "sssp", "--cutoff", "1_0"], "'1_0' is no number"),
        ([*ENOUGH, "--algorithm", "sssp", "--cutoff", "-inf"], "--cutoff cannot be -inf"),
        ([*ENOUGH, "--dashboard-address", "127.0.0.1:99999"], "it is HOST:PORT"),
        ([*ENOUGH, "--work", "2"], "unknown option --work; did you mean --workers or --worker-timeout?"),
        ([*ENOUGH, "--workers", "many"], "'many' is neither a whole number nor 'auto'"),
        ([*ENOUGH, "--device", "tpu"], "invalid choice: 'tpu'"),
        ([*ENOUGH, "--result", "bitmap"], "invalid choice: 'bitmap'"),
        ([*ENOUGH, "--result", "nearest", "--batch-size", "4"],
         "one search from all sources together; leave --batch-size out"),
        ([*ENOUGH, "--scheduler-address", "a:1", "--scheduler-file", "b"], "two schedulers"),
        ([*ENOUGH, "--scheduler-address", "somewhere"], "it is PROTOCOL://HOST:PORT, such as tcp://10.0.0.1:8786"),
        ([*ENOUGH, *TLS], "are for a scheduler that runs already"),
        ([*ENOUGH, *TLS[:4]], "--tls-cert and --tls-key go together; give --tls-key, too"),
        ([*ENOUGH, *TLS, "--scheduler-address", "tcp://a:1"], "tcp://a:1 is not encrypted"),
        ([*ENOUGH, *TLS, "--scheduler-address", "tls://a:1"], "no_ca.pem: the file cannot be read: No such file"),
        ([*ENOUGH, "--batch-deadline", "soon"], "'soon' is neither a number nor 'auto'"),
        ([*ENOUGH, "--batch-deadline", "0"], "--batch-deadline cannot be 0.0"),
        ([*ENOUGH, "--worker-timeout", "0"], "--worker-timeout cannot be 0.0"),
        ([*ENOUGH, "--config", "no_such.toml"], "no_such.toml: the settings file cannot be read"),
        (["edges.csv", "--output", "out"], "no sources are given"),
        (["edges.csv", "--sources", "1"], "--output is missing"),
        (["edges.csv", "--output", "out", "--sources", ","], "argument --sources: ',' holds an empty id"),
        (["edges.csv", "--output", "out", "--sources", "1,,2"], "argument --sources: '1,,2' holds an empty id"),
        ([*ENOUGH, "--result", "betweenness", "--samples", "5"],
         "--samples chooses among all vertices; give --all-sources, or leave --samples out"),
        ([*ENOUGH, "--graph-cache", "out/graphs"], "--graph-cache out/graphs: it is in the folder of --output"),
        ([*ENOUGH[:1], "--all-sources", "--output", "s3://a/b/", "--graph-cache", "s3://a/b"], "it is in the folder of"),
        ([*ENOUGH, "--samples", "5"], "--samples is for --result betweenness, not distances; leave it out"),
        ([*ENOUGH, "--scheduler-file", "b", "--workers", "4"], "--workers has no effect"),
        ([*ENOUGH, "--engine", "cugraph-mg", "--worker-timeout", "9"], "--worker-timeout has no effect"),
        ([*ENOUGH, "--engine", "cugraph-mg", "--gpu-memory", "9GB"], "--gpu-memory has no effect"),
        (["--output", "out", "--sources", "1"], "no edge list is given"),
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_an_error_that_says_what_to_do(argv, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        settings(*argv)


@pytest.mark.parametrize("ids", ["-5", "-5,3", "3,-5", "-5,-3", "-05"])
@pytest.mark.parametrize("flag", ["sources", "targets"])
def test_ids_below_zero_are_given_with_a_blank_or_an_equals_sign(ids, flag):
    base = ["edges.csv", "--output", "out"] + (["--sources", "1"] if flag == "targets" else [])
    for words in ([f"--{flag}", ids], [f"--{flag}={ids}"]):
        assert getattr(settings(*base, *words), flag) == ids.split(",")


def test_a_value_below_zero_is_the_value_of_no_other_option():
    flags, _ = parse_flags(["--json", "--sources", "-5,3", "--", "-7", "--sources"])
    assert (flags["edges"], flags["sources"]) == (["-7", "--sources"], ["-5", "3"])


def test_a_setting_of_a_file_that_has_no_effect_is_said(tmp_path, capsys):
    path = written(tmp_path, "columns.weight = 'minutes'\nseed = 7\nall_sources = true")
    chosen = settings("edges.csv", "--output", "out", "--config", path)
    # or the manifest would have what no run may have
    assert (chosen.columns, chosen.seed) == (None, 1)
    assert capsys.readouterr().err.splitlines() == [
        f"note: {path}: seed has no effect: it draws --random-sources, and the sources are given otherwise",
        f"note: {path}: columns.weight has no effect: bfs counts hops and takes no weights; --algorithm sssp does",
    ]


@pytest.mark.parametrize(
    ("text", "flags", "result"),
    [
        ("", [], "distances"),
        ("result = 'predecessors'", [], "predecessors"),
        ("result = 'predecessors'", ["--result", "nearest"], "nearest"),
        ("result = 'nearest'", ["--nearest-k", "2"], "k_nearest"),
        ("result = 'targets'\ntargets = [3]", ["--targets", "t.txt"], "targets"),
    ],
)
def test_result_is_that_of_the_flag_or_of_the_file(tmp_path, text, flags, result):
    assert settings(*ENOUGH, *flags, "--config", written(tmp_path, text)).result == result


def test_the_results_are_those_of_the_library():
    assert tuple(OUTPUT_SCHEMAS) == (
        *RESULTS,
        "extremes",
        "labels",
    )  # of which the library has functions


def test_settings_results_are_those_of_the_forms():
    assert get_args(ResultName) == tuple(OUTPUT_SCHEMAS)


def test_settings_have_a_flag_but_for_edges_and_knobs():
    assert {field.name for field in fields(Settings)} == {
        "edges",
        "knobs",
        *(option.key for option in OPTIONS),
    }


def test_the_scheduler_file_of_the_environment_is_taken(monkeypatch):
    monkeypatch.setenv("SCHEDULER_FILE", "somewhere.json")
    assert settings(*ENOUGH).scheduler_file == "somewhere.json"
    assert settings(*ENOUGH, "--scheduler-address", "tcp://127.0.0.1:1").scheduler_file is None


def test_help_imports_no_large_package():
    code = (
        "import sys; from pipelines.batch_sources import main; code = main(['--help']); "
        "heavy = {'numpy', 'numba', 'pydantic', 'distributed', 'pyarrow', 'kepler_traverse.graph'} & set(sys.modules); "
        "sys.exit(f'{code} {sorted(heavy)}' if code or heavy else 0)"
    )
    done = ran([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr
    assert "--random-sources" in done.stdout


def test_the_settings_that_type_checkers_see_are_those_of_the_options():
    """Options of result kinds are written down in ``Settings`` and made of the dataclasses of the kinds."""
    program = (
        "import typing\n"
        "from dataclasses import fields\n"
        "from pipelines.cli.options import Settings\n"
        "written = Settings.__mro__[1]\n"
        "def facts(settings):\n"
        "    hints = typing.get_type_hints(settings)\n"
        "    return [(each.name, hints[each.name], each.default) for each in fields(settings)]\n"
        "of_written, of_made = facts(written), facts(Settings)\n"
        "assert of_written == of_made, set(map(repr, of_written)) ^ set(map(repr, of_made))\n"
        "assert all('help' in each.metadata for each in fields(Settings))\n"
    )
    # without the plug-ins of other tests, which add options
    environment = {key: value for key, value in os.environ.items() if key != "KEPLER_PLUGINS"}
    done = ran([sys.executable, "-c", program], env=environment)
    assert done.returncode == 0, done.stderr
