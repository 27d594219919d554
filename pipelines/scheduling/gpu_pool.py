"""How much of a GPU's memory a run may take, and which GPU a worker of its own cluster has."""

POOL_SHARE = 0.9  # the rest is for CUDA itself
GPU_OF_WORKER = "KEPLER_GPU_OF_WORKER"  # set in the environment of a worker that has one
