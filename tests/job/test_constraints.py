"""Each rule of several options refuses what violates it, on every surface, and nothing else.

No edge list exists: rules are about options alone, and are evaluated before anything is read.
"""

import re
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from kepler_traverse import bfs_many, bfs_pairs, graph_from_edges, sssp_many
from kepler_traverse.errors import InputError, options_spelled
from kepler_traverse.kinds import rules
from kepler_traverse.kinds.constraints import GivenOptions, violations
from kepler_traverse.kinds.result_kinds import RESULT_KINDS
from pipelines.cli.command_line import parse_flags
from pipelines.cli.constraints import CONSTRAINTS, IDLE
from pipelines.cli.options import COLUMN_ROLES, MG, OPTIONS, TLS, Settings, UsageError, flag_text
from pipelines.cli.settings import KNOWN_KEYS, merge_settings, read_settings
from pipelines.job import run_job

ROWS = (*CONSTRAINTS, *IDLE)
FINE = Settings(edges=["edges.csv"], sources=["1"], output="out")
ON_MG = {"engine": MG}
TLS_FILES = dict.fromkeys(TLS, "file.pem")
LIMITS = {"columns": {"limit": "m", "source": "s"}, "sources": "s.csv"}
LOADS = {"result": "betweenness", "all_sources": True, "sources": None}
# For each rule of the job, by the names of its options, settings that violate it; of several with
# the same names in their order.
PLANTED = {
    ("sources", "random_sources", "all_sources", "pairs"): [
        {"sources": None}, {"random_sources": 3, "all_sources": True}
    ],
    ("scheduler_address", "scheduler_file"): [{"scheduler_address": "a:1", "scheduler_file": "f"}],
    ("columns.limit", "max_depth"): [{**LIMITS, "max_depth": 3, "algorithm": "bfs"}],
    ("columns.limit", "cutoff"): [{**LIMITS, "cutoff": 3.0, "algorithm": "sssp"}],
    ("shard", "scheduler_address"): [{"shard": "0/2", "scheduler_address": "a:1"}],
    ("shard", "scheduler_file"): [{"shard": "0/2", "scheduler_file": "f"}],
    ("graph_cache", "output"): [{"graph_cache": "out/cache"}],
    ("keep_columns", "sources"): [{"keep_columns": ["name"]}],
    ("partition_by", "sources"): [{"partition_by": "zone"}],
    ("values", "vertices"): [{"values": ["jobs"], "cutoffs": [1], "result": "opportunities"}],
    ("geometry", "vertices"): [{"geometry": "points", "cutoffs": [1], "result": "isochrones"}],
    TLS: [{"tls_key": "file.pem", "scheduler_address": "tls://a:1"}, TLS_FILES],
    ("columns.origin", "columns.destination"): [
        {"columns": {"origin": "from"}, "pairs": "p.csv", "sources": None}
    ],
    ("scheduler_address", *TLS): [{**TLS_FILES, "scheduler_address": "a:1"}],
    ("shard", "result"): [{"shard": "0/2", "result": "nearest"}],
    ("cutoff", "max_depth"): [{"algorithm": "bfs", "cutoff": 3.0}],
    ("max_depth", "cutoff"): [{"algorithm": "sssp", "max_depth": 3}],
    ("columns.oneway", "directed"): [{"columns": {"oneway": "one"}, "directed": False}],
    ("columns.reverse_weight", "directed"): [
        {"columns": {"reverse_weight": "b"}, "directed": False, "algorithm": "sssp"}
    ],
    ("columns.reverse_weight", "columns.oneway"): [
        {"columns": {"reverse_weight": "b", "oneway": "one"}, "algorithm": "sssp"}
    ],
    ("closed", "algorithm"): [{"closed": "c.csv"}],
    ("closed", "result"): [{"closed": "c.csv", "algorithm": "sssp", "result": "matrix"}],
    ("closed", "direction"): [
        {"closed": "c.csv", "algorithm": "sssp", "result": "summary", "direction": "in"}
    ],
    ("hierarchy", "device"): [{"hierarchy": "yes", "algorithm": "bfs", "device": "cuda"}],
    ("result", "device"): [{"result": "labels", "device": "cuda"}],
    ("result", "hierarchy"): [{"result": "labels", "hierarchy": "no"}],
    ("output", "plan"): [{"output": None}],
    ("result", "engine"): [{**ON_MG, "result": "predecessors"}],
    ("device", "engine"): [{**ON_MG, "device": "cpu"}],
    ("unreached", "engine"): [{**ON_MG, "unreached": "null"}],
    ("columns.limit", "engine"): [{**ON_MG, **LIMITS}],
    ("along", "engine"): [
        {**ON_MG, "along": ["metres"], "result": "targets", "targets": ["2"]}
    ],
    ("direction", "engine"): [{**ON_MG, "direction": "in", "result": "summary"}],
    ("strategy", "engine"): [{**ON_MG, "strategy": "push"}],
    ("knobs", "engine"): [{**ON_MG, "knobs": {"width": 3}}],
    ("hierarchy", "engine"): [{**ON_MG, "hierarchy": "yes"}],
    ("shard", "engine"): [{**ON_MG, "shard": "0/2"}],
    ("partition_by", "engine"): [
        {**ON_MG, "partition_by": "zone", "columns": {"source": "s"}, "sources": "s.csv"}
    ],
    ("graph_cache", "engine"): [{**ON_MG, "graph_cache": "graphs"}],
    ("vertices", "engine"): [{**ON_MG, "vertices": "v.csv"}],
    ("only_vertices", "engine"): [{**ON_MG, "only_vertices": "v.csv"}],
    ("where", "engine"): [{**ON_MG, "where": "a > 3"}],
    ("columns.oneway", "engine"): [{**ON_MG, "columns": {"oneway": "one"}}],
    ("columns.reverse_weight", "engine"): [{**ON_MG, "columns": {"reverse_weight": "b"}}],
    ("closed", "engine"): [{**ON_MG, "closed": "c.csv"}],
    ("largest_component", "engine"): [{**ON_MG, "largest_component": True}],
    ("id_type", "engine"): [{**ON_MG, "id_type": "string"}],
    ("format", "engine"): [{**ON_MG, "format": "csv"}],
    ("engine", "output"): [{**ON_MG, "output": "s3://bucket/out"}],
    ("partition_by", "result"): [{"partition_by": "zone", "result": "nearest"}],
    ("seed", "random_sources"): [{"seed": 7}],
    ("weight_type", "algorithm"): [{"weight_type": "float64"}],
    ("part_size", "batch_size"): [{"part_size": 9, "batch_size": 3}],
    ("part_size", "result"): [
        {"part_size": 9, "result": "nearest"}, {**LOADS, "part_size": 9}
    ],
    ("part_size", "engine"): [{**ON_MG, "part_size": 9}],
    ("workers", "scheduler_address"): [{"workers": 3, "scheduler_address": "a:1"}],
    ("gpu_memory", "device"): [{"gpu_memory": 9, "device": "cpu"}],
    ("gpu_memory", "engine"): [{**ON_MG, "gpu_memory": 9}],
    ("worker_timeout", "engine"): [{**ON_MG, "worker_timeout": 9.0}],
    ("build_memory", "graph_cache"): [{"build_memory": 9}],
    ("build_memory", "where"): [{"build_memory": 9, "graph_cache": "g", "where": "a > 3"}],
    ("build_memory", "only_vertices"): [
        {"build_memory": 9, "graph_cache": "g", "only_vertices": "v.csv"}
    ],
    ("build_memory", "closed"): [
        {"build_memory": 9, "graph_cache": "g", "closed": "c.csv", "algorithm": "sssp"}
    ],
    ("build_memory", "largest_component"): [
        {"build_memory": 9, "graph_cache": "g", "largest_component": True}
    ],
    ("build_memory", "columns.oneway"): [
        {"build_memory": 9, "graph_cache": "g", "columns": {"oneway": "one"}}
    ],
    ("build_memory", "columns.reverse_weight"): [
        {"build_memory": 9, "graph_cache": "g", "columns": {"reverse_weight": "b"}, "algorithm": "sssp"}
    ],
    ("build_memory", "result"): [{**LOADS, "build_memory": 9, "graph_cache": "g"}],
    ("dashboard_address", "scheduler_address"): [
        {"dashboard_address": "a:8787", "scheduler_address": "a:1"}
    ],
    ("price_requests", "output"): [{"price_requests": 0.1}],
    ("price_gb", "output"): [{"price_gb": 0.1}],
    ("columns.weight", "algorithm"): [{"columns": {"weight": "w"}}],
    ("columns.reverse_weight", "algorithm"): [{"columns": {"reverse_weight": "w"}}],
} | {
    (f"columns.{role}", table): [{"columns": {role: "x"}}]
    for role, table in COLUMN_ROLES.items()
    if table != "edges"
}  # fmt: skip
# For each rule of a kind, in the order of its rows: options by the names of keyword arguments.
OF_KINDS = {
    "nearest": [{"start_costs": [2.0]}],
    "flows": [
        {"of": "pairs"},
        {"volumes": [2.0]},
        {"source_weights": [2.0], "pairs": True},
        {"target_weights": [2.0], "pairs": True},
        {"targets": [2], "pairs": True},
    ],
    "betweenness": [
        {"of": "pairs"},
        {"of": "edges", "endpoints": True},
        {"samples": 2, "sources": [1]},
        {"epsilon": 0.3, "sources": [1]},
        {"seed": 3},
        {"delta": 0.3},
        {"samples": 2, "epsilon": 0.3},
    ],
}
OF_KIND = [(kind, place) for kind, planted in OF_KINDS.items() for place in range(len(planted))]


def planted_settings(place):
    """Settings that violate a rule of the job."""
    names = ROWS[place].names
    before = [row.names for row in ROWS[:place]].count(names)
    return PLANTED[names][before]


def test_settings_without_a_fault_violate_no_rule():
    given = {row.names[0] for row in IDLE if FINE.is_given(row.names[0])}
    assert given == set()
    assert list(violations(FINE, CONSTRAINTS)) == []


@pytest.mark.parametrize(
    "place", range(len(ROWS)), ids=lambda place: f"{place}-{'-'.join(ROWS[place].names)}"
)
def test_a_rule_of_the_job_names_its_flags_and_what_to_do(place):
    row = ROWS[place]
    planted = replace(FINE, **planted_settings(place))
    with options_spelled(flag_text):
        violation = row.violation(planted)
        named = [flag_text(name).partition(" ")[0] for name in row.names]
    assert violation is not None
    assert any(flag in str(violation) for flag in named)
    assert not re.search(r"[{}]|None", str(violation).replace("{'", ""))
    assert violation.remedy


def in_words(settings):
    """Settings as a command line."""
    words = ["no_such_edges.csv"]
    for key, value in settings.items():
        if value is None:
            continue
        if isinstance(value, dict):
            value = ",".join(f"{role}={name}" for role, name in value.items())
        elif isinstance(value, list):
            value = ",".join(map(str, value))
        if value is False:
            words += ["--undirected"]
        else:
            words += [f"--{key}".replace("_", "-"), *([] if value is True else [str(value)])]
    return words


OF_FLAGS = [place for place in range(len(ROWS)) if "knobs" not in planted_settings(place)]


@pytest.mark.parametrize("place", OF_FLAGS, ids=lambda place: "-".join(ROWS[place].names))
def test_flags_that_violate_a_rule_are_refused_though_no_edge_list_exists(place, monkeypatch):
    monkeypatch.delenv("SCHEDULER_FILE", raising=False)
    given = {"sources": ["1"], "output": "out"} | planted_settings(place)
    merge = read_settings if ROWS[place].of_tables else merge_settings
    with pytest.raises(UsageError, match="--"):
        merge(*parse_flags(in_words(given)))


@pytest.mark.parametrize("place", range(len(IDLE)), ids=lambda place: "-".join(IDLE[place].names))
def test_a_key_of_a_file_that_has_no_effect_is_left_out_with_a_note(place, tmp_path, capsys):
    key, _, role = IDLE[place].names[0].partition(".")
    planted = {"edges": ["e.csv"], "sources": ["1"], "output": "out"} | planted_settings(
        len(CONSTRAINTS) + place
    )
    planted = {name: value for name, value in planted.items() if value is not None}
    own = planted["columns"] if role else planted[key]
    flags = {name: value for name, value in planted.items() if name != key}
    if isinstance(own, dict):
        text = "{" + ", ".join(f'{name} = "{each}"' for name, each in own.items()) + "}"
    else:
        text = f'"{own}"' if isinstance(own, str) else str(own)
    config = tmp_path / "run.toml"
    config.write_text(f"{key} = {text}\n")
    merged = merge_settings(flags, config, {})
    assert not merged.is_given(IDLE[place].names[0])
    assert f"note: {config}: " in capsys.readouterr().err


def test_each_rule_of_the_job_has_a_planted_violation_and_names_settings():
    assert {row.names for row in ROWS} == set(PLANTED)
    assert sum(map(len, PLANTED.values())) == len(ROWS)
    for row in ROWS:
        for name in row.names:
            key, _, role = name.partition(".")
            assert key in KNOWN_KEYS
            assert bool(role) == (key == "columns" and name != "columns")


def test_each_option_that_reads_a_table_has_a_rule():
    needing = {(option.key, option.table) for option in OPTIONS if option.table}
    assert needing <= {row.names for row in CONSTRAINTS}


def test_each_rule_of_a_kind_has_a_planted_violation_and_names_options():
    known = {each.name for kind in RESULT_KINDS.values() for each in fields(kind.options_class)}
    own = {name: kind.options_class.constraints for name, kind in RESULT_KINDS.items()}
    assert {name: len(rows) for name, rows in own.items() if rows} == {
        name: len(planted) for name, planted in OF_KINDS.items()
    }
    for rows in own.values():
        for row in rows:
            assert set(row.names) <= known | {"sources", "targets", "pairs"}
            assert row.remedy


GRAPH = graph_from_edges(np.array([0, 1, 2]), np.array([1, 2, 3]), edge_ids=True)


@pytest.mark.parametrize(("kind", "place"), OF_KIND)
def test_keywords_that_violate_a_rule_of_a_kind_are_refused_by_it(kind, place):
    row = RESULT_KINDS[kind].options_class.constraints[place]
    options = dict(OF_KINDS[kind][place])
    values = dict.fromkeys(("pairs", "sources")) | options
    written = {name: name for name, value in options.items()}
    given = GivenOptions(kind=RESULT_KINDS[kind], algorithm="bfs", written=written, values=values)
    violation = row.violation(given)
    assert violation is not None
    if row.names == ("targets", "pairs"):
        return  # no function takes both
    if options.pop("pairs", None):
        call = partial(bfs_pairs, GRAPH, [0], [3])
    else:
        call = partial(bfs_many, GRAPH, options.pop("sources", "all"))
    with pytest.raises(InputError, match=re.escape(str(violation))):
        call(result=kind, **options)


# Volumes are a column of the table of pairs, and a job has a seed for all kinds.
OF_JOB = [
    (kind, place)
    for kind, place in OF_KIND
    if not OF_KINDS[kind][place].keys() & {"volumes", "seed"}
]


@pytest.mark.parametrize(("kind", "place"), OF_JOB)
def test_a_job_that_violates_a_rule_of_a_kind_is_refused_before_it_reads(kind, place, tmp_path):
    options = dict(OF_KINDS[kind][place])
    columns = {}
    for name in ("source_weights", "target_weights", "start_costs"):
        if options.pop(name, None):
            columns = {name[:-1]: "w"}
    if options.pop("pairs", None):
        options["pairs"] = "no_such_pairs.csv"
    elif "sources" not in options:
        options["all_sources"] = True
    if columns:
        options["targets" if "target_weight" in columns else "sources"] = "no_such_table.csv"
        options.pop("all_sources", None)
        options["columns"] = columns
    given = {"output": str(tmp_path / "out"), "result": kind, **options}
    with pytest.raises(UsageError, match="--"):
        merge_settings(*parse_flags(in_words(given)), environment={})
    for name in {"sources", "targets", "pairs"} & given.keys():
        if str(given[name]).startswith("no_such"):
            given[name] = Path(given[name])
    with pytest.raises(InputError) as refused:
        run_job("no_such_edges.csv", **given)
    assert "--" not in str(refused.value)
    assert "no_such" not in str(refused.value)


# For each rule of all kinds, by its option: a kind that it is not for.
OF_ALL_KINDS = {
    "sources": ["extremes"], "limit": ["extremes", "labels", "within"],
    "strategy": ["extremes", "labels"],
    "limits": ["nearest"], "stream": ["nearest", "flows"], "batch_size": ["nearest"],
    "workers": ["nearest"], "hierarchy": ["nearest"], "keep_columns": ["distances"],
    "direction": ["reachable"], "groups": ["distances"],
}  # fmt: skip


@pytest.mark.parametrize("option", OF_ALL_KINDS)
def test_an_option_is_refused_by_kinds_that_it_is_not_for(option):
    from pipelines.output.schemas import OUTPUT_SCHEMAS

    rows = [row for row in rules.ROWS if option in row.names]
    assert len(rows) == len(OF_ALL_KINDS[option])
    for row, kind in zip(rows, OF_ALL_KINDS[option], strict=True):
        given = GivenOptions(
            kind=OUTPUT_SCHEMAS[kind], algorithm="bfs", written={option: option}, values={}
        )
        found = [violation for each, violation in rules.violations(given) if each is row]
        assert len(found) == 1
        assert found[0].remedy
        assert kind in found[0].fact


def test_each_rule_of_all_kinds_has_a_planted_violation():
    assert {row.names[0] for row in rules.ROWS} == set(OF_ALL_KINDS)


def test_merging_settings_opens_no_file(tmp_path, monkeypatch):
    names = ("edges.csv", "sources.csv", "targets.csv", "vertices.csv")
    for name in names:
        (tmp_path / name).write_text("source,weight\n1,2\n")
    opened = []
    monkeypatch.setattr("builtins.open", lambda *more, **_: opened.append(more))
    monkeypatch.setattr("os.open", lambda *more, **_: opened.append(more))
    paths = [str(tmp_path / name) for name in names]
    merge_settings({
        "edges": paths[:1], "output": str(tmp_path / "out"), "algorithm": "sssp",
        "result": "targets", "sources": paths[1], "targets": paths[2], "vertices": paths[3],
    }, environment={})  # fmt: skip
    assert opened == []


def test_an_array_is_no_value_that_a_rule_knows():
    with pytest.raises(InputError, match="is none of 'edges', 'vertices', 'pairs'"):
        sssp_many(
            graph_from_edges(np.array([0, 1]), np.array([1, 2]), np.ones(2), edge_ids=True),
            [0], result="flows", targets=[1], of=np.array(["pairs", "edges"]),
        )  # fmt: skip
