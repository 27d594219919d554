"""Results of the job other than distances: equal to the library's, one digest for any batches, certified, resumable."""

import asyncio
import hashlib
import json
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kepler_traverse import graph_from_edges, read_graph, sssp_many
from kepler_traverse.errors import NegativeCycleError
from kepler_traverse.graph.storage import write_graph
from kepler_traverse.kinds.question import Targets
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.multi_source.together import NearestSearch
from kepler_traverse.search.plan import Plan
from pipelines.batch_sources import main
from pipelines.output.checksums import checksums_in
from pipelines.output.layout import Layout
from pipelines.output.part_file import FOOTER_KEY, MEANS_KEY, RESULT_KEY
from pipelines.output.run_folder import compute_digest
from pipelines.output.schemas import OUTPUT_SCHEMAS
from pipelines.worker.planning import Request
from pipelines.worker.plugin import TraversalPlugin, Work
from tests.support import tiers
from tests.support.clusters import threads_of_this_process
from tests.support.jobs import (
    Runs,
    by_library,
    forget_parts,
    manifest_of,
    parts_of,
    proven,
    rows_of,
    seal,
    summary_of,
    write_edges,
)  # fmt: skip

N_SOURCES = 15
TARGETS = [91, 14, 322]  # in no order; the last reaches and is reached by nothing
CASES = {
    "summary": ["--result", "summary"],
    "summary of weights, to a limit": ["--result", "summary", "--algorithm", "sssp", "--cutoff", 9],
    "levels, to a limit": ["--result", "levels", "--max-depth", 4],
    "targets": ["--result", "targets", "--targets", ",".join(map(str, TARGETS))],
    "targets of weights": [
        "--result",
        "targets",
        "--algorithm",
        "sssp",
        "--targets",
        ",".join(map(str, TARGETS)),
    ],
    "reachable": ["--result", "reachable"],
    "nearest targets": [
        "--result",
        "nearest_targets",
        "--nearest-k",
        2,
        "--targets",
        ",".join(map(str, TARGETS)),
    ],
    "nearest": ["--result", "nearest", "--max-depth", 2],
    "nearest of weights": ["--result", "nearest", "--algorithm", "sssp"],
}
CERTIFIED = ["summary", "levels, to a limit", "targets of weights", "reachable", "nearest"]


def result_of(case):
    return CASES[case][1]


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    rng = np.random.default_rng(7)
    src, dst = rng.integers(0, 45, (2, 100)) * 7
    path = tmp_path_factory.mktemp("edges") / "edges.parquet"
    return write_edges(path, [*src, 322], [*dst, 322], rng.integers(0, 9, 101))


@pytest.fixture(scope="module")
def schedulers():
    """Addresses of schedulers by how many workers they have."""
    with (
        threads_of_this_process(n_workers=2, memory_limit=0) as two,
        threads_of_this_process(n_workers=1, memory_limit=0) as one,
    ):
        yield {1: one.scheduler_address, 2: two.scheduler_address}


@pytest.fixture(scope="module")
def job(edges, schedulers, tmp_path_factory):
    """Runs a case once for each way, and returns its folder; ``command`` is the command line that it ran."""

    def command(folder, case, *more, workers=2, batch_size=7):
        words = [
            edges,
            "--random-sources",
            N_SOURCES,
            "--seed",
            3,
            "--device",
            "cpu",
            "--no-report",
            "--json",
            *CASES[case],
        ]
        batches = [] if OUTPUT_SCHEMAS[result_of(case)].one_search else ["--batch-size", batch_size]
        words += [*batches, "--scheduler-address", schedulers[workers], "--output", folder, *more]
        return [str(word) for word in words]

    return Runs(tmp_path_factory.mktemp("runs"), command)


@pytest.mark.parametrize("case", CASES)
def test_rows_equal_the_librarys_for_any_batches_and_workers_and_are_proven_right_again(
    case, edges, job, capsys
):
    folder = job(case)
    manifest = manifest_of(folder)
    sources = [source for part in manifest["parts"] for source in part["sources"]]
    rows = rows_of(folder)
    _, expected = by_library(edges, CASES[case], sources)
    # pandas marks what is missing in two ways
    for name in expected if result_of(case) == "targets" else ():
        rows[name], expected[name] = rows[name].astype(float), expected[name].astype(float)
    pd.testing.assert_frame_equal(rows, expected, check_exact=True)
    is_one_search = OUTPUT_SCHEMAS[result_of(case)].one_search
    ways = (
        []
        if is_one_search or case not in tiers.few(CASES, 3)
        else [{"batch_size": 4, "workers": 1}]
    )
    if tiers.ALL:
        assert parts_of(job(case, workers=1)) == parts_of(folder)
        ways = ways and [{"batch_size": 1}, {"batch_size": 99, "workers": 1}]
    for way in ways:
        other = job(case, **way)
        assert manifest_of(other)["digest"] == manifest["digest"]
        assert rows_of(other).equals(rows_of(folder))
    code, found = proven(folder, edges, capsys)
    assert (code, found["faults"], found["proven"]) == (0, [], {"traversed again": N_SOURCES})
    assert found["rows"] == len(rows)


@pytest.mark.parametrize("case", tiers.few(CASES, 3))
def test_certify_none_holds_less_and_writes_the_same_rows(case, job):
    folder = job(case, "--certify", "none")
    assert manifest_of(folder)["digest"] == manifest_of(job(case))["digest"]
    assert rows_of(folder).equals(rows_of(job(case)))


@pytest.mark.parametrize("case", CERTIFIED)
def test_the_manifest_and_every_part_say_what_was_written(case, job):
    form = OUTPUT_SCHEMAS[result_of(case)]
    manifest = manifest_of(job(case))
    assert (manifest["result"], manifest["means"]) == (form.name, form.means)
    assert manifest["identity"]["result"] == form.name
    for part in manifest["parts"]:
        schema = pq.read_schema(job(case) / part["file"])
        assert schema.names == list(form.columns)
        assert schema.metadata[RESULT_KEY].decode() == form.name
        assert schema.metadata[MEANS_KEY].decode() == form.means
        file = pq.ParquetFile(job(case) / part["file"])
        footer = json.loads(file.metadata.metadata[FOOTER_KEY])
        assert (footer["result"], footer["sources"]) == (form.name, part["sources"])
        group = file.metadata.row_group(0)
        rows = file.read_row_group(0)
        assert all(group.column(i).statistics.has_min_max for i in range(group.num_columns))
        order = [
            (rows.column_names[each.column_index], "ascending") for each in group.sorting_columns
        ]
        assert order or part["sources"] != sorted(part["sources"])
        assert not order or rows.sort_by(order).select(names := [name for name, _ in order]).equals(
            rows.select(names)
        )
    assert len(manifest["parts"]) == (1 if form.one_search else 3)


@pytest.mark.parametrize("case", CERTIFIED)
def test_parts_unknown_to_the_manifest_stay_if_their_rows_are_right(case, job, tmp_path, capsys):
    folder = shutil.copytree(job(case), tmp_path / "out")
    before = parts_of(folder)
    forget_parts(folder)
    summary = summary_of(capsys, *job.command(folder, case, "--resume"))
    assert (summary["computed"], summary["kept"]) == (0, len(before))
    assert (summary["digest"], summary["result"]) == (
        manifest_of(job(case))["digest"],
        result_of(case),
    )
    assert parts_of(folder) == before


def test_terminal_and_report_state_the_result_kind(job, capsys):
    words = [
        word for word in job.command(job("nearest"), "nearest", "--resume") if word != "--json"
    ]
    assert main(words) == 0
    assert f"nearest: {OUTPUT_SCHEMAS['nearest'].means}" in capsys.readouterr().out
    assert main([*words, "--plan"]) == 0
    assert "1 of 15 sources, one part file each" in capsys.readouterr().out


def test_targets_in_a_file_are_those_given_by_their_ids(job, tmp_path):
    (tmp_path / "targets.txt").write_text(
        "".join(f"{target}\n" for target in [*TARGETS, TARGETS[0]])
    )
    folder = tmp_path / "out"
    words = job.command(folder, "targets")
    at = words.index("--targets")
    assert main([*words[:at], "--targets", str(tmp_path / "targets.txt"), *words[at + 2 :]]) == 0
    assert manifest_of(folder)["identity"] == manifest_of(job("targets"))["identity"]
    assert parts_of(folder) == parts_of(job("targets"))


def forge(folder, change, **footers):
    """Change the rows of the first part file, and adapt its footer, hashes and checksums."""
    manifest = manifest_of(folder)
    path = folder / manifest["parts"][0]["file"]
    entry = manifest["parts"][0]
    graph = read_graph(
        manifest["settings"]["edges"], device="cpu", weighted=manifest["algorithm"] == "sssp"
    )
    table = change(pq.read_table(path))
    checksums = checksums_in([table], graph, graph.to_numbers(entry["sources"]), table.schema.names)
    footer = (
        json.loads(pq.read_metadata(path).metadata[FOOTER_KEY]) | {"rows": table.num_rows} | footers
    )
    footer["checksums"] = [f"{checksum:016x}" for checksum in checksums]
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({FOOTER_KEY: json.dumps(footer)})
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    entry |= {"rows": table.num_rows, "sha256": sha256, "bytes": path.stat().st_size}
    entry["checksum"] = f"{sum(checksums) % 2**64:016x}"
    manifest["digest"] = compute_digest(manifest["graph"]["fingerprint"], manifest["parts"])
    seal(folder, manifest)


def one_more(table):
    """Increment the last column of the first row; for ids, take the next id."""
    name = table.schema.names[-1]
    values = table[name].to_pylist()
    at = next(i for i, value in enumerate(values) if value is not None)
    values[at] += 7 if name == "vertex" else 1
    return table.set_column(table.num_columns - 1, name, pa.array(values, table.schema.types[-1]))


def first_lost(table):
    return table.slice(1)


def last_twice(table):
    return pa.concat_tables([table, table.slice(table.num_rows - 1)])


@pytest.mark.parametrize("change", [one_more, first_lost, last_twice])
@pytest.mark.parametrize("case", CERTIFIED)
def test_rows_that_are_wrong_are_found_although_all_hashes_agree(
    case, change, edges, job, tmp_path, capsys
):
    folder = shutil.copytree(job(case), tmp_path / "out")
    forge(folder, change)
    code, found = proven(folder, edges, capsys)
    assert code == 5
    assert {fault["file"] for fault in found["faults"]} == {"part-000000.parquet"}
    kinds = {"rows", "checksum"} if change is last_twice else {"wrong result"}
    assert {fault["kind"] for fault in found["faults"]} == kinds


def test_a_part_that_says_it_is_of_another_result_is_found(edges, job, tmp_path, capsys):
    folder = shutil.copytree(job("nearest"), tmp_path / "out")
    forge(folder, lambda table: table, result="distances")
    code, found = proven(folder, edges, capsys)
    assert (code, [fault["kind"] for fault in found["faults"]]) == (5, ["another result"])


@pytest.fixture
def one_worker(edges, tmp_path):
    """Answers the first vertices as one batch in this process, by a worker's plugin that was made for a case."""

    def answer(case, **options):
        graph = read_graph(edges, device="cpu", weighted="sssp" in CASES[case])
        write_graph(graph, tmp_path / "graph")
        targets = TARGETS if result_of(case) == "targets" else None
        kind = OUTPUT_SCHEMAS[result_of(case)]
        asked = {
            "limit": None,
            "targets": Targets.of(graph, targets),
            "kind": kind,
            "options": kind.options_class(),
            "certify": "all",
            "knobs": None,
        } | options
        algorithm = "sssp" if "sssp" in CASES[case] else "bfs"
        request = Request(algorithm=algorithm, strategy="auto", at_once=graph.n_vertices, **asked)
        places = {"graph_folder": tmp_path / "graph", "output": tmp_path}
        work = Work(
            request=request, layout=Layout(result_of(case)), device="cpu", threads=1, **places
        )
        plugin = TraversalPlugin(work, "plugin")
        asyncio.run(plugin.setup(SimpleNamespace(state=SimpleNamespace(nthreads=1), address="")))
        (outcome,) = plugin.answer([(0, list(range(N_SOURCES)))], False, tmp_path / "mark")
        return outcome

    return answer


@pytest.mark.parametrize("case", CERTIFIED)
def test_results_need_certified_distances(case, edges, one_worker, monkeypatch, tmp_path):
    def broken(run):
        def too_near(plan, numbers, **given):
            found = run(plan, numbers, **given)
            # of reached vertices alone
            distance = getattr(found.distance, "distance", found.distance)
            distance[distance == 2] = 1
            return found

        return too_near

    monkeypatch.setattr(MultiSourcePlan, "run", broken(MultiSourcePlan.run))
    monkeypatch.setattr(Plan, "run_number", broken(Plan.run_number))
    outcome = one_worker(case)
    assert {reason.partition(":")[0] for _, reason in outcome["failed"]} == {"CertificateError"}
    rejected = {source for source, _ in outcome["failed"]}
    if case == "nearest":  # one search, so that all stand or fall together
        assert outcome["summary"] is None
        assert rejected == set(range(N_SOURCES))
    elif outcome["summary"] is not None:
        footer = json.loads(pq.read_metadata(tmp_path / "part-000000.parquet").metadata[FOOTER_KEY])
        graph = read_graph(edges, device="cpu")
        assert not rejected & set(graph.to_numbers(footer["sources"]).tolist())


def test_a_merged_search_without_memory_is_tried_once_more_and_then_reported_for_every_source(
    one_worker, monkeypatch
):
    tries = []

    def none_left(_plan, numbers, _options):
        tries.append(len(numbers))
        raise MemoryError("no memory")

    monkeypatch.setattr(NearestSearch, "find", none_left)
    outcome = one_worker("nearest")
    assert outcome["summary"] is None
    assert len(tries) == 2
    assert len(outcome["failed"]) == tries[0]
    assert all(
        "the search from all sources together: no memory" in reason
        for _, reason in outcome["failed"]
    )


def test_a_negative_cycle_is_named_by_its_vertices_also_in_a_merged_search():
    graph = graph_from_edges(
        np.array([10, 20, 30, 40]), np.array([20, 30, 10, 10]), np.array([1, -5, 2, 1])
    )
    with pytest.raises(NegativeCycleError) as caught:
        sssp_many(graph, [40, 30], result="nearest")
    assert set(caught.value.cycle) == {10, 20, 30}
