"""What the Numba kernels share: atomics, rows of bits, the CSR assembly. The twin of ``kepler_traverse.cuda``."""

from . import forks, numba_cache

numba_cache.choose_folder()  # before any function is compiled
forks.watch()
