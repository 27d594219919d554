"""``python scripts/ci/storm.py --hours N --seed S``: see ``scripts/storm``."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from scripts.storm.__main__ import main

    sys.exit(main())
