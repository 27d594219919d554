"""One run of the job, from settings to a finished folder: what the driver does."""
