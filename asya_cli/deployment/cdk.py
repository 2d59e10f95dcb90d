"""The CDK's own tool, for the stacks of one mesh."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from asya_cli.errors import CommandError
from asya_cli.output.text import echo
from asya_infra.product.app import CdkApp, cdk_app, cdk_tool, node_path
from asya_infra.product.environments import EnvironmentsError
from asya_infra.product.places import FILES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_OF_THE_TOOL = ("Supply a stack id", "Successfully synthesized")
"""What the tool says of its own options, which nobody has typed."""


@dataclass(frozen=True)
class Cdk:
    """Runs `cdk` with the credentials that the user selects.

    Attributes:
        tool: the program.
        app: the app that makes the templates.
        path: PATH with its Node.js first.
        profile: the profile of the AWS configuration; None for that of the environment.
        region: the region; None for that of the profile or the environment.
    """

    tool: Path
    app: CdkApp
    path: str
    profile: str | None = None
    region: str | None = None

    @classmethod
    def find(cls, profile: str | None, region: str | None) -> Cdk:
        """Find the tool. An installed package installs it once.

        Raises:
            CommandError: It is missing, or cannot be installed.
        """
        try:
            return cls(cdk_tool(), cdk_app(), node_path(), profile, region)
        except EnvironmentsError as error:
            raise CommandError("the CDK is missing, which deploys a mesh", str(error)) from error

    def run(self, arguments: Sequence[str]) -> int:
        """Run the tool at the user's terminal, and return its exit code."""
        return self._process(arguments).returncode

    def _process(self, arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        profile = ["--profile", self.profile] if self.profile else []
        region = {"AWS_REGION": self.region, "AWS_DEFAULT_REGION": self.region} if self.region else {}
        return subprocess.run(
            [str(self.tool), *arguments, *profile, "--no-notices"],
            check=False,
            cwd=FILES,  # where `cdk.json` is, with the context of every synthesis
            env={**os.environ, **self.app.variables, **region, "PATH": self.path},
            text=True,
            **options,
        )

    def synthesize(self, folder: Path, context: Sequence[str]) -> None:
        """Write the templates and assets of a mesh.

        Args:
            folder: where they are written.
            context: the options of the mesh, such as `stage=prod`.

        Raises:
            CommandError: The mesh file is invalid, or AWS would refuse the mesh; the tool has printed why.
        """
        options = [word for pair in context for word in ("--context", pair)]
        arguments = ["synth", "--quiet", "--app", self.app.command_line, "--output", str(folder), *options]
        ended = self._process(arguments, capture_output=True)
        for line in ended.stderr.splitlines():
            if line.strip() and not line.startswith(_OF_THE_TOOL):
                echo(line, err=True)
        if ended.returncode:
            raise CommandError("the stacks of the mesh cannot be made; what is wrong is above")
