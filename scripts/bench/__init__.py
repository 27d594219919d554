"""Measurements of speed and memory, and the pages made of them: ``python -m scripts.bench``."""
