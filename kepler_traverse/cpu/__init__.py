"""What the Numba kernels share: threads, atomics, bitsets, building a CSR. The twin of
``kepler_traverse.cuda``.
"""

from . import forks, numba_cache, numba_lock

numba_cache.choose_folder()  # before any function is compiled
numba_cache.name_files_by_variant()
numba_cache.ignore_indexes_of_other_versions()
forks.watch()
numba_lock.replace()
numba_cache.go_on_where_code_cannot_be_kept()
