"""Each rule of several settings refuses what violates it, by its flags, and nothing else."""

from dataclasses import replace

import pytest

from pipelines.cli.constraints import CONSTRAINTS, violations
from pipelines.cli.options import OPTIONS, TLS, Settings, flag_of_key
from pipelines.cli.settings import KNOWN_KEYS

FINE = Settings(edges=["edges.csv"], sources=["1"], output="out")
TLS_FILES = dict.fromkeys(TLS, "file.pem")
# For each rule, by its names, settings that violate it alone.
PLANTED = {
    ("scheduler_address", "scheduler_file"): {"scheduler_address": "a:1", "scheduler_file": "f"},
    ("columns.limit", "max_depth"): {
        "columns": {"limit": "m", "source": "s"}, "max_depth": 3, "algorithm": "bfs"
    },
    ("columns.limit", "cutoff"): {
        "columns": {"limit": "m", "source": "s"}, "cutoff": 3.0, "algorithm": "sssp"
    },
    ("shard", "scheduler_address"): {"shard": "0/2", "scheduler_address": "a:1"},
    ("shard", "scheduler_file"): {"shard": "0/2", "scheduler_file": "f"},
    ("graph_cache", "output"): {"graph_cache": "out/cache"},
    ("keep_columns", "sources"): {"keep_columns": ["name"]},
    ("partition_by", "sources"): {"partition_by": "zone"},
    ("values", "vertices"): {"values": ["jobs"]},
    ("geometry", "vertices"): {"geometry": ["x", "y"]},
    TLS: {"tls_key": "file.pem", "scheduler_address": "tls://a:1"},
    (*TLS, ""): TLS_FILES,
    ("columns.origin", "columns.destination"): {"columns": {"origin": "from"}},
    ("scheduler_address", *TLS): {**TLS_FILES, "scheduler_address": "a:1"},
    ("shard", "result"): {"shard": "0/2", "result": "nearest"},
    ("engine", "output"): {"engine": "cugraph-mg", "output": "s3://bucket/out"},
    ("cutoff", "max_depth"): {"algorithm": "bfs", "cutoff": 3.0},
    ("max_depth", "cutoff"): {"algorithm": "sssp", "max_depth": 3},
    ("columns.oneway", "directed"): {"columns": {"oneway": "one"}, "directed": False},
    ("hierarchy", "device"): {"hierarchy": "yes", "algorithm": "bfs", "device": "cuda"},
    ("output", "plan"): {"output": None},
}  # fmt: skip


def name_of(place):
    """The names of a rule; of two rules with the same names the second has one more."""
    names = CONSTRAINTS[place].names
    is_second = names in [each.names for each in CONSTRAINTS[:place]]
    return (*names, "") if is_second else names


PLACES = range(len(CONSTRAINTS))


def test_settings_without_a_fault_violate_no_rule():
    assert list(violations(FINE)) == []


@pytest.mark.parametrize("place", PLACES, ids=lambda place: "-".join(name_of(place)))
def test_a_rule_refuses_what_violates_it_and_names_its_flags(place):
    constraint = CONSTRAINTS[place]
    planted = replace(FINE, **PLANTED[name_of(place)])
    assert list(violations(planted)) == [constraint.message(planted)]
    text = constraint.message(planted)
    assert flag_of_key(constraint.names[0]) in text
    assert "{" not in text
    assert "None" not in text


def test_each_rule_has_a_planted_violation_and_names_settings():
    assert {name_of(place) for place in PLACES} == set(PLANTED)
    for constraint in CONSTRAINTS:
        for name in constraint.names:
            key, _, role = name.partition(".")
            assert key in KNOWN_KEYS
            assert bool(role) == (key == "columns")
        assert constraint.remedy or constraint.names == ("output", "plan")


def test_each_option_that_reads_a_table_has_a_rule():
    needing = {(option.key, option.table) for option in OPTIONS if option.table}
    assert needing <= {constraint.names for constraint in CONSTRAINTS}
