"""The tables of the reproduced papers: measured, checked, and made into pages."""
