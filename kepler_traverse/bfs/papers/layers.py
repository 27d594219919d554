"""Layers and frontiers, top-down and hybrid, of Sevilmis, Sivri, Aydin 2019; the sparse product of Deng et al."""

from __future__ import annotations

STRATEGIES = ()
