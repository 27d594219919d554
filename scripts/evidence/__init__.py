"""What docs/trust.md promises, measured: ``python -m scripts.evidence``."""
