"""Test suites of other libraries and of this one with the packages that it works with; see docs/conformance.md."""
