"""Tests of kepler_traverse.assignment."""
