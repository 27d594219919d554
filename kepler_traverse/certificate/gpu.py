check_edges = None
