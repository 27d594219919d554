"""Estimates of how long the works of the papers take, from sizes of graphs and what was measured before."""

from __future__ import annotations

from scripts.papers.experiments import BY_NAME, FILES, Work

PLAN = {"cuda": 1.0, "cpu": 0.1}  # seconds to plan, compile and check a setting
MAKE = 1.5e-7  # seconds per edge to generate and build a graph, and to copy it to the CPU
SEARCH = {"cuda": 3e-10, "cpu": 1.2e-8}  # seconds per edge of a search
LEVEL = {"cuda": 3e-5, "cpu": 1e-6}  # seconds per level of a search
REPEATS = 6.0  # of the searches from all sources, with those that check them

# Edges and levels of the generated graphs, in thousands and as measured.
SIZES = {
    "road-12M": (27_000, 12_400),
    "honeycomb-4M6": (13_800, 4_300),
    "honeycomb-4M6-negative": (13_800, 4_300),
    "erdos-renyi-2M": (128_000, 6),
    "erdos-renyi-2M-negative": (128_000, 6),
    "rmat-2M-128M": (128_000, 8),
    "kron-20": (90_000, 7),
    "internet-1M7": (22_000, 10),
    "internet-1M7-negative": (22_000, 10),
    "small-world-2M": (40_000, 8),
    "brick-2M": (54_000, 128),
    "plate-415k": (22_000, 263),
    "friends-4M8": (69_000, 9),
    "co-papers-335k": (25_000, 20),
    "road-3M6": (8_600, 3_000),
    "road-6M3": (15_000, 4_000),
    "USA-road-NE": (3_900, 1_850),
    "USA-road-NW": (2_800, 1_450),
    "USA-road-FLA": (2_700, 1_450),
    "degree-six-1M": (6_000, 500),
    "degree-six-2M": (12_000, 700),
    "degree-six-5M": (30_000, 1_100),
    "degree-six-7M": (42_000, 1_300),
    "degree-six-9M": (54_000, 1_500),
    "degree-six-10M": (60_000, 1_600),
    "scale-free-5M": (35_000, 7),
    "scale-free-10M": (70_000, 7),
    "circuit-3M5": (19_000, 130),
    "mesh-1000": (6_000, 1_000),
    "rmat-3M-20M": (20_000, 20),
}


def seconds_of(work: Work, device: str) -> float:
    """Return the estimated seconds of a work, without making its graph."""
    thousands, n_levels = SIZES.get(work.graph, (5_000, 20))
    n_sources = BY_NAME[work.graph].n_sources or 16
    total = 0.0
    for setting in work.settings:
        if device == "cpu" and setting.device == "cuda":
            continue
        factor = 3.0 if work.algorithm == "sssp" else 1.0
        search = factor * (
            1000 * thousands * SEARCH[setting.device] + n_levels * LEVEL[setting.device]
        )
        repeats = 2.0 if work.part == "counters" else 1.0 if work.part == "levels" else REPEATS
        n_searched = min(n_sources, 4) if setting.device == "cpu" else n_sources
        total += PLAN[setting.device] + repeats * n_searched * search
    return total


def making_of(graph: str) -> float:
    return 1.0 + 1000 * SIZES.get(graph, (5_000, 20))[0] * MAKE


def in_order(works: list[Work], device: str) -> list[Work]:
    """Return works by rank, within a rank the graphs that take the least time first: a cut run has the most of them."""
    of_graph: dict[tuple[int, str], float] = {}
    for work in works:
        key = work.rank, work.graph
        of_graph[key] = of_graph.get(key, making_of(work.graph)) + seconds_of(work, device)
    return sorted(works, key=lambda work: (work.rank, of_graph[work.rank, work.graph], work.graph))


def described(works: list[Work], device: str, files: list[str], absent: list[str]) -> str:
    """Return what would be measured, in order, with the estimated seconds, and the files that are needed."""
    lines, total, graph = [], 0.0, ""
    for work in works:
        seconds = seconds_of(work, device)
        if seconds == 0.0:
            continue
        if work.graph != graph:
            graph = work.graph
            seconds += making_of(graph)
        total += seconds
        n = sum(device == "cuda" or setting.device == "cpu" for setting in work.settings)
        named = work.group if work.part == "time" else work.part
        what = f"{work.graph}, {work.algorithm}, {named}: {n} settings"
        lines.append(f"rank {work.rank}  {what:60} {seconds:6.0f} s {total:7.0f} s")
    lines.append(f"device: {device}")
    for name in files:
        about = FILES[name.removesuffix(".parquet")]
        state = "absent" if name in absent else "there"
        lines.append(
            f"file {name} ({state}): {about.columns}; a row is {about.row}; {about.source}"
        )
    missing = ", ".join(absent) or "none"
    return "\n".join([*lines, f"files: {', '.join(files) or 'none'}", f"absent: {missing}"])
