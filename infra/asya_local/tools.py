"""Finds the programs that a local cloud runs."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from asya_local.errors import LocalCloudError

PROJECT = Path(__file__).resolve().parents[2]
"""The folder of this project, with `app.py`, `.venv-cloud` and `node_modules`."""


@dataclass(frozen=True)
class Tools:
    """The paths of the programs."""

    python: str
    """This project's interpreter: it runs the CDK app and the EMR Serverless stand-in."""
    cloud_python: str
    """The interpreter of MiniStack and the Lambda functions."""
    cdk: str
    java_home: str
    """Empty if the mesh has no heavy actors."""
    path: str
    """PATH for the processes, with this project's Node first."""


def find_tools(*, spark: bool = True) -> Tools:
    """Find all programs.

    Args:
        spark: Whether the mesh has heavy actors, which need Java.

    Raises:
        LocalCloudError: A program is missing; the message says how to install it.
    """
    cloud_python = PROJECT / ".venv-cloud" / "bin" / "python"
    cdk = PROJECT / "node_modules" / ".bin" / "cdk"
    for program, name in ((cloud_python, "MiniStack's virtual environment"), (cdk, "The CDK command")):
        if not program.exists():
            raise LocalCloudError(f"{name} is missing ({program}). Run `make setup` in {PROJECT}.")
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join([own, os.environ.get("PATH", os.defpath)])
    return Tools(sys.executable, str(cloud_python), str(cdk), find_java() if spark else "", path)


def find_java() -> str:
    """Return the home of a Java that Spark supports.

    Raises:
        LocalCloudError: No such Java exists; the message says how to install one.
    """
    script = PROJECT / "scripts" / "find-java"
    result = subprocess.run(["bash", str(script), "--no-install"], capture_output=True, text=True, check=False)
    if result.returncode:
        raise LocalCloudError(result.stderr.strip() or f"{script} failed without a message. Run `make java`.")
    return result.stdout.strip()
