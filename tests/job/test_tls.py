"""Clusters with TLS: workers with addresses of their own run the job, and other connections are refused."""

import contextlib
import json
import shutil

import numpy as np
import pytest
from distributed import Client
from distributed.security import Security

from kepler_traverse import plan_bfs, read_graph
from kepler_traverse.search.results import checksum
from pipelines.output.run_folder import compute_digest
from pipelines.scheduling import cluster
from tests.support.clusters import dask_program
from tests.support.jobs import manifest_of, refused, summary_of, write_edges
from tests.support.processes import PATIENCE, ran


def openssl(folder, *words):
    done = ran(["openssl", *words], cwd=folder)
    assert done.returncode == 0, done.stderr


def authority(folder, name):
    """A certificate authority, and a certificate with its key that it has signed."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = [
        "-keyout",
        f"{name}-ca.key",
        "-out",
        f"{name}-ca.pem",
        "-days",
        "2",
        "-subj",
        f"/CN={name}",
    ]
    openssl(folder, "req", "-x509", *key, *made)
    openssl(
        folder,
        "req",
        *key,
        "-keyout",
        f"{name}.key",
        "-out",
        f"{name}.csr",
        "-subj",
        f"/CN={name} member",
    )
    signed = ["-CA", f"{name}-ca.pem", "-CAkey", f"{name}-ca.key", "-CAcreateserial", "-days", "2"]
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.pem")
    return {
        "ca-file": folder / f"{name}-ca.pem",
        "cert": folder / f"{name}.pem",
        "key": folder / f"{name}.key",
    }


def as_flags(certificates):
    return [word for name, path in certificates.items() for word in (f"--tls-{name}", str(path))]


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory):
    """A scheduler with TLS and two workers at addresses of their own: (its address, certificates, others' certificates)."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make certificates with")
    folder = tmp_path_factory.mktemp("certificates")
    ours, foreign = authority(folder, "ours"), authority(folder, "foreign")
    tls = ["--protocol", "tls", *as_flags(ours)]
    with (
        dask_program("scheduler", folder, "--host", "127.0.0.1", *tls),
        contextlib.ExitStack() as stack,
    ):
        for host in ("127.0.0.2", "127.0.0.3"):
            stack.enter_context(dask_program("worker", folder, "--host", host, *tls))
        yield json.loads((folder / "scheduler.json").read_text())["address"], ours, foreign


@pytest.fixture
def job(tmp_path):
    edges = write_edges(
        tmp_path / "edges.parquet", *np.random.default_rng(4).integers(0, 200, (2, 800))
    )
    return [
        edges,
        "--device",
        "cpu",
        "--sources",
        ",".join(map(str, range(12))),
        "--json",
        "--no-report",
    ]


def test_tls_workers_with_addresses_and_certificates_of_their_own_do_the_job(
    encrypted, job, tmp_path, capsys
):
    address, ours, _ = encrypted
    assert address.startswith("tls://127.0.0.1:")
    flags = ["--batch-size", 1, "--scheduler-address", address, *as_flags(ours)]
    certificates = {
        "tls_ca_file": ours["ca-file"],
        "tls_client_cert": ours["cert"],
        "tls_client_key": ours["key"],
    }
    security = Security(
        **{name: str(path) for name, path in certificates.items()}, require_encryption=True
    )
    with Client(address, security=security, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE)
    summary, manifest = (
        summary_of(capsys, *job, *flags, "--output", tmp_path / "out"),
        manifest_of(tmp_path / "out"),
    )
    assert {part["worker"].rpartition(":")[0] for part in manifest["parts"]} == {
        "tls://127.0.0.2",
        "tls://127.0.0.3",
    }
    graph = read_graph([job[0]])
    plan = plan_bfs(graph)
    answers = [{"checksum": f"{checksum(plan(source)):016x}"} for source in range(12)]
    assert summary["digest"] == compute_digest(graph.fingerprint, answers)


@pytest.mark.parametrize("how", ["plain", "foreign", "no certificates"])
def test_plain_connections_and_foreign_certificates_are_refused(
    encrypted, job, tmp_path, capsys, monkeypatch, how
):
    monkeypatch.setattr("pipelines.scheduling.cluster.CONNECT_SECONDS", 2)
    monkeypatch.setitem(cluster._PINNED, "distributed.comm.timeouts.connect", "2 s")
    address, _, foreign = encrypted
    flags = {
        "plain": ["--scheduler-address", address.replace("tls://", "tcp://")],
        "foreign": ["--scheduler-address", address, *as_flags(foreign)],
        "no certificates": ["--scheduler-address", address],
    }[how]
    (line,) = refused(capsys, *job, *flags, "--output", tmp_path / "out").splitlines()
    assert line.startswith(f"error: no Dask scheduler answers at {flags[1]}: "), line
    assert not (tmp_path / "out").exists()
