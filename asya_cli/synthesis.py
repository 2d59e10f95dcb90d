"""Synthesizes the stacks of a mesh, as `cdk synth` does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from asya_cli.errors import CommandError

if TYPE_CHECKING:
    from pathlib import Path


def synthesize(mesh: Path, stage: str, folder: Path) -> list[str]:
    """Write the templates of a mesh, and return what the synthesis says of a valid one: notes, and quotas that it exceeds.

    Raises:
        CommandError: The mesh file is invalid, or AWS would refuse the mesh.
    """
    from asya_infra.repository import REPOSITORY

    configuration = json.loads((REPOSITORY / "cdk.json").read_text(encoding="utf-8"))
    context = {**configuration["context"], "mesh": str(mesh.resolve()), "stage": stage}
    environment = {"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(context)}
    process = subprocess.run(
        [sys.executable, str(REPOSITORY / "app.py")],
        env={**os.environ, **environment},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise CommandError(f"cannot synthesize {mesh}", process.stderr.strip() or process.stdout.strip())
    return process.stderr.splitlines()
