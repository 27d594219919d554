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

# name of Dask's setting with the hosts whose pages may connect to the dashboard
ORIGINS = "distributed.scheduler.dashboard.bokeh-application.allow_websocket_origin"


def names_of_host() -> set[str]:
    """Return the names of this host, in lower case. This may ask a name server in the network."""
    return {"localhost", socket.gethostname().lower(), socket.getfqdn().lower()}


def is_allowed(
    host: str, origin: str | None, names: Collection[str], allowed: Collection[str]
) -> bool:
    """Return whether a request may be answered by its headers ``Host`` and ``Origin``, which is
    None if the request has none.

    ``names`` are those of this host, in lower case. ``allowed`` are further hosts in Bokeh's
    notation: ``HOST:PORT``, where ``*`` matches anything.
    """
    from bokeh.server.util import check_allowlist

    def is_listed(address: str) -> bool:
        """Return whether a host, with or without a port, is one of the allowed ones."""
        # Bokeh takes an empty list for all hosts
        return bool(allowed) and check_allowlist(address, allowed)

    # ``Host`` is checked against DNS rebinding, and ``Origin`` against websockets of other pages.
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
    """Return whether a host, with or without a port, is an IP address or has one of ``names``."""
    # ValueError: it is neither an address nor a name
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
        """Return whether the headers of a request are allowed."""
        return is_allowed(request.host, request.headers.get("Origin"), names, allowed)

    _guard(application, may_answer)


def require_token(application: web.Application, token: str) -> None:
    """Make a Tornado application answer 403 to requests whose path does not begin with a token, a
    secret of the user who started the job. Websockets are included.
    """

    def has_token(request: Any) -> bool:
        """Return whether the path of a request begins with the token."""
        first_segment = request.path[1:].partition("/")[0]
        # This comparison takes the same time however much of the token is right, so that its time
        # does not help to guess the token.
        return hmac.compare_digest(first_segment.encode(), token.encode())

    _guard(application, has_token)


def _guard(application: web.Application, may_answer: Callable[[Any], bool]) -> None:
    """Make an application answer 403 to requests for which ``may_answer(request)`` is False.

    The look-up of the handler is replaced, since Tornado calls it for websockets, too.
    """
    find_original = application.find_handler

    def find_handler(request: Any, **keywords: Any) -> Any:
        """Return the handler of a request; one that answers 403 for a request that is refused."""
        if may_answer(request):
            return find_original(request, **keywords)
        return application.get_handler_delegate(request, _Refused)

    application.find_handler = find_handler  # type: ignore[method-assign]


class _Refused(web.RequestHandler):
    """Answers 403 with the reason, without repeating what the request holds."""

    def prepare(self) -> None:
        """Answer. Tornado calls this first, whatever the method of the request."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(
            "This dashboard answers requests to its address or to a name of its host, and from its own pages only.\n"
            f"Allow others by Dask's setting {ORIGINS}.\n"
            "Addresses of a job's own dashboard begin with a token, as the job has printed them.\n"
        )
