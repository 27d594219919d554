"""Systems for CPUs."""

from __future__ import annotations

STRATEGIES = ()
