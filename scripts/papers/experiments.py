"""What is measured for each paper, as data: graphs, settings of strategies, and works in the order of their rank.

A work is a graph, an algorithm and the settings that are compared on it. Works of rank 1 are what the tables of claims need.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from scripts.measure.graphs import FILES, GraphSource
from scripts.measure.graphs import PAPERS as BY_NAME

__all__ = ["BY_NAME", "FILES", "GRAPHS", "GraphSource"]
PAPERS = ("bfs-4k", "h-bf", "uiuc-bfs", "springer", "sevilmis")
PARTS = ("time", "counters", "levels")


GRAPHS = tuple(BY_NAME.values())
_DEGREE_SIX = ("1M", "2M", "5M", "7M", "9M", "10M")


@dataclass(frozen=True)
class Setting:
    """A strategy with knobs.

    Attributes
    ----------
    label : str
        ``published``, ``rule``, ``library``, or what the setting changes.
    knobs : dict or None
        Those that differ from the published ones; None: those of the strategy's rule.
    how : {"published", "rule", "search", "feature", "library", "peer"}
        Who chose the knobs.
    threads : int
        Threads of a CPU; 0: all.
    """

    strategy: str
    label: str
    device: str = "cuda"
    knobs: dict | None = field(default=None, hash=False)
    how: str = "published"
    threads: int = 0
    predecessors: bool = True

    @property
    def key(self) -> tuple:
        return self.device, self.strategy, self.label, self.threads


@dataclass(frozen=True)
class Work:
    """The settings of one algorithm that are compared on one graph.

    Attributes
    ----------
    part : {"time", "counters", "levels"}
        What is recorded of them.
    group : str
        What they are compared for. Times of one group are measured in turn, and only they are compared: the published set is
        in several groups.
    """

    rank: int
    graph: str
    algorithm: str
    settings: tuple[Setting, ...]
    part: str = "time"
    group: str = "systems"


def published(*strategies: str) -> tuple[Setting, ...]:
    return tuple(Setting(strategy, "published", knobs={}) for strategy in strategies)


def by_rule(*strategies: str) -> tuple[Setting, ...]:
    return tuple(Setting(strategy, "rule", how="rule") for strategy in strategies)


def library(*strategies: str) -> tuple[Setting, ...]:
    return tuple(Setting(strategy, "library", how="library") for strategy in strategies)


def searched(strategy: str, **values: Iterable) -> tuple[Setting, ...]:
    """Return a setting per value of each knob: the best of them is what a search over the knob finds."""
    return tuple(
        Setting(strategy, f"{name} {value}", knobs={name: value}, how="search")
        for name, every in values.items()
        for value in every
    )


SEQUENTIAL_BFS = Setting("fifo", "published", "cpu", threads=1)
SEQUENTIAL_SSSP = tuple(
    Setting(name, "published", "cpu", threads=1, predecessors=False) for name in ("fifo", "heap")
)
# 16 is Springer's, and so the published one
WIDTHS = searched("scan_virtual_warp", width=(1, 2, 4, 8, 32))
MERRILL = ("gather_expand_contract", "gather_contract_expand", "gather_two_phase", "gather_switch")

# Feature: knobs that switch it off, knobs that switch it on.
FEATURES: dict[str, dict[str, tuple[dict, dict]]] = {
    "bfs_4k": {
        "dynamic widths": ({"dynamic_width": False, "k1": 1}, {"dynamic_width": True, "k1": 4}),
        "edge-discover": ({"k4": 0, "extended": False}, {"k4": 1, "extended": True}),
        "children": ({"heavy": "none"}, {"heavy": "children"}),
        "single block": ({"k5": 0}, {"k5": 1}),
        "shared reads": ({"shared_reads": False}, {"shared_reads": True}),
        "coalesced writes": ({"k7": 17}, {"k7": 10}),
        "prefix sum": ({"append": "thread"}, {"append": "block"}),
        "Hash64": ({"duplicates": "keep"}, {"duplicates": "hash64"}),
    },
    "h_bf": {
        "edge classes": ({"edge_classes": False}, {"edge_classes": True}),
        "duplicate removal": ({"duplicates": "keep"}, {"duplicates": "atomic64"}),
        "frontier streamed": ({"stream_frontier": False}, {"stream_frontier": True}),
        "edges read-only": ({"read_only_edges": False}, {"read_only_edges": True}),
        "L1 bypassed": ({"bypass_l1": False}, {"bypass_l1": True}),
        "shared enqueue": ({"enqueue": "atomic"}, {"enqueue": "shared"}),
        "warp workload": ({"vertices_per_warp": 1}, {"vertices_per_warp": 32}),
        "dynamic widths": ({"min_width": 32, "max_width": 32}, {"min_width": 4, "max_width": 32}),
        "children": ({"heavy": "none"}, {"heavy": "children"}),
    },
}
# Alternatives of a feature, with all other features on.
VARIANTS: dict[str, dict[str, dict]] = {
    "bfs_4k": {
        "heavy: blocks": {"heavy": "blocks"},
        "duplicates: atomic": {"duplicates": "atomic"},
        "not extended": {"extended": False},
        # with the ballot where no lane has more than one vertex
        "append: warp": {"append": "warp"},
    },
    "h_bf": {
        "heavy: blocks": {"heavy": "blocks"},
        "duplicates: mark": {"duplicates": "mark"},
        "enqueue: prefix sum": {"enqueue": "prefix_sum"},
    },
}
SWEEPS: dict[str, dict[str, tuple]] = {
    "bfs_4k": {
        "k1": (1, 2, 8, 16, 32),
        "k2": (0.0002, 0.01),
        "k3": (4, 64),
        "k4": (2, 4),
        "k5": (2, 4, 8),
        "k6": (64, 256),
        "k7": (0, 5),
    },
    "h_bf": {
        "min_width": (1, 2, 8, 16),
        "vertices_per_warp": (8,),
        "heavy_degree": (256, 1024, 16384),
    },
}


def off(strategy: str) -> dict:
    return {
        name: value for feature, _ in FEATURES[strategy].values() for name, value in feature.items()
    }


def alone(strategy: str, *features: str) -> tuple[Setting, ...]:
    """Return no feature, and each of these features alone (all of them, if none is named)."""
    table = FEATURES[strategy]
    found = [Setting(strategy, "none", knobs=off(strategy), how="feature")]
    for name in features or table:
        found.append(
            Setting(strategy, f"only {name}", knobs=off(strategy) | table[name][1], how="feature")
        )
    return tuple(found)


def without(strategy: str, *features: str) -> tuple[Setting, ...]:
    table = FEATURES[strategy]
    names = features or table
    return tuple(
        Setting(strategy, f"without {name}", knobs=table[name][0], how="feature") for name in names
    )


def variants(strategy: str) -> tuple[Setting, ...]:
    return tuple(
        Setting(strategy, label, knobs=knobs, how="feature")
        for label, knobs in VARIANTS[strategy].items()
    )


def featured(strategy: str) -> tuple[Setting, ...]:
    """Return all settings that tell what each feature of a strategy does."""
    both = published(strategy) + by_rule(strategy)
    return both + alone(strategy) + without(strategy) + variants(strategy)


def swept(strategy: str) -> tuple[Setting, ...]:
    return searched(strategy, **SWEEPS[strategy])


def counted(*settings: Setting) -> tuple[Setting, ...]:
    return tuple(
        replace(setting, knobs=(setting.knobs or {}) | {"counters": True}) for setting in settings
    )


# --- BFS-4K ------------------------------------------------------------------------------------------------------------

# Table 1 and 2: our graph, and the paper's for which it stands.
BFS_4K = {
    "co-purchase-410k": "Amazon0505",
    "web-NotreDame": "web-Google",
    "ego-Twitter": "com-youtube",
    "internet-1M7": "as-skitter",
    "USA-road-NE": "roadNet-CA",
    "friends-4M8": "soc-LiveJournal1",
    "forest-fire-1M": "Gen-ForestFire",
    "small-world-2M": "Gen-SmallWorld",
    "road-12M": "europa.osm",
    "honeycomb-4M6": "hugehubbles-00020",
    "brick-2M": "nlpkt160",
    "plate-415k": "audikw1",
    "mesh-1000": "kkt_power",
    "co-papers-335k": "coPapersCiteseer",
    "kron-20": "kron_g500-lon20",
    "erdos-renyi-2M": "random.2Mv.128Me",
    "rmat-2M-128M": "rmat.2Mv.128Me",
}
_BFS_4K_SYSTEMS = (
    SEQUENTIAL_BFS,
    *published(
        "scan_flags", "scan_edges", "scan_virtual_warp", "queue_of_warps", "bfs_4k", *MERRILL
    ),
    *WIDTHS,
    *by_rule("queue_of_warps", "bfs_4k"),
    *library("persistent"),
)
_CLASSES = ("internet-1M7", "USA-road-NE", "kron-20", "mesh-1000", "web-NotreDame")
_DUPLICATES = {
    "width 1": {"k1": 1},
    "width 4": {"k1": 4},
    "edge-discover": {"k4": 1},
}
_ONE_LEVEL = {"k4": 0, "k5": 0, "dynamic_width": False}


def _of_duplicates() -> tuple[Setting, ...]:
    """The ways to advance, each with and without Hash64, a launch per level (figures 10, 12 and 13)."""
    return tuple(
        Setting(
            "bfs_4k",
            f"{label}, {duplicates}",
            knobs=_ONE_LEVEL | knobs | {"duplicates": duplicates},
            how="feature",
        )
        for label, knobs in _DUPLICATES.items()
        for duplicates in ("keep", "hash64")
    )


def _bfs_4k() -> list[Work]:
    works = [Work(1, graph, "bfs", _BFS_4K_SYSTEMS) for graph in BFS_4K]
    # figure 14's sample
    works += [Work(1, "internet-1M7", "bfs", featured("bfs_4k"), group="features")]
    for graph in _CLASSES:
        culling = counted(*_of_duplicates(), *published("bfs_4k", "gather_expand_contract"))
        works.append(Work(1, graph, "bfs", culling, "counters"))
        works.append(Work(2, graph, "bfs", _of_duplicates(), group="duplicates"))
        works.append(
            Work(2, graph, "bfs", counted(*published("bfs_4k"), *_of_duplicates()), "levels")
        )
    for graph in (
        "kron-20",
        "mesh-1000",
        "USA-road-NE",
        "web-NotreDame",
        "erdos-renyi-2M",
        "rmat-2M-128M",
        "honeycomb-4M6",
    ):
        works.append(Work(2, graph, "bfs", featured("bfs_4k"), group="features"))
    for graph in ("internet-1M7", "kron-20", "USA-road-NE", "mesh-1000"):
        works.append(Work(3, graph, "bfs", published("bfs_4k") + swept("bfs_4k"), group="knobs"))
    return works + [
        Work(3, graph, "bfs", published("sparse_product", "bfs_4k")) for graph in BFS_4K
    ]


# --- H-BF --------------------------------------------------------------------------------------------------------------

H_BF = {
    "road-12M": "asia.osm",
    "USA-road-NE": "USA-road-d.CAL",
    "mesh-1000": "delaunay_n20",
    "plate-415k": "msdoor",
    "circuit-3M5": "circuit5M_dc",
    "rmat-3M-20M": "rmat.3Mv.20Me",
    "flickr-820k": "flickr",
}
# Table 3: the graph with negative weights, the paper's graph, and the optimization that it is measured for.
H_BF_NEGATIVE = {
    "honeycomb-4M6-negative": ("Hugetrace_00000", ("warp workload",)),
    "talk-2M4-negative": ("wiki-talk", ("edge classes",)),
    "internet-1M7-negative": ("as-Skitter", ("children", "dynamic widths")),
    "erdos-renyi-2M-negative": ("random_2Mv.128Me", ("duplicate removal",)),
}
DAVIDSON = ("work_front", "near_far_piles", "buckets")
_H_BF_SYSTEMS = (
    *SEQUENTIAL_SSSP,
    *published("topology_thread", *DAVIDSON, "h_bf"),
    *searched("near_far_piles", edges_a_pile=(8, 128)),
    *by_rule("h_bf"),
    *library("persistent"),
)
HINTS = ("frontier streamed", "edges read-only", "L1 bypassed")


def together(graph: str) -> Setting:
    """The optimization of table 3 that a graph is measured for, added to a base without any."""
    names = H_BF_NEGATIVE[graph][1]
    knobs = off("h_bf")
    for name in names:
        knobs |= FEATURES["h_bf"][name][1]
    return Setting("h_bf", "only " + " and ".join(names), knobs=knobs, how="feature")


def _h_bf() -> list[Work]:
    works = [Work(1, graph, "sssp", _H_BF_SYSTEMS) for graph in H_BF]
    for graph in H_BF_NEGATIVE:
        table_3 = (
            SEQUENTIAL_SSSP[0],
            *alone("h_bf")[:1],
            together(graph),
            *published("h_bf"),
            *by_rule("h_bf"),
        )
        works.append(Work(1, graph, "sssp", table_3))
        works.append(
            Work(1, graph, "sssp", counted(*published("h_bf"), *by_rule("h_bf")), "counters")
        )
    for graph in H_BF:
        works.append(
            Work(1, graph, "sssp", counted(*published("h_bf"), *by_rule("h_bf")), "counters")
        )
        works.append(Work(2, graph, "sssp", featured("h_bf"), group="features"))
        works.append(
            Work(
                3,
                graph,
                "sssp",
                published("mask_thread", "delta_stepping", "threshold_front", "h_bf"),
            )
        )
    works += [
        Work(
            2,
            "USA-road-NY-negative",
            "sssp",
            (SEQUENTIAL_SSSP[0], *published("h_bf"), *by_rule("h_bf")),
        )
    ]
    for graph in ("rmat-3M-20M", "USA-road-NE"):
        works.append(Work(3, graph, "sssp", published("h_bf") + swept("h_bf"), group="knobs"))
    return works


# --- Luo, Wong, Hwu ----------------------------------------------------------------------------------------------------

UIUC_TABLES = {
    "Table 1: regular graphs": {f"degree-six-{size}": size for size in _DEGREE_SIX},
    "Table 2: real graphs": {
        "USA-road-NY": "New York",
        "USA-road-FLA": "Florida",
        "USA-road-NE": "(of 1.5 million vertices)",
        "USA-road-NW": "(of 1.2 million vertices)",
        "road-3M6": "USA-East",
        "road-6M3": "USA-West",
    },
    "Table 3: scale-free graphs": {f"scale-free-{size}": size for size in ("1M", "5M", "10M")},
}
_LAYERS = (
    Setting("queue_of_warps", "without layer 1", knobs={"alone_up_to": 0}, how="feature"),
    Setting("queue_of_warps", "without layer 2", knobs={"grid_up_to": 0}, how="feature"),
    Setting(
        "queue_of_warps", "layer 3 alone", knobs={"alone_up_to": 0, "grid_up_to": 0}, how="feature"
    ),
    Setting("queue_of_warps", "without splitting", knobs={"split_above": 0}, how="feature"),
    *searched(
        "queue_of_warps", grid_up_to=(4096, 65536, 270336), split_above=(32, 128), room=(8192,)
    ),
)
_UIUC_SYSTEMS = (
    SEQUENTIAL_BFS,
    *published("scan_flags", "queue_of_warps"),
    *by_rule("queue_of_warps"),
    *library("persistent"),
)


def _uiuc() -> list[Work]:
    works = [
        Work(1, graph, "bfs", _UIUC_SYSTEMS) for table in UIUC_TABLES.values() for graph in table
    ]
    for rank, graph in (
        (1, "scale-free-1M"),
        (1, "USA-road-FLA"),
        (2, "degree-six-1M"),
        (2, "scale-free-5M"),
        (2, "road-6M3"),
    ):
        both = published("queue_of_warps") + by_rule("queue_of_warps")
        works.append(Work(rank, graph, "bfs", both + _LAYERS, group="layers"))
    queues = published("queue_of_blocks") + searched("queue_of_blocks", queues=("warp",))
    with_queues = ("scale-free-1M", "USA-road-FLA", "degree-six-1M")
    return works + [Work(2, graph, "bfs", queues, group="queues") for graph in with_queues]


# --- Springer ----------------------------------------------------------------------------------------------------------

SPRINGER = {
    "soc-Slashdot0902": "Slashdot",
    "talk-2M4": "WikiTalk",
    "USA-road-NE": "California Roads",
}
SPRINGER_VARIANTS = (
    *(
        "scan_relax",
        "scan_flags",
        "scan_level",
        "scan_deferred",
        "scan_by_degree",
        "scan_redirected",
        "scan_virtual_warp",
    ),
    *("queue_of_blocks", "queue_by_prefix_sum", "scan_relax_edges", "scan_edges"),
)
SHAPES = tuple((block, grid) for block in (64, 256, 1024) for grid in (0, 64, 256, 1024, 4096))


def _shapes(strategy: str) -> tuple[Setting, ...]:
    """Blocks of so many threads, in grids of so many blocks (figure 8); the published setting is among them."""
    return tuple(
        Setting(
            strategy,
            f"block {block}, grid {grid}",
            knobs={"block": block, "grid": grid},
            how="search",
        )
        for block, grid in SHAPES
        if (block, grid) != (256, 0)
    )


def _springer() -> list[Work]:
    choices = (
        *WIDTHS,
        *searched("scan_deferred", defer_from=(64, 512), room=(4096,)),
        *searched("queue_of_blocks", queues=("warp",)),
    )
    systems = (SEQUENTIAL_BFS, *published(*SPRINGER_VARIANTS), *choices, *library("persistent"))
    works = [Work(1, graph, "bfs", systems) for graph in SPRINGER]
    for rank, strategy in ((1, "scan_level"), (3, "scan_edges")):
        settings = published(strategy) + _shapes(strategy)
        works += [Work(rank, graph, "bfs", settings, group="shapes") for graph in SPRINGER]
    return works


# --- Sevilmis, Sivri, Aydin --------------------------------------------------------------------------------------------

SEVILMIS = {
    "co-papers-335k": "coPapersCiteseer",
    "erdos-renyi-2M": "rmat-er",
    "rmat-2M-128M": "rmat-b",
    "road-12M": "europe.osm",
    "web-NotreDame": "wikipedia",
}
THREADS = (1, 2, 4, 8, 16)
MULTICORE = {"buffers": "top-down", "switch": "hybrid"}
LAYERED = ("scan_level", "scan_switch", "queue_thread", "queue_switch")


def _threads(*strategies: str) -> tuple[Setting, ...]:
    how = {"switch": "library"}
    return tuple(
        Setting(name, "published", "cpu", threads=threads, how=how.get(name, "published"))
        for name in strategies
        for threads in THREADS
    )


def _sevilmis() -> list[Work]:
    systems = (SEQUENTIAL_BFS, *_threads(*MULTICORE), *published(*LAYERED), *library("persistent"))
    works = [Work(1, graph, "bfs", systems) for graph in SEVILMIS]
    return works + [
        Work(3, graph, "bfs", _threads("pull_integers", "pull_bits")) for graph in SEVILMIS
    ]


_OF_PAPER = {
    "bfs-4k": _bfs_4k,
    "h-bf": _h_bf,
    "uiuc-bfs": _uiuc,
    "springer": _springer,
    "sevilmis": _sevilmis,
}


def works_of(papers: Iterable[str]) -> list[Work]:
    """Return the works of some papers: by rank, then by graph; what several works ask of a graph at one rank is one work."""
    merged: dict[tuple, dict[tuple, Setting]] = {}
    for paper in papers:
        for work in _OF_PAPER[paper]():
            found = merged.setdefault(
                (work.rank, work.graph, work.algorithm, work.part, work.group), {}
            )
            for setting in work.settings:
                found.setdefault(setting.key, setting)
    order = {name: i for i, name in enumerate(BY_NAME)}
    keys = sorted(
        merged,
        key=lambda key: (
            key[0],
            order[key[1]],
            key[2],
            PARTS.index(key[3]),
            key[4] != "systems",
            key[4],
        ),
    )
    return [
        Work(
            rank,
            graph,
            algorithm,
            tuple(merged[rank, graph, algorithm, part, group].values()),
            part,
            group,
        )
        for rank, graph, algorithm, part, group in keys
    ]
