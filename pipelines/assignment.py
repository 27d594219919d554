"""Flows of trips on congested links: ``kepler-traverse run LINKS --result assignment --trips TRIPS
--output DIR``.

Distributes the trips over the paths of the network until the relative gap is met, and proves the
gap. Writes links.parquet (flow, time and cost of each link), with --skims skims.parquet, with
--select-link selected_pairs.parquet, and a manifest. --resume goes on after an interruption, and ends
with the same bits. --verify proves an output from its files, the links and the trips.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kepler_traverse.kinds.constraints import (
    Constraint,
    GivenOptions,
    not_both,
    refuse,
    violations,
)

from .batch_sources import run_program
from .cli import signals
from .cli.command_line import Once, OnceParser
from .cli.constraints import only_with
from .cli.terminal import called_as, say, show
from .cli.values import integer, number

SUCCESS = "_SUCCESS"
MANIFEST = "_manifest.json"
STATE = "_state.npz"
LINKS = "links.parquet"
SKIMS = "skims.parquet"
SELECTED = "selected_pairs.parquet"
EXIT_NOT_MET = 3
EXIT_WRONG = 5
_MAX_MANIFEST_BYTES = 1 << 24
_EPILOG = """\
exit codes: 0 done, 1 unexpected error, 2 bad usage or input, 3 the gap was not met in --max-iterations,
5 --verify found a fault, 130 interrupted
"""
_BPR = ("b", "power")  # flags of --cost bpr
_OF_CLASS = ("volume", "value_of_time", "distance_weight")  # flags of a vehicle class
# What the manifest states of a result.
_STATED = (
    "relative_gap",
    "is_converged",
    "total",
    "shortest",
    "objective",
    "average_excess",
    "iterations",
    "shortest_by",
)
# What --verify may be given again: where the files are now, and the device, on each of which the
# bits are the same.
_GIVEN_AGAIN = ("edges", "trips", "classes", "closed", "device")
# Flags that are no settings of a result.
_NOT_OF_RUN = ("output", "resume", "debug", "verify", "device")


# What flags together must be.
ROWS = (
    *(only_with(name, "cost", "bpr") for name in _BPR),
    only_with("alpha", "cost", "conical"),
    *(
        not_both(
            name,
            "classes",
            "{0} does not belong to {classes}, whose table has it",
            "leave {0} out",
        )
        for name in _OF_CLASS
    ),
    *(
        not_both(
            name, "verify", "{0} does not belong to {verify}, which writes nothing", "leave {0} out"
        )
        for name in ("resume", "output")
    ),
    Constraint(
        names=("output", "verify"),
        violated=lambda flags: not (flags.is_given("output") or flags.is_given("verify")),
        why="neither {0} nor {verify} is given",
        remedy="name a folder with one of them",
    ),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_program(parser, _answer, argv, "interrupted; the same command with --resume goes on")


def parser() -> OnceParser:
    """Return the parser of the command line."""
    result = OnceParser(
        prog=called_as("assignment"), description=str(__doc__).partition("\n\n")[2], epilog=_EPILOG
    )

    def add(flag: str, text: str, **facts: Any) -> None:
        """Add a flag with its help."""
        result.add_argument(flag, action=Once, help=text, **facts)

    result.add_argument(
        "edges",
        metavar="LINKS",
        nargs="+",
        help="the table of links: Parquet, CSV with a header, TNTP (.tntp) or a GMNS folder",
    )

    # The output.
    add("--result", "what is written (default: assignment)", choices=("assignment",))
    add(
        "--trips",
        "the table of trips: origin, destination and volume; Parquet, CSV, TNTP or a GMNS folder",
        metavar="FILE",
        required=True,
    )
    add("--output", "folder of the results, new or empty (see --resume)", metavar="DIR")
    add("--resume", "go on with the run in the output folder", nargs=0)
    add("--verify", "prove the results in this folder instead", metavar="DIR")

    # Columns of the links, and costs.
    add("--src", "column of the links with their begin (default: a known name)", metavar="NAME")
    add("--dst", "column of the links with their end", metavar="NAME")
    add(
        "--use",
        "of a GMNS folder: read only the links that this may use by their allowed_uses, such as auto",
        metavar="USE",
    )
    add("--cost", "cost of a link by its flow (default: bpr)", choices=("bpr", "conical"))
    for name, text in (
        ("free-flow-time", "time without flow"),
        ("capacity", "capacity"),
        ("b", "of --cost bpr: factor of the term with the flow"),
        ("power", "of --cost bpr: power of flow / capacity"),
        ("alpha", "of --cost conical: steepness, above 1 (default: 4)"),
    ):
        add(f"--{name}", f"{text}: a column of the links, or one number", metavar="NAME|X")

    # Columns of the trips, and vehicle classes.
    add("--volume", "column of the trips (default: volume)", metavar="NAME")
    add(
        "--value-of-time",
        "units of the column toll per unit of time; without it tolls do not count",
        type=number,
        metavar="X",
    )
    add(
        "--distance-weight", "units of time per unit of the column length", type=number, metavar="X"
    )
    add(
        "--classes",
        "table of several classes, Parquet or CSV: a row each, with the columns volume (a column of the "
        "trips), and, where wanted, value_of_time, toll, distance_weight, length, passenger_cars",
        metavar="FILE",
    )
    add(
        "--closed",
        "vertices through which no path leads, or a file with one id per line, or a Parquet file (default: those "
        "below FIRST THRU NODE of a TNTP file)",
        metavar="ID,ID,...|FILE",
    )

    # How trips are assigned.
    add("--gap", "relative gap to reach (default: 1e-6)", type=number, metavar="X")
    add("--method", "how (default: paths)", choices=("paths", "frank_wolfe"))
    add(
        "--device",
        "where --method frank_wolfe loads trips over a hierarchy (default: cpu); all else is computed on the "
        "CPU, and the manifest says which it was",
        choices=("cpu", "cuda"),
    )
    add("--max-iterations", "most searches (default: 1000)", type=integer, metavar="N")

    # Further tables.
    add(
        "--skims",
        "columns of the links, or time: their sums along the shortest path of each pair",
        metavar="NAME,NAME,...",
    )
    add("--select-link", "rows of the links, from 0: what uses one of them", metavar="N,N,...")
    add("--debug", "show where an unexpected error comes from", nargs=0)
    return result


def _answer(parsed: Any) -> int:
    """Check a parsed command line, and write or verify an output; return the exit code."""
    from kepler_traverse.errors import options_spelled

    # Values by name, and the flags of the command line as it has them, by name.
    flags = {"result": "assignment", "cost": "bpr"} | vars(parsed)
    written = {name: _spelled(name) for name in flags if name in vars(parsed)}
    with options_spelled(_spelled):
        options = GivenOptions(kind=None, algorithm="sssp", written=written, values=flags)
        refuse(violations(options, ROWS))
        if flags.get("verify") is not None:
            return _verify(flags, written)
        return _write(flags)


def _spelled(name: str, value: object = None) -> str:
    """Return a flag, with its value if there is one, as the command line has it."""
    flag = "--" + name.replace("_", "-")
    return flag if value is None else f"{flag} {value}"


def _read_arguments(flags: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Read the files that the flags name; return the table of links, the table of trips, and the
    options of ``assign``.

    ``flags``: values of the command line by the names of its flags, here and in all functions
    below. A flag that is not given may be missing.
    """
    from .run.assignment_tables import read_classes, read_closed, read_links, read_trips

    links = read_links(flags["edges"], (flags.get("src"), flags.get("dst")), flags.get("use"))
    # Options that need other files or a conversion, and then those that are passed on as they are.
    options = {
        "cost": _make_cost_function(flags),
        "classes": read_classes(
            flags.get("classes"), {name: flags[name] for name in _OF_CLASS if name in flags}
        ),
        "closed": read_closed(flags.get("closed"), links),
        "src_column": links.ends[0],
        "dst_column": links.ends[1],
        "select_link": _parse_rows(flags.get("select_link")),
    }
    for name in ("gap", "method", "device", "max_iterations"):
        if flags.get(name) is not None:
            options[name] = flags[name]
    return links.table, read_trips(flags["trips"], links.has_string_ids), options


def _make_cost_function(flags: dict[str, Any]) -> Any:
    """Return the cost function of the flags: the time of a link by its flow.

    Each of its parameters is the name of a column of the links, or one number for all links.
    """
    from kepler_traverse.assignment import BPR, Conical

    parameters = {
        name: _name_or_number(flags[name])
        for name in ("free_flow_time", "capacity", *_BPR, "alpha")
        if flags.get(name) is not None
    }
    if flags["cost"] == "bpr":
        return BPR(**parameters)
    return Conical(**parameters)


def _name_or_number(text: str) -> str | float:
    """Return the number that a text is, or the text: the name of a column."""
    try:
        return number(text)
    except ArgumentTypeError:
        return text


def _parse_rows(text: str | None) -> list[int | None] | None:
    """Return the rows of links, counted from 0, that ``--select-link`` lists; None without it."""
    from kepler_traverse.errors import InputError

    if text is None:
        return None
    try:
        return [integer(row.strip()) for row in text.split(",")]
    except ArgumentTypeError:
        raise InputError(
            f"--select-link {text[:40]!r}: give rows of the links, such as 3,17"
        ) from None


def _write(flags: dict[str, Any]) -> int:
    """Assign the trips, prove the gap, and write the files; return the exit code."""
    import pyarrow.parquet

    from kepler_traverse.assignment import assign
    from kepler_traverse.assignment.cost_functions import LinkTable
    from kepler_traverse.assignment.network import table_columns
    from kepler_traverse.assignment.results import read_skimmed
    from kepler_traverse.runtime.regular_files import written_whole

    # Read, and refuse what is wrong before the trips are assigned.
    folder = Path(flags["output"])
    _check_folder(folder, bool(flags.get("resume")))
    began = time.perf_counter()
    links, trips, options = _read_arguments(flags)
    # Called for its errors alone: a column of --skims may be missing or wrong.
    read_skimmed(LinkTable(table_columns("links", links), len(links)), _skim_names(flags))

    result = assign(links, trips, checkpoint=folder / STATE, progress=_report, **options)
    if flags.get("device") not in (None, result.shortest_on):
        say(f"the CPU found the shortest paths (shortest_by: {result.shortest_by})")
    result.certify()  # raises CertificateError unless the gap is as the result states it

    # The tables, and then the manifest, which has their checksums. Files of an earlier run with
    # other options are deleted first, and so is the mark of success.
    tables = _make_tables(result, flags)
    for name in {SUCCESS, SKIMS, SELECTED} - {*tables}:
        (folder / name).unlink(missing_ok=True)
    for name, table in tables.items():
        with written_whole(folder / name) as partial:
            pyarrow.parquet.write_table(table, partial)
    facts = _make_manifest(result, flags, folder, [*tables, STATE])
    facts["seconds"] = round(time.perf_counter() - began, 3)
    text = json.dumps(facts, indent=2) + "\n"
    with written_whole(folder / MANIFEST) as partial:
        partial.write_text(text, encoding="utf-8")
    show(*text.splitlines())

    if not result.is_converged:
        say(
            f"the relative gap is {result.relative_gap:.2e} after "
            f"{result.iterations} searches; --resume with more --max-iterations goes on"
        )
        return EXIT_NOT_MET
    with written_whole(folder / SUCCESS) as partial:
        partial.touch()
    say(f"relative gap {result.relative_gap:.2e}, proved; flows of the links: {folder / LINKS}")
    return 0


def _check_folder(folder: Path, is_resumed: bool) -> None:
    """Raise OutputError unless the folder is new or empty, or has a run to go on with and
    ``is_resumed``.
    """
    from kepler_traverse.errors import OutputError

    if not folder.exists():
        return
    has_files = not folder.is_dir() or any(folder.iterdir())
    if has_files and not (is_resumed and folder.is_dir()):
        raise OutputError(
            f"--output {str(folder)!r} is not empty; name a new folder, or give --resume"
        )
    if has_files and not (folder / STATE).exists():
        raise OutputError(f"--output {str(folder)!r} has no {STATE}: it is no run to resume")


def _report(iterations: int, gap: float) -> None:
    """Print the progress of an assignment: the searches so far, and the relative gap."""
    say(f"search {iterations}: relative gap {gap:.2e}")


def _skim_names(flags: dict[str, Any]) -> list[str]:
    """Return the columns that ``--skims`` lists."""
    text = flags.get("skims")
    return [] if text is None else [name.strip() for name in text.split(",")]


def _make_tables(result: Any, flags: dict[str, Any]) -> dict[str, Any]:
    """Return the tables of an output by the names of their files; ``result`` is what ``assign``
    returns, and ``flags`` say which tables are asked for.
    """
    from kepler_traverse.search.frames import arrow_table

    tables = {LINKS: arrow_table(result.link_columns())}
    if flags.get("skims") is not None:
        tables[SKIMS] = arrow_table(result.skim_columns(_skim_names(flags)))
    if result.selected is not None:
        tables[SELECTED] = arrow_table(result.selected_columns())
    return tables


def _make_manifest(
    result: Any, flags: dict[str, Any], folder: Path, files: list[str]
) -> dict[str, Any]:
    """Return the manifest of an output: settings, results, and the checksums of ``files``, names
    in its folder. ``result`` is what ``assign`` returns.
    """
    from kepler_traverse import __version__
    from kepler_traverse.runtime.regular_files import compute_digests

    settings = {name: value for name, value in flags.items() if name not in _NOT_OF_RUN}
    return {
        "result": "assignment",
        "version": __version__,
        "settings": settings,
        **{name: getattr(result, name) for name in _STATED},
        "shortest_on": result.shortest_on,  # device that found the shortest paths
        "files": compute_digests(folder, files),
    }


def _verify(flags: dict[str, Any], written: dict[str, str]) -> int:
    """Verify an output and print its faults; return the exit code.

    ``written``: the flags of the command line as it has them, by name.
    """
    faults = _find_faults(flags, Path(flags["verify"]), written)
    show(*faults)
    show(f"{flags['verify']}: {'WRONG' if faults else 'verified'}")
    return EXIT_WRONG if faults else 0


def _find_faults(flags: dict[str, Any], folder: Path, written: dict[str, str]) -> list[str]:
    """Return a list of what is wrong with the output in ``folder``; empty if nothing is.

    A fault is a file that is not the one of the manifest, flows that do not follow from the paths
    or the last step, or a gap that is not the one stated. ``written``: the flags of the command
    line as it has them, by name. Raises InputError: the output cannot be read, or a flag differs
    from the settings of the run.
    """
    from kepler_traverse.assignment import assign
    from kepler_traverse.assignment.checkpoints import CheckpointError
    from kepler_traverse.errors import CertificateError, InputError
    from kepler_traverse.runtime.regular_files import differing_file, read_json, read_regular

    # The manifest, and the files that it lists.
    try:
        facts: Any = read_json(read_regular(folder / MANIFEST, _MAX_MANIFEST_BYTES))
        if facts["result"] != "assignment":
            raise ValueError("it is of another result")
        missing = [name for name in facts["files"] if not (folder / name).exists()]
        if missing:
            return [f"{name} is missing" for name in missing]
        differing = differing_file(folder, facts["files"])
        settings = dict(facts["settings"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}: its files cannot be read: {error}") from None
    if differing:
        return [differing]

    # The assignment of the run again, as its settings say, from the state that it has ended with.
    for name, option in written.items():
        if name not in (*_GIVEN_AGAIN, *_NOT_OF_RUN) and flags[name] != settings.get(name):
            raise InputError(
                f"{option} {flags[name]} is not what {folder} was made with; leave it out, as "
                "--verify takes the settings of the run"
            )
    moved = {name: flags[name] for name in _GIVEN_AGAIN if flags.get(name) is not None}
    links, trips, options = _read_arguments(settings | moved)
    options["max_iterations"] = facts["iterations"]
    with tempfile.TemporaryDirectory() as temporary:
        state = Path(temporary) / STATE
        shutil.copyfile(folder / STATE, state)
        try:
            result = assign(links, trips, checkpoint=state, **options)
            result.certify()
        except CertificateError as error:
            return [f"{STATE}: {error}"]
        except CheckpointError:
            return [f"{STATE}: it is damaged, or of other links, trips or settings than these"]
    return [*_wrong_facts(result, facts), *_wrong_tables(result, facts, folder)]


def _wrong_facts(result: Any, facts: dict[str, Any]) -> Iterator[str]:
    """Yield a text for each number of a result that the manifest states wrongly.

    ``result``: what ``assign`` returns now. ``facts``: the content of the manifest.
    """
    for name in _STATED:
        if name == "shortest_by" and name not in facts:  # in outputs of version 0.1.0
            continue
        value = getattr(result, name)
        if value != facts.get(name):
            yield f"{MANIFEST}: {name} is {facts.get(name)}, not {value}"


def _wrong_tables(result: Any, facts: dict[str, Any], folder: Path) -> Iterator[str]:
    """Yield a text for each table that is missing, has other rows than the result, or belongs to
    another run.

    ``result``: what ``assign`` returns now. ``facts``: the content of the manifest in ``folder``.
    """
    import pyarrow.parquet

    tables = _make_tables(result, facts["settings"])
    for name in (SKIMS, SELECTED):
        if name not in tables and (folder / name).exists():
            yield f"{name}: it is of another run, as the settings have none"
    for name, table in tables.items():
        if name not in facts["files"]:
            yield f"{MANIFEST}: {name} is missing"
        elif not pyarrow.parquet.read_table(folder / name).equals(table):
            yield f"{name}: its rows are not those of the flows"


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
