"""Matrices and frames of other libraries, and what NetworkX asks of its backend before it is imported."""
