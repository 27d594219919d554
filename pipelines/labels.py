"""Hub labels of a graph as tables: ``kepler-traverse run EDGES --result labels --output DIR``.

Writes labels_out.parquet and labels_in.parquet, with the distances from each vertex to its hubs and
back, which any engine joins to the distances of pairs (docs/labels.md). They are read back and proved
before the folder gets _SUCCESS. --verify proves those of a folder, and writes nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kepler_traverse.errors import several

from .batch_sources import run_program
from .cli import signals
from .cli.options import OPTIONS, Once, OnceParser, add_option, edge_columns, flag_text
from .cli.terminal import called_as, say, show

SUCCESS = "_SUCCESS"
EXIT_WRONG = 5
_SHARED = [option for option in OPTIONS if option.key in ("algorithm", "directed", "columns")]
_EPILOG = """\
exit codes: 0 done, 1 unexpected error, 2 bad usage or input (such as a network with hubs, whose labels would be
long), 5 --verify found a fault, 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_program(parser, _answer, argv)


def parser() -> OnceParser:
    """Return the command line."""
    result = OnceParser(
        prog=called_as("labels"), description=str(__doc__).partition("\n\n")[2], epilog=_EPILOG
    )
    result.add_argument("edges", metavar="EDGES", nargs="+", help="files of the edge list")
    result.add_argument(
        "--result", action=Once, choices=("labels",), help="what is written (default: labels)"
    )
    for option in _SHARED:
        add_option(result, option)
    place = result.add_mutually_exclusive_group(required=True)
    place.add_argument(
        "--output", action=Once, metavar="DIR", help="folder of the tables, new or empty"
    )
    place.add_argument(
        "--verify", action=Once, metavar="DIR", help="prove the tables of this folder instead"
    )
    result.add_argument(
        "--debug", action=Once, nargs=0, help="show where an unexpected error comes from"
    )
    return result


def _answer(parsed: Any) -> int:
    from kepler_traverse.errors import options_spelled

    given = {"algorithm": "bfs"} | vars(parsed)
    with options_spelled(flag_text):
        if given.get("output") is not None:
            return _write(given)
        return _verify(given)


def _read(given: dict[str, Any]) -> Any:
    from kepler_traverse.errors import InputError

    from .run.reading import read_and_say

    weighted = given["algorithm"] == "sssp"
    columns = edge_columns(given.get("columns"), alone=True)
    if columns["weight_column"] and not weighted:
        raise InputError(f"{flag_text('weight_column')} needs --algorithm sssp")
    return read_and_say(
        given["edges"],
        directed=given.get("directed", True),
        device="cpu",
        weighted=weighted,
        **columns,
    )


def _write(given: dict[str, Any]) -> int:
    from kepler_traverse.errors import OutputError
    from kepler_traverse.hub_labels.tables import write_labels

    folder = Path(given["output"])
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"--output {str(folder)!r} is not empty; name a new folder")
    graph = _read(given)
    metric = _metric(given)
    began = time.perf_counter()
    estimate = graph.derived.estimate_labels(metric)
    say(f"labels: {estimate}")
    labels = graph.labels(metric)
    built = time.perf_counter() - began
    write_labels(graph, folder, metric)
    certificate = _certify(graph, folder)
    certificate.require()
    facts = {
        "result": "labels",
        "metric": metric,
        "fingerprint": graph.fingerprint,
        "vertices": graph.n_vertices,
        "rows": labels.rows,
        "hubs_per_vertex": round(labels.hubs_per_vertex, 2),
        "longest": labels.longest,
        "proved": list(certificate.proved),
        "sampled": list(certificate.sampled),
        "seconds": {"build": round(built, 3), "all": round(time.perf_counter() - began, 3)},
    }
    (folder / SUCCESS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    show(*json.dumps(facts, indent=2).splitlines())
    say(f"{several(labels.rows, 'row')} of labels written to {folder}, and proved")
    return 0


def _verify(given: dict[str, Any]) -> int:
    graph = _read(given)
    certificate = _certify(graph, given["verify"])
    if certificate.valid:
        show(*(f"proved: {each}" for each in certificate.proved))
        show(*(f"sampled: {each}" for each in certificate.sampled))
        show(f"{given['verify']}: verified")
        return 0
    show(*(f"{rule}: {why}" for rule, why in certificate.failures.items()))
    show(f"{given['verify']}: WRONG")
    return EXIT_WRONG


def _certify(graph: Any, folder: Any) -> Any:
    """Certify the tables of a folder, as they are there."""
    from kepler_traverse import certify
    from kepler_traverse.certificate.of_labels import labels_of_tables

    return certify(graph, labels_of_tables(graph, str(folder)))


def _metric(given: dict[str, Any]) -> str:
    if given["algorithm"] == "sssp":
        return "weights"
    return "hops"


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
