"""Reads the templates that `cdk synth` wrote."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asya.protocol import names

# The environment of stacks without account and region.
_ANY = "aws://unknown-account/unknown-region"


@dataclass(frozen=True)
class Assembly:
    """The templates of one mesh by the names of their stacks."""

    folder: Path
    namespace: str
    templates: dict[str, dict[str, Any]]
    region: str | None = None
    """The region of the stacks; None for that of the credentials."""
    account: str | None = None
    """The account of the stacks; None for that of the credentials."""

    @classmethod
    def read(cls, folder: Path) -> "Assembly":
        """Read the folder `cdk.out`.

        Raises:
            ValueError: it has no stack of a mesh.
        """
        artifacts = json.loads((folder / "manifest.json").read_text())["artifacts"]
        templates = {
            artifact["properties"].get("stackName", name): json.loads(
                (folder / artifact["properties"]["templateFile"]).read_text()
            )
            for name, artifact in artifacts.items()
            if artifact["type"] == "aws:cloudformation:stack"
        }
        first, _, last = names.stack_name("{}", "state").partition("{}")
        for stack in templates:
            if stack.startswith(first) and stack.endswith(last):
                place = artifacts[stack].get("environment", _ANY).removeprefix("aws://").partition("/")
                account, region = (None if part in _ANY else part for part in place[::2])
                namespace = stack.removeprefix(first).removesuffix(last)
                return cls(folder, namespace, templates, region, account)
        raise ValueError(f"{folder} has no stack {first}…{last}; synthesize the mesh again")

    @property
    def spark_stack(self) -> str:
        """The name of the stack with the mesh's own application, whether it exists or not."""
        return names.stack_name(self.namespace, "spark")
