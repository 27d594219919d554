"""Extremes of a graph: ``python -m pipelines.extremes EDGES``, or ``kepler-traverse extremes
EDGES``.

Computes the exact diameter, radius, center and periphery, or with --result top-closeness the
vertices of the highest closeness. Each search is certified before it is used. The answer is JSON on
stdout, or a JSON or Parquet file.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kepler_traverse.errors import several
from kepler_traverse.kinds.constraints import Constraint, GivenOptions, refuse, violations

from .batch_sources import run_program
from .cli import signals
from .cli.command_line import Once, OnceParser, add_option
from .cli.options import OPTIONS, edge_columns, flag_text
from .cli.terminal import called_as, say, show
from .cli.values import integer

RESULTS = ("extremes", "top-closeness")
_SHARED = [
    option for option in OPTIONS if option.key in ("algorithm", "device", "directed", "columns")
]


def _only_for(name: str, result: str) -> Constraint:
    """Return the rule that a flag is for one of the results."""
    return Constraint(
        names=(name, "result"),
        violated=lambda given: given.is_given(name) and given.value("result") != result,
        why="{0} does not belong to {result=}",
        remedy="leave it out",
    )


# What flags together must be.
ROWS = (
    _only_for("unconnected", "extremes"),
    *(_only_for(name, "top-closeness") for name in ("direction", "k")),
    Constraint(
        names=("weight_column", "algorithm"),
        violated=lambda given: given.is_given("weight_column") and given.algorithm != "sssp",
        why="{0} needs {algorithm=sssp}",
        remedy="take that, or leave {0} out",
    ),
)

_EPILOG = """\
exit codes: 0 done, 1 unexpected error, 2 bad usage or input (such as a graph that is not connected, without
--unconnected largest), 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_program(parser, _answer, argv)


def _answer(parsed: Any) -> int:
    given = {"result": "extremes", "algorithm": "bfs", "device": "auto"} | vars(parsed)
    output = given.get("output")
    if output is not None:
        _check_output(Path(output))
    from kepler_traverse.errors import options_spelled

    with options_spelled(flag_text):
        facts, answer, table = _compute(given)
    if output is None:
        show(*json.dumps(facts | answer, indent=2).splitlines())
    else:
        _write(Path(output), facts, answer, table)
        say(f"{several(facts['searches'], 'search')}; {given['result']} written to {output}")
    return 0


def parser() -> OnceParser:
    """Return the command line."""
    result = OnceParser(
        prog=called_as("extremes"), description=str(__doc__).partition("\n\n")[2], epilog=_EPILOG
    )
    result.add_argument("edges", metavar="EDGES", nargs="+", help="files of the edge list")
    for flag, choices, text in (
        ("--result", RESULTS, "what to compute (default: extremes)"),
        (
            "--unconnected",
            ("refuse", "largest"),
            "a graph that is not connected: an error, or its largest component",
        ),
        (
            "--direction",
            ("out", "in"),
            "of --result top-closeness: distances from or to each vertex (default: out)",
        ),
    ):
        result.add_argument(flag, action=Once, choices=choices, help=text)
    for option in _SHARED:
        add_option(result, option)
    result.add_argument(
        "-k",
        "--k",
        dest="k",
        action=Once,
        type=integer,
        help="vertices of top-closeness (default: 10)",
    )
    result.add_argument(
        "--output",
        action=Once,
        metavar="FILE",
        help="a new file, .json or .parquet; default: JSON on stdout",
    )
    result.add_argument(
        "--debug", action=Once, nargs=0, help="show where an unexpected error comes from"
    )
    return result


def _check_output(path: Path) -> None:
    """Raise OutputError unless the answer can become this file; before the searches, which may take
    long.
    """
    from kepler_traverse.errors import OutputError

    if path.suffix not in (".json", ".parquet"):
        raise OutputError(f"--output {str(path)!r} must end in .json or .parquet")
    if path.exists():
        raise OutputError(f"--output {str(path)!r} exists; remove it or name another file")
    if not path.parent.is_dir():
        raise OutputError(f"--output {str(path)!r} is in a folder that does not exist")


def _compute(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Return facts of the run, the answer (numbers and lists of ids, or columns as lists), and the
    answer as a table.
    """
    import pyarrow

    from kepler_traverse.extremes import EXTREMES, extremes, top_closeness
    from kepler_traverse.extremes.eccentricities import make_columns
    from kepler_traverse.search.frames import arrow_table

    from .run.reading import read_and_say

    closeness = given["result"] == "top-closeness"
    weighted = given["algorithm"] == "sssp"
    columns = edge_columns(given.get("columns"), alone=True)
    own = {**given, **columns}
    written = {name: flag_text(name) for name, value in columns.items() if value is not None}
    written |= {name: f"--{name}" for name in given}
    refuse(
        violations(
            GivenOptions(kind=None, algorithm=given["algorithm"], written=written, values=own), ROWS
        )
    )
    graph = read_and_say(
        given["edges"],
        directed=given.get("directed", True),
        device=given["device"],
        weighted=weighted,
        **columns,
    )
    facts = {
        "result": given["result"],
        "algorithm": given["algorithm"],
        "directed": graph.directed,
        "device": graph.device,
        "fingerprint": graph.fingerprint,
        "n_vertices": graph.n_vertices,
        "n_edges": graph.n_edges,
    }
    started = time.perf_counter()
    answer: dict[str, Any]
    if closeness:
        frame, searches = top_closeness(
            graph,
            given.get("k", 10),
            algorithm=given["algorithm"],
            direction=given.get("direction", "out"),
            with_count=True,
        )
        if hasattr(frame, "to_pandas"):
            table = frame.to_pandas()
        else:
            table = frame
        answer = {name: table[name].tolist() for name in table.columns}
        table = pyarrow.table(answer)
    else:
        measured = extremes(
            graph, algorithm=given["algorithm"], unconnected=given.get("unconnected", "refuse")
        )
        searches = measured.searches
        facts["n_vertices_considered"] = measured.n_vertices
        answer = {name: getattr(measured, name) for name in EXTREMES}
        answer |= {name: answer[name].tolist() for name in ("center", "periphery")}
        table = arrow_table(make_columns(graph, measured))
    return facts | {"searches": searches, "seconds": time.perf_counter() - started}, answer, table


def _write(path: Path, facts: dict[str, Any], answer: dict[str, Any], table: Any) -> None:
    """Write the answer; a table has a row per vertex, and the facts of the run as metadata."""
    import pyarrow.parquet

    from kepler_traverse.runtime.regular_files import written_whole

    with written_whole(path) as partial:
        if path.suffix == ".json":
            partial.write_text(json.dumps(facts | answer, indent=2) + "\n", encoding="utf-8")
        else:
            metadata = {"kepler_traverse": json.dumps(facts)}
            pyarrow.parquet.write_table(table.replace_schema_metadata(metadata), partial)


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
