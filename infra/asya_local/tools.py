"""The programs the local cloud is made of: where they are, or what to do when they are not there."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from asya_local.errors import LocalCloudError

PROJECT = Path(__file__).resolve().parents[2]
"""The folder of this project: `app.py`, `.venv-cloud` and `node_modules` lie here."""


@dataclass(frozen=True)
class Tools:
    """The programs, found."""

    python: str
    """This project's interpreter: runs the CDK app, the EMR Serverless stand-in and its Spark drivers."""
    cloud_python: str
    """MiniStack's interpreter; also the one that runs the Lambda functions."""
    cdk: str
    java_home: str
    """Empty when there are no Spark jobs."""
    path: str
    """PATH for the processes, with this project's Node first."""


def find_tools(*, spark: bool = True) -> Tools:
    """Find every program.

    Args:
        spark: Whether there will be Spark jobs: without them, no Java is needed.

    Raises:
        LocalCloudError: One is missing; the message says how to get it.
    """
    cloud_python = PROJECT / ".venv-cloud" / "bin" / "python"
    cdk = PROJECT / "node_modules" / ".bin" / "cdk"
    for program, what in ((cloud_python, "MiniStack's virtual environment"), (cdk, "The CDK command")):
        if not program.exists():
            raise LocalCloudError(f"{what} is not there ({program}). Run `make setup` in {PROJECT}.")
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join([own, os.environ.get("PATH", os.defpath)])
    return Tools(sys.executable, str(cloud_python), str(cdk), find_java() if spark else "", path)


def find_java() -> str:
    """The home of a Java that Spark runs on.

    Raises:
        LocalCloudError: There is none; the message says how to get one.
    """
    script = PROJECT / "scripts" / "find-java"
    found = subprocess.run(["bash", str(script), "--no-install"], capture_output=True, text=True, check=False)
    if found.returncode:
        raise LocalCloudError(found.stderr.strip() or f"{script} found no Java")
    return found.stdout.strip()
