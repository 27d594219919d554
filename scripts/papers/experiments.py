"""The measurements of the suite ``papers`` of scripts/bench, as data: graphs, features, knobs, counters, strategies."""

from __future__ import annotations

from dataclasses import dataclass, fields

from scripts.papers.comparisons import DETAILED_SWEPT, SWEPT, THREADS, compared

PARTS = ("peers", "features", "knobs", "counters", "systems")


@dataclass(frozen=True)
class GraphSource:
    """A graph: a file of the folder, or a generator of scripts/make_graphs.py with its arguments."""

    name: str
    file: str = ""
    generator: str = ""
    arguments: tuple = ()
    directed: bool = False
    max_potential: int = 0  # above 0: the weights of the file are used, with potentials up to this added
    parts: tuple = PARTS

    @property
    def origin(self) -> str:
        if self.max_potential:
            return f"{self.file}, weights w + h[u] - h[v], h to {self.max_potential}"
        return self.file or f"{self.generator}{self.arguments}"


# Graphs with a target for their speed come first, so that a run that is cut off has measured them.
GRAPHS = (
    GraphSource("USA-road-NE", file="USA-road-NE-topology"),
    GraphSource("lattice-1500", generator="lattice", arguments=(1500, 1500, 0.1)),
    GraphSource("soc-Slashdot0902", file="soc-Slashdot0902", directed=True),
    GraphSource("cnr-2000", file="cnr-2000", directed=True),
    GraphSource("rmat-20", generator="rmat", arguments=(20, 16)),
    GraphSource("delaunay_n16", file="delaunay_n16"),
    GraphSource("ego-Twitter", file="ego-Twitter-undirected"),
    GraphSource("dblp-2010", file="dblp-2010"),
    GraphSource("web-NotreDame", file="web-NotreDame", directed=True),
    GraphSource("mesh-1000", generator="mesh", arguments=(1000, 1000)),
    GraphSource("erdos-renyi-2M", generator="erdos_renyi", arguments=(2_000_000, 64_000_000)),
    GraphSource("rmat-22", generator="rmat", arguments=(22, 16)),
    GraphSource("USA-road-NY-negative", file="USA-road-d.NY", directed=True, max_potential=10_000),
    GraphSource("luxembourg_osm", file="luxembourg_osm"),
    GraphSource("USA-road-NW", file="USA-road-NW-topology"),
    GraphSource("USA-road-FLA", file="USA-road-FLA-topology"),
    GraphSource("USA-road-NY", file="USA-road-NY-topology", parts=("systems",)),
    *(
        GraphSource(f"degree-six-{size}", generator="degree_six", arguments=(side, side), parts=("systems",))
        for size, side in {"1M": 1000, "2M": 1414, "5M": 2236, "7M": 2646, "9M": 3000, "10M": 3162}.items()
    ),
    *(
        GraphSource(
            f"scale-free-{millions}M",
            generator="scale_free",
            arguments=(millions * 10**6,),
            directed=True,
            parts=("systems",),
        )
        for millions in (1, 5, 10)
    ),
)

# Graphs on which less important knobs are swept, too.
DETAILED = ("rmat-20", "soc-Slashdot0902")


@dataclass(frozen=True)
class Setting:
    """One column of a table: a strategy with knobs (None: those of its rule), on so many threads (0: all)."""

    part: str
    group: str
    label: str
    strategy: str
    knobs: dict | None = None
    threads: int = 0


# Strategies that are compared with the baseline, with the knobs that they choose themselves.
STRATEGIES = {
    ("bfs", "cuda"): ("queue_warp", "queue_thread", "bfs_4k", "persistent"),
    ("sssp", "cuda"): ("frontier", "h_bf", "persistent"),
    ("bfs", "cpu"): ("switch", "queue"),
    ("sssp", "cpu"): ("near_far", "frontier"),
}
# The strategies with features and knobs, and the device they run on.
PUBLISHED = {("bfs", "cuda"): "bfs_4k", ("sssp", "cuda"): "h_bf"}

# Feature: knobs that switch it off, knobs that switch it on.
FEATURES = {
    "bfs_4k": {
        "dynamic widths": ({"dynamic_width": False, "k1": 1}, {"dynamic_width": True, "k1": 4}),
        "edge discover": ({"k4": 0, "extended": False}, {"k4": 1, "extended": True}),
        "children": ({"heavy": "none"}, {"heavy": "children"}),
        "single block": ({"k5": 0}, {"k5": 1}),
        "shared reads": ({"shared_reads": False}, {"shared_reads": True}),
        "coalesced writes": ({"k7": 17}, {"k7": 10}),
        "prefix sum": ({"append": "thread"}, {"append": "block"}),
        "Hash64": ({"duplicates": "keep"}, {"duplicates": "hash64"}),
    },
    "h_bf": {
        "edge classes": ({"edge_classes": False}, {"edge_classes": True}),
        "duplicates": ({"duplicates": "keep"}, {"duplicates": "atomic64"}),
        "cache modifiers": ({"cache_modifiers": False}, {"cache_modifiers": True}),
        "shared enqueue": ({"enqueue": "atomic"}, {"enqueue": "shared"}),
        "warp workload": ({"vertices_per_warp": 1}, {"vertices_per_warp": 32}),
        "dynamic widths": ({"min_width": 32, "max_width": 32}, {"min_width": 4, "max_width": 32}),
        "children": ({"heavy": "none"}, {"heavy": "children"}),
    },
}
# Alternatives of a feature, with all other features on.
VARIANTS = {
    "bfs_4k": {
        "heavy: blocks": {"heavy": "blocks"},
        "duplicates: atomic": {"duplicates": "atomic"},
        "not extended": {"extended": False},
        "append: warp": {"append": "warp"},
    },
    "h_bf": {
        "heavy: blocks": {"heavy": "blocks"},
        "duplicates: mark": {"duplicates": "mark"},
        "enqueue: prefix sum": {"enqueue": "prefix_sum"},
    },
}
# Knobs that are swept, with the others at the published default: on all graphs, and on DETAILED ones only.
SWEEPS = {
    "bfs_4k": {"k1": (1, 2, 4, 8, 16, 32), "k4": (0, 1, 2, 4), "k5": (0, 1, 2, 4, 8)},
    "h_bf": {"min_width": (1, 2, 4, 8, 16, 32), "vertices_per_warp": (1, 8, 32)},
}
DETAILED_SWEEPS = {
    "bfs_4k": {"k2": (0.0, 0.0002, 0.0015, 0.01), "k3": (4, 16, 64), "k6": (64, 128, 256), "k7": (0, 5, 10, 17)},
    "h_bf": {"heavy_degree": (256, 1024, 4096, 16384)},
}
COUNTED = {
    "bfs_4k": {
        "published": {},
        "duplicates kept": {"duplicates": "keep"},
        "width 4, Hash64": {"k4": 0, "k5": 0, "dynamic_width": False, "k1": 4},
        "width 4, duplicates kept": {"k4": 0, "k5": 0, "dynamic_width": False, "k1": 4, "duplicates": "keep"},
        "width 1, Hash64": {"k4": 0, "k5": 0, "dynamic_width": False, "k1": 1},
    },
    "h_bf": {
        "published": {},
        "duplicates kept": {"duplicates": "keep"},
        "duplicates marked": {"duplicates": "mark"},
        "no edge classes": {"edge_classes": False},
    },
}


def merged(*settings: dict) -> dict:
    return {key: value for setting in settings for key, value in setting.items()}


def features_of(strategy: str) -> list[Setting]:
    """Every feature off, each alone, all but each, all, other ways, and what the rule chooses (as Fig. 14, Table 3)."""
    table = FEATURES[strategy]
    off, on = (merged(*(pair[i] for pair in table.values())) for i in (0, 1))
    alone = {"none": off} | {name: merged(off, pair[1]) for name, pair in table.items()}
    without = {"all": on} | {name: merged(on, pair[0]) for name, pair in table.items()}
    variants = {"all": on} | {name: merged(on, change) for name, change in VARIANTS[strategy].items()}
    groups = {"alone": alone | {"all": on, "rule": None}, "without": without, "variants": variants}
    return [
        Setting("features", group, label, strategy, knobs)
        for group, labels in groups.items()
        for label, knobs in labels.items()
    ]


def knobs_of(strategy: str, graph: str) -> list[Setting]:
    """Each knob through its values, the others as published."""
    sweeps = SWEEPS[strategy] | (DETAILED_SWEEPS[strategy] if graph in DETAILED else {})
    return [
        Setting("knobs", knob, "off" if value is None else str(value), strategy, {knob: value})
        for knob, values in sweeps.items()
        for value in values
    ]


def counted_of(strategy: str) -> list[Setting]:
    return [
        Setting("counters", "counters", label, strategy, knobs | {"counters": True})
        for label, knobs in COUNTED[strategy].items()
    ]


def rows_for(algorithm: str, device: str) -> list:
    """Return the strategies of a registry for a device."""
    from kepler_traverse.bfs import REGISTRY as BFS_REGISTRY
    from kepler_traverse.sssp import REGISTRY as SSSP_REGISTRY

    BFS = BFS_REGISTRY.with_plugins()[0]
    SSSP = SSSP_REGISTRY.with_plugins()[0]

    strategies = BFS if algorithm == "bfs" else SSSP
    return [strategy for strategy in strategies if strategy.device == device and strategy.sums == "float"]


def swept_values(strategy, graph: str) -> dict[str, tuple]:
    """Return the knobs of a strategy that are swept on a graph, with their values."""
    swept = SWEPT | (DETAILED_SWEPT if graph in DETAILED else {})
    names = [field.name for field in fields(strategy.knobs)] if strategy.knobs else []
    return {name: swept[name] for name in names if name in swept}


def systems_of(algorithm: str, device: str, graph: str) -> list[Setting]:
    """Return every strategy of the registry on a graph of a comparison table, with swept widths or numbers of threads."""
    tables = compared(algorithm, graph)
    strategies = rows_for(algorithm, device) if tables else []
    found = [Setting("systems", "rows", strategy.name, strategy.name) for strategy in strategies]
    found += [
        Setting("systems", "swept", f"{strategy.name}, {knob} {value}", strategy.name, {knob: value})
        for strategy in strategies
        for knob, values in swept_values(strategy, graph).items()
        for value in values
    ]
    for table in tables:
        threaded = [strategy for _, strategy in table.rows(strategies)] if table.threads else []
        found += [
            Setting("systems", "threads", f"{strategy.name}, threads {threads}", strategy.name, threads=threads)
            for strategy in threaded
            for threads in THREADS
        ]
    return found


def settings_for(algorithm: str, device: str, graph: str, parts) -> list[Setting]:
    """Return everything to measure on a graph, the comparison with the baseline first."""
    found = [Setting("peers", "peers", name, name) for name in STRATEGIES[algorithm, device]]
    published = PUBLISHED.get((algorithm, device))
    if published:
        found += features_of(published) + knobs_of(published, graph) + counted_of(published)
    found += systems_of(algorithm, device, graph)
    return [setting for setting in found if setting.part in parts]
