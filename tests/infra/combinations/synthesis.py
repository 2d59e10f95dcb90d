"""Synthesizes meshes in one process of the CDK, without cdk-nag, and holds each against the limits of AWS."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from aws_cdk import App

from asya_infra.limits.gate import check_mesh
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import read_options
from asya_infra.stacks import add_stacks
from tests.infra.combinations.judged import Accepted
from tests.infra.conftest import FLAGS
from tests.paths import PROJECT

Template = Mapping[str, Any]


@dataclass(frozen=True)
class Synthesized:
    """The templates of a mesh, by the name of the stack."""

    folder: Path

    @cached_property
    def templates(self) -> dict[str, Template]:
        """The templates by the name of the stack without the namespace."""
        found = {}
        for artifact in json.loads((self.folder / "manifest.json").read_text())["artifacts"].values():
            if artifact["type"] == "aws:cloudformation:stack":
                file = self.folder / artifact["properties"]["templateFile"]
                found[file.name.removesuffix(".template.json")] = json.loads(file.read_text())
        return found

    @property
    def files(self) -> list[Path]:
        """The files of the templates."""
        return sorted(self.folder.glob("*.template.json"))


class Synthesizer:
    """Synthesizes each mesh once.

    Attributes:
        folder: the folder with the code of the meshes.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Synthesized] = {}

    def __call__(self, mesh: Accepted, stage: str = "") -> Synthesized:
        """Synthesize a mesh.

        Raises:
            LimitError: AWS would refuse it.
        """
        key = f"{stage}{mesh.text}"
        if key not in self._known:
            self._known[key] = self._synthesize(mesh, stage)
        return self._known[key]

    def _synthesize(self, accepted: Accepted, stage: str) -> Synthesized:
        file = self._folder / "mesh.yaml"
        file.write_text(accepted.text)
        out = self._folder / f"out-{len(self._known)}"
        app = App(outdir=str(out), context={**FLAGS, "mesh": str(file), "stage": stage})
        options = read_options(app.node.try_get_context, PROJECT)
        mesh = Mesh(load_mesh(options.mesh, options.stage), options)
        add_stacks(app, mesh)
        app.synth()
        check_mesh(mesh, out)
        return Synthesized(out)
