"""What people and programs see of a run: chronicle, page, metrics, report and terminal say what the manifest says.

The tests with a browser need chromium on the path and are skipped without it.
"""

import html.parser
import json
import random
import re
import subprocess
import sys
import time
import types
import urllib.request

import chromium
import dask
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

from pipelines import chronicle, dashboard, dashboard_document, html_report, metrics, page, report
from pipelines.batch_sources import main
from pipelines.chronicle import Chronicle
from pipelines.cluster import pinned

N_SOURCES, BATCH_SIZE = 22, 4
HOSTILE = '</script><script>document.title = "taken"</script><b>&amp;'
in_a_browser = pytest.mark.skipif(chromium.CHROMIUM is None, reason="no chromium on the path")


def batch(part, worker="127.0.0.1:1", started=100.0, seconds=2.0, sources=4, **others):
    phases = {"load": 0.0, "traverse": 0.5 * seconds, "certify": 0.3 * seconds, "write": 0.2 * seconds}
    same = {"rows": 10 * sources, "bytes": 100, "edges": 50 * sources, "slowest": [part, seconds / 4], "phases": phases}
    span = {"started": started, "ended": started + seconds}
    return {"part": part, "worker": worker, "sources": sources, **same, **span} | others


def made_up(n_parts, n_workers=3, hours=1.0, **others):
    """A manifest of a run that nobody ran."""
    rng = random.Random(n_parts)
    parts = []
    for i in range(n_parts):
        started = 1e9 + 3600 * hours * i / max(n_parts, n_workers)
        entry = batch(i, f"tcp://10.0.0.{i % n_workers}:4000", started, rng.uniform(0.5, 9.0))
        entry |= {"file": f"part-{i:06d}.parquet", "sources": list(range(4 * i, 4 * i + 4)), "sha256": "0" * 64}
        entry |= {"seconds": entry["ended"] - entry["started"], "rounds": 9, "checksum": "0" * 16}
        parts.append(entry | {"distances": {"width": 1.0, "first": 0, "counts": [4, 12, 20, 4]}})
    graph = {"fingerprint": "ab" * 32, "vertices": 10, "stored_edges": 50, "directed": False, "built": {"rows": 25}}
    manifest = {
        **{"status": "done", "algorithm": "bfs", "strategy": "queue", "device": "cpu", "workers": n_workers},
        **{"sources": 4 * n_parts, "duplicate_sources": 0, "batches": n_parts, "digest": "1-2", "fingerprint": "cd" * 32},
        **{"parts": parts, "failed": [], "retried": [], "graph": graph, "seconds": {"read": 1.5, "traverse": 3600.0}},
        **{"versions": {"python": "3"}, "settings": {"edges": ["e.csv"], "output": "out", "certify": "all"}, "memory": {}},
    }
    return manifest | others


class Text(html.parser.HTMLParser):
    """The text of a page outside of scripts, tag by tag, and every attribute."""

    def __init__(self, source):
        super().__init__()
        self.words, self.attributes, self._skipping = [], [], False
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        self._skipping = tag in ("script", "style")
        self.attributes += [(tag, *attribute) for attribute in attributes]

    def handle_endtag(self, _tag):
        self._skipping = False

    def handle_data(self, data):
        if not self._skipping and data.strip():
            self.words.append(data.strip())

    def after(self, word):
        return self.words[self.words.index(word) + 1]


# The chronicle


@pytest.mark.parametrize("n_batches", [1, 40, 4000])
def test_a_chronicle_loses_nothing_when_bins_of_time_become_wider(n_batches):
    rng = random.Random(n_batches)
    kept = Chronicle(started=50.0, total=4 * n_batches)
    for i in range(n_batches):
        kept.add(batch(i, f"w{i % 5}", started=rng.uniform(50, 50 + n_batches), seconds=rng.uniform(0.001, 30)), now=50.0)
    assert kept.done == kept.total
    assert kept.left == 0
    for what, expected in (("sources", 4 * n_batches), ("edges", 200 * n_batches)):
        begins, rates = kept.series(what)
        assert begins.size <= chronicle.MOST_BINS
        assert sum(rate.sum() for rate in rates.values()) * kept.width == pytest.approx(expected)
    assert sum(kept.whole.phases.values()) == pytest.approx(sum(sum(s.phases.values()) for s in kept.shares(3).values()))


def test_a_chronicle_of_many_batches_and_ever_new_workers_stays_small():
    kept = Chronicle(started=0.0, total=10**9)
    for i in range(3000):
        kept.add(batch(i, f"10.0.0.1:{i}", started=i), now=float(i))
        kept.add_failure(i, [i] * 500, 500, "it failed")
        kept.add_retry(i, "its worker died")
    assert len(kept.workers) == chronicle.MOST_WORKERS + 1
    assert kept.whole.sources == sum(share.sources for share in kept.workers.values()) == 12000
    assert (kept.failures, kept.failed_sources, kept.retries) == (3000, 1_500_000, 3000)
    for few in (kept.failed, kept.retried, kept.slowest(), kept.slowest_sources(), kept.failed[-1]["sources"]):
        assert len(few) == chronicle.MOST_LISTED
    shares = kept.shares(chronicle.MOST_LISTED)
    assert len(shares) == chronicle.MOST_LISTED
    assert list(shares)[-1] == chronicle.OTHERS
    assert sum(share.sources for share in shares.values()) == 12000


def test_a_chronicle_names_the_batches_that_took_longest():
    took = random.Random(3).sample(range(1, 500), 100)
    kept = Chronicle(0.0, 400)
    for i, seconds in enumerate(took):
        kept.add(batch(i, seconds=float(seconds)), now=1000.0)
    expected = sorted(range(100), key=lambda i: -took[i])[: chronicle.MOST_LISTED]
    assert [entry["part"] for entry in kept.slowest()] == expected
    assert [part for _, _, part in kept.slowest_sources()] == expected


def test_the_present_rate_is_that_of_the_last_minute_and_tells_the_time_left():
    kept = Chronicle(started=0.0, total=1000)
    assert kept.seconds_left(now=10.0) is None
    for second in range(1, 200):
        kept.add(batch(second, sources=1 if second < 100 else 3), now=float(second))
    assert kept.rates(now=199.0)[0] == pytest.approx(3, rel=0.03)
    assert kept.seconds_left(now=199.0) == pytest.approx(kept.left / 3, rel=0.03)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (61, "61"),
        (999, "999"),
        (54321.9, "54,322"),
        (1.5e6, "1.5 million"),
        (2e13, "20,000 billion"),
    ],
)
def test_rates_are_shown_in_words(value, shown):
    assert page.count(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "not known"), (0.25, "0.25 s"), (99.4, "99.4 s"), (125, "2 min 05 s"), (7260, "2 h 01 min")]
)
def test_times_are_shown_in_words(value, shown):
    assert page.seconds(value) == shown


# The report


def addresses(source):
    return [
        a
        for a in Text(source).attributes
        if a[1] in ("src", "href", "action", "data") and not (a[2] or "").startswith("data:")
    ]


def test_the_report_needs_nothing_beside_it():
    source = html_report.page_of(made_up(5), "command")
    assert addresses(source) == []
    assert "default-src 'none'" in {name: value for tag, name, value in Text(source).attributes if tag == "meta"}["content"]


def test_the_report_of_thousands_of_batches_is_below_three_megabytes_and_of_one_batch_complete():
    assert len(html_report.page_of(made_up(8000, n_workers=100), "command")) < 3e6
    words = Text(html_report.page_of(made_up(1), "command"))
    assert words.after("sources done") == "4 of 4"


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_ids_errors_and_paths_cannot_break_out_of_their_place_in_the_report(algorithm):
    failed = [{"file": "part-000002.parquet", "sources": [HOSTILE], "error": f"CertificateError: {HOSTILE}"}]
    retried = [{"file": "part-000001.parquet", "why": HOSTILE}]
    manifest = made_up(4, status="failed", failed=failed, retried=retried, algorithm=algorithm, ended_by=HOSTILE)
    manifest["parts"][0] |= {"slowest": [HOSTILE, 1.0], "worker": f"tcp://{HOSTILE}"}
    manifest["settings"]["output"] = HOSTILE
    source = html_report.page_of(manifest, f"command {HOSTILE}")
    assert HOSTILE not in source
    assert source.count("</script>") == html_report.page_of(made_up(4), "command").count("</script>")
    assert HOSTILE in "".join(Text(source).words)


def test_the_report_says_what_failed_and_how_to_finish():
    manifest = made_up(6, status="failed", digest=None)
    lost = manifest["parts"].pop()["sources"]
    manifest["failed"] = [
        {"file": "part-000005.parquet", "sources": lost[:1], "error": "CertificateError: source 20: wrong"},
        {"file": "part-000005.parquet", "sources": lost[1:3], "error": "MemoryError: no memory"},
    ]
    manifest["retried"] = [{"file": "part-000005.parquet", "why": "its worker died"}]
    words = Text(html_report.page_of(manifest, "python -m pipelines.batch_sources e.csv --output out"))
    assert words.after("failed sources") == "3"
    assert words.after("retries") == "1"
    assert "python -m pipelines.batch_sources e.csv --output out --resume" in words.words
    assert any(word.startswith("3 sources failed and 1 sources were not reached") for word in words.words)
    assert "1 more were rejected and not written" in words.after("certificates")
    assert {"CertificateError: source 20: wrong", "MemoryError: no memory", "21, 22"} <= set(words.words)
    assert words.after("digest") == "none: the run is not complete"


@pytest.mark.parametrize("how", ["all", "sample", "none"])
def test_the_report_says_how_many_results_were_proven(how):
    manifest = made_up(6)
    manifest["settings"]["certify"] = how
    said = Text(html_report.page_of(manifest, "command")).after("certificates")
    assert {"all": "all 24 results", "sample": "6 of 24 results", "none": "no result was proven"}[how] in said


def test_parts_of_unknown_time_and_a_run_without_any_part_are_reported_as_such():
    manifest = made_up(6)
    for part in manifest["parts"][:2]:
        for key in ("worker", "started", "ended", "phases", "edges", "distances", "slowest"):
            del part[key]
    text = " ".join(Text(html_report.page_of(manifest, "command")).words)
    assert "For 8 sources no time is known" in text
    assert "24 of 24" in text
    empty = Text(html_report.page_of(made_up(0, status="interrupted", sources=9), "command"))
    assert empty.after("sources done") == "0 of 9"
    assert any("9 sources were not reached" in word for word in empty.words)


def test_the_time_between_a_run_and_its_resumption_is_cut_out():
    early = [batch(i, started=1000.0 + 2 * i) for i in range(5)]
    late = [batch(i, started=90_000.0 + 2 * i) for i in range(5, 9)]
    closed, pauses = html_report.closed_up(early + late)
    assert pauses == [90_010.0 - 1010.0]
    assert [entry["started"] for entry in closed] == [1000.0 + 2 * i for i in range(9)]
    assert all(entry["ended"] - entry["started"] == 2.0 for entry in closed)


def test_without_bokeh_the_report_has_its_tables(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "bokeh"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "bokeh", None)
    words = Text(html_report.page_of(made_up(3), "command"))
    assert words.after("sources done") == "12 of 12"
    assert "The figures need Bokeh, which was not installed." in words.words


# The terminal


FACTS = {"started": 0.0, "sources": 40, "kept": 8}
SUMMARY = batch(1, "tcp://127.0.0.1:1") | {"sources": [1, 2, 3, 4], "distances": None}


def test_where_the_output_is_no_terminal_progress_is_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(report, "_LINE_EVERY", 0.0)
    with report.Progress(FACTS | {"started": time.time() - 10}) as progress:
        progress.advance(1, SUMMARY)
        progress.retried(2, "its worker died")
        progress.failed(3, [5, 6], "MemoryError: no memory")
        progress.advance(4, SUMMARY)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("12/40 sources, 0.4 sources/s, 20 edges/s, about ")
    assert lines[1] == "batch 3 failed: MemoryError: no memory"
    assert lines[2].endswith("2 sources failed, 1 retries")
    assert all("\x1b" not in line and len(line) < 120 for line in lines)


def test_on_a_terminal_progress_is_a_few_lines_that_stay_in_place(capsys, monkeypatch):
    terminal = report.Console

    def console(**keywords):
        return terminal(**keywords, force_terminal=True, width=90, color_system=None, legacy_windows=False)

    monkeypatch.setattr(report, "Console", console)
    monkeypatch.setenv("TERM", "xterm")
    with report.Progress(FACTS | {"started": time.time() - 10}) as progress:
        progress.advance(1, SUMMARY)
        progress.advance(2, SUMMARY | {"worker": "tcp://127.0.0.1:2"})
        progress.failed(3, [5, 6], "MemoryError: no memory")
    text = capsys.readouterr().err
    for words in ("16/40 sources", "traverse 50 %, certify 30 %, write 20 %", "127.0.0.1:2", "2 sources failed"):
        assert words in text
    assert "batch 3 failed: MemoryError: no memory" in text


# A run on a real scheduler


@pytest.fixture(scope="module")
def cluster():
    with (
        pinned(),
        LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def run(cluster, tmp_path_factory):
    """The output folder of a job on the cluster."""
    folder = tmp_path_factory.mktemp("seeing")
    rng = np.random.default_rng(5)
    pq.write_table(
        pa.table({"src": rng.integers(0, 400, 1500), "dst": rng.integers(0, 400, 1500)}), folder / "edges.parquet"
    )
    argv = [str(folder / "edges.parquet"), "--random-sources", N_SOURCES, "--batch-size", BATCH_SIZE, "--device", "cpu"]
    assert main([*map(str, argv), "--scheduler-address", cluster.scheduler_address, "--output", str(folder / "out")]) == 0
    return folder / "out"


@pytest.fixture(scope="module")
def manifest(run):
    return json.loads((run / "_manifest.json").read_text())


@pytest.fixture
def session(client, run):  # noqa: ARG001
    """The page as Bokeh's own client has it."""
    from bokeh.client import pull_session

    with pull_session(url=address_of(client)) as session:
        yield session


def address_of(client):
    return client.dashboard_link.replace("/status", f"/{dashboard.PATH}")


def fetched(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()


def totals(manifest):
    return {key: sum(part[key] for part in manifest["parts"]) for key in ("rows", "bytes", "edges")}


def test_a_run_leaves_a_report_that_says_what_the_manifest_says(run, manifest):
    words = Text((run / "_report.html").read_text())
    assert words.after("sources done") == f"{N_SOURCES} of {N_SOURCES}"
    assert words.after("rows") == f"{totals(manifest)['rows']:,}"
    assert words.after("batches") == str(len(manifest["parts"]))
    assert words.after("digest") == manifest["digest"]
    assert words.after("graph fingerprint") == manifest["graph"]["fingerprint"]
    assert set(manifest["versions"].values()) <= set(words.words)
    assert f"all {N_SOURCES} results were proven right" in words.after("certificates")
    slowest = max(manifest["parts"], key=lambda part: part["ended"] - part["started"])
    assert words.after("write") == "worker"  # the last head of the table of slowest batches
    assert words.after("worker") == str(int(slowest["file"][5:11]))


def test_a_folder_with_its_report_is_a_data_set(run, manifest):
    assert pq.read_table(run).num_rows == totals(manifest)["rows"]


def test_the_page_is_served_with_the_numbers_of_the_manifest(session, manifest):
    roots = {root.name: root for root in session.document.roots}
    head = Text(roots["head"].text)
    assert head.after("sources done") == str(N_SOURCES)
    assert head.after("left") == "0"
    assert head.after("failed sources") == "0"
    assert "done" in head.words
    workers = Text(roots["workers"].text).words
    for part in manifest["parts"]:
        assert part["worker"].removeprefix("tcp://") in workers
    histogram = roots["histogram"].renderers[0].data_source.data
    assert sum(histogram["count"]) == totals(manifest)["rows"]
    assert list(histogram["within"])[-1] == pytest.approx(1)
    rates = roots["edges"].renderers[0].data_source.data
    done = (np.array(rates["right"]) - np.array(rates["left"])) * np.array(rates["rate"])
    assert done.sum() == pytest.approx(totals(manifest)["edges"])
    phases = roots["phases"].renderers[0].data_source.data
    assert sum(phases["seconds"]) == pytest.approx(sum(sum(part["phases"].values()) for part in manifest["parts"]))


def test_the_page_is_in_the_bar_of_dasks_own_pages(client, run):  # noqa: ARG001
    assert fetched(address_of(client)).count("data-root-id") == 9
    assert 'href="kepler"' in fetched(client.dashboard_link)


PAINTED = "document.documentElement?.dataset.painted !== undefined"
CARDS = "Array.from({}.querySelectorAll('.card')).map(c => [c.children[0].textContent, c.children[1].textContent])"
TITLE = "Array.from(Bokeh.documents[0]._all_models.values()).find(m => m.type == 'Title').text_color"


@in_a_browser
@pytest.mark.parametrize(("scheme", "ink"), [("light", "#24292f"), ("dark", "#d5dae1")])
def test_the_report_opens_in_a_browser_without_a_complaint(run, manifest, tmp_path, scheme, ink):
    url = (run / "_report.html").as_uri()
    ask = f"[document.documentElement.dataset.painted, {TITLE}, {CARDS.format('document')}]"
    seen = chromium.look(url, tmp_path, scheme, PAINTED, ask)
    painted, title, cards = seen.answer
    assert seen.complaints == []
    assert seen.requests == [url]
    assert (painted, title) == (scheme, ink)
    assert dict(cards)["rows"] == f"{totals(manifest)['rows']:,}"
    assert dict(cards)["sources done"] == f"{N_SOURCES} of {N_SOURCES}"


@in_a_browser
@pytest.mark.parametrize(("scheme", "ink"), [("light", "#24292f"), ("dark", "#d5dae1")])
def test_the_page_opens_in_a_browser_without_a_complaint(client, run, tmp_path, scheme, ink):  # noqa: ARG001
    name = client.run_on_scheduler(lambda dask_scheduler: next(iter(dask_scheduler.plugins["kepler"].runs)))
    head = "Array.from(document.querySelectorAll('*')).map(e => e.shadowRoot).find(r => r?.querySelector('.card'))"
    ask = f"[document.documentElement.dataset.painted, {TITLE}, {CARDS.format(head)}]"
    seen = chromium.look(f"{address_of(client)}?run={name}", tmp_path, scheme, PAINTED, ask)
    painted, title, cards = seen.answer
    assert seen.complaints == []
    assert all(url.startswith(address_of(client).rpartition("/")[0]) for url in seen.requests)
    assert (painted, title) == (scheme, ink)
    assert dict(cards)["sources done"] == str(N_SOURCES)
    assert dict(cards)["left"] == "0"


def samples(text):
    """The lines of Prometheus's text format as a dict."""
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def test_every_worker_counts_for_prometheus(client, manifest):
    seen = {}
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        seen[address] = samples(fetched(f"http://127.0.0.1:{worker['services']['dashboard']}/metrics"))
    for address, found in seen.items():
        parts = [part for part in manifest["parts"] if part["worker"] == address]
        expected = {
            "sources": sum(len(part["sources"]) for part in parts),
            "edges": sum(part["edges"] for part in parts),
            "bytes": sum(part["bytes"] for part in parts),
        }
        for name, value in expected.items() if parts else ():
            assert found[f'kepler_{name}_total{{algorithm="bfs"}}'] == value
        for phase in chronicle.PHASES if parts else ():
            took = found[f'kepler_phase_seconds_total{{algorithm="bfs",phase="{phase}"}}']
            assert took == pytest.approx(sum(part["phases"][phase] for part in parts))
        assert found.get('kepler_batches_in_progress{algorithm="bfs"}', 0) == 0
    assert any(part["worker"] in seen for part in manifest["parts"])


def test_sources_given_up_and_batches_that_raise_are_counted_by_error():
    import prometheus_client

    def count(error):
        return (
            prometheus_client.REGISTRY.get_sample_value("kepler_failures_total", {"algorithm": "sssp", "error": error}) or 0
        )

    before = count("MemoryError"), count("ZeroDivisionError")
    with metrics.watched("sssp") as note:
        note(None, 0, [(5, "MemoryError: source 5: no memory"), (6, "MemoryError: source 6: no memory")])
    with pytest.raises(ZeroDivisionError), metrics.watched("sssp"):
        1 / 0  # noqa: B018
    assert (count("MemoryError"), count("ZeroDivisionError")) == (before[0] + 2, before[1] + 1)
    assert prometheus_client.REGISTRY.get_sample_value("kepler_batches_in_progress", {"algorithm": "sssp"}) == 0
    assert prometheus_client.REGISTRY.get_sample_value("kepler_sources_total", {"algorithm": "sssp"}) is None


def test_fine_performance_metrics_have_seconds_by_phase(client, manifest):
    def metrics(dask_scheduler):
        return {key[-3:]: value for key, value in dask_scheduler.cumulative_worker_metrics.items() if key[0] == "execute"}

    until = time.monotonic() + 20
    while ("bfs", "traverse", "sources") not in (found := client.run_on_scheduler(metrics)) or (
        found["bfs", "traverse", "sources"] < N_SOURCES
    ):
        assert time.monotonic() < until, found
        time.sleep(0.1)  # they come with the workers' heartbeats
    for phase in chronicle.PHASES:
        expected = sum(part["phases"][phase] for part in manifest["parts"])
        assert found["bfs", phase, "seconds"] == pytest.approx(expected)
    assert found["bfs", "write", "bytes"] == totals(manifest)["bytes"]


def test_the_groups_of_the_dashboard_are_named_after_the_algorithm(client, run):  # noqa: ARG001
    assert "bfs" in client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))


def news(client, **others):
    facts = {
        "algorithm": "sssp",
        "strategy": "near_far",
        "device": "cuda",
        "output": "out",
        "vertices": 5,
        "stored_edges": 9,
    }
    return dashboard.News(client, facts | {"started": time.time() - 60, "sources": 100, "kept": 10} | others, print)


def runs_on(client):
    return client.run_on_scheduler(
        lambda dask_scheduler: [
            (run.state, run.chronicle.done, run.chronicle.failed_sources, run.facts["client"])
            for run in dask_scheduler.plugins["kepler"].runs.values()
        ]
    )


def test_the_page_shows_failures_retries_and_slowest_batches_of_the_run_that_is_asked_for(cluster, run):  # noqa: ARG001
    from bokeh.client import pull_session

    with Client(cluster, set_as_default=False) as client:
        told = news(client)
        told.add("batches", batch(7, "10.0.0.9:4000", time.time() - 9, slowest=[HOSTILE, 0.5]))
        told.add("failed", {"part": 3, "sources": [HOSTILE, 5], "n": 40, "error": HOSTILE})
        told.add("retried", {"part": 4, "why": "its worker died"}, {"width": 0.5, "first": 2, "counts": [3, 1]})
        told.end("failed")
        assert runs_on(client)[-1] == ("failed", 14, 40, client.id)
        with pull_session(url=address_of(client)) as session:
            roots = {root.name: root for root in session.document.roots}
            assert "ended with failures" in Text(roots["head"].text).words
            assert Text(roots["head"].text).after("left") == "46"
            trouble = Text(roots["trouble"].text).words
            assert {f"{HOSTILE}, 5 and 38 more", HOSTILE, "its worker died"} <= set(trouble)
            assert all(HOSTILE not in root.text for root in roots.values() if isinstance(root.text, str))
            assert "10.0.0.9:4000" in Text(roots["slowest"].text).words
            assert list(roots["reach"].renderers[0].data_source.data["last"]) == [1.5, 2.0]
            other = re.search(r'href="\?run=(\w+)"', roots["head"].text)[1]
        with pull_session(url=address_of(client), arguments={"run": other}) as session:
            head = next(root for root in session.document.roots if root.name == "head")
            assert "bfs from 22 sources" in Text(head.text).words


def test_a_job_that_leaves_without_a_word_is_shown_as_gone_and_few_runs_are_kept(cluster, client, run):  # noqa: ARG001
    with Client(cluster, set_as_default=False) as other:
        for _ in range(dashboard.MOST_RUNS + 2):
            told = news(other)
            told.add("batches", batch(1))
        until = time.monotonic() + 20
        while [entry[:2] for entry in runs_on(client)][-1] != ("running", 14):
            assert time.monotonic() < until
            time.sleep(0.05)
    assert len(runs_on(client)) == dashboard.MOST_RUNS
    until = time.monotonic() + 20
    while runs_on(client)[-1][0] != "gone":
        assert time.monotonic() < until
        time.sleep(0.05)


def test_news_are_sent_together_and_never_waited_for(client, run):  # noqa: ARG001
    told = news(client)
    started = time.monotonic()
    for i in range(2000):
        told.add("batches", batch(i, sources=1))
    assert time.monotonic() - started < 10  # a message each would be slower by far than this
    told.end("done")
    assert runs_on(client)[-1][:2] == ("done", 2010)
    messages = [msg for _, msg in client.get_events(dashboard.TOPIC) if msg["facts"]["sources"] == 100]
    assert sum(len(message["batches"]) for message in messages) >= 2000
    assert len(messages) < 100


@pytest.mark.parametrize(
    ("metrics", "shown"),
    [
        ({"memory": 2**31, "cpu": 98.6}, ("2.00 GiB", "99 % CPU")),
        ({"memory": 5, "gpu": {"memory-used": 3 * 2**30, "utilization": 71}}, ("3.0 of 139 GiB (GPU)", "71 % GPU")),
        ({"memory": 5, "gpu": {"memory-used": 3 * 2**30, "utilization": None}}, ("3.0 of 139 GiB (GPU)", "")),
        ({"memory": 2**30, "cpu": 1, "gpu": {"memory-used": None, "utilization": None}}, ("1.00 GiB", "1 % CPU")),
    ],
)
def test_the_page_shows_how_full_and_busy_a_worker_is_or_its_gpu_where_it_has_one(metrics, shown):
    services, extra = {"dashboard": 8080}, {"gpu": {"memory-total": 139 * 2**30, "name": "H200"}}
    worker = types.SimpleNamespace(metrics=metrics, extra=extra, services=services, host="10.0.0.1")
    *state, link = dashboard_document.state_of(worker, "10.0.0.1:4000")
    assert tuple(state) == shown
    assert link == '<a href="http://10.0.0.1:8080/metrics">metrics</a>'


# Schedulers that cannot have the page

NO_PAGE = """
import sys, asyncio
sys.modules["pipelines"] = None
from distributed import Scheduler
async def serve():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(serve())
"""


def test_a_scheduler_that_cannot_import_the_page_is_left_without_and_this_is_said_once():
    with subprocess.Popen([sys.executable, "-c", NO_PAGE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as scheduler:
        try:
            with Client(scheduler.stdout.readline().decode().strip(), set_as_default=False) as client:
                said = []
                assert dashboard.open_page(client, {}, said.append) is None
                assert len(said) == 1
                assert said[0].startswith("no page at /kepler of the dashboard: ModuleNotFoundError")
        finally:
            scheduler.terminate()


def test_a_scheduler_without_a_dashboard_is_left_without_a_page_too():
    with (
        LocalCluster(n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        said = []
        assert dashboard.open_page(client, {}, said.append) is None
        assert said == ["no page at /kepler of the dashboard: RuntimeError: the scheduler has no dashboard"]


def test_a_scheduler_that_goes_ends_the_news_and_not_the_job():
    said = []
    with dask.config.set({"distributed.comm.timeouts.connect": "1 s"}):
        with LocalCluster(
            n_workers=0, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster:
            client = Client(cluster.scheduler_address, set_as_default=False)
            told = dashboard.open_page(client, FACTS, said.append)
        with client:
            told.add("batches", batch(1))
            until = time.monotonic() + 20
            while len(said) < 2:
                assert time.monotonic() < until
                time.sleep(0.05)
            told.add("batches", batch(2))
            told.end("done")
    assert said[0].startswith("this run: http://127.0.0.1:")
    assert said[0].endswith("/kepler")
    assert said[1].startswith("the page at /kepler gets no more news of this run: ")
    assert len(said) == 2
