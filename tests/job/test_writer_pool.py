"""Part files that threads write while their worker traverses: the same bytes, and each part file fails alone."""

import asyncio
import errno
import functools
import gc
import io
import itertools
import threading
import time
import weakref
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from distributed import Client

from kepler_traverse import graph_from_edges, plan_bfs_many
from kepler_traverse._arrays import namespace
from kepler_traverse.errors import OutputError
from kepler_traverse.graph.build import graph_from_numbers
from kepler_traverse.graph.storage import write_graph
from kepler_traverse.kinds.question import Question, Targets
from pipelines.output import row_groups
from pipelines.output.buffer_pool import Buffers
from pipelines.output.layout import Layout
from pipelines.output.part_file import expand_sources
from pipelines.output.rows import is_made_on_host, make_rows
from pipelines.output.schemas import OUTPUT_SCHEMAS
from pipelines.output.store import Store
from pipelines.run import prepare
from pipelines.scheduling.cluster import pinned_settings
from pipelines.worker import phase_timer, traversal_worker, traverse, writer_pool
from pipelines.worker.phase_timer import PhaseTimer
from pipelines.worker.planning import Request, plan_for
from pipelines.worker.plugin import TraversalPlugin, Work, run_batches
from pipelines.worker.traverse import BatchTraverser
from pipelines.worker.writer_pool import (
    AbandonedPartError,
    MadeRows,
    PartEncoders,
    Writers,
    can_write_in_background,
    writers_for,
)
from tests.conftest import HAS_GPU
from tests.support import tiers
from tests.support.clusters import threads_of_this_process
from tests.support.devices import on_a_device, running
from tests.support.processes import PATIENCE

N_PARTS = 7
SOURCES_PER_PART = 5
BATCHES = [
    (part, list(range(part * SOURCES_PER_PART, (part + 1) * SOURCES_PER_PART)))
    for part in range(N_PARTS)
]


def graph_of(ids):
    src, dst = (
        np.random.default_rng(4).integers(0, 200, (2, 420)).astype(np.int32)
    )  # so few that some vertices are not reached
    weight = np.arange(src.size) % 7 + 1
    if ids == "integers":
        return graph_from_edges(src + 1000, dst + 1000, weight)
    names = pa.array(sorted(f"v{i}" for i in range(200)))
    return graph_from_numbers(src, dst, weight, ids=names)


def every_other_vertex():
    graph = graph_of("integers")
    return Targets.of(graph, graph.ids[::2].tolist())


@on_a_device
@pytest.mark.parametrize("result", ["distances", "predecessors", "reachable"])
@pytest.mark.parametrize("layout", ["rows", "rows with gaps", "columns"])
def test_rows_of_a_group_on_a_gpu_are_those_of_the_same_group_on_the_cpu(result, layout):
    graph = graph_of("integers")
    kept = "predecessors" if result == "predecessors" else "distances"
    plan = plan_bfs_many(graph, n_sources=9, result=kept)
    group = plan.run(range(9))
    question = Question(algorithm="bfs", kind=OUTPUT_SCHEMAS[result], certify="none", limit=None)
    expected = list(make_rows(question, graph, plan.query, group))
    with running(None if HAS_GPU else {"block": 64}):
        there = graph.to("cuda")
        move = namespace(there.offsets).asarray

        def laid_out(rows):
            if layout == "rows with gaps":
                return move(np.pad(rows, ((0, 0), (0, 7))))[:, :-7]
            return move((np.asfortranarray if layout == "columns" else np.ascontiguousarray)(rows))

        predecessor = None if group.predecessor is None else laid_out(group.predecessor)
        group = replace(group, distance=laid_out(group.distance), predecessor=predecessor)
        assert is_made_on_host(question, plan.query, there)
        found = list(make_rows(question, there, plan.query, group))
    for one, other in zip(expected, found, strict=True):
        assert one.counts == other.counts
        assert (one.answer.sources, one.answer.checksums) == (
            other.answer.sources,
            other.answer.checksums,
        )
        assert expand_sources(one.answer.table).equals(expand_sources(other.answer.table))


@pytest.fixture
def answered(tmp_path):
    """Answers all parts in this process with so many writing threads, and returns (outcomes, parts on disk, folder)."""

    def answer(
        n_writers,
        result="distances",
        algorithm="bfs",
        ids="integers",
        at_once=SOURCES_PER_PART,
        begin_next=None,
        **more,
    ):
        folder = tmp_path / f"{result}-{algorithm}-{n_writers}-{at_once}"
        folder.mkdir()
        write_graph(graph_of(ids), tmp_path / f"graph-{folder.name}")
        work = Work(
            request=Request(
                algorithm=algorithm, strategy="auto", kind=OUTPUT_SCHEMAS[result], knobs=None, at_once=at_once,
                **{"certify": "all"} | more,
            ),
            layout=Layout(result), graph_folder=tmp_path / f"graph-{folder.name}", output=folder, device="cpu", threads=1,
        )  # fmt: skip
        plugin = TraversalPlugin(work, "plugin")
        asyncio.run(plugin.setup(SimpleNamespace(state=SimpleNamespace(nthreads=1), address="")))
        plugin.loaded = replace(
            plugin.loaded, writers=None if n_writers == 1 else Writers(n_writers)
        )
        # of bits a plan takes 64
        plugin.loaded.traverser.group = min(plugin.loaded.traverser.group, at_once)
        outcomes = plugin.answer(
            BATCHES,
            False,
            tmp_path / "mark",
            functools.partial(begin_next or (lambda _: None), plugin),
        )
        plugin.teardown(None)
        return outcomes, {path.name: path.read_bytes() for path in sorted(folder.iterdir())}, folder

    return answer


@pytest.mark.parametrize(
    ("asked", "at_once"),
    tiers.by_turns(
        [
            ("distances", "bfs", "integers"),
            ("distances", "sssp", "strings"),
            ("predecessors", "bfs", "strings"),
            ("reachable", "bfs", "integers"),
            ("levels", "bfs", "integers"),
        ],
        [SOURCES_PER_PART, 2, 12],  # of a part, of some of it, of more than one
    ),
)
def test_threads_write_the_same_bytes_as_one_thread(answered, asked, at_once):
    result, algorithm, ids = asked
    alone, expected, _ = answered(1, result, algorithm, ids)
    beside, found, _ = answered(3, result, algorithm, ids, at_once)
    assert found == expected
    assert len(found) == N_PARTS
    # rounds are those of a whole group
    times = ("started", "ended", "seconds", "phases", "slowest", "rounds")
    for one, other in zip(alone, beside, strict=True):
        assert one["part"] == other["part"]
        assert one["failed"] == other["failed"] == []
        for summary in (one["summary"], other["summary"]):
            assert set(summary["phases"]) == {
                "load",
                "compile",
                "traverse",
                "certify",
                "rows",
                "write",
            }
            assert all(
                summary["phases"][phase] > 0 for phase in ("traverse", "certify", "rows", "write")
            )
        assert {k: v for k, v in one["summary"].items() if k not in times} == {
            k: v for k, v in other["summary"].items() if k not in times
        }


@pytest.fixture
def small_pieces(monkeypatch):
    """Pieces of two sources, and row groups of less than one."""
    monkeypatch.setattr(writer_pool, "ROWS_PER_PART", 450)
    monkeypatch.setattr(writer_pool, "PIECE_BYTES", 450 * 12)
    monkeypatch.setattr(row_groups, "GROUP_BYTES", 1000)


@pytest.mark.parametrize(
    ("asked", "n_writers"),
    tiers.by_turns(
        [
            ("distances", "bfs", "integers", {}),
            ("distances", "sssp", "strings", {}),
            ("predecessors", "sssp", "integers", {}),
            ("matrix", "bfs", "integers", {}),
            ("reachable", "bfs", "strings", {"limit": 2}),
            ("distances", "bfs", "integers", {"targets": every_other_vertex()}),
        ],
        [2, 7],
    ),
)
@pytest.mark.usefixtures("small_pieces")
def test_parts_of_many_pieces_and_row_groups_are_the_same_bytes(answered, asked, n_writers):
    result, algorithm, ids, more = asked
    _, expected, folder = answered(1, result, algorithm, ids, **more)
    outcomes, found, _ = answered(n_writers, result, algorithm, ids, 12, **more)
    assert found == expected
    assert [outcome["failed"] for outcome in outcomes] == [[]] * N_PARTS
    if result == "distances":
        assert pq.ParquetFile(folder / "part-000000.parquet").num_row_groups >= 4


@pytest.mark.usefixtures("small_pieces")
def test_a_search_ahead_of_its_writers_waits_for_them(answered, monkeypatch):
    """Held are the pieces in flight, and what one helper per thread is at."""
    alive = []
    most = []
    keep = traverse.on_host

    def on_host(traversals):
        held = keep(traversals)
        alive.append(weakref.ref(held))
        most.append(sum(ref() is not None for ref in alive))
        return held

    encode = row_groups.RowGroupWriter._encode
    monkeypatch.setattr(traverse, "on_host", on_host)
    monkeypatch.setattr(
        row_groups.RowGroupWriter, "_encode", lambda *given: (time.sleep(0.01), encode(*given))[1]
    )
    answered(2, at_once=35)
    assert len(most) == N_PARTS * 3
    assert max(most) <= 2 + 1


@pytest.mark.parametrize(
    ("kind", "where", "calls"),
    [
        (row_groups.RowGroupWriter, "_encode", N_PARTS * SOURCES_PER_PART // 2),
        (row_groups.RowGroupWriter, "_add", N_PARTS * SOURCES_PER_PART // 2),
        (Store, "move_in", N_PARTS // 2),
    ],
    ids=["encoding", "writing", "storing"],
)
@pytest.mark.usefixtures("small_pieces")
def test_a_disk_or_a_store_that_fails_leaves_nothing_half_written(
    answered, monkeypatch, tmp_path, kind, where, calls
):
    _, expected, _ = answered(1)
    make = getattr(kind, where)
    left = [calls]

    def broken(*given):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return make(*given)

    monkeypatch.setattr(kind, where, broken)
    with pytest.raises(OutputError, match="No space left"):
        answered(3)
    found = {
        path.name: path.read_bytes()
        for path in (tmp_path / f"distances-bfs-3-{SOURCES_PER_PART}").iterdir()
    }
    assert found.items() < expected.items()


def failing_from(plugin, monkeypatch, broken, error):
    """Make the searches of each group fail that contains a source."""
    run = plugin.loaded.plan.run

    def broken_run(sources, **given):
        if set(broken) & set(sources):
            raise error
        return run(sources, **given)

    monkeypatch.setattr(plugin.loaded.plan, "run", broken_run)


@pytest.mark.parametrize(
    ("broken", "error"),
    [
        ([0], ValueError("odd")),
        ([9, 10], MemoryError("too much")),
        ([34], ValueError("odd")),
        (BATCHES[3][1], ValueError("odd")),
        ([source for _, part in BATCHES for source in part], ValueError("odd")),
    ],
    ids=["first", "two by memory", "last", "part", "all"],
)
def test_a_source_that_fails_in_a_group_of_several_parts_is_missing_in_its_own(
    answered, monkeypatch, broken, error
):
    _, _, folder = answered(1)
    expected = [pq.read_table(path) for path in sorted(folder.iterdir())]
    monkeypatch.setattr(TraversalPlugin, "_load", lambda self, load=TraversalPlugin._load: (
        load(self), failing_from(self, monkeypatch, broken, error)
    ))  # fmt: skip
    outcomes, found, _ = answered(3, at_once=12)
    ids = graph_of("integers").ids
    for (part, sources), outcome in zip(BATCHES, outcomes, strict=True):
        missing = [source for source in sources if source in broken]
        assert [source for source, _ in outcome["failed"]] == missing
        assert (outcome["summary"] is None) == (missing == sources)
        left = expected[part].filter(
            pc.invert(pc.is_in(expected[part]["source"], pa.array(ids[missing])))
        )
        if outcome["summary"] is not None:
            written = pq.read_table(io.BytesIO(found[f"part-{part:06d}.parquet"]))
            assert written.equals(left.combine_chunks()) or written.to_pylist() == left.to_pylist()


def test_a_part_of_several_that_are_searched_together_begins_with_their_search(
    answered, monkeypatch
):
    clock = itertools.count(1)
    now = SimpleNamespace(perf_counter=time.perf_counter)
    now.time = lambda: float(next(clock))
    began = {}
    traverse = BatchTraverser._traverse

    def noting(self, group, *rest):
        began.update(dict.fromkeys((source for source, _ in group), now.time()))
        return traverse(self, group, *rest)

    monkeypatch.setattr("pipelines.worker.traverse.time", now)
    monkeypatch.setattr(BatchTraverser, "_traverse", noting)
    outcomes, _, _ = answered(3, at_once=12)
    assert 1 < len(set(began.values())) < N_PARTS
    for (_, sources), outcome in zip(BATCHES, outcomes, strict=True):
        assert outcome["summary"]["started"] == began[sources[0]] - 1, (
            "nothing else asks for the time in between"
        )


def test_certify_sample_takes_the_first_source_of_each_part_of_a_group(answered, monkeypatch):
    seen = []
    certify = BatchTraverser._certify
    monkeypatch.setattr(
        BatchTraverser,
        "_certify",
        lambda self, found: seen.extend(found.sources.tolist()) or certify(self, found),
    )
    answered(3, at_once=12, certify="sample")
    assert seen == [sources[0] for _, sources in BATCHES]


def failing_at(monkeypatch, part, error, times):
    """Make the first ``times`` writes of a part fail in the middle of its rows."""
    write = traversal_worker.write_part
    left = [times]

    def written(store, number, run, answers, *rest):
        def broken():
            yield next(answers)
            raise error

        fails = number == part and left[0] > 0
        left[0] -= fails
        return write(store, number, run, broken() if fails else answers, *rest)

    monkeypatch.setattr(traversal_worker, "write_part", written)


def test_a_task_that_plans_anew_gives_back_the_plan_of_one_that_still_writes(
    answered, monkeypatch, tmp_path
):
    _, expected, _ = answered(1)
    failing_at(monkeypatch, 2, MemoryError("too much"), 1)
    gone = []

    def plan_anew(plugin):
        before = weakref.ref(plugin.loaded.plan)
        other = next(
            name
            for name in ("bit_parallel", "source_per_thread")
            if name != plugin.loaded.plan.strategy.name
        )
        plugin.answer([], False, tmp_path / "mark of the next task", strategy=other)
        assert plugin.loaded.plan.strategy.name == other
        gc.collect()
        gone.append(before() is None)

    outcomes, found, _ = answered(3, begin_next=plan_anew)
    assert gone == [True]
    assert found == expected, "also the part that was tried again, with the new plan"
    assert [outcome["failed"] for outcome in outcomes] == [[]] * N_PARTS


def test_a_write_that_runs_out_of_memory_among_several_is_tried_again_alone(answered, monkeypatch):
    _, expected, _ = answered(1)
    failing_at(monkeypatch, 2, MemoryError("too much"), 1)
    outcomes, found, _ = answered(3)
    assert [outcome["failed"] for outcome in outcomes] == [[]] * N_PARTS
    assert found == expected


def test_a_write_that_fails_for_good_fails_its_part_alone(answered, monkeypatch):
    _, expected, _ = answered(1)
    failing_at(monkeypatch, 2, MemoryError("too much"), 3)
    outcomes, found, _ = answered(3)
    assert [outcome["part"] for outcome in outcomes if outcome["failed"]] == [2]
    assert [source for source, _ in outcomes[2]["failed"]] == BATCHES[2][1]
    assert outcomes[2]["summary"] is None
    del expected["part-000002.parquet"]
    assert found == expected


def test_a_full_disk_ends_the_task_and_leaves_whole_parts_only(answered, monkeypatch, tmp_path):
    _, expected, _ = answered(1)
    failing_at(monkeypatch, 2, OSError(errno.ENOSPC, "No space left on device"), 9)
    with pytest.raises(OutputError, match="No space left"):
        answered(3)
    found = {
        path.name: path.read_bytes()
        for path in (tmp_path / f"distances-bfs-3-{SOURCES_PER_PART}").iterdir()
    }
    assert "part-000002.parquet" not in found
    assert found.items() < expected.items()


def drained(pieces):
    """The rows of all pieces of a part, taken as the thread takes them that writes it."""
    return [rows for rows, _ in pieces.rows(PhaseTimer())]


def test_pieces_in_flight_are_at_most_the_threads_and_one():
    writers = Writers(2)
    most = []
    in_flight = [0]
    lock = threading.Lock()

    def written(pieces):
        for rows, _ in pieces.rows(PhaseTimer()):
            time.sleep(0.002)
            with lock:
                in_flight[0] -= rows is None
            yield rows

    def parts(n_pieces):
        pieces = writers.open()
        yield lambda: len(list(written(pieces)))
        for _ in range(n_pieces):
            with pieces.capacity() as put:
                with lock:
                    in_flight[0] += 1
                    most.append(in_flight[0])
                put(lambda _clock: MadeRows([None], 0.0))
        pieces.end()

    begun = [part for n_pieces in (1, 20, 0, 7) for part in writers.submit_parts(parts(n_pieces))]
    assert [part.result() for part in begun] == [1, 20, 0, 7]
    assert 2 <= max(most) <= 2 + 1
    writers.close()


@pytest.mark.parametrize("error", [ValueError("no more"), GeneratorExit()])
def test_a_part_whose_search_ends_early_is_abandoned_and_those_before_are_whole(error):
    writers = Writers(2)
    ended = []

    def parts():
        for number in range(3):
            pieces = writers.open()
            try:
                yield lambda pieces=pieces, number=number: (drained(pieces), ended.append(number))
                with pieces.capacity() as put:
                    put(lambda _clock: MadeRows([None], 0.0))
                if number == 2:
                    raise error
            except BaseException:
                pieces.fail(AbandonedPartError("ended"))
                raise
            pieces.end()

    with pytest.raises(type(error)):
        writers.submit_parts(parts())
    assert sorted(ended) == [0, 1]
    writers.close()


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), MemoryError("too much")])
def test_a_part_that_cannot_be_written_holds_no_search_up(error):
    """The search goes on only if the part can be tried again."""
    writers = Writers(1)
    searched = []

    def fail(pieces):
        try:
            next(pieces.rows(PhaseTimer()))
            raise error
        except BaseException as failed:
            pieces.close(failed)
            raise

    def parts():
        for number in range(2):
            pieces = writers.open()
            yield functools.partial(fail if number == 0 else drained, pieces)
            for _ in range(50):
                with pieces.capacity() as put:
                    put(lambda _clock: MadeRows([None], 0.0))
                searched.append(number)
                time.sleep(0.001)
            pieces.end()

    if isinstance(error, MemoryError):
        failed, whole = writers.submit_parts(parts())
        assert failed.exception() is error
        assert len(whole.result()) == 50
        assert searched == [0] * 50 + [1] * 50
    else:
        with pytest.raises(OSError, match="full"):
            writers.submit_parts(parts())
        assert len(searched) < 50
    assert writers._n_pieces == 0, "all capacity is left"
    writers.close()


def test_row_groups_in_flight_are_bounded_and_come_in_order():
    writers = Writers(2)
    most = []
    encoders = [PartEncoders(writers, PhaseTimer()) for _ in range(3)]
    found = [[] for _ in encoders]

    def encode(number):
        time.sleep(0.003 * (number % 3))
        return number

    for number in range(30):
        for own, encoder in zip(found, encoders, strict=True):
            own.extend(encoder.begin(functools.partial(encode, number)))
            most.append(writers._n_groups)
    for own, encoder in zip(found, encoders, strict=True):
        own.extend(encoder.rest())
    assert found == [list(range(30))] * 3
    assert 2 <= max(most) <= 3 * 2 + len(encoders), "one of each part is begun in any case"
    assert writers._n_groups == 0
    writers.close()


def test_the_next_task_is_traversed_while_the_parts_of_the_last_one_are_written(
    tmp_path, monkeypatch
):
    """On a Dask worker with one thread; the part files of the first task wait until the second one has begun to write."""
    folder = tmp_path / "out"
    n_tasks = 3
    folder.mkdir()
    write_graph(graph_of("integers"), tmp_path / "graph")
    work = Work(
        request=Request(
            algorithm="bfs", strategy="auto", kind=OUTPUT_SCHEMAS["distances"], certify="all",
            at_once=12,
        ),
        layout=Layout(), graph_folder=tmp_path / "graph", output=folder, device="cpu", threads=1, writers=8,
    )  # fmt: skip
    monkeypatch.setattr(traversal_worker, "writers_for", lambda *_: 8)
    write = traversal_worker.write_part
    second = threading.Event()

    def held(store, number, *rest):
        second.set() if number >= N_PARTS else second.wait(PATIENCE)
        assert second.is_set(), "the second task has not begun"
        return write(store, number, *rest)

    monkeypatch.setattr(traversal_worker, "write_part", held)
    tasks = [
        [(part + task * N_PARTS, sources) for part, sources in BATCHES] for task in range(n_tasks)
    ]
    with (
        pinned_settings(),
        threads_of_this_process(n_workers=1) as one,
        Client(one, set_as_default=False) as client,
    ):
        client.register_plugin(TraversalPlugin(work, "kepler"), name="kepler")
        futures = [
            client.submit(run_batches, "kepler", task, False, tmp_path / f"mark-{i}", pure=False)
            for i, task in enumerate(tasks)
        ]
        found = [
            outcome["part"] for future in futures for outcome in future.result(timeout=PATIENCE)
        ]
    assert found == list(range(n_tasks * N_PARTS))
    assert len(list(folder.iterdir())) == n_tasks * N_PARTS
    assert not list(tmp_path.glob("mark*"))


@on_a_device
def test_a_gpu_searches_from_more_sources_than_a_part_has_where_parts_are_written_beside(
    monkeypatch,
):
    asked = {
        "algorithm": "bfs",
        "strategy": "auto",
        "limit": None,
        "certify": "all",
        "knobs": None,
        "at_once": 5,
    }
    own = {"scheduler": None, "gpu_memory": None}

    def planned(targets=None, result="distances", n_sources=60, **settings):
        request = Request(targets=Targets.of(graph, targets), kind=OUTPUT_SCHEMAS[result], **asked)
        said = SimpleNamespace(**own | settings)
        wider = prepare._plan_across_parts(said, graph, request, n_sources)
        found, plan = wider or prepare._plan_on_gpu(said, graph, request)
        assert plan_for(graph, found).group == plan.group, "a worker plans the same"
        return found.at_once

    with running(None if HAS_GPU else {"block": 64}):
        graph = graph_of("integers").to("cuda")
        assert [planned(), planned(result="reachable"), planned(n_sources=17)] == [60, 60, 17]
        assert [planned(targets=[1001]), planned(result="summary"), planned(scheduler="x")] == [
            5,
            5,
            5,
        ]
        monkeypatch.setattr(prepare, "DISTANCES_AT_ONCE", 9 * graph.n_vertices)
        assert planned() == 9
        room = plan_for(graph, Request(kind=OUTPUT_SCHEMAS["distances"], **asked)).nbytes
        held = graph.nbytes + graph.ids.nbytes
        # a quarter of it holds less than one part file
        assert planned(gpu_memory=held + 2 * room) == 5


def test_fewer_threads_write_where_memory_is_short(monkeypatch):
    assert writers_for(10**6, 8, 8) == 8
    monkeypatch.setattr(writer_pool, "available_memory", lambda _device: 2 * 10**9)
    assert 1 <= writers_for(10**6, 8, 8) < 8
    monkeypatch.setattr(writer_pool, "available_memory", lambda _device: 0)
    assert writers_for(10**6, 8, 8) == 1


def test_only_rows_that_are_sorted_must_all_be_held():
    assert can_write_in_background(9, 10**6, "source")
    assert can_write_in_background(8, 10**6, "distance")
    assert can_write_in_background(1, 10**9, "distance")
    assert not can_write_in_background(9, 10**6, "distance")


def test_the_column_of_sources_is_read_as_plain_ids(answered):
    _, _, folder = answered(1, ids="integers")
    schema = pq.read_schema(folder / "part-000000.parquet")
    assert schema.types == [pa.int32(), pa.int32(), pa.int32()]
    assert set(schema.metadata) >= {b"kepler_traverse.result", b"kepler_traverse.means"}
    table = pq.read_table(folder / "part-000000.parquet")
    assert (
        table["source"].unique().to_pylist() == graph_of("integers").ids[:SOURCES_PER_PART].tolist()
    )


def test_memory_is_lent_again_only_when_nobody_holds_it():
    buffers = Buffers(lambda size: np.empty(size, np.uint8))
    one = buffers.empty((3, 5), np.int16)
    one[:] = 7
    held = pa.array(one[1])
    at = one.ctypes.data
    del one
    other = buffers.empty(40, np.float64)
    other[:] = 0
    assert other.ctypes.data != at
    assert held.to_pylist() == [7] * 5
    del held
    assert buffers.empty(100, np.int8).ctypes.data == at
    buffers.clear()


def test_a_phase_within_another_counts_for_itself_alone(monkeypatch):
    ticks = iter([0, 1, 2, 5, 9])
    monkeypatch.setattr(phase_timer, "time", SimpleNamespace(perf_counter=lambda: next(ticks)))
    clock = PhaseTimer()
    with clock("write"), clock("rows"):
        pass
    assert (clock.seconds["rows"], clock.seconds["write"]) == (5 - 2, 9 - 1 - 3)
