"""The recipe for conda: what pyproject.toml requires."""

import re
import tomllib

import yaml

import kepler_traverse
from tests.support.processes import ROOT


def test_the_recipe_for_conda_needs_what_the_wheel_needs():
    recipe = yaml.safe_load((ROOT / "conf/conda/recipe.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [
        f"python{project['requires-python']}",
        *project["dependencies"],
        *project["optional-dependencies"]["job"],
    ]
    names = {
        "dask": "dask-core",
        "prometheus-client": "prometheus_client",
        "typing-extensions": "typing_extensions",
    }
    pairs = [re.match(r"([a-z0-9-]+)([<>=][^;]*[0-9])", each).groups() for each in needed]
    assert {tuple(each.split()) for each in recipe["requirements"]["run"]} == {
        (names.get(name, name), bounds) for name, bounds in pairs
    }
    assert recipe["context"]["version"] == kepler_traverse.__version__
    assert recipe["build"]["python"]["entry_points"] == [
        f"{name} = {at}" for name, at in project["scripts"].items()
    ]
