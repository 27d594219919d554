"""Traversals from many sources: how they are planned, and what is made of their results."""
