"""Workers and the tasks on them: how many batches each takes, and what happens when a worker dies."""
