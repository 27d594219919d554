"""What a run has done so far, on the terminal, in the dashboard, for Prometheus and as an HTML report."""
