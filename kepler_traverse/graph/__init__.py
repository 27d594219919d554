"""A graph: its CSR arrays (``csr``), the user's vertex ids (``ids``), and what is derived from them
once (``derived``).
"""

from .csr import BuildReport, Graph, find_vertices, has_vertex

__all__ = ["BuildReport", "Graph", "find_vertices", "has_vertex"]
