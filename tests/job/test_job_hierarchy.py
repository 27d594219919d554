"""``--hierarchy``: the same results with and without one, which is stored with the graph, found again and checked."""

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import read_graph
from kepler_traverse.hierarchy import column_sums
from kepler_traverse.hierarchy.estimate import Estimate
from kepler_traverse.hierarchy.stored import has_hierarchy
from kepler_traverse.kinds import along
from kepler_traverse.multi_source.planning import MultiSourcePlan
from pipelines import batch_sources
from pipelines.cli.command_line import parse_flags
from pipelines.cli.settings import read_settings
from pipelines.run import prepare
from tests.support import tiers
from tests.support.graphs import lattice, rmat
from tests.support.jobs import manifest_of, write_edges
from tests.support.processes import ran, session_of, started, wait_until


def weighted(path, rows):
    return write_edges(
        path, *np.array(rows).T, np.random.default_rng(4).integers(1, 100, len(rows))
    )


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    return weighted(tmp_path_factory.mktemp("edges") / "edges.parquet", lattice(90, 90))


def words(edges, output, *more):
    flags = "--undirected --device cpu --random-sources 40 --batch-size 4 --no-report --output"
    algorithm = () if "--algorithm" in more else ("--algorithm", "sssp")
    return [str(word) for word in (edges, *algorithm, *flags.split(), output, *more)]


def computed(edges, output, *more):
    assert batch_sources.main(words(edges, output, *more)) == 0
    return manifest_of(output)


@pytest.fixture(scope="module")
def searched(edges, tmp_path_factory):
    """The digest of a run without a hierarchy."""
    return computed(
        edges, tmp_path_factory.mktemp("searched") / "out", "--workers", 1, "--hierarchy", "no"
    )["digest"]


@pytest.mark.parametrize("result", ["distances", "predecessors", "summary"])
def test_results_are_those_without_a_hierarchy(edges, tmp_path, result):
    more = ["--workers", 1, "--result", result]
    runs = [
        computed(edges, tmp_path / choice, *more, "--hierarchy", choice) for choice in ("yes", "no")
    ]
    assert runs[0]["digest"] == runs[1]["digest"]
    assert [run["settings"]["hierarchy"] for run in runs] == ["yes", "no"]


def test_sums_along_paths_are_those_without_a_hierarchy(edges, tmp_path, monkeypatch):
    monkeypatch.setattr(along, "_MIN_SOURCES_TO_BUILD", 1)
    swept = []
    at_targets = column_sums.SumSweeps.at_targets

    def counted(*given):
        swept.append(1)
        return at_targets(*given)

    monkeypatch.setattr(column_sums.SumSweeps, "at_targets", counted)
    more = ["--result", "targets", "--targets", "5,8,900", "--along", "weight", "--workers", 1]
    runs = []
    for choice in ("no", "yes"):
        assert not swept
        runs.append(computed(edges, tmp_path / choice, *more, "--hierarchy", choice))
    assert swept
    assert runs[0]["digest"] == runs[1]["digest"]


@pytest.mark.parametrize("result", ["distances", "summary"])
def test_hops_are_those_without_a_hierarchy(edges, tmp_path, result, capsys):
    more = [
        "--algorithm",
        "bfs",
        "--workers",
        1,
        "--result",
        result,
        "--graph-cache",
        tmp_path / "cache",
    ]
    runs = [
        computed(edges, tmp_path / choice, *more, "--hierarchy", choice) for choice in ("no", "yes")
    ]
    assert runs[0]["digest"] == runs[1]["digest"]
    assert "<Hierarchy: " in capsys.readouterr().err
    (folder,) = (path for path in (tmp_path / "cache").iterdir() if path.is_dir())
    assert has_hierarchy(folder, "hops")
    again = computed(edges, tmp_path / "again", *more, "--strategy", "hierarchy_sweep")
    assert again["digest"] == runs[0]["digest"]


@pytest.mark.parametrize(
    ("result", "algorithm", "certify"),
    tiers.pairs(["pairs", "paths"], ["bfs", "sssp"], ["all", "none"]),
)
def test_pairs_and_paths_are_those_without_a_hierarchy(edges, tmp_path, result, algorithm, certify):
    origins, destinations = np.random.default_rng(5).integers(0, 8100, (2, 30))
    trips = tmp_path / "trips.parquet"
    pq.write_table(pa.table({"origin": origins // 900 * 900, "destination": destinations}), trips)
    more = [
        "--pairs",
        trips,
        "--result",
        result,
        "--certify",
        certify,
        "--undirected",
        "--device",
        "cpu",
        "--no-report",
    ]
    found = []
    for choice in ("yes", "no"):
        given = [
            edges, "--algorithm", algorithm, *more, "--hierarchy", choice, "--workers", 1, "--output",
            tmp_path / choice,
        ]  # fmt: skip
        assert batch_sources.main([str(word) for word in given]) == 0
        manifest = manifest_of(tmp_path / choice)
        found.append((manifest["digest"], pq.read_table(tmp_path / choice)))
    assert found[0][0] == found[1][0]
    assert found[0][1].equals(found[1][1])
    assert found[0][1].num_rows > (500 if result == "paths" else 29)


def test_workers_find_the_hierarchy_with_the_graph(edges, searched, tmp_path):
    manifest = computed(
        edges,
        tmp_path / "out",
        "--workers",
        2,
        "--hierarchy",
        "yes",
        "--strategy",
        "hierarchy_sweep",
    )
    assert manifest["digest"] == searched


def test_a_stored_hierarchy_is_found_again_and_not_used_if_unwanted(
    edges, searched, tmp_path, capsys
):
    cache = ["--workers", 1, "--graph-cache", tmp_path / "cache"]
    assert computed(edges, tmp_path / "plain", *cache)["digest"] == searched
    assert computed(edges, tmp_path / "first", *cache, "--hierarchy", "yes")["digest"] == searched
    assert "<Hierarchy: " in capsys.readouterr().err
    (folder,) = (path for path in (tmp_path / "cache").iterdir() if path.is_dir())
    assert has_hierarchy(folder)
    assert (
        computed(edges, tmp_path / "second", *cache, "--strategy", "hierarchy_sweep")["digest"]
        == searched
    )
    assert "<Hierarchy: " not in capsys.readouterr().err
    unwanted = words(
        edges, tmp_path / "third", *cache, "--strategy", "hierarchy_sweep", "--hierarchy", "no"
    )
    assert batch_sources.main(unwanted) == 2
    assert "needs a hierarchy" in capsys.readouterr().err


@pytest.mark.parametrize("algorithm", ["sssp", "bfs"])
def test_a_strategy_over_a_hierarchy_is_refused_with_the_option_that_builds_one(
    edges, tmp_path, capsys, algorithm
):
    more = ["--workers", 1, "--algorithm", algorithm, "--strategy", "hierarchy_sweep"]
    assert batch_sources.main(words(edges, tmp_path / "out", *more)) == 2
    refused = capsys.readouterr().err
    assert "a run with --hierarchy yes builds one" in refused
    assert "graph.hierarchy" not in refused
    computed(edges, tmp_path / "out", *more, "--hierarchy", "yes")


def test_weights_that_no_hierarchy_takes_are_refused_in_words_of_the_job(tmp_path, capsys):
    rows = np.array(lattice(9, 9)).T
    sevenths = np.arange(1, len(rows[0]) + 1) / 7
    edges = write_edges(tmp_path / "edges.parquet", *rows, sevenths)
    assert batch_sources.main(words(edges, tmp_path / "out", "--hierarchy", "yes")) == 2
    refused = capsys.readouterr().err
    assert "scale and round them to integers" in refused
    assert "integer_weights" not in refused


def test_a_run_without_hierarchies_leaves_a_given_graph_as_it_is(edges, tmp_path):
    graph = read_graph(edges, directed=False)
    hierarchy = graph.hierarchy()
    settings = read_settings(*parse_flags(words(edges, tmp_path / "out", "--hierarchy", "no")))
    assert (
        prepare.prepare(settings, graph_in_memory=graph).graph.derived.known_hierarchy("weights")
        is None
    )
    assert graph.derived.known_hierarchy("weights") is hierarchy


def test_a_damaged_hierarchy_is_built_again_with_its_graph(edges, searched, tmp_path, capsys):
    cache = ["--workers", 1, "--graph-cache", tmp_path / "cache", "--hierarchy", "yes"]
    computed(edges, tmp_path / "first", *cache)
    (path,) = (tmp_path / "cache").rglob("upward_weights.npy")
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)
    capsys.readouterr()
    assert computed(edges, tmp_path / "second", *cache)["digest"] == searched
    assert "the graph is built again: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("estimate", "is_built"),
    [
        (Estimate(build=1.0, sweep=0.01, search=0.2), True),  # 40 sources; pays from 6 on
        (Estimate(build=1.0, sweep=0.01, search=0.02), False),  # from 100 on
        # from 6 on, but saves less than a second
        (Estimate(build=0.1, sweep=0.001, search=0.02), False),
    ],
    ids=["pays", "does not pay", "saves little"],
)
def test_auto_builds_a_hierarchy_if_the_estimate_says_so(
    edges, searched, tmp_path, capsys, monkeypatch, estimate, is_built
):
    real = MultiSourcePlan.estimate_hierarchy
    monkeypatch.setattr(
        MultiSourcePlan,
        "estimate_hierarchy",
        lambda plan, **given: real(plan, **given) and estimate,
    )
    assert computed(edges, tmp_path / "out", "--workers", 1)["digest"] == searched
    assert (
        "building a hierarchy: a hierarchy would take 1 s" in capsys.readouterr().err
    ) is is_built


def test_a_plan_names_the_break_even_and_builds_nothing(edges, capsys):
    assert batch_sources.main([*words(edges, "unused")[:-2], "--plan", "--json"]) == 0
    assert "a hierarchy would" in json.loads(capsys.readouterr().out)["why"]


def test_a_graph_with_hubs_is_refused_with_the_reason(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("kepler_traverse.hierarchy.build._SMALL", 1)
    hubs = weighted(tmp_path / "hubs.parquet", rmat(12, 8, seed=5))
    assert batch_sources.main(words(hubs, tmp_path / "out", "--hierarchy", "yes")) == 2
    assert "Networks with hubs have no hierarchy that pays" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"--result": "nearest"}, "one search"),
        ({"--algorithm": "bfs", "--device": "cuda"}, "with bfs is for --device cpu"),
    ],
)
def test_a_hierarchy_that_no_search_could_use_is_refused(edges, tmp_path, capsys, more, reason):
    flags = {"--algorithm": "sssp", "--device": "cpu", "--result": "distances"} | more
    chosen = [word for pair in flags.items() for word in pair]
    given = [
        edges,
        *chosen,
        "--random-sources",
        9,
        "--hierarchy",
        "yes",
        "--output",
        tmp_path / "out",
    ]
    assert batch_sources.main([str(word) for word in given]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_killed_run_with_a_hierarchy_resumes_to_the_same_digest(edges, searched, tmp_path):
    folder = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "pipelines.batch_sources",
        *words(edges, folder, "--workers", 2, "--hierarchy", "yes"),
    ]
    with started(command) as job:
        wait_until(lambda: list(folder.glob("part-*.parquet")), job)
        job.kill()
        wait_until(lambda: not session_of(job))
    done = ran([*command, "--resume"])
    assert done.returncode == 0, done.stderr
    assert manifest_of(folder)["digest"] == searched
