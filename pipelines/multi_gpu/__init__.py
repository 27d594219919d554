"""``--engine cugraph-mg``: one graph whose edges are partitioned over all GPUs."""
