"""Proving an existing output right again from its files alone."""
