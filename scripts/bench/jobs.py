"""Jobs as works: whole processes by the wall, with the steps that ``--json`` says."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.measure.environment import ROOT, timed
from scripts.measure.harness import run_command
from scripts.measure.work import Timed

JOB = (sys.executable, "-m", "pipelines.batch_sources")


def run_job(
    words: Sequence[Any], program: Sequence[Any] = JOB, cwd: Path = ROOT, **environment: str
) -> Timed:
    """Run a job; return its seconds by the wall, those of its steps, "outside" of its own clock, and of the processor."""
    before = processor_seconds()
    given = {"cwd": cwd, "env": os.environ | environment}
    said, whole = timed(lambda: run_command([*program, *words, "--json"], **given))
    seconds = json.loads(said)["seconds"]
    outside = whole - seconds.pop("total")
    return Timed(None, whole, {"outside": outside, "cpu": processor_seconds() - before, **seconds})


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
