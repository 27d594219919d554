"""Monitoring of a run: the terminal, the dashboard, Prometheus and the HTML report."""
