"""Baselines that ``pipelines.compare`` compares this library with."""
