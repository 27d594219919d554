"""Ask the library and the job random questions, with faults, and compare every answer with one that is computed beside them.

    python scripts/ci/storm.py --hours 1 --seed 7 [--processes 2] [--out FILE]    run, and say at the end what was found
    python scripts/ci/storm.py --seed 7 --case 123                                run one case again
    python scripts/ci/storm.py record FILE...                                     add finished storms to docs/testing.md
    python scripts/ci/storm.py check                                              compare the page with the record

A finding is printed as it comes, and is a line of JSON in FILE. The last line of FILE is the summary, which ``record`` adds
to docs/storm.json. The exit code is 0 without findings, 1 with some, and 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from scripts.storm import record

# Options, with their defaults and types.
_FLAGS = {
    "--hours": (0.1, float, "how long (default: 0.1)"),
    "--seed": (None, int, "by default another one each time; it is printed"),
    "--case": (None, int, "run this case alone, in this process"),
    "--cases": (10**12, int, "end after so many cases per process"),
    "--processes": (1, int, "how many cases run at a time (default: 1)"),
    "--doors": ("", str, "library, job, ...: some of them, with commas (default: all)"),
    "--out": (None, Path, "file of findings, to which lines are added"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] == ["share"]:
        from scripts.storm.processes import run_share, share_of

        run_share(*share_of(words[1]))
        return 0
    if words[:1] == ["record"]:
        return record.add([Path(word) for word in words[1:]])
    if words[:1] == ["check"]:
        return record.check()
    given = _parser().parse_args(words)
    if given.case is not None:
        return _run_one(given)
    return Storm(given).run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="storm.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for flag, (value, kind, help) in _FLAGS.items():
        parser.add_argument(flag, default=value, type=kind, help=help)
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cpu",
        help="cuda: ask the GPU, too, for equal bits",
    )
    return parser


def _settings(given: argparse.Namespace) -> Any:
    from scripts.storm.case import Settings
    from scripts.storm.cases import DOORS

    doors = tuple(name for name in given.doors.split(",") if name)
    unknown = set(doors) - set(DOORS)
    if unknown:
        print(
            f"no such door: {', '.join(sorted(unknown))}; there are {', '.join(DOORS)}",
            file=sys.stderr,
        )
        sys.exit(2)
    seed = int(time.time()) % 10**6 if given.seed is None else given.seed
    return Settings(seed, given.device, doors)


def _run_one(given: argparse.Namespace) -> int:
    """Run one case in this process, where a debugger can be attached."""
    from scripts.storm.cases import run_case

    outcome = run_case(_settings(given), given.case)
    for finding in outcome.as_dict()["findings"]:
        print(_shown(finding))
    print(_counts_shown(outcome.counts))
    return int(bool(outcome.findings))


def _shown(finding: dict) -> str:
    place = f"--seed {finding['seed']} --case {finding['case']}"
    head = f"FOUND {finding['what']}: {finding['door']}, {finding['kind']} ({place})"
    return f"{head}\n  {finding['detail']}\n  asked: {finding['asked']}"


def _counts_shown(counts: Counter[str]) -> str:
    return "\n".join(f"{count:>12,} {name}" for name, count in sorted(counts.items()))


class Storm:
    """A storm of some hours, in one or several processes."""

    def __init__(self, given: argparse.Namespace):
        from scripts.storm.processes import Share, Watched

        self.settings = _settings(given)
        self.out = given.out
        self.began = time.time()
        self.what = record.about(self.settings, given)
        self._found = []
        self._lock = threading.Lock()
        until = self.began + 3600 * given.hours
        shares = [
            Share(place, given.processes, until, given.cases) for place in range(given.processes)
        ]
        self._watched = [Watched(self.settings, share, self._take) for share in shares]

    def run(self) -> int:
        """Run all processes to their end; return the exit code."""
        print(f"seed {self.settings.seed}", flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        threads = [threading.Thread(target=each.run) for each in self._watched]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except KeyboardInterrupt:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)  # the summary follows
            print("interrupted", file=sys.stderr)
            for each in self._watched:
                each.end()
            for thread in threads:
                thread.join()
        self._summarize()
        return int(bool(self._found))

    def _take(self, finding: dict) -> None:
        with self._lock:
            self._found.append(finding)
            print(_shown(finding), flush=True)
            self._write(finding)

    def _write(self, line: dict) -> None:
        if self.out is not None:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            with self.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _summarize(self) -> None:
        counts = Counter()
        for each in self._watched:
            counts += each.counts
        kinds = Counter(f"{each['what']}: {each['door']}, {each['kind']}" for each in self._found)
        print(_counts_shown(counts))
        print(f"{len(self._found)} findings")
        print(_counts_shown(kinds))
        hours = (time.time() - self.began) / 3600
        ended = datetime.now(UTC).strftime("%Y-%m-%d")
        summary = {
            "date": ended,
            "hours": round(hours, 3),
            "findings": len(self._found),
            "counts": dict(counts),
        }
        self._write({"summary": self.what | summary})


if __name__ == "__main__":
    sys.exit(main())
