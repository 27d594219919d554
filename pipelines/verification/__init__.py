"""Verification of an existing output from its files alone."""
