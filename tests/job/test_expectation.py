"""What a plan says of the time and the files of a run: their form, and the bytes that a run then writes. No times."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from kepler_traverse.hierarchy.estimate import Estimate
from kepler_traverse.multi_source.candidates import Candidate
from pipelines.run import expectation
from pipelines.run.expectation import Expectation, Trial
from tests.support.jobs import manifest_of, summary_of, write_edges


def random_rows(n, m):
    rng = np.random.default_rng(3)
    return np.column_stack([rng.integers(0, n, (m, 2)), rng.integers(1, 1000, m)]).tolist()


def lattice_rows(side):
    rows = []
    for v in range(side * side):
        if (v + 1) % side:
            rows.append([v, v + 1, 1 + v % 7])
        if v + side < side * side:
            rows.append([v, v + side, 1 + v % 5])
    return rows


@pytest.mark.parametrize("result", ["distances", "summary", "flows"])
@pytest.mark.parametrize(
    "rows", [random_rows(2000, 12000), lattice_rows(40)], ids=["random", "lattice"]
)
def test_a_plan_names_the_parts_and_the_bytes_that_the_run_then_writes(
    tmp_path, capsys, rows, result
):
    edges = write_edges(tmp_path / "edges.parquet", *zip(*rows, strict=True))
    asked = [edges, "--json", "--algorithm", "sssp", "--device", "cpu", "--random-sources", 40]
    asked += ["--result", result, "--batch-size", 8, "--workers", 1, "--output", tmp_path / "out"]
    expected = summary_of(capsys, *asked, "--plan")["expected"]
    assert not (tmp_path / "out").exists()
    assert expected["seconds"] == pytest.approx(sum(expected["steps"].values()), rel=0.05)
    summary_of(capsys, *asked)
    parts = manifest_of(tmp_path / "out")["parts"]
    assert expected["part_files"] == len(parts)
    written = sum(part["bytes"] for part in parts)
    assert written / 1.5 < expected["output_bytes"] < 1.5 * written


class Plan:
    """A plan whose searches of a group take as long as one, as those of bits side by side."""

    group = 64
    pays = None
    strategy = SimpleNamespace(name="a")

    def __init__(self, algorithm="bfs", depth=7):
        self.algorithm = algorithm
        self.shape = SimpleNamespace(depth=depth)

    def ranked(self, n_sources):
        return [Candidate("a", self.group, 0, math.ceil(n_sources / self.group))]

    def estimate_hierarchy(self):
        return self.pays


def expect(adds_up=False, device="cpu", plan=None, once=0.0, per_part=0.0, **changes):
    sizing = {"n_batches": 10, "batch_size": 100, "workers": 1, "threads": 2, "in_process": True}
    prepared = SimpleNamespace(
        sizing=SimpleNamespace(**(sizing | changes)),
        n_sources=1000,
        graph=SimpleNamespace(device=device),
        threads=2,
        seconds={"read": 1.0, "build": 2.0, "plan": 0.5},
        request=SimpleNamespace(kind=SimpleNamespace(adds_up=adds_up)),
    )
    trial = Trial(8, 0.5, 0.32, 0.08, row_bytes=800, part_bytes=100, once=once, per_part=per_part)
    settings = SimpleNamespace(shard=None, hierarchy="auto", strategy="auto")
    return expectation._scale(settings, prepared, plan or Plan(), trial)


# Groups of 64 serve the 100 sources of a part. On a GPU they may span parts, which are written meanwhile.
@pytest.mark.parametrize(("device", "groups"), [("cpu", 2 * 10), ("cuda", math.ceil(1000 / 64))])
def test_searches_grow_by_the_estimates_and_the_rest_by_the_sources(device, groups):
    found = expect(device=device)
    finish = 0.32 * groups + 0.01 * 1000  # 64 sources are certified together, too
    assert found.steps == pytest.approx(
        {"read": 1, "build": 2, "plan": 0.5, "search": 0.5 * groups, "finish": finish}
    )
    assert found.output_bytes == 100 * 1000 + 100 * 10


# 100 sources in each of ten parts; 64 bytes of a vertex are certified together
@pytest.mark.parametrize(
    ("algorithm", "depth", "passes"), [("bfs", 254, 2), ("bfs", 255, 4), ("sssp", 9, 7)]
)
def test_a_pass_over_the_edges_certifies_as_many_sources_as_fit_side_by_side(
    algorithm, depth, passes
):
    found = expect(plan=Plan(algorithm, depth))
    assert found.steps["finish"] == pytest.approx(0.32 * 10 * passes + 0.01 * 1000)


def tried(monkeypatch, seconds_of, most=100, adds_up=False):
    """The numbers of sources that are tried, one after another, where a part takes ``seconds_of(number, place)``."""
    numbers = []

    def try_part(_prepared, _answers, n_sources):
        numbers.append(n_sources)
        seconds = seconds_of(n_sources, len(numbers))
        third = seconds / 3
        return Trial(n_sources, third, third, third, row_bytes=1, part_bytes=1)

    monkeypatch.setattr(expectation, "_try_part", try_part)
    monkeypatch.setattr(expectation, "traverser_for", lambda *_given: None)
    sizing = SimpleNamespace(batch_size=most)
    request = SimpleNamespace(kind=SimpleNamespace(adds_up=adds_up))
    prepared = SimpleNamespace(graph=None, request=request, n_sources=most, sizing=sizing)
    return numbers, expectation._try_sources(prepared, Plan())


def test_more_sources_are_tried_where_the_first_one_did_what_is_done_once(monkeypatch):
    numbers, trial = tried(monkeypatch, lambda n, place: 1.0 if place == 1 else 0.002 + 0.001 * n)
    assert numbers[0] == 1
    assert numbers[-1] == trial.sources == Plan.group
    numbers, trial = tried(monkeypatch, lambda n, _place: 0.3 + 0.1 * n)
    assert len(numbers) == 2, "a trial that takes long enough is the last one"
    numbers, trial = tried(monkeypatch, lambda _n, _place: 60.0)
    assert numbers == [1], "the first source shows how long it takes"


def test_what_the_first_search_does_for_all_is_expected_once(monkeypatch):
    _, trial = tried(monkeypatch, lambda _n, place: 0.9 if place == 1 else 0.3)
    assert trial.once == pytest.approx(0.3 - 0.1)
    assert expect(once=0.2).steps["search"] == pytest.approx(0.2 + 0.5 * 20)


def test_two_sources_at_least_show_what_a_source_adds_to_a_part_of_loads(monkeypatch):
    numbers, trial = tried(monkeypatch, lambda n, _place: 6.0 + 0.3 * n, adds_up=True)
    assert numbers == [1, 2]
    assert trial.per_part == pytest.approx(6.0 / 3)  # a third of the seconds is that of writing
    _, trial = tried(monkeypatch, lambda n, _place: 6.0 + 0.3 * n)
    assert trial.per_part == 0


def test_a_hierarchy_that_the_run_will_build_is_expected(monkeypatch):
    monkeypatch.setattr(Plan, "pays", Estimate(build=20.0, sweep=0.01, search=0.1))
    found = expect()
    assert found.steps["hierarchy"] == 20
    assert found.steps["search"] == pytest.approx(0.5 * 20 / 10)


def test_workers_share_what_is_to_do_and_take_their_time_to_start():
    found = expect(in_process=False, workers=4, threads=1)
    assert found.steps["search"] == pytest.approx(0.5 * 20 / 2)
    assert found.steps["finish"] == pytest.approx((0.32 * 20 + 0.01 * 1000) / 4)
    assert found.steps["start"] > 0


def test_loads_are_written_once_per_part_and_added_per_source():
    found = expect(adds_up=True, per_part=0.06)
    added = 0.02 / 8
    assert found.steps["finish"] == pytest.approx(0.32 * 20 + 0.06 * 10 + added * 1000)
    assert found.output_bytes == (800 + 100) * 10


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "0.5 s"), (42.4, "42 s"), (600, "10 minutes"), (9000, "2.5 hours")]
)
def test_the_line_says_time_and_files(seconds, text):
    found = Expectation(sources_tried=4, steps={"search": seconds}, n_parts=3, output_bytes=2048)
    assert str(found).startswith(f"about {text} (searching {text}); writes 3 part files of 2.0 KiB")
