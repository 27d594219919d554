"""Access to the job's own cluster: its connections need the certificate of the run, and its dashboard a token.

All users of a host reach 127.0.0.1. A process that connects to a scheduler, a nanny or a worker of Dask can run code there.
"""

from __future__ import annotations

import datetime
import secrets
from ssl import TLSVersion
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from distributed import LocalCluster, Scheduler
from distributed.security import Security

from ..monitoring.dashboard_access import require_token

_VALID = datetime.timedelta(days=3650)  # beyond any run: Dask connects throughout


def certificate() -> Security:
    """Return a new certificate that signs itself, with its key, as the only authority.

    Both stay in memory: Dask sends them to its worker processes through pipes. OpenSSL reads files, so each process writes
    them to a folder of mode 700 for that moment.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "kepler-traverse")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now - _VALID, now + _VALID)
    signed = builder.sign(key, hashes.SHA256())
    public = signed.public_bytes(serialization.Encoding.PEM).decode()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    roles = ("client", "scheduler", "worker")
    return Security(
        require_encryption=True,
        tls_ca_file=public,
        tls_min_version=TLSVersion.TLSv1_3,
        tls_max_version=None,
        tls_ciphers=None,
        **{f"tls_{role}_cert": public for role in roles},
        **{f"tls_{role}_key": private for role in roles},
    )


class PrivateScheduler(Scheduler):
    """A scheduler whose HTTP server answers 403 unless the path begins with ``token``, from its first request on."""

    def __init__(self, **options: Any):
        self.token = secrets.token_hex(16)
        super().__init__(http_prefix=self.token, **options)

    def start_http_server(self, *how: Any, **keywords: Any) -> None:
        super().start_http_server(*how, **keywords)  # type: ignore[no-untyped-call]
        require_token(self.http_application, self.token)


def private(kind: type[LocalCluster], **options: Any) -> LocalCluster:
    """Start a local cluster of Dask's or of dask-cuda's class, with access for this process and its workers alone."""

    class PrivateCluster(kind):  # type: ignore[misc, valid-type]
        async def _start(self) -> None:
            self.scheduler_spec["cls"] = PrivateScheduler
            await super()._start()

        @property
        def dashboard_link(self) -> str:
            before, _, page = super().dashboard_link.rpartition("/")
            return f"{before}/{self.scheduler.token}/{page}"

    return PrivateCluster(host="127.0.0.1", protocol="tls", security=certificate(), **options)
