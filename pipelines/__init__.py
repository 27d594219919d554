"""Jobs that run from the command line; Dask and configuration files live here and only here."""
