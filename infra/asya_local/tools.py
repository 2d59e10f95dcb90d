"""Finds the programs that a local cloud runs."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from asya_infra.product.app import CdkApp, cdk_app, cdk_tool, node_path
from asya_infra.product.environments import EnvironmentsError, Part, python_of, spark_packages
from asya_infra.product.places import FILES
from asya_local.errors import LocalCloudError


@dataclass(frozen=True)
class CdkTools:
    """The programs that deploy the stacks of a mesh."""

    app: CdkApp
    cdk: str
    """The program `cdk`."""
    path: str
    """PATH for it, with its Node.js first."""


@dataclass(frozen=True)
class Tools:
    """The programs of a local cloud."""

    python: str
    """This process's interpreter: it runs the EMR Serverless stand-in."""
    cloud_python: str
    """The interpreter of MiniStack."""
    java_home: str
    """Empty if the mesh has no heavy actors."""
    path: str
    """PATH for the processes."""
    cdk: CdkTools | None = None
    """None for a mesh that runs without its stacks."""


def find_tools(*, spark: bool = True, cdk: bool = True) -> Tools:
    """Find all programs. An installed package installs those that it lacks.

    Args:
        spark: Whether the mesh has heavy actors, which need Java and Spark.
        cdk: Whether the stacks of the mesh are deployed.

    Raises:
        LocalCloudError: A program is missing; the message says how to install it.
    """
    java = find_java() if spark else ""  # before packages are installed, because it may be missing
    try:
        # Packages come from elsewhere, so they are waited for together.
        with ThreadPoolExecutor(3) as executor:
            cloud = executor.submit(python_of, Part.CLOUD)
            stacks = executor.submit(_find_cdk) if cdk else None
            if spark:
                executor.submit(spark_packages).result()
            cloud_python = str(cloud.result())
            cdk_tools = stacks.result() if stacks is not None else None
    except EnvironmentsError as error:
        raise LocalCloudError(str(error)) from error
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return Tools(sys.executable, cloud_python, java, path, cdk_tools)


def _find_cdk() -> CdkTools:
    return CdkTools(cdk_app(), str(cdk_tool()), node_path())


def find_java() -> str:
    """Return the home of a Java that Spark supports.

    Raises:
        LocalCloudError: No such Java exists; the message says how to install one.
    """
    script = FILES / "scripts" / "find-java"
    result = subprocess.run(["bash", str(script), "--no-install"], capture_output=True, text=True, check=False)
    if result.returncode:
        raise LocalCloudError(result.stderr.strip() or f"{script} failed without a message. Run `make java`.")
    return result.stdout.strip()
