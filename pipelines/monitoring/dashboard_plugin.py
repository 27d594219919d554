"""The page of the run on the Dask dashboard, at /kepler: a scheduler plugin holds the statistics
and answers browsers.

The job sends finished batches as Dask events of one topic. Nothing else of the page runs in the
job, and nothing on the workers. The plugin stays on the scheduler, so that the page remains after
the run and serves the next one.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import dask
from distributed import Client, SchedulerPlugin

from .run_stats import RunStats

if TYPE_CHECKING:
    from ..output.manifest_types import Histogram

PLUGIN = TOPIC = PATH = "kepler"
MAX_RUNS = 8  # runs per scheduler whose statistics are kept
_NO_DASHBOARD = "the scheduler has no dashboard"
_SEND_EVERY = 0.5  # minimum seconds between two messages
_LAST_MESSAGE_SECONDS = 5  # maximum wait for the last message at the end of a run


@dataclass
class Run:
    """What the scheduler knows of one run."""

    # facts that do not change, such as algorithm and number of sources, from the first message
    facts: dict[str, Any]
    stats: RunStats  # of the batches so far
    state: str  # a key of ``dashboard_page._STATES``
    updated_at: float  # seconds since the epoch, of the last message
    plots: dict[str, Any] = field(default_factory=dict)  # by name, as ``draw_plots`` returns them
    drawn_at: float = 0.0  # ``updated_at`` of the message that the plots show

    def take(self, message: dict[str, Any]) -> None:
        """Add a message of the job, as ``PageUpdates`` sends it: batches, failures and retries
        since the one before, the state of the run, and the histogram of all distances.
        """
        self.updated_at = time.time()
        self.state = message["state"]
        self.stats.take(message, self.updated_at)
        self.stats.distances = message["distances"]


class KeplerPage(SchedulerPlugin):
    """Serves the page and holds the last runs of a scheduler, in bounded memory.

    It is a plug-in of Dask's scheduler, sent there by the job. ``is_own_scheduler`` is whether the
    scheduler is this job's own. If so, access control also covers Dask's pages (see
    ``dashboard_access``).
    """

    # Attributes that Dask reads. They say that a second plug-in of this name does not take the
    # place of the first, so that runs of earlier jobs remain.
    name = PLUGIN
    idempotent = True

    def __init__(self, is_own_scheduler: bool = False):
        self._is_own_scheduler = is_own_scheduler
        self.runs: OrderedDict[str, Run] = OrderedDict()  # by name, the oldest first

    async def start(self, scheduler: Any) -> None:
        """Add the page to the dashboard of ``scheduler``, Dask's own object; Dask calls this when
        the plug-in arrives. RuntimeError: the scheduler has no dashboard.
        """
        from tornado import web

        applications = getattr(scheduler.http_application, "applications", ())
        # of the scheduler's HTTP applications, those of Bokeh have this attribute
        dashboards = [
            application for application in applications if hasattr(application, "app_paths")
        ]
        if not dashboards:
            raise RuntimeError(_NO_DASHBOARD)
        from distributed.dashboard.scheduler import template_variables

        from .dashboard_access import ORIGINS, names_of_host, refuse_others
        from .dashboard_page import Page

        # An application with the page, and access control.
        path = f"{re.escape(dashboards[0].prefix)}/{PATH}"
        application = web.Application(
            [(path, Page, {"plugin": self, "scheduler": scheduler})], compress_response=True
        )
        names = await asyncio.to_thread(names_of_host)  # which may wait for a name server
        # Dask allows every origin by default, which counts as none.
        allowed = [origin for origin in dask.config.get(ORIGINS, ()) if origin != "*"]
        refuse_others(application, names, allowed)
        if self._is_own_scheduler:
            refuse_others(scheduler.http_application, names, allowed)

        # The application, and its entry in the navigation bar of Dask's pages.
        scheduler.http_application.add_application(application)
        pages = template_variables(scheduler)["pages"]
        if PATH not in pages:
            pages.append(PATH)

    def log_event(self, topic: str, msg: dict[str, Any]) -> None:
        """Receive a message ``msg`` of a job, as ``PageUpdates`` sends it. The first one of a job
        adds its run.

        Dask calls this with the messages of all topics.
        """
        if topic != TOPIC:
            return
        run = self.runs.get(msg["run"])
        if run is None:
            facts = msg["facts"]
            stats = RunStats(facts["started"], facts["sources"], facts["kept"])
            run = self.runs[msg["run"]] = Run(facts, stats, msg["state"], time.time())
            while len(self.runs) > MAX_RUNS:
                self.runs.popitem(last=False)
        run.take(msg)

    def remove_client(self, scheduler: Any, client: str) -> None:  # noqa: ARG002
        """Record that a job, which is a ``client`` of the scheduler, has left without its last
        message: it was killed, or lost its connection. Dask calls this for each client that leaves;
        ``client`` is its id. Dask's ``scheduler`` is ignored: the runs are known here.
        """
        for run in self.runs.values():
            if run.facts["client"] == client and run.state == "running":
                run.state = "gone"

    def find_run(self, name: str | None) -> tuple[str, Run] | None:
        """Return the name of a run and what is known of it: the run of this name or, if there is
        none, the newest one. Return None if there is no run.
        """
        if name is not None and name in self.runs:
            return name, self.runs[name]
        return next(reversed(self.runs.items()), None)


class PageUpdates:
    """Sends messages to the page without making the job wait.

    Items are added by the thread of the job, and sent by that of Dask's client, a few at a time.

    Parameters
    ----------
    client : distributed.Client
    facts : dict
        Constant facts of the run in plain values. At least ``started``, when it began in seconds
        since the epoch, ``sources``, their number, and ``kept``, the number of these that an
        earlier run has computed.
    say : callable
        Called once with a message if the page can no longer be reached.
    """

    def __init__(self, client: Client, facts: dict[str, Any], say: Callable[..., None]) -> None:
        self._client = client
        self._say = say
        self._run = uuid.uuid4().hex[:12]  # the name of the run on the page
        self._facts = facts | {"client": client.id}
        self._lock = threading.Lock()  # of the pending items and the distances
        self._pending: dict[str, Any] | None = None  # items to send by kind; None if nothing is
        self._state = "running"  # of the run, a key of ``dashboard_page._STATES``
        self._distances: Histogram | None = None  # of all batches so far; None before the first
        self._is_sending = False  # whether ``_send`` runs, which sends all that is pending
        self._is_broken = False  # whether the page can no longer be reached
        self._sent_at = 0.0  # when the last message was sent, in seconds of ``time.monotonic``
        self.add()  # a first message without items, so that the page shows the run

    def add(
        self, what: str = "", item: dict[str, Any] | None = None, distances: Histogram | None = None
    ) -> None:
        """Send one item soon, together with others if there are many, and return at once.

        ``what`` is its kind: "batches", "failed" or "retried", and ``item`` what ``RunStats.take``
        expects of that kind. Without an item only state and ``distances`` are sent: the histogram
        of all batches so far, None for no change.
        """
        with self._lock:
            self._distances = distances or self._distances
            if self._pending is None:
                self._pending = {"batches": [], "failed": [], "retried": []}
            if item is not None:
                self._pending[what].append(item)
        if not self._is_broken:
            cast(Any, self._client.loop).add_callback(self._send)

    def end(self, state: str) -> None:
        """Send the items that are not sent yet, and the final state of the run: "done", "failed" or
        "interrupted". Wait a few seconds at most until they are sent. If the page cannot be reached
        any more, do not wait.
        """
        self._state = state
        self.add()
        if self._is_broken or self._client.status != "running":
            return
        try:
            self._client.sync(self._finish, callback_timeout=_LAST_MESSAGE_SECONDS)
        except TimeoutError:
            self._say(
                f"the page at /{PATH} did not get the end of the run: "
                "the scheduler has not answered"
            )

    async def _finish(self) -> None:
        """Wait until all messages are sent."""
        while self._is_sending or (self._pending is not None and not self._is_broken):
            await self._send()
            await asyncio.sleep(0.01)

    async def _send(self) -> None:
        """Send what is pending, two messages per second at most while the run goes on. This runs in
        the thread of Dask's client. Do nothing if another call is sending, or if the page cannot be
        reached any more; if it cannot be reached now, say so once.
        """
        if self._is_sending or self._is_broken:
            return
        self._is_sending = True
        try:
            while self._pending is not None:
                # A change of the state, at the end of the run, does not wait.
                while self._state == "running" and time.monotonic() < self._sent_at + _SEND_EVERY:
                    await asyncio.sleep(0.05)
                with self._lock:
                    items = self._pending
                    self._pending = None
                message = {
                    "run": self._run,
                    "facts": self._facts,
                    "state": self._state,
                    "distances": self._distances,
                }
                await cast(Any, self._client.scheduler).log_event(topic=TOPIC, msg=message | items)
                self._sent_at = time.monotonic()
        except (OSError, TimeoutError) as error:
            self._is_broken = True
            self._say(f"the page at /{PATH} gets no more updates of this run: {error}")
        finally:
            self._is_sending = False


def open_page(
    client: Client, facts: dict[str, Any], say: Callable[..., None]
) -> PageUpdates | None:
    """Add the page to a scheduler's dashboard, unless it is already there, and say where both are.
    Return the object that sends updates to the page.

    Return None if there can be no page: the scheduler has no dashboard or no Bokeh, cannot import
    this module, or accepts no plug-ins. ``say`` is then called with the reason, and the run
    continues without the page.

    ``client`` is connected to the scheduler. ``facts`` are those that ``PageUpdates`` takes.
    ``say`` is called with each message to the user.
    """
    link = client.dashboard_link  # where a dashboard would be: Dask has it also where there is none
    try:
        client.register_plugin(KeplerPage(is_own_scheduler=client.cluster is not None))
    except Exception as error:  # any of an external scheduler: the run does not depend on the page
        if str(error) == _NO_DASHBOARD:
            say(f"no page of this run: {_NO_DASHBOARD}")
        else:
            say(
                f"dashboard: {link}",
                f"no page at /{PATH} of the dashboard: {type(error).__name__}: {error}",
            )
        return None
    say(f"dashboard: {link}", f"this run: {link.rpartition('/')[0]}/{PATH}")
    return PageUpdates(client, facts, say)
