"""Finds the programs that a local cloud runs, and makes the Python environments of user code.

An environment has the standard library and a few named packages, and nothing of this project.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from asya_infra.build.folder import build_once
from asya_infra.product.app import cdk_tool, node_path
from asya_infra.product.environments import EnvironmentsError, Part, python_of, spark_packages
from asya_infra.product.interpreters import FUNCTION_PYTHON, interpreter_for
from asya_infra.product.places import FILES
from asya_local.errors import LocalCloudError

# What the Python runtime of Lambda brings with it. The layer and the user's packages come first on the path.
_RUNTIME_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six.py", "urllib3")


def linked_environment(root: Path, name: str, interpreter: Path, version: str, packages: list[Path]) -> Path:
    """Return the interpreter of a virtual environment with these packages; make it once.

    Args:
        root: The folder for builds.
        name: The name of the environment.
        interpreter: The interpreter outside any virtual environment.
        version: Its version, such as `3.11.7`.
        packages: The folders and modules of the packages.
    """

    def build(folder: Path) -> None:
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(interpreter)
        settings = {"home": interpreter.parent, "include-system-site-packages": "false", "version": version}
        (folder / "pyvenv.cfg").write_text("".join(f"{key} = {value}\n" for key, value in settings.items()))
        site = folder / "lib" / f"python{'.'.join(version.split('.')[:2])}" / "site-packages"
        site.mkdir(parents=True)
        for package in packages:
            (site / package.name).symlink_to(package)

    key = [name, version, str(interpreter), *map(str, packages)]
    return build_once(root, name, key, build) / "bin" / "python"


def function_python(root: Path, cloud_python: Path) -> Path:
    """Return the interpreter of functions, with the version and the packages that Lambda's runtime has.

    Args:
        root: The folder for builds.
        cloud_python: The interpreter of MiniStack's virtual environment, which has these packages.
    """
    environment = cloud_python.parent.parent
    lines = (environment / "pyvenv.cfg").read_text().splitlines()
    settings = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}
    version = settings.get("version_info") or settings["version"]
    site = environment / "lib" / f"python{'.'.join(version.split('.')[:2])}" / "site-packages"
    packages = [site / name for name in _RUNTIME_PACKAGES]
    python = interpreter_for(FUNCTION_PYTHON)
    return linked_environment(root, "function-environment", python.path, python.version, packages)


@dataclass(frozen=True)
class CdkTools:
    """The programs that deploy the stacks of a mesh."""

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
    return CdkTools(str(cdk_tool()), node_path())


def machine_memory_mb() -> int:
    """Return the memory of this machine in MB."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20


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
