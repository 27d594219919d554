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

# keys of the manifest, and of the facts of its graph, that the summary has as JSON
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
# Requests beside one per part: the first manifest, a commit, the one that closes the log, the last
# manifest and the mark.
_REQUESTS_PER_RUN = 5


def show_plan(
    settings: Settings, prepared: Prepared, expect: Callable[[], Expectation | str]
) -> None:
    """Print the plan of the run, as lines or as JSON.

    ``prepared`` has the graph, its plan and the sizes of batches. ``expect()`` tries some sources,
    and returns what time and space the run will take, or a text on why that is not known.
    """
    # This comes before the trial, which may change the strategy of the plan.
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

    strategy: Any  # entry of the library's table of strategies
    why: str  # a sentence


def _facts_of_plan(
    settings: Settings, prepared: Prepared, chosen: _Chosen, expected: Expectation | str
) -> dict[str, Any]:
    """Return what ``--plan --json`` prints. ``expected`` is what the run will take, or why that is
    not known.
    """
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
        # what the run will take
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
    """Return the lines that ``--plan`` prints, each as a name and a text. ``expected`` is what the
    run will take, or why that is not known.
    """
    # The graph.
    graph = prepared.graph
    built = graph.report
    plan = prepared.plan
    sizing = prepared.sizing
    strategy = chosen.strategy
    size = f"{several(graph.n_vertices, 'vertex')}, {several(graph.n_edges, 'stored edge')}"
    lines = [
        ("graph", f"{size}, {_describe_edges(graph)}"),
        ("degrees", f"at most {graph.derived.max_degree:,}"),
        ("built", f"{several(built.rows, 'row')}; dropped: {_describe_dropped(built)}"),
    ]
    if prepared.build_limit is not None:
        lines.append(("building", _describe_building(settings, prepared)))
    if built.where:
        lines.append(("where", built.where))
    lines.append(("columns", columns_text(built.facts(), settings.columns, settings.along)))
    lines += [("note", note) for note in notes_on_edges(settings, built.facts())]

    # The question and how it is answered.
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

    # Batches, workers, memory and output.
    lines += _sources_and_batches(settings, prepared)
    threads = f"{sizing.threads} thread{'s' if sizing.threads > 1 else ''}"
    lines.append(("workers", f"{sizing.workers} with {threads} each"))
    lines += [(f"memory: {name}", in_units(nbytes)) for name, nbytes in sizing.memory.items()]
    lines += _writing_memory(sizing)
    lines += [
        ("expected", _expected_text(expected)),
        ("output", f"at most {in_units(sizing.output_bytes)} before compression"),
    ]
    if _is_in_store(settings):
        lines.append(("store", traffic_text(traffic_of_plan(settings, sizing))))
    return lines


def _writing_memory(sizing: Sizing) -> list[tuple[str, str]]:
    """Return the line of the plan on the memory of the host that threads take to write parts while
    a GPU searches, as a name and a text. Return no line if there are no such threads.
    """
    if not sizing.writing_bytes:
        return []
    threads = several(sizing.writers, "thread")
    text = f"at most {in_units(sizing.writing_bytes)} of the host, by {threads} per worker"
    return [("memory: parts being written", text)]


def _expected_facts(expected: Expectation | str) -> dict[str, Any]:
    """Return what a run is expected to take, or why that is not known, as facts for JSON."""
    if isinstance(expected, str):
        return {"not_known": expected}
    return expected.facts()


def _expected_text(expected: Expectation | str) -> str:
    """Return in words what a run is expected to take, or why that is not known."""
    if isinstance(expected, str):
        return f"not known: {expected}"
    return str(expected)


def _describe_building(settings: Settings, prepared: Prepared) -> str:
    """Say how the graph was built for this plan, and within which limit of memory, or that it was
    stored before.
    """
    if prepared.reused:
        return f"no more: {settings.graph_cache} has the graph"
    if prepared.graph.report.in_files:
        how = "with edges in files"
    else:
        how = "in memory"
    return f"{how}, with a limit of {in_units(prepared.build_limit or 0)}"


def _is_in_store(settings: Settings) -> bool:
    """Whether the output is in an object store."""
    return settings.output is not None and URL.match(settings.output) is not None


def traffic_of_plan(settings: Settings, sizing: Sizing) -> dict[str, Any]:
    """Return the traffic of a planned run with the object store of its output, as facts by name.

    They are the smallest number of ``requests``, the largest number of bytes ``sent``, and what
    both ``cost``, if the settings name prices.
    """
    requests = sizing.n_batches + _REQUESTS_PER_RUN
    return _with_cost(settings, {"requests": requests, "sent": sizing.output_bytes})


def traffic_of_run(settings: Settings, manifest: Manifest) -> dict[str, Any]:
    """Return the traffic of a run with object stores, as far as its manifest has it, as facts by
    name.

    They are the number of ``requests``, the bytes ``sent`` and ``received``, the ``seconds`` that
    putting the parts took, and what requests and bytes sent ``cost``, if the settings name prices.
    """
    # The traffic of the process that leads the run: numbers by the kind of request, and bytes.
    counts = dict(manifest.get("traffic", {}))
    received = counts.pop("received", 0)
    sent = counts.pop("sent", 0)
    requests = sum(counts.values())

    # Of the parts, each of which may have been put several times.
    seconds: float = 0
    for part in manifest["parts"]:
        if "stored" in part:
            requests += part["stored"]["requests"]
            sent += part["stored"]["requests"] * part["bytes"]
            seconds += part["stored"]["seconds"]
    seconds = round(seconds, 3)
    return _with_cost(
        settings, {"requests": requests, "sent": sent, "received": received, "seconds": seconds}
    )


def _with_cost(settings: Settings, traffic: dict[str, Any]) -> dict[str, Any]:
    """Return the traffic with its ``cost``, in the currency of the prices in the settings; without
    prices, as it is. Prices are per 1,000 requests and per 10^9 bytes sent.
    """
    if settings.price_requests is None and settings.price_gb is None:
        return traffic
    cost_of_requests = traffic["requests"] / 1000 * (settings.price_requests or 0)
    cost_of_bytes = traffic["sent"] / 10**9 * (settings.price_gb or 0)
    return traffic | {"cost": round(cost_of_requests + cost_of_bytes, 6)}


def traffic_text(traffic: dict[str, Any]) -> str:
    """Return in words the traffic that ``traffic_of_plan`` or ``traffic_of_run`` returns: bounds of
    a plan, or the numbers of a run; with the cost, if there is one.
    """
    requests = several(traffic["requests"], "request")
    sent = in_units(traffic["sent"])
    text = f"at least {requests}, at most {sent} sent"
    if "received" in traffic:  # of a run
        text = f"{requests}, {sent} sent, {in_units(traffic['received'])} received"
    return text + (f": {traffic['cost']:.4g} at the given prices" if "cost" in traffic else "")


def _describe_dropped(built: BuildReport) -> str:
    """Say how many rows of the edge list, or edges of them, were dropped, and why."""
    loops = f"{built.self_loops:,} self-loops, {built.parallel_edges:,} parallel edges"
    if built.filtered_rows:
        return f"{built.filtered_rows:,} by filters, {loops}"
    return loops


def notes_on_edges(settings: Settings, built: Mapping[str, Any]) -> list[str]:
    """Return notes on what in the edge list may have been meant otherwise: columns that are not
    used, weights that mean "closed", edges that the result leaves out.

    ``built`` says how the graph was built: the fields of a ``BuildReport``, as a manifest has them.
    """
    notes_of_kind = settings.kind.options_class.notes_on_edges(built)
    return [*built.get("hints", []), *notes_on_weights(settings, built), *notes_of_kind]


def notes_on_weights(settings: Settings, built: Mapping[str, Any]) -> list[str]:
    """Return notes on weights that bfs ignores, so that hops are not mistaken for distances; none
    for sssp.

    ``built`` says how the graph was built: the fields of a ``BuildReport``, as a manifest has them.
    """
    if settings.algorithm != "bfs":
        return []
    notes = []
    if settings.weight_type != "auto":
        notes.append(
            f"bfs counts hops: --weight-type {settings.weight_type} is not "
            "used; --algorithm sssp adds up weights"
        )
    # Columns of numbers that no option uses. If some have names as weights have, the note is on
    # these alone.
    numbers = built.get("unused_numbers", [])
    named_as_weights = [name for name in numbers if is_weight_name(name)]
    ignored = [name for name in named_as_weights or numbers if name not in (settings.along or ())]
    if ignored:
        names = ", ".join(map(repr, ignored[:5])) + (", ..." if len(ignored) > 5 else "")
        if len(ignored) > 1:
            columns = f"columns {names} are"
        else:
            columns = f"column {names} is"
        flags = f"--algorithm sssp {flag_text('weight_column', ignored[0])}"
        notes.append(f"bfs counts hops: {columns} not used; {flags} adds up weights")
    return notes


def columns_text(
    built: Mapping[str, Any], columns: Mapping[str, str] | None, along: Sequence[str] | None
) -> str:
    """Say which columns of the edge list are the ends and the weight of an edge, which are added up
    along paths, which are unused, and which columns of other tables are read.

    ``built`` says how the graph was built: the fields of a ``BuildReport``, as a manifest has them.
    ``columns``, names by role, and ``along``, names of columns that are added up along paths, are
    the settings.
    """
    if not built.get("src_column"):
        return "not known"  # a manifest of an earlier version lacks them
    weight = built.get("weight_column")
    back = built.get("reverse_weight_column")
    directions = built.get("oneway_column")
    added_up = list(along or ())
    unused = [name for name in built.get("unused_columns", []) if name not in added_up]

    # The columns of the edge list by their roles.
    text = f"{built['src_column']!r} to {built.get('dst_column', '')!r}"
    text += f", weight {weight!r}" if weight else ", no weight"
    if back:
        text += f", of the other direction {back!r}"
    if directions:
        text += f", directions {directions!r}"
    if added_up:
        text += f"; along paths: {', '.join(map(repr, added_up))}"

    if unused:
        dots = ", ..." if len(unused) > _MAX_COLUMNS else ""
        text += f"; not used: {', '.join(map(repr, unused[:_MAX_COLUMNS]))}{dots}"
    # ``COLUMN_ROLES`` has, for each role, the setting that names its table.
    others = [
        f"{role} {name!r}"
        for role, name in (columns or {}).items()
        if COLUMN_ROLES[role] != "edges"
    ]
    if others:
        text += f"; of tables: {', '.join(others)}"
    return text


def show_summary(
    settings: Settings, manifest: Manifest, computed: int, kept: int, seconds: float
) -> None:
    """Print the summary of a run, as lines or as JSON.

    ``computed`` and ``kept`` are the numbers of parts that this run and an earlier one have
    written. ``seconds`` is the duration of this run.
    """
    facts = _facts_of_run(settings, manifest, computed, kept, seconds)
    if settings.json:
        show(json.dumps(facts))
    else:
        show(*_summary_lines(settings, manifest, facts, seconds), *_end_lines(settings, facts))


def _facts_of_run(
    settings: Settings, manifest: Manifest, computed: int, kept: int, seconds: float
) -> dict[str, Any]:
    """Return the facts of a run that ``--json`` prints.

    ``computed`` and ``kept`` are the numbers of parts that this run and an earlier one have
    written. ``seconds`` is the duration of this run.
    """
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

    # What only some runs have.
    facts |= read_estimate(manifest)
    if _is_in_store(settings):
        facts["store"] = traffic_of_run(settings, manifest)
    if settings.shard is not None:  # the manifest counts those of all shards
        facts["sources"] = sum(len(entry["sources"]) for entry in (*manifest["parts"], *failed))
    return facts


def _summary_lines(
    settings: Settings, manifest: Manifest, facts: dict[str, Any], seconds: float
) -> list[str]:
    """Return the lines of the summary that say what was computed, and where it is.

    ``facts`` are those of the run, as ``_facts_of_run`` returns them, and ``seconds`` is its
    duration.
    """
    before = ""
    if facts["kept"]:  # batches that an earlier, interrupted run has written
        before = f" ({several(facts['kept'], 'batch')} computed before)"
    sources = "the whole graph"
    if settings.kind.takes_sources:
        sources = f"{several(facts['sources'], 'source')}{_describe_duplicates(facts['duplicate_sources'])}"
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
    """Return the lines of the summary that say what the records mean, and how the run has ended.

    ``facts`` are those of the run, as ``_facts_of_run`` returns them.
    """
    failed = facts["failed"]
    is_shard = settings.shard is not None
    lines = []
    # A result to which all sources add is there only once all of them are done.
    is_complete = not failed and not is_shard
    if settings.result != "distances" and (is_complete or not settings.kind.adds_up):
        lines.append(describe_result(settings.result))
    if failed:
        remedy = "the same command" if is_shard else "see _manifest.json; --resume"
        lines.append(
            f"failed: {len(failed)} of {facts['batches']} batches, {remedy} tries them again"
        )
    elif is_shard:
        lines.append(
            f"shard {settings.shard} is done; when all are: kepler-traverse "
            f"finish {shlex.quote(str(settings.output))}"
        )
    else:
        lines.append(f"digest: {facts['digest']}")
    return lines


def _describe_edges(graph: Graph) -> str:
    """Say whether a graph is directed, and which weights it has."""
    if graph.weights is None:
        weights = "unweighted"
    elif graph.returns_integers:
        weights = "integer weights"
    else:
        weights = f"{graph.weights.dtype} weights"
    return f"{'directed' if graph.directed else 'undirected'}, {weights}"


def _sources_and_batches(settings: Settings, prepared: Prepared) -> list[tuple[str, str]]:
    """Return the lines of the plan on sources, their duplicates, and their batches, each as a name
    and a text.
    """
    if not settings.kind.takes_sources:
        return [("sources", "none: the whole graph, in one part file")]
    return [
        ("sources", f"{prepared.n_sources:,}{_describe_duplicates(prepared.duplicates)}"),
        *(("estimate", bound_text(fact)) for fact in estimate_of_plan(prepared).values()),
        (
            "batches",
            (
                f"{prepared.sizing.n_batches:,} of "
                f"{prepared.sizing.batch_size:,} sources, one part file each"
            ),
        ),
    ]


def read_estimate(manifest: Manifest) -> dict[str, Any]:
    """Return a dictionary with the one key "estimate" if the result of a run is estimated from a
    sample of the vertices, else an empty one.

    The value has the number of ``sources`` in the sample, and ``epsilon`` and ``delta``: with
    probability 1 - delta or more, no normalized value has an error beyond epsilon.
    """
    return {
        name: fact
        for table in manifest["tables"]
        for name, fact in table.items()
        if name == "estimate"
    }


def estimate_of_plan(prepared: Prepared) -> dict[str, Any]:
    """Return what ``read_estimate`` returns, for a run that is prepared and not yet done."""
    sample = getattr(prepared.request.options, "sample", None)
    return {} if sample is None else sample.facts


def estimate_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return the line of a summary on the sample from which the result is estimated, and on the
    bound of its error; no line if the result is no estimate. ``facts`` are those of the run.
    """
    if "estimate" in facts:
        return [f"estimate: {bound_text(facts['estimate'])}"]
    return []


def bound_text(estimate: Mapping[str, Any]) -> str:
    """Return in words how many sources an estimate is made of, and what bounds its error.

    ``estimate`` has ``sources``, ``epsilon`` and ``delta``, as ``read_estimate`` returns them.
    """
    likely = f"with probability {1 - estimate['delta']:.4g} no normalized value is off by more than"
    return f"of {estimate['sources']:,} sources: {likely} {estimate['epsilon']:.4g}"


def _describe_duplicates(count: int) -> str:
    """Say in parentheses how many sources were given more than once; ``""`` if ``count`` is 0."""
    if count:
        return f" ({count:,} given more than once are computed once)"
    return ""
