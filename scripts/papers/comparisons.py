"""The comparison tables of the papers, as data: their graphs, and the strategies that stand for their systems."""

from __future__ import annotations

import re
from dataclasses import dataclass

OURS = "this library"  # the choices of auto per device; in every table


@dataclass(frozen=True)
class Comparison:
    """A table of a paper."""

    key: str  # for the names of plots
    # The name of the table, and its conclusion with the device.
    title: str
    said: str
    algorithm: str  # {"bfs", "sssp"}
    graphs: dict[str, str]  # our graph to the paper's graph that it stands for
    # A column of the table, and a pattern for the name, aliases or paper of its strategies, in any case.
    systems: tuple[tuple[str, str], ...]
    device: str = ""  # only strategies of this device
    threads: bool = False  # whether the table compares numbers of threads

    def rows(self, catalogue) -> list[tuple[str, object]]:
        """Return the strategies of the table with their columns: the first that matches; our defaults last."""
        found = []
        for column, pattern in (*self.systems, (OURS, "")):
            for row in catalogue:
                about = " ".join((row.name, *row.aliases, row.paper))
                fits = row.default if column == OURS else re.search(pattern, about, re.IGNORECASE)
                if fits and self.device in ("", row.device) and row not in [earlier for _, earlier in found]:
                    found.append((column, row))
        return found


_UIUC = (("IIIT-BFS", "iiit-bfs"), ("CPU-BFS", r"Cormen|\bclrs\b"), ("UIUC-BFS", "uiuc-bfs"))
_CS406_GRAPHS = {
    "dblp-2010": "coPapersCiteseer",
    "erdos-renyi-2M": "rmat-er",
    "rmat-22": "rmat-b",
    "luxembourg_osm": "europe.osm",
    "cnr-2000": "wikipedia",
}

COMPARISONS = (
    Comparison(
        key="bfs-4k-table-2",
        title="BFS-4K, Table 2",
        said="On a GTX 780 BFS-4K was the fastest on all 18 graphs; Luo ended in time on 8 of them.",
        algorithm="bfs",
        graphs={
            "web-NotreDame": "web-Google",
            "ego-Twitter": "com-youtube",
            "soc-Slashdot0902": "soc-LiveJournal1",
            "USA-road-NE": "roadNet-CA",
            "luxembourg_osm": "europe.osm",
            "delaunay_n16": "hugebubbles-00020",
            "mesh-1000": "nlpkkt160",
            "dblp-2010": "coPapersCiteseer",
            "rmat-20": "kron_g500-logn20",
            "erdos-renyi-2M": "random.2Mv.128Me",
            "rmat-22": "rmat.2Mv.128Me",
        },
        systems=(
            ("Harish", "iiit-bfs"),
            ("Edge Parall.", "edge-parallelism"),
            ("Static Virtual Warp", r"\bvirtual-warp\b"),
            ("Luo", "uiuc-bfs"),
            ("Garland", "Merrill"),
            ("sparse matrices", "Deng"),
            ("BFS-4K", "BFS-4K"),
        ),
    ),
    Comparison(
        key="uiuc-table-1",
        title="Luo, Wong, Hwu, Table 1: regular graphs",
        said="On a GTX 280 UIUC-BFS was 2.2 (1M) to 10.3 (10M) times as fast as CPU-BFS, and IIIT-BFS slower than that. "
        "There searches began in the middle of the grid, here they begin anywhere.",
        algorithm="bfs",
        graphs={f"degree-six-{size}": size for size in ("1M", "2M", "5M", "7M", "9M", "10M")},
        systems=_UIUC,
    ),
    Comparison(
        key="uiuc-table-2",
        title="Luo, Wong, Hwu, Table 2: real graphs",
        said="On a GTX 280 UIUC-BFS was 2.0 to 5.6 times as fast as CPU-BFS, and IIIT-BFS slower than that.",
        algorithm="bfs",
        graphs={
            "USA-road-NY": "New York",
            "USA-road-FLA": "Florida",
            "USA-road-NE": "USA-East",
            "USA-road-NW": "USA-West",
        },
        systems=_UIUC,
    ),
    Comparison(
        key="uiuc-table-3",
        title="Luo, Wong, Hwu, Table 3: scale-free graphs",
        said="On a GTX 280 UIUC-BFS took 1.9 (1M) to 0.95 times (10M) as long as CPU-BFS, IIIT-BFS 3.1 to 4.4 times.",
        algorithm="bfs",
        graphs={f"scale-free-{size}": size for size in ("1M", "5M", "10M")},
        systems=_UIUC,
    ),
    Comparison(
        key="springer-figure-7",
        title="Springer, Figure 7",
        said="On TSUBAME 2.5 virtual warps of 16 and the edge-centric version did well on Slashdot, the frontier queue was "
        "the fastest on roads and WikiTalk, and prefix sums were the slowest on these two.",
        algorithm="bfs",
        graphs={"soc-Slashdot0902": "Slashdot", "USA-road-NE": "California Roads", "web-NotreDame": "WikiTalk"},
        systems=(("Springer", "Springer"),),
    ),
    Comparison(
        key="cs406-table-1",
        title="Sevilmis, Sivri, Aydin, Table 1: multicore CPU",
        said="On 16 threads of two Xeons E5-2620 top-down was 2.1 to 6.2 times as fast as on one, hybrid 1.6 to 5.3 times.",
        algorithm="bfs",
        graphs=_CS406_GRAPHS,
        systems=(("OpenMP", "Sevilmis"),),
        device="cpu",
        threads=True,
    ),
    Comparison(
        key="cs406-tables-2-3",
        title="Sevilmis, Sivri, Aydin, Tables 2 and 3: GPU",
        said="On a GTX Titan X layers took 18 to 20 times as long as frontiers on europe.osm, and were faster on rmat-er; "
        "hybrid beat top-down everywhere but with frontiers on europe.osm.",
        algorithm="bfs",
        graphs=_CS406_GRAPHS,
        systems=(("level-based", r"\bscan_level\b|\bscan_switch\b"), ("frontier-based", "Sevilmis")),
        device="cuda",
    ),
    Comparison(
        key="h-bf-table-2",
        title="H-BF, Table 2",
        said="On a GTX 780 H-BF was the fastest on six of seven graphs; on USA-road-d.CAL Dijkstra's algorithm on a CPU was "
        "(588 against 720 ms).",
        algorithm="sssp",
        graphs={
            "luxembourg_osm": "asia.osm",
            "USA-road-NE": "USA-road-d.CAL",
            "delaunay_n16": "delaunay_n20",
            "mesh-1000": "msdoor",
            "cnr-2000": "circuit5M_dc",
            "rmat-20": "rmat.3Mv.20Me",
            "soc-Slashdot0902": "flickr",
            "USA-road-NY-negative": "(none)",
        },
        systems=(
            ("Bellman-Ford Seq., without and with queue", r"\bsweeps\b|\bfifo\b"),
            ("Boost Dijkstra Seq.", r"\bdijkstra\b"),
            ("LoneStar", "lonestar"),
            ("WorkFront Sweep / Near-Far Pile", "workfront.sweep|near.far.pile|bucketing"),
            ("H-BF", "H-BF"),
            ("of its section 3", "Harish|Meyer|Ortega"),
        ),
    ),
)

# Knobs of strategies that are swept on every graph, or only on the DETAILED graphs of experiments.py. Weights are 1 to
# 255.
SWEPT = {
    "width": (1, 2, 4, 8, 16, 32),
    "delta": (4, 16, 64, 256, 1024),
    "edges_a_pile": (8, 32, 128),
    "edges_a_bucket": (8, 32, 128),
    "threshold": ("lightest_edges", "minimum"),
}
DETAILED_SWEPT = {"gathering": ("scan", "warp", "scan_warp", "scan_warp_block"), "queues": ("block", "warp")}
THREADS = (1, 2, 4, 8, 16, 32)


def compared(algorithm: str, graph: str) -> list[Comparison]:
    """Return the tables that a graph is in."""
    return [table for table in COMPARISONS if table.algorithm == algorithm and graph in table.graphs]
