"""What runs in a worker: the plugin with graph and plan, the traversals of a task, threads that
write.
"""
