"""Baselines that ``pipelines.compare`` runs beside this library."""
