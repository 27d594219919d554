"""What spans both algorithms: paths of results, the list of strategies, compiling ahead of a
run.
"""
