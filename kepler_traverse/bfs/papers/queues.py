"""Systems with a queue of vertices or edges."""

from __future__ import annotations

STRATEGIES = ()
