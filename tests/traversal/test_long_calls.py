"""Long calls: progress, streams of results, Ctrl-C, and the ways to name the sources."""

import gc
import io
import json
import os
import signal
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from examples import stream_distances
from kepler_traverse import bfs_many, graph_from_edges, plan_bfs_many, plan_sssp_many, sssp_many
from kepler_traverse.bfs.registry import MULTI_SOURCE as BFS_MULTI_SOURCE
from kepler_traverse.cpu import compile_clock, threads
from kepler_traverse.errors import InputError, NegativeCycleError, UnknownVertexError
from kepler_traverse.multi_source.planning import MultiSourcePlan
from kepler_traverse.multi_source.stream import ResultStream
from kepler_traverse.runtime import progress
from kepler_traverse.runtime.concurrency import SerializedSearch
from kepler_traverse.search.strategy import Outcome
from kepler_traverse.sssp.registry import MULTI_SOURCE as SSSP_MULTI_SOURCE
from tests.support import tiers
from tests.support.graphs import NAMED, build, is_refused, lattice, weights_for
from tests.support.processes import PATIENCE, ROOT, finish, started

ROWS = NAMED["power law"]
GRAPH = build(ROWS, weights_for(ROWS, seed=3), directed=False)
SOURCES = np.random.default_rng(5).choice(GRAPH.ids, 120, replace=False)
NAMED_GRAPH = graph_from_edges(
    ["all", "Ulm", "Bonn"], ["Ulm", "Bonn", "Kiel"], [1, 2, 3], directed=False
)
TOWNS = graph_from_edges(["Ulm", "Bonn"], ["Bonn", "Kiel"], [1, 2], directed=False)
# Groups of 16 sources or fewer per thread, so that there are several.
BY_ALGORITHM = {bfs_many: "source_per_thread", sssp_many: "near_far_per_thread"}


def wait_for_threads_since(before):
    for thread in set(threading.enumerate()) - before:
        if not thread.name.startswith("kepler_traverse"):
            thread.join(PATIENCE)
            assert not thread.is_alive()


def plans_with_memory():
    return [
        each
        for each in gc.get_objects()
        if type(each) is MultiSourcePlan and each._search is not None
    ]


# Sources


def test_all_sources_are_the_vertices_in_the_order_of_the_ids():
    assert np.array_equal(
        bfs_many(GRAPH, "all", result="matrix"), bfs_many(GRAPH, GRAPH.ids, result="matrix")
    )
    assert bfs_many(TOWNS, "all", result="summary")["source"].tolist() == ["Bonn", "Kiel", "Ulm"]


def test_all_is_refused_where_it_is_also_a_vertex():
    with pytest.raises(
        InputError, match=r"every vertex or the vertex of this name; give \['all'\]"
    ):
        bfs_many(NAMED_GRAPH, "all")
    assert bfs_many(NAMED_GRAPH, ["all"], result="summary")["source"].tolist() == ["all"]


@pytest.mark.parametrize("one", [7, np.int64(7), np.uint8(7)])
def test_sources_may_be_one_integer(one):
    pd.testing.assert_frame_equal(bfs_many(GRAPH, one), bfs_many(GRAPH, [7]))


def test_sources_may_be_one_string_which_is_not_its_letters():
    pd.testing.assert_frame_equal(sssp_many(TOWNS, "Kiel"), sssp_many(TOWNS, ["Kiel"]))
    with pytest.raises(
        UnknownVertexError,
        match="source 'Kiel' is not a vertex: the ids of this graph are integers",
    ):
        bfs_many(GRAPH, "Kiel")
    with pytest.raises(UnknownVertexError, match="1 source is not in the graph: 'Mainz'"):
        bfs_many(TOWNS, "Mainz")


@pytest.mark.parametrize("make", [set, frozenset], ids=["set", "frozenset"])
def test_a_set_is_taken_in_the_order_of_the_ids(make):
    assert bfs_many(TOWNS, make(["Ulm", "Bonn", "Kiel"]), result="summary")["source"].tolist() == [
        "Bonn",
        "Kiel",
        "Ulm",
    ]
    chosen = [900, 3, 77]
    assert bfs_many(GRAPH, make(chosen), result="summary")["source"].tolist() == sorted(chosen)
    with pytest.raises(UnknownVertexError, match="source 'Ulm' is not a vertex"):
        bfs_many(GRAPH, {"Ulm", 3})


@pytest.mark.parametrize(
    "sources",
    [
        lambda: (town for town in ("Ulm", "Kiel", "Ulm")),
        lambda: dict.fromkeys(("Ulm", "Kiel")).keys(),
        lambda: pd.Series(["Ulm", "Kiel", "Ulm"]),
        lambda: pd.Series(["Ulm", "Kiel", "Ulm"], dtype="category"),
        lambda: pd.Index(["Ulm", "Kiel", "Ulm"]),
        lambda: pa.chunked_array([["Ulm"], ["Kiel", "Ulm"]]),
        lambda: np.array(["Ulm", "Kiel", "Ulm"]),
    ],
    ids=["generator", "keys", "Series", "categories", "Index", "Arrow", "array"],
)
def test_strings_may_come_in_any_iterable(sources):
    found = bfs_many(TOWNS, sources(), result="summary")["source"].tolist()
    assert found == list(map(str, sources()))
    streamed = [
        row
        for frame in bfs_many(TOWNS, sources(), result="summary", stream=True)
        for row in frame["source"]
    ]
    assert streamed == found


# Streams


def name_of_part(part):
    """Name a function, a graph, or options."""
    if isinstance(part, dict):
        return "-".join(map(str, part.values())) or "distances"
    return getattr(part, "__name__", part)


OPTIONS_OF_STREAMS = [
    {},
    {"result": "predecessors"},
    {"unreached": "null"},
    {"targets": [9, 4, 800]},
    {"result": "targets", "targets": [9, 4, 800]},
    {"result": "summary"},
    {"result": "levels"},
    {"result": "matrix"},
    {"result": "matrix", "targets": [9, 4]},
    {"result": "reachable"},
    {"result": "within", "cutoffs": [0, 2, 9]},
    {"result": "isochrones", "cutoffs": [0, 2, 9]},
    {"result": "opportunities", "cutoffs": [0, 2, 9], "values": "area and jobs"},
    {
        "result": "opportunities",
        "cutoffs": [0, 2, 9],
        "values": "area and jobs",
        "decay": "linear:5",
    },
]


@pytest.mark.parametrize(
    ("many", "graph", "options"),
    tiers.pairs([bfs_many, sssp_many], ["integers", "strings"], OPTIONS_OF_STREAMS),
    ids=name_of_part,
)
def test_the_groups_of_a_stream_joined_are_the_result(many, graph, options):
    if many is sssp_many and options.get("result") == "levels":
        pytest.skip("levels count hops")
    searched, sources = GRAPH, [*SOURCES.tolist(), *SOURCES[:3].tolist()]  # three of them twice
    if graph == "strings":
        names = [(f"v{u}", f"v{v}") for u, v in ROWS[:600]]
        searched = graph_from_edges(
            *map(list, zip(*names, strict=True)), weights_for(names, seed=3), directed=False
        )
        sources = searched.ids.to_pylist()[:120]
        options = options | (
            {"targets": searched.ids.to_pylist()[5:8]} if "targets" in options else {}
        )
    if "values" in options:
        numbers = np.arange(searched.n_vertices)
        options = options | {"values": {"area": numbers / 3, "jobs": numbers}}
    options = options | {"strategy": BY_ALGORITHM[many]}
    whole = many(searched, sources, **options)
    groups = list(many(searched, sources, stream=True, **options))
    assert len(groups) > 2
    if isinstance(whole, np.ndarray):
        assert np.array_equal(np.concatenate(groups), whole)
        with pytest.raises(InputError, match="is an array, which has no record batches"):
            many(searched, sources, stream="arrow", **options)
        return
    pd.testing.assert_frame_equal(pd.concat(groups, ignore_index=True), whole)
    reader = many(searched, sources, stream="arrow", **options)
    assert isinstance(reader, pa.RecordBatchReader)
    batches = list(reader)
    assert len(batches) >= len(groups)
    found = pa.Table.from_batches(batches, reader.schema)
    assert found.num_rows == len(whole)
    for name in whole.columns:
        expected = [None if value is pd.NA else value for value in whole[name].tolist()]
        assert found[name].to_pylist() == expected


@pytest.mark.parametrize("result", ["distances", "predecessors", "summary", "levels"])
def test_a_stream_without_sources_has_the_columns_of_others(result):
    assert list(bfs_many(GRAPH, [], result=result, stream=True)) == []
    empty = bfs_many(GRAPH, [], result=result, stream="arrow")
    some = bfs_many(GRAPH, SOURCES[:2], result=result, stream="arrow")
    assert empty.schema == some.schema
    assert empty.read_all().num_rows == 0
    assert some.read_all().schema == some.schema


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stream": "parquet"}, "stream must be True, False or 'arrow', not 'parquet'"),
        ({"stream": 1}, "stream must be True, False or 'arrow', not 1"),
        (
            {"stream": True, "result": "nearest"},
            "one search from all sources together; leave stream out",
        ),
        (
            {"stream": "arrow", "result": "matrix"},
            "is an array, which has no record batches; take stream=True",
        ),
        (
            {"progress": 1},
            "progress must be True, False or a function of done, total and rate, not 1",
        ),
        (
            {"progress": "yes"},
            "progress must be True, False or a function of done, total and rate, not 'yes'",
        ),
    ],
    ids=str,
)
def test_wrong_streams_and_progress_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        bfs_many(GRAPH, [0], **options)


def test_arguments_of_a_stream_are_checked_at_once():
    with pytest.raises(UnknownVertexError):
        bfs_many(GRAPH, [10**9], stream=True)


@pytest.mark.parametrize("stream", [True, "arrow"])
def test_a_stream_holds_one_group_at_a_time(stream):
    rows = lattice(60, 70)
    graph = build(rows, directed=False)
    sources = graph.ids[:320]

    def peak(take):
        list(bfs_many(graph, sources[:2], stream=stream, strategy="source_per_thread"))  # compiles
        tracemalloc.start()
        take()
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    def consume():
        for part in bfs_many(graph, sources, stream=stream, strategy="source_per_thread"):
            del part

    bytes_of_all = sources.size * graph.n_vertices * (8 + 8 + 4)
    n_groups = sources.size / (16 * threads.count())
    # A group's rows exist twice while its frame is made, beside its hops and the plan.
    assert peak(consume) < 3 * bytes_of_all / n_groups
    assert peak(lambda: bfs_many(graph, sources, strategy="source_per_thread")) > bytes_of_all


@pytest.mark.parametrize("how", ["close", "with", "deletion", "break", "end"])
def test_an_abandoned_stream_releases_its_plan(how):
    gc.collect()
    before = len(plans_with_memory())
    stream = bfs_many(GRAPH, SOURCES, stream=True, strategy="source_per_thread")
    first = next(stream)
    assert len(plans_with_memory()) == before + 1
    if how == "close":
        stream.close()
        stream.close()
    elif how == "with":
        with stream:
            next(stream)
    elif how == "deletion":
        del stream
    elif how == "break":
        for _ in stream:
            break
        del stream, _
    else:
        list(stream)
    assert len(plans_with_memory()) == before
    if how in ("close", "with", "end"):
        assert list(stream) == []
        assert repr(stream).endswith("of 120 sources, closed>")
    assert len(first)


def test_an_abandoned_reader_releases_its_plan():
    gc.collect()
    before = len(plans_with_memory())
    reader = bfs_many(GRAPH, SOURCES, stream="arrow", strategy="source_per_thread")
    assert reader.read_next_batch().num_rows
    del reader
    assert len(plans_with_memory()) == before


def test_a_stream_may_be_read_in_other_threads():
    stream = bfs_many(GRAPH, SOURCES, result="summary", stream=True, strategy="source_per_thread")
    frames = []
    while True:
        with ThreadPoolExecutor(1) as pool:
            frame = pool.submit(next, stream, None).result()
        if frame is None:
            break
        frames.append(frame)
    whole = bfs_many(GRAPH, SOURCES, result="summary")
    pd.testing.assert_frame_equal(pd.concat(frames, ignore_index=True), whole)


def test_a_negative_cycle_ends_a_stream_and_names_the_cycle_in_its_direction():
    graph = graph_from_edges([0, 1, 2, 3], [1, 2, 0, 4], [1.0, 1.0, -3.0, 1.0])
    for direction in ("out", "in"):
        stream = sssp_many(
            graph,
            [3, 0],
            result="summary",
            stream=True,
            direction=direction,
            strategy="one_at_a_time",
        )
        with pytest.raises(NegativeCycleError) as raised:
            list(stream)
        start = raised.value.cycle.index(0)
        assert raised.value.cycle[start:] + raised.value.cycle[:start] == [0, 1, 2]
        assert repr(stream).endswith("closed>")


STRATEGIES = [("bfs", each.name) for each in BFS_MULTI_SOURCE if each.device == "cpu"] + [
    ("sssp", each.name) for each in SSSP_MULTI_SOURCE if each.device == "cpu"
]


@pytest.mark.parametrize(("algorithm", "strategy"), STRATEGIES)
def test_a_group_may_hold_a_source_twice(algorithm, strategy):
    make = plan_bfs_many if algorithm == "bfs" else plan_sssp_many
    if is_refused(GRAPH, BFS_MULTI_SOURCE if algorithm == "bfs" else SSSP_MULTI_SOURCE, strategy):
        return
    plan = make(GRAPH, n_sources=4, strategy=strategy)
    found = plan.run([5, 7, 5, 5]).distance.copy()
    assert np.array_equal(found, plan.run([5, 7]).distance[[0, 1, 0, 0]])


# Progress


@pytest.mark.parametrize("many", [bfs_many, sssp_many])
@pytest.mark.parametrize("stream", [False, True])
def test_progress_counts_from_none_to_all(many, stream):
    calls = []
    given = [*SOURCES.tolist(), *SOURCES[:5].tolist()]
    found = many(
        GRAPH,
        given,
        result="summary",
        strategy=BY_ALGORITHM[many],
        progress=lambda *numbers: calls.append(numbers),
        stream=stream,
    )
    rows = sum(map(len, found)) if stream else len(found)
    assert rows == len(given)
    total = len(given) if stream else len(SOURCES)
    assert calls[0] == (0, total, 0.0)
    assert len(calls) > 3
    done = [call[0] for call in calls]
    assert done == sorted(set(done))
    assert done[-1] == total
    assert {call[1] for call in calls} == {total}
    assert all(rate > 0 for _, _, rate in calls[1:])


def test_progress_of_the_nearest_source():
    calls = []
    bfs_many(GRAPH, [3, 4, 3], result="nearest", progress=lambda *numbers: calls.append(numbers))
    assert [call[:2] for call in calls] == [(0, 2), (2, 2)]


def test_the_rate_excludes_compiling_and_the_callers_time(monkeypatch):
    now = {"time": 0.0, "compiled": 0.0}
    monkeypatch.setattr(time, "perf_counter", lambda: now["time"])
    monkeypatch.setattr(compile_clock, "thread_seconds", lambda: now["compiled"])
    calls = []

    def report(*numbers):
        calls.append(numbers)
        now["time"] += 1000.0  # a function that takes long is not the library's work

    meter = progress.Meter(report, 40)
    meter.begin()
    with meter.running():
        now["time"] += 30.0
        now["compiled"] += 25.0
        meter.advance(10)
    now["time"] += 500.0  # the caller of a stream works
    with meter.running():
        now["time"] += 5.0
        meter.advance(30)
    assert calls == [(0, 40, 0.0), (10, 40, 10 / 5.0), (40, 40, 40 / 10.0)]


class StopHereError(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("stream", [False, True])
def test_an_exception_of_the_function_ends_the_call(after, stream):
    gc.collect()
    before = len(plans_with_memory())
    seen = []

    def report(done, _total, _rate):
        if done >= after:
            seen.append(done)
            raise StopHereError

    with pytest.raises(StopHereError) as raised:
        list(bfs_many(GRAPH, SOURCES, strategy="source_per_thread", progress=report, stream=stream))
    assert len(seen) == 1
    assert seen[0] < SOURCES.size
    assert raised.value is not None  # its traceback is still there, and the plan has no memory
    assert len(plans_with_memory()) == before
    assert bfs_many(TOWNS, "all", result="matrix").tolist() == [[0, 1, 1], [1, 0, 2], [1, 2, 0]]


class OwnError(BaseException):
    pass


MODES = {
    "frame": {},
    "frame of loads": {"result": "betweenness"},
    "array": {"result": "matrix"},
    "nearest": {"result": "nearest"},
    "k nearest": {"result": "nearest", "k": 70},
    "stream": {"stream": True},
    "arrow": {"stream": "arrow"},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "wrong",
    [
        StopIteration,
        StopAsyncIteration,
        GeneratorExit,
        KeyboardInterrupt,
        SystemExit,
        OwnError,
        TimeoutError,
    ],
)
@pytest.mark.parametrize("after", [0, 1])
def test_no_error_of_the_function_is_taken_for_the_end(mode, wrong, after):
    raised = wrong()

    def report(done, _total, _rate):
        if done >= after:
            raise raised

    options = MODES[mode] | {"strategy": "source_per_thread" if mode != "nearest" else "auto"}
    with pytest.raises(RuntimeError if wrong is StopIteration else wrong) as error:
        list(bfs_many(GRAPH, SOURCES, progress=report, **options))
    assert raised in (error.value, error.value.__cause__)


@pytest.mark.parametrize("stream", [True, "arrow"])
@pytest.mark.parametrize("wrong", [KeyboardInterrupt, StopIteration, ValueError])
def test_a_stream_that_failed_has_no_end(stream, wrong):
    def report(done, _total, _rate):
        if done:
            raise wrong

    results = bfs_many(GRAPH, SOURCES, strategy="source_per_thread", stream=stream, progress=report)
    with pytest.raises((wrong, RuntimeError)):
        next(iter(results))
    for _ in range(2):
        with pytest.raises(InputError, match="the stream has ended early, by"):
            next(iter(results))


def test_a_stream_is_not_read_by_its_own_progress_function():
    results = bfs_many(
        GRAPH, SOURCES, stream=True, progress=lambda done, *_: done and next(results)
    )
    with pytest.raises(InputError, match="read within its own progress function"):
        next(results)


@pytest.mark.parametrize("stream", [True, "arrow", "groups"])
def test_several_threads_read_a_stream_each_row_once(stream):
    if stream == "groups":
        plan = plan_bfs_many(GRAPH, n_sources=8, strategy="source_per_thread")
        results = iter(plan.iter_groups(np.arange(120)))
    else:
        results = iter(
            bfs_many(GRAPH, SOURCES, result="summary", strategy="source_per_thread", stream=stream)
        )
    ready = threading.Barrier(8)

    def read(_):
        ready.wait(PATIENCE)
        return [each.sources if stream == "groups" else each["source"] for each in results]

    with ThreadPoolExecutor(8) as pool:
        found = [np.asarray(part) for parts in pool.map(read, range(8)) for part in parts]
    expected = np.arange(120) if stream == "groups" else SOURCES
    assert len(found) > 3
    assert sorted(np.concatenate(found).tolist()) == sorted(expected.tolist())


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_a_bar_on_a_terminal_which_is_complete_at_the_end(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    before = set(threading.enumerate())
    bfs_many(GRAPH, SOURCES, progress=True)
    shown = sys.stderr.getvalue()
    assert "120/120" in shown
    assert "per second" in shown
    wait_for_threads_since(before)


@pytest.mark.parametrize("how", ["no terminal", "no rich"])
def test_progress_is_lines_elsewhere(monkeypatch, how):
    monkeypatch.setattr(sys, "stderr", io.StringIO() if how == "no terminal" else Terminal())
    if how == "no rich":
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.0)
    bfs_many(GRAPH, SOURCES, strategy="source_per_thread", progress=True)
    lines = sys.stderr.getvalue().splitlines()
    assert lines[0] == "0 of 120 sources"
    assert " left" in lines[1]
    assert lines[-1].startswith("120 of 120 sources ")
    assert lines[-1].endswith(" per second")


def test_the_bar_of_an_abandoned_stream_ends(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    before = set(threading.enumerate())
    stream = bfs_many(GRAPH, SOURCES, strategy="source_per_thread", progress=True, stream=True)
    next(stream)
    assert set(threading.enumerate()) - before
    del stream
    wait_for_threads_since(before)


# Ctrl-C


def test_threads_stop_when_the_calling_thread_is_interrupted(monkeypatch):
    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(threads, "max_threads", lambda: 2)
    monkeypatch.setattr(threads, "_pool", None)
    taken, ended, running, stopped = [], [], threading.Event(), threading.Event()
    own, on_each = threading.current_thread(), threads.on_each
    monkeypatch.setattr(
        threads, "on_each", lambda *rest, stop: on_each(*rest, lambda: stop() or stopped.set())
    )

    def search(item, _thread):
        taken.append(item)
        if threading.current_thread() is own:
            assert running.wait(PATIENCE)
            raise KeyboardInterrupt
        running.set()
        assert stopped.wait(PATIENCE)
        time.sleep(0.01)
        ended.append(item)

    with pytest.raises(KeyboardInterrupt):
        threads.for_each(search, 10**6)
    assert len(ended) == 1, "the call has waited for the other thread"
    assert len(taken) == 2, "which has taken no further item"


def test_a_plan_is_prepared_again_after_an_interrupt():
    made = []

    def prepare():
        state = {"is_clean": True}
        made.append(state)

        def search(number):
            assert state["is_clean"]
            state["is_clean"] = False
            if number < 0:
                raise KeyboardInterrupt
            state["is_clean"] = True
            return Outcome(np.zeros(1), None, None, number)

        return search

    search = SerializedSearch(prepare)
    assert search(1).rounds == 1
    with pytest.raises(KeyboardInterrupt):
        search(-1)
    assert search(2).rounds == 2
    assert len(made) == 2


@pytest.mark.parametrize("wrong", [KeyboardInterrupt, MemoryError])
def test_a_multi_source_plan_survives_an_interrupted_search(wrong):
    plan = plan_bfs_many(GRAPH, n_sources=40, strategy="bit_parallel")
    expected = plan.run([1, 2, 3]).distance.copy()
    search = plan._search._owned._search

    def interrupted(numbers):
        search(numbers)
        raise wrong

    plan._search._owned._search = interrupted
    with pytest.raises(wrong):
        plan.run([4, 5, 6])
    assert np.array_equal(plan.run([1, 2, 3]).distance, expected)
    plan.release()
    assert np.array_equal(plan.run([1, 2, 3]).distance, expected)


# Each case is a line of this program, which prints "began", gets SIGINT, and prints what it finds.
INTERRUPTED = """
import gc, json, sys, threading
import numpy as np
from kepler_traverse import bfs_many, graph_from_edges, sssp_many
from kepler_traverse.cpu import threads
from kepler_traverse.multi_source.planning import MultiSourcePlan

device, cases = sys.argv[1], json.loads(sys.argv[2])
side = 300
ids = np.arange(side * side).reshape(side, side)
src = np.concatenate([ids[:, :-1].ravel(), ids[:-1].ravel()])
dst = np.concatenate([ids[:, 1:].ravel(), ids[1:].ravel()])
graph = graph_from_edges(src, dst, np.random.default_rng(1).integers(1, 100, src.size), directed=False).to(device)


def memory():
    gc.collect()
    if device == "cuda":
        import cupy
        return cupy.get_default_memory_pool().used_bytes()
    return 0


def report(done, total, rate):
    if done:
        print("began", flush=True)


for algorithm, strategy, stream in cases:
    many = bfs_many if algorithm == "bfs" else sssp_many
    options = {"strategy": strategy, "result": "summary"}
    expected = many(graph, [5, 70_000, 31], **options)
    before = memory()
    kept, found, said = None, None, []
    try:
        found = many(graph, "all", progress=lambda *n: said.append(n) or report(*n), stream=stream, **options)
        for _ in found if stream else ():
            pass
    except KeyboardInterrupt as interrupt:
        kept = interrupt  # as a Python shell does
    del found
    gc.collect()
    free = threading.Barrier(threads.max_threads())
    threads.on_each(lambda _: free.wait(120), threads.max_threads())  # breaks if a thread is busy
    plans = [each for each in gc.get_objects() if type(each) is MultiSourcePlan and each._search is not None]
    again = many(graph, [5, 70_000, 31], **options)
    print(json.dumps({
        "interrupted": kept is not None,
        "done": said[-1][0],
        "total": said[-1][1],
        "plans": len(plans),
        "memory": memory() - before,
        "right": bool((again == expected).all().all()),
    }), flush=True)
"""


def interrupt(device, cases, delays):
    """Run the cases in a child, and interrupt each after its first group and some seconds."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    found = []
    with started(
        [sys.executable, "-c", INTERRUPTED, device, json.dumps(cases)], env=environment
    ) as child:
        for delay in delays:
            while (line := child.stdout.readline()) and not line.startswith("began"):
                pass
            time.sleep(delay)
            child.send_signal(signal.SIGINT)
            while (line := child.stdout.readline()) and line.startswith("began"):
                pass
            if not line:
                break
            found.append(json.loads(line))
        _, _, err = finish(child)
    assert len(found) == len(cases), err
    return found


def check_interrupts(found):
    for each in found:
        assert each["interrupted"]
        assert 0 < each["done"] < each["total"]
        assert each["plans"] == 0
        assert each["memory"] <= 0
        assert each["right"]


def test_an_interrupted_call_leaves_nothing_behind():
    cases = [
        ("bfs", "source_per_thread", False),
        ("bfs", "bit_parallel", False),
        ("sssp", "near_far_per_thread", False),
        ("bfs", "one_at_a_time", True),
        ("sssp", "near_far_per_thread", True),
    ]
    check_interrupts(
        interrupt("cpu", tiers.few(cases, 2), tiers.few([0.0, 0.31, 0.13, 0.05, 0.2], 2))
    )


@pytest.mark.gpu
def test_an_interrupted_call_on_a_gpu_leaves_nothing_behind():
    cases = [
        ("bfs", "source_per_block", False),
        ("bfs", "bit_parallel", False),
        ("sssp", "auto", True),
    ]
    check_interrupts(interrupt("cuda", cases, [0.0, 0.11, 0.07]))


def test_the_class_of_a_stream_is_an_iterator():
    stream = bfs_many(TOWNS, "all", stream=True)
    assert isinstance(stream, ResultStream)
    assert iter(stream) is stream
    assert repr(stream) == "<ResultStream: 0 of 3 sources>"


def test_the_example_of_a_stream_writes_what_the_call_returns(tmp_path):
    edges = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "c", "a"], "weight": [1, 2, 3]})
    edges.to_parquet(tmp_path / "edges.parquet")
    paths = [str(tmp_path / "edges.parquet"), str(tmp_path / "distances.parquet")]
    assert stream_distances.main([*paths, "--undirected"]) == 0
    graph = graph_from_edges(edges, directed=False)
    found = pd.read_parquet(paths[1])
    pd.testing.assert_frame_equal(found, sssp_many(graph, "all"), check_dtype=False)
    assert stream_distances.main([str(tmp_path / "none.parquet"), paths[1]]) == 2
