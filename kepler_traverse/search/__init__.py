"""A search: what is asked (``query``), strategies, planning, exact sums, results, and frames of
results.
"""
