"""Contraction hierarchies: shortcuts that make searches on road networks short.

``contraction`` orders the vertices and finds the shortcuts, ``build`` decides whether that pays,
``arrays`` and ``stored`` hold the result, and ``sweep`` searches in it.
"""
