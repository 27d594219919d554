"""Complete a run whose shards have ended: ``python -m pipelines.finish DIR``.

All parts are compared with what the shards have recorded. Then the log of the run is closed, and tables, manifest and
``_SUCCESS`` are written. Two at once write the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from kepler_traverse.errors import OutputError, several
from kepler_traverse.runtime.display import in_units
from kepler_traverse.runtime.regular_files import size_and_digest

from .batch_sources import EXIT_INTERRUPTED, report_error
from .cli import signals
from .cli.options import Once, OnceParser, Settings
from .cli.settings import checked_settings, refuse_address
from .cli.terminal import called_as, say, show
from .monitoring.html_report import page_of
from .output.commits import CommitLog
from .output.manifest_types import Manifest, PartEntry
from .output.part_file import part_name
from .output.run_folder import (
    LEFT_BY_SHARDS,
    LOCK,
    MANIFEST,
    REPORT,
    OutputFolder,
    check_folder,
    mark_fits,
    refuse_another_run,
    sweep,
    writing_to,
)
from .output.store import LocalStore
from .run.answered_tables import answered_tables, tables_of, tables_of_graph

EXIT_INCOMPLETE = 3
_LISTED = 5

_EPILOG = """\
exit codes: 0 the run is complete, also if it was before, 1 unexpected error, 2 bad usage or no such run, 3 parts are
missing or damaged, or sources failed: run their shards again, 130 interrupted
"""


class IncompleteError(OutputError):
    """The run lacks parts."""


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    argv = sys.argv[1:] if argv is None else argv
    try:
        if "-h" in argv or "--help" in argv:
            parser().print_help()
            return 0
        given = parser().parse_args(argv)
        refuse_address("DIR", given.folder)
        tables = {key: getattr(given, key) for key in ("pairs", "sources", "targets") if hasattr(given, key)}
        manifest, before = finish_run(Path(given.folder), tables)
        rows, size = (sum(part[key] for part in manifest["parts"]) for key in ("rows", "bytes"))
        facts = {"output": given.folder, "status": manifest["status"], "sources": manifest["sources"], "rows": rows}
        facts |= {"bytes": size, "parts": len(manifest["parts"]), "digest": manifest["digest"], "was_finished": before}
        if getattr(given, "json", False):
            show(json.dumps(facts))
            return 0
        show(
            f"{several(manifest['sources'], 'source')}, {several(rows, 'row')}"
            + (", was finished before" if before else ""),
            f"results: {given.folder} ({several(len(manifest['parts']), 'part')}, {in_units(size)})",
            f"digest: {manifest['digest']}",
        )
        return 0
    except KeyboardInterrupt:
        say("interrupted; run it again")
        return EXIT_INTERRUPTED
    except IncompleteError as error:
        say(f"not complete: {error}")
        return EXIT_INCOMPLETE
    except Exception as error:
        return report_error(error, debug="--debug" in argv)


def parser() -> OnceParser:
    """Return the command line."""
    result = OnceParser(
        prog=called_as("finish"), description=__doc__.partition("\n")[0].partition(":")[0] + ".", epilog=_EPILOG
    )
    result.add_argument("folder", metavar="DIR", help="output folder of a run in shards (--shard)")
    for name, what in (
        ("pairs", "table of pairs"),
        ("sources", "table of the sources"),
        ("targets", "table of the targets"),
    ):
        result.add_argument(f"--{name}", action=Once, metavar="FILE", help=f"{what} of the run, if it was moved")
    result.add_argument("--json", action=Once, nargs=0, help="print one JSON object on stdout and nothing else")
    result.add_argument("--debug", action=Once, nargs=0, help="show the traceback of an error")
    return result


def finish_run(path: Path, tables: dict[str, Any] | None = None) -> tuple[Manifest, bool]:
    """Complete a run in shards.

    Parameters
    ----------
    path : Path
    tables : dict of str to str, optional
        Paths of given tables that were moved, by their settings.

    Returns
    -------
    manifest : Manifest
    was_finished : bool
        Whether the run was complete before, or another call has closed it.

    Raises
    ------
    IncompleteError
        Parts are missing, damaged or not recorded, or sources failed.
    OutputError
        There is no such run, or the folder cannot be written to.
    InputError
        A given table cannot be read, or has changed.
    """
    given, checked, log = tables or {}, set[str](), CommitLog(LocalStore(path))
    manifest, is_first = _read(path, log), False
    if manifest["status"] == "done" and mark_fits(path):
        return manifest, True
    if (path / LOCK).exists():
        raise OutputError(f"{path}: a run without --shard writes to the folder, or was stopped; finish it with --resume")
    while True:
        settings = replace(checked_settings(manifest["settings"]), **given)
        refuse_another_run(path, manifest, manifest["identity"], manifest["batches"], tables_of(settings))
        _check_parts(path, manifest, checked)
        folder = OutputFolder(path)
        folder.manifest = manifest
        if log.is_closed or manifest["status"] == "done":  # by this call, or by one that may have been stopped since
            break
        _put_tables(folder, settings)
        # If another call has completed the run meanwhile, the log is gone.
        with writing_to(path), contextlib.suppress(FileNotFoundError):
            is_first = log.close(manifest["tables"])
        manifest = _read(path, log)  # with what a shard has committed meanwhile
    folder.complete()
    if settings.report:
        folder.put(REPORT, page_of(manifest, f"{called_as('finish')} {path}").encode())
    with writing_to(path):
        sweep(path, LEFT_BY_SHARDS)
    return manifest, not is_first


def _read(path: Path, log: CommitLog) -> Manifest:
    for is_last in (False, True):
        try:
            manifest = check_folder(path, resume=True, log=log)
        except OutputError:
            if is_last:
                raise  # else another call may just have completed the run, and deleted its log
        else:
            if manifest is None:
                raise OutputError(f"{path}: the folder holds no {MANIFEST}, so there is no run to finish")
            return manifest
    raise AssertionError


def _check_parts(path: Path, manifest: Manifest, checked: set[str]) -> None:
    """Raise IncompleteError unless all parts are there as they were recorded; ``checked`` are the SHA-256 of known ones."""
    recorded = {part["file"]: part for part in manifest["parts"]}
    names = [part_name(number, manifest["result"]) for number in range(manifest["batches"])]
    new = [recorded[name] for name in names if name in recorded and recorded[name]["sha256"] not in checked]
    with ThreadPoolExecutor() as pool:
        damaged = [
            part["file"]
            for part, whole in zip(new, pool.map(lambda each: _is_whole(path, each), new), strict=True)
            if not whole
        ]
    failed = Counter(failure["error"] for failure in manifest["failed"] for _ in failure["sources"])
    faults = [
        _listed("is missing", "are missing", [name for name in names if name not in recorded]),
        _listed("is damaged", "are damaged", damaged),
        *(f"{several(count, 'source')} failed: {error}" for error, count in failed.most_common(_LISTED)),
    ]
    if any(faults):
        raise IncompleteError(f"{path}: {'; '.join(filter(None, faults))}; run their shards again, and then finish")
    sources = [source for name in names for source in recorded[name]["sources"]]
    if hashlib.sha256(json.dumps(sources).encode()).hexdigest() != manifest["identity"]["sources"]:
        raise OutputError(f"{path}: the recorded parts do not hold the sources of the run; take a new folder")
    checked.update(part["sha256"] for part in new)


def _is_whole(path: Path, part: PartEntry) -> bool:
    try:
        return size_and_digest(path / part["file"]) == (part["bytes"], part["sha256"])
    except OSError:
        return False


def _listed(one: str, many: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    return f"{several(len(names), 'part')} {one if len(names) == 1 else many} ({shown})" if names else ""


def _put_tables(folder: OutputFolder, settings: Settings) -> None:
    """Write the tables that are made of all parts; the vertices are written by the shards."""
    path, folder.manifest["tables"] = folder.path, []
    for name in tables_of_graph(settings):
        size, digest = size_and_digest(path / name)
        folder.manifest["tables"].append({"file": name, "bytes": size, "sha256": digest})
    for name, make in answered_tables(settings).items():
        folder.put_table(name, make([path / part["file"] for part in folder.manifest["parts"]]))


if __name__ == "__main__":
    signals.listen()
    sys.exit(main())
