"""The same question asked in another way has the same answer: no oracle is needed, and nothing is known of the answer."""

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kepler_traverse import KeplerError
from scripts.storm import containers, jobs, library
from scripts.storm.answers import Table, difference
from scripts.storm.edges import INTEGERS, NO_WEIGHTS, EdgeList
from scripts.storm.job_cases import KINDS as KINDS_OF_JOB
from scripts.storm.library import IN_STREAMS, Way
from scripts.storm.oracle import Network
from scripts.storm.questions import ALL, QUESTIONS, draw_question
from tests.relations.changes import CHANGES, OF_EDGES, without_parallel_rows
from tests.support import tiers

# Their rows are those of each source alone.
BY_SOURCE = (*IN_STREAMS, "matrix", "reachable")
NOT_OF_A_STRATEGY = ("extremes",)


@st.composite
def edge_lists(draw):
    """Edge lists with parallel edges, self-loops, several components, zero and negative weights, and vertices alone."""
    n = draw(st.integers(1, 14))
    vertex = st.integers(0, n - 1)
    weights = draw(st.sampled_from([NO_WEIGHTS, INTEGERS, INTEGERS, "float32", "float64"]))
    least = draw(st.sampled_from([0, 1, 1, -1]))
    values = {NO_WEIGHTS: st.none(), INTEGERS: st.integers(least, 6)}
    weight = values.get(weights, st.integers(least, 24).map(lambda value: value / 4))
    rows = draw(st.lists(st.tuples(vertex, vertex, weight), min_size=1, max_size=40))
    more = draw(st.lists(vertex, max_size=3, unique=True))
    return EdgeList(rows, draw(st.booleans()), weights, more)


# Small random edge lists may look like others than they are.
pytestmark = pytest.mark.filterwarnings("ignore::kepler_traverse.errors.EdgeListWarning")

seeds = st.integers(0, 2**20)


def graph_of(edges, seed=0):
    """A graph of an edge list from memory."""
    only = "Arrow in chunks"
    table = containers.IN_MEMORY[only](edges, Random(seed))
    options = {"vertices": edges.more_vertices} if edges.more_vertices else {}
    return library.kt.graph_from_edges(table, directed=edges.directed, edge_ids=True, **options)


def answer(graph, question, way=None):
    """The answer as a table, or the name of the error."""
    try:
        return library.ask(graph, question, way or Way())
    except KeplerError as error:
        return type(error).__name__


def assert_equal(before, now, *what):
    if isinstance(before, str) or isinstance(now, str):
        assert now == before, what
        return
    assert now.columns == before.columns, what
    assert not difference(Table(before.columns, before.rows, lost=before.lost), now), what


def asked(edges, kind, seed):
    """An edge list that suits a kind, and a question."""
    edges = without_parallel_rows(edges) if kind in OF_EDGES else edges
    return edges, draw_question(Random(seed), Network(edges), [kind])


@pytest.mark.parametrize("kind", QUESTIONS)
@given(edges=edge_lists(), seed=seeds)
@settings(max_examples=tiers.examples(24))
def test_a_change_of_the_edge_list_changes_the_answer_as_it_must(kind, edges, seed):
    edges, question = asked(edges, kind, seed)
    before = answer(graph_of(edges), question)
    for name, change in CHANGES.items():
        changed = change(edges, question, Random(seed))
        if changed is not None:
            now = answer(graph_of(changed.edges), changed.question)
            assert_equal(
                before, now if isinstance(now, str) else changed.restore(now), name, question
            )


def ways_of(question):
    """Other ways to ask: each strategy, little memory, a stream, and ids in each container."""
    if question.kind not in NOT_OF_A_STRATEGY:
        yield from (
            Way(options={"strategy": name}) for name in library.strategies_for(question, "cpu")
        )
    if question.kind not in ("one", "plan", "extremes"):
        yield Way(options={"memory": 20_000})
    if question.kind in IN_STREAMS:
        yield from (Way(options={"stream": how}) for how in (True, "arrow"))
    yield from (Way(name) for name in containers.IDS)


REFUSED = ("StrategyError", "CapacityError", "HierarchyError")


@pytest.mark.parametrize("kind", QUESTIONS)
@given(edges=edge_lists(), seed=seeds)
@settings(max_examples=tiers.examples(16))
def test_another_way_to_ask_has_the_same_answer(kind, edges, seed):
    edges, question = asked(edges, kind, seed)
    graph = graph_of(edges)
    before = answer(graph, question)
    for way in ways_of(question):
        now = answer(graph, question, way)
        if now in REFUSED or (way.options.get("stream") and not getattr(now, "rows", True)):
            continue
        assert_equal(before, now, way, question)


@pytest.mark.parametrize("kind", BY_SOURCE)
@given(edges=edge_lists(), seed=seeds)
@settings(max_examples=tiers.examples(8))
def test_sources_one_by_one_have_the_rows_of_all(kind, edges, seed):
    edges, question = asked(edges, kind, seed)
    graph = graph_of(edges)
    before = answer(graph, question)
    sources = library.plain_ids(graph) if question.sources == ALL else question.sources
    alone = []
    for place, source in enumerate(sources):
        options = dict(question.options)
        if "source_weights" in options:
            options["source_weights"] = [options["source_weights"][place]]
        limit = question.limit[place] if isinstance(question.limit, list) else question.limit
        alone.append(
            answer(graph, replace(question, sources=[source], limit=limit, options=options))
        )
    errors = {each for each in alone if isinstance(each, str)}
    if errors:
        assert before in errors, question
        return
    rows = list(itertools.chain.from_iterable(each.rows for each in alone))
    assert_equal(before, Table(alone[0].columns, rows), question)


HANDED_OVER = [
    *((name, "memory") for name in containers.IN_MEMORY),
    *((name, "files") for name in containers.FILES),
]


@pytest.mark.parametrize(("name", "where"), HANDED_OVER)
@given(edges=edge_lists(), seed=seeds)
@settings(max_examples=tiers.examples(16))
def test_an_edge_list_in_another_container_is_the_same_graph(name, where, edges, seed):
    draw = Random(seed)
    graph = graph_of(edges)
    common = {"directed": edges.directed, "edge_ids": True}
    common |= {"vertices": edges.more_vertices} if edges.more_vertices else {}
    if where == "memory":
        made = containers.IN_MEMORY[name](edges, draw)
        other = library.kt.graph_from_edges(
            *(made if isinstance(made, tuple) else (made,)), **common
        )
    else:
        with tempfile.TemporaryDirectory() as folder:
            written = containers.FILES[name](edges, Path(folder), draw)
            other = library.kt.read_graph(written.path, device="cpu", **written.options, **common)
    assert other.fingerprint == graph.fingerprint
    question = draw_question(draw, Network(without_parallel_rows(edges)), ["paths"])
    question = replace(question, options={})
    assert_equal(answer(graph, question), answer(other, question), question)


def run_of(edges, question, folder, seed, changes):
    """What the job says: its rows, or its exit code."""
    folder.mkdir()
    run = jobs.make_run(edges, question, folder, Random(seed), "cpu")
    run.settings["report"] = False
    count = changes.pop("shards", 0)
    run.settings |= changes
    ended = jobs.run_shards(run, folder, count) if count else jobs.run_main(run, folder)
    if ended.code:
        return str(ended.code)
    return [table for table, _ in jobs.read_output(run, question)]


WAYS_OF_JOB = (
    {"batch_size": 1},
    {"batch_size": 5, "certify": "none"},
    {"batch_size": 3, "shards": 2},
    {"certify": "sample"},
)


@pytest.mark.parametrize("kind", KINDS_OF_JOB)
@given(edges=edge_lists(), seed=seeds)
@settings(max_examples=tiers.examples(8))
def test_a_job_in_other_batches_shards_and_certificates_writes_the_same(kind, edges, seed):
    edges, question = asked(edges, kind, seed)
    question = jobs.for_job(question)
    with tempfile.TemporaryDirectory() as place:
        before = run_of(edges, question, Path(place, "plain"), seed, {})
        for number, changes in enumerate(WAYS_OF_JOB):
            if kind in jobs.NO_SHARDS and ("batch_size" in changes or "shards" in changes):
                continue
            now = run_of(edges, question, Path(place, str(number)), seed, dict(changes))
            assert isinstance(now, str) == isinstance(before, str), (now, before, changes, question)
            if isinstance(before, str):
                assert now == before, (changes, question)
                continue
            for one, other in zip(before, now, strict=True):
                assert_equal(one, other, changes, question)
