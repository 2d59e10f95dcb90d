"""Synthesizes the stacks of a mesh, as `cdk synth` does."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from pathlib import Path


def synthesize(mesh: Path, stage: str, folder: Path) -> list[str]:
    """Write the templates of a mesh, and return what the synthesis says of a valid one: notes, and quotas that it exceeds.

    Raises:
        CommandError: The mesh file is invalid, AWS would refuse the mesh, or the CDK cannot be installed.
    """
    from asya_infra.product.app import cdk_app, node_path
    from asya_infra.product.environments import EnvironmentsError
    from asya_infra.product.places import FILES

    configuration = json.loads((FILES / "cdk.json").read_text(encoding="utf-8"))
    context = {**configuration["context"], "mesh": str(mesh.resolve()), "stage": stage}
    environment = {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(context)}
    try:
        app, path = cdk_app(), node_path()
    except EnvironmentsError as error:
        raise CommandError("the CDK is missing, which makes the templates", str(error)) from error
    process = subprocess.run(
        app.command,
        env={**os.environ, **app.variables, **environment, "PATH": path},
        cwd=FILES,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise CommandError(f"cannot synthesize {mesh}", process.stderr.strip() or process.stdout.strip())
    return process.stderr.splitlines()
