"""Verify an existing output from its files and the edge list: ``python -m pipelines.verify DIR
EDGES``.

Manifest and part files are compared with each other and with the edge list. Every distance is
verified by a certificate, or by another traversal if rows were omitted.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kepler_traverse.errors import InputError, OutputError, several
from kepler_traverse.graph import Graph
from kepler_traverse.graph.closed import where_paths_begin
from kepler_traverse.kinds.question import Question, digest_of_ids
from kepler_traverse.runtime.regular_files import irregular, size_and_digest
from kepler_traverse.search.exact import describe_distances

from .batch_sources import add_tables, moved_tables, run_program
from .cli import signals
from .cli.command_line import Once, OnceParser
from .cli.options import SETTINGS, Settings
from .cli.settings import checked_settings, refuse_address
from .cli.terminal import called_as, show
from .output.layout import PARTITION_NAME
from .output.load_tables import LOAD_FACTS, read_facts
from .output.manifest_types import DEFAULTS, FACTS, Identity, Manifest, TableEntry
from .output.rows import get_names
from .output.run_folder import (
    MANIFEST,
    SUCCESS,
    compute_digest,
    compute_fingerprint,
    mark_fits,
    read_layout,
    read_manifest,
    tables_in,
)
from .output.store import Store, open_store
from .output.tables import wrong_tables
from .run.answered_tables import Make, answered_tables, differing_table, tables_of_graph
from .run.prepare import choose_sources
from .run.question import limit_of_settings, read_question
from .run.reading import read_edge_list
from .run.source_columns import by_partition
from .verification.part_checks import Findings, Part, Prover, can_certify
from .verification.recompute import RecomputedPart, Retraversal

EXIT_WRONG = 5

_EPILOG = """\
exit codes: 0 everything is verified, 1 unexpected error, 2 bad usage or input (no such folder, another edge
list), 5 faults were found and listed, 130 interrupted
"""


def main(argv: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_program(parser, _verify, argv)


def _verify(parsed: Any) -> int:
    """Verify the output that the parsed command line names, print what was found, and return the
    exit code.
    """
    started = time.perf_counter()
    refuse_address("DIR", parsed.folder, takes_stores=True)
    findings = prove_output(
        parsed.folder, parsed.edges, getattr(parsed, "device", "auto"), **moved_tables(parsed)
    )
    _show(parsed.folder, findings, time.perf_counter() - started, getattr(parsed, "json", False))
    return EXIT_WRONG if findings.faults else 0


def parser() -> OnceParser:
    """Return the parser of the command line."""
    result = OnceParser(
        prog=called_as("verify"),
        description=__doc__.partition("\n")[0].partition(":")[0] + ".",
        epilog=_EPILOG,
    )
    result.add_argument("folder", metavar="DIR", help="output folder of a run")
    result.add_argument(
        "edges",
        metavar="EDGES",
        nargs="+",
        help="files of the edge list of that run, at their current paths",
    )
    result.add_argument(
        "--device",
        action=Once,
        choices=("auto", "cpu", "cuda"),
        help="device that runs the checks; auto uses a GPU if one is available (default: auto)",
    )
    add_tables(result)
    return result


def _show(folder: Path, findings: Findings, seconds: float, is_json: bool) -> None:
    """Print the faults and what was proven, as lines or, if ``is_json``, as one JSON object.

    ``seconds``: of the whole verification.
    """
    if is_json:
        show(json.dumps(findings.as_dict() | {"seconds": round(seconds, 3)}))
        return
    # A line per fault that is listed, and the number of the others.
    lines = [f"{fault.kind}: {fault.file}: {fault.message}" for fault in findings.faults]
    if findings.unlisted:
        lines.append(f"and {findings.unlisted} more")
    # The verdict, with the number of sources that each method has verified.
    methods = ", ".join(f"{count} {name}" for name, count in findings.proven.items()) or "none"
    extent = (
        f"{several(findings.sources, 'source')}, "
        f"{several(findings.rows, 'row')} in {seconds:.1f} s; methods: {methods}"
    )
    verdict = "verified"
    if findings.faults:
        verdict = f"WRONG: {several(len(findings.faults) + findings.unlisted, 'fault')}"
    show(*lines, f"{folder}: {verdict} ({extent})")


def prove_output(
    folder: str | os.PathLike[str], edges: list[str], device: Any = "auto", **tables: Any
) -> Findings:
    """Check an output folder and verify every result in it.

    Parameters
    ----------
    folder : str or path
        Output folder of a run, or its URL.
    edges : list of str
        Present paths of the edge list of the run.
    device : str
        "cpu", "cuda" or "auto": where the checks run.
    **tables
        Present paths of the tables that were given to the run, by their settings (``pairs``,
        ``sources``, ``targets``).

    Returns
    -------
    Findings
        The faults, and how many sources were verified by which method.

    Raises
    ------
    InputError
        The folder is not an output of this job, or the edge list is not that of the run.
    """
    # The manifest and the names of files, which need no edge list.
    findings = Findings()
    store = open_store(folder)
    manifest = _read_consistent(store, findings)
    if manifest is None:
        return findings
    _check_manifest(store, manifest, findings)

    # The graph and the question of the run, read again.
    settings = replace(Settings(**manifest["settings"]), edges=edges, **tables)
    graph = _read_graph(manifest, replace(settings, device=device), findings)
    if graph is None:
        return findings
    identity = manifest["identity"]
    _check_graph_facts(manifest, graph, findings)
    question = read_question(graph, settings, identity)
    if settings.all_sources:
        _check_all_sources(graph, question, identity, findings)
    if (settings.partition_by is not None) != ("partitions" in identity):
        findings.add(
            "manifest", MANIFEST, "its settings and its identity do not have the same partitions"
        )
    elif settings.partition_by is not None:
        _refuse_other_partitions(graph, settings, identity)

    # Every result in the parts.
    # A ``Prover`` certifies the distances of the files; a ``Retraversal`` computes the results
    # again, and ``RecomputedPart`` compares them with the files.
    prover: Any
    if can_certify(graph, question):
        prover = Prover(graph, question, findings)
        part_class = Part
    else:  # certificates need rows that were left out
        prover = Retraversal(graph, question, identity["batch_size"], findings)
        part_class = RecomputedPart
    layout = read_layout(manifest)
    entries = {entry["file"]: entry for entry in manifest["parts"]}  # each file once
    for name, entry in entries.items():
        signals.check()
        if layout.has(name):  # any other is a fault already
            with store.local([name]) as local_folder:
                part_class(local_folder / name, entry, layout, prover, findings).check()

    # The tables beside the parts, which are made of them.
    if manifest["status"] == "done" and not findings.faults:
        makers = answered_tables(settings)
        for name, make in tables_of_graph(settings).items():
            makers[name] = lambda _parts, make=make: [make(graph)]  # type: ignore[misc]
        _check_tables(store, manifest, makers, findings)
    # Folders that have a log of Delta Lake or Iceberg over the parts.
    for log_folder, fault in wrong_tables(store, manifest).items():
        findings.add("table", log_folder, fault)

    # Whether each source was verified. ``finalize`` certifies the sources that still wait for
    # others, with which they would be certified at once.
    prover.finalize()
    n_proven = sum(findings.proven.values())
    if not findings.faults and n_proven != manifest["sources"]:
        findings.add(
            "incomplete",
            MANIFEST,
            f"{n_proven} of the {manifest['sources']} sources of the run are verified",
        )
    return findings


def _check_all_sources(
    graph: Graph, question: Question, identity: Identity, findings: Findings
) -> None:
    """Check that the sources of a run are all vertices, or the sample that it draws of them; add a
    fault to ``findings`` otherwise.

    ``identity`` has the digest of their ids.
    """
    # vertex numbers of the sample from which betweenness is estimated; None for other results
    sources = getattr(question.options, "sources", None)
    name = "the sample that its settings draw"
    if sources is None:
        sources = where_paths_begin(graph)
        name = "all vertices"
    if digest_of_ids(get_names(graph, sources)) != identity["sources"]:
        findings.add("sources", MANIFEST, f"the sources of the run are not {name}")


def _refuse_other_partitions(graph: Graph, settings: Settings, identity: Identity) -> None:
    """Raise InputError if the table of sources, read again, gives other partitions than the run
    had.

    A partition is the sources of one value of a column, whose parts are in one folder.
    """
    # ``partitions`` has the number of sources by the name of each folder, and ``numbers`` the
    # sources in the order of the folders.
    sources, _ = choose_sources(graph, settings)
    numbers, partitions = by_partition(graph, settings, sources)
    is_of_run = digest_of_ids(get_names(graph, numbers)) == identity["sources"]
    if not is_of_run or [*partitions.items()] != [*identity["partitions"].items()]:
        raise InputError(
            f"{settings.sources}: these are not the partitions of the "
            "run; give its table by --sources"
        )


def _read_consistent(store: Store, findings: Findings) -> Manifest | None:
    """Return the manifest, in which settings that it lacks have their defaults; if it contradicts
    itself, add a fault to ``findings`` and return None.

    Raises OutputError: the manifest is missing, cannot be read, or does not fit its schema.
    """
    try:
        names = store.names()
    except OSError as error:
        raise OutputError(f"{store}: the folder cannot be read: {error.strerror}") from None
    if not (names or store.path.exists()):
        raise OutputError(f"{store}: no such folder")
    if MANIFEST not in names:
        raise OutputError(
            f"{store}: the folder holds no {MANIFEST}, so it is no output of this job"
        )

    # ``read_manifest`` raises OutputError for a manifest of another program or version, and
    # ValueError for a damaged one.
    try:
        manifest = read_manifest(store)
        settings = checked_settings(manifest["settings"])
        contradiction = _find_contradiction(manifest, settings)
    except OutputError:
        raise
    except ValueError as error:
        raise OutputError(
            f"{store}/{MANIFEST}: the manifest is damaged ({error}), so nothing can be verified"
        ) from None
    if contradiction:
        findings.add("manifest", MANIFEST, f"it is damaged ({contradiction})")
        return None
    manifest["settings"] = asdict(settings)
    return manifest


def _find_contradiction(manifest: Manifest, settings: Settings) -> str:
    """Describe where the identity in the manifest of a run differs from its settings; ``""`` if
    nowhere.

    Settings that name files cannot be compared: the identity has digests of what was read.
    """
    identity = manifest["identity"]
    values = asdict(settings) | {"limit": limit_of_settings(settings)}
    # Keys that each identity has, and keys that it has only if the value is not the default.
    defaults = dict.fromkeys(("algorithm", "result", "certify", "limit")) | DEFAULTS
    for key, default in defaults.items():
        if key in FACTS:  # the identity has a digest, which is compared when the file is read again
            continue
        name = SETTINGS.get(key, key)  # of the setting, where it is called otherwise
        recorded = identity.get(key, default)
        if values.get(name) != recorded:
            return f"its settings have {name} {values.get(name)!r}, and its identity {recorded!r}"
    return ""


def _check_manifest(store: Store, manifest: Manifest, findings: Findings) -> None:
    """Check what does not need the edge list: completeness of the run, and consistency of manifest
    and folder. Faults are added to ``findings``, here and in the functions below.
    """
    _check_completeness(store, manifest, findings)
    _check_identity(manifest, findings)
    if manifest["status"] == "done":
        _check_sums(manifest, findings)
    _check_names(store, manifest, findings)


def _check_completeness(store: Store, manifest: Manifest, findings: Findings) -> None:
    """Check that the run has ended, and that ``_SUCCESS`` has the checksum of the manifest."""
    if manifest["status"] != "done" or SUCCESS not in store.names():
        n_computed = sum(len(part["sources"]) for part in manifest["parts"])
        findings.add(
            "incomplete",
            MANIFEST,
            f"the run is not complete: {n_computed} of {manifest['sources']} sources are computed",
        )
    elif not mark_fits(store):
        findings.add("manifest", MANIFEST, f"it is not the one that {SUCCESS} was written for")


def _check_identity(manifest: Manifest, findings: Findings) -> None:
    """Check that facts which the manifest has twice are the same in both places."""
    identity = manifest["identity"]
    for fact, recorded, expected in [
        ("fingerprint", manifest["fingerprint"], compute_fingerprint(identity)),
        ("algorithm", manifest["algorithm"], identity["algorithm"]),
        ("result", manifest["result"], identity["result"]),
        ("graph", manifest["graph"]["fingerprint"], identity["graph"]),
    ]:
        if recorded != expected:
            findings.add(
                "manifest",
                MANIFEST,
                f"its {fact} is {recorded}, which the rest of it contradicts ({expected})",
            )


def _check_sums(manifest: Manifest, findings: Findings) -> None:
    """Check the digest, the sources and the counts of a run that has ended against its parts."""
    # What the parts have.
    identity = manifest["identity"]
    parts = manifest["parts"]
    sources = [source for part in parts for source in part["sources"]]
    digest = compute_digest(manifest["graph"]["fingerprint"], parts, identity["result"])

    if manifest["digest"] != digest:
        findings.add(
            "manifest",
            MANIFEST,
            f"its digest is {manifest['digest']}, that of its parts is {digest}",
        )
    if digest_of_ids(sources) != identity["sources"]:
        findings.add(
            "sources",
            MANIFEST,
            "the sources of its parts are not those of the run, in that order",
        )
    if manifest["batches"] != read_layout(manifest).n_parts:
        batches = f"{manifest['batches']} batches of {identity['batch_size']} sources"
        sources_of_run = f"{manifest['sources']} sources"
        findings.add("manifest", MANIFEST, f"{batches} are not those of {sources_of_run}")
    if len(parts) != manifest["batches"] or len(sources) != manifest["sources"]:
        counts = f"{len(parts)} parts with {len(sources)} sources"
        findings.add(
            "manifest",
            MANIFEST,
            f"{counts}, not {manifest['batches']} with {manifest['sources']}",
        )


def _check_names(store: Store, manifest: Manifest, findings: Findings) -> None:
    """Check that the folder has the parts that the manifest lists, and no others."""
    layout = read_layout(manifest)
    if store.is_local:
        for name in filter(PARTITION_NAME.fullmatch, sorted(store.names())):
            kind = irregular(store.path / name)  # what it is, if no file
            if kind != "a folder":
                findings.add("damaged part", name, f"it is {kind or 'a file'} and not a folder")

    # Files that readers of the folder take for parts: others begin with a dot or an underscore.
    # ``versions`` has the names of all files, also of those in partitions.
    listed = Counter(part["file"] for part in manifest["parts"])
    on_disk = {
        name
        for name in store.versions()
        if not name.startswith((".", "_")) and not PARTITION_NAME.fullmatch(name)
    }
    for name, count in listed.items():
        if count > 1:
            findings.add("manifest", MANIFEST, f"{name} is listed {count} times")
        if name not in on_disk:
            findings.add("missing part", name, "the file does not exist")
    for name in sorted(on_disk | listed.keys()):
        if name not in listed or not layout.has(name):
            findings.add("extra part", name, "the manifest lists no such part of the run")


def _check_graph_facts(manifest: Manifest, graph: Graph, findings: Findings) -> None:
    """Compare what the manifest says of the graph, and of results in general, with the graph that
    was read again. A key that the manifest lacks is not compared.
    """
    algorithm = manifest["identity"]["algorithm"]
    # The keys of the manifest, and those of its entry of the graph with a prefix.
    recorded: dict[str, Any] = {**manifest}
    for key, value in manifest["graph"].items():
        recorded[f"graph.{key}"] = value
    expected: dict[str, Any] = {
        "graph.vertices": graph.n_vertices,
        "graph.stored_edges": graph.n_edges,
        "graph.directed": graph.directed,
        "distances": describe_distances(graph, algorithm),
        "direction": manifest["settings"]["direction"],
    }
    if manifest["status"] == "done":
        expected["failed"] = []
    for key, value in expected.items():
        if key in recorded and recorded[key] != value:
            text = str(recorded[key])[:100]
            findings.add(
                "manifest",
                MANIFEST,
                f"its {key} is {text!r}, and that of the run is {str(value)!r}",
            )


def _check_tables(
    store: Store, manifest: Manifest, makers: dict[str, Make], findings: Findings
) -> None:
    """Check the tables beside the parts: those of the manifest, and no others.

    ``makers``: the functions that make the tables of the run from its parts, by their names.
    """
    listed = {entry["file"]: entry for entry in manifest["tables"]}
    parts = [entry["file"] for entry in manifest["parts"]]
    # Files of an object store are copied to this machine, but only if there are tables to compare.
    needed = [*makers, *parts] if makers else []
    with store.local(needed) as folder:
        paths = [folder / part for part in parts]
        for name in sorted(makers | listed.keys() | tables_in(store.names())):
            if name not in makers:
                findings.add("table", name, "it is no table of the run")
            elif name not in listed:
                findings.add("table", name, "the manifest lists no such table")
            else:
                fault = differing_table(folder / name, makers[name], paths)
                fault = fault or _describe_wrong_entry(folder / name, listed[name])
                if fault:
                    findings.add("table", name, fault)


def _describe_wrong_entry(path: Path, entry: TableEntry) -> str:
    """Describe how the entry of the manifest for a table differs from the table; ``""`` if it does
    not.
    """
    if size_and_digest(path) != (entry["bytes"], entry["sha256"]):
        return "its bytes are not those that the manifest names"
    facts = {key: value for key, value in entry.items() if key in LOAD_FACTS}
    if read_facts(pq.read_schema(path)) != facts:
        return (
            "the manifest has other pairs without a path, another estimate, or other busiest rows"
        )
    return ""


def _read_graph(manifest: Manifest, settings: Settings, findings: Findings) -> Graph | None:
    """Return the graph, read again with the settings of the run.

    If it is another graph than the run's, InputError is raised, as the edge list is then the wrong
    one. But if the manifest has faults already, its fingerprint may be wrong, too: then a fault is
    added, and None is returned.
    """
    if settings.kind.of_labels:
        settings = replace(settings, device="cpu")  # which builds labels
    graph = read_edge_list(settings)
    if graph.fingerprint == manifest["identity"]["graph"]:
        return graph
    if not findings.faults:
        raise InputError(
            f"{', '.join(settings.edges)}: this is not the edge list of the run: read as its manifest says, the graph has "
            "another fingerprint; give the files that the run read"
        )
    findings.add("graph", MANIFEST, "the graph that it names is not that of the edge list given")
    return None


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
