"""The statistics of a run in bounded memory, and their output on a terminal or in a log."""

import random
import time

import pytest

from pipelines.monitoring import html_fragments, run_stats
from pipelines.monitoring import progress as monitoring_progress
from pipelines.monitoring.run_stats import RunStats
from tests.support.fake_runs import batch


@pytest.mark.parametrize("n_batches", [1, 40, 4000])
def test_statistics_loses_nothing_when_bins_of_time_become_wider(n_batches):
    rng = random.Random(n_batches)
    kept = RunStats(started=50.0, total=4 * n_batches)
    for i in range(n_batches):
        kept.add(
            batch(
                i,
                f"w{i % 5}",
                started=rng.uniform(50, 50 + n_batches),
                seconds=rng.uniform(0.001, 30),
            ),
            now=50.0,
        )
    assert kept.done == kept.total
    assert kept.left == 0
    for what, expected in (("sources", 4 * n_batches), ("edges", 200 * n_batches)):
        begins, rates = kept.series(what)
        assert begins.size <= run_stats.MAX_BINS
        assert sum(rate.sum() for rate in rates.values()) * kept.width == pytest.approx(expected)
    assert sum(kept.whole.phases.values()) == pytest.approx(
        sum(sum(s.phases.values()) for s in kept.shares(3).values())
    )


def test_statistics_of_many_batches_and_ever_new_workers_stays_small():
    kept = RunStats(started=0.0, total=10**9)
    for i in range(3000):
        kept.add(batch(i, f"10.0.0.1:{i}", started=i), now=float(i))
        failure = {"part": i, "sources": [i] * 500, "n": 500, "error": "it failed"}
        kept.take({"failed": [failure], "retried": [{"part": i, "why": "its worker died"}]})
    assert len(kept.workers) == run_stats.MAX_WORKERS + 1
    assert kept.whole.sources == sum(share.sources for share in kept.workers.values()) == 12000
    assert (kept.failures, kept.failed_sources, kept.retries) == (3000, 1_500_000, 3000)
    for few in (
        kept.failed,
        kept.retried,
        kept.slowest,
        kept.slowest_sources,
        kept.failed[-1]["sources"],
    ):
        assert len(few) == run_stats.MAX_LISTED
    shares = kept.shares(run_stats.MAX_LISTED)
    assert len(shares) == run_stats.MAX_LISTED
    assert list(shares)[-1] == run_stats.OTHERS
    assert sum(share.sources for share in shares.values()) == 12000


def test_statistics_names_the_batches_that_took_longest():
    took = random.Random(3).sample(range(1, 500), 100)
    kept = RunStats(0.0, 400)
    for i, seconds in enumerate(took):
        kept.add(batch(i, seconds=float(seconds)), now=1000.0)
    expected = sorted(range(100), key=lambda i: -took[i])[: run_stats.MAX_LISTED]
    assert [entry["part"] for entry in kept.slowest] == expected
    assert [part for _, _, part in kept.slowest_sources] == expected


def test_the_present_rate_is_that_of_the_last_minute_and_tells_the_time_left():
    kept = RunStats(started=0.0, total=1000)
    assert kept.seconds_left(now=10.0) is None
    for second in range(1, 200):
        kept.add(batch(second, sources=1 if second < 100 else 3), now=float(second))
    assert kept.rates(now=199.0)[0] == pytest.approx(3, rel=0.03)
    assert kept.seconds_left(now=199.0) == pytest.approx(kept.left / 3, rel=0.03)


COUNTS = {
    0: "0",
    0.01234: "0.0123",
    61: "61",
    999: "999",
    54321.9: "54,322",
    1.5e6: "1.5 million",
    2e13: "20,000 billion",
}
TIMES = {None: "not known", 0.25: "0.25 s", 99.4: "99.4 s", 125: "2 min 05 s", 7260: "2 h 01 min"}


def test_rates_and_times_are_shown_in_words():
    assert {value: html_fragments.count(value) for value in COUNTS} == COUNTS
    assert {value: html_fragments.seconds(value) for value in TIMES} == TIMES


FACTS = {"started": 0.0, "sources": 40, "kept": 8}
SUMMARY = batch(1, "tcp://127.0.0.1:1") | {"sources": [1, 2, 3, 4], "distances": None}


def test_progress_without_a_terminal_is_an_occasional_line(capsys, monkeypatch):
    monkeypatch.setattr(monitoring_progress, "_LINE_EVERY", 0.0)
    with monitoring_progress.Progress(FACTS) as progress:  # rates are those of the last minute
        progress.advance(1, SUMMARY)
        progress.retried(2, "its worker died")
        progress.failed(3, [5, 6], "MemoryError: no memory")
        progress.advance(4, SUMMARY)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("12/40 sources, 0.0667 sources/s, 3.33 edges/s, about 7 min ")
    assert lines[1] == "batch 3 failed: MemoryError: no memory"
    assert lines[2].endswith("2 sources failed, 1 retries")
    assert all("\x1b" not in line and len(line) < 120 for line in lines)


def test_progress_on_a_terminal_is_redrawn_in_place(capsys, monkeypatch):
    terminal = monitoring_progress.Console

    def console(**keywords):
        return terminal(
            **keywords, force_terminal=True, width=90, color_system=None, legacy_windows=False
        )

    monkeypatch.setattr(monitoring_progress, "Console", console)
    monkeypatch.setenv("TERM", "xterm")
    with monitoring_progress.Progress(FACTS | {"started": time.time() - 10}) as progress:
        progress.advance(1, SUMMARY)
        progress.advance(2, SUMMARY | {"worker": "tcp://127.0.0.1:2"})
        progress.failed(3, [5, 6], "MemoryError: no memory")
    text = capsys.readouterr().err
    for words in (
        "16/40 sources",
        "traverse 50 %, certify 30 %, rows 0 %, write 20 %",
        "127.0.0.1:2",
        "2 sources failed",
    ):
        assert words in text
    assert "batch 3 failed: MemoryError: no memory" in text
