"""The BFS systems that the papers compare, and their kernels."""
