"""Compare this library with cuGraph (on a GPU) or SciPy (on a CPU), on the same sources.

The distances of both must be equal. This library's predecessors are certified. The times of both
are printed.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import replace
from typing import Any

from kepler_traverse.errors import several
from kepler_traverse.graph import Graph
from kepler_traverse.kinds.constraints import Constraint, GivenOptions, not_both, violations

from .batch_sources import run_program
from .cli import signals
from .cli.command_line import Once, OnceParser, add_option
from .cli.options import KINDS, OPTIONS, Settings, UsageError, edge_columns, flag_text, read_options
from .cli.terminal import called_as, show

_PACKAGES = (
    "kepler-traverse",
    "numpy",
    "numba",
    "scipy",
    "pyarrow",
    "cupy-cuda13x",
    "pylibcugraph-cu13",
    "cudf-cu13",
)
_SHARED = ("device", "strategy", "seed", "columns", "json", "debug")
# Options of the job that this program has, too.
_OPTIONS = {option.key: option for option in OPTIONS if option.reads or option.key in _SHARED}

_WEIGHT = flag_text("weight_column")


def _of_weights(flag: str) -> Constraint:
    """Return the rule that a flag of weights is not for hops."""
    return Constraint(
        names=(flag,),
        violated=lambda options: options.algorithm == "bfs" and options.is_given(flag),
        why="{0} has no effect: bfs counts hops and takes no weights",
        remedy="leave it out",
    )


# Rules on combinations of flags.
ROWS = (
    *map(_of_weights, ("--hash-weights", _WEIGHT, "--weight-type")),
    not_both(
        _WEIGHT,
        "--hash-weights",
        "{0} has no effect: {1} makes the weights",
        "take one of the two",
    ),
)


def parser() -> OnceParser:
    """Return the parser of the command line."""
    result = OnceParser(
        prog=called_as("compare"), description=__doc__, usage="%(prog)s EDGES... [options]"
    )
    # Flags of this program alone, and then those that the job has, too.
    result.add_argument(
        "edges", nargs="+", metavar="EDGES", help="files, folders, globs or URLs of the edge list"
    )
    result.add_argument(
        "--algorithm",
        action=Once,
        choices=("both", "bfs", "sssp"),
        help="algorithm to compare (default: both)",
    )
    result.add_argument(
        "--random-sources",
        action=Once,
        type=KINDS["integer"].parse,
        metavar="N",
        help="number of random sources, drawn with --seed (default: 16)",
    )
    result.add_argument(
        "--hash-weights",
        action=Once,
        nargs=0,
        help=(
            "sssp: use weights from 1 to 255, hashed from the ids of "
            "each edge, instead of the file's"
        ),
    )
    for option in _OPTIONS.values():
        add_option(result, option)
    return result


def _make_settings(parsed: Any) -> Settings:
    """Return the settings of a parsed command line; raise UsageError for values that are wrong or
    have no effect.

    Flags of this program alone that are not given get their defaults in ``parsed``, in place.
    """
    for key, default in {"algorithm": "both", "random_sources": 16, "hash_weights": False}.items():
        setattr(parsed, key, getattr(parsed, key, default))
    values = {key: value for key, value in vars(parsed).items() if key in _OPTIONS}
    settings = Settings(edges=parsed.edges, **values)
    if parsed.random_sources < 1:
        parser().error("--random-sources must be 1 or more")
    if settings.seed < 0:
        parser().error("--seed must be 0 or more")

    # Rules of the flags of weights.
    columns = edge_columns(settings.columns, is_alone=True)
    is_given = {
        "--hash-weights": parsed.hash_weights,
        _WEIGHT: columns["weight_column"] is not None,
        "--weight-type": settings.weight_type != "auto",
    }
    flags = {flag: flag for flag in is_given if is_given[flag]}
    options = GivenOptions(kind=None, algorithm=parsed.algorithm, written=flags, values=flags)
    for violation in violations(options, ROWS):
        raise UsageError(str(violation))
    return settings


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 0 if all distances agree, 1 if one differs, else as
    ``pipelines.batch_sources``.
    """
    return run_program(parser, _run, argv)


def _run(parsed: Any) -> int:
    """Compare as the parsed command line says, print the outcome, and return the exit code."""
    settings = _make_settings(parsed)
    from kepler_traverse.errors import options_spelled

    with options_spelled(flag_text):
        facts = _compare(parsed, settings)
    show(*([json.dumps(facts)] if settings.json else _format_table(facts)))
    return 0 if all(run["equal"] for run in facts["runs"]) else 1


def _compare(parsed: Any, settings: Settings) -> dict[str, Any]:
    """Compare the algorithms one after another; return the facts that ``--json`` prints.

    ``parsed``: the command line, with defaults. ``settings``: those of reading and searching.
    """
    from kepler_traverse.errors import InputError

    from .comparison import peak_memory
    from .run.prepare import random_sources

    runs: list[dict[str, Any]] = []
    graph: Any = None
    sources: Any = None

    # Each algorithm has a graph of its own: that of sssp has weights.
    algorithms: Any = [parsed.algorithm]
    if parsed.algorithm == "both":
        algorithms = ["bfs", "sssp"]
    for algorithm in algorithms:
        graph = _read_graph(replace(settings, algorithm=algorithm), parsed.hash_weights)
        if algorithm == "sssp" and graph.has_negative_weights:
            raise InputError(
                "neither cuGraph nor SciPy's dijkstra takes negative weights; take --hash-weights"
            )
        sources = random_sources(graph, parsed.random_sources, settings.seed)
        run = _compare_one(graph, algorithm, settings.strategy, sources)
        if graph.device == "cpu":  # resident memory does not show what a GPU holds
            run["peak_rss_bytes"] = peak_memory(graph, algorithm, settings.strategy, sources)
        runs.append(run)

    return {
        "edges": parsed.edges,
        "graph": {
            "vertices": graph.n_vertices,
            "stored_edges": graph.n_edges,
            "directed": graph.directed,
        },
        "sources": int(sources.size),
        "seed": settings.seed,
        "hash_weights": parsed.hash_weights,
        **_describe_machine(graph.device),
        "runs": runs,
    }


def _read_graph(settings: Settings, hash_weights: bool) -> Any:
    """Read the graph, with weights of a type whose sums can be compared exactly.

    ``hash_weights``: whether weights are made from the ids of each edge.
    """
    import numpy as np

    from kepler_traverse._arrays import namespace, to_host
    from kepler_traverse.errors import InputError

    from .comparison import hashed_weights
    from .run.reading import read_and_say

    options = read_options(settings)
    if settings.algorithm == "bfs":
        options["weight_column"] = None
    options["weighted"] &= not hash_weights
    graph: Any = read_and_say(settings.edges, device=settings.device, **options)
    if settings.algorithm == "bfs":
        return graph

    xp = namespace(graph.offsets)
    if hash_weights:
        if graph.has_string_ids:
            raise InputError("--hash-weights needs integer ids")
        ids = to_host(graph.ids)
        src = np.repeat(ids, np.diff(to_host(graph.offsets)))
        weights = hashed_weights(src, ids[to_host(graph.targets)], graph.directed)
        graph = replace(graph, weights=xp.asarray(weights.astype(np.float32)))
    # SciPy, the baseline on a CPU, adds in float64. In float32 only sums of (small) integers are
    # the same, so other weights become float64 here, too.
    needs_float64 = settings.weight_type == "float64"
    if graph.device == "cpu" and not (graph.weights == np.rint(graph.weights)).all():
        needs_float64 = True
    if needs_float64:
        graph = replace(graph, weights=graph.weights.astype(np.float64))
    return graph


def _synchronized_time(device: str) -> float:
    """Return the time of a clock in seconds, on a GPU (``device`` "cuda") after all its work has
    ended, since kernels run on after the call that starts them.
    """
    if device == "cuda":
        from kepler_traverse.cuda import cp

        cp.cuda.get_current_stream().synchronize()
    return time.perf_counter()


def _compare_one(graph: Graph, algorithm: str, strategy: str, sources: Any) -> dict[str, Any]:
    """Search from all sources with this library and the baseline, and compare every distance;
    return the facts of the comparison, as ``--json`` prints them.

    ``strategy``: that of this library, or "auto". ``sources``: array of vertex numbers, at least
    one. Each library first searches once without being measured. In the facts the baseline is
    called "peer". Of its variants the one with the least median time counts.
    """
    from kepler_traverse._arrays import namespace
    from kepler_traverse.certificate import certify

    from .comparison import choose_baseline, in_our_encoding, our_plan, refuse_rounded

    xp = namespace(graph.offsets)
    plan = our_plan(graph, algorithm, strategy)
    name, variants = choose_baseline(graph, algorithm)

    # Warm up: compile, allocate.
    plan.run(int(sources[0]))
    for traverse in variants.values():
        traverse(int(sources[0]))

    # Seconds of each search: ours, and those of the baseline by the name of its variant.
    ours: list[float] = []
    theirs: dict[str, list[float]] = {variant: [] for variant in variants}
    n_differing = 0
    for source in sources.tolist():
        began = _synchronized_time(graph.device)
        traversal = plan.run(source)
        ours.append(_synchronized_time(graph.device) - began)
        certify(graph, traversal).require()
        for variant, traverse in variants.items():
            began = _synchronized_time(graph.device)
            answer = traverse(source)
            theirs[variant].append(_synchronized_time(graph.device) - began)
            expected = in_our_encoding(answer, graph, algorithm)
            refuse_rounded(expected, traversal.distance.dtype)
            n_differing += int(
                xp.count_nonzero(traversal.distance.astype(expected.dtype) != expected)
            )

    fastest = min(theirs, key=lambda variant: statistics.median(theirs[variant]))
    return {
        "algorithm": algorithm,
        "strategy": plan.strategy.name,
        "weights": "" if graph.weights is None else str(graph.weights.dtype),
        "peer": name,
        "peer_way": fastest,
        "equal": n_differing == 0,
        "differing_distances": n_differing,
        "certified": len(ours),
        "ours_ms": _summarize_times(ours),
        "peer_ms": _summarize_times(theirs[fastest]),
        "peer_ways_ms": {name: _summarize_times(seconds) for name, seconds in theirs.items()},
        "ratio": round(statistics.median(theirs[fastest]) / statistics.median(ours), 3),
    }


def _summarize_times(seconds: list[float]) -> dict[str, Any]:
    """Return the median and the sum of seconds, in milliseconds."""
    return {
        "median": round(1e3 * statistics.median(seconds), 4),
        "total": round(1e3 * sum(seconds), 3),
    }


def _describe_machine(device: str) -> dict[str, Any]:
    """Return device, GPU, cores and versions of packages that the comparison ran with."""
    import os

    from .run.environment import versions

    gpu = None
    if device == "cuda":
        from kepler_traverse.cuda import cp

        gpu = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)["name"].decode()
    return {
        "device": device,
        "gpu": gpu,
        "cores": len(os.sched_getaffinity(0)),
        "versions": versions(_PACKAGES),
    }


def _format_table(facts: dict[str, Any]) -> list[str]:
    """Return the comparison as lines of text for people.

    ``facts``: as ``_compare`` returns them.
    """
    graph = facts["graph"]
    kind = "directed" if graph["directed"] else "undirected"
    where = facts["gpu"] or f"{facts['cores']} CPU cores"
    size = (
        f"{several(graph['vertices'], 'vertex')}, {several(graph['stored_edges'], 'stored edge')}"
    )
    lines = [
        f"{size}, {kind}; {several(facts['sources'], 'source')}; {where}",
        f"{'':<22}{'median ms':>12}{'total ms':>12}{'peak MiB':>10}",
    ]

    # A line per library and a verdict, for each algorithm.
    for run in facts["runs"]:
        peaks = run.get("peak_rss_bytes", {})
        ours = f"{run['algorithm']} {run['strategy']}"
        peer = f"{run['peer']} {run['peer_way']}"
        for name, times, peak in (
            (ours, run["ours_ms"], peaks.get("ours")),
            (peer, run["peer_ms"], peaks.get("peer")),
        ):
            mebibytes = f"{peak / 2**20:.0f}" if peak else "-"
            lines.append(
                f"{name:<22}{times['median']:>12.3f}{times['total']:>12.1f}{mebibytes:>10}"
            )
        verdict = "all distances equal"
        if not run["equal"]:
            verdict = f"{run['differing_distances']:,} DISTANCES DIFFER"
        lines.append(
            f"  {verdict}, {run['certified']} results certified, "
            f"{run['peer']} takes {run['ratio']:.2f} x our time"
        )
    return lines


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
