"""Complete a run whose shards have ended: ``python -m pipelines.finish DIR``.

All parts are compared with what the shards have recorded. Then the log of the run is closed, and
tables, manifest and ``_SUCCESS`` are written. Two at once write the same. With ``--table`` the
parts of a finished run, whether in shards or not, become a table of Delta Lake or Apache Iceberg as
they are.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kepler_traverse.errors import several
from kepler_traverse.runtime.display import in_units

from .batch_sources import add_tables, moved_tables, run_program
from .cli import signals
from .cli.command_line import Once, OnceParser
from .cli.settings import checked_settings, refuse_address
from .cli.terminal import called_as, say, show
from .monitoring.console import estimate_lines, read_estimate, traffic_of_run, traffic_text
from .output.store import open_store
from .output.tables import TABLE_FORMATS, refuse_without_packages, register, table_address
from .run.finishing import IncompleteError, finish_run

EXIT_INCOMPLETE = 3

_EPILOG = """\
exit codes: 0 the run is complete, also if it was before, 1 unexpected error, 2 bad usage or no such run, 3 parts are
missing or damaged, or sources failed: run their shards again, 130 interrupted
"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_program(parser, _finish, argv, interrupted="interrupted; run it again")


def parser() -> OnceParser:
    """Return the parser of the command line."""
    result = OnceParser(
        prog=called_as("finish"),
        description=__doc__.partition("\n")[0].partition(":")[0] + ".",
        epilog=_EPILOG,
    )
    result.add_argument("folder", metavar="DIR", help="output folder of a run in shards (--shard)")
    result.add_argument(
        "--table",
        action=Once,
        choices=tuple(TABLE_FORMATS),
        help="make the parts a table of Delta Lake or Apache Iceberg, by metadata beside them: no file is rewritten; "
        "the run need not be in shards",
    )
    add_tables(result)  # tables of the run that have been moved, --json and --debug
    return result


def _finish(parsed: Any) -> int:
    """Complete the run that the parsed command line names, print its size and checksum, and return
    the exit code.
    """
    refuse_address("DIR", parsed.folder, takes_stores=True)
    folder = open_store(parsed.folder)
    table_format = getattr(parsed, "table", None)
    if table_format is not None:
        refuse_without_packages(table_format)
    try:
        manifest, was_finished = finish_run(folder, moved_tables(parsed))
    except IncompleteError as error:
        say(f"not complete: {error}")
        return EXIT_INCOMPLETE

    # What ``--json`` prints.
    facts = {
        "output": parsed.folder,
        "status": manifest["status"],
        "sources": manifest["sources"],
        "rows": sum(part["rows"] for part in manifest["parts"]),
        "bytes": sum(part["bytes"] for part in manifest["parts"]),
        "parts": len(manifest["parts"]),
        "digest": manifest["digest"],
        "was_finished": was_finished,
        **read_estimate(manifest),
    }
    traffic = traffic_of_run(checked_settings(manifest["settings"]), manifest)
    if traffic["requests"]:
        facts["store"] = traffic
    if table_format is not None:
        was_there = register(folder, manifest, table_format)
        address = table_address(folder, table_format)
        facts["table"] = {"format": table_format, "address": address, "was_there": was_there}

    if getattr(parsed, "json", False):
        show(json.dumps(facts))
    else:
        show(*_summary(facts))
    return 0


def _summary(facts: dict[str, Any]) -> list[str]:
    """Return the facts of a finished run, as ``--json`` prints them, as lines for people."""
    before = ", was finished before" if facts["was_finished"] else ""
    size = f"{several(facts['parts'], 'part')}, {in_units(facts['bytes'])}"
    lines = [
        f"{several(facts['sources'], 'source')}, {several(facts['rows'], 'row')}{before}",
        f"results: {facts['output']} ({size})",
        *estimate_lines(facts),
    ]
    if "store" in facts:
        lines.append(f"store: {traffic_text(facts['store'])}")
    if "table" in facts:
        table = facts["table"]
        there = ", was there before" if table["was_there"] else ""
        lines.append(f"table: {table['format']}, {table['address']}{there}")
    return [*lines, f"digest: {facts['digest']}"]


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
