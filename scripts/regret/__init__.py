"""How far the choice of strategies is from the best: ``python -m scripts.regret``."""
