"""A run chooses the fastest strategy once for all workers: with scripted times, and in the job itself."""

import contextlib
import functools
import itertools
import json
import time
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

from kepler_traverse import graph_from_edges, plan_bfs_many
from kepler_traverse.errors import CapacityError, InputError
from kepler_traverse.multi_source import planning, workload
from kepler_traverse.multi_source.candidates import Candidate, Candidates
from kepler_traverse.multi_source.planning import MultiSourcePlan
from pipelines.batch_sources import main
from pipelines.output.choice_text import current_strategy, describe_choice
from pipelines.output.manifest_types import StrategyChoice as Schema
from pipelines.output.manifest_types import checked
from pipelines.run.memory_plan import Load, Machine, size_up, with_capacity
from pipelines.scheduling.dask_executor import DaskExecutor
from pipelines.scheduling.heartbeat import Heartbeat
from pipelines.scheduling.scheduler import WINDOW, Window
from pipelines.scheduling.strategy_choice import StrategyChoice
from tests.support import tiers
from tests.support.clusters import threads_of_this_process
from tests.support.jobs import manifest_of, write_edges

BATCH = 10  # sources


class Future:
    def __init__(self, task):
        self.task = task
        self.key = task.number
        self.status = "pending"
        self.outcomes = None
        self.is_over = False

    def add_done_callback(self, _call):
        pass

    def done(self):
        return self.is_over

    def result(self, timeout):  # noqa: ARG002
        return self.outcomes

    def release(self):
        pass


class ScriptedWindow(Window):
    """Workers that take tasks in the order submitted, and whose strategies take scripted seconds per batch."""

    def __init__(self, folder, workers, taken, choice, dies_of="", runs_instead=None):
        self.taken = taken
        self.seconds = 0.0
        self.submitted = []
        self.parts = Counter()
        self.notices = []
        self.dies_of = dies_of
        self.runs_instead = runs_instead or {}
        self.client = client = SimpleNamespace(status="running", cancel=self.cancel, sync=self.sync)
        client.scheduler = SimpleNamespace(ncores=dict, ncores_running=dict, processing=list)
        self.n_workers = workers
        self.recalled = []
        super().__init__(DaskExecutor(client, self.submit), self, folder, choice=choice)

    def sync(self, question, **_):
        return (
            {}
            if question is self.client.scheduler.processing
            else dict.fromkeys(range(self.n_workers), 1)
        )

    def submit(self, task):
        self.submitted.append((task.strategy, task.parts))
        return Future(task)

    def cancel(self, futures, force):  # noqa: ARG002
        self.recalled += [future.task for future in futures]

    def _wait(self):
        """The first task of each worker comes to its end."""
        ended = list(self._in_flight)[: self.n_workers]
        for future in ended:
            future.is_over = True
            name = self.runs_instead.get(future.task.strategy, future.task.strategy)
            if name == self.dies_of:
                heartbeat = Heartbeat(future.task.heartbeat)
                heartbeat.__enter__()
                heartbeat.record(future.task.parts[0])
                future.status = "cancelled"
                continue
            seconds = self.taken[name]
            self.seconds += seconds * len(future.task.parts)
            future.status = "finished"
            future.outcomes = [
                {
                    "part": part,
                    "summary": {"seconds": seconds},
                    "failed": [],
                    "measured": [name, BATCH, seconds],
                }
                for part in future.task.parts
            ]
        return ended

    def done(self, part, summary, without):  # noqa: ARG002
        self.parts[part] += 1

    def retried(self, part, why):
        pass

    def notice(self, message):
        self.notices.append(message)


def choice_of(estimated, n_batches, group=BATCH):
    candidates = [Candidate(name, group, 1000, seconds) for name, seconds in estimated.items()]
    candidates.sort(key=lambda each: each.seconds)
    return StrategyChoice(candidates, BATCH, n_batches * BATCH)


@pytest.mark.parametrize(
    ("workers", "wrong", "slower"),
    tiers.pairs([1, 2, 5], [(0.2, 1), (1, 0.2), (5, 1), (1, 5), (0.2, 5), (1, 1)], [1.2, 4, 24]),
    ids=str,
)
def test_estimates_that_are_five_times_off_cost_a_run_less_than_a_third(
    tmp_path, workers, wrong, slower
):
    n_batches = 400 * workers
    for taken in ({"a": 0.1 * slower, "b": 0.1}, {"a": 0.1, "b": 0.1 * slower}):
        estimated = {
            name: each * off for (name, each), off in zip(taken.items(), wrong, strict=True)
        }
        choice = choice_of(estimated, n_batches)
        window = ScriptedWindow(tmp_path, workers, taken, choice)
        window.run(list(range(n_batches)))
        assert window.parts == Counter(range(n_batches)), "each part once"
        assert window.seconds <= 1.3 * 0.1 * n_batches
        assert len(choice.record["switches"]) <= 1
        checked(choice.record, Schema)


def test_trial_of_one_task_changes_the_strategy_of_later_tasks(tmp_path):
    choice = choice_of({"slow": 0.1, "fast": 0.2}, 200)
    window = ScriptedWindow(tmp_path, 3, {"slow": 1.0, "fast": 0.1}, choice)
    window.run(list(range(200)))
    names = [name for name, _ in window.submitted]
    given_out = [
        name
        for name, parts in window.submitted
        if parts not in {task.parts for task in window.recalled}
    ]
    assert set(names) == {"slow", "fast"}
    trial = names.index("fast")
    following = list(itertools.dropwhile(lambda name: name == "slow", names[trial + 1 :]))
    trials = [name for name in names[trial:] if name == "fast"]
    assert trials
    # Until the trial ends the other tasks use the slow strategy; afterwards no task does.
    assert "fast" in given_out
    last_slow = max(i for i, name in enumerate(names) if name == "slow")
    assert last_slow - trial <= WINDOW * 3
    assert all(name == "fast" for name in names[last_slow + 1 :])
    assert following
    assert choice.record["switches"] == [
        {"strategy": "fast", "measured_sources": choice.record["switches"][0]["measured_sources"]}
    ]
    assert current_strategy(choice.record) == choice.strategy == "fast"
    assert any("one task tries strategy fast" in each for each in window.notices)
    assert any("strategy fast goes on" in each for each in window.notices)
    text = describe_choice(choice.record)
    assert text.startswith(
        "slow was chosen by estimates for all sources: 20 s, fast 40 s; measured: slow "
    )
    assert text.endswith("measured sources")
    assert "\n" not in text


def test_a_run_without_need_tries_nothing(tmp_path):
    choice = choice_of({"a": 0.1, "b": 3.0}, 100)
    window = ScriptedWindow(tmp_path, 2, {"a": 0.1, "b": 3.0}, choice)
    window.run(list(range(100)))
    assert {name for name, _ in window.submitted} == {"a"}
    assert not window.recalled
    assert window.notices == []
    assert choice.record["switches"] == []


def test_a_trial_that_is_slower_is_the_only_one(tmp_path):
    choice = choice_of({"a": 0.1, "b": 0.2}, 100)
    window = ScriptedWindow(tmp_path, 2, {"a": 1.0, "b": 5.0}, choice)
    window.run(list(range(100)))
    assert sum(len(parts) for name, parts in window.submitted if name == "b") == 2, (
        "two groups, as the first warms up"
    )
    assert choice.strategy == "a"
    assert choice.record["switches"] == []


def test_strategy_that_kills_workers_is_not_tried_again_and_its_batches_are_computed(tmp_path):
    choice = choice_of({"a": 0.1, "b": 0.2}, 100)
    window = ScriptedWindow(tmp_path, 2, {"a": 1.0, "b": 0.1}, choice, dies_of="b")
    window.run(list(range(100)))
    assert window.parts == Counter(range(100))
    assert sum(name == "b" for name, _ in window.submitted) == 1
    assert any("not tried again: its worker was lost" in each for each in window.notices)


def test_a_worker_that_cannot_run_a_strategy_and_plans_for_itself_ends_the_trial(tmp_path):
    choice = choice_of({"a": 0.1, "b": 0.2}, 100)
    window = ScriptedWindow(tmp_path, 2, {"a": 1.0, "b": 0.1}, choice, runs_instead={"b": "a"})
    window.run(list(range(100)))
    assert window.parts == Counter(range(100))
    assert sum(name == "b" for name, _ in window.submitted) == 1
    assert choice.strategy == "a"


def test_a_run_that_goes_on_knows_what_was_measured_before_it(tmp_path):
    before = choice_of({"slow": 0.1, "fast": 0.2}, 100)
    ScriptedWindow(tmp_path, 1, {"slow": 1.0, "fast": 0.1}, before).run(list(range(100)))
    resumed = choice_of({"slow": 0.11, "fast": 0.19}, 100)
    resumed.resume(json.loads(json.dumps(before.record)))
    assert resumed.strategy == "fast"
    window = ScriptedWindow(tmp_path, 1, {"slow": 1.0, "fast": 0.1}, resumed)
    window.run(list(range(50)))
    assert {name for name, _ in window.submitted} == {"fast"}
    assert resumed.record["first"] == "slow"
    assert len(resumed.record["switches"]) == 1
    elsewhere = choice_of({"slow": 0.01, "fast": 0.2}, 100)  # another machine
    elsewhere.resume(before.record)
    assert elsewhere.strategy == "slow"
    assert elsewhere.record["measured"] == []
    forged = choice_of({"slow": 0.1, "fast": 0.2}, 100)
    forged.resume(before.record | {"switches": [{"strategy": "other", "measured_sources": 1}]})
    assert forged.strategy == "slow"
    assert forged.record["switches"] == []


def test_candidate_without_memory_is_refused_and_the_plan_has_the_largest_accepted():
    load = Load(
        n_vertices=1000, n_sources=1000, graph_bytes=1 << 20, reverse_bytes=0, state_bytes=10 << 20, row_bytes=12,
        rows_per_source=1000, most_rows=1000, certified=True,
    )  # fmt: skip
    alone = size_up(load, Machine(device="cpu", cores=2, n_gpus=0, available=4 << 30), 2)
    machine = Machine(
        device="cpu", cores=2, n_gpus=0, available=alone.memory["total"] + (100 << 20)
    )
    states = {"chosen": 10 << 20, "small": 1 << 20, "larger": 40 << 20, "too large": 80 << 20}
    sizing, names = with_capacity(load, states, lambda each: size_up(each, machine, 2), "chosen")
    assert names == ["chosen", "small", "larger"]
    assert sizing.memory["total"] == alone.memory["total"] + 2 * (30 << 20)
    assert (sizing.workers, sizing.batch_size) == (alone.workers, alone.batch_size)
    sizing, names = with_capacity(load, {}, lambda each: size_up(each, machine, 2), "chosen")
    assert names == ["chosen"]
    with pytest.raises(CapacityError):
        with_capacity(
            load,
            states,
            lambda each: size_up(each, Machine(device="cpu", cores=2, n_gpus=0, available=1), 2),
            "chosen",
        )


def test_a_plan_that_is_given_a_shape_searches_for_none(monkeypatch):
    rng = np.random.default_rng(1)
    graph = graph_from_edges(*rng.integers(0, 300, (2, 900)))
    plan = plan_bfs_many(graph, n_sources=64)
    ranked = plan.ranked(64)
    assert ranked[0].name == plan.strategy.name
    assert [each.seconds for each in ranked] == sorted(each.seconds for each in ranked)
    monkeypatch.setattr(workload, "survey", None)
    for each in ranked:
        again = plan_bfs_many(graph, n_sources=64, strategy=each.name, shape=plan.shape)
        assert (again.strategy.name, again.group, again.nbytes) == each[:3]
        assert np.array_equal(again.run([5, 7]).distance, plan.run([5, 7]).distance)
    with pytest.raises(InputError, match="shape must be"):
        plan_bfs_many(graph_from_edges([1], [2]), n_sources=64, shape=plan.shape)


# In the job. Workers are threads of this process, so that what the test changes holds for them, too.

SOURCES = 240
SLOWED = 0.03
SLOW = "source_per_thread"
FAST = "bit_parallel"


@pytest.fixture
def edges(tmp_path):
    return write_edges(
        tmp_path / "edges.parquet", *np.random.default_rng(3).integers(0, 400, (2, 1600))
    )


@pytest.fixture(scope="module")
def scheduler_of():
    """Return ``scheduler_of(workers)``: the address of a scheduler with as many, which all jobs of this module use."""
    with contextlib.ExitStack() as stack:

        @functools.cache
        def address(workers):
            cluster = stack.enter_context(threads_of_this_process(n_workers=workers))
            return cluster.scheduler_address

        yield address


@pytest.fixture
def job(edges, scheduler_of, tmp_path, capsys, monkeypatch):
    """Runs the job with estimates of the test's own and notes which plans have run: ``job(name, estimated, workers)``."""
    numbers = itertools.count()

    def run(estimated, workers, *flags, folder=None, slowed=SLOW):
        ran, alive = defaultdict(list), []  # so that no plan gets the place of an earlier one
        folder = folder or tmp_path / f"out-{next(numbers)}"
        traverse = sound

        def slow(plan, numbers, **given):
            alive.append(plan)
            ran[id(plan)].append(plan.strategy.name)
            if plan.strategy.name == slowed:
                time.sleep(SLOWED * len(numbers))
            return traverse(plan, numbers, **given)

        monkeypatch.setattr(MultiSourcePlan, "run", slow)
        monkeypatch.setattr(
            Candidates,
            "estimate",
            lambda _candidates, name, n_sources: n_sources * estimated.get(name, float("inf")),
        )
        words = [
            edges,
            "--output",
            folder,
            "--random-sources",
            SOURCES,
            "--batch-size",
            BATCH,
            "--device",
            "cpu",
            *flags,
        ]
        where = ["--scheduler-address", scheduler_of(workers)] if workers else []
        assert main([str(word) for word in [*words, *where, "--json"]]) == 0
        captured = capsys.readouterr()
        return SimpleNamespace(
            summary=json.loads(captured.out),
            err=captured.err,
            manifest=manifest_of(folder),
            plans=list(ran.values()),
            folder=folder,
        )

    sound = MultiSourcePlan.run
    return run


WRONG = {SLOW: 1e-3, FAST: 4e-3}


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_the_job_switches_once_for_all_workers_and_writes_the_same(job, workers):
    right = job({}, workers, "--strategy", FAST)
    assert right.manifest["choice"] is None
    assert right.summary["why"] == ""
    found = job(WRONG, workers)
    assert found.summary["digest"] == right.summary["digest"]
    parts = [sorted(path.name for path in run.folder.glob("part-*")) for run in (found, right)]
    assert parts[0] == parts[1]
    assert [(found.folder / name).read_bytes() for name in parts[0]] == [
        (right.folder / name).read_bytes() for name in parts[1]
    ]
    choice = found.manifest["choice"]
    assert choice["first"] == SLOW
    assert [each["strategy"] for each in choice["candidates"]] == [SLOW, FAST]
    assert [each["strategy"] for each in choice["switches"]] == [FAST]
    assert {each["strategy"] for each in choice["measured"]} == {SLOW, FAST}
    assert found.manifest["strategy"] == found.summary["strategy"] == FAST
    assert found.summary["why"] == describe_choice(choice)
    assert f"{FAST} went on after" in found.summary["why"]
    assert found.err.count("one task tries strategy") == 1
    assert found.err.count("goes on: it takes") == 1
    # With the one, then with the other; if a task of the first was queued after the trial, again with each.
    assert len(found.plans) <= 4 * workers
    assert all(len(set(names)) == 1 for names in found.plans)
    assert describe_choice(choice).replace("(", "").split(";")[0] in (
        found.folder / "_report.html"
    ).read_text().replace("(", "")


def test_a_job_without_need_plans_once_per_worker_and_searches_once(job, monkeypatch):
    surveys = []
    survey = workload.survey
    monkeypatch.setattr(
        workload, "survey", lambda *given, **named: surveys.append(1) or survey(*given, **named)
    )
    found = job({SLOW: 10.0, FAST: 1e-3}, 2)
    assert len(surveys) == 1, "the workers go by what the driver has seen"
    assert {name for names in found.plans for name in names} == {FAST}
    assert len(found.plans) <= 2
    assert found.manifest["choice"]["switches"] == []
    assert "tries strategy" not in found.err


def test_a_job_that_is_resumed_after_a_switch_begins_with_the_better_strategy(job):
    before = job(WRONG, 1)
    assert before.manifest["strategy"] == FAST
    for path in sorted(before.folder.glob("part-*"))[:8]:
        path.unlink()
    again = job(WRONG, 1, "--resume", folder=before.folder)
    assert again.summary["computed"] == 8
    assert again.summary["digest"] == before.summary["digest"]
    assert {name for names in again.plans for name in names} == {FAST}
    assert again.manifest["choice"]["first"] == SLOW
    assert len(again.manifest["choice"]["switches"]) == 1


@pytest.mark.exhaustive
def test_worker_without_memory_for_the_chosen_strategy_chooses_for_itself(job, monkeypatch):
    fit = planning.fit

    def refused(work, strategies, usable, shapes, capacity):
        if capacity.most is not None and [each.name for each in usable.strategies] == [FAST]:
            raise MemoryError("none left")
        return fit(work, strategies, usable, shapes, capacity)

    right = job({}, 1, "--strategy", SLOW, slowed="")
    monkeypatch.setattr(planning, "fit", refused)
    found = job(WRONG, 1)
    assert found.summary["digest"] == right.summary["digest"]
    assert found.manifest["strategy"] == SLOW
    assert found.manifest["choice"]["switches"] == []
    assert f"strategy {FAST} is not tried again" in found.err


def test_the_plan_of_a_job_names_the_candidates(edges, capsys):
    words = [edges, "--random-sources", SOURCES, "--device", "cpu", "--workers", 1, "--plan"]
    assert main([str(word) for word in [*words, "--json"]]) == 0
    plan = json.loads(capsys.readouterr().out)
    checked(plan["choice"], Schema)
    assert plan["choice"]["first"] == plan["strategy"]
    assert main([str(word) for word in words]) == 0
    assert f"{plan['strategy']} was chosen by estimates" in capsys.readouterr().out
