"""The plan of a run, or its summary, on stdout: as text for people, or as JSON."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from kepler_traverse.errors import several
from kepler_traverse.formats.column_names import is_weight_name
from kepler_traverse.graph import BuildReport, Graph
from kepler_traverse.runtime.display import in_units
from kepler_traverse.runtime.object_stores import URL
from kepler_traverse.search.exact import describe_distances

from ..cli.options import COLUMN_ROLES, Settings, flag_text
from ..cli.terminal import show
from ..output.choice_text import describe_choice
from ..output.load_tables import describe_result
from ..output.manifest_types import Manifest

if TYPE_CHECKING:  # these modules import this one
    from ..run.expectation import Expectation
    from ..run.memory_plan import Sizing
    from ..run.prepare import Prepared

_SUMMARY = (
    "algorithm",
    "result",
    "device",
    "strategy",
    "workers",
    "sources",
    "duplicate_sources",
    "batches",
)
_COLUMNS = ("src_column", "dst_column", "weight_column", "oneway_column", "unused_columns")
_MAX_COLUMNS = 20  # column names listed in one line


def show_plan(
    settings: Settings, prepared: Prepared, expect: Callable[[], Expectation | str]
) -> None:
    """Print the plan of the run; ``expect`` is called for what it will take."""
    # as it is before ``expect`` tries some sources
    chosen = _Chosen(prepared.plan.strategy, prepared.plan.why)
    expected = expect()
    if settings.json:
        show(json.dumps(_facts_of_plan(settings, prepared, chosen, expected)))
        return
    lines = _lines_of_plan(settings, prepared, chosen, expected)
    width = max(len(name) for name, _ in lines)
    show(*(f"{name:<{width}}  {text}" for name, text in lines))


class _Chosen(NamedTuple):
    """The strategy of a plan, and why it was chosen."""

    strategy: Any
    why: str


def _facts_of_plan(
    settings: Settings, prepared: Prepared, chosen: _Chosen, expected: Expectation | str
) -> dict[str, Any]:
    """Return what ``--plan --json`` prints."""
    graph = prepared.graph
    plan = prepared.plan
    sizing = prepared.sizing
    facts = {
        "graph": {
            "vertices": graph.n_vertices,
            "stored_edges": graph.n_edges,
            "directed": graph.directed,
            "max_degree": graph.derived.max_degree,
            "built": graph.report.facts(),
        },
        "building": {
            "memory_limit": prepared.build_limit,
            "in_files": graph.report.in_files,
            "stored_before": prepared.reused,
        },
        "algorithm": plan.algorithm,
        "result": settings.result,
        "distances": describe_distances(graph, plan.algorithm),
        "direction": settings.direction,
        "device": chosen.strategy.device,
        "strategy": chosen.strategy.name,
        "sources_at_once": plan.group,
        "why": chosen.why,
        "choice": None if prepared.choice is None else prepared.choice.record,
        "notes": notes_on_edges(settings, graph.report.facts()),
        "sources": prepared.n_sources,
        "duplicate_sources": prepared.duplicates,
        **estimate_of_plan(prepared),
        "expected": _expected_facts(expected),
        **asdict(sizing),
    }
    if _is_in_store(settings):
        facts["store"] = traffic_of_plan(settings, sizing)
    return facts


def _lines_of_plan(
    settings: Settings, prepared: Prepared, chosen: _Chosen, expected: Expectation | str
) -> list[tuple[str, str]]:
    """Return the names and the texts of the lines that ``--plan`` prints."""
    graph = prepared.graph
    built = graph.report
    plan = prepared.plan
    sizing = prepared.sizing
    strategy = chosen.strategy
    size = f"{several(graph.n_vertices, 'vertex')}, {several(graph.n_edges, 'stored edge')}"
    lines = [
        ("graph", f"{size}, {_kind(graph)}"),
        ("degrees", f"at most {graph.derived.max_degree:,}"),
        ("built", f"{several(built.rows, 'row')}; dropped: {_dropped(built)}"),
    ]
    if prepared.build_limit is not None:
        lines.append(("building", _building(settings, prepared)))
    if built.where:
        lines.append(("where", built.where))
    lines.append(("columns", columns_text(built.facts(), settings.columns, settings.along)))
    lines += [("note", note) for note in notes_on_edges(settings, built.facts())]
    lines += [
        ("result", describe_result(settings.result)),
        ("distances", "{type}, {sums}".format(**describe_distances(graph, plan.algorithm))),
    ]
    if settings.direction == "in":
        lines.append(("direction", "in: distances to the sources"))
    how = "chosen for this graph" if settings.strategy == "auto" else "as asked for"
    lines += [
        (
            "strategy",
            (
                f"{strategy.name} for {plan.algorithm} on "
                f"{strategy.device}, {how}: {strategy.rationale}"
            ),
        ),
        ("why", chosen.why),
    ]
    if prepared.choice is not None:
        choice = describe_choice(prepared.choice.record)
        lines.append(("choice", f"{choice}; corrected during the run"))
    lines += _sources_and_batches(settings, prepared)
    threads = f"{sizing.threads} thread{'s' if sizing.threads > 1 else ''}"
    lines.append(("workers", f"{sizing.workers} with {threads} each"))
    lines += [(f"memory: {name}", in_units(nbytes)) for name, nbytes in sizing.memory.items()]
    lines += _writing(sizing)
    lines += [
        ("expected", _expected_text(expected)),
        ("output", f"at most {in_units(sizing.output_bytes)} before compression"),
    ]
    if _is_in_store(settings):
        lines.append(("store", traffic_text(traffic_of_plan(settings, sizing))))
    return lines


def _writing(sizing: Sizing) -> list[tuple[str, str]]:
    """Return what is held of the memory of the host while a GPU searches and parts are written."""
    if not sizing.writing_bytes:
        return []
    threads = several(sizing.writers, "thread")
    text = f"at most {in_units(sizing.writing_bytes)} of the host, by {threads} per worker"
    return [("memory: parts being written", text)]


def _expected_facts(expected: Expectation | str) -> dict[str, Any]:
    if isinstance(expected, str):
        return {"not_known": expected}
    return expected.facts()


def _expected_text(expected: Expectation | str) -> str:
    if isinstance(expected, str):
        return f"not known: {expected}"
    return str(expected)


def _building(settings: Settings, prepared: Prepared) -> str:
    """Return how the graph is built, or that it was stored before."""
    if prepared.reused:
        return f"no more: {settings.graph_cache} has the graph"
    if prepared.graph.report.in_files:
        how = "with edges in files"
    else:
        how = "in memory"
    return f"{how}, with a limit of {in_units(prepared.build_limit or 0)}"


def _is_in_store(settings: Settings) -> bool:
    return settings.output is not None and URL.match(settings.output) is not None


def traffic_of_plan(settings: Settings, sizing: Sizing) -> dict[str, Any]:
    """Return the least number of requests that put the output into its object store, its largest
    size, and their cost.
    """
    # The first manifest, a commit, the one that closes the log, the last manifest and the mark.
    return _with_cost(settings, {"requests": sizing.n_batches + 5, "sent": sizing.output_bytes})


def traffic_of_run(settings: Settings, manifest: Manifest) -> dict[str, Any]:
    """Return the requests of a run to object stores, their bytes and cost, as far as they are
    recorded.
    """
    counted = dict(manifest.get("traffic", {}))
    stored = [(part["stored"], part["bytes"]) for part in manifest["parts"] if "stored" in part]
    received = counted.pop("received", 0)
    sent = counted.pop("sent", 0)
    requests = sum(counted.values()) + sum(put["requests"] for put, _ in stored)
    sent += sum(put["requests"] * size for put, size in stored)
    seconds = round(sum(put["seconds"] for put, _ in stored), 3)
    return _with_cost(
        settings, {"requests": requests, "sent": sent, "received": received, "seconds": seconds}
    )


def _with_cost(settings: Settings, traffic: dict[str, Any]) -> dict[str, Any]:
    """Add the cost of requests and bytes, if the settings name prices."""
    if settings.price_requests is None and settings.price_gb is None:
        return traffic
    cost = traffic["requests"] / 1000 * (settings.price_requests or 0) + traffic["sent"] / 10**9 * (
        settings.price_gb or 0
    )
    return traffic | {"cost": round(cost, 6)}


def traffic_text(traffic: dict[str, Any]) -> str:
    """Return the traffic of a plan, or of a run, in words."""
    requests = several(traffic["requests"], "request")
    sent = in_units(traffic["sent"])
    text = f"at least {requests}, at most {sent} sent"
    if "received" in traffic:
        text = f"{requests}, {sent} sent, {in_units(traffic['received'])} received"
    return text + (f": {traffic['cost']:.4g} at the given prices" if "cost" in traffic else "")


def _dropped(built: BuildReport) -> str:
    """Return how many rows became no edge, and why."""
    loops = f"{built.self_loops:,} self-loops, {built.parallel_edges:,} parallel edges"
    if built.filtered_rows:
        return f"{built.filtered_rows:,} by filters, {loops}"
    return loops


def notes_on_edges(settings: Settings, built: Mapping[str, Any]) -> list[str]:
    """Return what of the edge list may have been meant otherwise: columns that are not used,
    weights that mean "closed", edges that the result leaves out.

    ``built``: the fields of a ``BuildReport``, as a manifest has them.
    """
    of_kind = settings.kind.options_class.notes_on_edges(built)
    return [*built.get("hints", []), *weights_not_used(settings, built), *of_kind]


def weights_not_used(settings: Settings, built: Mapping[str, Any]) -> list[str]:
    """Return which weights bfs ignores, so that hops are not mistaken for distances.

    ``built``: the fields of a ``BuildReport``, as a manifest has them.
    """
    if settings.algorithm != "bfs":
        return []
    notes = []
    if settings.weight_type != "auto":
        notes.append(
            f"bfs counts hops: --weight-type {settings.weight_type} is not "
            "used; --algorithm sssp adds up weights"
        )
    numbers = built.get("unused_numbers", [])
    known = [name for name in numbers if is_weight_name(name)]
    shown = [name for name in known or numbers if name not in (settings.along or ())]
    if shown:
        names = ", ".join(map(repr, shown[:5])) + (", ..." if len(shown) > 5 else "")
        if len(shown) > 1:
            what = f"columns {names} are"
        else:
            what = f"column {names} is"
        flags = f"--algorithm sssp {flag_text('weight_column', shown[0])}"
        notes.append(f"bfs counts hops: {what} not used; {flags} adds up weights")
    return notes


def columns_text(
    built: Mapping[str, Any], columns: Mapping[str, str] | None, along: Sequence[str] | None
) -> str:
    """Return which columns of the edge list are the ends and the weight of an edge, which are added
    up along paths, which are unused, and those of tables.

    ``built``: the fields of a ``BuildReport``, as a manifest has them. ``columns`` (dict of str to
    str or None) and ``along``: the settings.
    """
    if not built.get("src_column"):
        return "not known"  # a manifest of an earlier version lacks them
    weight = built.get("weight_column")
    added_up = list(along or ())
    unused = [name for name in built.get("unused_columns", []) if name not in added_up]
    text = f"{built['src_column']!r} to {built.get('dst_column', '')!r}"
    text += f", weight {weight!r}" if weight else ", no weight"
    back = built.get("reverse_weight_column")
    text += f", of the other direction {back!r}" if back else ""
    text += f", directions {built['oneway_column']!r}" if built.get("oneway_column") else ""
    if added_up:
        text += f"; along paths: {', '.join(map(repr, added_up))}"
    if unused:
        more = ", ..." if len(unused) > _MAX_COLUMNS else ""
        text += f"; not used: {', '.join(map(repr, unused[:_MAX_COLUMNS]))}{more}"
    others = [
        f"{role} {name!r}"
        for role, name in (columns or {}).items()
        if COLUMN_ROLES[role] != "edges"
    ]
    text += f"; of tables: {', '.join(others)}" if others else ""
    return text


def show_summary(
    settings: Settings, manifest: Manifest, computed: int, kept: int, seconds: float
) -> None:
    """Print the summary of a run, which has computed some parts and kept others."""
    facts = _facts_of_run(settings, manifest, computed, kept, seconds)
    if settings.json:
        show(json.dumps(facts))
    else:
        show(*_summary_lines(settings, manifest, facts, seconds), *_end_lines(settings, facts))


def _facts_of_run(
    settings: Settings, manifest: Manifest, computed: int, kept: int, seconds: float
) -> dict[str, Any]:
    """Return the facts that ``--json`` prints."""
    failed = manifest["failed"]
    built = cast("dict[str, Any]", manifest["graph"].get("built", {}))
    # seconds, summed over all workers and over concurrent activities of a worker
    phases: Counter[str] = Counter()
    for part in manifest["parts"]:
        phases.update(part.get("phases", {}))
    facts: dict[str, Any] = {
        "output": settings.output,
        "status": manifest["status"],
        **{key: dict(manifest)[key] for key in _SUMMARY},
        "columns": {key: built.get(key) for key in _COLUMNS},
        "shard": settings.shard,
        "filters": {
            "where": settings.where,
            "only_vertices": settings.only_vertices,
            "filtered_rows": built.get("filtered_rows", 0),
        },
        "computed": computed,
        "kept": kept,
        "failed": failed,
        "rows": sum(part["rows"] for part in manifest["parts"]),
        "bytes": sum(part["bytes"] for part in manifest["parts"]),
        "digest": manifest["digest"],
        "why": describe_choice(manifest.get("choice")),
        "seconds": manifest["seconds"] | {"total": round(seconds, 3)},
        "phases": {name: round(value, 3) for name, value in phases.items()},
    }
    facts |= read_estimate(manifest)
    if _is_in_store(settings):
        facts["store"] = traffic_of_run(settings, manifest)
    if settings.shard is not None:
        facts["sources"] = sum(len(entry["sources"]) for entry in (*manifest["parts"], *failed))
    return facts


def _summary_lines(
    settings: Settings, manifest: Manifest, facts: dict[str, Any], seconds: float
) -> list[str]:
    """Say what was computed, and where it is."""
    before = ""
    if facts["kept"]:
        before = f" ({several(facts['kept'], 'batch')} computed before)"
    sources = "the whole graph"
    if settings.kind.takes_sources:
        sources = f"{several(facts['sources'], 'source')}{_duplicates(facts['duplicate_sources'])}"
    built = cast("dict[str, Any]", manifest["graph"].get("built", {}))
    lines = [
        f"{sources}, {several(facts['rows'], 'row')} in {seconds:.1f} s{before}",
        (
            f"results: {settings.output} "
            f"({several(len(manifest['parts']), 'part')}, {in_units(facts['bytes'])})"
        ),
        f"columns: {columns_text(built, settings.columns, settings.along)}",
    ]
    if "store" in facts:
        lines.append(f"store: {traffic_text(facts['store'])}")
    lines += estimate_lines(facts)
    if manifest.get("choice") and settings.verbose:
        lines.append(f"strategy: {facts['why']}")
    return lines


def _end_lines(settings: Settings, facts: dict[str, Any]) -> list[str]:
    """Say what the records are, and how the run has ended."""
    failed = facts["failed"]
    is_shard = settings.shard is not None
    lines = []
    is_done = not failed and not is_shard
    if settings.result != "distances" and (is_done or not settings.kind.adds_up):
        lines.append(describe_result(settings.result))
    if failed:
        again = "the same command" if is_shard else "see _manifest.json; --resume"
        lines.append(
            f"failed: {len(failed)} of {facts['batches']} batches, {again} tries them again"
        )
    elif is_shard:
        lines.append(
            f"shard {settings.shard} is done; when all are: kepler-traverse "
            f"finish {shlex.quote(str(settings.output))}"
        )
    else:
        lines.append(f"digest: {facts['digest']}")
    return lines


def _kind(graph: Graph) -> str:
    """Return whether a graph is directed, and which weights it has."""
    if graph.weights is None:
        weights = "unweighted"
    else:
        weights = f"{graph.weights.dtype} weights"
    if graph.weights is not None and graph.returns_integers:
        weights = "integer weights"
    return f"{'directed' if graph.directed else 'undirected'}, {weights}"


def _sources_and_batches(settings: Settings, prepared: Prepared) -> list[tuple[str, str]]:
    """Return the lines on what is searched from."""
    if not settings.kind.takes_sources:
        return [("sources", "none: the whole graph, in one part file")]
    return [
        ("sources", f"{prepared.n_sources:,}{_duplicates(prepared.duplicates)}"),
        *(("estimate", bound_text(each)) for each in estimate_of_plan(prepared).values()),
        (
            "batches",
            (
                f"{prepared.sizing.n_batches:,} of "
                f"{prepared.sizing.batch_size:,} sources, one part file each"
            ),
        ),
    ]


def read_estimate(manifest: Manifest) -> dict[str, Any]:
    """Return ``estimate`` of a finished run that is one; see ``Facts`` of
    ``output.manifest_types``.
    """
    return {
        name: fact
        for table in manifest["tables"]
        for name, fact in table.items()
        if name == "estimate"
    }


def estimate_of_plan(prepared: Prepared) -> dict[str, Any]:
    """Return the same of a prepared run."""
    sample = getattr(prepared.request.options, "sample", None)
    return {} if sample is None else sample.facts


def estimate_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the line of a summary that says of how many sources the result is an estimate, and its
    bound.
    """
    if "estimate" in facts:
        return [f"estimate: {bound_text(facts['estimate'])}"]
    return []


def bound_text(estimate: Mapping[str, Any]) -> str:
    """Return what bounds the error of an estimate, as ``Estimate`` of ``output.manifest_types`` has
    it.
    """
    likely = f"with probability {1 - estimate['delta']:.4g} no normalized value is off by more than"
    return f"of {estimate['sources']:,} sources: {likely} {estimate['epsilon']:.4g}"


def _duplicates(count: int) -> str:
    if count:
        return f" ({count:,} given more than once are computed once)"
    return ""
