"""Plot the size of the frontier and the time per level of BFS strategies.

Writes both plots for any strategies of the registry into a self-contained HTML page:

    python -m examples.levels edges.parquet --undirected --strategies switch queue --source 0 --output levels.html

The cells (``# %%``) run one after another in an editor that supports them. In a notebook, call ``main`` with a list of
arguments.

A level is timed in one of three ways. The finest that a strategy allows is used:

- step: the host runs the search level by level (``bfs/host_loop.py``), and each step is timed;
- trace: one launch runs the whole search, and the kernel records when each iteration began;
- depth: the search runs to a growing ``max_depth``, and the additional time is that of the additional levels.
"""

# %% Imports
from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kepler_traverse import Graph, KeplerError, certify, cuda, plan_bfs, read_graph
from kepler_traverse._arrays import to_host
from kepler_traverse.bfs.host_loop import levels
from kepler_traverse.bfs.tuning import Tuning
from kepler_traverse.cuda.kernel_trace import TracedSearch

TRACE = 1 << 16  # capacity of a trace, in iterations
MAX_DEPTHS = 48  # maximum number of searches to growing depths
COLOURS = (
    "#4e79a7",
    "#f28e2b",
    "#e15759",
    "#76b7b2",
    "#59a14f",
    "#b8962e",
    "#b07aa1",
    "#d37295",
    "#9c755f",
    "#79706e",
)


class Span(NamedTuple):
    """Consecutive levels that were timed together, and their seconds."""

    level: int
    n_levels: int
    seconds: float


# %% Frontier sizes, from a certified distance array
def frontier_sizes(graph: Graph, source: int) -> np.ndarray:
    """Return the number of vertices at 0, 1, 2, ... hops from a vertex number: the frontier of each level."""
    result = plan_bfs(graph).run(source)
    certify(graph, result).require()
    return np.bincount(to_host(result.distance[result.reached]))


# %% Time per level: each step is timed
def clock(graph: Graph) -> float:
    if graph.device == "cuda":
        cuda.cp.cuda.Device().synchronize()
    return time.perf_counter()


def by_step(graph: Graph, strategy: str, source: int) -> list[Span]:
    """Time strategies that use the level loop: run the same loop over the same step, with each step timed."""
    ready = plan_bfs(graph, strategy=strategy)
    found = []

    def timed_step(run, level):
        began = clock(graph)
        n_levels = ready.strategy.plan.step(run, level) or 1
        found.append(Span(level, n_levels, clock(graph) - began))
        return n_levels

    traverse = levels(ready.strategy.plan.new_run, timed_step)(graph, ready.query)
    traverse(source)  # compiles
    found.clear()
    traverse(source)
    return found


# %% ... by the trace, if the kernel records each iteration
def by_trace(graph: Graph, strategy: str, source: int) -> list[Span]:
    """Time strategies of one launch; empty if the strategy records no trace."""
    ready = plan_bfs(graph, strategy=strategy)
    traverse = ready.strategy.plan(graph, replace(ready.query, tuning=Tuning(trace=TRACE)))
    if not isinstance(traverse, TracedSearch):
        return []
    for _ in range(2):  # the first compiles
        traverse(source)
    return spans_of(traverse.iterations())


def spans_of(iterations: list) -> list[Span]:
    """Return the summed iterations of each level. The last pass belongs to no level."""
    seconds = {}
    for iteration, following in itertools.pairwise(iterations):
        if iteration.what not in ("last pass", "end"):
            seconds[iteration.level] = (
                seconds.get(iteration.level, 0.0)
                + (following.nanoseconds - iteration.nanoseconds) / 1e9
            )
    begins = sorted(seconds)
    ends = [*begins[1:], begins[-1] + 1] if begins else []
    return [
        Span(level, end - level, seconds[level]) for level, end in zip(begins, ends, strict=True)
    ]


# %% ... or by the total time of searches to growing depths
def by_depth(graph: Graph, strategy: str, source: int, n_levels: int, repeats: int) -> list[Span]:
    """Time any strategy. Levels that take less than the noise of the clock may have a time of zero."""
    depths = np.unique(np.linspace(0, n_levels, min(n_levels, MAX_DEPTHS) + 1).astype(int)).tolist()
    whole = []
    for depth in depths:
        plan = plan_bfs(graph, strategy=strategy, max_depth=depth)
        plan.run(source)  # compiles
        times = []
        for _ in range(repeats):
            began = clock(graph)
            plan.run(source)
            times.append(clock(graph) - began)
        whole.append(statistics.median(times))
    pairs = zip(itertools.pairwise(depths), itertools.pairwise(whole), strict=True)
    return [
        Span(begin, end - begin, max(late - early, 0.0)) for (begin, end), (early, late) in pairs
    ]


def time_levels(
    graph: Graph, strategy: str, source: int, n_levels: int, repeats: int
) -> tuple[str, list[Span]]:
    """Return how a strategy was timed, and the median over the repeats of each span of levels that all repeats have."""
    row = plan_bfs(graph, strategy=strategy).strategy
    if hasattr(row.plan, "step"):
        way, runs = "step", [by_step(graph, strategy, source) for _ in range(repeats)]
    else:
        way, runs = "trace", [by_trace(graph, strategy, source) for _ in range(repeats)]
    # no trace, or a step that takes very many levels
    if 2 * len(runs[0]) < min(n_levels, MAX_DEPTHS):
        return "depth", by_depth(graph, strategy, source, n_levels, repeats)
    seconds = {}
    for level, n, taken in (span for run in runs for span in run):
        seconds.setdefault((level, n), []).append(taken)
    in_all = {where: times for where, times in sorted(seconds.items()) if len(times) == repeats}
    return way, [Span(*where, statistics.median(times)) for where, times in in_all.items()]


# %% Both as a page
def draw(title: str, sizes: np.ndarray, timed: dict[str, list[Span]], output: Path) -> None:
    """Plot frontier sizes above and time per level below, over the same levels."""
    from bokeh.embed import file_html
    from bokeh.layouts import column
    from bokeh.plotting import figure
    from bokeh.resources import INLINE

    shared = {"width": 1000, "y_axis_type": "log", "tools": "xpan,xwheel_zoom,xbox_zoom,save,reset"}
    above = figure(title=title, height=280, y_axis_label="vertices of the frontier", **shared)
    above.vbar(x=np.arange(sizes.size), top=sizes, bottom=0.7, width=0.9, color="#9a9a9a")
    below = figure(
        height=420,
        x_range=above.x_range,
        x_axis_label="level",
        y_axis_label="µs per level",
        **shared,
    )
    for i, (name, spans) in enumerate(timed.items()):
        x, y = points_of(spans)
        look = {"color": COLOURS[i % len(COLOURS)], "legend_label": name}
        below.line(x, y, width=1.5, **look)
        below.scatter(x, y, size=4, **look)
    below.legend.click_policy = "hide"
    output.write_text(file_html(column(above, below), INLINE, title), encoding="utf-8")


def points_of(spans: list[Span]) -> tuple[list[int], list[float]]:
    """Return first and last level of each span, with µs per level. Zeros are omitted, because the axis is logarithmic."""
    points = {}
    for level, n_levels, seconds in spans:
        if seconds > 0:
            points[level] = points[level + n_levels - 1] = 1e6 * seconds / n_levels
    return list(points), list(points.values())


# %% Main
def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Plot frontier sizes and the time per level of BFS strategies."
    )
    parser.add_argument("edges", help="an edge list in any format that read_graph knows")
    parser.add_argument(
        "--undirected", action="store_true", help="each row is an edge in both directions"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument(
        "--strategies",
        nargs="+",
        default=["auto"],
        metavar="NAME",
        help="names of docs/strategies.md",
    )
    parser.add_argument(
        "--source", help="id of the vertex to begin at; default: the vertex of highest degree"
    )
    parser.add_argument(
        "--repeats", type=int, default=5, help="number of searches; the median counts"
    )
    parser.add_argument("--output", type=Path, default=Path("levels.html"))
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats must be 1 or more, not {options.repeats}")
    return options


def source_number(graph: Graph, given: str | None) -> int:
    """Return the number of the vertex with that id; without an id, of the vertex with the highest degree."""
    if given is None:
        return int(to_host(graph.derived.degrees).argmax())
    is_number = not graph.has_string_ids and given.removeprefix("-").isdecimal()
    return int(graph.to_numbers([int(given) if is_number else given])[0])


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    try:
        graph = read_graph(
            options.edges, directed=not options.undirected, device=options.device, weighted=False
        )
        source = source_number(graph, options.source)
        sizes = frontier_sizes(graph, source)
        n_levels = sizes.size - 1
        found = {
            name: time_levels(graph, name, source, n_levels, options.repeats)
            for name in options.strategies
        }
    except KeplerError as error:
        sys.stderr.write(f"levels.py: {error}\n")
        return 2
    title = f"{Path(options.edges).stem}: {graph.n_vertices:,} vertices, {graph.n_edges:,} edges, {n_levels} levels"
    draw(
        title,
        sizes,
        {f"{name} ({way})": spans for name, (way, spans) in found.items()},
        options.output,
    )
    for name, (way, spans) in found.items():
        total = sum(span.seconds for span in spans)
        sys.stdout.write(f"{name}, by {way}: {1e3 * total:.3g} ms in {n_levels} levels\n")
    sys.stdout.write(f"{options.output}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
