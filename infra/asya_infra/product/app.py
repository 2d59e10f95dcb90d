"""The CDK app and its command line tool, as subprocesses, and the path on which they import this product."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from asya_infra.build.folder import build_once
from asya_infra.product.environments import Part, node_modules, python_of
from asya_infra.product.meters import to_stderr
from asya_infra.product.places import BUILD, FILES, INFRA, IS_INSTALLED, JOB_LIBRARY, LIBRARY

_PACKAGES = (LIBRARY, JOB_LIBRARY, INFRA)


def library_path() -> list[Path]:
    """Return folders with the packages `asya`, `asya_spark` and `asya_infra`.

    The folder of an installed package has more than its own packages: those of the author. So it is not taken itself.
    """
    if not IS_INSTALLED:
        return sorted({package.parent for package in _PACKAGES})

    def link(folder: Path) -> None:
        for package in _PACKAGES:
            (folder / package.name).symlink_to(package)

    return [build_once(BUILD, "library-links", [str(package) for package in _PACKAGES], link)]


@dataclass(frozen=True)
class CdkApp:
    """How to run the CDK app.

    Attributes:
        python: the interpreter with the CDK's library.
        script: the app.
        variables: environment variables that its process needs.
    """

    python: Path
    script: Path
    variables: dict[str, str]

    @property
    def command(self) -> list[str]:
        """The command, for a process."""
        return [str(self.python), str(self.script)]


def cdk_app(tell: Callable[[str], None] = to_stderr) -> CdkApp:
    """Return how to run the CDK app.

    Raises:
        EnvironmentsError: The CDK's environment is missing, or cannot be made.
    """
    python = python_of(Part.CDK, tell)
    # The environment has what these packages need, but not them: they are of the author's environment.
    variables = {"PYTHONPATH": os.pathsep.join(map(str, library_path()))} if IS_INSTALLED else {}
    return CdkApp(python, FILES / "app.py", variables)


def cdk_tool(tell: Callable[[str], None] = to_stderr) -> Path:
    """Return the program `cdk`.

    Raises:
        EnvironmentsError: It is missing, or cannot be installed.
    """
    return node_modules(tell) / ".bin" / "cdk"


def node_path() -> str:
    """Return PATH with the CDK's Node.js first, because the machine's own may be missing or too old.

    Raises:
        EnvironmentsError: The CDK's environment is missing, or cannot be made.
    """
    return os.pathsep.join([str(python_of(Part.CDK).parent), os.environ.get("PATH", os.defpath)])
