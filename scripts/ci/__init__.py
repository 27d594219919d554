"""Checks that need a network or a GPU."""
