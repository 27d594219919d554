"""``pipelines.run_job``: the job from Python, in this process and on the workers of a client."""

import contextlib
import io
import os
import pickle
import signal
import sys
import threading
from html import escape

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster

import pipelines
from kepler_traverse import (
    InputError,
    NegativeCycleError,
    OutputError,
    UnknownVertexError,
    bfs_many,
    graph_from_edges,
    load_graph,
    read_graph,
    sssp_many,
)
from pipelines import JobFailedError, JobResult, run_job
from pipelines.batch_sources import main
from pipelines.run.batch_run import BatchRun
from pipelines.worker.traversal_worker import TraversalWorker
from tests.support.clusters import threads_of_this_process
from tests.support.jobs import manifest_of
from tests.support.processes import PATIENCE, ran

RNG = np.random.default_rng(7)
EDGES = {
    "src": RNG.integers(0, 300, 1500),
    "dst": RNG.integers(0, 300, 1500),
    "weight": RNG.integers(1, 90, 1500),
}
TABLE = pd.DataFrame(EDGES)
GRAPH = graph_from_edges(TABLE, directed=False)
SOURCES = [17, 3, 250, 99]
SSSP = {"algorithm": "sssp", "sources": SOURCES, "device": "cpu", "report": False}


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.parquet"
    TABLE.to_parquet(path)
    return path


@contextlib.contextmanager
def a_client(how="tcp"):
    """A client of two workers, which are threads of this process."""
    with contextlib.ExitStack() as stack:
        if how == "tcp":
            cluster = stack.enter_context(threads_of_this_process(n_workers=2, memory_limit=0))
        else:
            cluster = stack.enter_context(
                LocalCluster(
                    n_workers=2,
                    threads_per_worker=1,
                    processes=False,
                    memory_limit=0,
                    dashboard_address=":0",
                )
            )
            assert cluster.scheduler_address.startswith("inproc://")
        yield stack.enter_context(Client(cluster, set_as_default=False))


def test_a_path_a_table_and_a_graph_give_one_digest(edges, tmp_path):
    found = [
        run_job(given, output=tmp_path / str(i), **({} if i == 3 else {"directed": False}), **SSSP)
        for i, given in enumerate([edges, [str(edges)], TABLE, GRAPH, pa.table(EDGES)])
    ]
    assert len({result.digest for result in found}) == 1
    words = [
        edges,
        "--undirected",
        "--algorithm",
        "sssp",
        "--sources",
        "17,3,250,99",
        "--output",
        tmp_path / "cli",
    ]
    assert main([str(word) for word in [*words, "--device", "cpu", "--no-report"]]) == 0
    assert manifest_of(tmp_path / "cli")["digest"] == found[0].digest


def test_hops_of_a_table_are_those_of_a_path_whatever_its_weights(edges, tmp_path):
    options = SSSP | {"algorithm": "bfs", "directed": False, "result": "flows"}
    found = [
        run_job(given, output=tmp_path / str(i), **options)
        for i, given in enumerate([edges, TABLE])
    ]
    assert found[0].digest == found[1].digest
    rows = [pd.read_parquet(tmp_path / str(i) / "_loads.pq")["edge"] for i in range(2)]
    assert rows[0].equals(rows[1])  # of parallel edges the first, and not the shortest


def test_rows_of_a_table_are_chosen_as_those_of_a_path(tmp_path):
    rows = TABLE.assign(way=np.where(TABLE.weight % 3, "no", "-1"), lanes=TABLE.weight % 5)
    rows.to_parquet(tmp_path / "rows.parquet")
    chosen = {"where": "lanes > 0", "columns": {"oneway": "way"}}
    ids = sorted({*SOURCES, *range(0, 300, 2)})
    np.savetxt(tmp_path / "ids.txt", ids, fmt="%d")
    table = run_job(rows, output=tmp_path / "table", only_vertices=ids, **chosen, **SSSP)
    path = run_job(
        tmp_path / "rows.parquet",
        output=tmp_path / "path",
        only_vertices=str(tmp_path / "ids.txt"),
        **chosen,
        **SSSP,
    )
    assert table.digest == path.digest
    assert table.digest != run_job(TABLE, output=tmp_path / "all", **SSSP).digest


def test_the_result_has_the_manifest_and_reads_the_parts(tmp_path, capsys):
    result = run_job(GRAPH, output=tmp_path / "out", batch_size=3, **SSSP)
    assert isinstance(result, JobResult)
    assert result.path == tmp_path / "out"
    assert result.manifest == manifest_of(tmp_path / "out")
    assert (result.computed, result.n_sources, len(result.parts)) == (2, 4, 2)
    assert all(part.exists() for part in result.parts)
    assert result.nbytes == sum(part.stat().st_size for part in result.parts)
    expected = sssp_many(GRAPH, SOURCES)
    assert result.n_rows == len(expected)
    pd.testing.assert_frame_equal(result.to_pandas(), expected, check_dtype=False)
    assert result.to_arrow(["vertex"]).schema.names == ["vertex"]
    assert sum(table.num_rows for table in result.tables()) == len(expected)
    assert {"plan", "traverse"} <= set(result.seconds)
    assert result.total_seconds > 0
    assert result.failed == []
    assert repr(result).startswith("<JobResult: distances of 4 sources, ")
    assert result.digest in result._repr_html_()
    assert capsys.readouterr().out == ""


def test_a_matrix_is_read_from_its_files(tmp_path):
    result = run_job(GRAPH, output=tmp_path / "out", result="matrix", batch_size=2, **SSSP)
    table = result.to_arrow()
    assert table["source"].to_pylist() == SOURCES
    expected = sssp_many(GRAPH, SOURCES, result="matrix")
    expected = np.where(np.isinf(expected), -1, expected)
    assert table["distance"].to_pylist() == expected.astype(int).tolist()


def test_names_in_the_summary_are_escaped(tmp_path):
    folder = tmp_path / "<b>out"
    text = run_job(GRAPH, output=folder, **SSSP)._repr_html_()
    assert "<b>" not in text
    assert escape(str(folder)) in text


@pytest.mark.parametrize("how", ["tcp", "inproc"])
@pytest.mark.parametrize("given", ["graph", "path"])
def test_batches_run_on_the_workers_of_a_client_which_stays_open(edges, tmp_path, how, given):
    alone = run_job(GRAPH, output=tmp_path / "alone", batch_size=1, **SSSP)
    with a_client(how) as client:
        options = {} if given == "graph" else {"directed": False}
        result = run_job(
            GRAPH if given == "graph" else edges,
            output=tmp_path / "out",
            client=client,
            batch_size=1,
            **options,
            **SSSP,
        )
        assert client.submit(sum, [1, 2]).result(timeout=PATIENCE) == 3
        assert result.manifest["workers"] == 2
        workers = {part["worker"] for part in result.manifest["parts"]}
        assert workers <= set(client.scheduler_info()["workers"])
    assert result.digest == alone.digest
    assert not (tmp_path / "out" / "_graph").exists()
    assert [part["worker"] for part in alone.manifest["parts"]] != [
        part["worker"] for part in result.manifest["parts"]
    ]


def test_clients_that_cannot_be_used_are_refused(tmp_path):
    with a_client() as client:
        pass
    with pytest.raises(InputError, match="client is closed; make a new one"):
        run_job(GRAPH, output=tmp_path / "out", client=client, **SSSP)
    with pytest.raises(InputError, match=r"client must be a Client, not 'tcp://127.0.0.1:8786'"):
        run_job(GRAPH, output=tmp_path / "out", client="tcp://127.0.0.1:8786", **SSSP)
    with (
        a_client() as client,
        pytest.raises(InputError, match="workers has no effect: a scheduler is named"),
    ):
        run_job(GRAPH, output=tmp_path / "out", client=client, workers=2, **SSSP)
    assert not (tmp_path / "out").exists()


def test_a_scheduler_of_the_environment_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("SCHEDULER_FILE", str(tmp_path / "there_is_none.json"))
    assert run_job(GRAPH, output=tmp_path / "out", **SSSP).manifest["status"] == "done"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"source": [1]}, InputError, "source is no option of the job; did you mean sources?"),
        ({"plan": True}, InputError, "plan is an option of the command line only"),
        (
            {"scheduler_address": "tcp://a:1"},
            InputError,
            "scheduler_address is an option of the command line only; give",
        ),
        (
            {"sources": None},
            InputError,
            "no sources are given; take one of sources, random_sources",
        ),
        (
            {"sources": ["17"]},
            UnknownVertexError,
            "source '17' is not a vertex: the ids of this graph are integers",
        ),
        pytest.param(  # with an id, because the order of a set differs between processes
            {"sources": {17, "a"}},
            InputError,
            "sources must be integers or strings, and not both",
            id="mixed sources",
        ),
        (
            {"targets": 5, "result": "targets"},
            UnknownVertexError,
            "targets must be a list of ids, not 5: give [5]",
        ),
        ({"columns": {"src": "src"}}, InputError, "columns names src 'src', and edges are a graph"),
        ({"directed": True}, InputError, "directed has no effect: edges are a graph"),
        ({"where": "weight > 3"}, InputError, "where has no effect: edges are a graph"),
        ({"only_vertices": [17]}, InputError, "only_vertices has no effect: edges are a graph"),
        (
            {"knobs": {"a": 1}},
            InputError,
            "knobs are those of one strategy, and strategy is 'auto'",
        ),
        ({"engine": "cugraph-mg"}, InputError, "engine"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_wrong_options_are_errors_in_the_words_of_python(tmp_path, options, error, message):
    with pytest.raises(error) as raised:
        run_job(GRAPH, output=tmp_path / "out", **(SSSP | options))
    assert message in str(raised.value)
    assert "--" not in str(raised.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "wrong", [None, 5, [], [5], object()], ids=lambda value: type(value).__name__
)
def test_run_job_refuses_what_is_no_edge_list(tmp_path, wrong):
    with pytest.raises(
        InputError, match="edges must be a Graph, a table, a path or a list of paths, not "
    ):
        run_job(wrong, output=tmp_path / "out", **SSSP)


def test_a_folder_that_is_taken_is_refused_in_the_words_of_python(tmp_path):
    run_job(GRAPH, output=tmp_path / "out", **SSSP)
    with pytest.raises(
        OutputError,
        match="the folder holds a finished run; take a new folder, or resume=True to check",
    ):
        run_job(GRAPH, output=tmp_path / "out", **SSSP)
    again = run_job(GRAPH, output=tmp_path / "out", resume=True, **SSSP)
    assert again.computed == 0


@pytest.mark.parametrize(
    "sources",
    ["all", 17, np.int64(17), {3, 17}, range(5), pd.Series([4, 2]), iter([4, 2])],
    ids=lambda value: type(value).__name__,
)
def test_sources_are_what_bfs_many_takes(tmp_path, sources):
    expected = (
        range(5)
        if isinstance(sources, range)
        else [4, 2]
        if hasattr(sources, "__next__")
        else sources
    )
    result = run_job(
        GRAPH,
        output=tmp_path / "out",
        sources=sources,
        result="summary",
        device="cpu",
        report=False,
    )
    expected = bfs_many(GRAPH, expected, result="summary")
    pd.testing.assert_frame_equal(result.to_pandas(), expected, check_dtype=False)


@pytest.mark.parametrize("given", ["graph", "path"])
def test_all_is_refused_where_it_is_also_a_vertex(tmp_path, given):
    pd.DataFrame({"src": ["all", "b"], "dst": ["b", "c"]}).to_parquet(tmp_path / "names.parquet")
    names = read_graph(tmp_path / "names.parquet", device="cpu")
    edges = names if given == "graph" else tmp_path / "names.parquet"
    options = {"output": tmp_path / "out", "device": "cpu", "report": False}
    with pytest.raises(InputError, match="could mean every vertex or the vertex of this name"):
        run_job(edges, sources="all", **options)
    assert not (tmp_path / "out").exists()
    assert run_job(edges, sources=["all"], **options).n_sources == 1


def test_a_graph_cache_keeps_a_graph_that_was_given(tmp_path):
    cache = tmp_path / "cache"
    first = run_job(GRAPH, output=tmp_path / "a", graph_cache=cache, **SSSP)
    second = run_job(GRAPH, output=tmp_path / "b", graph_cache=cache, **SSSP)
    assert (first.manifest["graph"]["reused"], second.manifest["graph"]["reused"]) == (False, True)
    assert first.digest == second.digest
    (stored,) = cache.glob("graph-*[!k]")
    assert load_graph(stored).fingerprint == GRAPH.fingerprint


def test_a_job_of_which_sources_fail_raises_with_the_result(tmp_path, monkeypatch):
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

    monkeypatch.setattr(TraversalWorker, "answer", failing)
    with pytest.raises(
        JobFailedError, match=r"of 4 sources failed, the first of them: .*planted; .* resume=True"
    ) as raised:
        run_job(GRAPH, output=tmp_path / "out", batch_size=1, **SSSP)
    result = raised.value.result
    assert result.manifest["status"] == "failed"
    assert result.failed
    assert "failed sources" in result._repr_html_()
    assert pickle.loads(pickle.dumps(raised.value)).result.path == result.path
    monkeypatch.undo()
    assert run_job(GRAPH, output=tmp_path / "out", batch_size=1, resume=True, **SSSP).failed == []


def test_a_negative_cycle_is_the_error_of_the_library(tmp_path):
    graph = graph_from_edges([0, 1, 2], [1, 2, 0], [1.0, 1.0, -3.0])
    with pytest.raises(NegativeCycleError) as raised:
        run_job(
            graph, output=tmp_path / "out", algorithm="sssp", sources=0, device="cpu", report=False
        )
    assert sorted(raised.value.cycle) == [0, 1, 2]


def test_the_callers_graph_and_threads_stay_as_they_are(tmp_path):
    import numba

    before = numba.get_num_threads()
    fingerprint = GRAPH.fingerprint
    threads = set(threading.enumerate())
    run_job(GRAPH, output=tmp_path / "out", **SSSP)
    assert numba.get_num_threads() == before
    assert GRAPH.fingerprint == fingerprint
    for thread in set(threading.enumerate()) - threads:
        if thread.name.startswith("kepler-"):
            thread.join(PATIENCE)
            assert not thread.is_alive(), thread.name


def test_the_package_of_the_job_imports_nothing_until_it_is_used():
    code = "import sys, pipelines; sys.exit(bool({'numpy', 'dask', 'kepler_traverse.errors'} & set(sys.modules)))"
    assert ran([sys.executable, "-c", code]).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'run_jobs'"):
        _ = pipelines.run_jobs


def test_an_interrupted_job_leaves_a_folder_that_can_be_resumed(tmp_path, monkeypatch):
    options = {
        "sources": "all",
        "result": "summary",
        "batch_size": 5,
        "device": "cpu",
        "report": False,
    }
    done = BatchRun.done
    strikes = iter([signal.SIGINT])

    def struck(*args):
        done(*args)
        for strike in strikes:
            signal.raise_signal(strike)

    with monkeypatch.context() as patch:
        patch.setattr(BatchRun, "done", struck)
        # ignored in a run in the background
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(
                KeyboardInterrupt,
                match=r"interrupted: .* To finish: run_job\(\.\.\., resume=True\)",
            ):
                run_job(GRAPH, output=tmp_path / "out", **options)
        finally:
            signal.signal(signal.SIGINT, before)
    assert not [name for name in os.listdir(tmp_path / "out") if name.endswith(".tmp")]
    result = run_job(GRAPH, output=tmp_path / "out", resume=True, **options)
    whole = run_job(GRAPH, output=tmp_path / "whole", **options)
    assert 0 < result.computed < len(whole.parts)
    assert result.digest == whole.digest


@pytest.mark.parametrize("name", ["edges", "sources", "targets", "pairs", "vertices", "output"])
def test_an_open_file_is_refused_by_the_name_of_its_argument(tmp_path, name):
    path = tmp_path / "e.csv"
    path.write_text("1,2\n2,3\n")
    for opened in (path.open("rb"), io.StringIO("1,2\n")):
        options = {"edges": path, "output": tmp_path / "o", "sources": [1]} | {name: opened}
        with opened, pytest.raises(InputError, match=f"^{name} is an open file; give"):
            run_job(options.pop("edges"), **options)
    assert not (tmp_path / "o").exists()
