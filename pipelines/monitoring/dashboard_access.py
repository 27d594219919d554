"""Access control of the dashboard: other users of the machine and other pages in the same browser
are refused.

A dashboard usually listens on 127.0.0.1, which every user of the machine and every page in a
browser can reach. Addresses of the job's own dashboard therefore begin with a secret token. An
existing cluster's have none. The same-origin policy of the browser excludes other pages, with two
exceptions:

- DNS rebinding: a name of the attacker can resolve to 127.0.0.1. Therefore the ``Host`` of a
  request must be an address, or a name of this host.
- Websockets are not subject to the policy. Therefore the ``Origin`` of a websocket must be the
  address that it connects to.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
from collections.abc import Callable, Collection
from typing import Any
from urllib.parse import urlsplit

from tornado import web

# Dask's setting
ORIGINS = "distributed.scheduler.dashboard.bokeh-application.allow_websocket_origin"


def own_names() -> set[str]:
    """Return the names of this host; this may need the network."""
    return {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}


def is_allowed(
    host: str, origin: str | None, names: Collection[str], allowed: Collection[str]
) -> bool:
    """Return whether a request with these headers ``Host`` and ``Origin`` may be answered.

    ``names`` are those of this host, and ``allowed`` are further hosts in Bokeh's notation:
    ``HOST:PORT``, where ``*`` matches anything.
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
    """Whether a host is an IP address, or one of some names."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name in names or bool(ipaddress.ip_address(name))
    except ValueError:
        return False


def refuse_others(
    application: web.Application, names: Collection[str], allowed: Collection[str]
) -> None:
    """Make a Tornado application answer 403 to requests that ``is_allowed`` refuses, websockets
    included.
    """
    _guard(
        application,
        lambda request: is_allowed(request.host, request.headers.get("Origin"), names, allowed),
    )


def require_token(application: web.Application, token: str) -> None:
    """Make a Tornado application answer 403 to requests whose path does not begin with a token,
    websockets included.
    """
    _guard(
        application,
        lambda request: hmac.compare_digest(
            request.path[1:].partition("/")[0].encode(), token.encode()
        ),
    )


def _guard(application: web.Application, is_right: Callable[[Any], bool]) -> None:
    """Make an application refuse the requests that are not right."""
    find = application.find_handler

    def find_handler(request: Any, **keywords: Any) -> Any:
        if is_right(request):
            return find(request, **keywords)
        return application.get_handler_delegate(request, _Refused)

    application.find_handler = find_handler  # type: ignore[method-assign]


class _Refused(web.RequestHandler):
    """States the reason without repeating the request."""

    def prepare(self) -> None:
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(
            "This dashboard answers requests to its address or to a name of its host, and from its own pages only.\n"
            f"Allow others by Dask's setting {ORIGINS}.\n"
            "Addresses of a job's own dashboard begin with a token, as the job has printed them.\n"
        )
