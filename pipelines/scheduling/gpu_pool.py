"""How much of a GPU's memory a run may take."""

POOL_SHARE = 0.9  # the rest is for CUDA itself
