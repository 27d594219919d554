"""What the papers say: titles, tables and figures, typed from their texts. Times are in milliseconds."""

from __future__ import annotations

from typing import NamedTuple


class Paper(NamedTuple):
    """A paper, and the machine on which it measured."""

    title: str
    authors: str
    where: str
    machine: str
    what: str


PAPERS = {
    "bfs-4k": Paper(
        "BFS-4K: an Efficient Implementation of BFS for Kepler GPU Architectures",
        "Federico Busato, Nicola Bombieri",
        "IEEE Transactions on Parallel and Distributed Systems, 2015. The text that we have names no DOI",
        "NVIDIA GeForce GTX 780, AMD Phenom II X6 1055T",
        "strategy `bfs_4k`",
    ),
    "h-bf": Paper(
        "An efficient implementation of the Bellman-Ford algorithm for Kepler GPU architectures",
        "Federico Busato, Nicola Bombieri",
        "IEEE Transactions on Parallel and Distributed Systems, 2015. "
        "[DOI 10.1109/TPDS.2015.2485994](https://doi.org/10.1109/TPDS.2015.2485994)",
        "NVIDIA GeForce GTX 780, AMD Phenom II X6 1055T",
        "strategy `h_bf`",
    ),
    "uiuc-bfs": Paper(
        "An Effective GPU Implementation of Breadth-First Search",
        "Lijuan Luo, Martin Wong, Wen-mei Hwu",
        "Design Automation Conference (DAC), 2010, pages 52-55. The text that we have names no DOI",
        "NVIDIA GeForce GTX 280, two dual-core Opterons of 2.4 GHz",
        "strategy `queue_of_warps`, called UIUC-BFS",
    ),
    "springer": Paper(
        "Breadth-first Search in CUDA",
        "Matthias Springer",
        "Tokyo Institute of Technology, without a year or a DOI. Springer is the author, not a publisher",
        "TSUBAME 2.5",
        "eleven strategies, `scan_*` and `queue_*`",
    ),
    "sevilmis": Paper(
        "CS406 Project: Parallelization of BFS",
        "Baris Sevilmis, Emre Yasin Sivri, Gizem Aydin",
        "A report of a course, May 2019, without a DOI",
        "two Intel Xeon E5-2620 v4 (16 cores), NVIDIA GTX Titan X",
        "strategies `buffers`, `pull_*`, `scan_level`, `scan_switch`, `queue_thread`, "
        "`queue_switch`, and the library's `switch`",
    ),
}


class Original(NamedTuple):
    """A graph of a paper, in the numbers of its table: millions of vertices and edges. BFS-4K says mode for largest."""

    vertices: float
    edges: float
    mean: float | None = None
    deviation: float | None = None
    largest: int | None = None
    diameter: int | None = None


ORIGINALS = {
    "Amazon0505": Original(0.4, 3.4, 8.2, 3.1, 10, 40),
    "web-Google": Original(0.9, 5.1, 5.6, 6.5, 456, 34),
    "com-youtube": Original(1.2, 6.0, 5.2, 50.2, 28754, 24),
    "as-skitter": Original(1.7, 22.2, 12.1, 136.9, 35455, 31),
    "roadNet-CA": Original(2.0, 5.5, 2.8, 1.0, 12, 865),
    "soc-LiveJournal1": Original(4.8, 69.0, 14.2, 36.1, 20293, 19),
    "Gen-ForestFire": Original(1.0, 7.3, 7.3, 38.3, 2416, 19),
    "Gen-SmallWorld": Original(2.0, 40.0, 20.0, 2.3, 32, 7),
    "europa.osm": Original(50.9, 108.1, 2.1, 0.5, 13, 30102),
    "hugehubbles-00020": Original(21.2, 63.6, 3.0, 0.0, 3, 7905),
    "nlpkt160": Original(8.3, 221.2, 26.5, 2.7, 27, 162),
    "audikw1": Original(0.9, 76.7, 81.3, 42.4, 344, 81),
    "kkt_power": Original(2.1, 13.0, 6.3, 7.5, 95, 49),
    "coPapersCiteseer": Original(0.4, 32.1, 73.9, 101.3, 1188, 34),
    "kron_g500-lon20": Original(1.0, 100.7, 96.0, 1033.2, 413378, 7),
    "random.2Mv.128Me": Original(2.0, 128.0, 64.0, 10.6, 183, 5),
    "rmat.2Mv.128Me": Original(2.0, 128.0, 64.0, 136.8, 8785, 5),
    "asia.osm": Original(12.0, 25.4, 2.1, 0.5, 9, 38576),
    "USA-road-d.CAL": Original(1.9, 4.7, 2.5, 0.9, 7, 2575),
    "delaunay_n20": Original(1.9, 6.3, 6.0, 1.3, 23, 380),
    "msdoor": Original(0.415, 20.6, 49.7, 11.7, 78, 167),
    "circuit5M_dc": Original(3.5, 19.2, 5.4, 2.1, 27, 135),
    "rmat.3Mv.20Me": Original(3.0, 20.0, 6.7, 10.2, 521, 15),
    "flickr": Original(0.82, 9.8, 12.0, 87.7, 10272, 12),
    "Hugetrace_00000": Original(4.6, 13.8, 3.0, 0.0, 3, 4119),
    "wiki-talk": Original(2.4, 5.0, 2.1, 99.9, 100022, 9),
    "as-Skitter": Original(1.7, 22.2, 13.1, 136.9, 35455, 31),
    "random_2Mv.128Me": Original(2.0, 128.0, 64.0, 8.0, 114, 5),
    "Slashdot": Original(0.077, 0.905, 11.7, 36.8, None, 10),
    "WikiTalk": Original(2.394, 5.021, 2.1, 99.9, None, 9),
    "California Roads": Original(1.965, 5.533, 2.8, 1.0, None, 849),
    "New York": Original(0.264, 0.73, 2.8, None, None, None),
    "Florida": Original(1.07, 2.7, 2.5, None, None, None),
    "USA-East": Original(3.599, 8.8, 2.4, None, None, None),
    "USA-West": Original(6.262, 15.2, 2.4, None, None, None),
}

# BFS-4K, table 2: Harish, edge parallelism, static virtual warp, Luo, Garland, BFS-4K. None: out of time or memory, no run.
BFS_4K_TABLE_2: dict[str, tuple[float | None, ...]] = {
    "Amazon0505": (5.2, 7.2, 5.2, 4.3, None, 1.5),
    "web-Google": (12.0, 9.2, 12.0, 7.3, None, 1.6),
    "com-youtube": (57.0, 5.5, 19.0, None, None, 3.1),
    "as-skitter": (95.0, 24.0, 28.0, None, None, 6.5),
    "roadNet-CA": (120.7, 154.4, 120.7, 20.2, None, 5.5),
    "soc-LiveJournal1": (91.0, 61.0, 52.0, None, None, 24.4),
    "Gen-ForestFire": (37.0, 5.4, 14.0, None, None, 2.7),
    "Gen-SmallWorld": (33.0, 27.0, 24.0, None, None, 15.1),
    "europa.osm": (59620.0, 78422.0, 59620.0, 684.0, 305.0, 264.8),
    "hugehubbles-00020": (8123.0, 11922.0, 8123.0, 220.0, 103.0, 95.9),
    "nlpkt160": (351.0, 1486.0, 351.0, None, 80.4, 39.2),
    "audikw1": (68.0, 185.0, 36.0, 54.0, 21.5, 11.1),
    "cage15": (95.0, 213.0, 95.0, 96.0, 42.2, 28.8),
    "kkt_power": (36.0, 24.5, 36.0, 24.0, 8.8, 8.5),
    "coPapersCiteseer": (21.2, 40.6, 11.4, None, 8.6, 4.9),
    "kron_g500-lon20": (675.0, 47.4, 67.0, None, None, 34.4),
    "random.2Mv.128Me": (112.0, 73.0, 63.0, None, 66.5, 52.0),
    "rmat.2Mv.128Me": (103.0, 62.0, 56.0, None, None, 43.4),
}
BFS_4K_RIVALS = ("Harish", "Edge Parall.", "Static Virtual Warp", "Luo", "Garland")

# H-BF, table 2: queue-based Bellman-Ford, Boost's Dijkstra, LoneStar, the better of Davidson's, H-BF.
H_BF_TABLE_2 = {
    "asia.osm": (32000.0, 5200.0, 280000.0, 12700.0, 3400.0),
    "USA-road-d.CAL": (20600.0, 588.0, 3900.0, 4600.0, 720.0),
    "delaunay_n20": (3200.0, 581.0, 902.0, 420.0, 105.0),
    "msdoor": (1200.0, 676.0, 1900.0, 206.0, 36.0),
    "circuit5M_dc": (3200.0, 4100.0, 657.0, 240.0, 68.0),
    "rmat.3Mv.20Me": (6400.0, 4000.0, 520.0, 133.0, 99.0),
    "flickr": (887.0, 963.0, 1200.0, 49.0, 32.0),
}
H_BF_MTEPS = {"asia.osm": 7.5, "USA-road-d.CAL": 6.4, "delaunay_n20": 60, "msdoor": 570, "circuit5M_dc": 282,
              "rmat.3Mv.20Me": 201, "flickr": 307}  # fmt: skip
# H-BF, table 3: sequential, without the optimization, with it.
H_BF_TABLE_3 = {
    "Hugetrace_00000": (82000.0, 4100.0, 1400.0),
    "wiki-talk": (1000.0, 65.0, 19.0),
    "as-Skitter": (2500.0, 199.0, 77.0),
    "random_2Mv.128Me": (84000.0, 1445.0, 760.0),
}
# Luo, Wong, Hwu: IIIT-BFS, CPU-BFS, UIUC-BFS.
UIUC = {
    "degree-six-1M": (462.8, 146.7, 67.8),
    "degree-six-2M": (1129.2, 311.8, 121.0),
    "degree-six-5M": (4092.2, 1402.2, 266.0),
    "degree-six-7M": (6597.5, 2831.4, 509.5),
    "degree-six-9M": (9170.1, 4388.3, 449.3),
    "degree-six-10M": (11019.8, 5023.0, 488.0),
    "USA-road-NY": (79.9, 41.6, 19.4),
    "USA-road-FLA": (372.0, 120.7, 61.7),
    "road-3M6": (1471.1, 581.4, 158.5),
    "road-6M3": (2579.4, 1323.0, 236.6),
    "scale-free-1M": (161.5, 52.8, 100.7),
    "scale-free-5M": (1015.4, 284.0, 302.0),
    "scale-free-10M": (2252.8, 506.9, 483.6),
}
# Sevilmis et al., table 1, seconds: top-down with 1, 2, 4, 8, 16 threads; hybrid with as many.
SEVILMIS_1 = {
    "coPapersCiteseer": (
        (0.0564, 0.06, 0.0365, 0.0228, 0.0215),
        (0.0411, 0.028, 0.02, 0.015, 0.0094),
    ),
    "rmat-er": ((3.7992, 2.5532, 1.3729, 0.7694, 0.611), (1.3912, 0.963, 0.6521, 0.3785, 0.2624)),
    "rmat-b": ((2.5821, 2.0021, 1.1552, 0.6392, 0.415), (0.5273, 0.3472, 0.2945, 0.1883, 0.1358)),
    "europe.osm": (
        (1.6455, 0.9164, 0.8339, 0.6363, 0.7946),
        (1.5177, 1.3297, 0.8813, 0.6642, 0.794),
    ),
    "wikipedia": ((0.2651, 0.1447, 0.084, 0.0516, 0.105), (0.0797, 0.0783, 0.0406, 0.0267, 0.0486)),
}
# Tables 2 and 3, seconds: by layers top-down and hybrid, by frontiers top-down and hybrid.
SEVILMIS_23 = {
    "coPapersCiteseer": (0.055, 0.0036, 0.0096, 0.0044),
    "rmat-er": (0.1671, 0.0267, 0.2947, 0.11),
    "rmat-b": (0.1738, 0.1596, 0.2268, 0.0748),
    "europe.osm": (10.7791, 10.7351, 0.5278, 0.5873),
    "wikipedia": (0.0322, 0.0231, 0.0332, 0.0199),
}

DEFINITIONS = """- **as published**: the knobs that the paper gives as defaults ([strategies.md](strategies.md) lists them).
- **by the rule**: the knobs that the strategy chooses from the graph's degrees (`rule` in the module of the
  strategy). They were set after measurements on an H200. **by a search**: the best of the values that were
  measured, named in the cell.
- **K1 to K7** are the knobs of BFS-4K: K1, the least number of lanes that share a vertex; K2, the share of
  vertices, those of the highest degree, that child kernels visit; K3, the edges that each thread of a child
  visits; K4, edge-discover below the number of resident threads / K4 vertices in the frontier (0: never); K5, a
  single block up to 1,024 K5 vertices (0: never); K6, the threads of a block where many run; K7, coalesced
  writes from K7 vertices per thread on.
- **T_DP** of H-BF: the degree above which a vertex gets child kernels.
- **queued**, **enqueued**: vertices put into a frontier, each time. **duplicates**: those of them that Hash64
  found and removed; **conflicts**: those of which it cannot tell; **duplicates_avoided**: those that the 64-bit
  atomics of H-BF kept out. **left**: queued vertices beyond those reached. **edges**: looked at.
- **single_block**, **many_blocks**: launches of either kernel of BFS-4K. **children**, **child_launches**: child
  kernels. **overflows**: levels that did not fit into the queue.
- **relaxations**: edges for which a candidate distance was computed; **successful**: those that lowered a
  distance. **direct_writes**: distances stored without an atomic. **skipped_edges**: of a class that needs no
  relaxation; **closed**: those that the last kernel relaxed.
- **inspected**: neighbors that the culling of Merrill et al. looked at; **by_bits**, **by_history**, **by_warp**:
  those that its bitmask, its table of a block and its table of a warp rejected.
- `persistent`, the library's choice, is in no paper: it searches in one launch. `switch` and `queue_thread` are the
  library's, too, after Sevilmis et al. [strategies.md](../strategies.md) describes them.
- **spread**: the distance of the quartiles of the repeats, divided by their median.
"""


class Item(NamedTuple):
    """A figure, table or algorithm of a paper: what it shows, and where it is here, or why it is not."""

    what: str
    here: str


_EXAMPLE = "an example without a measurement"
_LISTING = "a listing: the kernels are in `kepler_traverse/published`"
_ALGORITHM = "an algorithm: implemented"

# Every figure, table and algorithm of the papers. [[TITLE]] is a section of the page.
FIGURES: dict[str, dict[str, Item]] = {
    "bfs-4k": {
        "Figure 1": Item("the systems compared", "[[Figure 1: the systems]]"),
        "Figure 2": Item("a visit in steps, frontier and duplicates", _EXAMPLE),
        "Figure 3": Item(
            "the prefix sum of a warp", "`kt/scan.cuh`; its effect: [[Figure 14: features]]"
        ),
        "Figure 4": Item(
            "virtual warps of growing width", f"{_EXAMPLE}; its effect: [[Figure 14: features]]"
        ),
        "Figure 5": Item("grids of children for three degrees", f"{_EXAMPLE}; K3: [[Knobs]]"),
        "Figure 6": Item(
            "edge-discover in steps", f"{_EXAMPLE}; its effect: [[Figure 14: features]]"
        ),
        "Figure 7": Item(
            "which kernel runs at which frontier",
            "[[Figures 7, 10, 12 and 13a: levels and duplicates]]",
        ),
        "Figure 8": Item(
            "the layout of shared memory", "`_SharedMemory` in `bfs_4k.py`; K5 and K6: [[Knobs]]"
        ),
        "Figure 9": Item("coalesced writes", f"{_EXAMPLE}; their effect: [[Figure 14: features]]"),
        "Figure 10": Item(
            "how duplicates grow by steps",
            "an example; counted [[Figures 7, 10, 12 and 13a: levels and duplicates]]",
        ),
        "Figure 11": Item("the code of Hash64", "`bfs_4k.cu`; its effect: [[Figure 14: features]]"),
        "Figure 12": Item(
            "duplicates by the way to visit, with and without Hash64",
            "[[Figures 7, 10, 12 and 13a: levels and duplicates]]",
        ),
        "Figure 13": Item(
            "Hash64 beside the culling of Merrill et al.",
            "a: [[Figures 7, 10, 12 and 13a: levels and duplicates]]; "
            "b: [[Figure 13b: the culling of Merrill et al.]]",
        ),
        "Figure 14": Item("the features on as-skitter", "[[Figure 14: features]]"),
        "Figure 15": Item(
            "speedups over a sequential search",
            "[[Figure 15: the others' times divided by BFS-4K's]], the sequential one among them",
        ),
        "Table 1": Item(
            "the graphs", "[Graphs](README.md#graphs), beside those that stand for them"
        ),
        "Table 2": Item("times", "[[Table 2: times]]"),
    },
    "h-bf": {
        "Figure 1": Item("the basic algorithm in steps", _EXAMPLE),
        "Figure 2": Item(
            "edge classes in the same example", f"{_EXAMPLE}; skipped edges: [[Counters]]"
        ),
        "Figure 3": Item("how duplicates arise", f"{_EXAMPLE}; duplicates: [[Counters]]"),
        "Figure 4": Item("distance and round in one word", "`h_bf.cu`; its effect: [[Features]]"),
        "Figure 5": Item("enqueuing through shared memory", "`h_bf.cu`; its effect: [[Features]]"),
        "Figure 6": Item("virtual warps", f"{_EXAMPLE}; their effect: [[Features]]"),
        "Figure 7": Item(
            "degrees of flickr above T_DP",
            "degrees in classes: [Graphs](README.md#graphs); T_DP: [[Knobs]]",
        ),
        "Figure 8": Item("speedups", "[[Figure 8: the others' times divided by H-BF's]]"),
        "Figure 9": Item(
            "relaxations on msdoor during a search",
            "[[Figure 9: relaxations]], as totals; plate-415k stands for msdoor",
        ),
        "Table 1": Item(
            "the graphs, with their degrees",
            "[Graphs](README.md#graphs), beside those that stand for them",
        ),
        "Table 2": Item(
            "times and MTEPS",
            "[[Table 2: times]]; [[Table 2: millions of traversed edges per second]]",
        ),
        "Table 3": Item(
            "optimizations on graphs with negative weights",
            "[[Table 3: graphs with negative weights]]",
        ),
        "Algorithm 1": Item(
            "Bellman-Ford", f"{_ALGORITHM} as `sweeps`; counted: [[Figure 9: relaxations]]"
        ),
        "Algorithm 2": Item("relaxing an edge", f"{_ALGORITHM} in each of them"),
        "Algorithm 3": Item(
            "Bellman-Ford with a frontier", f"{_ALGORITHM} as `h_bf` without features"
        ),
        "Algorithm 4": Item("edge classes", f"{_ALGORITHM}: knob `edge_classes`"),
        "Algorithm 5": Item("relaxing by a 64-bit atomic", f"{_ALGORITHM}: knob `duplicates`"),
        "Algorithm 6": Item(
            "the same in detail",
            f"{_ALGORITHM}, with a check that the distance falls, which its listing lacks",
        ),
    },
    "uiuc-bfs": {
        "Figure 1": Item(
            "a fast n² beside a slow n log n", "an argument, not measured in the paper"
        ),
        "Figure 2": Item("a search in steps", _EXAMPLE),
        "Figure 3": Item(
            "frontiers of warp, block and grid",
            "a drawing; `block_queues.cu`; [[Queues of a block and of its warps]]",
        ),
        "Figure 4": Item(
            "how a GTX 280 schedules threads", "of that device alone: [[Left out, and changed]]"
        ),
        "Table 1": Item("times on regular graphs", "[[Table 1: regular graphs]]"),
        "Table 2": Item("times on road networks", "[[Table 2: real graphs]]"),
        "Table 3": Item("times on scale-free graphs", "[[Table 3: scale-free graphs]]"),
    },
    "springer": {
        "Figure 1": Item("the arrays of a graph", _EXAMPLE),
        "Figure 2": Item("deferring", _EXAMPLE),
        "Figure 3": Item("virtual warps", _EXAMPLE),
        "Figure 4": Item("queues of blocks and of the grid", _EXAMPLE),
        "Figure 5": Item("a queue by a prefix sum", _EXAMPLE),
        "Figure 6": Item("the graphs", "[Graphs](README.md#graphs), with median degrees"),
        "Figure 7": Item("all variants on three graphs", "[[Figure 7: all variants]]"),
        "Figure 8": Item(
            "shapes of the grid on two graphs", "[[Figure 8: shapes of the grid]], on three"
        ),
        "Figure 9": Item("simple", f"{_LISTING}; `scan_relax`"),
        "Figure 10": Item("frontier", f"{_LISTING}; `scan_flags`"),
        "Figure 11": Item("frontier-numbers", f"{_LISTING}; `scan_level`"),
        "Figure 12": Item("frontier-numbers-defer", f"{_LISTING}; `scan_deferred`"),
        "Figure 13": Item("virtual-wc", f"{_LISTING}; `scan_virtual_warp`"),
        "Figure 14": Item("frontier-queue", f"{_LISTING}; `queue_of_blocks`"),
        "Figure 15": Item("frontier-scan", f"{_LISTING}; `queue_by_prefix_sum`"),
        "Figure 16": Item("per-edge-basic", f"{_LISTING}; `scan_relax_edges`"),
        "Figure 17": Item("per-edge-frontier-numbers", f"{_LISTING}; `scan_edges`"),
        "Algorithm 1": Item("sequential search", f"{_ALGORITHM} as `fifo`"),
        "Algorithm 2": Item("unoptimized search on a GPU", f"{_ALGORITHM} as `scan_relax`"),
    },
    "sevilmis": {
        "Figure 1": Item("compressed rows", _EXAMPLE),
        "Figure 2": Item("times on a CPU", "[[Table 1: threads of a CPU]]"),
        "Figure 3": Item("speedups on a CPU", "[[Table 1: threads of a CPU]]"),
        "Figure 4": Item("efficiency on a CPU", "[[Table 1: threads of a CPU]]"),
        "Figure 5": Item("times on a GPU", "[[Tables 2 and 3: GPU]]"),
        "Figure 6": Item(
            "speedups on a GPU", "[[Figure 7: CPU beside GPU, over the own serial version]]"
        ),
        "Figure 7": Item(
            "CPU and GPU in one", "[[Figure 7: CPU beside GPU, over the own serial version]]"
        ),
        "Table 1": Item("times on a CPU", "[[Table 1: threads of a CPU]]"),
        "Table 2": Item("times by layers", "[[Tables 2 and 3: GPU]]"),
        "Table 3": Item("times by frontiers", "[[Tables 2 and 3: GPU]]"),
        "Algorithm 1": Item("top-down", f"{_ALGORITHM} as `buffers`, `scan_level`, `queue_thread`"),
        "Algorithm 2": Item("bottom-up", f"{_ALGORITHM} as `pull_integers`, `pull_bits`"),
    },
}

# What a paper has and we have not, with the reason.
LEFT_OUT = {
    "bfs-4k": (
        "8-byte banks of shared memory (abstract, 2.1, 6): devices since Maxwell have banks of 4 "
        "bytes and no mode to choose.",
        "The barrier between blocks (figure 1): `bfs_4k` launches a kernel per level of many blocks; "
        "`queue_of_warps` has the "
        "barrier.",
        "The binary prefix sum by ballot (5.1): it runs where a warp empties its queues (Figure 14, append: warp), and not "
        "where a block does, as published.",
        "The rule of section 7 for K2 (lower where K1 is high, higher with edge-discover): our rule has 0.15 % where a "
        "degree exceeds 2,048, and else 0.",
        "cage15 (DNA) and kkt_power (an optimization problem): no generator gives their like; a mesh stands for kkt_power.",
        "Merrill's own hash table: ours is written from the accounts of BFS-4K and of the original "
        "paper, not from its code.",
        "europa.osm (51 million vertices) and hugebubbles (21 million): the generated graphs have "
        "12.6 and 4.6 million, so that a "
        "run of all systems fits into minutes.",
    ),
    "h-bf": (
        "Self-loops: building a graph drops those of non-negative weight, which change no distance. "
        "The class therefore acts on no "
        "graph that a user builds. plate-415k and circuit-3M5 get one per vertex after they are "
        "built, as the originals have.",
        "Parallel systems for CPUs that the paper names and does not measure: Gabow scaling (Kelley, "
        "Schardl), the parallel Boost "
        "library, Pregel, Pegasus, Blue Gene. Ligra's Bellman-Ford is about our `frontier` on a CPU.",
        "100 sources: 16, and fewer on graphs of many levels or edges (README.md, Graphs); all settings of a table have "
        "the same ones, a CPU the first four of them.",
        "The base without features: lanes that append at the same time share one atomic, so that it is "
        "faster than with one per vertex.",
        "Boost's relaxed heap: `heap` is a binary heap with decrease-key.",
        "Davidson's lookup table and compaction: a stamp with the number of the round, set by an "
        "atomic exchange, rejects "
        "duplicates in one kernel in place of three.",
    ),
    "uiuc-bfs": (
        "W-frontiers of 8 threads: on a GTX 280 eight threads of a warp ran at a time, so that their "
        "writes never met. Since Volta "
        "there are no such threads; each warp has a W-frontier, and reserves places by an atomic in shared memory.",
        "Figure 1 (an argument about complexity) and Lauterbach's compaction (another problem): not "
        "measured in the paper either.",
        "USA-East and USA-West are not to be had here: two generated road networks of their sizes are beside the real ones.",
    ),
    "springer": (
        "The scan of GPU Gems 3 with up- and down-sweep: three launches with shuffles in place of it.",
        "WikiTalk and roadNet-CA are not to be had here: a generated graph and USA-road-NE stand for them.",
        "Figure 7 has the least of five runs, with the best shape of the grid for each variant: here it is the median, with "
        "256 threads per block and a thread per vertex or edge. Figure 8 says what other shapes change.",
        "Figure 8 does not name the variant that it measures: we vary the shape of the grid of "
        "`scan_level` and `scan_edges`.",
        "The figures come without values, but for one (prefix sums on roads: 1.375 s): the claims "
        "are those of the sentences.",
    ),
    "sevilmis": (
        "The first version with a critical section (4.2.1): the paper replaced it because it 'slowed "
        "down the execution "
        "significantly', gives no number for it, and a lock around each vertex that is found teaches nothing further.",
        "Bottom-up by a scan of the whole frontier for each neighbor (4.2.2, item 1): its cost is "
        "vertices times degree times "
        "frontier; the paper calls it the worst.",
        "An atomic for each vertex that enters a frontier on the GPU (5.2): lanes that append at the "
        "same time share one.",
        "europe.osm and wikipedia are not to be had here: a generated road network and a web graph stand for them.",
    ),
}
