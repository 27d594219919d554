"""Systems for GPUs."""

from __future__ import annotations

STRATEGIES = ()
