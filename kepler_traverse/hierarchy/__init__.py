"""Contraction hierarchies: shortcuts that make searches on road networks short."""
