"""The SSSP systems that the papers compare, and their kernels."""
