"""Extremes of a graph without a search from each vertex: diameter, radius, center, periphery, most
central vertices.
"""

from .closeness import top_closeness
from .eccentricities import EXTREMES, Extremes, center, diameter, extremes, periphery, radius

__all__ = [
    "EXTREMES",
    "Extremes",
    "center",
    "diameter",
    "extremes",
    "periphery",
    "radius",
    "top_closeness",
]
