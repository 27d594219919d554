"""Mutation testing of the kernels: ``python -m scripts.mutation``."""
