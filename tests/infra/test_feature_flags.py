"""The CDK's feature flags: those of a new project, and what they may not change in deployed stacks."""

import json
import tarfile
from pathlib import Path
from typing import Any

import aws_cdk
import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_lambda as lambda_

from asya_infra.constructs import mesh_function
from asya_infra.constructs.mesh_function import EventSourceSettings, FunctionSettings, MeshFunction
from asya_infra.mesh import Mesh
from asya_infra.mesh_file import load_mesh
from asya_infra.options import Options
from asya_infra.permissions.needs import write_logs
from tests.infra.conftest import FLAGS, HERE, SynthesizedMesh, synthesize

LIBRARY = next((Path(aws_cdk.__file__).parent / "_jsii").glob("aws-cdk-lib@*.tgz"))
RECOMMENDED = "package/recommended-feature-flags.json"
# `weak` would take exports away from stacks that import them, and such a deployment fails.
DIFFERENT = {"@aws-cdk/core:defaultCrossStackReferences": "strong"}
# The flags of the first deployments.
FORMER: dict[str, Any] = {
    "@aws-cdk/core:target-partitions": ["aws", "aws-cn"],
    "@aws-cdk/aws-iam:minimizePolicies": True,
    "@aws-cdk/core:checkSecretUsage": True,
    "@aws-cdk/core:defaultCrossStackReferences": "strong",
}
# CloudFormation replaces a resource if one of these properties changes.
REPLACED_BY = {
    "AWS::DynamoDB::Table": ("TableName", "KeySchema"),
    "AWS::S3::Bucket": ("BucketName",),
    "AWS::SQS::Queue": ("QueueName", "FifoQueue"),
    "AWS::IAM::Role": ("RoleName", "Path"),
}


def test_the_flags_are_those_of_a_new_project() -> None:
    with tarfile.open(LIBRARY) as package:
        member = next(each for each in package if each.name == RECOMMENDED)
        source = package.extractfile(member)
        assert source is not None
        recommended = json.load(source)
    assert {**recommended, **DIFFERENT} == FLAGS


def identities(mesh: SynthesizedMesh) -> dict[str, Any]:
    """Return what must stay for a resource with state to stay, by stack and logical id."""
    return {
        f"{stack}/{logical_id}": [resource["Type"], *(resource["Properties"].get(key) for key in keys)]
        for stack, template in mesh.templates.items()
        for logical_id, resource in template["Resources"].items()
        if (keys := REPLACED_BY.get(resource["Type"]))
    }


@pytest.fixture(scope="module")
def former(tmp_path_factory: pytest.TempPathFactory, no_aws_environment: None) -> SynthesizedMesh:
    folder = tmp_path_factory.mktemp("former")
    return synthesize(folder, flags=FORMER, mesh=str(HERE / "mesh" / "mesh.yaml"))


def test_the_flags_replace_no_table_bucket_queue_or_role(shop: SynthesizedMesh, former: SynthesizedMesh) -> None:
    before, after = identities(former), identities(shop)
    assert before == after
    assert {kind for kind, *_ in after.values()} == REPLACED_BY.keys()


def version_of_provisioned_function(folder: Path, library: str) -> str:
    """Return the logical id of the version behind the alias, with a library of this content."""
    (folder / "library").mkdir(parents=True)
    (folder / "library" / "asya.py").write_text(library)
    (folder / "code").mkdir()
    (folder / "code" / "mesh.json").write_text("{}")
    options = Options(mesh=HERE / "mesh" / "light.yaml", build_folder=folder)
    mesh = Mesh(load_mesh(options.mesh, ""), options)
    app = App(outdir=str(folder / "out"), context=FLAGS)
    stack = Stack(app, "functions")
    settings = FunctionSettings(
        name="score",
        handler="asya.main",
        code=lambda_.Code.from_asset(str(folder / "code")),
        grants=[write_logs(mesh.addresses, "score")],
        timeout=30,
    )
    function = MeshFunction(stack, mesh, mesh_function.mesh_layer(stack, mesh), settings)
    function.add_event_source(EventSourceSettings(provisioned=1))
    template = app.synth().get_stack_by_name("functions").template
    [version] = [key for key, each in template["Resources"].items() if each["Type"] == "AWS::Lambda::Version"]
    return str(version)


def test_an_upgrade_of_the_library_reaches_the_alias(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version is immutable, so a changed layer needs another version (`@aws-cdk/aws-lambda:recognizeLayerVersion`)."""
    monkeypatch.setattr(mesh_function, "build_layer", lambda folder, _, **__: folder / "library")
    first = version_of_provisioned_function(tmp_path / "first", "1")
    assert version_of_provisioned_function(tmp_path / "again", "1") == first
    assert version_of_provisioned_function(tmp_path / "upgrade", "2") != first
