"""Shortest paths from many sources at once, one module per way."""
