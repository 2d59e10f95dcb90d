"""What a deployment is told with `-c key=value` (CDK context)."""

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from asya_infra.build.packages import LAMBDA, Target
from asya_infra.repository import REPOSITORY

# EMR Serverless' Python, by the architecture of its workers.
_SPARK_PYTHON = "3.12"


class OptionError(Exception):
    """A context value that cannot be used; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to deploy.

    Attributes:
        mesh: the mesh file.
        stage: becomes part of the namespace; empty for the default stage.
        emr_application_id: an existing Spark application to use instead of the mesh file's.
        web_adapter_layer: the ARN of a layer with AWS Lambda Web Adapter, instead of the one its makers publish.
        layer_target: `lambda` builds packages for AWS, `host` for the interpreter of the local cloud.
        host_python: that interpreter.
        build_folder: where folders that are deployed are made, and found again.
    """

    mesh: Path
    stage: str = ""
    emr_application_id: str | None = None
    web_adapter_layer: str | None = None
    layer_target: Literal["lambda", "host"] = "lambda"
    host_python: Path = REPOSITORY / ".venv-cloud" / "bin" / "python"
    build_folder: Path = REPOSITORY / ".build"

    @property
    def packages_target(self) -> Target:
        """The interpreter of the functions."""
        return LAMBDA if self.layer_target == "lambda" else Target(interpreter=self.host_python)

    @property
    def functions_on_arm(self) -> bool:
        """Whether the functions run on ARM: always on AWS, on the local cloud as the machine does."""
        return self.layer_target == "lambda" or platform.machine() in {"aarch64", "arm64"}

    def jobs_target(self, architecture: str) -> Target:
        """The interpreter of the Spark application."""
        if self.layer_target == "host":
            return Target(interpreter=Path(sys.executable))
        machine = "aarch64" if architecture == "arm64" else "x86_64"
        return Target(python_version=_SPARK_PYTHON, python_platform=f"{machine}-manylinux_2_28")


def read_options(context: Callable[[str], Any], folder: Path) -> Options:
    """Read the context.

    Args:
        context: gives a context value by its key, None if it is not set.
        folder: what relative paths are relative to, and where `mesh.yaml` is unless another is named.

    Raises:
        OptionError: if a value is none of those allowed.
    """
    target: Any = context("layer_target") or "lambda"
    if target not in {"lambda", "host"}:
        raise OptionError(f"-c layer_target={target}: should be lambda or host")
    options = Options(
        mesh=folder / (context("mesh") or "mesh.yaml"),
        stage=context("stage") or "",
        emr_application_id=context("emr_application_id") or None,
        web_adapter_layer=context("web_adapter_layer") or None,
        layer_target=target,
    )
    places = {key: folder / context(key) for key in ("host_python", "build_folder") if context(key)}
    return replace(options, **places)
