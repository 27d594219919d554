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


def names_of_host() -> set[str]:
    """Return the names of this host, in lower case; this may need the network."""
    return {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}


def is_allowed(
    host: str, origin: str | None, names: Collection[str], allowed: Collection[str]
) -> bool:
    """Whether a request with these headers ``Host`` and ``Origin`` may be answered.

    ``names`` are those of this host, and ``allowed`` are further hosts in Bokeh's notation:
    ``HOST:PORT``, where ``*`` matches anything.
    """
    from bokeh.server.util import check_allowlist

    def is_listed(address: str) -> bool:
        """Whether a host is one of the allowed ones; Bokeh takes an empty list for all."""
        return bool(allowed) and check_allowlist(address, allowed)

    host = host.lower()
    if not (_is_address_or(host, names) or is_listed(host)):
        return False
    if origin is None:
        return True
    try:
        origin_host = urlsplit(origin).netloc.lower()
    except ValueError:
        return False
    return origin_host == host or is_listed(origin_host)


def _is_address_or(host: str, names: Collection[str]) -> bool:
    """Whether a host, with or without a port, is an IP address or has one of some names."""
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

    def may_answer(request: Any) -> bool:
        """Whether the headers of a request are allowed."""
        return is_allowed(request.host, request.headers.get("Origin"), names, allowed)

    _guard(application, may_answer)


def require_token(application: web.Application, token: str) -> None:
    """Make a Tornado application answer 403 to requests whose path does not begin with a token,
    websockets included.
    """

    def has_token(request: Any) -> bool:
        """Whether the path of a request begins with the token."""
        first_segment = request.path[1:].partition("/")[0]
        # in a time that says nothing of how much of it is right
        return hmac.compare_digest(first_segment.encode(), token.encode())

    _guard(application, has_token)


def _guard(application: web.Application, may_answer: Callable[[Any], bool]) -> None:
    """Make an application answer 403 to requests for which ``may_answer(request)`` is False.

    The look-up of the handler is replaced, since Tornado calls it for websockets, too.
    """
    find_original = application.find_handler

    def find_handler(request: Any, **keywords: Any) -> Any:
        """Return the handler of a request, in place of the method of this name."""
        if may_answer(request):
            return find_original(request, **keywords)
        return application.get_handler_delegate(request, _Refused)

    application.find_handler = find_handler  # type: ignore[method-assign]


class _Refused(web.RequestHandler):
    """Answers 403 with the reason, without repeating what the request holds."""

    def prepare(self) -> None:
        """Answer before Tornado looks at the method of the request."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(
            "This dashboard answers requests to its address or to a name of its host, and from its own pages only.\n"
            f"Allow others by Dask's setting {ORIGINS}.\n"
            "Addresses of a job's own dashboard begin with a token, as the job has printed them.\n"
        )
