"""Reads a synthesized mesh: the cloud assembly that `cdk synth` wrote."""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from asya.protocol import names

Template = Mapping[str, Any]
"""A CloudFormation template, with its intrinsic functions."""

OPTIONAL_STACKS = ("alarms", "dashboards", "spark")
"""The stacks that a change of the mesh file may remove. Their templates have no data, and no other stack needs them then."""

BOOTSTRAP_PARAMETER = "/cdk-bootstrap/hnb659fds/version"

_ENVIRONMENT = re.compile(r"aws://([^/]+)/(.+)")
_UNKNOWN = frozenset({"unknown-account", "unknown-region"})
_FINDINGS = "findings.json"


class AssemblyError(ValueError):
    """A folder is not the output of `cdk synth` for a mesh."""


@dataclass(frozen=True)
class Assembly:
    """The templates of one mesh, and where they are deployed.

    Attributes:
        folder: the output folder of `cdk synth`, which also has the assets.
        namespace: the namespace with its stage.
        templates: the templates by the names of their stacks.
        sizes: the sizes of the template files in bytes, by the names of their stacks.
        account, region: where the stacks go; None if the credentials decide.
        bootstrap_parameter: the name of the SSM parameter with the version of the bootstrap stack.
        bootstrap_version: the lowest version of `cdk bootstrap` that can deploy the stacks.
    """

    folder: Path
    namespace: str
    templates: Mapping[str, Template]
    sizes: Mapping[str, int] = field(default_factory=dict)
    account: str | None = None
    region: str | None = None
    bootstrap_parameter: str = BOOTSTRAP_PARAMETER
    bootstrap_version: int = 0

    @property
    def spark_stack(self) -> str:
        """The name of the stack with the mesh's own application, whether it exists or not."""
        return names.stack_name(self.namespace, "spark")

    @property
    def absent_stacks(self) -> list[str]:
        """The names of the optional stacks that the mesh does not have; an earlier deployment may have made them."""
        optional = (names.stack_name(self.namespace, part) for part in OPTIONAL_STACKS)
        return [stack for stack in optional if stack not in self.templates]


@dataclass(frozen=True)
class Findings:
    """What a synthesis says of a mesh, beside its templates.

    Attributes:
        quotas: the default quotas of an account that the mesh exceeds, a line for each.
        unread: types that were not read. They may be read the next time, so their assembly is not kept.
    """

    quotas: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        """Write them beside the templates."""
        (folder / _FINDINGS).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Findings":
        """Read those of an assembly."""
        content = json.loads((folder / _FINDINGS).read_text(encoding="utf-8"))
        return cls(tuple(content["quotas"]), tuple(content["unread"]))


def read_assembly(folder: Path) -> Assembly:
    """Read the output of `cdk synth`. The manifest names the templates: the folder may have those of another mesh, too.

    Args:
        folder: the output folder, such as `cdk.out`.

    Raises:
        AssemblyError: the folder has no manifest, or no stacks of a mesh.
    """
    try:
        artifacts = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))["artifacts"]
    except (OSError, ValueError, KeyError) as error:
        raise AssemblyError(f"{folder} is not the output of `cdk synth`: {error}") from error
    stacks = {
        artifact["properties"].get("stackName", name): artifact
        for name, artifact in sorted(artifacts.items())
        if artifact["type"] == "aws:cloudformation:stack"
    }
    files = {
        stack: (folder / artifact["properties"]["templateFile"]).read_bytes() for stack, artifact in stacks.items()
    }
    properties = [each.get("properties", {}) for each in artifacts.values()]
    state_stack, namespace = _namespace(stacks, folder)
    account, region = _environment(stacks[state_stack])
    return Assembly(
        folder,
        namespace,
        templates={stack: json.loads(content) for stack, content in files.items()},
        sizes={stack: len(content) for stack, content in files.items()},
        account=account,
        region=region,
        bootstrap_parameter=next(
            (name for each in properties if (name := each.get("bootstrapStackVersionSsmParameter"))),
            BOOTSTRAP_PARAMETER,
        ),
        bootstrap_version=max((int(each.get("requiresBootstrapStackVersion") or 0) for each in properties), default=0),
    )


def _namespace(stacks: Mapping[str, Any], folder: Path) -> tuple[str, str]:
    """Return the stack that each mesh has, and the namespace in its name."""
    first, _, last = names.stack_name("{}", "state").partition("{}")
    for stack in stacks:
        if stack.startswith(first) and stack.endswith(last):
            return stack, stack.removeprefix(first).removesuffix(last)
    raise AssemblyError(f"{folder} has no stack {first}…{last}; synthesize the mesh again")


def _environment(stack: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the account and the region of a stack."""
    match = _ENVIRONMENT.fullmatch(str(stack.get("environment", "")))
    account, region = match.groups() if match else (None, None)
    return None if account in _UNKNOWN else account, None if region in _UNKNOWN else region
