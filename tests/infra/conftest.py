"""Synthesizes each mesh once per session, because synthesis takes seconds. The tests check the templates."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from asya_infra.node import use_packaged_node

use_packaged_node()

from aws_cdk import App  # noqa: E402

from asya_infra.synthesis import add_mesh  # noqa: E402
from tests.infra.private_mesh import write_private_light_mesh, write_private_mesh  # noqa: E402
from tests.paths import PROJECT  # noqa: E402

HERE = Path(__file__).parent
FLAGS: dict[str, Any] = json.loads((PROJECT / "cdk.json").read_text())["context"]
"""The feature flags of a deployment."""


@dataclass(frozen=True)
class SynthesizedMesh:
    """The templates of a mesh, by the part of the stack's name after the namespace."""

    folder: Path
    templates: dict[str, dict[str, Any]]

    def resources(self, kind: str, part: str = "") -> list[dict[str, Any]]:
        """The properties of all resources of a type, in stacks whose part begins with `part`."""
        return [
            resource["Properties"]
            for name, template in self.templates.items()
            if name.startswith(part)
            for resource in template["Resources"].values()
            if resource["Type"] == kind
        ]

    def one(self, kind: str, **properties: Any) -> dict[str, Any]:
        """The only resource of a type that has these properties."""
        matches = [r for r in self.resources(kind) if all(r.get(key) == value for key, value in properties.items())]
        assert len(matches) == 1, f"{len(matches)} {kind} with {properties}"
        return matches[0]

    def function(self, actor: str, namespace: str = "shop") -> dict[str, Any]:
        """A function's properties."""
        return self.one("AWS::Lambda::Function", FunctionName=f"asya-{namespace}-{actor}")


def text(value: Any) -> Any:
    """Return a value of a template as plain text, with references in angle brackets."""
    if isinstance(value, dict):
        if "Fn::Join" in value:
            return value["Fn::Join"][0].join(str(text(part)) for part in value["Fn::Join"][1])
        if "Fn::Sub" in value:
            return str(value["Fn::Sub"]).replace("${AWS::", "<").replace("}", ">")
        if "Ref" in value:
            return f"<{value['Ref'].removeprefix('AWS::')}>"
        if "Fn::GetAtt" in value:
            return f"<{'.'.join(value['Fn::GetAtt'])}>"
        if "Fn::ImportValue" in value:
            return "<import>"
        return {key: text(item) for key, item in value.items()}
    return [text(item) for item in value] if isinstance(value, list) else value


def text_resources(path: str) -> dict[str, Any]:
    """A template with its properties as plain text."""
    template = json.loads(Path(path).read_text())
    for resource in template["Resources"].values():
        resource["Properties"] = text(resource.get("Properties", {}))
    return dict(template)


def synthesize(folder: Path, *, flags: dict[str, Any] = FLAGS, **context: str) -> SynthesizedMesh:
    """Synthesize a mesh, by default with the feature flags of a deployment.

    An unexplained finding of cdk-nag raises an error.
    """
    app = App(outdir=str(folder), context={**flags, **context})
    mesh = add_mesh(app, PROJECT)
    assembly = app.synth()
    prefix = f"Asya-{mesh.namespace}-"
    return SynthesizedMesh(
        folder,
        {stack.stack_name.removeprefix(prefix): text_resources(stack.template_full_path) for stack in assembly.stacks},
    )


@pytest.fixture(scope="session")
def no_aws_environment() -> Iterator[None]:
    """Synthesis must not need an account, a region or credentials."""
    saved = {key: os.environ.pop(key) for key in list(os.environ) if key.startswith("AWS_")}
    yield
    os.environ.update(saved)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    """A mesh with light and heavy actors, a set, a pause and most keys."""
    return synthesize(tmp_path_factory.mktemp("shop"), mesh=str(HERE / "mesh" / "mesh.yaml"))


@pytest.fixture(scope="session")
def private(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    """The same mesh with a customer managed key and in a VPC."""
    folder = tmp_path_factory.mktemp("private")
    return synthesize(folder / "out", mesh=str(write_private_mesh(folder)))


@pytest.fixture(scope="session")
def private_local(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    """A mesh of one light actor with the same options, as the local cloud deploys it."""
    folder = tmp_path_factory.mktemp("private-local")
    return synthesize(folder / "out", mesh=str(write_private_light_mesh(folder)), layer_target="local")


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    """A mesh of one light actor, as the local cloud deploys it, in a stage."""
    context = {"mesh": str(HERE / "mesh" / "light.yaml"), "layer_target": "local", "stage": "test"}
    return synthesize(tmp_path_factory.mktemp("plain"), **context)


@pytest.fixture(scope="session")
def example(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    """The mesh of this repository, on a Spark application that exists."""
    return synthesize(tmp_path_factory.mktemp("example"), emr_application_id="00abc123")
