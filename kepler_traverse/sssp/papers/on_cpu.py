"""Systems for CPUs: what the textbook has."""

from __future__ import annotations

STRATEGIES = ()
