"""Hub labels: per vertex, the distances to some vertices above it in the hierarchy, such that any
two vertices share a hub of a shortest path between them.

``build`` makes them of a contraction hierarchy, and ``pruned`` of a network that has none;
``estimate`` says beforehand how many there would be, ``arrays`` and ``stored`` hold them,
``queries`` answers pairs, and ``proofs`` checks them.
"""
