"""Programs for users and contributors: each is run as a module from the root of a checkout."""
