"""Who may ask the dashboard: browsers that were sent to it, and no page of somebody else's in the same browser.

A dashboard asks for no password and mostly listens on 127.0.0.1, which every page that a browser shows can reach. What keeps
other pages out is the browser's rule of one origin, and two ways lead round it. A name of the attacker's can be made to lead
to 127.0.0.1, so requests must carry the address, or a name of this host. A websocket is outside the rule, so the page that
opens one must come from the very address that it opens it to.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from tornado import web

ORIGINS = "distributed.scheduler.dashboard.bokeh-application.allow_websocket_origin"  # Dask's setting


def own_names() -> set[str]:
    """Names of this host; it may ask the network for them."""
    return {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}


def is_allowed(host: str, origin: str | None, names: Collection[str], allowed: Collection[str]) -> bool:
    """Whether a request may be answered.

    Parameters
    ----------
    host : str
        Its header ``Host``.
    origin : str or None
        Its header ``Origin``, if it has one.
    names : collection of str
        Of this host.
    allowed : collection of str
        Further hosts, as Bokeh takes them: ``HOST:PORT``, in which ``*`` stands for any of it.
    """
    from bokeh.server.util import check_allowlist

    def is_listed(address: str) -> bool:
        return bool(allowed) and check_allowlist(address, allowed)

    host = host.lower()
    if not (_is_address_or(host, names) or is_listed(host)):
        return False
    if origin is None:
        return True
    try:
        asking = urlsplit(origin).netloc.lower()
    except ValueError:
        return False
    return asking == host or is_listed(asking)


def _is_address_or(host: str, names: Collection[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name in names or bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def refuse_others(application: web.Application, names: Collection[str], allowed: Collection[str]) -> None:
    """Have an application of Tornado's answer 403 to requests that ``is_allowed`` refuses, websockets among them."""
    find = application.find_handler

    def find_handler(request: Any, **keywords: Any) -> Any:
        if is_allowed(request.host, request.headers.get("Origin"), names, allowed):
            return find(request, **keywords)
        return application.get_handler_delegate(request, _Refused)

    application.find_handler = find_handler  # type: ignore[method-assign]


class _Refused(web.RequestHandler):
    """Says why, without a word of what was asked."""

    def prepare(self) -> None:
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(
            "This dashboard answers to its address and to the names of its host, and to pages from there alone.\n"
            f"Allow others by Dask's setting {ORIGINS}.\n"
        )
