"""Measurements behind docs/guarantees.md: ``python -m scripts.evidence``."""
