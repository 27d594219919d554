"""Time calls of the service of labels: ``python -m scripts.bench.label_service LABELS [--pairs 100000] [--calls 40]``.

LABELS is the output of ``kepler-traverse run --result labels`` of an undirected graph. The service runs in a process of its
own, on loopback. Each call sends random pairs and waits for their distances, which are compared with those of the labels
before a time is printed. Times are milliseconds per call. ``threads`` are those of labels alone, in this process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.flight as flight

from kepler_traverse.cpu import threads
from pipelines.output.label_reader import read_labels


def call(client: Any, batch: Any) -> Any:
    """Return the distances of one batch, by a call of its own."""
    writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"pairs"))
    with writer:
        writer.begin(batch.schema)
        writer.write_batch(batch)
        writer.done_writing()
        return reader.read_chunk().data.column(0)


def measure(folder: str, n_pairs: int, n_calls: int) -> dict[str, Any]:
    """Start the service, and return the figures of some calls."""
    read = read_labels(folder)
    labels = read.labels
    numbers = np.random.default_rng(0).integers(0, labels.n_vertices, (2, n_pairs))
    names = ["source", "target"]
    batch = pa.record_batch([pa.array(read.ids[each]) for each in numbers], names=names)
    labels.between(*numbers)
    own = []
    for _ in range(n_calls):
        began = time.perf_counter()
        sums = labels.between(*numbers)
        own.append(time.perf_counter() - began)
    expected = pa.array(sums, mask=sums == labels.unreached)
    program = "from kepler_traverse.pipelines.__main__ import main; main()"
    command = [sys.executable, "-c", program, "serve", folder, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as service:
        try:
            assert service.stderr is not None
            line = next(each for each in service.stderr if each.startswith("serving"))
            port = line.partition("127.0.0.1:")[2].partition(",")[0]
            with flight.connect(f"grpc://127.0.0.1:{port}") as client:
                assert call(client, batch).equals(expected)
                process = psutil.Process(service.pid)
                before = process.cpu_times()
                times = []
                for _ in range(n_calls):
                    began = time.perf_counter()
                    call(client, batch)
                    times.append(time.perf_counter() - began)
                after = process.cpu_times()
                busy = after.user + after.system - before.user - before.system
        finally:
            service.terminate()
    return {
        "pairs per call": n_pairs,
        "best, ms": round(1e3 * min(times), 1),
        "median, ms": round(1e3 * statistics.median(times), 1),
        "CPU of the service, ms": round(1e3 * busy / n_calls, 1),
        "labels alone, best, ms": round(1e3 * min(own), 1),
        "threads": threads.count(),
        "hubs per vertex": round(labels.hubs_per_vertex, 1),
        "load": os.getloadavg()[0],
    }


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("labels")
    command.add_argument("--pairs", type=int, default=100_000)
    command.add_argument("--calls", type=int, default=40)
    given = command.parse_args()
    print(json.dumps(measure(given.labels, given.pairs, given.calls), indent=1))
