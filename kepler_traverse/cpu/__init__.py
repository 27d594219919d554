"""What the Numba kernels share: atomics, the CSR assembly. The twin of ``kepler_traverse.cuda``."""
