"""The table of result kinds: the library returns and the job writes each kind that is added to it."""

import numpy as np
import pytest

from kepler_traverse import bfs_many, plan_bfs_many, sssp_many
from kepler_traverse._arrays import to_host
from kepler_traverse.errors import InputError
from kepler_traverse.kinds.question import Question
from kepler_traverse.kinds.records import SourceRecords
from kepler_traverse.kinds.result_kinds import RESULT_KINDS, ResultKind, modules_with_kinds
from kepler_traverse.search.frames import Column
from pipelines.output.part_file import unfit_columns
from pipelines.output.part_stats import sum_histograms
from pipelines.output.rows import make_rows
from pipelines.output.schemas import OUTPUT_SCHEMAS
from tests.support.graphs import build, path


def _medians(_asked, traversals):
    found = [
        float(np.median(to_host(traversal.distance[traversal.reached]))) for traversal in traversals
    ]
    return SourceRecords({"median": np.array(found)}, np.ones(len(traversals), np.int64))


@pytest.fixture
def median(monkeypatch):
    """A kind that nothing but its entry in the table knows."""
    kind = ResultKind(
        name="median",
        means="a row for each source: the median of its distances",
        columns=("source", "median"),
        algorithms=("bfs",),
        make_records=_medians,
        make_columns=lambda _asked, values: {"median": Column(values["median"])},
    )
    monkeypatch.setitem(RESULT_KINDS, kind.name, kind)
    monkeypatch.setitem(OUTPUT_SCHEMAS, kind.name, kind)
    return kind


GRAPH = build(path(5), directed=False)  # 0 - 1 - ... - 5
SOURCES = [3, 0, 3]
EXPECTED = {0: 2.5, 3: 1.5}


def test_bfs_many_returns_a_kind_that_was_added(median):
    frame = bfs_many(GRAPH, SOURCES, result=median.name)
    assert list(frame.columns) == list(median.columns)
    assert frame["source"].tolist() == SOURCES
    assert frame["median"].tolist() == [EXPECTED[source] for source in SOURCES]
    assert bfs_many(GRAPH, [], result=median.name).shape == (0, 2)


def test_rows_of_makes_the_rows_of_a_kind_that_was_added(median):
    plan = plan_bfs_many(GRAPH, n_sources=2, result=median.name)
    question = Question(algorithm="bfs", kind=median)
    (rows,) = make_rows(question, GRAPH, plan.query, plan.run([0, 3]))
    assert rows.answer.sources == [0, 3]
    assert rows.answer.table["median"].to_pylist() == [2.5, 1.5]
    assert sum_histograms(*rows.counts[2])["counts"] == [2, 3, 3, 2, 1, 1]
    stated = {"kepler_traverse.result": median.name, "kepler_traverse.means": median.means}
    assert unfit_columns(rows.answer.table.schema.with_metadata(stated), median, GRAPH) == ""


def test_a_kind_is_refused_where_it_has_no_meaning(median):
    with pytest.raises(InputError, match="result='median' counts hops"):
        sssp_many(build(path(5), [1] * 5), [0], result=median.name)
    with pytest.raises(
        InputError,
        match=r"targets is for result distances, .*, nearest_targets, flows or betweenness, not median",
    ):
        bfs_many(GRAPH, [0], result=median.name, targets=[1])
    with pytest.raises(
        InputError,
        match=r"direction='in' is for result matrix, summary, .*, isochrones or pairs, not median",
    ):
        bfs_many(GRAPH, [0], result=median.name, direction="in")


def test_a_module_of_the_package_that_lists_kinds_is_found_by_its_text(tmp_path):
    for name, text in {
        "own": "import x\n\nKINDS = (x,)\n",
        "other": "KINDS_OF = 1\n# KINDS = 2\n",
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert modules_with_kinds(tmp_path) == ("kepler_traverse.kinds.own",)


def test_the_job_reads_the_table_of_the_library():
    own = {name: OUTPUT_SCHEMAS[name] for name in ("extremes", "labels", "matrix")}
    assert {name: kind for name, kind in RESULT_KINDS.items() if kind.means} | own == OUTPUT_SCHEMAS
