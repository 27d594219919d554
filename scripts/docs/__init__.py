"""Generated pages about the code itself."""
