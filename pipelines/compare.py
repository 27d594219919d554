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
_OWN = {option.key: option for option in OPTIONS if option.reads or option.key in _SHARED}

_WEIGHT = flag_text("weight_column")


def _of_weights(flag: str) -> Constraint:
    """Return the rule that a flag of weights is not for hops."""
    return Constraint(
        names=(flag,),
        violated=lambda given: given.algorithm == "bfs" and given.is_given(flag),
        why="{0} has no effect: bfs counts hops and takes no weights",
        remedy="leave it out",
    )


# What flags together must be.
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
    """Return the command line."""
    result = OnceParser(
        prog=called_as("compare"), description=__doc__, usage="%(prog)s EDGES... [options]"
    )
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
    for option in _OWN.values():
        add_option(result, option)
    return result


def _settings(given: Any) -> Settings:
    """Return the settings of a command line, with defaults of what is not given; raise UsageError
    for wrong or idle ones.
    """
    for key, value in {"algorithm": "both", "random_sources": 16, "hash_weights": False}.items():
        setattr(given, key, getattr(given, key, value))
    settings = Settings(
        edges=given.edges, **{key: value for key, value in vars(given).items() if key in _OWN}
    )
    if given.random_sources < 1:
        parser().error("--random-sources must be 1 or more")
    if settings.seed < 0:
        parser().error("--seed must be 0 or more")
    columns = edge_columns(settings.columns, is_alone=True)
    written = {
        "--hash-weights": given.hash_weights,
        _WEIGHT: columns["weight_column"] is not None,
        "--weight-type": settings.weight_type != "auto",
    }
    flags = {flag: flag for flag, is_given in written.items() if is_given}
    own = GivenOptions(kind=None, algorithm=given.algorithm, written=flags, values=flags)
    for violation in violations(own, ROWS):
        raise UsageError(str(violation))
    return settings


def main(argv: list[str] | None = None) -> int:
    """Run the command line; returns 0 if all distances agree, 1 if one differs, else as
    ``pipelines.batch_sources``.
    """
    return run_program(parser, _run, argv)


def _run(given: Any) -> int:
    """Compare, print the outcome, and return the exit code."""
    settings = _settings(given)
    from kepler_traverse.errors import options_spelled

    with options_spelled(flag_text):
        facts = _compare(given, settings)
    show(*([json.dumps(facts)] if settings.json else _table(facts)))
    return 0 if all(run["equal"] for run in facts["runs"]) else 1


def _compare(given: Any, settings: Settings) -> dict[str, Any]:
    """Return what was compared, by algorithm, and where."""
    from kepler_traverse.errors import InputError

    from .comparison import peak_memory
    from .run.prepare import random_sources

    runs: list[dict[str, Any]] = []
    graph: Any = None
    sources: Any = None
    for algorithm in ("bfs", "sssp") if given.algorithm == "both" else (given.algorithm,):
        graph = _graph(replace(settings, algorithm=algorithm), given.hash_weights)
        if algorithm == "sssp" and graph.has_negative_weights:
            raise InputError(
                "neither cuGraph nor SciPy's dijkstra takes negative weights; take --hash-weights"
            )
        sources = random_sources(graph, given.random_sources, settings.seed)
        run = _compare_one(graph, algorithm, settings.strategy, sources)
        if graph.device == "cpu":
            run["peak_rss_bytes"] = peak_memory(graph, algorithm, settings.strategy, sources)
        runs.append(run)
    return {
        "edges": given.edges,
        "graph": {
            "vertices": graph.n_vertices,
            "stored_edges": graph.n_edges,
            "directed": graph.directed,
        },
        "sources": int(sources.size),
        "seed": settings.seed,
        "hash_weights": given.hash_weights,
        **_machine(graph.device),
        "runs": runs,
    }


def _graph(settings: Settings, hash_weights: bool) -> Any:
    """Read the graph, with hashed weights if requested, in a type that permits an exact comparison."""
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
    # SciPy adds in float64. Only integers have the same sums in float32.
    if settings.weight_type == "float64" or (
        graph.device == "cpu" and not bool((graph.weights == np.rint(graph.weights)).all())
    ):
        graph = replace(graph, weights=graph.weights.astype(np.float64))
    return graph


def _now(device: str) -> float:
    """Return the time after the GPU has finished its work."""
    if device == "cuda":
        from kepler_traverse.cuda import cp

        cp.cuda.get_current_stream().synchronize()
    return time.perf_counter()


def _compare_one(graph: Graph, algorithm: str, strategy: str, sources: Any) -> dict[str, Any]:
    """Search from all sources with both libraries, and compare every distance."""
    from kepler_traverse._arrays import namespace
    from kepler_traverse.certificate import certify

    from .comparison import choose_baseline, in_our_encoding, our_plan, refuse_rounded

    xp = namespace(graph.offsets)
    plan = our_plan(graph, algorithm, strategy)
    name, ways = choose_baseline(graph, algorithm)
    plan.run(int(sources[0]))  # warm up: compile, allocate
    for traverse in ways.values():
        traverse(int(sources[0]))
    ours: list[float] = []
    theirs: dict[str, list[float]] = {way: [] for way in ways}
    differing = 0
    for source in sources.tolist():
        began = _now(graph.device)
        traversal = plan.run(source)
        ours.append(_now(graph.device) - began)
        certify(graph, traversal).require()
        for way, traverse in ways.items():
            began = _now(graph.device)
            answer = traverse(source)
            theirs[way].append(_now(graph.device) - began)
            expected = in_our_encoding(answer, graph, algorithm)
            refuse_rounded(expected, traversal.distance.dtype)
            differing += int(
                xp.count_nonzero(traversal.distance.astype(expected.dtype) != expected)
            )
    best = min(theirs, key=lambda way: statistics.median(theirs[way]))
    return {
        "algorithm": algorithm,
        "strategy": plan.strategy.name,
        "weights": "" if graph.weights is None else str(graph.weights.dtype),
        "peer": name,
        "peer_way": best,
        "equal": differing == 0,
        "differing_distances": differing,
        "certified": len(ours),
        "ours_ms": _times(ours),
        "peer_ms": _times(theirs[best]),
        "peer_ways_ms": {way: _times(values) for way, values in theirs.items()},
        "ratio": round(statistics.median(theirs[best]) / statistics.median(ours), 3),
    }


def _times(seconds: list[float]) -> dict[str, Any]:
    """Return the median and the sum of seconds, in milliseconds."""
    return {
        "median": round(1e3 * statistics.median(seconds), 4),
        "total": round(1e3 * sum(seconds), 3),
    }


def _machine(device: str) -> dict[str, Any]:
    """Return what the comparison ran on, and the versions of packages."""
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


def _table(facts: dict[str, Any]) -> list[str]:
    """Return the comparison as text for people."""
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
    for run in facts["runs"]:
        peaks = run.get("peak_rss_bytes", {})
        ours = f"{run['algorithm']} {run['strategy']}"
        peer = f"{run['peer']} {run['peer_way']}"
        for name, times, peak in (
            (ours, run["ours_ms"], peaks.get("ours")),
            (peer, run["peer_ms"], peaks.get("peer")),
        ):
            shown = f"{peak / 2**20:.0f}" if peak else "-"
            lines.append(f"{name:<22}{times['median']:>12.3f}{times['total']:>12.1f}{shown:>10}")
        agree = "all distances equal"
        if not run["equal"]:
            agree = f"{run['differing_distances']:,} DISTANCES DIFFER"
        lines.append(
            f"  {agree}, {run['certified']} results certified, "
            f"{run['peer']} takes {run['ratio']:.2f} x our time"
        )
    return lines


if __name__ == "__main__":
    sys.exit(signals.run_heeding(main))
