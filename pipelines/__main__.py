"""The console command ``kepler-traverse``: the job, ``kepler-traverse warm`` or ``kepler-traverse extremes``."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process and return its exit code."""
    if sys.argv[1:2] == ["warm"]:  # an edge list of this name is ./warm
        from . import warm

        return warm.main(sys.argv[2:])
    if sys.argv[1:2] == ["extremes"]:
        from . import extremes

        return extremes.main(sys.argv[2:])
    from . import batch_sources

    return batch_sources.program()


if __name__ == "__main__":
    sys.exit(main())
