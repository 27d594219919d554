"""Matrices and frames of other libraries."""
