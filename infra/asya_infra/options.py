"""The options of a deployment: CDK context, `-c key=value`."""

import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from asya.heavy.job_python import JOB_PYTHON
from asya_infra.build.packages import LAMBDA, Target
from asya_infra.product.interpreters import interpreter_for
from asya_infra.product.places import BUILD, FILES


class OptionError(Exception):
    """An invalid option of the deployment, or one that conflicts with the mesh file."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a deployment.

    Attributes:
        mesh: the path of the mesh file.
        stage: a suffix of the namespace, and a key of `stages` if the mesh file has any; empty for the base.
        emr_application_id: an existing Spark application, which overrides the mesh file.
        web_adapter_layer: the ARN of a layer with AWS Lambda Web Adapter, which overrides the public layer.
        relist: a text; another one than that of the last deployment writes the list of roles again.
        layer_target: `lambda` builds packages for AWS, `local` for the local cloud.
        local_python: the interpreter of the local cloud.
        build_folder: the folder for builds, which also caches them.
    """

    mesh: Path
    stage: str = ""
    emr_application_id: str | None = None
    web_adapter_layer: str | None = None
    relist: str | None = None
    layer_target: Literal["lambda", "local"] = "lambda"
    local_python: Path = FILES / ".venv-cloud" / "bin" / "python"
    build_folder: Path = BUILD

    @property
    def packages_target(self) -> Target:
        """The target interpreter of the functions."""
        return LAMBDA if self.layer_target == "lambda" else Target(interpreter=self.local_python)

    @property
    def functions_on_arm(self) -> bool:
        """Whether the functions run on ARM: always on AWS; on the local cloud if the machine is ARM."""
        return self.layer_target == "lambda" or platform.machine() in {"aarch64", "arm64"}

    def jobs_target(self, architecture: str) -> Target:
        """Return the target interpreter of the Spark application."""
        if self.layer_target == "local":
            return Target(interpreter=interpreter_for(JOB_PYTHON).path)
        machine = "aarch64" if architecture == "arm64" else "x86_64"
        return Target(python_version=JOB_PYTHON, python_platform=f"{machine}-manylinux_2_28")


def read_options(context: Callable[[str], Any], folder: Path) -> Options:
    """Read the options from the context.

    Args:
        context: returns the context value of a key; None if it is not set.
        folder: the base of relative paths, and the default folder of `mesh.yaml`.

    Raises:
        OptionError: a value is invalid.
    """
    target: Any = context("layer_target") or "lambda"
    if target not in {"lambda", "local"}:
        raise OptionError(f"-c layer_target={target}: should be lambda or local")
    options = Options(
        mesh=folder / (context("mesh") or "mesh.yaml"),
        stage=context("stage") or "",
        emr_application_id=context("emr_application_id") or None,
        web_adapter_layer=context("web_adapter_layer") or None,
        relist=context("relist") or None,
        layer_target=target,
    )
    paths = {key: folder / context(key) for key in ("local_python", "build_folder") if context(key)}
    return replace(options, **paths)
