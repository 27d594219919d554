"""Systems without a frontier: each level looks at every vertex or every edge."""

from __future__ import annotations

STRATEGIES = ()
