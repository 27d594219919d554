"""A job on a real scheduler in the dashboard, Prometheus and a browser: the numbers equal those of the manifest.

The tests with a browser need chromium on the path and are skipped without it.
"""

import re
import sys
import time
import types
import urllib.request
from xml.etree import ElementTree

import dask
import pyarrow.parquet as pq
import pytest
from distributed import Client

from pipelines.batch_sources import main
from pipelines.monitoring import dashboard_page, dashboard_plugin, prometheus, run_stats
from tests.support import chromium
from tests.support.clusters import threads_of_this_process, two_workers
from tests.support.fake_runs import HOSTILE, Text, batch
from tests.support.jobs import manifest_of, random_edges
from tests.support.processes import PATIENCE, started, wait_until

N_SOURCES, BATCH_SIZE = 22, 4
in_a_browser = pytest.mark.skipif(chromium.CHROMIUM is None, reason="no chromium on the path")


@pytest.fixture(scope="module")
def cluster():
    with two_workers() as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def run(cluster, tmp_path_factory):
    """The output folder of a job on the cluster."""
    folder = tmp_path_factory.mktemp("seeing")
    edges = random_edges(folder / "edges.parquet", 5, 400, 1500)
    argv = [edges, "--random-sources", N_SOURCES, "--batch-size", BATCH_SIZE, "--device", "cpu"]
    assert (
        main(
            [
                *map(str, argv),
                "--scheduler-address",
                cluster.scheduler_address,
                "--output",
                str(folder / "out"),
            ]
        )
        == 0
    )
    return folder / "out"


@pytest.fixture(scope="module")
def manifest(run):
    return manifest_of(run)


def address_of(client):
    return client.dashboard_link.replace("/status", f"/{dashboard_plugin.PATH}")


def fetched(url):
    with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
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
    assert f"all {N_SOURCES} results were certified" in words.after("certificates")
    slowest = max(manifest["parts"], key=lambda part: part["ended"] - part["started"])
    assert words.after("write") == "worker"  # the last head of the table of slowest batches
    assert words.after("worker") == str(int(slowest["file"][5:11]))


def test_a_folder_with_its_report_is_a_data_set(run, manifest):
    assert pq.read_table(run).num_rows == totals(manifest)["rows"]


def plots_on(source):
    """The texts at the pointer of each plot, by its title."""
    images = [
        ElementTree.fromstring(image) for image in re.findall(r"<svg.*?</svg>", source, re.DOTALL)
    ]
    return {
        image.find(".//text").text: [title.text for title in image.iter("title")]
        for image in images
    }


def test_the_page_is_served_with_the_numbers_of_the_manifest(client, run, manifest):  # noqa: ARG001
    source = fetched(address_of(client))
    page, plots = Text(source), plots_on(source)
    assert page.after("sources done") == str(N_SOURCES)
    assert page.after("left") == "0"
    assert page.after("failed sources") == "0"
    assert "done" in page.words
    for part in manifest["parts"]:
        assert part["worker"].removeprefix("tcp://") in page.words
    pairs = [int(title.split()[-2].replace(",", "")) for title in plots["distances"]]
    assert sum(pairs) == totals(manifest)["rows"]
    assert plots["hop plot"][-1].endswith(": 100.0 %")
    assert set(plots) == {
        "sources per second, by worker", "edges per second, by worker", "hop plot", "distances", "seconds by phase",
    }  # fmt: skip


def test_the_page_is_in_the_bar_of_dasks_own_pages(client, run):  # noqa: ARG001
    assert 'href="kepler"' in fetched(client.dashboard_link)


CARDS = "Array.from(document.querySelectorAll('.card')).map(c => [c.children[0].textContent, c.children[1].textContent])"
LOOK = f"[getComputedStyle(document.querySelector('.plot .title')).fill, {CARDS}]"
COMPLETE = "document.readyState == 'complete'"
INKS = {"light": "rgb(36, 41, 47)", "dark": "rgb(213, 218, 225)"}


def schemes(short):
    """Parametrize both colour schemes; without ``--all`` the given one, as report and page have one style sheet."""
    other = next(scheme for scheme in INKS if scheme != short)
    return pytest.mark.parametrize(
        "scheme", [short, pytest.param(other, marks=pytest.mark.exhaustive)]
    )


@in_a_browser
@schemes("light")
def test_the_report_opens_in_a_browser_without_a_complaint(run, manifest, tmp_path, scheme):
    url = (run / "_report.html").as_uri()
    seen = chromium.look(url, tmp_path, scheme, COMPLETE, LOOK)
    fill, cards = seen.answer
    assert seen.complaints == []
    assert seen.requests == [url]
    assert fill == INKS[scheme]
    assert dict(cards)["rows"] == f"{totals(manifest)['rows']:,}"
    assert dict(cards)["sources done"] == f"{N_SOURCES} of {N_SOURCES}"


@in_a_browser
@schemes("dark")
def test_the_page_opens_in_a_browser_without_a_complaint(client, run, tmp_path, scheme):  # noqa: ARG001
    name = client.run_on_scheduler(
        lambda dask_scheduler: next(iter(dask_scheduler.plugins["kepler"].runs))
    )
    address = f"{address_of(client)}?run={name}"
    # which the page replaces: it says how old it is
    before = "(window.first ??= document.querySelector('main > *'))"
    seen = chromium.look(address, tmp_path, scheme, f"{COMPLETE} && !{before}.isConnected", LOOK)
    fill, cards = seen.answer
    assert seen.complaints == []
    assert set(seen.requests) == {address}
    assert fill == INKS[scheme]
    assert dict(cards)["sources done"] == str(N_SOURCES)
    assert dict(cards)["left"] == "0"


def samples(text):
    """The lines of Prometheus's text format as a dict."""
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in lines}


def test_every_worker_counts_for_prometheus(client, manifest):
    seen = {}
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        seen[address] = samples(
            fetched(f"http://127.0.0.1:{worker['services']['dashboard']}/metrics")
        )
    for address, found in seen.items():
        parts = [part for part in manifest["parts"] if part["worker"] == address]
        expected = {
            "sources": sum(len(part["sources"]) for part in parts),
            "edges": sum(part["edges"] for part in parts),
            "bytes": sum(part["bytes"] for part in parts),
        }
        for name, value in expected.items() if parts else ():
            assert found[f'kepler_{name}_total{{algorithm="bfs"}}'] == value
        for phase in run_stats.PHASES if parts else ():
            took = found[f'kepler_phase_seconds_total{{algorithm="bfs",phase="{phase}"}}']
            assert took == pytest.approx(sum(part["phases"][phase] for part in parts))
        assert found.get('kepler_batches_in_progress{algorithm="bfs"}', 0) == 0
    assert any(part["worker"] in seen for part in manifest["parts"])


def test_sources_given_up_and_batches_that_raise_are_counted_by_error():
    import prometheus_client

    def count(error):
        return (
            prometheus_client.REGISTRY.get_sample_value(
                "kepler_failures_total", {"algorithm": "sssp", "error": error}
            )
            or 0
        )

    def sources():
        return prometheus_client.REGISTRY.get_sample_value(
            "kepler_sources_total", {"algorithm": "sssp"}
        )

    before, sources_before = (count("MemoryError"), count("ZeroDivisionError")), sources()
    with prometheus.watched("sssp") as note:
        note(
            None,
            0,
            [(5, "MemoryError: source 5: no memory"), (6, "MemoryError: source 6: no memory")],
        )
    with pytest.raises(ZeroDivisionError), prometheus.watched("sssp"):
        1 / 0  # noqa: B018
    assert (count("MemoryError"), count("ZeroDivisionError")) == (before[0] + 2, before[1] + 1)
    assert (
        prometheus_client.REGISTRY.get_sample_value(
            "kepler_batches_in_progress", {"algorithm": "sssp"}
        )
        == 0
    )
    assert sources() == sources_before


def test_fine_performance_metrics_have_seconds_by_phase(client, manifest):
    def metrics(dask_scheduler):
        return {
            key[-3:]: value
            for key, value in dask_scheduler.cumulative_worker_metrics.items()
            if key[0] == "execute"
        }

    # They come with the workers' heartbeats.
    wait_until(
        lambda: client.run_on_scheduler(metrics).get(("bfs", "traverse", "sources"), 0) >= N_SOURCES
    )
    found = client.run_on_scheduler(metrics)
    for phase in run_stats.PHASES:
        expected = sum(part["phases"][phase] for part in manifest["parts"])
        assert found["bfs", phase, "seconds"] == pytest.approx(expected)
    assert found["bfs", "write", "bytes"] == totals(manifest)["bytes"]


def test_the_groups_of_the_dashboard_are_named_after_the_algorithm(client, run):  # noqa: ARG001
    assert "bfs" in client.run_on_scheduler(
        lambda dask_scheduler: list(dask_scheduler.task_prefixes)
    )


def news(client, **others):
    facts = {
        "algorithm": "sssp", "result": "distances", "means": "rows", "strategy": "near_far", "device": "cuda",
        "output": "out", "vertices": 5, "stored_edges": 9,
    }  # fmt: skip
    return dashboard_plugin.PageUpdates(
        client, facts | {"started": time.time() - 60, "sources": 100, "kept": 10} | others, print
    )


def runs_on(client):
    return client.run_on_scheduler(
        lambda dask_scheduler: [
            (run.state, run.stats.done, run.stats.failed_sources, run.facts["client"])
            for run in dask_scheduler.plugins["kepler"].runs.values()
        ]
    )


def test_the_page_shows_failures_retries_and_slowest_batches_of_the_run_that_is_asked_for(
    cluster,
    run,  # noqa: ARG001
):
    with Client(cluster, set_as_default=False) as client:
        reporter = news(client, output=HOSTILE, means=HOSTILE, strategy=HOSTILE, device=HOSTILE)
        reporter.add("batches", batch(7, "10.0.0.9:4000", time.time() - 9, slowest=[HOSTILE, 0.5]))
        reporter.add("batches", batch(8, HOSTILE, time.time() - 9))
        reporter.add("failed", {"part": 3, "sources": [HOSTILE, 5], "n": 40, "error": HOSTILE})
        reporter.add(
            "retried",
            {"part": 4, "why": "its worker died"},
            {"width": 0.5, "first": 2, "counts": [3, 1]},
        )
        reporter.end("failed")
        assert runs_on(client)[-1] == ("failed", 18, 40, client.id)
        source = fetched(address_of(client))
        page = Text(source)
        assert "ended with failures" in page.words
        assert page.after("left") == "42"
        assert {f"{HOSTILE}, 5 and 38 more", HOSTILE, "its worker died", "10.0.0.9:4000"} <= set(
            page.words
        )
        assert HOSTILE not in source
        assert plots_on(source)["pairs within a distance"] == [
            "up to 1.5: 75.0 %",
            "up to 2: 100.0 %",
        ]
        other = re.search(r'href="\?run=(\w+)"', source)[1]
        assert "bfs from 22 sources" in Text(fetched(f"{address_of(client)}?run={other}")).words


def test_killed_job_is_shown_as_gone_and_old_runs_are_dropped(cluster, client, run):  # noqa: ARG001
    with Client(cluster, set_as_default=False) as other:
        for _ in range(dashboard_plugin.MAX_RUNS + 2):
            reporter = news(other)
            reporter.add("batches", batch(1))
        wait_until(lambda: runs_on(client)[-1][:2] == ("running", 14))
    assert len(runs_on(client)) == dashboard_plugin.MAX_RUNS
    wait_until(lambda: runs_on(client)[-1][0] == "gone")


def test_messages_are_sent_together_and_never_waited_for(client, run):  # noqa: ARG001
    reporter = news(client)
    for i in range(2000):
        reporter.add("batches", batch(i, sources=1))
    reporter.end("done")
    assert runs_on(client)[-1][:2] == ("done", 2010)
    messages = [
        msg
        for _, msg in client.get_events(dashboard_plugin.TOPIC)
        if msg["facts"]["sources"] == 100
    ]
    assert sum(len(message["batches"]) for message in messages) >= 2000
    assert len(messages) < 100


@pytest.mark.parametrize(
    ("metrics", "shown"),
    [
        ({"memory": 2**31, "cpu": 98.6}, ("2.00 GiB", "99 % CPU")),
        (
            {"memory": 5, "gpu": {"memory-used": 3 * 2**30, "utilization": 71}},
            ("3.0 of 139 GiB (GPU)", "71 % GPU"),
        ),
        (
            {"memory": 5, "gpu": {"memory-used": 3 * 2**30, "utilization": None}},
            ("3.0 of 139 GiB (GPU)", ""),
        ),
        (
            {"memory": 2**30, "cpu": 1, "gpu": {"memory-used": None, "utilization": None}},
            ("1.00 GiB", "1 % CPU"),
        ),
    ],
)
def test_the_page_shows_how_full_and_busy_a_worker_is_or_its_gpu_where_it_has_one(metrics, shown):
    services, extra = {"dashboard": 8080}, {"gpu": {"memory-total": 139 * 2**30, "name": "H200"}}
    worker = types.SimpleNamespace(metrics=metrics, extra=extra, services=services, host="10.0.0.1")
    *state, link = dashboard_page.describe_worker(worker, "10.0.0.1:4000")
    assert tuple(state) == shown
    assert link == "http://10.0.0.1:8080/metrics"


# Schedulers that cannot have the page

NO_PAGE = """
import sys, asyncio
sys.modules["kepler_traverse"] = None
from distributed import Scheduler
async def serve():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(serve())
"""


@pytest.mark.exhaustive
def test_a_scheduler_that_cannot_import_the_page_is_left_without_and_this_is_said_once():
    with (
        started([sys.executable, "-c", NO_PAGE]) as scheduler,
        Client(scheduler.stdout.readline().strip(), set_as_default=False) as client,
    ):
        said = []
        assert dashboard_plugin.open_page(client, {}, lambda *lines: said.extend(lines)) is None
        assert said[:-1] == [f"dashboard: {client.dashboard_link}"]
        assert said[1].startswith("no page at /kepler of the dashboard: ModuleNotFoundError")


def test_of_a_scheduler_without_a_dashboard_no_address_is_said():
    """Dask has an address for it, which answers for Prometheus alone."""
    with (
        threads_of_this_process(n_workers=0, scheduler_kwargs={"dashboard": False}) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        said = []
        assert client.dashboard_link
        assert dashboard_plugin.open_page(client, {}, lambda *lines: said.extend(lines)) is None
        assert said == ["no page of this run: the scheduler has no dashboard"]


def test_lost_scheduler_ends_the_messages_and_not_the_job():
    said = []
    with dask.config.set({"distributed.comm.timeouts.connect": "1 s"}):
        with threads_of_this_process(n_workers=0) as cluster:
            client = Client(cluster.scheduler_address, set_as_default=False)
            facts = {"started": 0.0, "sources": 40, "kept": 8}
            reporter = dashboard_plugin.open_page(client, facts, lambda *lines: said.extend(lines))
        with client:
            reporter.add("batches", batch(1))
            wait_until(lambda: len(said) == 3)
            reporter.add("batches", batch(2))
            reporter.end("done")
    assert said[1].startswith("this run: http://127.0.0.1:")
    assert said[1].endswith("/kepler")
    assert said[2].startswith("the page at /kepler gets no more updates of this run: ")
    assert len(said) == 3
