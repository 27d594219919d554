"""Generated graphs for examples and first steps."""

from .town import Town, town

__all__ = ["Town", "town"]
