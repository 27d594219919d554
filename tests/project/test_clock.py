"""The clock of measurements leaves out what threads wait for a core, and nothing else."""

from __future__ import annotations

from scripts.measure.clock import Times, between, computing, undisturbed

TWO_CORES = {0, 1}


def seconds(monkeypatch, clock, own, ran, waited, device="cpu"):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: TWO_CORES)
    began = Times(5.0, 1.0, 2.0, 3.0)
    ended = Times(5.0 + clock, 1.0 + own, 2.0 + ran, 3.0 + waited)
    return between(began, ended, device)


def test_waiting_for_a_core_does_not_count(monkeypatch):
    assert seconds(monkeypatch, 4.0, 1.0, 1.0, 3.0) == 1.0, "one thread that waits"
    assert seconds(monkeypatch, 4.0, 0.5, 2.0, 6.0) == 1.0, "two threads that share the work"
    assert seconds(monkeypatch, 4.0, 0.0, 0.1, 0.0) == 4.0, "a disk, or a lock"
    assert seconds(monkeypatch, 1.0, 1.0, 2.0, 0.0) == 1.0, "a quiet machine"


def test_the_caller_s_own_work_counts_where_other_threads_wait_beside_it(monkeypatch):
    assert seconds(monkeypatch, 3.0, 2.0, 2.5, 4.0) == 2.0


def test_threads_that_wait_for_each_other_count_by_what_they_compute(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _process: TWO_CORES)
    began, ended = Times(0.0, 0.0, 0.0, 0.0), Times(9.0, 1.0, 2.0, 4.0)
    assert computing(began, ended, "cpu") == 1.0, "4 s more passed while one slept"
    assert computing(began, ended, "cuda") == 9.0


def test_a_gpu_has_the_seconds_of_the_clock(monkeypatch):
    assert seconds(monkeypatch, 4.0, 1.0, 1.0, 3.0, device="cuda") == 4.0


def test_a_call_that_works_takes_about_the_seconds_that_it_runs():
    found, taken, more = undisturbed(lambda: sum(range(300_000)))
    assert found == 44_999_850_000
    assert 0 < taken < 5
    assert more == {}
