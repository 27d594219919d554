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
    """Return the command line."""
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
    add_tables(result)
    return result


def _finish(given: Any) -> int:
    refuse_address("DIR", given.folder, takes_stores=True)
    folder = open_store(given.folder)
    table = getattr(given, "table", None)
    if table is not None:
        refuse_without_packages(table)
    try:
        manifest, before = finish_run(folder, moved_tables(given))
    except IncompleteError as error:
        say(f"not complete: {error}")
        return EXIT_INCOMPLETE
    store = traffic_of_run(checked_settings(manifest["settings"]), manifest)
    rows, size = (sum(part[key] for part in manifest["parts"]) for key in ("rows", "bytes"))
    facts = {
        "output": given.folder,
        "status": manifest["status"],
        "sources": manifest["sources"],
        "rows": rows,
    }
    facts |= {
        "bytes": size,
        "parts": len(manifest["parts"]),
        "digest": manifest["digest"],
        "was_finished": before,
    }
    facts |= read_estimate(manifest) | ({"store": store} if store["requests"] else {})
    lines = [
        *estimate_lines(facts),
        *([f"store: {traffic_text(store)}"] if store["requests"] else []),
    ]
    if table is not None:
        was_there = register(folder, manifest, table)
        facts |= {
            "table": {
                "format": table,
                "address": table_address(folder, table),
                "was_there": was_there,
            }
        }
        lines.append(
            f"table: {table}, {table_address(folder, table)}"
            + (", was there before" if was_there else "")
        )
    if getattr(given, "json", False):
        show(json.dumps(facts))
        return 0
    show(
        f"{several(manifest['sources'], 'source')}, {several(rows, 'row')}"
        + (", was finished before" if before else ""),
        f"results: {given.folder} ({several(len(manifest['parts']), 'part')}, {in_units(size)})",
        *lines,
        f"digest: {manifest['digest']}",
    )
    return 0


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
