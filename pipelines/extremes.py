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
from typing import TYPE_CHECKING, Any, NamedTuple

from kepler_traverse.errors import several
from kepler_traverse.kinds.constraints import Constraint, GivenOptions, refuse, violations

from .batch_sources import run_program
from .cli import signals
from .cli.command_line import Once, OnceParser, add_option
from .cli.constraints import only_with
from .cli.options import OPTIONS, edge_columns, flag_text
from .cli.terminal import called_as, say, show
from .cli.values import integer

if TYPE_CHECKING:
    from kepler_traverse.graph import Graph

RESULTS = ("extremes", "top-closeness")
# Options of the job that this program has, too.
_SHARED = [
    option for option in OPTIONS if option.key in ("algorithm", "device", "directed", "columns")
]


# Rules on combinations of flags.
ROWS = (
    only_with("unconnected", "result", "extremes", "leave it out"),
    *(only_with(name, "result", "top-closeness", "leave it out") for name in ("direction", "k")),
    Constraint(
        names=("weight_column", "algorithm"),
        violated=lambda flags: flags.is_given("weight_column") and flags.algorithm != "sssp",
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
    """Measure the graph as the parsed command line says, and print or write the answer; return the
    exit code.
    """
    # Values of the flags by name, with defaults.
    flags = {"result": "extremes", "algorithm": "bfs", "device": "auto"} | vars(parsed)
    output = flags.get("output")
    if output is not None:
        _check_output(Path(output))
    from kepler_traverse.errors import options_spelled

    with options_spelled(flag_text):
        measured = _measure(flags)
    if output is None:
        show(*measured.as_json().splitlines())
    else:
        _write(Path(output), measured)
        searches = several(measured.facts["searches"], "search")
        say(f"{searches}; {flags['result']} written to {output}")
    return 0


def parser() -> OnceParser:
    """Return the parser of the command line."""
    result = OnceParser(
        prog=called_as("extremes"), description=str(__doc__).partition("\n\n")[2], epilog=_EPILOG
    )
    # Flags of this program alone, and among them those that the job has, too.
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
    """Raise OutputError unless the answer can be written to the new file ``path``.

    This is checked before the searches, which may take long.
    """
    from kepler_traverse.errors import OutputError

    if path.suffix not in (".json", ".parquet"):
        raise OutputError(f"--output {str(path)!r} must end in .json or .parquet")
    if path.exists():
        raise OutputError(f"--output {str(path)!r} exists; remove it or name another file")
    if not path.parent.is_dir():
        raise OutputError(f"--output {str(path)!r} is in a folder that does not exist")


class _Measured(NamedTuple):
    """What was measured of a graph."""

    facts: dict[str, Any]  # of the run: the graph, the device, the number of searches, the seconds
    # For JSON: diameter, radius and lists of ids, or the columns of the closest vertices as lists.
    answer: dict[str, Any]
    table: Any  # the answer as a pyarrow table, with a row per vertex

    def as_json(self) -> str:
        """Return the facts and the answer as one JSON object."""
        return json.dumps(self.facts | self.answer, indent=2)


def _measure(flags: dict[str, Any]) -> _Measured:
    """Check the flags, read the graph, and measure what ``--result`` says.

    ``flags``: values by name.
    """
    from .run.reading import read_and_say

    # Check the rules on flags. Each column that --columns names counts as a flag.
    columns = edge_columns(flags.get("columns"), is_alone=True)
    written = {name: flag_text(name) for name, value in columns.items() if value is not None}
    written |= {name: f"--{name}" for name in flags}
    options = GivenOptions(
        kind=None, algorithm=flags["algorithm"], written=written, values={**flags, **columns}
    )
    refuse(violations(options, ROWS))

    graph = read_and_say(
        flags["edges"],
        directed=flags.get("directed", True),
        device=flags["device"],
        weighted=flags["algorithm"] == "sssp",
        **columns,
    )
    facts = {
        "result": flags["result"],
        "algorithm": flags["algorithm"],
        "directed": graph.directed,
        "device": graph.device,
        "fingerprint": graph.fingerprint,
        "n_vertices": graph.n_vertices,
        "n_edges": graph.n_edges,
    }

    # The seconds are those of the searches, without reading the graph.
    started = time.perf_counter()
    measure = _find_closest if flags["result"] == "top-closeness" else _find_extremes
    measured = measure(graph, flags)
    facts |= measured.facts
    facts["seconds"] = time.perf_counter() - started
    return measured._replace(facts=facts)


def _find_closest(graph: Graph, flags: dict[str, Any]) -> _Measured:
    """Return the k vertices of the highest closeness, and the number of searches.

    ``flags``: values of the command line by name.
    """
    import pyarrow

    from kepler_traverse.extremes import top_closeness

    frame, searches = top_closeness(
        graph,
        flags.get("k", 10),
        algorithm=flags["algorithm"],
        direction=flags.get("direction", "out"),
        with_count=True,
    )
    if hasattr(frame, "to_pandas"):  # a frame of cuDF, where a GPU searches
        frame = frame.to_pandas()
    answer = {name: frame[name].tolist() for name in frame.columns}
    return _Measured({"searches": searches}, answer, pyarrow.table(answer))


def _find_extremes(graph: Graph, flags: dict[str, Any]) -> _Measured:
    """Return the diameter and the radius of a graph, and the vertices whose eccentricities these
    are.

    ``flags``: values of the command line by name.
    """
    from kepler_traverse.extremes import EXTREMES, extremes
    from kepler_traverse.extremes.eccentricities import make_columns
    from kepler_traverse.search.frames import arrow_table

    measured = extremes(
        graph, algorithm=flags["algorithm"], unconnected=flags.get("unconnected", "refuse")
    )
    facts = {"n_vertices_considered": measured.n_vertices, "searches": measured.searches}
    answer = {name: getattr(measured, name) for name in EXTREMES}
    answer |= {name: answer[name].tolist() for name in ("center", "periphery")}
    return _Measured(facts, answer, arrow_table(make_columns(graph, measured)))


def _write(path: Path, measured: _Measured) -> None:
    """Write what was measured to a JSON or a Parquet file, as the ending of ``path`` says.

    A Parquet file has the facts of the run as metadata.
    """
    import pyarrow.parquet

    from kepler_traverse.runtime.regular_files import written_whole

    with written_whole(path) as partial:
        if path.suffix == ".json":
            partial.write_text(measured.as_json() + "\n", encoding="utf-8")
        else:
            metadata = {"kepler_traverse": json.dumps(measured.facts)}
            table = measured.table.replace_schema_metadata(metadata)
            pyarrow.parquet.write_table(table, partial)


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
