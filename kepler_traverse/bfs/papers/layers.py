"""Systems of Sevilmis, Sivri, Aydin 2019: layers and frontiers, top-down and hybrid; and the sparse product of Deng et al."""

from __future__ import annotations

STRATEGIES = ()
