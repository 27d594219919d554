"""One harness for measurements: ``python -m scripts.measure``."""
