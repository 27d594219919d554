"""Kinds of results whose records belong to one source each, and the functions that make them."""
