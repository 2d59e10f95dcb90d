"""Makes the Python environment of job runs: the standard library and PySpark, and nothing of this project.

A job thus finds the same packages as on EMR Serverless: those of its `requirements.txt`, which its run unpacks. The
environment has links only, so it takes milliseconds and no package index.
"""

from __future__ import annotations

import importlib.util
import platform
import sys
import sysconfig
from pathlib import Path

import pyspark

from asya_infra.build.folder import build_once

_PACKAGES = ("pyspark", "py4j")
SPARK_HOME = Path(pyspark.__path__[0])
"""PySpark brings Spark with it. The JVM gets this path, not the link, so that all environments share its class archive."""


def job_python(root: Path) -> Path:
    """Return the interpreter of the environment for this machine's Python and PySpark; make it once.

    Args:
        root: The folder for builds.
    """
    base = str(getattr(sys, "_base_executable", sys.executable))
    folders = [_folder(name) for name in _PACKAGES]

    def build(folder: Path) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(base)
        settings = {
            "home": Path(base).parent,
            "include-system-site-packages": "false",
            "version": platform.python_version(),
        }
        lines = [f"{key} = {value}\n" for key, value in settings.items()]
        (folder / "pyvenv.cfg").write_text("".join(lines))
        packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(folder)}))
        packages.mkdir(parents=True)
        for package in folders:
            (packages / package.name).symlink_to(package)

    key = ["job-environment", platform.python_version(), base, *map(str, folders)]
    return build_once(root, "job-environment", key, build) / "bin" / "python"


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]).resolve()
