"""The programs the local cloud is made of: where they are, or what to do when they are not there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from infra.local.errors import LocalCloudError

PROJECT = Path(__file__).resolve().parents[2]
"""The folder of this project: `app.py`, `.venv-cloud` and `node_modules` lie here."""

OLDEST_JAVA = 17


@dataclass(frozen=True)
class Tools:
    """The programs, found."""

    python: str
    """This project's interpreter: runs the CDK app, the EMR Serverless stand-in and its Spark drivers."""
    cloud_python: str
    """MiniStack's interpreter; also the one that runs the Lambda functions."""
    cdk: str
    java_home: str
    path: str
    """PATH for the processes, with this project's Node first."""


def find_tools() -> Tools:
    """Find every program.

    Raises
    ------
    LocalCloudError
        One is missing; the message says how to get it.
    """
    cloud_python = PROJECT / ".venv-cloud" / "bin" / "python"
    cdk = PROJECT / "node_modules" / ".bin" / "cdk"
    for program, what in ((cloud_python, "MiniStack's virtual environment"), (cdk, "The CDK command")):
        if not program.exists():
            raise LocalCloudError(f"{what} is not there ({program}). Run `make setup` in {PROJECT}.")
    own = str(Path(sys.executable).parent)
    path = os.pathsep.join([own, os.environ.get("PATH", os.defpath)])
    return Tools(sys.executable, str(cloud_python), str(cdk), find_java(), path)


def find_java() -> str:
    """The home of a Java that Spark runs on: JAVA_HOME's, or the one on the PATH.

    Raises
    ------
    LocalCloudError
        There is none, or it is too old.
    """
    home = os.environ.get("JAVA_HOME", "")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not program or not Path(program).exists():
        raise LocalCloudError(
            f"Java {OLDEST_JAVA} or newer is needed for Spark, and there is none on the PATH. Install one "
            "(Debian, Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17), or set JAVA_HOME."
        )
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(\d+)', said)
    if match is None or int(match[1]) < OLDEST_JAVA:
        raise LocalCloudError(
            f"Spark needs Java {OLDEST_JAVA} or newer; {program} says: {' '.join(said.split())[:120]}. "
            "Install a newer one and set JAVA_HOME to it."
        )
    return str(Path(program).resolve().parents[1])
