"""Where a wheel has the job: the folder ``pipelines/`` becomes ``kepler_traverse.pipelines``.

All else about the package is in ``pyproject.toml``.
"""

from setuptools import find_namespace_packages, setup

NO_CODE = ("*__pycache__",)
# Folders of kernels and templates are packages, too, and have no __init__.py.
OF_LIBRARY = find_namespace_packages(include=["kepler_traverse*"], exclude=NO_CODE)
OF_JOB = find_namespace_packages("pipelines", exclude=NO_CODE)
JOB = "kepler_traverse.pipelines"  # a folder of this name is in a checkout, not in an archive of the sources

setup(
    packages=sorted({*OF_LIBRARY, JOB, *(f"{JOB}.{name}" for name in OF_JOB)}),
    package_dir={
        "": "conf/wheel",
        "kepler_traverse": "kepler_traverse",
        JOB: "pipelines",
    },
    py_modules=["pipelines"],
)
