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

    def __init__(self, algorithm="bfs"):
        self.algorithm = algorithm

    def ranked(self, n_sources):
        return [Candidate("a", self.group, 0, math.ceil(n_sources / self.group))]

    def estimate_hierarchy(self):
        return self.pays


def expect(adds_up=False, device="cpu", algorithm="bfs", **changes):
    sizing = {"n_batches": 10, "batch_size": 100, "workers": 1, "threads": 2, "in_process": True}
    prepared = SimpleNamespace(
        sizing=SimpleNamespace(**(sizing | changes)),
        n_sources=1000,
        graph=SimpleNamespace(device=device),
        threads=2,
        seconds={"read": 1.0, "build": 2.0, "plan": 0.5},
        request=SimpleNamespace(kind=SimpleNamespace(adds_up=adds_up)),
    )
    trial = Trial(sources=8, search=0.5, certify=0.32, write=0.08, row_bytes=800, part_bytes=100)
    settings = SimpleNamespace(shard=None, hierarchy="auto", strategy="auto")
    return expectation._scale(settings, prepared, Plan(algorithm), trial)


# Groups of 64 serve the 100 sources of a part. On a GPU they may span parts, which are written meanwhile.
@pytest.mark.parametrize(("device", "groups"), [("cpu", 2 * 10), ("cuda", math.ceil(1000 / 64))])
def test_searches_grow_by_the_estimates_and_the_rest_by_the_sources(device, groups):
    found = expect(device=device)
    assert found.steps == pytest.approx(
        {"read": 1, "build": 2, "plan": 0.5, "search": 0.5 * groups, "finish": 50}
    )
    assert found.output_bytes == 100 * 1000 + 100 * 10


def test_a_pass_over_the_edges_certifies_weighted_distances_of_sixteen_sources():
    passes = 7 * 10  # of 100 sources in each of ten parts
    assert expect(algorithm="sssp").steps["finish"] == pytest.approx(0.32 * passes + 0.01 * 1000)


def tried(monkeypatch, seconds_of, most=100):
    """The numbers of sources that are tried, one after another, where a part takes ``seconds_of(number, place)``."""
    numbers = []

    def try_part(_prepared, _answers, n_sources):
        numbers.append(n_sources)
        seconds = seconds_of(n_sources, len(numbers))
        third = seconds / 3
        return Trial(n_sources, third, third, third, row_bytes=1, part_bytes=1)

    monkeypatch.setattr(expectation, "_try_part", try_part)
    monkeypatch.setattr(expectation, "answers_for", lambda *_given: None)
    sizing = SimpleNamespace(batch_size=most)
    prepared = SimpleNamespace(graph=None, request=None, n_sources=most, sizing=sizing)
    return numbers, expectation._try_sources(prepared, Plan())


def test_more_sources_are_tried_where_the_first_one_did_what_is_done_once(monkeypatch):
    numbers, trial = tried(monkeypatch, lambda n, place: 1.0 if place == 1 else 0.002 + 0.001 * n)
    assert numbers[0] == 1
    assert numbers[-1] == trial.sources == Plan.group
    numbers, trial = tried(monkeypatch, lambda n, _place: 0.3 + 0.1 * n)
    assert len(numbers) == 2, "a trial that takes long enough is the last one"
    numbers, trial = tried(monkeypatch, lambda _n, _place: 60.0)
    assert numbers == [1], "the first source shows how long it takes"


def test_a_hierarchy_that_the_run_will_build_is_expected(monkeypatch):
    monkeypatch.setattr(Plan, "pays", Estimate(build=20.0, sweep=0.01, search=0.1))
    found = expect()
    assert found.steps["hierarchy"] == 20
    assert found.steps["search"] == pytest.approx(0.5 * 20 / 10)


def test_workers_share_what_is_to_do_and_take_their_time_to_start():
    found = expect(in_process=False, workers=4, threads=1)
    assert found.steps["search"] == pytest.approx(0.5 * 20 / 2)
    assert found.steps["finish"] == pytest.approx(50 / 4)
    assert found.steps["start"] > 0


def test_loads_are_written_once_per_part():
    found = expect(adds_up=True)
    assert found.steps["finish"] == pytest.approx(0.04 * 1000 + 0.08 * 10)
    assert found.output_bytes == (800 + 100) * 10


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "0.5 s"), (42.4, "42 s"), (600, "10 minutes"), (9000, "2.5 hours")]
)
def test_the_line_says_time_and_files(seconds, text):
    found = Expectation(sources_tried=4, steps={"search": seconds}, n_parts=3, output_bytes=2048)
    assert str(found).startswith(f"about {text} (searching {text}); writes 3 part files of 2.0 KiB")
