"""What NetworkX reads of the backend at ``import networkx``. It imports nothing, so that this
import stays short.
"""

from __future__ import annotations

from typing import Any

_EQUAL_TO_ROUNDING = (
    "Float results may differ from NetworkX's in the last digits, "
    "because sums are added in another order."
)
_LAZY = "Paths are computed when they are read; ``dict(result)`` computes them all."

# Functions of NetworkX that the backend has, by what is said of them: results are equal to
# rounding; results are paths, which are computed when they are read; nothing.
_ROUNDED = (
    "average_shortest_path_length", "betweenness_centrality", "betweenness_centrality_subset", "closeness_centrality",
    "edge_betweenness_centrality", "edge_betweenness_centrality_subset", "global_efficiency", "harmonic_centrality",
    "wiener_index",
)  # fmt: skip
_OF_PATHS = (
    "all_pairs_bellman_ford_path", "all_pairs_dijkstra", "all_pairs_dijkstra_path", "all_pairs_shortest_path",
    "multi_source_dijkstra", "multi_source_dijkstra_path", "shortest_path", "single_source_bellman_ford",
    "single_source_bellman_ford_path", "single_source_dijkstra", "single_source_dijkstra_path",
    "single_source_shortest_path", "single_target_shortest_path",
)  # fmt: skip
_OTHERS = (
    "all_pairs_all_shortest_paths", "all_pairs_bellman_ford_path_length", "all_pairs_dijkstra_path_length",
    "all_pairs_shortest_path_length", "all_shortest_paths", "ancestors", "barycenter", "bellman_ford_path",
    "bellman_ford_path_length", "bellman_ford_predecessor_and_distance", "bfs_edges", "bfs_layers", "bfs_predecessors",
    "bfs_successors", "bfs_tree", "bidirectional_dijkstra", "bidirectional_shortest_path", "center",
    "connected_components", "descendants", "descendants_at_distance", "diameter", "dijkstra_path",
    "dijkstra_path_length", "dijkstra_predecessor_and_distance", "eccentricity", "has_path", "is_connected",
    "multi_source_dijkstra_path_length", "node_connected_component", "number_connected_components", "periphery",
    "predecessor", "radius", "shortest_path_length", "single_source_all_shortest_paths",
    "single_source_bellman_ford_path_length", "single_source_dijkstra_path_length", "single_source_shortest_path_length",
    "single_target_shortest_path_length", "voronoi_cells",
)  # fmt: skip


def get_info() -> dict[str, Any]:
    """Return the facts about this backend that NetworkX asks for: its name and package, texts for
    the documentation, and a dictionary with the functions that it has and notes on them.
    """
    # A note per function that the backend has, "" for none.
    notes = (
        dict.fromkeys(_OTHERS, "")
        | dict.fromkeys(_ROUNDED, _EQUAL_TO_ROUNDING)
        | dict.fromkeys(_OF_PATHS, _LAZY)
    )
    notes["newman_betweenness_centrality"] = (
        _EQUAL_TO_ROUNDING + " Weighted calls are NetworkX's own."
    )
    return {
        "backend_name": "kepler",
        "project": "kepler-traverse",
        "package": "kepler_traverse",
        "short_summary": (
            "Shortest paths and breadth-first search from many sources, compiled for all cores."
        ),
        "description": (
            "Results are those of NetworkX, also in their order and in "
            "the choice among equal paths."
        ),
        "functions": {
            name: {"additional_docs": notes[name]} if notes[name] else {} for name in sorted(notes)
        },
    }
